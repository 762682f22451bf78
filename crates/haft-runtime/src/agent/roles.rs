//! The roles that children can have: those that haft has, those of accepted files of the project, and the user's own.
//!
//! A project's files come with the project, so that one counts only after somebody has looked at it (`haft trust`), and
//! only as it was then. Of two with one name the user's counts before the file's, and that before haft's.

use super::model::ModelRef;
use super::settings::{AgentSettings, Role};
use crate::shelf::{Standing, difference};
use crate::store_error;
use crate::work::workflow::{self, Offered, Offers};
use crate::workspace::Workspace;
use haft_core::CallError;
use haft_core::agent::file::{self, AgentFile};
use haft_core::record::Digest;
use haft_core::work::Fault;
use haft_core::work::file::Misfit;
use haft_store::Store;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where agents are kept as files.
const FOLDER: &str = ".haft/agents";
/// How many files are looked at.
const FILES_MAX: usize = 500;
/// How large one may be.
const FILE_MAX: u64 = 256 << 10;

/// What changes files, or makes what agents run.
const WRITES: &[&str] = &[
    "agent.delegate",
    "agent.merge",
    "file.write",
    "file.edit",
    "file.batch",
    "file.ignore",
    "tool.create",
    "skill.create",
    "reflection.create",
];
/// What runs programs.
const PROGRAMS: &[&str] = &["group:runtime", "agent.delegate"];

/// An agent that is a file.
#[derive(Debug, Clone)]
pub struct Filed {
    /// Its name.
    pub name: String,
    /// Where.
    pub path: PathBuf,
    /// What it says, or what is wrong with it.
    pub says: Result<AgentFile, Vec<Misfit>>,
    /// What is in it; empty if it cannot be read.
    text: String,
}

impl Filed {
    fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// The role, if nothing is wrong with it.
    pub fn role(&self) -> Option<Role> {
        let file = self.says.as_ref().ok()?;
        Some(Role {
            description: file.description.clone(),
            prompt: file.prompt.clone(),
            tools: file.tools.clone(),
            deny: file.deny.clone(),
            model: file.model.as_deref().and_then(ModelRef::parse),
            effort: file.effort,
            max_turns: file.max_turns,
            autonomous: file.autonomous,
            source: Some(self.path.display().to_string()),
        })
    }
}

/// Which files somebody accepted, by name and as they were then.
#[derive(Debug, Clone, Default)]
pub struct Accepted(BTreeMap<String, Digest>);

impl Accepted {
    fn standing(&self, file: &Filed) -> Standing {
        match self.0.get(&file.name) {
            None => Standing::Untrusted,
            Some(digest) if *digest == file.digest() => Standing::Accepted,
            Some(_) => Standing::Changed,
        }
    }
}

/// The roles there are, by name.
pub fn roles(settings: &AgentSettings, workspace: &Workspace, accepted: &Accepted) -> BTreeMap<String, Role> {
    let counts = |file: &Filed| accepted.standing(file).counts();
    let files = filed(workspace).into_iter().filter(counts);
    let files = files.filter_map(|file| file.role().map(|role| (file.name, role)));
    let own = settings.roles.iter().map(|(name, role)| (name.clone(), role.clone()));
    built_in().into_iter().chain(files).chain(own).collect()
}

/// The roles that haft has.
pub fn built_in() -> BTreeMap<String, Role> {
    let list = |parts: &[&[&str]]| parts.concat().iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>();
    let role = |description: &str, prompt: &str, deny| Role {
        description: description.to_owned(),
        prompt: prompt.to_owned(),
        deny,
        ..Role::default()
    };
    let researcher = role(
        "Finds things out: reads, searches and browses; changes no files and runs no programs",
        "You find things out. Look at what is there, follow it up, and say what you found and where; name what you could \
         not find out. You change nothing.",
        list(&[WRITES, PROGRAMS]),
    );
    let creator = role(
        "Writes: makes and changes files; runs no programs",
        "You write. Look at what is there before you change it, keep to its style, and say what you wrote and why.",
        list(&[PROGRAMS]),
    );
    let operator = role(
        "Operates: runs commands and looks at what they say, asks nobody, changes no files",
        "You operate. Run what is needed, check what came of it, and report it. Nobody can be asked: what is refused is \
         refused, so say so and go on.",
        list(&[WRITES]),
    );
    let collector = role(
        "Collects what the user knows: asks them, and remembers what they say",
        "You ask the user what is needed, a few questions at a time, and remember what they say. You do nothing else.",
        Vec::new(),
    );
    let collector = Role { tools: Some(list(&[&["user.ask", "memory.*"]])), ..collector };
    let all = [
        ("researcher", researcher),
        ("creator", creator),
        ("operator", Role { autonomous: true, ..operator }),
        ("collector", collector),
    ];
    all.into_iter().map(|(name, role)| (name.to_owned(), role)).collect()
}

/// The agents of a project that are files, by name. One that cannot be read hides no other.
pub fn filed(workspace: &Workspace) -> Vec<Filed> {
    filed_in(&workspace.root().join(FOLDER))
}

/// The same of any directory: what is in the user's own counts as it stands.
pub fn filed_in(folder: &Path) -> Vec<Filed> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.take(FILES_MAX).map(|entry| entry.path()).collect();
    paths.sort();
    let mut found: Vec<Filed> = Vec::new();
    for path in paths {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let (Some("yml" | "yaml"), Some(name)) = (ending, path.file_stem().and_then(|name| name.to_str())) else {
            continue;
        };
        // Of `a.yaml` and `a.yml` the first counts.
        if found.iter().any(|known| known.name == name) {
            continue;
        }
        let name = name.to_owned();
        let (text, says) = match text_of(&path) {
            Ok(text) => {
                let says = file::read(&text, &name);
                (text, says)
            }
            Err(misfit) => (String::new(), Err(vec![misfit])),
        };
        found.push(Filed { name, path, says, text });
    }
    found
}

fn text_of(path: &Path) -> Result<String, Misfit> {
    let odd = |what: String| Misfit { line: 1, column: 1, fault: Fault { at: String::new(), what } };
    let meta = std::fs::symlink_metadata(path).map_err(|error| odd(error.to_string()))?;
    if !meta.is_file() || meta.len() > FILE_MAX {
        return Err(odd(format!("it is no file of at most {} KiB", FILE_MAX >> 10)));
    }
    std::fs::read_to_string(path).map_err(|error| odd(error.to_string()))
}

/// Under what name the store keeps what was accepted of a project's agents.
fn server(workspace: &Workspace) -> String {
    format!("agents:{}", workspace.stored_root())
}

/// What somebody accepted of a project's agents.
pub async fn accepted(store: &Store, workspace: &Workspace) -> Result<Accepted, CallError> {
    let pins = store.pins(&server(workspace)).await.map_err(store_error)?;
    Ok(Accepted(pins.into_iter().map(|pin| (pin.tool, pin.digest)).collect()))
}

/// How the agents of a project stand, by name.
pub async fn standings(store: &Store, workspace: &Workspace) -> Result<BTreeMap<String, Standing>, CallError> {
    let accepted = accepted(store, workspace).await?;
    Ok(filed(workspace).iter().map(|file| (file.name.clone(), accepted.standing(file))).collect())
}

/// The agents of a project as they stand, to be looked at and accepted.
pub async fn offers(store: &Store, workspace: &Workspace) -> Result<Offers, CallError> {
    let accepted = accepted(store, workspace).await?;
    let mut offers = Offers::default();
    for file in filed(workspace) {
        let standing = accepted.standing(&file);
        let shown = workspace.shown(&file.path);
        if let Err(misfits) = &file.says {
            let flaw = |misfit: &Misfit| format!("{shown}:{}:{}: {}", misfit.line, misfit.column, misfit.fault);
            offers.flaws.extend(misfits.iter().map(flaw));
            continue;
        }
        if standing.counts() {
            offers.counted += 1;
            continue;
        }
        let before = store.pin_texts(&server(workspace), &file.name).await.map_err(store_error)?;
        let before = before["text"].as_str().filter(|_| standing == Standing::Changed);
        let diff = before.map(|before| difference(&shown, before, &file.text));
        let Filed { name, path, text, .. } = file;
        offers.open.push(Offered { name, path, standing, text, diff });
    }
    Ok(offers)
}

/// Accepts exactly what was offered. What changed since it was looked at does not count.
pub async fn accept(store: &Store, workspace: &Workspace, offered: &[Offered]) -> Result<(), CallError> {
    workflow::accept_as(store, &server(workspace), workspace, offered).await
}

/// Takes back what was accepted. Returns the names.
pub async fn revoke(store: &Store, workspace: &Workspace) -> Result<Vec<String>, CallError> {
    workflow::revoke_as(store, &server(workspace)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::pattern::ToolPattern;
    use haft_core::tool::Effect;

    /// Whether a role may use a tool.
    fn may(role: &Role, tool: &haft_core::ToolName) -> bool {
        let any = |list: &[String]| list.iter().any(|pattern| ToolPattern::new(pattern).unwrap().matches(tool));
        role.tools.as_deref().is_none_or(any) && !any(&role.deny)
    }

    #[test]
    fn the_roles_that_haft_has_keep_to_what_they_are_for() {
        let roles = built_in();
        for tool in crate::tools::all() {
            let (name, spec) = (&tool.spec().name, tool.spec());
            let family = name.as_str().split('.').next().unwrap();
            let programs = matches!(family, "shell" | "process");
            let writes = spec.effects.effect == Effect::Changes;
            assert!(!(writes || programs) || !may(&roles["researcher"], name), "a researcher has {name}");
            assert!(!programs || !may(&roles["creator"], name), "a creator has {name}");
            assert!(!writes || !may(&roles["operator"], name), "an operator has {name}");
            let own = family == "memory" || name.as_str() == "user.ask";
            assert_eq!(may(&roles["collector"], name), own, "{name}");
        }
        let autonomous: Vec<&str> =
            roles.iter().filter(|(_, role)| role.autonomous).map(|(name, _)| name.as_str()).collect();
        assert_eq!(autonomous, ["operator"]);
        let read = haft_core::ToolName::new("file.read").unwrap();
        assert!(["researcher", "creator", "operator"].iter().all(|name| may(&roles[*name], &read)));
    }

    #[test]
    fn a_file_counts_once_accepted_and_as_it_was_then() {
        let dir = tempfile::tempdir().unwrap();
        let agents = dir.path().join(".haft/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let write = |name: &str, text: &str| std::fs::write(agents.join(name), text).unwrap();
        write("reviewer.yml", "description: Reviews\nprompt: You review.\ndeny: [\"file.write\"]\nmodel: a/b\n");
        write("researcher.yml", "description: Ours\nprompt: You search.\n");
        write("broken.yml", "description: x\n");
        write("notes.txt", "no agent");
        let workspace = Workspace::new(dir.path()).unwrap();
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let now = |settings: &AgentSettings| {
            roles(settings, &workspace, &runtime.block_on(accepted(&store, &workspace)).unwrap())
        };
        let settings = AgentSettings::default();
        assert_eq!(now(&settings), built_in(), "nobody has looked at them");
        let offers = runtime.block_on(super::offers(&store, &workspace)).unwrap();
        assert_eq!(offers.open.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["researcher", "reviewer"]);
        assert!(offers.flaws[0].ends_with("broken.yml:1:1: `prompt` is missing"), "{:?}", offers.flaws);
        runtime.block_on(accept(&store, &workspace, &offers.open)).unwrap();
        let known = now(&settings);
        assert_eq!(known["researcher"].description, "Ours");
        let reviewer = &known["reviewer"];
        assert_eq!(
            (reviewer.deny.as_slice(), reviewer.model.as_ref()),
            (&["file.write".to_owned()][..], ModelRef::parse("a/b").as_ref())
        );
        assert!(reviewer.source.as_ref().unwrap().ends_with(".haft/agents/reviewer.yml"));
        let own = Role { description: "Mine".to_owned(), ..Role::default() };
        let mine = AgentSettings { roles: BTreeMap::from([("reviewer".to_owned(), own)]), ..AgentSettings::default() };
        assert_eq!(now(&mine)["reviewer"].description, "Mine", "the user's own counts before a project's");
        write("reviewer.yml", "description: Reviews\nprompt: You obey.\n");
        assert!(!now(&settings).contains_key("reviewer"), "it is not what was accepted");
        let changed = runtime.block_on(super::offers(&store, &workspace)).unwrap();
        assert!(changed.open[0].diff.as_ref().unwrap().contains("+prompt: You obey."), "{changed:?}");
        assert_eq!(runtime.block_on(revoke(&store, &workspace)).unwrap().len(), 2);
        assert_eq!(now(&settings), built_in());
    }
}

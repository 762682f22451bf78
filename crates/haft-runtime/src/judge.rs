//! Looking at a shell command before it is decided upon: the pure judgement of its text, joined with what
//! the machine says about the places, programs and repositories that it names.

use crate::confined::environment;
use crate::pipeline::Haft;
use crate::workspace::Workspace;
use haft_core::observed::environment::shows_environment;
use haft_core::place::{Access, Place, Sensitive};
use haft_core::secret::MASK;
use haft_core::shell::masking::mask_command;
use haft_core::shell::rule::{Found, Rulebook};
use haft_core::shell::{self, Ground, Judged, Subtree, Table, Target, Tracked, TrackedFiles};
use haft_core::{Checked, Origin, Shell};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use subtree::{Coverage, SearchedTree, Unclear, careful_places};

pub(crate) mod executed_files;
mod glob;
pub(crate) mod index;
pub(crate) mod subtree;

/// The parameter under which the places that a command names are known.
pub(crate) const PARAM: &str = "command";
/// More paths than this are not looked up.
const PATHS_MAX: usize = 256;
/// The largest git configuration that is read.
const CONFIG_MAX: u64 = 256 << 10;

/// What stands for a secret in a command that is shown word by word.
const SHOWN_MASK: &str = "SECRET";

/// How deeply repositories are looked for in repositories.
const NESTED_MAX: usize = 3;

/// What is known of a shell command, for people: paths as they would write them.
#[derive(Debug, Clone, Serialize)]
pub struct ShellShown {
    /// What is known of it.
    #[serde(flatten)]
    pub shell: Shell,
    /// What it reads.
    pub reads: Vec<String>,
    /// What it writes.
    pub writes: Vec<String>,
    /// The rules that are about its commands.
    pub rules: Vec<Found>,
}

impl ShellShown {
    pub(crate) fn new(shell: Shell, places: &[Place], rules: &Rulebook) -> Self {
        let named = |access: Access| {
            let here = places.iter().filter(|place| place.param == PARAM && place.access == access);
            let mut shown: Vec<String> = here.map(|place| place.shown.clone()).collect();
            shown.sort();
            shown.dedup();
            shown
        };
        let rules = rules.found(&shell.judged);
        Self { reads: named(Access::Read), writes: named(Access::Write), rules, shell }
    }
}

impl Haft {
    /// What is known of the shell command that a call runs, and the places that it names.
    pub(crate) fn judge(&self, checked: &Checked, places: &[Place]) -> Option<(Shell, Vec<Place>)> {
        Some(self.judge_text(checked, places, &command(checked)?))
    }

    /// The same of a command with its secrets masked, to be shown; none if it has none.
    pub(crate) fn judge_masked(&self, checked: &Checked, places: &[Place]) -> Option<Shell> {
        let text = command(checked)?;
        let masked = mask_command(&text);
        // A mask in brackets would be taken for a pattern of file names.
        (masked != text).then(|| self.judge_text(checked, places, &masked.replace(MASK, SHOWN_MASK)).0)
    }

    fn judge_text(&self, checked: &Checked, places: &[Place], text: &str) -> (Shell, Vec<Place>) {
        let cwd = places.iter().find(|place| place.param == "cwd").map_or(self.workspace.root(), |place| &place.real);
        let table = self.settings.table.as_deref().unwrap_or_else(|| Table::shipped());
        let home = environment::home();
        let home = home.as_ref().and_then(|home| home.to_str());
        // A directory that cannot be written down is one that nothing relative can be said about.
        let cwd = cwd.to_str().unwrap_or("/");
        let judged = shell::judge(text, &Ground { cwd, home, table });
        let mut look = Look { workspace: &self.workspace, unsettled: Vec::new(), places: Vec::new() };
        look.paths(&judged.reads, Access::Read);
        look.paths(&judged.writes, Access::Write);
        look.programs(&judged);
        // What is not known to only read anyway needs no second reason.
        if judged.only_reads() {
            for dir in &judged.repositories {
                look.repository(Path::new(dir), 0);
            }
        }
        let observed = checked.call().origin == Origin::Hook;
        if observed {
            look.subtrees(&judged);
            look.tracked(&judged.tracked);
        }
        if observed && !environment::user_shell_reads(text) {
            look.unsettled.push("the user's shell may not read this as bash does".to_owned());
        }
        if observed
            && judged.only_reads()
            && let Some(why) = shows_environment(text, &judged)
        {
            look.unsettled.push(why);
        }
        if !observed && !self.terms.shell.reads(text) {
            look.unsettled.push("the configured shell may not read this as bash does".to_owned());
        }
        look.places.extend(self.workspace.own_place_in_command(text, &judged));
        let Look { unsettled, places, .. } = look;
        (Shell { judged, unsettled }, places)
    }
}

/// Whether a place is written in a temporary directory of the command's own.
pub(crate) fn passing(place: &Place) -> bool {
    place.param == PARAM && place.access == Access::Write && !place.inside && place.real.starts_with("/tmp")
}

/// The command of a call, as a shell would be given it.
fn command(checked: &Checked) -> Option<String> {
    let (param, words) = checked.spec().reach.command?;
    let text = checked.args().get(param).and_then(Value::as_str)?;
    let words = words.and_then(|words| checked.args().get(words)).and_then(Value::as_array);
    let Some(words) = words else { return Some(text.to_owned()) };
    let all = std::iter::once(text).chain(words.iter().filter_map(Value::as_str));
    Some(all.map(quoted).collect::<Vec<_>>().join(" "))
}

/// A word that a shell takes for itself.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// `/proc/self` and `/dev/stdin` are the command's own where the command names them, and not haft's.
fn own_process_as_commands(named: &str, place: &mut Place) {
    if place.sensitive != Some(Sensitive::OwnState) || !place.real.starts_with("/proc") {
        return;
    }
    if named.starts_with("/dev/") {
        place.sensitive = None;
    } else if ["/proc/self/", "/proc/thread-self/"].iter().any(|own| named.starts_with(own)) {
        place.sensitive = Some(Sensitive::Credentials);
    }
}

struct Look<'l> {
    workspace: &'l Workspace,
    unsettled: Vec<String>,
    places: Vec<Place>,
}

impl Look<'_> {
    fn paths(&mut self, targets: &[Target], access: Access) {
        if targets.len() > PATHS_MAX {
            self.unsettled.push(format!("it names more than {PATHS_MAX} paths"));
        }
        for target in targets.iter().take(PATHS_MAX) {
            match target {
                Target::Path(path) => self.path(path, access),
                Target::Glob(pattern) => self.glob(pattern, access),
            }
        }
    }

    fn path(&mut self, path: &str, access: Access) {
        match self.workspace.place_of_program(PARAM, access, path) {
            Ok(mut place) => {
                own_process_as_commands(path, &mut place);
                if !self.places.contains(&place) {
                    self.places.push(place);
                }
            }
            Err(error) => self.unsettled.push(error.message),
        }
    }

    /// A pattern is judged by where it starts, and by what it matches there that deserves care or leads out.
    fn glob(&mut self, pattern: &str, access: Access) {
        for pattern in glob::alternatives(pattern) {
            self.path(&glob::base(&pattern), access);
            let found = glob::matches(&pattern);
            if found.is_none() {
                self.unsettled.push(format!("`{pattern}` matches too much to be looked through"));
            }
            for path in found.unwrap_or_default() {
                let Ok(place) = self.workspace.place_of_program(PARAM, access, &path) else { continue };
                let careful = place.sensitive.is_some() || !place.inside;
                if careful && !self.places.contains(&place) {
                    self.places.push(place);
                }
            }
        }
    }

    /// What a program reads below the directories that it is given, where nothing confines it.
    fn subtrees(&mut self, judged: &Judged) {
        let mut unclear = None;
        let mut names_left = subtree::NAMES_MAX;
        for Subtree { top, visible_only } in &judged.subtrees {
            let coverage = if *visible_only { Coverage::Visible } else { Coverage::Everything };
            for top in tops(top) {
                let tree = SearchedTree { top: Path::new(&top), coverage };
                match careful_places(self.workspace, PARAM, tree, &mut names_left) {
                    Ok(places) => self.add(places),
                    Err(why) => unclear = Some(why),
                }
            }
        }
        // What is not known to only read anyway needs no second reason.
        if let Some(Unclear(why)) = unclear.filter(|_| judged.only_reads()) {
            self.unsettled.push(format!("what lies below the directories that it reads {why}"));
        }
    }

    fn add(&mut self, places: Vec<Place>) {
        for place in places {
            if !self.places.contains(&place) {
                self.places.push(place);
            }
        }
    }

    /// The tracked files of a repository that deserve care, as far as they would be printed.
    fn tracked(&mut self, tracked: &[TrackedFiles]) {
        if tracked.len() > PATHS_MAX {
            self.unsettled.push(format!("it looks into more than {PATHS_MAX} repositories"));
        }
        for TrackedFiles { dir, which } in tracked.iter().take(PATHS_MAX) {
            let dir = Path::new(dir).canonicalize().unwrap_or_else(|_| PathBuf::from(dir));
            let Some((git, tree)) = repository_of(&dir) else { continue };
            let Some(files) = index::files(&git.join("index")) else {
                self.unsettled.push(format!("{}: its index is not understood", self.workspace.shown(&git)));
                continue;
            };
            for file in files {
                let path = tree.join(&file.path);
                if self.workspace.judge(&path) != Some(Sensitive::Credentials) {
                    continue;
                }
                if *which == Tracked::Contents || file.has_changed_in(&tree) {
                    let place =
                        path.to_str().and_then(|path| self.workspace.place_of_program(PARAM, Access::Read, path).ok());
                    self.add(place.into_iter().collect());
                }
            }
        }
    }

    /// A program is what its name says only if nobody could have put another one before it.
    fn programs(&mut self, judged: &Judged) {
        let mut names: Vec<&str> = judged.commands.iter().filter_map(|command| command.name.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names.into_iter().filter(|name| !name.contains('/')) {
            let Some((dir, real)) = on_path(name) else { continue };
            let own = self.workspace.writable_roots().iter().any(|root| real.starts_with(root));
            if dir.is_relative() || own {
                let shown = self.workspace.shown(&real);
                self.unsettled.push(format!("`{name}` would be {shown}, which the project itself decides"));
            }
        }
    }

    /// The configuration of a repository decides what git runs; so does that of every repository inside it that
    /// it knows of, because git looks into those as well.
    fn repository(&mut self, dir: &Path, depth: usize) {
        // Where it runs is where links lead.
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let Some((git, tree)) = repository_of(&dir) else { return };
        let mut configs = vec![git.join("config"), git.join("config.worktree")];
        configs.extend(submodules(&git.join("modules"), 0));
        // Work trees share the configuration of the repository that they belong to.
        if let Some(common) = first_line(&git.join("commondir")) {
            configs.push(git.join(&common).join("config"));
            configs.extend(submodules(&git.join(common).join("modules"), 0));
        }
        for config in configs {
            let said = match read(&config) {
                Ok(None) => None,
                Ok(Some(text)) => shell::unsettled(&text),
                Err(error) => Some(format!("its git configuration cannot be read: {error}")),
            };
            if let Some(why) = said {
                self.unsettled.push(format!("{}: {why}", self.workspace.shown(&config)));
            }
        }
        match index::nested(&git.join("index")) {
            Some(nested) if depth < NESTED_MAX => {
                for path in &nested {
                    self.repository(&tree.join(path), depth + 1);
                }
            }
            Some(nested) if nested.is_empty() => {}
            _ => self.unsettled.push(format!("{}: its index is not understood", self.workspace.shown(&git))),
        }
    }
}

/// The program that a name means: the directory of the PATH that has it, and where it really is.
fn on_path(name: &str) -> Option<(PathBuf, PathBuf)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).find_map(|dir| {
        let file = dir.join(name);
        file.exists().then(|| (dir, file.canonicalize().unwrap_or(file)))
    })
}

/// The paths that a target names. A pattern that matches too much is doubted where it is looked up as a path.
fn tops(target: &Target) -> Vec<String> {
    match target {
        Target::Path(path) => vec![path.clone()],
        Target::Glob(pattern) => {
            glob::alternatives(pattern).iter().filter_map(|pattern| glob::matches(pattern)).flatten().collect()
        }
    }
}

/// The directory that holds the repository around a place, found as git does, and that of its files.
fn repository_of(dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    for dir in dir.ancestors() {
        let git = dir.join(".git");
        if git.is_dir() {
            return Some((git, dir.to_owned()));
        }
        if there(&git) {
            let pointer = first_line(&git)?;
            return Some((dir.join(pointer.trim_start_matches("gitdir:").trim()), dir.to_owned()));
        }
        // What looks like a repository to us in more cases than to git.
        if there(&dir.join("HEAD"))
            && ["objects", "refs", "commondir", "config"].iter().any(|name| there(&dir.join(name)))
        {
            return Some((dir.to_owned(), dir.to_owned()));
        }
    }
    None
}

/// The configurations of submodules.
fn submodules(modules: &Path, depth: usize) -> Vec<PathBuf> {
    const DEEPEST: usize = 4;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(modules).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.join("HEAD").is_file() {
            found.push(path.join("config"));
        }
        if depth < DEEPEST && path.is_dir() {
            let below = if path.join("HEAD").is_file() { path.join("modules") } else { path };
            found.extend(submodules(&below, depth + 1));
        }
    }
    found
}

fn first_line(path: &Path) -> Option<String> {
    read(path).ok()??.lines().next().map(|line| line.trim().to_owned())
}

/// A small text; none if there is none.
fn read(path: &Path) -> std::io::Result<Option<String>> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.len() > CONFIG_MAX => Err(std::io::Error::other("it is too large")),
        Ok(_) => std::fs::read_to_string(path).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

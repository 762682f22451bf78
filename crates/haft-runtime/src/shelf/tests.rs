//! The shelf over real folders and a real store.

use super::{Folder, Shelf, Standing, Whose};
use crate::registry::{Registry, visible};
use haft_core::{CallError, Caller, Policy};
use haft_store::Store;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod accepting;

/// A home and a project with folders for tools.
struct Place {
    dir: tempfile::TempDir,
    registry: Arc<Registry>,
    shelf: Shelf,
    runtime: tokio::runtime::Runtime,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        std::fs::create_dir_all(&root).unwrap();
        let registry = Arc::new(Registry::default());
        for tool in crate::tools::all() {
            registry.register_shipped(Arc::clone(tool)).unwrap();
        }
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let folder = |path: &str, whose| Folder { path: dir.path().join(path), whose };
        let folders = vec![
            folder("project/.haft/tools", Whose::Project),
            folder("project/.glee/tools", Whose::Project),
            folder("home/tools", Whose::Own),
        ];
        let shelf = Shelf::new(folders, &root, Arc::clone(&registry), store);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { dir, registry, shelf, runtime }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A tool in a folder.
    fn tool(&self, folder: &str, name: &str, description: &str) {
        self.write(&format!("{folder}/{name}/tool.yml"), &http(name, description));
    }

    fn load(&self) {
        self.runtime.block_on(self.shelf.load_all()).unwrap();
    }

    fn ready(&self, name: &str) -> Result<(), CallError> {
        self.runtime.block_on(self.shelf.ready(name))
    }

    fn accept(&self, name: &str) {
        self.try_accept(name).unwrap();
    }

    fn try_accept(&self, name: &str) -> Result<(), CallError> {
        self.runtime.block_on(async {
            let offers = self.shelf.single(name).await?;
            self.shelf.accept_as_shown(offers).await
        })
    }

    fn description(&self, name: &str) -> Option<String> {
        self.registry.get(name).map(|entry| entry.spec().description.clone())
    }

    fn barred(&self, name: &str) -> Option<String> {
        self.registry.get(name).unwrap().tool().barred()
    }

    fn warnings(&self) -> Vec<String> {
        let home = format!("{}/", self.dir.path().display());
        self.shelf.report().warnings().iter().map(|line| line.replace(&home, "")).collect()
    }
}

fn http(name: &str, description: &str) -> String {
    format!(
        "name: {name}\ndescription: {description}\nkind: http\nversion: 1\ninputs:\n  schema: {{type: object}}\noutputs: {{format: json}}\n\
         exec:\n  http: {{method: GET, url: \"https://a.test/\"}}\n\
         permissions: {{network: true, fs: {{read: [], write: []}}, secrets: {{}}}}\napproval: {{required: false}}\n"
    )
}

fn command(name: &str, entrypoint: &str) -> String {
    format!(
        "name: {name}\ndescription: Runs.\nkind: command\nversion: 1\ninputs:\n  schema: {{type: object}}\noutputs: {{format: text}}\n\
         exec:\n  command: {{entrypoint: {entrypoint}}}\n\
         permissions: {{network: false, fs: {{read: [], write: []}}, secrets: {{}}}}\napproval: {{required: false}}\n"
    )
}

const HAFT: &str = "project/.haft/tools";
const GLEE: &str = "project/.glee/tools";
const OWN: &str = "home/tools";

#[test]
fn the_stronger_folder_counts_and_the_other_is_told() {
    let place = Place::new();
    place.tool(OWN, "one", "The user's.");
    place.tool(GLEE, "one", "Glee's.");
    place.tool(HAFT, "one", "The project's.");
    place.tool(GLEE, "two", "Glee's.");
    place.tool(OWN, "two", "The user's.");
    place.tool(OWN, "three", "The user's.");
    place.load();
    let said = |name: &str| place.description(name).unwrap();
    assert_eq!((said("one"), said("two")), ("The project's.".to_owned(), "Glee's.".to_owned()));
    insta::assert_snapshot!(place.warnings().join("\n"), @r"
    project/.glee/tools/one/tool.yml: project/.haft/tools/one/tool.yml has the same name, and counts
    home/tools/one/tool.yml: project/.haft/tools/one/tool.yml has the same name, and counts
    home/tools/two/tool.yml: project/.glee/tools/two/tool.yml has the same name, and counts
    ");
    assert_eq!(place.barred("three"), None, "the user's own count as they stand");
    assert!(place.barred("one").unwrap().contains("haft trust one"));
    // What is gone gives way to what is weaker.
    std::fs::remove_dir_all(place.path("project/.haft/tools/one")).unwrap();
    std::fs::remove_dir_all(place.path("home/tools/three")).unwrap();
    place.load();
    assert_eq!((said("one"), place.description("three")), ("Glee's.".to_owned(), None));
}

#[test]
fn what_is_bad_is_told_and_hides_nothing() {
    let place = Place::new();
    place.tool(HAFT, "good", "Good.");
    place.write("project/.haft/tools/broken/tool.yml", "name: broken\nkind: [\n");
    place.write("project/.haft/tools/other/tool.yml", &http("another", "Another."));
    place.write("project/.haft/tools/dotted.name/tool.yml", &http("dotted.name", "Dotted."));
    place.write("project/.haft/tools/big/tool.yml", &"#".repeat(10 << 20));
    place.write("project/.haft/tools/folder/tool.yml/x", "");
    place.write("outside.yml", &http("link", "Outside."));
    std::fs::create_dir_all(place.path("project/.haft/tools/link")).unwrap();
    std::os::unix::fs::symlink(place.path("outside.yml"), place.path("project/.haft/tools/link/tool.yml")).unwrap();
    std::fs::create_dir_all(place.path("project/.haft/tools/pipe")).unwrap();
    let pipe = place.path("project/.haft/tools/pipe/tool.yml");
    rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    place.write("project/.haft/tools/latin/tool.yml", "x");
    std::fs::write(place.path("project/.haft/tools/latin/tool.yml"), b"name: \xff\xfe").unwrap();
    place.write("project/.haft/tools/README.md", "not a tool");
    place.load();
    assert!(place.registry.has("good"));
    let warnings = place.warnings();
    for (name, why) in [
        ("broken", ":2:"),
        ("other", ":1:1: name: it says `another`, and its directory is `other`"),
        ("dotted.name", "it does not count"),
        ("big", "larger than 256 KiB"),
        ("folder", "it is not a file"),
        ("link", "leads out of its folder"),
        ("pipe", "it is not a file"),
        ("latin", "not text in UTF-8"),
    ] {
        let file = format!("project/.haft/tools/{name}/tool.yml");
        assert!(warnings.iter().any(|line| line.starts_with(&file) && line.contains(why)), "{name}: {warnings:#?}");
        assert!(name.contains('.') || !place.registry.has(name), "{name}");
    }
    assert!(place.ready("broken").unwrap_err().message.contains("tools/broken/tool.yml:2:"));
}

#[test]
fn a_broken_edit_keeps_the_last_good_version() {
    let place = Place::new();
    place.tool(OWN, "tool", "First.");
    place.load();
    place.write("home/tools/tool/tool.yml", "name: [");
    place.load();
    assert_eq!(place.description("tool").unwrap(), "First.");
    let warnings = place.warnings();
    assert!(
        warnings[0].contains("tool.yml:1:7:") && warnings[0].ends_with("(the last good version is used)"),
        "{warnings:?}"
    );
    place.ready("tool").unwrap();
    place.tool(OWN, "tool", "Second.");
    place.ready("tool").unwrap();
    assert_eq!((place.description("tool").unwrap().as_str(), place.warnings().len()), ("Second.", 0));
    std::fs::remove_dir_all(place.path("home/tools/tool")).unwrap();
    place.ready("tool").unwrap();
    assert_eq!(place.description("tool"), None, "what is deleted is gone before the next call");
}

#[test]
fn nobodys_name_is_taken_but_what_models_call_a_tool_can_be() {
    let place = Place::new();
    place.tool(OWN, "web_search", "Ours.");
    place.load();
    assert_eq!(place.warnings().len(), 0);
    let tool = place.shelf.tool("web_search").unwrap();
    assert_eq!(tool.instead_of.as_deref(), Some("web.search"));
    let spoken = haft_core::Call::new(crate::new_call_id(), "web_search", serde_json::json!({}));
    assert_eq!(place.registry.resolve(&spoken).unwrap().entry.spec().name.as_str(), "web_search");
    assert!(place.registry.has("web.search"), "it can still be called by its own name");
    let told: Vec<String> = visible(&place.registry, &Policy::default(), &Caller::default())
        .iter()
        .map(|entry| entry.spec().name.to_string())
        .collect();
    assert!(told.contains(&"web_search".to_owned()) && !told.contains(&"web.search".to_owned()), "{told:?}");
    std::fs::remove_dir_all(place.path("home/tools/web_search")).unwrap();
    place.load();
    assert_eq!(visible(&place.registry, &Policy::default(), &Caller::default()).len(), told.len());
}

#[test]
fn what_is_accepted_is_all_of_it() {
    let place = Place::new();
    place.write("project/.haft/tools/run/tool.yml", &command("run", "./scripts/run.sh"));
    place.write("project/.haft/tools/run/data/words.txt", "words");
    place.write("project/scripts/run.sh", "#!/bin/sh\n");
    place.load();
    assert_eq!(place.shelf.tool("run").unwrap().standing, Standing::Untrusted);
    assert!(place.barred("run").unwrap().contains("nobody has accepted"));
    place.accept("run");
    assert_eq!(place.barred("run"), None);
    for (path, text, why) in [
        ("project/scripts/run.sh", "#!/bin/sh\nevil\n", "`scripts/run.sh` changed"),
        ("project/.haft/tools/run/data/words.txt", "other", "`.haft/tools/run/data/words.txt` changed"),
        ("project/.haft/tools/run/data/new.txt", "new", "`.haft/tools/run/data/new.txt` came"),
        ("project/.haft/tools/run/tool.yml", &command("run", "./scripts/other.sh"), "its tool.yml has changed"),
    ] {
        place.accept("run");
        let before = std::fs::read(place.path(path)).ok();
        place.write(path, text);
        place.ready("run").unwrap();
        let barred = place.barred("run").unwrap();
        assert!(barred.contains(why) && barred.contains("haft trust run"), "{path}: {barred}");
        assert_eq!(place.shelf.tool("run").unwrap().standing, Standing::Changed, "{path}");
        match before {
            Some(before) => std::fs::write(place.path(path), before).unwrap(),
            None => std::fs::remove_file(place.path(path)).unwrap(),
        }
        place.ready("run").unwrap();
        assert_eq!(place.barred("run"), None, "{path}: what is as it was counts as it did");
    }
    std::fs::remove_file(place.path("project/scripts/run.sh")).unwrap();
    assert!(place.barred("run").unwrap().contains("`scripts/run.sh` went away"));
    place.runtime.block_on(place.shelf.revoke(&[])).unwrap();
    assert!(place.barred("run").unwrap().contains("nobody has accepted"));
}

#[test]
fn what_changed_is_offered_as_a_difference() {
    let place = Place::new();
    place.tool(HAFT, "tool", "First.");
    place.accept("tool");
    place.tool(HAFT, "tool", "Second.");
    place.write("project/.haft/tools/tool/notes.txt", "x");
    let (offers, refused) = place.runtime.block_on(place.shelf.offers(&[])).unwrap();
    assert_eq!((offers.len(), refused.len(), offers[0].standing), (1, 0, Standing::Changed));
    let diff = offers[0].diff.clone().unwrap();
    assert!(diff.contains("-description: First.") && diff.contains("+description: Second."), "{diff}");
    assert_eq!(offers[0].changed, ["`.haft/tools/tool/notes.txt` came"]);
    // What changes after it was shown is not accepted by that.
    place.tool(HAFT, "tool", "Third.");
    place.runtime.block_on(place.shelf.accept_as_shown(offers)).unwrap();
    assert!(place.barred("tool").unwrap().contains("its tool.yml has changed"));
}

#[test]
fn what_nobody_can_look_through_is_not_accepted() {
    let place = Place::new();
    let accept = |name: &str| place.try_accept(name).unwrap_err().message;
    place.tool(HAFT, "many", "Many.");
    for at in 0..201 {
        place.write(&format!("project/.haft/tools/many/{at}"), "");
    }
    assert!(accept("many").contains("more than 200 files"), "{}", accept("many"));
    place.tool(HAFT, "large", "Large.");
    place.write("project/.haft/tools/large/data", &"x".repeat((8 << 20) + 1));
    assert!(accept("large").contains("more than 8 MiB"));
    place.tool(HAFT, "linked", "Linked.");
    std::os::unix::fs::symlink("/etc", place.path("project/.haft/tools/linked/etc")).unwrap();
    assert!(accept("linked").contains("a link to a directory"));
    place.write("project/.haft/tools/open/tool.yml", &command("open", "\"./${x}\""));
    assert!(accept("open").contains("entrypoint"));
    assert!(accept("none").contains("no tool `none`"));
}

#[test]
fn five_thousand_are_fine_and_ten_thousand_are_the_end() {
    let place = Place::new();
    for at in 0..5_000 {
        place.tool(OWN, &format!("tool{at}"), "One of many.");
    }
    place.load();
    assert_eq!((place.shelf.report().tools.len(), place.warnings().len()), (5_000, 0));
    // One is met without the others.
    let alone = Shelf::new(place.shelf.folders().to_vec(), Path::new("/"), Arc::default(), place.shelf.store.clone());
    place.runtime.block_on(alone.ready("tool4999")).unwrap();
    assert_eq!(alone.report().tools.len(), 1);
    for at in 5_000..10_001 {
        std::fs::create_dir(place.path(&format!("home/tools/empty{at}"))).unwrap();
    }
    place.load();
    assert!(place.warnings()[0].contains("more than 10000 directories"), "{:?}", place.warnings());
}

#[test]
fn what_is_too_much_together_is_told_once_and_ends_by_name() {
    let place = Place::new();
    let padding = format!("# {}\n", "x".repeat(240 << 10));
    for number in 0..90 {
        let (name, folder) = (format!("t{number:02}"), if number < 40 { "home" } else { "project/.haft" });
        place.write(&format!("{folder}/tools/{name}/tool.yml"), &format!("{}{padding}", http(&name, "Asks.")));
    }
    for _ in 0..2 {
        place.load();
        // The project's fifty come first here, and then as many of the others as there is room for.
        assert!(place.description("t89").is_some() && place.description("t17").is_some());
        assert!(place.description("t18").is_none() && place.description("t39").is_none());
        let told = "home/tools: the manifests hold more than 16 MiB together; from `t18` on they are not listed: 22";
        let together = place.warnings().into_iter().filter(|line| line.contains("together")).collect::<Vec<_>>();
        assert_eq!(together, [told]);
    }
}

#[test]
fn a_process_that_stays_hears_of_changes() {
    let place = Place::new();
    place.tool(OWN, "tool", "First.");
    place.load();
    let mut changes = place.registry.changes();
    let Place { dir, registry, shelf, runtime } = place;
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(Arc::new(shelf).follow(move |line| drop(told.send(line.to_owned()))));
        changes.mark_unchanged();
        let file = dir.path().join("home/tools/tool/tool.yml");
        std::fs::write(&file, http("tool", "Second.")).unwrap();
        changes.changed().await.unwrap();
        assert_eq!(registry.get("tool").unwrap().spec().description, "Second.");
        std::fs::write(&file, "name: [").unwrap();
        assert!(heard.recv().await.unwrap().ends_with("(the last good version is used)"));
        assert!(registry.has("tool"));
        std::fs::remove_dir_all(dir.path().join("home/tools/tool")).unwrap();
        changes.changed().await.unwrap();
        assert!(!registry.has("tool"));
    });
}

#[test]
fn the_servers_of_what_is_called_in_turn_are_known_and_of_nothing_else() {
    let place = Place::new();
    let pipeline = |steps: &str| {
        http("x", "d")
            .replace("kind: http", "kind: pipeline")
            .split("exec:")
            .next()
            .map(|head| {
                format!(
                    "{head}exec: {{pipeline: {{steps: [{steps}]}}}}\npermissions: {{network: false, fs: {{read: [], write: []}}}}\n\
                     approval: {{required: false}}\n"
                )
            })
            .unwrap()
    };
    let steps = "{id: a, tool: glee_tool, args: {name: inner}}, {id: b, tool: tool.call, args: {name: 'mcp:s:t'}}";
    place.write("home/tools/outer/tool.yml", &pipeline(steps).replace("name: x", "name: outer"));
    let inner = pipeline("{id: a, tool: 'mcp:s:u'}").replace("name: x", "name: inner");
    place.write("home/tools/inner/tool.yml", &inner);
    place.write("project/.haft/tools/strange/tool.yml", &inner.replace("name: inner", "name: strange"));
    let calls = |name: &str| place.runtime.block_on(place.shelf.calls_of(name));
    assert_eq!(calls("outer"), ["inner", "mcp:s:t", "mcp:s:u"]);
    assert_eq!(calls("strange"), Vec::<String>::new(), "nobody has accepted it");
    place.accept("strange");
    assert_eq!(calls("strange"), ["mcp:s:u"]);
}

/// A command with these lines under `command:`.
fn command_with(name: &str, exec: &str) -> String {
    command(name, "x").replace("{entrypoint: x}", exec)
}

fn function(name: &str, exec: &str) -> String {
    command(name, "x").replace("kind: command", "kind: python").replace("command: {entrypoint: x}", exec)
}

#[test]
fn the_script_that_a_program_is_given_belongs_to_it() {
    for (exec, path) in [
        ("{entrypoint: python3, args: [scripts/x.py]}", "scripts/x.py"),
        ("{entrypoint: node, args: [\"--require=./scripts/x.js\", \"${a}\"]}", "scripts/x.js"),
        ("{entrypoint: python3, args: [x.py], cwd: scripts}", "scripts/x.py"),
        ("{entrypoint: python3, args: [-m, pkg.mod]}", "pkg/other.py"),
        ("{entrypoint: python3.11, args: [-mmod]}", "mod.py"),
        ("{entrypoint: python3, args: [app]}", "app/__main__.py"),
        ("{entrypoint: /bin/sh, args: [-e, ./run.sh]}", "run.sh"),
    ] {
        let place = Place::new();
        place.write("project/.haft/tools/run/tool.yml", &command_with("run", exec));
        place.write(&format!("project/{path}"), "as it was\n");
        place.write("project/data/words.txt", "words");
        place.load();
        place.accept("run");
        assert_eq!(place.barred("run"), None, "{exec}");
        place.write("project/data/words.txt", "other");
        assert_eq!(place.barred("run"), None, "{exec}: what it works on is not what it is");
        place.write(&format!("project/{path}"), "another\n");
        assert!(place.barred("run").is_some_and(|why| why.contains(&format!("`{path}` changed"))), "{exec}");
    }
}

#[test]
fn an_environment_is_kept_track_of_by_its_tree() {
    let place = Place::new();
    place.write("project/.haft/tools/run/tool.yml", &function("run", "python: {module: m, function: f, venv: .venv}"));
    place.write("project/m.py", "def f(): pass\n");
    place.write("project/.venv/pyvenv.cfg", "home = /usr/bin\n");
    place.write("project/.venv/lib/p/site-packages/dep/__init__.py", "a = 1\n");
    place.load();
    let accepted = || {
        place.accept("run");
        let pin = place.runtime.block_on(place.shelf.store.pin_of(&place.shelf.server(), "run")).unwrap().unwrap();
        super::standing::files_of(&pin.declaration)
    };
    let before = accepted();
    assert!(before.contains_key(".venv/") && before.contains_key(".venv/pyvenv.cfg"), "{before:?}");
    place.write("project/.venv/lib/p/site-packages/dep/__pycache__/x.pyc", "");
    assert_eq!(accepted(), before, "what Python compiles there is not read");
    let dep = place.path("project/.venv/lib/p/site-packages/dep/__init__.py");
    let modified = dep.metadata().unwrap().modified().unwrap();
    std::fs::write(&dep, "a = 2\n").unwrap();
    std::fs::File::open(&dep).unwrap().set_modified(modified).unwrap();
    assert_ne!(accepted()[".venv/"], before[".venv/"], "the same size and time of change are not enough");
    std::fs::remove_file(&dep).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &dep).unwrap();
    let linked = accepted();
    std::fs::remove_file(&dep).unwrap();
    std::os::unix::fs::symlink("/etc/group", &dep).unwrap();
    assert_ne!(accepted()[".venv/"], linked[".venv/"]);
}

#[test]
fn what_is_about_to_start_is_looked_at_anew() {
    let place = Place::new();
    place.write("project/.haft/tools/run/tool.yml", &function("run", "python: {module: m, function: f, venv: .venv}"));
    place.write("project/m.py", "def f(): pass\n");
    place.write("project/.venv/pyvenv.cfg", "home = /usr/bin\n");
    place.accept("run");
    let accepted = Arc::clone(place.shelf.state().held["run"].accepted.as_ref().unwrap());
    accepted.check(super::standing::Care::Warm).unwrap();
    place.write("project/.venv/lib/new.py", "");
    let error = accepted.check(super::standing::Care::Fresh).unwrap_err();
    assert!(error.message.contains("`.venv/` changed") && error.hint.unwrap().contains("haft trust run"));
    assert!(accepted.check(super::standing::Care::Warm).is_err(), "and then everybody knows");
}

#[test]
fn what_python_compiles_beside_a_function_is_not_part_of_it() {
    let place = Place::new();
    let exec = "python: {module: tool, function: f, cwd: .haft/tools/run}";
    place.write("project/.haft/tools/run/tool.yml", &function("run", exec));
    place.write("project/.haft/tools/run/tool.py", "def f(): pass\n");
    place.load();
    place.accept("run");
    place.write("project/.haft/tools/run/__pycache__/tool.cpython-311.pyc", "x");
    assert_eq!(place.barred("run"), None);
    place.write("project/.haft/tools/run/.tool.py.swp", "x");
    assert!(place.barred("run").unwrap().contains("came"));
    // A program may read whatever lies there.
    place.write("project/.haft/tools/other/tool.yml", &command("other", "/bin/true"));
    place.accept("other");
    place.write("project/.haft/tools/other/__pycache__/x.pyc", "x");
    assert!(place.barred("other").unwrap().contains("x.pyc` came"));
}

#[test]
fn a_directory_that_is_swapped_gives_nobody_anothers_digest() {
    let place = Place::new();
    place.write("project/.haft/tools/run/tool.yml", &command("run", "./scripts/run.sh"));
    place.write("project/scripts/run.sh", "good\n");
    place.write("project/evil/run.sh", "evil\n");
    place.load();
    place.accept("run");
    assert_eq!(place.barred("run"), None);
    std::fs::rename(place.path("project/scripts"), place.path("project/good")).unwrap();
    std::fs::rename(place.path("project/evil"), place.path("project/scripts")).unwrap();
    assert!(place.barred("run").unwrap().contains("`scripts/run.sh` changed"));
    // A pipe is not waited for.
    std::fs::remove_file(place.path("project/scripts/run.sh")).unwrap();
    let pipe = place.path("project/.haft/tools/run/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(place.barred("run").unwrap().contains("`.haft/tools/run/pipe` is not a file"));
}

//! Others who work on the same files: another haft in a PID namespace of its own, one of another user, and an editor. And what
//! undo makes of what they did.

use crate::Env;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many calls each haft makes, on how many files at once, and how often the editor writes.
const CALLS: usize = 25;
const FILES: usize = 4;
const WRITES: usize = 20;

pub(crate) fn open_to_all(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The same command, started by another program.
pub(crate) fn behind(command: &Command, program: &[&str]) -> Command {
    let mut outer = Command::new(program[0]);
    outer.args(&program[1..]).arg(command.get_program()).args(command.get_args()).env_clear();
    for (name, value) in command.get_envs() {
        outer.env(name, value.unwrap_or_default());
    }
    outer.current_dir(command.get_current_dir().unwrap());
    outer
}

/// Whether a program that starts others does so here.
pub(crate) fn can(program: &[&str]) -> bool {
    let mut command = Command::new(program[0]);
    let ran = command.args(&program[1..]).arg("true").stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

/// A line that a haft was to add to every shared file.
struct AddedLine {
    text: String,
    /// Why it was not added, if it was not.
    error: Option<String>,
}

impl AddedLine {
    /// Whether a file has to contain it: all do, or none; a file that somebody changed before the line could be taken out of it
    /// is named.
    fn is_expected_in(&self, name: &str) -> bool {
        self.error.as_ref().is_none_or(|error| error.contains(&format!("{name} could not be taken back")))
    }
}

/// A haft that adds a line to every shared file, again and again, each time to all or to none.
fn converse(mut command: Command, who: &str) -> Vec<AddedLine> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut lines = Vec::new();
    for number in 0..CALLS {
        let line = format!("{who}-{number}");
        let replace = format!("{line}\nEND");
        let args = json!({"pattern": "shared-*.txt", "operation": "transform", "find": "END", "replace": replace});
        writeln!(stdin, "{}", json!({"tool": "file.batch", "args": args})).unwrap();
        let mut said = String::new();
        stdout.read_line(&mut said).unwrap();
        let outcome: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{who}: {said}"));
        let success = outcome["success"] == true;
        assert!(success || outcome["error"]["kind"] == "conflict", "{who}: {outcome:#}");
        let error = outcome["error"]["message"].as_str().filter(|_| !success).map(str::to_owned);
        lines.push(AddedLine { text: line, error });
    }
    drop(stdin);
    child.wait().unwrap();
    lines
}

/// Every line below some directories.
fn lines(dirs: &[PathBuf]) -> String {
    let mut text = String::new();
    let mut left = dirs.to_vec();
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            } else if let Ok(content) = std::fs::read_to_string(entry.path()) {
                text.push_str(&content);
            }
        }
    }
    text
}

#[test]
fn hafts_and_an_editor_on_the_same_files_lose_nothing() {
    let env = Env::new();
    open_to_all(env.dir.path(), 0o755);
    open_to_all(&env.root(), 0o777);
    for number in 0..FILES {
        open_to_all(&env.file(&format!("shared-{number}.txt"), "END\n"), 0o666);
    }
    let batch = || env.command(&["batch", "-", "--yes"]);
    let mut hafts = vec![(batch(), "here")];
    let namespace = ["unshare", "--user", "--map-root-user", "--pid", "--fork"];
    if can(&namespace) {
        hafts.push((behind(&batch(), &namespace), "namespace"));
    } else {
        eprintln!("SKIPPED: user namespaces are forbidden here");
    }
    let other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let other_home = env.dir.path().join("other");
    if can(&other) {
        std::fs::create_dir(&other_home).unwrap();
        std::os::unix::fs::chown(&other_home, Some(65534), Some(65534)).unwrap();
        let mut command = behind(&batch(), &other);
        command.env("HOME", &other_home);
        hafts.push((command, "other"));
    } else {
        eprintln!("SKIPPED: only root can be another user");
    }
    let root = env.root();
    let results: Vec<AddedLine> = std::thread::scope(|scope| {
        let edit = || {
            for number in 0..WRITES {
                // A file is always there: it is exchanged, and never gone.
                let path = root.join(format!("shared-{}.txt", number % FILES));
                let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
                file.write_all(format!("editor-{number}\n").as_bytes()).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        };
        scope.spawn(edit);
        let talks: Vec<_> =
            hafts.into_iter().map(|(command, who)| scope.spawn(move || converse(command, who))).collect();
        talks.into_iter().flat_map(|talk| talk.join().unwrap()).collect()
    });
    assert!(results.iter().any(|line| line.error.is_none()), "no haft added a line");
    for number in 0..FILES {
        let name = format!("shared-{number}.txt");
        let text = env.read(&name);
        for added in &results {
            let is_there = text.lines().any(|line| line == added.text);
            assert_eq!(is_there, added.is_expected_in(&name), "{} in {name}, {:?}:\n{text}", added.text, added.error);
        }
    }
    let homes = [env.root(), env.dir.path().join("home"), other_home];
    let everything = lines(&homes);
    let everything: std::collections::BTreeSet<&str> = everything.lines().collect();
    for number in 0..WRITES {
        assert!(everything.contains(format!("editor-{number}").as_str()), "editor-{number} is lost");
    }
}

/// A call that changed three files, of which somebody has changed one since.
fn partly_changed(env: &Env) -> String {
    for name in ["a", "b", "c"] {
        env.file(&format!("{name}.txt"), "old");
    }
    let args = json!({"pattern": "*.txt", "operation": "transform", "find": "old", "replace": "new"});
    let call = env.ok("file.batch", args)["call_id"].as_str().unwrap().to_owned();
    env.file("b.txt", "a person's");
    call
}

#[test]
fn one_changed_file_does_not_keep_the_others_from_being_restored() {
    let env = Env::new();
    let call = partly_changed(&env);
    let refused = env.run(&["undo", &call]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("changed since: b.txt"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--partial` restores the other 2 files"), "{}", refused.stderr);
    assert_eq!(env.read("a.txt"), "new", "nothing is restored unasked");
    let partial = env.run(&["undo", &call, "--partial", "--json"]).json();
    assert_eq!(partial["left"], json!(["b.txt: changed since"]));
    assert_eq!(["a", "b", "c"].map(|name| env.read(&format!("{name}.txt"))), ["old", "a person's", "old"]);
    // It can be finished when the person has taken their change back.
    env.file("b.txt", "new");
    assert_eq!(env.run(&["undo", &call]).code, 0);
    assert_eq!(env.read("b.txt"), "old");
    // And the partial undo was a call like any other.
    assert_eq!(env.run(&["undo", partial["call_id"].as_str().unwrap()]).code, 0);
    assert_eq!(["a", "b", "c"].map(|name| env.read(&format!("{name}.txt"))), ["new", "old", "new"]);
}

#[test]
fn partial_undo_works_again_on_what_its_undo_has_redone() {
    let env = Env::new();
    let call = partly_changed(&env);
    let undo = |args: &[&str]| {
        let done = env.run(&[&["undo"], args, &["--json"]].concat());
        assert_eq!(done.code, 0, "{args:?} {}{}", done.stdout, done.stderr);
        done.json()["call_id"].as_str().unwrap().to_owned()
    };
    let contents = || ["a", "b", "c"].map(|name| env.read(&format!("{name}.txt")));
    let (old, new) = (["old", "a person's", "old"], ["new", "a person's", "new"]);
    for _ in 0..3 {
        let partial = undo(&[&call, "--partial"]);
        assert_eq!(contents(), old);
        let again = env.run(&["undo", &call, "--partial"]);
        assert!(again.stderr.contains("changed since") && !again.stderr.contains("gone"), "{}", again.stderr);
        undo(&[&partial]);
        assert_eq!(contents(), new);
        let stuck = env.run(&["undo", &call]);
        assert!(stuck.stderr.contains("restores the other 2 files"), "{}", stuck.stderr);
    }
    // The whole call then stands in two: what was redone, and what never was undone.
    env.file("b.txt", "new");
    let whole = undo(&[&call]);
    assert_eq!(contents(), ["old"; 3]);
    let again = env.run(&["undo", &call]);
    assert!(again.stderr.contains("undone already"), "{}", again.stderr);
    // Of the redo, one file is redone alone, and is taken back by the name of the first call.
    env.file("b.txt", "a person's");
    undo(&[&whole, "--partial"]);
    assert_eq!(contents(), new);
    assert_eq!(env.run(&["changes", &call]).stdout.matches("undone by").count(), 0);
    undo(&[&call]);
    assert_eq!(contents(), old);
}

#[test]
fn the_last_call_that_can_be_undone_is_found_behind_those_that_cannot() {
    let env = Env::new();
    env.file("first.md", "first");
    env.ok(
        "file.batch",
        json!({"pattern": "first.md", "operation": "transform", "find": "first", "replace": "second"}),
    );
    let stuck = partly_changed(&env);
    let undone = env.run(&["undo", "--last"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert!(undone.stderr.contains(&format!("passed over {stuck}")), "{}", undone.stderr);
    assert!(undone.stderr.contains("changed since: b.txt"), "{}", undone.stderr);
    assert_eq!(env.read("first.md"), "first");
    let none = env.run(&["undo", "--last"]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains(&stuck) && none.stderr.contains("--partial"), "{}", none.stderr);
}

#[test]
fn a_damaged_before_image_is_named_and_the_others_are_restored() {
    let env = Env::new();
    let call = partly_changed(&env);
    env.file("b.txt", "new");
    // Somebody had the file open and wrote to it later.
    let image = env.dir.path().join(format!("home/.local/share/haft/undo/{call}/1"));
    let image = image.canonicalize().unwrap();
    std::fs::write(&image, "written later").unwrap();
    let refused = env.run(&["undo", &call]);
    let place = image.display().to_string();
    assert!(refused.stderr.contains("b.txt: its before-image is damaged") && refused.stderr.contains(&place));
    assert_eq!(env.run(&["undo", &call, "--partial"]).code, 0);
    assert_eq!(["a", "b", "c"].map(|name| env.read(&format!("{name}.txt"))), ["old", "new", "old"]);
    assert_eq!(std::fs::read_to_string(image).unwrap(), "written later");
}

#[test]
fn what_undo_does_not_keep_is_said_before_and_not_changed_unasked() {
    let env = Env::new();
    env.config("approval: {auto_approve: [file.batch]}\nundo: {max_file_bytes: 10}\n");
    env.file("large.txt", "more than ten bytes");
    let args = json!({"pattern": "*.txt", "operation": "transform", "find": "ten", "replace": "nine"});
    let (kind, message, code) = env.err("file.batch", args.clone(), &["--no-input"]);
    assert_eq!((kind.as_str(), code), ("conflict", 1), "{message}");
    assert!(message.contains("nothing was changed, because it could not be taken back"), "{message}");
    assert_eq!(env.read("large.txt"), "more than ten bytes");
    let explained = env.run(&["explain", "file.batch", &args.to_string(), "--json"]).json();
    assert!(explained["diff"].as_str().unwrap().starts_with("# this cannot be undone: "), "{explained:#}");
}

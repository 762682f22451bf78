//! The law of interference: whatever an editor does to the files of a call, and whenever it does it, each byte that anybody
//! wrote is in the end in a file, in a before-image, or named in a conflict; and of the files that the editor left alone, all
//! or none are changed.
//!
//! The editor acts at the points where a test may also kill the process: before, between and after any two system calls that
//! change what others see. A schedule says what it does at which of them, so every run is the same.

use super::bench::{Bench, memory};
use super::tests::{prepare, prepared};
use super::*;
use haft_sandbox::faults;
use haft_sandbox::layer::{at, stands, tree};
use rustix::fs::FileType;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;

type Observer = Box<dyn FnMut(&str)>;

thread_local! {
    static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

/// Lets the editor of this thread, if there is one, do what its schedule says.
pub(crate) fn at(stage: &str) {
    // What it does passes no such point, and if it did, would not be interfered with.
    let observer = OBSERVER.with_borrow_mut(Option::take);
    if let Some(mut observer) = observer {
        observer(stage);
        OBSERVER.with_borrow_mut(|place| *place = Some(observer));
    }
}

/// Runs something, and something else once, at the first point of a name.
pub(super) fn at_stage<T>(stage: &'static str, act: impl FnOnce() + 'static, work: impl FnOnce() -> T) -> T {
    let mut act = Some(act);
    let at_first = move |now: &str| {
        if let Some(act) = act.take_if(|_| now == stage) {
            act();
        }
    };
    at_every_stage(at_first, work)
}

/// Runs something, and something else at each point.
pub(super) fn at_every_stage<T>(act: impl FnMut(&str) + 'static, work: impl FnOnce() -> T) -> T {
    OBSERVER.with_borrow_mut(|place| *place = Some(Box::new(act)));
    let done = work();
    OBSERVER.with_borrow_mut(|place| *place = None);
    done
}

/// What an editor does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Writes into the file, as `echo >` does.
    Overwrite,
    /// Writes a new file and renames it over the old one, as most editors do.
    Save,
    Delete,
    /// Gives it another name.
    Rename,
    /// Gives it one more name.
    Link,
    /// Gives it one more name, and writes by that.
    WriteByLink,
    /// Puts a link in its place.
    Symlink,
    /// Puts a directory with a file in its place.
    Directory,
    Mode,
    /// Opens it now, and writes at the next point.
    WriteLater,
}

const ACTS: [Act; 10] = [
    Act::Overwrite,
    Act::Save,
    Act::Delete,
    Act::Rename,
    Act::Link,
    Act::WriteByLink,
    Act::Symlink,
    Act::Directory,
    Act::Mode,
    Act::WriteLater,
];

/// The files that calls change, and what they change them to.
const FILES: [&str; 4] = ["written", "replaced", "removed", "fresh"];

/// At which point an editor does what to which file.
#[derive(Debug, Clone, Copy)]
struct Plan {
    point: usize,
    act: Act,
    file: &'static str,
}

/// Somebody else who works on the same files.
struct Editor {
    root: PathBuf,
    plans: Vec<Plan>,
    points: usize,
    /// What it has written so far, to be different each time.
    writes: usize,
    open: Option<File>,
    /// What anybody wrote and the editor did not destroy itself.
    alive: BTreeSet<Vec<u8>>,
    touched: BTreeSet<&'static str>,
    vault: PathBuf,
}

/// Every content below some directories, by its place.
fn contents(dirs: &[&Path]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for dir in dirs {
        let _ = tree::each(dir, &mut |entry| {
            if at::kind(entry.stat) == FileType::RegularFile {
                let path = dir.join(entry.inner);
                found.insert(path.clone(), std::fs::read(path)?);
            }
            Ok(())
        });
    }
    found
}

impl Editor {
    fn everything(&self) -> BTreeSet<Vec<u8>> {
        let mut found: BTreeSet<Vec<u8>> = contents(&[&self.root]).into_values().collect();
        found.extend(self.kept().into_values());
        found
    }

    /// What haft keeps of the calls of this project, wherever it does.
    fn kept(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = contents(&[&self.vault]);
        for call in std::fs::read_dir(&self.vault).into_iter().flatten().flatten() {
            let shelves = crate::apply::shelves_of(&call.path());
            found.extend(contents(&shelves.iter().map(PathBuf::as_path).collect::<Vec<_>>()));
        }
        found
    }

    fn at_point(&mut self) {
        let number = self.points;
        self.points += 1;
        if let Some(mut file) = self.open.take() {
            let content = self.content();
            self.noting(|_| {
                let _ = file.set_len(0);
                let _ = file.write_all(&content);
            });
        }
        for plan in self.plans.clone().into_iter().filter(|plan| plan.point == number) {
            self.touched.insert(plan.file);
            self.noting(|editor| {
                // What cannot be done is not done: the file may not be there.
                let _ = editor.act(plan.act, &editor.root.join(plan.file));
            });
        }
    }

    /// Acts, and notes what came of it and what of the rest it destroyed.
    fn noting(&mut self, act: impl FnOnce(&mut Self)) {
        let before = self.everything();
        act(self);
        let after = self.everything();
        self.alive.retain(|content| !before.contains(content) || after.contains(content));
        self.alive.extend(after.difference(&before).filter(|content| content.starts_with(b"editor")).cloned());
    }

    fn content(&mut self) -> Vec<u8> {
        self.writes += 1;
        format!("editor {}\n", self.writes).into_bytes()
    }

    fn act(&mut self, act: Act, path: &Path) -> io::Result<()> {
        let (content, number) = (self.content(), self.writes);
        let beside = |name: &str| path.with_file_name(format!("{name}-{number}"));
        match act {
            Act::Overwrite => std::fs::write(path, content),
            Act::Save => {
                std::fs::write(beside("saving"), content)?;
                std::fs::rename(beside("saving"), path)
            }
            Act::Delete => std::fs::remove_file(path),
            Act::Rename => std::fs::rename(path, beside("renamed")),
            Act::Link => std::fs::hard_link(path, beside("linked")),
            Act::WriteByLink => {
                std::fs::hard_link(path, beside("linked"))?;
                std::fs::write(beside("linked"), content)
            }
            Act::Symlink => {
                std::fs::remove_file(path)?;
                std::os::unix::fs::symlink("nowhere", path)
            }
            Act::Directory => {
                std::fs::remove_file(path)?;
                std::fs::create_dir(path)?;
                std::fs::write(path.join("inner"), content)
            }
            Act::Mode => {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            }
            Act::WriteLater => {
                self.open = Some(std::fs::OpenOptions::new().write(true).open(path)?);
                Ok(())
            }
        }
    }
}

/// Runs something while an editor follows its plans. What it came to, and the editor.
fn interfered<T>(bench: &Bench, plans: &[Plan], work: impl FnOnce() -> T) -> (T, Editor) {
    let root = bench.root();
    let mut editor = Editor {
        vault: bench.data.join("undo"),
        root,
        plans: plans.to_vec(),
        points: 0,
        writes: 0,
        open: None,
        alive: BTreeSet::new(),
        touched: BTreeSet::new(),
    };
    editor.alive = editor.everything();
    let editor = std::rc::Rc::new(RefCell::new(editor));
    let acting = std::rc::Rc::clone(&editor);
    OBSERVER.with_borrow_mut(|place| *place = Some(Box::new(move |_| acting.borrow_mut().at_point())));
    let done = work();
    // It has its last turn when all is done.
    at("end");
    OBSERVER.with_borrow_mut(|place| *place = None);
    (done, std::rc::Rc::into_inner(editor).unwrap().into_inner())
}

/// The bytes that anybody wrote are somewhere, and somewhere that can be found.
fn nothing_is_lost(bench: &Bench, editor: &Editor, calls: &[&CallId], error: Option<&CallError>, when: &str) {
    let found = editor.everything();
    for content in &editor.alive {
        let text = String::from_utf8_lossy(content);
        assert!(found.contains(content), "{when}: {text:?} is lost: {error:?}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let is_listed = |call: &CallId| runtime.block_on(bench.store.undo_of(call)).unwrap().is_some();
    let in_files: BTreeSet<Vec<u8>> = contents(&[&bench.root()]).into_values().collect();
    for (path, content) in editor.kept().iter().filter(|(_, content)| !in_files.contains(*content)) {
        if !editor.alive.contains(content) {
            continue;
        }
        // A conflict names a directory, and not what is in it.
        let is_named = error.is_some_and(|error| {
            let is_version = |dir: &Path| dir.extension().is_some_and(|suffix| suffix == "theirs" || suffix == "out");
            let is_said = |path: &Path| error.message.contains(&path.display().to_string());
            is_said(path) || path.ancestors().any(|dir| is_version(dir) && is_said(dir))
        });
        let is_image = calls.iter().any(|call| path.iter().any(|part| part == call.as_str()) && is_listed(call));
        let of_conflict = path.to_string_lossy().contains(".theirs");
        assert!(is_named || (is_image && !of_conflict), "{when}: nobody knows of {}: {error:?}", path.display());
    }
}

/// Of what the editor left alone, all or none is changed.
fn all_or_nothing(bench: &Bench, editor: &Editor, sides: [&BTreeMap<&str, State>; 2], is_done: bool, when: &str) {
    let expected = sides[usize::from(is_done)];
    for file in FILES.iter().filter(|file| !editor.touched.contains(*file)) {
        assert_eq!(stands(&bench.root().join(file)).unwrap(), expected[file], "{when}: {file}, done: {is_done}");
    }
}

fn states(bench: &Bench) -> BTreeMap<&'static str, State> {
    FILES.map(|file| (file, stands(&bench.root().join(file)).unwrap())).into()
}

/// A write, a placement, a removal and a new file, and the other kinds of changes around them.
fn changes(bench: &Bench) -> Vec<Change> {
    let written = bench.root().join("written");
    let before = stands(&written).unwrap();
    let mut changes = vec![Change::Write { path: written, content: b"new written\n".to_vec(), before, mode: None }];
    changes.extend(prepared(bench));
    changes.push(Change::Move {
        before: stands(&bench.root().join("moved")).unwrap(),
        from: bench.root().join("moved"),
        to: bench.root().join("target"),
    });
    changes
}

fn bench_for(first: &Bench) -> Bench {
    let bench = first.another();
    prepare(&bench);
    bench.file("moved", "old moved\n");
    bench
}

/// Makes a call while an editor interferes, and then takes it back.
fn interfere_with_call(first: &Bench, plans: &[Plan], when: &str) {
    let bench = bench_for(first);
    let changes = changes(&bench);
    let start = states(&bench);
    let after = |file: &str| {
        changes.iter().find(|change| change.path().ends_with(file)).map(|change| match change {
            Change::Write { content, .. } => {
                State::File { digest: haft_core::record::Digest::of(content), mode: 0o644 }
            }
            Change::Place { after, .. } => after.clone(),
            _ => State::Absent,
        })
    };
    let end: BTreeMap<&str, State> = FILES.map(|file| (file, after(file).unwrap())).into();
    let call = crate::new_call_id();
    let (done, editor) = interfered(&bench, plans, || bench.carry_out_as(&call, &changes));
    nothing_is_lost(&bench, &editor, &[&call], done.as_ref().err(), when);
    all_or_nothing(&bench, &editor, [&start, &end], done.is_ok(), when);
    // And whatever undo makes of it, it loses nothing either.
    if done.is_ok() {
        let undone = bench.undo(&call);
        let calls: Vec<&CallId> = undone.as_ref().ok().into_iter().chain([&call]).collect();
        nothing_is_lost(&bench, &editor, &calls, undone.as_ref().err(), &format!("{when}, undone"));
        all_or_nothing(&bench, &editor, [&end, &start], undone.is_ok(), &format!("{when}, undone"));
    }
}

/// Takes a call back while an editor interferes.
fn interfere_with_undo(first: &Bench, plans: &[Plan], when: &str) {
    let bench = bench_for(first);
    let changes = changes(&bench);
    let start = states(&bench);
    let call = bench.carry_out(&changes).unwrap();
    let end = states(&bench);
    let (undone, editor) = interfered(&bench, plans, || bench.undo(&call));
    if undone.is_err() {
        // What was not restored now can be when the editor takes its changes back.
        let steps = bench.rows(&call).1;
        let inverse = bench.vault.inverse(&bench.rows(&call).0, &steps).unwrap();
        let lost = inverse.stuck.iter().find(|stuck| !editor.touched.iter().any(|file| stuck.path.ends_with(file)));
        assert!(lost.is_none(), "{when}: {lost:?} after {undone:?}");
    }
    let calls: Vec<&CallId> = undone.as_ref().ok().into_iter().chain([&call]).collect();
    nothing_is_lost(&bench, &editor, &calls, undone.as_ref().err(), when);
    all_or_nothing(&bench, &editor, [&end, &start], undone.is_ok(), when);
}

type Interfere = fn(&Bench, &[Plan], &str);

/// How many points a call, or its undo, has.
fn points(first: &Bench, is_undo: bool) -> usize {
    let bench = bench_for(first);
    let changes = changes(&bench);
    let call = crate::new_call_id();
    let ((), first) = interfered(&bench, &[], || bench.carry_out_as(&call, &changes).unwrap());
    if !is_undo {
        return first.points;
    }
    interfered(&bench, &[], || bench.undo(&call).unwrap()).1.points
}

/// Every act on every file at every point.
fn each_alone(files: &[&'static str], refused: &[&'static str]) {
    let first = Bench::new();
    let _refused = faults::refuse(refused);
    for (is_undo, interfere) in [(false, interfere_with_call as Interfere), (true, interfere_with_undo)] {
        for point in 0..points(&first, is_undo) {
            for (act, file) in ACTS.iter().flat_map(|act| files.iter().map(|file| (*act, *file))) {
                let plan = Plan { point, act, file };
                interfere(&first, &[plan], &format!("{plan:?} undo: {is_undo} without {refused:?}"));
            }
        }
    }
}

/// Several acts at points that look random and are the same every time.
fn many_together(vault: &Path, rounds: u64, refused: &[&'static str]) {
    let _refused = faults::refuse(refused);
    let first = Bench::across(&memory(), vault, UndoLimits::default());
    let count = [points(&first, false), points(&first, true)];
    for seed in 0..rounds {
        let mut chance = super::laws::Chance(seed);
        let is_undo = chance.below(2) == 1;
        let acts = 2 + chance.below(5);
        // What is changed once is changed again soon: that is where it hurts.
        let (file, from) = (chance.pick(&FILES), chance.below(count[usize::from(is_undo)]));
        let plans: Vec<Plan> = (0..acts)
            .map(|_| {
                let other = chance.pick(&FILES);
                let file = if chance.below(3) == 0 { other } else { file };
                Plan { point: from + chance.below(6), act: chance.pick(&ACTS), file }
            })
            .collect();
        let interfere = if is_undo { interfere_with_undo } else { interfere_with_call };
        interfere(&first, &plans, &format!("seed {seed} {plans:?} undo: {is_undo} without {refused:?}"));
    }
}

#[test]
fn an_editor_at_any_point_loses_nothing() {
    each_alone(&FILES, &[]);
}

#[test]
fn an_editor_at_any_point_loses_nothing_without_rename_flags() {
    each_alone(&["written", "fresh"], &["renameat2"]);
}

#[test]
fn an_editor_that_acts_again_and_again_loses_nothing() {
    many_together(&memory(), 2000, &[]);
    many_together(&memory(), 600, &["renameat2"]);
    many_together(&memory(), 300, &["renameat2", "linkat"]);
}

#[test]
fn an_editor_loses_nothing_on_another_mount_than_the_vault() {
    many_together(&std::env::temp_dir(), 60, &[]);
}

#[test]
fn a_file_saved_while_others_are_written_is_a_conflict_that_names_it() {
    let bench = Bench::new();
    let names = ["a", "b", "c", "d", "e"];
    let changes: Vec<Change> = names
        .map(|name| {
            let path = bench.file(name, format!("old {name}\n"));
            let before = stands(&path).unwrap();
            Change::Write { path, content: format!("new {name}\n").into_bytes(), before, mode: None }
        })
        .into();
    let last = bench.root().join("e");
    let saved = last.clone();
    let save = move || std::fs::write(&saved, "saved by a person\n").unwrap();
    let error = at_stage("applied", save, || bench.carry_out(&changes).unwrap_err());
    assert_eq!(error.kind, haft_core::ErrorKind::Conflict);
    let message = error.message.replace(&format!("{}/", bench.root().display()), "");
    assert_eq!(message, "e changed in the meantime; nothing was changed");
    assert_eq!(std::fs::read_to_string(last).unwrap(), "saved by a person\n");
    for name in &names[..4] {
        assert_eq!(std::fs::read_to_string(bench.root().join(name)).unwrap(), format!("old {name}\n"));
    }
}

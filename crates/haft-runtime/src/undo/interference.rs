//! The law of interference: whatever an editor does to the files of a call, and whenever it does it, each byte that anybody
//! wrote is in the end in a file, in a before-image, or named in a conflict; and of the files that the editor left alone, all
//! or none are changed, with all that belongs to them: owner, mode, access control list, attributes, names, holes and times.
//! What the editor does to metadata counts as what it writes.
//!
//! The editor acts at the points where a test may also kill the process: before, between and after any two system calls that
//! change what others see. A schedule says what it does at which of them, so every run is the same.

mod editor;

use super::bench::{Bench, Closeness, access_list, memory, set_attribute, snapshot};
use super::tests::{prepare, prepared};
use super::*;
use crate::apply::FileMetadata;
pub(super) use editor::{ACTS, Act, Editor, FILES, Plan};
use editor::{PLAIN, contents};
use haft_sandbox::faults;
use haft_sandbox::layer::{at, stands, tree};
use rustix::fs::FileType;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

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

/// Runs something that is observed at each point.
pub(super) fn observed<T>(observer: impl FnMut(&str) + 'static, work: impl FnOnce() -> T) -> T {
    OBSERVER.with_borrow_mut(|place| *place = Some(Box::new(observer)));
    let done = work();
    OBSERVER.with_borrow_mut(|place| *place = None);
    done
}

/// Runs something, and something else once, at the first point of a name.
pub(super) fn at_stage<T>(stage: &'static str, act: impl FnOnce() + 'static, work: impl FnOnce() -> T) -> T {
    let mut act = Some(act);
    let observe = move |now: &str| {
        if let Some(act) = act.take_if(|_| now == stage) {
            act();
        }
    };
    observed(observe, work)
}

/// What a process dies of at a point, for those that run it.
struct Death;

/// Runs something while an editor follows its plans. What it came to, and the editor.
fn interfered<T>(bench: &Bench, plans: &[Plan], work: impl FnOnce() -> T) -> (T, Editor) {
    let (done, editor) = interfered_until(bench, plans, None, work);
    (done.unwrap(), editor)
}

/// The same, until it dies at a point, after the editor has acted there: what it has not done by then it never does. None, if
/// it died.
pub(super) fn interfered_until<T>(
    bench: &Bench,
    plans: &[Plan],
    death: Option<usize>,
    work: impl FnOnce() -> T,
) -> (Option<T>, Editor) {
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
    let editor = Rc::new(RefCell::new(editor));
    let acting = Rc::clone(&editor);
    let observe = move |_: &str| {
        acting.borrow_mut().at_point();
        if death.is_some_and(|point| acting.borrow().points > point) {
            // Nothing cleans up behind it that a dead process would leave: locks and open files are all that goes.
            std::panic::resume_unwind(Box::new(Death));
        }
    };
    let done = observed(observe, || std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)));
    let mut editor = Rc::into_inner(editor).unwrap().into_inner();
    // It has its last turn when all is done.
    editor.at_point();
    let done = done.map_err(|cause| {
        if !cause.is::<Death>() {
            std::panic::resume_unwind(cause);
        }
    });
    (done.ok(), editor)
}

/// What haft has said to its user so far: the calls that can be undone, and every message.
pub(super) struct Told<'a> {
    pub(super) calls: &'a [&'a CallId],
    pub(super) messages: Vec<String>,
}

impl Told<'_> {
    fn names(&self, path: &Path) -> bool {
        self.messages.iter().any(|message| message.contains(&path.display().to_string()))
    }
}

/// Whether this is, or is in, an image of a call under its own name, where `haft changes` and `haft undo` look for it.
fn is_image_of(path: &Path, call: &CallId) -> bool {
    let mut parts = path.iter().skip_while(|part| *part != call.as_str()).skip(1);
    parts.next().is_some_and(|name| name.as_bytes().iter().all(u8::is_ascii_digit))
}

/// The bytes that anybody wrote are somewhere, and somewhere that can be found.
pub(super) fn nothing_is_lost(bench: &Bench, editor: &Editor, told: &Told<'_>, when: &str) {
    let found = editor.everything();
    let messages = &told.messages;
    for content in &editor.alive {
        let text = String::from_utf8_lossy(content);
        assert!(found.contains(content), "{when}: {text:?} is lost: {messages:?}");
    }
    let is_listed = |call: &CallId| bench.undo_rows(call).is_some();
    let in_files: BTreeSet<Vec<u8>> = contents(&[&bench.root()]).into_iter().map(|(_, content)| content).collect();
    let kept = editor.kept();
    let in_images: BTreeSet<&Vec<u8>> = kept
        .iter()
        .filter(|(path, _)| told.calls.iter().any(|call| is_image_of(path, call) && is_listed(call)))
        .map(|(_, content)| content)
        .collect();
    for (path, content) in
        kept.iter().filter(|(_, content)| !in_files.contains(content) && !in_images.contains(content))
    {
        if !editor.alive.contains(content) {
            continue;
        }
        // A conflict names a directory, and not what is in it. What was there before the call is found under any name.
        let is_named = path.ancestors().take_while(|dir| *dir != editor.vault).any(|dir| told.names(dir));
        let is_before = !content.starts_with(b"editor")
            && told.calls.iter().any(|call| path.iter().any(|part| part == call.as_str()) && is_listed(call));
        let text = String::from_utf8_lossy(content);
        assert!(is_named || is_before, "{when}: nobody knows of {} with {text:?}: {messages:?}", path.display());
    }
}

/// What stands at each file, with what is in it and all that belongs to it.
pub(super) type Side = BTreeMap<&'static str, Vec<(String, String)>>;

pub(super) fn side(bench: &Bench, closeness: Closeness) -> Side {
    let all = snapshot(&bench.root(), closeness);
    let below = |file: &str| {
        let lines = all.iter().filter(|(path, _)| Path::new(path).starts_with(file));
        lines.map(|(path, line)| (path.clone(), line.clone())).collect()
    };
    FILES.map(|file| (file, below(file))).into()
}

/// What the editor left alone is as one side says.
pub(super) fn untouched_is(bench: &Bench, editor: &Editor, expected: &Side, closeness: Closeness, when: &str) {
    let now = side(bench, closeness);
    for file in FILES.iter().filter(|file| !editor.touched.contains(*file)) {
        assert_eq!(now[file], expected[file], "{when}: {file}");
    }
}

/// Each file that the editor left alone is as one side or the other says: nothing else, and nothing in part.
pub(super) fn untouched_is_whole(bench: &Bench, editor: &Editor, sides: [&Side; 2], when: &str) {
    let now = side(bench, Closeness::Exact);
    for file in FILES.iter().filter(|file| !editor.touched.contains(*file)) {
        assert!(sides.iter().any(|side| side[file] == now[file]), "{when}: {file}: {:?}", now[file]);
    }
}

/// A write, a placement, a removal and a new file, and the other kinds of changes around them.
pub(super) fn changes(bench: &Bench) -> Vec<Change> {
    let at = |name: &str| bench.root().join(name);
    let state = |name: &str| stands(&at(name)).unwrap();
    let write = |name: &str| Change::Write {
        path: at(name),
        content: format!("new {name}\n").into_bytes(),
        before: state(name),
        mode: None,
    };
    let mut changes = vec![write("written"), write("deep/er/written"), write("deep/er/fresh")];
    changes.extend(prepared(bench));
    let staged = bench.dir.join("s/placed");
    changes.extend([
        Change::Move { before: state("moved"), from: at("moved"), to: at("target") },
        Change::Remove { before: state("deep/er/removed"), path: at("deep/er/removed") },
        Change::Place {
            before: state("deep/er/placed"),
            after: stands(&staged).unwrap(),
            path: at("deep/er/placed"),
            staged,
        },
    ]);
    changes
}

pub(super) fn bench_for(first: &Bench) -> Bench {
    let bench = first.another();
    prepare(&bench);
    bench.file("moved", "old moved\n");
    for name in ["written", "removed", "placed"] {
        bench.file(&format!("deep/er/{name}"), format!("old deep {name}\n"));
    }
    std::fs::write(bench.dir.join("s/placed"), "new placed\n").unwrap();
    for name in ["written", "replaced", "removed"] {
        adorn(&bench.root().join(name));
    }
    // Of a file with one more name, nothing tells whether what it says was lost under this one: so there is one only.
    if !faults::is_refused("linkat") {
        std::fs::hard_link(bench.root().join("removed"), bench.root().join("removed too")).unwrap();
    }
    bench
}

/// Gives a file everything that can get lost.
fn adorn(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"behind a hole\n", 16 << 10).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(path, Some(12_345), Some(12_345)).unwrap();
    }
    set_attribute(path, crate::apply::ACCESS_LIST, &access_list(12_346));
    set_attribute(path, "user.comment", b"of a person");
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
}

/// What the project is after the call, if nobody interferes.
fn model(first: &Bench) -> Side {
    let bench = bench_for(first);
    bench.carry_out(&changes(&bench)).unwrap();
    side(&bench, Closeness::Alike)
}

/// Makes a call while an editor interferes, and then takes it back.
fn interfere_with_call(first: &Bench, model: &Side, plans: &[Plan], when: &str) {
    let bench = bench_for(first);
    let changes = changes(&bench);
    let start = side(&bench, Closeness::Exact);
    let call = crate::new_call_id();
    let (done, editor) = interfered(&bench, plans, || bench.carry_out_as(&call, &changes));
    let mut messages: Vec<String> = done.as_ref().err().map(|error| error.message.clone()).into_iter().collect();
    nothing_is_lost(&bench, &editor, &Told { calls: &[&call], messages: messages.clone() }, when);
    if let Err(error) = &done {
        untouched_is(&bench, &editor, &start, Closeness::Exact, &format!("{when}: {error:?}"));
    } else {
        untouched_is(&bench, &editor, model, Closeness::Alike, when);
    }
    // A call that failed and left something behind is listed, and can be taken back as one that succeeded.
    if bench.undo_rows(&call).is_none() {
        return;
    }
    let (when, end) = (format!("{when}, undone"), side(&bench, Closeness::Exact));
    let undone = bench.undo(&call);
    messages.extend(undone.as_ref().err().map(|error| error.message.clone()));
    let calls: Vec<&CallId> = undone.as_ref().ok().into_iter().chain([&call]).collect();
    nothing_is_lost(&bench, &editor, &Told { calls: &calls, messages: messages.clone() }, &when);
    let expected = if undone.is_ok() { &start } else { &end };
    untouched_is(&bench, &editor, expected, Closeness::Exact, &when);
    if undone.is_err() {
        let (partly, left) = bench.undo_partly(&call);
        messages.extend(left);
        let calls: Vec<&CallId> = partly.iter().chain([&call]).collect();
        nothing_is_lost(&bench, &editor, &Told { calls: &calls, messages }, &format!("{when} in part"));
        untouched_is(&bench, &editor, &start, Closeness::Exact, &format!("{when} in part"));
    }
}

/// Takes a call back while an editor interferes.
fn interfere_with_undo(first: &Bench, _: &Side, plans: &[Plan], when: &str) {
    let bench = bench_for(first);
    let changes = changes(&bench);
    let start = side(&bench, Closeness::Exact);
    let call = bench.carry_out(&changes).unwrap();
    let end = side(&bench, Closeness::Exact);
    let (undone, editor) = interfered(&bench, plans, || bench.undo(&call));
    if undone.is_err() {
        // What was not restored now can be when the editor takes its changes back.
        let inverse = bench.vault.inverse(&Standing::of_one(bench.rows(&call)));
        let is_touched = |stuck: &invert::StuckStep| {
            editor.touched.iter().any(|file| bench.root().join(file).starts_with(&stuck.path))
        };
        let lost = inverse.stuck.iter().find(|stuck| !is_touched(stuck));
        assert!(lost.is_none(), "{when}: {lost:?} after {undone:?}");
    }
    let calls: Vec<&CallId> = undone.as_ref().ok().into_iter().chain([&call]).collect();
    let messages = undone.as_ref().err().map(|error| error.message.clone()).into_iter().collect();
    nothing_is_lost(&bench, &editor, &Told { calls: &calls, messages }, when);
    let expected = if undone.is_ok() { &start } else { &end };
    untouched_is(&bench, &editor, expected, Closeness::Exact, when);
}

type Interfere = fn(&Bench, &Side, &[Plan], &str);

/// How many points a call, or its undo, has.
pub(super) fn points(first: &Bench, is_undo: bool) -> usize {
    let bench = bench_for(first);
    let changes = changes(&bench);
    let call = crate::new_call_id();
    let ((), first) = interfered(&bench, &[], || bench.carry_out_as(&call, &changes).unwrap());
    if !is_undo {
        return first.points;
    }
    interfered(&bench, &[], || bench.undo(&call).unwrap()).1.points
}

/// Every act on every file at every point, or every `stride`th of all these.
fn each_alone(files: &[&'static str], stride: usize, refused: &[&'static str]) {
    let first = Bench::new();
    let model = model(&first);
    let _refused = faults::refuse(refused);
    let mut number = 0;
    for (is_undo, interfere) in [(false, interfere_with_call as Interfere), (true, interfere_with_undo)] {
        for point in 0..points(&first, is_undo) {
            for (act, file) in ACTS.iter().flat_map(|act| files.iter().map(|file| (*act, *file))) {
                number += 1;
                if (act.is_of_parent() && !file.contains('/')) || number % stride != 0 {
                    continue;
                }
                let plan = Plan { point, act, file };
                interfere(&first, &model, &[plan], &format!("{plan:?} undo: {is_undo} without {refused:?}"));
            }
        }
    }
}

/// Several acts at points that look random, on one file more often than on others: what is changed once is changed again soon,
/// and that is where it hurts.
pub(super) fn plans(chance: &mut super::laws::Chance, points: usize) -> Vec<Plan> {
    let acts = 1 + chance.below(6);
    let (file, from) = (chance.pick(&FILES), chance.below(points));
    let plan = |chance: &mut super::laws::Chance| {
        let other = chance.pick(&FILES);
        let file = if chance.below(3) == 0 { other } else { file };
        Plan { point: from + chance.below(6), act: chance.pick(&ACTS), file }
    };
    (0..acts).map(|_| plan(chance)).collect()
}

/// Several acts, which look random and are the same every time.
fn many_together(vault: &Path, rounds: u64, refused: &[&'static str]) {
    let first = Bench::across(&memory(), vault, UndoLimits::default());
    let model = model(&first);
    let _refused = faults::refuse(refused);
    let count = [points(&first, false), points(&first, true)];
    for seed in 0..rounds {
        let mut chance = super::laws::Chance(seed);
        let is_undo = chance.below(2) == 1;
        let plans = plans(&mut chance, count[usize::from(is_undo)]);
        let interfere = if is_undo { interfere_with_undo } else { interfere_with_call };
        interfere(&first, &model, &plans, &format!("seed {seed} {plans:?} undo: {is_undo} without {refused:?}"));
    }
}

#[test]
fn an_editor_at_any_point_loses_nothing() {
    each_alone(&PLAIN, 8, &[]);
    each_alone(&FILES, 38, &[]);
}

#[test]
fn an_editor_at_any_point_loses_nothing_without_rename_flags() {
    each_alone(&["written", "fresh"], 5, &["renameat2"]);
}

#[test]
fn an_editor_that_acts_again_and_again_loses_nothing() {
    many_together(&memory(), 500, &[]);
    many_together(&memory(), 300, &["renameat2"]);
    many_together(&memory(), 150, &["renameat2", "linkat"]);
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

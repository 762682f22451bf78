//! The law of interference for a process that dies: an editor acts, the process dies at any point of making or taking back
//! changes, the next start recovers, and the user takes back what can be. Each byte that anybody wrote is then in a file, in a
//! before-image, or named; and what the editor left alone is as it was, with all that belongs to it.

use super::bench::{Bench, Closeness, memory, set_attribute};
use super::interference::{
    Act, FILES, Plan, Told, at_stage, bench_for, changes, interfered_until, nothing_is_lost, plans, points, side,
    untouched_is, untouched_is_whole,
};
use super::laws::Chance;
use super::*;
use haft_sandbox::layer::stands;

/// What dies, and what its user takes back then.
#[derive(Debug, Clone, Copy)]
enum Dying {
    /// A call, which is taken back.
    Call,
    /// The undo of a call, which is begun again.
    Undo,
    /// The undo of a call, and the undo is taken back.
    Redo,
}

const ALL: [Dying; 3] = [Dying::Call, Dying::Undo, Dying::Redo];

/// Takes a call back, or what of it can be. The calls that did so, and what is said of the rest.
fn take_back(bench: &Bench, call: &CallId, calls: &mut Vec<CallId>, messages: &mut Vec<String>) {
    if bench.undo_rows(call).is_none() {
        return;
    }
    match bench.undo(call) {
        Ok(undo) => calls.push(undo),
        Err(error) => {
            messages.push(error.message);
            let (undo, left) = bench.undo_partly(call);
            calls.extend(undo);
            messages.extend(left);
        }
    }
}

/// Lets a process die at a point while an editor follows its plans, and recovers. False if it ended before that.
fn recovers(first: &Bench, dying: Dying, plans: &[Plan], death: usize, when: &str) -> bool {
    let bench = bench_for(first);
    let changes = changes(&bench);
    let start = side(&bench, Closeness::Exact);
    let (call, undo) = (crate::new_call_id(), crate::new_call_id());
    if !matches!(dying, Dying::Call) {
        bench.carry_out_as(&call, &changes).unwrap();
    }
    let end = side(&bench, Closeness::Exact);
    let work = || match dying {
        Dying::Call => bench.carry_out_as(&call, &changes),
        Dying::Undo | Dying::Redo => bench.undo_as(&undo, &call),
    };
    let (None, editor) = interfered_until(&bench, plans, Some(death), work) else { return false };
    for id in [&undo, &call] {
        if let Some((_, steps)) = bench.undo_rows(id) {
            bench.vault.sweep(id, &steps);
        }
    }
    let (mut calls, mut messages) = (vec![call.clone(), undo.clone()], Vec::new());
    take_back(&bench, if matches!(dying, Dying::Redo) { &undo } else { &call }, &mut calls, &mut messages);
    let calls: Vec<&CallId> = calls.iter().collect();
    let when = &format!("{when}: {messages:?}");
    nothing_is_lost(&bench, &editor, &Told { calls: &calls, messages }, when);
    match dying {
        Dying::Call | Dying::Undo => untouched_is(&bench, &editor, &start, Closeness::Exact, when),
        // The step at which the undo died is not taken back: where its file is, only the call that it undoes knows.
        Dying::Redo => untouched_is_whole(&bench, &editor, [&start, &end], when),
    }
    true
}

/// How many points there are to die at: behind the last one, the editor has one more turn.
fn points_of(first: &Bench, dying: Dying) -> usize {
    points(first, !matches!(dying, Dying::Call)) - 1
}

#[test]
fn who_dies_at_any_point_after_an_editor_acted_loses_nothing() {
    let first = Bench::new();
    for dying in ALL {
        for death in 0..points_of(&first, dying) {
            assert!(recovers(&first, dying, &[], death, &format!("{dying:?} {death}")));
            // The editor acts just before the file is taken, and the process dies just after.
            for (number, file) in FILES.iter().enumerate().filter(|(number, _)| (death + number) % 3 == 0) {
                let act = [Act::Save, Act::Overwrite, Act::Attribute, Act::Delete][(death + number) % 4];
                let plan = Plan { point: death.saturating_sub(1), act, file };
                recovers(&first, dying, &[plan], death, &format!("{dying:?} {death} {plan:?}"));
            }
        }
    }
}

fn many(first: &Bench, rounds: u64) {
    let counts = ALL.map(|dying| points_of(first, dying));
    let mut deaths = 0;
    for seed in 0..rounds {
        let mut chance = Chance(seed);
        let number = chance.below(ALL.len());
        let plans = plans(&mut chance, counts[number]);
        let death = chance.pick(&plans).point + chance.below(3);
        let when = format!("seed {seed} {:?} dies at {death} {plans:?}", ALL[number]);
        deaths += u64::from(recovers(first, ALL[number], &plans, death, &when));
    }
    assert!(deaths * 2 > rounds, "{deaths} of {rounds} died: the schedule tests nothing");
}

#[test]
fn who_dies_while_an_editor_acts_again_and_again_loses_nothing() {
    many(&Bench::new(), 600);
}

#[test]
fn who_dies_while_an_editor_acts_on_another_mount_loses_nothing() {
    many(&Bench::across(&memory(), &std::env::temp_dir(), UndoLimits::default()), 60);
}

#[test]
fn who_dies_while_an_editor_acts_without_rename_flags_loses_nothing() {
    let _refused = haft_sandbox::faults::refuse(&["renameat2"]);
    many(&Bench::new(), 300);
}

/// Runs something in a process that dies at the first point of a name, as far as its files are concerned; and starts anew.
fn dies_at(bench: &Bench, stage: &'static str, call: &CallId, change: Change) {
    let work = || bench.carry_out_as(call, &[change]);
    let die = || std::panic::resume_unwind(Box::new("died"));
    let done = at_stage(stage, die, || std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)));
    assert!(done.is_err(), "it has to die");
    bench.vault.sweep(call, &bench.rows(call).1);
}

#[test]
fn file_that_is_too_large_to_be_kept_gets_its_name_back() {
    let _refused = haft_sandbox::faults::refuse(&["renameat2"]);
    let limits = UndoLimits { max_file_bytes: 4, ..UndoLimits::default() };
    let bench = Bench::across(&memory(), &memory(), limits);
    let path = bench.file("large", "more than four bytes\n");
    let change =
        Change::Write { path: path.clone(), content: b"new\n".into(), before: stands(&path).unwrap(), mode: None };
    dies_at(&bench, "taken", &crate::new_call_id(), change);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "more than four bytes\n");
}

#[test]
fn attributes_that_a_dead_process_may_have_changed_are_not_taken_for_the_old_ones() {
    let bench = Bench::new();
    let (path, staged) = (bench.file("noted", "text\n"), bench.dir.join("staged"));
    set_attribute(&path, "user.note", b"of a person");
    std::fs::copy(&path, &staged).unwrap();
    let (before, after) = (stands(&path).unwrap(), stands(&staged).unwrap());
    assert_eq!(before, after);
    let call = crate::new_call_id();
    dies_at(&bench, "exchanged", &call, Change::Place { path: path.clone(), staged, before, after });
    let error = bench.undo(&call).unwrap_err();
    let kept = bench.vault.of(&call).join("0.new");
    assert!(error.message.contains(&kept.display().to_string()), "{}", error.message);
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(&kept, "user.note", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"of a person");
}

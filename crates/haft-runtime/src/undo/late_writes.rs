//! Somebody still has a file open that haft has taken away, and writes to it later: what they write is not removed with what haft
//! no longer needs. And a directory that takes the name of another keeps its mode.

use super::bench::{Bench, memory, shown};
use super::interference::{at_stage, observed};
use super::*;
use haft_core::ErrorKind;
use haft_sandbox::layer::stands;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

const LATE: &str = "written later by a person\n";

fn write(path: &Path, content: &str) -> Change {
    let before = stands(path).unwrap();
    Change::Write { path: path.to_owned(), content: content.into(), before, mode: None }
}

/// A file that a program keeps open.
fn opened(path: &Path) -> File {
    File::options().write(true).open(path).unwrap()
}

fn write_late(mut file: &File) {
    file.write_all(LATE.as_bytes()).unwrap();
}

/// The path that a text names as that of a late version.
fn named(text: &str) -> &Path {
    let (_, path) = text.rsplit_once("that version is ").unwrap_or_else(|| panic!("{text}"));
    Path::new(path)
}

#[test]
fn late_write_to_a_file_that_is_too_large_to_keep_is_kept() {
    for vault in [memory(), std::env::temp_dir()] {
        let limits = UndoLimits { max_file_bytes: 10, ..UndoLimits::default() };
        let bench = Bench::across(&memory(), &vault, limits);
        let path = bench.file("large", "0123456789 and more");
        let file = opened(&path);
        let (id, changes) = (crate::new_call_id(), [write(&path, "new")]);
        let make = || bench.vault.carry_out(&bench.store, (&id, None), &bench.root(), &changes, &shown).unwrap();
        let kept = at_stage("applied", move || write_late(&file), make);
        let gap = kept.gap.as_ref().unwrap();
        assert!(gap.contains("larger than the undo limit") && gap.contains("still had"), "{gap}");
        assert!(std::fs::read_to_string(named(gap)).unwrap().starts_with(LATE));
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }
}

#[test]
fn file_that_a_program_still_writes_to_is_kept_until_it_is_done() {
    let limits = UndoLimits { max_file_bytes: 10, ..UndoLimits::default() };
    let bench = Bench::across(&memory(), &memory(), limits);
    let path = bench.file("log", "0123456789 and more");
    let file = opened(&path);
    let (id, changes) = (crate::new_call_id(), [write(&path, "new")]);
    let kept = bench.vault.carry_out(&bench.store, (&id, None), &bench.root(), &changes, &shown).unwrap();
    let gap = kept.gap.as_ref().unwrap();
    assert!(gap.contains("still has") && gap.contains("open for writing"), "{gap}");
    write_late(&file);
    assert!(std::fs::read_to_string(named(gap)).unwrap().starts_with(LATE));
}

#[test]
fn late_write_to_a_before_image_stays_when_its_call_is_taken_back() {
    let bench = Bench::new();
    let path = bench.file("a", "old");
    let file = opened(&path);
    let call = bench.carry_out(&[write(&path, "new")]).unwrap();
    write_late(&file);
    // Somebody else has restored the file, so there is nothing to restore, and the image is not needed any more.
    std::fs::write(&path, "old").unwrap();
    let (found, steps) = bench.rows(&call);
    let image = bench.vault.image(&call, steps[0].image.as_ref().unwrap());
    let refused = bench.undo(&call).unwrap_err();
    assert!(refused.message.contains(&image.display().to_string()), "{}", refused.message);
    assert_eq!(std::fs::read_to_string(&image).unwrap(), LATE);
    let late = bench.vault.release(&bench.store, &call, &steps);
    assert_eq!(named(&late[0].told(&shown)), image);
    assert_eq!(bench.rows(&call).0.bytes, i64::try_from(LATE.len()).unwrap(), "was {}", found.bytes);
}

/// Makes two changes while an editor saves the second file and has the first one open, and writes to that when it has been taken
/// back.
fn fail_with_a_late_write(bench: &Bench, make: impl FnOnce(&[Change]) -> CallError) -> CallError {
    let (first, second) = (bench.file("first", "old first"), bench.file("second", "old second"));
    let changes = [write(&first, "new first"), write(&second, "new second")];
    let mut open = None;
    let act = move |stage: &str| match stage {
        "applied" if open.is_none() => {
            open = Some(opened(&first));
            std::fs::write(&second, "saved by a person").unwrap();
        }
        "imaged" => open.iter().for_each(write_late),
        _ => {}
    };
    observed(act, || make(&changes))
}

#[test]
fn late_write_to_what_was_taken_back_is_kept_and_named() {
    for vault in [memory(), std::env::temp_dir()] {
        let bench = Bench::across(&memory(), &vault, UndoLimits::default());
        let error = fail_with_a_late_write(&bench, |changes| bench.carry_out(changes).unwrap_err());
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert_eq!(std::fs::read_to_string(named(&error.message)).unwrap(), LATE, "{}", error.message);
        let read = |name: &str| std::fs::read_to_string(bench.root().join(name)).unwrap();
        assert_eq!((read("first").as_str(), read("second").as_str()), ("old first", "saved by a person"));
    }
}

#[test]
fn late_write_in_a_run_that_nobody_takes_back_is_kept_and_named() {
    let bench = Bench::new();
    let scratch = bench.dir.join("scratch");
    let carry_out = |changes: &[Change]| loose::carry_out(&scratch, changes, &shown);
    let error = fail_with_a_late_write(&bench, |changes| carry_out(changes).unwrap_err());
    assert_eq!(std::fs::read_to_string(named(&error.message)).unwrap(), LATE, "{}", error.message);
    let path = bench.file("third", "old third");
    let (file, changes) = (opened(&path), [write(&path, "new third")]);
    let error = at_stage("applied", move || write_late(&file), || carry_out(&changes).unwrap_err());
    assert!(error.message.starts_with("all changes were made"), "{}", error.message);
    assert_eq!(std::fs::read_to_string(named(&error.message)).unwrap(), LATE, "{}", error.message);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "new third");
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A directory and what somebody puts in its place: a directory with the same mode, one with another, a file, a link to one.
fn exchanging(dir: &Path, kind: &'static str) -> impl FnOnce() + 'static {
    let dir = dir.to_owned();
    move || {
        std::fs::rename(&dir, dir.with_file_name("away")).unwrap();
        match kind {
            "file" => std::fs::write(&dir, "a person's").unwrap(),
            "link" => std::os::unix::fs::symlink("away", &dir).unwrap(),
            _ => std::fs::create_dir(&dir).unwrap(),
        }
        if kind != "link" {
            let mode = if kind == "closed" { 0o700 } else { 0o755 };
            std::fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
        }
    }
}

#[test]
fn mode_is_given_to_no_directory_but_the_expected_one() {
    for stage in ["kept", "drafted", "held", "moded"] {
        for kind in ["alike", "closed", "file", "link"] {
            let when = format!("{kind} at {stage}");
            let bench = Bench::new();
            let dir = bench.file("dir/x", "x").parent().unwrap().to_owned();
            std::fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
            let change = Change::Mode { path: dir.clone(), before: State::Dir { mode: 0o755 }, mode: 0o777 };
            let error = at_stage(stage, exchanging(&dir, kind), || bench.carry_out(&[change]).unwrap_err());
            assert_eq!(error.kind, ErrorKind::Conflict, "{when}: {}", error.message);
            assert!(error.message.contains("dir changed in the meantime"), "{when}: {}", error.message);
            assert_eq!(mode(&dir.with_file_name("away")), 0o755, "{when}");
            let expected = if kind == "closed" { 0o700 } else { 0o755 };
            assert!(kind == "link" || mode(&dir) == expected, "{when}: {:o}", mode(&dir));
        }
    }
}

#[test]
fn mode_of_a_directory_is_changed_and_taken_back() {
    let bench = Bench::new();
    let dir = bench.file("dir/x", "x").parent().unwrap().to_owned();
    std::fs::set_permissions(&dir, Permissions::from_mode(0o750)).unwrap();
    let change = Change::Mode { path: dir.clone(), before: State::Dir { mode: 0o750 }, mode: 0o500 };
    let call = bench.carry_out(&[change]).unwrap();
    assert_eq!(mode(&dir), 0o500);
    let exchange = exchanging(&dir, "closed");
    let error = at_stage("kept", exchange, || bench.undo(&call).unwrap_err());
    assert_eq!((error.kind, mode(&dir), mode(&dir.with_file_name("away"))), (ErrorKind::Conflict, 0o700, 0o500));
    std::fs::remove_dir(&dir).unwrap();
    std::fs::rename(dir.with_file_name("away"), &dir).unwrap();
    bench.undo(&call).unwrap();
    assert_eq!(mode(&dir), 0o750);
}

#[test]
fn directory_that_takes_a_closed_ones_place_is_not_opened() {
    let bench = Bench::new();
    let closed = |path: &Path| std::fs::set_permissions(path, Permissions::from_mode(0o555)).unwrap();
    for is_removed in [false, true] {
        let dir = bench.file(&format!("closed-{is_removed}/x"), "x").parent().unwrap().to_owned();
        closed(&dir);
        let staged = bench.dir.join("staged");
        std::fs::write(&staged, "a file").unwrap();
        let (before, path) = (stands(&dir).unwrap(), dir.clone());
        let change = if is_removed {
            Change::Remove { path, before }
        } else {
            Change::Place { path, after: stands(&staged).unwrap(), staged, before }
        };
        let theirs = dir.clone();
        let exchange = move || {
            std::fs::rename(&theirs, theirs.with_extension("away")).unwrap();
            std::fs::create_dir(&theirs).unwrap();
            closed(&theirs);
        };
        let error = at_stage("kept", exchange, || bench.carry_out(&[change]).unwrap_err());
        assert_eq!(error.kind, ErrorKind::Conflict, "{}", error.message);
        assert_eq!((mode(&dir), mode(&dir.with_extension("away"))), (0o555, 0o555));
        assert!(!dir.join("x").exists(), "theirs has the place");
    }
}

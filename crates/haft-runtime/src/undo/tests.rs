//! Keeping, applying and taking back, at the level of files: conflicts, limits, hostile trees, other
//! file systems, and processes that die.

use super::bench::{Bench, Closeness, memory, shown, snapshot};
use super::*;
use crate::apply::{ExchangedFrom, Slot};
use haft_core::ErrorKind;
use haft_sandbox::layer::stands;
use std::fs::File;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

const TINY: UndoLimits = UndoLimits { max_file_bytes: 10, max_total_bytes: 100, keep: Duration::from_hours(1) };

fn place(path: PathBuf, staged: PathBuf) -> Change {
    let (before, after) = (stands(&path).unwrap(), stands(&staged).unwrap());
    Change::Place { path, staged, before, after }
}

fn remove(path: PathBuf) -> Change {
    let before = stands(&path).unwrap();
    Change::Remove { path, before }
}

/// Something that stands ready outside the project.
fn staged(bench: &Bench, name: &str, content: &str) -> PathBuf {
    let path = bench.dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

/// A project, and a change of every kind that stands ready for it.
pub(super) fn prepare(bench: &Bench) {
    for path in ["written", "replaced", "removed", "gone/a/b", "swapped/old", "moded/x"] {
        bench.file(path, format!("old {path}\n"));
    }
    for path in ["s/replaced", "s/tree/a/new", "s/swapped/new", "s/fresh"] {
        staged(bench, path, &format!("new {path}\n"));
    }
    symlink("nowhere", bench.root().join("link")).unwrap();
    symlink("elsewhere", bench.dir.join("s/link")).unwrap();
}

pub(super) fn prepared(bench: &Bench) -> Vec<Change> {
    let ready = |name: &str| place(bench.root().join(name), bench.dir.join("s").join(name));
    vec![
        Change::Mode { path: bench.root().join("moded"), before: State::Dir { mode: 0o755 }, mode: 0o700 },
        ready("replaced"),
        ready("link"),
        ready("swapped"),
        ready("tree"),
        ready("fresh"),
        remove(bench.root().join("removed")),
        remove(bench.root().join("gone")),
    ]
}

fn every_kind(bench: &Bench) -> Vec<Change> {
    prepare(bench);
    prepared(bench)
}

#[test]
fn what_was_there_becomes_the_image_itself() {
    let bench = Bench::new();
    let path = bench.file("a", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let was = std::fs::metadata(&path).unwrap();
    let call = bench.carry_out(&[place(path.clone(), staged(&bench, "new", "new"))]).unwrap();
    let image = std::fs::metadata(bench.vault.of(&call).join("0")).unwrap();
    assert_eq!((image.ino(), image.mode(), image.mtime_nsec()), (was.ino(), was.mode(), was.mtime_nsec()));
    assert_eq!(bench.rows(&call).0.bytes, 3);
    bench.undo(&call).unwrap();
    let back = std::fs::metadata(&path).unwrap();
    assert_eq!((back.ino(), back.mode(), back.nlink()), (was.ino(), was.mode(), 1));
    assert_eq!(bench.rows(&call).0.bytes, 0, "what is back is no longer kept");
}

#[test]
fn every_kind_is_shown_kept_undone_and_redone() {
    let bench = Bench::new();
    let changes = every_kind(&bench);
    let start = snapshot(&bench.root(), Closeness::Exact);
    let root = format!("{}/", bench.root().display());
    let text = |text: String| text.replace(&root, "");
    let diff = text(super::bench::diff(&changes));
    insta::assert_snapshot!(diff, @r"
    # modified moded/
    # modified replaced
    # modified link
    # added swapped/new
    # deleted swapped/old
    # added tree/a/new
    # added fresh
    # deleted removed
    # deleted gone/a/b
    mode of moded/: 755 -> 700
    --- a/replaced
    +++ b/replaced
    @@ -1 +1 @@
    -old replaced
    +new s/replaced
    symlink link: nowhere -> elsewhere
    --- /dev/null
    +++ b/swapped/new
    @@ -0,0 +1 @@
    +new s/swapped/new
    --- a/swapped/old
    +++ /dev/null
    @@ -1 +0,0 @@
    -old swapped/old
    --- /dev/null
    +++ b/tree/a/new
    @@ -0,0 +1 @@
    +new s/tree/a/new
    --- /dev/null
    +++ b/fresh
    @@ -0,0 +1 @@
    +new s/fresh
    --- a/removed
    +++ /dev/null
    @@ -1 +0,0 @@
    -old removed
    --- a/gone/a/b
    +++ /dev/null
    @@ -1 +0,0 @@
    -old gone/a/b
    ");
    let call = bench.carry_out(&changes).unwrap();
    let done = snapshot(&bench.root(), Closeness::Exact);
    let (found, steps) = bench.rows(&call);
    assert_eq!(text(bench.changes(&found, &steps)), diff, "the same afterwards");
    let undo = bench.undo(&call).unwrap();
    assert_eq!(snapshot(&bench.root(), Closeness::Exact), start);
    let (found, steps) = bench.rows(&call);
    assert!(bench.changes(&found, &steps).lines().all(|line| line.contains("as it was before")));
    bench.undo(&undo).unwrap();
    assert_eq!(snapshot(&bench.root(), Closeness::Exact), done);
}

#[test]
fn what_changed_since_is_named_and_left_alone() {
    let bench = Bench::new();
    let call = bench.carry_out(&every_kind(&bench)).unwrap();
    let root = bench.root();
    std::fs::write(root.join("replaced"), "mine").unwrap();
    std::fs::write(root.join("tree/a/mine"), "mine").unwrap();
    std::fs::remove_file(root.join("fresh")).unwrap();
    std::fs::write(root.join("removed"), "mine").unwrap();
    let now = snapshot(&root, Closeness::Exact);
    let error = bench.undo(&call).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    for name in ["replaced", "tree", "removed"] {
        assert!(error.message.contains(&format!("{}/{name}", root.display())), "{name}: {}", error.message);
    }
    assert!(!error.message.contains("link"), "{}", error.message);
    assert_eq!(snapshot(&root, Closeness::Exact), now);
}

#[test]
fn nothing_is_changed_over_something_else_or_to_something_else() {
    let bench = Bench::new();
    let path = bench.file("a", "old");
    let change = place(path.clone(), staged(&bench, "new", "new"));
    std::fs::write(&path, "mine").unwrap();
    assert_eq!(bench.carry_out(std::slice::from_ref(&change)).unwrap_err().kind, ErrorKind::Conflict);
    std::fs::write(&path, "old").unwrap();
    std::fs::write(bench.dir.join("new"), "other").unwrap();
    let error = bench.carry_out(&[change]).unwrap_err();
    assert!(error.message.contains("what was to go to"), "{}", error.message);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(bench.data.join("undo")).map_or(0, Iterator::count), 0);
}

#[test]
fn a_parent_swapped_for_a_link_leads_nowhere() {
    let bench = Bench::new();
    let decoy = staged(&bench, "decoy/a", "decoy");
    let (a, b) = (bench.file("dir/a", "old"), bench.root().join("dir/b"));
    let changes = [place(a.clone(), staged(&bench, "new", "new")), place(b, staged(&bench, "more", "more"))];
    std::fs::rename(bench.root().join("dir"), bench.root().join("away")).unwrap();
    symlink(decoy.parent().unwrap(), bench.root().join("dir")).unwrap();
    assert!(bench.carry_out(&changes).is_err());
    assert!(bench.carry_out(&changes[1..]).is_err());
    let exchanged_from = ExchangedFrom::Image;
    let (call, vault, dir) = ("c", bench.data.as_path(), bench.data.as_path());
    let slot = Slot { call, vault, dir, number: 0, draft: None, identity: None, exchanged_from };
    for change in &changes {
        assert!(crate::apply::step(change, &slot).is_err(), "even without looking first");
    }
    assert_eq!(std::fs::read(&decoy).unwrap(), b"decoy");
    assert_eq!(std::fs::read_dir(decoy.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_link_in_place_of_a_file_is_replaced_and_not_followed() {
    for vault in [memory(), std::env::temp_dir()] {
        let bench = Bench::across(&memory(), &vault, UndoLimits::default());
        let decoy = staged(&bench, "decoy", "decoy");
        let path = bench.root().join("a");
        symlink(&decoy, &path).unwrap();
        let call = bench.carry_out(&[place(path.clone(), staged(&bench, "new", "new"))]).unwrap();
        assert!(!path.is_symlink());
        let call = bench.undo(&call).unwrap();
        assert_eq!(std::fs::read_link(&path).unwrap(), decoy);
        bench.undo(&call).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read(&decoy).unwrap(), b"decoy");
    }
}

#[test]
fn what_fails_half_way_is_taken_back() {
    let bench = Bench::new();
    let mut changes = every_kind(&bench);
    // Nothing stands there, as expected; but by then nothing can.
    for (name, to) in [("s/late", "late"), ("s/later", "late/below")] {
        let staged = staged(&bench, name, "x");
        let after = stands(&staged).unwrap();
        changes.push(Change::Place { path: bench.root().join(to), staged, before: State::Absent, after });
    }
    let start = snapshot(&bench.root(), Closeness::Exact);
    assert!(bench.carry_out(&changes).is_err());
    assert_eq!(snapshot(&bench.root(), Closeness::Exact), start);
    assert_eq!(std::fs::read_dir(bench.data.join("undo")).unwrap().count(), 0);
}

#[test]
fn what_is_too_large_is_changed_and_not_kept() {
    for vault in [memory(), std::env::temp_dir()] {
        let bench = Bench::across(&memory(), &vault, TINY);
        let (large, small) = (bench.file("large", "0123456789+"), bench.file("small", "0123456789"));
        let new = staged(&bench, "new", "new");
        let id = crate::new_call_id();
        let changes = [place(large.clone(), new), remove(small.clone())];
        let kept = bench.vault.carry_out(&bench.store, (&id, None), &bench.root(), &changes, &shown).unwrap();
        assert!(kept.gap.as_ref().unwrap().contains("large (11 bytes) is larger than the undo limit of 10 bytes"));
        assert_eq!(std::fs::read(&large).unwrap(), b"new");
        assert!(!small.exists());
        drop(kept);
        let (undo, steps) = bench.rows(&id);
        let [None, Some(image)] = [&steps[0].image, &steps[1].image] else { panic!("{steps:?}") };
        assert_eq!(std::fs::read(bench.vault.image(&id, image)).unwrap(), b"0123456789");
        let beside = bench.vault.image(&id, image).with_file_name("0");
        assert!(!beside.exists(), "what is too large does not stay");
        assert_eq!(undo.bytes, 10);
        assert!(bench.undo(&id).unwrap_err().message.contains("cannot be undone"));
    }
}

#[test]
fn a_tree_counts_by_everything_in_it() {
    let bench = Bench::across(&memory(), &memory(), TINY);
    (0..12).for_each(|n| drop(bench.file(&format!("fits/{n}"), "12345678")));
    (0..13).for_each(|n| drop(bench.file(&format!("too-large/{n}"), "12345678")));
    let call = bench.carry_out(&[remove(bench.root().join("fits"))]).unwrap();
    assert_eq!(bench.rows(&call).0.bytes, 96);
    let start = snapshot(&bench.root(), Closeness::Exact);
    bench.undo(&call).unwrap();
    bench.undo(&bench.carry_out(&[remove(bench.root().join("fits"))]).unwrap()).unwrap();
    assert_ne!(snapshot(&bench.root(), Closeness::Exact), start);
    let call = bench.carry_out(&[remove(bench.root().join("too-large"))]).unwrap();
    assert!(bench.rows(&call).0.gap.is_some());
    assert!(!bench.root().join("too-large").exists());
}

#[test]
fn taking_back_does_not_forget_what_it_takes_back() {
    // Both calls together are more than may be kept.
    let bench = Bench::across(&memory(), &memory(), UndoLimits { max_file_bytes: 100, ..TINY });
    let path = bench.file("a", "x".repeat(60));
    let call = bench.carry_out(&[place(path.clone(), staged(&bench, "new", &"y".repeat(60)))]).unwrap();
    let undo = bench.undo(&call).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [b'x'; 60]);
    bench.undo(&undo).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [b'y'; 60]);
}

#[test]
fn an_image_of_an_earlier_version_is_still_restored() {
    let bench = Bench::new();
    let path = bench.file("a", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let call = bench.carry_out(&[remove(path.clone())]).unwrap();
    // It kept private copies.
    let image = bench.vault.of(&call).join("0");
    std::fs::set_permissions(image, std::fs::Permissions::from_mode(0o600)).unwrap();
    bench.undo(&call).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
}

#[test]
fn a_damaged_image_is_not_restored() {
    let bench = Bench::new();
    let path = bench.file("a", "old");
    let call = bench.carry_out(&[place(path.clone(), staged(&bench, "new", "new"))]).unwrap();
    std::fs::write(bench.vault.of(&call).join("0"), "odd").unwrap();
    assert!(bench.undo(&call).unwrap_err().message.contains("damaged"));
    std::fs::remove_file(bench.vault.of(&call).join("0")).unwrap();
    assert!(bench.undo(&call).unwrap_err().message.contains("gone"));
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
}

#[test]
fn every_path_is_named_and_diffs_are_shown_as_far_as_there_is_room() {
    let bench = Bench::new();
    (0..300).for_each(|n| drop(staged(&bench, &format!("s/{n:03}"), "x\n")));
    let tree = bench.dir.join("s");
    let text = super::bench::diff(&[place(bench.root().join("tree"), tree.clone())]);
    let named: Vec<&str> = text.lines().take_while(|line| line.starts_with("# added ")).collect();
    assert_eq!(named.len(), 300, "{named:?}");
    assert!(text.contains("/project/tree/299\n") && text.contains("# the diffs of 100 files are not shown here"));
    std::fs::write(tree.join("000"), "line\n".repeat(500_000)).unwrap();
    let text = super::bench::diff(&[place(bench.root().join("tree"), tree.clone())]);
    assert!(text.len() < (1 << 20) + 50_000 && text.contains("# the rest of"), "{}", text.len());
    let huge = File::create(tree.join("000")).unwrap();
    huge.set_len(1 << 40).unwrap();
    std::fs::write(tree.join("001"), b"\xff\0").unwrap();
    let text = super::bench::diff(&[place(bench.root().join("tree"), tree)]);
    assert!(text.contains("bytes; too large to compare") && text.contains("binary files /dev/null and b/"));
}

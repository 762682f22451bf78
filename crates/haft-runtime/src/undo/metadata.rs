//! What a file has besides its content survives edits, shell changes and undo, on one mount and across mounts; and access never
//! widens.

use super::bench::{Bench, Closeness, access_list, memory, set_attribute, snapshot};
use super::*;
use crate::apply::{ACCESS_LIST, FileMetadata};
use haft_sandbox::layer::stands;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::process::Command;

/// Project and vault on one mount, and on two.
fn benches() -> [Bench; 3] {
    let (fast, disk) = (memory(), std::env::temp_dir());
    [(&fast, &fast), (&fast, &disk), (&disk, &fast)]
        .map(|(project, vault)| Bench::across(project, vault, UndoLimits::default()))
}

fn write(path: &Path, content: &str) -> Change {
    let before = stands(path).unwrap();
    Change::Write { path: path.to_owned(), content: content.into(), before, mode: None }
}

fn metadata(path: &Path) -> FileMetadata {
    FileMetadata::read(File::open(path.parent().unwrap()).unwrap(), path.file_name().unwrap()).unwrap()
}

/// A file that has everything, another user's where that can be.
fn adorned(bench: &Bench) -> PathBuf {
    let path = bench.file("adorned", "");
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"end\n", 1 << 20).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), Some(54321)).unwrap();
    }
    set_attribute(&path, ACCESS_LIST, &access_list(23456));
    set_attribute(&path, "user.comment", b"of a person");
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    std::fs::hard_link(&path, path.with_file_name("other name")).unwrap();
    path
}

#[test]
fn edit_keeps_owner_mode_access_list_and_attributes_and_undo_restores_the_file_itself() {
    for bench in benches() {
        let path = adorned(&bench);
        let (before, inode) = (metadata(&path), std::fs::metadata(&path).unwrap().ino());
        assert_eq!(before.mode, 0o660, "the group's bits are what the list allows at the most");
        let start = snapshot(&bench.root(), Closeness::Exact);
        let call = bench.carry_out(&[write(&path, "edited\n")]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"edited\n");
        assert!(metadata(&path).is_alike(&before), "{:?}", metadata(&path));
        let edited = snapshot(&bench.root(), Closeness::Exact);
        let undo = bench.undo(&call).unwrap();
        assert_eq!(snapshot(&bench.root(), Closeness::Exact), start);
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);
        bench.undo(&undo).unwrap();
        assert_eq!(snapshot(&bench.root(), Closeness::Exact), edited);
    }
}

#[test]
fn attribute_given_since_the_call_comes_back_when_the_undo_is_undone() {
    for bench in benches() {
        let path = bench.file("noted", "old\n");
        let call = bench.carry_out(&[write(&path, "new\n")]).unwrap();
        set_attribute(&path, "user.note", b"of a person");
        let since = snapshot(&bench.root(), Closeness::Exact);
        let undo = bench.undo(&call).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old\n");
        assert!(metadata(&path).attributes.is_empty());
        bench.undo(&undo).unwrap();
        assert_eq!(snapshot(&bench.root(), Closeness::Exact), since);
    }
}

#[test]
fn removal_and_placement_are_undone_with_all_that_belongs_to_a_file() {
    for bench in benches() {
        let path = adorned(&bench);
        let start = snapshot(&bench.root(), Closeness::Exact);
        let staged = bench.dir.join("staged");
        std::fs::write(&staged, "new\n").unwrap();
        let (before, after) = (stands(&path).unwrap(), stands(&staged).unwrap());
        let other = bench.root().join("other name");
        let changes = [
            Change::Place { path: path.clone(), staged, before, after },
            Change::Remove { before: stands(&other).unwrap(), path: other },
        ];
        let call = bench.carry_out(&changes).unwrap();
        bench.undo(&call).unwrap();
        assert_eq!(snapshot(&bench.root(), Closeness::Exact), start);
    }
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().ino()
}

#[test]
fn names_of_one_file_are_names_of_one_file_wherever_they_were_made_ready() {
    for bench in benches() {
        for ready_on in [memory(), std::env::temp_dir()] {
            let ready = tempfile::tempdir_in(ready_on).unwrap();
            std::fs::write(ready.path().join("one"), "new\n").unwrap();
            std::fs::hard_link(ready.path().join("one"), ready.path().join("two")).unwrap();
            let old = bench.file("two", "old\n");
            let changes = ["one", "two"].map(|name| {
                let (path, staged) = (bench.root().join(name), ready.path().join(name));
                let (before, after) = (stands(&path).unwrap(), stands(&staged).unwrap());
                Change::Place { path, staged, before, after }
            });
            let start = snapshot(&bench.root(), Closeness::Exact);
            let call = bench.carry_out(&changes).unwrap();
            assert_eq!(inode(&bench.root().join("one")), inode(&old));
            let end = snapshot(&bench.root(), Closeness::Exact);
            let undo = bench.undo(&call).unwrap();
            assert_eq!(snapshot(&bench.root(), Closeness::Exact), start);
            let redo = bench.undo(&undo).unwrap();
            assert_eq!(snapshot(&bench.root(), Closeness::Exact), end);
            assert_eq!(inode(&bench.root().join("one")), inode(&old));
            bench.undo(&redo).unwrap();
        }
    }
}

#[test]
fn names_of_one_file_that_somebody_else_changed_are_restored_as_such() {
    for bench in benches() {
        let (one, two) = (bench.file("one", "old\n"), bench.root().join("two"));
        std::fs::hard_link(&one, &two).unwrap();
        let start = snapshot(&bench.root(), Closeness::Exact);
        let before = stands(&one).unwrap();
        std::fs::write(bench.dir.join("new"), "new\n").unwrap();
        let after = stands(&bench.dir.join("new")).unwrap();
        let files =
            [&one, &two].map(|path| KeptFile { path: path.clone(), before: before.clone(), after: after.clone() });
        let call = crate::new_call_id();
        bench.vault.keep_files(&bench.store, &call, &bench.root(), &files).unwrap();
        for path in [&one, &two] {
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, "new\n").unwrap();
        }
        bench.undo(&call).unwrap();
        assert_eq!(snapshot(&bench.root(), Closeness::Exact), start);
        assert_eq!(inode(&one), inode(&two));
    }
}

#[test]
fn nothing_is_kept_of_a_copy_that_fails_half_way() {
    for bench in benches() {
        let (one, two) = (bench.file("one", "old\n"), bench.file("two", "old\n"));
        let before = stands(&one).unwrap();
        let gone = KeptFile { path: bench.root().join("gone"), before: before.clone(), after: before.clone() };
        let files =
            [&one, &two].map(|path| KeptFile { path: path.clone(), before: before.clone(), after: before.clone() });
        let call = crate::new_call_id();
        // The second is no longer there; then the times of the first cannot be given.
        let [first, second] = files;
        assert!(bench.vault.keep_files(&bench.store, &call, &bench.root(), &[first, gone]).is_err());
        let refused = haft_sandbox::faults::refuse(&["futimens"]);
        assert!(bench.vault.keep_files(&bench.store, &call, &bench.root(), &[second]).is_err());
        drop(refused);
        assert!(!bench.vault.of(&call).exists() && bench.undo_rows(&call).is_none());
    }
}

#[test]
fn nothing_stays_on_another_mount_when_nothing_is_kept() {
    let bench = Bench::across(&memory(), &std::env::temp_dir(), UndoLimits::default());
    let path = bench.file("a", "old\n");
    let call = bench.carry_out(&[write(&path, "new\n")]).unwrap();
    let image = bench.rows(&call).1[0].image.clone().unwrap();
    let shelf = bench.vault.image(&call, &image).parent().unwrap().to_owned();
    assert!(shelf.starts_with(memory()) && shelf.is_dir(), "{}", shelf.display());
    assert_eq!(std::fs::metadata(shelf.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
    bench.vault.drop(&bench.store, &call);
    assert!(!shelf.exists());
}

#[test]
fn a_directory_of_somebody_else_is_not_used_for_images() {
    let bench = Bench::across(&memory(), &std::env::temp_dir(), UndoLimits::default());
    let path = bench.file("a", "old\n");
    let name = crate::apply::shelf_name();
    // One that others may look into could be theirs.
    let open = bench.root().join(&name);
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let call = bench.carry_out(&[write(&path, "new\n")]).unwrap();
    let image = bench.rows(&call).1[0].image.clone().unwrap();
    assert!(!bench.vault.image(&call, &image).starts_with(&open));
    bench.undo(&call).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"old\n");
}

#[test]
fn edit_takes_no_access_list_from_the_vault() {
    let bench = Bench::new();
    // What is made below would inherit it.
    set_attribute(&bench.data, "system.posix_acl_default", &access_list(23456));
    let path = bench.file("a", "old\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    bench.carry_out(&[write(&path, "new\n")]).unwrap();
    assert_eq!((metadata(&path).mode, metadata(&path).attributes.len()), (0o600, 0));
}

#[test]
fn new_files_get_what_their_directory_gives() {
    let bench = Bench::new();
    set_attribute(&bench.root(), "system.posix_acl_default", &access_list(23456));
    let plain = bench.file("plain", "x");
    let path = bench.root().join("new");
    bench.carry_out(&[write(&path, "new\n")]).unwrap();
    assert!(metadata(&path).is_alike(&metadata(&plain)));
    assert!(metadata(&path).attributes.contains_key(ACCESS_LIST));
}

#[test]
fn access_changed_while_a_file_is_edited_is_a_conflict() {
    let bench = Bench::new();
    let (first, second) = (bench.file("a", "old\n"), bench.file("b", "old\n"));
    let changes = [write(&first, "new\n"), write(&second, "new\n")];
    let adorn = second.clone();
    let error = super::interference::at_stage(
        "applied",
        move || set_attribute(&adorn, ACCESS_LIST, &access_list(1)),
        || bench.carry_out(&changes).unwrap_err(),
    );
    assert!(error.message.contains("b changed in the meantime"), "{}", error.message);
    assert!(metadata(&second).attributes.contains_key(ACCESS_LIST));
    assert_eq!(std::fs::read(&first).unwrap(), b"old\n");
}

#[test]
fn what_is_not_kept_is_said_before() {
    let bench = Bench::new();
    let path = adorned(&bench);
    let notes = crate::apply::notes(&[write(&path, "new\n")], &|_| "adorned".to_owned());
    assert_eq!(notes, ["adorned has other hard links; they keep the old content"]);
}

/// The half of the next test that runs where nothing can be given away. By itself it does nothing.
#[test]
fn inside() {
    let Some(path) = std::env::var_os("HAFT_METADATA") else { return };
    let path = PathBuf::from(path);
    let old = metadata(&path);
    let name = OsStr::new("copy");
    let copy = path.with_file_name(name);
    let given = old.give(&File::create(&copy).unwrap(), None);
    if old.attributes.is_empty() {
        given.unwrap();
        // Another group may do no more than everybody, and nobody runs it as somebody else.
        assert_eq!(metadata(&copy).mode, 0o644);
    } else {
        assert!(given.unwrap_err().to_string().contains("access cannot be kept"));
    }
}

#[test]
fn access_never_widens_where_the_owner_cannot_be_kept() {
    let bench = Bench::new();
    let (plain, listed) = (bench.file("plain", "x"), bench.file("listed", "x"));
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o6664)).unwrap();
    set_attribute(&listed, ACCESS_LIST, &access_list(23456));
    for path in [plain, listed] {
        // In a namespace without any users but one, no file can be given to anybody.
        let mut command = Command::new("unshare");
        command.args(["-U", std::env::current_exe().unwrap().to_str().unwrap()]);
        let output = command.args(["--exact", "undo::metadata::inside"]).env("HAFT_METADATA", &path).output().unwrap();
        if String::from_utf8_lossy(&output.stderr).contains("unshare failed") {
            eprintln!("SKIPPED: user namespaces are forbidden here");
            return;
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

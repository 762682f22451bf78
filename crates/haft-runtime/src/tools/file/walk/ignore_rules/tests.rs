//! Which ignore files count for a walk, and which are traps. What their patterns mean is tested where they are read.

use super::*;
use std::os::unix::fs::symlink;
use std::process::Command;

/// A directory of its own, real and without links on the way.
struct Place {
    root: PathBuf,
    _dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("top");
        std::fs::create_dir_all(root.join(".git/info")).unwrap();
        Self { root, _dir: dir }
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn rules(&self, start: &str) -> IgnoreRules {
        IgnoreRules::new(&self.root.join(start).components().collect::<PathBuf>(), Unsound::default(), None)
    }

    /// Whether a walk from the top passes over a file.
    fn leaves_out(&self, path: &str) -> bool {
        self.rules("").leave_out(&self.root.join(path), false)
    }
}

fn git(dir: &Path, args: &[&str]) {
    let who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "protocol.file.allow=always"];
    let done = Command::new("git").arg("-C").arg(dir).args(who).args(args).output().unwrap();
    assert!(done.status.success(), "{args:?} {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_nearest_file_that_says_anything_decides() {
    let place = Place::new();
    place.file("../.gitignore", "*\n");
    place.file("../.ignore", "everywhere\n");
    place.file(".gitignore", "*.log\n/only\nkept\n");
    place.file(".git/info/exclude", "*.tmp\n!a.log\n");
    place.file("sub/.gitignore", "!b.log\n!*.tmp\n");
    place.file("sub/.ignore", "c.txt\n!d.log\n");
    for (path, expected) in [
        ("a.log", true),
        ("a.tmp", true),
        ("only", true),
        ("sub/only", false),
        ("sub/b.log", false),
        ("sub/deep/b.log", false),
        ("sub/a.tmp", false),
        ("sub/c.txt", true),
        ("sub/d.log", false),
        ("everywhere", true),
        ("sub/x/everywhere", true),
        ("other", false),
    ] {
        assert_eq!(place.leaves_out(path), expected, "{path}");
    }
    // Seen from further down it is the same.
    let rules = place.rules("sub");
    assert!(
        rules.leave_out(&place.root.join("sub/kept"), false) && !rules.leave_out(&place.root.join("sub/b.log"), false)
    );
}

#[test]
fn worktrees_and_submodules_have_the_patterns_of_their_repositories() {
    let place = Place::new();
    std::fs::remove_dir_all(place.root.join(".git")).unwrap();
    place.file("a", "x");
    git(&place.root, &["init", "-q"]);
    git(&place.root, &["add", "a"]);
    git(&place.root, &["commit", "-qm", "x"]);
    git(&place.root, &["worktree", "add", "-q", "../tree"]);
    git(&place.root, &["init", "-q", "../library"]);
    git(&place.root.join("../library"), &["commit", "-qm", "x", "--allow-empty"]);
    git(&place.root, &["submodule", "--quiet", "add", "../library", "module"]);
    place.file(".git/info/exclude", "mine\n");
    place.file(".git/modules/module/info/exclude", "theirs\n");
    let tree = place.root.join("../tree").canonicalize().unwrap();
    assert!(IgnoreRules::new(&tree, Unsound::default(), None).leave_out(&tree.join("mine"), false));
    assert!(place.leaves_out("module/theirs") && !place.leaves_out("module/mine"));
    // A file that points where nobody knows of it is not believed.
    let liar = place.root.join("../liar");
    std::fs::create_dir(&liar).unwrap();
    std::fs::copy(tree.join(".git"), liar.join(".git")).unwrap();
    place.file("../other/info/exclude", "mine\n");
    place.file("../far/.git", "gitdir: ../other\n");
    for start in [liar, place.root.join("../far")] {
        let start = start.canonicalize().unwrap();
        assert!(!IgnoreRules::new(&start, Unsound::default(), None).leave_out(&start.join("mine"), false));
    }
}

#[test]
fn traps_are_left_out_and_told() {
    let place = Place::new();
    place.file("large/.gitignore", "x\n".repeat(150_000));
    place.file("link/x", "");
    symlink("/dev/zero", place.root.join("link/.ignore")).unwrap();
    place.file("fifo/x", "");
    assert!(Command::new("mkfifo").arg(place.root.join("fifo/.gitignore")).status().unwrap().success());
    place.file("exclude/.git/HEAD", "");
    std::fs::create_dir(place.root.join("exclude/.git/info")).unwrap();
    symlink("/dev/zero", place.root.join("exclude/.git/info/exclude")).unwrap();
    place.file("braces/.gitignore", "{".repeat(60_000) + "a" + &"}".repeat(60_000));
    let unsound = Unsound::default();
    let rules = IgnoreRules::new(&place.root, unsound.clone(), None);
    for dir in ["large", "link", "fifo", "exclude"] {
        assert!(rules.leave_out(&place.root.join(dir).join("any"), false), "{dir}");
        assert!(rules.leave_out(&place.root.join(dir).join("deep/any"), false), "{dir}");
        let start = place.root.join(dir);
        assert!(require_sound(&start, dir).is_err() && require_sound(&start.join("deep"), dir).is_err(), "{dir}");
        assert!(IgnoreRules::new(&start, Unsound::default(), None).leave_out(&start.join("any"), false), "{dir}");
    }
    assert!(!rules.leave_out(&place.root.join("braces/any"), false), "braces are nothing special");
    assert_eq!(unsound.take(), ["exclude", "fifo", "large", "link"].map(|dir| place.root.join(dir)));
    assert_eq!(unsound.take_linked(), [] as [PathBuf; 0]);
}

#[test]
fn nested_files_that_are_too_much_together_are_left_out() {
    let place = Place::new();
    let mut dir = String::new();
    for _ in 0..5 {
        dir.push_str("d/");
        place.file(&format!("{dir}.gitignore"), "x\n".repeat(120_000));
    }
    assert!(!place.leaves_out("d/d/d/d/any") && place.leaves_out("d/d/d/d/d/any"));
}

#[test]
fn directories_that_were_forgotten_are_read_again() {
    let place = Place::new();
    place.file("sub/.gitignore", "a\n");
    let rules = place.rules("");
    for n in 0..REMEMBERED_MAX * 2 {
        assert!(!rules.leave_out(&place.root.join(format!("{n}/a")), false));
        if n % 1000 == 0 {
            assert!(rules.leave_out(&place.root.join("sub/a"), false));
        }
    }
    assert!(rules.known.read().unwrap().dirs.len() <= REMEMBERED_MAX);
}

#[test]
fn a_halt_ends_hard_work() {
    let place = Place::new();
    place.file(".gitignore", "*a*a*a*a*a*a*b\n".repeat(15_000));
    let halt = Halt::new();
    let rules = IgnoreRules::new(&place.root, Unsound::default(), Some(halt.clone()));
    let path = place.root.join("a".repeat(200));
    assert!(!rules.leave_out(&path, false));
    halt.cancel();
    assert!(rules.leave_out(&path, false), "nothing more is found");
}

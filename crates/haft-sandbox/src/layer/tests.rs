//! Views of real directories, on which real commands run.

use super::*;
use haft_core::change::State;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A project and a view of it.
struct Scene {
    dir: tempfile::TempDir,
    layer: Option<Layer>,
}

impl Scene {
    /// Runs `prepare` in the project.
    fn new(prepare: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        let scene = Self { dir, layer: None };
        scene.shell(prepare);
        scene
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("project")
    }

    fn shell(&self, script: &str) {
        let status = Command::new("sh").args(["-ec", script]).current_dir(self.root()).status().unwrap();
        assert!(status.success(), "{script}");
    }

    fn create(&mut self) -> &Layer {
        let layer = Layer::create(&self.dir.path().join("view"), &self.root()).unwrap();
        self.layer.insert(layer)
    }

    /// Runs a command on a view of the project. False, and loudly, where that is forbidden.
    fn view(&mut self, script: &str) -> bool {
        let allowed = Command::new("unshare").args(["-Urm", "true"]).stderr(Stdio::null()).status();
        if !allowed.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: user namespaces are forbidden here, so no overlay can be mounted");
            return false;
        }
        let layer = self.create();
        let (lower, upper, work) = (layer.lower.display(), layer.upper.display(), layer.work.display());
        let mount = layer.work.with_file_name("mount");
        std::fs::create_dir(&mount).unwrap();
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr");
        let script = format!("mount -t overlay o -o {options} {0}; cd {0}\n{script}", mount.display());
        let output = Command::new("unshare").args(["-Urm", "sh", "-ec", &script]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        true
    }

    fn diff(&self) -> Diffed {
        self.layer.as_ref().unwrap().diff().unwrap()
    }

    /// The changes, a line each.
    fn lines(&self, changes: &[Change]) -> String {
        let line = |change: &Change| {
            let path = change.path().strip_prefix(self.root()).unwrap().display().to_string();
            match change {
                Change::Place { before, after, .. } => format!("{path}: {} -> {}\n", word(before), word(after)),
                Change::Remove { before, .. } => format!("{path}: {} -> absent\n", word(before)),
                Change::Mode { before, mode, .. } => format!("{path}: {} -> dir {mode:o}\n", word(before)),
                other => format!("{other:?}\n"),
            }
        };
        changes.iter().map(line).collect()
    }
}

fn word(state: &State) -> String {
    match state {
        State::Absent => "absent".to_owned(),
        State::File { mode, .. } => format!("file {mode:o}"),
        State::Link { target } => format!("link {}", target.display()),
        State::Tree { mode, .. } => format!("tree {mode:o}"),
        State::Dir { mode } => format!("dir {mode:o}"),
    }
}

#[test]
fn what_a_command_did_becomes_changes() {
    let mut scene = Scene::new(
        "umask 022; for f in edited touched opened moded removed to-dir; do echo $f > $f; done
         mkdir -p kept/in gone/deep replaced moded-dir to-file; echo x > gone/deep/x; echo x > replaced/x; echo x > kept/in/x
         ln -s a link; ln -s b dead",
    );
    let ran = scene.view(
        "echo more >> edited; touch -d @5 touched; : >> opened; chmod 700 moded; rm removed; rm -r gone
         rm -r replaced; mkdir replaced; echo y > replaced/y; mkdir -p new/tree; echo z > new/tree/z; chmod 700 moded-dir
         rm to-dir; mkdir to-dir; rmdir to-file; echo f > to-file; ln -sfn c link; rm dead; echo in > kept/in/new; ln -s /nowhere new-link",
    );
    if !ran {
        return;
    }
    let found = scene.diff();
    insta::assert_snapshot!(scene.lines(&found.changes), @r"
    dead: link b -> absent
    edited: file 644 -> file 644
    gone: tree 755 -> absent
    kept/in/new: absent -> file 644
    link: link a -> link c
    moded: file 644 -> file 700
    moded-dir: dir 755 -> dir 700
    new: absent -> tree 755
    new-link: absent -> link /nowhere
    removed: file 644 -> absent
    replaced: tree 755 -> tree 755
    to-dir: file 644 -> tree 755
    to-file: tree 755 -> file 644
    touched: file 644 -> file 644
    ");
    assert!(found.refused.is_empty() && found.conflicts.is_empty() && found.hard_links.is_empty(), "{found:?}");
}

#[test]
fn what_stands_ready_carries_no_marks_and_no_powers() {
    let mut scene = Scene::new("echo a > a; mkdir d; echo x > d/x; chmod 4755 d/x");
    if !scene.view("echo b >> a; chmod 6755 a; rm -r d; mkdir -p d/e; echo p > d/e/p; chmod 4711 d/e/p; chmod 2775 d/e")
    {
        return;
    }
    let found = scene.diff();
    insta::assert_snapshot!(scene.lines(&found.changes), @r"
    a: file 644 -> file 755
    d: tree 755 -> tree 755
    ");
    let upper = &scene.layer.as_ref().unwrap().upper;
    let mut seen = 0;
    tree::each(upper, &mut |entry| {
        let path = upper.join(entry.inner);
        let mut names = vec![0; 4096];
        let length = rustix::fs::llistxattr(&path, names.as_mut_slice())?;
        let names = String::from_utf8_lossy(&names[..length]).into_owned();
        assert!(entry.inner.as_os_str().is_empty() || !names.contains("overlay"), "{}: {names}", path.display());
        seen += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, 5);
    let mode = |path: &str| std::fs::symlink_metadata(upper.join(path)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("a"), mode("d/e/p"), mode("d/e")), (0o755, 0o711, 0o2775), "directories keep their group bit");
}

#[test]
fn a_directory_that_nobody_may_enter_is_walked_and_stays_so() {
    let mut scene = Scene::new("mkdir shut; echo x > shut/x");
    if !scene
        .view("mkdir -p new/inner; echo a > new/inner/a; chmod 0 new/inner; echo y > shut/y; chmod 0 shut; chmod 0 new")
    {
        return;
    }
    let found = scene.diff();
    insta::assert_snapshot!(scene.lines(&found.changes), @r"
    new: absent -> tree 0
    shut/y: absent -> file 644
    shut: dir 755 -> dir 0
    ");
    scene.layer.take().unwrap().discard().unwrap();
    assert!(!scene.dir.path().join("view/upper").exists() && !scene.dir.path().join("view/work").exists());
}

/// A command that gives a file an attribute.
fn set_attribute(path: &str, name: &str, value: &str) -> String {
    format!("python3 -c \"import os; os.setxattr('{path}', '{name}', bytes.fromhex('{value}'))\"; ")
}

#[test]
fn attributes_and_access_lists_alone_are_a_change_of_a_file_and_told_of_a_directory() {
    // Version 2; the owner, user 0, the group, the mask and everybody else: tag, permissions, number.
    let nobody = "ffffffff";
    let list = format!("0200000001000600{nobody}020006000000000004000400{nobody}10000600{nobody}20000000{nobody}");
    let (old, new) = ("6f6c64", "6e6577");
    let mut scene = Scene::new(&format!(
        "mkdir dir opened; for f in noted listed opened-only; do echo $f > $f; done; chmod 660 listed; {}{}",
        set_attribute("opened-only", "user.note", old),
        set_attribute("opened", "user.note", old)
    ));
    let ran = scene.view(&format!(
        ": >> opened-only; touch opened/file; {}{}{}",
        set_attribute("noted", "user.note", new),
        set_attribute("listed", "system.posix_acl_access", &list),
        set_attribute("dir", "user.note", new)
    ));
    if !ran {
        return;
    }
    let found = scene.diff();
    insta::assert_snapshot!(scene.lines(&found.changes), @r"
    listed: file 660 -> file 660
    noted: file 644 -> file 644
    opened/file: absent -> file 644
    ");
    assert_eq!(found.refused, [(scene.root().join("dir"), clean::OF_DIRECTORY)]);
}

#[test]
fn file_that_is_replaced_keeps_an_access_list_that_the_command_cannot_name() {
    let nobody = "ffffffff";
    let list =
        |user: &str| format!("0200000001000600{nobody}02000600{user}04000000{nobody}10000600{nobody}20000000{nobody}");
    let stranger = list("a05b0000");
    let mut scene = Scene::new(&format!(
        "echo a > listed; echo b > plain; chmod 660 listed plain; {}",
        set_attribute("listed", "system.posix_acl_access", &stranger)
    ));
    if !scene.view("for f in listed plain; do echo new > new; chmod 660 new; mv new $f; done") {
        return;
    }
    let found = scene.diff();
    assert_eq!(found.refused, [(scene.root().join("listed"), clean::OF_STRANGERS)]);
    let staged = |name: &str| scene.dir.path().join("view/upper").join(name);
    let mut value = [0; 64];
    let length = rustix::fs::getxattr(staged("listed"), "system.posix_acl_access", &mut value[..]).unwrap();
    let hex: String = value[..length].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, stranger);
    assert!(rustix::fs::getxattr(staged("plain"), "system.posix_acl_access", &mut value[..]).is_err());
}

#[test]
fn pipes_are_refused_wherever_they_are() {
    let mut scene = Scene::new("mkfifo old; mkdir d; mkfifo d/p");
    if !scene.view("mkfifo new; mkdir tree; echo x > tree/x; mkfifo tree/p; rm old; rm -r d") {
        return;
    }
    let found = scene.diff();
    let refused: Vec<_> = found.refused.iter().map(|(path, _)| path.strip_prefix(scene.root()).unwrap()).collect();
    assert_eq!(refused, ["new", "old", "tree/p"].map(Path::new));
    insta::assert_snapshot!(scene.lines(&found.changes), @r"
    d: tree 755 -> absent
    tree: absent -> tree 755
    ");
}

#[test]
fn what_somebody_else_changed_meanwhile_is_a_conflict() {
    let mut scene =
        Scene::new("for f in a b c; do echo $f > $f; done; mkdir -p d/e; echo x > d/e/x; echo y > d/y; ln a a2");
    if !scene.view("echo more | tee -a a b new > /dev/null; rm -r d; chmod 700 c") {
        return;
    }
    std::thread::sleep(Duration::from_millis(20));
    scene.shell("echo mine >> a2; echo mine > new; echo mine > d/e/x; echo mine > unrelated");
    let found = scene.diff();
    let relative = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|path| path.strip_prefix(scene.root()).unwrap().display().to_string()).collect()
    };
    assert_eq!(relative(&found.conflicts), ["a", "d/e/x", "new"]);
    assert_eq!(relative(&found.hard_links), ["a"]);
}

#[test]
fn links_are_told_and_never_followed() {
    let mut scene = Scene::new("mkdir d; echo x > d/x");
    let decoy = scene.dir.path().join("decoy");
    std::fs::create_dir(&decoy).unwrap();
    std::fs::write(decoy.join("x"), "decoy").unwrap();
    let layer = scene.create();
    // As a hostile command could leave it: links as a file, as a directory and as a way through.
    symlink(decoy.join("x"), layer.upper.join("evil")).unwrap();
    symlink(&decoy, layer.upper.join("d")).unwrap();
    std::fs::create_dir(layer.upper.join("tree")).unwrap();
    symlink(&decoy, layer.upper.join("tree/way")).unwrap();
    let found = scene.diff();
    let lines = scene.lines(&found.changes).replace(&decoy.display().to_string(), "DECOY");
    insta::assert_snapshot!(lines, @r"
    d: tree 755 -> link DECOY
    evil: absent -> link DECOY/x
    tree: absent -> tree 755
    ");
    scene.layer.take().unwrap().discard().unwrap();
    assert_eq!(std::fs::read(decoy.join("x")).unwrap(), b"decoy");
}

#[test]
fn content_that_is_elsewhere_is_an_error_and_not_lost() {
    let mut scene = Scene::new("echo a > a");
    let layer = scene.create();
    std::fs::write(layer.upper.join("a"), "").unwrap();
    let path = layer.upper.join("a");
    let set = rustix::fs::setxattr(&path, "user.overlay.metacopy", b"", rustix::fs::XattrFlags::empty());
    if set.is_err() {
        eprintln!("SKIPPED: no user attributes here");
        return;
    }
    assert!(matches!(layer.diff(), Err(LayerError::Elsewhere { .. })));
}

#[test]
fn the_directory_itself_may_change_its_mode() {
    let mut scene = Scene::new("chmod 750 .");
    if scene.view("chmod 700 .") {
        assert_eq!(scene.lines(&scene.diff().changes), ": dir 750 -> dir 700\n");
    }
}

#[test]
fn the_cost_is_that_of_the_changes() {
    let plant = |files: usize| {
        let dirs = files / 500;
        format!("for i in $(seq 0 {}); do mkdir d$i; (cd d$i && seq 1 500 | xargs touch); done", dirs - 1)
    };
    let time = |files: usize| {
        let mut scene = Scene::new(&plant(files));
        scene.view("for i in $(seq 100); do echo x > d0/$i; done").then(|| {
            let begun = Instant::now();
            assert_eq!(scene.diff().changes.len(), 100);
            begun.elapsed()
        })
    };
    if let (Some(few), Some(many)) = (time(500), time(50_000)) {
        assert!(many < few * 5 + Duration::from_millis(20), "{few:?} -> {many:?}");
    }
}

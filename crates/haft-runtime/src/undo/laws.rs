//! The law of it all: whatever a command does on a view of a project, the project does not notice; keeping
//! the changes makes the project what a plain run would have made it; undoing them makes it what it was;
//! and undoing that makes it what it was to become.

use super::bench::{Bench, Closeness, access_list, memory, mounting, overlaid, set_attribute, snapshot};
use super::*;
use haft_sandbox::layer::{Layer, tree};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::SystemTime;

/// Names that a careless program stumbles over.
const NAMES: [&[u8]; 9] = [b"a", b"b", b"c d", b"e\nf", b"\xff\xfe", b"-x", "\u{fc}".as_bytes(), b".h", b"wh.k"];
/// Commands write through links as they do in life, perhaps as root: so none may lead out of the tree to
/// anything that exists or could be made.
const LINKS: [&str; 5] = ["a", "nowhere", "c d/b", ".", "/nonexistent/haft/x"];
const MODES: [u32; 6] = [0o644, 0o755, 0o600, 0o444, 0o000, 0o640];
const DIR_MODES: [u32; 4] = [0o755, 0o700, 0o750, 0o555];

/// Numbers that look random and are the same every time.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn content(&mut self) -> Vec<u8> {
        let length = self.pick(&[0, 1, 3, 40, 5000]);
        (0..length).map(|_| b"abc\n"[self.below(4)]).collect()
    }
}

fn chmod(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Every path below a directory, directories before what is in them.
fn all(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    tree::each(root, &mut |entry| {
        if !entry.inner.as_os_str().is_empty() {
            found.push(root.join(entry.inner));
        }
        Ok(())
    })
    .unwrap();
    found
}

fn is_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// A tree to start from.
fn plant(root: &Path, chance: &mut Chance) {
    for _ in 0..chance.below(14) {
        let dir = chance.pick(&all(root).into_iter().filter(|path| is_dir(path)).collect::<Vec<_>>());
        let path = dir.join(OsStr::from_bytes(chance.pick(&NAMES)));
        // What exists already stays as it is.
        let _ = match chance.below(6) {
            0 | 1 => std::fs::create_dir(&path).and_then(|()| chmod(&path, chance.pick(&DIR_MODES))),
            2 => symlink(chance.pick(&LINKS), &path),
            _ if path.symlink_metadata().is_ok() => Ok(()),
            _ => std::fs::write(&path, chance.content()).and_then(|()| chmod(&path, chance.pick(&MODES))),
        };
        adorn(&path, chance);
    }
}

/// Gives a file now and then what edits tend to lose.
fn adorn(path: &Path, chance: &mut Chance) {
    let is_file = path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    match chance.below(5) {
        0 if is_file => set_attribute(path, "user.comment", b"of a person"),
        1 if is_file => {
            set_attribute(path, "system.posix_acl_access", &access_list(rustix::process::geteuid().as_raw()));
        }
        2 if is_file => {
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"behind a hole", 1 << 20).unwrap();
        }
        _ => {}
    }
}

/// One command. Commands fail as they do in life, and alike wherever they run.
fn command(root: &Path, chance: &mut Chance) -> io::Result<()> {
    let there = all(root);
    let dirs: Vec<PathBuf> = there.iter().filter(|path| is_dir(path)).cloned().collect();
    let fresh = chance.pick(&dirs).join(OsStr::from_bytes(chance.pick(&NAMES)));
    let (old, other) = (chance.pick(&there), chance.pick(&there));
    let content = chance.content();
    match chance.below(18) {
        0 | 1 => std::fs::write(&fresh, content),
        2 => std::fs::write(&old, content),
        3 => append(&old, &content),
        4 => std::fs::OpenOptions::new().write(true).truncate(true).open(&old).map(drop),
        5 if old != root => std::fs::remove_file(&old),
        6 if old != root => std::fs::remove_dir_all(&old),
        7 => std::fs::create_dir(&fresh),
        8 if old != root => shift(&old, &fresh),
        9 if old != root && other != root && !is_dir(&other) => shift(&old, &other),
        10 => symlink(chance.pick(&LINKS), &fresh),
        11 if !old.is_symlink() => {
            chmod(&old, if is_dir(&old) { chance.pick(&DIR_MODES) } else { chance.pick(&MODES) })
        }
        12 if !old.is_symlink() => touch(&old, chance.below(1 << 30)),
        13 => std::fs::copy(&old, &fresh).map(drop),
        14 if is_dir(&old) && old != root => {
            std::fs::remove_dir_all(&old)?;
            std::fs::create_dir(&old)?;
            std::fs::write(old.join("again"), content)
        }
        15 if is_dir(&old) && old != root => {
            std::fs::remove_dir_all(&old)?;
            std::fs::write(&old, content)
        }
        16 if !is_dir(&old) => {
            std::fs::remove_file(&old)?;
            std::fs::create_dir(&old)?;
            std::fs::write(old.join("a"), content)
        }
        17 => std::fs::hard_link(&old, &fresh),
        _ => Ok(()),
    }
}

fn append(path: &Path, content: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut std::fs::OpenOptions::new().append(true).open(path)?, content)
}

/// A whole second in the past, or for some only opened for writing and left alone.
fn touch(path: &Path, seconds: usize) -> io::Result<()> {
    let file = if is_dir(path) { File::open(path)? } else { std::fs::OpenOptions::new().append(true).open(path)? };
    if seconds.is_multiple_of(3) {
        return Ok(());
    }
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds as u64))
}

/// What `mv` does: renames, and where that cannot be, copies and removes.
fn shift(from: &Path, to: &Path) -> io::Result<()> {
    // A rename and a copy would disagree about what to do with a directory that is there.
    if to.starts_with(from) || (is_dir(from) && to.symlink_metadata().is_ok()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            clone(from, to)?;
            if is_dir(from) { std::fs::remove_dir_all(from) } else { std::fs::remove_file(from) }
        }
        done => done,
    }
}

fn clone(from: &Path, to: &Path) -> io::Result<()> {
    let meta = from.symlink_metadata()?;
    if meta.is_symlink() {
        return symlink(std::fs::read_link(from)?, to);
    }
    if !meta.is_dir() {
        std::fs::copy(from, to)?;
        return keep_metadata(from, to);
    }
    std::fs::create_dir(to).or_else(|error| if is_dir(to) { Ok(()) } else { Err(error) })?;
    for name in std::fs::read_dir(from)?.map(|entry| entry.unwrap().file_name()) {
        clone(&from.join(&name), &to.join(&name))?;
    }
    chmod(to, meta.permissions().mode())
}

/// `mv` keeps what belongs to a file.
fn keep_metadata(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = crate::apply::FileMetadata::read(File::open(from.parent().unwrap())?, from.file_name().unwrap())?;
    metadata.give(&File::open(to)?, None)
}

fn commands(root: &Path, seed: u64) {
    let mut chance = Chance(seed ^ 0xc0_ffee);
    for _ in 0..=chance.below(9) {
        let _ = command(root, &mut chance);
    }
}

/// One project on which one sequence of commands is tried.
struct Case {
    seed: u64,
    bench: Bench,
    layer: Layer,
}

impl Case {
    fn new(seed: u64, project: &Path, vault: &Path) -> Self {
        let bench = Bench::across(project, vault, UndoLimits::default());
        let plain = bench.dir.join("plain");
        std::fs::create_dir(&plain).unwrap();
        plant(&bench.root(), &mut Chance(seed));
        plant(&plain, &mut Chance(seed));
        let layer = bench.layer();
        std::fs::create_dir(bench.dir.join("mount")).unwrap();
        Self { seed, bench, layer }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.bench.dir.join(name)
    }

    fn holds(&self, start: &std::collections::BTreeMap<String, String>) {
        let (root, seed) = (self.bench.root(), self.seed);
        assert_eq!(snapshot(&root, Closeness::Exact), *start, "case {seed}: the project noticed");
        let plain = snapshot(&self.at("plain"), Closeness::Alike);
        let found = self.layer.diff().unwrap();
        assert!(found.refused.is_empty() && found.conflicts.is_empty(), "case {seed}: {found:?}");
        let before = snapshot(&root, Closeness::Exact);
        assert!(super::bench::diff(&found.changes).len() < 1 << 20);
        assert_eq!(snapshot(&root, Closeness::Exact), before, "case {seed}: looking changed something");
        let call = self.bench.carry_out(&found.changes).unwrap_or_else(|error| panic!("case {seed}: {error:?}"));
        assert_eq!(snapshot(&root, Closeness::Alike), plain, "case {seed}: keeping is not what a plain run does");
        let kept = snapshot(&root, Closeness::Exact);
        let undo = self.bench.undo(&call).unwrap_or_else(|error| panic!("case {seed}: {error:?}"));
        assert_eq!(snapshot(&root, Closeness::Exact), *start, "case {seed}: undo");
        let redo = self.bench.undo(&undo).unwrap_or_else(|error| panic!("case {seed}: {error:?}"));
        assert_eq!(snapshot(&root, Closeness::Exact), kept, "case {seed}: redo");
        self.bench.undo(&redo).unwrap_or_else(|error| panic!("case {seed}: {error:?}"));
        assert_eq!(snapshot(&root, Closeness::Exact), *start, "case {seed}: undo again");
    }
}

/// Tries many cases in one namespace, in which this program runs itself again.
fn law(seeds: std::ops::Range<u64>, project: &Path, vault: &Path) {
    let cases: Vec<Case> = seeds.map(|seed| Case::new(seed, project, vault)).collect();
    let starts: Vec<_> = cases.iter().map(|case| snapshot(&case.bench.root(), Closeness::Exact)).collect();
    let list = tempfile::NamedTempFile::new().unwrap();
    let line = |case: &Case| format!("{} {}\n", case.seed, case.bench.dir.display());
    std::fs::write(list.path(), cases.iter().map(line).collect::<String>()).unwrap();
    let mounts: Vec<String> = cases.iter().map(|case| mounting(&case.layer, &case.at("mount"))).collect();
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "{}\nHAFT_LAW={} exec '{}' --exact undo::laws::inside --nocapture",
        mounts.join("\n"),
        list.path().display(),
        exe.display()
    );
    if overlaid(&["sh", "-ec", &script]) {
        cases.iter().zip(&starts).for_each(|(case, start)| case.holds(start));
    }
}

/// The half of a law that runs in the namespace. By itself it does nothing.
#[test]
fn inside() {
    let Some(list) = std::env::var_os("HAFT_LAW") else { return };
    for line in std::fs::read_to_string(list).unwrap().lines() {
        let (seed, dir) = line.split_once(' ').unwrap();
        for root in ["mount", "plain"] {
            commands(&Path::new(dir).join(root), seed.parse().unwrap());
        }
    }
}

#[test]
fn what_runs_on_a_view_can_be_kept_undone_and_redone() {
    for batch in 0..10 {
        law(batch * 100..(batch + 1) * 100, &memory(), &memory());
    }
}

#[test]
fn the_same_on_a_disk() {
    law(10_000..10_040, &std::env::temp_dir(), &std::env::temp_dir());
}

#[test]
fn the_same_with_the_vault_on_another_file_system() {
    law(20_000..20_060, &memory(), &std::env::temp_dir());
    law(30_000..30_020, &std::env::temp_dir(), &memory());
}

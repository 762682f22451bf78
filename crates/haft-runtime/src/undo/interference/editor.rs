//! Somebody else who works on the files of a call, by a schedule.

use super::*;

/// What an editor does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::undo) enum Act {
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
    /// Gives it to another user.
    Owner,
    /// Lets one more user read and write it.
    AccessList,
    Attribute,
    /// Gives the directory that it is in another name.
    RenameParent,
    /// The same, and puts a link in the directory's place that leads to it.
    LinkParent,
    /// The same, and puts another directory in its place, with a file of the same name.
    ReplaceParent,
}

pub(in crate::undo) const ACTS: [Act; 16] = [
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
    Act::Owner,
    Act::AccessList,
    Act::Attribute,
    Act::RenameParent,
    Act::LinkParent,
    Act::ReplaceParent,
];

impl Act {
    /// Whether it is about all that is in the file's directory.
    pub(super) fn is_of_parent(self) -> bool {
        matches!(self, Self::RenameParent | Self::LinkParent | Self::ReplaceParent)
    }
}

/// The files that each kind of change is about.
pub(super) const PLAIN: [&str; 4] = ["written", "replaced", "removed", "fresh"];

/// What calls change: files, a link, directories and what is in them, and files in a directory that the editor changes.
pub(in crate::undo) const FILES: [&str; 14] = [
    "written",
    "replaced",
    "removed",
    "fresh",
    "moved",
    "target",
    "link",
    "swapped/old",
    "tree",
    "gone/a/b",
    "deep/er/written",
    "deep/er/removed",
    "deep/er/fresh",
    "deep/er/placed",
];

/// The users that the editor gives files to have numbers from here on.
const USERS: u32 = 20_000;
/// What its access control lists are told by.
const LIST: &[u8] = b"editor's list ";

/// At which point an editor does what to which file.
#[derive(Debug, Clone, Copy)]
pub(in crate::undo) struct Plan {
    pub(in crate::undo) point: usize,
    pub(in crate::undo) act: Act,
    pub(in crate::undo) file: &'static str,
}

/// Somebody else who works on the same files.
pub(in crate::undo) struct Editor {
    pub(super) root: PathBuf,
    pub(super) plans: Vec<Plan>,
    pub(in crate::undo) points: usize,
    /// What it has written so far, to be different each time.
    pub(super) writes: usize,
    pub(super) open: Option<File>,
    /// What anybody wrote and the editor did not destroy itself.
    pub(super) alive: BTreeSet<Vec<u8>>,
    pub(in crate::undo) touched: BTreeSet<&'static str>,
    pub(super) vault: PathBuf,
}

/// Every content below some directories, and what the editor gave to anything there, with its place.
pub(super) fn contents(dirs: &[&Path]) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for dir in dirs {
        let _ = tree::each(dir, &mut |entry| {
            let path = dir.join(entry.inner);
            match at::kind(entry.stat) {
                FileType::RegularFile => found.push((path.clone(), std::fs::read(&path)?)),
                FileType::Symlink => {
                    found.push((path.clone(), std::fs::read_link(&path)?.into_os_string().into_encoded_bytes()));
                }
                _ => {}
            }
            if entry.stat.st_uid > USERS {
                found.push((path.clone(), format!("editor's user {}", entry.stat.st_uid).into_bytes()));
            }
            for (name, value) in FileMetadata::read(entry.dir, entry.name)?.attributes {
                match name.as_str() {
                    crate::apply::ACCESS_LIST => found.push((path.clone(), [LIST, &value].concat())),
                    "user.editor" => found.push((path.clone(), value)),
                    _ => {}
                }
            }
            Ok(())
        });
    }
    found
}

impl Editor {
    pub(super) fn everything(&self) -> BTreeSet<Vec<u8>> {
        let found = contents(&[&self.root]).into_iter().chain(self.kept());
        found.map(|(_, content)| content).collect()
    }

    /// What haft keeps of the calls of this project, wherever it does.
    pub(super) fn kept(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = contents(&[&self.vault]);
        for call in std::fs::read_dir(&self.vault).into_iter().flatten().flatten() {
            let shelves = crate::apply::shelves_of(&call.path());
            found.extend(contents(&shelves.iter().map(PathBuf::as_path).collect::<Vec<_>>()));
        }
        found
    }

    pub(super) fn at_point(&mut self) {
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
            self.touch(plan);
            self.noting(|editor| {
                // What cannot be done is not done: the file may not be there.
                let _ = editor.act(plan.act, &editor.root.join(plan.file));
            });
        }
    }

    fn touch(&mut self, plan: Plan) {
        self.touched.insert(plan.file);
        if ["moved", "target"].contains(&plan.file) {
            // One file with two names, one after the other.
            self.touched.extend(["moved", "target"]);
        }
        let parent = Path::new(plan.file).parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|_| plan.act.is_of_parent()) {
            self.touched.extend(FILES.iter().filter(|file| Path::new(file).starts_with(parent)));
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
        let user = USERS + u32::try_from(number).unwrap();
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
                std::os::unix::fs::symlink(format!("editor {number}"), path)
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
            Act::Owner => std::os::unix::fs::lchown(path, Some(user), None),
            Act::AccessList if path.is_file() && !path.is_symlink() => {
                set_attribute(path, crate::apply::ACCESS_LIST, &access_list(user));
                Ok(())
            }
            Act::Attribute if path.exists() && !path.is_symlink() => {
                set_attribute(path, "user.editor", &content);
                Ok(())
            }
            Act::RenameParent | Act::LinkParent | Act::ReplaceParent => self.act_on_parent(act, path, &content),
            Act::AccessList | Act::Attribute => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn act_on_parent(&self, act: Act, path: &Path, content: &[u8]) -> io::Result<()> {
        let parent = path.parent().filter(|parent| *parent != self.root).ok_or(io::ErrorKind::InvalidInput)?;
        let away = parent.with_file_name(format!("away-{}", self.writes));
        std::fs::rename(parent, &away)?;
        match act {
            Act::LinkParent => std::os::unix::fs::symlink(away, parent),
            Act::ReplaceParent => {
                std::fs::create_dir(parent)?;
                std::fs::write(path, content)
            }
            _ => Ok(()),
        }
    }
}

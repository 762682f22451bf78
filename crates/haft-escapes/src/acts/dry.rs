//! Changing the project for good, when only a dry run was asked for.

use super::write::{IntoTried, append, put, rename};
use super::{Act, Sight};
use crate::attack::{Brief, Tried};
use crate::sys::on;

pub(crate) const ACTS: &[Act] = &[
    dry("dry_run.create", |b| put(b.file("project", "new.txt")?)),
    dry("dry_run.append", |b| append(b.file("project", "file.txt")?)),
    dry("dry_run.delete", |b| std::fs::remove_file(b.file("project", "file.txt")?).tried()),
    dry("dry_run.delete_directory", |b| std::fs::remove_dir_all(b.file("project", "dir")?).tried()),
    dry("dry_run.rename", |b| rename(&b.file("project", "file.txt")?, &b.file("project", "x")?, 0)),
    dry("dry_run.chmod", |b| on(libc::SYS_chmod, b.file("project", "file.txt")?, &[0o700]).tried()),
    // Beside a protected path, whose mounts must be of the view and not of the project.
    dry("dry_run.beside_hooks", |b| put(b.file("project", ".git/index")?)),
    dry("dry_run.head", |b| append(b.file("project", ".git/HEAD")?)),
    dry("dry_run.objects", |b| put(b.file("project", ".git/objects/x")?)),
    dry("dry_run.beside_declared", |b| put(b.file("project", "sub/x")?)).flags(&[
        "--dry-run",
        "--protect",
        "{project}/sub/.git/HEAD",
    ]),
];

const fn dry(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    Act::new(name, attempt).seen(Sight::Kept).judged_outside().flags(&["--dry-run"])
}

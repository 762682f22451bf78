//! Widening the next call: haft's own files, what git runs, what a shell reads at its start.
//!
//! A copy-on-write view may let these happen inside; what counts is what is kept.

use super::write::{IntoTried, append, link, put, rename};
use super::{Act, Sight};
use crate::attack::{Brief, Tried, any};
use crate::sys::{HERE, at, c, call, int, on, under};
use std::os::unix::fs::symlink;

pub(crate) const ACTS: &[Act] = &[
    kept("protect.config_append", |b| append(b.file("project", ".git/config")?)),
    kept("protect.config_replace", |b| {
        put(b.file("project", "fresh")?)?;
        rename(&b.file("project", "fresh")?, &b.file("project", ".git/config")?, 0)
    }),
    kept("protect.config_exchange", |b| {
        put(b.file("project", "fresh")?)?;
        rename(&b.file("project", "fresh")?, &b.file("project", ".git/config")?, libc::RENAME_EXCHANGE)
    }),
    kept("protect.config_delete", |b| on(libc::SYS_unlink, b.file("project", ".git/config")?, &[]).tried()),
    kept("protect.config_recreate", |b| {
        std::fs::remove_file(b.file("project", ".git/config")?)?;
        put(b.file("project", ".git/config")?)
    }),
    kept("protect.config_hardlink", |b| {
        link(&b.file("project", ".git/config")?, &b.file("project", "alias")?)?;
        append(b.file("project", "alias")?)
    }),
    kept("protect.config_chmod", |b| on(libc::SYS_chmod, b.file("project", ".git/config")?, &[0o777]).tried()),
    kept("protect.config_utime", |b| {
        let times = [libc::timespec { tv_sec: 1, tv_nsec: 0 }; 2];
        under(libc::SYS_utimensat, HERE, b.file("project", ".git/config")?, &[at(&times), 0]).tried()
    }),
    kept("protect.hook_new", |b| put(b.file("project", ".git/hooks/pre-commit")?)),
    kept("protect.hook_edit", |b| append(b.file("project", ".git/hooks/post-merge")?)),
    kept("protect.hook_symlink", |b| symlink("../../file.txt", b.file("project", ".git/hooks/pre-push")?).tried()),
    kept("protect.hooks_replace", hooks_replace),
    kept("protect.git_rename", git_rename),
    kept("protect.git_remove", git_remove),
    kept("protect.git_symlink", git_symlink),
    kept("protect.git_exchange", |b| {
        std::fs::create_dir_all(b.file("project", "other/hooks")?)?;
        put(b.file("project", "other/config")?)?;
        rename(&b.file("project", "other")?, &b.file("project", ".git")?, libc::RENAME_EXCHANGE)
    }),
    kept("protect.hooks_create", |b| {
        std::fs::create_dir(b.file("project", "sub/.git/hooks")?)?;
        put(b.file("project", "sub/.git/hooks/pre-commit")?)
    }),
    kept("protect.hooks_move_in", |b| {
        std::fs::create_dir(b.file("project", "made")?)?;
        put(b.file("project", "made/pre-commit")?)?;
        rename(&b.file("project", "made")?, &b.file("project", "sub/.git/hooks")?, 0)
    }),
    kept("protect.nested_config", |b| put(b.file("project", "sub/.git/config")?)),
    kept("protect.nested_link", |b| {
        symlink("sub", b.file("project", "elsewhere")?)?;
        put(b.file("project", "elsewhere/.git/config")?)
    }),
    kept("protect.new_repository", |b| {
        std::fs::create_dir_all(b.file("project", "deep/er/.git/hooks")?)?;
        put(b.file("project", "deep/er/.git/config")?)
    }),
    kept("protect.repository_moved_in", |b| {
        std::fs::create_dir_all(b.file("project", "plain/hooks")?)?;
        put(b.file("project", "plain/config")?)?;
        rename(&b.file("project", "plain")?, &b.file("project", "dir/.git")?, 0)
    }),
    kept("protect.git_file", |b| {
        std::fs::create_dir_all(b.file("project", "store/hooks")?)?;
        std::fs::write(b.file("project", "dir/.git")?, "gitdir: ../store\n").tried()
    }),
    kept("protect.common_dir", |b| {
        std::fs::create_dir_all(b.file("project", "store/hooks")?)?;
        std::fs::write(b.file("project", ".git/commondir")?, "../store\n").tried()
    }),
    kept("protect.haft_edit", |b| append(b.file("project", ".haft/config.yml")?)),
    kept("protect.haft_delete", |b| std::fs::remove_dir_all(b.file("project", ".haft")?).tried()),
    kept("protect.haft_rename", |b| {
        rename(&b.file("project", ".haft")?, &b.file("project", ".haft-old")?, 0)?;
        std::fs::create_dir(b.file("project", ".haft")?)?;
        put(b.file("project", ".haft/config.yml")?)
    }),
    kept("protect.haft_nested", |b| {
        std::fs::create_dir(b.file("project", "sub/.haft")?)?;
        put(b.file("project", "sub/.haft/config.yml")?)
    }),
    kept("protect.haft_symlink", |b| {
        std::fs::create_dir(b.file("project", "mine")?)?;
        put(b.file("project", "mine/config.yml")?)?;
        symlink("../mine", b.file("project", "sub/.haft")?).tried()
    }),
    kept("protect.glee_create", |b| {
        std::fs::create_dir(b.file("project", ".glee")?)?;
        put(b.file("project", ".glee/manifest.yml")?)
    }),
    kept("protect.declared_edit", |b| append(b.file("project", "kept/file.txt")?)).flags(DECLARED),
    kept("protect.declared_parent", |b| {
        rename(&b.file("project", "kept")?, &b.file("project", "unkept")?, 0)?;
        std::fs::create_dir(b.file("project", "kept")?)?;
        put(b.file("project", "kept/file.txt")?)
    })
    .flags(DECLARED),
    kept("protect.umount", umount),
    kept("protect.bashrc", |b| append(b.file("home", ".bashrc")?)).flags(HOME),
    kept("protect.bashrc_replace", |b| {
        put(b.file("home", "fresh")?)?;
        rename(&b.file("home", "fresh")?, &b.file("home", ".bashrc")?, 0)
    })
    .flags(HOME),
    kept("protect.profile", |b| put(b.file("home", ".profile")?)).flags(HOME),
    kept("protect.bash_profile", |b| put(b.file("home", ".bash_profile")?)).flags(HOME),
    kept("protect.zshenv", |b| put(b.file("home", ".zshenv")?)).flags(HOME),
];

const HOME: &[&str] = &["--write", "{home}"];
const DECLARED: &[&str] = &["--protect", "{project}/kept"];

const fn kept(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    Act::new(name, attempt).seen(Sight::Protected).judged_outside()
}

fn hooks_replace(b: &Brief) -> Tried {
    let hooks = b.file("project", ".git/hooks")?;
    let aside = b.file("project", ".git/hooks-old")?;
    any(&[("rename", &|| rename(&hooks, &aside, 0)), ("remove", &|| std::fs::remove_dir_all(&hooks).tried())])?;
    std::fs::create_dir(&hooks)?;
    put(hooks.join("pre-commit"))
}

/// The way that beat a read-only mount of the hooks alone.
fn git_rename(b: &Brief) -> Tried {
    let git = b.file("project", ".git")?;
    rename(&git, &b.file("project", ".g2")?, 0)?;
    std::fs::create_dir_all(git.join("hooks"))?;
    put(git.join("config"))?;
    put(git.join("hooks/pre-commit"))
}

fn git_remove(b: &Brief) -> Tried {
    let git = b.file("project", ".git")?;
    std::fs::remove_dir_all(&git)?;
    std::fs::create_dir_all(git.join("hooks"))?;
    put(git.join("config"))
}

fn git_symlink(b: &Brief) -> Tried {
    let git = b.file("project", "sub/.git")?;
    std::fs::create_dir_all(b.file("project", "evil/hooks")?)?;
    put(b.file("project", "evil/config")?)?;
    std::fs::remove_dir_all(&git)?;
    symlink("../evil", git).tried()
}

fn umount(b: &Brief) -> Tried {
    let config = b.file("project", ".git/config")?;
    let _ = call(libc::SYS_unshare, &[int(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)]);
    for path in [".git/config", ".git/hooks", ".git", ".haft"] {
        let _ = on(libc::SYS_umount2, b.file("project", path)?, &[libc::MNT_DETACH as usize]);
    }
    let (path, attributes) = (c(&config), [0u64, 1, 0, 0]);
    let _ = call(libc::SYS_mount_setattr, &[int(HERE), path.as_ptr() as usize, 0, at(&attributes), 32]);
    append(config)
}

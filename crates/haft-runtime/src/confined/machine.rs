//! What was found out about this machine, kept until it is started again: finding out takes as long as
//! starting a program.

use haft_sandbox::{Backend, Level, Linux, Machine};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What was found, and when it stops being true.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Changes with every start of the machine, and with what its kernel is told about namespaces.
    valid_for: String,
    machine: Machine,
}

/// The machine, from what is kept in this directory if that still holds.
pub fn known(data_dir: &Path) -> &'static Machine {
    /// What this process has found out it does not find out again.
    static LOOKED_IN: OnceLock<PathBuf> = OnceLock::new();
    let backend = Linux::here();
    if data_dir.as_os_str().is_empty() {
        return backend.machine();
    }
    if LOOKED_IN.get().is_some_and(|dir| dir == data_dir) {
        return backend.machine();
    }
    let file = file(data_dir);
    let kept = std::fs::read(&file).ok().and_then(|text| serde_json::from_slice::<Kept>(&text).ok());
    match kept.filter(|kept| kept.valid_for == now()) {
        Some(kept) => Linux::remember(kept.machine),
        None => keep(data_dir, backend.machine()),
    }
    let _ = LOOKED_IN.set(data_dir.to_owned());
    backend.machine()
}

/// Looks anew, and keeps what is found.
pub fn look_anew(data_dir: &Path) -> Machine {
    let machine = Linux::look();
    keep(data_dir, &machine);
    machine
}

fn file(data_dir: &Path) -> PathBuf {
    data_dir.join("machine.json")
}

/// Best effort: what is not kept is found out again.
fn keep(data_dir: &Path, machine: &Machine) {
    // What did not work a moment ago may work the next; only what works is worth remembering.
    if machine.level != Level::Full || !machine.layers {
        let _ = std::fs::remove_file(file(data_dir));
        return;
    }
    let kept = Kept { valid_for: now(), machine: machine.clone() };
    if let Ok(text) = serde_json::to_vec(&kept) {
        let draft = data_dir.join(format!(".machine-{:016x}", crate::chance()));
        let _ = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, file(data_dir)));
    }
}

/// The start of the machine, the user, the program, and the settings that decide about namespaces.
fn now() -> String {
    const SETTINGS: &[&str] = &[
        "/proc/sys/kernel/random/boot_id",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/kernel/unprivileged_userns_clone",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "/proc/self/attr/current",
    ];
    let mut text = format!("{} {}", env!("CARGO_PKG_VERSION"), rustix::process::geteuid().as_raw());
    for setting in SETTINGS {
        text.push(' ');
        text.push_str(std::fs::read_to_string(setting).unwrap_or_default().trim());
    }
    // A container shares the machine and not its permissions.
    let namespace = std::fs::read_link("/proc/self/ns/user").unwrap_or_default();
    format!("{text} {}", namespace.display())
}

//! Variables that decide what is run: set for a command they are like options that execute.

use super::judged::{Doubt, Harm};
use super::word::Word;

/// Variables that may be set for a command: they change how it prints, and nothing else.
const HARMLESS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "TERM",
    "COLUMNS",
    "LINES",
    "RUST_BACKTRACE",
    "GIT_TERMINAL_PROMPT",
    "GREP_COLORS",
    "LS_COLORS",
    "TIME_STYLE",
    "BLOCK_SIZE",
    "BLOCKSIZE",
    "DEBIAN_FRONTEND",
    "CI",
];

/// Pagers that show nothing but what they are given.
const PAGERS: &[&str] = &["PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "BAT_PAGER"];

/// Variables that the shell itself obeys, or that every program is given and many obey.
const OBEYED: &[&str] = &[
    "PATH",
    "HOME",
    "PWD",
    "CDPATH",
    "IFS",
    "ENV",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "GLOBIGNORE",
    "EXECIGNORE",
    "POSIXLY_CORRECT",
    "TMPDIR",
    "SHELL",
    "HISTFILE",
    "FIGNORE",
    "INPUTRC",
];

/// A variable that is set in the shell, without a command.
pub(super) fn plain(name: &str) -> Option<Doubt> {
    let obeyed =
        OBEYED.contains(&name) || name.starts_with("BASH") || name.starts_with("LD_") || name.starts_with("GIT_");
    obeyed.then(|| Doubt { harm: Harm::Runs, why: format!("setting {name} decides what is run later") })
}

/// A variable that a command is given.
pub(super) fn given(name: &str, value: &Word) -> Option<Doubt> {
    let harmless = HARMLESS.contains(&name)
        || name.starts_with("LC_")
        || (name == "GIT_OPTIONAL_LOCKS" && value.literal() == Some("0"))
        || (PAGERS.contains(&name) && matches!(value.literal(), Some("cat" | "")));
    (!harmless).then(|| Doubt { harm: Harm::Runs, why: format!("setting {name} may decide what is run") })
}

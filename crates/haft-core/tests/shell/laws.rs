//! Laws: whatever is put around a command or beside it, the verdict never becomes looser; and the same command
//! is always judged alike.
//!
//! What may become looser, and is not tested: what stands *before* a command in a pipeline or directory (it can
//! make known what was not), and text that is not yet a whole command, which anything may complete.

use crate::corpus::files;
use crate::sample::{Verdict, judged, verdict, verdict_of};
use proptest::prelude::*;
use std::sync::LazyLock;

/// Ways to run a command that is given as one word.
const QUOTED: &[&str] = &[
    "bash -c @",
    "sh -c @",
    "dash -c @",
    "zsh -c @",
    "eval @",
    "command eval @",
    "builtin eval @",
    "env bash -c @",
    "env -i FOO=1 bash -c @",
    "nice -n 5 bash -c @",
    "timeout 5 bash -c @",
    "nohup bash -c @",
    "setsid bash -c @",
    "stdbuf -oL bash -c @",
    "time bash -c @",
    "command bash -c @",
    "exec bash -c @",
    "sudo bash -c @",
    "sudo -u nobody sh -c @",
    "doas sh -c @",
    "xargs bash -c @",
    "find . -maxdepth 0 -exec bash -c @ \\;",
    "watch -- @",
    "script -c @ /dev/null",
    "busybox sh -c @",
    "ssh host @",
    "docker exec web sh -c @",
    "kubectl exec pod -- sh -c @",
    "trap @ EXIT",
    "env nice timeout 5 sh -c @",
];
/// Ways to put a command among other syntax.
const AROUND: &[&str] = &[
    "(\n@\n)",
    "{\n@\n}",
    "! {\n@\n}",
    "if true; then\n@\nfi",
    "if\n@\nthen :; fi",
    "if false; then :; else\n@\nfi",
    "while\n@\ndo break; done",
    "until false; do\n@\nbreak; done",
    "for zz in 1 2; do\n@\ndone",
    "for ((zz = 0; zz < 2; zz++)); do\n@\ndone",
    "case x in x)\n@\n;; esac",
    "zz() {\n@\n}; zz",
    "zz() (\n@\n); zz",
    "echo \"$(\n@\n)\"",
    "echo $(\n@\n)",
    "zz=$(\n@\n)",
    "zz=($(\n@\n))",
    "cat <(\n@\n)",
    "[[ -n $(\n@\n) ]]",
    "echo \"${zz:-$(\n@\n)}\"",
    "echo $(( $(\n@\n) ))",
    "cat <<ZZ\n$(\n@\n)\nZZ",
    "{\n@\n} &",
    "coproc {\n@\n}",
    "time {\n@\n}",
];
/// Something beside it.
const BESIDE: &[&str] = &[
    "@\nls",
    "@\n:",
    "@\ntouch zz",
    "@\nrm -rf /",
    "true\n@",
    "ls; echo hi\n@",
    "touch zz\n@",
    "zz=1\n@",
    "{\n@\n} && ls",
    "{\n@\n} || cat a.txt",
    "true && {\n@\n}",
    "false || {\n@\n}",
    "{\n@\n} | cat",
    "{\n@\n} | grep x | sort",
    "{\n@\n} |& tee zz",
    "{\n@\n} > /dev/null",
    "{\n@\n} > zz",
    "{\n@\n} >> zz 2>&1",
    "{\n@\n} 2> /dev/null",
    "{\n@\n} 3< a.txt",
];

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn around(form: &str, command: &str) -> String {
    form.replace('@', command)
}

/// Whether a text is a whole command, which nothing that follows can complete or swallow.
fn is_whole(command: &str) -> bool {
    judged(command).error.is_none() && !command.ends_with('\\') && !command.contains("<<")
}

/// How a command becomes looser by a form, if it does.
fn loosened(form: &str, command: &str) -> Option<String> {
    let is_quoted = QUOTED.contains(&form);
    if !is_quoted && !is_whole(command) {
        return None;
    }
    let wrapped = around(form, &if is_quoted { quote(command) } else { command.to_owned() });
    let (before, after) = (verdict_of(command), verdict_of(&wrapped));
    (after < before).then(|| format!("{command:?} is {before:?}, {wrapped:?} is {after:?}"))
}

fn forms() -> impl Iterator<Item = &'static str> {
    [QUOTED, AROUND, BESIDE].into_iter().flatten().copied()
}

static COMMANDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let files = files();
    let entries = files.iter().flat_map(|(_, entries)| entries);
    let mut all: Vec<String> =
        entries.flat_map(|entry| std::iter::once(entry.command.clone()).chain(entry.twin.clone())).collect();
    all.sort();
    all.dedup();
    all
});

/// Every form on every command of the corpus, a part of them in a build that is slow.
#[test]
fn no_form_loosens_a_command_of_the_corpus() {
    let step = if cfg!(debug_assertions) { 7 } else { 1 };
    let mut found: Vec<String> = Vec::new();
    for (offset, form) in forms().enumerate() {
        let some = COMMANDS.iter().skip(offset % step).step_by(step);
        found.extend(some.filter_map(|command| loosened(form, command)));
    }
    assert!(found.is_empty(), "{} become looser\n{}", found.len(), found.join("\n"));
}

/// Pieces that commands are made of, and some that they are not.
const PIECES: &[&str] = &[
    "ls",
    "cat",
    "rm",
    "touch",
    "git",
    "log",
    "echo",
    "sed",
    "-i",
    "-n",
    "-o",
    "-rf",
    "--output=x",
    "sort",
    "find",
    ".",
    "-exec",
    "\\;",
    "-delete",
    "xargs",
    "env",
    "sudo",
    "bash",
    "-c",
    "a.txt",
    "/etc/passwd",
    "/",
    "~",
    "*",
    "./*",
    ".env",
    "x",
    "$x",
    "\"$x\"",
    "x=1",
    "x=a.txt",
    "$(",
    ")",
    "`",
    "'",
    "\"",
    "{",
    "}",
    "(",
    "((",
    "))",
    "[[",
    "]]",
    "|",
    "||",
    "&&",
    "&",
    ";",
    ";;",
    "\n",
    ">",
    ">>",
    "<",
    "<<EOF\n",
    "EOF\n",
    "<<<",
    "2>&1",
    "> x",
    "> /dev/null",
    "#",
    "\\",
    "$'",
    "\\x72",
    "${",
    "${x:-",
    "$((",
    "a[",
    "]",
    "if",
    "then",
    "else",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "while",
    "case",
    "esac",
    "function",
    "f()",
    "time",
    "!",
    "coproc",
    "eval",
    "trap",
    "EXIT",
    "cd",
    "..",
    "src",
    "{a,b}",
    "é",
    "\u{1b}[0m",
    "\r",
    "PATH=.",
    "declare",
    "-v",
    "test",
    "[",
    "awk",
    "'{print}'",
    "read",
    "x@P}",
    "-",
];

fn random() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES);
    prop::collection::vec((piece, prop::bool::weighted(0.8)), 1..14).prop_map(|pieces| {
        pieces.iter().map(|(piece, blank)| format!("{piece}{}", if *blank { " " } else { "" })).collect()
    })
}

fn command() -> impl Strategy<Value = String> {
    let known = || prop::sample::select(COMMANDS.as_slice());
    prop_oneof![
        2 => known(),
        3 => random(),
        1 => (known(), known()).prop_map(|(one, other)| format!("{one}\n{other}")),
        1 => "\\PC{0,40}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(4), ..ProptestConfig::default() })]

    #[test]
    fn wrapping_never_loosens(command in command(), form in prop::sample::select(QUOTED)) {
        prop_assert_eq!(loosened(form, &command), None);
    }

    #[test]
    fn surrounding_never_loosens(command in command(), form in prop::sample::select(AROUND)) {
        prop_assert_eq!(loosened(form, &command), None);
    }

    #[test]
    fn adding_never_loosens(command in command(), form in prop::sample::select(BESIDE)) {
        prop_assert_eq!(loosened(form, &command), None);
    }

    #[test]
    fn two_wrappers_are_no_looser_than_one(
        command in command(),
        inner in prop::sample::select(QUOTED),
        outer in prop::sample::select(QUOTED),
    ) {
        let once = around(inner, &quote(&command));
        prop_assert_eq!(loosened(outer, &once), None);
    }

    /// A command that was allowed has nothing in it that a list of its parts would not allow.
    #[test]
    fn a_list_is_as_weak_as_its_weakest(one in command(), other in command()) {
        // What stands before can make known where something is.
        let moves = one.contains("cd") || one.contains("pushd");
        if !is_whole(&one) || !is_whole(&other) || moves {
            return Ok(());
        }
        let (first, both) = (verdict_of(&one), verdict_of(&format!("{one}\n{other}")));
        prop_assert!(both >= first, "{one:?} is {first:?}, with {other:?} {both:?}");
    }

    #[test]
    fn judging_is_deterministic(command in command()) {
        let (first, again) = (judged(&command), judged(&command));
        prop_assert_eq!(&first, &again);
        prop_assert_eq!(verdict(&first), verdict(&again));
    }

    /// What is allowed has been understood: every command has a name, and nothing is written.
    #[test]
    fn what_is_allowed_is_known(command in command()) {
        let judged = judged(&command);
        if verdict(&judged) == Verdict::Allow {
            prop_assert!(judged.writes.is_empty() && judged.error.is_none(), "{judged:?}");
            prop_assert!(judged.commands.iter().all(|command| command.name.is_some()), "{judged:?}");
            prop_assert!(judged.class.looks(), "{judged:?}");
        }
    }
}

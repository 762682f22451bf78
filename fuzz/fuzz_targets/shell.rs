//! Shell commands of every kind, whole and broken: judging them never panics, is the same each time, and what
//! is put behind a command or around it never makes the verdict looser.
#![no_main]

use haft_core::shell::{Ground, Judged, Table, judge};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Every other input is text as it is; the rest is put together from words that shells know.
    match data.split_first() {
        Some((first, rest)) if first % 2 == 0 => check(&String::from_utf8_lossy(rest)),
        _ => {
            let _ = assembled(&mut Unstructured::new(data)).map(|text| check(&text));
        }
    }
});

fn judged(text: &str) -> Judged {
    judge(text, &Ground { cwd: "/srv/project", home: Some("/home/user"), table: Table::shipped() })
}

/// How severe a judgement is, without the places that only a runtime can resolve.
fn severity(judged: &Judged) -> u8 {
    match (&judged.catastrophe, judged.only_reads()) {
        (Some(_), _) => 2,
        (None, false) => 1,
        (None, true) => 0,
    }
}

fn check(text: &str) {
    let alone = judged(text);
    assert_eq!(alone, judged(text), "the same text is judged alike");
    let quoted = format!("'{}'", text.replace('\'', r"'\''"));
    let mut more = vec![format!("bash -c {quoted}"), format!("eval {quoted}"), format!("env sh -c {quoted}")];
    // What is not whole could be completed by anything that follows.
    if alone.error.is_none() && !text.ends_with('\\') && !text.contains("<<") {
        more.extend([
            format!("{text}\nls"),
            format!("{text}; ls"),
            format!("(\n{text}\n)"),
            format!("{{\n{text}\n}} | cat"),
        ]);
    }
    for more in more {
        assert!(severity(&judged(&more)) >= severity(&alone), "{more:?} is looser than {text:?}");
    }
}

/// What commands are made of.
const WORDS: &[&str] = &[
    "ls",
    "cat",
    "rm",
    "-rf",
    "/",
    "~",
    "touch",
    "x",
    "a.txt",
    "git",
    "log",
    "--output=x",
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
    "sh",
    "eval",
    "trap",
    "EXIT",
    "sed",
    "-i",
    "w x",
    "awk",
    "sort",
    "-o",
    "tar",
    "$x",
    "${x:-",
    "${x@P}",
    "}",
    "$(",
    ")",
    "`",
    "'",
    "\"",
    "$'\\x72",
    "((",
    "))",
    "$((",
    "[[",
    "]]",
    "-v",
    "a[",
    "]",
    "{",
    "(",
    "|",
    "|&",
    "||",
    "&&",
    "&",
    ";",
    ";;",
    "\n",
    ">",
    ">>",
    "<",
    "<>",
    "<(",
    ">(",
    "<<E\n",
    "E\n",
    "<<<",
    "2>&1",
    "/dev/null",
    "#",
    "\\",
    "\\\n",
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
    "f()",
    "function",
    "coproc",
    "time",
    "!",
    "x=1",
    "PATH=.",
    "LD_PRELOAD=x",
    "declare",
    "-n",
    "read",
    "printf",
    "*",
    "./*",
    "{a,b}",
    "{1..9}",
    "cd",
    "..",
    "src",
    "\0",
    "\r",
    "\u{1b}[0m",
    "é",
];

fn assembled(u: &mut Unstructured<'_>) -> Result<String> {
    let mut text = String::new();
    for _ in 0..u.int_in_range(1..=24)? {
        text.push_str(u.choose(WORDS)?);
        if u.ratio(4, 5)? {
            text.push(' ');
        }
    }
    Ok(text)
}

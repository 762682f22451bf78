//! Inputs made to be expensive: each has an answer, soon, that is not "it only reads" unless that is true.

use crate::sample::{Verdict, judged, verdict};
use std::time::{Duration, Instant};

/// What is promised, and what an unoptimised build on a busy machine gets.
const SOON: Duration = if cfg!(debug_assertions) { Duration::from_secs(2) } else { Duration::from_millis(50) };
/// As often is tried before a time counts: others use the machine as well.
const TRIES: usize = 5;

/// The longest text that is looked at, and more than that.
const SIZES: &[usize] = &[1_000, 10_000, 130_000, 1_000_000];

/// Judges, and says how long that took at best.
fn timed(command: &str) -> (Verdict, Duration) {
    let mut best = Duration::MAX;
    let mut found = Verdict::Deny;
    for _ in 0..TRIES {
        let begun = Instant::now();
        let judged = judged(command);
        best = best.min(begun.elapsed());
        found = verdict(&judged);
        if best <= SOON {
            break;
        }
    }
    (found, best)
}

/// Fails with all that were too slow or were allowed, rather than the first.
fn all_soon(commands: impl IntoIterator<Item = (String, String)>, least: Verdict) {
    let mut wrong = Vec::new();
    for (name, command) in commands {
        let (found, took) = timed(&command);
        if took > SOON {
            wrong.push(format!("{name}: took {took:?}"));
        }
        if found < least {
            wrong.push(format!("{name}: is {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `open` so often that the text has about `size` bytes, then a command, then as many of `close`; and at the end
/// something that must not be overlooked, however the rest is read.
fn nested(open: &str, close: &str, size: usize) -> (String, String) {
    let depth = size / (open.len() + close.len()).max(1);
    let text = format!("{}touch x{}\ntouch y", open.repeat(depth), close.repeat(depth));
    (format!("{depth} × {open:?} … {close:?}"), text)
}

/// Everything that nests, and how it ends.
const NESTS: &[(&str, &str)] = &[
    ("$(", ")"),
    ("echo $(", ")"),
    ("echo \"$(", ")\""),
    ("cat <(", ")"),
    ("cat >(", ")"),
    ("(", ")"),
    ("( ", " )"),
    ("{ ", "; }"),
    ("echo ${x:-", "}"),
    ("${x:-", "}"),
    ("echo $((1+", "))"),
    ("$((", "))"),
    ("((", "))"),
    ("echo ${a[", "]}"),
    ("a[", "]"),
    ("[[ ( ", " ) ]]"),
    ("! ", ""),
    ("if ", "; then :; fi"),
    ("if true; then ", "; fi"),
    ("while ", "; do :; done"),
    ("for x in a; do ", "; done"),
    ("case x in x) ", ";; esac"),
    ("f() { ", "; }"),
    ("function f { ", "; }"),
    ("time ", ""),
    ("coproc ", ""),
    ("eval ", ""),
    ("env ", ""),
    ("sudo ", ""),
    ("nice nohup timeout 5 ", ""),
    ("xargs ", ""),
    ("command ", ""),
    ("exec ", ""),
    ("{a,", "}"),
    ("echo {a,b}", ""),
    ("echo \"${x:-", "}\""),
    ("`", "`"),
    ("cat <<E\n$(", ")\nE\n"),
    ("trap '", "' EXIT"),
    ("@(", ")"),
    ("x=(", ")"),
    ("x=$(", ")"),
    ("find . -exec ", " \\;"),
    ("bash -c ", ""),
];

#[test]
fn whatever_nests_has_an_answer() {
    let all = NESTS.iter().flat_map(|(open, close)| {
        let whole = SIZES.iter().map(move |size| nested(open, close, *size));
        // Ten thousand of each, whatever that is in bytes, and as many that never end.
        let ten = 10_000 * (open.len() + close.len());
        whole.chain([nested(open, close, ten), nested(open, "", 10_000 * open.len())])
    });
    all_soon(all, Verdict::Ask);
}

#[test]
fn backquotes_that_double_their_backslashes_have_an_answer() {
    let nested =
        (0..14).fold("touch x".to_owned(), |inner, _| format!("`{}`", inner.replace('\\', r"\\").replace('`', r"\`")));
    all_soon([("backquotes".to_owned(), format!("echo {nested}"))], Verdict::Ask);
}

#[test]
fn quoted_shells_within_shells_have_an_answer() {
    let nested = (0..9).fold("touch x".to_owned(), |inner, _| format!("bash -c '{}'", inner.replace('\'', r"'\''")));
    let evals = (0..200).fold("touch x".to_owned(), |inner, _| format!("eval {inner}"));
    all_soon([("bash -c".to_owned(), nested), ("eval".to_owned(), evals)], Verdict::Ask);
}

#[test]
fn whatever_does_not_end_has_an_answer() {
    let starts =
        ["'", "\"", "$'", "`", "$(", "${", "$((", "<(", "((", "[[ ", "{ ", "( ", "a=(", "cat <<E\n", "case x in "];
    let all = starts.iter().flat_map(|start| {
        SIZES
            .iter()
            .map(move |size| (format!("{start:?} and {size} bytes"), format!("{start}{}", "x ".repeat(size / 2))))
    });
    all_soon(all, Verdict::Ask);
}

/// Something repeated, then something that must not be overlooked.
fn repeated(piece: &str, end: &str) -> Vec<(String, String)> {
    SIZES
        .iter()
        .map(|size| (format!("{piece:?} in {size} bytes"), format!("{}{end}", piece.repeat(size / piece.len()))))
        .collect()
}

#[test]
fn whatever_is_long_has_an_answer() {
    let pieces = [
        ("ls; ", "touch x"),
        ("ls\n", "touch x"),
        ("ls | ", "touch x"),
        ("ls && ", "touch x"),
        ("ls || ", "touch x"),
        ("ls & ", "touch x"),
        ("cat a.txt > /dev/null; ", "touch x"),
        ("2>&1 ", "touch x"),
        ("> /dev/null ", "touch x"),
        ("x=1 ", "touch x"),
        ("x=1; ", "touch x"),
        ("x=$x$x; ", "touch $x"),
        ("x=\"$x$x\"; ", "touch \"$x\""),
        ("x=a{b,c}$x; ", "touch $x"),
        ("x+=(a b); ", "touch x"),
        ("cd src; ", "touch x"),
        ("cd src || cd docs; ", "touch x"),
        ("cd src && ", "touch x"),
        ("pushd src; ", "touch x"),
        ("if true; then cd src; else cd docs; fi; ", "touch x"),
        ("f() { f; }; f; ", "touch x"),
        ("$(echo ", "touch x"),
        ("cat <<E\nx\nE\n", "touch x"),
        ("\\\n", "touch x"),
        ("# x\n", "touch x"),
        (" ", "touch x"),
        ("\t", "touch x"),
        ("\n", "touch x"),
        ("\\", "touch x"),
        ("''", "touch x"),
        ("\"\"", "touch x"),
        ("${", "touch x"),
        ("$", "touch x"),
        ("*", "touch x"),
        ("?", "touch x"),
        ("[", "touch x"),
        ("a*", "; touch x"),
        ("../", "; touch x"),
        ("{a,b}", "; touch x"),
        ("{1..9}", "; touch x"),
        ("\0", "touch x"),
        ("\r", "touch x"),
        ("\r\n", "touch x"),
        ("\u{fffd}", "touch x"),
        ("\u{1b}[31m", "touch x"),
        ("é日", "; touch x"),
        ("a=b ", "touch x"),
    ];
    all_soon(pieces.iter().flat_map(|(piece, end)| repeated(piece, end)), Verdict::Ask);
}

#[test]
fn very_many_words_have_an_answer() {
    let words = |program: &str, word: &str, count: usize| {
        (format!("{program} and {count} × {word:?}"), format!("{program} {}; touch x", vec![word; count].join(" ")))
    };
    let mut all = Vec::new();
    for program in
        ["echo", "cat", "ls", "grep x", "sort", "rm", "find .", "git log", "sed -e p", "tar", "env", "xargs", "unknown"]
    {
        for word in ["x", "-x", "--xyz", "-", "--", "*", "$x", "\"$x\"", "a=b", "'a b'", "{}", "\\;", "+"] {
            all.push(words(program, word, 10_000));
            all.push(words(program, word, 100_000));
        }
    }
    for test in ["[", "test", "[[", "expr"] {
        let end = if test == "[" {
            "]"
        } else if test == "[[" {
            "]]"
        } else {
            ""
        };
        for word in ["a -a", "! ", "a = b -o", "a &&", "\\(", "("] {
            let text = format!("{test} {} b {end}; touch x", vec![word; 10_000].join(" "));
            all.push((format!("{test} {word:?}"), text));
        }
    }
    all_soon(all, Verdict::Ask);
}

#[test]
fn expansions_are_not_carried_out_without_end() {
    let doubling = |times: usize| format!("touch a{}", "{b,c}".repeat(times));
    let deep = |times: usize| (0..times).fold("x".to_owned(), |inner, _| format!("{{{inner},{inner}}}"));
    let growing = (0..60).map(|at| format!("x{}=$x{at}$x{at}; ", at + 1)).collect::<String>();
    let loops = "for a in {1..99}; do ".repeat(40) + "touch $a; " + &"done; ".repeat(40);
    let all = [
        ("a million", "touch {1..1000000}".to_owned()),
        ("a lot", "touch {1..99999999999999999999}".to_owned()),
        ("backwards", "touch {9223372036854775807..-9223372036854775808}".to_owned()),
        ("in steps", "touch {1..9223372036854775807..9223372036854775806} {1..10..0}".to_owned()),
        ("letters", "touch {a..z}{a..z}{a..z}{a..z}{a..z}{a..z}".to_owned()),
        ("products of ranges", "touch {1..1000}{1..1000}{1..1000}".to_owned()),
        ("doubling", doubling(64)),
        ("doubling for long", doubling(20_000)),
        ("doubling inside", format!("touch {}", deep(12))),
        ("padded", "touch {0000000001..1000000}".to_owned()),
        ("growing variables", format!("x0=aaaaaaaa; {growing}touch \"$x60\"")),
        ("growing unquoted", format!("x0='* *'; {growing}touch $x60")),
        ("loops in loops", loops),
        ("a counted loop", "for ((i = 0; i < 1000000000; i++)); do touch x; done".to_owned()),
        (
            "many of each",
            format!("for a in {}; do for b in {}; do touch $a$b; done; done", "x ".repeat(5_000), "y ".repeat(5_000)),
        ),
        (
            "a shift",
            "echo $((1 << 99999999999)) $((9223372036854775807 + 1)) $((-9223372036854775808 / -1)); touch x"
                .to_owned(),
        ),
        ("a power", "echo $((2 ** 999999999)); touch x".to_owned()),
        ("no number", format!("echo $(({})); touch x", "9".repeat(10_000))),
        ("long sums", format!("echo $(({}1)); touch x", "1+".repeat(60_000))),
        ("patterns", format!("x={}; touch ${{x//*a*a*a*a*a*b/c}}", "a".repeat(10_000))),
        ("a sed script", format!("sed '{}' a.txt; touch x", "s/a/b/;".repeat(10_000))),
        ("blocks in sed", format!("sed '{}' a.txt; touch x", "{".repeat(50_000))),
        ("an awk program", format!("awk '{}' a.txt; touch x", "{print $1}".repeat(10_000))),
        ("blocks in awk", format!("awk '{}' a.txt; touch x", "(".repeat(50_000))),
        ("a git format", format!("git log --format={}; touch x", "%h".repeat(50_000))),
    ];
    all_soon(all.map(|(name, command)| (name.to_owned(), command)), Verdict::Ask);
}

#[test]
fn a_fork_bomb_is_refused_however_it_is_spelled() {
    let bombs = [
        ":(){ :|:& };:",
        ": () { : | : & } ; :",
        "bomb() { bomb | bomb & }; bomb",
        "f(){ f|f& };f",
        ":(){\n:|:&\n}\n:",
    ];
    all_soon(bombs.map(|bomb| (bomb.to_owned(), bomb.to_owned())), Verdict::Deny);
    let around = bombs.map(|bomb| (bomb.to_owned(), format!("bash -c '{bomb}'; ls; ( {bomb}\n)")));
    all_soon(around, Verdict::Deny);
}

#[test]
fn bytes_that_are_not_text_have_an_answer() {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        // xorshift: the same bytes on every machine.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut all = Vec::new();
    for length in [10, 100, 1_000, 10_000, 100_000] {
        for round in 0..8 {
            let bytes: Vec<u8> = (0..length).map(|_| next().to_le_bytes()[0]).collect();
            all.push((
                format!("{length} bytes, round {round}"),
                format!("{}; touch x", String::from_utf8_lossy(&bytes)),
            ));
            let ascii: String = bytes.iter().map(|byte| char::from(byte & 0x7f)).collect();
            all.push((format!("{length} characters, round {round}"), ascii));
        }
    }
    // Some of the short ones may be harmless words of which nothing is known: never an error, always soon.
    all_soon(all, Verdict::Allow);
}

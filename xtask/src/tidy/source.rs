//! What every Rust file owes its reader: a head, a size that fits in one, no loose ends.

use super::scan::{self, Function};
use super::{Finding, Tree};
use std::path::Path;

const FILE_MAX: usize = 600;
const FUNCTION_MAX: usize = 80;

/// Words that promise to come back later, written in halves so that no search for them ends here.
const PROMISES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
/// The macros that say the same.
const HOLES: &[&str] = &[concat!("to", "do"), concat!("unimple", "mented")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(|(path, text)| file(path, text)).collect()
}

fn file(path: &Path, source: &str) -> Vec<Finding> {
    let parts = scan::parts(source);
    let mut said = head(source);
    said.extend(size(path, source, &parts.code));
    said.extend(promises(source, &parts));
    said.extend(attributes(source, &parts.code));
    said.extend(safety(&parts));
    said.into_iter().map(|(line, message)| Finding::new(path, line, message)).collect()
}

type Said = Vec<(usize, String)>;

fn head(source: &str) -> Said {
    let headed = source.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.starts_with("//!"));
    if headed { Vec::new() } else { vec![(1, "the module has no `//!` head".to_owned())] }
}

fn size(path: &Path, source: &str, code: &str) -> Said {
    let mut said = Vec::new();
    if is_test(path) {
        return said;
    }
    let lines = own_lines(source, code);
    if lines > FILE_MAX {
        said.push((1, format!("{lines} lines are more than {FILE_MAX}: split it")));
    }
    for function in own_functions(code) {
        if function.lines > FUNCTION_MAX {
            let message = format!("`{}` has {} lines, more than {FUNCTION_MAX}", function.name, function.lines);
            said.push((function.line, message));
        }
    }
    said
}

/// Files that are tests from end to end.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

/// Lines up to the tests.
fn own_lines(source: &str, code: &str) -> usize {
    scan::test_modules(code).first().map_or(source.lines().count(), |range| scan::line_at(code, range.start) - 1)
}

fn own_functions(code: &str) -> Vec<Function> {
    let tests = scan::test_modules(code);
    let all = scan::functions(code).into_iter();
    all.filter(|function| !tests.iter().any(|range| range.contains(&function.at))).collect()
}

fn promises(source: &str, parts: &scan::Parts) -> Said {
    let in_comments = PROMISES.iter().flat_map(|word| scan::words(&parts.comments, word).map(move |at| (word, at)));
    let macros = HOLES.iter().flat_map(|word| scan::words(&parts.code, word).map(move |at| (word, at)));
    let macros = macros.filter(|(word, at)| parts.code[at + word.len()..].starts_with('!'));
    let kept = |at: usize| {
        let line = source.lines().nth(scan::line_at(source, at) - 1).unwrap_or_default();
        line.split('#').skip(1).any(|after| after.starts_with(|c: char| c.is_ascii_digit()))
    };
    let loose = in_comments.chain(macros).filter(|(_, at)| !kept(*at));
    loose.map(|(word, at)| (scan::line_at(source, at), format!("`{word}` without the number of an issue"))).collect()
}

fn attributes(source: &str, code: &str) -> Said {
    let mut said = Vec::new();
    for range in scan::attributes(code) {
        let line = scan::line_at(code, range.start);
        let attribute = &code[range.clone()];
        let lists =
            |word| scan::words(attribute, word).any(|at| attribute[at + word.len()..].trim_start().starts_with('('));
        if scan::words(attribute, "ignore").next() == Some(0) {
            said.push((line, "an ignored test proves nothing".to_owned()));
        }
        if lists("allow") {
            said.push((line, "`allow`: use `expect` with a reason".to_owned()));
        }
        if lists("expect") && !source[range].contains("reason") {
            said.push((line, "`expect` without a reason".to_owned()));
        }
    }
    said
}

/// How far above an unsafe block its argument may stand.
const ARGUMENT_REACH: usize = 6;

fn safety(parts: &scan::Parts) -> Said {
    let comments: Vec<&str> = parts.comments.lines().collect();
    let blocks = scan::words(&parts.code, "unsafe").filter(|at| {
        let after = parts.code[at + "unsafe".len()..].trim_start();
        after.starts_with('{') || after.starts_with("impl")
    });
    let argued = |line: usize| {
        let above = line.saturating_sub(ARGUMENT_REACH)..line;
        comments.get(above).unwrap_or_default().iter().any(|comment| comment.contains("SAFETY:"))
    };
    let lines = blocks.map(|at| scan::line_at(&parts.code, at)).filter(|line| !argued(*line));
    lines.map(|line| (line, "unsafe without a `SAFETY:` argument".to_owned())).collect()
}

/// How large files and functions are, to be compared with the marks in the style guide.
pub(super) fn measure(tree: &Tree) -> String {
    let (mut files, mut functions, mut docs, mut lines) = (Vec::new(), Vec::new(), 0, 0);
    for (path, source) in tree.rust().filter(|(path, _)| !is_test(path)) {
        let code = scan::parts(source).code;
        let own = own_lines(source, &code);
        let is_doc = |line: &&str| line.trim_start().starts_with("//");
        docs += source.lines().take(own).filter(is_doc).count();
        lines += own;
        functions.extend(own_functions(&code).iter().map(|function| function.lines));
        if path.components().any(|part| part.as_os_str() == "src") {
            files.push(own);
        }
    }
    format!(
        "files median / p90 / max: {}; functions: {}; comments: {} % of {lines} lines",
        spread(&mut files),
        spread(&mut functions),
        docs * 100 / lines.max(1),
    )
}

fn spread(values: &mut [usize]) -> String {
    values.sort_unstable();
    let at = |percent: usize| values.get((values.len().saturating_sub(1)) * percent / 100).copied().unwrap_or_default();
    format!("{} / {} / {}", at(50), at(90), at(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(source: &str) -> Vec<String> {
        file(Path::new("src/x.rs"), source).iter().map(ToString::to_string).collect()
    }

    fn promise(word: &str) -> String {
        format!("//! Head.\n// {word}: later\n// {word}(#12): later\nlet s = \"{word}\";\n")
    }

    #[test]
    fn a_promise_needs_an_issue() {
        for word in PROMISES {
            assert_eq!(said(&promise(word)), [format!("src/x.rs:2: `{word}` without the number of an issue")]);
        }
        let hole = format!("//! Head.\nfn f() {{ {}!() }}\n", HOLES[0]);
        assert_eq!(said(&hole), [format!("src/x.rs:2: `{}` without the number of an issue", HOLES[0])]);
        assert!(said("//! Head.\nfn todo() {}\n").is_empty());
    }

    #[test]
    fn a_module_needs_a_head() {
        assert_eq!(said("fn f() {}\n"), ["src/x.rs:1: the module has no `//!` head"]);
        assert!(said("\n//! Head.\n#![no_main]\n").is_empty());
    }

    #[test]
    fn attributes_give_reasons() {
        // The attribute is written in halves, so that no search for ignored tests ends here.
        let source = concat!(
            "//! Head.\n#[allow(x)]\n#[ig",
            "nore = \"slow\"]\n#[expect(x)]\n#[expect(\n    x,\n    reason = \"y\"\n)]\n\
                      #[cfg_attr(test, allow(x))]\n#[serde(ignore)]\nfn f() { a.allow(b) }\n"
        );
        assert_eq!(
            said(source),
            [
                "src/x.rs:2: `allow`: use `expect` with a reason",
                "src/x.rs:3: an ignored test proves nothing",
                "src/x.rs:4: `expect` without a reason",
                "src/x.rs:9: `allow`: use `expect` with a reason",
            ]
        );
    }

    #[test]
    fn long_things_are_found_but_tests_may_be_long() {
        let long = format!("fn f() {{\n{}}}\n", "    x();\n".repeat(FUNCTION_MAX));
        assert_eq!(said(&format!("//! Head.\n{long}")), ["src/x.rs:2: `f` has 82 lines, more than 80"]);
        assert!(said(&format!("//! Head.\n#[cfg(test)]\nmod tests {{\n{long}}}\n")).is_empty());
        let file = format!("//! Head.\n{}", "const X: u8 = 1;\n".repeat(FILE_MAX));
        assert_eq!(said(&file), ["src/x.rs:1: 601 lines are more than 600: split it"]);
    }

    #[test]
    fn unsafe_is_argued() {
        let bare = "//! Head.\nfn f() { unsafe { g() } }\n";
        assert_eq!(said(bare), ["src/x.rs:2: unsafe without a `SAFETY:` argument"]);
        assert!(said("//! Head.\n// SAFETY: g has no conditions.\nfn f() { unsafe { g() } }\n").is_empty());
    }

    #[test]
    fn the_spread_of_some_values() {
        assert_eq!(spread(&mut [5, 1, 3, 2, 4]), "3 / 4 / 5");
        assert_eq!(spread(&mut []), "0 / 0 / 0");
    }
}

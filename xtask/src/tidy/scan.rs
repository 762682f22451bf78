//! Reads Rust just well enough to measure it: which bytes are code, which are comments, which are text in
//! quotes; where functions begin and end; what stands in attributes. Not a parser, but right about nested
//! comments, raw strings, and the quote that begins both a lifetime and a character.

use std::ops::Range;

/// A source file taken apart. Every part is as long as the source, with blanks for what is not its own,
/// so that a position means the same in each.
pub(super) struct Parts {
    /// Code, without comments and without what stands in quotes.
    pub(super) code: String,
    /// Comments only.
    pub(super) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Quoted,
}

/// Takes a source file apart.
pub(super) fn parts(source: &str) -> Parts {
    let mut code = String::with_capacity(source.len());
    let mut comments = String::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        let (kind, length) = next(source, at);
        for c in source[at..at + length].chars() {
            let blank = if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) };
            let own = c.to_string();
            code.push_str(if kind == Kind::Code { &own } else { &blank });
            comments.push_str(if kind == Kind::Comment { &own } else { &blank });
        }
        at += length;
    }
    Parts { code, comments }
}

/// What begins at a position, and how long it is.
fn next(source: &str, at: usize) -> (Kind, usize) {
    let rest = &source[at..];
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if rest.starts_with('"') {
        return (Kind::Quoted, quoted(rest, '"'));
    }
    if rest.starts_with('\'') {
        return character(rest).map_or((Kind::Code, 1), |length| (Kind::Quoted, length));
    }
    let inside_word = source[..at].chars().next_back().is_some_and(is_word);
    match (inside_word, raw_string(rest)) {
        (false, Some(length)) => (Kind::Quoted, length),
        _ => (Kind::Code, first),
    }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest.as_bytes().get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of a quotation that may escape its end.
fn quoted(rest: &str, end: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == end => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character literal; nothing if the quote begins a lifetime or a label.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.chars().skip(1);
    match (chars.next()?, chars.next()) {
        ('\\', _) => Some(quoted(rest, '\'')),
        (c, Some('\'')) => Some(2 + c.len_utf8()),
        _ => None,
    }
}

/// The length of a raw string, with its prefix.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"]
        .into_iter()
        .find(|prefix| rest.strip_prefix(prefix).is_some_and(|after| after.trim_start_matches('#').starts_with('"')))?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = prefix.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len()))
}

/// Whether a character can be part of a name.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The line, from one, at a position.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Where a word stands by itself.
pub(super) fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> {
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].chars().next_back().is_some_and(is_word);
        let after = text[at + word.len()..].chars().next().is_some_and(is_word);
        !before && !after
    })
}

/// From an opening bracket, what it holds up to its partner.
fn enclosed(code: &str, open: usize) -> Range<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return open + 1..at;
        }
    }
    code.len().min(open + 1)..code.len()
}

/// Every attribute: where its content stands in the code.
pub(super) fn attributes(code: &str) -> Vec<Range<usize>> {
    let starts = code.match_indices('#').filter_map(|(at, _)| {
        let after = code[at + 1..].strip_prefix('!').map_or(at + 1, |_| at + 2);
        code[after..].starts_with('[').then_some(after)
    });
    starts.map(|open| enclosed(code, open)).collect()
}

/// Modules that exist only for tests: from the attribute to the end.
pub(super) fn test_modules(code: &str) -> Vec<Range<usize>> {
    let tests = attributes(code).into_iter().filter(|range| code[range.clone()].replace(' ', "") == "cfg(test)");
    tests
        .filter_map(|range| {
            let after = &code[range.end + 1..];
            let item = after.trim_start();
            let item = item.strip_prefix("pub(crate) ").unwrap_or(item);
            let open = range.end + 1 + after.find(['{', ';'])?;
            (item.starts_with("mod ") && code[open..].starts_with('{'))
                .then(|| range.start..enclosed(code, open).end + 1)
        })
        .collect()
}

/// A function and the lines it takes, signature included.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) lines: usize,
    /// Where it begins in the code.
    pub(super) at: usize,
}

/// Every function that has a body.
pub(super) fn functions(code: &str) -> Vec<Function> {
    words(code, "fn").filter_map(|at| function(code, at)).collect()
}

fn function(code: &str, at: usize) -> Option<Function> {
    let name: String = code[at + 2..].trim_start().chars().take_while(|c| is_word(*c) || *c == '#').collect();
    if name.is_empty() {
        return None;
    }
    let mut open = at;
    loop {
        open += code[open..].find(['(', '[', '{', ';'])?;
        match code.as_bytes()[open] {
            b';' => return None,
            b'{' => break,
            _ => open = enclosed(code, open).end + 1,
        }
        if open >= code.len() {
            return None;
        }
    }
    let end = enclosed(code, open).end.min(code.len());
    let (line, last) = (line_at(code, at), line_at(code, end));
    Some(Function { name, line, lines: last - line + 1, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(source: &str) -> Vec<(String, usize)> {
        functions(&parts(source).code).into_iter().map(|function| (function.name, function.lines)).collect()
    }

    #[test]
    fn quotes_comments_and_lifetimes_are_told_apart() {
        let source = concat!(
            "let a = '{'; let b = '\\''; let c = b'\"'; // fn x() { }\n",
            "fn f<'a>(x: &'a str) -> &'a str { /* } /* } */ } */ x }\n",
            "let r = r##\"}\"#} \"##; let s = \"\\\"}\"; let l = 'outer: loop {}; let e = 'é';\n",
            "let t = br\"}\"; let r#type = 1; let u = c\"}\"; bar\"}\";",
        );
        let parts = parts(source);
        assert_eq!(parts.code.len(), source.len());
        assert_eq!(parts.code.matches('}').count(), 2, "{}", parts.code);
        assert_eq!(parts.comments.trim().lines().next(), Some("// fn x() { }"));
        assert!(parts.comments.contains("/* } /* } */ } */"));
        assert!(parts.code.contains("'outer: loop {}") && parts.code.contains("r#type"));
        assert!(parts.code.contains("fn f<'a>(x: &'a str) -> &'a str {"));
    }

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let source = "\
trait T {
    fn declared(&self) -> [u8; { 1 + 1 }];
    fn given(&self) {
        \"}\";
    }
}
const fn one() -> fn(u8) -> u8 { |x| x }
fn spread(
    f: impl Fn() -> u8,
) -> u8
where
    u8: Copy,
{
    // }
    match '}' { _ => f() }
}
";
        let expected = [("given", 3), ("one", 1), ("spread", 9)].map(|(name, lines)| (name.to_owned(), lines));
        assert_eq!(lengths(source), expected);
    }

    #[test]
    fn an_unfinished_source_ends_quietly() {
        for source in ["fn f(", "fn f() {", "/* fn", "\"abc", "r#\"abc", "'", "fn", "#[cfg(test", "fn f()"] {
            functions(&parts(source).code);
            test_modules(&parts(source).code);
        }
    }

    #[test]
    fn test_modules_are_found_whole() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nmod outside;\nfn c() {}\n";
        let code = parts(source).code;
        let found = test_modules(&code);
        assert_eq!(found.len(), 1);
        assert!(code[found[0].clone()].contains("fn b") && code[found[0].clone()].ends_with('}'));
    }

    #[test]
    fn attributes_may_span_lines_and_nest() {
        let code = parts("#![a]\n#[b(\n    c[d],\n)]\nlet x = #\"]\";\nlet y = [1];").code;
        let found: Vec<String> =
            attributes(&code).into_iter().map(|range| code[range].replace([' ', '\n'], "")).collect();
        assert_eq!(found, ["a", "b(c[d],)"]);
    }
}

//! From a glob to a regular expression.

/// A glob that stands for more than this many is not read.
const ALTERNATIVES_MAX: usize = 1000;
/// Nor is one whose alternatives take more than this many bytes to write out.
const WRITTEN_MAX: usize = 4 << 20;

/// The classes that have a name, as in `[[:digit:]]`. They hold ASCII characters only.
const NAMED: &[&str] =
    &["alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"];

/// The globs without braces that a glob stands for.
pub(super) fn alternatives(glob: &str) -> Result<Vec<String>, String> {
    let (mut pending, mut done, mut written) = (vec![glob.to_owned()], Vec::new(), 0);
    while let Some(glob) = pending.pop() {
        written += glob.len();
        if done.len() + pending.len() >= ALTERNATIVES_MAX || written > WRITTEN_MAX {
            return Err(format!("its braces stand for more than {ALTERNATIVES_MAX} globs"));
        }
        match Braces::first(&glob)? {
            None => done.push(glob),
            Some(Braces { before, inner, after }) => {
                pending.extend(inner.iter().rev().map(|inner| format!("{before}{inner}{after}")));
            }
        }
    }
    Ok(done)
}

/// A glob at its first braces.
struct Braces<'g> {
    before: &'g str,
    inner: Vec<&'g str>,
    after: &'g str,
}

impl<'g> Braces<'g> {
    fn first(glob: &'g str) -> Result<Option<Self>, String> {
        let (mut depth, mut open, mut from, mut inner) = (0_usize, 0, 0, Vec::new());
        let mut at = 0;
        while let Some(byte) = glob.as_bytes().get(at) {
            match byte {
                b'\\' => at += 1,
                b'[' => at += class_length(&glob[at..]).map_or(0, |length| length - 1),
                b'{' => {
                    if depth == 0 {
                        (open, from) = (at, at + 1);
                    }
                    depth += 1;
                }
                b',' if depth == 1 => {
                    inner.push(&glob[from..at]);
                    from = at + 1;
                }
                b'}' if depth == 1 => {
                    inner.push(&glob[from..at]);
                    return Ok(Some(Self { before: &glob[..open], inner, after: &glob[at + 1..] }));
                }
                b'}' if depth == 0 => return Err(r"`}` without `{`; write `\}` for the character".to_owned()),
                b'}' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        if depth == 0 { Ok(None) } else { Err(r"`{` without `}`; write `\{` for the character".to_owned()) }
    }
}

/// How long the class is that a text begins with, with its brackets. None if it does not end.
fn class_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1 + usize::from(matches!(bytes.get(1), Some(b'!' | b'^')));
    let first = at;
    loop {
        match bytes.get(at)? {
            b']' if at > first => return Some(at + 1),
            b'\\' => at += 2,
            b'[' if bytes.get(at + 1) == Some(&b':') => at += name_length(&text[at..]).unwrap_or(1),
            _ => at += 1,
        }
    }
}

/// How long `[:name:]` is, if the text begins with one.
fn name_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("[:")?;
    let end = rest.find(|c: char| !c.is_ascii_alphabetic())?;
    rest[end..].starts_with(":]").then_some(end + 4)
}

/// A glob without braces, read.
pub(super) struct Parsed {
    /// What it is as a regular expression.
    pub(super) regex: String,
    /// The literal text that it ends with.
    pub(super) end: String,
}

impl Parsed {
    /// Reads a glob without braces.
    pub(super) fn of(glob: &str) -> Result<Self, String> {
        let mut parsed = Self { regex: String::new(), end: String::new() };
        let (mut rest, mut at_name) = (glob, true);
        while let Some(c) = rest.chars().next() {
            let length = match c {
                '*' => parsed.star(at_name, rest),
                '?' => parsed.wildcard("[^/]", 1),
                '[' => {
                    let length = class_length(rest).ok_or(r"`[` without `]`; write `\[` for the character")?;
                    parsed.wildcard(&class_regex(&rest[1..length - 1])?, length)
                }
                '\\' => {
                    let escaped = rest[1..].chars().next().ok_or(r"a lone `\` at its end")?;
                    parsed.literal(escaped);
                    1 + escaped.len_utf8()
                }
                c => {
                    parsed.literal(c);
                    c.len_utf8()
                }
            };
            at_name = rest[..length].ends_with('/');
            rest = &rest[length..];
        }
        Ok(parsed)
    }

    fn literal(&mut self, c: char) {
        self.regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
        self.end.push(c);
    }

    /// Adds a wildcard of this length, and returns it.
    fn wildcard(&mut self, regex: &str, length: usize) -> usize {
        self.end.clear();
        self.regex.push_str(regex);
        length
    }

    /// Adds the stars that the text begins with. Two reach across slashes only as a whole name.
    fn star(&mut self, at_name: bool, text: &str) -> usize {
        let stars = text.bytes().take_while(|byte| *byte == b'*').count();
        match text.as_bytes().get(stars) {
            Some(b'/') if at_name && stars > 1 => self.wildcard("(?:.*/)?", stars + 1),
            None if at_name && stars > 1 => self.wildcard(".+", stars),
            _ => self.wildcard("[^/]*", stars),
        }
    }
}

/// A class from inside its brackets.
fn class_regex(class: &str) -> Result<String, String> {
    let (negated, members) = match class.strip_prefix(['!', '^']) {
        Some(members) => ("^", members),
        None => ("", class),
    };
    let mut regex = String::new();
    let mut rest = members;
    while !rest.is_empty() {
        if let Some(length) = name_length(rest) {
            let name = &rest[2..length - 2];
            if !NAMED.contains(&name) {
                return Err(format!("there is no class `[:{name}:]`"));
            }
            regex.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let first = member(&mut rest).ok_or(r"a lone `\` in a class")?;
        let last = match rest.strip_prefix('-') {
            Some(after) if !after.is_empty() => {
                rest = after;
                member(&mut rest).ok_or(r"a lone `\` in a class")?
            }
            _ => first,
        };
        if first > last {
            return Err(format!("the range `{first}-{last}` is empty"));
        }
        let escaped = |c: char| format!(r"\u{{{:x}}}", u32::from(c));
        regex.push_str(&format!("{}-{}", escaped(first), escaped(last)));
    }
    // A class stays within a name, whatever it holds.
    Ok(format!("[[{negated}{regex}]&&[^/]]"))
}

fn member(rest: &mut &str) -> Option<char> {
    let mut chars = rest.chars();
    let c = match chars.next()? {
        '\\' => chars.next()?,
        c => c,
    };
    *rest = chars.as_str();
    Some(c)
}

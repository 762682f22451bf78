//! Finding a text however it is written: as it is, or with some of its characters escaped as URLs, JSON and HTML do.

use haft_core::secret::MASK;

/// So often something may have been escaped.
const AGAIN: usize = 4;

/// The text without what is written in it, in whatever way; none if it is not in it. The longest is looked for first.
pub(crate) fn masked(text: &str, secrets: &[String]) -> Option<String> {
    let begins = |byte: u8| b"\\%&".contains(&byte) || secrets.iter().any(|secret| secret.as_bytes()[0] == byte);
    let (mut out, mut done) = (String::new(), 0);
    for (at, byte) in text.bytes().enumerate() {
        if at < done || !begins(byte) {
            continue;
        }
        if let Some(length) = secrets.iter().find_map(|secret| length(&text[at..], secret)) {
            out.push_str(&text[done..at]);
            out.push_str(MASK);
            done = at + length;
        }
    }
    (done > 0).then(|| {
        out.push_str(&text[done..]);
        out
    })
}

/// How long a text is that begins here, as it is written.
fn length(rest: &str, wanted: &str) -> Option<usize> {
    wanted.chars().try_fold(0, |at, c| Some(at + one(&rest[at..], c)?))
}

/// How long one character is, as it is written.
fn one(rest: &str, wanted: char) -> Option<usize> {
    let first = rest.chars().next()?;
    let escaped = match first {
        '\\' => backslashed(rest, wanted),
        '%' => {
            // What was escaped twice: `%252B`.
            let again = rest.as_bytes()[1..].chunks(2).take(AGAIN).take_while(|pair| *pair == b"25").count();
            let found = [1, 1 + 2 * again].into_iter().find(|at| number(rest.get(*at..at + 2), 16) == Some(wanted));
            found.map(|at| at + 2)
        }
        '+' if wanted == ' ' => Some(1),
        '&' => {
            let end = rest.bytes().take(12).position(|byte| byte == b';');
            end.filter(|end| reference(&rest[1..*end]) == Some(wanted)).map(|end| end + 1)
        }
        _ => None,
    };
    // First as an escape: `&amp;` begins with what it means.
    escaped.or_else(|| (first == wanted).then(|| first.len_utf8()))
}

/// `\u002b`, `\x2b`, `\/`, however often it was escaped.
fn backslashed(rest: &str, wanted: char) -> Option<usize> {
    let slashes = rest.bytes().take(2 * AGAIN).take_while(|byte| *byte == b'\\').count();
    let inner = &rest[slashes..];
    let coded = |mark: char, digits: usize| {
        let code = inner.strip_prefix(mark)?.get(..digits);
        (number(code, 16) == Some(wanted)).then_some(slashes + 1 + digits)
    };
    let plain = || inner.starts_with(wanted).then(|| slashes + wanted.len_utf8());
    coded('u', 4).or_else(|| coded('x', 2)).or_else(plain)
}

fn number(digits: Option<&str>, base: u32) -> Option<char> {
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    char::from_u32(u32::from_str_radix(digits, base).ok()?)
}

/// The signs that keys are made of, by the names that HTML has for them.
const NAMES: &[(&str, char)] = &[
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("gt", '>'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lt", '<'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rpar", ')'),
    ("semi", ';'),
    ("sol", '/'),
    ("vert", '|'),
];

/// The character that a reference of HTML means.
fn reference(name: &str) -> Option<char> {
    match name.strip_prefix('#') {
        Some(code) => match code.strip_prefix(['x', 'X']) {
            Some(code) => number(Some(code), 16),
            None => number(Some(code), 10),
        },
        None => NAMES.iter().find(|(known, _)| *known == name).map(|(_, c)| *c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_however_it_is_written() {
        let secrets = ["k3y/a+b==&c".to_owned()];
        for written in [
            "k3y/a+b==&c",
            r"k3y\/a+b==&c",
            r"k3y\/a\u002bb\u003d\u003D\u0026c",
            r"k3y\\/a+b\x3d\x3D&c",
            "k3y%2Fa%2bb%3D%3d%26c",
            "k3y%252Fa%252Bb==%2526c",
            "k3y&#47;a&#43;b&equals;=&amp;c",
            "&#x6b;3y&sol;a&plus;b==&#38;c",
            r"\u006b3y/a+b==&c",
        ] {
            let text = format!("ä {written}, {written}.");
            assert_eq!(masked(&text, &secrets).as_deref(), Some("ä [secret], [secret]."), "{written}");
        }
        for other in ["k3y/a+b==&", "k3y%2Ga+b==&c", "k3y/a b==&c", "&#x6b", "%", "\\", "&;", "k3y&#1114112;", "%25"] {
            assert_eq!(masked(other, &secrets), None, "{other}");
        }
    }

    #[test]
    fn the_longest_is_taken_and_floods_end() {
        let secrets = ["Bearer abcdef".to_owned(), "abcdef".to_owned()];
        assert_eq!(masked("Bearer%20abcdef abcdef", &secrets).as_deref(), Some("[secret] [secret]"));
        for flood in ["&", "%25", "\\", "&#x", "abcde"] {
            assert_eq!(masked(&flood.repeat((1 << 20) / flood.len()), &secrets), None);
        }
    }
}

//! Paths and patterns that an agent may interpret differently than haft does.
//!
//! Agents trim paths, expand `~`, resolve `..` lexically and normalize Unicode before they open a file; haft and the kernel
//! do none of that. Where the two could differ, a person looks at the call.

use crate::preview::{cut, inert};

/// Why a path may mean another place to an agent than to haft.
pub fn path_doubt(path: &str) -> Option<&'static str> {
    if path.chars().any(|c| c.is_control() || is_unseen(c)) {
        return Some("it contains characters that cannot be seen");
    }
    if path.contains('\\') {
        return Some("it contains a backslash");
    }
    if path.chars().any(has_other_form) {
        return Some("Unicode normalization may change it");
    }
    // A relative path has been joined to the working directory by now, so each part may be where it began.
    path.split('/').find_map(|part| {
        if part == ".." {
            Some("it contains `..`")
        } else if part.starts_with('~') {
            Some("it contains `~`")
        } else if part.trim() != part {
            Some("a name in it begins or ends with a blank")
        } else {
            None
        }
    })
}

/// Characters that some programs cut off and some do not see.
const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Characters that Unicode normalization (NFC) may change or combine with others.
const fn has_other_form(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{93c}' | '\u{958}'..='\u{95f}' | '\u{9bc}'..='\u{9df}' | '\u{1100}'..='\u{11ff}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{1f00}'..='\u{1fff}' | '\u{2000}'..='\u{200a}'
        | '\u{20d0}'..='\u{20ff}' | '\u{2126}' | '\u{212a}' | '\u{212b}' | '\u{2329}' | '\u{232a}'
        | '\u{3099}' | '\u{309a}' | '\u{f900}'..='\u{faff}' | '\u{fb1d}'..='\u{fb4f}' | '\u{fe20}'..='\u{fe2f}'
        | '\u{1d15e}'..='\u{1d1c0}' | '\u{2f800}'..='\u{2fa1f}')
}

/// The fixed leading path of a search pattern, relative to the directory that is searched; or why it cannot be determined.
pub fn pattern_base(pattern: &str) -> Result<String, &'static str> {
    if pattern.trim() != pattern || pattern.chars().any(|c| c.is_control() || is_unseen(c)) {
        return Err("it begins or ends with a blank, or contains invisible characters");
    }
    if pattern.starts_with('/') {
        return Err("it begins at the root of the file system");
    }
    if pattern.contains("..") {
        return Err("it contains `..`");
    }
    if pattern.contains('~') {
        return Err("it contains `~`");
    }
    if pattern.contains(['\\', '(']) || pattern.starts_with('!') || pattern.chars().any(has_other_form) {
        return Err("it uses pattern syntax that haft does not parse");
    }
    let parts: Vec<&str> = pattern.split('/').collect();
    let last = parts.len() - 1;
    for (at, part) in parts.iter().enumerate() {
        // What braces make of the beginning of a name, or of several names, may lead out of the directory.
        let harmless = at == last && !part.starts_with(['{', '.', '[']) && part.ends_with(|c: char| c != '.');
        if part.contains(['{', '}', '[', ']']) && !harmless {
            return Err("its braces or brackets may stand for other places");
        }
    }
    let fixed = parts.iter().take_while(|part| !part.contains(['*', '?', '[', '{', '}']));
    Ok(fixed.copied().collect::<Vec<_>>().join("/"))
}

/// A sentence about a value and what is doubtful about it.
pub(super) fn sentence(tool: &str, what: &str, value: &str, why: &str) -> String {
    let value = cut(&inert(value), 80);
    format!("{tool} was called with the {what} `{value}`, which the agent may interpret differently than haft: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_that_agents_change_is_doubted() {
        for path in [
            "/p/../etc/passwd",
            "/p/..",
            "/p/~/x",
            "/p/~root/x",
            "/p/ /etc/passwd",
            "/p/x ",
            "/p/\u{a0}x",
            "/p/\u{feff}x",
            "/p/a\nb",
            "/p/a\\ b",
            "/p/e\u{301}",
            "/p/\u{212a}",
        ] {
            assert!(path_doubt(path).is_some(), "{path:?}");
        }
        for path in ["/p/a.rs", "/p/./a", "/p//a", "/p/a b", "/p/..a", "/p/a~", "/p/Übung.txt", "/p/日本.txt", "/"] {
            assert_eq!(path_doubt(path), None, "{path:?}");
        }
    }

    #[test]
    fn pattern_is_judged_where_it_begins_to_look() {
        for (pattern, base) in [
            ("**/*.rs", ""),
            ("*", ""),
            ("src/**/*.{ts,tsx}", "src"),
            ("src/main.rs", "src/main.rs"),
            (".ssh/*", ".ssh"),
            ("a/b/c?/d", "a/b"),
            ("*.[ch]", ""),
        ] {
            assert_eq!(pattern_base(pattern), Ok(base.to_owned()), "{pattern}");
        }
        for pattern in [
            "/etc/*",
            "../*",
            "a/../../*",
            "~/x",
            "{/etc,src}/*",
            "{.,x}./*",
            ".{.,x}/*",
            ".{.,x}",
            "{src,lib}/*.rs",
            "src/{a,b}/*",
            "@(a|b)/*",
            "!(a)",
            "!src/*",
            "a\\b",
            " *",
            "*\n",
            "[.][.]/x",
        ] {
            assert!(pattern_base(pattern).is_err(), "{pattern}");
        }
    }
}

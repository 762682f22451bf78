//! Recognising secrets by name and by shape, so that they are not written down.

use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// What a secret is replaced by.
pub const MASK: &str = "[secret]";

/// Name parts that mean the value is a secret.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "authorization",
    "private_key",
    "credential",
];

/// The published shapes of keys and tokens.
const SHAPES: &str = concat!(
    r"AKIA[0-9A-Z]{16}",
    r"|gh[pousr]_[A-Za-z0-9]{36,}",
    r"|github_pat_[A-Za-z0-9_]{60,}",
    r"|glpat-[A-Za-z0-9_-]{20,}",
    r"|sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}",
    r"|xox[abposr]-[A-Za-z0-9-]{10,}",
    r"|AIza[0-9A-Za-z_-]{35}",
    r"|npm_[A-Za-z0-9]{36}",
    r"|tvly-[A-Za-z0-9]{20,}",
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"|(?i:bearer|basic) [A-Za-z0-9._~+/-]{16,}=*",
    // A path that was normalised has lost one of its slashes.
    r"|:/{1,2}[^/\s:@]+:[^/\s@]+@",
);

/// Substrings of which every secret shape contains one: a cheap look before the expensive one.
const TELLTALES: &[&str] = &[
    "AKIA",
    "gh",
    "glpat-",
    "sk-",
    "xox",
    "AIza",
    "npm_",
    "tvly-",
    "eyJ",
    "PRIVATE KEY",
    "earer",
    "asic",
    "EARER",
    "ASIC",
    "@",
];

static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SHAPES).ok());

/// Whether a parameter's name says that its value is secret.
pub fn is_secret_name(name: &str) -> bool {
    let lower = name.to_lowercase().replace('-', "_");
    SECRET_NAMES.iter().any(|part| lower.contains(part))
}

/// Whether a header's name says that its value is secret: more names do than among parameters.
pub fn is_secret_header(name: &str) -> bool {
    let lower = name.to_lowercase().replace('-', "_");
    is_secret_name(name)
        || ["cookie", "auth", "signature"].iter().any(|part| lower.contains(part))
        || lower.ends_with("_key")
}

/// The text with everything that looks like a secret masked.
pub fn mask(text: &str) -> Cow<'_, str> {
    if !TELLTALES.iter().any(|sign| text.contains(sign)) {
        return Cow::Borrowed(text);
    }
    match PATTERN.as_ref() {
        Some(pattern) => pattern.replace_all(text, MASK),
        // Without the pattern nothing can be cleared, so nothing is.
        None => Cow::Borrowed(MASK),
    }
}

/// Whether the text holds something that looks like a secret.
pub fn contains_secret(text: &str) -> bool {
    matches!(mask(text), Cow::Owned(_)) || mask(text) == MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_shapes_are_masked_and_prose_is_not() {
        for secret in [
            "AKIAIOSFODNN7EXAMPLE",
            &format!("sk-ant-{}", "a1".repeat(15)),
            "Authorization: Bearer abcdefghijklmnop123456",
            "postgres://user:hunter2@db/x",
            "-----BEGIN RSA PRIVATE KEY-----",
        ] {
            assert!(contains_secret(secret), "{secret}");
        }
        for prose in ["a basic idea", "mail me @ home", "skip", "high-risk", "src/main.rs", "user@example.com"] {
            assert_eq!(mask(prose), prose);
        }
    }

    #[test]
    fn names_give_secrets_away() {
        assert!(is_secret_name("API-Key") && is_secret_name("dbPassword") && !is_secret_name("path"));
        for name in ["Cookie", "set-cookie", "X-Auth", "Ocp-Apim-Subscription-Key", "Authorization", "X-CSRF-Token"] {
            assert!(is_secret_header(name), "{name}");
        }
        assert!(!is_secret_header("Content-Type") && !is_secret_header("ETag") && !is_secret_header("X-Keyboard"));
    }
}

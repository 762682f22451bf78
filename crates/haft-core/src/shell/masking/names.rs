//! Which names of variables, options and parameters mean a secret, and which values can be one.

/// Last words of names that mean a secret.
const SECRET: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "apikey",
    "credential",
    "credentials",
    "pat",
    "psk",
    "jwt",
];

/// The same, joined to what stands before them: `dbpassword`, `PGPASSWORD`, `keypass`.
const SECRET_ENDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "authtoken",
    "accesstoken",
    "secretkey",
    "accesskey",
    "privatekey",
    "clientsecret",
    "sshpass",
    "storepass",
    "keypass",
    "dbpass",
    "userpass",
];

/// Words before `key` that make it a secret one.
const KEYS: &[&str] = &[
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "account",
    "shared",
    "encryption",
    "signing",
    "master",
    "license",
    "subscription",
    "storage",
    "deploy",
    "app",
    "service",
];

/// Words before `key` with which it is none, whatever it looks like.
const PLAIN_KEYS: &[&str] = &[
    "public",
    "primary",
    "foreign",
    "cache",
    "sort",
    "partition",
    "hash",
    "host",
    "pub",
    "hot",
    "registry",
    "idempotency",
];

/// First words with which an option only says how a secret is handled.
const HANDLING: &[&str] = &[
    "no", "ask", "prompt", "with", "show", "use", "has", "require", "generate", "print", "get", "list", "skip",
    "without", "delete", "rotate", "reset", "max", "min", "num", "create", "read", "is", "allow", "disable", "enable",
    "force",
];

/// How sure a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// What it names is a secret.
    Named,
    /// What it names is a secret if it looks like one.
    Perhaps,
    /// It says nothing.
    None,
}

/// The words of a name in lower case, without numbers at its end: `db_password2`, `dbPassword`, `DB-PASSWORD`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for c in name.trim_end_matches(|c: char| c.is_ascii_digit()).chars() {
        let begins = c.is_ascii_uppercase() && before.is_ascii_lowercase();
        if !c.is_ascii_alphanumeric() || begins {
            parts.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(last) = parts.last_mut()
        {
            last.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether a variable, a setting or a property is secret by its name.
pub(super) fn secrecy(name: &str) -> Secrecy {
    if matches!(name, "PWD" | "OLDPWD") {
        return Secrecy::None;
    }
    let parts = parts(name);
    let Some((last, before)) = parts.split_last() else { return Secrecy::None };
    let last = last.as_str();
    let above = before.last().map(String::as_str).unwrap_or_default();
    if SECRET.contains(&last)
        || SECRET_ENDS.iter().any(|end| last.ends_with(end))
        || matches!((above, last), ("rediscli", "auth"))
    {
        return Secrecy::Named;
    }
    if matches!((above, last), ("mysql", "pwd")) || (last == "key" && KEYS.contains(&above)) {
        return Secrecy::Named;
    }
    let upper = !name.contains(|c: char| c.is_ascii_lowercase());
    if last == "key" && upper && !above.is_empty() && !PLAIN_KEYS.contains(&above) {
        Secrecy::Perhaps
    } else {
        Secrecy::None
    }
}

/// Whether the value of a long option is secret by the option's name.
pub(super) fn is_secret_option(name: &str) -> bool {
    let handles = parts(name).first().is_some_and(|first| HANDLING.contains(&first.as_str()));
    // `--secret` of a container build names one, and does not say it.
    !handles && secrecy(name) == Secrecy::Named && name != "secret"
}

/// Whether a value can be the secret that its name says it is, rather than a word that stands for one.
pub(super) fn can_be_secret(name: &str, value: &str) -> bool {
    let stands_for_one =
        ["secret:", "{{", "${{", "<", "env:", "file:", "vault:", "op://", "@", "[secret]", "%s", "%q", "%b", "%d"];
    let word = ["", "-", "true", "false", "yes", "no", "on", "off", "none", "null", "0", "1"];
    let starred = value.bytes().all(|byte| matches!(byte, b'*' | b'.'));
    // A number of tokens, as models count them.
    let counted = name.to_ascii_lowercase().ends_with("token")
        && value.len() < 8
        && value.bytes().all(|byte| byte.is_ascii_digit());
    if starred || counted || word.contains(&value) || stands_for_one.iter().any(|sign| value.starts_with(sign)) {
        return false;
    }
    match secrecy(name) {
        Secrecy::Named => true,
        Secrecy::Perhaps => looks_random(value),
        Secrecy::None => false,
    }
}

/// Whether a value looks like a key rather than like a path or a word.
fn looks_random(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    value.len() >= 16 && !value.starts_with(['/', '.', '~']) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_names_that_sound_alike() {
        for name in [
            "PGPASSWORD",
            "MYSQL_PWD",
            "DB_PASSWORD2",
            "dbPassword",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "api-key",
            "SSHPASS",
            "db.password",
            "client_secret",
            "ansible_become_pass",
            "REDISCLI_AUTH",
            "X_API_KEY",
            "_authToken",
        ] {
            assert_eq!(secrecy(name), Secrecy::Named, "{name}");
        }
        for name in [
            "PWD",
            "OLDPWD",
            "PATH",
            "max_tokens",
            "AWS_ACCESS_KEY_ID",
            "PGPASSFILE",
            "PUBLIC_KEY",
            "CACHE_KEY",
            "key",
            "token_file",
            "bypass",
            "COMPASS_DIR",
            "tokenizer",
            "author",
            "SECRET_NAME",
        ] {
            assert_eq!(secrecy(name), Secrecy::None, "{name}");
        }
        assert!(
            can_be_secret("STRIPE_KEY", "a1b2c3d4e5f6a7b8c9") && !can_be_secret("SSL_KEY", "/etc/ssl/private/1.pem")
        );
        assert!(!can_be_secret("max_token", "4096") && can_be_secret("PIN_PASSWORD", "4096"));
    }

    #[test]
    fn options_that_only_handle_a_secret_are_none() {
        for name in ["password", "token", "client-secret", "auth-token", "api-key", "db-password", "pass"] {
            assert!(is_secret_option(name), "{name}");
        }
        for name in
            ["password-stdin", "password-file", "no-password", "ask-pass", "with-token", "token-ttl", "secret-name"]
        {
            assert!(!is_secret_option(name), "{name}");
        }
    }
}

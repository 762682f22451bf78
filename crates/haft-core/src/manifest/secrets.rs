//! Which secrets a manifest may declare, and where they may stand. What everybody on the machine or on the way can read
//! (a program's arguments, a URL) never holds one.

use super::fix::below;
use super::flaw::Flaw;
use super::template::names;
use serde_json::Value;

/// Variables that decide what runs and how: no tool gets them as a secret, nor takes their place.
const RESERVED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "PWD",
    "OLDPWD",
    "TMPDIR",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SSH_AUTH_SOCK",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
];
/// The same by how they begin: haft's own, the loader's, the interpreter's.
const RESERVED_PREFIXES: &[&str] = &["HAFT_", "LD_", "DYLD_", "LC_", "PYTHON"];

/// Whether a name is a variable that is no secret: haft's own, or one that decides how programs run.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Everything that is wrong with the secrets of a manifest that fits the schema.
pub(super) fn misplaced(value: &Value) -> Vec<Flaw> {
    let Some(declared) = value.pointer("/permissions/secrets").and_then(Value::as_object) else { return Vec::new() };
    let reserved = declared.keys().filter(|name| is_reserved(name)).map(|name| {
        let message = "is a variable of haft's own or of the system's, and no secret; give the secret another name";
        Flaw::error("secret-name", below("/permissions/secrets", name), message)
    });
    let mut flaws: Vec<Flaw> = reserved.collect();
    let secret = |text: &Value| names(text).into_iter().find(|name| declared.contains_key(*name)).map(str::to_owned);
    let mut refuse = |pointer: String, text: Option<&Value>, why: &str| {
        if let Some(name) = text.and_then(secret) {
            flaws.push(Flaw::error("secret-place", pointer, format!("holds the secret `{name}`, {why}")));
        }
    };
    let args = value.pointer("/exec/command/args").and_then(Value::as_array).into_iter().flatten();
    for (index, arg) in args.enumerate() {
        let why = "and everybody on the machine can read arguments; give it in `env` or `stdin`";
        refuse(format!("/exec/command/args/{index}"), Some(arg), why);
    }
    for (pointer, why) in [
        ("/exec/command/cwd", "and no directory is secret; give it in `env` or `stdin`"),
        ("/exec/http/url", "and URLs are shown and recorded; give it in `query`, `headers` or `body`"),
    ] {
        refuse(pointer.to_owned(), value.pointer(pointer), why);
    }
    flaws
}

#[cfg(test)]
mod tests {
    use super::super::Manifest;

    fn flaws(kind: &str, exec: &str, secret: &str) -> Vec<String> {
        let text = format!(
            "name: a\ndescription: b\nkind: {kind}\nversion: 1\ninputs: {{schema: {{type: object}}}}\n\
             outputs: {{format: text}}\nexec:\n  {kind}:\n{exec}\npermissions:\n  network: [a.test]\n  \
             fs: {{read: [], write: []}}\n  secrets:\n    {secret}: {{type: string}}\napproval: {{required: false}}\n"
        );
        match Manifest::read(&text) {
            Ok(_) => Vec::new(),
            Err(flaws) => flaws.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_secret_stands_where_nobody_else_can_read_it() {
        let command = |rest: &str| flaws("command", &format!("    entrypoint: ./x\n{rest}"), "KEY");
        assert_eq!(
            command("    args: [-k, \"x ${KEY}\"]"),
            ["10:16: exec.command.args[1]: holds the secret `KEY`, and everybody on the machine can read arguments; \
              give it in `env` or `stdin`"]
        );
        assert_eq!(
            command("    cwd: \"${KEY}\""),
            ["10:5: exec.command.cwd: holds the secret `KEY`, and no directory is secret; give it in `env` or `stdin`"]
        );
        assert!(
            command("    env: {K: \"${KEY}\"}\n    stdin: \"${KEY}\"\n    args: [\"$${KEY}\", \"${key}\"]").is_empty()
        );
        let http = |rest: &str| flaws("http", &format!("    method: POST\n{rest}"), "KEY");
        for url in ["https://a.test/${KEY}/x", "https://${KEY}.a.test/", "https://a.test/?k=${KEY}"] {
            assert_eq!(
                http(&format!("    url: \"{url}\"")),
                ["10:5: exec.http.url: holds the secret `KEY`, and URLs are shown and recorded; give it in `query`, \
                  `headers` or `body`"],
                "{url}"
            );
        }
        let fine =
            "    url: https://a.test/\n    query: {k: \"${KEY}\"}\n    headers: {K: \"${KEY}\"}\n    body: \"${KEY}\"";
        assert!(http(fine).is_empty());
    }

    #[test]
    fn what_decides_how_programs_run_is_no_secret() {
        for name in ["HAFT_SECRET_PASSPHRASE", "PATH", "LD_PRELOAD", "HOME", "PYTHONPATH", "SSH_AUTH_SOCK"] {
            let found = flaws("command", "    entrypoint: ./x", name);
            let said = "is a variable of haft's own or of the system's, and no secret; give the secret another name";
            assert_eq!(found, [format!("14:5: permissions.secrets.{name}: {said}")]);
        }
        assert!(flaws("command", "    entrypoint: ./x", "HOME_TOKEN").is_empty());
    }
}

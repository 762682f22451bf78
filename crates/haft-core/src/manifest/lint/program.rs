//! The program that runs: where it is, who interprets it, and that no input becomes a part of it.

use super::super::ceiling::is_within;
use super::super::flaw::{Flaw, Severity};
use super::super::template::{Piece, pieces};
use super::super::{Command, Exec, Manifest, Python};
use super::uses::Uses;
use super::{Found, Module, Place, Program, Whose};
use serde_json::Value;

/// They read programs from an argument.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "busybox", "pwsh"];
/// They run what is written for one version of them and not for another.
const INTERPRETERS: &[&str] = &[
    "python", "python2", "python3", "pypy", "pypy3", "node", "nodejs", "deno", "bun", "ruby", "perl", "php", "lua",
    "Rscript", "julia",
];
pub(super) fn check(manifest: &Manifest, uses: &Uses<'_>, found: &Found, flaws: &mut Vec<Flaw>) {
    match &manifest.exec {
        Exec::Command(command) => {
            flaws.extend(placed(command, found));
            flaws.extend(start("/exec/command/cwd", command.cwd.as_deref(), found));
            flaws.extend(unpinned(command, found));
            flaws.extend(shell_string(command));
            flaws.extend(option_like(command, uses));
        }
        Exec::Python(python) => flaws.extend(module(python, found)),
        Exec::Http(_) | Exec::Mcp(_) | Exec::Pipeline(_) => {}
    }
}

fn at_entrypoint(message: impl Into<String>) -> Flaw {
    Flaw::error("entrypoint", "/exec/command/entrypoint", message)
}

fn placed(command: &Command, found: &Found) -> Option<Flaw> {
    let path = &command.entrypoint;
    let ground = found.whose.ground();
    let leads_out = path.contains('/') && !path.starts_with('/') && !is_within(path, ".");
    match &found.program {
        _ if leads_out => {
            Some(at_entrypoint(format!("leads out of {ground}; what runs has to be in it, or be installed")))
        }
        Some(Program::Outside) => {
            let message = format!("is outside of {ground}, where it can change unseen; keep it in {ground}");
            Some(at_entrypoint(message))
        }
        Some(Program::Missing) if path.contains('/') => Some(at_entrypoint(match found.whose {
            Whose::Project => "is not there; paths begin at the project's root",
            Whose::Own => "is not there; paths of a tool of yours begin beside its manifest",
        })),
        // It may be where the tool is used.
        Some(Program::Missing) => {
            let message = "is not installed here: a name without a slash is looked up on the PATH and nowhere else";
            Some(Flaw { severity: Severity::Warning, ..at_entrypoint(message) })
        }
        Some(Program::NotExecutable) => Some(at_entrypoint("is not executable; `chmod +x` makes it so")),
        _ => None,
    }
}

/// Where it starts.
fn start(pointer: &str, cwd: Option<&str>, found: &Found) -> Option<Flaw> {
    let ground = found.whose.ground();
    let leads_out = !is_within(cwd?, ".") && !cwd?.starts_with('/');
    match found.start {
        Some(Place::There) => None,
        None if !leads_out => None,
        Some(Place::Missing) => Some(Flaw::error("start", pointer, "is not there, and nothing can start in it")),
        Some(Place::Outside) | None => {
            let message = format!("leads out of {ground}; start in it, or in a directory under `permissions.fs`");
            Some(Flaw::error("start", pointer, message))
        }
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn unpinned(command: &Command, found: &Found) -> Option<Flaw> {
    let flaw = |message: String| Flaw::warning("interpreter-unpinned", "/exec/command/entrypoint", message);
    let path = &command.entrypoint;
    if !path.contains('/') && INTERPRETERS.contains(&path.as_str()) {
        let message = format!("`{path}` is another one on another machine; name a version, or a path in the project");
        return Some(flaw(message));
    }
    let Some(Program::Runs(Some(shebang))) = &found.program else { return None };
    let mut words = shebang.split_whitespace();
    let first = base(words.next()?);
    let program =
        if first == "env" { words.find(|word| !word.starts_with('-') && !word.contains('='))? } else { return None };
    INTERPRETERS
        .contains(&program)
        .then(|| flaw(format!("its first line asks for any `{program}`; name one by its path or version")))
}

/// A shell that gets a program as an argument, and an input in one of them.
fn shell_string(command: &Command) -> Option<Flaw> {
    let texts: Vec<&str> = command.args.iter().map(|arg| arg.as_str().unwrap_or_default()).collect();
    let words: Vec<&str> = std::iter::once(command.entrypoint.as_str()).chain(texts.iter().copied()).collect();
    let position = words
        .iter()
        .position(|word| SHELLS.contains(&base(word)) || INTERPRETERS.contains(&unversioned(base(word))))?;
    let shell = SHELLS.contains(&base(words[position]));
    let reads = |word: &&&str| match word.strip_prefix('-') {
        Some(letters) if !letters.starts_with('-') => {
            letters.contains('c') || (!shell && letters.contains(['e', 'r', 'E']))
        }
        Some(long) => matches!(long, "-eval" | "-command" | "-print"),
        None => false,
    };
    words[position + 1..].iter().take_while(|word| word.starts_with(['-', '+'])).find(reads)?;
    let input = texts
        .iter()
        .position(|text| pieces(text).is_ok_and(|pieces| pieces.iter().any(|piece| matches!(piece, Piece::Name(_)))));
    let name = base(words[position]);
    let Some(index) = input else {
        let message = format!("a program in an argument of `{name}` is hard to review; put it into a file");
        return Some(Flaw::warning("shell-string", "/exec/command/args", message));
    };
    let message = format!(
        "an input becomes part of a program that `{name}` reads; put the program into a file and give it the input as an \
         argument"
    );
    Some(Flaw::error("shell-string", format!("/exec/command/args/{index}"), message))
}

/// `python3.12` is a python.
fn unversioned(name: &str) -> &str {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if bare.is_empty() { name } else { bare }
}

/// What an argument begins with says whether it is an option, and a text may begin with `-`.
fn option_like(command: &Command, uses: &Uses<'_>) -> Vec<Flaw> {
    let texts: Vec<Option<&str>> = command.args.iter().map(Value::as_str).collect();
    let ended = texts.iter().position(|text| *text == Some("--")).unwrap_or(texts.len());
    let mut flaws = Vec::new();
    for (index, text) in texts[..ended].iter().enumerate() {
        let pieces = pieces(text.unwrap_or_default()).unwrap_or_default();
        let Some(Piece::Name(name)) = pieces.first() else { continue };
        let mut words = name.split('.');
        let Some(input) = words.next().and_then(|first| uses.inputs.get(first)) else { continue };
        // Of what nobody declared, anything is to be expected.
        let inner = words.try_fold(*input, |schema, word| schema.get("properties")?.get(word));
        if inner.is_none_or(is_free) {
            let message = match index.checked_sub(1).and_then(|before| texts[before]).filter(|text| is_option(text)) {
                Some(option) => {
                    let written = if option.starts_with("--") { format!("{option}=") } else { option.to_owned() };
                    let better = crate::preview::cut(&crate::preview::inert(&written), 40);
                    format!("`{name}` could begin with `-` and be taken for an option; write \"{better}${{{name}}}\"")
                }
                None => format!(
                    "`{name}` could begin with `-` and be taken for an option; put \"--\" before it, or give it a pattern"
                ),
            };
            flaws.push(Flaw::warning("option-like", format!("/exec/command/args/{index}"), message));
        }
    }
    flaws
}

/// `-n`, `--name`, without a value.
fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-') && !text.contains(['=', '$'])
}

/// Whether a schema lets any text in.
fn is_free(schema: &Value) -> bool {
    let bound = ["enum", "const", "pattern"].iter().any(|name| schema.get(name).is_some());
    let kinds = schema.get("type");
    let text = match kinds {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => true,
    };
    let items = kinds.is_some_and(|kind| kind == "array") && schema.get("items").is_none_or(is_free);
    !bound && (text || items)
}

fn module(python: &Python, found: &Found) -> Vec<Flaw> {
    let mut flaws: Vec<Flaw> = start("/exec/python/cwd", python.cwd.as_deref(), found).into_iter().collect();
    let venv = python.venv.as_deref();
    if venv.is_some_and(|path| !path.starts_with('/') && !is_within(path, ".")) {
        let message = format!("leads out of {}", found.whose.ground());
        flaws.push(Flaw::error("module", "/exec/python/venv", message));
        return flaws;
    }
    let module = &python.module;
    match &found.module {
        Some(Module::Missing) => {
            let file = module.replace('.', "/");
            let cwd = python.cwd.as_deref().unwrap_or(".").trim_end_matches('/');
            let message = format!("is not there: neither {cwd}/{file}.py nor {cwd}/{file}/__init__.py");
            flaws.push(Flaw::error("module", "/exec/python/module", message));
        }
        Some(Module::File(Some(import))) if venv.is_none() => {
            let import = crate::preview::cut(&crate::preview::inert(import), 60);
            let message = format!("imports `{import}`, and no `venv` says which one; name a virtual environment");
            flaws.push(Flaw::warning("interpreter-unpinned", "/exec/python/module", message));
        }
        _ => {}
    }
    let shown = crate::preview::cut(&crate::preview::inert(venv.unwrap_or_default()), 80);
    let message = match found.venv {
        Some(Place::Missing) => format!("has no interpreter; `python3 -m venv {shown}` makes it"),
        Some(Place::Outside) => {
            let ground = found.whose.ground();
            format!("is no virtual environment below {ground}: one that `python3 -m venv` made has a pyvenv.cfg")
        }
        Some(Place::There) | None => return flaws,
    };
    flaws.push(Flaw::error("module", "/exec/python/venv", message));
    flaws
}

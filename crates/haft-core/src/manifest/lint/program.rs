//! The program that runs: where it is, who interprets it, and that no input becomes a part of it.

use super::super::ceiling::is_within;
use super::super::flaw::{Flaw, Severity};
use super::super::template::{Piece, pieces};
use super::super::{Command, Exec, Manifest, Python};
use super::uses::Uses;
use super::{Found, Module, Program};
use serde_json::Value;

/// They read programs from an argument.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "busybox", "pwsh"];
/// They run what is written for one version of them and not for another.
const INTERPRETERS: &[&str] = &[
    "python", "python2", "python3", "pypy", "pypy3", "node", "nodejs", "deno", "bun", "ruby", "perl", "php", "lua",
    "Rscript", "julia",
];
/// Where programs are that are installed for everybody.
const INSTALLED: &[&str] = &["/usr", "/bin", "/sbin", "/opt", "/nix/store"];

pub(super) fn check(manifest: &Manifest, uses: &Uses<'_>, found: &Found, flaws: &mut Vec<Flaw>) {
    match &manifest.exec {
        Exec::Command(command) => {
            flaws.extend(placed(command, found));
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
    let installed = INSTALLED.iter().any(|place| is_within(path, place));
    let leads_out = path.contains('/') && !path.starts_with('/') && !is_within(path, ".");
    match &found.program {
        _ if leads_out => Some(at_entrypoint("leads out of the project; what runs has to be in it, or be installed")),
        Some(Program::Outside) if !installed => {
            Some(at_entrypoint("is outside of the project, where it can change unseen; keep it in the project"))
        }
        Some(Program::Missing) if path.contains('/') => {
            Some(at_entrypoint("is not there; paths begin at the project's root"))
        }
        // It may be where the tool is used.
        Some(Program::Missing) => Some(Flaw { severity: Severity::Warning, ..at_entrypoint("is not installed here") }),
        Some(Program::NotExecutable) => Some(at_entrypoint("is not executable; `chmod +x` makes it so")),
        _ => None,
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

/// A text that stands alone as an argument could begin with `-`.
fn option_like(command: &Command, uses: &Uses<'_>) -> Vec<Flaw> {
    let texts: Vec<Option<&str>> = command.args.iter().map(Value::as_str).collect();
    let ended = texts.iter().position(|text| *text == Some("--")).unwrap_or(texts.len());
    let mut flaws = Vec::new();
    for (index, text) in texts[..ended].iter().enumerate() {
        let pieces = pieces(text.unwrap_or_default()).unwrap_or_default();
        let Some(Piece::Name(name)) = pieces.first() else { continue };
        // What stands behind an option is its value.
        let valued =
            index > 0 && texts[index - 1].is_some_and(|before| before.starts_with('-') && !before.contains('='));
        if !valued && uses.inputs.get(name).is_some_and(|schema| is_free(schema)) {
            let message = format!(
                "`{name}` could begin with `-` and be taken for an option; put \"--\" before it, or give it a pattern"
            );
            flaws.push(Flaw::warning("option-like", format!("/exec/command/args/{index}"), message));
        }
    }
    flaws
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
    let mut flaws = Vec::new();
    let venv = python.venv.as_deref();
    for (pointer, path) in [("/exec/python/cwd", python.cwd.as_deref()), ("/exec/python/venv", venv)] {
        if path.is_some_and(|path| !path.starts_with('/') && !is_within(path, ".")) {
            flaws.push(Flaw::error("module", pointer, "leads out of the project"));
        }
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
    if let (Some(venv), Some(false)) = (venv, found.venv) {
        let message = format!("has no interpreter; `python3 -m venv {}` makes it", crate::preview::inert(venv));
        flaws.push(Flaw::error("module", "/exec/python/venv", message));
    }
    flaws
}

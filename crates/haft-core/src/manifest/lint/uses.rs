//! The names that templates use, and those that are declared.

use super::super::fix::{Fix, below};
use super::super::flaw::Flaw;
use super::super::template::{Piece, pieces};
use super::super::{Exec, Kind, Manifest};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What is used and what is declared.
pub(super) struct Uses<'m> {
    /// The texts that are filled in, by where they stand.
    pub(super) texts: Vec<(String, &'m str)>,
    /// The inputs that are declared, each with its schema.
    pub(super) inputs: BTreeMap<&'m str, &'m Value>,
    /// Whether the schema lets others in as well.
    open: bool,
}

impl<'m> Uses<'m> {
    pub(super) fn of(manifest: &'m Manifest) -> Self {
        let mut uses = Self { texts: filled(&manifest.exec), inputs: BTreeMap::new(), open: false };
        uses.declare(&manifest.inputs.schema, &manifest.inputs.schema, 0);
        uses
    }

    /// Collects what a schema calls properties, wherever it does.
    fn declare(&mut self, root: &'m Value, schema: &'m Value, depth: usize) {
        if depth > 8 {
            self.open = true;
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        self.inputs.extend(properties.map(|(name, property)| (name.as_str(), property)));
        self.open |= schema.get("patternProperties").is_some();
        self.open |= schema.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false));
        let local = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|name| schema.get(name)?.as_array()).flatten();
        let single = ["if", "then", "else"].into_iter().filter_map(|name| schema.get(name));
        for part in parts.chain(single).chain(local.and_then(|path| root.pointer(path))) {
            self.declare(root, part, depth + 1);
        }
    }

    /// Whether something that is filled in names it.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.texts.iter().any(|(_, text)| Self::names(text).any(|used| used == name))
    }

    /// The names that stand in a text.
    fn names(text: &str) -> impl Iterator<Item = &str> {
        super::super::template::names_in(text).into_iter()
    }

    pub(super) fn check(&self, manifest: &Manifest, flaws: &mut Vec<Flaw>) {
        flaws.extend(unfilled(&manifest.exec));
        let secrets = &manifest.permissions.secrets;
        let mut used = BTreeSet::new();
        for (pointer, text) in &self.texts {
            if let Err(unfit) = pieces(text) {
                flaws.push(Flaw::error("template", pointer, unfit.to_string()));
            }
            let literal: String = pieces(text).unwrap_or_default().iter().filter_map(written).collect();
            if crate::secret::contains_secret(&literal) {
                let message = "looks like a secret that is written down; declare it under `permissions.secrets` and say `${NAME}`";
                flaws.push(Flaw::error("secret-written", pointer, message));
            }
            for name in Self::names(text) {
                used.insert(name);
                if !secrets.contains_key(name) {
                    flaws.extend(self.undeclared(pointer, name, manifest.kind));
                }
            }
        }
        self.unused(manifest, &used, flaws);
        let shadows = self.inputs.keys().filter(|name| secrets.contains_key(**name));
        flaws.extend(shadows.map(|name| {
            let message = format!("`{name}` is also a secret; give one of them another name");
            Flaw::error("input-shadows-secret", below("/inputs/schema/properties", name), message)
        }));
    }

    fn undeclared(&self, pointer: &str, name: &str, kind: Kind) -> Option<Flaw> {
        let first = name.split('.').next().unwrap_or_default();
        if self.open || self.inputs.contains_key(first) || (kind == Kind::Pipeline && first == "steps") {
            return None;
        }
        let loud = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        if loud {
            let message = format!("`{name}` is used and not declared; name it under `permissions.secrets`");
            return Some(Flaw::error("secret-undeclared", pointer, message));
        }
        let near = crate::suggest::did_you_mean(first, self.inputs.keys().copied());
        let hint = near.unwrap_or_else(|| "name it under `inputs.schema.properties`".to_owned());
        Some(Flaw::error("input-undeclared", pointer, format!("`{first}` is used and not declared; {hint}")))
    }

    fn unused(&self, manifest: &Manifest, used: &BTreeSet<&str>, flaws: &mut Vec<Flaw>) {
        // A program finds its secrets in its environment; the others have only templates.
        if !matches!(manifest.exec, Exec::Command(_) | Exec::Python(_)) {
            let idle = manifest.permissions.secrets.keys().filter(|name| !used.contains(name.as_str()));
            flaws.extend(idle.map(|name| {
                let pointer = below("/permissions/secrets", name);
                let fix = Fix::Remove { pointer: pointer.clone() };
                Flaw::error("secret-unused", pointer, "is declared and not used; leave it out").mended_by(fix)
            }));
        }
        if matches!(&manifest.exec, Exec::Mcp(mcp) if mcp.args.is_none()) {
            return;
        }
        let words: BTreeSet<&str> = used.iter().filter_map(|name| name.split('.').next()).collect();
        let idle = self.inputs.keys().filter(|name| !words.contains(*name));
        flaws.extend(idle.map(|name| {
            let message = "is declared and not used: whoever gives it is not heard";
            Flaw::warning("input-unused", below("/inputs/schema/properties", name), message)
        }));
    }
}

fn written<'t>(piece: &'t Piece<'_>) -> Option<&'t str> {
    match piece {
        Piece::Text(text) => Some(text),
        Piece::Name(_) => None,
    }
}

/// The texts that are filled in.
fn filled(exec: &Exec) -> Vec<(String, &str)> {
    let mut texts = Vec::new();
    match exec {
        Exec::Http(http) => {
            texts.push(("/exec/http/url".to_owned(), http.url.as_str()));
            in_map(&http.headers, "/exec/http/headers", &mut texts);
            in_map(&http.query, "/exec/http/query", &mut texts);
            http.body.iter().for_each(|body| in_value(body, "/exec/http/body".to_owned(), &mut texts));
        }
        Exec::Command(command) => {
            in_list(&command.args, "/exec/command/args", &mut texts);
            in_map(&command.env, "/exec/command/env", &mut texts);
            command.stdin.iter().for_each(|stdin| in_value(stdin, "/exec/command/stdin".to_owned(), &mut texts));
        }
        Exec::Python(python) => {
            in_list(&python.args, "/exec/python/args", &mut texts);
            in_map(&python.kwargs, "/exec/python/kwargs", &mut texts);
        }
        Exec::Mcp(mcp) => mcp.args.iter().for_each(|args| in_map(args, "/exec/mcp/args", &mut texts)),
        Exec::Pipeline(pipeline) => {
            for (index, step) in pipeline.steps.iter().enumerate() {
                in_map(&step.args, &format!("/exec/pipeline/steps/{index}/args"), &mut texts);
            }
            pipeline.output.iter().for_each(|value| in_value(value, "/exec/pipeline/output".to_owned(), &mut texts));
        }
    }
    texts
}

fn in_map<'v>(map: &'v Map<String, Value>, at: &str, texts: &mut Vec<(String, &'v str)>) {
    map.iter().for_each(|(key, value)| in_value(value, below(at, key), texts));
}

fn in_list<'v>(items: &'v [Value], at: &str, texts: &mut Vec<(String, &'v str)>) {
    items.iter().enumerate().for_each(|(index, value)| in_value(value, format!("{at}/{index}"), texts));
}

fn in_value<'v>(value: &'v Value, at: String, texts: &mut Vec<(String, &'v str)>) {
    match value {
        Value::String(text) => texts.push((at, text)),
        Value::Array(items) => in_list(items, &at, texts),
        Value::Object(map) => in_map(map, &at, texts),
        _ => {}
    }
}

/// Templates where nothing is filled in: what says which program runs is never an input.
fn unfilled(exec: &Exec) -> Vec<Flaw> {
    let texts: Vec<(&str, Option<&String>)> = match exec {
        Exec::Http(_) => Vec::new(),
        Exec::Command(command) => {
            vec![("/exec/command/entrypoint", Some(&command.entrypoint)), ("/exec/command/cwd", command.cwd.as_ref())]
        }
        Exec::Python(python) => {
            vec![("/exec/python/cwd", python.cwd.as_ref()), ("/exec/python/venv", python.venv.as_ref())]
        }
        Exec::Mcp(mcp) => vec![("/exec/mcp/server", Some(&mcp.server)), ("/exec/mcp/tool", Some(&mcp.tool))],
        Exec::Pipeline(pipeline) => {
            pipeline.steps.iter().map(|step| ("/exec/pipeline/steps", Some(&step.tool))).collect()
        }
    };
    let held = texts.into_iter().filter(|(_, text)| text.is_some_and(|text| text.contains("${")));
    let message = "`${…}` means nothing here: what runs, and where, is fixed";
    held.map(|(pointer, _)| Flaw::error("template", pointer, message)).collect()
}

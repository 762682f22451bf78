//! `haft tools`.

mod cost;
pub(super) mod manifest;
mod search;

use crate::app::{App, Failure};
use crate::cli::ToolsArgs;
use crate::style::{self, BOLD, FAINT, NAME, paint};
use haft_core::provider::Provider;
use haft_core::suggest::did_you_mean;
use haft_core::{CallError, Caller, Dialect, ErrorKind};
use haft_runtime::provider_tools::provider_tools;
use haft_runtime::registry::{Entry, declaration, listed, visible};
use haft_runtime::shelf::{Report, Shelved};
use serde_json::{Value, json};
use std::sync::Arc;

/// Lists the tools that exist for this caller, in the words they speak.
pub(super) fn run(app: &App, args: &ToolsArgs) -> Result<u8, Failure> {
    if args.name.as_deref() == Some("search") && !args.words.is_empty() {
        search::run(app, &args.words.join(" "), usize::from(args.limit));
        return Ok(0);
    }
    if let Some(more) = args.words.first() {
        let message = format!("one tool is shown at a time, and `{}` is another word", haft_core::preview::inert(more));
        return Err(CallError::invalid(message).hint("`haft tools search WORDS` finds tools by what they do").into());
    }
    let dialect = app.dialect(args.dialect.as_deref())?;
    let provider = args.provider.as_deref().map(Provider::named).transpose()?;
    app.learn_tools();
    let shelf = app.haft.shelf().report();
    if args.provider.is_none() && !args.cost {
        warn(&shelf, args.name.as_deref());
    }
    let caller = Caller { provider: args.provider.clone(), ..app.caller.clone() };
    // A person sees all of them; what is printed for a model is what models are told.
    let tell = if provider.is_some() || args.cost { visible } else { listed };
    let entries = tell(app.haft.registry(), app.haft.settings().policy(), &caller);
    let mut declared: Vec<(Arc<Entry>, Value)> = in_order(&entries, dialect);
    if provider.is_none() {
        for (entry, value) in &mut declared {
            add_standing(entry, value, &shelf);
        }
    }
    if let Some(name) = &args.name {
        if let Some(broken) = shelf.tools.iter().find(|tool| tool.name == *name && tool.manifest.is_none()) {
            let message =
                format!("the tool `{name}` cannot be used: {}", broken.lines().collect::<Vec<_>>().join("; "));
            return Err(CallError::invalid(message).hint("mend the file").into());
        }
        declared = only(declared, name, dialect)?;
    }
    if args.cost {
        cost::show(app, &declared, dialect);
    } else if let Some(provider) = provider {
        let told = provider_tools(provider, &declared, dialect);
        for note in told.notes.iter().filter(|note| note.kind.is_warning() || args.name.is_some()) {
            style::warn(&style::inert(&note.to_string()));
        }
        style::pretty(&told.tools);
    } else if app.json {
        let tools: Vec<&Value> = declared.iter().map(|(_, value)| value).collect();
        match (&args.name, tools.as_slice()) {
            (Some(_), [one]) => style::pretty(one),
            _ if shelf.tools.is_empty() && shelf.notes.is_empty() => {
                style::pretty(&json!({ "dialect": dialect.name(), "tools": tools }));
            }
            _ => style::pretty(&json!({ "dialect": dialect.name(), "tools": tools, "manifests": shelf })),
        }
    } else if args.name.is_some() {
        for (entry, value) in &declared {
            detail(entry, value, shelf.tools.iter().find(|tool| tool.name == entry.spec().name.as_str()));
        }
    } else {
        overview(&declared);
    }
    Ok(0)
}

/// What is worth knowing of tools that are files: of all of them, or of one.
fn warn(shelf: &Report, name: Option<&str>) {
    let about = name.map(|name| Report {
        // One that cannot be used at all is told about by the command's own failure.
        tools: shelf.tools.iter().filter(|tool| tool.name == name && tool.manifest.is_some()).cloned().collect(),
        notes: Vec::new(),
    });
    for warning in about.as_ref().unwrap_or(shelf).warnings() {
        style::warn(&warning);
    }
    let uncounted = |tool: &&Shelved| {
        tool.manifest.is_some() && !tool.standing.counts() && name.is_none_or(|name| tool.name == name)
    };
    let names: Vec<&str> = shelf.tools.iter().filter(uncounted).map(|tool| tool.name.as_str()).collect();
    if !names.is_empty() {
        let shown = haft_core::preview::cut(&names.join(", "), 200);
        style::warn(&format!("not accepted as they stand, so nobody can call them: {shown}; `haft trust` shows them"));
    }
    for tool in shelf.tools.iter().filter(|tool| name.is_none_or(|name| tool.name == name)) {
        if let Some(other) = &tool.instead_of {
            style::note(&paint(
                FAINT,
                format!("models reach {} by that name, and are not told about {other}", tool.name),
            ));
        }
    }
}

/// Says of a tool that is a file what it is and how it stands.
fn add_standing(entry: &Entry, value: &mut Value, shelf: &Report) {
    let shelved = shelf.tools.iter().find(|tool| tool.name == entry.spec().name.as_str());
    if let (Some(tool), Some(manifest)) = (shelved, shelved.and_then(|tool| tool.manifest.as_ref())) {
        value["manifest"] = json!(tool);
        value["manifest"]["permissions"] = json!(manifest.permissions);
        value["manifest"]["approval"] = json!(manifest.approval);
    }
}

/// Canonical tools by name; a dialect's in its document's order.
fn in_order(entries: &[Arc<Entry>], dialect: Dialect) -> Vec<(Arc<Entry>, Value)> {
    if dialect == Dialect::Haft {
        return entries
            .iter()
            .flat_map(|entry| declaration(entry, dialect).into_iter().map(|value| (Arc::clone(entry), value)))
            .collect();
    }
    let find = |canonical: &str| entries.iter().find(|entry| entry.spec().name.as_str() == canonical).cloned();
    dialect.entries().filter_map(|said| Some((find(said.canonical())?, said.declaration.clone()))).collect()
}

fn only(declared: Vec<(Arc<Entry>, Value)>, name: &str, dialect: Dialect) -> Result<Vec<(Arc<Entry>, Value)>, Failure> {
    let means = |entry: &Entry, value: &Value| {
        let tool = &entry.spec().name;
        value["name"] == name || tool.as_str() == name || tool.api_name() == name
    };
    let foreign = haft_core::dialect::elsewhere(name);
    let known: Vec<String> =
        declared.iter().filter_map(|(_, value)| value["name"].as_str().map(str::to_owned)).collect();
    let found: Vec<_> = declared
        .into_iter()
        .filter(|(entry, value)| {
            means(entry, value) || foreign.iter().any(|said| said.canonical() == entry.spec().name.as_str())
        })
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let shown = haft_core::preview::inert(name);
    let error = CallError::new(
        ErrorKind::UnknownTool,
        format!("there is no tool `{shown}` for you in dialect {}", dialect.name()),
    );
    Err(error
        .hint(
            did_you_mean(name, known.iter().map(String::as_str))
                .unwrap_or_else(|| "`haft tools` lists what there is".into()),
        )
        .into())
}

fn overview(declared: &[(Arc<Entry>, Value)]) {
    let width = declared.iter().filter_map(|(_, value)| value["name"].as_str().map(str::len)).max().unwrap_or(0);
    for (entry, value) in declared {
        let name = value["name"].as_str().unwrap_or_default();
        let first = entry.spec().description.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let manifest = &value["manifest"];
        let standing = manifest["standing"].as_str().map(|standing| {
            let broken = if manifest.get("flaws").is_some() { ", broken; the last good version is used" } else { "" };
            format!("({}, {standing}{broken}) ", manifest["kind"].as_str().unwrap_or_default())
        });
        style::out(&format!(
            "{}{}  {}{}",
            paint(NAME, name),
            " ".repeat(width - name.len()),
            paint(FAINT, standing.unwrap_or_default()),
            haft_core::preview::cut(&haft_core::preview::inert(first), 90)
        ));
    }
    style::note(&paint(FAINT, format!("{} tools; `haft tools NAME` shows one in full", declared.len())));
}

fn detail(entry: &Entry, value: &Value, shelved: Option<&Shelved>) {
    let spec = entry.spec();
    let flags = [
        (spec.read_only(), "only reads"),
        (!spec.read_only(), "has effects"),
        (spec.effects.destructive, "may destroy"),
        (spec.effects.concurrency_safe, "runs beside others"),
        (spec.effects.open_world, "reaches out"),
    ];
    let flags: Vec<&str> = flags.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect();
    style::out(&paint(BOLD, value["name"].as_str().unwrap_or_default()));
    style::out(&haft_core::preview::inert(&spec.description));
    style::out(&format!("{} {}; at most {} s", paint(FAINT, "it"), flags.join(", "), spec.timeout.as_secs()));
    if let Some((tool, manifest)) = shelved.and_then(|tool| Some((tool, tool.manifest.as_ref()?))) {
        style::out(&format!("{:<10}{}", "standing", tool.standing.word()));
        for line in manifest::summary(manifest) {
            style::out(&line);
        }
    }
    style::out(&parameters(&value["input_schema"]));
}

/// One line a parameter.
fn parameters(schema: &Value) -> String {
    let required = |name: &str| schema["required"].as_array().is_some_and(|list| list.iter().any(|item| item == name));
    let line = |name: &String, property: &Value| {
        let kind = match (&property["enum"], &property["type"]) {
            (Value::Array(options), _) => options.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
            (_, Value::String(kind)) => kind.clone(),
            (_, Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
            _ => "any".to_owned(),
        };
        let default = property.get("default").map(|value| format!(" (default {value})")).unwrap_or_default();
        let mark = if required(name) { "" } else { "?" };
        format!(
            "  {}{mark}: {kind}{default}  {}",
            paint(NAME, name),
            property["description"].as_str().unwrap_or_default()
        )
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, property)| line(name, property)).collect::<Vec<_>>().join("\n")
}

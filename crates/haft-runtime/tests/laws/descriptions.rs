//! Tool descriptions are written for models: what the tool does, when to use it, and what it returns, within bounds.

use haft_core::ToolSpec;
use haft_core::tokens::estimate;
use haft_runtime::tools;
use std::collections::BTreeSet;

/// What a description begins with: the verb for what the tool does. These also say what comes back.
const GIVING: &[&str] = &[
    "Check",
    "Describe",
    "Evaluate",
    "Fetch",
    "Find",
    "Get",
    "List",
    "Read",
    "Recall",
    "Return",
    "Search",
    "Show",
    "Take",
    "Transcribe",
];
/// After these a description says what comes back, unless the tool confirms only.
const DOING: &[&str] = &[
    "Ask", "Call", "Change", "Click", "Close", "Create", "Delegate", "Delete", "Edit", "Manage", "Merge", "Open",
    "Propose", "Rebuild", "Record", "Remember", "Rename", "Replace", "Run", "Save", "Send", "Start", "Stop", "Turn",
    "Type",
];
/// Tools that have nothing to return: their answer confirms what was done, or names what was made.
const CONFIRMING: &[&str] = &[
    "agent.control",
    "agent.merge",
    "api.setup",
    "browser.close",
    "browser.type",
    "file.write",
    "media.send",
    "memory.forget",
    "memory.reindex",
    "memory.store",
    "memory.write",
    "pipeline.capture",
    "pipeline.gate",
    "pipeline.promote",
    "pipeline.run",
    "process.kill",
    "reflection.create",
    "session.delete",
    "skill.create",
    "task.update",
    "tool.create",
];
/// Where two tools could do a task, or one is of no use without another: the first names the second, so that a model knows
/// which to use when.
const NAMING: &[(&str, &str)] = &[
    ("api.setup", "web.request"),
    ("browser.click", "browser.content"),
    ("browser.content", "browser.click"),
    ("browser.navigate", "web.fetch"),
    ("pipeline.capture", "pipeline.promote"),
    ("pipeline.plan", "pipeline.run"),
    ("process.start", "shell.exec"),
    ("shell.exec", "process.output"),
    ("tool.call", "tool.search"),
    ("tool.search", "tool.call"),
    ("web.request", "web.fetch"),
    ("web.request", "api.setup"),
    ("web.search", "web.fetch"),
];
/// Where a description has to say when: a model that uses these at the wrong time loses work, money or the user's patience.
const TIMELY: &[(&str, &str)] = &[
    ("agent.spawn", "Use it for"),
    ("file.edit", "Read the file first"),
    ("file.read", "before you edit"),
    ("file.write", "before you overwrite"),
    ("skill.read", "before you do"),
    ("user.ask", "Use it only for"),
];

/// The shortest description that says anything, and the longest that a model reads, in characters.
const LENGTH: std::ops::RangeInclusive<usize> = 40..=600;
/// The same for a parameter.
const PARAMETER_LENGTH_MAX: usize = 220;
/// What a description may cost.
const TOKENS_MAX: usize = 190;

fn specs() -> Vec<ToolSpec> {
    tools::all().iter().map(|tool| (**tool.spec()).clone()).collect()
}

fn first_word(text: &str) -> &str {
    text.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default()
}

/// Whether a text says that something comes back.
fn tells_of_result(text: &str) -> bool {
    ["Returns ", "returns ", "returned ", "return ", "lists ", "tells "].iter().any(|word| text.contains(word))
}

#[test]
fn description_says_what_the_tool_does_and_returns() {
    let mut wrong = Vec::new();
    for spec in specs() {
        let (name, text) = (spec.name.as_str(), spec.description.as_str());
        let mut broken = |law: &str| wrong.push(format!("{name}: {law}: {text}"));
        let verb = first_word(text);
        let is_giving = GIVING.contains(&verb);
        if !is_giving && !DOING.contains(&verb) {
            broken("it begins with the verb for what the tool does");
        }
        let confirms = CONFIRMING.contains(&name);
        if !is_giving && !confirms && !tells_of_result(text) {
            broken("it says what the tool returns");
        }
        if !text.ends_with('.') || text.contains("  ") || text.contains('\n') {
            broken("it is whole sentences in one line");
        }
        if !LENGTH.contains(&text.chars().count()) || estimate(text) > TOKENS_MAX {
            broken("its length is within bounds");
        }
        if ["this tool", "This tool", "haft will", "please", "Please"].iter().any(|filler| text.contains(filler)) {
            broken("it has no filler");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn description_says_when_to_use_the_tool() {
    let specs = specs();
    let text_of = |name: &str| {
        let spec = specs.iter().find(|spec| spec.name.as_str() == name);
        spec.unwrap_or_else(|| panic!("{name} is no tool")).description.clone()
    };
    for (tool, other) in NAMING {
        let text = text_of(tool);
        assert!(text.contains(other), "{tool} does not name {other}: {text}");
    }
    for (tool, when) in TIMELY {
        let text = text_of(tool);
        assert!(text.contains(when), "{tool} does not say {when:?}: {text}");
    }
    for name in CONFIRMING {
        text_of(name);
    }
}

/// A name that a description mentions is a tool that there is.
#[test]
fn description_names_only_tools_that_exist() {
    let specs = specs();
    let names: BTreeSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let families: BTreeSet<&str> = names.iter().filter_map(|name| Some(name.split_once('.')?.0)).collect();
    for spec in &specs {
        let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '.' || letter == '_';
        for word in spec.description.split(|letter: char| !is_part(letter)) {
            let word = word.trim_end_matches('.');
            let Some((family, rest)) = word.split_once('.') else { continue };
            // `tool.yml` is a file.
            if families.contains(family) && rest != "yml" {
                assert!(names.contains(word), "{} names {word}, which is no tool", spec.name);
            }
        }
    }
}

#[test]
fn every_parameter_is_described() {
    let mut wrong = Vec::new();
    for spec in specs() {
        let properties = spec.shapes.input["properties"].as_object().cloned().unwrap_or_default();
        for (name, schema) in properties {
            let text = schema["description"].as_str().unwrap_or_default();
            // A closed choice explains itself.
            let is_choice = schema.get("enum").is_some();
            if text.is_empty() && !is_choice || text.chars().count() > PARAMETER_LENGTH_MAX {
                wrong.push(format!("{}: {name}: {text:?}", spec.name));
            }
        }
    }
    assert!(wrong.is_empty(), "a parameter says what it is, shortly:\n{}", wrong.join("\n"));
}

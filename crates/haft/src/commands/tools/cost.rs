//! `haft tools --cost`: about how many tokens the tools cost a model, in each form that it may be told of them.

use crate::app::App;
use crate::style::{self, BOLD, FAINT, NAME, paint};
use haft_core::provider::Provider;
use haft_core::tokens::estimate;
use haft_core::{Dialect, ToolName};
use haft_runtime::budget::{Priced, listed};
use haft_runtime::provider_tools::provider_tools;
use haft_runtime::registry::Entry;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The forms, in the order of the columns.
const FORMS: [Form; 4] = [
    Form::Of("anthropic", Provider::Anthropic),
    Form::Of("openai", Provider::OpenAi),
    Form::Of("gemini", Provider::Gemini),
    Form::Mcp,
];

#[derive(Clone, Copy)]
enum Form {
    /// A provider takes declarations as they are.
    Of(&'static str, Provider),
    /// An MCP client passes on what it was told: name, description and schema.
    Mcp,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Of(name, _) => name,
            Self::Mcp => "mcp",
        }
    }

    fn tokens(self, entry: &Arc<Entry>, declared: &Value, dialect: Dialect) -> usize {
        let text = |name: &str| declared[name].as_str().unwrap_or_default();
        match self {
            Self::Of(_, provider) => {
                let told = provider_tools(provider, &[(Arc::clone(entry), declared.clone())], dialect);
                told.tools.iter().map(|tool| estimate(&tool.to_string())).sum()
            }
            Self::Mcp => {
                let description =
                    if text("description").is_empty() { &entry.spec().description } else { text("description") };
                estimate(text("name")) + estimate(description) + estimate(&declared["input_schema"].to_string())
            }
        }
    }
}

/// What one tool costs.
struct Line {
    name: String,
    tool: ToolName,
    tokens: [usize; 4],
    /// Whether an MCP client is told of it.
    listed: bool,
}

/// Prints what the tools cost, each and together.
pub(super) fn show(app: &App, declared: &[(Arc<Entry>, Value)], dialect: Dialect) {
    let budget = app.doors.budget_tokens;
    let lines = priced(declared, dialect, budget);
    let all = total(&lines, |_| true);
    let within = total(&lines, |line| line.listed);
    if app.json {
        let tools: Vec<Value> = lines.iter().map(as_json).collect();
        style::pretty(&json!({
            "dialect": dialect.name(), "estimated": true, "budget_tokens": budget,
            "tools": tools, "total": by_form(all), "listed": by_form(within),
        }));
    } else {
        table(&lines, all, within, budget);
    }
}

fn priced(declared: &[(Arc<Entry>, Value)], dialect: Dialect, budget: usize) -> Vec<Line> {
    let line = |(entry, value): &(Arc<Entry>, Value)| Line {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        tool: entry.spec().name.clone(),
        tokens: FORMS.map(|form| form.tokens(entry, value, dialect)),
        listed: true,
    };
    let mut lines: Vec<Line> = declared.iter().map(line).collect();
    // A dialect is a vocabulary that was agreed on: it is told whole.
    if dialect == Dialect::Haft {
        let prices = lines.iter().map(|line| Priced { name: line.tool.clone(), tokens: line.tokens[3] });
        let told = listed(&prices.collect::<Vec<_>>(), budget);
        for line in &mut lines {
            line.listed = told.contains(&line.tool);
        }
    }
    lines
}

fn total(lines: &[Line], which: impl Fn(&Line) -> bool) -> [usize; 4] {
    let mut sums = [0; 4];
    for line in lines.iter().filter(|line| which(line)) {
        for (sum, tokens) in sums.iter_mut().zip(line.tokens) {
            *sum += tokens;
        }
    }
    sums
}

fn by_form(tokens: [usize; 4]) -> Value {
    FORMS.iter().zip(tokens).map(|(form, tokens)| (form.name().to_owned(), tokens.into())).collect::<Map<_, _>>().into()
}

fn as_json(line: &Line) -> Value {
    json!({ "name": line.name, "listed": line.listed, "tokens": by_form(line.tokens) })
}

fn table(lines: &[Line], all: [usize; 4], within: [usize; 4], budget: usize) {
    let width = lines.iter().map(|line| line.name.len()).max().unwrap_or(0).max("within the budget".len());
    let cells = |tokens: [usize; 4]| tokens.map(|number| format!("{number:>10}")).concat();
    let heads = FORMS.map(|form| format!("{:>10}", form.name())).concat();
    style::out(&paint(FAINT, format!("{:width$}{heads}", "")));
    for line in lines {
        let mark = if line.listed { "" } else { "  not listed" };
        let name = format!("{:width$}", line.name);
        style::out(&format!("{}{}{}", paint(NAME, name), cells(line.tokens), paint(FAINT, mark)));
    }
    style::out(&paint(BOLD, format!("{:width$}{}", "all", cells(all))));
    if lines.iter().any(|line| !line.listed) {
        style::out(&paint(BOLD, format!("{:width$}{}", "within the budget", cells(within))));
        style::note(&paint(
            FAINT,
            format!("tools.budget_tokens is {budget}: MCP clients find what is not listed with tool.search"),
        ));
    }
    style::note(&paint(FAINT, "estimates: all together within a tenth of what a tokenizer counts"));
}

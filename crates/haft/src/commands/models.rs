//! `haft models`: who can be asked, and whether they answer.

use crate::app::{App, Failure};
use crate::cli::ModelsAction;
use crate::style::{self, BAD, BOLD, CARE, FAINT, GOOD, NAME, paint};
use haft_core::agent::gather::Gather;
use haft_core::agent::turns::FailureKind;
use haft_core::agent::wire::{Offered, Request, Scribe};
use haft_core::agent::{Block, Delta, Message, Usage};
use haft_core::preview::inert;
use haft_core::{CallError, ErrorKind, ToolSpec};
use haft_runtime::agent::model::Price;
use haft_runtime::agent::models::{Available, Listed};
use haft_runtime::agent::{Facts, Model, ModelRef, Models, facts};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long a model has for one answer here.
const PATIENCE: Duration = Duration::from_mins(1);
/// How much it may write.
const MAX_OUTPUT: u32 = 2000;
/// The tool that it is asked to call.
const TOOL: &str = "report_weather";

/// Does one thing with models.
pub(super) fn run(app: &App, action: Option<ModelsAction>) -> Result<u8, Failure> {
    let models = Models::of(&app.haft).patience(PATIENCE);
    match action.unwrap_or(ModelsAction::List) {
        ModelsAction::List => Ok(list(app, &models)),
        ModelsAction::Test { models: named } => test(app, &models, &named),
    }
}

fn list(app: &App, models: &Models) -> u8 {
    let (available, chosen) = app.block_on(async { (models.available().await, models.chosen().await) });
    if app.json {
        let (used, error) = match &chosen {
            Ok(used) => (used.clone(), None),
            Err(error) => (Vec::new(), Some(json!({"message": error.message, "hint": error.hint}))),
        };
        style::pretty(&json!({"used": used, "error": error, "prices_dated": facts::dated(), "providers": available}));
        return 0;
    }
    let used = chosen.as_deref().unwrap_or_default();
    for provider in &available {
        show_provider(provider, used);
    }
    match &chosen {
        Ok(used) => {
            let names: Vec<String> = used.iter().map(|model| paint(NAME, style::inert(&model.to_string()))).collect();
            style::out(&format!("\nused: {}", names.join(", then ")));
        }
        Err(error) => {
            style::out("");
            style::error(error);
        }
    }
    style::out(&paint(FAINT, format!("dollars for a million tokens, as of {}", facts::dated())));
    0
}

fn show_provider(provider: &Available, used: &[ModelRef]) {
    let state = match (&provider.key, provider.ready) {
        (Some(key), true) => paint(GOOD, format!("{key} is set")),
        (Some(key), false) => {
            paint(CARE, format!("{key} is set, but nobody has said where it is: GOOGLE_CLOUD_PROJECT"))
        }
        (None, true) if provider.local => paint(GOOD, "answers"),
        (None, true) => paint(FAINT, "needs no key"),
        (None, false) if provider.local => paint(FAINT, "does not answer"),
        (None, false) => paint(FAINT, format!("no key: {}", provider.keys.join(" or "))),
    };
    let place = paint(FAINT, style::inert(&provider.url));
    let name = format!("{:<12}", style::inert(&provider.provider));
    style::out(&format!("{}  {state}  {place}", paint(BOLD, name)));
    // Those of a provider that cannot be asked would only be in the way.
    let is_used = |listed: &&Listed| used.contains(&listed.model);
    for listed in provider.models.iter().filter(|listed| provider.ready || is_used(listed)) {
        let Facts { window, price, .. } = listed.facts;
        let name = style::inert(&listed.model.model);
        let mark = if is_used(&listed) { paint(GOOD, "›") } else { " ".to_owned() };
        let window = format!("{} k", window / 1000);
        style::out(&format!("  {mark} {}  {window:>6}  {}", paint(NAME, format!("{name:<36}")), shown_price(price)));
    }
}

fn shown_price(price: Option<Price>) -> String {
    match price {
        Some(price) if price == Price::default() => paint(FAINT, "free"),
        Some(price) => format!("${} in, ${} out", dollars(price.input), dollars(price.output)),
        None => paint(FAINT, "price unknown"),
    }
}

/// Millionths of a dollar as dollars, without noughts at the end.
fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How one question to a model went.
#[derive(Debug, Serialize)]
struct Tried {
    what: &'static str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<FailureKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_word_ms: Option<u64>,
    total_ms: u64,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_micros: Option<u64>,
}

/// How it went with one model.
#[derive(Debug, Serialize)]
struct Tested {
    model: ModelRef,
    ok: bool,
    facts: Facts,
    tried: Vec<Tried>,
    /// Why it could not be asked at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

fn test(app: &App, models: &Models, named: &[String]) -> Result<u8, Failure> {
    let named = named.iter().map(|name| read(name)).collect::<Result<Vec<_>, _>>()?;
    let wanted = if named.is_empty() { app.block_on(configured(app, models))? } else { named };
    let mut tested = Vec::new();
    for name in &wanted {
        let one = match (app.block_on(models.get(name)), wanted.as_slice()) {
            (Ok(model), _) => app.block_on(ask_both(&model)),
            (Err(error), [_]) => return Err(error.into()),
            (Err(error), _) => {
                let (facts, failure) = (models.facts(name), Some(error.message));
                Tested { model: name.clone(), ok: false, facts, tried: Vec::new(), failure }
            }
        };
        if !app.json {
            show_tested(&one, wanted.len() == 1);
        }
        tested.push(one);
    }
    let well = tested.iter().all(|one| one.ok);
    if app.json {
        style::pretty(&json!({ "ok": well, "models": tested }));
    }
    Ok(if well { 0 } else { ErrorKind::Failed.exit_code() })
}

/// All that the configuration names: those that agents ask, and those of which it says what they cost.
async fn configured(app: &App, models: &Models) -> Result<Vec<ModelRef>, CallError> {
    let mut all = models.chosen().await?;
    for known in app.haft.settings().agent.facts.keys() {
        if !all.contains(known) {
            all.push(known.clone());
        }
    }
    Ok(all)
}

async fn ask_both(model: &Arc<dyn Model>) -> Tested {
    let mut tried = vec![word(model).await];
    // Whoever does not answer at all need not be asked twice.
    if tried[0].kind.is_none() {
        tried.push(call(model).await);
    }
    let ok = tried.iter().all(|each| each.ok);
    Tested { model: model.name().clone(), ok, facts: model.facts(), tried, failure: None }
}

/// One model in full; several in a line each.
fn show_tested(one: &Tested, alone: bool) {
    let name = paint(NAME, style::inert(&one.model.to_string()));
    if alone {
        style::out(&name);
        one.tried.iter().for_each(show_tried);
        return;
    }
    let mark = if one.ok { paint(GOOD, "✓") } else { paint(BAD, "✗") };
    let each = one.tried.iter().map(|tried| match &tried.failure {
        None => format!("{} {} ms", tried.what, tried.total_ms),
        Some(failure) => format!("{}: {}", tried.what, inert(failure)),
    });
    let told: Vec<String> = one.failure.iter().map(|failure| inert(failure)).chain(each).collect();
    style::out(&format!("{mark} {name}  {}", paint(FAINT, told.join(", "))));
}

fn read(name: &str) -> Result<ModelRef, CallError> {
    ModelRef::try_from(name.to_owned()).map_err(CallError::invalid)
}

fn show_tried(tried: &Tried) {
    let mark = if tried.ok { paint(GOOD, "✓") } else { paint(BAD, "✗") };
    let Usage { cache_read, output, thinking, .. } = tried.usage;
    let mut told = Vec::new();
    told.extend(tried.first_word_ms.map(|ms| format!("first word after {ms} ms")));
    told.push(format!("{} ms in all", tried.total_ms));
    if tried.usage != Usage::default() {
        told.push(format!("{} tokens read ({cache_read} remembered), {output} written", tried.usage.read()));
    }
    told.extend((thinking > 0).then(|| format!("{thinking} of them thoughts")));
    told.extend(tried.cost_micros.map(|micros| format!("${}", dollars(micros))));
    style::out(&format!("  {mark} {}  {}", tried.what, paint(FAINT, told.join(", "))));
    if let Some(failure) = &tried.failure {
        style::out(&format!("    {}", style::inert(failure)));
    }
}

async fn word(model: &Arc<dyn Model>) -> Tried {
    let heard = ask(model, "Answer with the single word: ready", &[]).await;
    let words = heard.gather.message().text();
    heard.tried(model, "a word", !words.trim().is_empty(), "it has said nothing")
}

async fn call(model: &Arc<dyn Model>) -> Tried {
    let input = json!({
        "type": "object", "required": ["city", "celsius"],
        "properties": {
            "city": {"type": "string", "description": "Which city"},
            "celsius": {"type": "number", "description": "How warm it is"},
        },
    });
    let Ok(spec) = ToolSpec::new("report.weather", "Reports how warm it is in a city.") else {
        return Heard::default().tried(model, "a call", false, "the tool cannot be made");
    };
    let tools = [Offered { name: TOOL, spec: &spec, input: &input }];
    let heard = ask(model, "It is 21 degrees Celsius in Lisbon. Call the tool report_weather with that.", &tools).await;
    let made = heard.gather.message();
    let fits = |input: &Value| input["city"].is_string() && input["celsius"].is_number();
    let well = made.uses().any(|(_, name, input)| name == TOOL && fits(input));
    let wrong =
        if made.uses().next().is_some() { "it made another call than it was asked for" } else { "it made no call" };
    heard.tried(model, "a call", well, wrong)
}

/// What was heard of one answer, and when.
#[derive(Default)]
struct Heard {
    gather: Gather,
    failure: Option<haft_core::agent::turns::Failure>,
    first: Option<Duration>,
    total: Duration,
}

impl Heard {
    fn tried(self, model: &Arc<dyn Model>, what: &'static str, well: bool, wrong: &str) -> Tried {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let usage = self.gather.usage();
        let ok = well && self.failure.is_none();
        Tried {
            what,
            ok,
            kind: self.failure.as_ref().map(|failure| failure.kind),
            failure: (!ok).then(|| self.failure.map_or_else(|| wrong.to_owned(), |failure| failure.message)),
            first_word_ms: self.first.map(ms),
            total_ms: ms(self.total),
            usage,
            cost_micros: model.facts().price.map(|price| price.cost(&usage)),
        }
    }
}

async fn ask(model: &Arc<dyn Model>, text: &str, tools: &[Offered<'_>]) -> Heard {
    let history = [Message { role: haft_core::agent::Role::User, blocks: vec![Block::Text { text: text.to_owned() }] }];
    let prompt = Request {
        model: &model.name().model,
        system: &[],
        tools,
        history: &history,
        max_output: MAX_OUTPUT.min(model.facts().max_output),
        effort: None,
        native_search: false,
        scribe: &Scribe::default(),
    };
    let (sender, mut said) = mpsc::channel(64);
    let begun = Instant::now();
    let listening = async {
        let (mut gather, mut first) = (Gather::default(), None);
        while let Some(delta) = said.recv().await {
            if is_word(&delta) {
                first = first.or(Some(begun.elapsed()));
            }
            gather.take(delta);
        }
        (gather, first)
    };
    let (result, (gather, first)) = tokio::join!(Arc::clone(model).ask(&prompt, "test", sender), listening);
    Heard { gather, failure: result.err(), first, total: begun.elapsed() }
}

/// Whether something was said with it.
fn is_word(delta: &Delta) -> bool {
    match delta {
        Delta::Text(_, text) | Delta::Thinking(_, text) => !text.is_empty(),
        Delta::Use(..) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_without_noughts() {
        for (micros, expected) in [(0, "0"), (1_250_000, "1.25"), (10_000_000, "10"), (5, "0.000005")] {
            assert_eq!(dollars(micros), expected);
        }
    }
}

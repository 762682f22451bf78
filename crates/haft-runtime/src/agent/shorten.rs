//! Making a conversation shorter when its model's window is full.

use super::model::Model;
use super::offer::Offer;
use haft_core::agent::compact::{SUMMARISE, newer, summarised, trimmed, weigh};
use haft_core::agent::gather::Gather;
use haft_core::agent::wire::{Request, Scribe};
use haft_core::agent::{Message, Usage};
use std::sync::Arc;
use tokio::sync::mpsc;

/// How much of a window what is sent may be afterwards, in percent; and how much of it stays as it was said.
const AIM: u64 = 40;
const KEPT: u64 = 15;
/// How much a model writes to tell what was said.
pub(super) const SUMMARY_MAX: u32 = 4096;

/// A conversation made shorter, and what that used.
pub(crate) struct Shorter {
    pub(crate) history: Vec<Message>,
    pub(crate) usage: Usage,
}

/// Makes a history shorter: first without anybody's help, then by having its older part told. None if nothing helps.
pub(crate) async fn shorter(
    model: Arc<dyn Model>,
    system: Vec<String>,
    offer: Arc<Offer>,
    history: Vec<Message>,
    seed: String,
) -> Option<Shorter> {
    // Whoever says that it is too much may take less than is known of it, or count otherwise.
    let window = model.facts().window.min(u64::try_from(weigh(&history)).unwrap_or(u64::MAX));
    let room = |percent: u64| usize::try_from(window * percent / 100).unwrap_or(usize::MAX);
    // What the model has not read yet is the last to go.
    let last = weigh(&history[history.len().saturating_sub(2)..]);
    let fits = u64::try_from(last).is_ok_and(|last| last * 2 <= model.facts().window);
    let keep = room(KEPT).max(if fits { last } else { 0 });
    let mut cut = trimmed(&history, keep);
    if weigh(&cut) * 10 > weigh(&history) * 9 {
        cut = trimmed(&history, room(KEPT));
    }
    if weigh(&cut) <= room(AIM).max(keep + keep / 4) {
        return Some(Shorter { history: cut, usage: Usage::default() });
    }
    let from = newer(&cut, keep);
    let (older, recent) = cut.split_at(from);
    if older.is_empty() {
        // One message is too much by itself, and nobody can tell it shorter.
        return None;
    }
    // What is told must itself fit: the oldest of it goes first, if it does not.
    let fits = newer(older, room(75));
    let (text, usage) = told(&model, &system, &offer, &older[fits.min(older.len())..], &seed).await;
    let unknown =
        "What was said earlier could not be told in fewer words. The log has what was done: look before you repeat it.";
    let text = if text.trim().is_empty() { unknown.to_owned() } else { text };
    Some(Shorter { history: summarised(&text, recent), usage })
}

/// The model's own words for what was said. Its tools and its system prompt stay as they are, so that the provider knows them.
async fn told(
    model: &Arc<dyn Model>,
    system: &[String],
    offer: &Offer,
    older: &[Message],
    seed: &str,
) -> (String, Usage) {
    let mut history = older.to_vec();
    history.push(Message::user(SUMMARISE));
    let history = haft_core::agent::pairs::mend(history);
    let tools = offer.offered();
    let request = Request {
        model: &model.name().model,
        system,
        tools: &tools,
        history: &history,
        max_output: SUMMARY_MAX.min(model.facts().max_output),
        effort: None,
        native_search: false,
        scribe: &Scribe::default(),
    };
    let (sender, mut said) = mpsc::channel(64);
    let mut gather = Gather::default();
    let listen = async {
        while let Some(delta) = said.recv().await {
            gather.take(delta);
        }
    };
    let (asked, ()) = tokio::join!(Arc::clone(model).ask(&request, seed, sender), listen);
    let text = if asked.is_ok() { gather.message().text() } else { String::new() };
    (text, gather.usage())
}

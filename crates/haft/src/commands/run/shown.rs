//! A conversation for people: words on stdout as they come, and what is done on stderr.

use super::pulse::Pulse;
use crate::live;
use crate::style::{self, BAD, CARE, FAINT, GOOD, NAME, paint};
use haft_core::Outcome;
use haft_core::agent::turns::GO_ON;
use haft_core::agent::{Block, Message, Role};
use haft_core::preview::{cut, inert};
use haft_runtime::agent::{Ended, Told, Watch};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// How wide one line about a call is on a terminal. Elsewhere nothing is cut: nobody can look it up there.
const COLUMNS: usize = 100;

/// What is to be shown, and where.
#[derive(Clone, Copy)]
struct Way {
    /// Words go to a terminal as they come.
    alive: bool,
    thinking: bool,
    columns: usize,
}

/// What has been shown.
#[derive(Default)]
struct State {
    /// Whether a line has been begun and not ended, on stdout.
    open: bool,
    thinking: bool,
    /// What was said since the last call, if the model was cut off and let go on: its last words are all of that.
    said: String,
    /// The last words of what has ended. More may come, once a child in the background has reported.
    last: String,
    /// The names of children.
    names: BTreeMap<String, String>,
}

/// What has been shown, for whoever ends it.
#[derive(Default)]
pub(super) struct Shown(Arc<Mutex<State>>);

/// Shows what happens.
pub(super) fn watch(thinking: bool, shown: &Shown, pulse: &Pulse) -> Watch {
    let (state, pulse) = (Arc::clone(&shown.0), pulse.clone());
    let alive = std::io::stdout().is_terminal();
    let columns = if alive && std::io::stderr().is_terminal() { COLUMNS } else { usize::MAX };
    let way = Way { alive, thinking, columns };
    Arc::new(move |told| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        show(told, &mut state, way, 0);
        pulse.hear(told, state.open, alive && matches!(told, Told::Content { .. }));
    })
}

fn show(told: &Told, state: &mut State, way: Way, depth: usize) {
    let Way { alive, thinking, columns } = way;
    let indent = "  ".repeat(depth);
    let line = |state: &mut State, text: String| {
        end_line(state, alive);
        style::note(&format!("{indent}{text}"));
    };
    match told {
        Told::Content { text } if depth == 0 && alive => {
            if std::mem::take(&mut state.thinking) {
                end_line(state, alive);
            }
            write(&style::inert(text));
            state.open = !text.ends_with('\n');
        }
        Told::Thinking { text } if depth == 0 && alive && thinking => {
            write(&paint(FAINT, style::inert(text)));
            (state.open, state.thinking) = (true, true);
        }
        Told::ToolStart { preview, .. } => line(state, format!("{} {}", paint(NAME, "●"), cut(preview, columns))),
        Told::ToolEnd { outcome, .. } => {
            line(state, format!("  {}", result(outcome, columns)));
            for warning in &outcome.warnings {
                line(state, format!("  {}", paint(CARE, cut(&inert(warning), columns))));
            }
        }
        Told::ToolProgress { message, .. } if std::io::stderr().is_terminal() => {
            line(state, format!("  {}", paint(FAINT, cut(&inert(message), columns))));
        }
        Told::Retry { why, after_ms, requested } => {
            let wait = if *requested { ", as its provider wants" } else { "" };
            let text = format!("{}; asking again in {}{wait}", cut(&inert(why), columns), waited(*after_ms));
            line(state, paint(CARE, text));
        }
        Told::Fallback { model, why } => {
            line(state, paint(CARE, format!("{}; asking {} instead", inert(why), inert(model))));
        }
        Told::Compacted { before, after } => {
            line(state, paint(FAINT, format!("made shorter: about {before} tokens to {after}; the store keeps all")));
        }
        Told::Warning { message } => line(state, paint(CARE, inert(message))),
        Told::SubagentStart { subagent_id, name, task, mode, .. } => {
            state.names.insert(subagent_id.clone(), inert(name));
            let how = if mode == "sync" { String::new() } else { format!(" ({mode})") };
            line(state, format!("{} {}{how}: {}", paint(NAME, "▶"), inert(name), cut(&inert(task), columns)));
        }
        Told::SubagentEvent { inner, .. } => show(inner, state, way, depth + 1),
        Told::SubagentEnd { subagent_id, ended } => {
            let name = state.names.remove(subagent_id).unwrap_or_default();
            let (turns, calls) = (some(ended.turns, "turn"), some(ended.calls, "call"));
            let used = format!("{turns}, {calls}{}", cost(ended.cost_micros));
            line(state, format!("{} {name}: {}", paint(NAME, "◀"), paint(FAINT, used)));
        }
        // Whoever waits for the arguments of a call should see that they are waited for.
        Told::ToolInput { .. } if depth == 0 => end_line(state, alive),
        Told::Message { message } if depth == 0 => {
            // What was said is over, and so is its line.
            hear(message, state).then(|| end_line(state, alive));
        }
        Told::Done { ended } if depth == 0 => {
            end_line(state, alive);
            let said = std::mem::take(&mut state.said);
            state.last = if said.is_empty() { ended.text.clone() } else { said };
        }
        _ => {}
    }
}

/// Keeps what belongs to the last words: all that was said since the last call, or since somebody else spoke. Says whether what
/// was said is over.
fn hear(message: &Message, state: &mut State) -> bool {
    let calls = |block: &Block| matches!(block, Block::Use { .. } | Block::Result { .. });
    let over = match message.role {
        _ if message.blocks.iter().any(calls) => true,
        Role::Assistant => {
            state.said.push_str(&message.text());
            return false;
        }
        // It goes on in the middle of a word.
        Role::User => message.text() != GO_ON,
    };
    if over {
        state.said.clear();
    }
    over
}

/// How long is waited.
fn waited(ms: i64) -> String {
    let seconds = ms.max(0) / 1000 + 1;
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0 | 1) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// So many of something.
fn some(number: u32, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn result(outcome: &Outcome, columns: usize) -> String {
    let first = outcome.output.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let first =
        if first.trim_start().starts_with("## ") { outcome.output.lines().nth(2).unwrap_or(first) } else { first };
    match &outcome.error {
        None if first.is_empty() => paint(GOOD, "✓"),
        None => format!("{} {}", paint(GOOD, "✓"), paint(FAINT, cut(&inert(first), columns))),
        Some(error) => format!("{} {}", paint(BAD, "✗"), cut(&inert(&error.message), columns)),
    }
}

fn end_line(state: &mut State, alive: bool) {
    if std::mem::take(&mut state.open) && alive {
        write("\n");
    }
}

fn write(text: &str) {
    live::clear();
    let mut stdout = anstream::stdout().lock();
    // A reader that went away is no error worth a word.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// The last words, where they were not shown as they came; and what it took, below everything.
pub(super) fn finish(ended: &Ended, shown: &Shown) {
    let last = std::mem::take(&mut shown.0.lock().unwrap_or_else(PoisonError::into_inner).last);
    if !std::io::stdout().is_terminal() {
        style::out_foreign(last.trim_end());
    }
    let read = ended.usage.read();
    let known = match ended.usage.cache_read {
        0 => String::new(),
        known => format!(" ({known} of them known)"),
    };
    let seconds = ended.duration_ms / 1000;
    style::note(&paint(
        FAINT,
        format!(
            "{}, {}, {read} tokens read{known}, {} written{}, {seconds} s; go on with: haft run --resume={} \"…\"",
            some(ended.turns, "turn"),
            some(ended.calls, "call"),
            ended.usage.output,
            cost(ended.cost_micros),
            ended.session
        ),
    ));
}

fn cost(micros: Option<u64>) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people, to a hundredth of a cent")]
    micros.map(|micros| format!(", ${:.4}", micros as f64 / 1_000_000.0)).unwrap_or_default()
}

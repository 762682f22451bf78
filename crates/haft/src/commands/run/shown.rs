//! A conversation for people: words on stdout as they come, and what is done on stderr.

use crate::style::{self, BAD, CARE, FAINT, GOOD, NAME, paint};
use haft_core::Outcome;
use haft_core::preview::{cut, inert};
use haft_runtime::agent::{Ended, Told, Watch};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// How wide one line about a call is.
const COLUMNS: usize = 100;

/// Whether a line has been begun and not ended, on stdout.
#[derive(Default)]
struct State {
    open: bool,
    thinking: bool,
}

/// Shows what happens.
pub(super) fn watch(thinking: bool) -> Watch {
    let state: Arc<Mutex<State>> = Arc::default();
    let alive = std::io::stdout().is_terminal();
    Arc::new(move |told| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        show(told, &mut state, (alive, thinking), 0);
    })
}

fn show(told: &Told, state: &mut State, (alive, thinking): (bool, bool), depth: usize) {
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
        Told::ToolStart { preview, .. } => line(state, format!("{} {}", paint(NAME, "●"), cut(preview, COLUMNS))),
        Told::ToolEnd { outcome, .. } => {
            line(state, format!("  {}", result(outcome)));
            for warning in &outcome.warnings {
                line(state, format!("  {}", paint(CARE, cut(&inert(warning), COLUMNS))));
            }
        }
        Told::ToolProgress { message, .. } if std::io::stderr().is_terminal() => {
            line(state, format!("  {}", paint(FAINT, cut(&inert(message), COLUMNS))));
        }
        Told::Retry { why, after_ms } => {
            let text = format!("{}; asking again in {} s", cut(&inert(why), COLUMNS), after_ms.div_euclid(1000) + 1);
            line(state, paint(CARE, text));
        }
        Told::Fallback { model, why } => {
            line(state, paint(CARE, format!("{}; asking {} instead", inert(why), inert(model))));
        }
        Told::Compacted { before, after } => {
            line(state, paint(FAINT, format!("made shorter: about {before} tokens to {after}; the store keeps all")));
        }
        Told::Warning { message } => line(state, paint(CARE, inert(message))),
        Told::SubagentStart { name, task, mode, .. } => {
            let how = if mode == "sync" { String::new() } else { format!(" ({mode})") };
            line(state, format!("{} {}{how}: {}", paint(NAME, "▶"), inert(name), cut(&inert(task), COLUMNS)));
        }
        Told::SubagentEvent { inner, .. } => show(inner, state, (alive, thinking), depth + 1),
        Told::SubagentEnd { ended, .. } => {
            let used = format!("{} turns, {} calls{}", ended.turns, ended.calls, cost(ended.cost_micros));
            line(state, format!("{} {}", paint(NAME, "◀"), paint(FAINT, used)));
        }
        Told::Done { ended } if depth == 0 => {
            end_line(state, alive);
            if !alive {
                style::out_foreign(ended.text.trim_end());
            }
        }
        _ => {}
    }
}

fn result(outcome: &Outcome) -> String {
    let first = outcome.output.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let first =
        if first.trim_start().starts_with("## ") { outcome.output.lines().nth(2).unwrap_or(first) } else { first };
    match &outcome.error {
        None if first.is_empty() => paint(GOOD, "✓"),
        None => format!("{} {}", paint(GOOD, "✓"), paint(FAINT, cut(&inert(first), COLUMNS))),
        Some(error) => format!("{} {}", paint(BAD, "✗"), cut(&inert(&error.message), COLUMNS)),
    }
}

fn end_line(state: &mut State, alive: bool) {
    if std::mem::take(&mut state.open) && alive {
        write("\n");
    }
}

fn write(text: &str) {
    let mut stdout = anstream::stdout().lock();
    // A reader that went away is no error worth a word.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// What it took, below everything.
pub(super) fn finish(ended: &Ended) {
    let read = ended.usage.read();
    let known = match ended.usage.cache_read {
        0 => String::new(),
        known => format!(" ({known} of them known)"),
    };
    let seconds = ended.duration_ms / 1000;
    style::note(&paint(
        FAINT,
        format!(
            "{} turns, {} calls, {read} tokens read{known}, {} written{}, {seconds} s; go on with: haft run --resume={} \"…\"",
            ended.turns,
            ended.calls,
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

//! A sign of life while nothing is said: what is waited for, and how long already.

use crate::live::Line;
use haft_core::preview::inert;
use haft_runtime::agent::Told;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often it is drawn.
pub(super) const TICK: Duration = Duration::from_millis(120);
/// What is over in a moment is not worth a line.
const PATIENCE: Duration = Duration::from_millis(400);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What is waited for, and the line that says so. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Pulse {
    line: Arc<Line>,
    waits: Arc<Mutex<Waits>>,
}

/// What is waited for; what began last is at the end.
#[derive(Default)]
struct Waits {
    list: Vec<Wait>,
    /// Whether words stand on a line that is not ended, which must not be drawn over.
    open: bool,
    /// When words were last seen: whoever speaks is alive.
    spoke: Option<Instant>,
}

struct Wait {
    /// Which agent; empty for the first one.
    agent: String,
    /// Which call; empty for its model.
    call: String,
    text: String,
    since: Instant,
}

impl Pulse {
    pub(super) fn new(line: &Arc<Line>) -> Self {
        Self { line: Arc::clone(line), ..Self::default() }
    }

    /// Whether somebody looks.
    pub(super) fn is_seen(&self) -> bool {
        self.line.is_seen()
    }

    /// Draws it as it is now.
    pub(super) fn draw(&self) {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if !waits.open {
            self.line.draw(&waits.line(Instant::now()).unwrap_or_default());
        }
    }

    /// Hears what happens: whether words stand on a line that is not ended now, and whether somebody has just seen some.
    pub(super) fn hear(&self, told: &Told, open: bool, spoke: bool) {
        let (mut waits, now) = (self.waits.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        waits.hear(told, "", now);
        waits.open = open;
        if spoke {
            waits.spoke = Some(now);
        }
    }

    /// It is over.
    pub(super) fn end(&self) {
        self.line.draw("");
    }
}

impl Waits {
    fn hear(&mut self, told: &Told, agent: &str, now: Instant) {
        match told {
            Told::Turn { model, .. } | Told::Fallback { model, .. } => {
                self.begin(agent, "", format!("waiting for {}", inert(model)), now);
            }
            Told::Thinking { .. } => self.says(agent, "the model thinks", now),
            Told::ToolInput { name, .. } => self.says(agent, &format!("the model writes a call: {}", inert(name)), now),
            Told::Content { .. } => self.says(agent, "the model writes", now),
            Told::Retry { .. } => self.begin(agent, "", "waiting to ask again".to_owned(), now),
            Told::Message { .. } => self.over(agent, ""),
            Told::ToolStart { id, preview, .. } => self.begin(agent, id, preview.clone(), now),
            Told::ToolEnd { id, .. } => self.over(agent, id),
            Told::SubagentEvent { subagent_id, inner } => self.hear(inner, subagent_id, now),
            Told::SubagentEnd { subagent_id, .. } => self.list.retain(|wait| wait.agent != *subagent_id),
            Told::Done { .. } => self.list.retain(|wait| wait.agent != agent),
            _ => {}
        }
    }

    fn begin(&mut self, agent: &str, call: &str, text: String, since: Instant) {
        self.over(agent, call);
        self.list.push(Wait { agent: agent.to_owned(), call: call.to_owned(), text, since });
    }

    /// The same wait goes on with another word for it.
    fn says(&mut self, agent: &str, text: &str, now: Instant) {
        match self.list.iter_mut().find(|wait| wait.agent == agent && wait.call.is_empty()) {
            Some(wait) => text.clone_into(&mut wait.text),
            None => self.begin(agent, "", text.to_owned(), now),
        }
    }

    fn over(&mut self, agent: &str, call: &str) {
        self.list.retain(|wait| wait.agent != agent || wait.call != call);
    }

    fn line(&self, now: Instant) -> Option<String> {
        let wait = self.list.last()?;
        let passed = now.saturating_duration_since(wait.since);
        let silent = self.spoke.map_or(passed, |spoke| now.saturating_duration_since(spoke));
        if passed < PATIENCE || silent < PATIENCE {
            return None;
        }
        let frame = FRAMES[usize::try_from(passed.as_millis() / TICK.as_millis()).unwrap_or(0) % FRAMES.len()];
        let time = match passed.as_secs() {
            seconds @ 0..60 => format!("{seconds} s"),
            seconds => format!("{}:{:02}", seconds / 60, seconds % 60),
        };
        let more = match self.list.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        // The time comes first: what is too long for the line is cut at its end.
        Some(format!("{frame} {time}  {}{more}", wait.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_waited_for_and_how_long() {
        let (mut waits, begun) = (Waits::default(), Instant::now());
        let after = |ms: u64| begun + Duration::from_millis(ms);
        waits.hear(&Told::Turn { number: 0, model: "acme/\u{1b}large".to_owned() }, "", begun);
        assert_eq!(waits.line(after(300)), None);
        assert_eq!(waits.line(after(1_200)).unwrap(), "⠋ 1 s  waiting for acme/\\u{1b}large");
        waits.hear(&Told::Thinking { text: "hm".to_owned() }, "", after(1_300));
        assert_eq!(waits.line(after(61_200)).unwrap(), "⠋ 1:01  the model thinks");
        let inner = Box::new(Told::Turn { number: 0, model: "acme/small".to_owned() });
        waits.hear(&Told::SubagentEvent { subagent_id: "1".to_owned(), inner }, "", after(60_000));
        assert_eq!(waits.line(after(61_200)).unwrap(), "⠋ 1 s  waiting for acme/small (and 1 more)");
        waits.hear(&Told::Content { text: "so".to_owned() }, "", after(61_300));
        waits.spoke = Some(after(61_300));
        assert_eq!(waits.line(after(61_400)), None, "words are seen");
        assert!(waits.line(after(62_000)).is_some(), "it has fallen silent");
    }
}

//! A conversation as it is shown: what was said, the calls that were made, and the children, each with a conversation of its
//! own. It is fed with what is told, and knows nothing of how it is drawn.

use super::text::{count, inert, lasted, money};
use haft_core::agent::turns::End;
use haft_core::agent::{Block, Message, Role, Usage};
use haft_core::{CallId, Outcome};
use haft_runtime::agent::{Ended, Told};
use std::collections::VecDeque;

/// How many lines of what a call prints are kept to be looked at. The log keeps all.
const PRINTED_MAX: usize = 1_000;
/// How many characters of a result.
const RESULT_MAX: usize = 64 << 10;

/// How something is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Said beside.
    Plain,
    /// Deserves a look.
    Care,
    /// Went wrong.
    Bad,
}

/// Something in a conversation.
#[derive(Debug)]
pub(crate) enum Item {
    /// What the person said. It waits if the model has not been told yet.
    You {
        /// The words.
        text: String,
        /// Whether the model is still to be told.
        waits: bool,
    },
    /// What the model said.
    Model(String),
    /// What it thought.
    Thought(String),
    /// A call.
    Tool(Box<Tool>),
    /// A child.
    Child(Box<Child>),
    /// Something that haft says.
    Note(Tone, String),
}

/// Something in a conversation, and whether it is unfolded.
#[derive(Debug)]
pub(crate) struct Entry {
    /// It.
    pub(crate) item: Item,
    /// Whether all of it is shown.
    pub(crate) open: bool,
    /// Changes whenever it does, so that nobody has to lay out what is as it was.
    pub(crate) version: u64,
}

/// A call.
#[derive(Debug)]
pub(crate) struct Tool {
    /// Its id in the conversation.
    pub(crate) id: String,
    /// Its id everywhere else, once it is made.
    pub(crate) call_id: Option<CallId>,
    /// One line about it, made inert.
    pub(crate) preview: String,
    /// The last lines of what it printed, made inert.
    pub(crate) printed: VecDeque<String>,
    /// When it began.
    pub(crate) since: u64,
    /// What came of it.
    pub(crate) end: Option<Came>,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Came {
    /// Whether it went well.
    pub(crate) well: bool,
    /// How long it took, where that is known.
    pub(crate) took: Option<u64>,
    /// What it gave.
    pub(crate) text: String,
}

/// A child.
#[derive(Debug)]
pub(crate) struct Child {
    /// Which.
    pub(crate) id: String,
    /// What it is called, and as what it works.
    pub(crate) name: String,
    /// What it is to do.
    pub(crate) task: String,
    /// `sync`, `background` or `worktree`.
    pub(crate) mode: String,
    /// When it began.
    pub(crate) since: u64,
    /// Its own conversation.
    pub(crate) talk: Talk,
    /// How it ended.
    pub(crate) ended: Option<(bool, String)>,
}

/// What was used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How often a model was asked.
    pub(crate) turns: u32,
    /// In all.
    pub(crate) total: Usage,
    /// How much of the window the last answer took.
    pub(crate) filled: u64,
    /// How much the model takes at once.
    pub(crate) window: u64,
    /// In millionths of a dollar.
    pub(crate) cost: Option<u64>,
    /// What it had cost before the last thing that was said.
    pub(crate) before: Option<u64>,
}

/// The way to an entry: its place, and the places in children that lead there.
pub(crate) type Path = Vec<usize>;

/// A conversation.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    /// In order.
    pub(crate) entries: Vec<Entry>,
    /// What was used.
    pub(crate) tally: Tally,
    versions: u64,
}

impl Talk {
    /// Adds something.
    pub(crate) fn push(&mut self, item: Item) {
        self.versions += 1;
        self.entries.push(Entry { item, open: false, version: self.versions });
    }

    /// Says something beside the conversation.
    pub(crate) fn note(&mut self, tone: Tone, text: impl Into<String>) {
        self.push(Item::Note(tone, text.into()));
    }

    /// Whether something in it moves.
    pub(crate) fn moves(&self) -> bool {
        self.entries.iter().any(|entry| entry.item.moves())
    }

    /// Takes what is told.
    pub(crate) fn told(&mut self, told: &Told, now: u64) {
        match told {
            Told::Turn { .. } => self.turn(),
            Told::Content { text } => self.say(text),
            Told::Thinking { text } => self.think(text),
            Told::ToolInput { id, name } => self.tool(id, inert(&format!("{name} …")), None, now),
            Told::ToolStart { id, call_id, preview, .. } => self.tool(id, inert(preview), Some(call_id.clone()), now),
            Told::ToolProgress { id, message } => self.with_tool(id, |tool| tool.print(message)),
            Told::ToolEnd { id, outcome } => self.with_tool(id, |tool| tool.end = Some(came(outcome))),
            Told::Retry { why, after_ms, requested } => self.retry(why, *after_ms, *requested),
            Told::Fallback { model, why } => self.note(Tone::Care, format!("{model} is asked from now on: {why}")),
            Told::Compacted { before, after } => {
                let text = format!("what is sent is shorter now: {} → {} tokens", count(*before), count(*after));
                self.note(Tone::Plain, text);
            }
            Told::Usage { last, total, cost_micros, window } => {
                let Tally { turns, cost, before, .. } = self.tally;
                let filled = last.read() + last.output;
                // What children cost may be known already, and be in no sum of this conversation's own.
                let cost = cost.max(*cost_micros);
                self.tally = Tally { turns, total: *total, filled, window: *window, cost, before };
            }
            Told::Warning { message } => self.note(Tone::Care, message.clone()),
            Told::SubagentStart { .. } => self.child_begins(told, now),
            Told::SubagentEvent { subagent_id, inner } => {
                self.with_child(subagent_id, &mut |child| child.talk.told(inner, now));
            }
            Told::SubagentEnd { subagent_id, ended } => {
                self.with_child(subagent_id, &mut |child| child.end(ended));
            }
            Told::Done { ended } => self.done(ended),
            Told::Start { .. } => self.tally.before = self.tally.cost,
            // It was shown word by word.
            Told::Message { .. } => {}
        }
    }

    /// A model is asked: it is told what was said meanwhile.
    fn turn(&mut self) {
        self.tally.turns += 1;
        for entry in &mut self.entries {
            if let Item::You { waits: waits @ true, .. } = &mut entry.item {
                *waits = false;
                self.versions += 1;
                entry.version = self.versions;
            }
        }
    }

    fn say(&mut self, more: &str) {
        match self.last() {
            Some(Item::Model(text)) => text.push_str(more),
            // A model may begin with nothing but space.
            _ if more.trim().is_empty() => {}
            _ => self.push(Item::Model(more.trim_start().to_owned())),
        }
    }

    fn think(&mut self, more: &str) {
        match self.last() {
            Some(Item::Thought(text)) => text.push_str(more),
            _ if more.trim().is_empty() => {}
            _ => self.push(Item::Thought(more.to_owned())),
        }
    }

    /// The last entry, to be changed.
    fn last(&mut self) -> Option<&mut Item> {
        let entry = self.entries.last_mut()?;
        self.versions += 1;
        entry.version = self.versions;
        Some(&mut entry.item)
    }

    /// A call is written, or made.
    fn tool(&mut self, id: &str, preview: String, call_id: Option<CallId>, now: u64) {
        let mut known = false;
        self.with_tool(id, |tool| {
            known = true;
            tool.since = now;
            tool.preview.clone_from(&preview);
            tool.call_id.clone_from(&call_id);
        });
        if !known {
            let tool = Tool { id: id.to_owned(), call_id, preview, printed: VecDeque::new(), since: now, end: None };
            self.push(Item::Tool(Box::new(tool)));
        }
    }

    fn with_tool(&mut self, id: &str, change: impl FnOnce(&mut Tool)) {
        let fits = |entry: &&mut Entry| matches!(&entry.item, Item::Tool(tool) if tool.id == id);
        let found = self.entries.iter_mut().rev().find(fits);
        if let Some(Entry { item: Item::Tool(tool), version, .. }) = found {
            self.versions += 1;
            *version = self.versions;
            change(tool);
        }
    }

    fn child_begins(&mut self, told: &Told, now: u64) {
        let Told::SubagentStart { subagent_id, name, task, role, mode } = told else { return };
        let name = role.as_ref().map_or_else(|| name.clone(), |role| format!("{name} ({role})"));
        let child = Child {
            id: subagent_id.clone(),
            name: inert(&name),
            task: inert(task),
            mode: inert(mode),
            since: now,
            talk: Self::default(),
            ended: None,
        };
        self.push(Item::Child(Box::new(child)));
    }

    /// Changes a child, however deep it is. False if there is none.
    fn with_child(&mut self, id: &str, change: &mut dyn FnMut(&mut Child)) -> bool {
        for entry in self.entries.iter_mut().rev() {
            let Item::Child(child) = &mut entry.item else { continue };
            let here = child.id == id;
            if here {
                change(child);
            }
            if here || child.talk.with_child(id, change) {
                self.versions += 1;
                entry.version = self.versions;
                return true;
            }
        }
        false
    }

    fn retry(&mut self, why: &str, after_ms: i64, requested: bool) {
        let after = lasted(u64::try_from(after_ms).unwrap_or(0));
        let wait = if requested { ", as its provider wants" } else { "" };
        self.note(Tone::Care, format!("no answer ({why}); asked again in {after}{wait}"));
    }

    fn done(&mut self, ended: &Ended) {
        self.cut_off();
        // That is of the last thing that was said, with what its children cost. What is shown is of all that was said.
        let whole = ended.cost_micros.map(|cost| self.tally.before.unwrap_or_default() + cost);
        self.tally.cost = self.tally.cost.max(whole);
        if let Some((tone, text)) = why(&ended.end) {
            self.note(tone, text);
        }
    }

    /// Nothing goes on any more, whether or not anybody was told of its end.
    pub(crate) fn cut_off(&mut self) {
        for entry in &mut self.entries {
            let changed = match &mut entry.item {
                Item::Tool(tool) if tool.end.is_none() => {
                    tool.end = Some(Came { well: false, took: None, text: "stopped".to_owned() });
                    true
                }
                Item::Child(child) if child.ended.is_none() && child.mode != "background" => {
                    child.talk.cut_off();
                    child.ended = Some((false, "stopped".to_owned()));
                    true
                }
                _ => false,
            };
            if changed {
                self.versions += 1;
                entry.version = self.versions;
            }
        }
    }

    /// The child, however deep it is, that made a call.
    pub(crate) fn maker(&self, call: &CallId) -> Option<&Child> {
        let made = |entry: &Entry| matches!(&entry.item, Item::Tool(tool) if tool.call_id.as_ref() == Some(call));
        self.entries.iter().rev().find_map(|entry| match &entry.item {
            Item::Child(child) if child.talk.entries.iter().any(made) => Some(&**child),
            Item::Child(child) => child.talk.maker(call),
            _ => None,
        })
    }

    /// The ways to everything that can be unfolded, in the order in which it is shown.
    pub(crate) fn foldable(&self) -> Vec<Path> {
        let mut ways = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if matches!(entry.item, Item::Tool(_) | Item::Child(_) | Item::Thought(_)) {
                ways.push(vec![at]);
            }
            if let (Item::Child(child), true) = (&entry.item, entry.open) {
                ways.extend(child.talk.foldable().into_iter().map(|inner| [vec![at], inner].concat()));
            }
        }
        ways
    }

    /// Unfolds an entry, or folds it.
    pub(crate) fn turn_over(&mut self, path: &[usize]) {
        let Some((first, rest)) = path.split_first() else { return };
        let Some(entry) = self.entries.get_mut(*first) else { return };
        self.versions += 1;
        entry.version = self.versions;
        match &mut entry.item {
            Item::Child(child) if !rest.is_empty() => child.talk.turn_over(rest),
            _ => entry.open = !entry.open,
        }
    }

    /// A conversation that was kept, as it is shown when it is gone on with.
    pub(crate) fn of(messages: &[Message]) -> Self {
        let mut talk = Self::default();
        for message in messages {
            message.blocks.iter().for_each(|block| talk.kept(message.role, block));
        }
        talk.cut_off();
        talk
    }

    fn kept(&mut self, role: Role, block: &Block) {
        match (role, block) {
            (Role::User, Block::Text { text }) if block.is_note() => self.note(Tone::Plain, text.clone()),
            (Role::User, Block::Text { text }) => self.push(Item::You { text: text.clone(), waits: false }),
            (Role::Assistant, Block::Text { text }) => self.say(text),
            (_, Block::Thinking { text, .. }) => self.think(text),
            (_, Block::Use { id, name, input, .. }) => {
                let preview = haft_core::preview::line(name, (name, &[]), input, None, 160);
                self.tool(id, preview, None, 0);
            }
            (_, Block::Result { id, text, failed, .. }) => self.with_tool(id, |tool| {
                let text = shortened(text);
                tool.end = Some(Came { well: !failed, took: None, text });
            }),
            (_, Block::Image(_)) => self.note(Tone::Plain, "(a picture)"),
            (_, Block::Foreign { provider, .. }) => self.note(Tone::Plain, format!("(something of {provider}'s own)")),
        }
    }
}

impl Item {
    /// Whether it moves by itself: a spinner, or a clock.
    pub(crate) fn moves(&self) -> bool {
        match self {
            Self::Tool(tool) => tool.end.is_none(),
            Self::Child(child) => child.ended.is_none() || child.talk.moves(),
            _ => false,
        }
    }
}

impl Tool {
    fn print(&mut self, message: &str) {
        self.printed.extend(message.trim_end_matches('\n').split('\n').map(inert));
        let over = self.printed.len().saturating_sub(PRINTED_MAX);
        self.printed.drain(..over);
    }
}

impl Child {
    fn end(&mut self, ended: &Ended) {
        let words = ended.text.trim().lines().next().unwrap_or_default();
        let text = why(&ended.end).map_or_else(|| inert(words), |(_, why)| why);
        self.ended = Some((ended.is_done(), text));
        self.talk.tally.turns = ended.turns;
        self.talk.tally.cost = ended.cost_micros.or(self.talk.tally.cost);
        self.talk.cut_off();
    }

    /// What it does just now, in a line.
    pub(crate) fn doing(&self) -> String {
        let last = self.talk.entries.last().map(|entry| match &entry.item {
            Item::Tool(tool) => tool.preview.clone(),
            Item::Model(text) | Item::Thought(text) => inert(text.trim().lines().next_back().unwrap_or_default()),
            Item::Child(child) => child.name.clone(),
            Item::Note(_, text) | Item::You { text, .. } => inert(text),
        });
        last.unwrap_or_else(|| self.task.clone())
    }

    /// What it has used, in a few words.
    pub(crate) fn used(&self) -> String {
        let Tally { turns, cost, .. } = &self.talk.tally;
        let turns = format!("{turns} {}", if *turns == 1 { "turn" } else { "turns" });
        cost.map_or(turns.clone(), |cost| format!("{turns}, {}", money(cost)))
    }
}

/// Not more of a text than anybody looks at here.
fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(RESULT_MAX)].to_owned()
}

fn came(outcome: &Outcome) -> Came {
    let text = match (&outcome.error, outcome.output.trim().is_empty()) {
        (Some(error), true) => error.message.clone(),
        (Some(error), false) => format!("{}\n{}", error.message, outcome.output),
        (None, _) => outcome.output.clone(),
    };
    Came { well: outcome.success, took: Some(outcome.duration_ms), text: shortened(&text) }
}

/// Why a conversation ended, where that is worth a word, and what to do about it.
fn why(end: &End) -> Option<(Tone, String)> {
    let care = |text: &str| Some((Tone::Care, text.to_owned()));
    match end {
        End::Done => None,
        End::Cancelled => Some((Tone::Plain, "stopped. What was said stays: say something to go on.".to_owned())),
        End::Refused => care("the model, or its provider, would not say more"),
        End::Length => care("the model ran into the limit of what it may write at once"),
        End::Loop => care("it made the same call again and again, so it was stopped"),
        End::Turns => care("it was asked as often as it may be. Say something to go on."),
        End::Tokens => care("it used as many tokens as it may"),
        End::Time => care("it took as long as it may"),
        End::Funds => care("there is no money left for it"),
        End::Overflow => care("more was said than the model takes. /clear begins anew."),
        End::Failed(failure) => Some((Tone::Bad, format!("no model answered: {}", failure.message))),
    }
}

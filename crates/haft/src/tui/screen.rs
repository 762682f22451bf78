//! What the terminal shows and knows, and what comes of everything that happens: a key, a word of the model, a question.
//! Nothing here draws, waits or asks: it takes an [`Input`] and gives the [`Wish`]es that follow from it.

use super::ask::{Answer, Asked, Ticket, What};
use super::command::{self, Command};
use super::edit::{Editor, History};
use super::form::Sheet;
use super::talk::{Item, Path, Talk, Tally, Tone};
use super::text::{count, inert, money};
use crate::style::Row;
use crate::terminal;
use haft_core::agent::{Message, Role};
use haft_runtime::agent::Told;
use haft_runtime::{Form, Question, Said, Written};
use ratatui::crossterm::event::KeyEvent;
use std::collections::VecDeque;

/// How long nobody may have typed before a question takes the keys. Whoever types is not to answer what they have not seen.
const PAUSE_MS: u64 = 1_000;
/// How long a question has to have been there before a key answers it: two quick keys are not two answers.
const SIGHT_MS: u64 = 250;
/// How long somebody has to say again that they want to leave.
const AGAIN_MS: u64 = 2_000;

/// What happens.
#[derive(Debug)]
pub(crate) enum Input {
    /// It is so late: milliseconds since the beginning.
    Tick(u64),
    /// A key.
    Key(KeyEvent),
    /// Text that was pasted.
    Paste(String),
    /// The wheel was turned by so many lines; down is more than nothing.
    Wheel(isize),
    /// The window has another size, and is drawn anew.
    Resize,
    /// Something happens in the conversation.
    Told(Box<Told>),
    /// Somebody is asked about a call.
    Ask(Ticket, Box<Question>),
    /// A tool wants something filled in.
    Fill(Ticket, Form),
    /// A question is none any more.
    Withdrawn(Ticket),
    /// The model is told something that nobody typed: a child in the background has ended.
    Prompted(String),
    /// What was said has come to its end.
    Over(Over),
    /// A conversation is shown from now on.
    Opened(Opened),
    /// What is to be done, and how far it is.
    Work(Vec<Row>),
    /// Something worth knowing.
    Note(Tone, String),
    /// Everything ends: the terminal is gone, or somebody wants this process to stop.
    Leave,
}

/// How something that was said came to its end.
#[derive(Debug, Default)]
pub(crate) struct Over {
    /// Why it could not be said, if it could not.
    pub(crate) failed: Option<String>,
    /// What was said meanwhile and has reached nobody.
    pub(crate) unsaid: Vec<String>,
    /// Whether somebody stopped it.
    pub(crate) stopped: bool,
}

/// A conversation that is shown from now on.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// Which.
    pub(crate) session: String,
    /// The model that is asked.
    pub(crate) model: String,
    /// What was said before and what that used; none if it is the one that is shown already.
    pub(crate) kept: Option<(Vec<Message>, Tally)>,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub(crate) enum Wish {
    /// Say this to the model.
    Say(String),
    /// Say this to the model while it works.
    Meanwhile(String),
    /// Stop what is going on.
    Cancel,
    /// Somebody answered about a call.
    Answer(Ticket, Said),
    /// Somebody filled in a form.
    Filled(Ticket, Written),
    /// Look what is to be done, and how far it is.
    Look,
    /// Take back the last change of the conversation that can be taken back.
    Undo,
    /// Ask another model.
    Model(String),
    /// Say which models there are.
    Models,
    /// Begin a new conversation.
    Clear,
    /// Go on with another one; without a name, say which there are.
    Resume(Option<String>),
    /// Let the wheel scroll, or the mouse select.
    Wheel(bool),
    /// Draw everything anew.
    Redraw,
    /// Give the terminal back to the shell for a while.
    Suspend,
    /// Leave.
    Quit,
}

/// What the person looks at, and what keys are for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Focus {
    /// Something is typed.
    #[default]
    Type,
    /// The conversation is looked through; this entry is chosen.
    Browse(Path),
    /// Something is looked for.
    Search,
    /// A question is answered.
    Ask,
    /// The keys are explained; so many lines of it are above what is seen.
    Help(usize),
}

/// Something is looked for.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// What.
    pub(crate) editor: Editor,
    /// How many places with it are below the one that is shown.
    pub(crate) back: usize,
}

/// Where the person looks.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// What keys are for.
    pub(crate) focus: Focus,
    /// The first line of the conversation that is seen; none if it is followed.
    pub(crate) top: Option<usize>,
    /// What is looked for.
    pub(crate) search: Option<Search>,
    /// What is to be done, if that is shown.
    pub(crate) work: Option<Vec<Row>>,
    /// Whether the mouse selects, as the terminal has it. Then the wheel does not scroll.
    pub(crate) selects: bool,
    /// How many lines the conversation had when it was last drawn, and how many were seen.
    pub(crate) seen: (usize, usize),
    /// How many places have what is looked for.
    pub(crate) hits: usize,
    /// Changes whenever another conversation is shown.
    pub(crate) conversation: u64,
    /// Whether what is chosen or found has to be brought into sight.
    pub(crate) reveal: bool,
    /// Whether somebody turned from the first question to the box, or typed there since it came. Then it takes no keys by
    /// itself.
    pub(crate) aside: bool,
}

/// What goes on, and since when.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Milliseconds since the beginning.
    pub(crate) now: u64,
    /// Since when the model works, if it does.
    pub(crate) since: Option<u64>,
    /// Whether it was told to stop.
    pub(crate) stopping: bool,
    /// When somebody last typed into the box.
    pub(crate) typed: u64,
    /// Since when the first question is there.
    pub(crate) asked: u64,
    /// When somebody wanted to leave, and has to say so again.
    pub(crate) leaving: Option<u64>,
}

/// What is known besides.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// The conversation.
    pub(crate) session: String,
    /// The model that is asked.
    pub(crate) model: String,
    /// The file in which rules are written, as people write it.
    pub(crate) config: String,
    /// Where the project is.
    pub(crate) project: String,
}

/// All that the terminal shows and knows.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// What is known besides.
    pub(crate) about: About,
    /// The conversation.
    pub(crate) talk: Talk,
    /// What is being typed.
    pub(crate) editor: Editor,
    /// What was typed before.
    pub(crate) history: History,
    /// The questions that wait, the first one first.
    pub(crate) asked: VecDeque<Asked>,
    /// Where the person looks.
    pub(crate) look: Look,
    /// What goes on.
    pub(crate) pace: Pace,
}

impl Screen {
    /// Takes what happens, and says what is to be done.
    pub(crate) fn update(&mut self, input: Input) -> Vec<Wish> {
        match input {
            Input::Tick(now) => {
                self.pace.tick(now);
                self.face();
            }
            Input::Key(key) => return self.key(key),
            Input::Paste(text) => self.paste(&text),
            Input::Wheel(lines) => self.scroll(lines),
            Input::Resize => {}
            Input::Told(told) => return self.told(&told),
            Input::Ask(ticket, question) => self.ask(Asked::call(ticket, question)),
            Input::Fill(ticket, form) => match Sheet::new(&form) {
                Some(sheet) => self.ask(Asked::form(ticket, sheet)),
                // It cannot be shown, so it is as if nobody were there.
                None => return vec![Wish::Filled(ticket, Written::Nobody)],
            },
            Input::Withdrawn(ticket) => self.withdraw(ticket),
            Input::Prompted(text) => {
                self.talk.note(Tone::Plain, text);
                self.pace.since = Some(self.pace.now);
            }
            Input::Over(over) => return self.over(over),
            Input::Opened(opened) => self.opened(opened),
            Input::Work(rows) => {
                if let Some(work) = &mut self.look.work {
                    *work = rows;
                }
            }
            Input::Note(tone, text) => self.talk.note(tone, text),
            Input::Leave => return vec![Wish::Cancel, Wish::Quit],
        }
        Vec::new()
    }

    /// Whether something moves by itself, so that time matters.
    pub(crate) fn spins(&self) -> bool {
        self.pace.since.is_some() || self.pace.leaving.is_some() || self.talk.moves() || self.waits()
    }

    /// Whether anything was said in this conversation.
    pub(crate) fn begun(&self) -> bool {
        self.talk.entries.iter().any(|entry| !matches!(entry.item, Item::Note(..)))
    }

    /// Whether the model works.
    pub(crate) fn works(&self) -> bool {
        self.pace.since.is_some()
    }

    fn told(&mut self, told: &Told) -> Vec<Wish> {
        match told {
            Told::Start { session, model, .. } => {
                self.about.session = inert(session.as_str());
                self.about.model = inert(model);
            }
            Told::Turn { model, .. } | Told::Fallback { model, .. } => self.about.model = inert(model),
            _ => {}
        }
        self.talk.told(told, self.pace.now);
        let changed = matches!(told, Told::ToolEnd { .. } | Told::SubagentEnd { .. } | Told::Done { .. });
        if changed && self.look.work.is_some() { vec![Wish::Look] } else { Vec::new() }
    }

    /// A question waits. It takes the keys only if nobody is in the midst of typing.
    fn ask(&mut self, asked: Asked) {
        if self.asked.is_empty() {
            self.pace.asked = self.pace.now;
            self.look.aside = !self.editor.is_empty();
        }
        self.asked.push_back(asked);
        self.face();
    }

    /// Whether a question waits for nothing but a pause in typing.
    fn waits(&self) -> bool {
        !self.asked.is_empty() && self.look.focus == Focus::Type && self.editor.is_empty() && !self.look.aside
    }

    /// Turns the keys to a question as soon as nobody is in the midst of typing.
    fn face(&mut self) {
        let rests = self.pace.now.saturating_sub(self.pace.typed) >= PAUSE_MS || self.pace.typed == 0;
        if self.waits() && rests {
            self.look.focus = Focus::Ask;
            self.pace.asked = self.pace.now;
        }
    }

    /// Back from what was looked at: to a question if one waits and nothing is being typed, otherwise to the box.
    pub(super) fn back(&mut self) {
        let asks = !self.asked.is_empty() && self.editor.is_empty();
        self.look.focus = if asks { Focus::Ask } else { Focus::Type };
    }

    /// What escape does.
    pub(crate) fn escapes(&self) -> &'static str {
        let asked = self.asked.front().filter(|_| self.look.focus == Focus::Ask);
        if let Some(closes) = asked.and_then(Asked::escapes) {
            return closes;
        }
        match (&self.look.focus, asked) {
            (Focus::Help(_), _) => "esc closes the help",
            (Focus::Search, _) => "esc closes the search",
            (Focus::Browse(_), _) => "esc goes back",
            _ if self.look.work.is_some() => "esc closes the tasks",
            (_, Some(Asked { what: What::Form(_), .. })) => "esc closes the form",
            _ => "esc to stop",
        }
    }

    fn withdraw(&mut self, ticket: Ticket) {
        if self.asked.front().is_some_and(|asked| asked.ticket == ticket) {
            self.pace.asked = self.pace.now;
            self.look.aside = !self.editor.is_empty();
        }
        self.asked.retain(|asked| asked.ticket != ticket);
        self.unask();
    }

    /// Whether the first question has been there long enough to be seen.
    pub(super) fn seen(&self) -> bool {
        self.pace.now.saturating_sub(self.pace.asked) >= SIGHT_MS
    }

    /// Keys are for typing again when nothing is asked any more.
    fn unask(&mut self) {
        if self.asked.is_empty() && self.look.focus == Focus::Ask {
            self.look.focus = Focus::Type;
        }
    }

    /// Somebody answered the first question.
    pub(super) fn answered(&mut self, answer: Answer) -> Vec<Wish> {
        if answer == Answer::Stop {
            return self.stop();
        }
        let Some(asked) = self.asked.pop_front() else { return Vec::new() };
        self.unask();
        self.pace.asked = self.pace.now;
        match answer {
            Answer::Said(said) => {
                if let (What::Call(question, _), Said::Once | Said::Session) = (&asked.what, &said)
                    && let Some(text) = terminal::suggestion(&question.rules, &self.about.config)
                {
                    self.talk.note(Tone::Plain, text);
                }
                vec![Wish::Answer(asked.ticket, said)]
            }
            Answer::Written(written) => vec![Wish::Filled(asked.ticket, written)],
            Answer::Stop => Vec::new(),
        }
    }

    /// Stops what is going on.
    pub(super) fn stop(&mut self) -> Vec<Wish> {
        if !self.works() {
            return Vec::new();
        }
        self.pace.stopping = true;
        vec![Wish::Cancel]
    }

    fn over(&mut self, over: Over) -> Vec<Wish> {
        self.pace.since = None;
        self.pace.stopping = false;
        self.asked.clear();
        self.unask();
        self.talk.cut_off();
        if let Some(failed) = over.failed {
            self.talk.note(Tone::Bad, failed);
        }
        // What has reached nobody is shown where it goes from here.
        self.talk.entries.retain(|entry| !matches!(entry.item, Item::You { waits: true, .. }));
        let unsaid = over.unsaid.join("\n\n");
        if unsaid.is_empty() {
            return Vec::new();
        }
        if over.stopped {
            // Whoever stopped the model may not want it said any more.
            let typed = self.editor.take();
            self.editor.insert(format!("{unsaid}\n{typed}").trim_end());
            return Vec::new();
        }
        // It was said while the model spoke its last words: it is said now.
        self.say(unsaid)
    }

    fn opened(&mut self, opened: Opened) {
        self.about.session = inert(&opened.session);
        self.about.model = inert(&opened.model);
        let Some((messages, used)) = opened.kept else { return };
        // What was said while it was being opened, or why it is hard to go on with, stays.
        let said = std::mem::take(&mut self.talk.entries);
        self.talk = Talk::of(&messages);
        if self.pace.since.is_some() || self.look.conversation == 0 {
            for entry in said {
                self.talk.push(entry.item);
            }
        }
        self.talk.tally = used;
        self.look.conversation += 1;
        let said = messages.iter().filter(|message| message.role == Role::User).map(Message::spoken);
        said.filter(|text| !text.is_empty()).for_each(|text| self.history.push(&text));
        self.look.top = None;
    }

    /// What was typed is meant.
    pub(super) fn submit(&mut self) -> Vec<Wish> {
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let text = self.editor.take();
        self.history.push(&text);
        self.look.top = None;
        match command::read(&text) {
            Some(Ok(command)) => self.command(command),
            Some(Err(problem)) => {
                self.talk.note(Tone::Care, problem);
                Vec::new()
            }
            None => self.say(text.trim().to_owned()),
        }
    }

    /// Says something: now, or with the next results.
    pub(crate) fn say(&mut self, text: String) -> Vec<Wish> {
        let waits = self.works();
        self.talk.push(Item::You { text: text.clone(), waits });
        if waits {
            return vec![Wish::Meanwhile(text)];
        }
        self.pace.since = Some(self.pace.now);
        self.pace.stopping = false;
        vec![Wish::Say(text)]
    }

    fn command(&mut self, command: Command) -> Vec<Wish> {
        // What is going on belongs to the conversation that is shown.
        if self.works() && matches!(command, Command::Clear | Command::Resume(Some(_)) | Command::Model(_)) {
            self.talk.note(Tone::Care, "the model still works: esc stops it, then this can be done");
            return Vec::new();
        }
        match command {
            Command::Help => self.look.focus = Focus::Help(0),
            Command::Model(name) => return vec![Wish::Model(name)],
            Command::Models => return vec![Wish::Models],
            Command::Clear => return vec![Wish::Clear],
            Command::Resume(session) => return vec![Wish::Resume(session)],
            Command::Undo => return vec![Wish::Undo],
            Command::Cost => self.cost(),
            Command::Quit => return vec![Wish::Cancel, Wish::Quit],
        }
        Vec::new()
    }

    fn cost(&mut self) {
        let tally = &self.talk.tally;
        let usage = &tally.total;
        let cost = tally.cost.map_or_else(|| "nobody knows the price".to_owned(), money);
        let text = format!(
            "this conversation: {cost}; {} turns; {} tokens read ({} of them remembered), {} written ({} of them thoughts)",
            tally.turns,
            count(usage.read()),
            count(usage.cache_read),
            count(usage.output),
            count(usage.thinking),
        );
        self.talk.note(Tone::Plain, text);
    }

    /// Something goes into the box.
    pub(super) fn typed(&mut self) {
        self.pace.typed = self.pace.now;
        self.look.aside = true;
    }

    fn paste(&mut self, text: &str) {
        match (&self.look.focus, self.asked.front_mut()) {
            (Focus::Ask, Some(asked)) => asked.paste(text),
            (Focus::Search, _) => {
                if let Some(search) = &mut self.look.search {
                    search.editor.insert(text.lines().next().unwrap_or_default());
                }
            }
            _ => {
                self.typed();
                self.look.focus = Focus::Type;
                self.editor.insert(text);
            }
        }
    }

    /// Scrolls by lines; down is more than nothing.
    pub(super) fn scroll(&mut self, lines: isize) {
        let (rows, height) = self.look.seen;
        let last = rows.saturating_sub(height);
        let top = self.look.top.unwrap_or(last).saturating_add_signed(lines);
        self.look.top = (top < last).then_some(top);
    }
}

impl Pace {
    /// It is so late. Whoever does not say again that they want to leave does not want to.
    fn tick(&mut self, now: u64) {
        self.now = now;
        self.leaving = self.leaving.filter(|before| now.saturating_sub(*before) <= AGAIN_MS);
    }
}

impl Look {
    /// Brings into sight what has to be: the chosen entry, or the place that was found. `rows` are all lines there are, and
    /// `chosen` is where the chosen entry begins.
    pub(crate) fn settle(&mut self, rows: &[&Row], height: usize, chosen: Option<usize>) {
        self.seen = (rows.len(), height);
        let last = rows.len().saturating_sub(height);
        let found = self.found(rows);
        let target = if self.focus == Focus::Search { found } else { chosen };
        if let (true, Some(target)) = (std::mem::take(&mut self.reveal), target) {
            let top = self.top.unwrap_or(last);
            if target < top || target >= top + height {
                self.top = Some(target.saturating_sub(height / 2));
            }
        }
        self.top = self.top.filter(|top| *top < last);
    }

    /// The line with the place that was found.
    fn found(&mut self, rows: &[&Row]) -> Option<usize> {
        let wanted = self.search.as_ref()?.editor.text().to_lowercase();
        let has = |row: &&Row| !places(row, &wanted).is_empty();
        let hits: Vec<usize> = rows.iter().enumerate().filter(|(_, row)| has(row)).map(|(at, _)| at).collect();
        self.hits = hits.len();
        let search = self.search.as_mut()?;
        search.back = search.back.min(hits.len().saturating_sub(1));
        hits.iter().rev().nth(search.back).copied()
    }
}

/// Where a line has words, as columns: from, and how many. The words are in small letters.
pub(crate) fn places(row: &Row, wanted: &str) -> Vec<(usize, usize)> {
    use unicode_width::UnicodeWidthStr;
    let line: String = row.iter().map(|(_, text)| text.as_str()).collect();
    let small = line.to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    small.match_indices(wanted).map(|(at, found)| (small[..at].width(), found.width())).collect()
}

//! Somebody is asked: about a call, or by a tool that wants to know something. The answers are those of every terminal; here
//! each is one key.

use super::edit::Editor;
use super::form::Sheet;
use crate::terminal;
use haft_runtime::{Question, Said, Written};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What tells one question from another.
pub(crate) type Ticket = u64;

/// A question that waits.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Which.
    pub(crate) ticket: Ticket,
    /// What is asked.
    pub(crate) what: What,
    /// How many lines of it are above what is seen.
    pub(crate) scroll: usize,
    /// Whether as much of it is shown as the screen holds.
    pub(crate) whole: bool,
    /// Whether the files of folded directories are shown.
    pub(crate) unfolded: bool,
    /// Why the last answer was none.
    pub(crate) problem: Option<String>,
}

/// What is asked.
#[derive(Debug)]
pub(crate) enum What {
    /// Whether a call may be made.
    Call(Box<Question>, Stage),
    /// To fill in a form.
    Form(Sheet),
}

/// How far an answer is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// One is to be chosen.
    Choose,
    /// For which pattern it is to hold.
    Pattern(Editor),
    /// What the model is told.
    Reason(Editor),
    /// Other arguments.
    Arguments(Editor),
}

/// What somebody said.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// About a call.
    Said(Said),
    /// In a form.
    Written(Written),
    /// Nothing: everything is to stop.
    Stop,
}

impl Asked {
    /// A question about a call.
    pub(crate) fn call(ticket: Ticket, question: Box<Question>) -> Self {
        Self::new(ticket, What::Call(question, Stage::Choose))
    }

    /// A form.
    pub(crate) fn form(ticket: Ticket, sheet: Sheet) -> Self {
        Self::new(ticket, What::Form(sheet))
    }

    fn new(ticket: Ticket, what: What) -> Self {
        Self { ticket, what, scroll: 0, whole: false, unfolded: false, problem: None }
    }

    /// Does what a key means, and gives the answer if there is one with it.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Answer> {
        self.problem = None;
        match key.code {
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(8),
            KeyCode::PageDown => self.scroll += 8,
            _ => {
                return match &mut self.what {
                    What::Form(sheet) => sheet.key(key).map(Answer::Written),
                    What::Call(_, Stage::Choose) => self.choose(key),
                    What::Call(..) => self.typed(key),
                };
            }
        }
        None
    }

    /// What escape closes in it, if it closes anything but the question itself.
    pub(crate) fn escapes(&self) -> Option<&'static str> {
        match &self.what {
            What::Call(_, Stage::Choose) => self.whole.then_some("esc closes the diff"),
            What::Call(..) => Some("esc goes back"),
            What::Form(_) => None,
        }
    }

    /// Pastes where something is being typed. What is pasted is never an answer.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.what {
            What::Form(sheet) => sheet.paste(text),
            What::Call(_, Stage::Pattern(editor) | Stage::Reason(editor) | Stage::Arguments(editor)) => {
                editor.insert(text);
            }
            What::Call(_, Stage::Choose) => {}
        }
    }

    fn choose(&mut self, key: KeyEvent) -> Option<Answer> {
        let What::Call(question, stage) = &mut self.what else { return None };
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        match key.code {
            KeyCode::Char('o' | 'y') => return Some(Answer::Said(Said::Once)),
            KeyCode::Char('s') if question.can_last() => return Some(Answer::Said(Said::Session)),
            KeyCode::Char('t') if question.can_try() => return Some(Answer::Said(Said::Try)),
            KeyCode::Char('a') if question.can_last() => {
                *stage = Stage::Pattern(Editor::with(terminal::offered(question)));
            }
            KeyCode::Char('r' | 'n') => *stage = Stage::Reason(Editor::default()),
            KeyCode::Char('e') => *stage = Stage::Arguments(Editor::with(question.args.to_string())),
            KeyCode::Char('d') => self.whole = !self.whole,
            KeyCode::Char('f') if terminal::has_folded(question) => {
                self.unfolded = !self.unfolded;
                self.whole |= self.unfolded;
            }
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::Esc if self.whole => self.whole = false,
            KeyCode::Esc => return Some(Answer::Stop),
            _ => {
                let keys: Vec<&str> = terminal::keys(question).into_iter().map(|(key, _)| key).collect();
                self.problem = Some(format!("type {}", keys.join(", ")));
            }
        }
        None
    }

    /// A key while something is typed.
    fn typed(&mut self, key: KeyEvent) -> Option<Answer> {
        let What::Call(question, stage) = &mut self.what else { return None };
        let (Stage::Pattern(editor) | Stage::Reason(editor) | Stage::Arguments(editor)) = &mut *stage else {
            return None;
        };
        match key.code {
            KeyCode::Esc => *stage = Stage::Choose,
            KeyCode::Enter => {
                let text = editor.text().trim().to_owned();
                let said = match stage {
                    Stage::Pattern(_) => terminal::for_pattern(question, text),
                    Stage::Arguments(_) => terminal::with_arguments(&text),
                    Stage::Reason(_) | Stage::Choose => Ok(Said::Reject(text)),
                };
                match said {
                    Ok(said) => return Some(Answer::Said(said)),
                    Err(problem) => self.problem = Some(problem),
                }
            }
            _ => {
                editor.key(key);
            }
        }
        None
    }
}

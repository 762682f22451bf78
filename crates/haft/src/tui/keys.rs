//! What each key means, by what the person looks at. The table of them is what the help shows.

use super::command;
use super::edit::Editor;
use super::screen::{Focus, Screen, Search, Wish};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The keys, for people: where they work, and what they do.
pub(crate) const KEYS: &[(&str, &[(&str, &str)])] = &[
    (
        "anywhere",
        &[
            ("esc", "close what is open; then, stop the model"),
            ("ctrl-c", "stop the model; twice leaves"),
            ("ctrl-d", "leave, if nothing is typed"),
            ("tab", "between typing, questions and the conversation"),
            ("pgup pgdn", "scroll"),
            ("ctrl-f", "search the conversation"),
            ("ctrl-t", "what is to be done: tasks and runs"),
            ("ctrl-o", "unfold the last call"),
            ("ctrl-l", "draw anew"),
            ("alt-m", "let the wheel scroll, or the mouse select"),
            ("ctrl-z", "back to the shell; fg comes back"),
        ],
    ),
    (
        "typing",
        &[
            ("enter", "say it; while the model works, with the next results"),
            ("alt-enter ctrl-j", "a new line"),
            ("up down", "what was said before"),
            ("ctrl-a ctrl-e", "to the beginning, to the end"),
            ("ctrl-u ctrl-k ctrl-w", "cut to the beginning, to the end, a word"),
            ("?", "this, if nothing is typed"),
        ],
    ),
    (
        "asked about a call",
        &[
            ("o", "yes, this once"),
            ("t", "try it on a copy of the files, and show what it does"),
            ("s", "yes, until the session ends"),
            ("a", "yes, always, for a pattern"),
            ("r", "no, with a word to the model"),
            ("e", "with other arguments"),
            ("d", "all of the difference; up and down scroll, esc goes back"),
            ("f", "the files of folded directories, where there are any"),
            ("esc", "no, and stop the model"),
        ],
    ),
    (
        "asked by a tool",
        &[
            ("up down 1-9", "choose"),
            ("space", "choose several"),
            ("y n", "yes or no"),
            ("enter", "next, and done"),
            ("ctrl-x", "decline"),
        ],
    ),
    (
        "looking through the conversation",
        &[
            ("up down", "between calls and children"),
            ("enter space", "unfold, fold"),
            ("/", "search"),
            ("a letter", "back to typing"),
        ],
    ),
];

impl Screen {
    /// Does what a key means.
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Wish> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let wishes = match key.code {
            KeyCode::Char('c') if control => return self.interrupt(),
            KeyCode::Char('d') if control && self.editor.is_empty() && self.look.focus == Focus::Type => {
                return vec![Wish::Cancel, Wish::Quit];
            }
            KeyCode::Char('l') if control => vec![Wish::Redraw],
            KeyCode::Char('z') if control => vec![Wish::Suspend],
            KeyCode::Char('f') if control => self.search(),
            KeyCode::Char('t') if control => self.show_work(),
            KeyCode::Char('o') if control => self.unfold_last(),
            KeyCode::Char('m') if key.modifiers.contains(KeyModifiers::ALT) => {
                self.look.selects = !self.look.selects;
                vec![Wish::Wheel(!self.look.selects)]
            }
            _ => match self.look.focus.clone() {
                Focus::Type => self.typing(key),
                Focus::Ask => self.answering(key),
                Focus::Browse(path) => self.browsing(key, &path),
                Focus::Search => self.searching(key),
                Focus::Help(top) => self.reading(key, top),
            },
        };
        self.pace.leaving = None;
        wishes
    }

    /// Ctrl-C: stops what goes on, empties what is typed, and leaves if there is nothing of either.
    fn interrupt(&mut self) -> Vec<Wish> {
        if self.pace.leaving.replace(self.pace.now).is_some() {
            return vec![Wish::Cancel, Wish::Quit];
        }
        if self.works() {
            return self.stop();
        }
        self.editor.take();
        self.look.focus = Focus::Type;
        Vec::new()
    }

    fn typing(&mut self, key: KeyEvent) -> Vec<Wish> {
        let held = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT | KeyModifiers::CONTROL);
        if !matches!(key.code, KeyCode::Esc | KeyCode::Tab | KeyCode::BackTab | KeyCode::PageUp | KeyCode::PageDown) {
            self.typed();
        }
        match key.code {
            KeyCode::Enter if held => self.editor.insert("\n"),
            KeyCode::Char('j') if key.modifiers.contains(KeyModifiers::CONTROL) => self.editor.insert("\n"),
            KeyCode::Enter => return self.submit(),
            KeyCode::Esc if self.look.work.take().is_some() => {}
            KeyCode::Esc => return self.stop(),
            // What is asked says that tab answers.
            KeyCode::Tab if self.asked.is_empty() && self.editor.text().starts_with('/') => self.complete(),
            KeyCode::Tab | KeyCode::BackTab => self.turn_to(),
            KeyCode::PageUp => self.page(-1),
            KeyCode::PageDown => self.page(1),
            KeyCode::Char('?') if self.editor.is_empty() => self.look.focus = Focus::Help(0),
            KeyCode::Up if !self.editor.up() => self.history.back(&mut self.editor),
            KeyCode::Down if !self.editor.down() => self.history.forth(&mut self.editor),
            _ => {
                self.editor.key(key);
            }
        }
        Vec::new()
    }

    fn complete(&mut self) {
        if let [only] | [only, ..] = command::completions(self.editor.text()).as_slice() {
            self.editor = Editor::with(*only);
        }
    }

    /// Tab: to a question if one waits, otherwise to the conversation.
    fn turn_to(&mut self) {
        let newest = self.talk.foldable().pop();
        self.look.focus = match (self.asked.is_empty(), newest) {
            (false, _) => Focus::Ask,
            (true, Some(path)) => Focus::Browse(path),
            (true, None) => Focus::Type,
        };
        self.look.reveal = true;
    }

    fn page(&mut self, pages: isize) {
        let lines = isize::try_from(self.look.seen.1.saturating_sub(2).max(1)).unwrap_or(1);
        self.scroll(pages * lines);
    }

    fn answering(&mut self, key: KeyEvent) -> Vec<Wish> {
        let seen = self.seen();
        let Some(asked) = self.asked.front_mut() else {
            self.look.focus = Focus::Type;
            return Vec::new();
        };
        if !seen && key.code != KeyCode::Esc {
            return Vec::new();
        }
        if key.code == KeyCode::Tab {
            (self.look.focus, self.look.aside) = (Focus::Type, true);
            return Vec::new();
        }
        if key.code == KeyCode::Esc && asked.escapes().is_none() && self.look.work.take().is_some() {
            return Vec::new();
        }
        match asked.key(key) {
            Some(answer) => self.answered(answer),
            None => Vec::new(),
        }
    }

    fn browsing(&mut self, key: KeyEvent, path: &[usize]) -> Vec<Wish> {
        let ways = self.talk.foldable();
        let at = ways.iter().position(|way| way == path).unwrap_or(ways.len().saturating_sub(1));
        let to = match key.code {
            KeyCode::Up => at.saturating_sub(1),
            KeyCode::Down => (at + 1).min(ways.len().saturating_sub(1)),
            KeyCode::Home => 0,
            KeyCode::End => ways.len().saturating_sub(1),
            KeyCode::Enter | KeyCode::Char(' ') => {
                self.talk.turn_over(path);
                at
            }
            KeyCode::Char('/') => return self.search(),
            KeyCode::Char('?') => {
                self.look.focus = Focus::Help(0);
                return Vec::new();
            }
            KeyCode::PageUp => return self.paged(-1),
            KeyCode::PageDown => return self.paged(1),
            KeyCode::Tab if !self.asked.is_empty() => {
                (self.look.focus, self.look.top) = (Focus::Ask, None);
                return Vec::new();
            }
            KeyCode::Esc | KeyCode::Tab => {
                self.look.top = None;
                self.back();
                return Vec::new();
            }
            // No letter is lost: whoever types wants to say something.
            KeyCode::Char(_) => {
                self.look.focus = Focus::Type;
                return self.typing(key);
            }
            _ => return Vec::new(),
        };
        self.look.reveal = true;
        self.look.focus = ways.get(to).map_or(Focus::Type, |way| Focus::Browse(way.clone()));
        Vec::new()
    }

    fn paged(&mut self, pages: isize) -> Vec<Wish> {
        self.page(pages);
        Vec::new()
    }

    fn search(&mut self) -> Vec<Wish> {
        self.look.search.get_or_insert_with(Search::default);
        self.look.focus = Focus::Search;
        Vec::new()
    }

    fn searching(&mut self, key: KeyEvent) -> Vec<Wish> {
        let Some(search) = &mut self.look.search else {
            self.look.focus = Focus::Type;
            return Vec::new();
        };
        self.look.reveal = true;
        match key.code {
            KeyCode::Tab if !self.asked.is_empty() => {
                self.look.search = None;
                self.look.focus = Focus::Ask;
            }
            KeyCode::Esc | KeyCode::Tab => {
                self.look.search = None;
                self.back();
            }
            KeyCode::Enter | KeyCode::Up => search.back = (search.back + 1).min(self.look.hits.saturating_sub(1)),
            KeyCode::Down => search.back = search.back.saturating_sub(1),
            KeyCode::PageUp => return self.paged(-1),
            KeyCode::PageDown => return self.paged(1),
            _ => {
                search.back = 0;
                search.editor.key(key);
            }
        }
        Vec::new()
    }

    fn reading(&mut self, key: KeyEvent, top: usize) -> Vec<Wish> {
        self.look.focus = match key.code {
            KeyCode::Down | KeyCode::Char('j') => Focus::Help(top + 1),
            KeyCode::PageDown | KeyCode::Char(' ') => Focus::Help(top + 10),
            KeyCode::Up | KeyCode::Char('k') => Focus::Help(top.saturating_sub(1)),
            KeyCode::PageUp => Focus::Help(top.saturating_sub(10)),
            KeyCode::Tab if !self.asked.is_empty() => Focus::Ask,
            _ => {
                self.back();
                return Vec::new();
            }
        };
        Vec::new()
    }

    fn show_work(&mut self) -> Vec<Wish> {
        if self.look.work.take().is_some() {
            return Vec::new();
        }
        self.look.work = Some(Vec::new());
        vec![Wish::Look]
    }

    fn unfold_last(&mut self) -> Vec<Wish> {
        if let Some(path) = self.talk.foldable().last() {
            self.talk.turn_over(path);
        }
        Vec::new()
    }
}

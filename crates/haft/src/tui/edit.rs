//! A box that text is typed in: several lines, a cursor between characters as people see them, and the keys that shells have.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// More than this is not taken: somebody pasted the wrong thing.
const TEXT_MAX: usize = 1 << 20;
/// How many texts are remembered.
const REMEMBERED: usize = 200;

/// Text that is being typed.
#[derive(Debug, Default, Clone)]
pub(crate) struct Editor {
    text: String,
    /// Where the cursor is, in bytes, always between two characters.
    at: usize,
}

impl Editor {
    /// One with something in it, and the cursor at its end.
    pub(crate) fn with(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { at: text.len(), text }
    }

    /// What was typed so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether nothing was.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes what was typed out of the box.
    pub(crate) fn take(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.text)
    }

    /// Types something, or pastes it. What is no text is left out.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
        let text: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        if self.text.len() + text.len() <= TEXT_MAX {
            self.text.insert_str(self.at, &text);
            self.at += text.len();
        }
    }

    /// Does what a key means here. False if it means nothing here.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('a') if control => self.at = self.line_start(),
            KeyCode::Char('e') if control => self.at = self.line_end(),
            KeyCode::Char('u') if control => self.cut(self.line_start(), self.at),
            KeyCode::Char('k') if control => self.cut(self.at, self.line_end()),
            KeyCode::Char('w') if control => self.cut(self.word_start(), self.at),
            KeyCode::Char('b') if control => self.at = self.before(),
            KeyCode::Char('b') if alt => self.at = self.word_start(),
            KeyCode::Char('f') if alt => self.at = self.word_end(),
            KeyCode::Char('d') if alt => self.cut(self.at, self.word_end()),
            KeyCode::Char(c) if !control && !alt => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if alt || control => self.cut(self.word_start(), self.at),
            KeyCode::Backspace => self.cut(self.before(), self.at),
            KeyCode::Delete => self.cut(self.at, self.after()),
            KeyCode::Left if alt || control => self.at = self.word_start(),
            KeyCode::Right if alt || control => self.at = self.word_end(),
            KeyCode::Left => self.at = self.before(),
            KeyCode::Right => self.at = self.after(),
            KeyCode::Home => self.at = self.line_start(),
            KeyCode::End => self.at = self.line_end(),
            _ => return false,
        }
        true
    }

    /// Moves the cursor a line up. False if it is in the first one.
    pub(crate) fn up(&mut self) -> bool {
        let start = self.line_start();
        let Some(end) = start.checked_sub(1) else { return false };
        let column = self.text[start..self.at].graphemes(true).count();
        let above = self.text[..end].rfind('\n').map_or(0, |at| at + 1);
        self.at = above + nth(&self.text[above..end], column);
        true
    }

    /// Moves the cursor a line down. False if it is in the last one.
    pub(crate) fn down(&mut self) -> bool {
        let end = self.line_end();
        if end == self.text.len() {
            return false;
        }
        let column = self.text[self.line_start()..self.at].graphemes(true).count();
        let next = end + 1;
        let stop = self.text[next..].find('\n').map_or(self.text.len(), |at| next + at);
        self.at = next + nth(&self.text[next..stop], column);
        true
    }

    fn cut(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = from;
    }

    fn before(&self) -> usize {
        self.text[..self.at].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.at..].graphemes(true).next().map_or(self.at, |piece| self.at + piece.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.at..].find('\n').map_or(self.text.len(), |at| self.at + at)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.at].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8))
    }

    fn word_end(&self) -> usize {
        let rest = &self.text[self.at..];
        let spaces = rest.len() - rest.trim_start().len();
        rest[spaces..].find(char::is_whitespace).map_or(self.text.len(), |at| self.at + spaces + at)
    }

    /// The lines as they are shown in so many columns, and where the cursor is: its column and its line.
    pub(crate) fn lines(&self, columns: usize) -> (Vec<String>, (usize, usize)) {
        let columns = columns.max(2);
        let (mut lines, mut cursor, mut place) = (Vec::new(), (0, 0), 0);
        for line in self.text.split('\n') {
            let (mut shown, mut used) = (String::new(), 0);
            for piece in line.graphemes(true) {
                // Typed text is shown by what it looks like; the box keeps what it is.
                let seen = haft_core::preview::inert(piece);
                if used + seen.width() > columns && used > 0 {
                    lines.push(std::mem::take(&mut shown));
                    used = 0;
                }
                if place == self.at {
                    cursor = (used, lines.len());
                }
                used += seen.width();
                shown.push_str(&seen);
                place += piece.len();
            }
            if place == self.at {
                cursor = if used >= columns { (0, lines.len() + 1) } else { (used, lines.len()) };
            }
            place += 1;
            lines.push(shown);
        }
        if cursor.1 == lines.len() {
            lines.push(String::new());
        }
        (lines, cursor)
    }
}

/// Where the nth character begins, or where the text ends.
fn nth(text: &str, count: usize) -> usize {
    text.grapheme_indices(true).nth(count).map_or(text.len(), |(at, _)| at)
}

/// What was said before, to be said again.
#[derive(Debug, Default)]
pub(crate) struct History {
    texts: Vec<String>,
    /// Which of them is shown, and what was being typed when somebody began to look.
    shown: Option<(usize, String)>,
}

impl History {
    /// Remembers a text.
    pub(crate) fn push(&mut self, text: &str) {
        self.shown = None;
        if self.texts.last().is_none_or(|last| last != text) {
            self.texts.push(text.to_owned());
        }
        if self.texts.len() > REMEMBERED {
            self.texts.remove(0);
        }
    }

    /// Shows the one before.
    pub(crate) fn back(&mut self, editor: &mut Editor) {
        let at = self.shown.as_ref().map_or(self.texts.len(), |(at, _)| *at);
        let Some(at) = at.checked_sub(1) else { return };
        let typed = self.shown.take().map_or_else(|| editor.text().to_owned(), |(_, typed)| typed);
        *editor = Editor::with(self.texts[at].clone());
        self.shown = Some((at, typed));
    }

    /// Shows the one after, and at last what was being typed.
    pub(crate) fn forth(&mut self, editor: &mut Editor) {
        let Some((at, typed)) = self.shown.take() else { return };
        match self.texts.get(at + 1) {
            Some(text) => {
                *editor = Editor::with(text.clone());
                self.shown = Some((at + 1, typed));
            }
            None => *editor = Editor::with(typed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn press(editor: &mut Editor, code: KeyCode, modifiers: KeyModifiers) {
        editor.key(KeyEvent::new(code, modifiers));
    }

    fn control(editor: &mut Editor, c: char) {
        press(editor, KeyCode::Char(c), KeyModifiers::CONTROL);
    }

    #[test]
    fn the_keys_of_shells_work() {
        let mut editor = Editor::with("the quick brown");
        control(&mut editor, 'w');
        assert_eq!(editor.text(), "the quick ");
        control(&mut editor, 'a');
        editor.insert("x");
        control(&mut editor, 'e');
        editor.insert("y");
        assert_eq!(editor.text(), "xthe quick y");
        press(&mut editor, KeyCode::Left, KeyModifiers::ALT);
        control(&mut editor, 'k');
        assert_eq!(editor.text(), "xthe quick ");
        control(&mut editor, 'u');
        assert!(editor.is_empty());
    }

    #[test]
    fn a_character_is_what_people_see_as_one() {
        let mut editor = Editor::with("ae\u{301}漢");
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(editor.text(), "a");
    }

    #[test]
    fn what_is_pasted_is_text() {
        let mut editor = Editor::default();
        editor.insert("a\r\nb\tc\u{1b}[2J");
        assert_eq!(editor.text(), "a\nb    c[2J");
    }

    #[test]
    fn lines_are_moved_between_and_the_cursor_is_found() {
        let mut editor = Editor::with("first\nsecond\n漢字");
        assert_eq!(editor.lines(10), (vec!["first".into(), "second".into(), "漢字".into()], (4, 2)));
        assert!(editor.up() && editor.up() && !editor.up());
        assert_eq!(editor.lines(10).1, (2, 0));
        assert!(editor.down());
        assert_eq!(editor.lines(10).1, (2, 1));
        assert_eq!(Editor::with("abcdef").lines(3), (vec!["abc".into(), "def".into(), String::new()], (0, 2)));
    }

    #[test]
    fn what_was_said_can_be_said_again() {
        let (mut history, mut editor) = (History::default(), Editor::with("draft"));
        history.push("one");
        history.push("two");
        history.push("two");
        history.back(&mut editor);
        history.back(&mut editor);
        history.back(&mut editor);
        assert_eq!(editor.text(), "one");
        history.forth(&mut editor);
        history.forth(&mut editor);
        assert_eq!(editor.text(), "draft");
    }

    proptest! {
        #[test]
        fn no_key_breaks_the_text(text in "[a-c \n漢é👍🏽]{0,20}", keys in proptest::collection::vec(0_u8..16, 0..30), columns in 1_usize..12) {
            let mut editor = Editor::with(text);
            for key in keys {
                match key {
                    0 => { editor.up(); }
                    1 => { editor.down(); }
                    2..=9 => control(&mut editor, ['a', 'e', 'u', 'k', 'w', 'b', 'f', 'x'][usize::from(key - 2)]),
                    10 => press(&mut editor, KeyCode::Left, KeyModifiers::NONE),
                    11 => press(&mut editor, KeyCode::Right, KeyModifiers::ALT),
                    12 => press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE),
                    13 => press(&mut editor, KeyCode::Delete, KeyModifiers::NONE),
                    _ => editor.insert("漢\n"),
                }
                let (lines, (column, line)) = editor.lines(columns);
                prop_assert!(line < lines.len() && column <= columns.max(2));
            }
        }
    }
}

//! Words, and what each is for where it stands.

use super::frame::{Kind, State, Target, Word};
use super::nested::Escapes;
use super::scan::Scan;
use std::mem;

impl Scan<'_, '_, '_> {
    /// Reads on in a word until it ends or something nested opens.
    pub(super) fn word(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let plain = rest.iter().position(|&byte| SPECIAL[usize::from(byte)]).unwrap_or(rest.len());
        self.frame.word.take(rest.get(..plain).unwrap_or_default());
        self.at += plain;
        match self.byte(self.at) {
            0 => {}
            b'\\' => self.backslash(),
            b'\'' => self.single_quotes(self.at, Escapes::None),
            b'"' => self.push(Kind::Double, self.at, self.at + 1),
            b'`' => self.backtick(),
            b'$' => {
                self.frame.word.blur();
                self.dollar();
            }
            b'=' => self.equals(),
            b'[' => self.square(),
            b'<' | b'>' if self.byte(self.next(self.at)) == b'(' => {
                let inner = self.next(self.at) + 1;
                self.substitution(inner);
            }
            b'(' => self.parenthesis(),
            b'|' if self.frame.regex => self.literal(),
            _ => self.end_word(),
        }
    }

    /// Takes one special byte as itself.
    fn literal(&mut self) {
        let byte = self.byte(self.at);
        self.frame.word.take(&[byte]);
        self.at += 1;
    }

    fn backslash(&mut self) {
        if self.byte(self.at + 1) != b'\n' {
            self.frame.word.blur();
        }
        self.at = self.bytes.len().min(self.at + 2);
    }

    fn equals(&mut self) {
        self.literal();
        let word = &self.frame.word;
        if word.equals > 0 {
            return;
        }
        let mut end = self.at - 1;
        if end > word.start && self.byte(end - 1) == b'+' {
            end -= 1;
        }
        let name = self.bytes.get(word.start..end).unwrap_or_default();
        let assignment = (end > word.start && end == word.subscript) || is_name(name);
        self.frame.word.assignment = assignment;
        self.frame.word.equals = self.at;
    }

    /// At `[` in a word: a subscript if an assignment may stand here.
    fn square(&mut self) {
        if self.frame.word.square > 0 {
            return self.literal();
        }
        self.frame.word.square = self.at + 1;
        let word = &self.frame.word;
        let name = self.bytes.get(word.start..self.at).unwrap_or_default();
        let subscript = match self.frame.kind {
            Kind::Array => name.is_empty(),
            kind => {
                kind.holds_commands()
                    && self.frame.target == Target::None
                    && self.frame.state.takes_assignment()
                    && is_name(name)
            }
        };
        if subscript {
            self.push(Kind::Subscript, self.at, self.at + 1);
        } else {
            self.literal();
        }
    }

    /// At `(` in a word: it belongs to a pattern or an array, or ends the word.
    fn parenthesis(&mut self) {
        let Word { last, assignment, equals, .. } = self.frame.word;
        let state = self.frame.state;
        let commands = self.frame.kind.holds_commands() && self.frame.target == Target::None;
        // Without `extglob` these are the negation of a subshell, and the name of a function.
        let empty = self.byte(self.next(self.at)) == b')';
        let other = commands && state.begins() && (empty || self.frame.word.reserved() == b"!");
        let takes = state.takes_assignment() || matches!(state, State::AssignName | State::AssignArgs);
        if commands && takes && assignment && equals == self.at {
            self.push(Kind::Array, self.at, self.at + 1);
        } else if self.frame.regex || (matches!(last, b'?' | b'*' | b'+' | b'@' | b'!') && !other) {
            self.push(Kind::Pattern, self.at, self.at + 1);
        } else {
            self.end_word();
        }
    }

    pub(super) fn end_word(&mut self) {
        let word = mem::replace(&mut self.frame.word, Word::NONE);
        if self.is_descriptor(&word) {
            return;
        }
        self.found_word(word.start);
        match self.frame.kind {
            // There bash takes them for what they seem, fails, and goes on with the next line.
            Kind::Array if word.is_reserved() && self.in_coprocess() => {
                self.fail(word.start, "a reserved word in an array in a coprocess");
            }
            Kind::Array => {}
            Kind::Cond | Kind::CondGroup => self.condition_word(&word),
            _ => self.command_word(&word),
        }
    }

    fn condition_word(&mut self, word: &Word) {
        let regex = mem::replace(&mut self.frame.regex, false);
        match (self.frame.kind, word.reserved()) {
            (Kind::Cond, b"]]") => self.close_compound(),
            (_, b"]]") => self.fail(word.start, "`]]` before `)`"),
            (_, b"=~") => self.frame.regex = !regex,
            _ => {}
        }
    }

    fn command_word(&mut self, word: &Word) {
        match mem::replace(&mut self.frame.target, Target::None) {
            Target::None => {}
            Target::File | Target::Descriptor => return,
            Target::Delimiter { tabs } => return self.heredoc(word, tabs),
        }
        match self.frame.state {
            // Bash writes a substitution anew before it runs it, redirections last: the word would be reserved.
            State::Redirected if word.is_reserved() => self.fail(word.start, "a reserved word after a redirection"),
            State::Prefix | State::Redirected => self.name(word),
            State::Name => self.frame.state = State::Args,
            State::AssignName => self.frame.state = State::AssignArgs,
            State::Args | State::AssignArgs | State::ForWords | State::PatternRest => {}
            State::Closed => self.closing(word),
            State::ForName => self.frame.state = State::ForIn,
            State::ForIn if word.reserved() == b"in" => self.frame.state = State::ForWords,
            State::ForIn | State::ForDo => self.loop_body(word),
            State::CaseWord => self.frame.state = State::CaseIn,
            State::CaseIn if word.reserved() == b"in" => self.frame.state = State::Pattern,
            State::CaseIn => self.fail(word.start, "`case` without `in`"),
            State::Pattern if word.reserved() == b"esac" => self.close_compound(),
            State::Pattern => self.frame.state = State::PatternRest,
            State::FuncName => self.frame.state = State::FuncParens,
            State::FuncParens | State::FuncBody => self.function_body(word),
            State::CoprocName => self.after_coprocess(word),
            _ => self.first_word(word),
        }
    }

    /// Whether the word is the descriptor of the redirection that follows it: a number or `{name}`.
    fn is_descriptor(&self, word: &Word) -> bool {
        let here = self.frame.kind.holds_commands() && self.frame.target == Target::None;
        if !here || !word.plain || !matches!(self.byte(self.at), b'<' | b'>') {
            return false;
        }
        match self.bytes.get(word.start..self.at).unwrap_or_default() {
            [b'{', name @ .., b'}'] => {
                let name = name.split(|&byte| byte == b'[').next().unwrap_or_default();
                is_name(name)
            }
            digits => digits.iter().all(u8::is_ascii_digit),
        }
    }

    /// Where a command begins.
    fn first_word(&mut self, word: &Word) {
        let state = self.frame.state;
        if self.opens_compound(word) {
            return;
        }
        match word.reserved() {
            b"!" if state == State::Piped => self.fail(word.start, "`!` inside a pipeline"),
            b"!" => self.frame.state = State::Bang,
            b"time" if state != State::Piped => self.frame.state = State::Time,
            b"-p" | b"--" if state == State::Time => {}
            b"function" => self.frame.state = State::FuncName,
            b"coproc" => self.frame.state = State::Coproc,
            b"then" | b"do" | b"else" | b"elif" | b"fi" | b"done" | b"esac" | b"}" | b"in" | b"]]" => {
                self.closing(word);
            }
            _ => self.name(word),
        }
    }

    /// The name of a command, or an assignment before it.
    fn name(&mut self, word: &Word) {
        if word.assignment {
            self.frame.state = State::Prefix;
            return;
        }
        self.look.commands.push(self.text.place(word.start));
        let assigns = matches!(
            word.reserved(),
            b"declare" | b"typeset" | b"local" | b"export" | b"readonly" | b"alias" | b"eval" | b"let"
        );
        self.frame.state = match self.frame.state {
            State::Coproc => State::CoprocName,
            State::Prefix | State::Redirected if assigns => State::AssignArgs,
            State::Prefix | State::Redirected => State::Args,
            _ if assigns => State::AssignName,
            _ => State::Name,
        };
    }

    /// Goes into a compound command if the word begins one.
    fn opens_compound(&mut self, word: &Word) -> bool {
        let kind = match word.reserved() {
            b"{" => Kind::Brace,
            b"if" => Kind::If,
            b"while" | b"until" => Kind::Loop,
            b"for" | b"select" => Kind::For,
            b"case" => Kind::Case,
            b"[[" => Kind::Cond,
            _ => return false,
        };
        if kind == Kind::Brace {
            self.found_separator(word.start);
        }
        self.push(kind, word.start, self.at);
        true
    }

    fn close_compound(&mut self) {
        self.pop();
        self.frame.state = State::Closed;
    }

    /// A word that has to go on with a compound command or end it.
    fn closing(&mut self, word: &Word) {
        let allowed = matches!(self.frame.state, State::Start | State::Closed);
        let part = match (self.frame.kind, self.frame.part, word.reserved()) {
            _ if !allowed => return self.fail(word.start, "a reserved word where a command has to be"),
            (Kind::If, 0, b"then") | (Kind::Loop, 0, b"do") => 1,
            (Kind::If, 1, b"elif") => 0,
            (Kind::If, 1, b"else") => 2,
            (Kind::If, 1 | 2, b"fi") | (Kind::Loop | Kind::For, 1, b"done") | (Kind::Case, _, b"esac") => {
                return self.close_compound();
            }
            (Kind::Brace, _, b"}") => return self.close_compound(),
            _ => return self.fail(word.start, "a word where none can be"),
        };
        self.frame.part = part;
        self.frame.state = State::Need;
    }

    /// `do`, or `{` in its place.
    fn loop_body(&mut self, word: &Word) {
        match word.reserved() {
            b"do" => {
                self.frame.part = 1;
                self.frame.state = State::Need;
            }
            b"{" => {
                self.pop();
                self.opens_compound(word);
            }
            _ => self.fail(word.start, "`for` or `select` without `do`"),
        }
    }

    fn function_body(&mut self, word: &Word) {
        if !self.opens_compound(word) {
            self.fail(word.start, "a function whose body is no compound command");
        }
    }

    /// After `coproc word`: if a compound command begins, the word was but a name.
    fn after_coprocess(&mut self, word: &Word) {
        if self.opens_compound(word) {
            self.look.commands.pop();
        } else {
            self.frame.state = State::Args;
        }
    }
}

/// The bytes that do not simply stand for themselves in a word.
static SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let bytes = b" \t\n;&|()<>\\'\"`$=[";
    let mut at = 0;
    while at < bytes.len() {
        special[bytes[at] as usize] = true;
        at += 1;
    }
    special
};

/// Whether it is the name of a variable, past newlines that a backslash removes.
fn is_name(bytes: &[u8]) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let mut rest = bytes;
    let mut length = 0;
    while let [first, tail @ ..] = rest {
        if let [b'\\', b'\n', after @ ..] = rest {
            rest = after;
            continue;
        }
        if !letter(*first) && (length == 0 || !first.is_ascii_digit()) {
            return false;
        }
        length += 1;
        rest = tail;
    }
    length > 0
}

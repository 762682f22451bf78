//! Operators: what separates commands, groups them and redirects them.

use super::frame::{Kind, State, Tabs, Target};
use super::scan::Scan;

impl Scan<'_, '_, '_> {
    pub(super) fn operator(&mut self, byte: u8) {
        match self.frame.kind {
            Kind::Cond | Kind::CondGroup => self.condition_operator(byte),
            Kind::Array if byte == b')' => {
                self.at += 1;
                self.pop();
            }
            Kind::Array => self.fail(self.at, "an operator in an array"),
            _ if self.frame.target != Target::None => self.fail(self.at, "a redirection has no target"),
            _ => match byte {
                b'(' => self.open(),
                b')' => self.close(),
                b'<' | b'>' => self.redirect(),
                b';' => self.semicolon(),
                b'&' => self.ampersand(),
                _ => self.bar(),
            },
        }
    }

    /// In `[[ … ]]`, where only parentheses, `<`, `>`, `&&` and `||` are known.
    fn condition_operator(&mut self, byte: u8) {
        let next = self.next(self.at);
        match byte {
            b'(' => self.push(Kind::CondGroup, self.at, next),
            b')' if self.frame.kind == Kind::CondGroup => {
                self.at = next;
                self.pop();
            }
            b'<' | b'>' => self.at = next,
            b'&' | b'|' if self.byte(next) == byte => self.at = next + 1,
            _ => self.fail(self.at, "an operator that `[[` does not know"),
        }
    }

    fn open(&mut self) {
        let before = self.frame.state;
        match before {
            State::Pattern => {
                self.frame.state = State::PatternRest;
                self.at += 1;
            }
            state if state.begins() || state == State::FuncBody => self.group(),
            State::CoprocName => {
                self.look.commands.pop();
                self.group();
            }
            State::FuncParens if self.empty_parentheses() => {}
            State::FuncParens => self.group(),
            State::Name | State::AssignName if self.empty_parentheses() => {
                self.look.commands.pop();
            }
            State::ForName if self.byte(self.next(self.at)) == b'(' => {
                let inner = self.next(self.at) + 1;
                self.try_arithmetic(Kind::ArithFor, self.at, inner);
            }
            _ => self.fail(self.at, "`(` where no command can begin"),
        }
    }

    /// Reads the `()` of a function, if that is what stands here.
    fn empty_parentheses(&mut self) -> bool {
        let mut close = self.next(self.at);
        while matches!(self.byte(close), b' ' | b'\t') {
            close = self.next(close);
        }
        let empty = self.byte(close) == b')';
        if empty {
            self.at = close + 1;
            self.frame.state = State::FuncBody;
        }
        empty
    }

    /// A subshell or an arithmetic command.
    fn group(&mut self) {
        let second = self.next(self.at);
        if self.byte(second) == b'(' && !self.was_refused(self.at) {
            self.try_arithmetic(Kind::ArithCommand, self.at, second + 1);
        } else {
            self.found_separator(self.at);
            self.push(Kind::Subshell, self.at, second);
        }
    }

    fn close(&mut self) {
        match self.frame.kind {
            Kind::Case if self.frame.state == State::PatternRest => {
                self.found_separator(self.at);
                self.frame.state = State::Start;
                self.at += 1;
            }
            Kind::Substitution if self.frame.state.may_close() => {
                self.at += 1;
                self.pop();
            }
            Kind::Subshell if self.frame.state.may_close() => {
                self.at += 1;
                self.pop();
                self.frame.state = State::Closed;
            }
            _ => self.fail(self.at, "`)` where nothing can be closed"),
        }
    }

    fn redirect(&mut self) {
        let open = self.at;
        let first = self.byte(open);
        let second = self.next(open);
        let (mut end, mut target) = (second, Target::File);
        match (first, self.byte(second)) {
            (b'<', b'<') => (end, target) = self.here(second),
            (b'<' | b'>', b'&') => (end, target) = (second + 1, Target::Descriptor),
            (b'<', b'>') | (b'>', b'>' | b'|') => end = second + 1,
            (b'&', _) => {
                let third = self.next(second);
                end = if self.byte(third) == b'>' { third + 1 } else { third };
            }
            _ => {}
        }
        self.frame.state = match self.frame.state {
            state if state.begins() => State::Redirected,
            State::Name | State::CoprocName => State::Args,
            State::AssignName => State::AssignArgs,
            state if state.ends() => state,
            _ => return self.fail(open, "a redirection where no command is"),
        };
        self.look.redirects.push(self.text.place(open));
        self.frame.target = target;
        self.at = end;
    }

    /// At the second `<` of `<<`.
    fn here(&self, second: usize) -> (usize, Target) {
        let third = self.next(second);
        match self.byte(third) {
            b'<' => (third + 1, Target::File),
            b'-' => (third + 1, Target::Delimiter { tabs: Tabs::Removed }),
            _ => (third, Target::Delimiter { tabs: Tabs::Kept }),
        }
    }

    fn semicolon(&mut self) {
        let open = self.at;
        let mut end = self.next(open);
        let state = self.frame.state;
        if matches!(self.byte(end), b';' | b'&') {
            if self.frame.kind != Kind::Case || !state.may_close() {
                return self.fail(open, "the end of a `case` branch outside `case`");
            }
            let third = self.next(end);
            end = if self.byte(end) == b';' && self.byte(third) == b'&' { third + 1 } else { third };
            self.frame.state = State::Pattern;
        } else {
            self.frame.state = match state {
                State::Bang | State::Time => State::Start,
                State::ForIn | State::ForWords => State::ForDo,
                _ if state.ends() => State::Start,
                _ => return self.fail(open, "`;` without a command"),
            };
        }
        self.found_separator(open);
        self.at = end;
    }

    fn ampersand(&mut self) {
        let second = self.next(self.at);
        match self.byte(second) {
            b'&' => self.separate(second + 1, State::Need),
            b'>' => self.redirect(),
            _ => self.separate(second, State::Start),
        }
    }

    fn bar(&mut self) {
        let second = self.next(self.at);
        match self.byte(second) {
            _ if self.frame.state == State::PatternRest => self.at = second,
            b'|' => self.separate(second + 1, State::Need),
            b'&' => self.separate(second + 1, State::Piped),
            _ => self.separate(second, State::Piped),
        }
    }

    /// An operator that ends at `end` and needs a command before it.
    fn separate(&mut self, end: usize, state: State) {
        if !self.frame.state.ends() {
            return self.fail(self.at, "an operator without a command");
        }
        self.found_separator(self.at);
        self.frame.state = state;
        self.at = end;
    }

    pub(super) fn newline(&mut self) {
        let open = self.at;
        self.at += 1;
        if self.frame.kind.holds_commands() {
            if self.frame.target != Target::None {
                return self.fail(open, "a redirection has no target");
            }
            self.frame.state = match self.frame.state {
                State::FuncParens => State::FuncBody,
                State::ForWords => State::ForDo,
                State::Bang | State::Time => State::Start,
                state if state.ends() => State::Start,
                State::PatternRest | State::ForName | State::CaseWord | State::FuncName | State::Coproc => {
                    return self.fail(open, "the line ends too early");
                }
                state => state,
            };
            self.found_separator(open);
        }
        self.gather();
    }
}

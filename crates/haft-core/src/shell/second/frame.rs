//! What the lexer is inside of, and what it remembers of each.

/// What a bracket, a quote or a reserved word opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The whole text, or the inside of backticks.
    Top,
    /// `$( … )`, `<( … )` or `>( … )`.
    Substitution,
    /// `${ …; }` or `${| …; }`.
    Funsub,
    /// `( … )`.
    Subshell,
    /// `{ …; }`.
    Brace,
    /// `if … fi`. `part` is 0 in a condition, 1 after `then`, 2 after `else`.
    If,
    /// `while … done` and `until … done`. `part` is 1 after `do`.
    Loop,
    /// `for … done` and `select … done`. `part` is 1 after `do`.
    For,
    /// `case … esac`.
    Case,
    /// `[[ … ]]`.
    Cond,
    /// `( … )` inside `[[ … ]]`.
    CondGroup,
    /// `name=( … )`.
    Array,
    /// `" … "`.
    Double,
    /// `${ … }`. `part` is 1 once an operator was seen that takes a word, 2 for one that takes a pattern.
    Param,
    /// `$(( … ))`.
    Arith,
    /// `(( … ))` as a command.
    ArithCommand,
    /// `(( … ))` after `for`.
    ArithFor,
    /// `$[ … ]`.
    Bracket,
    /// `name[ … ]` where an assignment may stand.
    Subscript,
    /// `@( … )` and the like, and the parentheses of a regular expression.
    Pattern,
    /// The body of a here-document that is expanded.
    Body,
}

impl Kind {
    /// Whether commands stand in it.
    pub(super) fn holds_commands(self) -> bool {
        use Kind::{Brace, Case, For, Funsub, If, Loop, Subshell, Substitution, Top};
        matches!(self, Top | Substitution | Funsub | Subshell | Brace | If | Loop | For | Case)
    }

    /// Whether it is read token by token, rather than byte by byte.
    pub(super) fn holds_words(self) -> bool {
        self.holds_commands() || matches!(self, Kind::Cond | Kind::CondGroup | Kind::Array)
    }

    /// What to say when it does not end.
    pub(super) fn unclosed(self) -> &'static str {
        match self {
            Kind::Substitution => "a substitution is not closed",
            Kind::Funsub => "`${ ` is not closed",
            Kind::Subshell => "`(` is not closed",
            Kind::Brace => "`{` is not closed",
            Kind::If => "`if` has no `fi`",
            Kind::Loop => "a loop has no `done`",
            Kind::For => "`for` or `select` has no `done`",
            Kind::Case => "`case` has no `esac`",
            Kind::Cond | Kind::CondGroup => "`[[` is not closed",
            Kind::Array => "`=(` is not closed",
            Kind::Double => "a double quote is not closed",
            Kind::Param => "`${` is not closed",
            Kind::Arith | Kind::ArithCommand | Kind::ArithFor => "`((` is not closed",
            Kind::Bracket | Kind::Subscript => "`[` is not closed",
            Kind::Pattern => "the `(` of a pattern is not closed",
            Kind::Top | Kind::Body => "the text ends too early",
        }
    }
}

/// What may come next where commands stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A command may begin, or none.
    Start,
    /// A command has to begin.
    Need,
    /// As `Need`, after `|`: here `time` is a program.
    Piped,
    /// After `!`.
    Bang,
    /// After `time`.
    Time,
    /// After an assignment, before the name.
    Prefix,
    /// After a redirection, before the name.
    Redirected,
    /// After the name, which may turn out to be that of a function.
    Name,
    /// After the name of a builtin that takes assignments.
    AssignName,
    /// Among the arguments of such a builtin.
    AssignArgs,
    /// Among arguments.
    Args,
    /// After a compound command: only redirections, operators and closing words.
    Closed,
    /// After `for` or `select`.
    ForName,
    /// After the name of the variable.
    ForIn,
    /// After `in`.
    ForWords,
    /// Before `do`.
    ForDo,
    /// After `case`.
    CaseWord,
    /// After its word.
    CaseIn,
    /// Where a pattern or `esac` begins.
    Pattern,
    /// Inside a pattern.
    PatternRest,
    /// After `function`.
    FuncName,
    /// After the name of a function: parentheses may follow.
    FuncParens,
    /// Where the body of a function has to begin.
    FuncBody,
    /// After `coproc`.
    Coproc,
    /// After a word that is the name of a coprocess if a compound command follows.
    CoprocName,
}

impl State {
    /// Whether a reserved word is one here, and a new command begins.
    pub(super) fn begins(self) -> bool {
        use State::{Bang, Coproc, Need, Piped, Start, Time};
        matches!(self, Start | Need | Piped | Bang | Time | Coproc)
    }

    /// Whether `name=` is an assignment here, and `name[` begins a subscript.
    pub(super) fn takes_assignment(self) -> bool {
        self.begins() || matches!(self, State::Prefix | State::Redirected)
    }

    /// Whether a command stands before this, so that an operator may end it.
    pub(super) fn ends(self) -> bool {
        use State::{Args, AssignArgs, AssignName, Closed, CoprocName, Name, Prefix, Redirected};
        matches!(self, Prefix | Redirected | Name | AssignName | AssignArgs | Args | Closed | CoprocName)
    }

    /// Whether what holds the commands may be closed here.
    pub(super) fn may_close(self) -> bool {
        self.ends() || matches!(self, State::Start | State::Bang | State::Time)
    }
}

/// What the next word is for, if it is not for the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    None,
    /// What a redirection opens.
    File,
    /// The descriptor or file after `>&` or `<&`. A `-` here is a word by itself, whatever follows it.
    Descriptor,
    /// The delimiter of a here-document.
    Delimiter {
        tabs: Tabs,
    },
}

/// Whether tabs before the lines of a here-document count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tabs {
    Kept,
    Removed,
}

/// One thing that is open.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// Where it was opened.
    pub(super) open: usize,
    pub(super) state: State,
    pub(super) target: Target,
    /// How far into itself it is; see [`Kind`].
    pub(super) part: u8,
    /// Brackets of its own sort that are open inside it.
    pub(super) count: usize,
    /// Whether single quotes in it do not quote: inside double quotes, however deep.
    pub(super) quoted: bool,
    /// Whether the next word is the right side of `=~`.
    pub(super) regex: bool,
    /// The here-documents before this number belong to a level outside.
    pub(super) pending: usize,
    pub(super) word: Word,
}

impl Frame {
    pub(super) fn new(kind: Kind, open: usize) -> Self {
        let state = match kind {
            Kind::Subshell | Kind::Brace | Kind::If | Kind::Loop => State::Need,
            Kind::For => State::ForName,
            Kind::Case => State::CaseWord,
            _ => State::Start,
        };
        let word = Word::NONE;
        Self {
            kind,
            open,
            state,
            target: Target::None,
            part: 0,
            count: 0,
            quoted: false,
            regex: false,
            pending: 0,
            word,
        }
    }
}

/// As many bytes of a word as tell reserved words and a few builtins apart.
const KEPT: usize = 9;

/// The word that is being read.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) active: bool,
    pub(super) start: usize,
    /// Nothing in it is quoted or expanded.
    pub(super) plain: bool,
    /// The last byte, unless it was quoted or expanded.
    pub(super) last: u8,
    /// It began as `name=`, `name+=` or `name[…]=`.
    pub(super) assignment: bool,
    /// Where its first `=` ended, if it has one.
    pub(super) equals: usize,
    /// Where its first `[` ended, if it has one.
    pub(super) square: usize,
    /// Where its subscript ended, if it has one.
    pub(super) subscript: usize,
    kept: [u8; KEPT],
    length: u8,
}

impl Word {
    pub(super) const NONE: Self = Self {
        active: false,
        start: 0,
        plain: true,
        last: 0,
        assignment: false,
        equals: 0,
        square: 0,
        subscript: 0,
        kept: [0; KEPT],
        length: 0,
    };

    pub(super) fn begin(start: usize) -> Self {
        Self { active: true, start, ..Self::NONE }
    }

    /// Takes bytes that stand for themselves.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let length = usize::from(self.length);
        for (slot, &byte) in self.kept.iter_mut().skip(length).zip(bytes) {
            *slot = byte;
            self.length += 1;
        }
        self.last = bytes.last().copied().unwrap_or(self.last);
    }

    /// Notes that something quoted or expanded stands here.
    pub(super) fn blur(&mut self) {
        self.plain = false;
        self.last = 0;
    }

    /// The word itself where it is plain and short, else nothing.
    pub(super) fn reserved(&self) -> &[u8] {
        if self.plain { self.kept.get(..usize::from(self.length)).unwrap_or_default() } else { &[] }
    }

    /// Whether bash knows the word as part of its grammar.
    pub(super) fn is_reserved(&self) -> bool {
        const RESERVED: [&[u8]; 22] = [
            b"!",
            b"[[",
            b"]]",
            b"case",
            b"coproc",
            b"do",
            b"done",
            b"elif",
            b"else",
            b"esac",
            b"fi",
            b"for",
            b"function",
            b"if",
            b"in",
            b"select",
            b"then",
            b"time",
            b"until",
            b"while",
            b"{",
            b"}",
        ];
        RESERVED.contains(&self.reserved())
    }
}

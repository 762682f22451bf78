//! From a command's text to its simple commands, in the order in which they run.
//!
//! The syntax tree gives the structure: which commands there are, and in which order they run. What a word is
//! worth is worked out from the source itself (`value`). Substitutions are found twice: in the words of the
//! tree, and by the second look, so that none can hide where the tree does not lead.

use super::arithmetic;
use super::entry::Depth;
use super::executed::ExecutedTarget;
use super::judged::{Cause, Command, Doubt, Flow, Harm, Redirect, Standing, Subtree, Target, TrackedFiles, Unreadable};
use super::second;
use super::state::State;
use super::table::Table;
use super::value::{self, Use};
use super::variables;
use super::word::{Value, Word};
use shuck_ast as ast;
use shuck_parser::parser::{ParseStatus, Parser, ShellDialect, ShellProfile};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

mod again;
mod compound;
mod simple;

/// How deeply commands may be nested.
const DEPTH_MAX: usize = 32;
/// How many braces may be open at once: the parser looks for the end of each through all that follows.
const BRACES_MAX: usize = 64;
/// How many texts are parsed, of which each may hold others.
const TEXTS_MAX: usize = 2_000;
/// How long they may be together.
const BYTES_MAX: usize = 200_000;
/// How many words are looked at, those of a command that is wrapped once for each wrapper.
const WORDS_MAX: usize = 40_000;
/// How many commands are looked at.
const COMMANDS_MAX: usize = 2_000;
/// How many steps the parser may take.
const FUEL: usize = 40_000;

/// Commands that go elsewhere, and those that may set how words are split.
const ROAMERS: &[&str] = &["cd", "pushd", "popd"];
const SPLITTERS: &[&str] = &[
    "read",
    "mapfile",
    "readarray",
    "printf",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "getopts",
    "eval",
    "source",
    ".",
    "unset",
    "let",
    "set",
    "shopt",
];

/// What is known of the lines that a command prints or is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Stream {
    /// Nothing.
    #[default]
    Unknown,
    /// Exactly this text.
    Text(String),
    /// Names of things in these directories.
    Names {
        /// The directories.
        bases: Vec<String>,
        /// Whether each name begins with one of them, and names end with NUL.
        exact: bool,
    },
}

/// Everything that is found.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one text, each asked for by name")]
pub(super) struct Walk<'g> {
    pub(super) table: &'g Table,
    pub(super) commands: Vec<Command>,
    pub(super) reads: Vec<Target>,
    pub(super) subtrees: Vec<Subtree>,
    pub(super) tracked: Vec<TrackedFiles>,
    pub(super) writes: Vec<Target>,
    /// Doubts that belong to no single command.
    pub(super) doubts: Vec<Doubt>,
    pub(super) catastrophe: Option<String>,
    pub(super) repositories: Vec<String>,
    pub(super) interactive: Option<String>,
    pub(super) functions: Vec<String>,
    /// Files that are run.
    pub(super) executed: Vec<ExecutedTarget>,
    /// What is run and is not known to be a file.
    pub(super) unbound: Vec<String>,
    pub(super) follows: bool,
    /// Whether files are opened for reading by redirection.
    pub(super) opens: bool,
    home: Option<String>,
    /// Where the command starts.
    pub(super) start: String,
    /// Whether anything in it goes elsewhere.
    roams: bool,
    /// Whether anything in it may change how words are split.
    splits: bool,
    depth: usize,
    texts: usize,
    words: usize,
    bytes: usize,
    pub(super) rounds: usize,
}

/// One text that is walked, and which parts of it have been.
struct Source<'t> {
    text: &'t str,
    /// Where it begins.
    start: Option<String>,
    /// Substitutions that the walk has followed.
    followed: RefCell<Vec<(usize, usize)>>,
    /// Words that the walk has read.
    words: RefCell<Vec<(usize, usize)>>,
    /// Those of them that are words of simple commands.
    args: RefCell<Vec<(usize, usize)>>,
    /// Where redirections stand that the walk has met.
    opened: RefCell<Vec<usize>>,
    /// Where the names of commands stand that the walk has met.
    named: RefCell<Vec<usize>>,
}

/// What stands around a statement: the text that it is part of, how it is reached, and what it is given.
#[derive(Clone, Copy)]
struct Around<'a> {
    source: &'a Source<'a>,
    standing: &'a Standing,
    stdin: &'a Stream,
}

impl<'t> Source<'t> {
    fn new(text: &'t str, state: &State) -> Self {
        Self {
            text,
            start: state.place().map(str::to_owned),
            followed: RefCell::default(),
            words: RefCell::default(),
            named: RefCell::default(),
            opened: RefCell::default(),
            args: RefCell::default(),
        }
    }

    fn slice(&self, span: ast::Span) -> Option<&'t str> {
        self.text.get(span.start.offset()..span.end.offset())
    }
}

impl<'g> Walk<'g> {
    pub(super) fn new(text: &str, table: &'g Table, home: Option<&str>) -> Self {
        Self {
            table,
            commands: Vec::new(),
            reads: Vec::new(),
            subtrees: Vec::new(),
            tracked: Vec::new(),
            writes: Vec::new(),
            doubts: Vec::new(),
            catastrophe: None,
            repositories: Vec::new(),
            interactive: None,
            functions: Vec::new(),
            executed: Vec::new(),
            unbound: Vec::new(),
            follows: false,
            opens: text.contains('<'),
            home: home.map(str::to_owned),
            start: String::new(),
            roams: false,
            splits: text.contains("IFS"),
            depth: 0,
            texts: 0,
            words: 0,
            bytes: 0,
            rounds: 0,
        }
    }

    /// Whether nothing is doubted so far.
    pub(super) fn is_settled(&self) -> bool {
        self.doubts.is_empty() && self.commands.iter().all(|command| command.doubts.is_empty())
    }

    /// The same text anew, now that it is known what all its commands are, where that matters.
    pub(super) fn again(&self, text: &str) -> Option<Self> {
        let any = |names: &[&str]| {
            let unknown_or = |name: Option<&str>| name.is_none_or(|name| names.contains(&name));
            self.commands.iter().any(|command| unknown_or(command.name.as_deref()))
        };
        let (roams, splits) = (any(ROAMERS), self.splits || any(SPLITTERS));
        let differs = (roams, splits) != (self.roams, self.splits);
        differs.then(|| Self { roams, splits, start: self.start.clone(), ..Self::new(text, self.table, self.home()) })
    }

    pub(super) fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// Goes one level deeper, to a command of so many words, if that is not too deep or too much.
    pub(super) fn enter(&mut self, words: usize) -> bool {
        self.words += words;
        if self.depth >= DEPTH_MAX || self.words > WORDS_MAX {
            self.doubt(Harm::Unknown, "it is nested too deeply to be understood");
            return false;
        }
        self.depth += 1;
        true
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// How much is found so far.
    pub(super) fn mark(&self) -> [usize; 5] {
        [self.commands.len(), self.doubts.len(), self.reads.len(), self.writes.len(), self.repositories.len()]
    }

    /// Drops what was found since.
    pub(super) fn drop_since(&mut self, [commands, doubts, reads, writes, repositories]: &[usize; 5]) {
        self.commands.truncate(*commands);
        self.doubts.truncate(*doubts);
        self.reads.truncate(*reads);
        self.writes.truncate(*writes);
        self.repositories.truncate(*repositories);
    }

    /// Adds a doubt that belongs to no single command.
    pub(super) fn doubt(&mut self, harm: Harm, why: impl Into<String>) {
        let doubt = Doubt::new(harm, why).by(Cause::Line);
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }

    /// A variable is set in the shell.
    pub(super) fn bind(&mut self, name: &str, value: Value, state: &mut State) {
        if let Some(doubt) = variables::plain(name) {
            self.doubt(doubt.harm, doubt.why);
        }
        self.note_variable(name, &Word { text: format!("${name}"), value: value.clone() }, state);
        state.set(name, value);
    }

    /// Walks a text that is a command by itself. The stream is what its last command prints.
    pub(super) fn script(
        &mut self,
        text: &str,
        standing: &Standing,
        state: &mut State,
        stdin: &Stream,
    ) -> Result<Stream, Unreadable> {
        self.texts += 1;
        self.bytes += text.len();
        if self.depth >= DEPTH_MAX
            || self.texts > TEXTS_MAX
            || self.bytes > BYTES_MAX
            || self.commands.len() >= COMMANDS_MAX
        {
            self.doubt(Harm::Unknown, "it is nested too deeply to be understood");
            return Ok(Stream::Unknown);
        }
        let look = second::look(text);
        if look.depth > DEPTH_MAX || look.braces > BRACES_MAX || stutters(text) {
            return Err(at(text, 0, "it is nested too deeply to be understood"));
        }
        let parsed = parse(text)?;
        self.depth += 1;
        let source = Source::new(text, state);
        let stream = self.sequence(&parsed.body, Around { source: &source, standing, stdin }, state);
        self.look_again(&source, &look, standing);
        self.depth -= 1;
        Ok(stream)
    }

    /// The same for a text inside another: what cannot be parsed is a doubt.
    pub(super) fn inner(&mut self, text: &str, standing: &Standing, state: &mut State, stdin: &Stream) -> Stream {
        match self.script(text, standing, state, stdin) {
            Ok(stream) => stream,
            Err(error) => {
                self.doubt(Harm::Unknown, format!("`{}` is not understood: {}", super::cut(text), error.why));
                Stream::Unknown
            }
        }
    }

    /// What is known when a text runs that is not on the way, like a trap.
    pub(super) fn later(&self, state: &State) -> State {
        let mut later = state.clone();
        if self.roams {
            later.lose();
        }
        later.forget_variables(self.splits);
        later
    }

    /// What is known at a place of a text that is not on the way: nothing of variables, and where it is only
    /// if nothing ever goes elsewhere.
    fn elsewhere(&self, source: &Source<'_>) -> State {
        let place = source.start.as_deref().filter(|_| !self.roams);
        let mut state = State::new(place.unwrap_or_default(), self.home());
        state.forget_variables(self.splits);
        state
    }

    /// A substitution with its brackets.
    fn substitution(&mut self, text: &str, standing: &Standing, state: &mut State) -> Stream {
        let (name, inner) = match text.as_bytes() {
            [b'$', b'(', .., b')'] => ("$( )", text[2..text.len() - 1].to_owned()),
            [b'<', b'(', .., b')'] => ("<( )", text[2..text.len() - 1].to_owned()),
            [b'>', b'(', .., b')'] => (">( )", text[2..text.len() - 1].to_owned()),
            [b'`', .., b'`'] => ("` `", unescape(&text[1..text.len() - 1])),
            [b'$', b'{', .., b'}'] => ("${ }", text[2..text.len() - 1].trim_start_matches('|').to_owned()),
            _ => {
                self.doubt(Harm::Unknown, format!("`{}` is not understood", super::cut(text)));
                return Stream::Unknown;
            }
        };
        self.inner(&inner, &standing.through(name), &mut state.clone(), &Stream::Unknown)
    }

    /// A sequence of statements.
    fn sequence(&mut self, sequence: &ast::StmtSeq, around: Around<'_>, state: &mut State) -> Stream {
        let mut last = Stream::Unknown;
        let mut printed = 0;
        for stmt in &sequence.stmts {
            if self.commands.len() >= COMMANDS_MAX {
                self.doubt(Harm::Unknown, "it holds too many commands to be understood");
                return Stream::Unknown;
            }
            last = self.stmt(stmt, around, state);
            printed += 1;
            state.goes_on();
        }
        if printed == 1 { last } else { Stream::Unknown }
    }

    /// The words that a written word becomes, and what is in it.
    fn words(&mut self, word: &ast::Word, how: Use, around: Around<'_>, state: &State) -> Vec<Word> {
        let span = (word.span.start.offset(), word.span.end.offset());
        let source = around.source;
        let Some(text) = source.slice(word.span) else {
            self.doubt(Harm::Unknown, "a word is not where it should be");
            return vec![Word::unknown("?")];
        };
        source.words.borrow_mut().push(span);
        if let Some(why) = arithmetic::danger(text, state) {
            self.doubt(Harm::Runs, why);
        }
        if text.contains("$((") || text.contains("$[") {
            let set = arithmetic::assigned(text);
            let doubts: Vec<Doubt> = set.iter().filter_map(|name| variables::plain(name)).collect();
            for doubt in doubts {
                self.doubt(doubt.harm, doubt.why);
            }
        }
        let stream = self.follow(&word.parts, around, state);
        // A word that is nothing but a list of names.
        if let ([part], Some(Stream::Names { bases, .. })) = (word.parts.as_slice(), stream)
            && matches!(part.kind, ast::WordPart::CommandSubstitution { .. })
            && !state.splits_oddly()
        {
            return vec![Word { text: text.to_owned(), value: Value::Below { bases, safe: false } }];
        }
        if let [part] = word.parts.as_slice()
            && matches!(part.kind, ast::WordPart::ArithmeticExpansion { .. })
        {
            return vec![Word { text: text.to_owned(), value: Value::Number }];
        }
        if let [part] = word.parts.as_slice()
            && matches!(part.kind, ast::WordPart::ProcessSubstitution { .. })
        {
            return vec![Word { text: text.to_owned(), value: Value::Known("/dev/fd/63".to_owned()) }];
        }
        let splits = splits(&word.parts, text);
        let words = value::words(text, how, splits, state);
        // It is taken for what it seems to be, and is not believed to be that.
        if splits && how == Use::Argument && state.splits_oddly() && words.iter().any(|word| word.literal().is_some()) {
            self.doubt(Harm::Unknown, format!("how `{}` is split is not known", super::cut(text)));
        }
        words
    }

    /// Follows the substitutions in the parts of a word, and returns what the last one prints.
    fn follow(&mut self, parts: &[ast::WordPartNode], around: Around<'_>, state: &State) -> Option<Stream> {
        let mut printed = None;
        for part in parts {
            match &part.kind {
                ast::WordPart::DoubleQuoted { parts, .. } => {
                    self.follow(parts, around, state);
                }
                ast::WordPart::CommandSubstitution { .. } | ast::WordPart::ProcessSubstitution { .. } => {
                    let span = (part.span.start.offset(), part.span.end.offset());
                    // What is not where it should be is left to the second look.
                    if let Some(text) = around.source.slice(part.span).filter(|text| brackets(text)) {
                        around.source.followed.borrow_mut().push(span);
                        printed = Some(self.substitution(text, around.standing, &mut state.clone()));
                    }
                }
                _ => {}
            }
        }
        printed
    }

    /// One redirection.
    fn redirect(&mut self, redirect: &ast::Redirect, around: Around<'_>, state: &State) -> (Redirect, Option<Stream>) {
        use ast::RedirectKind as Kind;
        // The operator stands after a descriptor.
        let source = around.source;
        let text = source.slice(redirect.span).unwrap_or_default();
        let named = text.strip_prefix('{').and_then(|rest| rest.find('}')).map_or(0, |end| end + 2);
        let digits = text.chars().take_while(char::is_ascii_digit).count();
        source.opened.borrow_mut().push(redirect.span.start.offset() + named.max(digits));
        let flow = match redirect.kind {
            Kind::Output | Kind::Clobber | Kind::Append | Kind::OutputBoth => Flow::Writes,
            Kind::Input => Flow::Reads,
            Kind::ReadWrite => Flow::Both,
            Kind::HereDoc | Kind::HereDocStrip | Kind::HereString => Flow::Gives,
            Kind::DupOutput | Kind::DupInput => Flow::Joins,
        };
        let (mut given, mut target, mut flow) = (None, None, flow);
        match &redirect.target {
            ast::RedirectTarget::Heredoc(heredoc) => {
                let body = &heredoc.body;
                given =
                    source.slice(body.span).filter(|_| !body.mode.expands()).map(|text| Stream::Text(text.to_owned()));
                if body.mode.expands() {
                    let text = source.slice(body.span);
                    if let Some(why) = text.and_then(|text| arithmetic::danger(text, state)) {
                        self.doubt(Harm::Runs, why);
                    }
                    given =
                        text.filter(|text| !text.contains(['$', '`', '\\'])).map(|text| Stream::Text(text.to_owned()));
                }
            }
            ast::RedirectTarget::Word(word) => {
                let mut words = self.words(word, Use::Argument, around, state);
                let word = if words.len() == 1 { words.remove(0) } else { Word::unknown("?") };
                match flow {
                    Flow::Gives => given = word.literal().map(|text| Stream::Text(format!("{text}\n"))),
                    Flow::Joins => {
                        // `>&file` writes a file unless it names a descriptor.
                        let descriptor = |text: &str| {
                            let text = text.strip_suffix('-').unwrap_or(text);
                            text.chars().all(|c| c.is_ascii_digit())
                        };
                        if !word.literal().is_some_and(descriptor) {
                            flow = if redirect.kind == Kind::DupOutput { Flow::Writes } else { Flow::Both };
                            target = Some(word);
                        }
                    }
                    _ => target = Some(word),
                }
            }
        }
        if let Some(name) = &redirect.fd_var
            && let Some(doubt) = variables::plain(name)
        {
            self.doubt(doubt.harm, doubt.why);
        }
        let fixed = target.as_ref().is_none_or(|word| word.literal().is_some());
        (Redirect { fd: redirect.fd, flow, target, fixed }, given)
    }

    /// What the redirections of a command touch.
    pub(super) fn touch(&mut self, redirects: &[Redirect], state: &State, doubts: &mut Vec<Doubt>) {
        let before = doubts.len();
        for redirect in redirects {
            let Some(word) = &redirect.target else { continue };
            if matches!(redirect.flow, Flow::Reads | Flow::Both) {
                self.reads(word, Depth::Files, state, doubts);
            }
            if matches!(redirect.flow, Flow::Writes | Flow::Both) {
                self.writes(word, state, doubts, "a redirection");
            }
        }
        doubts[before..].iter_mut().for_each(|doubt| doubt.cause = Cause::Redirect);
    }
}

/// Whether a text is a substitution with its brackets.
fn brackets(text: &str) -> bool {
    (text.starts_with("$(") || text.starts_with("<(") || text.starts_with(">(")) && text.ends_with(')')
        || (text.len() > 1 && text.starts_with('`') && text.ends_with('`'))
}

/// Whether an expansion stands outside quotes, or gives many words.
fn splits(parts: &[ast::WordPartNode], text: &str) -> bool {
    let quoted = |part: &ast::WordPartNode| {
        matches!(
            part.kind,
            ast::WordPart::Literal(_) | ast::WordPart::SingleQuoted { .. } | ast::WordPart::DoubleQuoted { .. }
        )
    };
    !parts.iter().all(quoted) || text.contains('@')
}

/// Backslashes inside backticks.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('`' | '\\' | '$')) => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    out
}

fn parse(text: &str) -> Result<ast::File, Unreadable> {
    let profile = ShellProfile::native(ShellDialect::Bash);
    let parser = AssertUnwindSafe(|| Parser::with_limits_and_profile(text, DEPTH_MAX, FUEL, profile).parse());
    // It has been seen to panic over text that is no command.
    let Ok(parsed) = catch_unwind(parser) else { return Err(at(text, 0, "it cannot be parsed")) };
    if parsed.status == ParseStatus::Clean {
        return Ok(parsed.file);
    }
    let (offset, why) = match parsed.diagnostics.first() {
        Some(diagnostic) => (diagnostic.span.start.offset(), diagnostic.message.clone()),
        None => (0, parsed.terminal_error.map_or_else(|| "it cannot be parsed".to_owned(), |error| error.to_string())),
    };
    let why = if why.contains("fuel") { "it is too long to be understood".to_owned() } else { why };
    Err(at(text, offset, &why))
}

/// Whether words that stand before a command are repeated beyond all sense. The parser follows each of them
/// one level deeper, and keeps no count of it.
fn stutters(text: &str) -> bool {
    let mut run = 0;
    text.split_whitespace().any(|word| {
        run = if matches!(word, "time" | "coproc" | "!" | "-p" | "--" | "\\") { run + 1 } else { 0 };
        run > DEPTH_MAX
    })
}

/// A message that points at a place.
pub(super) fn at(text: &str, offset: usize, why: &str) -> Unreadable {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Unreadable { line, column, why: why.to_owned() }
}

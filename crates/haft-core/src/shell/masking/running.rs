//! What of a command line may run: whoever decides about it has to see that, whatever a name says about it.

use super::line::{assigned_name, base, is_wrapper, runs_input};
use super::programs::{ASSIGNERS, CONTAINER_RUNNERS, RUNNERS, SHELLS, VARIABLE_OPTIONS};
use super::text::TextKind;
use super::word::Word;
use std::collections::BTreeSet;

/// Programs in whose language backticks are quotes.
const JAVASCRIPT: &[&str] = &["node", "nodejs", "deno", "bun"];

/// Whether a word would be more than one word to a shell, or more than one command.
pub(super) fn may_be_command(text: &str) -> bool {
    text.contains(|c: char| c.is_whitespace() || ";|&<>()".contains(c))
}

/// The language of the interpreters that a command names.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interpreter {
    #[default]
    None,
    JavaScript,
    Other,
}

impl Interpreter {
    /// What it is with one more word.
    fn and(self, name: &str) -> Self {
        match self {
            Self::None | Self::JavaScript if runs_input(name) && JAVASCRIPT.contains(&name) => Self::JavaScript,
            _ if runs_input(name) => Self::Other,
            unchanged => unchanged,
        }
    }
}

/// What a word can be for those that follow it in its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A shell, or another program that reads a command from one word.
    Shell,
    /// The option by which `env` does so too.
    Split,
    /// What says that a setting is set: `aws configure set NAME VALUE`.
    Set,
    Env,
    /// A program whose operands are variables.
    Assigner,
    /// A program in which `-e` means a variable.
    Container,
    /// Something else than a wrapper, an option, its value or a variable.
    Operand,
}

/// What is known of a command from the words before one of its words, the program first.
#[derive(Debug, Default)]
pub(super) struct Before {
    roles: BTreeSet<Role>,
    pub(super) interpreter: Interpreter,
    is_after_option: bool,
}

impl Before {
    pub(super) fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    pub(super) fn add(&mut self, word: &Word) {
        let name = base(&word.text);
        let is_assigner = ASSIGNERS.contains(&name);
        let is_option = word.text.starts_with('-');
        let leads = is_assigner || is_wrapper(name) || is_option || assigned_name(&word.text).is_some();
        let roles = [
            (Role::Split, self.splits(word)),
            (Role::Shell, SHELLS.contains(&name)),
            (Role::Set, matches!(word.text.as_str(), "set" | "config" | "configure")),
            (Role::Env, name == "env"),
            (Role::Container, CONTAINER_RUNNERS.contains(&name)),
            (Role::Assigner, is_assigner),
            (Role::Operand, !leads && !self.is_after_option),
        ];
        self.roles.extend(roles.into_iter().filter(|(_, is)| *is).map(|(role, _)| role));
        self.interpreter = self.interpreter.and(name);
        self.is_after_option = is_option;
    }

    /// Whether a word makes `env` split it, or the next one.
    pub(super) fn splits(&self, word: &Word) -> bool {
        let option = word.text.split(char::is_whitespace).next().unwrap_or_default();
        self.has(Role::Env)
            && match option.strip_prefix("--") {
                Some(long) => long.starts_with("split-string"),
                None => option.starts_with('-') && option.contains('S'),
            }
    }

    /// Whether the whole of the next word is a variable of the program that the command starts: `env A='…' …`,
    /// `docker run -e A='…'`.
    pub(super) fn makes_variable(&self, last: &str) -> bool {
        if VARIABLE_OPTIONS.contains(&last) || (last == "-e" && self.has(Role::Container)) {
            return self.interpreter == Interpreter::None;
        }
        self.has(Role::Assigner) && !self.has(Role::Operand)
    }
}

/// What happens to the texts of a command line: whether one of its commands runs what it is given, and by which names.
#[derive(Debug, Default)]
pub(super) struct TextUse {
    /// Whether a program of it runs what it is given: a shell, an interpreter.
    may_run: bool,
    /// Whether a program of it may be a file that another command of it has written.
    has_script: bool,
    /// The variables that are expanded where their values may run.
    expanded: BTreeSet<String>,
    /// Those that are expanded where nothing but a command can stand.
    run: BTreeSet<String>,
}

impl TextUse {
    pub(super) fn of(commands: &[&[Word]]) -> Self {
        let mut all = Self::default();
        for words in commands {
            let program = words.iter().map(|word| word.text.as_str()).find(|word| assigned_name(word).is_none());
            let program = program.unwrap_or_default();
            let mut before = Before::default();
            words.iter().for_each(|word| before.add(word));
            all.may_run |= matches!(program, "." | "source") || before.has(Role::Split) || words.iter().any(is_runner);
            all.has_script |= program.contains('/');
            all.run.extend(first_variable(program).map(str::to_owned));
            for pair in words.windows(2) {
                let runs_next = matches!(pair[0].text.as_str(), "-c" | "-e" | "-lc" | "-ic" | "--eval" | "eval");
                all.run.extend(first_variable(&pair[1].text).filter(|_| runs_next).map(str::to_owned));
            }
        }
        if all.may_run {
            let texts = commands.iter().flat_map(|words| words.iter()).map(|word| word.text.as_str());
            all.expanded = texts.flat_map(variables).map(str::to_owned).collect();
        }
        all
    }

    /// Whether what a variable is set to may run: then it is shown.
    pub(super) fn runs_variable(&self, name: &str, value: &str) -> bool {
        self.run.contains(name) || (may_be_command(value) && self.expanded.contains(name))
    }

    /// What a word is to a program.
    pub(super) fn of_word(&self, program: &str, interpreter: Interpreter) -> TextKind {
        let is_printed = matches!(program, "echo" | "printf" | "print");
        Self::kind(self.may_run || (self.has_script && is_printed), interpreter)
    }

    /// What a here-document of a command is.
    pub(super) fn of_body(&self, words: &[Word]) -> TextKind {
        let interpreter = words.iter().fold(Interpreter::None, |found, word| found.and(base(&word.text)));
        Self::kind(self.may_run || self.has_script, interpreter)
    }

    fn kind(may_run: bool, interpreter: Interpreter) -> TextKind {
        match interpreter {
            Interpreter::JavaScript => TextKind::JavaScript,
            _ if may_run => TextKind::Code,
            _ => TextKind::Data,
        }
    }
}

/// Whether a word of a command is a program that runs what it is given.
fn is_runner(word: &Word) -> bool {
    let name = base(&word.text);
    runs_input(name) || SHELLS.contains(&name) || RUNNERS.contains(&name)
}

/// The variables that a text expands.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('$').filter_map(|(at, _)| first_variable(&text[at..]))
}

/// The variable that a text begins with.
fn first_variable(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('$')?;
    let rest = rest.strip_prefix('{').unwrap_or(rest);
    let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    (length > 0).then_some(&rest[..length])
}

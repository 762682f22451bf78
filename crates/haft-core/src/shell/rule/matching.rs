//! Whether a rule is about one command: surely (for an allow) or possibly (for a deny), and whether an allow
//! covers everything about it.

use super::Rule;
use super::pattern::{Item, Likely, Pattern};
use crate::shell::judged::{Cause, Class, Command, Doubt, Harm};
use crate::shell::word::Word;

/// Names of one option in the programs that have it. A deny for one of them is a deny for all.
const SAME: &[&[&str]] = &[
    &["-r", "-R", "--recursive"],
    &["-f", "--force"],
    &["-o", "--output"],
    &["-i", "--in-place"],
    &["-d", "--delete"],
    &["-c", "--command"],
    &["-e", "--eval", "--execute"],
];

/// How the names of options begin that write, run or send in programs that the table does not know.
const TELLING: &[&str] = &[
    "--exec",
    "--eval",
    "--command",
    "--cmd",
    "--shell",
    "--out",
    "--write",
    "--delete",
    "--remove",
    "--upload",
    "--post",
    "--hook",
    "--plugin",
    "--require",
    "--pre",
    "--pager",
    "--editor",
    "--config",
    "--log-file",
];

/// The same for short ones.
const TELLING_SHORT: &[char] = &['c', 'e', 'o'];

/// An option as a command has it.
struct Given {
    name: String,
    value: Option<Word>,
    /// Whether the table knows it, so that it is not an abbreviation.
    listed: bool,
}

/// The words of a command, sorted for matching.
#[derive(Default)]
struct View {
    words: Vec<Word>,
    options: Vec<Given>,
    /// Words after an option that is not known to take no value. Whether they are operands is not known.
    vague: Vec<Word>,
}

/// What a rule asks for, given the options that a command has.
struct Asked<'r> {
    words: Vec<&'r Pattern>,
    options: Vec<(&'r str, Option<&'r Pattern>)>,
}

impl View {
    fn new(command: &Command) -> Self {
        let mut view = Self { words: command.subcommand.iter().map(Word::known).collect(), ..Self::default() };
        let listed =
            |used: &crate::shell::Used| Given { name: used.name.clone(), value: used.value.clone(), listed: true };
        view.options.extend(command.options.iter().map(listed));
        if command.nature.is_some() {
            view.words.extend(command.operands.iter().cloned());
            view.unlisted(command);
        } else {
            let rest = if command.subcommand.is_empty() { &command.args } else { &command.operands };
            view.unread(rest);
        }
        view
    }

    /// Options that the table does not know, of a program that it knows.
    fn unlisted(&mut self, command: &Command) {
        for doubt in &command.doubts {
            let Cause::Option(name) = &doubt.cause else { continue };
            if doubt.harm == Harm::Unknown {
                let value =
                    |word: &Word| Some(Word::known(word.literal()?.strip_prefix(name.as_str())?.strip_prefix('=')?));
                let value = command.args.iter().find_map(value);
                self.options.push(Given { name: name.clone(), value, listed: false });
            }
        }
    }

    /// Words that nothing is known about but how they are written.
    fn unread(&mut self, rest: &[Word]) {
        let (mut ended, mut after) = (false, false);
        for word in rest {
            match word.literal() {
                Some("--") if !ended => ended = true,
                Some(text) if !ended && text.len() > 1 && text.starts_with('-') => {
                    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
                    self.options.push(Given { name: name.to_owned(), value: value.map(Word::known), listed: false });
                    after = true;
                }
                _ if after => self.vague.push(word.clone()),
                _ => self.words.push(word.clone()),
            }
        }
    }

    /// The option that a rule means: by its name, or each of its letters by itself.
    fn find(&self, name: &str) -> Option<&Given> {
        let exact = self.options.iter().rev().find(|given| given.name == name);
        exact.or_else(|| {
            let mut found = None;
            for letter in letters(name)? {
                found = Some(self.options.iter().rev().find(|given| has_letter(given, letter))?);
            }
            found
        })
    }

    /// What a rule asks for. A word after an option is that option's value, if the command has it with one.
    fn asked<'r>(&self, items: &'r [Item]) -> Asked<'r> {
        let mut asked = Asked { words: Vec::new(), options: Vec::new() };
        let mut items = items.iter().peekable();
        while let Some(item) = items.next() {
            match item {
                Item::Word(pattern) => asked.words.push(pattern),
                Item::Option(name, Some(value)) => asked.options.push((name, Some(value))),
                Item::Option(name, None) => {
                    let valued = self.find(name).is_some_and(|given| given.listed && given.value.is_some());
                    let value = match items.peek() {
                        Some(Item::Word(pattern)) if valued => {
                            items.next();
                            Some(pattern)
                        }
                        _ => None,
                    };
                    asked.options.push((name, value));
                }
            }
        }
        asked
    }

    /// Whether words may turn out to be options, or more than one word.
    fn open(&self) -> bool {
        self.words.iter().chain(&self.vague).any(|word| word.may_be_option() || word.splits())
    }
}

/// The letters of short options in one word.
fn letters(name: &str) -> Option<impl Iterator<Item = char>> {
    name.strip_prefix('-').filter(|rest| !rest.starts_with('-')).map(str::chars)
}

fn has_letter(given: &Given, letter: char) -> bool {
    // What the table knows has been taken apart already.
    let bundle = !given.listed || given.name.chars().count() == 2;
    bundle && letters(&given.name).is_some_and(|mut letters| letters.any(|own| own == letter))
}

impl Rule {
    /// Whether it is certainly about a command.
    pub(super) fn is_about(&self, command: &Command) -> bool {
        let Some(name) = command.name.as_deref().filter(|name| self.program.is_program(name)) else { return false };
        if name.is_empty() {
            return false;
        }
        if self.items.is_empty() && !self.closed {
            return true;
        }
        let view = View::new(command);
        let asked = view.asked(&self.items);
        let last = asked.words.len().saturating_sub(1);
        let fits = |(at, pattern): (usize, &&Pattern)| {
            view.words.get(at).is_some_and(|word| pattern.surely(word) && (at == last || !word.splits()))
        };
        let closed = !self.closed || (view.words.len() == asked.words.len() && view.vague.is_empty());
        closed
            && asked.words.iter().enumerate().all(fits)
            && asked.options.iter().all(|(name, value)| view.find(name).is_some_and(|given| holds(given, *value)))
    }

    /// Whether it covers a command as an allow: none if it is not about it, else why not.
    pub(super) fn covers(&self, command: &Command) -> Option<Result<(), String>> {
        if !self.is_about(command) {
            return None;
        }
        let view = View::new(command);
        let lacking = command.doubts.iter().find(|doubt| !self.answers(doubt, command, &view));
        Some(match lacking {
            Some(doubt) => Err(doubt.why.clone()),
            None if command.nature.is_none() => self.answers_unread(command, &view),
            None => Ok(()),
        })
    }

    /// Whether its words speak for what a doubt is about.
    fn answers(&self, doubt: &Doubt, command: &Command, view: &View) -> bool {
        match &doubt.cause {
            Cause::Nature => true,
            Cause::Subcommand => view.asked(&self.items).words.len() >= command.subcommand.len(),
            Cause::Option(name) => {
                let writes = matches!(command.nature, Some(Class::Silent | Class::Write));
                (writes && doubt.harm == Harm::Writes) || self.names(name, view)
            }
            // Who runs things as somebody else is named, or not meant.
            Cause::Elsewhere => self.program.is_exact(),
            Cause::Code | Cause::Variable | Cause::Redirect | Cause::Line | Cause::Other => false,
        }
    }

    /// Whether it names this very option, with the value that it has.
    fn names(&self, name: &str, view: &View) -> bool {
        let asked = view.asked(&self.items);
        let given = view.options.iter().filter(|given| given.name == name);
        let mut fitting = asked.options.iter().filter(|(_, value)| given.clone().all(|given| holds(given, *value)));
        if asked.options.iter().any(|(own, value)| *own == name && given.clone().all(|given| holds(given, *value))) {
            return true;
        }
        let own: Vec<char> = fitting.by_ref().filter_map(|(own, _)| letters(own)).flatten().collect();
        letters(name).is_some_and(|mut letters| letters.all(|letter| own.contains(&letter)))
    }

    /// The same for a program whose options nobody knows: what says that it writes or runs has to be named.
    fn answers_unread(&self, command: &Command, view: &View) -> Result<(), String> {
        let cut = |text: &str| crate::shell::cut(text);
        if let Some(word) = command.args.iter().find(|word| word.may_be_option()) {
            return Err(format!("`{}` may turn out to be an option", cut(&word.text)));
        }
        let telling = |given: &&Given| {
            let long = TELLING.iter().any(|start| given.name.starts_with(start)) && !given.name.ends_with("format");
            let short = letters(&given.name).is_some_and(|mut letters| letters.any(|c| TELLING_SHORT.contains(&c)));
            (long || short) && !self.names(&given.name, view)
        };
        match view.options.iter().find(telling) {
            Some(given) => Err(format!("`{}` may write or run something", cut(&given.name))),
            None => Ok(()),
        }
    }

    /// How likely it is that it is about a command, as a deny.
    pub(super) fn likely(&self, command: &Command) -> Likely {
        let program = match command.name.as_deref() {
            None if matches!(self.program, Pattern::Any) => Likely::Yes,
            None => return Likely::Maybe,
            Some(name) => self.program.is_denied_program(name).into(),
        };
        if program == Likely::No {
            return self.mentioned(command);
        }
        if self.items.is_empty() {
            return program;
        }
        let view = View::new(command);
        let asked = view.asked(&self.items);
        let options = asked.options.iter().map(|(name, value)| option_likely(&view, name, *value));
        let likely = options.fold(words_likely(&view, &asked.words), Likely::min);
        // An alias for one run makes any subcommand of it.
        let alias = command.options.iter().any(|used| used.harm == Some(Harm::Runs))
            && command.doubts.iter().any(|doubt| doubt.cause == Cause::Subcommand);
        likely.max(if alias { Likely::Maybe } else { Likely::No }).max(self.mentioned(command))
    }
}

/// Whether an option has the value that is asked for.
fn holds(given: &Given, value: Option<&Pattern>) -> bool {
    value.is_none_or(|pattern| given.value.as_ref().is_some_and(|value| pattern.surely(value)))
}

fn words_likely(view: &View, asked: &[&Pattern]) -> Likely {
    let at = |(at, pattern): (usize, &&Pattern)| view.words.get(at).map_or(Likely::No, |word| pattern.likely(word));
    let straight = asked.iter().enumerate().map(at).min().unwrap_or(Likely::Yes);
    let unsure = view.open() || view.options.iter().any(|given| !given.listed);
    if straight != Likely::No || !unsure {
        return straight;
    }
    // Where it is not known which words are operands, they may stand anywhere after one another.
    let mut words = view.words.iter().chain(&view.vague);
    let mut reaches = |pattern: &&Pattern| {
        words.any(|word| word.splits() || word.may_be_option() || pattern.likely(word) != Likely::No)
    };
    if asked.iter().all(&mut reaches) || view.open() { Likely::Maybe } else { Likely::No }
}

fn option_likely(view: &View, name: &str, value: Option<&Pattern>) -> Likely {
    let same = SAME.iter().find(|names| names.contains(&name)).copied().unwrap_or_default();
    let found = view.find(name).or_else(|| same.iter().find_map(|name| view.find(name)));
    if let Some(given) = found {
        return match (value, &given.value) {
            (None, _) => Likely::Yes,
            (Some(pattern), Some(value)) => pattern.likely(value),
            // Its value may be the next word.
            (Some(_), None) => Likely::Maybe,
        };
    }
    let bundled = letters(name).is_some_and(|letters| {
        let mut each = letters.map(|letter| format!("-{letter}"));
        name.len() > 2 && each.all(|one| option_likely(view, &one, None) == Likely::Yes)
    });
    if bundled {
        return Likely::Yes;
    }
    let short = |given: &Given| !given.listed && given.name.len() > 3 && name.starts_with(&given.name);
    if view.open() || view.options.iter().any(short) { Likely::Maybe } else { Likely::No }
}

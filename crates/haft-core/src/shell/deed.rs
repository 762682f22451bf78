//! What one command does, by the table: its options and operands become paths that are read and written,
//! commands that are run in turn, and doubts.

use super::entry::{Depth, Does, Entry, Prints, Role, Times, Wraps};
use super::judged::{Cause, Class, Command, Doubt, Harm, Redirect, Standing, TrackedFiles, Used};
use super::options::{Sorted, sort};
use super::ruin;
use super::special;
use super::state::State;
use super::variables;
use super::walk::{Stream, Walk};
use super::word::{Value, Word};

/// Directories whose programs are what their names say.
const SYSTEM: &[&str] = &["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/usr/local/sbin/"];

/// A command that is about to be looked at.
pub(super) struct Call {
    pub(super) argv: Vec<Word>,
    pub(super) assignments: Vec<(String, Word)>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) standing: Standing,
    pub(super) stdin: Stream,
}

/// What is found out about a command while it is looked at.
pub(super) struct Deed {
    pub(super) class: Class,
    pub(super) nature: Option<Class>,
    pub(super) doubts: Vec<Doubt>,
    pub(super) prints: Stream,
    pub(super) wrapper: bool,
    pub(super) subcommand: Vec<String>,
    pub(super) options: Vec<Used>,
    pub(super) operands: Vec<Word>,
}

impl Deed {
    pub(super) fn new(class: Class) -> Self {
        Self {
            class,
            nature: None,
            doubts: Vec::new(),
            prints: Stream::Unknown,
            wrapper: false,
            subcommand: Vec::new(),
            options: Vec::new(),
            operands: Vec::new(),
        }
    }

    /// Adds a doubt that no rule can speak for.
    pub(super) fn doubt(&mut self, harm: Harm, why: impl Into<String>) {
        self.doubts.push(Doubt::new(harm, why));
    }

    /// Adds a doubt that comes from somewhere else.
    pub(super) fn doubt_by(&mut self, cause: Cause, harm: Harm, why: impl Into<String>) {
        self.doubts.push(Doubt::new(harm, why).by(cause));
    }

    /// Notes an option, and what doubts it gives.
    pub(super) fn used(&mut self, name: &str, value: Option<Word>, does: Does, doubts: Vec<Doubt>) {
        let harm = doubts.iter().map(|doubt| doubt.harm).filter(|harm| *harm != Harm::Unknown).max();
        self.options.push(Used { name: name.to_owned(), value, harm });
        let known = match does {
            Does::Writes | Does::Alters => Harm::Writes,
            Does::Runs => Harm::Runs,
            Does::Sends => Harm::Sends,
            Does::Nothing | Does::Follows | Does::Reads | Does::Shell => return self.doubts.extend(doubts),
        };
        self.blame(name, known, doubts);
    }

    /// Notes the words that a reader of its own kept to itself: rules may be about them.
    fn note(&mut self, task: &Task<'_>) {
        let sorted = sort(task.entry, task.args, false);
        if self.operands.is_empty() {
            self.operands = sorted.operands;
        }
        for option in sorted.options {
            if !self.options.iter().any(|used| used.name == option.name) {
                self.options.push(Used { name: option.name, value: option.value, harm: None });
            }
        }
    }

    /// Adds doubts, those about a harm that an option is known for as that option's.
    pub(super) fn blame(&mut self, name: &str, known: Harm, doubts: Vec<Doubt>) {
        self.doubts.extend(doubts.into_iter().map(|doubt| match doubt.harm {
            harm if harm == known => doubt.by(Cause::Option(name.to_owned())),
            _ => doubt,
        }));
    }
}

/// What a reader of a command needs.
pub(super) struct Task<'t> {
    /// The program, and its subcommand.
    pub(super) name: &'t str,
    pub(super) entry: &'t Entry,
    /// The words after the program, or after the subcommand.
    pub(super) args: &'t [Word],
    pub(super) standing: &'t Standing,
    pub(super) stdin: &'t Stream,
}

impl Task<'_> {
    /// Where a command stands that this one runs.
    pub(super) fn within(&self) -> Standing {
        let mut standing = self.standing.clone();
        standing.through.push(self.name.to_owned());
        standing
    }
}

impl Walk<'_> {
    /// Looks at a command, and at whatever it runs.
    pub(super) fn consider(&mut self, call: Call, state: &mut State) -> Stream {
        if !self.enter(call.argv.len()) {
            return Stream::Unknown;
        }
        let printed = self.one_command(call, state);
        self.leave();
        printed
    }

    fn one_command(&mut self, call: Call, state: &mut State) -> Stream {
        let Call { argv, assignments, redirects, standing, stdin } = call;
        let Some((program, args)) = argv.split_first() else { return Stream::Unknown };
        let name = program.literal().map(name_of);
        self.note_executed((program, args), &assignments, &redirects, &stdin, state);
        // Commands are listed in the order in which they run: a wrapper before what it wraps.
        let slot = self.commands.len();
        self.commands.push(blank(args.to_vec(), &standing));
        let deed = match &name {
            Some(Ok(name)) => self.by_name(name, args, &standing, &stdin, state),
            Some(Err(path)) => elsewhere(path),
            None => unnamed(program, state),
        };
        self.conclude(slot, (program, assignments, redirects), deed, state)
    }

    /// What stands around a command, and what follows for it. Apart from the way down into what it runs, so
    /// that this does not cost stack on each level.
    fn conclude(
        &mut self,
        slot: usize,
        (program, assignments, redirects): (&Word, Vec<(String, Word)>, Vec<Redirect>),
        mut deed: Deed,
        state: &State,
    ) -> Stream {
        let name = program.literal().map(name_of);
        if program.text.contains(['$', '`']) && !program.text.starts_with("$'") && !program.text.starts_with("$\"") {
            // It is looked at as what it is now, and is not believed to stay that.
            let why = format!("`{}` says which program is run", super::cut(&program.text));
            deed.doubt_by(Cause::Code, Harm::Runs, why);
        }
        let touched = deed.doubts.len();
        self.touch(&redirects, state, &mut deed.doubts);
        if deed.doubts[touched..].iter().any(|doubt| doubt.harm == Harm::Writes) {
            deed.class = deed.class.max(Class::Write);
        }
        let splits = |variable: &str| variable == "IFS" && name == Some(Ok("read"));
        let given = assignments.iter().filter(|(variable, _)| !splits(variable));
        deed.doubts.extend(given.filter_map(|(name, value)| variables::given(name, value)));
        if !deed.class.looks() && deed.doubts.is_empty() {
            let (harm, does) = match deed.class {
                Class::General => (Harm::Unknown, "is not known to only read"),
                _ => (Harm::Writes, "changes things"),
            };
            deed.doubt_by(Cause::Nature, harm, format!("`{}` {does}", super::cut(&spoken(program, &deed.subcommand))));
        } else if deed.class.looks() && deed.doubts.iter().any(|doubt| doubt.harm != Harm::Unknown) {
            // A known harm decides what it is; what is merely not known may still be reading.
            let writes = deed.doubts.iter().all(|doubt| doubt.harm == Harm::Writes);
            deed.class = if writes { Class::Write } else { Class::General };
        }
        let printed = if redirects.iter().any(|one| one.target.is_some() || one.fd == Some(1)) {
            Stream::Unknown
        } else {
            std::mem::take(&mut deed.prints)
        };
        if let Some(place) = self.commands.get_mut(slot) {
            place.name = name.map(|name| name.unwrap_or_else(|path| path).to_owned());
            place.assignments = assignments;
            place.redirects = redirects;
            place.class = deed.class;
            place.wrapper = deed.wrapper;
            place.nature = deed.nature;
            place.subcommand = deed.subcommand;
            place.options = deed.options;
            place.operands = deed.operands;
            place.doubts = deed.doubts;
        }
        printed
    }

    fn by_name(&mut self, name: &str, args: &[Word], standing: &Standing, stdin: &Stream, state: &mut State) -> Deed {
        let called = self.functions.iter().any(|function| function == name);
        let Some(entry) = self.table.entry(name) else {
            if called {
                // What it does was looked at where it was defined.
                state.forget_all();
                return Deed::new(Class::Neutral);
            }
            let mut deed = Deed::new(Class::General);
            let why = format!("`{}` is not in the table of known programs", super::cut(name));
            deed.doubt_by(Cause::Nature, Harm::Unknown, why);
            deed.operands = args.to_vec();
            return deed;
        };
        if called {
            state.forget_all();
        }
        let task = Task { name, entry: &entry, args, standing, stdin };
        self.by_entry(&task, &mut Vec::new(), state)
    }

    /// What a program does by its entry, and by that of its subcommand.
    fn by_entry(&mut self, task: &Task<'_>, path: &mut Vec<String>, state: &mut State) -> Deed {
        let entry = task.entry;
        if entry.written.interactive && self.interactive.is_none() {
            self.interactive = Some(task.name.to_owned());
        }
        if entry.subcommands.is_empty() {
            let mut deed = special::read(self, task, state).unwrap_or_else(|| self.plainly(task, state));
            deed.subcommand.clone_from(path);
            if entry.written.special.is_some() {
                deed.note(task);
            }
            return deed;
        }
        let head = sort(entry, task.args, true);
        let Some((word, at)) = head.operands.first().zip(head.at.first()) else {
            // Nothing but options: `git --version`.
            return self.plainly(task, state);
        };
        let known = word.literal().and_then(|name| entry.subcommands.get_key_value(name));
        let mut deed = Deed::new(Class::General);
        let mut at_state = state.clone();
        self.use_options(task, &head, &mut deed, &mut at_state);
        special::globals(self, task, &head, &mut deed, &mut at_state);
        let Some((name, sub)) = known else {
            let why = match word.literal() {
                Some(name) => format!("`{} {}` is not known to only read", task.name, super::cut(name)),
                None => format!("what `{}` is told to do is not known before it runs", task.name),
            };
            deed.doubt_by(if word.literal().is_some() { Cause::Subcommand } else { Cause::Other }, Harm::Unknown, why);
            deed.doubts.extend(head.doubts);
            deed.subcommand.clone_from(path);
            deed.subcommand.extend(word.literal().map(str::to_owned));
            deed.operands = task.args.get(at + 1..).unwrap_or_default().to_vec();
            return deed;
        };
        path.push(name.clone());
        let args = task.args.get(at + 1..).unwrap_or_default();
        let inner = Task { name: task.name, entry: sub, args, standing: task.standing, stdin: task.stdin };
        let mut below = self.by_entry(&inner, path, &mut at_state);
        below.doubts.extend(head.doubts);
        below.doubts.extend(deed.doubts);
        deed.options.append(&mut below.options);
        below.options = deed.options;
        if entry.written.repository && below.class.looks() {
            special::formats(&mut below);
            self.repository(&mut below, &at_state);
        }
        below
    }

    /// The git configuration of where it runs decides what it runs.
    fn repository(&mut self, deed: &mut Deed, state: &State) {
        if state.is_lost() {
            deed.doubt(Harm::Unknown, "it is not known in which repository it runs");
        }
        for place in state.places() {
            if !self.repositories.contains(place) {
                self.repositories.push(place.clone());
            }
        }
    }

    /// What a program without a reader of its own does.
    pub(super) fn plainly(&mut self, task: &Task<'_>, state: &mut State) -> Deed {
        let sorted = sort(task.entry, task.args, false);
        self.by_words(task, sorted, state)
    }

    /// The same, for words that are sorted already.
    pub(super) fn by_words(&mut self, task: &Task<'_>, sorted: Sorted, state: &mut State) -> Deed {
        let entry = task.entry;
        let when = entry.when.iter().find(|when| when.has.iter().any(|name| sorted.has(name)));
        let class = when.and_then(|when| when.class).unwrap_or(entry.class);
        let roles = when.and_then(|when| when.operands.as_ref()).unwrap_or(&entry.operands);
        let default = when.and_then(|when| when.default.as_ref()).or(entry.written.default.as_ref());
        let prints = when.and_then(|when| when.prints).or(entry.written.prints);
        let mut deed = Deed::new(class);
        deed.nature = Some(class);
        deed.doubts.extend(sorted.doubts.iter().cloned());
        if !sorted.doubts.is_empty() {
            // An option that is not known may do anything.
            deed.class = Class::General;
        }
        self.use_options(task, &sorted, &mut deed, state);
        let named = self.use_operands(task, &sorted, roles, &mut deed, state);
        if named.is_empty()
            && let Some(default) = default
        {
            self.reads(&Word::known(default), depth(entry, &sorted), state, &mut deed.doubts);
        }
        self.follows |= entry.written.opens;
        if let Some(which) = entry.written.tracked {
            for dir in state.places() {
                let tracked = TrackedFiles { dir: dir.clone(), which };
                if !self.tracked.contains(&tracked) {
                    self.tracked.push(tracked);
                }
            }
        }
        ruin::check(self, task.name, &sorted, state);
        deed.prints = stream(prints, task.stdin, &named, default.is_some());
        if task.name == "echo" && !self.functions.iter().any(|name| name == "echo") {
            // As every echo says it: some take a dash or a backslash for more than itself.
            let plain = |text: &&str| !text.starts_with('-') && !text.contains('\\');
            let said: Option<Vec<&str>> = task.args.iter().map(|word| word.literal().filter(plain)).collect();
            deed.prints = said.map_or(Stream::Unknown, |said| Stream::Text(said.join(" ") + "\n"));
        }
        deed.operands = sorted.operands;
        deed
    }

    /// What the options of a command do.
    pub(super) fn use_options(&mut self, task: &Task<'_>, sorted: &Sorted, deed: &mut Deed, state: &mut State) {
        for option in &sorted.options {
            let mut doubts = Vec::new();
            let name = format!("`{}`", super::cut(&option.name));
            let mut plain = |harm: Harm, does: &str| doubts.push(Doubt::new(harm, format!("{name} {does}")));
            match (option.does, &option.value) {
                (Does::Nothing, _) | (Does::Reads | Does::Shell, None) => {}
                (Does::Follows, _) => self.follows = true,
                (Does::Reads, Some(value)) => self.reads(value, depth(task.entry, sorted), state, &mut doubts),
                (Does::Writes, Some(value)) => self.writes(value, state, &mut doubts, &name),
                (Does::Writes, None) => plain(Harm::Writes, "writes files"),
                (Does::Alters, _) => plain(Harm::Writes, "changes things"),
                (Does::Runs, _) => plain(Harm::Runs, "runs something"),
                (Does::Sends, _) => plain(Harm::Sends, "sends or fetches something"),
                (Does::Shell, Some(value)) => self.run_text(task, value, deed, state),
            }
            deed.used(&option.name, option.value.clone(), option.does, doubts);
        }
    }

    /// A word that is a command for a shell.
    pub(super) fn run_text(&mut self, task: &Task<'_>, word: &Word, deed: &mut Deed, state: &mut State) {
        if let Some(text) = word.literal() {
            let mut state = state.clone();
            self.inner(text, &task.within(), &mut state, &Stream::Unknown);
            if !special::is_portable(text) {
                let why = format!("the shell of `{}` may not read this as bash does", task.name);
                deed.doubt_by(Cause::Code, Harm::Unknown, why);
            }
            deed.wrapper = task.entry.written.wraps == Some(Wraps::Plainly);
        } else {
            let why = format!("`{}` is run, and is not known before", super::cut(&word.text));
            deed.doubt_by(Cause::Code, Harm::Runs, why);
        }
        if task.entry.written.wraps != Some(Wraps::Plainly) {
            deed.doubt_by(Cause::Elsewhere, Harm::Runs, format!("`{}` runs a command in its own way", task.name));
        }
    }

    /// What the operands of a command do. Returns those that name what is read.
    fn use_operands(
        &mut self,
        task: &Task<'_>,
        sorted: &Sorted,
        roles: &[(Role, Times)],
        deed: &mut Deed,
        state: &mut State,
    ) -> Vec<Word> {
        let (assigned, rest) = assign(roles, sorted.operands.len());
        let mut named = Vec::new();
        // A word that may be several shifts those after it, unless it is one of any number.
        let mut shifted = false;
        let depth = depth(task.entry, sorted);
        for (number, (role, times)) in assigned.into_iter().enumerate() {
            let word = &sorted.operands[number];
            shifted |= word.splits() && times != Times::Any;
            match role {
                Role::Text if shifted && roles.iter().any(|(role, _)| *role == Role::Read) => {
                    self.reads(word, depth, state, &mut deed.doubts);
                }
                Role::Text => {}
                Role::Read => {
                    self.reads(word, depth, state, &mut deed.doubts);
                    named.push(word.clone());
                }
                Role::Write | Role::Alter | Role::Run | Role::Send => self.works_on(task, role, word, deed, state),
                Role::Command => {
                    let from = sorted.at[number];
                    self.run_words(task, &task.args[from..], deed, state);
                    break;
                }
                Role::Shell => {
                    let from = sorted.at[number];
                    let joined = joined(&task.args[from..]);
                    self.run_text(task, &joined, deed, state);
                    break;
                }
            }
        }
        if shifted && roles.iter().any(|(role, _)| !matches!(role, Role::Text | Role::Read)) {
            deed.doubt(Harm::Unknown, "how many words there will be is not known before it runs");
        }
        if rest > 0 {
            deed.doubt(Harm::Unknown, format!("`{}` is given more words than it is known to take", task.name));
        }
        named
    }

    /// An operand of a program that is there to do something to it.
    fn works_on(&mut self, task: &Task<'_>, role: Role, word: &Word, deed: &mut Deed, state: &State) {
        let (name, text) = (task.name, super::cut(&word.text));
        let mut doubts = Vec::new();
        match role {
            Role::Write => self.writes(word, state, &mut doubts, &format!("`{name}`")),
            Role::Alter => doubts.push(Doubt::new(Harm::Writes, format!("`{name} {text}` changes things"))),
            Role::Run => doubts.push(Doubt::new(Harm::Runs, format!("`{name}` runs {text}"))),
            _ => doubts.push(Doubt::new(Harm::Sends, format!("`{name}` talks to {text}"))),
        }
        // What is written first is what the program does; what follows is why that is not known.
        if let Some(first) = doubts.first_mut() {
            first.cause = Cause::Nature;
        }
        deed.doubts.append(&mut doubts);
    }

    /// Words that are a command.
    pub(super) fn run_words(&mut self, task: &Task<'_>, argv: &[Word], deed: &mut Deed, state: &mut State) {
        let (assignments, argv) = special::assignments(argv);
        let call = Call {
            argv: argv.to_vec(),
            assignments,
            redirects: Vec::new(),
            standing: task.within(),
            stdin: task.stdin.clone(),
        };
        let mut state = state.clone();
        deed.prints = self.consider(call, &mut state);
        if let Some(Wraps::Plainly) = task.entry.written.wraps {
            deed.wrapper = true;
        } else {
            let why = format!("`{}` runs a command elsewhere, or as somebody else", task.name);
            deed.doubt_by(Cause::Elsewhere, Harm::Runs, why);
        }
    }
}

/// What is read below the directories that a program is given.
fn depth(entry: &Entry, sorted: &Sorted) -> Depth {
    entry.depth(|option| sorted.has(option))
}

/// A program that is none of the system's.
fn elsewhere(path: &str) -> Deed {
    let mut deed = Deed::new(Class::General);
    deed.doubt_by(Cause::Nature, Harm::Runs, format!("it runs {}", super::cut(path)));
    deed
}

/// A program that is not known before it runs.
fn unnamed(program: &Word, state: &mut State) -> Deed {
    state.forget_all();
    let mut deed = Deed::new(Class::General);
    let why = format!("which program `{}` is, is not known before it runs", super::cut(&program.text));
    deed.doubt_by(Cause::Code, Harm::Runs, why);
    deed
}

fn blank(args: Vec<Word>, standing: &Standing) -> Command {
    Command {
        name: None,
        subcommand: Vec::new(),
        args,
        assignments: Vec::new(),
        redirects: Vec::new(),
        standing: standing.clone(),
        class: Class::General,
        wrapper: false,
        nature: None,
        options: Vec::new(),
        operands: Vec::new(),
        doubts: Vec::new(),
    }
}

fn spoken(program: &Word, subcommand: &[String]) -> String {
    let mut said = name_of(program.shown()).unwrap_or(program.shown()).to_owned();
    for part in subcommand {
        said.extend([" ", part]);
    }
    said
}

/// The program that a word names, or the path of one that may be anything.
pub(super) fn name_of(text: &str) -> Result<&str, &str> {
    if !text.contains('/') {
        return Ok(text);
    }
    let own = SYSTEM.iter().find_map(|dir| text.strip_prefix(dir)).filter(|name| !name.contains('/'));
    own.ok_or(text)
}

/// The role of each operand, and how many have none.
fn assign(roles: &[(Role, Times)], count: usize) -> (Vec<(Role, Times)>, usize) {
    let mut assigned = Vec::with_capacity(count);
    for (position, (role, times)) in roles.iter().enumerate() {
        let left = count - assigned.len();
        // A command takes all that is left, and looks at it by itself.
        if matches!(role, Role::Command | Role::Shell) && left > 0 {
            assigned.push((*role, *times));
            return (assigned, 0);
        }
        let after = roles[position + 1..].iter().filter(|(_, times)| *times == Times::Once).count();
        let take = match times {
            Times::Once => left.min(1),
            Times::Maybe => left.saturating_sub(after).min(1),
            Times::Any => left.saturating_sub(after),
        };
        assigned.extend(std::iter::repeat_n((*role, *times), take));
    }
    let rest = count - assigned.len();
    (assigned, rest)
}

/// Several words as the text of a command.
fn joined(words: &[Word]) -> Word {
    let known: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    match known {
        Some(known) => Word::known(known.join(" ")),
        None => Word::unknown(words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")),
    }
}

/// What a program's lines are.
fn stream(prints: Option<Prints>, stdin: &Stream, named: &[Word], has_default: bool) -> Stream {
    match prints {
        Some(Prints::Lines) if named.is_empty() => match stdin {
            // Some lines of a text are another text; of names that end with NUL, not even names.
            Stream::Names { bases, .. } => Stream::Names { bases: bases.clone(), exact: false },
            _ => Stream::Unknown,
        },
        Some(Prints::Paths | Prints::Names) => {
            let mut bases = named.iter().map(base).collect::<Option<Vec<String>>>().unwrap_or_default();
            if named.is_empty() && (has_default || prints == Some(Prints::Names)) {
                bases.push(".".to_owned());
            }
            // Names are relative to where it runs: of another directory they do not say where they are.
            let astray = |base: &String| base.starts_with('/') || base.contains("..");
            if bases.is_empty() || (prints == Some(Prints::Names) && bases.iter().any(astray)) {
                return Stream::Unknown;
            }
            if prints == Some(Prints::Names) {
                bases = vec![".".to_owned()];
            }
            Stream::Names { bases, exact: false }
        }
        _ => Stream::Unknown,
    }
}

/// The directory in which a word's names are.
fn base(word: &Word) -> Option<String> {
    match &word.value {
        Value::Known(path) => Some(path.clone()),
        Value::Glob(_) => {
            let start = word.start();
            Some(start.rsplit_once('/').map_or(".", |(dir, _)| if dir.is_empty() { "/" } else { dir }).to_owned())
        }
        _ => None,
    }
}

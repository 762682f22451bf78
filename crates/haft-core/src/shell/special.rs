//! Programs that a table cannot describe: those with a small language of their own, and builtins that change
//! what the shell knows.

pub use shells::is_portable;

mod awk;
mod builtin;
mod find;
mod sed;
mod shells;

use super::deed::{Call, Deed, Task};
use super::entry::{Depth, Wraps};
use super::judged::{Class, Doubt, Harm};
use super::options::{Sorted, sort};
use super::state::State;
use super::variables;
use super::walk::{Stream, Walk};
use super::word::{Value, Word};

/// What a program with a reader of its own does; none for those without.
pub(super) fn read(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Option<Deed> {
    Some(match task.entry.written.special.as_deref()? {
        "find" => find::read(walk, task, state),
        "sed" => sed::read(walk, task, state),
        "awk" => awk::read(walk, task, state),
        "sh" => shells::sh(walk, task, state),
        "eval" => shells::eval(walk, task, state),
        "source" => shells::source(walk, task, state),
        "trap" => shells::trap(walk, task, state),
        "alias" => shells::alias(walk, task, state),
        "command" | "builtin" | "exec" => shells::here(walk, task, state),
        "xargs" => xargs(walk, task, state),
        "env" => env(walk, task, state),
        "dd" => dd(walk, task, state),
        "tar" => tar(walk, task, state),
        "fd" => fd(walk, task, state),
        "jq" => jq(walk, task, state),
        "yq" => yq(walk, task, state),
        "atfile" => atfile(walk, task, state),
        name => return builtin::read(name, walk, task, state),
    })
}

/// What the options before a subcommand change.
pub(super) fn globals(walk: &mut Walk<'_>, task: &Task<'_>, head: &Sorted, deed: &mut Deed, state: &mut State) {
    if task.entry.written.special.as_deref() != Some("git") {
        return;
    }
    for option in head.options.iter().filter(|option| option.name == "-c") {
        let value = option.value.as_ref().and_then(Word::literal).unwrap_or_default();
        if let Some((_, text)) = value.split_once("=!").filter(|(name, _)| name.starts_with("alias.")) {
            walk.inner(text, &task.within(), &mut state.clone(), &Stream::Unknown);
        }
    }
    for option in head.options.iter().filter(|option| option.name == "-C") {
        if let Some(dir) = option.value.as_ref().and_then(Word::literal) {
            state.go(dir);
            state.went_well();
        } else {
            state.lose();
            deed.doubt(Harm::Unknown, "in which directory git runs is not known");
        }
    }
}

/// Formats that git knows by name.
const FORMATS: &[&str] = &["oneline", "short", "medium", "full", "fuller", "reference", "email", "raw", "mboxrd"];

/// What git prints can ask for a signature to be checked, which runs a program; and a name that git does not
/// ship may stand for such a format.
pub(super) fn formats(deed: &mut Deed) {
    let mut doubts = Vec::new();
    for option in &deed.options {
        let Some(value) = &option.value else { continue };
        let formats = matches!(option.name.as_str(), "--format" | "--pretty");
        let harmless = value.literal().is_some_and(|text| {
            let known = !formats
                || text.is_empty()
                || FORMATS.contains(&text)
                || text.contains('%')
                || text.starts_with("format:")
                || text.starts_with("tformat:");
            known
                && !["%G", "%+G", "%-G", "% G", "signature"].iter().any(|odd| text.contains(odd))
                && !text.contains("%(trailers")
        });
        if !harmless && (formats || value.literal().is_some()) {
            doubts.push(format!("the format `{}` may run a program", super::cut(value.shown())));
        }
    }
    for why in doubts {
        deed.doubt(Harm::Runs, why);
    }
}

impl Walk<'_> {
    /// Commands that stand in a text which is not a command itself, like a subscript.
    pub(super) fn hidden(&mut self, task: &Task<'_>, text: &str, deed: &mut Deed, state: &State) {
        if !text.contains("$(") && !text.contains('`') {
            return;
        }
        let mut state = self.later(state);
        let quoted = format!(": \"{}\"", text.replace('"', ""));
        self.inner(&quoted, &task.within(), &mut state, &Stream::Unknown);
        deed.doubt(Harm::Runs, format!("`{}` runs what is in `{}`", task.name, super::cut(text)));
    }
}

/// Splits leading assignments from a command.
pub(super) fn assignments(words: &[Word]) -> (Vec<(String, Word)>, &[Word]) {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some((name, value)) = word.start().split_once('=') else { return (found, &words[at..]) };
        let named = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !named {
            return (found, &words[at..]);
        }
        let value = match &word.value {
            Value::Known(_) => Value::Known(value.to_owned()),
            _ => Value::unknown(false),
        };
        found.push((name.to_owned(), Word { text: word.text.clone(), value }));
    }
    (found, &[])
}

fn env(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let from = sorted.at.first().copied().unwrap_or(task.args.len());
    let (given, command) = assignments(&task.args[from..]);
    let mut away = state.clone();
    let (mut head, _) = split(&sorted);
    for option in &sorted.options {
        let dir = option.value.as_ref().filter(|_| matches!(option.name.as_str(), "-C" | "--chdir"));
        if let Some(dir) = dir {
            match dir.literal() {
                Some(dir) => {
                    away.go(dir);
                    away.went_well();
                }
                None => away.lose(),
            }
        }
    }
    head.doubts.clone_from(&sorted.doubts);
    let mut deed = walk.by_words(task, head, state);
    for option in sorted.options.iter().filter(|option| matches!(option.name.as_str(), "-S" | "--split-string")) {
        if let Some(text) = option.value.as_ref().and_then(Word::literal) {
            walk.inner(text, &task.within(), &mut away.clone(), &Stream::Unknown);
        }
    }
    deed.doubts.extend(given.iter().filter_map(|(name, value)| variables::given(name, value)));
    let unset = |option: &super::options::Found| {
        matches!(option.name.as_str(), "-i" | "--ignore-environment")
            || option.value.as_ref().is_some_and(|value| value.start().is_empty() || value.start().starts_with("GIT_"))
    };
    if sorted.options.iter().any(unset)
        && command.iter().any(|word| word.literal().is_none_or(|word| word.contains("git")))
    {
        deed.doubt(Harm::Writes, "without what its environment says, looking with git writes");
    }
    if command.is_empty() {
        deed.class = Class::List;
    } else {
        walk.run_words(task, command, &mut deed, &mut away);
    }
    deed
}

/// Sorted words without their operands.
fn split(sorted: &Sorted) -> (Sorted, Vec<Word>) {
    let head = Sorted { options: sorted.options.clone(), ..Sorted::default() };
    (head, sorted.operands.clone())
}

fn xargs(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let from = sorted.at.first().copied().unwrap_or(task.args.len());
    let (mut head, _) = split(&sorted);
    head.doubts.clone_from(&sorted.doubts);
    let mut deed = walk.by_words(task, head, state);
    let mut argv = task.args[from..].to_vec();
    if argv.is_empty() {
        argv.push(Word::known("echo"));
    }
    let zero = sorted.has("-0") || sorted.has("--null");
    let more = match task.stdin {
        Stream::Names { bases, exact } => {
            Word { text: "…".to_owned(), value: Value::Below { bases: bases.clone(), safe: *exact && zero } }
        }
        _ => Word::unknown("…"),
    };
    let replaced = ["-I", "-i", "--replace"].iter().find(|name| sorted.has(name));
    match replaced {
        Some(name) => {
            let mark = sorted.value(name).map_or("{}", |word| word.shown()).to_owned();
            replace(&mut argv, &mark, &more, &mut deed.doubts);
        }
        None => argv.push(more),
    }
    let file = ["-a", "--arg-file"].iter().any(|name| sorted.has(name));
    if file {
        argv.push(Word::unknown("…"));
    }
    walk.run_words(task, &argv, &mut deed, state);
    if task.entry.written.wraps.is_none_or(|wraps| wraps == Wraps::Otherwise) {
        deed.wrapper = true;
    }
    deed
}

/// Words in which a mark stands for something else. Where it is only a part of a word, the word stays as it is
/// written, and the command is doubted.
pub(super) fn replace(words: &mut [Word], mark: &str, by: &Word, doubts: &mut Vec<Doubt>) {
    for word in words {
        match word.literal() {
            Some(text) if text == mark => {
                word.value = match &by.value {
                    Value::Below { bases, safe } => Value::Below { bases: bases.clone(), safe: *safe },
                    Value::Partial { start, .. } => Value::Partial { start: start.clone(), splits: false },
                    _ => Value::unknown(false),
                };
            }
            Some(text) if text.contains(mark) => {
                doubts.push(Doubt::new(
                    Harm::Unknown,
                    format!("what `{mark}` in `{}` stands for is not known", super::cut(text)),
                ));
            }
            _ => {}
        }
    }
}

/// `jq`: its programs can read modules from elsewhere.
fn jq(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut deed = walk.plainly(task, state);
    let loads = |text: &str, word: &str| {
        text.match_indices(word).any(|(at, _)| text[at + word.len()..].trim_start().starts_with('"'))
    };
    let modules = |word: &Word| word.literal().is_none_or(|text| loads(text, "import") || loads(text, "include"));
    if task.args.iter().any(modules) {
        deed.doubt(Harm::Unknown, format!("{} may read a module, which is not known", task.name));
    }
    deed
}

/// `yq`: one of the programs of this name has words that open files, and one that makes words.
fn yq(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let opens = |word: &Word| word.literal().is_none_or(|text| text.contains("load") || text.contains("eval"));
    walk.follows |= task.args.iter().any(opens);
    jq(walk, task, state)
}

/// Programs for which `@file` stands for the words in a file.
fn atfile(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut deed = walk.plainly(task, state);
    if task
        .args
        .iter()
        .any(|word| word.start().starts_with('@') || (word.literal().is_none() && word.start().is_empty()))
    {
        deed.doubt(Harm::Unknown, "`@` stands for the words in a file, which are not known");
    }
    deed
}

/// `fd`: what follows `-x` is a command, run for what is found.
fn fd(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let runs = |word: &Word| matches!(word.literal(), Some("-x" | "-X" | "--exec" | "--exec-batch"));
    let Some(at) = task.args.iter().position(runs) else { return walk.plainly(task, state) };
    let found = Word { text: "{}".to_owned(), value: Value::Below { bases: vec![".".to_owned()], safe: false } };
    let mut argv = task.args[at + 1..].to_vec();
    let mut doubts = Vec::new();
    replace(&mut argv, "{}", &found, &mut doubts);
    argv.push(found);
    let call =
        Call { argv, assignments: Vec::new(), redirects: Vec::new(), standing: task.within(), stdin: Stream::Unknown };
    walk.consider(call, &mut state.clone());
    let mut deed = walk.plainly(task, state);
    deed.doubts.extend(doubts);
    deed
}

/// `tar`: an archive with a colon in its name is on another machine.
fn tar(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let local = sorted.has("--force-local");
    let archives: Vec<Word> = sorted
        .options
        .iter()
        .filter(|option| matches!(option.name.as_str(), "-f" | "--file"))
        .filter_map(|option| option.value.clone())
        .collect();
    let mut deed = walk.by_words(task, sorted, state);
    for archive in archives.iter().filter(|_| !local) {
        let here = archive.literal().is_some_and(|name| !name.contains(':'));
        if !here {
            deed.doubt(Harm::Sends, format!("{} may be on another machine", super::cut(archive.shown())));
        }
    }
    deed
}

fn dd(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let (mut head, operands) = split(&sorted);
    head.doubts.clone_from(&sorted.doubts);
    let mut deed = walk.by_words(task, head, state);
    deed.class = Class::Read;
    for word in &operands {
        let value = |name: &str| {
            let start = word.start().strip_prefix(name)?;
            let value = if word.literal().is_some() { Value::Known(start.to_owned()) } else { Value::unknown(false) };
            Some(Word { text: word.text.clone(), value })
        };
        if let Some(path) = value("if=") {
            walk.reads(&path, Depth::Files, state, &mut deed.doubts);
        } else if let Some(path) = value("of=") {
            walk.writes(&path, state, &mut deed.doubts, "`dd`");
        } else if !["bs=", "ibs=", "obs=", "cbs=", "count=", "skip=", "seek=", "conv=", "iflag=", "oflag=", "status="]
            .iter()
            .any(|name| word.start().starts_with(name))
        {
            deed.doubt(Harm::Unknown, format!("`{}` is not known to be harmless", super::cut(&word.text)));
        }
    }
    deed
}

//! Builtins that change what the shell knows: where it is, and what its variables are.

use crate::shell::deed::{Deed, Task};
use crate::shell::judged::{Class, Harm};
use crate::shell::options::sort;
use crate::shell::state::State;
use crate::shell::variables;
use crate::shell::walk::{Stream, Walk};
use crate::shell::word::{Value, Word};

/// Options of `set` and `shopt` that only make the shell stricter or louder.
const TAME: &[&str] = &[
    "errexit",
    "nounset",
    "pipefail",
    "xtrace",
    "verbose",
    "noglob",
    "noclobber",
    "nullglob",
    "failglob",
    "globstar",
    "inherit_errexit",
    "noexec",
    "errtrace",
    "functrace",
];

/// Whether an option of `set` only makes the shell stricter or louder.
pub(super) fn is_tame(option: &str) -> bool {
    TAME.contains(&option)
}

pub(super) fn read(name: &str, walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Option<Deed> {
    Some(match name {
        "cd" | "pushd" => cd(walk, task, state),
        "popd" => {
            let deed = walk.plainly(task, &mut state.clone());
            state.lose();
            deed
        }
        "export" | "declare" | "typeset" | "local" | "readonly" => declare(name, walk, task, state),
        "read" | "mapfile" | "getopts" | "unset" => names(name, walk, task, state),
        "printf" => printf(walk, task, state),
        "let" => compute(walk, task, state),
        "test" => test(walk, task, state),
        "set" | "shopt" => options(walk, task, state),
        _ => return None,
    })
}

fn cd(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let deed = walk.plainly(task, state);
    let home = walk.home().map(str::to_owned);
    let to = match sorted.operands.as_slice() {
        [] if task.name == "cd" => home.as_deref(),
        [one] => one.literal(),
        _ => None,
    };
    match to {
        Some("-" | "") | None => state.lose(),
        Some(_) if state.get("CDPATH").is_some() || state.get("HOME") != home.clone().map(Value::Known).as_ref() => {
            state.lose();
        }
        // Where `..` leads depends on links once it has been elsewhere: to either of two places.
        Some(to) if to.contains("..") && (state.moved() || climbs_late(to)) => state.climb(to),
        Some(to) => state.go(to),
    }
    deed
}

/// Whether a path goes up after it went down.
fn climbs_late(path: &str) -> bool {
    path.split('/').skip_while(|part| matches!(*part, ".." | "." | "")).any(|part| part == "..")
}

/// `declare` and its like: variables, perhaps given to every later command.
fn declare(name: &str, walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let mut deed = walk.by_words(task, sort(task.entry, task.args, false), &mut state.clone());
    deed.doubts.clone_from(&sorted.doubts);
    deed.class = Class::Neutral;
    let exported = name == "export" || sorted.has("-x");
    if sorted.has("-n") && name != "export" {
        deed.doubt(Harm::Unknown, "a variable stands for another one");
    }
    if sorted.has("-i") {
        deed.doubt(Harm::Runs, "whatever is assigned to such a variable is worked out, which runs what is in it");
    }
    for word in &sorted.operands {
        let start = word.start();
        let (variable, value) = start.split_once('=').map_or((start, None), |(name, value)| (name, Some(value)));
        let variable = variable.trim_end_matches('+').to_owned();
        let plain = !variable.is_empty() && variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !plain {
            deed.doubt(Harm::Runs, format!("`{}` may run what is in it", crate::shell::cut(&word.text)));
            walk.hidden(task, word.shown(), &mut deed, state);
            continue;
        }
        if value.is_some_and(|value| value.starts_with('(')) && word.literal().is_some() {
            walk.hidden(task, word.shown(), &mut deed, state);
            deed.doubt(Harm::Runs, format!("`{}` is read as an array, which runs what is in it", crate::shell::cut(&word.text)));
        }
        let Some(value) = value else {
            if exported {
                let kept = Word { text: word.text.clone(), value: Value::unknown(true) };
                deed.doubts.extend(variables::given(&variable, &kept));
            }
            continue;
        };
        let known = if word.literal().is_some() { Value::Known(value.to_owned()) } else { Value::unknown(true) };
        let kept = Word { text: word.text.clone(), value: known.clone() };
        deed.doubts.extend(if exported { variables::given(&variable, &kept) } else { variables::plain(&variable) });
        state.set(&variable, known);
    }
    deed
}

/// Builtins whose operands are names of variables that they set.
fn names(name: &str, walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let mut deed = walk.plainly(task, &mut state.clone());
    deed.class = Class::Neutral;
    // What is read line by line from a list of names is one of them.
    let value = match task.stdin {
        Stream::Names { bases, .. } if name == "read" && sorted.operands.len() == 1 => {
            Value::Below { bases: bases.clone(), safe: false }
        }
        _ => Value::unknown(true),
    };
    let arrays = ["-a", "-A"].iter().filter_map(|option| sorted.value(option));
    for word in sorted.operands.iter().chain(arrays) {
        match word.literal() {
            Some(text) if text.contains('[') => {
                if text.contains(['$', '`']) {
                    walk.hidden(task, text, &mut deed, state);
                }
                deed.doubt(Harm::Runs, format!("`{}` works out a subscript", crate::shell::cut(text)));
            }
            Some(text) => {
                // Without it, looking with git writes.
                if text.starts_with("GIT_") {
                    deed.doubt(Harm::Writes, format!("{} decides what git writes", crate::shell::cut(text)));
                }
                deed.doubts.extend(variables::plain(text));
                state.set(text, value.clone());
            }
            None => {
                state.forget_all();
                deed.doubt(Harm::Unknown, "which variable is set is not known");
            }
        }
    }
    deed
}

fn printf(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut sorted = sort(task.entry, task.args, false);
    let Some(at) = sorted.options.iter().position(|option| option.name == "-v") else {
        return walk.plainly(task, state);
    };
    let option = sorted.options.remove(at);
    let mut deed = walk.by_words(task, sorted, state);
    match option.value.as_ref().and_then(Word::literal) {
        Some(name) if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
            deed.doubts.extend(variables::plain(name));
            state.forget(name);
        }
        Some(text) => {
            walk.hidden(task, text, &mut deed, state);
            deed.doubt(Harm::Runs, format!("`{}` works out a subscript", crate::shell::cut(text)));
        }
        None => {
            state.forget_all();
            deed.doubt(Harm::Unknown, "which variable is set is not known");
        }
    }
    deed
}

fn compute(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut deed = walk.plainly(task, &mut state.clone());
    deed.class = Class::Neutral;
    for word in task.args {
        match word.literal() {
            Some(text) => {
                walk.hidden(task, text, &mut deed, state);
                walk.compute(text, state);
            }
            None => deed.doubt(Harm::Runs, "`let` runs what is in what it works out"),
        }
    }
    deed
}

fn test(walk: &mut Walk<'_>, task: &Task<'_>, state: &State) -> Deed {
    let mut deed = Deed::new(Class::Neutral);
    deed.operands = task.args.to_vec();
    let mut words: Vec<&Word> = task.args.iter().collect();
    if task.name == "[" {
        words.pop();
    }
    let negated = words.iter().take_while(|word| word.literal() == Some("!")).count();
    words.drain(..negated);
    for pair in words.windows(2) {
        let [asks, about] = pair else { continue };
        if !matches!(asks.literal(), Some("-v" | "-R")) {
            continue;
        }
        if !about.literal().is_some_and(|text| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
            walk.hidden(task, about.shown(), &mut deed, state);
            deed.doubt(Harm::Runs, "`-v` works out a subscript, which may run something");
        }
    }
    // What is not known may turn out to be `-v`: of two words the first, and any of words that split.
    let open = matches!(words.as_slice(), [first, _] if first.literal().is_none() && first.value != Value::Number);
    let splits = words.iter().any(|word| matches!(word.value, Value::Partial { splits: true, .. } | Value::Below { .. }));
    if open || splits {
        deed.doubt(Harm::Runs, "what is tested may turn out to be `-v`, which works out a subscript");
    }
    deed
}

/// `set` and `shopt`.
fn options(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut deed = walk.plainly(task, &mut state.clone());
    deed.class = Class::Neutral;
    deed.doubts.clear();
    let mut operands = false;
    for word in task.args {
        let Some(text) = word.literal() else {
            deed.doubt(Harm::Unknown, "how the shell is set is not known");
            continue;
        };
        operands |= text == "--";
        let flags = text.strip_prefix(['-', '+']);
        let tame = operands
            || TAME.contains(&text)
            || flags.is_some_and(|flags| flags.chars().all(|c| "euxvfCEToqspn".contains(c)));
        // `shopt name` asks.
        let asks = task.name == "shopt" && !task.args.iter().any(|word| matches!(word.literal(), Some("-s" | "-u")));
        if !tame && !asks {
            deed.doubt(
                Harm::Unknown,
                format!("`{} {}` changes how commands are read", task.name, crate::shell::cut(text)),
            );
        }
    }
    deed
}

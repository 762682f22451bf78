//! Whatever runs a text, or a command in this very shell.

use crate::shell::deed::{Call, Deed, Task};
use crate::shell::entry::Depth;
use crate::shell::judged::{Cause, Class, Harm};
use crate::shell::options::{Sorted, sort};
use crate::shell::state::State;
use crate::shell::walk::{Stream, Walk};
use crate::shell::word::Word;

/// `sh`, `bash` and their like.
pub(super) fn sh(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let asks = ["--version", "--help"].iter().any(|name| sorted.has(name));
    let text = sorted.value("-c").or_else(|| sorted.operands.first().filter(|_| sorted.has("-c"))).cloned();
    // The text is looked at below, with what it is given.
    let options = sorted.options.iter().filter(|option| option.name != "-c").cloned().collect();
    let head = Sorted { options, doubts: sorted.doubts.clone(), ..Sorted::default() };
    let mut deed = walk.by_words(task, head, state);
    if asks && sorted.operands.is_empty() && sorted.options.len() == 1 {
        deed.class = Class::Read;
        return deed;
    }
    deed.class = Class::Neutral;
    for option in sorted.options.iter().filter(|option| option.name == "-o") {
        if !option.value.as_ref().and_then(Word::literal).is_some_and(super::builtin::is_tame) {
            deed.doubt(Harm::Unknown, format!("`{} -o` changes how commands are read", task.name));
        }
    }
    match (text, sorted.operands.first(), task.stdin) {
        (Some(text), ..) => text_of(walk, task, &text, &mut deed, state),
        (None, Some(file), _) => {
            deed.class = Class::General;
            walk.reads(file, Depth::Files, state, &mut deed.doubts);
            deed.doubt_by(Cause::Nature, Harm::Runs, format!("it runs what is in {}", crate::shell::cut(&file.text)));
        }
        (None, None, Stream::Text(text)) => {
            text_of(walk, task, &Word::known(text), &mut deed, state);
            // Its own commands may read on where it stopped, so that other lines are run than it seems.
            deed.doubt(Harm::Runs, format!("`{}` runs what it is given", task.name));
        }
        _ => {
            deed.class = Class::General;
            let why = format!("`{}` runs what it is given, which is not known before", task.name);
            deed.doubt_by(Cause::Code, Harm::Runs, why);
        }
    }
    deed
}

fn text_of(walk: &mut Walk<'_>, task: &Task<'_>, word: &Word, deed: &mut Deed, state: &State) {
    let Some(text) = word.literal() else {
        deed.class = Class::General;
        let why = format!("`{}` is run, and is not known before", crate::shell::cut(&word.text));
        deed.doubt_by(Cause::Code, Harm::Runs, why);
        return;
    };
    deed.wrapper = true;
    // Another shell knows only what it is given.
    let mut inner = match state.place() {
        Some(place) => State::new(place, walk.home()),
        None => walk.later(state),
    };
    deed.prints = walk.inner(text, &task.within(), &mut inner, task.stdin);
    let alike = task.name == "bash" || (matches!(task.name, "sh" | "dash") && is_portable(text));
    if !alike || text.starts_with('-') {
        deed.doubt_by(Cause::Code, Harm::Unknown, format!("`{}` may not read this as bash does", task.name));
    }
}

/// Whether every shell reads a text as bash does: `$'\'; rm x; \''` is one word for bash, and three commands
/// for others.
pub fn is_portable(text: &str) -> bool {
    const ODD: &[&str] =
        &["$'", "$\"", "$[", "[[", "((", "<(", ">(", "&>", "|&", "<<<", "=(", ";&", "function", "select", "coproc"];
    !ODD.iter().any(|odd| text.contains(odd)) && !text.contains('{')
}

/// `eval`: its words are a command in this shell.
pub(super) fn eval(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut deed = Deed::new(Class::Neutral);
    deed.operands = task.args.to_vec();
    let known: Option<Vec<&str>> = task.args.iter().map(Word::literal).collect();
    if let Some(words) = known {
        let words: Vec<&str> = words.into_iter().skip_while(|word| *word == "--").collect();
        deed.wrapper = true;
        deed.prints = walk.inner(&words.join(" "), &task.within(), state, task.stdin);
    } else {
        state.forget_all();
        deed.class = Class::General;
        deed.doubt_by(Cause::Code, Harm::Runs, "`eval` runs something that is not known before");
    }
    deed
}

/// `source`: a file is a command in this shell.
pub(super) fn source(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut deed = walk.plainly(task, &mut state.clone());
    deed.class = Class::General;
    deed.doubt_by(Cause::Nature, Harm::Runs, "it runs what is in a file");
    state.forget_all();
    deed
}

/// `trap`: a text that is run later.
pub(super) fn trap(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let mut deed = walk.plainly(task, &mut state.clone());
    deed.class = Class::Neutral;
    if let [text, signals @ ..] = sorted.operands.as_slice()
        && !signals.is_empty()
    {
        let at_exit = signals.iter().all(|signal| matches!(signal.literal(), Some("EXIT" | "0")));
        let sets = ["=", "read", "mapfile", "printf", "declare", "typeset", "export", "local", "eval", "cd"];
        let plain = text
            .literal()
            .is_some_and(|text| !sets.iter().any(|word| text.contains(word)) && !text.contains(['\'', '"', '\\']));
        if !at_exit && !plain {
            deed.doubt(Harm::Unknown, "when a trap runs, and what is then what, is not known");
        }
        match text.literal() {
            Some("-" | "") => {}
            Some(text) => {
                let mut later = walk.later(state);
                walk.inner(text, &task.within(), &mut later, &Stream::Unknown);
                // It may run at any time, and set anything.
                *state = walk.later(state);
            }
            None => deed.doubt_by(Cause::Code, Harm::Runs, "`trap` runs something that is not known before"),
        }
    }
    deed
}

/// `alias`: what is defined is looked at, and from then on words may mean anything.
pub(super) fn alias(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let mut deed = walk.plainly(task, &mut state.clone());
    deed.class = Class::Neutral;
    for word in task.args {
        match word.literal().map(|text| text.split_once('=')) {
            Some(Some((name, text))) => {
                let mut later = walk.later(state);
                walk.inner(text, &task.within(), &mut later, &Stream::Unknown);
                deed.doubt(Harm::Unknown, format!("`{}` means something else from then on", crate::shell::cut(name)));
            }
            Some(None) => {}
            None => deed.doubt(Harm::Unknown, "an alias is not known before it runs"),
        }
    }
    deed
}

/// `command`, `builtin`, `exec`: a command in this very shell.
pub(super) fn here(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let sorted = sort(task.entry, task.args, false);
    let looks = sorted.has("-v") || sorted.has("-V");
    let head = Sorted { options: sorted.options.clone(), doubts: sorted.doubts.clone(), ..Default::default() };
    let mut deed = walk.by_words(task, head, &mut state.clone());
    deed.class = if looks { Class::List } else { Class::Neutral };
    if task.name == "exec" && sorted.has("-a") {
        deed.doubt(Harm::Runs, "a program is told another name, by which it may decide what to do");
    }
    let Some(from) = sorted.at.first().copied().filter(|_| !looks) else { return deed };
    let call = Call {
        argv: task.args[from..].to_vec(),
        assignments: Vec::new(),
        redirects: Vec::new(),
        standing: task.within(),
        stdin: task.stdin.clone(),
    };
    deed.prints = walk.consider(call, state);
    deed.wrapper = true;
    deed
}

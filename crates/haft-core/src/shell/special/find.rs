//! `find`: starting points, then an expression of tests and actions.

use crate::shell::deed::{Call, Deed, Task};
use crate::shell::entry::{Arity, Depth, Does};
use crate::shell::judged::{Doubt, Harm, Standing};
use crate::shell::options::Sorted;
use crate::shell::ruin;
use crate::shell::state::State;
use crate::shell::walk::{Stream, Walk};
use crate::shell::word::{Value, Word};

/// Words that join tests.
const JOINS: &[&str] = &["(", ")", "!", ",", "-a", "-o", "-and", "-or", "-not"];

pub(super) fn read(walk: &mut Walk<'_>, task: &Task<'_>, state: &mut State) -> Deed {
    let begins = |word: &Word| {
        word.literal().is_some_and(|text| (text.len() > 1 && text.starts_with('-')) || matches!(text, "(" | "!"))
    };
    // `-H`, `-L`, `-P`, `-D x` and `-O1` stand before the starting points.
    let mut at = 0;
    while let Some(text) = task.args.get(at).and_then(Word::literal) {
        match text {
            "-H" | "-L" | "-P" => {
                walk.follows |= text == "-L";
                at += 1;
            }
            text if text.starts_with("-O") && text.len() < 5 => at += 1,
            _ => break,
        }
    }
    let end = task.args[at..].iter().position(begins).map_or(task.args.len(), |found| at + found);
    let roots = &task.args[at..end];
    let sorted = Sorted { operands: roots.to_vec(), ..Sorted::default() };
    let mut deed = walk.by_words(task, sorted, state);
    if roots.iter().any(Word::may_be_option) {
        deed.doubt(Harm::Unknown, "a starting point may turn out to be an action");
    }
    let bases: Option<Vec<String>> = if roots.is_empty() {
        Some(vec![".".to_owned()])
    } else {
        roots.iter().map(|word| word.literal().map(str::to_owned)).collect()
    };
    let expression = Expression { task, words: &task.args[end..], bases };
    expression.read(walk, &mut deed, state);
    deed
}

struct Expression<'e> {
    task: &'e Task<'e>,
    words: &'e [Word],
    bases: Option<Vec<String>>,
}

impl Expression<'_> {
    fn read(&self, walk: &mut Walk<'_>, deed: &mut Deed, state: &mut State) {
        let mut next = 0;
        let (mut exact, mut printed) = (false, true);
        while let Some(word) = self.words.get(next) {
            next += 1;
            let Some(text) = word.literal() else {
                deed.doubt(Harm::Unknown, format!("`{}` may turn out to be an action", crate::shell::cut(&word.text)));
                continue;
            };
            if JOINS.contains(&text) {
                continue;
            }
            exact |= text == "-print0";
            printed &= !matches!(text, "-printf" | "-ls" | "-quit");
            if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
                next = self.runs(walk, text, next, deed, state);
                printed = false;
                continue;
            }
            match self.task.entry.options.get(text).copied() {
                None => {
                    deed.doubt(
                        Harm::Unknown,
                        format!("the test `{}` is not known to be harmless", crate::shell::cut(text)),
                    );
                }
                Some((arity, does)) => {
                    let value = (arity == Arity::Required).then(|| self.words.get(next)).flatten();
                    next += usize::from(arity == Arity::Required);
                    // A file, and what to write to it.
                    next += usize::from(text == "-fprintf");
                    self.does(walk, (text, does, value), deed, state);
                }
            }
        }
        deed.prints = match &self.bases {
            Some(bases) if printed => Stream::Names { bases: bases.clone(), exact },
            _ => Stream::Unknown,
        };
    }

    fn does(
        &self,
        walk: &mut Walk<'_>,
        (name, does, value): (&str, Does, Option<&Word>),
        deed: &mut Deed,
        state: &State,
    ) {
        let mut doubts = Vec::new();
        match (does, value) {
            (Does::Reads, Some(value)) => walk.reads(value, Depth::Names, state, &mut doubts),
            (Does::Writes, Some(value)) => walk.writes(value, state, &mut doubts, &format!("`{name}`")),
            (Does::Follows, _) => walk.follows = true,
            (Does::Nothing | Does::Reads | Does::Shell, _) => {
                if value.is_some_and(Word::splits) {
                    let why = format!("what follows `{name}` may be more than one word");
                    doubts.push(Doubt::new(Harm::Unknown, why));
                }
            }
            (Does::Writes | Does::Alters, _) => {
                doubts.push(Doubt::new(Harm::Writes, format!("`{name}` changes what is found")));
            }
            (Does::Runs, _) => doubts.push(Doubt::new(Harm::Runs, format!("`{name}` runs something"))),
            (Does::Sends, _) => doubts.push(Doubt::new(Harm::Sends, format!("`{name}` sends something"))),
        }
        if name == "-delete" {
            self.removes(walk, state);
        }
        deed.used(name, value.cloned(), does, doubts);
    }

    /// Everything that is found is removed; from a vital place on, that may be everything.
    fn removes(&self, walk: &mut Walk<'_>, state: &State) {
        let home = walk.home().map(str::to_owned);
        for base in self.bases.iter().flatten() {
            for place in state.places() {
                let path = crate::shell::state::join(place, base);
                if let Some(why) = ruin::vital(&path, home.as_deref()) {
                    walk.ruin(format!("`find -delete` would hit {path}: {why}"));
                }
            }
        }
    }

    /// `-exec … ;` or `-exec … +`: the command is looked at with what is found.
    fn runs(&self, walk: &mut Walk<'_>, name: &str, from: usize, deed: &mut Deed, state: &State) -> usize {
        // A plus ends it only after what is found.
        let ends = |at: &usize| match self.words[from + at].literal() {
            Some(";") => true,
            Some("+") => *at > 0 && self.words[from + at - 1].literal() == Some("{}"),
            _ => false,
        };
        let Some(length) = (0..self.words.len() - from).find(ends) else {
            deed.doubt(Harm::Unknown, format!("`{name}` does not end"));
            return self.words.len();
        };
        deed.used(name, None, Does::Nothing, Vec::new());
        let mut argv = self.words[from..from + length].to_vec();
        let found = match &self.bases {
            Some(bases) if name.starts_with("-exec") && name != "-execdir" => {
                Word { text: "{}".to_owned(), value: Value::Below { bases: bases.clone(), safe: true } }
            }
            _ => Word { text: "{}".to_owned(), value: Value::Partial { start: "./".to_owned(), splits: false } },
        };
        super::replace(&mut argv, "{}", &found, &mut deed.doubts);
        let removes = argv.first().and_then(Word::literal).is_some_and(|name| matches!(name, "rm" | "rmdir" | "shred"));
        if removes {
            self.removes(walk, state);
        }
        let mut through = self.task.standing.through.clone();
        through.push(format!("find {name}"));
        let standing = Standing { through, pipeline: None, background: self.task.standing.background };
        let mut away = state.clone();
        if name.ends_with("dir") {
            away.lose();
        }
        let call = Call { argv, assignments: Vec::new(), redirects: Vec::new(), standing, stdin: Stream::Unknown };
        walk.consider(call, &mut away);
        from + length + 1
    }
}

//! A shell command as it was read: its simple commands, what they are reached through, and what was found out about them.

use crate::style::{BAD, BOLD, CARE, FAINT, GOOD, NAME, Row};
use anstyle::Style;
use haft_core::preview::inert;
use haft_core::shell::{Command, Flow, Standing, Word};
use haft_runtime::judge::ShellShown;

/// How deep what is reached through something is moved in.
const DEEPEST: usize = 20;

/// What is known of a shell command, a line each: its commands, indented by what they are reached through; what it reads and
/// writes; why it is not known to only read; the rules that are about it.
pub(crate) fn rows(shown: &ShellShown) -> Vec<Row> {
    let judged = &shown.shell.judged;
    let said = |word: (Style, &str), rest: String| vec![(word.0, format!("{:<8}", word.1)), plain(format!(" {rest}"))];
    let above = std::iter::once(None).chain(judged.commands.iter().map(Some));
    let mut rows: Vec<Row> = judged.commands.iter().zip(above).map(|(one, above)| command(one, above)).collect();
    for (what, paths) in [("reads", &shown.reads), ("writes", &shown.writes)] {
        if !paths.is_empty() {
            rows.push(said((Style::new(), what), inert(&paths.join(", "))));
        }
    }
    rows.extend(judged.catastrophe.iter().map(|why| said((BAD, "never:"), inert(why))));
    rows.extend(judged.error.iter().map(|error| said((BAD, "not parsed:"), inert(&error.to_string()))));
    let doubts = judged.doubts.iter().map(|doubt| &doubt.why).chain(&shown.shell.unsettled);
    rows.extend(doubts.map(|why| said((CARE, "doubt"), inert(why))));
    for found in &shown.rules {
        let holds = if found.holds { (GOOD, "holds".to_owned()) } else { (FAINT, "does not hold".to_owned()) };
        let why = found.why.as_ref().map(|why| format!(": {}", inert(why))).unwrap_or_default();
        let mut row = said((Style::new(), "rule"), format!("`{}` ", inert(&found.rule)));
        row.extend([holds, plain(format!(" for `{}`{why}", inert(&found.command)))]);
        rows.push(row);
    }
    rows
}

/// The class of the whole, in words.
pub(crate) fn class(shown: &ShellShown) -> Row {
    vec![plain("shell command, class ".to_owned()), (NAME, shown.shell.judged.class.name().to_owned())]
}

fn plain(text: String) -> (Style, String) {
    (Style::new(), text)
}

/// One command, below the one before it.
fn command(command: &Command, above: Option<&Command>) -> Row {
    let Standing { through, pipeline, background } = &command.standing;
    let indent = "  ".repeat(through.len().min(DEEPEST));
    // What stands after another one in a pipe reads what that prints. What a wrapper runs stands where the wrapper does.
    let wrapped = above
        .is_some_and(|above| above.standing.through.len() + 1 == through.len() && above.standing.pipeline == *pipeline);
    let pipe = if pipeline.is_some_and(|(at, _)| at > 1) && !wrapped { "| " } else { "" };
    let name = inert(command.name.as_deref().unwrap_or("?"));
    let words = command.args.iter().map(|word| inert(word.shown()));
    let redirects = command.redirects.iter().filter_map(|redirect| {
        let mark = match redirect.flow {
            Flow::Reads => "<",
            Flow::Writes => ">",
            Flow::Both => "<>",
            Flow::Joins | Flow::Gives => return None,
        };
        Some(format!("{mark} {}", inert(redirect.target.as_ref().map(Word::shown).unwrap_or_default())))
    });
    let rest: String = words.chain(redirects).map(|word| format!(" {word}")).collect();
    let through = through.last().map(|last| format!(", through {}", inert(last))).unwrap_or_default();
    let background = if *background { ", in the background" } else { "" };
    let notes = format!(" ({}{through}{background})", command.class.name());
    vec![plain(format!("{indent}{pipe}")), (BOLD, name), plain(rest.trim_end().to_owned()), (FAINT, notes)]
}

//! The person at the terminal: shows what a call would really do, and takes the answer.

pub(crate) mod command;
mod form;

use crate::started_by::unless_agent;
use crate::style::{self, BAD, BOLD, CARE, FAINT, NAME, Row, paint, painted};
use anstyle::Style;
use haft_core::Hold;
use haft_core::approval::{Decider, DeciderIdentity};
use haft_core::executed::TrialResult;
use haft_core::grant::{Grant, literal, matches};
use haft_core::preview::inert;
use haft_core::tool::Severity;
use haft_runtime::{Approver, BoxFuture, Form, Question, Said, Written};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// How much of a diff is shown before it is asked for.
const DIFF_LINES: usize = 60;

/// Asks on the controlling terminal, whatever stdin is used for. One conversation at a time: calls that run
/// together must not take each other's answers.
pub(crate) struct Terminal {
    conversation: tokio::sync::Mutex<()>,
    decider: Decider,
    /// The file in which rules are written, as people write it.
    config: String,
}

impl Terminal {
    /// The terminal, for somebody whose rules are in that file.
    pub(crate) fn new(config: &str) -> Self {
        let decider = unless_agent(DeciderIdentity::Terminal);
        Self { conversation: tokio::sync::Mutex::default(), decider, config: config.to_owned() }
    }

    /// Whether somebody seems to be there.
    pub(crate) fn present() -> bool {
        std::io::stderr().is_terminal() && File::options().read(true).write(true).open("/dev/tty").is_ok()
    }
}

impl Approver for Terminal {
    fn decider(&self) -> Decider {
        self.decider.clone()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        let question = question.clone();
        Box::pin(async move {
            let _mine = self.conversation.lock().await;
            // Reading a terminal blocks; the worker thread ends with the answer or with the process.
            let config = self.config.clone();
            let asked = tokio::task::spawn_blocking(move || {
                let said = converse(&question)?;
                if matches!(said, Said::Once | Said::Session) {
                    suggest(&question.rules, &config);
                }
                std::io::Result::Ok(said)
            });
            asked.await.ok().and_then(Result::ok).unwrap_or(Said::Nobody)
        })
    }

    fn elicit<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Written> {
        let form = form.clone();
        Box::pin(async move {
            let _mine = self.conversation.lock().await;
            let asked = tokio::task::spawn_blocking(move || fill_in(&form));
            asked.await.ok().and_then(Result::ok).unwrap_or(Written::Nobody)
        })
    }
}

/// Lets the person at the terminal fill in a form.
pub(crate) fn fill_in(form: &Form) -> std::io::Result<Written> {
    FILLED_IN.store(true, Ordering::Relaxed);
    form::fill_in(&mut BufReader::new(File::open("/dev/tty")?), form)
}

/// Whether a form was filled in since somebody was last asked for a yes.
static FILLED_IN: AtomicBool = AtomicBool::new(false);

/// The terminal, to ask for a yes. What is left over from a form is none: somebody may have pasted more lines than were asked for.
fn tty() -> std::io::Result<File> {
    let tty = File::open("/dev/tty")?;
    if FILLED_IN.swap(false, Ordering::Relaxed) {
        let _ = rustix::termios::tcflush(&tty, rustix::termios::QueueSelector::IFlush);
    }
    Ok(tty)
}

/// Says which rules would have allowed a shell command that a person has just approved.
pub(crate) fn suggest(rules: &[String], config: &str) {
    if let Some(text) = suggestion(rules, config) {
        style::note(&paint(FAINT, text));
    }
}

/// The same as text.
pub(crate) fn suggestion(rules: &[String], config: &str) -> Option<String> {
    let rules: Vec<String> = rules.iter().map(|rule| format!("`- allow: {}`", inert(rule))).collect();
    let text = format!("to allow this from now on: add {} to `rules:` in {config}", rules.join(" and "));
    (!rules.is_empty()).then_some(text)
}

fn converse(question: &Question) -> std::io::Result<Said> {
    let mut keys = BufReader::new(tty()?);
    style::note(&present(question, DIFF_LINES));
    loop {
        let Some(answer) = prompt(&mut keys, &choices(question))? else { return Ok(Said::Nobody) };
        match answer.to_lowercase().as_str() {
            "o" | "once" | "y" | "yes" => return Ok(Said::Once),
            "s" | "session" if question.can_last() => return Ok(Said::Session),
            "r" | "reject" | "n" | "no" => {
                let message = prompt(&mut keys, "what should the model be told? (enter for nothing) ")?;
                return Ok(Said::Reject(message.unwrap_or_default()));
            }
            "a" | "always" if question.can_last() => {
                if let Some(said) = always(&mut keys, question)? {
                    return Ok(said);
                }
            }
            "e" | "edit" => {
                if let Some(said) = edit(&mut keys, question)? {
                    return Ok(said);
                }
            }
            "t" | "try" if question.can_try() => {
                style::note(&paint(FAINT, "trying it on a copy-on-write view …"));
                return Ok(Said::Try);
            }
            "d" | "diff" => style::note(&present(question, usize::MAX)),
            "f" | "folders" if has_folded(question) => {
                let rows = folded_rows(question);
                style::note(&rows.iter().map(|row| painted(row)).collect::<Vec<_>>().join("\n"));
            }
            _ if !question.can_last() => style::note("type o, r, e or d"),
            _ if question.can_try() => style::note("type o, t, s, a, r, e or d"),
            _ => style::note("type o, s, a, r, e or d"),
        }
    }
}

/// What is asked, as text. The diff is cut at `lines`.
fn present(question: &Question, lines: usize) -> String {
    let rows = rows(question, lines);
    let text = std::iter::once(String::new()).chain(rows.iter().map(|row| painted(row))).chain([String::new()]);
    text.collect::<Vec<_>>().join("\n")
}

/// What is asked, line by line, as every terminal and screen shows it. The diff is cut at `lines`.
pub(crate) fn rows(question: &Question, lines: usize) -> Vec<Row> {
    let plain = |text: String| (Style::new(), text);
    let faint = |text: &str| (FAINT, text.to_owned());
    let severity = match question.severity {
        Severity::Low => (FAINT, "low".to_owned()),
        Severity::Medium => (FAINT, "medium".to_owned()),
        Severity::High => (CARE, "high".to_owned()),
        Severity::Critical => (BAD, "critical".to_owned()),
    };
    let head = [(BOLD, "haft:".to_owned()), plain(" ".to_owned()), (NAME, question.preview.clone())];
    let tail = [plain("  (severity ".to_owned()), severity, plain(")".to_owned())];
    let mut rows = vec![
        head.into_iter().chain(tail).collect(),
        vec![faint("asked because"), plain(format!(" {}", inert(&question.why())))],
    ];
    rows.extend(question.asker.as_ref().map(|asker| vec![faint("asked by"), plain(format!(" {}", inert(asker)))]));
    rows.extend(question.class.map(|class| vec![faint("as a command"), plain(format!(" it {}", class.does()))]));
    let known = question.shell.as_ref().map(command::rows).unwrap_or_default();
    rows.extend(known.into_iter().map(|row| std::iter::once(plain("  ".to_owned())).chain(row).collect()));
    rows.extend(question.executed.lines().into_iter().map(|line| vec![plain(format!("  {line}"))]));
    rows.extend(question.hold.as_ref().map(held));
    rows.extend(grant_scope(question));
    rows.extend(sent_rows(question, lines).unwrap_or_default());
    if let Some(tried) = question.tried.as_ref().filter(|tried| !tried.is_empty()) {
        rows.push(vec![faint("it was tried, and printed:")]);
        rows.extend(tried.lines().map(|line| vec![plain(format!("  {}", inert(line)))]));
    }
    rows.extend(question.trial.as_ref().map(|trial| trial_rows(trial, lines)).unwrap_or_default());
    if let Some(problem) = &question.problem {
        rows.push(vec![(CARE, "it would fail:".to_owned()), plain(format!(" {}", inert(problem)))]);
    }
    if let Some(diff) = question.diff.as_ref().filter(|diff| !diff.is_empty()) {
        let total = diff.lines().count();
        rows.push(Row::new());
        rows.extend(diff.lines().take(lines).map(|line| vec![style::diff_line(line)]));
        if total > lines {
            rows.push(vec![(FAINT, format!("… {} more lines: d shows all", total - lines))]);
        }
    }
    rows
}

/// What came of trying a call when its question was stored.
pub(crate) fn trial_rows(trial: &TrialResult, lines: usize) -> Vec<Row> {
    let plain = |text: &str| vec![(Style::new(), format!("  {}", inert(text)))];
    let mut rows = vec![vec![(
        FAINT,
        "trial run from when this question was stored (approving runs the command again):".to_owned(),
    )]];
    rows.extend(trial.problem.iter().map(|problem| vec![(CARE, format!("  {}", inert(problem)))]));
    rows.extend(
        trial.gap.iter().map(|gap| vec![(CARE, format!("  what it changes cannot be undone: {}", inert(gap)))]),
    );
    rows.extend(trial.printed.lines().map(plain));
    let total = trial.diff.lines().count();
    rows.extend(trial.diff.lines().take(lines).map(|line| vec![style::diff_line(line)]));
    if total > lines {
        rows.push(vec![(FAINT, format!("… {} more lines", total - lines))]);
    }
    if total == 0 && trial.printed.is_empty() && trial.problem.is_none() {
        rows.push(plain("it printed nothing and changed no files"));
    }
    rows
}

/// Whether directories are folded in what a question shows.
pub(crate) fn has_folded(question: &Question) -> bool {
    question.ranked.as_ref().is_some_and(|ranked| !ranked.folded.is_empty())
}

/// The files of the folded directories.
pub(crate) fn folded_rows(question: &Question) -> Vec<Row> {
    let folded = question.ranked.iter().flat_map(|ranked| &ranked.folded);
    let rows = folded.flat_map(|tree| {
        let head = vec![(FAINT, format!("in {}/:", inert(&tree.path)))];
        std::iter::once(head).chain(tree.opened().into_iter().map(|line| vec![style::diff_line(&line)]))
    });
    rows.collect()
}

/// What of a question's arguments is sent or run as it is, and what is said of it.
fn carried(question: &Question) -> Option<(&'static str, &'static str)> {
    match question.tool.as_str() {
        "web.request" => Some(("body", "it sends:")),
        "browser.evaluate" => Some(("expression", "it runs:")),
        _ => None,
    }
}

/// What a request would carry, or a page would run, with what looks like a key masked: whoever says yes to it has seen
/// that.
pub(crate) fn body(question: &Question) -> Option<String> {
    let body = question.args.get(carried(question)?.0)?;
    let whole = body.as_str().map_or_else(|| format!("{body:#}"), str::to_owned);
    Some(haft_core::secret::mask(&whole).into_owned())
}

/// The same as lines for a terminal, long ones broken, so that nothing of it is out of sight.
pub(crate) fn sent(question: &Question, lines: usize) -> Option<String> {
    Some(sent_rows(question, lines)?.iter().map(|row| painted(row)).collect::<Vec<_>>().join("\n"))
}

fn sent_rows(question: &Question, lines: usize) -> Option<Vec<Row>> {
    const WIDTH: usize = 200;
    let whole: Vec<char> = body(question)?.chars().collect();
    let pieces = whole.split(|c| *c == '\n').flat_map(|line| line.chunks(WIDTH));
    let piece = |piece: &[char]| vec![(Style::new(), format!("  {}", inert(&piece.iter().collect::<String>())))];
    let more = pieces.clone().count().saturating_sub(lines);
    let rest = (more > 0).then(|| vec![(FAINT, format!("… {more} more lines"))]);
    let head = vec![(FAINT, carried(question)?.1.to_owned())];
    Some(std::iter::once(head).chain(pieces.take(lines).map(piece)).chain(rest).collect())
}

/// How the kernel holds the program, in one line.
fn held(hold: &Hold) -> Row {
    let network = if hold.network { "may use the network" } else { "no network" };
    let gap = hold.gap.as_ref().map_or_else(
        || (Style::new(), "what it changes can be shown first and undone".to_owned()),
        |gap| (CARE, format!("what it changes cannot be undone: {gap}")),
    );
    let level = (if hold.enforced { Style::new() } else { BAD }, hold.level.clone());
    let plain = |text: String| (Style::new(), text);
    vec![(FAINT, "confinement".to_owned()), plain(" ".to_owned()), level, plain(format!("; {network}; ")), gap]
}

/// What a yes for more than once covers, where that is about a program.
fn grant_scope(question: &Question) -> Option<Row> {
    let covers = match &question.hold {
        Some(hold) if hold.enforced => "haft's sandbox only, not an agent's own shell",
        None if question.shell.is_none() => return None,
        _ => "it without a sandbox too, also in an agent's own shell",
    };
    question
        .can_last()
        .then(|| vec![(FAINT, "session and always cover".to_owned()), (Style::new(), format!(" {covers}"))])
}

/// The answers that there are to a question: the key, and the rest of the word.
pub(crate) fn keys(question: &Question) -> Vec<(&'static str, &'static str)> {
    let once = if question.shown.is_some() && question.tried.is_some() { "nce: keep this" } else { "nce" };
    let attempt = question.can_try().then_some(("t", "ry"));
    let lasting = [("s", "ession"), ("a", "lways")].into_iter().filter(|_| question.can_last());
    let rest = lasting.chain([("r", "eject"), ("e", "dit"), ("d", "iff")]);
    let folders = has_folded(question).then_some(("f", "olders"));
    [("o", once)].into_iter().chain(attempt).chain(rest).chain(folders).collect()
}

fn choices(question: &Question) -> String {
    let pattern = format!(" {}", haft_core::preview::cut(&inert(&question.subject), 60));
    let keys = keys(question);
    let list: Vec<String> = keys.iter().map(|(key, rest)| format!("[{}]{rest}", paint(BOLD, key))).collect();
    format!("{}{} > ", list.join(" "), paint(FAINT, pattern))
}

/// Asks one line. `None` means the terminal is gone.
fn prompt(keys: &mut impl BufRead, text: &str) -> std::io::Result<Option<String>> {
    // The lock must not outlive the writing: others have something to say while somebody thinks.
    {
        let mut stderr = anstream::stderr().lock();
        write!(stderr, "{text}")?;
        stderr.flush()?;
    }
    let mut line = String::new();
    let read = keys.read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

/// What is offered to be remembered, if somebody says so.
pub(crate) fn offered(question: &Question) -> String {
    literal(&question.subject)
}

/// An answer for a pattern, if that is one that covers the call; otherwise why not.
pub(crate) fn for_pattern(question: &Question, pattern: String) -> Result<Said, String> {
    Grant::check_pattern(&question.tool, &pattern).map_err(|error| error.to_string())?;
    if !matches(&pattern, &question.subject) {
        return Err("that pattern does not cover this call".to_owned());
    }
    Ok(Said::Always(pattern))
}

/// An answer with other arguments.
pub(crate) fn with_arguments(typed: &str) -> Result<Said, String> {
    serde_json::from_str(typed).map(Said::Edit).map_err(|error| format!("that is not JSON: {error}"))
}

/// The answer, or why it is none, said as a warning.
fn or_warn(said: Result<Said, String>) -> Option<Said> {
    said.inspect_err(|why| style::warn(why)).ok()
}

fn always(keys: &mut impl BufRead, question: &Question) -> std::io::Result<Option<Said>> {
    let offered = offered(question);
    let text = format!("for which pattern? (enter for {}) ", inert(&offered));
    let Some(typed) = prompt(keys, &text)? else { return Ok(Some(Said::Nobody)) };
    let pattern = if typed.is_empty() { offered } else { typed };
    Ok(or_warn(for_pattern(question, pattern)))
}

fn edit(keys: &mut impl BufRead, question: &Question) -> std::io::Result<Option<Said>> {
    style::note(&inert(&serde_json::to_string(&question.args).unwrap_or_default()));
    let Some(typed) = prompt(keys, "new arguments as JSON (enter to leave them) ")? else {
        return Ok(Some(Said::Nobody));
    };
    if typed.is_empty() {
        return Ok(None);
    }
    Ok(or_warn(with_arguments(&typed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::approval::{Decision, Verdict};
    use haft_core::{CallId, ToolName};

    #[test]
    fn a_question_shows_the_effect_and_nothing_that_acts() {
        let question = Question {
            call_id: CallId::new(0, 0),
            tool: ToolName::new("file.edit").unwrap(),
            preview: "file.edit: a.txt".to_owned(),
            verdict: Verdict::new(Decision::Ask, "default", "it changes files, and no rule allows that unasked"),
            severity: Severity::Medium,
            args: serde_json::json!({"path": "a.txt"}),
            diff: Some("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+t\x1b[2Jwo\n".to_owned()),
            ranked: None,
            problem: None,
            subject: "a.txt".to_owned(),
            places: vec!["a.txt".to_owned()],
            hold: None,
            shell: None,
            asker: Some("main/helper, in /copy".to_owned()),
            sources: Vec::new(),
            class: Some(haft_core::shell::Class::Silent),
            rules: Vec::new(),
            tried: None,
            executed: haft_core::executed::ExecutedFiles::default(),
            trial: None,
            shown: None,
            basis: haft_core::record::Digest::ZERO,
        };
        let plain = anstream::adapter::strip_str(&present(&question, 4)).to_string();
        insta::assert_snapshot!(plain, @r"

        haft: file.edit: a.txt  (severity medium)
        asked because it changes files, and no rule allows that unasked
        asked by main/helper, in /copy
        as a command it changes files

        --- a/a.txt
        +++ b/a.txt
        @@ -1 +1 @@
        -one
        … 1 more lines: d shows all
        ");
        let whole = present(&question, 99);
        assert!(whole.contains("t\\u{1b}[2Jwo"), "{whole:?}");
    }
}

//! Hooks: programs and addresses of the user's that are asked before a call is decided, and told after it has run.
//!
//! ```text
//! Checked ── before hooks, in order ──► Checked (perhaps with other arguments) + what they said
//!                                          │ facts, the approval chain (voice "hook"), the run
//! Outcome ── after hooks, in order ──► Outcome (perhaps with another output, a warning, or failed)
//! ```
//!
//! A hook runs as the user's own program, not confined: the user's own configuration names it. So a program that lies
//! where agents may write is not run. What a hook says can only tighten, and one that cannot be asked counts as an Ask.

mod address;
mod program;

use crate::halt::Halt;
use crate::hygiene::{self, Looked};
use crate::journal::Opened;
use crate::pipeline::{Haft, Stop};
use crate::registry::undecided;
use crate::tools::api;
use haft_core::approval::{Decision, Verdict};
use haft_core::hook::{After, Before, Given, HookSaid, read};
use haft_core::outcome::Label;
use haft_core::pattern::ToolPattern;
use haft_core::preview::{cut, inert};
use haft_core::record::{Digest, Kind};
use haft_core::web::Target;
use haft_core::{CallError, Checked, Dialect, Facts, Outcome, ResultContent};
use haft_store::Entry;
use std::sync::OnceLock;
use std::time::Duration;

/// How long a hook may take where nobody says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How often all hooks are asked about one call: each rewrite begins again, because others have seen something else.
const ROUNDS: usize = 4;
/// How much of what a hook says is passed on.
const REASON_MAX: usize = 500;
/// How much a hook may answer.
const ANSWER_MAX: usize = 4 << 20;

/// The hooks there are, in the order of the configuration.
#[derive(Debug, Clone, Default)]
pub struct HookSettings {
    /// Asked before a call is decided.
    pub before: Vec<Hook>,
    /// Told after it has run.
    pub after: Vec<Hook>,
}

/// One hook.
#[derive(Debug, Clone)]
pub struct Hook {
    /// What it is called where it is spoken of.
    pub name: String,
    /// The tools it is about; none means all.
    pub tools: Vec<ToolPattern>,
    /// Who is asked.
    pub asks: Asks,
    /// How long it may take.
    pub timeout: Duration,
}

/// Who is asked.
#[derive(Debug, Clone)]
pub enum Asks {
    /// A program, with its arguments: JSON on its standard input, JSON on its standard output.
    Program(Vec<String>),
    /// An address, by POST.
    Address(Target, OnceLock<crate::http::Client>),
}

/// For what hooks are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The call is to run: what they change is recorded.
    Run,
    /// Somebody looks at what would happen.
    Look,
}

impl Hook {
    fn is_about(&self, checked: &Checked) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|pattern| pattern.matches(&checked.spec().name))
    }

    /// Asks, and waits for the answer.
    async fn ask(&self, of: &Haft, given: Vec<u8>, halt: &Halt) -> Result<Vec<u8>, String> {
        let asked = async {
            match &self.asks {
                Asks::Program(argv) => program::ask(argv, of.workspace.project(), &of.terms, given).await,
                Asks::Address(target, client) => address::ask(target, client, given).await,
            }
        };
        tokio::select! {
            answer = asked => answer,
            () = tokio::time::sleep(self.timeout) => Err(format!("it took longer than {} ms", self.timeout.as_millis())),
            error = halt.stopped() => Err(error.message),
        }
    }
}

fn told(given: &Given<'_>) -> Vec<u8> {
    serde_json::to_vec(given).unwrap_or_default()
}

fn ended(checked: &Checked, error: CallError) -> Stop {
    Stop { tool: checked.spec().name.to_string(), verdict: undecided("it was ended while a hook was asked"), error }
}

fn short(text: &str) -> String {
    cut(&inert(text.trim()), REASON_MAX)
}

/// What a hook was to look at and could not is not shown: it may be what the hook is there to take out.
fn withhold(outcome: &mut Outcome, hook: &Hook, why: &str) {
    outcome.output = format!("[withheld: the hook `{}` that looks at it could not be asked]", hook.name);
    (outcome.data, outcome.full_output, outcome.truncated) = (None, None, false);
    outcome.content = ResultContent::default();
    outcome.warnings.push(format!("the hook `{}` could not be asked: {}", hook.name, short(why)));
}

impl Haft {
    /// What is known of a call, and the call as hooks would have it.
    pub(crate) async fn known(
        &self,
        checked: Checked,
        halt: &Halt,
        purpose: Purpose,
    ) -> Result<(Checked, Facts), Stop> {
        let (checked, said) = self.heed(checked, halt, purpose).await?;
        let mut facts = self.facts(&checked, halt).await?;
        facts.hooked = said;
        Ok((checked, facts))
    }

    /// Asks every hook that is about the call. After a rewrite all are asked again, because they have seen other
    /// arguments; what they said before still counts.
    async fn heed(
        &self,
        mut checked: Checked,
        halt: &Halt,
        purpose: Purpose,
    ) -> Result<(Checked, Vec<HookSaid>), Stop> {
        let mut all: Vec<HookSaid> = Vec::new();
        for _ in 0..ROUNDS {
            let Some(rewritten) = self.round(&checked, halt, purpose, &mut all).await? else {
                return Ok((checked, all));
            };
            checked = *rewritten;
        }
        let hook = self.settings.hooks.before.iter().find(|hook| hook.is_about(&checked));
        let name = hook.map(|hook| hook.name.clone()).unwrap_or_default();
        let reason = format!("hooks rewrote the arguments {ROUNDS} times, and would again");
        all.push(HookSaid { hook: name, decision: Decision::Ask, reason });
        Ok((checked, all))
    }

    /// Asks them once: the call with other arguments, if one of them wants those.
    async fn round(
        &self,
        checked: &Checked,
        halt: &Halt,
        purpose: Purpose,
        all: &mut Vec<HookSaid>,
    ) -> Result<Option<Box<Checked>>, Stop> {
        for hook in self.settings.hooks.before.iter().filter(|hook| hook.is_about(checked)) {
            let answer = self.before(hook, checked, halt).await;
            halt.check().map_err(|error| ended(checked, error))?;
            let why = answer.as_ref().ok().and_then(|answer| answer.why().map(short));
            let (strict, args) = match answer {
                Ok(answer) => (answer.strict(), answer.args),
                Err(why) => {
                    self.note(purpose, checked, hook, "before_call", "error", |entry| entry.with("why", short(&why)));
                    (Some((Decision::Ask, format!("it could not be asked: {why}"))), None)
                }
            };
            if let Some((decision, reason)) = strict {
                let said = HookSaid { hook: hook.name.clone(), decision, reason: short(&reason) };
                if !all.contains(&said) {
                    all.push(said);
                }
                if decision == Decision::Deny {
                    return Ok(None);
                }
            }
            let Some(args) = args.map(|args| api::with_keys(args, checked)) else { continue };
            if let Some(rewritten) = self.rewrite(hook, checked, args, halt, purpose)? {
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                let word = format!("the hook `{}` rewrote the arguments{why}", hook.name);
                return Ok(Some(Box::new(rewritten.with_word(word))));
            }
        }
        Ok(None)
    }

    async fn before(&self, hook: &Hook, checked: &Checked, halt: &Halt) -> Result<Before, String> {
        let (args, cwd) = (api::shown_args(checked), crate::workspace::display(self.workspace.root().as_os_str()));
        let given = told(&Given::before(checked.call(), checked.spec().name.as_str(), &args, &cwd));
        read(&hook.ask(self, given, halt).await?)
    }

    /// Puts a hook's arguments in place and validates them. None if they are the same.
    fn rewrite(
        &self,
        hook: &Hook,
        checked: &Checked,
        args: serde_json::Value,
        halt: &Halt,
        purpose: Purpose,
    ) -> Result<Option<Box<Checked>>, Stop> {
        let mut call = checked.call().clone();
        call.spoken = checked.spec().name.to_string();
        call.dialect = Dialect::Haft;
        call.args = args;
        let rewritten = self.check(call, halt).map_err(|mut stop| {
            let message = format!("the hook `{}` rewrote the arguments: {}", hook.name, stop.error.message);
            stop.verdict = Verdict::new(Decision::Deny, "hook", "what a hook made of it is not well formed");
            stop.error.message = message;
            stop
        })?;
        if rewritten.args() == checked.args() {
            return Ok(None);
        }
        let digest = |checked: &Checked| Digest::of(checked.args().to_string().as_bytes()).to_string();
        self.note(purpose, checked, hook, "before_call", "rewrote", |entry| {
            entry.with("before", digest(checked)).with("after", digest(&rewritten))
        });
        Ok(Some(Box::new(rewritten)))
    }

    fn note(
        &self,
        purpose: Purpose,
        checked: &Checked,
        hook: &Hook,
        event: &str,
        said: &str,
        with: impl FnOnce(Entry) -> Entry,
    ) {
        if purpose == Purpose::Run {
            let entry = Entry::new(Kind::Hook).call(&checked.call().id).with("hook", hook.name.as_str());
            self.store.record_later(with(entry.with("event", event).with("said", said)));
        }
    }

    /// Tells every hook that is about a call what came of it, and does what they say.
    pub(crate) async fn heed_after(&self, opened: &Opened, mut outcome: Outcome, halt: &Halt) -> Outcome {
        let checked = opened.admitted().checked();
        outcome.warnings.extend(checked.word().map(str::to_owned));
        for hook in self.settings.hooks.after.iter().filter(|hook| hook.is_about(checked)) {
            match self.after(hook, checked, &outcome, halt).await {
                Ok(answer) => self.obey(hook, checked, &mut outcome, answer).await,
                Err(why) => {
                    self.note(Purpose::Run, checked, hook, "after_call", "error", |entry| {
                        entry.with("why", short(&why))
                    });
                    withhold(&mut outcome, hook, &why);
                }
            }
        }
        outcome
    }

    async fn after(&self, hook: &Hook, checked: &Checked, outcome: &Outcome, halt: &Halt) -> Result<After, String> {
        let (args, cwd) = (api::shown_args(checked), crate::workspace::display(self.workspace.root().as_os_str()));
        let given = Given::before(checked.call(), checked.spec().name.as_str(), &args, &cwd).after(outcome);
        read(&hook.ask(self, told(&given), halt).await?)
    }

    async fn obey(&self, hook: &Hook, checked: &Checked, outcome: &mut Outcome, answer: After) {
        let After { output, data, warning, fail } = answer;
        if let Some(text) = output.filter(|text| *text != outcome.output) {
            let (before, after) = (Digest::of(outcome.output.as_bytes()), Digest::of(text.as_bytes()));
            self.note(Purpose::Run, checked, hook, "after_call", "replaced the output", |entry| {
                entry.with("before", before.to_string()).with("after", after.to_string())
            });
            replace(outcome, &text).await;
            // What the tool said besides would still say what was taken out.
            (outcome.data, outcome.full_output) = (data, None);
            outcome.content = ResultContent::default();
        }
        outcome.warnings.extend(warning.map(|text| format!("the hook `{}` says: {}", hook.name, short(&text))));
        if let Some(why) = fail.filter(|_| outcome.success) {
            self.note(Purpose::Run, checked, hook, "after_call", "failed it", |entry| entry.with("why", short(&why)));
            outcome.success = false;
            let message = format!("the hook `{}` counts this as failed: {}", hook.name, short(&why));
            outcome.error = Some(CallError::failed(message).hint("what the call did has happened"));
        }
    }
}

/// Puts another text in place of an output. What nobody vouches for is still marked off.
async fn replace(outcome: &mut Outcome, text: &str) {
    outcome.output = hygiene::unwrapped(text).into_owned();
    if outcome.labels.contains(&Label::Untrusted) {
        let before = outcome.warnings.clone();
        let (looked, _) = Looked::at_all(outcome.output.clone()).await;
        hygiene::tend(outcome, looked).await;
        let mut new = outcome.warnings.split_off(before.len().min(outcome.warnings.len()));
        new.retain(|warning| !before.contains(warning));
        outcome.warnings.extend(new);
    }
}

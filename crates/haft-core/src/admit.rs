//! The stages of a call as types: `Call` → `Checked` → `Admitted`.
//!
//! Each can be made in exactly one way, so a program that skips validation or policy does not compile:
//! [`Checked`] comes only from [`Checked::new`], and [`Admitted`] only from an Allow or an answered Ask.
//!
//! ```compile_fail,E0451
//! // The fields are private: nobody can write one down.
//! fn forge(checked: haft_core::Checked, facts: haft_core::Facts, verdict: haft_core::approval::Verdict) {
//!     let admitted = haft_core::Admitted { checked, facts, verdict, shown: None, asked: false, blind: false };
//! }
//! ```
//!
//! The same with nothing forged does compile, so the example above fails for the reason it gives:
//!
//! ```
//! fn honest(checked: haft_core::Checked, facts: haft_core::Facts) -> (haft_core::Checked, haft_core::Facts) {
//!     (checked, facts)
//! }
//! ```

use crate::approval::{Cast, Chain, Decider, DeciderIdentity, Decision, DecisionScope, Question, Verdict, settle};
use crate::call::Call;
use crate::dialect::Translated;
use crate::error::{CallError, ErrorKind};
use crate::executed::{ChangedFile, ExecutedFiles, described};
use crate::grant::{Grant, subject};
use crate::hook::HookSaid;
use crate::observed::Observation;
use crate::outcome::Source;
use crate::place::Place;
use crate::policy::{Autonomy, Policy};
use crate::preview;
use crate::record::Digest;
use crate::schema::Schema;
use crate::shape::Limits;
use crate::shell::{Class, Judged};
use crate::tool::{Effect, ToolSpec};
use crate::web::Errand;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A call whose tool is known and whose canonical arguments are valid.
#[derive(Debug, Clone)]
pub struct Checked {
    call: Call,
    spec: Arc<ToolSpec>,
    args: Value,
    note: Option<String>,
    /// What whoever called is told of it afterwards.
    word: Option<String>,
}

impl Checked {
    /// Validates canonical arguments. Defaults are filled first; every violation is reported.
    pub fn new(call: Call, spec: Arc<ToolSpec>, schema: &Schema, meant: Translated) -> Result<Self, CallError> {
        let Translated { mut args, note } = meant;
        schema.prepare(&mut args);
        schema.check(&spec.name, &args)?;
        Ok(Self { call, spec, args, note, word: None })
    }

    /// The same with a word about it for whoever called.
    #[must_use]
    pub fn with_word(self, word: String) -> Self {
        Self { word: Some(word), ..self }
    }

    /// A word about it for whoever called.
    pub fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }

    /// The call as it came.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The tool it is for.
    pub fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    /// The arguments: canonical names, defaults filled.
    pub fn args(&self) -> &Value {
        &self.args
    }

    /// Whether this call only looks: because its tool does, or because of what it asks for.
    pub fn only_reads(&self) -> bool {
        let asks = |(param, values): (&str, &[&str])| {
            self.args.get(param).and_then(Value::as_str).is_some_and(|given| values.contains(&given))
        };
        self.spec.read_only() || self.spec.reach.only_reads_when.is_some_and(asks)
    }

    /// How its output is cut: as the caller's dialect has it, as fits the command that it runs, or as the tool
    /// declares.
    pub fn limits(&self, facts: &Facts) -> Limits {
        let class = facts.shell.as_ref().map(|shell| shell.judged.class);
        let fitting =
            || class.and_then(Class::keep).map_or(self.spec.limits, |keep| Limits { keep, ..self.spec.limits });
        self.call.dialect.limits(&self.spec).unwrap_or_else(fitting)
    }

    /// One line about the call, at most `columns` wide.
    pub fn preview(&self, columns: usize) -> String {
        self.preview_with(&self.args, columns)
    }

    /// The same with arguments that say more, or less, than those of the call.
    pub fn preview_with(&self, args: &Value, columns: usize) -> String {
        let bodies = &self.spec.reach.bodies;
        preview::line(&self.call.spoken, (self.spec.name.as_str(), bodies), args, self.note.as_deref(), columns)
    }
}

/// What the runtime found out about the world before the decision, so that deciding needs no I/O.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The places that the call names, resolved.
    pub places: Vec<Place>,
    /// The grants on file for this tool.
    pub grants: Vec<Grant>,
    /// How the kernel will hold the program that this call runs, if it runs one.
    pub hold: Option<Hold>,
    /// What is known of the shell command that this call runs, if it runs one.
    pub shell: Option<Shell>,
    /// The files that decide what the command does, and their digests.
    pub executed: ExecutedFiles,
    /// Why the tool is not the one that was accepted: its declaration has changed since.
    pub altered: Option<String>,
    /// Why the tool may not run at all: nobody has accepted it.
    pub barred: Option<String>,
    /// What the call would ask of the web, if it goes there.
    pub web: Option<Errand>,
    /// What the conversation has heard that somebody else may have written, or that must not leave.
    pub heard: Vec<Source>,
    /// What the user's hooks said about it.
    pub hooked: Vec<HookSaid>,
    /// For an observed call: a coding agent runs its own tool, which haft does not sandbox.
    pub observed: Option<Observation>,
    /// Milliseconds of the Unix epoch.
    pub now_ms: i64,
}

/// What is known of a shell command before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shell {
    /// What follows from its text.
    #[serde(flatten)]
    pub judged: Judged,
    /// Why what it finds on this machine may differ from what its text says: a program of the project's own
    /// by a system program's name, a repository whose configuration runs something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsettled: Vec<String>,
}

impl Shell {
    /// Whether it provably only reads, wherever that is.
    pub fn only_reads(&self) -> bool {
        self.judged.only_reads() && self.unsettled.is_empty()
    }

    /// Whether what it runs may depend on the directory that it runs in: a program or a script of a project's own, a build
    /// tool, a repository's configuration. What only reads or changes files by a program of the system's does not.
    pub fn runs_by_directory(&self) -> bool {
        let depends = |command: &crate::shell::Command| {
            let program = command.name.as_deref();
            let elsewhere = program.is_none_or(|name| name.contains('/') && !name.starts_with('/'));
            let known = command.nature.is_some_and(|nature| nature != crate::shell::Class::General);
            elsewhere || !known || command.doubts.iter().any(|doubt| doubt.harm == crate::shell::Harm::Runs)
        };
        let judged = &self.judged;
        judged.error.is_some() || !judged.repositories.is_empty() || judged.commands.iter().any(depends)
    }

    /// Why it is not known to only read.
    pub fn doubt(&self) -> Option<&str> {
        let doubts = self.judged.doubts.iter().map(|doubt| doubt.why.as_str());
        doubts.chain(self.unsettled.iter().map(String::as_str)).next()
    }
}

/// How the kernel will hold a program: known, decided upon and recorded before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hold {
    /// The level in force.
    pub level: String,
    /// Whether every permission is enforced.
    pub enforced: bool,
    /// Each permission, and by what it is enforced.
    pub permissions: BTreeMap<&'static str, String>,
    /// Whether it may reach beyond this machine.
    pub network: bool,
    /// Whether it may write anything that stays.
    pub writes: bool,
    /// Why what it does to files could not be taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
    /// Which program it is and what it has besides the project, if it is somebody else's agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
}

impl Hold {
    /// Whether the kernel lets it do nothing but look.
    pub fn only_looks(&self) -> bool {
        self.enforced && !self.network && !self.writes
    }

    /// Whether nothing can happen that could not be taken back.
    pub fn harmless(&self) -> bool {
        self.enforced && !self.network && self.gap.is_none()
    }
}

impl Facts {
    /// Whether the call can do nothing but what was decided about: its tool only returns changes for the
    /// runtime to make, or the kernel holds the program that it runs.
    pub fn confined(&self, spec: &ToolSpec) -> bool {
        match spec.effects.effect {
            Effect::Reads => !self.bypasses_guards(spec),
            // The agent makes the change itself, and may make another one.
            Effect::Changes => self.observed.is_none(),
            Effect::Runs => self.hold.as_ref().is_some_and(|hold| hold.enforced),
            Effect::Acts => spec.reach.own_tasks,
        }
    }

    /// Whether an agent does by a tool of its own what haft's tool of that name does only under guard: it runs a command
    /// outside the sandbox, or opens an address that haft's client has not checked.
    pub fn bypasses_guards(&self, spec: &ToolSpec) -> bool {
        let stands_for_own = self.observed.as_ref().is_some_and(|observed| observed.stands_for_own);
        stands_for_own && (spec.effects.effect == Effect::Runs || spec.effects.open_world)
    }

    /// Whether the call only looks: because its tool does, because of what it asks for, or because the command
    /// that it runs provably does.
    pub fn only_reads(&self, checked: &Checked) -> bool {
        let placed = self.observed.as_ref().is_none_or(|observed| observed.unknown_directory.is_none());
        checked.only_reads()
            || (placed && self.shell.as_ref().is_some_and(Shell::only_reads))
            || self.only_looks()
            || self.web.as_ref().is_some_and(|errand| !errand.writes)
    }

    /// Whether the kernel lets the program that the call runs do nothing but look.
    pub fn only_looks(&self) -> bool {
        self.hold.as_ref().is_some_and(Hold::only_looks)
    }

    /// Whether the call can carry something away from this machine.
    pub fn reaches_out(&self, spec: &ToolSpec) -> bool {
        let reads = self.observed.as_ref().is_some_and(|observed| observed.unknown_directory.is_none())
            && self.shell.as_ref().is_some_and(Shell::only_reads);
        (spec.effects.open_world || spec.reach.network || self.hold.as_ref().is_some_and(|hold| hold.network)) && !reads
    }

    /// Whether it is an agent's own command of which the directory is not known, and what it runs may depend on that.
    pub fn runs_by_unknown_directory(&self) -> bool {
        let unknown_directory = self.observed.as_ref().is_some_and(|observed| observed.unknown_directory.is_some());
        unknown_directory && self.shell.as_ref().is_none_or(Shell::runs_by_directory)
    }

    /// The grant that covers the call.
    pub fn grant_for(&self, checked: &Checked) -> Option<&Grant> {
        if self.runs_by_unknown_directory() {
            return None;
        }
        let subject = subject(checked, self);
        let fits = |grant: &&Grant| grant.covers(checked, &subject, self.now_ms) && grant.fits(checked, self);
        self.grants.iter().find(fits)
    }
}

/// A call that may run. Nothing else can be executed.
#[derive(Debug, Clone)]
pub struct Admitted {
    checked: Checked,
    facts: Facts,
    verdict: Verdict,
    shown: Option<Digest>,
    asked: bool,
    blind: bool,
}

impl Admitted {
    /// The validated call, to decide about it anew.
    pub fn into_checked(self) -> Checked {
        self.checked
    }

    /// The validated call.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// The facts it was decided on. Tools use these places, not the arguments' text.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Who let it through, and why.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Whether a person was asked and said yes.
    pub fn asked(&self) -> bool {
        self.asked
    }

    /// Whether somebody said yes and knows that what it changes may not be undone: they saw the change, or let everything run
    /// without looking.
    pub fn accepts_gaps(&self) -> bool {
        self.asked && (self.shown.is_some() || self.blind)
    }

    /// Whether the yes to it is for the files that it runs as they were: a person's answer, or a grant that keeps digests.
    pub fn is_for_bytes(&self) -> bool {
        let granted = || self.facts.grant_for(&self.checked).is_some_and(|grant| grant.executed.is_some());
        self.asked || granted()
    }

    /// Whether it was let through only because the command that it runs provably only reads.
    pub fn looks(&self) -> bool {
        self.verdict.by == crate::approval::ShellReading::NAME
    }

    /// The digest of the changes that a person saw when they said yes. Nothing else may be made.
    pub fn shown(&self) -> Option<Digest> {
        self.shown
    }
}

/// A call that waits for a person.
#[derive(Debug, Clone)]
pub struct Pending {
    checked: Checked,
    facts: Facts,
    verdict: Verdict,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this once (or: as part of something remembered). Who said it.
    Yes(Decider),
    /// No, with a message for the model. Who said it.
    No(Decider, String),
}

impl Answer {
    /// Who gave it.
    pub const fn decider(&self) -> &Decider {
        let (Self::Yes(decider) | Self::No(decider, _)) = self;
        decider
    }
}

impl Pending {
    /// The validated call.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// The facts it is decided on.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Why it is asked.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Turns the answer into an admission or a refusal. `shown` is the digest of the changes that were
    /// shown with the question. An answer of an identity without the right to decide admits nothing.
    pub fn answer(self, answer: Answer, shown: Option<Digest>) -> Result<Admitted, Box<Refused>> {
        if let Err(refused) = answer.decider().check(self.checked.call().id.as_str(), DecisionScope::Once) {
            let verdict = Verdict::new(Decision::Deny, "decider", refused.to_string());
            return Err(Box::new(Refused { checked: self.checked, verdict, error: refused.into_error() }));
        }
        match answer {
            Answer::Yes(by) => {
                let reason = format!("approved; asked because {}", self.verdict.reason);
                let verdict = Verdict::new(Decision::Allow, by.to_string(), reason);
                let blind = *by.identity() == DeciderIdentity::YesFlag;
                Ok(Admitted { checked: self.checked, facts: self.facts, verdict, shown, asked: true, blind })
            }
            Answer::No(by, message) => {
                let said =
                    if message.is_empty() { "This tool has been rejected by the user.".to_owned() } else { message };
                let verdict = Verdict::new(Decision::Deny, by.to_string(), "rejected by a person");
                Err(Box::new(Refused {
                    checked: self.checked,
                    verdict,
                    error: CallError::new(ErrorKind::Rejected, said),
                }))
            }
        }
    }

    /// Decides again, now that these grants are known.
    pub fn with_grants(self, grants: Vec<Grant>, policy: &Policy, chain: &Chain) -> Ruling {
        let facts = Facts { grants, ..self.facts };
        decide(self.checked, facts, policy, chain)
    }

    /// The same with word of the files that are not what an earlier yes was for.
    #[must_use]
    pub fn after_changes(mut self, changed: &[ChangedFile]) -> Self {
        if !changed.is_empty() {
            self.verdict.reason =
                format!("{}; changed since it was approved: {}", self.verdict.reason, described(changed));
        }
        self
    }

    /// Gives the call up: nobody could be asked now.
    pub fn defer(self, error: CallError) -> Refused {
        Refused { checked: self.checked, verdict: self.verdict, error }
    }

    /// Takes the call apart so that changed arguments can be checked and decided anew.
    pub fn into_call(self) -> Call {
        self.checked.call
    }
}

/// A call that does not run.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The validated call.
    pub checked: Checked,
    /// Who stopped it, and why.
    pub verdict: Verdict,
    /// What the caller is told.
    pub error: CallError,
}

/// What was decided about a checked call.
#[derive(Debug, Clone)]
pub enum Ruling {
    /// It runs.
    Admitted(Admitted),
    /// A person decides.
    Ask(Pending),
    /// It does not run.
    Refused(Refused),
}

/// Every vote and what follows from them, without taking the call along. Used to explain.
pub fn judge(checked: &Checked, facts: &Facts, policy: &Policy, chain: &Chain) -> (Vec<Cast>, Verdict) {
    if let Err(gone) = policy.admits(&checked.spec, &checked.call.caller) {
        let reason = format!("`{}` is not available here: {}", checked.spec.name, gone.reason);
        return (Vec::new(), Verdict::new(Decision::Deny, gone.by, reason));
    }
    let votes = chain.poll(Question { checked, facts });
    let looks = facts.only_reads(checked);
    let verdict = adjust(settle(&votes, &silence(&checked.spec, facts)), &votes, policy.autonomy, looks);
    // What a call says of itself comes on top: each only makes it stricter.
    let own = checked.call.autonomy.unwrap_or_default();
    let verdict = adjust(verdict, &votes, own, looks);
    (votes, verdict)
}

/// Why a call is asked that nobody has an opinion about.
fn silence(spec: &ToolSpec, facts: &Facts) -> String {
    if let Some(errand) = facts.web.as_ref().filter(|errand| errand.writes) {
        let holds = if errand.lasts() { "; a yes holds for this host until the session ends" } else { "" };
        return format!("it does {} at {}, and no rule allows that unasked{holds}", errand.method, errand.authority);
    }
    let does = match spec.effects.effect {
        Effect::Reads => return "no rule allows it unasked".to_owned(),
        Effect::Changes => "it changes files",
        Effect::Runs => facts.shell.as_ref().and_then(Shell::doubt).unwrap_or("it runs a program"),
        Effect::Acts => "it acts",
    };
    format!("{does}, and no rule allows that unasked")
}

/// Autonomy only ever makes a verdict stricter.
fn adjust(verdict: Verdict, votes: &[Cast], autonomy: Autonomy, looks: bool) -> Verdict {
    match (autonomy, verdict.decision) {
        (Autonomy::Conservative, Decision::Allow) if !looks => {
            // A person's grant holds, also where a list spoke before it: else a list that approves less
            // would end up allowing more.
            let grant = votes.iter().find(|cast| cast.by == "grant" && cast.decision == Some(Decision::Allow));
            grant.map_or_else(
                || Verdict::new(Decision::Ask, "autonomy", "conservative: everything that writes or runs is asked"),
                |cast| Verdict::new(Decision::Allow, &cast.by, &cast.reason),
            )
        }
        (Autonomy::Autonomous, Decision::Ask) => {
            let reason = format!("autonomous: nobody is asked, and this would be ({})", verdict.reason);
            Verdict::new(Decision::Deny, "autonomy", reason)
        }
        _ => verdict,
    }
}

/// What to type to see who said what, so that it works as it stands.
fn explain_hint(checked: &Checked) -> String {
    const LONGEST: usize = 200;
    // As it was called: what was added since is nothing to type.
    let (name, args) = (&checked.call.spoken, checked.call.args.to_string());
    let plain = checked.call.dialect == crate::Dialect::Haft;
    let typed = plain
        && args.len() <= LONGEST
        && crate::preview::inert(&args) == args
        && !crate::secret::contains_secret(&args)
        && crate::record::masked(&checked.call.args, &checked.spec.shapes.input, &[]) == checked.call.args;
    if typed {
        format!("`haft explain {name} '{}'` shows every voice and what it said", args.replace('\'', r"'\''"))
    } else {
        format!("`haft explain {}` with the same arguments shows every voice and what it said", checked.spec.name)
    }
}

/// Decides about a call. This is the only source of [`Admitted`] besides an answered [`Pending`].
pub fn decide(checked: Checked, facts: Facts, policy: &Policy, chain: &Chain) -> Ruling {
    let (_, verdict) = judge(&checked, &facts, policy, chain);
    match verdict.decision {
        Decision::Allow => {
            Ruling::Admitted(Admitted { checked, facts, verdict, shown: None, asked: false, blind: false })
        }
        Decision::Ask => Ruling::Ask(Pending { checked, facts, verdict }),
        Decision::Deny => {
            let message = format!("{} (by {})", verdict.reason, verdict.by);
            let error = CallError::new(ErrorKind::Denied, message).hint(explain_hint(&checked));
            Ruling::Refused(Refused { checked, verdict, error })
        }
    }
}

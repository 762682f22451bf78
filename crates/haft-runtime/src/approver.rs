//! Who answers an Ask.

use crate::back::{Form, Written};
use crate::judge::ShellShown;
use crate::ranked_changes::RankedChanges;
use crate::tool::BoxFuture;
use crate::workspace::Workspace;
use haft_core::approval::{Decider, DeciderIdentity, Verdict};
use haft_core::executed::{ExecutedFile, ExecutedFiles, TrialResult};
use haft_core::record::Digest;
use haft_core::shell::Class;
use haft_core::tool::Severity;
use haft_core::{CallError, CallId, Caller, ErrorKind, Hold, ToolName};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// What a person is asked.
#[derive(Debug, Clone, Serialize)]
pub struct Question {
    /// Which call.
    pub call_id: CallId,
    /// Its tool.
    pub tool: ToolName,
    /// One line about it, made inert.
    pub preview: String,
    /// Why it is asked.
    pub verdict: Verdict,
    /// What a mistake would cost.
    pub severity: Severity,
    /// The canonical arguments.
    pub args: Value,
    /// What it would really do, as a unified diff, for tools that can tell.
    pub diff: Option<String>,
    /// The names of what it would change, in the order in which they have to be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranked: Option<RankedChanges>,
    /// Why the diff could not be made; then running it would fail the same way.
    pub problem: Option<String>,
    /// Where it would happen, with every link followed.
    pub places: Vec<String>,
    /// What a remembered pattern is matched against.
    pub subject: String,
    /// How the kernel will hold the program that it runs.
    pub hold: Option<Hold>,
    /// For a shell command: what kind of thing it does.
    pub class: Option<Class>,
    /// For a shell command: everything that is known of it.
    pub shell: Option<ShellShown>,
    /// Which agent asks, if it works for another one, and where, if that is not the project.
    pub asker: Option<String>,
    /// What the conversation has heard that might have put the idea there: where from, and by which tool.
    pub sources: Vec<String>,
    /// For a shell command: the rules under which it would have run unasked, where there are safe ones.
    pub rules: Vec<String>,
    /// The files that it runs, and their digests: a yes is for these.
    #[serde(skip_serializing_if = "ExecutedFiles::is_empty")]
    pub executed: ExecutedFiles,
    /// What came of trying it when it was stored. It only informs: a yes runs it anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialResult>,
    /// What it printed when it was tried.
    pub tried: Option<String>,
    /// The digest of the changes in `diff`: only these may be made on this answer.
    pub shown: Option<Digest>,
    /// The digest of everything that the question is about: arguments, where they lead, what would change.
    pub basis: Digest,
}

impl Question {
    /// Why it is asked, and about which program of somebody else's, if it is about one.
    pub fn why(&self) -> String {
        let reason = &self.verdict.reason;
        let guest = self.hold.as_ref().and_then(|hold| hold.guest.as_ref());
        guest.map_or_else(|| reason.clone(), |guest| format!("{reason}; {guest}"))
    }

    /// The digest of what an answer is for: the basis, and what came of a trial. Who sees another face has to look
    /// again.
    pub fn face(&self) -> Digest {
        Digest::of(format!("{} {:?} {:?}", self.basis, self.shown, self.tried).as_bytes())
    }

    /// Whether a yes can be for more than this call. What is proposed is looked at each time.
    pub fn can_last(&self) -> bool {
        self.verdict.by != "proposal"
    }

    /// Whether it can be tried before it is answered.
    pub fn can_try(&self) -> bool {
        self.tried.is_none() && self.hold.as_ref().is_some_and(|hold| hold.gap.is_none())
    }
}

/// Which agent asks, if it works for another one, and where it works, if that is not the project.
pub(crate) fn asker(caller: &Caller, workspace: &Workspace) -> Option<String> {
    let child = caller.agent.as_ref().filter(|agent| agent.contains('/'))?;
    Some(workspace.elsewhere().map_or_else(|| child.clone(), |dir| format!("{child}, in {}", dir.display())))
}

/// What a person said.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Yes, this once.
    Once,
    /// Yes, and for this pattern until the session ends.
    Session,
    /// Yes, and for this pattern from now on, a limited number of times.
    Always(String),
    /// No, with a message for the model.
    Reject(String),
    /// Not like this: with these arguments (in canonical words), which are checked and decided anew.
    Edit(Value),
    /// First show what it does: it is run on a copy-on-write view, and asked again with what came of it. A
    /// yes then keeps exactly that.
    Try,
    /// Nobody is there. The question is stored, and can be answered later from another process.
    Nobody,
}

/// Somebody who can be asked.
pub trait Approver: Send + Sync {
    /// Whose answers these are, and whether they count. Where the identity has no right to decide, nothing is asked, and
    /// the question waits in the inbox.
    fn decider(&self) -> Decider;
    /// Whose the answers to forms are, where those go to somebody else than questions.
    fn form_decider(&self) -> Decider {
        self.decider()
    }

    /// Hears of a question that is not put here, because whoever answers here has no right to decide.
    fn note_unasked(&self, _: &Question) {}

    /// Asks, and waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said>;

    /// The files that the call ran when this approver said yes to it, if that was earlier.
    fn approved_files(&self) -> Option<&[ExecutedFile]> {
        None
    }

    /// How long a call waits in the inbox for anybody else to decide about it, if it does not get its answer here.
    /// Not at all: a question that finds nobody is stored, and the call ends.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether questions are put at all. If not, a call that a person would have to decide about is refused: nothing is
    /// stored, and nobody hears of a question.
    fn takes_questions(&self) -> bool {
        true
    }

    /// Lets the person fill in a form that a tool asks for.
    fn elicit<'a>(&'a self, _: &'a Form) -> BoxFuture<'a, Written> {
        Box::pin(std::future::ready(Written::Nobody))
    }

    /// Whether the caller offers a model at all. Nobody is asked for consent to what cannot be done.
    fn has_model(&self) -> bool {
        true
    }

    /// Whether forms are shown for the caller. A server that is told otherwise does not ask for what nobody would see.
    fn has_forms(&self) -> bool {
        true
    }

    /// Whether the caller looks after a call that goes on as a task, and need not wait for it.
    fn has_tasks(&self) -> bool {
        false
    }

    /// Hears that a bridged server has made a task of the call, for a caller that looks after tasks.
    fn goes_on_as_task(&self) {}

    /// Lets the caller's model answer what a tool asks it. The request and the answer are in the words of MCP's
    /// `sampling/createMessage`.
    fn sample<'a>(&'a self, _: &'a Value) -> BoxFuture<'a, Result<Value, CallError>> {
        let error = CallError::new(ErrorKind::Upstream, "the caller offers no model")
            .hint("use a client that offers sampling, or a tool that needs none");
        Box::pin(std::future::ready(Err(error)))
    }
}

/// Asks for a decision at this door. Nothing is put to an identity that may not decide.
pub(crate) async fn request_decision(approver: &dyn Approver, question: &Question) -> Said {
    if approver.decider().may_decide() {
        return approver.ask(question).await;
    }
    approver.note_unasked(question);
    Said::Nobody
}

/// Lets whoever decides at this door fill in a form. What is asked of a person is not put to an agent.
pub(crate) async fn request_form(approver: &dyn Approver, form: &Form) -> Written {
    if approver.form_decider().may_decide() { approver.elicit(form).await } else { Written::Nobody }
}

/// Says yes to everything that is not denied: `--yes`.
pub struct Yes;

impl Approver for Yes {
    fn decider(&self) -> Decider {
        DeciderIdentity::YesFlag.into()
    }
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Once))
    }
}

/// Is not there: `--no-input`, and every program without somebody to ask.
pub struct Nobody;

impl Approver for Nobody {
    fn decider(&self) -> Decider {
        DeciderIdentity::Unattended { door: "nobody" }.into()
    }
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Nobody))
    }
}

/// Refuses everything that a person would have to decide about: for calls that come too often to ask about each.
pub struct RefusingApprover;

impl Approver for RefusingApprover {
    fn decider(&self) -> Decider {
        DeciderIdentity::Unattended { door: "nobody" }.into()
    }
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Reject(question.why())))
    }
    fn takes_questions(&self) -> bool {
        false
    }
    fn has_model(&self) -> bool {
        false
    }
}

//! Asking back: a tool that runs may need a person's words or a model's. It never reaches them itself: its wish goes
//! to the path of the call, which shows it to the approver of that call, counts it and records it.

use crate::agent::spawn::{Order, Report};
use crate::approver::{Approver, Question, Said, asker, request_decision};
use crate::halt::Halt;
use crate::journal::Opened;
use crate::orchestrate::Asked;
use crate::pipeline::Haft;
use crate::run::PREVIEW_COLUMNS;
use crate::tool::BoxFuture;
use crate::work::Wanted;
use haft_core::preview::{cut, inert};
use haft_core::record::{Digest, Kind};
use haft_core::tool::Severity;
use haft_core::{Call, CallError, CallId, ErrorKind, Outcome};
use haft_store::Entry;
use haft_store::work::{RunSeen, StepSeen};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{mpsc, oneshot};

/// How often one call may ask back. A server that asks in a loop is stopped here.
const WISHES_MAX: usize = 16;
/// How many calls an outermost call may make, with all that these make.
const CALLS_MAX: usize = 64;
/// How deep they may go: a call that an outermost call makes is one deep.
pub(crate) const DEPTH_MAX: usize = 4;

/// Whether somebody has agreed beforehand that a caller's model answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SamplingConsent {
    /// A person agrees to each request.
    #[default]
    EachRequest,
    /// The user's configuration agrees to all requests of this server.
    Given,
}

/// Something that a person fills in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Form {
    /// Who wants to know: the bridged server, or the tool.
    pub from: String,
    /// What they say.
    pub message: String,
    /// The shape of the answer, as JSON Schema.
    pub schema: Value,
}

/// What a person did with a form.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// They filled it in.
    Answer(Value),
    /// They would not.
    Declined,
    /// They closed it.
    Cancelled,
    /// Nobody is there to be asked.
    Nobody,
}

/// What a running tool wishes to have answered.
pub(crate) enum Wish {
    Form(Form, oneshot::Sender<Written>),
    Sample {
        from: String,
        request: Value,
        consent: SamplingConsent,
        answer: oneshot::Sender<Result<Value, CallError>>,
    },
    Call(Box<Call>, oneshot::Sender<Outcome>),
    Calls(Vec<Call>, oneshot::Sender<Vec<Outcome>>),
    Work(Box<Job>, oneshot::Sender<Result<Worked, CallError>>),
    Spawn(Vec<Order>, oneshot::Sender<Result<Vec<Report>, CallError>>),
    FollowUp {
        id: String,
        words: String,
        answer: oneshot::Sender<Result<Report, CallError>>,
    },
    /// The caller need not wait: a server has made a task of the call.
    GoOnAsTask,
}

/// A run that a tool wishes to have begun or gone on with.
pub(crate) enum Job {
    /// A new one. It is waited for, or left to workers.
    Begin { wanted: Box<Wanted>, wait: bool },
    /// One that is over, with what failed or was skipped.
    Again { run: String, wait: bool },
}

/// What came of it so far.
pub(crate) struct Worked {
    pub(crate) run: RunSeen,
    pub(crate) steps: Vec<StepSeen>,
    /// What it gave, if it is over.
    pub(crate) gave: Option<Value>,
}

/// What the caller of a tool offers it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallerOffer {
    /// A model that answers requests.
    pub model: bool,
    /// Forms that are shown to a person.
    pub forms: bool,
    /// That it looks after a call that goes on as a task.
    pub tasks: bool,
}

/// A tool's way to ask back. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Back {
    queue: Option<mpsc::Sender<Wish>>,
    offer: CallerOffer,
}

/// The other end.
pub(crate) struct Wishes {
    queue: mpsc::Receiver<Wish>,
    heard: usize,
    /// How many calls were made within the outermost one; none before the first.
    calls: Option<Arc<AtomicUsize>>,
}

/// How many calls were made within each outermost call that still runs.
#[derive(Default)]
pub(crate) struct Trees(Mutex<HashMap<CallId, Weak<AtomicUsize>>>);

impl Trees {
    /// The count of a tree. It lives as long as one of the tree's calls has it, and the outermost has it first.
    fn count(&self, outermost: &CallId) -> Arc<AtomicUsize> {
        let mut trees = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = trees.get(outermost).and_then(Weak::upgrade) {
            return count;
        }
        trees.retain(|_, count| count.strong_count() > 0);
        let count = Arc::default();
        trees.insert(outermost.clone(), Arc::downgrade(&count));
        count
    }
}

/// Both ends, for a call with this approver.
pub(crate) fn channel(approver: &dyn Approver) -> (Back, Wishes) {
    let (sender, queue) = mpsc::channel(1);
    let offer = CallerOffer { model: approver.has_model(), forms: approver.has_forms(), tasks: approver.has_tasks() };
    (Back { queue: Some(sender), offer }, Wishes { queue, heard: 0, calls: None })
}

impl Back {
    /// What the caller offers.
    pub fn offer(&self) -> CallerOffer {
        self.offer
    }

    /// Tells the caller that a server has made a task of the call.
    pub async fn go_on_as_task(&self) {
        if let Some(queue) = self.queue.as_ref().filter(|_| self.offer.tasks) {
            // A call that has ended is waited for by nobody.
            let _ = queue.send(Wish::GoOnAsTask).await;
        }
    }

    /// Lets the person behind the call fill in a form.
    pub async fn elicit(&self, form: Form) -> Written {
        let (answer, written) = oneshot::channel();
        let Some(queue) = &self.queue else { return Written::Nobody };
        match queue.send(Wish::Form(form, answer)).await {
            Ok(()) => written.await.unwrap_or(Written::Cancelled),
            Err(_) => Written::Nobody,
        }
    }

    /// Lets the caller's model answer, if a person agrees.
    pub async fn sample(&self, from: impl Into<String>, request: Value) -> Result<Value, CallError> {
        self.sample_with_consent(from, request, SamplingConsent::EachRequest).await
    }

    /// The same where a person may have agreed beforehand.
    pub async fn sample_with_consent(
        &self,
        from: impl Into<String>,
        request: Value,
        consent: SamplingConsent,
    ) -> Result<Value, CallError> {
        let (answer, said) = oneshot::channel();
        let gone = || CallError::new(ErrorKind::Cancelled, "the call has ended");
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Wish::Sample { from: from.into(), request, consent, answer }).await.map_err(|_| gone())?;
        said.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Has a run begun, or gone on with.
    pub(crate) async fn work(&self, job: Job) -> Result<Worked, CallError> {
        let (answer, worked) = oneshot::channel();
        let gone = || CallError::new(ErrorKind::Cancelled, "the call has ended");
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Wish::Work(Box::new(job), answer)).await.map_err(|_| gone())?;
        worked.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Says something to a child that has ended.
    pub(crate) async fn follow_up(&self, id: String, words: String) -> Result<Report, CallError> {
        let (answer, report) = oneshot::channel();
        let gone = || CallError::new(ErrorKind::Cancelled, "the call has ended");
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Wish::FollowUp { id, words, answer }).await.map_err(|_| gone())?;
        report.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Has children run, and waits for those that are waited for.
    pub(crate) async fn spawn(&self, orders: Vec<Order>) -> Result<Vec<Report>, CallError> {
        let (answer, reports) = oneshot::channel();
        let gone = || CallError::new(ErrorKind::Cancelled, "the call has ended");
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Wish::Spawn(orders, answer)).await.map_err(|_| gone())?;
        reports.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Makes another call, which goes the whole path: it is validated, decided, recorded and run as itself.
    pub async fn call(&self, call: Call) -> Result<Outcome, CallError> {
        let (answer, outcome) = oneshot::channel();
        let gone = || CallError::new(ErrorKind::Cancelled, "the call has ended");
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Wish::Call(Box::new(call), answer)).await.map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())
    }

    /// Makes several calls, together where they may run beside one another. What came of them is in their order.
    pub async fn call_all(&self, calls: Vec<Call>) -> Result<Vec<Outcome>, CallError> {
        let (answer, outcomes) = oneshot::channel();
        let gone = || CallError::new(ErrorKind::Cancelled, "the call has ended");
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Wish::Calls(calls, answer)).await.map_err(|_| gone())?;
        outcomes.await.map_err(|_| gone())
    }
}

impl Wishes {
    /// The next wish; never, once the tool has none any more.
    pub(crate) async fn next(&mut self) -> Wish {
        match self.queue.recv().await {
            Some(wish) => wish,
            None => std::future::pending().await,
        }
    }
}

impl Haft {
    /// Answers one wish of a running call.
    pub(crate) fn grant_wish<'a>(
        &'a self,
        opened: &'a Opened,
        asked: (&'a dyn Approver, &'a Halt),
        wishes: &'a mut Wishes,
        wish: Wish,
    ) -> BoxFuture<'a, ()> {
        // Boxed: a call may make calls that make calls.
        Box::pin(self.grant(opened, asked, wishes, wish))
    }

    async fn grant(&self, opened: &Opened, (approver, halt): (&dyn Approver, &Halt), wishes: &mut Wishes, wish: Wish) {
        let counted = matches!(wish, Wish::Form(..) | Wish::Sample { .. });
        wishes.heard += usize::from(counted);
        let enough = wishes.heard > WISHES_MAX;
        match wish {
            Wish::Call(call, answer) => {
                let outcome = match self.counted(wishes, *call) {
                    Ok(call) => self.call(call, approver, halt).await,
                    Err(refused) => *refused,
                };
                let _ = answer.send(outcome);
            }
            Wish::Calls(calls, answer) => {
                let (sender, asked) = mpsc::channel(calls.len().max(1));
                for call in calls {
                    // There is room for all of them.
                    let _ = sender.try_send(self.counted(wishes, call));
                }
                drop(sender);
                let mut outcomes = Vec::new();
                self.call_each(asked, approver, halt, |outcome| outcomes.push(outcome)).await;
                let _ = answer.send(outcomes);
            }
            Wish::Work(job, answer) => {
                let call = opened.admitted().checked().call();
                let _ = answer.send(self.labour(*job, call, approver, halt).await);
            }
            Wish::Spawn(orders, answer) => {
                let call = opened.admitted().checked().call();
                let _ = answer.send(self.spawn(orders, call, approver, halt).await);
            }
            Wish::FollowUp { id, words, answer } => {
                let call = opened.admitted().checked().call();
                let _ = answer.send(self.follow_up((&id, words), call, approver, halt).await);
            }
            Wish::GoOnAsTask => approver.goes_on_as_task(),
            Wish::Form(form, answer) => {
                let written =
                    if enough { Written::Declined } else { self.fill_in(opened, approver, halt, &form).await };
                self.record_back(opened, "elicitation", &form.from, word(&written, enough));
                // Whoever asked may be gone.
                let _ = answer.send(written);
            }
            Wish::Sample { from, request, consent, answer } => {
                let said = if enough {
                    Err(CallError::failed(format!("one call may ask back {WISHES_MAX} times, and this one has")))
                } else {
                    self.sample(opened, approver, (&from, consent), &request).await
                };
                let word = match &said {
                    Ok(_) => "answered",
                    Err(error) => error.kind.as_str(),
                };
                self.record_back(opened, "sampling", &from, if enough { "too many" } else { word });
                let _ = answer.send(said);
            }
        }
    }

    /// A call that another makes, unless it is one too many.
    fn counted(&self, wishes: &mut Wishes, call: Call) -> Asked {
        let outermost = call.parents.first().unwrap_or(&call.id);
        let count = wishes.calls.get_or_insert_with(|| self.trees.count(outermost));
        let made = count.fetch_add(1, Ordering::Relaxed);
        if made < CALLS_MAX && call.parents.len() <= DEPTH_MAX {
            return Ok(call);
        }
        let why = format!("one call makes at most {CALLS_MAX} others in all, at most {DEPTH_MAX} deep");
        let verdict = crate::registry::undecided("it was one call too many");
        Err(Box::new(Outcome::failure(call.id.clone(), call.spoken.as_str(), CallError::failed(why), verdict)))
    }

    /// A model's words cost money and may carry data out: a person agrees to each request, unless the user's
    /// configuration agrees for one server.
    async fn sample(
        &self,
        opened: &Opened,
        approver: &dyn Approver,
        (from, consent): (&str, SamplingConsent),
        request: &Value,
    ) -> Result<Value, CallError> {
        // A caller without a model says so itself, and nobody is asked for consent.
        if consent == SamplingConsent::Given || !approver.has_model() {
            return approver.sample(request).await;
        }
        let said = request_decision(approver, &self.sampling_question(opened, from, request)).await;
        match said {
            Said::Once | Said::Session | Said::Always(_) => approver.sample(request).await,
            Said::Reject(message) => Err(CallError::new(ErrorKind::Rejected, message)),
            Said::Edit(_) | Said::Try | Said::Nobody => {
                Err(CallError::new(ErrorKind::ApprovalRequired, "nobody could be asked whether the model may answer"))
            }
        }
    }

    fn sampling_question(&self, opened: &Opened, from: &str, request: &Value) -> Question {
        let checked = opened.admitted().checked();
        let mut verdict = opened.admitted().verdict().clone();
        verdict.decision = haft_core::approval::Decision::Ask;
        verdict.reason = format!("{} wants your model to answer a question of its own", inert(from));
        let first = request.pointer("/messages/0/content/text").and_then(Value::as_str).unwrap_or_default();
        Question {
            call_id: checked.call().id.clone(),
            tool: checked.spec().name.clone(),
            preview: cut(&inert(&format!("sampling for {from}: {first}")), PREVIEW_COLUMNS),
            verdict,
            severity: Severity::High,
            args: request.clone(),
            diff: None,
            ranked: None,
            problem: None,
            places: Vec::new(),
            subject: format!("sampling {from}"),
            hold: None,
            class: None,
            shell: None,
            executed: haft_core::executed::ExecutedFiles::default(),
            trial: None,
            asker: asker(&checked.call().caller, &self.workspace),
            sources: self.sources(&checked.call().session),
            rules: Vec::new(),
            tried: None,
            shown: None,
            basis: Digest::of(request.to_string().as_bytes()),
        }
    }

    fn record_back(&self, opened: &Opened, what: &str, from: &str, said: &str) {
        let id = &opened.admitted().checked().call().id;
        let entry = Entry::new(Kind::Back).call(id).with("what", what).with("from", from).with("said", said);
        self.store.record_later(entry);
    }
}

fn word(written: &Written, enough: bool) -> &'static str {
    match written {
        _ if enough => "too many",
        Written::Answer(_) => "answered",
        Written::Declined => "declined",
        Written::Cancelled => "cancelled",
        Written::Nobody => "nobody",
    }
}

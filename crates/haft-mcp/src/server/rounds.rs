//! Calls that ask in the middle of their work (2026-07-28). A server may not put requests to its client there: what a
//! call asks goes out with the answer to the request, and the client comes back with what was said and with a word by
//! which the call is found again. Meanwhile the call goes on in a task of its own. The word is a key to what is kept
//! here and says nothing by itself.

#![expect(deprecated, reason = "sampling goes, but the newest version still has it")]

use super::Shared;
use super::approver::{Client, Lack};
use haft_core::record::Digest;
use haft_core::{Call, CallId, Caller, Outcome, SessionId};
use haft_runtime::Halt;
use rmcp::model::{
    CreateMessageResult, ElicitResult, InputRequest, InputRequests, InputRequiredResult, InputResponses,
};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many calls may wait for their client to come back. The oldest hears first that nobody does.
const HELD_MAX: usize = 64;
/// How long one waits for an answer.
const HELD_FOR: Duration = Duration::from_mins(10);
/// How long a task waits for a person.
pub(super) const TASK_WAIT: Duration = Duration::from_hours(1);
/// How long what was cancelled may take to end.
const ENDING: Duration = Duration::from_secs(10);

/// What the client is to answer.
pub(super) struct Asked {
    key: String,
    /// Whether its key is the tool's own name for it: only then can it be answered before it is asked.
    named: bool,
    /// Boxed, because a question is moved about.
    request: Box<InputRequest>,
    /// When the client was first given it.
    shown_at: Option<Instant>,
    answer: oneshot::Sender<ClientAnswer>,
}

/// What a client answered to a question.
pub(super) struct ClientAnswer {
    pub(super) value: Value,
    /// How long the client had the question before: no person answers what they had no time to read.
    pub(super) after: Duration,
}

impl Asked {
    /// Whether somebody still waits for the answer.
    pub(super) fn is_open(&self) -> bool {
        !self.answer.is_closed()
    }

    pub(super) fn is_named(&self) -> bool {
        self.named
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The request to send to the client. The first call starts the reading time.
    pub(super) fn show(&mut self) -> InputRequest {
        self.shown_at.get_or_insert_with(Instant::now);
        (*self.request).clone()
    }

    /// Gives the question another key.
    pub(super) fn rename(&mut self, key: String) {
        self.key = key;
    }

    /// Takes the answer from what the client sent. Gives the question back if it is not there, or is none.
    pub(super) fn answered(self, given: &mut InputResponses) -> Result<(), Self> {
        match given.remove(&self.key) {
            Some(value) if fits(&self.request, &value) => {
                let after = self.shown_at.map_or(Duration::ZERO, |shown_at| shown_at.elapsed());
                // Whoever asked may have been answered elsewhere.
                let _ = self.answer.send(ClientAnswer { value, after });
                Ok(())
            }
            _ => Err(self),
        }
    }
}

/// Whether this is an answer to that at all.
fn fits(request: &InputRequest, answer: &Value) -> bool {
    match request {
        InputRequest::Elicitation(_) => serde_json::from_value::<ElicitResult>(answer.clone()).is_ok(),
        InputRequest::CreateMessage(_) => serde_json::from_value::<CreateMessageResult>(answer.clone()).is_ok(),
        _ => false,
    }
}

/// What a client gets when its call asks or takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LongCall {
    /// The question; the client calls again with the answer.
    Retry,
    /// A task that the client polls.
    Task,
}

impl LongCall {
    /// How long a question waits for the client's answer.
    fn answer_wait(self) -> Duration {
        match self {
            Self::Retry => HELD_FOR,
            Self::Task => TASK_WAIT,
        }
    }
}

/// A call's way to ask.
pub(super) struct Turns {
    asking: mpsc::Sender<Asked>,
    pub(super) long_call: LongCall,
    /// Cancelled once the call is a task at the server that it goes to.
    is_remote_task: CancellationToken,
}

impl Turns {
    /// The call is a task at the server that it goes to: its client need not wait for it here, either.
    pub(super) fn go_on_as_task(&self) {
        self.is_remote_task.cancel();
    }

    /// Puts a request to the client, and waits until it comes back. None if it does not.
    pub(super) async fn ask(&self, key: String, named: bool, request: InputRequest) -> Option<ClientAnswer> {
        let (answer, said) = oneshot::channel();
        let put = async {
            let asked = Asked { key, named, request: Box::new(request), shown_at: None, answer };
            self.asking.send(asked).await.ok()?;
            said.await.ok()
        };
        tokio::time::timeout(self.long_call.answer_wait(), put).await.ok().flatten()
    }
}

/// What came of a call.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    /// What the call asked for and the client cannot do.
    pub(super) lacks: Option<Lack>,
}

/// What a call that is waited for does next.
pub(super) enum Turn {
    /// It asks.
    Asked(Asked),
    /// It goes on as a task of the server that it goes to. Told once.
    RemoteTask,
    /// It is over.
    Ended(Box<Ended>),
    /// It is over without an outcome: it crashed.
    Lost,
}

/// A call in a task of its own.
pub(super) struct Running {
    pub(super) id: CallId,
    /// Its tool, as the client said it.
    pub(super) spoken: String,
    pub(super) halt: Halt,
    asked: mpsc::Receiver<Asked>,
    ended: oneshot::Receiver<Ended>,
    /// Until it was told.
    is_remote_task: Option<CancellationToken>,
}

impl Running {
    /// A call that does nothing.
    #[cfg(test)]
    pub(super) fn idle(id: CallId) -> Self {
        let ((_, asked), (_, ended)) = (mpsc::channel(1), oneshot::channel());
        Self { id, spoken: String::new(), halt: Halt::new(), asked, ended, is_remote_task: None }
    }

    /// What it does next.
    pub(super) async fn next(&mut self) -> Turn {
        loop {
            tokio::select! {
                biased;
                () = cancelled(self.is_remote_task.as_ref()) => {
                    self.is_remote_task = None;
                    return Turn::RemoteTask;
                }
                Some(asked) = self.asked.recv() => if asked.is_open() { return Turn::Asked(asked) },
                ended = &mut self.ended => return ended.map_or(Turn::Lost, |ended| Turn::Ended(Box::new(ended))),
            }
        }
    }
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Whose call it is: only the same client that asks for the same again may answer.
#[derive(Clone, PartialEq)]
pub(super) struct Whose {
    session: SessionId,
    caller: Caller,
    asked_for: Digest,
}

impl Whose {
    pub(super) fn of(call: &Call) -> Self {
        let asked_for = Digest::of(format!("{}\0{}", call.spoken, call.args).as_bytes());
        Self { session: call.session.clone(), caller: call.caller.clone(), asked_for }
    }
}

/// A call that waits for its client.
struct Held {
    word: String,
    whose: Whose,
    since: Instant,
    running: Running,
    asked: Asked,
}

/// The calls that ask in rounds.
#[derive(Default)]
pub(super) struct Rounds {
    held: Mutex<VecDeque<Held>>,
    tasks: TaskTracker,
}

impl Rounds {
    fn held(&self) -> MutexGuard<'_, VecDeque<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call. Its client is made for the way by which it asks.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        call: Call,
        long_call: LongCall,
        client: impl FnOnce(Turns) -> Client,
    ) -> Running {
        let (asking, asked) = mpsc::channel(1);
        let (done, ended) = oneshot::channel();
        let (is_remote_task, halt) = (CancellationToken::new(), Halt::new());
        let client = client(Turns { asking, long_call, is_remote_task: is_remote_task.clone() });
        let (id, spoken) = (call.id.clone(), call.spoken.clone());
        let running = Running { id, spoken, halt: halt.clone(), asked, ended, is_remote_task: Some(is_remote_task) };
        let here = Arc::clone(shared);
        shared.rounds.tasks.spawn(async move {
            let calling = here.haft.call(call, &client, &halt);
            tokio::pin!(calling);
            let finish = here.options.finish_when_gone;
            let outcome = tokio::select! {
                biased;
                outcome = &mut calling => outcome,
                () = client.gone(), if !finish => {
                    halt.cancel();
                    // What was cancelled still has an end, and a record of it.
                    calling.await
                }
            };
            let lacks = client.lacks();
            // Nobody may wait for it any more; the log has it.
            let _ = done.send(Ended { outcome, lacks });
        });
        running
    }

    /// Spawns work that [`Rounds::end`] waits for when the server shuts down.
    pub(super) fn track(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Keeps a call that asks, and gives what the client is told. The call hears that nobody is there if it cannot
    /// be kept.
    pub(super) fn hold(
        &self,
        whose: Whose,
        running: Running,
        mut asked: Asked,
    ) -> Result<InputRequiredResult, Running> {
        let Some(word) = random_word(&running.id) else { return Err(running) };
        let requests = InputRequests::from([(asked.key.clone(), asked.show())]);
        let mut held = self.held();
        held.retain(|one| one.since.elapsed() < HELD_FOR);
        if held.len() >= HELD_MAX {
            held.pop_front();
        }
        held.push_back(Held { word: word.clone(), whose, since: Instant::now(), running, asked });
        Ok(InputRequiredResult::new(Some(requests), Some(word)))
    }

    /// The call for a word, once, and only for whom it belongs to.
    pub(super) fn take(&self, whose: &Whose, word: &str) -> Option<(Running, Asked)> {
        let mut held = self.held();
        let at = held.iter().position(|one| one.word == word && one.whose == *whose)?;
        held.remove(at).map(|one| (one.running, one.asked))
    }

    /// Waits until no call is under way: nobody comes back any more.
    pub(super) async fn end(&self, finish: bool) {
        self.held().clear();
        self.tasks.close();
        if finish {
            self.tasks.wait().await;
        } else {
            // What does not end is ended with the process.
            let _ = tokio::time::timeout(ENDING, self.tasks.wait()).await;
        }
    }
}

/// A word that names a call and cannot be guessed. None if the machine has no randomness.
pub(super) fn random_word(call: &CallId) -> Option<String> {
    let mut chance = [0_u8; 16];
    getrandom::fill(&mut chance).ok()?;
    Some(format!("{call}.{:032x}", u128::from_le_bytes(chance)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{ElicitRequest, ElicitRequestParams, ElicitationSchema};
    use serde_json::json;

    fn request() -> InputRequest {
        let schema: ElicitationSchema = serde_json::from_value(json!({"type": "object", "properties": {}})).unwrap();
        let params =
            ElicitRequestParams::FormElicitationParams { meta: None, message: String::new(), requested_schema: schema };
        InputRequest::Elicitation(ElicitRequest::new(params))
    }

    fn call(spoken: &str, session: &str) -> Call {
        Call {
            id: CallId::new(1, 2),
            spoken: spoken.to_owned(),
            args: json!({}),
            dialect: haft_core::Dialect::Haft,
            session: SessionId::new(session).unwrap(),
            caller: Caller::default(),
            origin: haft_core::Origin::Mcp,
            parents: Vec::new(),
            turn: None,
            autonomy: None,
            independent: false,
        }
    }

    fn parts() -> (Running, Asked, oneshot::Receiver<ClientAnswer>) {
        let (answer, said) = oneshot::channel();
        let running = Running::idle(CallId::new(1, 2));
        let request = Box::new(request());
        (running, Asked { key: "form".to_owned(), named: false, request, shown_at: None, answer }, said)
    }

    fn hold(rounds: &Rounds) -> (String, oneshot::Receiver<ClientAnswer>) {
        let (running, asked, said) = parts();
        let told = rounds.hold(Whose::of(&call("a", "s")), running, asked).ok().unwrap();
        (told.request_state.unwrap(), said)
    }

    #[test]
    fn a_word_is_good_once_and_for_whom_it_belongs_to() {
        let rounds = Rounds::default();
        let (word, _said) = hold(&rounds);
        let mine = Whose::of(&call("a", "s"));
        let mut other = call("a", "s");
        other.caller.agent = Some("other".to_owned());
        let mut more = call("a", "s");
        more.args = json!({"more": 1});
        for not_mine in [call("a", "t"), call("b", "s"), other, more] {
            assert!(rounds.take(&Whose::of(&not_mine), &word).is_none());
        }
        assert!(rounds.take(&mine, CallId::new(1, 2).as_str()).is_none());
        assert!(rounds.take(&mine, &word).is_some());
        assert!(rounds.take(&mine, &word).is_none());
    }

    #[test]
    fn only_so_many_are_held_and_the_oldest_hears_that_nobody_comes() {
        let rounds = Rounds::default();
        let mut held: Vec<_> = (0..=HELD_MAX).map(|_| hold(&rounds)).collect();
        let closed = |said: &mut oneshot::Receiver<ClientAnswer>| {
            matches!(said.try_recv(), Err(oneshot::error::TryRecvError::Closed))
        };
        assert!(closed(&mut held[0].1) && !closed(&mut held[1].1));
        assert_eq!(rounds.held().len(), HELD_MAX);
    }

    #[test]
    fn what_is_no_answer_leaves_the_question_open() {
        let (_, asked, mut said) = parts();
        let answers = [("other", json!({"action": "accept"})), ("form", json!(12345)), ("form", json!({"action": 1}))];
        let asked = answers
            .into_iter()
            .fold(asked, |asked, (key, value)| asked.answered(&mut [(key.to_owned(), value)].into()).err().unwrap());
        assert!(asked.answered(&mut [("form".to_owned(), json!({"action": "decline"}))].into()).is_ok());
        assert_eq!(said.try_recv().unwrap().value, json!({"action": "decline"}));
    }
}

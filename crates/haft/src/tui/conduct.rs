//! Does what is wished on the screen: says things to the model, answers those who wait, looks things up.

use super::person::Person;
use super::screen::{Input, Opened, Over, Wish};
use super::talk::{Tally, Tone};
use super::{fresh, model, work};
use crate::app::App;
use crate::talks::resumed;
use crate::time;
use haft_core::agent::Block;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, Origin, SessionId};
use haft_runtime::agent::agents::told_of;
use haft_runtime::agent::{Agents, Chat, Door, Ended, ModelRef, Told, Watch, Who, tend, told};
use haft_runtime::{Halt, LastUndoable};
use haft_store::UndoSelection;
use std::future::pending;
use std::pin::pin;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long what goes on has to come to its end when somebody leaves.
const FAREWELL: Duration = Duration::from_secs(5);
/// How many conversations are listed.
const LISTED: i64 = 20;

/// Does what is wished.
pub(super) struct Conduct<'a> {
    aside: Aside<'a>,
    session: SessionId,
    /// The models to ask; as the settings say if empty.
    models: Vec<ModelRef>,
    /// Whether anything was said.
    spoken: bool,
}

/// What can be done while a model speaks.
struct Aside<'a> {
    app: &'a App,
    screen: Sender<Input>,
    person: Person,
}

/// What ends this process from outside.
struct Signals(Vec<Signal>);

impl Signals {
    fn new() -> Self {
        let kinds = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        Self(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect())
    }

    async fn next(&mut self) {
        let [terminate, hangup, interrupt] = self.0.as_mut_slice() else { return pending().await };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

impl<'a> Conduct<'a> {
    /// For the screen that takes what is told, beginning with this conversation.
    pub(super) fn new(app: &'a App, screen: Sender<Input>, session: SessionId, models: Vec<ModelRef>) -> Self {
        let person = Person::new(screen.clone());
        Self { aside: Aside { app, screen, person }, session, models, spoken: false }
    }

    /// Does what is wished until somebody leaves. Gives the conversation that can be gone on with.
    pub(super) async fn run(mut self, wishes: UnboundedReceiver<Wish>) -> Option<SessionId> {
        let (app, person, halt) = (self.aside.app, Arc::new(self.aside.person.clone()), Halt::new());
        // Children in the background go on while nobody speaks.
        let mut tended = pin!(tend(&app.haft, person, &halt));
        tokio::select! {
            () = self.converse(wishes) => {}
            () = &mut tended => {}
        }
        halt.cancel();
        let _ = tokio::time::timeout(FAREWELL, tended).await;
        self.spoken.then_some(self.session)
    }

    async fn converse(&mut self, mut wishes: UnboundedReceiver<Wish>) {
        let mut signals = Signals::new();
        let mut chat = self.open().await;
        loop {
            let mut children = self.aside.children(&self.session);
            let mut reported = false;
            let next = tokio::select! {
                wish = wishes.recv() => wish,
                report = children.next() => {
                    reported = true;
                    Some(Wish::Say(report))
                }
                () = signals.next() => {
                    self.aside.tell(Input::Leave);
                    continue;
                }
            };
            match next {
                None | Some(Wish::Quit) => return,
                Some(Wish::Say(text)) => match &mut chat {
                    Some(chat) => {
                        self.spoken = true;
                        if !self.say(chat, (text, reported), &mut wishes, &mut signals).await {
                            return;
                        }
                    }
                    None => self.aside.tell(Input::Over(Over::default())),
                },
                Some(Wish::Clear) => {
                    (self.session, self.spoken) = (fresh(), false);
                    chat = self.open().await;
                }
                Some(Wish::Resume(Some(name))) => match resumed(self.aside.app, &name).await {
                    Ok(session) => {
                        self.session = session;
                        // It goes on with the model that it was with.
                        self.models.clear();
                        chat = self.open().await;
                    }
                    Err(error) => self.aside.fail(&error),
                },
                Some(Wish::Model(name)) => self.use_model(&name, chat.as_mut()).await,
                Some(other) => self.aside.wish(other, &self.session).await,
            }
        }
    }

    /// Opens the conversation, and shows it.
    async fn open(&mut self) -> Option<Chat<'a>> {
        let mut caller = self.aside.app.caller.clone();
        caller.agent.get_or_insert_with(|| "main".to_owned());
        let who = Who { session: self.session.clone(), caller, models: self.models.clone(), ..Who::default() };
        match Chat::open(&self.aside.app.haft, who).await {
            Ok(chat) => {
                self.spoken |= !chat.messages().is_empty();
                self.aside.opened(&chat).await;
                Some(chat)
            }
            Err(error) => {
                self.aside.fail(&error);
                None
            }
        }
    }

    /// Asks another model from now on, if it can be asked.
    async fn use_model(&mut self, name: &str, chat: Option<&mut Chat<'a>>) {
        let known = async {
            let named = model(name)?;
            self.aside.app.haft.models().get(&named).await.map(|_| named)
        };
        match known.await {
            Ok(named) => {
                self.aside.tell(Input::Note(Tone::Plain, format!("{named} is asked from now on")));
                let opened =
                    Opened { session: self.session.to_string(), model: named.to_string(), ..Opened::default() };
                self.aside.tell(Input::Opened(opened));
                self.models = vec![named];
                if let Some(chat) = chat {
                    chat.use_models(self.models.clone());
                    if let Err(error) = chat.keep_models().await {
                        self.aside.fail(&error);
                    }
                }
            }
            Err(error) => self.aside.fail(&error),
        }
    }

    /// Says something, and does meanwhile what is wished. False if somebody leaves.
    async fn say(
        &self,
        chat: &mut Chat<'a>,
        (text, reported): (String, bool),
        wishes: &mut UnboundedReceiver<Wish>,
        signals: &mut Signals,
    ) -> bool {
        let (halt, aside, unsaid) = (Halt::new(), &self.aside, Unsaid::default());
        let (more, meanwhile) = unbounded_channel();
        let door = Door {
            approver: &aside.person,
            halt: &halt,
            origin: Origin::Cli,
            watch: aside.watch(&self.session, &unsaid),
            meanwhile: Some(meanwhile),
        };
        let blocks = vec![Block::Text { text }];
        // What an agent reports may use up what is left of the last time, and no more.
        let mut saying =
            pin!(async { if reported { chat.hear(blocks, door).await } else { chat.say(blocks, door).await } });
        let mut stays = true;
        let mut patience = pin!(farewell(&halt));
        loop {
            tokio::select! {
                ended = &mut saying => {
                    let stopped = !ended.as_ref().is_ok_and(Ended::is_done);
                    let failed = ended.err().map(|error| said(&error));
                    aside.tell(Input::Over(Over { failed, unsaid: unsaid.take(), stopped }));
                    return stays;
                }
                () = &mut patience, if !stays => return false,
                wish = wishes.recv(), if stays => match wish {
                    None | Some(Wish::Quit) => {
                        halt.cancel();
                        stays = false;
                    }
                    Some(Wish::Cancel) => halt.cancel(),
                    Some(Wish::Meanwhile(text)) => {
                        unsaid.add(&text);
                        // If it has just ended, what is unsaid is told to the screen.
                        let _ = more.send(vec![Block::Text { text }]);
                    }
                    Some(other) => aside.wish(other, &self.session).await,
                },
                () = signals.next() => aside.tell(Input::Leave),
            }
        }
    }
}

/// What was said meanwhile and is in no message yet.
#[derive(Clone, Default)]
struct Unsaid(Arc<Mutex<Vec<String>>>);

impl Unsaid {
    fn texts(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, text: &str) {
        self.texts().push(text.to_owned());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.texts())
    }

    /// A message is whole: what is in it was said.
    fn hear(&self, told: &Told) {
        let Told::Message { message } = told else { return };
        let has = |text: &String| {
            message.blocks.iter().any(|block| matches!(block, Block::Text { text: said } if said == text))
        };
        self.texts().retain(|text| !has(text));
    }
}

/// The children in the background that run while nobody speaks.
struct Children<'a> {
    agents: &'a Agents,
    session: SessionId,
    running: Vec<String>,
    screen: Sender<Input>,
}

impl Children<'_> {
    fn running(agents: &Agents, session: &SessionId) -> Vec<String> {
        let runs = agents.of(session).into_iter().filter(|child| child["state"] == "running");
        runs.filter_map(|child| child["id"].as_str().map(str::to_owned)).collect()
    }

    /// What the next one that ends has to report.
    async fn next(&mut self) -> String {
        let mut changes = self.agents.changes();
        loop {
            let now = Self::running(self.agents, &self.session);
            if let Some(id) = self.running.iter().find(|id| !now.contains(id)) {
                let known = self.agents.of(&self.session).into_iter().find(|child| child["id"] == id.as_str());
                let child = known.unwrap_or_default();
                let name = child["name"].as_str().unwrap_or_default();
                let text = child["ended"]["text"].as_str().unwrap_or("It failed; the log says how.");
                let _ = self.screen.send(Input::Prompted(format!("{name} has ended, and the model is told")));
                return told_of(name, id, "it is over", text);
            }
            self.running = now;
            if changes.changed().await.is_err() {
                pending::<()>().await;
            }
        }
    }
}

/// Passes a while after everything was told to stop.
async fn farewell(halt: &Halt) {
    halt.stopped().await;
    tokio::time::sleep(FAREWELL).await;
}

/// An error as the screen says it.
fn said(error: &CallError) -> String {
    error.hint.as_ref().map_or_else(|| error.message.clone(), |hint| format!("{}\n{hint}", error.message))
}

impl Aside<'_> {
    /// Tells the screen. Without a screen there is nobody to tell.
    fn tell(&self, input: Input) {
        let _ = self.screen.send(input);
    }

    fn fail(&self, error: &CallError) {
        self.tell(Input::Note(Tone::Bad, said(error)));
    }

    fn watch(&self, session: &SessionId, unsaid: &Unsaid) -> Watch {
        let (screen, unsaid) = (self.screen.clone(), unsaid.clone());
        let bus = told::on_the_bus(self.app.haft.events().clone(), session.clone());
        Arc::new(move |told: &Told| {
            unsaid.hear(told);
            let _ = screen.send(Input::Told(Box::new(told.clone())));
            bus(told);
        })
    }

    fn children(&self, session: &SessionId) -> Children<'_> {
        let (agents, session) = (self.app.haft.agents(), session.clone());
        Children { running: Children::running(agents, &session), agents, session, screen: self.screen.clone() }
    }

    /// Does what needs no conversation.
    async fn wish(&self, wish: Wish, session: &SessionId) {
        match wish {
            Wish::Answer(ticket, answer) => self.person.said(ticket, answer),
            Wish::Filled(ticket, written) => self.person.written(ticket, written),
            Wish::Look => self.look().await,
            Wish::Undo => self.undo(session).await,
            Wish::Models => self.models().await,
            Wish::Resume(None) => self.talks().await,
            // The rest is for a conversation, and there is none under way.
            _ => {}
        }
    }

    /// Shows a conversation, and what was said in it.
    async fn opened(&self, chat: &Chat<'_>) {
        let talk = chat.talk();
        let (model, problem) = match chat.model() {
            Some(named) => (named.to_string(), None),
            None => match self.app.haft.models().chosen().await {
                Ok(chosen) => (chosen.first().map(ToString::to_string).unwrap_or_default(), None),
                Err(error) => (String::new(), Some(error)),
            },
        };
        let used = Tally {
            turns: u32::try_from(talk.turns).unwrap_or(u32::MAX),
            total: talk.usage,
            cost: talk.cost_micros.and_then(|cost| u64::try_from(cost).ok()),
            ..Tally::default()
        };
        let kept = Some((chat.messages().to_vec(), used));
        self.tell(Input::Opened(Opened { session: chat.who().session.to_string(), model, kept }));
        // Said now: whoever types a long message should not learn it afterwards.
        if let Some(error) = problem {
            self.fail(&error);
        }
    }

    async fn look(&self) {
        match work::rows(self.app).await {
            Ok(rows) => self.tell(Input::Work(rows)),
            Err(error) => self.tell(Input::Note(Tone::Bad, error.to_string())),
        }
    }

    /// Takes back the last change of a conversation that can be taken back, as `haft undo --session S --last` does.
    async fn undo(&self, session: &SessionId) {
        let haft = &self.app.haft;
        let selection = UndoSelection { session: Some(session.clone()), ..UndoSelection::default() };
        let undone = async {
            let LastUndoable { call_id, passed_over } = haft.last_undoable(selection).await?;
            let (id, undo) = haft.undo(&call_id).await?;
            let passed = passed_over.iter().map(|one| format!("passed over {}: {}\n", one.call_id, one.reason));
            let files = if undo.files.is_empty() { "nothing had changed".to_owned() } else { undo.files.join(", ") };
            let passed: String = passed.collect();
            Ok::<_, CallError>(format!("{passed}undid {call_id}: {files}\nto redo the change: haft undo {id}"))
        };
        self.tell(match undone.await {
            Ok(text) => Input::Note(Tone::Plain, text),
            Err(error) => Input::Note(Tone::Bad, said(&error)),
        });
    }

    async fn models(&self) {
        let ready = self.app.haft.models().available().await.into_iter().filter(|provider| provider.ready);
        let names: Vec<String> = ready.flat_map(|provider| provider.models).map(|one| one.model.to_string()).collect();
        let text = match names.as_slice() {
            [] => "no provider has a key here, and no server on this machine has models".to_owned(),
            names => format!("/model NAME, one of:\n{}", names.join("\n")),
        };
        self.tell(Input::Note(Tone::Plain, text));
    }

    async fn talks(&self) {
        let root = self.app.haft.workspace().stored_root();
        match self.app.store().talks(&root, None, LISTED).await {
            Ok(talks) if talks.is_empty() => {
                self.tell(Input::Note(Tone::Plain, "there is no other conversation in this project".to_owned()));
            }
            Ok(talks) => {
                let line = |talk: &haft_store::talks::Talk| {
                    let title = cut(&inert(&talk.title), 50);
                    format!("{}  {}  {title}", inert(&talk.session), time::shown(talk.at_ms))
                };
                let lines: Vec<String> = talks.iter().map(line).collect();
                self.tell(Input::Note(Tone::Plain, format!("/resume SESSION, one of:\n{}", lines.join("\n"))));
            }
            Err(error) => self.tell(Input::Note(Tone::Bad, error.to_string())),
        }
    }
}

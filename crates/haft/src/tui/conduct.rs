//! Does what is wished on the screen: says things to the model, answers those who wait, looks things up.

use super::person::Person;
use super::screen::{Input, Opened, Over, Wish};
use super::talk::Tone;
use super::{fresh, model, resumed, work};
use crate::app::App;
use crate::time;
use haft_core::agent::{Block, Message};
use haft_core::preview::{cut, inert};
use haft_core::{CallError, CallId, Origin, SessionId};
use haft_runtime::Halt;
use haft_runtime::agent::{Chat, Door, ModelRef, Told, Watch, Who};
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
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
    pub(super) async fn run(mut self, mut wishes: UnboundedReceiver<Wish>) -> Option<SessionId> {
        let mut signals = Signals::new();
        let mut chat = self.open().await;
        loop {
            let wish = tokio::select! {
                wish = wishes.recv() => wish,
                () = signals.next() => {
                    self.aside.tell(Input::Leave);
                    continue;
                }
            };
            match wish {
                None | Some(Wish::Quit) => break,
                Some(Wish::Say(text)) => {
                    let Some(chat) = &mut chat else {
                        self.aside.tell(Input::Over(Over::default()));
                        continue;
                    };
                    self.spoken = true;
                    if !self.say(chat, text, &mut wishes, &mut signals).await {
                        break;
                    }
                }
                Some(Wish::Clear) => {
                    (self.session, self.spoken) = (fresh(), false);
                    chat = self.open().await;
                }
                Some(Wish::Resume(Some(name))) => match resumed(self.aside.app, Some(&name)).await {
                    Ok(session) => {
                        self.session = session;
                        chat = self.open().await;
                    }
                    Err(error) => self.aside.fail(&error),
                },
                Some(Wish::Model(name)) => match model(&name) {
                    Ok(named) => {
                        self.models = vec![named];
                        chat = self.open().await;
                    }
                    Err(error) => self.aside.fail(&error),
                },
                Some(other) => self.aside.wish(other).await,
            }
        }
        self.spoken.then_some(self.session)
    }

    /// Opens the conversation, and shows it.
    async fn open(&mut self) -> Option<Chat<'a>> {
        let who = Who {
            session: self.session.clone(),
            caller: self.aside.app.caller.clone(),
            models: self.models.clone(),
            ..Who::default()
        };
        match Chat::open(&self.aside.app.haft, who).await {
            Ok(chat) => {
                let messages = chat.messages().to_vec();
                self.spoken |= !messages.is_empty();
                self.aside.opened(&self.session, &self.models, messages).await;
                Some(chat)
            }
            Err(error) => {
                self.aside.fail(&error);
                None
            }
        }
    }

    /// Says something, and does meanwhile what is wished. False if somebody leaves.
    async fn say(
        &self,
        chat: &mut Chat<'a>,
        text: String,
        wishes: &mut UnboundedReceiver<Wish>,
        signals: &mut Signals,
    ) -> bool {
        let (halt, aside) = (Halt::new(), &self.aside);
        let (more, meanwhile) = unbounded_channel();
        let door = Door {
            approver: &aside.person,
            halt: &halt,
            origin: Origin::Cli,
            watch: aside.watch(),
            meanwhile: Some(meanwhile),
        };
        let mut saying = pin!(chat.say(vec![Block::Text { text }], door));
        let mut stays = true;
        let mut patience = pin!(farewell(&halt));
        loop {
            tokio::select! {
                ended = &mut saying => {
                    let failed = ended.err().map(|error| said(&error));
                    aside.tell(Input::Over(Over { failed, unsaid: Vec::new() }));
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
                        // Whoever has ended meanwhile hears it with what is said next.
                        let _ = more.send(vec![Block::Text { text }]);
                    }
                    Some(other) => aside.wish(other).await,
                },
                () = signals.next() => aside.tell(Input::Leave),
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

    fn watch(&self) -> Watch {
        let screen = self.screen.clone();
        Arc::new(move |told: &Told| {
            let _ = screen.send(Input::Told(Box::new(told.clone())));
        })
    }

    /// Does what needs no conversation.
    async fn wish(&self, wish: Wish) {
        match wish {
            Wish::Answer(ticket, answer) => self.person.said(ticket, answer),
            Wish::Filled(ticket, written) => self.person.written(ticket, written),
            Wish::Look => self.look().await,
            Wish::Undo(call) => self.undo(call).await,
            Wish::Models => self.models(),
            Wish::Resume(None) => self.talks().await,
            // The rest is for a conversation, and there is none under way.
            _ => {}
        }
    }

    /// Shows a conversation, and what was said in it.
    async fn opened(&self, session: &SessionId, models: &[ModelRef], messages: Vec<Message>) {
        let talk = self.app.store().talk(session).await.ok().flatten();
        let model = models.first().map(ToString::to_string);
        let model = model.or_else(|| talk.map(|talk| talk.model)).unwrap_or_default();
        let messages = Some(messages);
        self.tell(Input::Opened(Opened { session: session.to_string(), model, messages }));
    }

    async fn look(&self) {
        match work::rows(self.app).await {
            Ok(rows) => self.tell(Input::Work(rows)),
            Err(error) => self.tell(Input::Note(Tone::Bad, error.to_string())),
        }
    }

    async fn undo(&self, call: CallId) {
        let undone = self.app.haft.undo(&call).await.map_err(|error| said(&error)).map(|(id, undo)| {
            let files = if undo.files.is_empty() { "nothing had changed".to_owned() } else { undo.files.join(", ") };
            format!("undid {call}: {files}\ntake that back with: haft undo {id}")
        });
        self.tell(Input::Undone(call, undone));
    }

    fn models(&self) {
        self.tell(Input::Note(Tone::Plain, "`haft models` lists the models there are".to_owned()));
    }

    async fn talks(&self) {
        let root = self.app.haft.workspace().root().to_string_lossy().into_owned();
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

//! What a running tool sees of the world: its arguments, the places it may use, and ways to be stopped
//! and to report progress. Nothing else.

use crate::agent::{Active, Agents};
use crate::back::Back;
use crate::browser::Browsers;
use crate::confined::Terms;
use crate::events::{Event, Events, LogLevel, Share};
use crate::finding::Finder;
use crate::halt::Halt;
use crate::judge::executed_files::{ExecutedSnapshot, StartedFile};
use crate::making::Making;
use crate::media::{Attachment, MediaSettings};
use crate::memory::{Memory, Room};
use crate::registry::Catalogue;
use crate::secrets::{Secret, Secrets, Used};
use crate::seen::Seen;
use crate::shelf::{Interpreters, Shelf};
use crate::skills::SkillCatalog;
use crate::task::Desk;
use crate::web::{Way, Web};
use crate::workspace::Workspace;
use haft_core::place::Place;
use haft_core::shape::Limits;
use haft_core::tool::Effect;
use haft_core::{Admitted, Call, CallError, Checked, Facts, ToolName};
use haft_store::Store;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The call that a scene is about, and the facts it was decided on.
#[expect(clippy::struct_excessive_bools, reason = "independent answers of the decision, each asked for by its name")]
pub(crate) struct Basis {
    checked: Checked,
    facts: Facts,
    asked: bool,
    accepts_gaps: bool,
    looks: bool,
    trial: bool,
    /// The files that its command runs, as they were compared with what was approved.
    started: Vec<StartedFile>,
}

impl Basis {
    /// To run a call that was let through.
    pub(crate) fn of(admitted: &Admitted, executed: Option<&ExecutedSnapshot>) -> Arc<Self> {
        let (checked, facts) = (admitted.checked().clone(), admitted.facts().clone());
        let (asked, accepts_gaps, looks) = (admitted.asked(), admitted.accepts_gaps(), admitted.looks());
        let started = executed.map(ExecutedSnapshot::started).unwrap_or_default();
        Arc::new(Self { checked, facts, asked, accepts_gaps, looks, trial: false, started })
    }

    /// To run a call's program on a copy-on-write view, where nothing it does has happened.
    pub(crate) fn trial(checked: &Checked, facts: &Facts) -> Option<Arc<Self>> {
        let layered = facts.hold.as_ref().is_some_and(|hold| hold.gap.is_none());
        let harmless = checked.spec().effects.effect != Effect::Runs || layered;
        (harmless && checked.spec().effects.effect != Effect::Acts).then(|| Self::rehearsed(checked, facts))
    }

    /// To look what a call would do, before anybody lets it through. Only for tools whose running has no
    /// side effects.
    pub(crate) fn look(checked: &Checked, facts: &Facts) -> Option<Arc<Self>> {
        let harmless = matches!(checked.spec().effects.effect, Effect::Reads | Effect::Changes);
        harmless.then(|| Self::rehearsed(checked, facts))
    }

    fn rehearsed(checked: &Checked, facts: &Facts) -> Arc<Self> {
        Arc::new(Self {
            checked: checked.clone(),
            facts: facts.clone(),
            asked: false,
            accepts_gaps: false,
            looks: false,
            trial: true,
            started: Vec::new(),
        })
    }
}

/// A tool's view of one call. Cheap to clone.
#[derive(Clone)]
pub struct Scene {
    basis: Arc<Basis>,
    workspace: Arc<Workspace>,
    terms: Arc<Terms>,
    store: Store,
    events: Events,
    halt: Halt,
    desk: Arc<Desk>,
    catalogue: Catalogue,
    back: Back,
    outward: Outfit,
    used: Used,
}

/// What calls share that reaches beyond this machine or is no text.
#[derive(Clone)]
pub(crate) struct Outfit {
    pub(crate) web: Arc<Web>,
    pub(crate) browsers: Arc<Browsers>,
    pub(crate) media: Arc<MediaSettings>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) room: Room,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) skills: Arc<SkillCatalog>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) interpreters: Arc<Interpreters>,
    pub(crate) making: Arc<Making>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) active: Arc<Active>,
    pub(crate) finder: Arc<Finder>,
}

impl Scene {
    pub(crate) fn new(
        basis: Arc<Basis>,
        (workspace, terms, desk, catalogue, outward): (Arc<Workspace>, Arc<Terms>, Arc<Desk>, Catalogue, Outfit),
        store: Store,
        events: Events,
        halt: Halt,
    ) -> Self {
        Self {
            basis,
            workspace,
            terms,
            store,
            events,
            halt,
            desk,
            catalogue,
            back: Back::default(),
            outward,
            used: Used::default(),
        }
    }

    /// The same with a way to ask back.
    #[must_use]
    pub(crate) fn asking(mut self, back: Back) -> Self {
        self.back = back;
        self
    }

    /// The arguments: canonical, valid, defaults filled.
    pub fn args(&self) -> &Value {
        self.basis.checked.args()
    }

    /// The arguments as a type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        T::deserialize(self.args())
            .map_err(|error| CallError::invalid(format!("the arguments cannot be read: {error}")))
    }

    /// The place that a parameter names, as it was decided upon.
    pub fn place(&self, param: &str) -> Result<&Place, CallError> {
        let places = &self.basis.facts.places;
        places
            .iter()
            .find(|place| place.param == param)
            .ok_or_else(|| CallError::invalid(format!("`{param}` is missing")))
    }

    /// What is known of the shell command that the call runs.
    pub fn shell(&self) -> Option<&haft_core::Shell> {
        self.basis.facts.shell.as_ref()
    }

    /// What the call was decided to do out there.
    pub(crate) fn errand(&self) -> Option<&haft_core::web::Errand> {
        self.basis.facts.web.as_ref()
    }

    /// The call as it came.
    pub fn call(&self) -> &Call {
        self.basis.checked.call()
    }

    /// The declaration that was decided upon. A tool that was replaced since has another.
    pub fn spec(&self) -> &Arc<haft_core::ToolSpec> {
        self.basis.checked.spec()
    }

    /// The tool that is called.
    pub(crate) fn tool(&self) -> &ToolName {
        &self.basis.checked.spec().name
    }

    /// The project and its roots.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// On what terms programs run.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Where tasks in the background are started and found.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Whether this call was let through only because the command provably only reads.
    pub(crate) fn looks(&self) -> bool {
        self.basis.looks
    }

    /// Whether a person was asked about this call and said yes.
    pub fn asked(&self) -> bool {
        self.basis.asked
    }

    /// The files that its command runs, as they were when they were approved.
    pub(crate) fn started_files(&self) -> &[StartedFile] {
        &self.basis.started
    }

    /// Whether somebody said yes and knows that what it changes may not be undone.
    pub(crate) fn accepts_gaps(&self) -> bool {
        self.basis.accepts_gaps
    }

    /// Whether this only looks what the call would do, before anybody lets it through.
    pub(crate) fn is_trial(&self) -> bool {
        self.basis.trial
    }

    /// How the output is cut.
    pub(crate) fn limits(&self) -> Limits {
        self.basis.checked.limits(&self.basis.facts)
    }

    /// The store, for tools that are about haft's own state.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What this session has read.
    pub fn seen(&self) -> Seen<'_> {
        Seen::new(&self.store, &self.call().session)
    }

    /// The call's end before its end.
    pub fn halt(&self) -> &Halt {
        &self.halt
    }

    /// A path as a person would write it.
    pub fn shown(&self, path: &Path) -> String {
        self.workspace.shown(path)
    }

    /// Tells whoever listens how far the work is.
    pub fn progress(&self, message: impl Into<String>) {
        self.report(message, None);
    }

    /// The same, with how much of it is done.
    pub fn report(&self, message: impl Into<String>, done: Option<Share>) {
        let mut message = message.into();
        self.used.mask(&mut message);
        self.events.send_with(|| Event::Progress {
            call_id: self.call().id.clone(),
            session: self.call().session.clone(),
            message,
            done,
        });
    }

    /// Writes to the log of whoever made the call.
    pub fn log(&self, level: LogLevel, logger: Option<String>, mut data: Value) {
        self.used.mask_value(&mut data);
        let (call_id, session) = (self.call().id.clone(), self.call().session.clone());
        self.events.send_with(|| Event::Log { call_id, session, level, logger, data });
    }

    /// Gives the person something that is not text: it is kept, and whoever listens hears of it.
    pub(crate) fn deliver(&self, name: &str, mime: &str, bytes: &[u8]) -> std::io::Result<Attachment> {
        let call = self.call();
        let room = self.terms.kept.make_room(&self.terms.data_dir, bytes.len() as u64);
        room.map_err(|error| std::io::Error::other(error.message))?;
        let attachment = Attachment::keep(&self.terms.data_dir, &call.id, name, mime, bytes)?;
        let (call_id, session) = (call.id.clone(), call.session.clone());
        self.events.send_with(|| Event::Attachment { call_id, session, attachment: attachment.clone() });
        Ok(attachment)
    }

    /// The way to ask the person or the model behind this call. Of use only while the tool runs.
    pub fn back(&self) -> &Back {
        &self.back
    }

    /// The way out to the web, by the rules for this call.
    pub fn way(&self) -> Way<'_> {
        let call = self.call();
        Way {
            web: &self.outward.web,
            store: &self.store,
            call: &call.id,
            session: &call.session,
            caller: &call.caller,
            tool: self.tool(),
            permissions: self.spec().reach.declared.as_ref().map(|declared| &declared.permissions),
        }
    }

    /// What all calls share of the web.
    pub fn web(&self) -> &Arc<Web> {
        &self.outward.web
    }

    /// The browsers of all sessions.
    pub fn browsers(&self) -> &Arc<Browsers> {
        &self.outward.browsers
    }

    /// What media tools go by.
    pub fn media(&self) -> &Arc<MediaSettings> {
        &self.outward.media
    }

    /// What agents know.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.outward.memory
    }

    /// Whose part of that is meant. A person at the command line may look at all of it.
    pub(crate) fn room(&self) -> Room {
        let call = self.call();
        match &self.outward.room {
            Room::Everybodys if call.origin == haft_core::Origin::Cli && call.caller.agent.is_none() => Room::All,
            room => room.clone(),
        }
    }

    /// The tools that are files.
    pub(crate) fn shelf(&self) -> &Arc<Shelf> {
        &self.outward.shelf
    }

    /// The skills there are.
    pub(crate) fn skills(&self) -> &Arc<SkillCatalog> {
        &self.outward.skills
    }

    /// The warm interpreters.
    pub(crate) fn interpreters(&self) -> &Interpreters {
        &self.outward.interpreters
    }

    /// What agents may make.
    pub(crate) fn making(&self) -> &Making {
        &self.outward.making
    }

    /// The agents of this process.
    pub(crate) fn agents(&self) -> &Arc<Agents> {
        &self.outward.agents
    }

    /// The tools that each conversation has found.
    pub fn active(&self) -> &Arc<Active> {
        &self.outward.active
    }

    /// Who finds tools.
    pub(crate) fn finder(&self) -> &Arc<Finder> {
        &self.outward.finder
    }

    /// A secret by its name; none if nobody has it. From then on it is masked in all that this call gives back.
    pub fn secret(&self, name: &str) -> Result<Option<Secret>, CallError> {
        let found = self.outward.secrets.get(name)?;
        found.iter().try_for_each(|secret| self.give(secret))?;
        Ok(found)
    }

    /// The same for several, without holding up others while programs are asked.
    pub(crate) async fn fetch_secrets(&self, names: &[String]) -> Result<Vec<Secret>, CallError> {
        let (secrets, names) = (Arc::clone(&self.outward.secrets), names.to_vec());
        let get = move || names.iter().map(|name| secrets.get(name)).collect::<Result<Vec<_>, _>>();
        let found: Vec<Secret> = crate::tool::off_thread(self.halt.clone(), get).await?.into_iter().flatten().collect();
        found.iter().try_for_each(|secret| self.give(secret))?;
        Ok(found)
    }

    /// Notes a secret that this call gets; it may have been bound to other hosts since the call was decided upon.
    fn give(&self, secret: &Secret) -> Result<(), CallError> {
        self.spec().reach.declared.as_ref().map_or(Ok(()), |declared| secret.may_go_with(declared))?;
        self.used.note(secret);
        Ok(())
    }

    /// The secrets that were asked for.
    pub(crate) fn used(&self) -> &Used {
        &self.used
    }

    /// The tools that there are for this caller.
    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }
}

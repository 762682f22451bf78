//! What agents make to be used later: tools, skills, reflections. Each is proposed, looked at by a person, kept, noted,
//! and can be taken back like any change.

mod audit;

use crate::halt::Halt;
use crate::panics;
use crate::pipeline::{Haft, Stop};
use crate::scene::Basis;
use crate::store_error;
use haft_core::approval::Decider;
use haft_core::manifest::ceiling::Ceiling;
use haft_core::manifest::{Fs, Permissions};
use haft_core::preview::{cut, inert};
use haft_core::record::{Digest, Kind, redact};
use haft_core::{Admitted, Call, CallError, ErrorKind, Origin, Outcome, Pending};
use haft_store::{Caps, Entry, Proposal, Room};
use serde_json::json;
use std::collections::BTreeMap;

/// How many proposals a session may make unless the configuration says otherwise.
pub const PER_SESSION: u32 = 5;
/// How many times as many may wait for a decision in a project: of one agent, and of all. A session and a name are what a
/// caller says they are.
const PER_AGENT: u32 = 2;
const PER_PROJECT: u32 = 4;

/// What agents may make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Making {
    /// The most that a tool may touch. All of them hold: the user's, and what a project lowers.
    pub ceilings: Vec<Ceiling>,
    /// How many proposals a session may make.
    pub per_session: u32,
}

impl Default for Making {
    fn default() -> Self {
        Self { ceilings: vec![usual_ceiling()], per_session: PER_SESSION }
    }
}

/// The most that a tool may touch unless the user says otherwise: it reads the project, and that is all.
pub fn usual_ceiling() -> Ceiling {
    Ceiling { fs: Fs { read: vec![".".to_owned()], write: Vec::new() }, ..Ceiling::default() }
}

/// What a proposal of a tool is.
pub(crate) const TOOL: &str = "tool";
/// What a proposal of a skill is.
pub(crate) const SKILL: &str = "skill";

/// What is proposed, besides its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposed {
    /// `tool`, `skill` or `reflection`.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Of its main file.
    pub digest: Digest,
    /// All of its files, by their paths from its directory.
    pub files: BTreeMap<String, Digest>,
    /// What a tool would be permitted.
    pub permissions: Option<Permissions>,
    /// What whoever is asked reads first.
    pub foreword: String,
}

/// Who makes something, as it is written down.
fn creator(call: &Call) -> String {
    call.caller.agent.as_deref().map_or_else(|| "agent".to_owned(), |agent| cut(&inert(agent), 80))
}

fn caps(session: u32) -> Caps {
    Caps { session, agent: session.saturating_mul(PER_AGENT), project: session.saturating_mul(PER_PROJECT) }
}

/// Why there is no room for one more.
fn too_many(room: Room, caps: Caps) -> Option<CallError> {
    let Caps { session, agent, project } = caps;
    let waits = "`haft approvals` shows what waits; the user decides about it, or raises security.tools_per_session";
    let (message, hint) = match room {
        Room::Noted => return None,
        Room::SessionFull => (
            format!("this session has proposed {session} things already, and may propose no more"),
            "use what there is; the user can raise security.tools_per_session",
        ),
        Room::AgentFull => (format!("{agent} proposals of this agent wait for a decision here already"), waits),
        Room::ProjectFull => (format!("{project} proposals wait for a decision in this project already"), waits),
    };
    Some(CallError::new(ErrorKind::Denied, message).hint(hint))
}

impl Haft {
    /// Notes a proposal before anybody is asked about it. One that would fail is told what is wrong with it, and one too
    /// many is refused: nobody is asked about either.
    pub(crate) async fn propose(&self, pending: &Pending, halt: &Halt) -> Result<(), Stop> {
        let (checked, call) = (pending.checked(), pending.checked().call());
        let stop = |error: CallError| Stop::from(pending.clone().defer(error));
        let entry = self.registry.get(checked.spec().name.as_str());
        let (Some(basis), Some(entry)) = (Basis::look(checked, pending.facts()), entry) else {
            return Err(stop(CallError::internal("a proposal cannot be looked at")));
        };
        let scene = self.scene(basis, &halt.within(checked.spec().timeout));
        let reply = panics::act(entry.tool().as_ref(), &scene).await.map_err(stop)?;
        let Some(proposed) = reply.proposal else { return Ok(()) };
        // What was stored is noted already.
        if call.origin == Origin::Approval {
            return Ok(());
        }
        let proposal = Proposal {
            call: call.id.clone(),
            what: proposed.what,
            name: proposed.name.clone(),
            digest: proposed.digest,
            session: call.session.clone(),
            creator: creator(call),
            permissions: proposed.permissions.as_ref().and_then(|held| serde_json::to_value(held).ok()),
            files: proposed.files.clone(),
        };
        let caps = caps(self.settings.making.per_session);
        let noted = self.store.propose(self.workspace.root(), proposal, caps).await;
        if let Some(error) = too_many(noted.map_err(|error| stop(store_error(error)))?, caps) {
            return Err(stop(error));
        }
        let permissions = proposed.permissions.as_ref();
        // Nobody waits for the file: the record has it.
        let _ = self.audit(&audit::created(proposed.what, &proposed.name, &creator(call), permissions));
        Ok(())
    }

    /// Notes that a person approved what a call proposed. Gives what should be known if that could not be written.
    pub(crate) async fn note_approved(&self, admitted: &Admitted, proposed: &Proposed) -> Vec<String> {
        let (call, by) = (admitted.checked().call(), &admitted.verdict().by);
        let noted = self.store.approve_proposal(&call.id, by).await;
        let unnoted = noted.err().map(|error| format!("that it was approved could not be noted: {error}"));
        unnoted.into_iter().chain(self.audit(&audit::approved(proposed.what, &proposed.name, by))).collect()
    }

    /// Notes that whoever was asked rejected what a call proposed.
    pub(crate) async fn note_rejected(&self, pending: &Pending, by: &Decider) -> Result<(), Stop> {
        let noted = self.store.reject_proposal(&pending.checked().call().id, &by.to_string()).await;
        noted.map_err(|error| pending.clone().defer(store_error(error)).into())
    }

    /// Notes a run of a tool that an agent made.
    pub(crate) async fn note_executed(&self, admitted: &Admitted, outcome: &Outcome) -> Option<String> {
        let checked = admitted.checked();
        checked.spec().reach.declared.as_ref()?;
        let name = checked.spec().name.as_str();
        let maker = self.store.maker_of_accepted(self.workspace.root(), &self.shelf.server(), name).await;
        let creator = match maker {
            Ok(creator) => creator?,
            Err(error) => return Some(format!("whether an agent made it could not be told: {error}")),
        };
        let params = redact(checked.args(), &checked.spec().shapes.input, &checked.spec().reach.bodies);
        let entry = Entry::new(Kind::Made).call(&checked.call().id).with("said", "TOOL_EXECUTED").with("name", name);
        let entry = entry.with("creator", creator).with("success", json!(outcome.success));
        self.store.record_later(entry.with("session", checked.call().session.as_str()));
        self.audit(&audit::executed(name, &params, outcome.success))
    }

    /// Adds a line to the project's own log. Gives what should be known if that could not be done.
    fn audit(&self, line: &str) -> Option<String> {
        let written = audit::append(self.workspace.root(), line);
        written.err().map(|error| format!("{} could not be written: {error}", audit::FILE))
    }
}

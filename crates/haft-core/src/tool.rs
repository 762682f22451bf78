//! The declaration of a tool: everything that listing, validating, deciding and recording need to know
//! about it without running it.

use crate::admit::{Facts, Hold, Shell};
use crate::manifest::Declared;
use crate::name::{BadName, ToolName};
use crate::place::Access;
use crate::shape::Limits;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What running a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it only looks.
    Reads,
    /// It looks, and returns file changes that the runtime applies. Running it is free of side effects,
    /// so its real effect can be shown before anybody approves it, tried, and undone.
    Changes,
    /// It runs a program, confined, on a copy-on-write view where the machine has one: then what it does to
    /// files is returned as changes like those above. Running it costs time, so nobody tries it unasked.
    Runs,
    /// It acts by itself, and cannot be asked what it would do.
    Acts,
}

/// What running a tool does, and how it may be run.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a tool, each declared by name")]
pub struct Effects {
    /// What it does to the world.
    pub effect: Effect,
    /// It may destroy something for good.
    pub destructive: bool,
    /// Twice is as good as once.
    pub idempotent: bool,
    /// It reaches beyond this machine.
    pub open_world: bool,
    /// It may run beside other such tools.
    pub concurrency_safe: bool,
}

/// The shape of what goes in and comes out.
#[derive(Debug, Clone)]
pub struct Shapes {
    /// JSON Schema 2020-12 of the arguments.
    pub input: Value,
    /// JSON Schema 2020-12 of the data that comes back.
    pub output: Option<Value>,
    /// Whether models are held to the schema exactly.
    pub strict: bool,
}

/// A parameter that names a place in the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The parameter.
    pub param: &'static str,
    /// What happens at that place.
    pub access: Access,
    /// The place meant when the parameter is absent.
    pub default: Option<&'static str>,
}

/// Where on the web a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outward {
    /// To the URL in this parameter, by the method in that one; without one it is GET. A call that names no URL goes
    /// to a host that the configuration names.
    Url(&'static str, Option<&'static str>),
    /// To hosts that the configuration names.
    Configured,
    /// Nowhere new: it acts on the page that the session's browser shows.
    Page,
    /// To where the tool itself says, given the arguments.
    Made,
}

/// What a tool may touch.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a tool, each declared by name")]
pub struct Reach {
    /// Parameters that name places. What a call does not name here, it cannot reach.
    pub touches: Vec<Touch>,
    /// Parameters whose values are bodies: recorded as hash and size, never in clear.
    pub bodies: Vec<&'static str>,
    /// The parameter that holds a command for a shell, and the one that holds its words where there are any.
    pub command: Option<(&'static str, Option<&'static str>)>,
    /// Whether it reaches the network.
    pub network: bool,
    /// Where on the web it goes, if it goes there by the guarded way.
    pub web: Option<Outward>,
    /// A parameter and the values of it with which the tool only looks.
    pub only_reads_when: Option<(&'static str, &'static [&'static str])>,
    /// Whether it acts on nothing but what the same session started, so that what it ends is the caller's own.
    pub own_tasks: bool,
    /// Whether it decides where credentials are sent.
    pub credentials: bool,
    /// Whether `secret:NAME` in what it sends stands for a secret.
    pub secrets: bool,
    /// Whether it proposes something that is kept and used later.
    pub proposes: bool,
    /// Whether it is a question by itself, and nothing but a person's answer to it.
    pub asks: bool,
    /// Whether it does nothing but make calls, each of which is decided by itself.
    pub by_parts: bool,
    /// What its manifest declares, if it has one: it may touch nothing else.
    pub declared: Option<Arc<Declared>>,
}

/// How much a mistake with a call would cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing changes.
    Low,
    /// Something changes inside the project and can be undone.
    Medium,
    /// Something changes that cannot be undone, or lies outside the project.
    High,
    /// Credentials or haft's own state are involved.
    Critical,
}

impl Severity {
    /// The severity as one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// The declaration of a tool.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// Its one canonical name.
    pub name: ToolName,
    /// What it does, for models and people.
    pub description: String,
    /// More words by which it should be found.
    pub search_hint: &'static str,
    /// What goes in and comes out.
    pub shapes: Shapes,
    /// What running it does.
    pub effects: Effects,
    /// What it may touch.
    pub reach: Reach,
    /// How long it may take.
    pub timeout: Duration,
    /// How its output is cut.
    pub limits: Limits,
}

impl ToolSpec {
    /// A read-only tool without parameters; the methods below say what differs.
    pub fn new(name: &str, description: impl Into<String>) -> Result<Self, BadName> {
        Ok(Self {
            name: ToolName::new(name)?,
            description: description.into(),
            search_hint: "",
            shapes: Shapes {
                input: json!({"type": "object", "properties": {}, "additionalProperties": false}),
                output: None,
                strict: true,
            },
            effects: Effects {
                effect: Effect::Reads,
                destructive: false,
                idempotent: true,
                open_world: false,
                concurrency_safe: true,
            },
            reach: Reach::default(),
            timeout: Duration::from_secs(30),
            limits: Limits::default(),
        })
    }

    /// The JSON Schema of its arguments.
    #[must_use]
    pub fn input(mut self, schema: Value) -> Self {
        self.shapes.input = schema;
        self
    }

    /// The JSON Schema of the data it gives.
    #[must_use]
    pub fn output(mut self, schema: Value) -> Self {
        self.shapes.output = Some(schema);
        self
    }

    /// More words by which it should be found.
    #[must_use]
    pub fn hint(mut self, words: &'static str) -> Self {
        self.search_hint = words;
        self
    }

    /// It returns file changes for the runtime to apply.
    #[must_use]
    pub fn changes_files(self) -> Self {
        self.effectful(Effect::Changes)
    }

    /// It runs a program, confined.
    #[must_use]
    pub fn runs(self) -> Self {
        self.effectful(Effect::Runs)
    }

    /// It acts by itself.
    #[must_use]
    pub fn acts(self) -> Self {
        self.effectful(Effect::Acts)
    }

    fn effectful(mut self, effect: Effect) -> Self {
        self.effects.effect = effect;
        self.effects.idempotent = false;
        self.effects.concurrency_safe = false;
        self
    }

    /// It may destroy something for good.
    #[must_use]
    pub fn destructive(mut self) -> Self {
        self.effects.destructive = true;
        self
    }

    /// A parameter names a place.
    #[must_use]
    pub fn touches(mut self, param: &'static str, access: Access, default: Option<&'static str>) -> Self {
        self.reach.touches.push(Touch { param, access, default });
        self
    }

    /// A parameter holds a body that must not be recorded in clear.
    #[must_use]
    pub fn body(mut self, param: &'static str) -> Self {
        self.reach.bodies.push(param);
        self
    }

    /// A parameter holds a command for a shell; or, if `words` is given as well, a program and its words.
    #[must_use]
    pub fn command(mut self, param: &'static str, words: Option<&'static str>) -> Self {
        self.reach.command = Some((param, words));
        self
    }

    /// With one of these values of this parameter it only looks.
    #[must_use]
    pub fn only_reads_when(mut self, param: &'static str, values: &'static [&'static str]) -> Self {
        self.reach.only_reads_when = Some((param, values));
        self
    }

    /// It goes out to the web by the guarded way.
    #[must_use]
    pub fn web(mut self, whereto: Outward) -> Self {
        self.reach.web = Some(whereto);
        self.reach.network = true;
        self.effects.open_world = true;
        self
    }

    /// It runs after what was called before it, and before what is called after it.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.effects.concurrency_safe = false;
        self
    }

    /// It acts on nothing but what the same session started.
    #[must_use]
    pub fn on_own_tasks(mut self) -> Self {
        self.reach.own_tasks = true;
        self
    }

    /// It decides where credentials are sent, so that no mistake with it is a small one.
    #[must_use]
    pub fn on_credentials(mut self) -> Self {
        self.reach.credentials = true;
        self
    }

    /// It does nothing but make calls, each of which is decided by itself.
    #[must_use]
    pub fn by_parts(mut self) -> Self {
        self.reach.by_parts = true;
        self
    }

    /// It is a question to a person, whatever lists, grants and levels say.
    #[must_use]
    pub fn asks(mut self) -> Self {
        self.reach.asks = true;
        self
    }

    /// It proposes something that is kept and used later, so that a person looks at each.
    #[must_use]
    pub fn proposes(mut self) -> Self {
        self.reach.proposes = true;
        self
    }

    /// `secret:NAME` in what it sends stands for a secret.
    #[must_use]
    pub fn sends_secrets(mut self) -> Self {
        self.reach.secrets = true;
        self
    }

    /// It is a manifest's, and may touch what that declares.
    #[must_use]
    pub fn declared(mut self, declared: Declared) -> Self {
        self.reach.network = declared.permissions.network.is_any();
        self.effects.open_world |= self.reach.network;
        self.reach.declared = Some(Arc::new(declared));
        self
    }

    /// How its output is cut.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long it may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether it only looks.
    pub fn read_only(&self) -> bool {
        self.effects.effect == Effect::Reads
    }

    /// How much a mistake would cost, at these places and held like this.
    pub fn severity(&self, facts: &Facts) -> Severity {
        let places = &facts.places;
        if self.reach.credentials || places.iter().any(|place| place.sensitive.is_some()) {
            return Severity::Critical;
        }
        let outside = places.iter().any(|place| !place.inside);
        let guarded = !facts.bypasses_guards(self);
        if !outside && facts.web.as_ref().is_some_and(|errand| !errand.writes) {
            return if guarded && facts.web.as_ref().is_some_and(|errand| errand.doubts.is_empty()) {
                Severity::Low
            } else {
                Severity::High
            };
        }
        // Where links lead, only the kernel knows.
        let reads_here = |shell: &Shell| shell.only_reads() && (guarded || !shell.judged.follows);
        match self.effects.effect {
            // What is kept is used later, by whoever.
            Effect::Changes if self.reach.proposes => Severity::High,
            Effect::Reads if !guarded => Severity::High,
            Effect::Reads if outside => Severity::Medium,
            Effect::Reads => Severity::Low,
            Effect::Changes if !outside && !self.effects.destructive => Severity::Medium,
            Effect::Runs if !outside && facts.shell.as_ref().is_some_and(reads_here) => Severity::Low,
            // The kernel keeps it inside the project, and what it does there can be taken back.
            Effect::Runs if !outside && facts.hold.as_ref().is_some_and(Hold::harmless) => Severity::Medium,
            // What it ends was started by the same caller, was decided about then, and can be started again.
            Effect::Acts if self.reach.own_tasks && !outside => Severity::Medium,
            Effect::Changes | Effect::Runs | Effect::Acts => Severity::High,
        }
    }
}

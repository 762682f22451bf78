//! Linux as the warden: namespaces give a program a root, a network and processes of its own; Landlock and
//! seccomp close what these leave open; limits and a watch bound what it uses up. No external program takes
//! part, and neither root nor a set-uid helper is needed.

mod filter;
mod helper;
mod inside;
mod keeper;
mod layout;
mod plan;
mod probe;
mod reporter;
mod root;
mod run;
mod step;
mod sys;
mod talk;
mod temp;
mod usage;
mod wall;

pub use sys::{is_open_for_writing, signals};

use crate::backend::{Backend, Plan, Program, Run, SandboxError, Stdio};
use crate::confinement::{Confinement, Network};
use crate::net::Allowed;
use crate::standing::Machine;
use helper::Helper;
use layout::{Order, Walls};
use std::sync::{LazyLock, OnceLock};
use temp::Temp;

/// The warden of this machine.
pub struct Linux {
    machine: OnceLock<Machine>,
    helper: OnceLock<Helper>,
}

static HERE: LazyLock<Linux> = LazyLock::new(|| Linux { machine: OnceLock::new(), helper: OnceLock::new() });

impl Linux {
    /// There is one for each process.
    pub fn here() -> &'static Self {
        &HERE
    }

    /// Forks the helper that starts programs. A process that will grow large, or have many threads, does
    /// this first; otherwise it happens at the first start.
    pub fn prepare() -> Result<(), SandboxError> {
        Self::here().helper().map(drop)
    }

    /// Takes over what was found out about this machine earlier. Too much trust does no harm: a confinement
    /// that cannot be built is an error, and nothing runs.
    pub fn remember(machine: Machine) {
        // Found out already is as good.
        let _ = Self::here().machine.set(machine);
    }

    /// Looks at the machine anew.
    pub fn look() -> Machine {
        let found = Self::here().helper().and_then(Helper::look);
        found.unwrap_or_else(|error| Machine::bare(error.to_string()))
    }

    fn helper(&self) -> Result<&Helper, SandboxError> {
        if let Some(helper) = self.helper.get() {
            return Ok(helper);
        }
        let started = Helper::start().map_err(SandboxError::step("start the helper"))?;
        // If another thread was quicker, this one hangs up, and its helper ends.
        Ok(self.helper.get_or_init(|| started))
    }
}

impl Backend for Linux {
    fn machine(&self) -> &Machine {
        self.machine.get_or_init(Self::look)
    }

    fn plan(&self, confinement: Confinement) -> Result<Plan, SandboxError> {
        plan::plan(self.machine(), confinement)
    }

    fn start(&self, plan: &Plan, program: &Program, stdio: Stdio) -> Result<Box<dyn Run>, SandboxError> {
        if program.argv.is_empty() {
            return Err(SandboxError::Unclear("there is no program to start".to_owned()));
        }
        let mut layout = plan::layout(self.machine(), plan, program);
        let mut program = program.clone();
        program.env.extend(plan.env.iter().cloned());
        // On a shared root the temporary directory is a real one, and nobody else's.
        let temp = if layout.walls == Walls::Flat { Some(Temp::make()?) } else { None };
        if let Some(temp) = &temp {
            temp.settle_in(&mut layout, &mut program);
        }
        let talk = self.helper()?.give(Order { layout: layout.clone(), program: program.clone() }, &stdio)?;
        let allowed: Allowed = match &plan.confinement.network {
            Network::Hosts(rules) => rules.clone().into(),
            Network::Web(rules) | Network::Named(_, rules) => Allowed::Web(rules.clone(), plan.inside.clone()),
            Network::None | Network::All => Vec::new().into(),
        };
        Ok(Box::new(run::attend(talk, (&layout, &program), (allowed, plan.told.clone()), temp)?))
    }
}

//! What can be typed about work that lasts: `haft pipeline`, `haft session` and `haft worker`.

use super::Asking;
use clap::{Args, Subcommand, ValueEnum};

/// Run, watch and mend pipelines.
#[derive(Debug, Args)]
pub struct PipelineArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<PipelineAction>,
}

/// What to do with pipelines.
#[derive(Debug, Subcommand)]
pub enum PipelineAction {
    /// List the pipelines there are: stored ones, and workflow files.
    List,
    /// List the latest runs.
    Runs {
        /// How many.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Draw a pipeline or a run as a graph, with where each step stands.
    Show {
        /// A run by the beginning of its id, or a pipeline by name or id.
        id: String,
        /// Show it again whenever it changes, until it is over.
        #[arg(long, short)]
        follow: bool,
    },
    /// Run a pipeline, and wait for it.
    Run {
        /// A stored pipeline or a workflow file by name, or the path of a file in .haft/workflows.
        name: String,
        /// Give it a value: NAME=VALUE, as JSON if it is some. May be given several times.
        #[arg(long = "input", short = 'i', value_name = "NAME=VALUE")]
        inputs: Vec<String>,
        /// Do not wait: a worker goes on with it. What it asks waits in the inbox.
        #[arg(long)]
        background: bool,
        /// Say what each step would do and who would decide about it. Nothing is run.
        #[arg(long)]
        dry_run: bool,
        /// How questions are answered.
        #[command(flatten)]
        asking: Asking,
    },
    /// Go on with a run that waits, here, until it is over or waits again.
    Resume {
        /// The run, by the beginning of its id.
        id: String,
        /// How questions are answered.
        #[command(flatten)]
        asking: Asking,
    },
    /// Run again what failed or was skipped in a run.
    Retry {
        /// The run, by the beginning of its id.
        id: String,
        /// How questions are answered.
        #[command(flatten)]
        asking: Asking,
    },
    /// End a run with all that is in it.
    Cancel {
        /// The run, by the beginning of its id.
        id: String,
    },
    /// Say what became of a step of which nobody knows it.
    Settle {
        /// The run, by the beginning of its id.
        id: String,
        /// The step.
        step: String,
        /// What became of it.
        #[arg(value_enum)]
        how: Became,
    },
    /// Forget a stored pipeline.
    Remove {
        /// By name or id.
        name: String,
    },
    /// Look at a plan, and keep it as a pipeline.
    Plan {
        /// YAML or JSON with what pipeline.plan takes: summary, phases, steps. Or - for stdin.
        file: String,
        /// What the pipeline is called [default: what the plan says].
        #[arg(long)]
        name: Option<String>,
        /// How questions are answered.
        #[command(flatten)]
        asking: Asking,
    },
    /// Make a template of the calls of a session that went well.
    Capture {
        /// What it is called.
        name: String,
        /// What it is for.
        #[arg(long)]
        description: Option<String>,
        /// How questions are answered.
        #[command(flatten)]
        asking: Asking,
    },
    /// Make a pipeline of a captured template.
    Promote {
        /// The template, by name or id.
        name: String,
        /// What an input is unless something else is given: NAME=VALUE, as JSON if it is some. May be given several times.
        #[arg(long = "value", value_name = "NAME=VALUE")]
        values: Vec<String>,
        /// How questions are answered.
        #[command(flatten)]
        asking: Asking,
    },
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Became {
    /// It happened.
    Done,
    /// It did not, and is not to.
    Failed,
    /// It did not, and is to be done.
    Again,
}

/// Do the steps of pipelines and tasks, until told to stop.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// What to do [default: work].
    #[command(subcommand)]
    pub action: Option<WorkerAction>,
    /// Something that this worker has, as labels of steps ask for: gpu, region=eu. May be given several times.
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<String>,
    /// How many steps at once.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub slots: u32,
    /// Do the steps of a project that is at another place where they were begun.
    #[arg(long = "for", value_name = "DIR")]
    pub for_root: Option<String>,
}

/// What to do about workers.
#[derive(Debug, Subcommand)]
pub enum WorkerAction {
    /// List the workers that were seen lately.
    List,
}

/// Look at the sessions that haft remembers, or forget one.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<SessionAction>,
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub enum SessionAction {
    /// List them: how many calls each made, and when it was last used.
    List,
    /// Show the latest calls of one.
    Show {
        /// The session.
        id: String,
        /// How many calls.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Forget which files it has read and what it was allowed. The record of its calls stays.
    Delete {
        /// The session.
        id: String,
    },
}

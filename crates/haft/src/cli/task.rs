//! What can be typed about tasks: `haft task`.

use clap::{Args, Subcommand, ValueEnum};

/// Keep what is to be done.
#[derive(Debug, Args)]
pub struct TaskArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<TaskAction>,
}

/// What to do with tasks.
#[derive(Debug, Subcommand)]
pub enum TaskAction {
    /// Keep a new one.
    Add(Box<TaskAdd>),
    /// List those that are open.
    List(TaskList),
    /// Show one, and what came of it.
    Show {
        /// Which; the beginning of its id is enough.
        id: String,
    },
    /// Change one.
    Update(Box<TaskUpdate>),
    /// Complete one, and what is below it.
    Done {
        /// Which.
        id: String,
    },
    /// Cancel one, and what is below it.
    Cancel {
        /// Which.
        id: String,
    },
    /// Run one now, apart from its times, and wait for what comes of it.
    Run {
        /// Which.
        id: String,
        /// Leave it to `haft serve` or `haft worker`.
        #[arg(long)]
        later: bool,
        /// How questions are answered.
        #[command(flatten)]
        asking: super::Asking,
    },
    /// Forget one, what is below it, and what came of them.
    Rm {
        /// Which.
        id: String,
        /// Also if others are below it.
        #[arg(long)]
        all: bool,
    },
    /// Show what came of one, time by time.
    Logs {
        /// Which.
        id: String,
        /// How many of the latest.
        #[arg(long, short = 'n', default_value_t = 20)]
        last: u32,
    },
}

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TaskPriority {
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
    /// More than anything else.
    Urgent,
}

/// What is done about times that were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TaskMissed {
    /// Nothing.
    Skip,
    /// One run for all of them.
    Once,
    /// One run for each, up to 100.
    All,
}

/// Keep a new task.
///
/// Without more it is a note. With --schedule it is run at times, with --watch a page is looked at again and again, with
/// --pipeline a stored pipeline is run. What is due is run by `haft serve` and `haft worker`.
#[derive(Debug, Args)]
pub struct TaskAdd {
    /// What is to be done, in a few words.
    pub title: String,
    /// The same in more words.
    #[arg(long, short = 'd', value_name = "TEXT")]
    pub description: Option<String>,
    /// How much it matters.
    #[arg(long, short = 'p', value_enum)]
    pub priority: Option<TaskPriority>,
    /// When it should be done: today, tomorrow, friday, 'in 3 days', 2030-01-31, 2030-01-31T09:00.
    #[arg(long, value_name = "WHEN")]
    pub due: Option<String>,
    /// A word by which it is found. May be given several times.
    #[arg(long = "tag", short = 't', value_name = "TAG")]
    pub tags: Vec<String>,
    /// The task that it is a part of.
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,
    /// Wherever you are, rather than in this project.
    #[arg(long)]
    pub user: bool,
    /// Whose it is to do.
    #[arg(long, value_name = "NAME")]
    pub assignee: Option<String>,
    /// When it is run: '0 9 * * 1-5', 5m, 'every 2 hours', 'weekdays at 9:00', 'in 2 hours'.
    #[arg(long, value_name = "WHEN")]
    pub schedule: Option<String>,
    /// The time zone of the schedule, like Europe/Vienna [default: UTC].
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// What is done about times that were missed [default: once].
    #[arg(long, value_enum)]
    pub missed: Option<TaskMissed>,
    /// A page to look at: what changes on it is told.
    #[arg(long, value_name = "URL")]
    pub watch: Option<String>,
    /// How often, in minutes [default: 60, at least 5].
    #[arg(long, value_name = "MINUTES", requires = "watch")]
    pub every: Option<f64>,
    /// A stored pipeline to run, by id or name.
    #[arg(long, value_name = "PIPELINE")]
    pub pipeline: Option<String>,
    /// A tool to call.
    #[arg(long, value_name = "TOOL", conflicts_with_all = ["pipeline", "prompt"])]
    pub tool: Option<String>,
    /// What to tell an agent.
    #[arg(long, value_name = "TEXT", conflicts_with = "pipeline")]
    pub prompt: Option<String>,
    /// How often something that is run once is tried again [default: 3].
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// Let it do less than usual by itself: conservative (what writes or runs is asked), standard, or autonomous (what
    /// would be asked is refused).
    #[arg(long, value_name = "LEVEL")]
    pub autonomy: Option<String>,
    /// Run it at once.
    #[arg(long, conflicts_with = "schedule")]
    pub now: bool,
    /// Arguments of the tool, or inputs of the pipeline, as for `haft call`.
    #[arg(value_name = "JSON|@FILE|-|KEY=VALUE")]
    pub args: Vec<String>,
}

/// List tasks.
#[derive(Debug, Args, Default)]
pub struct TaskList {
    /// Only what is due: today, week or overdue.
    #[arg(long, value_name = "today|week|overdue")]
    pub due: Option<String>,
    /// Only those that stand so: pending, `in_progress`, waiting, done, failed, cancelled; or all.
    #[arg(long, short = 's', value_name = "STATUS")]
    pub status: Option<String>,
    /// Only with this tag.
    #[arg(long, short = 't', value_name = "TAG")]
    pub tag: Option<String>,
    /// Only with these words.
    #[arg(long, value_name = "WORDS")]
    pub text: Option<String>,
    /// Only parts of this task.
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,
    /// Only as important.
    #[arg(long, short = 'p', value_enum)]
    pub priority: Option<TaskPriority>,
    /// Of all projects.
    #[arg(long)]
    pub everywhere: bool,
    /// How many at the most.
    #[arg(long, short = 'n', default_value_t = 100)]
    pub limit: u32,
}

/// Change a task.
#[derive(Debug, Args)]
pub struct TaskUpdate {
    /// Which; the beginning of its id is enough.
    pub id: String,
    /// Where it stands: pending, `in_progress`, waiting, done, failed, cancelled.
    #[arg(long, short = 's', value_name = "STATUS")]
    pub status: Option<String>,
    /// How much it matters.
    #[arg(long, short = 'p', value_enum)]
    pub priority: Option<TaskPriority>,
    /// When it should be done; none takes it away.
    #[arg(long, value_name = "WHEN")]
    pub due: Option<String>,
    /// In a few words.
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// In more words; an empty text takes it away.
    #[arg(long, short = 'd', value_name = "TEXT")]
    pub description: Option<String>,
    /// All its tags. May be given several times.
    #[arg(long = "tag", short = 't', value_name = "TAG")]
    pub tags: Vec<String>,
    /// When it is run; none takes it away.
    #[arg(long, value_name = "WHEN")]
    pub schedule: Option<String>,
    /// The time zone of the schedule.
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// What is done about times that were missed.
    #[arg(long, value_enum)]
    pub missed: Option<TaskMissed>,
    /// Whose it is to do; none takes it away.
    #[arg(long, value_name = "NAME")]
    pub assignee: Option<String>,
}

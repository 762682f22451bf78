//! What can be typed about the screen: `haft tui`.

use clap::Args;

/// Converse with a model on a whole screen.
#[derive(Debug, Args)]
pub struct TuiArgs {
    /// What to say first.
    pub prompt: Option<String>,
    /// Go on with a conversation: the latest of this project, or the one that is named.
    #[arg(long, short = 'r', value_name = "SESSION", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    pub resume: Option<String>,
    /// The model to ask, as provider/model [default: as configured].
    #[arg(long, short = 'm', value_name = "MODEL")]
    pub model: Option<String>,
}

//! What can be typed about the screen: `haft tui`.

use clap::Args;

/// Converse with a model on a whole screen.
#[derive(Debug, Args)]
pub struct TuiArgs {
    /// What to say first.
    pub prompt: Option<String>,
    /// Go on with a conversation [default: the latest of this project].
    #[arg(long, value_name = "SESSION", num_args = 0..=1)]
    pub resume: Option<Option<String>>,
    /// The model to ask, as provider/model [default: as configured].
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

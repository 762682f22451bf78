//! What a call gave, in the one form that every door passes on.

use crate::approval::Verdict;
use crate::call::CallId;
use crate::content::ResultContent;
use crate::error::CallError;
use crate::name::ToolName;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where data came from. Labels travel with outcomes so that later calls can be judged by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// Read from a file that lies outside the project.
    Outside,
    /// Read from a place that usually holds credentials.
    Sensitive,
    /// Said by somebody that nobody here vouches for: a bridged server, a web page.
    Untrusted,
    /// The same, and it looks as if it wanted to give orders to whoever reads it.
    Flagged,
}

impl Label {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Sensitive => "sensitive",
            Self::Untrusted => "untrusted",
            Self::Flagged => "flagged",
        }
    }

    /// The label that a word means.
    pub fn read(word: &str) -> Option<Self> {
        [Self::Outside, Self::Sensitive, Self::Untrusted, Self::Flagged]
            .into_iter()
            .find(|label| label.as_str() == word)
    }
}

/// Something that a conversation has heard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Source {
    /// Of what kind it was.
    pub label: Label,
    /// The tool that brought it.
    pub tool: String,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.label.as_str(), self.tool)
    }
}

/// Whether and how a call can be taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Undo {
    /// Whether `haft undo CALL-ID` can restore what was there.
    pub available: bool,
    /// The paths that were changed, as the caller would name them.
    pub files: Vec<String>,
    /// Why it cannot be undone, or what is not covered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The result of one call. The field names are part of the wire contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The call this answers.
    pub call_id: CallId,
    /// The canonical tool, or the spoken name where no tool was found.
    pub tool: String,
    /// Whether the tool did what it was asked to.
    pub success: bool,
    /// Text for the model and the person.
    pub output: String,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// The result as data, where the tool has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The result in parts, where it has any: `output` is then what a reader of text alone sees of them.
    #[serde(default, skip_serializing_if = "ResultContent::is_empty")]
    pub content: ResultContent,
    /// Whether `output` is only a part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Where the whole output is kept when `output` is only a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output: Option<String>,
    /// Things the caller should know that did not make the call fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Where the data came from.
    pub labels: Vec<Label>,
    /// How to take it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// Wall time of the whole path, waiting for a person included.
    pub duration_ms: u64,
    /// Who decided, and why.
    pub verdict: Verdict,
}

impl Outcome {
    /// The outcome of a call that ended before or instead of giving a result.
    pub fn failure(call_id: CallId, tool: impl Into<String>, error: CallError, verdict: Verdict) -> Self {
        Self {
            call_id,
            tool: tool.into(),
            success: false,
            output: String::new(),
            error: Some(error),
            data: None,
            content: ResultContent::default(),
            truncated: false,
            full_output: None,
            warnings: Vec::new(),
            labels: Vec::new(),
            undo: None,
            duration_ms: 0,
            verdict,
        }
    }

    /// The outcome of a tool that ran to its end.
    pub fn success(call_id: CallId, tool: &ToolName, output: impl Into<String>, verdict: Verdict) -> Self {
        let mut outcome = Self::failure(call_id, tool.as_str(), CallError::internal(""), verdict);
        outcome.success = true;
        outcome.error = None;
        outcome.output = output.into();
        outcome
    }

    /// The exit code that the command line promises for this outcome.
    pub fn exit_code(&self) -> u8 {
        self.error.as_ref().map_or(u8::from(!self.success), |error| error.kind.exit_code())
    }
}

//! What is said between an agent and a model, in no provider's own form.

use crate::CallId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a note begins with: words of haft's own about what happened outside the conversation, beside those of a person.
pub const NOTE: &str = "[haft notes: ";

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, and whatever the tools gave.
    User,
    /// The model.
    Assistant,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Words.
    Text {
        /// They.
        text: String,
    },
    /// What the model thought before it spoke. It is given back as it came, or the provider refuses the history.
    Thinking {
        /// What of it may be read.
        text: String,
        /// The provider's own mark on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark: Option<Value>,
    },
    /// A call that the model makes.
    Use {
        /// What its result is told by.
        id: String,
        /// The tool, as the provider was told it.
        name: String,
        /// The arguments. What was no JSON is a string.
        input: Value,
        /// The provider's own mark on it, to be given back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark: Option<Value>,
    },
    /// What came of a call.
    Result {
        /// Which.
        id: String,
        /// What the model is told.
        text: String,
        /// What it is shown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// Whether it went wrong.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
        /// The stored question that is still to be decided, by the call's own id. Providers are not told of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        awaits: Option<CallId>,
    },
    /// A picture.
    Image(Image),
    /// Something that only one provider understands, such as its own search of the web: passed on as it is, and only to it.
    Foreign {
        /// Whose it is.
        provider: String,
        /// It.
        value: Value,
    },
}

/// A picture, as providers take it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// `image/png` and the like.
    pub media_type: String,
    /// In base64.
    pub data: String,
}

/// One side's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Whose.
    pub role: Role,
    /// In order.
    pub blocks: Vec<Block>,
}

impl Block {
    /// What came of a call that nobody has to decide about.
    pub fn result(id: impl Into<String>, text: impl Into<String>, failed: bool) -> Self {
        Self::Result { id: id.into(), text: text.into(), images: Vec::new(), failed, awaits: None }
    }

    /// Whether it is a note of haft's own ([`NOTE`]).
    pub fn is_note(&self) -> bool {
        matches!(self, Self::Text { text } if text.starts_with(NOTE))
    }
}

impl Message {
    /// Words of a person.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, blocks: vec![Block::Text { text: text.into() }] }
    }

    /// The calls in it.
    pub fn uses(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Use { id, name, input, .. } => Some((id.as_str(), name.as_str(), input)),
            _ => None,
        })
    }

    /// The calls that it tells the results of.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Result { id, .. } => Some(id.as_str()),
            _ => None,
        })
    }

    /// Its words alone.
    pub fn text(&self) -> String {
        self.words_of(|_| true)
    }

    /// The same without notes of haft's own.
    pub fn spoken(&self) -> String {
        self.words_of(|block| !block.is_note())
    }

    fn words_of(&self, wanted: impl Fn(&Block) -> bool) -> String {
        let words = self.blocks.iter().filter(|block| wanted(block)).filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }
}

/// What a provider counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, without those below.
    pub input: u64,
    /// Tokens read that the provider still knew.
    pub cache_read: u64,
    /// Tokens read that it will know next time.
    pub cache_write: u64,
    /// Tokens written, thoughts among them.
    pub output: u64,
    /// How many of those were thoughts, where that is told.
    pub thinking: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.thinking += other.thinking;
    }
}

impl Usage {
    /// All that was read.
    pub fn read(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

/// Why a model stopped speaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has said what it wanted to.
    End,
    /// It waits for the results of its calls.
    Calls,
    /// It ran into the limit of what it may write.
    Length,
    /// It, or its provider, will not say more.
    Refused,
    /// It goes on when it is given its own words again.
    Paused,
}

/// A piece of what a model says, as it comes.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// Words, of the block with this number.
    Text(usize, String),
    /// Thoughts.
    Thinking(usize, String),
    /// The provider's mark on a block.
    Mark(usize, Value),
    /// A call begins: its id and its tool.
    Use(usize, String, String),
    /// A piece of its arguments' text.
    Input(usize, String),
    /// A block of a provider's own, whole: whose, and what.
    Foreign(usize, &'static str, Value),
    /// A block is whole.
    Whole(usize),
    /// What was counted so far. The last one counts.
    Usage(Usage),
    /// It stopped.
    Stopped(Stop),
}

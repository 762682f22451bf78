//! What the model says, or how it fails to.

use serde_json::Value;
use std::time::Duration;

/// A part of what it says.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Words.
    Text(String),
    /// Thoughts, with a mark as the provider makes them.
    Thinking(String),
    /// A call: its tool, and the text of its arguments, which may be no JSON.
    Call(String, String),
}

/// What it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Tokens read that it did not know.
    pub input: u64,
    /// Tokens read that it still knew.
    pub cache_read: u64,
    /// Tokens that it will know next time.
    pub cache_write: u64,
    /// Tokens written.
    pub output: u64,
    /// How many of those were thoughts.
    pub thinking: u64,
}

impl Default for Counted {
    fn default() -> Self {
        Self { input: 100, cache_read: 2000, cache_write: 25, output: 50, thinking: 0 }
    }
}

/// Why it does not answer, as each provider says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Too many requests.
    Limited,
    /// Too much to do.
    Overloaded,
    /// The key is wrong.
    BadKey,
    /// The account has no money left.
    NoMoney,
    /// The request is longer than the model takes.
    Overflow,
    /// The model is not there.
    NoModel,
    /// The request is wrong.
    Wrong,
    /// It has broken down.
    Broken,
}

/// What comes in place of words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Instead {
    /// A status, headers and a body.
    Raw(u16, Vec<(String, String)>, String),
    /// A failure in the provider's words, with headers.
    Trouble(Trouble, Vec<(String, String)>),
    /// Nothing at all, for as long as anybody waits.
    Nothing,
}

/// What it answers. It is put together as one speaks: `Reply::say("I look.").call("file_read", …).slow(…)`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    pub(crate) parts: Vec<Part>,
    pub(crate) counted: Counted,
    pub(crate) stop: Option<&'static str>,
    pub(crate) breaks: Option<Trouble>,
    pub(crate) instead: Option<Instead>,
    pub(crate) pace: Duration,
    pub(crate) piece: Option<usize>,
    pub(crate) cut: Option<usize>,
    pub(crate) stall: Option<usize>,
}

impl Reply {
    /// It says something.
    pub fn say(text: impl Into<String>) -> Self {
        Self::default().and_say(text)
    }

    /// It makes a call.
    pub fn call(name: &str, args: Value) -> Self {
        Self::default().and_call(name, args)
    }

    /// It thinks first.
    pub fn think(text: impl Into<String>) -> Self {
        Self::default().and_think(text)
    }

    /// And says something.
    #[must_use]
    pub fn and_say(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// And makes a call.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a script reads better with its JSON in place")]
    pub fn and_call(self, name: &str, args: Value) -> Self {
        self.and_call_raw(name, &args.to_string())
    }

    /// And makes a call whose arguments are any text.
    #[must_use]
    pub fn and_call_raw(mut self, name: &str, arguments: &str) -> Self {
        self.parts.push(Part::Call(name.to_owned(), arguments.to_owned()));
        self
    }

    /// And thinks.
    #[must_use]
    pub fn and_think(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Thinking(text.into()));
        self
    }

    /// It counts this much.
    #[must_use]
    pub fn counted(mut self, counted: Counted) -> Self {
        self.counted = counted;
        self
    }

    /// It ran into the limit of what it may write.
    #[must_use]
    pub fn too_long(mut self) -> Self {
        self.stop = Some("length");
        self
    }

    /// It will not say more.
    #[must_use]
    pub fn refusing(mut self) -> Self {
        self.stop = Some("refusal");
        self
    }

    /// It rests so long before each event.
    #[must_use]
    pub fn slow(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// It is sent in pieces of so many bytes.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize) -> Self {
        self.piece = Some(bytes.max(1));
        self
    }

    /// The connection is cut after so many bytes.
    #[must_use]
    pub fn cut(mut self, bytes: usize) -> Self {
        self.cut = Some(bytes);
        self
    }

    /// Nothing more comes after so many bytes, and the connection stays.
    #[must_use]
    pub fn stall(mut self, bytes: usize) -> Self {
        self.stall = Some(bytes);
        self
    }

    /// After all that, it fails in the middle of the stream.
    #[must_use]
    pub fn and_break(mut self, trouble: Trouble) -> Self {
        self.breaks = Some(trouble);
        self
    }

    /// It fails, in its provider's own words.
    pub fn trouble(trouble: Trouble) -> Self {
        Self { instead: Some(Instead::Trouble(trouble, Vec::new())), ..Self::default() }
    }

    /// The same, with a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(Instead::Raw(_, headers, _) | Instead::Trouble(_, headers)) = &mut self.instead {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Any status with any body.
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self { instead: Some(Instead::Raw(status, Vec::new(), body.into())), ..Self::default() }
    }

    /// A web page, as what stands between sends them.
    pub fn html() -> Self {
        let page = "<!DOCTYPE html>\r\n<html><head><title>502 Bad Gateway</title></head>\
                    <body>\x1b[31m<center><h1>502 Bad Gateway</h1></center></body></html>\r\n";
        Self::status(200, page).header("content-type", "text/html; charset=utf-8")
    }

    /// It takes the request and never answers.
    pub fn hang() -> Self {
        Self { instead: Some(Instead::Nothing), ..Self::default() }
    }
}

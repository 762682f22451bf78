//! Scripts: what is answered when. As a file it is JSON, so that shells can write one.
//!
//! ```json
//! [{"think": "I look.", "say": "I read it.", "calls": [{"name": "file_read", "args": {"path": "a.txt"}}]},
//!  {"when": "words in the request", "say": "As often as they are there."},
//!  {"trouble": "limited", "headers": {"retry-after": "1"}},
//!  {"say": "Done.", "slow_ms": 20}]
//! ```

use crate::reply::{Counted, Reply, Trouble};
use crate::server::Asked;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is answered to a request.
pub type Answers = Box<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// What is answered when.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// In order, each once.
    turns: Vec<Reply>,
    /// To requests in which these words are, as often as they are there.
    when: Vec<(String, Reply)>,
}

/// One answer, as a file has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    when: Option<String>,
    think: Option<String>,
    say: Option<String>,
    calls: Vec<CallLine>,
    usage: Option<UsageLine>,
    stop: Option<StopLine>,
    slow_ms: u64,
    piece: Option<usize>,
    cut: Option<usize>,
    stall: Option<usize>,
    trouble: Option<TroubleLine>,
    breaks: Option<TroubleLine>,
    status: Option<u16>,
    headers: BTreeMap<String, String>,
    body: String,
    html: bool,
    hang: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    name: String,
    #[serde(default)]
    args: Value,
    raw: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct UsageLine {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    thinking: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StopLine {
    Length,
    Refused,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TroubleLine {
    Limited,
    Overloaded,
    BadKey,
    NoMoney,
    Overflow,
    NoModel,
    Wrong,
    Broken,
}

impl From<TroubleLine> for Trouble {
    fn from(line: TroubleLine) -> Self {
        match line {
            TroubleLine::Limited => Self::Limited,
            TroubleLine::Overloaded => Self::Overloaded,
            TroubleLine::BadKey => Self::BadKey,
            TroubleLine::NoMoney => Self::NoMoney,
            TroubleLine::Overflow => Self::Overflow,
            TroubleLine::NoModel => Self::NoModel,
            TroubleLine::Wrong => Self::Wrong,
            TroubleLine::Broken => Self::Broken,
        }
    }
}

impl From<Line> for Reply {
    fn from(line: Line) -> Self {
        let mut reply = match &line {
            Line { hang: true, .. } => Self::hang(),
            Line { html: true, .. } => Self::html(),
            Line { trouble: Some(trouble), .. } => Self::trouble((*trouble).into()),
            Line { status: Some(status), .. } => Self::status(*status, line.body.clone()),
            _ => Self::default(),
        };
        for (name, value) in &line.headers {
            reply = reply.header(name, value);
        }
        reply = line.think.into_iter().fold(reply, Self::and_think);
        reply = line.say.into_iter().fold(reply, Self::and_say);
        for CallLine { name, args, raw } in line.calls {
            let args = if args.is_null() { "{}".to_owned() } else { args.to_string() };
            reply = reply.and_call_raw(&name, &raw.unwrap_or(args));
        }
        if let Some(UsageLine { input, cache_read, cache_write, output, thinking }) = line.usage {
            reply = reply.counted(Counted { input, cache_read, cache_write, output, thinking });
        }
        reply = match line.stop {
            Some(StopLine::Length) => reply.too_long(),
            Some(StopLine::Refused) => reply.refusing(),
            None => reply,
        };
        Self {
            pace: Duration::from_millis(line.slow_ms),
            piece: line.piece,
            cut: line.cut,
            stall: line.stall,
            breaks: line.breaks.map(Trouble::from),
            ..reply
        }
    }
}

impl Script {
    /// These answers, in this order.
    pub fn new(turns: Vec<Reply>) -> Self {
        Self { turns, when: Vec::new() }
    }

    /// Reads one.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let lines: Vec<Line> = serde_json::from_str(text)?;
        let mut script = Self::default();
        for mut line in lines {
            match line.when.take() {
                Some(words) => script.when.push((words, line.into())),
                None => script.turns.push(line.into()),
            }
        }
        Ok(script)
    }

    /// What it answers. Words that are met go before what is next.
    pub fn answers(self) -> Answers {
        let next = Mutex::new(self.turns.into_iter());
        let when = self.when;
        Box::new(move |asked| {
            if let Some((_, reply)) = when.iter().find(|(words, _)| asked.says(words)) {
                return reply.clone();
            }
            let turn = next.lock().unwrap_or_else(PoisonError::into_inner).next();
            turn.unwrap_or_else(|| Reply::say("The script is over."))
        })
    }
}

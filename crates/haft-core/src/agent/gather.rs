//! Putting a message together from what a model says as it comes.

use super::talk::{Block, Delta, Message, Role, Stop, Usage};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A message that is still being said.
#[derive(Debug, Default)]
pub struct Gather {
    parts: BTreeMap<usize, Part>,
    usage: Usage,
    stop: Option<Stop>,
}

#[derive(Debug)]
struct Part {
    said: Said,
    whole: bool,
}

#[derive(Debug)]
enum Said {
    Text(String),
    Thinking { text: String, mark: Option<Value> },
    Use { id: String, name: String, input: String, mark: Option<Value> },
    Foreign(&'static str, Value),
}

impl Gather {
    /// Takes a piece. Gives the call that is whole with it.
    pub fn take(&mut self, delta: Delta) -> Option<Block> {
        match delta {
            Delta::Text(at, more) => match self.part(at, || Said::Text(String::new())) {
                Said::Text(text) => text.push_str(&more),
                _ => return None,
            },
            Delta::Thinking(at, more) => match self.part(at, thought) {
                Said::Thinking { text, .. } => text.push_str(&more),
                _ => return None,
            },
            Delta::Mark(at, made) => match self.part(at, thought) {
                Said::Thinking { mark, .. } | Said::Use { mark, .. } => *mark = Some(made),
                _ => return None,
            },
            Delta::Use(at, id, name) => {
                let said = Said::Use { id, name, input: String::new(), mark: None };
                self.parts.entry(at).or_insert(Part { said, whole: false });
            }
            Delta::Input(at, more) => {
                if let Some(Part { said: Said::Use { input, .. }, .. }) = self.parts.get_mut(&at) {
                    input.push_str(&more);
                }
            }
            Delta::Foreign(at, provider, value) => {
                self.parts.insert(at, Part { said: Said::Foreign(provider, value), whole: true });
            }
            Delta::Whole(at) => {
                let part = self.parts.get_mut(&at)?;
                let new = !std::mem::replace(&mut part.whole, true);
                return (new && matches!(part.said, Said::Use { .. })).then(|| block(&part.said)).flatten();
            }
            Delta::Usage(usage) => self.usage = usage,
            Delta::Stopped(stop) => self.stop = Some(stop),
        }
        None
    }

    fn part(&mut self, at: usize, new: impl FnOnce() -> Said) -> &mut Said {
        &mut self.parts.entry(at).or_insert_with(|| Part { said: new(), whole: false }).said
    }

    /// Whether a call has this id.
    pub fn has(&self, id: &str) -> bool {
        self.parts.values().any(|part| matches!(&part.said, Said::Use { id: known, .. } if known == id))
    }

    /// What was counted.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Why it stopped, if it has.
    pub fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// The message as far as it goes. A call of which something is missing is not in it: nobody has made it.
    pub fn message(&self) -> Message {
        let whole = self.parts.values().filter(|part| part.whole || !matches!(part.said, Said::Use { .. }));
        Message { role: Role::Assistant, blocks: whole.filter_map(|part| block(&part.said)).collect() }
    }
}

fn thought() -> Said {
    Said::Thinking { text: String::new(), mark: None }
}

/// A part as a block. Nothing said is none.
fn block(said: &Said) -> Option<Block> {
    match said {
        Said::Text(text) => (!text.is_empty()).then(|| Block::Text { text: text.clone() }),
        Said::Thinking { text, mark } => {
            let said = !text.is_empty() || mark.is_some();
            said.then(|| Block::Thinking { text: text.clone(), mark: mark.clone() })
        }
        Said::Use { id, name, input, mark } => {
            Some(Block::Use { id: id.clone(), name: name.clone(), input: read(input), mark: mark.clone() })
        }
        Said::Foreign(provider, value) => {
            Some(Block::Foreign { provider: (*provider).to_owned(), value: value.clone() })
        }
    }
}

/// Arguments. None at all are an empty object; what is no JSON is kept as it was said, and no tool takes that.
fn read(input: &str) -> Value {
    if input.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(input).unwrap_or_else(|_| Value::String(input.to_owned()))
}

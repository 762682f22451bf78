//! From YAML to a value, and back from a part of the value to the line and column where it was written.
//!
//! A good manifest is parsed once, without places. They are made when something is wrong and has to be pointed at.
//! Whatever the text is, reading it takes bounded time and memory: its size, its nesting, its aliases and what they
//! unfold to are all limited before they are followed.

mod places;
mod words;

use super::flaw::Flaw;
pub(super) use places::Places;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::MergeKeyPolicy;
use serde_saphyr::{Budget, Options};
use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;

/// The most that a manifest may hold, in bytes.
pub const MAX_BYTES: usize = 256 << 10;
/// The most that it may be once its aliases are unfolded, in bytes and about that for each value.
const UNFOLDED_MAX: usize = 4 * MAX_BYTES;
/// How often a manifest may repeat a part of itself.
const ALIASES_MAX: usize = 64;
/// How many parts it may have.
const NODES_MAX: usize = 50_000;
/// How many of them aliases may make.
const REPLAYED_MAX: usize = 10_000;
/// How deep it may go.
const DEPTH_MAX: usize = 64;
/// What a value costs beyond its text.
const EACH: usize = 8;

/// A manifest as it was written, to point at its parts.
#[derive(Debug, Default)]
pub struct Written<'t> {
    /// None if it was never text: then nothing has a place.
    text: Option<&'t str>,
    places: OnceLock<Places>,
}

impl<'t> Written<'t> {
    /// A text.
    pub fn new(text: &'t str) -> Self {
        Self { text: Some(text), places: OnceLock::new() }
    }

    /// The line and column of what a pointer leads to: of its key if it has one, of the nearest part around it if there
    /// is no such thing. Zero where there is no text.
    pub fn place(&self, pointer: &str) -> (u64, u64) {
        if self.text.is_none() { (0, 0) } else { self.places().near(pointer) }
    }

    /// The same for a flaw.
    pub(super) fn placed(&self, flaw: Flaw) -> Flaw {
        let place = self.place(&flaw.pointer);
        flaw.at(place)
    }

    /// Every place, found once.
    pub(crate) fn places(&self) -> &Places {
        self.places.get_or_init(|| Places::of(self.text.unwrap_or_default()))
    }
}

/// What a text says.
pub fn parse(text: &str) -> Result<Value, Flaw> {
    if text.len() > MAX_BYTES {
        let message = format!("it is larger than {} KiB, and a manifest may not be", MAX_BYTES >> 10);
        return Err(Flaw::error("yaml", "", message).at((1, 1)));
    }
    let left = Cell::new(UNFOLDED_MAX);
    let value = serde_saphyr::with_deserializer_from_str_with_options(text, bounded(), |deserializer| {
        Any(&left).deserialize(deserializer)
    })
    .map_err(|error| words::reworded(error, text))?;
    // The parser follows YAML's own tags, and would make a number of what looks like text.
    let tagged = if may_be_tagged(text) { Places::of(text).tagged() } else { None };
    match tagged {
        Some(place) => Err(Flaw::error("yaml", "", words::TAGGED).at(place)),
        None => Ok(value),
    }
}

/// Whether something begins with `!`. What does is text more often than a tag, and that takes a closer look.
fn may_be_tagged(text: &str) -> bool {
    let begins = |at: usize| {
        at == 0 || matches!(text.as_bytes()[at - 1], b' ' | b'\t' | b'\r' | b'\n' | b'[' | b'{' | b',' | b':')
    };
    // Of a document that begins with a mark of its byte order, the first letter stands behind it.
    text.starts_with("\u{feff}!") || text.match_indices('!').any(|(at, _)| begins(at))
}

/// YAML 1.2 with nothing in it that surprises: only `true` and `false` are truth values, so that `no` and `y` stay the
/// text that they are.
pub(super) fn bounded() -> Options {
    let mut budget = Budget::default();
    budget.max_aliases = ALIASES_MAX;
    budget.max_anchors = ALIASES_MAX;
    budget.max_depth = DEPTH_MAX;
    budget.max_nodes = NODES_MAX;
    budget.max_events = 2 * NODES_MAX;
    budget.max_recorded_anchor_events = REPLAYED_MAX;
    budget.max_recorded_anchor_bytes = UNFOLDED_MAX;
    budget.max_total_scalar_bytes = UNFOLDED_MAX;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = REPLAYED_MAX;
    options.merge_keys = MergeKeyPolicy::Error;
    options.strict_booleans = true;
    options.reject_unsupported_tags = true;
    options.with_snippet = false;
    options
}

/// Any value, as long as there is room for it.
#[derive(Clone, Copy)]
struct Any<'l>(&'l Cell<usize>);

impl Any<'_> {
    fn take<E: serde::de::Error>(self, bytes: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(bytes + EACH);
        self.0.set(left.ok_or_else(|| E::custom(words::TOO_MUCH))?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.take(0).map(|()| Value::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.take(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.take(0).map(|()| Value::from(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.take(0).map(|()| Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.take(0)?;
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom(words::NOT_FINITE))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.take(text.len()).map(|()| Value::from(text))
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Value, E> {
        self.take(text.len()).map(|()| Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.take(0)?;
        let mut found = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            found.push(item);
        }
        Ok(Value::Array(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.take(0)?;
        let mut found = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.take(key.len())?;
            let value = entries.next_value_seed(self)?;
            // Two spellings of one key, as in `5` and `"5"`, are two keys to the parser.
            if found.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is given twice"));
            }
        }
        Ok(Value::Object(found))
    }
}

#[cfg(test)]
mod tests;

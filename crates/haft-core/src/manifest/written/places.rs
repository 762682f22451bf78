//! Where each key and value stands, by JSON pointer.

use super::super::flaw::escape;
use super::bounded;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned, Tagged};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// Where every key and value of a text stands.
#[derive(Debug, Default)]
pub(crate) struct Places {
    spots: HashMap<String, Spot>,
    /// The first thing that has a tag.
    tagged: Option<(u64, u64)>,
}

/// Where one value stands, and its key if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Line and column of its key.
    pub(crate) key: Option<(u64, u64)>,
    /// Line and column of itself.
    pub(crate) value: (u64, u64),
    /// The bytes of its text, if it is one piece that stands here alone.
    pub(crate) bytes: Option<Range<usize>>,
}

impl Places {
    /// The places in a text. None if it cannot be read.
    pub(super) fn of(text: &str) -> Self {
        let mut places = Self::default();
        if let Ok(root) = serde_saphyr::from_str_with_options::<Placed>(text, bounded()) {
            places.note(String::new(), None, &root);
        }
        places
    }

    /// Where something stands.
    pub(crate) fn get(&self, pointer: &str) -> Option<&Spot> {
        self.spots.get(pointer)
    }

    /// The line and column of something, or of the nearest part around it.
    pub(super) fn near(&self, pointer: &str) -> (u64, u64) {
        let mut pointer = pointer;
        loop {
            if let Some(spot) = self.spots.get(pointer) {
                return spot.key.unwrap_or(spot.value);
            }
            match pointer.rfind('/') {
                Some(end) => pointer = &pointer[..end],
                None => return (1, 1),
            }
        }
    }

    /// The first thing that says of itself what type it has.
    pub(super) fn tagged(&self) -> Option<(u64, u64)> {
        self.tagged
    }

    fn note(&mut self, pointer: String, key: Option<(u64, u64)>, node: &Placed) {
        let Tagged(kind, tag) = &node.value;
        if tag.is_some() {
            self.tagged.get_or_insert(spot(node.referenced));
        }
        match kind {
            Node::Leaf => {}
            Node::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.note(format!("{pointer}/{index}"), None, item);
                }
            }
            Node::Map(entries) => {
                for (key, value) in entries {
                    let (Tagged(name, tag), at) = (&key.value, spot(key.referenced));
                    if tag.is_some() {
                        self.tagged.get_or_insert(at);
                    }
                    self.note(format!("{pointer}/{}", escape(name)), Some(at), value);
                }
            }
        }
        let alone = matches!(kind, Node::Leaf) && node.referenced == node.defined;
        let bytes = alone.then(|| bytes(node.defined)).flatten();
        self.spots.insert(pointer, Spot { key, value: spot(node.referenced), bytes });
    }
}

fn spot(at: Location) -> (u64, u64) {
    (at.line().max(1), at.column().max(1))
}

fn bytes(at: Location) -> Option<Range<usize>> {
    let begin = usize::try_from(at.span().byte_offset()?).ok()?;
    let len = usize::try_from(at.span().byte_len()?).ok()?;
    Some(begin..begin.checked_add(len)?)
}

/// A value, where it stands, and its tag.
type Placed = Spanned<Tagged<Node>>;

/// The skeleton of a value: what has places, without what it says.
#[derive(Debug)]
enum Node {
    Leaf,
    List(Vec<Placed>),
    Map(Vec<(Spanned<Tagged<String>>, Placed)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Skeleton)
    }
}

struct Skeleton;

impl<'de> Visitor<'de> for Skeleton {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = items.next_element()? {
            found.push(item);
        }
        Ok(Node::List(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut found = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            found.push(entry);
        }
        Ok(Node::Map(found))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Node::Leaf)
    }
}

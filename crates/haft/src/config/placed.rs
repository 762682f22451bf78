//! Values that remember where they were written, so that an error found much later can still point there.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_saphyr::Spanned;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Where something was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// In a file. Lines and columns count from 1.
    File {
        /// The file, as shown to people. Empty until the file that was parsed is known.
        file: Arc<str>,
        /// The line.
        line: u64,
        /// The column.
        column: u64,
    },
    /// In an environment variable.
    Variable(&'static str),
    /// In a flag.
    Flag(&'static str),
    /// In haft itself.
    BuiltIn,
}

impl Spot {
    /// A place in a file.
    pub fn in_file(file: &Arc<str>, line: u64, column: u64) -> Self {
        Self::File { file: Arc::clone(file), line, column }
    }

    /// Names the file. The parser knows lines and columns, but not what it is parsing.
    pub(super) fn set_file(&mut self, name: &Arc<str>) {
        if let Self::File { file, .. } = self {
            *file = Arc::clone(name);
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
            Self::BuiltIn => f.write_str("built in"),
        }
    }
}

/// A value and where it was written. Equality and order look at the value alone.
#[derive(Debug, Clone)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub spot: Spot,
}

/// A word and where it was written.
pub type Text = Placed<String>;

impl<T> Placed<T> {
    /// A value from somewhere.
    pub fn new(value: impl Into<T>, spot: Spot) -> Self {
        Self { value: value.into(), spot }
    }
}

impl Text {
    /// The word.
    pub fn as_str(&self) -> &str {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Placed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Placed<T> {}

impl<T: PartialOrd> PartialOrd for Placed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
}

impl<T: Ord> Ord for Placed<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Placed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        let (line, column) = (spanned.referenced.line(), spanned.referenced.column());
        Ok(Self { value: spanned.value, spot: Spot::File { file: Arc::from(""), line, column } })
    }
}

impl<T: Serialize> Serialize for Placed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Placed<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

//! One word of a command, as far as it is known before the command runs.

use serde::Serialize;

/// What is known of a word's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Exactly this.
    Known(String),
    /// The names that match this pattern; a backslash quotes.
    Glob(String),
    /// Any number of names of things in these directories.
    Below {
        /// The directories, as they were said.
        bases: Vec<String>,
        /// Whether none of them can pass for an option: each begins with a directory, and is one word.
        safe: bool,
    },
    /// A whole number.
    Number,
    /// It begins like this, and the rest is not known.
    Partial {
        /// How it begins.
        start: String,
        /// Whether it may turn out to be no word, or many.
        splits: bool,
    },
}

impl Value {
    /// Something of which nothing is known.
    pub const fn unknown(splits: bool) -> Self {
        Self::Partial { start: String::new(), splits }
    }
}

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As it was written.
    pub text: String,
    /// What is known of it.
    pub value: Value,
}

impl Serialize for Word {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

impl Word {
    /// A word whose value is what is written.
    pub fn known(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { value: Value::Known(text.clone()), text }
    }

    /// A word of which nothing is known.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: Value::unknown(true) }
    }

    /// Its value, if that is known.
    pub fn literal(&self) -> Option<&str> {
        match &self.value {
            Value::Known(text) => Some(text),
            _ => None,
        }
    }

    /// Its value where that is known, else how it was written.
    pub fn shown(&self) -> &str {
        self.literal().unwrap_or(&self.text)
    }

    /// How its value certainly begins.
    pub fn start(&self) -> &str {
        match &self.value {
            Value::Known(text) => text,
            Value::Glob(pattern) => {
                let end = pattern.find(['*', '?', '[', '\\', '(', '{']).unwrap_or(pattern.len());
                &pattern[..end]
            }
            Value::Partial { start, .. } => start,
            Value::Below { .. } | Value::Number => "",
        }
    }

    /// Whether it may turn out to be no word, or many.
    pub fn splits(&self) -> bool {
        match &self.value {
            Value::Known(_) | Value::Number => false,
            Value::Glob(_) | Value::Below { .. } => true,
            Value::Partial { splits, .. } => *splits,
        }
    }

    /// Whether a program could take it for an option although it is not known to be one.
    pub fn may_be_option(&self) -> bool {
        match &self.value {
            Value::Known(_) => false,
            Value::Below { safe, .. } => !safe,
            // What follows a word that splits is not known to begin like it.
            Value::Number | Value::Partial { splits: true, .. } => true,
            Value::Partial { start, splits: false } => start.is_empty() || start.starts_with('-'),
            Value::Glob(_) => matches!(self.start().chars().next(), None | Some('-')),
        }
    }
}

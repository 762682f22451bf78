//! What a tool is found by: its texts, by field.

use crate::dialect::Dialect;
use crate::memory::spelled;
use crate::tool::ToolSpec;
use serde_json::Value;

/// How many fields there are.
pub(super) const FIELDS: usize = 5;
/// The numbers of the fields, in the order of `Card::fields`.
pub(super) const NAME: usize = 0;

/// No field is looked at beyond this, in bytes: a server may say as much as it likes.
const FIELD_MAX: usize = 4096;
/// No more parameters of a tool are looked at.
const PARAMS_MAX: usize = 64;
/// So much of what is said about one parameter, in bytes.
const PARAM_MAX: usize = 240;

/// The texts of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// What other dialects call it.
    pub aliases: Vec<String>,
    /// More words by which it wants to be found.
    pub hint: String,
    /// What it does.
    pub description: String,
    /// Its parameters, what is said about them, and examples.
    pub params: String,
}

impl Card {
    /// The card of a declaration.
    pub fn of(spec: &ToolSpec) -> Self {
        let name = spec.name.as_str();
        let bridged = name.contains(':');
        let spoken = Dialect::ALL.into_iter().filter(|_| !bridged).flat_map(Dialect::entries);
        let mut aliases: Vec<String> =
            spoken.filter(|said| said.canonical() == name).map(|said| said.spoken().to_owned()).collect();
        aliases.sort_unstable();
        aliases.dedup();
        Self {
            name: name.to_owned(),
            aliases,
            hint: spec.search_hint.to_owned(),
            description: start(&spec.description, FIELD_MAX).to_owned(),
            params: params(&spec.shapes.input),
        }
    }

    /// The fields in order.
    pub(super) fn fields(&self) -> [String; FIELDS] {
        // As one word, too: `file.read` is also asked for as `fileread` and `file_read`.
        let name = format!("{} {}", self.name.replace([':', '-'], " ").replace('.', "_"), tail(&self.name));
        [name, self.aliases.join(" "), self.hint.clone(), self.description.clone(), self.params.clone()]
    }

    /// What its meaning is made of. Its name says most, in the fewest words.
    pub fn meaning(&self) -> String {
        let mut name = String::new();
        spelled(&self.name.replace(['.', ':', '-'], "_").replace("mcp_", ""), |word, _| {
            name.push_str(word);
            name.push(' ');
        });
        // The first word is all of it in one.
        let parts = name.split_once(' ').map_or("", |(_, parts)| parts);
        format!("{} {} {}", if parts.is_empty() { &name } else { parts }, self.hint, start(&self.description, 600))
    }
}

/// What a tool is called where it comes from.
pub(super) fn tail(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// A name without what separates its words.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn start(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn params(input: &Value) -> String {
    let mut text = String::new();
    for (name, property) in input["properties"].as_object().into_iter().flatten().take(PARAMS_MAX) {
        let said = property["description"].as_str().unwrap_or_default();
        let options = property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).take(16);
        for part in [name.as_str(), start(said, PARAM_MAX)].into_iter().chain(options) {
            text.push_str(start(part, PARAM_MAX));
            text.push(' ');
        }
    }
    for example in input["examples"].as_array().into_iter().flatten().take(8) {
        text.push_str(start(&example.to_string(), PARAM_MAX));
        text.push(' ');
    }
    text.truncate(text.floor_char_boundary(FIELD_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_card_has_what_a_declaration_says() {
        let spec = ToolSpec::new("file.read", "Reads a file.").unwrap().hint("cat").input(json!({"properties": {
            "path": {"description": "Where it is."}, "mode": {"enum": ["text", "hex"]}}, "examples": [{"path": "a"}]}));
        let card = Card::of(&spec);
        assert!(card.aliases.contains(&"Read".to_owned()), "{:?}", card.aliases);
        for part in ["mode  text hex ", "path Where it is. ", "{\"path\":\"a\"} "] {
            assert!(card.params.contains(part), "{part:?} in {:?}", card.params);
        }
        assert_eq!(card.meaning(), "file read  cat Reads a file.");
        assert_eq!((plain("Web.search-2"), tail("mcp:a:b_c")), ("websearch2".to_owned(), "b_c"));
    }

    #[test]
    fn what_is_said_at_length_is_cut() {
        let long = "é".repeat(100_000);
        let many: serde_json::Map<String, Value> =
            (0..1000).map(|n| (format!("p{n}"), json!({"description": long}))).collect();
        let spec = ToolSpec::new("a", long.clone()).unwrap().input(json!({"properties": many}));
        let card = Card::of(&spec);
        assert!(card.description.len() <= FIELD_MAX && card.params.len() <= FIELD_MAX);
    }
}

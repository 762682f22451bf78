//! Agent files: a role as YAML, `.haft/agents/NAME.yml`. The name is the file's.
//!
//! ```yaml
//! description: Finds out how something works
//! prompt: You look, and change nothing.
//! tools: ["file.read", "file.grep"]   # absent: all that its parent has
//! deny: ["shell.*"]
//! model: anthropic/claude-sonnet-4-5
//! effort: low
//! max_turns: 20
//! autonomous: true
//! ```

use super::wire::Effort;
use crate::manifest::written::{self, Written};
use crate::pattern::ToolPattern;
use crate::work::Fault;
use crate::work::file::Misfit;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The keys of a file.
const KEYS: [&str; 8] = ["description", "prompt", "tools", "deny", "model", "effort", "max_turns", "autonomous"];
/// How much may be said.
const DESCRIPTION_MAX: usize = 2000;
const PROMPT_MAX: usize = 64 << 10;
const PATTERNS_MAX: usize = 200;
const TURNS_MAX: u64 = 10_000;
/// How long a name may be.
const NAME_MAX: usize = 64;

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentFile {
    /// When to use it.
    pub description: String,
    /// What it is told of itself.
    pub prompt: String,
    /// The tools it may use, as patterns; none means all that its parent has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The tools it may not use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// The model, as `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard that thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// How often it is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Whether it asks nobody: what would be asked is refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub autonomous: bool,
}

/// Reads a file. `name` is its own, without the ending. All that is wrong is said, with its place.
pub fn read(text: &str, name: &str) -> Result<AgentFile, Vec<Misfit>> {
    let one = |line, column, at: &str, what: &str| Misfit {
        line,
        column,
        fault: Fault { at: at.to_owned(), what: what.to_owned() },
    };
    let value = written::parse(text).map_err(|flaw| vec![one(flaw.line, flaw.column, "", &flaw.message)])?;
    if !is_name(name) {
        let what = "an agent's file is named with lower case letters, digits, - and _, and begins with a letter";
        return Err(vec![one(1, 1, "", what)]);
    }
    let written = Written::new(text);
    let faults = faults(&value);
    if faults.is_empty() {
        let file = serde_json::from_value(value);
        return file.map_err(|error| vec![one(1, 1, "", &error.to_string())]);
    }
    let misfit = |fault: Fault| {
        let pointer: String =
            fault.at.split('.').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect();
        let (line, column) = written.place(&pointer);
        Misfit { line, column, fault }
    };
    Err(faults.into_iter().map(misfit).collect())
}

/// Whether something can be an agent's name. A child is called `parent/child`, so neither has a slash.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    (1..=NAME_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(plain)
}

fn faults(value: &Value) -> Vec<Fault> {
    let Some(said) = value.as_object() else {
        return vec![Fault { at: String::new(), what: "an agent's file is a mapping of keys".to_owned() }];
    };
    let mut faults = Vec::new();
    let mut wrong = |at: &str, what: String| faults.push(Fault { at: at.to_owned(), what });
    for (key, value) in said {
        match key.as_str() {
            "description" => text(value, DESCRIPTION_MAX).map_or_else(|why| wrong(key, why), drop),
            "prompt" => text(value, PROMPT_MAX).map_or_else(|why| wrong(key, why), drop),
            "tools" | "deny" => patterns(key, value, &mut wrong),
            "model" if !value.as_str().is_some_and(is_model) => {
                wrong(key, "a model is said as `provider/model`, as `haft models` does".to_owned());
            }
            "effort" if Effort::deserialize(value).is_err() => {
                wrong(key, "it is off, low, medium, high or max".to_owned());
            }
            "max_turns" if !value.as_u64().is_some_and(|turns| (1..=TURNS_MAX).contains(&turns)) => {
                wrong(key, format!("it is a whole number from 1 to {TURNS_MAX}"));
            }
            "autonomous" if !value.is_boolean() => wrong(key, "it is true or false".to_owned()),
            known if KEYS.contains(&known) => {}
            other => {
                let near = crate::suggest::did_you_mean(other, KEYS);
                let known = || format!("known are {}", KEYS.join(", "));
                wrong(key, format!("there is no such key; {}", near.unwrap_or_else(known)));
            }
        }
    }
    for needed in ["description", "prompt"] {
        if !said.contains_key(needed) {
            wrong("", format!("`{needed}` is missing"));
        }
    }
    faults
}

fn text(value: &Value, max: usize) -> Result<(), String> {
    match value.as_str() {
        Some(text) if text.trim().is_empty() => Err("it is empty".to_owned()),
        Some(text) if text.len() > max => Err(format!("it has more than {max} bytes")),
        Some(_) => Ok(()),
        None => Err("it is a text".to_owned()),
    }
}

fn patterns(key: &str, value: &Value, wrong: &mut impl FnMut(&str, String)) {
    let Some(list) = value.as_array().filter(|list| list.len() <= PATTERNS_MAX) else {
        return wrong(key, format!("it is a list of at most {PATTERNS_MAX} patterns for tools, like `file.*`"));
    };
    for (at, item) in list.iter().enumerate() {
        let place = format!("{key}.{at}");
        match item.as_str().map(ToolPattern::new) {
            None => wrong(&place, "it is a pattern for tools, like `file.*`".to_owned()),
            Some(Err(error)) => wrong(&place, error.to_string()),
            Some(Ok(_)) => {}
        }
    }
}

fn is_model(text: &str) -> bool {
    let fine = |part: &str| !part.is_empty() && part.chars().all(|c| !c.is_control() && !c.is_whitespace());
    text.split_once('/').is_some_and(|(provider, model)| fine(provider) && fine(model))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let misfits = read(text, "x").unwrap_err();
        misfits.iter().map(|misfit| format!("{}:{}: {}", misfit.line, misfit.column, misfit.fault)).collect()
    }

    #[test]
    fn a_file_says_what_an_agent_is() {
        let text = "description: Looks\nprompt: |\n  You look.\n  You change nothing.\ntools: [file.read, 'web.*']\n\
                    deny: [shell.exec]\nmodel: openrouter/a/b\neffort: low\nmax_turns: 7\nautonomous: true\n";
        let file = read(text, "looker").unwrap();
        assert_eq!(file.prompt, "You look.\nYou change nothing.\n");
        assert_eq!(file.tools.as_deref(), Some(&["file.read".to_owned(), "web.*".to_owned()][..]));
        assert_eq!((file.effort, file.max_turns, file.autonomous), (Some(Effort::Low), Some(7), true));
        let least = read("description: a\nprompt: b\n", "x").unwrap();
        assert_eq!((least.tools, least.model, least.autonomous), (None, None, false));
    }

    #[test]
    fn what_is_wrong_has_a_place_and_all_of_it_is_said() {
        let text = "description: ''\nprompt: b\ntools:\n  - file.read\n  - 'file.['\nmodel: sonnet\nefort: low\nmax_turns: 0\n";
        let said = said(text);
        for start in [
            "1:1: description: it is empty",
            "5:5: tools.1: ",
            "6:1: model: a model is said",
            "7:1: efort: ",
            "8:1: max_turns: ",
        ] {
            assert!(said.iter().any(|line| line.starts_with(start)), "{start}: {said:#?}");
        }
        assert!(said.iter().any(|line| line.contains("effort")), "{said:?}");
        assert_eq!(super::tests::said("- a\n").len(), 1);
        assert!(super::tests::said("description: [")[0].contains(':'));
        assert_eq!(super::tests::said("prompt: b\n"), ["1:1: `description` is missing"]);
    }

    #[test]
    fn a_name_is_plain() {
        for good in ["a", "code-reviewer", "x_2"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "A", "2x", "a/b", "a b", "a.b", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}

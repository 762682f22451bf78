//! Lists of tools to approve or deny, with presets: `["$readonly", "calc.*", "file.write"]`.

use crate::name::ToolName;
use crate::pattern::{BadPattern, ToolPattern, first_match};
use crate::suggest::did_you_mean;
use std::collections::BTreeMap;

/// A named collection of rules, spoken with a leading `$`.
#[derive(Debug, Clone, Default)]
pub struct Preset {
    /// Tools it approves.
    pub approve: Vec<String>,
    /// Tools it denies.
    pub deny: Vec<String>,
}

/// The presets that haft ships. A user's preset of the same name replaces one.
pub fn shipped_presets() -> BTreeMap<String, Preset> {
    const READING: &[&str] = &[
        "file.read",
        "file.list",
        "file.glob",
        "file.grep",
        "calc.eval",
        "system.info",
        "session.list",
        "process.status",
        "process.output",
        "process.list",
    ];
    let approve = |extra: &[&str]| Preset {
        approve: READING.iter().chain(extra).map(|name| (*name).to_owned()).collect(),
        deny: Vec::new(),
    };
    BTreeMap::from([
        ("$readonly".to_owned(), approve(&[])),
        ("$default".to_owned(), approve(&["file.write", "file.edit"])),
    ])
}

/// Why a list cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadList {
    /// The preset does not exist.
    #[error("there is no preset `{name}`{}", hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    Preset {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// No tool has that name.
    #[error("there is no tool `{name}`{}", hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    Tool {
        /// What was asked for.
        name: String,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// The pattern is malformed.
    #[error(transparent)]
    Pattern(#[from] BadPattern),
}

/// A list with its presets opened: union of approves, union of denies, deny wins.
#[derive(Debug, Clone, Default)]
pub struct List {
    approve: Vec<ToolPattern>,
    deny: Vec<ToolPattern>,
    removed: Vec<ToolPattern>,
}

impl List {
    /// Opens `items` (names, globs and `$presets`) against the known presets and tools. A name in
    /// `removed` is taken out of the approves, never out of the denies.
    pub fn open(
        items: &[String],
        removed: &[String],
        presets: &BTreeMap<String, Preset>,
        known: &[ToolName],
    ) -> Result<Self, BadList> {
        let mut list = Self::default();
        for item in items {
            if item.starts_with('$') {
                let preset = presets.get(item).ok_or_else(|| BadList::Preset {
                    name: item.clone(),
                    hint: did_you_mean(item, presets.keys().map(String::as_str)),
                })?;
                list.approve.extend(patterns(&preset.approve, known)?);
                list.deny.extend(patterns(&preset.deny, known)?);
            } else {
                list.approve.extend(patterns(std::slice::from_ref(item), known)?);
            }
        }
        list.removed = patterns(removed, known)?;
        Ok(list)
    }

    /// Adds tools that are denied.
    pub fn deny(&mut self, items: &[String], known: &[ToolName]) -> Result<(), BadList> {
        self.deny.extend(patterns(items, known)?);
        Ok(())
    }

    /// The pattern that denies the tool.
    pub fn denies(&self, tool: &ToolName) -> Option<&ToolPattern> {
        first_match(&self.deny, tool)
    }

    /// The pattern that approves the tool.
    pub fn approves(&self, tool: &ToolName) -> Option<&ToolPattern> {
        first_match(&self.approve, tool).filter(|_| !self.excludes(tool))
    }

    /// Whether the tool was taken out by name.
    pub fn excludes(&self, tool: &ToolName) -> bool {
        first_match(&self.removed, tool).is_some()
    }
}

/// Reads patterns. One that all but names a tool is taken for a typing mistake: a deny that is misspelt
/// denies nothing. One that is like no tool may name a tool of a later source or version, and stays.
fn patterns(items: &[String], known: &[ToolName]) -> Result<Vec<ToolPattern>, BadList> {
    items
        .iter()
        .map(|item| {
            let pattern = ToolPattern::new(item)?;
            let exists = known.iter().any(|tool| pattern.matches(tool));
            // Tools of later sources (manifests, MCP servers) are not known yet when lists are read.
            let foreign = item.contains(':') || !item.contains('.');
            let meant = did_you_mean(item, known.iter().map(ToolName::as_str));
            if let (true, Some(hint)) = (pattern.is_literal() && !exists && !foreign, meant) {
                return Err(BadList::Tool { name: item.clone(), hint: Some(hint) });
            }
            Ok(pattern)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolName {
        ToolName::new(name).unwrap()
    }

    fn open(items: &[&str], removed: &[&str]) -> Result<List, BadList> {
        let own = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        let mut presets = shipped_presets();
        presets.insert("$no-write".into(), Preset { approve: vec![], deny: vec!["file.write".into()] });
        let known: Vec<ToolName> = shipped_presets()["$default"].approve.iter().map(|name| tool(name)).collect();
        List::open(&own(items), &own(removed), &presets, &known)
    }

    #[test]
    fn presets_and_names_mix_and_deny_wins() {
        let list = open(&["$default", "$no-write", "calc.eval"], &[]).unwrap();
        assert!(list.approves(&tool("file.edit")).is_some());
        assert!(list.denies(&tool("file.write")).is_some());
    }

    #[test]
    fn removing_takes_out_of_the_approves_only() {
        let list = open(&["$default", "$no-write"], &["file.edit", "file.write"]).unwrap();
        assert!(list.approves(&tool("file.edit")).is_none());
        assert!(list.denies(&tool("file.write")).is_some());
    }

    #[test]
    fn a_misspelt_name_is_an_error_that_helps() {
        assert_eq!(
            open(&["file.raed"], &[]).unwrap_err().to_string(),
            "there is no tool `file.raed`: did you mean `file.read`?"
        );
        assert!(open(&["shell.exec"], &[]).is_ok(), "a tool that may come later");
        assert_eq!(
            open(&["$readnly"], &[]).unwrap_err().to_string(),
            "there is no preset `$readnly`: did you mean `$readonly`?"
        );
    }
}

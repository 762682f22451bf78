//! Vocabularies: the same tools under the names, parameters and units that five other systems use.
//!
//! A dialect is data. `dialects/NAME.json` holds what is spoken (names and schemas, verbatim); a row in
//! `table` says which canonical tool a spoken name means and where its parameters differ. Adding a tool
//! to a dialect is one row.

use crate::error::CallError;
use crate::schema::Schema;
use crate::shape::{Keep, Limits};
use crate::suggest::did_you_mean;
use crate::tool::{Effect, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

mod clients;
mod table;

pub use clients::client_tool;
pub use table::{Fixed, Param, Row, Unit};

/// A vocabulary in which the tool set is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// The canonical one.
    #[default]
    Haft,
    /// Flynn's dotted names.
    Flynn,
    /// Flyto's capitalised names.
    Flyto,
    /// Flemma's strict schemas.
    Flemma,
    /// nodyn's underscored names.
    Nodyn,
    /// Glee's manifest tools.
    Glee,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Haft, Self::Flynn, Self::Flyto, Self::Flemma, Self::Nodyn, Self::Glee];

    /// The name by which it is chosen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Haft => "haft",
            Self::Flynn => "flynn",
            Self::Flyto => "flyto",
            Self::Flemma => "flemma",
            Self::Nodyn => "nodyn",
            Self::Glee => "glee",
        }
    }

    /// Reads a dialect's name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// The same for a name that somebody gave: an error says which there are.
    pub fn named(name: &str) -> Result<Self, CallError> {
        Self::parse(name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name);
            let error = CallError::invalid(format!("there is no dialect `{}`", crate::preview::inert(name)));
            error.hint(did_you_mean(name, known).unwrap_or_else(|| format!("the dialects are {}", known.join(", "))))
        })
    }

    /// How the document says that a tool's output is cut.
    pub fn limits(self, spec: &ToolSpec) -> Option<Limits> {
        match self {
            // What streams is cut at its beginning.
            Self::Flemma if spec.effects.effect == Effect::Runs => {
                Some(Limits { lines: 2000, bytes: 51_200, keep: Keep::Tail })
            }
            Self::Flynn => Some(Limits { lines: usize::MAX, bytes: 51_200, keep: Keep::Head }),
            Self::Nodyn => Some(Limits { lines: usize::MAX, bytes: 80_000, keep: Keep::Head }),
            Self::Flemma => Some(Limits { lines: 2000, bytes: 51_200, keep: Keep::Head }),
            Self::Haft | Self::Flyto | Self::Glee => None,
        }
    }

    /// Every tool of the dialect for which haft has a canonical one, in the document's order.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> {
        // The canonical dialect has no table, and must not pay for reading the others'.
        let tables: &[Entry] = if self == Self::Haft { &[] } else { &ENTRIES };
        tables.iter().filter(move |entry| entry.dialect == self)
    }

    /// The tool that this dialect means by a name or alias.
    pub fn entry(self, spoken: &str) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.answers_to(spoken))
    }
}

/// One tool of a dialect: what is spoken, and what it means.
pub struct Entry {
    /// The vocabulary.
    pub dialect: Dialect,
    /// The document's declaration, verbatim: name, schema and what else it says.
    pub declaration: Value,
    row: &'static Row,
    schema: OnceLock<Option<Schema>>,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    table::TABLE
        .iter()
        .flat_map(|(dialect, contract, rows)| {
            let parsed: Value = serde_json::from_str(contract).unwrap_or_default();
            let declared: BTreeMap<String, Value> = parsed["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|tool| Some((tool["name"].as_str()?.to_owned(), tool.clone())))
                .collect();
            rows.iter().filter_map(move |row| {
                let declaration = declared.get(row.spoken)?.clone();
                Some(Entry { dialect: *dialect, declaration, row, schema: OnceLock::new() })
            })
        })
        .collect()
});

/// What a spoken name may mean when it is not a name of the caller's own dialect: every entry of every
/// dialect that answers to it, or nothing if they do not all mean the same tool.
pub fn elsewhere(spoken: &str) -> Vec<&'static Entry> {
    let found: Vec<&Entry> = ENTRIES.iter().filter(|entry| entry.answers_to(spoken)).collect();
    let agreed = found.windows(2).all(|pair| pair[0].canonical() == pair[1].canonical());
    if agreed { found } else { Vec::new() }
}

/// Puts canonical names in place of other dialects' names for the parameters of a tool, where a model mixes
/// them up: only names that the tool itself does not know, that mean the same in every dialect that has them,
/// and whose meaning is not said already.
pub fn understood(tool: &str, input: &Value, mut args: Value) -> Value {
    let knows = |name: &str| input["properties"].get(name).is_some();
    let Some(given) = args.as_object_mut() else { return args };
    let strange: Vec<String> = given.keys().filter(|name| !knows(name)).cloned().collect();
    for name in strange {
        let rows = table::TABLE.iter().flat_map(|(_, _, rows)| *rows).filter(|row| row.canonical == tool);
        let meant: Vec<&Param> = rows.flat_map(|row| row.params).filter(|param| param.spoken == name).collect();
        let Some(param) = meant.first().filter(|param| param.unit != Unit::Note) else { continue };
        let agreed = meant.iter().all(|other| (other.canonical, other.unit) == (param.canonical, param.unit));
        if !agreed || given.contains_key(param.canonical) {
            continue;
        }
        // A place need not be absolute here.
        let unit = if param.unit == Unit::Absolute { Unit::Same } else { param.unit };
        if let Some(value) = given.get(&name).and_then(|value| unit.inward(&name, value).ok()) {
            given.remove(&name);
            given.insert(param.canonical.to_owned(), value);
        }
    }
    args
}

/// Canonical arguments, and the caller's note about why (which tools never see).
#[derive(Debug, Clone, PartialEq)]
pub struct Translated {
    /// The arguments under canonical names and units.
    pub args: Value,
    /// The caller's own words about the call, for previews.
    pub note: Option<String>,
}

impl From<Value> for Translated {
    /// Arguments that need no translation.
    fn from(args: Value) -> Self {
        Self { args, note: None }
    }
}

impl Entry {
    /// The canonical tool.
    pub fn canonical(&self) -> &'static str {
        self.row.canonical
    }

    /// The spoken name.
    pub fn spoken(&self) -> &'static str {
        self.row.spoken
    }

    /// The spoken input schema.
    pub fn input_schema(&self) -> &Value {
        &self.declaration["input_schema"]
    }

    fn answers_to(&self, spoken: &str) -> bool {
        let alias =
            || self.declaration["aliases"].as_array().is_some_and(|list| list.iter().any(|name| name == spoken));
        self.row.spoken == spoken || alias()
    }

    fn schema(&self) -> Option<&Schema> {
        self.schema.get_or_init(|| Schema::compile(self.input_schema()).ok()).as_ref()
    }

    /// Whether arguments look as if they were meant for this entry: all required are there, none unknown.
    pub fn fits(&self, args: &Value) -> bool {
        let Some(given) = args.as_object() else { return false };
        let known = self.input_schema()["properties"].as_object();
        let required = self.input_schema()["required"].as_array();
        given.keys().all(|name| known.is_some_and(|map| map.contains_key(name)))
            && required.into_iter().flatten().all(|name| name.as_str().is_some_and(|name| given.contains_key(name)))
    }

    /// Validates spoken arguments against the spoken schema (so that complaints use the caller's words)
    /// and translates them.
    pub fn to_canonical(&self, mut args: Value) -> Result<Translated, CallError> {
        let schema = self.schema().ok_or_else(|| CallError::internal("a dialect's schema does not compile"))?;
        schema.prepare(&mut args);
        if let Ok(name) = crate::name::ToolName::new(self.row.spoken) {
            let hint = format!("`haft tools {name} --dialect {}` shows the schema", self.dialect.name());
            schema.check(&name, &args).map_err(|error| error.hint(hint))?;
        }
        let mut canonical = Map::new();
        let mut note = None;
        for (spoken, value) in args.as_object().into_iter().flatten() {
            match self.row.params.iter().find(|param| param.spoken == spoken) {
                Some(Param { unit: Unit::Note, .. }) => note = value.as_str().map(str::to_owned),
                Some(_) | None if value.is_null() => {}
                Some(param) => {
                    canonical.insert(param.canonical.to_owned(), param.unit.inward(spoken, value)?);
                }
                None => {
                    self.refuse_shadow(spoken)?;
                    canonical.insert(spoken.clone(), value.clone());
                }
            }
        }
        for (name, value) in self.row.fixed {
            canonical.insert((*name).to_owned(), value.value());
        }
        for (name, value) in self.row.usual {
            canonical.entry(*name).or_insert_with(|| value.value());
        }
        Ok(Translated { args: Value::Object(canonical), note })
    }

    /// A canonical name for what the dialect calls differently would slip past what the dialect demands of it.
    fn refuse_shadow(&self, name: &str) -> Result<(), CallError> {
        match self.row.params.iter().find(|param| param.canonical == name && param.unit != Unit::Note) {
            Some(Param { spoken, .. }) => {
                Err(CallError::invalid(format!("`{}` has no parameter `{name}`", self.row.spoken))
                    .hint(format!("it is called `{spoken}` here")))
            }
            None => Ok(()),
        }
    }

    /// Says canonical arguments in the dialect's words. The inverse of [`Self::to_canonical`], but for
    /// what the dialect has no word for.
    pub fn to_spoken(&self, translated: &Translated) -> Value {
        let mut spoken = Map::new();
        for (name, value) in translated.args.as_object().into_iter().flatten() {
            let fixed = self.row.fixed.iter().any(|(fixed, _)| fixed == name);
            match self.row.params.iter().find(|param| param.canonical == name && param.unit != Unit::Note) {
                _ if fixed => {}
                Some(param) => {
                    spoken.insert(param.spoken.to_owned(), param.unit.outward(value));
                }
                None => {
                    spoken.insert(name.clone(), value.clone());
                }
            }
        }
        // Where a dialect demands every property, what is left out is said as null.
        for name in self.input_schema()["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let kinds = self.input_schema()["properties"][name]["type"].as_array();
            if kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "null")) && !spoken.contains_key(name) {
                spoken.insert(name.to_owned(), Value::Null);
            }
        }
        if let (Some(note), Some(param)) =
            (&translated.note, self.row.params.iter().find(|param| param.unit == Unit::Note))
        {
            spoken.insert(param.spoken.to_owned(), Value::String(note.clone()));
        }
        Value::Object(spoken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_row_speaks_of_what_its_document_declares() {
        for (dialect, _, rows) in table::TABLE {
            assert_eq!(dialect.entries().count(), rows.len(), "{dialect:?}: a row has no declaration");
            for entry in dialect.entries() {
                let properties = entry.input_schema()["properties"].as_object().unwrap();
                for param in entry.row.params {
                    assert!(properties.contains_key(param.spoken), "{}: {}", entry.spoken(), param.spoken);
                }
                assert!(entry.schema().is_some());
            }
        }
    }

    #[test]
    fn offsets_units_and_notes_are_translated() {
        let read = Dialect::Flyto.entry("FileRead").unwrap();
        let said = json!({"file_path": "/a", "offset": 0, "limit": 5});
        let meant = read.to_canonical(said.clone()).unwrap();
        assert_eq!(meant.args, json!({"path": "/a", "offset": 1, "limit": 5}));
        assert_eq!(read.to_spoken(&meant), said);

        let read = Dialect::Flemma.entry("read").unwrap();
        let meant = read.to_canonical(json!({"label": "why", "path": "a", "offset": null, "limit": null})).unwrap();
        assert_eq!((meant.args["path"].as_str(), meant.note.as_deref()), (Some("a"), Some("why")));
        assert!(meant.args.get("offset").is_none());
        let again = json!({"path": "a", "offset": null, "limit": null, "label": "why"});
        assert_eq!(read.to_spoken(&meant), again);
    }

    #[test]
    fn complaints_use_the_callers_words() {
        let error = Dialect::Flyto.entry("Read").unwrap().to_canonical(json!({"path": "/a"})).unwrap_err();
        assert!(error.message.contains("/file_path: expected string, got nothing"), "{}", error.message);
        let error = Dialect::Flyto.entry("Read").unwrap().to_canonical(json!({"file_path": "a"})).unwrap_err();
        assert!(error.message.contains("absolute"), "{}", error.message);
        let smuggled = json!({"file_path": "/a", "path": "../b"});
        let error = Dialect::Flyto.entry("Read").unwrap().to_canonical(smuggled).unwrap_err();
        assert_eq!(error.message, "`Read` has no parameter `path`");
    }

    #[test]
    fn a_foreign_parameter_is_understood_when_all_agree() {
        let input = json!({"properties": {"command": {}, "timeout_ms": {}, "background": {}}});
        let meant = |args: Value| understood("shell.exec", &input, args);
        assert_eq!(meant(json!({"run_in_background": true})), json!({"background": true}));
        // Said twice, not known, or not the same everywhere: left as it is, for the schema to complain about.
        for odd in [json!({"run_in_background": true, "background": false}), json!({"x": 1}), json!({"timeout": 5})] {
            assert_eq!(meant(odd.clone()), odd);
        }
        let input = json!({"properties": {"path": {}, "old_string": {}, "new_string": {}}});
        let said = json!({"file_path": "a", "oldText": "x", "replace": "y"});
        let meant = understood("file.edit", &input, said);
        assert_eq!(meant, json!({"path": "a", "old_string": "x", "new_string": "y"}));
    }

    #[test]
    fn a_shells_time_and_a_process_are_translated() {
        let canonical =
            |dialect: Dialect, name: &str, args: Value| dialect.entry(name).unwrap().to_canonical(args).unwrap().args;
        let bash = |timeout: Value| json!({"label": "", "command": "ls", "timeout": timeout});
        assert_eq!(canonical(Dialect::Flemma, "bash", bash(json!(1.5)))["timeout_ms"], 1500);
        assert_eq!(canonical(Dialect::Flemma, "bash", bash(json!(null)))["timeout_ms"], 30_000);
        assert_eq!(canonical(Dialect::Flynn, "shell.exec", json!({"command": "ls"}))["timeout_ms"], 30_000);
        assert_eq!(canonical(Dialect::Flynn, "shell.exec", json!({"command": "ls", "timeout": 5}))["timeout_ms"], 5);
        assert!(canonical(Dialect::Nodyn, "bash", json!({"command": "ls"})).get("timeout_ms").is_none());
        let kill = json!({"pid": 7, "signal": "SIGKILL"});
        assert_eq!(canonical(Dialect::Flynn, "process.kill", kill), json!({"id": "bg_7", "signal": "SIGKILL"}));
        let said = json!({"command": "ls", "timeout": 9, "run_in_background": true, "description": "d"});
        let meant = json!({"command": "ls", "timeout_ms": 9, "background": true, "description": "d"});
        assert_eq!(canonical(Dialect::Flyto, "Bash", said), meant);
    }

    #[test]
    fn what_is_asked_of_the_web_is_translated() {
        let meant = |dialect: Dialect, name: &str, args: Value| {
            let entry = dialect.entry(name).unwrap();
            (entry.canonical(), entry.to_canonical(args).unwrap().args)
        };
        let url = "https://a.test/";
        assert_eq!(
            meant(Dialect::Flynn, "web.fetch", json!({"url": url, "method": "PUT", "body": "b", "timeout": 5})),
            ("web.request", json!({"url": url, "method": "PUT", "body": "b", "timeout_ms": 5}))
        );
        assert_eq!(meant(Dialect::Flynn, "web.fetch", json!({"url": url})).1["timeout_ms"], 10_000);
        assert_eq!(
            meant(Dialect::Flynn, "web.search", json!({"query": "q", "limit": 3})),
            ("web.search", json!({"query": "q", "max_results": 3}))
        );
        assert_eq!(
            meant(Dialect::Flynn, "image.analyze", json!({"data": "AA==", "mimeType": "image/png"})),
            ("image.analyze", json!({"data": "AA==", "mime_type": "image/png"}))
        );
        assert_eq!(
            meant(Dialect::Flyto, "WebFetch", json!({"url": url, "timeout": 2})),
            ("web.fetch", json!({"url": url, "timeout_ms": 2000}))
        );
        assert_eq!(meant(Dialect::Nodyn, "http_request", json!({"url": url})), ("web.request", json!({"url": url})));
        let setup = json!({"action": "view", "id": "a"});
        assert_eq!(meant(Dialect::Nodyn, "api_setup", setup.clone()), ("api.setup", setup));
        let read = json!({"action": "read", "url": url});
        assert_eq!(meant(Dialect::Nodyn, "web_research", read.clone()), ("web.research", read));
    }

    #[test]
    fn what_is_promised_is_translated() {
        let meant = |dialect: Dialect, name: &str, args: Value| {
            let entry = dialect.entry(name).unwrap();
            (entry.canonical(), entry.to_canonical(args).unwrap().args)
        };
        let said = json!({"title": "a", "due_date": "2030-01-31", "parent_task_id": "ab", "pipeline_id": "p"});
        let canonical = json!({"title": "a", "due": "2030-01-31", "parent": "ab", "pipeline": "p"});
        assert_eq!(meant(Dialect::Nodyn, "task_create", said), ("task.create", canonical));
        let said = json!({"task_id": "ab", "status": "completed"});
        let canonical = json!({"id": "ab", "status": "completed"});
        assert_eq!(meant(Dialect::Nodyn, "task_update", said), ("task.update", canonical));
        let said = json!({"id": "ab", "status": "in_progress"});
        assert_eq!(meant(Dialect::Flyto, "TaskUpdate", said.clone()), ("task.update", said));
        assert_eq!(meant(Dialect::Flyto, "TaskList", json!({})), ("task.list", json!({})));
    }

    #[test]
    fn a_foreign_name_is_understood_when_all_agree() {
        assert_eq!(elsewhere("Read")[0].canonical(), "file.read");
        assert_eq!(elsewhere("read_file")[0].canonical(), "file.read");
        assert!(elsewhere("nothing").is_empty());
    }
}

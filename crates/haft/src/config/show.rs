//! The configuration as people see it: what is in force, what is possible, and an example to start from.

use super::file::Config;
use super::resolve::{Loaded, Source};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The JSON Schema of a configuration file.
pub fn schema() -> Value {
    schemars::schema_for!(Config).to_value()
}

/// A commented example of every setting, for `haft init`. Prose begins with `# `, settings with `#`.
pub fn example() -> &'static str {
    include_str!("example.yml")
}

/// What is in force: per key its value and the layers it comes from; the files; the warnings.
pub fn show(loaded: &Loaded) -> Value {
    let settings: Map<String, Value> =
        entries(loaded).map(|(key, value, from)| (key, json!({ "value": value, "from": from }))).collect();
    json!({ "settings": settings, "sources": loaded.sources, "warnings": loaded.warnings })
}

/// The same as YAML that is itself a configuration file, with the origins as comments.
pub fn show_text(loaded: &Loaded) -> String {
    let file = |source: &Source| format!("# {}: {}\n", source.path.display(), source.trust.word());
    let files = loaded.sources.iter().map(file);
    let setting = |(key, value, from): (String, Value, &[String])| {
        let yaml = serde_saphyr::to_string(&json!({ key: value })).unwrap_or_default();
        format!("\n# from: {}\n{}\n", from.join(", "), yaml.trim_end())
    };
    files.chain(entries(loaded).map(setting)).collect()
}

/// Every key in force.
fn entries(loaded: &Loaded) -> impl Iterator<Item = (String, Value, &[String])> {
    let settings = match serde_json::to_value(&loaded.config) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    settings.into_iter().map(|(key, value)| {
        let value = match value.as_str() {
            Some(place) if key == "store" => json!(haft_store::shown(Path::new(place))),
            _ => value,
        };
        let from = loaded.origins.get(&key).map(Vec::as_slice).unwrap_or_default();
        (key, value, from)
    })
}

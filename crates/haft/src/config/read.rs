//! From a file's bytes to its settings, with the parser's complaints put into our words.

use super::error::ConfigError;
use super::file::Config;
use super::paths::Paths;
use super::placed::Spot;
use haft_core::record::Digest;
use serde_saphyr::{Budget, Error, Location, Options};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

/// The most that a configuration file may hold.
const MAX_BYTES: usize = 1 << 20;
/// How often a file may repeat a part of itself. Each time the part is copied, so that this and the size
/// of the file bound the memory that reading it takes.
const MAX_ALIASES: usize = 64;

/// What an unquoted glob looks like to YAML.
const ALIAS: &str = "`*` begins an alias in YAML; put a pattern in quotes: \"*\"";

/// One file, read.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    /// Exactly what was read, to be shown to whoever is asked to trust it.
    pub(super) text: String,
    /// Its exact content, as far as trust is concerned.
    pub(super) digest: Digest,
    /// What it says.
    pub(super) config: Config,
}

/// Reads a file; none where there is none.
pub(super) fn read(path: &Path, paths: &Paths) -> Result<Option<Layer>, ConfigError> {
    let shown = paths.shown(path);
    let Some(bytes) = bytes(path, &shown)? else { return Ok(None) };
    let config = parse(&bytes, &Arc::from(shown))?;
    Ok(Some(Layer { digest: Digest::of(&bytes), text: String::from_utf8_lossy(&bytes).into_owned(), config }))
}

fn bytes(path: &Path, shown: &str) -> Result<Option<Vec<u8>>, ConfigError> {
    let unreadable = |why: String| ConfigError::Unreadable { file: shown.to_owned(), why };
    let kind = match std::fs::metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => return Ok(None),
        // A file where the directory should be holds no configuration.
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(None),
        // A link that leads nowhere is somebody's mistake, not an absent configuration.
        Err(error) => return Err(unreadable(error.to_string())),
    };
    // Opening a pipe would wait for ever.
    if !kind.is_file() {
        let what = if kind.is_dir() { "a directory" } else { "not a regular file" };
        return Err(unreadable(format!("it is {what}, and a configuration has to be a file")));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() > MAX_BYTES {
        return Err(ConfigError::TooLarge { file: shown.to_owned(), limit: MAX_BYTES });
    }
    Ok(Some(bytes))
}

/// Reads settings from bytes. `file` is the name that errors use.
pub fn parse(bytes: &[u8], file: &Arc<str>) -> Result<Config, ConfigError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        ConfigError::malformed(&spot_after(&before, file), "a byte that is not UTF-8")
    })?;
    let mut config: Config =
        serde_saphyr::from_str_with_options(text, bounded()).map_err(|error| reworded(error, file))?;
    config.each_spot(&mut |spot| spot.set_file(file));
    Ok(config)
}

fn bounded() -> Options {
    let mut budget = Budget::default();
    budget.max_aliases = MAX_ALIASES;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.with_snippet = false;
    options
}

/// The place behind some text.
fn spot_after(before: &str, file: &Arc<str>) -> Spot {
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Spot::in_file(file, line as u64, column as u64)
}

/// Says what the parser says, to somebody who does not know the parser.
fn reworded(error: Error, file: &Arc<str>) -> ConfigError {
    let at = error.location().unwrap_or(Location::UNKNOWN);
    let spot = Spot::in_file(file, at.line().max(1), at.column().max(1));
    let why = match error {
        Error::SerdeUnknownField { field, expected, .. } => return ConfigError::unknown_key(spot, field, expected),
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            return ConfigError::unknown_value(spot, variant, expected);
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("the key `{key}` is given twice"),
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        Error::MultipleDocuments { .. } => "a second YAML document; a configuration is one".to_owned(),
        Error::Unexpected { expected, .. } => format!("expected {}", noun(expected)),
        Error::InvalidScalar { ty, .. } => format!("expected {}", noun(ty)),
        Error::NullIntoString { .. } => "expected text, found nothing".to_owned(),
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => "expected one word".to_owned(),
        Error::UnknownAnchor { .. } => ALIAS.to_owned(),
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => {
            "too much YAML: it unfolds to more than a configuration may hold".to_owned()
        }
        other if other.to_string().contains("anchor or alias") => ALIAS.to_owned(),
        other => without_location(&other.to_string()),
    };
    ConfigError::malformed(&spot, why)
}

/// What the parser's words for kinds of values mean to people.
fn noun(kind: &str) -> &str {
    match kind {
        "sequence start" => "a list: `[a, b]`, or one `- item` a line",
        "mapping start" => "keys with values: `key: value`",
        "string scalar" => "text",
        "u32" | "u64" => "a whole number, zero or more",
        other => other,
    }
}

/// The place is already said in front.
fn without_location(message: &str) -> String {
    message.split_once(" at line ").map_or(message, |(before, _)| before).to_owned()
}

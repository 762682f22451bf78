//! The parser's complaints, put into our words.

use super::super::fix::Fix;
use super::super::flaw::Flaw;
use serde_saphyr::{Error, Location};

/// It unfolds to more than there is room for.
pub(super) const TOO_MUCH: &str = "too much YAML: it unfolds to more than a manifest may hold";
/// `.nan`, `.inf`.
pub(super) const NOT_FINITE: &str = "a number that is not finite; JSON has none";

/// `!!int`, `!anything`.
pub(super) const TAGGED: &str = "a `!tag` means nothing here; put text that begins with `!` in quotes";

/// Says what the parser says, to somebody who does not know the parser.
pub(super) fn reworded(error: Error, text: &str) -> Flaw {
    let at = error.location().unwrap_or(Location::UNKNOWN);
    let place = (at.line().max(1), at.column().max(1));
    if let Some(place) = tab(text, place.0) {
        let message = "a tab cannot indent in YAML; use spaces";
        return Flaw::error("tabs", "", message).at(place).mended_by(Fix::Tabs);
    }
    let why = match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("the key `{}` is given twice", crate::preview::cut(&crate::preview::inert(&key), 60))
        }
        Error::DuplicateMappingKey { key: None, .. } => "a key is given twice".to_owned(),
        Error::MultipleDocuments { .. } => "a second YAML document; a manifest is one".to_owned(),
        Error::Unexpected { .. } => "a key has to be text".to_owned(),
        Error::NullIntoString { .. } => "a key has to be text, and this one is empty".to_owned(),
        Error::UnknownAnchor { .. } => "`*` begins an alias in YAML; put text that begins with it in quotes".to_owned(),
        Error::MergeKeyNotAllowed { .. } => "`<<` is not known here; write the keys out".to_owned(),
        Error::NonFiniteFloat { .. } => NOT_FINITE.to_owned(),
        Error::UnsupportedTag { .. } | Error::TaggedScalarCannotDeserializeIntoString { .. } => TAGGED.to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => "an alias that stands inside what it repeats".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => TOO_MUCH.to_owned(),
        other => plainer(without_location(&other.to_string())),
    };
    Flaw::error("yaml", "", crate::preview::cut(&crate::preview::inert(&why), 200)).at(place)
}

/// The scanner's own words, where they would help nobody.
fn plainer(message: &str) -> String {
    // Some breaches of the budget come as words.
    if message.contains("budget breached") || message.contains("limit exceeded") {
        return TOO_MUCH.to_owned();
    }
    if message == "mapping values are not allowed in this context" {
        return "a second `:` on the line; put text that holds `: ` in quotes".to_owned();
    }
    match message.strip_prefix("unexpected character: `").and_then(|rest| rest.strip_suffix('\'')) {
        Some(begin @ ("@" | "`" | "%")) => format!("text that begins with `{begin}` has to be in quotes"),
        _ => message.to_owned(),
    }
}

/// The place is already said in front.
fn without_location(message: &str) -> &str {
    let message = message.split_once(" at line ").map_or(message, |(before, _)| before);
    message.split_once("line ").and_then(|(_, rest)| rest.split_once(": ")).map_or(message, |(_, after)| after)
}

/// The first tab that indents, if the complaint is about its line or one that follows it directly.
fn tab(text: &str, complained: u64) -> Option<(u64, u64)> {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut lines = text.lines().zip(1_u64..).take_while(|(_, number)| *number <= complained.saturating_add(1));
    let (line, number) = lines.find(|(line, _)| line[..indent(line)].contains('\t'))?;
    let column = line.find('\t')? as u64 + 1;
    (number + 1 >= complained).then_some((number, column))
}

//! Whether every model provider can take the tool's declaration, by the provider's documented rules.

use super::super::Manifest;
use super::super::flaw::Flaw;
use crate::provider::registration_notes;
use crate::tool::ToolSpec;

/// Warns, because the tool works with the other providers and in every client.
pub(super) fn check(manifest: &Manifest, flaws: &mut Vec<Flaw>) {
    // A name that is none is told by another rule.
    let Ok(spec) = ToolSpec::new(&manifest.name, manifest.description.trim()) else { return };
    let notes = registration_notes(&spec.input(manifest.inputs.schema.clone()));
    flaws.extend(notes.iter().map(|note| Flaw::warning("provider", "/inputs/schema", note.to_string())));
}

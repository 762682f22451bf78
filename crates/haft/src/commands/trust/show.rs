//! What somebody is shown of what they are to accept: first what a tool may do, then all that it is.

use crate::app::Ground;
use crate::commands::tools::manifest;
use crate::config::Trust;
use crate::style::{self, BOLD, CARE, FAINT, paint};
use haft_core::manifest::written::Written;
use haft_core::manifest::{Flaw, lint};
use haft_core::preview::inert;
use haft_runtime::shelf::{Offer, Page};
use haft_runtime::skills::OfferedSkill;
use haft_runtime::work::workflow::Offered;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How much of a file is shown: so many lines, and so many bytes.
const LINES_MAX: usize = 200;
const BYTES_MAX: usize = 16 << 10;

/// A project's configuration.
pub(super) fn config(ground: &Ground, before: Trust) {
    for line in ground.layers.project_text().unwrap_or_default().lines() {
        style::note(&inert(line));
    }
    if before == Trust::Changed {
        style::note(&paint(CARE, "you trusted an earlier version of this file; it has changed since"));
    }
}

/// A tool: what it may do and what it does in a few lines; then its files, or what changed in them.
pub(super) fn tool(ground: &Ground, offer: &Offer) {
    style::note("");
    let at = ground.paths.shown(&offer.file);
    style::note(&format!("{} {}", paint(BOLD, offer.name()), paint(FAINT, format!("({})", inert(&at)))));
    for line in manifest::summary(&offer.manifest) {
        style::note(&format!("  {line}"));
    }
    for caution in cautions(offer) {
        style::note(&paint(CARE, format!("  {caution}")));
    }
    if !offer.files.is_empty() {
        style::note(&format!("  {:<10}{}", "files", inert(&offer.files.join(", "))));
    }
    if offer.is_changed() {
        style::note(&paint(CARE, "  you accepted an earlier version of this tool; since then:"));
        for line in &offer.changed {
            style::note(&format!("  {}", inert(line)));
        }
        offer.diff.as_deref().into_iter().for_each(changes);
    }
    if let Some(text) = offer.whole_text() {
        head("tool.yml", "");
        text.lines().for_each(line);
    }
    offer.pages.iter().for_each(page);
}

/// A workflow or an agent: all of it, or what changed in it.
pub(super) fn file(ground: &Ground, noun: &str, offered: &Offered) {
    style::note("");
    let at = paint(FAINT, format!("({})", inert(&ground.paths.shown(&offered.path))));
    style::note(&format!("the {noun} {} {at}", paint(BOLD, inert(&offered.name))));
    if let Some(diff) = &offered.diff {
        style::note(&paint(CARE, format!("  you accepted an earlier version of this {noun}; since then:")));
        return changes(diff);
    }
    let shown = beginning(&offered.text);
    shown.lines().for_each(line);
    if shown.len() < offered.text.len() {
        style::note(&paint(CARE, format!("    … it goes on: {} bytes", offered.text.len())));
    }
}

/// A skill: what is wrong with it, and all of its files or what changed in them.
pub(super) fn skill(ground: &Ground, offered: &OfferedSkill) {
    file(ground, "skill", &offered.shown);
    for caution in &offered.cautions {
        style::note(&paint(CARE, format!("  {}", inert(caution))));
    }
}

/// The same as data.
pub(super) fn skills(offered: &[OfferedSkill]) -> Vec<Value> {
    offered.iter().map(|skill| &skill.shown).map(told).collect()
}

/// The same as data.
pub(super) fn files(offered: &[Offered]) -> Vec<Value> {
    offered.iter().map(told).collect()
}

fn told(one: &Offered) -> Value {
    json!({"name": one.name, "file": one.path, "standing": one.standing, "yml": one.text, "diff": one.diff})
}

/// What somebody should know before they say yes: words that would speak to models, what model providers cannot take, and
/// names that are taken over.
pub(super) fn cautions(offer: &Offer) -> Vec<String> {
    let (manifest, name) = (&offer.manifest, offer.name());
    let flaws = lint::lint(manifest, &Written::new(&offer.text), name, &lint::Found::default());
    let is_told = |flaw: &Flaw| matches!(flaw.rule, "description" | "provider");
    let flaws = flaws.into_iter().filter(is_told).map(|flaw| flaw.to_string());
    let shipped = haft_runtime::tools::all().iter().map(|tool| &tool.spec().name);
    let spoken = shipped.filter(|known| known.api_name() == name).map(ToString::to_string);
    let others = haft_core::dialect::elsewhere(name).into_iter().map(|entry| entry.canonical().to_owned());
    let taken: BTreeSet<String> = spoken.chain(others).collect();
    let taken = taken.into_iter().map(|tool| {
        format!("whoever calls `{name}` would reach this tool, and not {tool}, which models and other systems call so")
    });
    flaws.map(|flaw| inert(&flaw)).chain(taken).collect()
}

fn page(page: &Page) {
    let path = inert(&page.path);
    if page.is_outside() {
        return head(&path, &format!(": {} bytes, outside the project; look at it yourself", page.bytes));
    }
    let Some(text) = &page.text else {
        return head(&path, &format!(": {} bytes, not text", page.bytes));
    };
    if let Some(diff) = &page.diff {
        return changes(diff);
    }
    let shown = beginning(text);
    let all = page.whole && shown.len() == text.len();
    head(&path, "");
    shown.lines().for_each(line);
    if !all {
        style::note(&paint(CARE, format!("    … it goes on: {} bytes; look at {path}", page.bytes)));
    }
}

/// So much of a text as somebody reads here.
fn beginning(text: &str) -> &str {
    let lines: usize = text.split_inclusive('\n').take(LINES_MAX).map(str::len).sum();
    &text[..text.floor_char_boundary(lines.min(BYTES_MAX))]
}

fn head(path: &str, more: &str) {
    style::note(&format!("  {}{more}", paint(BOLD, path)));
}

fn line(text: &str) {
    style::note(&format!("    {}", inert(text)));
}

fn changes(diff: &str) {
    style::diff(diff).lines().for_each(|line| style::note(&format!("  {line}")));
}

/// The same as data, with all that is known.
pub(super) fn data(offers: &[Offer]) -> Vec<Value> {
    let one = |offer: &Offer| {
        json!({
            "name": offer.name(), "file": offer.file, "standing": offer.standing, "version": offer.manifest.version,
            "permissions": offer.manifest.permissions, "tool_yml": &*offer.text, "files": offer.files,
            "cautions": cautions(offer), "changed": offer.changed, "diff": offer.diff, "pages": offer.pages,
        })
    };
    offers.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_shown_by_its_beginning() {
        assert_eq!(beginning("a\nb"), "a\nb");
        assert_eq!(beginning(&"x\n".repeat(300)).lines().count(), LINES_MAX);
        assert_eq!(beginning(&"ä".repeat(BYTES_MAX)).len(), BYTES_MAX);
    }
}

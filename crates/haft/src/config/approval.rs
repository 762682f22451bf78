//! From settings to the approval chain.

use super::error::ConfigError;
use super::file::{Config, Preset};
use super::layers::Stack;
use super::names::Names;
use super::placed::Text;
use haft_core::Policy;
use haft_core::approval::{self, Chain, Leveled, List, Listed, Ruled, Sandboxed, shipped_presets};
use haft_core::shell::rule::Rulebook;
use std::collections::BTreeMap;
use std::sync::Arc;

type Presets = BTreeMap<String, approval::Preset>;

/// Builds the chain of the voices that haft ships.
pub(super) fn chain(
    stack: &Stack,
    merged: &Config,
    (policy, rules): (&Arc<Policy>, &Arc<Rulebook>),
    names: &mut Names<'_>,
) -> Result<Chain, ConfigError> {
    let list = list(stack, merged, names)?;
    let sandboxed = merged.approval.auto_approve.is_some().then(|| list.clone());
    let mut chain = Chain::under(policy);
    chain.add(Arc::new(Listed { list, document: false }));
    if !rules.is_empty() {
        chain.add(Arc::new(Ruled(Arc::clone(rules))));
    }
    chain.add(Arc::new(Sandboxed { list: sandboxed }));
    if let Some(level) = merged.approval.level {
        chain.add(Arc::new(Leveled(level.into())));
    }
    Ok(chain)
}

/// Opens the list. Each item is read by itself first, so that an error can point at it.
fn list(stack: &Stack, merged: &Config, names: &mut Names<'_>) -> Result<List, ConfigError> {
    let presets = presets(stack, names)?;
    let approve = merged.approval.auto_approve.as_deref().unwrap_or_default();
    for item in approve {
        if item.value.starts_with('$') {
            let open = List::open(std::slice::from_ref(&item.value), &[], &presets, names.known);
            open.map_err(|source| ConfigError::Name { spot: item.spot.clone(), source })?;
        } else {
            names.pattern(item)?;
        }
    }
    names.patterns(&merged.approval.remove)?;
    names.patterns(&merged.approval.deny)?;
    let whole = || -> Result<List, approval::BadList> {
        let mut list = List::open(&words(approve), &words(&merged.approval.remove), &presets, names.known)?;
        list.deny(&words(&merged.approval.deny), names.known)?;
        Ok(list)
    };
    let at = merged.approval.deny.first().or(approve.first());
    let spot = at.map_or(super::Spot::BuiltIn, |item| item.spot.clone());
    whole().map_err(|source| ConfigError::Name { spot, source })
}

/// The presets that can be named: the user's replace those that haft ships, the project's add to both.
fn presets(stack: &Stack, names: &mut Names<'_>) -> Result<Presets, ConfigError> {
    let mut presets = shipped_presets();
    // What haft ships may name tools that this build does not have.
    for preset in presets.values_mut() {
        preset.approve.retain(|name| names.known.iter().any(|tool| tool.as_str() == name));
    }
    for (name, preset) in &stack.user.approval.presets {
        presets.insert(name.value.clone(), opened(name, preset, names)?);
    }
    for (name, preset) in &stack.project.approval.presets {
        let more = opened(name, preset, names)?;
        let known = presets.entry(name.value.clone()).or_default();
        known.approve.extend(more.approve);
        known.deny.extend(more.deny);
    }
    Ok(presets)
}

fn opened(name: &Text, preset: &Preset, names: &mut Names<'_>) -> Result<approval::Preset, ConfigError> {
    if !name.value.starts_with('$') {
        let why = format!("the name of a preset begins with `$`: `${}`", name.value);
        return Err(ConfigError::malformed(&name.spot, why));
    }
    names.patterns(&preset.approve)?;
    names.patterns(&preset.deny)?;
    Ok(approval::Preset { approve: words(&preset.approve), deny: words(&preset.deny) })
}

fn words(texts: &[Text]) -> Vec<String> {
    texts.iter().map(|text| text.value.clone()).collect()
}

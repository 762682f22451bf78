//! Steps: names of their own, tools that exist, and nothing used before it is there.

use super::super::flaw::Flaw;
use super::super::template::names_in;
use super::super::{Exec, Manifest};
use super::Found;
use super::uses::Uses;

pub(super) fn check(manifest: &Manifest, uses: &Uses<'_>, found: &Found, flaws: &mut Vec<Flaw>) {
    let Exec::Pipeline(pipeline) = &manifest.exec else { return };
    let ids: Vec<&str> = pipeline.steps.iter().map(|step| step.id.as_str()).collect();
    for (index, step) in pipeline.steps.iter().enumerate() {
        let at = |key: &str| format!("/exec/pipeline/steps/{index}/{key}");
        if ids[..index].contains(&ids[index]) {
            flaws.push(Flaw::error("step", at("id"), format!("`{}` is the id of an earlier step", step.id)));
        }
        if step.tool == manifest.name {
            flaws.push(Flaw::error("step", at("tool"), "calls itself, and would never end"));
        } else {
            flaws.extend(unknown(&step.tool, found).map(|message| Flaw::error("step", at("tool"), message)));
        }
    }
    for (pointer, text) in &uses.texts {
        // A step sees what came before it; the output sees all.
        let index = pointer.strip_prefix("/exec/pipeline/steps/").and_then(|rest| rest.split('/').next()?.parse().ok());
        let before = &ids[..index.unwrap_or(ids.len()).min(ids.len())];
        flaws.extend(
            names_in(text)
                .into_iter()
                .filter_map(|name| reference(name, before, &ids))
                .map(|why| Flaw::error("step", pointer, why)),
        );
    }
}

fn unknown(tool: &str, found: &Found) -> Option<String> {
    let tools = found.tools.as_deref()?;
    // What a bridged server offers is known when it runs.
    if tools.contains(tool) || tool.starts_with("mcp:") || tool.starts_with("mcp__") {
        return None;
    }
    let near = crate::suggest::did_you_mean(tool, tools.iter().map(String::as_str));
    let shown = crate::preview::cut(&crate::preview::inert(tool), 80);
    Some(format!("there is no tool `{shown}`; {}", near.unwrap_or_else(|| "`haft tools` lists them".to_owned())))
}

fn reference(name: &str, before: &[&str], ids: &[&str]) -> Option<String> {
    let mut words = name.split('.');
    if words.next() != Some("steps") {
        return None;
    }
    let Some(id) = words.next() else { return Some("`steps` is said without a step: `${steps.ID.output}`".to_owned()) };
    let what = words.next();
    if !ids.contains(&id) {
        Some(format!("there is no step `{id}`"))
    } else if !before.contains(&id) {
        Some(format!("the step `{id}` comes later; only what came before can be used"))
    } else if !matches!(what, Some("output" | "data")) {
        Some(format!("of a step there is `${{steps.{id}.output}}` and `${{steps.{id}.data.NAME}}`"))
    } else {
        None
    }
}

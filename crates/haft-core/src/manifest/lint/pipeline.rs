//! Steps: names of their own, tools that exist, and nothing used before it is there.

use super::super::flaw::Flaw;
use super::super::template::names_in;
use super::super::{Exec, Manifest, Part};
use super::Found;
use super::uses::Uses;

pub(super) fn check(manifest: &Manifest, uses: &Uses<'_>, found: &Found, flaws: &mut Vec<Flaw>) {
    if let Exec::Mcp(mcp) = &manifest.exec {
        let message = unbridged(&mcp.server, found);
        flaws.extend(message.map(|message| Flaw::warning("step", "/exec/mcp/server", message)));
    }
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
            flaws.extend(unknown(&step.tool, found).map(|flaw| Flaw { pointer: at("tool"), ..flaw }));
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

fn unknown(tool: &str, found: &Found) -> Option<Flaw> {
    let shown = crate::preview::cut(&crate::preview::inert(tool), 80);
    // Which tools a bridged server offers is known when it runs.
    let server = tool.strip_prefix("mcp:").and_then(|rest| rest.split(':').next());
    let server = server.or_else(|| tool.strip_prefix("mcp__").and_then(|rest| rest.split("__").next()));
    if let Some(server) = server {
        return unbridged(server, found).map(|message| Flaw::warning("step", "", message));
    }
    let tools = found.tools.as_deref()?;
    if tools.contains(tool) {
        return None;
    }
    let near = crate::suggest::did_you_mean(tool, tools.iter().map(String::as_str));
    let hint = near.unwrap_or_else(|| "`haft tools` lists them".to_owned());
    Some(Flaw::error("step", "", format!("there is no tool `{shown}`; {hint}")))
}

/// Why nobody here answers for a server.
fn unbridged(server: &str, found: &Found) -> Option<String> {
    let servers = found.servers.as_deref()?;
    if servers.contains(server) {
        return None;
    }
    let near = crate::suggest::did_you_mean(server, servers.iter().map(String::as_str));
    let shown = crate::preview::cut(&crate::preview::inert(server), 80);
    let hint = near.unwrap_or_else(|| format!("`haft mcp add {shown}` bridges it"));
    Some(format!("no server `{shown}` is bridged here; {hint}"))
}

fn reference(name: &str, before: &[&str], ids: &[&str]) -> Option<String> {
    let mut words = name.split('.');
    if words.next() != Some("steps") {
        return None;
    }
    let Some(id) = words.next() else { return Some("`steps` is said without a step: `${steps.ID.output}`".to_owned()) };
    if !ids.contains(&id) {
        return Some(format!("there is no step `{id}`"));
    }
    if !before.contains(&id) {
        return Some(format!("the step `{id}` comes later; only what came before can be used"));
    }
    match (words.next().and_then(Part::named), words.next()) {
        (Some(Part::Data), _) | (Some(_), None) => None,
        (Some(part), Some(_)) => {
            let part = part.word();
            Some(format!("`{part}` of a step has no parts; `${{steps.{id}.data.NAME}}` leads into what it gave"))
        }
        (None, _) => {
            let parts: Vec<String> =
                Part::ALL.iter().map(|part| format!("`${{steps.{id}.{}}}`", part.word())).collect();
            Some(format!("of a step there are {}", parts.join(", ")))
        }
    }
}

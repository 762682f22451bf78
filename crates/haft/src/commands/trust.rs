//! `haft trust`: accepting what a project brings along, after looking at it.

mod show;

use crate::app::{Failure, Ground};
use crate::cli::{Common, TrustArgs};
use crate::config::Trust;
use crate::started_by::require_user;
use crate::style;
use haft_core::record::Digest;
use haft_core::{CallError, ErrorKind};
use haft_runtime::agent::roles;
use haft_runtime::shelf::{Offer, Shelf};
use haft_runtime::skills::{OfferedSkill, SkillCatalog, SkillOffers};
use haft_runtime::work::workflow::{self, Offered};
use haft_store::Store;
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal, Write};
use tokio::runtime::Runtime;

/// What there is to accept.
struct Wanted {
    /// The configuration, if it is there and was not left out.
    config: Option<(Digest, Trust)>,
    /// The tools that do not count yet.
    tools: Vec<Offer>,
    /// The workflows that do not count yet.
    workflows: Vec<Offered>,
    /// The agents that do not count yet.
    agents: Vec<Offered>,
    /// The skills that do not count yet.
    skills: Vec<OfferedSkill>,
    /// How many of each count already.
    counted: [(usize, &'static str); 4],
}

impl Wanted {
    fn is_new(&self) -> bool {
        !self.tools.is_empty()
            || !self.workflows.is_empty()
            || !self.agents.is_empty()
            || !self.skills.is_empty()
            || self.config.is_some_and(|(_, before)| before != Trust::Trusted)
    }
}

/// What accepting works with.
#[derive(Clone, Copy)]
struct Means<'m> {
    store: &'m Store,
    shelf: &'m Shelf,
    skills: &'m SkillCatalog,
    runtime: &'m Runtime,
}

/// Accepts the project's configuration, tools, workflows, agents and skills as they stand, or takes that back.
pub(super) fn run(common: &Common, args: &TrustArgs) -> Result<u8, Failure> {
    require_user()?;
    let ground = Ground::find(common)?;
    let store = ground.store()?;
    let (shelf, skills) = (ground.shelf(&store), ground.skills(&store));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| CallError::internal(format!("the async runtime cannot start: {error}")))?;
    let means = Means { store: &store, shelf: &shelf, skills: &skills, runtime: &runtime };
    if args.revoke {
        return revoke(common, args, &ground, means);
    }
    let wanted = wanted(args, &ground, means)?;
    if args.yes {
        // Whoever does not look is told nonetheless.
        for offer in &wanted.tools {
            for why in show::cautions(offer) {
                style::warn(&format!("{}: {why}", offer.name()));
            }
        }
        for skill in &wanted.skills {
            for why in &skill.cautions {
                style::warn(&style::inert(&format!("{}/{why}", ground.workspace.shown(&skill.shown.path))));
            }
        }
    }
    if wanted.is_new() && !args.yes && !confirmed(common, &ground, &wanted)? {
        return Err(CallError::new(ErrorKind::Rejected, "not trusted").into());
    }
    accept(common, &ground, wanted, means)
}

fn wanted(args: &TrustArgs, ground: &Ground, means: Means<'_>) -> Result<Wanted, Failure> {
    let Means { store, shelf, skills, runtime } = means;
    let digest = ground.layers.project_digest().filter(|_| args.tools.is_empty());
    let config = match digest {
        Some(digest) => {
            let before = ground.layers.trust_in(store)?;
            // What cannot be understood cannot be trusted.
            ground.resolve(store)?;
            Some((digest, before))
        }
        None => None,
    };
    let (offers, refused) = runtime.block_on(shelf.offers(&args.tools))?;
    for why in &refused {
        style::warn(&why.to_string());
    }
    let (workflows, agents, skills) = if args.tools.is_empty() {
        let workflows = runtime.block_on(workflow::offers(store, &ground.workspace))?;
        let agents = runtime.block_on(roles::offers(store, &ground.workspace))?;
        (workflows, agents, runtime.block_on(skills.offers())?)
    } else {
        (workflow::Offers::default(), workflow::Offers::default(), SkillOffers::default())
    };
    for flaw in workflows.flaws.iter().chain(&agents.flaws).chain(&skills.flaws) {
        style::warn(&style::inert(flaw));
    }
    let none = |offers: &workflow::Offers| offers.open.is_empty() && offers.counted == 0;
    let no_skills = skills.open.is_empty() && skills.counted == 0;
    if config.is_none() && offers.is_empty() && none(&workflows) && none(&agents) && no_skills {
        if !workflows.flaws.is_empty() {
            return Err(CallError::failed("none of these workflows can be accepted").into());
        }
        if !agents.flaws.is_empty() {
            return Err(CallError::failed("none of these agents can be accepted").into());
        }
        if !skills.flaws.is_empty() {
            return Err(CallError::failed("none of these skills can be accepted").into());
        }
        if !refused.is_empty() {
            return Err(CallError::failed("none of these tools can be accepted").into());
        }
        let file = ground.paths.project_config();
        let message = format!(
            "{} is not there, and the project has no tools, workflows, agents or skills: there is nothing to trust",
            file.display()
        );
        return Err(CallError::not_found(message).hint("`haft init` makes a configuration").into());
    }
    let (counted, tools): (Vec<Offer>, Vec<Offer>) = offers.into_iter().partition(Offer::counts);
    let counted = [
        (counted.len(), "tools"),
        (workflows.counted, "workflows"),
        (agents.counted, "agents"),
        (skills.counted, "skills"),
    ];
    Ok(Wanted { config, tools, counted, workflows: workflows.open, agents: agents.open, skills: skills.open })
}

fn accept(common: &Common, ground: &Ground, wanted: Wanted, means: Means<'_>) -> Result<u8, Failure> {
    let Means { store, shelf, skills, runtime } = means;
    let new = wanted.is_new();
    let state = match wanted.config {
        Some((_, Trust::Trusted)) => Some("trusted already"),
        Some(_) => Some("trusted"),
        None => None,
    };
    if let Some((digest, _)) = wanted.config {
        runtime.block_on(store.trust(ground.paths.root(), Some(digest)))?;
    }
    let names: Vec<String> = wanted.tools.iter().map(|offer| offer.name().to_owned()).collect();
    let shown = show::data(&wanted.tools);
    if !names.is_empty() {
        runtime.block_on(shelf.accept_as_shown(wanted.tools))?;
    }
    if !wanted.workflows.is_empty() {
        runtime.block_on(workflow::accept(store, &ground.workspace, &wanted.workflows))?;
    }
    if !wanted.agents.is_empty() {
        runtime.block_on(roles::accept(store, &ground.workspace, &wanted.agents))?;
    }
    let accepted: Vec<Offered> = wanted.skills.iter().map(|skill| skill.shown.clone()).collect();
    if !accepted.is_empty() {
        runtime.block_on(skills.accept(wanted.skills))?;
    }
    if common.json() {
        let mut said = json!({ "tools": names, "shown": shown, "workflows": show::files(&wanted.workflows),
            "agents": show::files(&wanted.agents), "skills": show::files(&accepted) });
        if let (Some((digest, _)), Some(state)) = (wanted.config, state) {
            said["file"] = json!(ground.paths.project_config());
            said["state"] = json!(state);
            said["content"] = json!(digest);
        }
        style::json(&said);
        return Ok(0);
    }
    if let Some(state) = state {
        style::out(&format!("{state}: {}", style::inert(&ground.paths.project_config().display().to_string())));
    }
    for name in &names {
        style::out(&format!("accepted: {name}"));
    }
    for workflow in &wanted.workflows {
        style::out(&format!("accepted: the workflow {}", style::inert(&workflow.name)));
    }
    for agent in &wanted.agents {
        style::out(&format!("accepted: the agent {}", style::inert(&agent.name)));
    }
    for skill in &accepted {
        style::out(&format!("accepted: the skill {}", style::inert(&ground.workspace.shown(&skill.path))));
    }
    // The tools are always told, if anything is.
    let shown = |(at, (count, _)): &(usize, &(usize, &str))| *at == 0 || *count > 0;
    let counted: Vec<String> =
        wanted.counted.iter().enumerate().filter(shown).map(|(_, (count, noun))| format!("{count} {noun}")).collect();
    if !new && wanted.counted.iter().any(|(count, _)| *count > 0) {
        style::out(&format!("accepted already: {}", counted.join(" and ")));
    }
    Ok(0)
}

fn revoke(common: &Common, args: &TrustArgs, ground: &Ground, means: Means<'_>) -> Result<u8, Failure> {
    let Means { store, shelf, skills, runtime } = means;
    let whole = args.tools.is_empty();
    if whole {
        runtime.block_on(store.trust(ground.paths.root(), None))?;
    }
    let names = runtime.block_on(shelf.revoke(&args.tools))?;
    let (workflows, agents, skills) = if whole {
        let workflows = runtime.block_on(workflow::revoke(store, &ground.workspace))?;
        let agents = runtime.block_on(roles::revoke(store, &ground.workspace))?;
        (workflows, agents, runtime.block_on(skills.revoke())?)
    } else {
        Default::default()
    };
    if let Some(name) = args.tools.iter().find(|name| !names.contains(name)) {
        style::warn(&format!("`{}` was not accepted", haft_core::preview::inert(name)));
    }
    let file = ground.paths.project_config();
    if common.json() {
        let mut said = json!({"state": "withdrawn", "tools": names, "workflows": workflows, "agents": agents,
            "skills": skills});
        if whole {
            (said["file"], said["content"]) = (json!(file), Value::Null);
        }
        style::json(&said);
        return Ok(0);
    }
    if whole {
        style::out(&format!("withdrawn: {}", style::inert(&file.display().to_string())));
    }
    for name in &names {
        style::out(&format!("withdrawn: {name}"));
    }
    for name in &workflows {
        style::out(&format!("withdrawn: the workflow {}", style::inert(name)));
    }
    for name in &agents {
        style::out(&format!("withdrawn: the agent {}", style::inert(name)));
    }
    for place in &skills {
        style::out(&format!("withdrawn: the skill {}", style::inert(place)));
    }
    Ok(0)
}

/// Shows what would be accepted, and asks once. Whoever is no person at a terminal has to say that nobody looks.
fn confirmed(common: &Common, ground: &Ground, wanted: &Wanted) -> Result<bool, CallError> {
    let mut things = Vec::new();
    if let Some((_, before)) = wanted.config.filter(|(_, before)| *before != Trust::Trusted) {
        show::config(ground, before);
        things.push("let this file decide what runs here without asking".to_owned());
    }
    for offer in &wanted.tools {
        show::tool(ground, offer);
    }
    match wanted.tools.len() {
        0 => {}
        1 => things.push("let agents use this tool with these permissions".to_owned()),
        count => things.push(format!("let agents use these {count} tools with these permissions")),
    }
    for workflow in &wanted.workflows {
        show::file(ground, "workflow", workflow);
    }
    match wanted.workflows.len() {
        0 => {}
        1 => things.push("let this workflow be run".to_owned()),
        count => things.push(format!("let these {count} workflows be run")),
    }
    for agent in &wanted.agents {
        show::file(ground, "agent", agent);
    }
    match wanted.agents.len() {
        0 => {}
        1 => things.push("let this agent be used".to_owned()),
        count => things.push(format!("let these {count} agents be used")),
    }
    for skill in &wanted.skills {
        show::skill(ground, skill);
    }
    match wanted.skills.len() {
        0 => {}
        1 => things.push("let agents follow this skill".to_owned()),
        count => things.push(format!("let agents follow these {count} skills")),
    }
    if !std::io::stdin().is_terminal() {
        let nobody = CallError::invalid("there is no terminal to ask at, and nothing was accepted")
            .hint("look at it, and accept it with --yes");
        let shown = || {
            json!({"shown": show::data(&wanted.tools), "workflows": show::files(&wanted.workflows),
                "agents": show::files(&wanted.agents), "skills": show::skills(&wanted.skills)})
        };
        return Err(if common.json() { nobody.details(shown()) } else { nobody });
    }
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "{}? [y/N] ", things.join(", and "));
    let _ = stderr.flush();
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

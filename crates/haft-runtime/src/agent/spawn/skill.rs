//! Children that run a skill: what they are told, and what its `allowed-tools` narrows them to.

use super::Order;
use crate::pipeline::Haft;
use haft_core::policy::{Gate, Rules};
use haft_core::preview::inert;
use haft_core::skill::{ToolAllowlist, is_flagged};
use haft_core::{Call, CallError, ErrorKind};

/// What a child reads the files of its own skill with, whatever the skill lists.
const READ: &str = "skill.read";

/// What an order's skill lets through; nothing stands in the way of a child whose skill lists no tools.
pub(super) fn skill_gate(order: &Order) -> Result<Option<Gate>, CallError> {
    let Some(narrowing) = &order.narrowing else { return Ok(None) };
    let tools: Vec<&str> = narrowing.tools.iter().map(String::as_str).chain([READ]).collect();
    let rules = Rules::new(&tools, &[]).map_err(|error| CallError::invalid(error.to_string()))?;
    let name = order.skill.as_deref().unwrap_or_default();
    Ok(Some(Gate { by: format!("skill {}", inert(name)), rules }))
}

impl Haft {
    /// What a child that runs a skill is narrowed to, and what it is told.
    pub(super) async fn skill_of(
        &self,
        name: Option<&str>,
        call: &Call,
    ) -> Result<(Option<ToolAllowlist>, Option<String>), CallError> {
        let Some(name) = name.filter(|name| !name.trim().is_empty()) else { return Ok((None, None)) };
        let skill = self.skills.open(name).await?;
        let told = skill.instructions(&self.workspace.shown(&skill.listed.place));
        if is_flagged(&told) {
            let why = format!("the skill `{name}` looks like prompt injection, so no agent may run it");
            return Err(CallError::new(ErrorKind::Denied, why).hint("`haft lint` says where"));
        }
        let listed = skill.listed.reading.skill.as_ref().and_then(|skill| skill.allowed_tools.as_deref());
        let narrowing = listed.map(ToolAllowlist::of).map(|narrowing| ToolAllowlist {
            tools: narrowing.tools.iter().map(|tool| self.canonical(tool, call)).collect(),
            ..narrowing
        });
        Ok((narrowing, Some(told)))
    }
}

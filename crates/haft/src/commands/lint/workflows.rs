//! Workflows: pipelines that are files.

use super::Checked;
use super::look::Around;
use haft_core::manifest::lint::Rule;
use haft_core::manifest::{Flaw, Written};
use haft_core::preview::inert;
use haft_core::suggest;
use haft_core::work::{Does, Plan};
use haft_runtime::Workspace;
use haft_runtime::work::{Filed, filed};

/// What is asked of workflows, beside what is asked of tools.
pub(super) const RULES: [Rule; 2] = [
    Rule { id: "workflow", asks: "A workflow can be read, and its steps can be put in order." },
    Rule { id: "workflow-tool", asks: "The tools and pipelines that steps name are there." },
];

/// Looks at each of them.
pub(super) fn checked(workspace: &Workspace, around: &Around<'_>) -> Vec<Checked> {
    let files = filed(workspace);
    files.iter().map(|file| one(workspace, around, &files, file)).collect()
}

fn one(workspace: &Workspace, around: &Around<'_>, files: &[Filed], file: &Filed) -> Checked {
    let shown = file.path.strip_prefix(workspace.root()).unwrap_or(&file.path).display().to_string();
    let flaws = match &file.plan {
        Ok(plan) => {
            // It was read a moment ago; where a name stands is all that is wanted now.
            let text = std::fs::read_to_string(&file.path).unwrap_or_default();
            missing(plan, around, files, &Written::new(&text))
        }
        Err(misfits) => misfits
            .iter()
            .map(|misfit| {
                let flaw = Flaw::error("workflow", pointer(&misfit.fault.at), misfit.fault.what.clone());
                flaw.at((misfit.line, misfit.column))
            })
            .collect(),
    };
    Checked { shown, flaws }
}

/// What steps name and is not there. A tool may be elsewhere when it runs, so that is no error.
fn missing(plan: &Plan, around: &Around<'_>, files: &[Filed], written: &Written<'_>) -> Vec<Flaw> {
    let tools = around.tools();
    let steps = plan.steps.iter().enumerate();
    steps
        .filter_map(|(at, step)| {
            let (field, what) = match step.does()? {
                Does::Tool(tool, _) if !tools.contains(tool) && !around.may_serve(tool) => {
                    let near = suggest::did_you_mean(tool, tools.iter().map(String::as_str));
                    let hint = near.unwrap_or_else(|| "`haft tools` lists them".to_owned());
                    ("tool", format!("there is no tool `{}`; {hint}", inert(tool)))
                }
                Does::Pipeline(named, _) if !files.iter().any(|file| file.name == named) => {
                    let near = suggest::did_you_mean(named, files.iter().map(|file| file.name.as_str()));
                    let hint = near.unwrap_or_else(|| "it has to be stored where this is run".to_owned());
                    ("pipeline", format!("no workflow here is called `{}`; {hint}", inert(named)))
                }
                _ => return None,
            };
            let pointer = format!("/steps/{at}/{field}");
            let place = written.place(&pointer);
            Some(Flaw::warning("workflow-tool", pointer, what).at(place))
        })
        .collect()
}

/// `steps.2.when.0` as a pointer.
fn pointer(at: &str) -> String {
    at.split('.').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect()
}

//! Workflow files: a plan as YAML, `.haft/workflows/NAME.yml`. `mode` says what waits for what where steps do not say so:
//! in `dag` (unless something else is said) nothing, in `sequential` each step for the one before it, in `parallel` nothing
//! ever.

use super::plan::{Fault, Plan};
use crate::manifest::written::{self, Written};
use serde::Deserialize;
use serde_json::Value;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// What.
    pub fault: Fault,
}

/// What waits for what where steps do not say so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Dag,
    Sequential,
    Parallel,
}

/// Reads a file. `name` is its own, without the ending.
pub fn read(text: &str, name: &str) -> Result<Plan, Vec<Misfit>> {
    let whole =
        |line, column, at: &str, what: String| vec![Misfit { line, column, fault: Fault { at: at.to_owned(), what } }];
    let mut value = written::parse(text).map_err(|flaw| whole(flaw.line, flaw.column, "", flaw.message))?;
    let written = Written::new(text);
    let misfit = |fault: Fault| {
        let pointer: String =
            fault.at.split('.').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect();
        let (line, column) = written.place(&pointer);
        Misfit { line, column, fault }
    };
    let said = value.as_object_mut().and_then(|map| map.remove("mode"));
    let Ok(chosen) = said.map(serde_json::from_value::<Mode>).transpose() else {
        let what = "a workflow is sequential, parallel or dag".to_owned();
        return Err(vec![misfit(Fault { at: "mode".to_owned(), what })]);
    };
    let mut plan: Plan = plan_of(&value).map_err(|fault| vec![misfit(fault)])?;
    let mut faults = Vec::new();
    for at in 0..plan.steps.len() {
        match chosen.unwrap_or_default() {
            Mode::Sequential if at > 0 && plan.steps[at].needs.is_empty() => {
                let before = plan.steps[at - 1].id.clone();
                plan.steps[at].needs.push(before);
            }
            Mode::Parallel if !plan.steps[at].needs.is_empty() => {
                let what = "in a parallel workflow nothing waits; say `mode: dag`".to_owned();
                faults.push(Fault { at: format!("steps.{at}.needs"), what });
            }
            _ => {}
        }
    }
    plan.name.get_or_insert_with(|| name.to_owned());
    match plan.order() {
        Ok(_) if faults.is_empty() => Ok(plan),
        Ok(_) => Err(faults.into_iter().map(misfit).collect()),
        Err(more) => Err(faults.into_iter().chain(more).map(misfit).collect()),
    }
}

/// Reads a plan, and says where it is wrong.
fn plan_of(value: &Value) -> Result<Plan, Fault> {
    // Steps are read one by one, so that what is wrong with one is found at it.
    for (at, step) in value["steps"].as_array().into_iter().flatten().enumerate() {
        if let Err(error) = super::plan::Step::deserialize(step) {
            return Err(Fault { at: format!("steps.{at}"), what: error.to_string() });
        }
    }
    Plan::deserialize(value).map_err(|error| Fault { at: String::new(), what: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let misfits = read(text, "x").unwrap_err();
        misfits.iter().map(|misfit| format!("{}:{}: {}", misfit.line, misfit.column, misfit.fault)).collect()
    }

    #[test]
    fn a_file_is_a_plan_in_one_of_three_modes() {
        let text =
            "mode: sequential\nsteps:\n  - {id: a, tool: t}\n  - {id: b, tool: t}\n  - {id: c, tool: t, needs: [a]}\n";
        let plan = read(text, "release").unwrap();
        assert_eq!(plan.name.as_deref(), Some("release"));
        let needs: Vec<&[String]> = plan.steps.iter().map(|step| step.needs.as_slice()).collect();
        assert_eq!(needs, [&[][..], &["a".to_owned()], &["a".to_owned()]]);
        assert!(read("steps: [{id: a, tool: t}]", "x").unwrap().steps[0].needs.is_empty());
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        assert_eq!(said("mode: both\nsteps: []\n"), ["1:1: mode: a workflow is sequential, parallel or dag"]);
        let text = "mode: parallel\nsteps:\n  - id: a\n    tool: t\n  - id: b\n    tool: t\n    needs: [a]\n";
        assert_eq!(said(text), ["7:5: steps.1.needs: in a parallel workflow nothing waits; say `mode: dag`"]);
        let text = "steps:\n  - id: a\n    tool: t\n  - id: b\n    toll: t\n";
        assert!(said(text)[0].starts_with("4:5: steps.1: unknown field `toll`"), "{:?}", said(text));
        let cycle = "steps:\n  - {id: a, tool: t, needs: [b]}\n  - {id: b, tool: t, needs: [a]}\n";
        assert!(said(cycle)[0].contains("Dependency cycle detected: "), "{:?}", said(cycle));
        assert!(said("steps: [")[0].contains(':'));
    }
}

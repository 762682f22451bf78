//! What a pipeline is to do: steps, what each waits for, and what it may use up. Read from what an agent or a file says, and
//! checked whole before anything begins.

use super::command::unquotable;
use super::graph::{Graph, Node, OnFailure, Wrong};
use super::when::When;
use super::words::{Known, Unfilled, paths};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// The most steps that may be said in a call. Files and what is generated may have as many as a graph.
pub const INLINE_MAX: usize = 20;
/// How much of what a step gives is kept for others.
pub const RESULT_LIMIT: usize = 50 << 10;
/// How often a step may be tried again.
pub const RETRIES_MAX: u32 = 10;
/// How long a step may wait or take.
pub const SPAN_MAX_MS: u64 = 366 * 24 * 3600 * 1000;

/// A pipeline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it has to be given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// What becomes of the others when a step fails that does not say so itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// What it may use up, with all that is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What it does.
    pub steps: Vec<Step>,
    /// What it gives; what the last steps say if nothing is said here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// What a run may use up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// How many steps it may begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// How many at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// What models may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// One step. Exactly one of `tool`, `prompt`, `pipeline`, `ask` and `wait` says what it does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its name.
    pub id: String,
    /// It calls a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// With these arguments.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// They mean themselves: nothing in them is filled in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub literal: bool,
    /// It lets an agent do something.
    #[serde(default, alias = "task", skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// It is another pipeline, by name or id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// Which is given these.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// It asks a person whether to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// It lets time pass: `90s`, `5m`, `2h`, `3d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// The steps whose results it takes. Those that its words name are added.
    #[serde(default, alias = "input_from", alias = "depends_on", skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// It is wanted only if all of these hold.
    #[serde(default, alias = "conditions", skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<When>,
    /// How often it is tried again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// What its failure means for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Doing it twice is as good as doing it once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// Where it may run: what a worker has to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Does<'s> {
    /// It calls a tool.
    Tool(&'s str, &'s Map<String, Value>),
    /// It lets an agent do something.
    Prompt(&'s str),
    /// It is another pipeline.
    Pipeline(&'s str, &'s Map<String, Value>),
    /// It asks a person.
    Ask(&'s str),
    /// It lets so many milliseconds pass.
    Wait(u64),
}

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where: `steps.2.when.0`.
    pub at: String,
    /// What.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.at, self.what) }
    }
}

/// A span as people write it: `90s`, `5m`, `2h`, `3d`, or milliseconds.
pub fn span_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 24 * 3_600_000,
        _ => return None,
    };
    number.checked_mul(unit).filter(|ms| *ms <= SPAN_MAX_MS)
}

impl Step {
    /// What it does. None if that is not said, or said twice.
    pub fn does(&self) -> Option<Does<'_>> {
        let wait = self.wait.as_deref().map(|text| span_ms(text).map(Does::Wait));
        let said = [
            self.tool.as_deref().map(|tool| Some(Does::Tool(tool, &self.args))),
            self.prompt.as_deref().map(|prompt| Some(Does::Prompt(prompt))),
            self.pipeline.as_deref().map(|named| Some(Does::Pipeline(named, &self.inputs))),
            self.ask.as_deref().map(|question| Some(Does::Ask(question))),
            wait,
        ];
        let mut said = said.into_iter().flatten();
        match (said.next(), said.next()) {
            (Some(does), None) => does,
            _ => None,
        }
    }

    /// Its arguments, filled in.
    pub fn filled(&self, known: Known<'_>) -> Result<Value, Unfilled> {
        match &self.tool {
            Some(tool) if !self.literal => known.fill_args(tool, &self.args),
            _ => Ok(Value::Object(self.args.clone())),
        }
    }

    /// The paths that its words name.
    fn named(&self) -> Vec<&str> {
        let args = Some(&self.args).filter(|_| !self.literal);
        let maps = args.into_iter().chain([&self.inputs]).flat_map(|map| map.values().flat_map(paths));
        let texts = [&self.prompt, &self.ask].into_iter().flatten();
        let texts = texts.flat_map(|text| super::words::pieces(text)).filter_map(|piece| match piece {
            super::words::Piece::Path(path) => Some(path),
            super::words::Piece::Text(_) => None,
        });
        maps.chain(texts).chain(self.when.iter().map(|when| when.path.as_str())).collect()
    }

    fn faults(&self, at: usize) -> Vec<Fault> {
        let fault = |part: &str, what: String| Fault { at: format!("steps.{at}{part}"), what };
        let mut faults = Vec::new();
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        if self.id.is_empty() || self.id.chars().count() > 64 || !self.id.chars().all(plain) {
            faults.push(fault(".id", "a step's name is 1 to 64 letters, digits, `_` and `-`".to_owned()));
        }
        if self.wait.as_deref().is_some_and(|text| span_ms(text).is_none()) {
            faults.push(fault(".wait", "it is a span like 90s, 5m, 2h or 3d".to_owned()));
        } else if self.does().is_none() {
            let what = "exactly one of tool, prompt, pipeline, ask and wait says what a step does";
            faults.push(fault("", what.to_owned()));
        }
        if !self.args.is_empty() && self.tool.is_none() {
            faults.push(fault(".args", "only a step that calls a tool has arguments".to_owned()));
        }
        if let Some(tool) = self.tool.as_deref().filter(|_| !self.literal)
            && let Some((held, why)) = unquotable(tool, &self.args)
        {
            faults.push(fault(&format!(".args.{held}"), why.to_string()));
        }
        if !self.inputs.is_empty() && self.pipeline.is_none() {
            faults.push(fault(".inputs", "only a step that is a pipeline is given something".to_owned()));
        }
        if self.timeout.as_deref().is_some_and(|text| span_ms(text).is_none_or(|ms| ms == 0)) {
            faults.push(fault(".timeout", "it is a span like 90s, 5m or 2h".to_owned()));
        }
        if self.retries > 0 && self.pipeline.is_some() {
            let what = "a pipeline in a step is not tried again as a whole; say `retries` at its own steps";
            faults.push(fault(".retries", what.to_owned()));
        }
        if self.retries > RETRIES_MAX {
            faults.push(fault(".retries", format!("a step is tried again at most {RETRIES_MAX} times")));
        }
        let labelled = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '=' | '.' | '_');
        if self.label.as_deref().is_some_and(|label| label.is_empty() || !label.chars().all(labelled)) {
            faults.push(fault(".label", "a label is letters, digits, `-`, `=`, `.` and `_`".to_owned()));
        }
        faults
    }
}

/// What an input is unless something else is given: it is said as `default`, or alone in place of all that could be said.
pub fn default(says: &Value) -> Option<&Value> {
    match says {
        Value::Object(says) => says.get("default"),
        Value::Null => None,
        alone => Some(alone),
    }
}

impl Plan {
    /// Checks everything, and says in what order the steps go. Everything that is wrong is told at once.
    pub fn order(&self) -> Result<Graph, Vec<Fault>> {
        let mut faults: Vec<Fault> = self.steps.iter().enumerate().flat_map(|(at, step)| step.faults(at)).collect();
        let ids: BTreeSet<&str> = self.steps.iter().map(|step| step.id.as_str()).collect();
        let mut nodes = Vec::with_capacity(self.steps.len());
        for (at, step) in self.steps.iter().enumerate() {
            let mut needs = step.needs.clone();
            for path in step.named() {
                let first = path.strip_prefix("steps.").unwrap_or(path).split('.').next().unwrap_or_default();
                if ids.contains(first) {
                    needs.push(first.to_owned());
                } else if !self.inputs.contains_key(first) {
                    let what = format!("`{{{{{path}}}}}` names no step and no input of this pipeline");
                    faults.push(Fault { at: format!("steps.{at}"), what });
                }
            }
            // A no is a no, also where failures are let pass.
            let rule = step.on_failure.or(self.on_failure).unwrap_or_default();
            let on_failure = if step.ask.is_some() { OnFailure::Stop } else { rule };
            nodes.push(Node { id: step.id.clone(), needs, on_failure, retries: step.retries });
        }
        for path in self.output.iter().flat_map(paths) {
            let first = path.strip_prefix("steps.").unwrap_or(path).split('.').next().unwrap_or_default();
            if !ids.contains(first) && !self.inputs.contains_key(first) {
                let what = format!("`{{{{{path}}}}}` names no step and no input of this pipeline");
                faults.push(Fault { at: "output".to_owned(), what });
            }
        }
        if let Some(budget) = self.budget {
            let odd = |number: Option<f64>| number.is_some_and(|number| !number.is_finite() || number <= 0.0);
            if odd(budget.minutes) || odd(budget.usd) || budget.steps == Some(0) || budget.parallel == Some(0) {
                let what = "what a pipeline may use up is more than nothing".to_owned();
                faults.push(Fault { at: "budget".to_owned(), what });
            }
        }
        match Graph::new(nodes) {
            Ok(graph) if faults.is_empty() => Ok(graph),
            Ok(_) => Err(faults),
            Err(wrong) => {
                let whole = |wrong: &Wrong| Fault { at: "steps".to_owned(), what: wrong.to_string() };
                faults.extend(wrong.iter().map(whole));
                Err(faults)
            }
        }
    }

    /// The inputs, with the defaults of those that are not given. Errors name each that is missing or not asked for.
    pub fn given(&self, given: &Map<String, Value>) -> Result<Map<String, Value>, Vec<Fault>> {
        let mut all = Map::new();
        let mut faults = Vec::new();
        for (name, says) in &self.inputs {
            match given.get(name).or_else(|| default(says)) {
                Some(value) => drop(all.insert(name.clone(), value.clone())),
                None => faults.push(Fault { at: format!("inputs.{name}"), what: "it is not given".to_owned() }),
            }
        }
        for name in given.keys().filter(|name| !self.inputs.contains_key(*name)) {
            faults
                .push(Fault { at: format!("inputs.{name}"), what: "this pipeline asks for no such thing".to_owned() });
        }
        if faults.is_empty() { Ok(all) } else { Err(faults) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(value: Value) -> Plan {
        serde_json::from_value(value).unwrap()
    }

    fn said(value: Value) -> Vec<String> {
        plan(value).order().unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_make_a_step_wait_for_what_they_name() {
        let plan = plan(json!({
            "inputs": {"url": {"description": "where"}},
            "steps": [
                {"id": "b", "tool": "file.write", "args": {"content": "{{a.output}}", "path": "{{url}}"}},
                {"id": "a", "tool": "web.fetch", "args": {"url": "{{url}}"}},
                {"id": "c", "task": "sum up {{b}}", "when": [{"path": "a.success", "op": "eq", "value": true}]},
                {"id": "d", "wait": "3d", "input_from": ["c"]},
            ],
            "on_failure": "continue",
        }));
        let graph = plan.order().unwrap();
        let needs: Vec<&[usize]> = (0..4).map(|at| graph.needs(at)).collect();
        assert_eq!(needs, [&[1][..], &[], &[0, 1], &[2]]);
        assert!(graph.nodes().iter().all(|node| node.on_failure == OnFailure::Continue));
        assert_eq!(plan.steps[3].does(), Some(Does::Wait(3 * 24 * 3_600_000)));
    }

    #[test]
    fn a_pipeline_in_a_step_is_not_tried_again_as_a_whole() {
        let said = said(json!({"steps": [{"id": "a", "pipeline": "other", "retries": 1}]}));
        assert_eq!(
            said,
            ["steps.0.retries: a pipeline in a step is not tried again as a whole; say `retries` at its own steps"]
        );
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let said = said(json!({
            "steps": [
                {"id": "a b", "tool": "x", "prompt": "y"},
                {"id": "b", "wait": "soon", "timeout": "0s"},
                {"id": "c", "tool": "x", "args": {"q": "{{nobody.output}}"}, "retries": 99, "label": "a,b"},
                {"id": "c", "ask": "ok?", "needs": ["zzz"], "inputs": {"x": 1}},
            ],
            "output": "{{nothing}}", "budget": {"minutes": 0.0},
        }));
        assert_eq!(
            said,
            [
                "steps.0.id: a step's name is 1 to 64 letters, digits, `_` and `-`",
                "steps.0: exactly one of tool, prompt, pipeline, ask and wait says what a step does",
                "steps.1.wait: it is a span like 90s, 5m, 2h or 3d",
                "steps.1.timeout: it is a span like 90s, 5m or 2h",
                "steps.2.retries: a step is tried again at most 10 times",
                "steps.2.label: a label is letters, digits, `-`, `=`, `.` and `_`",
                "steps.3.inputs: only a step that is a pipeline is given something",
                "steps.2: `{{nobody.output}}` names no step and no input of this pipeline",
                "output: `{{nothing}}` names no step and no input of this pipeline",
                "budget: what a pipeline may use up is more than nothing",
                "steps: two steps are called `c`",
                "steps: the step `c` waits for `zzz`, and there is none",
            ]
        );
    }

    #[test]
    fn a_command_is_checked_before_anything_runs() {
        let step = |command: &str, literal: bool| {
            json!({"inputs": {"x": 1}, "steps": [
                {"id": "s", "tool": "shell.exec", "args": {"command": command}, "literal": literal},
            ]})
        };
        assert!(plan(step("echo {{x}}", false)).order().is_ok());
        assert_eq!(
            said(step("echo '{{x}}'", false)),
            ["steps.0.args.command: `{{x}}` stands in quotes; leave them away: it is put in as one quoted word"]
        );
        assert!(said(step("{{x}}", false))[0].contains("would be the whole command"));
        let literal = plan(step("echo '{{nobody}}'", true));
        assert!(literal.order().unwrap().needs(0).is_empty());
        let known = Known { inputs: &literal.inputs, steps: &std::collections::BTreeMap::new() };
        assert_eq!(literal.steps[0].filled(known).unwrap(), json!({"command": "echo '{{nobody}}'"}));
    }

    #[test]
    fn inputs_are_complete_and_nothing_else_is_given() {
        let plan = plan(json!({
            "inputs": {"a": {"default": 1}, "b": {}, "secs": 20, "open": null},
            "steps": [{"id": "x", "tool": "t", "args": {"v": "{{a}}{{b}}"}}],
        }));
        let given = |value: Value| plan.given(value.as_object().unwrap());
        let all = given(json!({"b": 2, "open": 0})).unwrap();
        assert_eq!(Value::Object(all), json!({"a": 1, "b": 2, "secs": 20, "open": 0}));
        assert_eq!(given(json!({"b": 2, "open": 0, "secs": 5})).unwrap()["secs"], 5);
        let faults: Vec<String> = given(json!({"c": 2})).unwrap_err().iter().map(ToString::to_string).collect();
        let expected = [
            "inputs.b: it is not given",
            "inputs.open: it is not given",
            "inputs.c: this pipeline asks for no such thing",
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn spans_are_read_as_people_write_them() {
        for (text, ms) in [("90s", 90_000), ("5 m", 300_000), ("2h", 7_200_000), ("250", 250), ("1d", 86_400_000)] {
            assert_eq!(span_ms(text), Some(ms), "{text}");
        }
        for text in ["", "s", "-1s", "5y", "99999999999d", "1.5h"] {
            assert_eq!(span_ms(text), None, "{text}");
        }
    }
}

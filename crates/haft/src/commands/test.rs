//! `haft test`: the examples of tools that are files, run as any call is, and compared with what they promise.

use super::call::approver;
use crate::app::{App, Failure};
use crate::cli::TestArgs;
use crate::style::{self, BAD, CARE, FAINT, GOOD, paint};
use haft_core::manifest::answer::expected;
use haft_core::manifest::{Example, Format, Manifest};
use haft_core::preview::inert;
use haft_core::{CallError, Outcome};
use haft_runtime::shelf::Shelved;
use haft_runtime::{Approver, Halt};
use serde::Serialize;
use serde_json::Value;

/// How one example went.
#[derive(Debug, Serialize)]
struct Tested {
    tool: String,
    example: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    passed: bool,
    /// Why not, or where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// What came of all of them.
#[derive(Debug, Default, Serialize)]
struct Tests {
    passed: usize,
    failed: usize,
    examples: Vec<Tested>,
    /// Tools without examples.
    without: Vec<String>,
    /// Tools that were not run, because nobody accepted them as they are or because they cannot be read.
    skipped: Vec<String>,
}

/// Runs the examples. Exits with 1 if one of them did not give what it promises.
pub(super) fn run(app: &App, args: &TestArgs) -> Result<u8, Failure> {
    app.learn_tools();
    let report = app.haft.shelf().report();
    let chosen = chosen(report.tools, &args.tools)?;
    let (approver, mut tests) = (approver(app, &args.asking), Tests::default());
    for tool in chosen {
        match &tool.manifest {
            Some(manifest) if tool.standing.counts() && tool.flaws.is_empty() => {
                if manifest.examples.is_empty() {
                    tests.without.push(tool.name.clone());
                }
                for (at, example) in manifest.examples.iter().enumerate() {
                    let tested = test(app, manifest, (at + 1, example), approver.as_ref())?;
                    tell(app, &tested);
                    tests.passed += usize::from(tested.passed);
                    tests.failed += usize::from(!tested.passed);
                    tests.examples.push(tested);
                }
            }
            // What was named and cannot be tested has not passed.
            _ => {
                tests.failed += usize::from(!args.tools.is_empty() || !tool.flaws.is_empty());
                tests.skipped.push(tool.name);
            }
        }
    }
    app.block_on(app.haft.flush())?;
    conclude(app, &tests);
    Ok(u8::from(tests.failed > 0))
}

fn chosen(all: Vec<Shelved>, names: &[String]) -> Result<Vec<Shelved>, CallError> {
    if let Some(name) = names.iter().find(|name| !all.iter().any(|tool| tool.name == **name)) {
        return Err(CallError::not_found(format!("there is no tool `{}` that is a file", inert(name)))
            .hint("`haft tools` lists what there is"));
    }
    Ok(all.into_iter().filter(|tool| names.is_empty() || names.contains(&tool.name)).collect())
}

fn test(
    app: &App,
    manifest: &Manifest,
    (number, example): (usize, &Example),
    approver: &dyn Approver,
) -> Result<Tested, Failure> {
    let call = app.call(&manifest.name, Value::Object(example.params.clone()), Some("haft"))?;
    let outcome = app.block_on(app.haft.call(call, approver, &Halt::new()));
    let why = judge(manifest, example, &outcome);
    let description = example.description.clone();
    Ok(Tested { tool: manifest.name.clone(), example: number, description, passed: why.is_none(), why })
}

/// Why an outcome is not what the example promises.
fn judge(manifest: &Manifest, example: &Example, outcome: &Outcome) -> Option<String> {
    if let Some(error) = &outcome.error {
        return Some(format!("it failed: {}", error.message));
    }
    let promised = example.expected_output.as_ref()?;
    // What nobody vouches for is marked in the output, and not in the data.
    let found = match (&outcome.data, manifest.outputs.format) {
        (Some(data), Format::Json) | (Some(data @ Value::String(_)), Format::Text) => data.clone(),
        _ => Value::from(outcome.output.as_str()),
    };
    expected(promised, manifest.outputs.format, &found).err().map(|mismatch| mismatch.to_string())
}

fn tell(app: &App, tested: &Tested) {
    if app.json {
        return;
    }
    let what = tested.description.as_deref().map(|text| format!(": {}", inert(text))).unwrap_or_default();
    let mark = if tested.passed { paint(GOOD, "pass") } else { paint(BAD, "FAIL") };
    style::out(&format!("{mark}  {} example {}{what}", tested.tool, tested.example));
    for line in tested.why.iter().flat_map(|why| why.lines()) {
        style::out(&format!("      {}", paint(FAINT, inert(line))));
    }
}

fn conclude(app: &App, tests: &Tests) {
    if app.json {
        style::json(tests);
        return;
    }
    for name in &tests.without {
        style::note(&format!("{}  {name} has no examples", paint(CARE, "none")));
    }
    for name in &tests.skipped {
        style::note(&format!("{}  {name} was not run: `haft tools {name}` says why", paint(CARE, "skip")));
    }
    style::note(&paint(FAINT, format!("{} passed, {} failed", tests.passed, tests.failed)));
}

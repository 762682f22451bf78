//! `haft test`: the examples of tools that are files, run as any call is, and compared with what they promise.

use super::call::approver;
use crate::app::{App, Failure};
use crate::cli::TestArgs;
use crate::style::{self, BAD, CARE, FAINT, GOOD, paint};
use haft_core::manifest::answer::expected;
use haft_core::manifest::{Example, Exec, Format, Manifest, reach};
use haft_core::preview::inert;
use haft_core::suggest::did_you_mean;
use haft_core::{CallError, ErrorKind, Outcome};
use haft_runtime::shelf::{Shelved, Standing};
use haft_runtime::{Approver, Halt};
use serde::Serialize;
use serde_json::Value;

/// How one example went, or a tool of which none could be run.
#[derive(Debug, Serialize)]
struct Tested {
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    passed: bool,
    /// Why not, or where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// An example that was not run, which is no failure.
#[derive(Debug, Serialize)]
struct Skipped {
    tool: String,
    example: usize,
    why: String,
}

/// What came of all of them.
#[derive(Debug, Default, Serialize)]
struct Tests {
    passed: usize,
    failed: usize,
    examples: Vec<Tested>,
    /// Tools without examples.
    without: Vec<String>,
    skipped: Vec<Skipped>,
}

/// Runs the examples. Exits with 1 if one of them did not give what it promises, or could not be asked to.
pub(super) fn run(app: &App, args: &TestArgs) -> Result<u8, Failure> {
    app.learn_tools();
    let report = app.haft.shelf().report();
    let chosen = chosen(report.tools, &args.tools)?;
    let (approver, mut tests) = (approver(app, &args.asking), Tests::default());
    for tool in chosen {
        match unusable(&tool) {
            Some(why) => tests
                .add(app, Tested { tool: tool.name, example: None, description: None, passed: false, why: Some(why) }),
            None => tests.run_all(app, &tool, approver.as_ref())?,
        }
    }
    app.block_on(app.haft.flush())?;
    conclude(app, &tests);
    Ok(u8::from(tests.failed > 0))
}

fn chosen(all: Vec<Shelved>, names: &[String]) -> Result<Vec<Shelved>, CallError> {
    if let Some(name) = names.iter().find(|name| !all.iter().any(|tool| tool.name == **name)) {
        let message = format!("there is no tool `{}` that is a file", inert(name));
        let near = did_you_mean(name, all.iter().map(|tool| tool.name.as_str()));
        return Err(CallError::new(ErrorKind::UnknownTool, message)
            .hint(near.unwrap_or_else(|| "`haft tools` lists what there is".to_owned())));
    }
    Ok(all.into_iter().filter(|tool| names.is_empty() || names.contains(&tool.name)).collect())
}

/// Why a tool cannot be run: what nobody could try has not passed.
fn unusable(tool: &Shelved) -> Option<String> {
    let name = &tool.name;
    if !tool.flaws.is_empty() || tool.manifest.is_none() {
        return Some(tool.lines().collect::<Vec<_>>().join("\n"));
    }
    (!tool.standing.counts()).then(|| {
        let changed = tool.standing == Standing::Changed;
        let why = if changed { "it has changed since it was accepted" } else { "nobody has accepted it" };
        format!("{why}; run `haft trust {name}`")
    })
}

/// Why an example is not run, although the tool could be.
fn idle(app: &App, manifest: &Manifest, example: &Example) -> Option<String> {
    match &manifest.exec {
        // Who promises nothing has nothing to gain from asking strangers.
        Exec::Http(http) if example.expected_output.is_none() => {
            let host = reach::of(http).filter(|own| !own.private)?;
            Some(format!("without an `expected_output` nothing is sent to {}", host.rule))
        }
        Exec::Mcp(mcp) if app.bridge().is_none_or(|bridge| !bridge.has(&mcp.server)) => {
            let server = inert(&mcp.server);
            Some(format!("no server `{server}` is bridged; `haft mcp add {server}` bridges it"))
        }
        _ => None,
    }
}

impl Tests {
    fn run_all(&mut self, app: &App, tool: &Shelved, approver: &dyn Approver) -> Result<(), Failure> {
        let Some(manifest) = &tool.manifest else { return Ok(()) };
        if manifest.examples.is_empty() {
            self.without.push(tool.name.clone());
        }
        for (example, number) in manifest.examples.iter().zip(1..) {
            match idle(app, manifest, example) {
                Some(why) => self.skipped.push(Skipped { tool: tool.name.clone(), example: number, why }),
                None => self.add(app, test(app, manifest, (number, example), approver)?),
            }
        }
        Ok(())
    }

    fn add(&mut self, app: &App, tested: Tested) {
        tell(app, &tested);
        self.passed += usize::from(tested.passed);
        self.failed += usize::from(!tested.passed);
        self.examples.push(tested);
    }
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
    Ok(Tested { tool: manifest.name.clone(), example: Some(number), description, passed: why.is_none(), why })
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
    let example = tested.example.map(|number| format!(" example {number}")).unwrap_or_default();
    style::out(&format!("{mark}  {}{example}{what}", tested.tool));
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
    for Skipped { tool, example, why } in &tests.skipped {
        style::note(&format!("{}  {tool} example {example}: {why}", paint(CARE, "skip")));
    }
    let skipped = if tests.skipped.is_empty() { String::new() } else { format!(", {} skipped", tests.skipped.len()) };
    style::note(&paint(FAINT, format!("{} passed, {} failed{skipped}", tests.passed, tests.failed)));
}

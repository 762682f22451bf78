//! `haft lint`: tools, workflows, agents and skills that are files, checked where they lie.

mod agents;
mod files;
mod look;
mod sarif;
mod skills;
mod workflows;

use crate::app::Failure;
use crate::cli::{Common, LintArgs, LintFormat};
use crate::config::Paths;
use crate::style::{self, GOOD, paint};
use files::File;
use haft_core::manifest::{Flaw, Severity, fix};
use haft_core::{CallError, suggest};
use haft_runtime::Workspace;
use haft_runtime::shelf::Whose;
use haft_runtime::skills::ListedSkill;
use look::Around;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// So often a file is mended and looked at again: mending tabs lets the rest be seen.
const ROUNDS: usize = 3;

/// What was found, all in all.
struct Report {
    /// The tools, and whatever else lies where tools should.
    checked: Vec<Checked>,
    /// How many of them are tools.
    tools: usize,
    /// How many are workflows.
    workflows: usize,
    /// How many are agents.
    agents: usize,
    /// How many are skills.
    skills: usize,
    mended: usize,
}

/// One place, and what is wrong there.
struct Checked {
    /// The file, from the project's root.
    shown: String,
    flaws: Vec<Flaw>,
}

/// Checks the tools and the workflows.
pub(super) fn run(common: &Common, args: &LintArgs) -> Result<u8, Failure> {
    let workspace = workspace(common)?;
    let paths = Paths::from_env(workspace.root())?;
    // What is not looked at may be called nevertheless, and may hide what is.
    let (everything, mut strays) = files::all(workspace.root(), &paths);
    let around = Around::new(&paths, &everything);
    let shared = |whose| args.global || whose == Whose::Project;
    let mut files: Vec<&File> = everything.iter().filter(|file| shared(file.whose)).collect();
    if args.tools.is_empty() {
        strays.retain(|stray| shared(stray.whose));
    } else {
        files = chosen(files, &args.tools)?;
        strays.clear();
    }
    let (checked, mended) = checked(&around, &files, args.fix);
    let mut report = Report { checked, tools: files.len(), workflows: 0, agents: 0, skills: 0, mended };
    report.name_twins(&files, &everything);
    report.checked.extend(strays.iter().map(|stray| {
        let message = "is no tool: a tool is a directory with a tool.yml in it";
        Checked { shown: stray.shown.clone(), flaws: vec![Flaw::warning("file", "", message)] }
    }));
    if args.tools.is_empty() {
        let workflows = workflows::checked(&workspace, &around);
        report.workflows = workflows.len();
        report.checked.extend(workflows);
        let agents = agents::checked(&workspace, &around);
        report.agents = agents.len();
        report.checked.extend(agents);
        let (skills, count) = skills::checked(&paths, &around, args.global);
        report.skills = count;
        report.checked.extend(skills);
    }
    let errors = report.count(Severity::Error) + if args.strict { report.count(Severity::Warning) } else { 0 };
    match (args.format, common.json()) {
        (Some(LintFormat::Sarif), _) => style::pretty(&sarif::of(&report)),
        // With `--json`, stdout carries JSON and nothing else.
        (Some(LintFormat::Json), _) | (_, true) => style::pretty(&report.json()),
        (Some(LintFormat::Text) | None, false) => report.text(workspace.root()),
    }
    Ok(u8::from(errors > 0))
}

/// The project. Its configuration does not matter here, and may be broken.
pub(super) fn workspace(common: &Common) -> Result<Workspace, Failure> {
    let here = common.root_dir().map_or_else(std::env::current_dir, Ok);
    let here = here.map_err(|error| CallError::invalid(format!("no working directory: {error}")))?;
    let found = if common.root.is_some() { Workspace::new(&here) } else { Workspace::discover(&here) };
    Ok(found.map_err(|error| CallError::invalid(format!("{}: {error}", here.display())))?)
}

/// Everything that is wrong with one skill, for whoever shows it.
pub(super) fn skill_flaws_alone(paths: &Paths, skill: &ListedSkill) -> Vec<Flaw> {
    let (everything, _) = files::all(paths.root(), paths);
    skills::skill_flaws(skill, &Around::new(paths, &everything))
}

/// Those that were asked for.
fn chosen<'f>(files: Vec<&'f File>, names: &[String]) -> Result<Vec<&'f File>, CallError> {
    for name in names {
        if !files.iter().any(|file| file.name == *name) {
            let near = suggest::did_you_mean(name, files.iter().map(|file| file.name.as_str()));
            let error = CallError::invalid(format!("there is no tool `{}` here", haft_core::preview::inert(name)));
            return Err(
                error.hint(near.unwrap_or_else(|| "`haft lint` without a name looks at all of them".to_owned()))
            );
        }
    }
    Ok(files.into_iter().filter(|file| names.contains(&file.name)).collect())
}

/// Checks every file, on as many threads as there are processors. One that is bad hides no other.
fn checked(around: &Around<'_>, files: &[&File], mend: bool) -> (Vec<Checked>, usize) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len().div_ceil(32)).max(1);
    let each = files.len().div_ceil(threads).max(1);
    let one = |file: &File| {
        let (flaws, mended) = if mend { mended(around, file) } else { (look::flaws(around, file), 0) };
        (Checked { shown: file.shown.clone(), flaws }, mended)
    };
    let all: Vec<(Checked, usize)> = std::thread::scope(|scope| {
        let work =
            files.chunks(each).map(|some| scope.spawn(move || some.iter().copied().map(one).collect::<Vec<_>>()));
        let work: Vec<_> = work.collect();
        work.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let count = all.iter().map(|(_, mended)| mended).sum();
    (all.into_iter().map(|(checked, _)| checked).collect(), count)
}

/// Mends a file, and says what is left.
fn mended(around: &Around<'_>, file: &File) -> (Vec<Flaw>, usize) {
    let (mut flaws, mut count) = (look::flaws(around, file), 0);
    for _ in 0..ROUNDS {
        if flaws.iter().all(|flaw| flaw.fix.is_none()) {
            break;
        }
        let Ok(text) = file.text() else { break };
        let (better, done) = fix::mend(&text, &flaws);
        if done == 0 {
            break;
        }
        if let Err(error) = file.write(&better) {
            flaws.push(Flaw::error("file", "", format!("could not be mended: {error}")));
            break;
        }
        count += done;
        flaws = look::flaws(around, file);
    }
    (flaws, count)
}

impl Report {
    fn count(&self, severity: Severity) -> usize {
        self.checked.iter().flat_map(|checked| &checked.flaws).filter(|flaw| flaw.severity == severity).count()
    }

    /// Of two tools with one name, the one that is found first counts.
    fn name_twins(&mut self, files: &[&File], everything: &[File]) {
        let mut first: BTreeMap<&str, &File> = BTreeMap::new();
        for file in everything {
            first.entry(&file.name).or_insert(file);
        }
        for (file, checked) in files.iter().zip(&mut self.checked) {
            if let Some(other) = first.get(file.name.as_str()).filter(|other| other.dir != file.dir) {
                let message = format!("{} has the same name, and counts instead", other.shown);
                checked.flaws.push(Flaw::warning("name-taken", "/name", message).at((1, 1)));
            }
        }
    }

    fn text(&self, root: &Path) {
        let mut lines = Vec::new();
        for Checked { shown, flaws } in &self.checked {
            lines.extend(flaws.iter().map(|flaw| line(shown, flaw)));
        }
        if !lines.is_empty() {
            style::out(&style::inert(&lines.join("\n")));
        }
        style::out(&self.sentence(root));
    }

    fn sentence(&self, root: &Path) -> String {
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        let mended = if self.mended > 0 { format!("{} mended; ", counted(self.mended, "flaw")) } else { String::new() };
        if self.checked.is_empty() {
            let root = style::inert(&root.display().to_string());
            return format!("There are no tools in .haft/tools or .glee/tools of {root}; `haft new` makes one.");
        }
        let all = [(self.tools, "tool"), (self.workflows, "workflow"), (self.agents, "agent"), (self.skills, "skill")];
        let of: Vec<String> =
            all.iter().filter(|(count, _)| *count > 0).map(|(count, noun)| counted(*count, noun)).collect();
        let of = if of.is_empty() { counted(0, "tool") } else { of.join(" and ") };
        match (errors, warnings) {
            (0, 0) => format!("{mended}{}", paint(GOOD, format!("Nothing is wrong with {of}."))),
            (0, warnings) => format!("{mended}{} in {of}, no errors.", counted(warnings, "warning")),
            (errors, 0) => format!("{mended}{} in {of}.", counted(errors, "error")),
            (errors, warnings) => {
                format!("{mended}{}, {} in {of}.", counted(errors, "error"), counted(warnings, "warning"))
            }
        }
    }

    fn json(&self) -> Value {
        let flaws = self.checked.iter().flat_map(|checked| {
            checked.flaws.iter().map(|flaw| {
                json!({"file": checked.shown, "line": flaw.line, "column": flaw.column, "path": flaw.path(),
                    "pointer": flaw.pointer, "rule": flaw.rule, "severity": flaw.severity, "message": flaw.message,
                    "fixable": flaw.fix.is_some()})
            })
        });
        let flaws: Vec<Value> = flaws.collect();
        json!({"tools": self.tools, "workflows": self.workflows, "agents": self.agents, "skills": self.skills,
            "errors": self.count(Severity::Error),
            "warnings": self.count(Severity::Warning), "mended": self.mended, "flaws": flaws})
    }
}

/// `file:line:col: path: message`.
fn line(shown: &str, flaw: &Flaw) -> String {
    let mut line = shown.to_owned();
    if flaw.line > 0 {
        line.push_str(&format!(":{}:{}", flaw.line, flaw.column));
    }
    let path = flaw.path();
    if !path.is_empty() {
        line.push_str(&format!(": {path}"));
    }
    let word = if flaw.severity == Severity::Warning { "warning: " } else { "" };
    format!("{line}: {word}{}", haft_core::preview::inert(&flaw.message))
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

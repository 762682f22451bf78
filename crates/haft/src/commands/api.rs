//! `haft api`: what is known of APIs, for people.

use crate::app::{App, Failure};
use crate::cli::{ApiAction, ApiImport};
use crate::openapi::{self, Document, Made};
use crate::style::{self, FAINT, GOOD, NAME, paint};
use haft_core::pattern::ToolPattern;
use haft_core::{CallError, ToolName};
use haft_runtime::web::profiles::{Profile, Profiles};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Does one thing with what is known of APIs.
pub(super) fn run(app: &App, action: Option<ApiAction>) -> Result<u8, Failure> {
    let profiles = Profiles::new(app.haft.settings().data_dir.join("apis"));
    match action.unwrap_or(ApiAction::List) {
        ApiAction::List => list(app, &profiles),
        ApiAction::View { id } => view(&profiles, &id),
        ApiAction::Add { file } => add(app, &profiles, &file),
        ApiAction::Remove { id } => remove(app, &profiles, &id),
        ApiAction::Import(args) => import(app, &profiles, &args),
    }
}

fn list(app: &App, profiles: &Profiles) -> Result<u8, Failure> {
    let all = profiles.all()?;
    if app.json {
        let data = all.iter().map(|held| match &held.state {
            Ok(profile) => profile.shown(),
            Err(why) => json!({"id": held.id, "problem": why}),
        });
        style::pretty(&data.collect::<Vec<Value>>());
        return Ok(0);
    }
    if all.is_empty() {
        style::note("no APIs are known; `haft api import` makes a profile from an OpenAPI document");
    }
    for held in all.iter() {
        let line = match &held.state {
            Ok(profile) => format!("{}  {}", profile.base_url, paint(FAINT, style::inert(&profile.name))),
            Err(why) => format!("cannot be used: {}", style::inert(why)),
        };
        style::out(&format!("{}  {line}", paint(NAME, &held.id)));
    }
    Ok(0)
}

fn view(profiles: &Profiles, id: &str) -> Result<u8, Failure> {
    style::pretty(&profiles.get(id)?.shown());
    Ok(0)
}

fn add(app: &App, profiles: &Profiles, file: &Path) -> Result<u8, Failure> {
    let text = text_of(file)?;
    let not = |error: String| CallError::invalid(format!("{}: {error}", file.display()));
    let value: Value = if text.trim_start().starts_with('{') {
        serde_json::from_str(&text).map_err(|error| not(error.to_string()))?
    } else {
        serde_saphyr::from_str(&text).map_err(|error| not(error.to_string()))?
    };
    let profile = Profile::read(&value)?;
    new(profiles, &profile.id)?;
    profiles.save(&profile)?;
    let mut warnings: Vec<String> = rival(profiles, &profile)?.into_iter().collect();
    if profile.auth.as_ref().is_some_and(haft_runtime::web::profiles::Auth::is_literal) {
        warnings.push("the profile holds the key itself; `${NAME}` would take it from the environment".to_owned());
    }
    told(app, &profile, &[], &warnings);
    Ok(0)
}

fn remove(app: &App, profiles: &Profiles, id: &str) -> Result<u8, Failure> {
    profiles.remove(id)?;
    if app.json {
        style::json(&json!({ "removed": id }));
    } else {
        style::out(&format!("{} {id}", paint(GOOD, "removed")));
    }
    Ok(0)
}

fn import(app: &App, profiles: &Profiles, args: &ApiImport) -> Result<u8, Failure> {
    let document = Document::read(&text_of(&args.file)?)?;
    let (profile, mut warnings) = openapi::profile(&document, args.id.as_deref(), args.url.as_deref())?;
    new(profiles, &profile.id)?;
    let mut made = Vec::new();
    if args.tools {
        let (all, why_not) = openapi::manifests(&document, &profile.id, &profile.base()?);
        made = chosen(all, args.only.as_deref())?;
        // Who asks for some is not told about the others.
        if args.only.is_none() {
            warnings.extend(why_not);
        }
        warnings.extend(made.iter().flat_map(|made| made.warnings.clone()));
    }
    warnings.extend(rival(profiles, &profile)?);
    let tools = write_all(app.haft.workspace().root(), &made, &mut warnings)?;
    profiles.save(&profile)?;
    told(app, &profile, &tools, &warnings);
    Ok(0)
}

fn new(profiles: &Profiles, id: &str) -> Result<(), CallError> {
    if profiles.all()?.iter().any(|held| held.id == id) {
        return Err(CallError::conflict(format!("there is an API profile `{id}` already"))
            .hint(format!("`haft api remove {id}` makes room, or take another id")));
    }
    Ok(())
}

/// Of two profiles with one address only one can sign in.
fn rival(profiles: &Profiles, profile: &Profile) -> Result<Option<String>, CallError> {
    let base = profile.base()?.to_string();
    let same = |held: &Profile| held.id != profile.id && held.base().is_ok_and(|other| other.to_string() == base);
    let held = profiles.all()?;
    let rival = held.iter().find(|held| held.state.as_ref().is_ok_and(|held| same(held))).map(|held| held.id.clone());
    Ok(rival.map(|id| {
        format!("`{id}` has the same base_url, and only one of them signs in; `haft api remove` takes one away")
    }))
}

/// Those that were asked for.
pub(super) fn chosen(all: Vec<Made>, only: Option<&str>) -> Result<Vec<Made>, CallError> {
    let Some(only) = only else { return Ok(all) };
    let pattern = ToolPattern::new(only).map_err(|error| CallError::invalid(error.to_string()))?;
    let fits = |name: &str| ToolName::new(name).is_ok_and(|name| pattern.matches(&name));
    let some: Vec<Made> = all.into_iter().filter(|made| fits(&made.name) || fits(&made.operation)).collect();
    if some.is_empty() {
        return Err(CallError::not_found(format!("no operation fits `{}`", haft_core::preview::inert(only))));
    }
    Ok(some)
}

/// Writes manifests, and leaves alone what is there.
fn write_all(root: &Path, made: &[Made], warnings: &mut Vec<String>) -> Result<Vec<PathBuf>, CallError> {
    let mut written = Vec::new();
    if made.is_empty() {
        return Ok(written);
    }
    let dir = root.join(".haft/tools");
    let fail = |path: &Path, error: &std::io::Error| CallError::failed(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(&dir).map_err(|error| fail(&dir, &error))?;
    for tool in made {
        let place = dir.join(&tool.name);
        std::fs::create_dir_all(&place).map_err(|error| fail(&place, &error))?;
        // A link in a project must not lead what is written out of it.
        let real = place.canonicalize().map_err(|error| fail(&place, &error))?;
        if !real.starts_with(root) {
            return Err(CallError::failed(format!("{} leads out of the project", place.display())));
        }
        let path = real.join("tool.yml");
        let yaml = serde_saphyr::to_string(&tool.manifest).map_err(|error| {
            CallError::internal(format!("the manifest of {} cannot be written: {error}", tool.name))
        })?;
        match std::fs::File::create_new(&path).and_then(|mut file| file.write_all(yaml.as_bytes())) {
            Ok(()) => written.push(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                warnings.push(format!("{} is there already, and was left alone", path.display()));
            }
            Err(error) => return Err(fail(&path, &error)),
        }
    }
    Ok(written)
}

fn told(app: &App, profile: &Profile, tools: &[PathBuf], warnings: &[String]) {
    if app.json {
        style::pretty(&json!({ "profile": profile.shown(), "tools": tools, "warnings": warnings }));
        return;
    }
    for warning in warnings {
        style::warn(warning);
    }
    let count = profile.endpoints.len();
    style::out(&format!("{} {} for {} ({count} endpoints)", paint(GOOD, "added"), profile.id, profile.base_url));
    for path in tools {
        style::out(&format!("{} {}", paint(GOOD, "wrote"), style::inert(&path.display().to_string())));
    }
    if let Some(auth) = &profile.auth
        && !auth.is_literal()
    {
        let shown = profile.shown()["auth"].clone();
        let named: Vec<&str> = shown
            .as_object()
            .into_iter()
            .flat_map(|auth| auth.values())
            .filter_map(Value::as_str)
            .filter(|value| value.starts_with("${"))
            .collect();
        style::note(&format!("it signs in with {} from the environment that haft runs in", named.join(" and ")));
    }
}

pub(super) fn text_of(file: &Path) -> Result<String, CallError> {
    if file == Path::new("-") {
        return crate::input::read(std::io::stdin(), "stdin");
    }
    let name = file.display().to_string();
    let opened = std::fs::File::open(file).map_err(|error| CallError::invalid(format!("{name}: {error}")))?;
    crate::input::read(opened, &name)
}

//! Claude skills: a directory with a SKILL.md. Its scripts become tools; without scripts it stays a skill.

use super::write::{Draft, Place};
use super::{Taken, name_of};
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use haft_core::secret::contains_secret;
use haft_core::skill::is_name;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

const SKILLS_MAX: usize = 500;
const FILES_MAX: usize = 200;
const BYTES_MAX: u64 = 4 << 20;
const DESCRIPTION_MAX: usize = 500;

/// What cannot be taken for an option.
const NO_OPTION: &str = "^([^-]|$)";

/// What a SKILL.md says of itself.
struct Front {
    name: String,
    description: String,
    /// What haft has no word for.
    other: Vec<String>,
}

/// All skills in a directory.
pub(super) fn read(dir: &Path) -> Result<Taken, CallError> {
    let mut taken = Taken::default();
    let dirs = if dir.join("SKILL.md").is_file() { vec![dir.to_owned()] } else { below(dir)? };
    for dir in dirs {
        if let Err(why) = skill(&dir, &mut taken) {
            taken.notes.push(format!("{}: {why}", inert(&dir.display().to_string())));
        }
    }
    Ok(taken)
}

fn below(dir: &Path) -> Result<Vec<PathBuf>, CallError> {
    let entries = std::fs::read_dir(dir).map_err(|error| CallError::invalid(format!("{}: {error}", dir.display())))?;
    let mut dirs: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join("SKILL.md").is_file()).collect();
    dirs.sort();
    dirs.truncate(SKILLS_MAX);
    Ok(dirs)
}

fn skill(dir: &Path, taken: &mut Taken) -> Result<(), String> {
    let (files, odd) = files(dir)?;
    let text = files.iter().find(|(path, _)| path == "SKILL.md").map(|(_, content)| content.as_slice());
    let text = std::str::from_utf8(text.unwrap_or_default()).map_err(|_| "its SKILL.md is not UTF-8".to_owned())?;
    let front = front(text)?;
    let shown = inert(&front.name);
    taken.notes.extend(odd.iter().map(|path| format!("{shown}: {} is a link and was left out", inert(path))));
    let keys = files.iter().filter(|(_, content)| std::str::from_utf8(content).is_ok_and(contains_secret));
    taken.notes.extend(keys.map(|(path, _)| format!("{shown}: {} holds what looks like a key", inert(path))));
    let scripts: Vec<String> = files.iter().map(|(path, _)| path.clone()).filter(|path| is_script(path)).collect();
    if scripts.is_empty() {
        // A skill stays what it says it is, if that can be its directory's name.
        let name = if is_name(&front.name) { front.name } else { name_of(&front.name).replace('_', "-") };
        taken.drafts.push(Draft { place: Place::Skill, name, files });
        return Ok(());
    }
    taken.notes.extend(
        front.other.iter().map(|key| format!("{shown}: `{}` has no equivalent in haft and is dropped", inert(key))),
    );
    for script in scripts {
        let name = tool_name(&front.name, &script);
        taken.add(&manifest(&name, &front, &script), files.clone());
    }
    taken.notes.push(format!(
        "{shown}: what its scripts take is not said anywhere; narrow `inputs` by hand, and write an option as \
         `--name=${{input}}`: until then no argument may begin with `-`"
    ));
    Ok(())
}

/// A script right in `scripts`.
fn is_script(path: &str) -> bool {
    let ending = Path::new(path).extension().is_some_and(|end| end == "py" || end == "sh");
    ending && path.strip_prefix("scripts/").is_some_and(|name| !name.contains('/') && !name.starts_with('_'))
}

fn tool_name(skill: &str, script: &str) -> String {
    let stem = Path::new(script).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (skill, stem) = (name_of(skill), name_of(&stem));
    if skill == stem { skill } else { name_of(&format!("{skill}_{stem}")) }
}

fn manifest(name: &str, front: &Front, script: &str) -> Value {
    let path = format!(".haft/tools/{name}/{script}");
    let interpreter = if Path::new(script).extension().is_some_and(|end| end == "py") { "python3" } else { "bash" };
    json!({
        "name": name, "description": cut(&inert(&front.description), DESCRIPTION_MAX), "kind": "command", "version": 1,
        "permissions": {"network": false, "fs": {"read": ["."], "write": []}, "secrets": {}},
        "approval": {"required": true, "reason": format!("Runs {script} of the skill {}", inert(&front.name))},
        "inputs": {"schema": {"type": "object", "additionalProperties": false, "properties": {
            "args": {"type": "array", "description": "What the script is called with. Options are not among it.",
                "items": {"type": "string", "pattern": NO_OPTION}, "default": []}
        }}},
        "outputs": {"format": "text"},
        "exec": {"command": {"entrypoint": interpreter, "args": [path, "${args}"], "cwd": "."}}
    })
}

fn front(text: &str) -> Result<Front, String> {
    let none = || "its SKILL.md has no front matter with `name` and `description`".to_owned();
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")).ok_or_else(none)?;
    let yaml = rest.split("\n---").next().filter(|yaml| yaml.len() < rest.len()).ok_or_else(none)?;
    let said: Value = serde_saphyr::from_str(yaml).map_err(|error| format!("its front matter: {error}"))?;
    let word = |key: &str| said[key].as_str().map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned);
    let (name, description) = (word("name").ok_or_else(none)?, word("description").ok_or_else(none)?);
    let keys = said.as_object().into_iter().flatten().map(|(key, _)| key.clone());
    let other = keys.filter(|key| key != "name" && key != "description").collect();
    Ok(Front { name, description, other })
}

type Files = Vec<(String, Vec<u8>)>;

/// All files of a skill, and the links among them, which are left out.
fn files(dir: &Path) -> Result<(Files, Vec<String>), String> {
    let (mut found, mut odd, mut size) = (Vec::new(), Vec::new(), 0);
    let mut left = vec![dir.to_owned()];
    while let Some(at) = left.pop() {
        let entries = std::fs::read_dir(&at).map_err(|error| error.to_string())?;
        for entry in entries.flatten() {
            let (path, kind) = (entry.path(), entry.file_type().map_err(|error| error.to_string())?);
            let inside = path.strip_prefix(dir).ok().and_then(Path::to_str).map(str::to_owned);
            let inside = inside.ok_or_else(|| "a name in it is not UTF-8".to_owned())?;
            if kind.is_symlink() {
                odd.push(inside);
            } else if kind.is_dir() {
                if !matches!(inside.as_str(), ".git" | "node_modules" | "__pycache__") {
                    left.push(path);
                }
            } else if kind.is_file() {
                let file = std::fs::File::open(&path).map_err(|error| error.to_string())?;
                let mut content = Vec::new();
                file.take(BYTES_MAX + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
                size += content.len() as u64;
                found.push((inside, content));
            }
            if found.len() > FILES_MAX || size > BYTES_MAX {
                return Err(format!("it has more than {FILES_MAX} files, or more than {} MiB", BYTES_MAX >> 20));
            }
        }
    }
    found.sort();
    Ok((found, odd))
}

//! Skills: what their SKILL.md says, and what lies beside it.

use super::Checked;
use super::look::Around;
use crate::config::Paths;
use haft_core::ToolName;
use haft_core::dialect::{Dialect, Entry};
use haft_core::manifest::Flaw;
use haft_core::pattern::ToolPattern;
use haft_core::preview::inert;
use haft_core::skill::{AllowedToolMeaning, FILE, body_flaws, links};
use haft_core::suggest;
use haft_runtime::shelf::Whose;
use haft_runtime::skills::{ListedSkill, SkillFolder, survey_files};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// How many tools a list may name before it is looked at no further.
const TOOLS_MAX: usize = 500;

/// Looks at each skill of the project, and of the user's own if `own` says so. Returns how many there are as well.
pub(super) fn checked(paths: &Paths, around: &Around<'_>, own: bool) -> (Vec<Checked>, usize) {
    let root = paths.root();
    let folders: Vec<SkillFolder> =
        paths.skill_folders().into_iter().filter(|folder| own || folder.whose == Whose::Project).collect();
    let shown =
        |path: &Path| path.strip_prefix(root).map_or_else(|_| paths.shown(path), |below| below.display().to_string());
    let survey = survey_files(&folders, root);
    let mut first: BTreeMap<&str, &ListedSkill> = BTreeMap::new();
    let mut all = Vec::new();
    for skill in &survey.skills {
        let mut flaws = skill_flaws(skill, around);
        match first.get(skill.name.as_str()) {
            Some(stronger) => {
                let message =
                    format!("shadowed by {}, which has the same name and takes precedence", shown(&stronger.file()));
                flaws.push(Flaw::warning("name-taken", "/name", message).at((1, 1)));
            }
            None => drop(first.insert(&skill.name, skill)),
        }
        flaws.sort_by_key(|flaw| (flaw.line, flaw.column));
        all.push(Checked { shown: shown(&skill.file()), flaws });
    }
    for note in &survey.notes {
        all.push(Checked {
            shown: note.clone(),
            flaws: vec![Flaw::warning("skill", "", "some skills were not checked")],
        });
    }
    let strays = folders
        .iter()
        .flat_map(|folder| strays(&folder.path))
        .map(|(dir, flaw)| Checked { shown: shown(&dir.join(FILE)), flaws: vec![flaw] });
    all.extend(strays);
    (all, survey.skills.len())
}

/// Everything that is wrong with one skill.
pub(super) fn skill_flaws(skill: &ListedSkill, around: &Around<'_>) -> Vec<Flaw> {
    let mut flaws = skill.reading.flaws.clone();
    flaws.extend(body_flaws(skill.text()));
    flaws.extend(broken_links(skill));
    flaws.extend(unknown_tools(skill, around));
    flaws.extend(skill.links().iter().map(|link| {
        let message = format!("`{}` is a link; haft follows none in a skill's directory", inert(link));
        Flaw::warning("skill-link", "", message).at((1, 1))
    }));
    flaws
}

/// Relative links that lead nowhere, or out of the directory.
fn broken_links(skill: &ListedSkill) -> Vec<Flaw> {
    let files = skill.files();
    let is_there = |path: &str| {
        let dir = format!("{}/", path.trim_end_matches('/'));
        files.iter().any(|file| file == path || file.starts_with(&dir))
    };
    let broken = links(skill.text()).into_iter().filter_map(|link| {
        let shown = inert(&link.path);
        let message = match inside(&link.path) {
            None => format!("`{shown}` leads out of the skill's directory, where haft hands nothing out"),
            Some(path) if is_there(&path) => return None,
            Some(path) => {
                let near = suggest::did_you_mean(&path, files.iter().map(String::as_str));
                format!("`{shown}` is not there{}", near.map(|near| format!("; {near}")).unwrap_or_default())
            }
        };
        Some(Flaw::warning("skill-link", "", message).at((link.line, link.column)))
    });
    broken.collect()
}

/// A relative path without what says nothing; none if it leads out.
fn inside(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Entries of `allowed-tools` that no tool here matches. A tool may come later, so that is no error.
fn unknown_tools(skill: &ListedSkill, around: &Around<'_>) -> Vec<Flaw> {
    let listed = skill.reading.skill.as_ref().and_then(|skill| skill.allowed_tools.as_deref()).unwrap_or_default();
    if listed.is_empty() {
        return Vec::new();
    }
    let tools = around.tools();
    let names: Vec<ToolName> = tools.iter().filter_map(|name| ToolName::new(name).ok()).collect();
    let is_known = |text: &str| {
        let matches = |pattern: ToolPattern| names.iter().any(|name| pattern.matches(name));
        ToolPattern::new(text).is_ok_and(matches) || text.starts_with("group:") || around.may_serve(text)
    };
    let yaml_line =
        skill.text().lines().position(|line| line.starts_with("allowed-tools")).map_or(1, |at| at as u64 + 1);
    let unknown = listed.iter().take(TOOLS_MAX).filter_map(|entry| match &entry.meaning {
        AllowedToolMeaning::Tool(tool) if !is_known(tool) => Some(&entry.written),
        _ => None,
    });
    unknown
        .map(|written| {
            let near = suggest::did_you_mean(written, Dialect::Flyto.entries().map(Entry::spoken));
            let near = near.or_else(|| suggest::did_you_mean(written, tools.iter().map(String::as_str)));
            let hint = near.unwrap_or_else(|| "`haft tools` lists them".to_owned());
            let message = format!("no tool here is called `{}`; {hint}", inert(written));
            Flaw::warning("skill-tool", "/allowed-tools", message).at((yaml_line, 1))
        })
        .collect()
}

/// Directories in a folder of skills that are none.
fn strays(folder: &Path) -> Vec<(PathBuf, Flaw)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(PathBuf, Flaw)> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .filter(|dir| dir.join(FILE).symlink_metadata().is_err())
        .map(|dir| {
            let misnamed = ["skill.md", "Skill.md", "SKILL.MD"].iter().find(|name| dir.join(name).exists());
            let message = match misnamed {
                Some(name) => format!("missing; rename {name} to {FILE}"),
                None => "missing; the directory is ignored".to_owned(),
            };
            let flaw = Flaw::warning("skill", "", message);
            (dir, flaw)
        })
        .collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

//! Settings of a repository: which of them a confined command may make, by a list that is data.
//!
//! The form that is read is the one that git writes: one section or one setting a line. Whatever else git would understand, such
//! as a setting beside its section's name or a value over two lines, is not kept.

use super::{BLANKS, ControlFile, GitRefusal, STRATEGIES, shown};
use std::collections::BTreeSet;
use std::path::Path;

const HARMLESS: &str = include_str!("../../git/harmless-settings.txt");

/// The settings that a work tree has for itself, where part of the files is checked out.
const WORK_TREE_SETTINGS: &[&str] = &["core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse"];

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    /// Its section, in lower case.
    section: String,
    /// The subsection, as it is written.
    subsection: Option<String>,
    /// Its name, in lower case.
    name: String,
    value: String,
    line: usize,
}

impl Setting {
    /// Whether two are the same but for the lines they stand in.
    fn is_as(&self, other: &Self) -> bool {
        let parts = |one: &Self| (one.section.clone(), one.subsection.clone(), one.name.clone(), one.value.clone());
        parts(self) == parts(other)
    }

    /// The name in the form of the list.
    fn pattern(&self) -> String {
        match self.subsection {
            Some(_) => format!("{}.*.{}", self.section, self.name),
            None => format!("{}.{}", self.section, self.name),
        }
    }

    fn shown(&self) -> String {
        let full = match &self.subsection {
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.name),
            None => format!("{}.{}", self.section, self.name),
        };
        format!("`{}` = `{}`", shown(&full), shown(&self.value))
    }
}

/// Whether settings may be kept: those that are not known to be harmless have to be the ones that were there.
pub fn judge_config(file: &ControlFile<'_>) -> Result<(), GitRefusal> {
    let before = std::str::from_utf8(file.before).map_err(|_| GitRefusal::whole("it was not text before"))?;
    // What a person wrote before need not be in the form that git writes. Then it has to stay as it is.
    let before = settings(before)
        .map_err(|refusal| GitRefusal::whole(format!("what was in it before cannot be read ({refusal})")))?;
    let after = settings(file.text()?)?;
    let known = Known::of(&before, &after);
    let is_harmless = |setting: &&Setting| known.is_harmless(setting, file);
    let guarded_before: Vec<&Setting> = before.iter().filter(|setting| !is_harmless(setting)).collect();
    let guarded_after: Vec<&Setting> = after.iter().filter(|setting| !is_harmless(setting)).collect();
    let mut left = guarded_before.iter();
    for setting in &guarded_after {
        if !left.next().is_some_and(|known| known.is_as(setting)) {
            return Err(GitRefusal::at(setting.line, format!("{} is not known to be harmless", setting.shown())));
        }
    }
    match left.next() {
        Some(lost) => Err(GitRefusal::whole(format!("{} would be lost", lost.shown()))),
        None => Ok(()),
    }
}

/// The options of a sequence of picks have one section of their own.
pub(super) fn judge_sequencer_options(text: &str) -> Result<(), GitRefusal> {
    for setting in settings(text)? {
        let is_own_strategy = STRATEGIES.contains(&setting.value.as_str());
        if setting.section != "options" || (setting.name == "strategy" && !is_own_strategy) {
            return Err(GitRefusal::at(setting.line, format!("{} is not known to be harmless", setting.shown())));
        }
    }
    Ok(())
}

/// What was there before a command, and the remotes that are there now.
struct Known<'b> {
    subsections: BTreeSet<(&'b str, &'b str)>,
    settings: &'b [Setting],
    remotes: BTreeSet<&'b str>,
}

impl<'b> Known<'b> {
    fn of(before: &'b [Setting], after: &'b [Setting]) -> Self {
        let named = |setting: &'b Setting| Some((setting.section.as_str(), setting.subsection.as_deref()?));
        let remotes = after.iter().filter_map(named).filter(|(section, _)| *section == "remote").map(|(_, name)| name);
        Self { subsections: before.iter().filter_map(named).collect(), settings: before, remotes: remotes.collect() }
    }

    fn is_harmless(&self, setting: &Setting, file: &ControlFile<'_>) -> bool {
        let pattern = setting.pattern();
        let rules = HARMLESS.lines().filter(|line| !line.starts_with('#'));
        let mut rules = rules.filter_map(|line| {
            let mut words = line.split(' ');
            let name = words.next().filter(|name| !name.is_empty())?;
            (name == pattern
                || wildcard(name).is_some_and(|section| section == setting.section && setting.subsection.is_none()))
            .then(|| words.collect::<Vec<_>>())
        });
        let Some(values) = rules.next() else { return false };
        // What is in a work tree's own settings overrides the repository's, which are not looked at here.
        let is_own = file.path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("config.worktree"));
        if is_own && !WORK_TREE_SETTINGS.contains(&pattern.as_str()) {
            return false;
        }
        let value = setting.value.as_str();
        match values.as_slice() {
            [] => true,
            ["url"] => self.is_new(setting) && is_plain_address(value, file),
            ["refspec"] => self.is_new(setting) && is_plain_refspec(value),
            ["remote"] if self.settings.is_empty() => value == "." || self.remotes.contains(value),
            ["remote"] => matches!(value, "." | "origin"),
            ["new"] => self.is_new(setting),
            ["first"] => self.settings.is_empty(),
            words => words.contains(&value),
        }
    }

    fn is_new(&self, setting: &Setting) -> bool {
        let subsection = setting.subsection.as_deref().unwrap_or_default();
        !self.subsections.contains(&(setting.section.as_str(), subsection))
    }
}

/// The section of which all settings are meant, if a name of the list stands for that.
fn wildcard(name: &str) -> Option<&str> {
    name.strip_suffix(".*").filter(|section| !section.contains('.'))
}

/// An address that git reaches by itself, without a helper: `ext::` and others run programs. A directory of the project could be
/// given hooks later, so a path has to be there and outside, whatever links are on the way to it.
fn is_plain_address(address: &str, file: &ControlFile<'_>) -> bool {
    if address.is_empty() || address.starts_with('-') || address.contains("::") || address.contains(char::is_whitespace)
    {
        return false;
    }
    match address.split_once("://") {
        Some((scheme, rest)) => match scheme.to_ascii_lowercase().as_str() {
            "https" | "http" | "ssh" | "git" | "git+ssh" | "ssh+git" => !rest.starts_with('-'),
            "file" => is_outside(rest, file),
            _ => false,
        },
        // A colon before any slash is that of `host:path`.
        None => match (address.find(':'), address.find('/')) {
            (Some(colon), slash) if slash.is_none_or(|slash| colon < slash) => true,
            _ => is_outside(address, file),
        },
    }
}

fn is_outside(path: &str, file: &ControlFile<'_>) -> bool {
    let is_plain = path.starts_with('/') && !path.split('/').any(|part| part == "..");
    is_plain && (file.leads_outside)(Path::new(path), file.root)
}

/// Whether what is fetched goes where git puts what others have.
fn is_plain_refspec(refspec: &str) -> bool {
    let to = refspec.split_once(':').map(|(_, to)| to);
    to.is_some_and(|to| to.starts_with("refs/remotes/") || to.starts_with("refs/tags/"))
}

/// Reads settings, strictly.
fn settings(text: &str) -> Result<Vec<Setting>, GitRefusal> {
    let mut found = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    for (number, line) in text.split('\n').enumerate() {
        let odd = |why: &str| GitRefusal::at(number + 1, format!("{why}: `{}`", shown(line)));
        let line = line.trim_matches(BLANKS);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            section = Some(heading(rest).ok_or_else(|| odd("the section cannot be read"))?);
            continue;
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (
                name.trim_matches(BLANKS),
                unquoted(value.trim_matches(BLANKS)).ok_or_else(|| odd("the value cannot be read"))?,
            ),
            None => (line, "true".to_owned()),
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let (Some((section, subsection)), true) = (&section, is_name) else {
            return Err(odd("it cannot be read"));
        };
        found.push(Setting {
            section: section.clone(),
            subsection: subsection.clone(),
            name: name.to_ascii_lowercase(),
            value,
            line: number + 1,
        });
    }
    Ok(found)
}

/// A section's name, and its subsection's, from what follows the opening bracket.
fn heading(text: &str) -> Option<(String, Option<String>)> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if let Some(name) = text.strip_suffix(']').filter(|name| is_name(name)) {
        return Some((name.to_ascii_lowercase(), None));
    }
    let (name, subsection) = text.strip_suffix("\"]")?.split_once(" \"")?;
    let mut clear = String::new();
    let mut chars = subsection.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => clear.push(chars.next()?),
            '"' => return None,
            c => clear.push(c),
        }
    }
    is_name(name).then(|| (name.to_ascii_lowercase(), Some(clear)))
}

/// A value as git reads it: quotes and escapes resolved, a comment left out. None: it goes on in the next line, or cannot be read.
fn unquoted(text: &str) -> Option<String> {
    let (mut value, mut is_quoted, mut kept) = (String::new(), false, 0);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'b' => value.push('\u{8}'),
                c @ ('"' | '\\') => value.push(c),
                _ => return None,
            },
            '#' | ';' if !is_quoted => break,
            c => value.push(c),
        }
        // White space at the end counts only in quotes.
        kept = if is_quoted || !BLANKS.contains(&c) { value.len() } else { kept };
    }
    value.truncate(kept);
    (!is_quoted).then_some(value)
}

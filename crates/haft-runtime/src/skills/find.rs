//! Looking into folders: which skills there are, what they say of themselves, and which of them count.

use super::directory::{Inventory, KnownDigests, SkillDirectory, is_there};
use super::{SkillFolder, Standing, Whose};
use haft_core::manifest::Flaw;
use haft_core::record::Digest;
use haft_core::skill::{FILE, ParsedSkill, read};
use haft_store::Pin;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How many skills of one folder are read, by name.
const SKILLS_MAX: usize = 500;
/// How many entries of one folder are looked at to find them.
const ENTRIES_MAX: usize = 20_000;
/// The largest `SKILL.md`.
pub(super) const TEXT_MAX: u64 = 256 << 10;

/// A skill as it is listed.
#[derive(Debug, Clone)]
pub struct ListedSkill {
    /// Its name: its directory's.
    pub name: String,
    /// Its directory, as it is found in its folder.
    pub place: PathBuf,
    /// The same with links followed: what its files are read from.
    pub dir: PathBuf,
    /// Whose it is.
    pub whose: Whose,
    /// How it stands with the person whose machine this is.
    pub standing: Standing,
    /// What it says, and what is wrong with it.
    pub reading: Arc<ParsedSkill>,
    /// The `SKILL.md` of the stronger skill with the same name, which counts instead.
    pub shadowed_by: Option<PathBuf>,
    /// The text of its `SKILL.md`; empty if it cannot be read.
    pub(super) text: Arc<str>,
    /// What was accepted, of a project's skill that counts.
    pub(super) accepted: Option<Inventory>,
}

impl ListedSkill {
    /// Whether agents are offered it.
    pub fn is_offered(&self) -> bool {
        self.standing.counts() && self.reading.skill.is_some() && self.shadowed_by.is_none()
    }

    /// What it does and when to use it.
    pub fn description(&self) -> &str {
        self.reading.skill.as_ref().map_or("", |skill| &skill.description)
    }

    /// Its `SKILL.md`.
    pub fn file(&self) -> PathBuf {
        self.place.join(FILE)
    }

    /// The text of its `SKILL.md`; empty if it cannot be read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The files in its directory, the `SKILL.md` among them.
    pub fn files(&self) -> Vec<String> {
        SkillDirectory::open(&self.dir).map(|dir| dir.names()).unwrap_or_default()
    }

    /// The links in its directory, which are not followed.
    pub fn links(&self) -> Vec<String> {
        SkillDirectory::open(&self.dir).map(|dir| dir.links()).unwrap_or_default()
    }
}

/// All skills that were found, the strongest folder first.
#[derive(Debug, Clone, Default)]
pub struct SkillSurvey {
    /// They.
    pub skills: Vec<ListedSkill>,
    /// Folders that were not read, or not wholly, and why.
    pub notes: Vec<String>,
}

/// A directory that is a skill, or should be.
#[expect(clippy::struct_field_names, reason = "a skill is known by the place that people see")]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) place: PathBuf,
    pub(super) whose: Whose,
    /// With links followed; or why it is not looked into.
    dir: Result<PathBuf, String>,
}

/// The directories of skills in these folders; of this name alone, if one is given.
pub(super) fn places(folders: &[SkillFolder], root: &Path, name: Option<&str>) -> (Vec<Place>, Vec<String>) {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    // One directory may be reached from several folders by links: it is one skill.
    let mut seen: BTreeSet<(String, PathBuf)> = BTreeSet::new();
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    for folder in folders {
        let names = match name {
            Some(name) => vec![name.to_owned()],
            None => names(&folder.path, &mut notes),
        };
        for name in names {
            let place = folder.path.join(&name);
            if !is_there(&place.join(FILE)) {
                continue;
            }
            let Ok(real) = place.canonicalize() else { continue };
            if !seen.insert((name.clone(), real.clone())) {
                continue;
            }
            let out = folder.whose == Whose::Project && !real.starts_with(&root);
            let dir = if out { Err("is a link that leads out of the project".to_owned()) } else { Ok(real) };
            found.push(Place { name, place, whose: folder.whose, dir });
        }
    }
    (found, notes)
}

/// The names of a folder's directories, in their order.
fn names(folder: &Path, notes: &mut Vec<String>) -> Vec<String> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            notes.push(format!("{}: it cannot be read: {error}", folder.display()));
            return Vec::new();
        }
    };
    let name = |entry: DirEntry| {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
        entry.file_name().into_string().ok().filter(|name| is_dir && !name.starts_with('.'))
    };
    let mut names: Vec<String> = entries.take(ENTRIES_MAX).flatten().filter_map(name).collect();
    names.sort_unstable();
    if names.len() > SKILLS_MAX {
        let left = names.len() - SKILLS_MAX;
        notes.push(format!("{}: only the first {SKILLS_MAX} skills are loaded; {left} are ignored", folder.display()));
        names.truncate(SKILLS_MAX);
    }
    names
}

/// What these directories hold, and how each stands.
pub(super) fn look(
    places: Vec<Place>,
    root: &Path,
    pins: &BTreeMap<String, Pin>,
    known: &Mutex<KnownDigests>,
) -> Vec<ListedSkill> {
    let mut first: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut skills = Vec::new();
    for place in places {
        let mut skill = listed(place);
        if skill.whose == Whose::Project {
            let pin = pins.get(&key(&skill.place, root));
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            (skill.standing, skill.accepted) = standing(&skill, pin, &mut known);
        }
        if skill.is_offered() {
            skill.shadowed_by = first.get(&skill.name).cloned();
            first.entry(skill.name.clone()).or_insert_with(|| skill.file());
        }
        skills.push(skill);
    }
    skills
}

/// By what name the store keeps a project's skill: two folders may have one of the same name.
pub(super) fn key(place: &Path, root: &Path) -> String {
    place.strip_prefix(root).unwrap_or(place).to_string_lossy().into_owned()
}

fn listed(place: Place) -> ListedSkill {
    let Place { name, place, whose, dir } = place;
    let (text, reading) = match dir.as_deref().map_err(Clone::clone).and_then(text) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => {
                let reading = read(&text, &name);
                (text, reading)
            }
            Err(error) => (String::new(), ParsedSkill::unreadable(not_utf8(&error))),
        },
        Err(why) => (String::new(), ParsedSkill::unreadable(Flaw::error("skill", "", why).at((1, 1)))),
    };
    let standing = if whose == Whose::Own { Standing::Own } else { Standing::Untrusted };
    ListedSkill {
        name,
        dir: dir.unwrap_or_else(|_| place.clone()),
        place,
        whose,
        standing,
        reading: Arc::new(reading),
        shadowed_by: None,
        text: text.into(),
        accepted: None,
    }
}

fn text(dir: &Path) -> Result<Vec<u8>, String> {
    SkillDirectory::open(dir)?.read(FILE, TEXT_MAX)
}

fn not_utf8(error: &std::string::FromUtf8Error) -> Flaw {
    let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
    let place = (before.matches('\n').count() as u64 + 1, column);
    Flaw::error("skill", "", "has a byte here that is not UTF-8").at(place)
}

/// Whether a project's skill is the one that was accepted: every file, and the very text that was read.
fn standing(skill: &ListedSkill, pin: Option<&Pin>, known: &mut KnownDigests) -> (Standing, Option<Inventory>) {
    let Some(pin) = pin else { return (Standing::Untrusted, None) };
    let accepted = accepted_files(pin);
    let now = SkillDirectory::open(&skill.dir).and_then(|dir| dir.inventory(known));
    let same_text = accepted.get(FILE) == Some(&Digest::of(skill.text.as_bytes()));
    if same_text && now.is_ok_and(|now| now == accepted) {
        (Standing::Accepted, Some(accepted))
    } else {
        (Standing::Changed, None)
    }
}

/// The files that a pin accepts. What cannot be read is nobody's digest.
pub(super) fn accepted_files(pin: &Pin) -> Inventory {
    let files = pin.declaration["files"].as_object().into_iter().flatten();
    let digest = |value: &serde_json::Value| {
        value.as_str().and_then(|hex| Digest::try_from(hex.to_owned()).ok()).unwrap_or(Digest::ZERO)
    };
    files.map(|(path, value)| (path.clone(), digest(value))).collect()
}

/// The skills in these folders by their files alone, for whoever checks them: nobody is asked what was accepted, so a
/// project's are all untrusted.
pub fn survey_files(folders: &[SkillFolder], root: &Path) -> SkillSurvey {
    let (places, notes) = places(folders, root, None);
    SkillSurvey { skills: look(places, root, &BTreeMap::new(), &Mutex::default()), notes }
}

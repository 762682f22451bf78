//! Agent Skills: directories with a `SKILL.md`, found in the folders that agents know.
//!
//! Nothing is read before somebody asks. A list reads the front matter of each `SKILL.md`; a skill in full is read when it
//! is used. The user's own skills count as they stand. A project's count only as somebody accepted them (`haft trust`):
//! acceptance covers every byte of the directory, and what differs in any file is not handed out. Between the look and
//! the use nothing can be swapped: the very bytes that are handed out are compared (guards against TOCTOU).
//!
//! Of two skills with one name the one in the stronger folder counts. One that does not count takes nobody's place.

mod accept;
mod directory;
mod find;
mod section;
#[cfg(test)]
mod tests;

pub use accept::{OfferedSkill, SkillOffers};
pub use find::{ListedSkill, SkillSurvey, survey_files};
pub(crate) use section::section;

use crate::shelf::{Standing, Whose};
use crate::store_error;
use directory::{Inventory, KnownDigests, SkillDirectory, is_compiled};
use haft_core::preview::{cut, inert};
use haft_core::record::Digest;
use haft_core::skill::{FILE, is_name};
use haft_core::suggest::did_you_mean;
use haft_core::{CallError, ErrorKind};
use haft_store::{Pin, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The member of `skill.read`'s data that names a file that is not text, by the digest of its bytes: the result only
/// describes such a file, and whoever hands out the file itself hands out these bytes.
pub const FILE_DIGEST: &str = "sha256";
/// The largest file beside a `SKILL.md` that is handed out.
const FILE_MAX: u64 = 8 << 20;

/// A folder of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// The directory, with one directory a skill in it.
    pub path: PathBuf,
    /// Whose skills these are.
    pub whose: Whose,
}

/// The skills there are. An earlier folder is stronger.
pub struct SkillCatalog {
    folders: Arc<[SkillFolder]>,
    root: PathBuf,
    store: Store,
    /// Digests of files that have not changed since they were taken.
    known: Arc<Mutex<KnownDigests>>,
}

/// A skill in full.
#[derive(Debug, Clone)]
pub struct OpenSkill {
    /// As it is listed.
    pub listed: ListedSkill,
    /// Its `SKILL.md`.
    pub text: Arc<str>,
    /// The files beside that, by their paths from its directory.
    pub files: Vec<String>,
}

impl OpenSkill {
    /// Its instructions, after what a reader has to know to follow them. `place` is its directory as people write it.
    pub(crate) fn instructions(&self, place: &str) -> String {
        let mut text =
            format!("Skill `{}`, in {}. Paths are relative to that directory.\n", self.listed.name, inert(place));
        if !self.files.is_empty() {
            let files: Vec<String> = self.files.iter().map(|file| inert(file)).collect();
            text.push_str(&format!("Files beside it, for `file` of skill_read: {}\n", files.join(", ")));
        }
        if let Some(tools) = self.allowed_tools().filter(|tools| !tools.is_empty()) {
            let tools = tools.join(", ");
            text.push_str(&format!("It lists {tools}. The list grants no permission; policy decides every call.\n"));
        }
        text.push('\n');
        let body = self.listed.reading.skill.as_ref().map_or("", |skill| &skill.body);
        text.push_str(body.trim_start_matches(['\n', '\r']));
        text
    }

    /// The tools that it lists, as it writes them; none if it lists none.
    pub fn allowed_tools(&self) -> Option<Vec<String>> {
        let list = self.listed.reading.skill.as_ref()?.allowed_tools.as_ref()?;
        Some(list.iter().map(|tool| inert(&tool.written)).collect())
    }
}

impl SkillCatalog {
    /// The skills in these folders, for the project at `root`.
    pub fn new(folders: Vec<SkillFolder>, root: &Path, store: Store) -> Self {
        Self { folders: folders.into(), root: root.to_owned(), store, known: Arc::default() }
    }

    /// All skills, those that do not count as well.
    pub async fn survey(&self) -> Result<SkillSurvey, CallError> {
        self.look(None).await
    }

    /// The skills that are offered, by name.
    pub async fn offered(&self) -> Result<Vec<ListedSkill>, CallError> {
        let mut skills = self.survey().await?.skills;
        skills.retain(ListedSkill::is_offered);
        skills.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(skills)
    }

    /// Whether there is a skill of this name, whether it counts or not.
    pub async fn has(&self, name: &str) -> bool {
        is_name(name) && self.look(Some(name)).await.is_ok_and(|found| !found.skills.is_empty())
    }

    /// A skill in full.
    pub async fn open(&self, name: &str) -> Result<OpenSkill, CallError> {
        let listed = self.one(name).await?;
        let text = Arc::clone(&listed.text);
        let mut files: Vec<String> = if let Some(accepted) = &listed.accepted {
            accepted.keys().cloned().collect()
        } else {
            let dir = listed.dir.clone();
            off_thread(move || Ok(SkillDirectory::open(&dir).map(|dir| dir.names()).unwrap_or_default())).await?
        };
        files.retain(|file| file != FILE && !is_compiled(file));
        Ok(OpenSkill { listed, text, files })
    }

    /// The content of a file in a skill's directory. No link is followed, and nothing outside is reached.
    pub async fn file(&self, name: &str, file: &str) -> Result<Vec<u8>, CallError> {
        let listed = self.one(name).await?;
        let (dir, wanted) = (listed.dir.clone(), file.to_owned());
        let bytes = off_thread(move || {
            let shown = cut(&inert(&wanted), 120);
            let dir = SkillDirectory::open(&dir).map_err(|why| CallError::not_found(format!("the skill {why}")))?;
            dir.read(&wanted, FILE_MAX).map_err(|why| {
                CallError::not_found(format!("`{shown}` of the skill {why}")).hint(
                    "skill.read without `file` names the files that there are; paths start in the skill's directory",
                )
            })
        })
        .await?;
        let is_accepted = |accepted: &Inventory| accepted.get(file).is_some_and(|digest| *digest == Digest::of(&bytes));
        if listed.accepted.as_ref().is_some_and(|accepted| !is_accepted(accepted)) {
            return Err(not_accepted(name, Standing::Changed));
        }
        Ok(bytes)
    }

    /// The one skill that counts by this name.
    async fn one(&self, name: &str) -> Result<ListedSkill, CallError> {
        let found = if is_name(name) { self.look(Some(name)).await?.skills } else { Vec::new() };
        let first = found.first().cloned();
        if let Some(skill) = found.into_iter().find(ListedSkill::is_offered) {
            return Ok(skill);
        }
        let Some(first) = first else { return Err(self.unknown(name).await) };
        if !first.standing.counts() {
            return Err(not_accepted(name, first.standing));
        }
        let why = first.reading.flaws.first().map(ToString::to_string).unwrap_or_default();
        Err(CallError::failed(format!("the skill `{name}` cannot be used: {why}")).hint("`haft lint` checks skills"))
    }

    async fn unknown(&self, name: &str) -> CallError {
        let known = self.offered().await.unwrap_or_default();
        let names: Vec<&str> = known.iter().map(|skill| skill.name.as_str()).collect();
        let error = CallError::not_found(format!("there is no skill `{}`", cut(&inert(name), 80)));
        let all = || format!("the skills are {}", cut(&names.join(", "), 400));
        match did_you_mean(name, names.iter().copied()) {
            Some(hint) => error.hint(hint),
            None if names.is_empty() => error.hint("there are no skills here"),
            None => error.hint(all()),
        }
    }

    async fn look(&self, name: Option<&str>) -> Result<SkillSurvey, CallError> {
        let (folders, root, name) = (Arc::clone(&self.folders), self.root.clone(), name.map(str::to_owned));
        let (places, notes) = off_thread(move || Ok(find::places(&folders, &root, name.as_deref()))).await?;
        let projects = places.iter().any(|place| place.whose == Whose::Project);
        let pins = if projects { self.pins().await? } else { BTreeMap::new() };
        let (known, root) = (Arc::clone(&self.known), self.root.clone());
        off_thread(move || Ok(SkillSurvey { skills: find::look(places, &root, &pins, &known), notes })).await
    }

    /// Under what name the store keeps what was accepted of this project's skills.
    fn server(&self) -> String {
        format!("skills:{}", haft_core::path_text::store(&self.root))
    }

    /// What was accepted, by the directory's path from the root.
    async fn pins(&self) -> Result<BTreeMap<String, Pin>, CallError> {
        let pins = self.store.pins(&self.server()).await.map_err(store_error)?;
        Ok(pins.into_iter().map(|pin| (pin.tool.clone(), pin)).collect())
    }
}

/// What a caller hears of a project's skill that nobody has accepted as it stands.
fn not_accepted(name: &str, standing: Standing) -> CallError {
    let why = match standing {
        Standing::Changed => "has changed since it was accepted",
        _ => "is the project's, and nobody has accepted it",
    };
    CallError::new(ErrorKind::Denied, format!("the skill `{name}` {why}")).hint("`haft trust` shows it and asks")
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CallError> + Send + 'static,
) -> Result<T, CallError> {
    crate::tool::off_thread(crate::halt::Halt::new(), work).await
}

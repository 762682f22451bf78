//! Whether a project's tool is the one that somebody accepted: its manifest, what lies beside it, and what its start opens.
//!
//! What was accepted is pinned in the store by digests. The manifest is compared when it is read, everything else when a
//! call is decided upon and again right before its program is started, after everything that takes time. That last look
//! reads the files; the ones before it, and those for an interpreter that runs already, where nothing is started, read only
//! what the file system says has changed. A virtual environment is looked through when an interpreter starts, and for one
//! that stays at most every two seconds.
//!
//! What is left: what a program loads that its manifest does not name; and the moment between the last look and the one in
//! which the kernel or the interpreter opens the same file by its name. Whoever may write there and hits it runs something
//! else, held to the same permissions. An interpreter that stays may load a further accepted module later; that moment is
//! as long as the call.

use super::copies;
use super::digests::{Known, Look};
use super::find::Good;
use super::inventory::{Subject, inventory, tree};
use super::pages::Page;
use haft_core::manifest::Manifest;
use haft_core::record::Digest;
use haft_core::{CallError, ErrorKind};
use haft_store::Pin;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How old what is known of a virtual environment may be where an interpreter runs already.
const TREE_AGE: Duration = Duration::from_secs(2);

/// How a tool stands with the person whose machine this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is the user's own, and counts as it is.
    Own,
    /// It is the project's, and was accepted as it is.
    Accepted,
    /// It is the project's, and nobody has accepted it.
    Untrusted,
    /// It is the project's, and has changed since it was accepted.
    Changed,
}

impl Standing {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Accepted => "accepted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
        }
    }

    /// Whether it counts.
    pub const fn counts(self) -> bool {
        matches!(self, Self::Own | Self::Accepted)
    }
}

/// The files that belong to a tool, each with its digest, by their paths from the project's root; in full, if they lie
/// outside.
pub(super) type Files = BTreeMap<String, Digest>;

/// What a project's tool was accepted as, to be compared with what it is.
#[derive(Debug)]
pub(crate) struct Accepted {
    name: String,
    root: PathBuf,
    dir: PathBuf,
    manifest: Arc<Manifest>,
    /// The accepted files; none if the manifest is not the accepted one.
    files: Option<Files>,
    /// Of those, and of what they hold.
    mark: Digest,
    /// Whether an earlier version was accepted.
    earlier: bool,
    seen: Mutex<Seen>,
}

/// What was seen of it, to be seen again only if it changed.
#[derive(Debug, Default)]
struct Seen {
    known: Known,
    /// The digest of its environment, and since when it is known.
    tree: Option<(Instant, Digest)>,
}

/// How well the files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// For lists, for decisions, and for what runs already: what looks as it did is not read again.
    Warm,
    /// For what is about to start: everything is read.
    Fresh,
}

impl Accepted {
    /// The manifest that was found, as far as this pin accepts it.
    pub(super) fn new(root: &Path, dir: &Path, good: &Good, pin: Option<&Pin>) -> Self {
        let same = pin.filter(|pin| pin.digest == good.digest);
        let mark = same.map_or(Digest::ZERO, |pin| Digest::of(pin.declaration["files"].to_string().as_bytes()));
        Self {
            mark,
            name: good.manifest.name.clone(),
            root: root.to_owned(),
            dir: dir.to_owned(),
            manifest: Arc::clone(&good.manifest),
            files: same.map(|pin| files_of(&pin.declaration)),
            earlier: pin.is_some(),
            seen: Mutex::default(),
        }
    }

    /// The files that were accepted with it.
    pub(super) fn files(&self) -> Option<&Files> {
        self.files.as_ref()
    }

    /// What tells one acceptance of it from another.
    pub(super) fn mark(&self) -> Digest {
        self.mark
    }

    /// The copies that its program sees in the place of what was accepted, as far as it sees these places.
    pub(super) fn stand_ins(&self, data_dir: &Path, places: &[PathBuf]) -> Result<Vec<(PathBuf, PathBuf)>, CallError> {
        let copies = |files| copies::stand_ins((&self.root, files), data_dir, places);
        self.files.as_ref().map_or(Ok(Vec::new()), copies)
    }

    /// How it stands, by its manifest alone.
    pub(super) fn by_manifest(&self) -> Standing {
        match (&self.files, self.earlier) {
            (Some(_), _) => Standing::Accepted,
            (None, true) => Standing::Changed,
            (None, false) => Standing::Untrusted,
        }
    }

    /// How it stands, its files looked at.
    pub(super) fn standing(&self) -> Standing {
        match self.by_manifest() {
            Standing::Accepted if self.strayed(Care::Warm).is_some() => Standing::Changed,
            other => other,
        }
    }

    /// Refuses to go on with what is not as it was accepted: the last look before something of it runs.
    pub(crate) fn check(&self, care: Care) -> Result<(), CallError> {
        let hint = || format!("run `haft trust {}`", self.name);
        let refused = |why: String| CallError::new(ErrorKind::Denied, why).hint(hint());
        self.barred(care).map_or(Ok(()), |why| Err(refused(why)))
    }

    /// Why it may not run as it is.
    pub(crate) fn barred(&self, care: Care) -> Option<String> {
        let name = &self.name;
        match self.by_manifest() {
            Standing::Own => None,
            Standing::Untrusted => {
                Some(format!("nobody has accepted this tool of the project; `haft trust {name}` shows it and asks"))
            }
            Standing::Changed => Some(format!(
                "its tool.yml has changed since the tool was accepted; `haft trust {name}` shows what changed and asks"
            )),
            Standing::Accepted => self.strayed(care).map(|why| format!("{why}; `haft trust {name}` shows it and asks")),
        }
    }

    /// What is not as it was accepted.
    fn strayed(&self, care: Care) -> Option<String> {
        let accepted = self.files.as_ref()?;
        let now = match self.inventory(care) {
            Ok(now) => now,
            Err(why) => return Some(why),
        };
        let (first, others) = differences(accepted, &now).split_first().map(|(one, rest)| (one.clone(), rest.len()))?;
        let more = if others == 0 { String::new() } else { format!(", and {others} more") };
        Some(format!("{first} since the tool was accepted{more}"))
    }

    fn subject(&self) -> Subject<'_> {
        Subject { root: &self.root, dir: &self.dir, manifest: &self.manifest }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inventory(&self, care: Care) -> Result<Files, String> {
        let mut seen = self.seen();
        let Seen { known, tree: before } = &mut *seen;
        let mut of_tree = |dir: &Path| match before {
            Some((since, digest)) if care == Care::Warm && since.elapsed() < TREE_AGE => Ok(*digest),
            _ => {
                let since = Instant::now();
                tree(dir).inspect(|digest| *before = Some((since, *digest)))
            }
        };
        let mut look = match care {
            Care::Warm => Look::comparing(&self.root, known),
            Care::Fresh => Look::reading(&self.root, known),
        };
        inventory(self.subject(), &mut look, &mut of_tree)
    }
}

/// What is different now, each in a few words.
pub(super) fn differences(accepted: &Files, now: &Files) -> Vec<String> {
    let gone = accepted.keys().filter(|path| !now.contains_key(*path)).map(|path| format!("`{path}` went away"));
    let other = now.iter().filter_map(|(path, digest)| match accepted.get(path) {
        None => Some(format!("`{path}` came")),
        Some(known) if known != digest => Some(format!("`{path}` changed")),
        Some(_) => None,
    });
    gone.chain(other).collect()
}

/// What is pinned when a tool is accepted as it stands, and what is in the files that belong to it.
pub(super) fn pin(root: &Path, dir: &Path, good: &Good) -> Result<(Pin, Vec<Page>), String> {
    let mut known = Known::new();
    let mut look = Look::showing(root, &mut known);
    let files = inventory(Subject { root, dir, manifest: &good.manifest }, &mut look, &mut tree)?;
    let pages = look.pages.unwrap_or_default();
    let files: serde_json::Map<String, Value> =
        files.into_iter().map(|(path, digest)| (path, digest.to_string().into())).collect();
    let declaration = json!({"manifest": good.digest.to_string(), "files": files});
    Ok((Pin { tool: good.manifest.name.clone(), digest: good.digest, declaration }, pages))
}

/// The files that a pin accepts. What cannot be read is nobody's digest.
pub(super) fn files_of(declaration: &Value) -> Files {
    let files = declaration["files"].as_object().into_iter().flatten();
    let digest =
        |value: &Value| value.as_str().and_then(|hex| Digest::try_from(hex.to_owned()).ok()).unwrap_or(Digest::ZERO);
    files.map(|(path, value)| (path.clone(), digest(value))).collect()
}

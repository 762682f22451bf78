//! Accepting a project's tools: what somebody is shown, and what is pinned when they say yes.

use super::find::{self, Content, Good};
use super::pages::{Page, difference, kept, texts_of};
use super::standing::{Files, differences, files_of, pin};
use super::{Shelf, Standing, Whose};
use crate::making::Proposed;
use crate::store_error;
use haft_core::manifest::Manifest;
use haft_core::record::Digest;
use haft_core::{CallError, ErrorKind, ToolName};
use haft_store::Pin;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much is held at once of what is in the files of all tools that are offered.
const SHOWN_MAX: usize = 32 << 20;

/// A project's tool as it stands, to be looked at and accepted.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Its file.
    pub file: PathBuf,
    /// What it says.
    pub manifest: Arc<Manifest>,
    /// How it stands now.
    pub standing: Standing,
    /// What changed of the files that belong to it since it was accepted.
    pub changed: Vec<String>,
    /// What changed in its manifest since then.
    pub diff: Option<String>,
    /// What its manifest says, as it was written.
    pub text: Arc<str>,
    /// The files that belong to it, from the project's root or in full. What ends with a slash is a virtual environment.
    pub files: Vec<String>,
    /// What is in them; of what changed, what changed in it.
    pub pages: Vec<Page>,
    /// Whether its manifest is another than the accepted one.
    rewritten: bool,
    /// What is kept of all of its files, to show later what changed since.
    kept: Value,
    pin: Pin,
}

/// Why a tool is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It needs no acceptance.
    #[error("`{0}` is your own and counts as it stands")]
    Own(String),
    /// There is no room to hold it beside the others.
    #[error("`{0}` is one too many to look at; `haft trust {0}` shows it alone")]
    TooMany(String),
    /// Something about it cannot be accepted.
    #[error("`{name}` cannot be accepted: {why}")]
    Unfit {
        /// Its name.
        name: String,
        /// What.
        why: String,
    },
    /// Its manifest cannot be read.
    #[error("{}:{flaw}", .file.display())]
    Flawed {
        /// Its file.
        file: PathBuf,
        /// What is wrong with it, and where.
        flaw: String,
    },
}

/// What was accepted of a tool before.
struct Earlier {
    digest: Digest,
    files: Files,
    /// What the files said then, as far as that was kept.
    texts: BTreeMap<String, String>,
    manifest: Option<String>,
}

impl Earlier {
    fn new(pin: &Pin, texts: &Value) -> Self {
        let files = files_of(&pin.declaration);
        let manifest = texts[find::FILE].as_str().or(pin.declaration["text"].as_str());
        let manifest = manifest.filter(|text| Digest::of(text.as_bytes()) == pin.digest).map(str::to_owned);
        Self { digest: pin.digest, texts: texts_of(&texts["files"], &files), files, manifest }
    }
}

impl Offer {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Whether it counts already.
    pub fn counts(&self) -> bool {
        self.standing.counts()
    }

    /// Whether another version of it was accepted before.
    pub fn is_changed(&self) -> bool {
        self.standing == Standing::Changed
    }

    /// What its manifest says, if that is not shown as a difference already and is not what was accepted.
    pub fn whole_text(&self) -> Option<&str> {
        (self.rewritten && self.diff.is_none()).then_some(&self.text)
    }

    fn size(&self) -> usize {
        // What is kept of them is no more than what is shown.
        let shown = self.pages.iter().filter_map(|page| page.text.as_ref()).map(String::len).sum::<usize>();
        self.text.len() + 2 * shown
    }

    /// Whether it is exactly what was proposed; otherwise what is not.
    fn differs(&self, proposed: &Proposed, dir: &Path) -> Option<String> {
        if self.pin.digest != proposed.digest {
            return Some(format!("`{}` changed", find::FILE));
        }
        let others = proposed.files.iter().filter(|(path, _)| *path != find::FILE);
        let shown: Files =
            others.map(|(path, digest)| (dir.join(path).to_string_lossy().into_owned(), *digest)).collect();
        differences(&shown, &files_of(&self.pin.declaration)).into_iter().next()
    }
}

impl Shelf {
    /// The project's tools as they stand, all of them or those that are named; and why some cannot be accepted.
    pub async fn offers(&self, names: &[String]) -> Result<(Vec<Offer>, Vec<Refused>), CallError> {
        let pins = self.pins().await?;
        let (mut offers, mut refused, mut held) = (Vec::new(), Vec::new(), 0);
        for name in if names.is_empty() { self.project_names() } else { names.to_vec() } {
            let Some(found) = find::one(&self.folders, &name, &find::Before::new()) else {
                let shown = haft_core::preview::inert(&name);
                let message = format!("there is no tool `{shown}` in this project");
                return Err(CallError::new(ErrorKind::UnknownTool, message).hint("`haft tools` lists what there is"));
            };
            if self.folders[found.folder].whose == Whose::Own {
                if !names.is_empty() {
                    refused.push(Refused::Own(name));
                }
                continue;
            }
            let earlier = self.earlier(pins.get(&name)).await?;
            match found.content {
                Content::Good(good) => match self.offer(found.folder, &good, earlier.as_ref()) {
                    Ok(offer) if !offers.is_empty() && held + offer.size() > SHOWN_MAX => {
                        refused.push(Refused::TooMany(name));
                    }
                    Ok(offer) => {
                        held += offer.size();
                        offers.push(offer);
                    }
                    Err(why) => refused.push(Refused::Unfit { name, why }),
                },
                Content::Bad(flaws) => {
                    let file = self.file(found.folder, &name);
                    refused.extend(flaws.into_iter().map(|flaw| Refused::Flawed { file: file.clone(), flaw }));
                }
                Content::Same => {}
            }
        }
        Ok((offers, refused))
    }

    /// The names of everything in the project's folders.
    fn project_names(&self) -> Vec<String> {
        let (found, _) = find::survey(&self.folders, &find::Before::new());
        let own = |folder: usize| self.folders[folder].whose == Whose::Project;
        found.into_iter().filter(|one| own(one.folder)).map(|one| one.name).collect()
    }

    async fn earlier(&self, pin: Option<&Pin>) -> Result<Option<Earlier>, CallError> {
        let Some(pin) = pin else { return Ok(None) };
        let texts = self.store.pin_texts(&self.server(), &pin.tool).await.map_err(store_error)?;
        Ok(Some(Earlier::new(pin, &texts)))
    }

    fn offer(&self, folder: usize, good: &Good, before: Option<&Earlier>) -> Result<Offer, String> {
        let dir = self.folders[folder].path.join(&good.manifest.name);
        let (pin, mut pages) = pin(&self.root, &dir, good)?;
        let files = files_of(&pin.declaration);
        let changed = before.map(|before| differences(&before.files, &files)).unwrap_or_default();
        let standing = match before {
            None => Standing::Untrusted,
            Some(before) if before.digest == pin.digest && changed.is_empty() => Standing::Accepted,
            Some(_) => Standing::Changed,
        };
        let kept = json!({ find::FILE: &*good.text, "files": kept(&pages) });
        let rewritten = before.is_none_or(|before| before.digest != pin.digest);
        let mut diff = None;
        if let Some(before) = before {
            pages.retain(|page| before.files.get(&page.path) != files.get(&page.path));
            for page in &mut pages {
                let texts = before.texts.get(&page.path).zip(page.all());
                page.diff = texts.map(|(before, now)| difference(&page.path, before, now));
            }
            let earlier = before.manifest.as_deref().filter(|_| rewritten);
            diff = earlier.map(|text| difference(find::FILE, text, &good.text));
        }
        let (file, files) = (self.file(folder, &good.manifest.name), files.into_keys().collect());
        let (manifest, text) = (Arc::clone(&good.manifest), Arc::clone(&good.text));
        Ok(Offer { file, manifest, standing, changed, diff, text, files, pages, rewritten, kept, pin })
    }

    /// Accepts exactly what was offered. What changed since it was looked at does not count.
    pub async fn accept_as_shown(&self, offers: Vec<Offer>) -> Result<(), CallError> {
        let names: Vec<String> = offers.iter().map(|offer| offer.name().to_owned()).collect();
        for offer in offers.iter().filter(|offer| !offer.counts()) {
            self.forget_grants(&offer.manifest).await?;
        }
        let texts = offers.iter().map(|offer| (offer.name().to_owned(), offer.kept.clone())).collect();
        let pins = offers.into_iter().map(|offer| offer.pin).collect();
        // First what is only shown: if the rest fails, it is used as far as it is what was accepted before.
        self.store.keep_pin_texts(&self.server(), texts).await.map_err(store_error)?;
        self.store.pin(&self.server(), pins).await.map_err(store_error)?;
        self.look_again(&names).await;
        Ok(())
    }

    /// What was granted was for the tool as it was.
    async fn forget_grants(&self, manifest: &Manifest) -> Result<(), CallError> {
        let Ok(name) = ToolName::new(&manifest.name) else { return Ok(()) };
        for grant in self.store.grants(&self.root, Some(&name)).await.map_err(store_error)? {
            self.store.revoke(&grant.id).await.map_err(store_error)?;
        }
        Ok(())
    }

    /// Accepts a tool that was proposed and is there now, if it is exactly what was proposed.
    pub(crate) async fn accept_proposed(&self, proposed: &Proposed) -> Result<(), CallError> {
        let offers = self.single(&proposed.name).await?;
        for offer in &offers {
            let dir = offer.file.parent().unwrap_or(&offer.file);
            if let Some(what) = offer.differs(proposed, dir.strip_prefix(&self.root).unwrap_or(dir)) {
                return Err(CallError::conflict(format!("it is not what was shown: {what} since")));
            }
        }
        self.accept_as_shown(offers).await
    }

    /// One tool as it stands; none if it is the user's own.
    pub(super) async fn single(&self, name: &str) -> Result<Vec<Offer>, CallError> {
        let (offers, refused) = self.offers(&[name.to_owned()]).await?;
        match refused.iter().find(|why| !matches!(why, Refused::Own(_))) {
            Some(why) => Err(CallError::failed(why.to_string())),
            None => Ok(offers),
        }
    }

    /// Takes back what was accepted: of these tools, or of all.
    pub async fn revoke(&self, names: &[String]) -> Result<Vec<String>, CallError> {
        let pinned: BTreeSet<String> = self.pins().await?.keys().cloned().collect();
        let wanted: Vec<String> = match names {
            [] => pinned.into_iter().collect(),
            names => names.iter().filter(|name| pinned.contains(*name)).cloned().collect(),
        };
        self.store.unpin_tools(&self.server(), wanted.clone()).await.map_err(store_error)?;
        self.look_again(&wanted).await;
        Ok(wanted)
    }

    /// The registry hears of another standing.
    async fn look_again(&self, names: &[String]) {
        for name in names {
            // What cannot be read is said when it is called.
            let _ = self.ready(name).await;
        }
    }
}

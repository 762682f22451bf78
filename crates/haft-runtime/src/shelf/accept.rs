//! Accepting a project's tools: what somebody is shown, and what is pinned when they say yes.

use super::find::{self, Content, Good};
use super::standing::{differences, files_of, pin};
use super::{Shelf, Standing, Whose};
use crate::store_error;
use haft_core::manifest::Manifest;
use haft_core::{CallError, ErrorKind};
use haft_store::Pin;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

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
    /// The files that belong to it, from the project's root.
    pub files: Vec<String>,
    pin: Pin,
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
}

impl Shelf {
    /// The project's tools as they stand, all of them or those that are named; and why some cannot be accepted.
    pub async fn offers(&self, names: &[String]) -> Result<(Vec<Offer>, Vec<String>), CallError> {
        let pins = self.pins().await?;
        let (mut offers, mut refused) = (Vec::new(), Vec::new());
        for name in if names.is_empty() { self.project_names() } else { names.to_vec() } {
            let Some(found) = find::one(&self.folders, &name, &find::Before::new()) else {
                let shown = haft_core::preview::inert(&name);
                let message = format!("there is no tool `{shown}` in this project");
                return Err(CallError::new(ErrorKind::UnknownTool, message).hint("`haft tools` lists what there is"));
            };
            if self.folders[found.folder].whose == Whose::Own {
                if !names.is_empty() {
                    refused.push(format!("`{name}` is your own and counts as it stands"));
                }
                continue;
            }
            match found.content {
                Content::Good(good) => match self.offer(found.folder, &good, pins.get(&name)) {
                    Ok(offer) => offers.push(offer),
                    Err(why) => refused.push(format!("`{name}` cannot be accepted: {why}")),
                },
                Content::Bad(flaws) => {
                    let file = self.file(found.folder, &name);
                    refused.extend(flaws.iter().map(|flaw| format!("{}:{flaw}", file.display())));
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

    fn offer(&self, folder: usize, good: &Good, before: Option<&Pin>) -> Result<Offer, String> {
        let dir = self.folders[folder].path.join(&good.manifest.name);
        let pin = pin(&self.root, &dir, good)?;
        let files = files_of(&pin.declaration);
        let changed = before.map(|before| differences(&files_of(&before.declaration), &files)).unwrap_or_default();
        let standing = match before {
            None => Standing::Untrusted,
            Some(before) if before.digest == pin.digest && changed.is_empty() => Standing::Accepted,
            Some(_) => Standing::Changed,
        };
        let earlier = before.filter(|before| before.digest != pin.digest);
        let earlier = earlier.and_then(|before| before.declaration["text"].as_str());
        let diff = earlier.map(|text| {
            similar::TextDiff::from_lines(text, &*good.text).unified_diff().header("accepted", "now").to_string()
        });
        let (file, files) = (self.file(folder, &good.manifest.name), files.into_keys().collect());
        Ok(Offer { file, manifest: Arc::clone(&good.manifest), standing, changed, diff, files, pin })
    }

    /// Accepts exactly what was offered. What changed since it was looked at does not count.
    pub async fn accept_as_shown(&self, offers: Vec<Offer>) -> Result<(), CallError> {
        let names: Vec<String> = offers.iter().map(|offer| offer.name().to_owned()).collect();
        let pins = offers.into_iter().map(|offer| offer.pin).collect();
        self.store.pin(&self.server(), pins).await.map_err(store_error)?;
        self.look_again(&names).await;
        Ok(())
    }

    /// Accepts tools as they stand now.
    pub async fn accept(&self, names: &[String]) -> Result<(), CallError> {
        if names.is_empty() {
            return Ok(());
        }
        let (offers, refused) = self.offers(names).await?;
        let own = |why: &String| why.ends_with("counts as it stands");
        if let Some(why) = refused.iter().find(|why| !own(why)) {
            return Err(CallError::failed(why.clone()));
        }
        self.accept_as_shown(offers).await
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

//! Accepting a project's skills: what a person is shown, and what is pinned when they say yes.

use super::directory::{Inventory, SkillDirectory};
use super::find::key;
use super::{SkillCatalog, Standing, Whose};
use crate::making::Proposed;
use crate::shelf::difference;
use crate::store_error;
use crate::work::workflow::{Offered, revoke_as};
use haft_core::CallError;
use haft_core::preview::inert;
use haft_core::record::Digest;
use haft_core::skill::{FILE, body_flaws};
use haft_store::Pin;
use serde_json::json;
use std::collections::BTreeMap;

/// How much is held at once of what is offered.
const SHOWN_MAX: usize = 32 << 20;
/// How much of a file beside the `SKILL.md` is shown and kept.
const PAGE_MAX: usize = 64 << 10;

/// A skill that does not count yet, to be looked at and accepted.
#[derive(Debug, Clone)]
pub struct OfferedSkill {
    /// What a person is shown: all of its files.
    pub shown: Offered,
    /// What a person should know before they say yes: its flaws.
    pub cautions: Vec<String>,
    pin: Pin,
}

/// What there is to accept.
#[derive(Debug, Clone, Default)]
pub struct SkillOffers {
    /// The skills that do not count yet.
    pub open: Vec<OfferedSkill>,
    /// How many count already.
    pub counted: usize,
    /// What is wrong with those that cannot be accepted.
    pub flaws: Vec<String>,
}

impl SkillCatalog {
    /// The project's skills as they stand.
    pub async fn offers(&self) -> Result<SkillOffers, CallError> {
        let mut skills = self.survey().await?.skills;
        skills.retain(|skill| skill.whose == Whose::Project);
        let (mut offers, mut held) = (SkillOffers::default(), 0);
        for skill in skills {
            let key = key(&skill.place, &self.root);
            if skill.standing.counts() {
                offers.counted += 1;
                continue;
            }
            if skill.reading.skill.is_none() {
                let flaws = skill.reading.flaws.iter().map(|flaw| format!("{key}/{FILE}:{flaw}"));
                offers.flaws.extend(flaws);
                continue;
            }
            let (text, files) = match SkillDirectory::open(&skill.dir).and_then(|dir| dir.contents()) {
                Ok((contents, files)) => (pages(&contents, &files), files),
                Err(why) => {
                    offers.flaws.push(format!("{key}: {why}"));
                    continue;
                }
            };
            held += text.len();
            if held > SHOWN_MAX {
                offers.flaws.push(format!("{key}: not shown yet; run `haft trust` again to continue"));
                break;
            }
            let before = self.store.pin_texts(&self.server(), &key).await.map_err(store_error)?;
            let before = before["text"].as_str().filter(|_| skill.standing == Standing::Changed);
            let diff = before.map(|before| difference(&key, before, &text));
            let flaws = skill.reading.flaws.iter().cloned().chain(body_flaws(&skill.text));
            let cautions = flaws.map(|flaw| format!("{FILE}:{flaw}")).collect();
            let shown = Offered { name: skill.name, path: skill.place, standing: skill.standing, text, diff };
            offers.open.push(OfferedSkill { shown, cautions, pin: pin(key, &files) });
        }
        Ok(offers)
    }

    /// Accepts exactly what was offered. What changed since it was looked at does not count.
    pub async fn accept(&self, offered: Vec<OfferedSkill>) -> Result<(), CallError> {
        let (mut texts, mut pins) = (Vec::new(), Vec::new());
        for OfferedSkill { shown, pin, .. } in offered {
            texts.push((pin.tool.clone(), json!({ "text": shown.text })));
            pins.push(pin);
        }
        self.store.keep_pin_texts(&self.server(), texts).await.map_err(store_error)?;
        self.store.pin(&self.server(), pins).await.map_err(store_error)
    }

    /// Accepts a skill that an agent proposed and a person approved, as it was shown to them.
    pub(crate) async fn accept_proposed(&self, proposed: &Proposed) -> Result<(), CallError> {
        let place = self.root.join(".haft/skills").join(&proposed.name);
        let pin = pin(key(&place, &self.root), &proposed.files);
        self.store.pin(&self.server(), vec![pin]).await.map_err(store_error)
    }

    /// Takes back what was accepted. Returns the skills' directories.
    pub async fn revoke(&self) -> Result<Vec<String>, CallError> {
        revoke_as(&self.store, &self.server()).await
    }
}

fn pin(key: String, files: &Inventory) -> Pin {
    let files: BTreeMap<&String, String> = files.iter().map(|(path, digest)| (path, digest.to_string())).collect();
    let declaration = json!({ "files": files });
    Pin { tool: key, digest: Digest::of(declaration.to_string().as_bytes()), declaration }
}

/// All files as one text, the `SKILL.md` first. What is not shown is there by its digest, so that a change of it is seen.
fn pages(contents: &BTreeMap<String, Vec<u8>>, files: &Inventory) -> String {
    let main = contents.get(FILE).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let mut text = main.unwrap_or_default();
    for (path, digest) in files.iter().filter(|(path, _)| *path != FILE) {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let shown = inert(path);
        match contents.get(path) {
            None => text.push_str(&format!("── {shown}: a link, which is not followed ({digest})\n")),
            Some(bytes) => match std::str::from_utf8(bytes).ok().filter(|page| !page.contains('\0')) {
                Some(page) if page.len() <= PAGE_MAX => {
                    text.push_str(&format!("── {shown}\n{page}"));
                }
                _ => text.push_str(&format!(
                    "── {shown}: {} bytes, not shown; open it to review it ({digest})\n",
                    bytes.len()
                )),
            },
        }
    }
    text
}

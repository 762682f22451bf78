//! What is found out about a call before it is decided: the places it touches, the files it runs, where it goes on the web,
//! what confines it.

use crate::halt::Halt;
use crate::hygiene::LONG;
use crate::now_ms;
use crate::pipeline::{Haft, Stop};
use crate::secrets::reference;
use crate::tool::off_thread;
use crate::web::texts;
use haft_core::approval::{Decision, Verdict};
use haft_core::executed::ExecutedFiles;
use haft_core::tool::Outward;
use haft_core::web::{Errand, Target};
use haft_core::{CallError, Checked, ErrorKind, Facts, Origin};
use haft_sandbox::Level;
use std::sync::Arc;

impl Haft {
    pub(crate) async fn facts(&self, checked: &Checked, halt: &Halt) -> Result<Facts, Stop> {
        let (spec, args) = (checked.spec(), checked.args());
        let places = match checked.call().origin {
            Origin::Hook => self.workspace.places_of_program(spec, args),
            _ => self.workspace.places(spec, args),
        };
        let mut places = places.map_err(|error| Stop {
            tool: checked.spec().name.to_string(),
            verdict: crate::registry::undecided("a path could not be resolved, so nothing was decided"),
            error,
        })?;
        let (shell, named) = self.judge(checked, &places).unzip();
        places.extend(named.into_iter().flatten());
        let undecided = |error| Stop {
            tool: checked.spec().name.to_string(),
            verdict: crate::registry::undecided(
                "the affected files and hosts could not be determined, so the call was not decided",
            ),
            error,
        };
        let executed = match &shell {
            Some(shell) => self.executed_files(&shell.judged, halt).await.map_err(undecided)?.files,
            None => ExecutedFiles::default(),
        };
        let observed = self.observation(checked).map_err(undecided)?;
        let (observed, patched) = observed.unzip();
        places.extend(patched.into_iter().flatten());
        places.extend(self.workspace.own_places_named(checked.args(), &checked.spec().reach.bodies));
        // An agent runs its own tools itself: nothing of haft's holds them.
        let confinement = if observed.is_some() { Ok(None) } else { self.hold(checked) };
        let hold = confinement.map_err(|error| Stop {
            tool: checked.spec().name.to_string(),
            verdict: match error.kind {
                ErrorKind::NotFound => crate::registry::undecided("it is not installed, so nothing was decided"),
                _ => Verdict::new(Decision::Deny, "confinement", "what it needs cannot be enforced here"),
            },
            error,
        })?;
        if hold.as_ref().is_some_and(|hold| hold.level == Level::Full.to_string()) {
            // A program in a root of its own has a /tmp of its own, and nothing stays of it.
            for place in places.iter_mut().filter(|place| crate::judge::passing(place)) {
                place.inside = true;
            }
        }
        let entry = self.registry.get(checked.spec().name.as_str());
        let tool = entry.as_ref().map(|entry| entry.tool());
        let (altered, barred) = (tool.and_then(|tool| tool.altered()), tool.and_then(|tool| tool.barred()));
        let web = match (checked.spec().reach.web, tool) {
            (Some(Outward::Page), _) => self.browsers.errand(&self.web, checked).map(Some),
            (Some(Outward::Made), Some(tool)) => {
                tool.aim(checked.args()).map(|aim| Some(self.web.errand_to(checked, &aim)))
            }
            _ => self.web_errand(checked).await,
        };
        let web = web.map_err(|error| Stop {
            tool: checked.spec().name.to_string(),
            verdict: crate::registry::undecided("where it would go could not be told, so nothing was decided"),
            error,
        })?;
        let web = web.map(|errand| self.with_secrets(checked, errand));
        let heard = self.heard_in(&checked.call().session).await;
        Ok(Facts {
            places,
            grants: Vec::new(),
            hold,
            shell,
            executed,
            altered,
            barred,
            web,
            heard,
            hooked: Vec::new(),
            observed,
            now_ms: now_ms(),
        })
    }

    /// What a call would ask of the web. Long arguments are looked through on a thread of their own.
    async fn web_errand(&self, checked: &Checked) -> Result<Option<Errand>, CallError> {
        let long = || texts(checked.args(), "").iter().map(|(_, text)| text.len()).sum::<usize>() > LONG;
        if checked.spec().reach.web.is_none() || !long() {
            return self.web.errand(checked);
        }
        let (web, checked) = (Arc::clone(&self.web), checked.clone());
        off_thread(Halt::new(), move || web.errand(&checked)).await
    }

    /// The secrets that a request names, and why one of them must not go there.
    fn with_secrets(&self, checked: &Checked, mut errand: Errand) -> Errand {
        if !checked.spec().reach.secrets {
            return errand;
        }
        errand.secrets = reference::in_request(checked.args()).into_iter().collect();
        let Ok(target) = Target::read(&errand.url) else { return errand };
        let inside = self.web.settings().allow_private.rule_for(target.host(), target.port()).is_some();
        let refusal = if errand.secrets.len() > reference::MOST {
            Some(format!("it names more than {} secrets", reference::MOST))
        } else {
            errand.secrets.iter().find_map(|name| self.settings.secrets.refusal(name, &target, inside))
        };
        errand.refusal = errand.refusal.or(refusal);
        errand
    }
}

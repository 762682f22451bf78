//! Dry runs: what a call would do, found out without doing it.

use crate::apply::Viewer;
use crate::halt::Halt;
use crate::hooked::Purpose;
use crate::hygiene::{self, Looked};
use crate::pipeline::{Haft, Stop, panicked, spoken};
use crate::ranked_changes::ChangeView;
use crate::{apply, journal, panics};
use haft_core::admit::judge;
use haft_core::approval::{Decision, Verdict};
use haft_core::place::{Access, Place};
use haft_core::secret::{is_secret_header, mask};
use haft_core::tool::Effect;
use haft_core::web::Errand;
use haft_core::{Call, CallError, Checked, ErrorKind, Facts, Outcome};
use serde_json::json;
use std::path::Path;

/// Whether looking at these places gives nothing away that a read would have to ask for. What a command
/// writes gives nothing away: it writes on a view.
pub(crate) fn may_look(places: &[Place]) -> bool {
    let writes = |place: &Place| place.param == crate::judge::PARAM && place.access == Access::Write;
    places.iter().all(|place| writes(place) || (place.inside && place.sensitive.is_none()))
}

/// The request that a call would make. Nothing is sent; what looks like a key is masked.
fn would_be(checked: &Checked, errand: &Errand, verdict: Verdict) -> Outcome {
    let args = checked.args();
    let mut text = format!("Nothing was sent. It would be:\n{} {}\n", errand.method, mask(&errand.url));
    for (name, value) in args["headers"].as_object().into_iter().flatten() {
        let value = if is_secret_header(name) { "[secret]".into() } else { mask(value.as_str().unwrap_or_default()) };
        text.push_str(&format!("{name}: {value}\n"));
    }
    let body = args.get("body").map(|body| body.as_str().map_or_else(|| format!("{body:#}"), str::to_owned));
    text.extend(body.map(|body| format!("\n{}\n", mask(&body))));
    let asked = (verdict.decision == Decision::Ask).then(|| format!("a person would be asked: {}", verdict.reason));
    let mut outcome = Outcome::success(checked.call().id.clone(), &checked.spec().name, text, verdict);
    let request = json!({ "method": errand.method, "url": mask(&errand.url) });
    outcome.data = Some(json!({ "dry_run": true, "changes": [], "diff": "", "result": request }));
    outcome.warnings.extend(asked);
    outcome
}

impl Haft {
    /// Runs a call as far as it can be run without changing anything, and shows the changes it would make.
    /// Nobody is asked; what is denied stays denied.
    pub async fn dry_run(&self, call: Call, halt: &Halt) -> Outcome {
        self.dry_run_under(call, halt, None).await
    }

    /// The same, and shows only the changes at or below a path. A folded directory that the path names is opened.
    pub async fn dry_run_under(&self, call: Call, halt: &Halt, path: Option<&str>) -> Outcome {
        let call = crate::registry::unwrapped(call);
        let (id, begun) = (call.id.clone(), std::time::Instant::now());
        let mut hold = None;
        let rehearsed = panics::caught("the dry run", async {
            self.made_ready(&call).await?;
            let checked = self.check(call.clone(), halt)?;
            let (checked, facts) = self.known(checked, halt, Purpose::Look).await?;
            hold.clone_from(&facts.hold);
            self.rehearse(&checked, &facts, (halt, path)).await
        });
        let rehearsed = rehearsed.await.unwrap_or_else(|error| Err(panicked(spoken(&call), error)));
        let mut outcome = rehearsed.unwrap_or_else(|stop| Outcome::failure(id, stop.tool, stop.error, stop.verdict));
        outcome.duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        journal::rehearsed(&self.store, &call, self.loggable(&call), hold.as_ref(), &outcome);
        outcome
    }

    async fn rehearse(
        &self,
        checked: &Checked,
        facts: &Facts,
        (halt, path): (&Halt, Option<&str>),
    ) -> Result<Outcome, Stop> {
        let (_, verdict) = judge(checked, facts, &self.settings.policy, &self.settings.chain);
        let name = checked.spec().name.to_string();
        let refuse = |kind, message: String| Stop {
            tool: name.clone(),
            verdict: verdict.clone(),
            error: CallError::new(kind, message),
        };
        if verdict.decision == Decision::Deny {
            return Err(refuse(ErrorKind::Denied, format!("{} (by {})", verdict.reason, verdict.by)));
        }
        if !may_look(&facts.places) {
            return Err(refuse(
                ErrorKind::ApprovalRequired,
                format!("even looking has to be asked: {}", verdict.reason),
            ));
        }
        // What is sent is sent, so what would be is only shown.
        if let Some(errand) = facts.web.as_ref().filter(|errand| errand.writes || verdict.decision != Decision::Allow) {
            return Ok(would_be(checked, errand, verdict));
        }
        // Trying does not touch files, but a program may reach out.
        let out = facts.hold.as_ref().is_some_and(|hold| hold.network);
        if out && verdict.decision != Decision::Allow {
            return Err(refuse(
                ErrorKind::ApprovalRequired,
                format!("it may use the network, so even trying has to be asked: {}", verdict.reason),
            ));
        }
        if checked.spec().effects.effect == Effect::Acts {
            return Err(refuse(
                ErrorKind::Failed,
                format!("`{name}` acts by itself, so it cannot be tried without acting"),
            ));
        }
        self.look(checked, facts, verdict.clone(), (halt, path)).await.map_err(|error| Stop {
            tool: name.clone(),
            verdict,
            error,
        })
    }

    async fn look(
        &self,
        checked: &Checked,
        facts: &Facts,
        verdict: Verdict,
        (halt, path): (&Halt, Option<&str>),
    ) -> Result<Outcome, CallError> {
        let name = &checked.spec().name;
        let under = path.map(|path| self.workspace.lexical_path(path)).transpose()?;
        let (reply, used) = self.rehearsal(checked, facts, halt).await?;
        let shown = |path: &Path| self.workspace.shown(path);
        let viewer = Viewer { project: Some(self.workspace.root()), shown: &shown, under: under.as_deref() };
        let mut view = apply::shown_before(&reply.changes, &self.vault, viewer);
        view.each_text(&|text| used.mask(text));
        let ChangeView { ranked, diff } = view;
        let files = ranked.names();
        let text = if files.is_empty() { reply.text } else { format!("{}\n{diff}", reply.text) };
        let mut outcome = Outcome::success(checked.call().id.clone(), name, text, verdict);
        outcome.data =
            Some(json!({ "dry_run": true, "changes": files, "ranked": ranked, "diff": diff, "result": reply.data }));
        outcome.warnings = reply.warnings;
        outcome.labels = reply.labels;
        let looked = match reply.looked {
            Some(looked) => looked,
            None => Looked::at_all(outcome.output.clone()).await.0,
        };
        hygiene::tend(&mut outcome, looked).await;
        outcome.success = reply.error.is_none();
        outcome.error = reply.error;
        Ok(outcome)
    }
}

//! Who may decide: every kind of answer with every kind of identity, where decisions are accepted.

use super::{Stage, call, free, kind, run};
use haft_core::approval::{Decider, DeciderIdentity};
use haft_runtime::{Approver, BoxFuture, Form, Question, Resolution, Said, Written};
use haft_store::{Approval, ApprovalState};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Every identity, for one approval, and whether it may answer that for this once, and for longer.
fn identities(approval: &str) -> Vec<(DeciderIdentity, bool, bool)> {
    let client = || Some("client".to_owned());
    vec![
        (DeciderIdentity::Terminal, true, true),
        (DeciderIdentity::CommandLine { user: client() }, true, true),
        (DeciderIdentity::YesFlag, true, true),
        (DeciderIdentity::OwnerToken, true, true),
        (DeciderIdentity::Link { approval: approval.to_owned() }, true, false),
        (DeciderIdentity::Link { approval: "another".to_owned() }, false, false),
        (DeciderIdentity::LocalClient { client: client() }, true, true),
        (DeciderIdentity::OwnerClient { client: client() }, true, true),
        (DeciderIdentity::Embedder { name: "library".to_owned() }, true, true),
        // Its yes has to be one that the store has kept for this question.
        (DeciderIdentity::Stored { by: "owner token".to_owned() }, false, false),
        (DeciderIdentity::AgentToken, false, false),
        (DeciderIdentity::AgentClient { client: client() }, false, false),
        (DeciderIdentity::AgentProgram { sign: "a sign".to_owned() }, false, false),
        (DeciderIdentity::Unattended { door: "nobody" }, false, false),
    ]
}

/// Answers every question with a yes and every form with a word, as whoever it is.
struct Eager {
    identity: DeciderIdentity,
    says: Said,
    heard: AtomicUsize,
}

impl Eager {
    fn new(identity: DeciderIdentity, says: Said) -> Self {
        Self { identity, says, heard: AtomicUsize::new(0) }
    }

    fn heard(&self) -> usize {
        self.heard.load(Ordering::Relaxed)
    }
}

impl Approver for Eager {
    fn decider(&self) -> Decider {
        self.identity.clone().into()
    }
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        self.heard.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(self.says.clone()))
    }
    fn patience(&self) -> Duration {
        Duration::from_millis(50)
    }
    fn elicit<'a>(&'a self, _: &'a Form) -> BoxFuture<'a, Written> {
        self.heard.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Written::Answer(json!({"answer": "from an agent"}))))
    }
    fn sample<'a>(&'a self, request: &'a Value) -> BoxFuture<'a, Result<Value, haft_core::CallError>> {
        Box::pin(std::future::ready(Ok(request.clone())))
    }
}

fn write() -> Value {
    json!({"path": "a.txt", "content": "x"})
}

/// A question that waits.
async fn waiting(stage: &Stage) -> Approval {
    let asked = stage.here.call(call("file.write", write()), &haft_runtime::Nobody, &free()).await;
    assert_eq!(kind(&asked), "approval_required");
    stage.there.store().approval(asked.call_id.as_str()).await.unwrap().unwrap()
}

/// What the log says of a question: what was said, by which kind of identity.
async fn logged(stage: &Stage, id: &str) -> Vec<(String, String)> {
    let records = stage.there.store().news(0, -1, 10_000).await.unwrap().records;
    let about = records.into_iter().map(|record| record.body).filter(|body| body["call"] == id);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    about.map(|body| (text(&body["said"]), text(&body["decider"]["kind"]))).collect()
}

fn kind_of(identity: &DeciderIdentity) -> String {
    serde_json::to_value(identity).unwrap()["kind"].as_str().unwrap().to_owned()
}

#[test]
fn only_identity_with_the_right_decides_a_stored_question() {
    run(async {
        for number in 0..identities("").len() {
            for resolution in [Resolution::Once, Resolution::Session, Resolution::Always("a.txt".to_owned())] {
                let stage = Stage::new();
                let asked = waiting(&stage).await;
                let (identity, once, lasting) = identities(&asked.id).swap_remove(number);
                let expected = if resolution == Resolution::Once { once } else { lasting };
                let decider = Decider::from(identity.clone());
                let said = stage.there.decide(&asked.id, &decider, resolution.clone(), &free()).await;
                let allowed = said.as_ref().is_ok_and(|outcome| outcome.success);
                assert_eq!(allowed, expected, "{identity:?} {resolution:?}: {said:?}");
                assert_eq!(stage.read("a.txt").is_some(), expected, "{identity:?} {resolution:?}");
                let after = stage.there.store().approval(&asked.id).await.unwrap().unwrap();
                let grants = stage.there.store().grants(stage.there.workspace().root(), None).await.unwrap();
                if expected {
                    assert_eq!(after.decided_by, Some(decider.to_string()));
                    assert!(logged(&stage, &asked.id).await.contains(&("approved".to_owned(), kind_of(&identity))));
                } else {
                    assert_eq!((after.state, grants.len()), (ApprovalState::Pending, 0), "{identity:?} {resolution:?}");
                }
                if !expected {
                    let error = said.unwrap_err();
                    assert_eq!(error.kind.as_str(), "denied", "{error:?}");
                    assert!(logged(&stage, &asked.id).await.contains(&("refused".to_owned(), kind_of(&identity))));
                }
            }
        }
    });
}

#[test]
fn only_identity_with_the_right_rejects_edits_and_allows_elsewhere() {
    run(async {
        for number in 0..identities("").len() {
            let stage = Stage::new();
            let asked = waiting(&stage).await;
            let (identity, once, _) = identities(&asked.id).swap_remove(number);
            let decider = Decider::from(identity.clone());
            let edited = json!({"path": "b.txt", "content": "y"});
            assert_eq!(stage.there.amend(&asked.id, &decider, edited).await.is_ok(), once, "{identity:?}");
            let store = stage.there.store();
            let asked = store.approval(&asked.id).await.unwrap().unwrap();
            assert_eq!(asked.preview.contains("b.txt"), once, "{identity:?}");
            assert_eq!(store.consent(&asked.id, &decider, &asked.basis).await.is_ok(), once, "{identity:?}");
            assert_eq!(stage.there.reject(&asked.id, &decider, "no").await.is_ok(), once, "{identity:?}");
            let after = store.approval(&asked.id).await.unwrap().unwrap();
            assert_eq!((after.state == ApprovalState::Rejected, after.consent.is_some()), (once, once), "{identity:?}");
        }
    });
}

#[test]
fn agent_at_its_own_door_is_not_asked_and_its_answers_do_not_count() {
    run(async {
        for (identity, once, lasting) in identities("") {
            // A link is for a stored question, and a kept yes is no door.
            if matches!(identity, DeciderIdentity::Link { .. } | DeciderIdentity::Stored { .. }) {
                continue;
            }
            for (says, expected) in [(Said::Once, once), (Said::Session, lasting), (Said::Edit(write()), once)] {
                let stage = Stage::new();
                let eager = Eager::new(identity.clone(), says.clone());
                if matches!(says, Said::Edit(_)) && expected {
                    // It would be asked for ever: an edit is asked about anew.
                    continue;
                }
                let outcome = stage.here.call(call("file.write", write()), &eager, &free()).await;
                assert_eq!((outcome.success, eager.heard() > 0), (expected, expected), "{identity:?} {says:?}");
                assert_eq!(stage.read("a.txt").is_some(), expected, "{identity:?} {says:?}");
                if !expected {
                    assert_eq!(
                        (kind(&outcome), stage.waiting().await.tool),
                        ("approval_required", "file.write".to_owned())
                    );
                }
            }
        }
    });
}

#[test]
fn what_is_asked_of_a_person_is_not_answered_by_an_agent() {
    run(async {
        let which = json!({"question": "Which database?", "options": ["from an agent", "postgres"]});
        for (identity, once, _) in identities("") {
            if matches!(identity, DeciderIdentity::Link { .. } | DeciderIdentity::Stored { .. }) {
                continue;
            }
            for (tool, args) in
                [("user.ask", which.clone()), ("tool.call", json!({"name": "user.ask", "args": which.clone()}))]
            {
                let stage = Stage::new();
                let eager = Eager::new(identity.clone(), Said::Once);
                let outcome = stage.here.call(call(tool, args), &eager, &free()).await;
                assert_eq!(
                    (eager.heard(), outcome.output == "from an agent"),
                    (usize::from(once), once),
                    "{identity:?} {tool}"
                );
            }
        }
    });
}

#[test]
fn agent_does_not_fill_in_a_form_that_waits_and_a_person_does() {
    run(async {
        let stage = Stage::new();
        let patient = super::Person::absent(super::LONG);
        let which = json!({"question": "Which?", "options": ["a", "b"]});
        let halt = free();
        let (outcome, ()) = tokio::join!(stage.here.call(call("user.ask", which), &patient, &halt), async {
            let form = stage.waiting().await;
            for (identity, once, _) in identities(&form.id) {
                let decider = Decider::from(identity.clone());
                if !once {
                    let refused =
                        stage.there.answer_form(&form.id, &decider, json!({"answer": "a"})).await.unwrap_err();
                    assert_eq!(refused.kind.as_str(), "denied", "{identity:?} {refused:?}");
                }
            }
            let owner = DeciderIdentity::OwnerToken.into();
            stage.there.answer_form(&form.id, &owner, json!({"answer": "b"})).await.unwrap();
        });
        assert_eq!(outcome.output, "b", "{outcome:?}");
    });
}

//! Who may decide: every kind of answer with every kind of identity, where decisions are accepted.

use super::{Stage, call, free, kind, run};
use haft_core::approval::{Decider, DeciderIdentity};
use haft_runtime::{Approver, BoxFuture, Form, Question, Resolution, Said, Written};
use haft_store::{Approval, ApprovalState};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A row for each kind, and a test of the kinds that does not compile while one has none.
macro_rules! every {
    ($(#[$doc:meta])* fn $all:ident($($name:ident: $type:ty)?) -> $kind:ty as $item:ty; $($pattern:pat => [$($row:expr),* $(,)?];)*) => {
        $(#[$doc])*
        fn $all($($name: $type)?) -> Vec<$item> {
            const _: fn(&$kind) = |kind| match kind { $($pattern => {})* };
            vec![$($($row),*),*]
        }
    };
}

fn client() -> String {
    "client".to_owned()
}

every! {
    /// Every identity, for one approval, and whether it may answer that for this once, and for longer.
    fn identities(approval: &str) -> DeciderIdentity as (DeciderIdentity, bool, bool);
    DeciderIdentity::Terminal => [(DeciderIdentity::Terminal, true, true)];
    DeciderIdentity::CommandLine { .. } => [(DeciderIdentity::CommandLine { user: Some(client()) }, true, true)];
    DeciderIdentity::YesFlag => [(DeciderIdentity::YesFlag, true, true)];
    DeciderIdentity::OwnerToken => [(DeciderIdentity::OwnerToken, true, true)];
    DeciderIdentity::Link { .. } => [
        (DeciderIdentity::Link { approval: approval.to_owned() }, true, false),
        (DeciderIdentity::Link { approval: "another".to_owned() }, false, false),
    ];
    DeciderIdentity::LocalClient { .. } => [(DeciderIdentity::LocalClient { client: Some(client()) }, true, true)];
    DeciderIdentity::OwnerClient { .. } => [(DeciderIdentity::OwnerClient { client: Some(client()) }, true, true)];
    DeciderIdentity::ClientPrompt { .. } => [(DeciderIdentity::ClientPrompt { client: client() }, true, true)];
    DeciderIdentity::Embedder { .. } => [(DeciderIdentity::Embedder { name: "library".to_owned() }, true, true)];
    // Its yes has to be one that the store has kept for this question.
    DeciderIdentity::Stored { .. } => [(DeciderIdentity::Stored { by: "owner token".to_owned() }, false, false)];
    DeciderIdentity::AgentToken => [(DeciderIdentity::AgentToken, false, false)];
    DeciderIdentity::AgentClient { .. } => [(DeciderIdentity::AgentClient { client: Some(client()) }, false, false)];
    DeciderIdentity::AgentProgram { .. } => [(DeciderIdentity::AgentProgram { sign: "a sign".to_owned() }, false, false)];
    DeciderIdentity::Unattended { .. } => [(DeciderIdentity::Unattended { door: "nobody" }, false, false)];
}

every! {
    /// Every way to say yes to a stored question, and whether it holds for longer than this once.
    fn resolutions() -> Resolution as (Resolution, bool);
    Resolution::Once => [(Resolution::Once, false)];
    Resolution::Session => [(Resolution::Session, true)];
    Resolution::Always(_) => [(Resolution::Always("a.txt".to_owned()), true)];
}

/// What an answer at a question's own door comes to, of an identity that may give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// The call runs.
    Runs,
    /// It is refused.
    Refused,
    /// It is asked about again, and waits in the end.
    AskedAgain,
}

every! {
    /// Every answer at a question's own door, what comes of it, and whether it holds for longer than this once.
    fn answers() -> Said as (Said, Answered, bool);
    Said::Once => [(Said::Once, Answered::Runs, false)];
    Said::Session => [(Said::Session, Answered::Runs, true)];
    Said::Always(_) => [(Said::Always("a.txt".to_owned()), Answered::Runs, true)];
    Said::Reject(_) => [(Said::Reject("no".to_owned()), Answered::Refused, false)];
    Said::Edit(_) => [(Said::Edit(json!({"path": "b.txt", "content": "y"})), Answered::AskedAgain, false)];
    Said::Try => [(Said::Try, Answered::AskedAgain, false)];
    Said::Nobody => [(Said::Nobody, Answered::AskedAgain, false)];
}

every! {
    /// Every answer to a form.
    fn forms() -> Written as Written;
    Written::Answer(_) => [Written::Answer(json!({"answer": "from an agent"}))];
    Written::Declined => [Written::Declined];
    Written::Cancelled => [Written::Cancelled];
    Written::Nobody => [Written::Nobody];
}

/// The functions through which an identity decides about what is stored or changes what a yes is for. Each is tried below.
const DOORS: [&str; 12] = [
    "amend",
    "answer_form",
    "approve",
    "authorize",
    "consent",
    "decide",
    "decide_as_seen",
    "fill_form",
    "finish_approval",
    "look_at",
    "reject",
    "try_waiting",
];

#[test]
fn every_function_that_takes_a_decider_is_in_the_matrix() {
    let sources = ["src", "../haft-store/src"].map(|dir| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(dir));
    let mut left: Vec<_> = sources.into();
    let mut found = std::collections::BTreeSet::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for (at, _) in text.match_indices("pub async fn ") {
            let head = text[at..].split('{').next().unwrap();
            if head.contains("&Decider") {
                let name = head["pub async fn ".len()..].split(['(', '<']).next().unwrap();
                found.insert(name.to_owned());
            }
        }
    }
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), DOORS);
}

/// Answers the first question in one way, and every form in another, as whoever it is. Asked again, nobody is there.
struct Eager {
    identity: DeciderIdentity,
    says: Said,
    writes: Written,
    heard: AtomicUsize,
}

impl Eager {
    fn new(identity: DeciderIdentity, says: Said, writes: Written) -> Self {
        Self { identity, says, writes, heard: AtomicUsize::new(0) }
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
        let is_first = self.heard.fetch_add(1, Ordering::Relaxed) == 0;
        Box::pin(std::future::ready(if is_first { self.says.clone() } else { Said::Nobody }))
    }
    fn patience(&self) -> Duration {
        Duration::from_millis(50)
    }
    fn elicit<'a>(&'a self, _: &'a Form) -> BoxFuture<'a, Written> {
        self.heard.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(self.writes.clone()))
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
            for (resolution, is_lasting) in resolutions() {
                let stage = Stage::new();
                let asked = waiting(&stage).await;
                let (identity, once, lasting) = identities(&asked.id).swap_remove(number);
                let expected = if is_lasting { lasting } else { once };
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

/// Identities that stand at a question's own door. A link is for a stored question, and a kept yes is no door.
fn at_a_door() -> impl Iterator<Item = (DeciderIdentity, bool, bool)> {
    let is_at_a_door =
        |identity: &DeciderIdentity| !matches!(identity, DeciderIdentity::Link { .. } | DeciderIdentity::Stored { .. });
    identities("").into_iter().filter(move |(identity, ..)| is_at_a_door(identity))
}

#[test]
fn agent_at_its_own_door_is_not_asked_and_its_answers_do_not_count() {
    run(async {
        for (identity, once, lasting) in at_a_door() {
            for (says, answered, is_lasting) in answers() {
                let may = if is_lasting { lasting } else { once };
                let stage = Stage::new();
                let eager = Eager::new(identity.clone(), says.clone(), Written::Nobody);
                let outcome = stage.here.call(call("file.write", write()), &eager, &free()).await;
                let what = format!("{identity:?} {says:?} {outcome:?}");
                let runs = may && answered == Answered::Runs;
                assert_eq!((outcome.success, eager.heard() > 0), (runs, may), "{what}");
                assert_eq!((stage.read("a.txt").is_some(), stage.read("b.txt")), (runs, None), "{what}");
                if !may || answered == Answered::AskedAgain {
                    let waits = stage.waiting().await;
                    assert_eq!((kind(&outcome), waits.tool), ("approval_required", "file.write".to_owned()), "{what}");
                } else {
                    assert!(stage.there.store().approvals(true).await.unwrap().is_empty(), "{what}");
                }
            }
        }
    });
}

#[test]
fn what_is_asked_of_a_person_is_not_answered_by_an_agent() {
    run(async {
        let which = json!({"question": "Which database?", "options": ["from an agent", "postgres"]});
        for (identity, once, _) in at_a_door() {
            for writes in forms() {
                for (tool, args) in
                    [("user.ask", which.clone()), ("tool.call", json!({"name": "user.ask", "args": which.clone()}))]
                {
                    let stage = Stage::new();
                    let eager = Eager::new(identity.clone(), Said::Once, writes.clone());
                    let outcome = stage.here.call(call(tool, args), &eager, &free()).await;
                    let is_answered = once && matches!(writes, Written::Answer(_));
                    let what = format!("{identity:?} {writes:?} {tool} {outcome:?}");
                    assert_eq!(eager.heard(), usize::from(once), "{what}");
                    assert_eq!(outcome.output == "from an agent", is_answered, "{what}");
                }
            }
        }
    });
}

#[test]
fn identity_without_the_right_sees_a_question_and_changes_nothing_of_what_a_yes_is_for() {
    run(async {
        for number in 0..identities("").len() {
            let stage = Stage::new();
            let asked = waiting(&stage).await;
            let (identity, once, _) = identities(&asked.id).swap_remove(number);
            let decider = Decider::from(identity.clone());
            // The question is another one now: who looks at it with the right to decide makes it what a yes is for.
            std::fs::write(stage.path("a.txt"), "of a person").unwrap();
            let looked = stage.there.look_at(&asked.id, &decider).await;
            let tried = stage.there.try_waiting(&asked.id, &decider, &free()).await;
            let after = stage.there.store().approval(&asked.id).await.unwrap().unwrap();
            assert_eq!((looked.is_ok(), after.basis != asked.basis), (once, once), "{identity:?} {looked:?}");
            let refused = tried.as_ref().err().is_some_and(|error| error.kind.as_str() == "denied");
            assert_eq!(refused, !once, "{identity:?} {tried:?}");
            if !once {
                assert!(logged(&stage, &asked.id).await.contains(&("refused".to_owned(), kind_of(&identity))));
            }
            let glanced = stage.there.glance_at(&asked.id).await.unwrap();
            assert!(glanced.is_some(), "{identity:?}");
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

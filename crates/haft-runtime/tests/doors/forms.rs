//! Forms: filled in at the door, in the inbox by another process, by nobody; and what does not fit.

use super::{LONG, Person, Stage, call, free, kind, run};
use haft_runtime::{Approver, BoxFuture, Decider, Form, Halt, Nobody, Question, Said, Written};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

fn which() -> Value {
    json!({"question": "Which database?", "options": ["sqlite", "postgres"]})
}

/// Writes one thing after the other.
struct Writer(Mutex<Vec<Written>>, Mutex<Vec<Form>>);

impl Approver for Writer {
    fn decider(&self) -> Decider {
        Decider::embedder("writer")
    }
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Nobody))
    }
    fn elicit<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Written> {
        self.1.lock().unwrap().push(form.clone());
        let next = self.0.lock().unwrap().remove(0);
        Box::pin(std::future::ready(next))
    }
}

#[test]
fn another_process_answers_and_the_answer_is_kept_nowhere() {
    run(async {
        let stage = Stage::new();
        let person = Person::absent(LONG);
        let (outcome, id) =
            tokio::join!(async { stage.here.call(call("user.ask", which()), &person, &free()).await }, async {
                let found = stage.waiting().await;
                assert_eq!((found.tool.as_str(), found.preview.as_str()), ("user.ask", "Which database?"));
                assert_eq!(found.form.as_ref().unwrap()["schema"]["properties"]["answer"]["enum"][1], "postgres");
                let wrong = stage
                    .there
                    .answer_form(&found.id, &Decider::embedder("me"), json!({"answer": "oracle"}))
                    .await
                    .unwrap_err();
                assert!(wrong.message.contains("does not fit"), "{wrong:?}");
                let yes = stage.there.approve(&found.id, &Decider::embedder("me"), &free()).await.unwrap_err();
                assert!(yes.message.contains("asks for an answer"), "{yes:?}");
                stage
                    .there
                    .answer_form(&found.id, &Decider::embedder("me"), json!({"answer": "postgres"}))
                    .await
                    .unwrap();
                found.id
            });
        assert_eq!((outcome.output.as_str(), kind(&outcome)), ("postgres", ""), "{outcome:?}");
        assert_eq!(outcome.data.unwrap()["answers"][0], json!({"question": "Which database?", "answer": "postgres"}));
        let row = stage.there.store().approval(&id).await.unwrap().unwrap();
        assert_eq!((row.state.as_str(), row.outcome, row.form), ("done", Some(json!({"answered": true})), None));
        let late =
            stage.there.answer_form(&id, &Decider::embedder("me"), json!({"answer": "sqlite"})).await.unwrap_err();
        assert_eq!(late.kind.as_str(), "conflict");
    });
}

#[test]
fn another_process_declines_and_a_call_that_is_cancelled_takes_its_form_back() {
    run(async {
        let stage = Stage::new();
        let person = Person::absent(LONG);
        let (outcome, ()) =
            tokio::join!(async { stage.here.call(call("user.ask", which()), &person, &free()).await }, async {
                let found = stage.waiting().await;
                stage.there.reject(&found.id, &Decider::embedder("me"), "").await.unwrap();
            });
        assert!(outcome.success && outcome.output.contains("declined"), "{outcome:?}");
        assert_eq!(outcome.data, Some(json!({"answered": false})));
        let halt = Halt::new();
        let (outcome, id) = tokio::join!(stage.here.call(call("user.ask", which()), &person, &halt), async {
            let found = stage.waiting().await;
            halt.cancel();
            found.id
        });
        assert_eq!(kind(&outcome), "cancelled", "{outcome:?}");
        let row = stage.there.store().approval(&id).await.unwrap().unwrap();
        assert_eq!((row.state.as_str(), row.decided_by.as_deref()), ("rejected", Some("caller")));
    });
}

#[test]
fn whoever_is_at_the_door_answers_and_is_asked_again_if_it_does_not_fit() {
    run(async {
        let stage = Stage::new();
        let answers = [json!({"answer": "oracle"}), json!({"answer": "sqlite"})].map(Written::Answer);
        let writer = Writer(Mutex::new(answers.into()), Mutex::default());
        let outcome = stage.here.call(call("user.ask", which()), &writer, &free()).await;
        assert_eq!(outcome.output, "sqlite", "{outcome:?}");
        let forms = writer.1.lock().unwrap();
        assert!(forms[1].message.contains("The last answer did not fit"), "{forms:?}");
        assert_eq!((forms.len(), forms[0].from.as_str()), (2, "the agent"));
    });
}

#[test]
fn nobody_answers_and_the_model_goes_on_with_the_defaults() {
    run(async {
        let stage = Stage::new();
        let mut args = which();
        args["default"] = "sqlite".into();
        let outcome = stage.here.call(call("user.ask", args.clone()), &Nobody, &free()).await;
        assert!(outcome.success && outcome.output.ends_with("Which database?: sqlite (default)"), "{outcome:?}");
        assert_eq!(outcome.data.unwrap()["answered"], false);
        let person = Person::absent(Duration::from_millis(50));
        let outcome = stage.here.call(call("user.ask", args), &person, &free()).await;
        assert!(outcome.output.starts_with("Nobody is there to answer."), "{outcome:?}");
        assert_eq!(stage.there.store().approvals(true).await.unwrap(), [], "nothing waits any more");
    });
}

//! What a call runs is what was approved, however its files change meanwhile.

use super::{Stage, call, kind, run};
use haft_runtime::{Approver, BoxFuture, Decider, Halt, Question, Said};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Says yes, and then puts something else in the place of the script: so many times.
struct Swapper {
    script: PathBuf,
    swaps: usize,
    /// The digests that were shown.
    shown: Mutex<Vec<String>>,
}

impl Swapper {
    fn new(stage: &Stage, swaps: usize) -> Self {
        let swapper = Self { script: stage.path("build.sh"), swaps, shown: Mutex::default() };
        write(&swapper.script, "first");
        swapper
    }

    fn asked(&self) -> usize {
        self.shown.lock().unwrap().len()
    }
}

fn write(script: &Path, says: &str) {
    std::fs::write(script, format!("echo {says} > out.txt\n")).unwrap();
}

impl Approver for Swapper {
    fn decider(&self) -> Decider {
        Decider::embedder("person")
    }
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        let mut shown = self.shown.lock().unwrap();
        shown.push(question.executed.lines().join("\n"));
        if shown.len() <= self.swaps {
            write(&self.script, &format!("swapped{}", shown.len()));
        }
        Box::pin(std::future::ready(Said::Once))
    }
}

#[test]
fn script_swapped_while_it_is_approved_is_asked_about_again() {
    run(async {
        let stage = Stage::new();
        let person = Swapper::new(&stage, 1);
        let outcome =
            stage.here.call(call("shell.exec", json!({"command": "sh build.sh"})), &person, &Halt::new()).await;
        assert!(outcome.success, "{outcome:?}");
        assert_eq!((person.asked(), stage.read("out.txt").as_deref()), (2, Some("swapped1\n")));
        let shown = person.shown.lock().unwrap();
        assert!(
            shown.iter().all(|lines| lines.starts_with("runs ./build.sh (sha256 ")) && shown[0] != shown[1],
            "{shown:?}"
        );
    });
}

#[test]
fn script_swapped_after_every_answer_never_runs_and_its_question_is_stored() {
    run(async {
        let stage = Stage::new();
        let person = Swapper::new(&stage, usize::MAX);
        let outcome =
            stage.here.call(call("shell.exec", json!({"command": "sh build.sh"})), &person, &Halt::new()).await;
        assert_eq!((kind(&outcome), person.asked(), stage.read("out.txt")), ("conflict", 3, None), "{outcome:?}");
        let error = outcome.error.unwrap();
        assert!(
            error.message.contains("has changed since it was approved")
                && error.message.contains("./build.sh (sha256 "),
            "{error:?}"
        );
        let asked = stage.waiting().await;
        assert_eq!(error.details.unwrap()["approval_id"], asked.id.as_str());
        assert_eq!(asked.executed[0].path, "build.sh");
    });
}

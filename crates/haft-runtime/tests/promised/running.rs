//! A task that is due is run by the whole tool layer: decided, recorded, and asked about where that is needed.

use crate::{Ground, at};
use haft_core::Caller;
use haft_core::approval::Decider;
use haft_core::outcome::Label;
use haft_runtime::promised::{Edit, Scheduler, Starter, Wanted, Who, edit, make};
use haft_runtime::work::Until;
use haft_runtime::{Approver, Haft, Halt, Settings, Workspace, approver::Nobody};
use haft_store::Store;
use haft_store::tasks::{Task, TaskStatus};
use haft_store::work::Stored;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::sync::Arc;

const NOW: &str = "2026-11-16T05:00";

/// A project, its tool layer, and whoever looks after its tasks.
struct Stage {
    dir: tempfile::TempDir,
    haft: Arc<Haft>,
    scheduler: Scheduler,
    root: String,
    /// The store's own place, for as long as it is used.
    _ground: Ground,
}

impl Stage {
    fn new() -> Self {
        Self::on(Ground::file())
    }

    fn on(ground: Ground) -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let workspace = Workspace::new(&dir.path().join("project")).unwrap();
        let root = workspace.root().to_string_lossy().into_owned();
        let store = Store::open(&ground.path()).unwrap();
        let haft = Arc::new(Haft::new(workspace, store, Settings::new(dir.path().join("data"))));
        Self { dir, scheduler: haft.scheduler(&root), haft, root, _ground: ground }
    }

    fn store(&self) -> &Store {
        self.haft.store()
    }

    /// A task that is run at once.
    async fn hand(&self, edit: impl FnOnce(&mut Wanted)) -> Task {
        self.hand_by(Vec::new(), edit).await
    }

    /// The same, made by somebody who has heard such things.
    async fn hand_by(&self, labels: Vec<Label>, edit: impl FnOnce(&mut Wanted)) -> Task {
        let mut wanted = Wanted { title: "A task".to_owned(), assignee: Some("haft".to_owned()), ..Wanted::default() };
        edit(&mut wanted);
        let (root, caller) = (self.root.clone(), Caller::default());
        let who = Who { root, caller, zone: TimeZone::UTC, person: false, labels };
        make(self.store(), wanted, &who, at(NOW)).await.unwrap().0
    }

    /// One that calls a tool.
    async fn call(&self, tool: &str, args: Value) -> Task {
        self.hand(|wanted| (wanted.tool, wanted.args) = (Some(tool.to_owned()), Some(args))).await
    }

    /// Starts what is due, works on it as far as it goes, and hears what came of it.
    async fn work(&self, task: &Task, approver: &dyn Approver) -> Task {
        self.scheduler.tick(at(NOW)).await.unwrap();
        let run = self.task(task).await.standing.run.unwrap();
        self.haft.work(&self.haft.worker(4), &Until::Over(run), approver, &Halt::new()).await.unwrap();
        self.scheduler.tick(at(NOW)).await.unwrap();
        self.task(task).await
    }

    async fn task(&self, task: &Task) -> Task {
        self.store().task(&task.id).await.unwrap().unwrap()
    }

    /// Says where a task stands; nothing: it is removed.
    async fn put(&self, task: &Task, status: &str) {
        if status.is_empty() {
            self.store().remove_task(&task.id).await.unwrap();
            return;
        }
        let wanted = Edit { status: Some(status.to_owned()), ..Edit::default() };
        edit(self.store(), &task.id, wanted, (&[], &TimeZone::UTC), at(NOW)).await.unwrap();
    }

    /// What waits for a person.
    async fn asked(&self) -> Vec<String> {
        self.store().approvals(true).await.unwrap().into_iter().map(|asked| asked.id).collect()
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.path().join("project").join(path)).ok()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_task_makes_its_call_and_keeps_what_came_of_it() {
    let stage = Stage::new();
    let task = stage.call("calc.eval", json!({"expression": "6*7"})).await;
    let done = stage.work(&task, &Nobody).await;
    assert_eq!((done.status, done.standing.result.as_deref()), (TaskStatus::Done, Some("42")));
    let runs = stage.store().task_runs(&task.id, 9).await.unwrap();
    assert_eq!((runs.len(), runs[0].ok), (1, Some(true)));
    // Its call is in the log like any other.
    let session = format!("task-{}", task.id);
    let records = stage.store().records(0, 100, None).await.unwrap();
    assert!(records.iter().any(|record| record.body.to_string().contains(&session)), "no record of {session}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_person_waits_in_the_inbox_and_goes_on_from_there() {
    let stage = Stage::new();
    let task = stage.call("file.write", json!({"path": "a.txt", "content": "{{words}}"})).await;
    let waiting = stage.work(&task, &Nobody).await;
    assert_eq!(waiting.status, TaskStatus::Waiting);
    let question = waiting.standing.waits_for.clone().unwrap();
    let inbox = stage.store().approvals(true).await.unwrap();
    assert_eq!(inbox.iter().map(|asked| asked.id.as_str()).collect::<Vec<_>>(), [question.as_str()]);
    // For as long as it takes.
    assert_eq!(stage.scheduler.tick(at("2027-11-16T05:00")).await.unwrap(), 0);
    assert_eq!(stage.task(&task).await.status, TaskStatus::Waiting);
    assert!(stage.haft.approve(&question, &Decider::embedder("somebody"), &Halt::new()).await.unwrap().success);
    let done = stage.work(&task, &Nobody).await;
    assert_eq!((done.status, done.standing.waits_for.as_deref()), (TaskStatus::Done, None));
    assert_eq!(stage.read("a.txt").as_deref(), Some("{{words}}"), "what a task is given means itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_refuses_is_not_asked_again() {
    let stage = Stage::new();
    let task = stage.call("file.write", json!({"path": "a.txt", "content": "x"})).await;
    let waiting = stage.work(&task, &Nobody).await;
    stage.haft.reject(&waiting.standing.waits_for.unwrap(), &Decider::embedder("somebody"), "not today").await.unwrap();
    let failed = stage.work(&task, &Nobody).await;
    assert_eq!((failed.status, failed.standing.next_ms), (TaskStatus::Failed, None));
    assert_eq!(stage.read("a.txt"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_may_do_less_by_itself_than_its_project() {
    let stage = Stage::new();
    let task = stage
        .hand(|wanted| {
            wanted.tool = Some("file.write".to_owned());
            wanted.args = Some(json!({"path": "a.txt", "content": "x"}));
            wanted.autonomy = Some("autonomous".to_owned());
        })
        .await;
    let refused = stage.work(&task, &haft_runtime::Yes).await;
    let why = refused.standing.result.unwrap_or_default();
    assert_eq!(refused.status, TaskStatus::Failed);
    assert!(why.contains("nobody is asked"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_for_an_agent_say_that_there_is_no_model() {
    let stage = Stage::new();
    let task = stage.hand(|wanted| (wanted.prompt, wanted.retries) = (Some("tidy {{up}}".to_owned()), Some(0))).await;
    let failed = stage.work(&task, &Nobody).await;
    let why = failed.standing.result.unwrap_or_default();
    assert_eq!(failed.status, TaskStatus::Failed);
    assert!(why.contains("no model to ask"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_pipeline_is_run_with_what_it_is_given() {
    let stage = Stage::new();
    let plan = json!({
        "name": "sums", "inputs": {"n": {}}, "steps": [
            {"id": "double", "tool": "calc.eval", "args": {"expression": "{{n}}*2"}},
            {"id": "more", "tool": "calc.eval", "args": {"expression": "{{double}}+1"}}
        ]
    });
    let kept = Stored { id: "p1".into(), name: "sums".into(), origin: "saved".into(), plan, at_ms: 0 };
    stage.store().keep_pipeline(&stage.root, kept).await.unwrap();
    let task = stage
        .hand(|wanted| (wanted.pipeline, wanted.inputs) = (Some("sums".to_owned()), Some(json!({"n": "20"}))))
        .await;
    let done = stage.work(&task, &Nobody).await;
    assert_eq!((done.status, done.standing.result.as_deref()), (TaskStatus::Done, Some("## more\n41")));
    // One that is not there is told at once.
    let task = stage.hand(|wanted| wanted.pipeline = Some("nothing".to_owned())).await;
    stage.scheduler.tick(at(NOW)).await.unwrap();
    let failed = stage.task(&task).await;
    assert!(failed.standing.result.unwrap_or_default().contains("nothing"), "{:?}", failed.status);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_started_twice_for_one_time_is_one_run() {
    let stage = Stage::new();
    let task = stage.call("calc.eval", json!({"expression": "1+1"})).await;
    let starter: &dyn Starter = stage.haft.as_ref();
    let first = starter.start(&task, at(NOW)).await.unwrap();
    assert_eq!(starter.start(&task, at(NOW)).await.unwrap(), first);
    assert_ne!(starter.start(&task, at(NOW) + 1).await.unwrap(), first);
    assert_eq!(stage.store().runs(&stage.root, 9).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_heard_when_a_task_was_made_counts_when_it_runs() {
    let stage = Stage::new();
    let write = |wanted: &mut Wanted| {
        wanted.tool = Some("file.write".to_owned());
        wanted.args = Some(json!({"path": "a.txt", "content": "x"}));
    };
    let sources = async |labels: Vec<Label>| {
        let task = stage.hand_by(labels, write).await;
        let question = stage.work(&task, &Nobody).await.standing.waits_for.unwrap();
        stage.store().approval(&question).await.unwrap().unwrap().sources
    };
    assert_eq!(sources(Vec::new()).await, [""; 0]);
    assert_eq!(sources(vec![Label::Untrusted]).await, ["untrusted: pipeline.run"]);
}

/// Tells a story on a file and, where there is one, on a server.
fn on_each(story: &impl AsyncFn(&Stage)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for ground in [Some(Ground::file()), Ground::server()].into_iter().flatten() {
        let stage = runtime.block_on(async { Stage::on(ground) });
        runtime.block_on(story(&stage));
    }
}

#[test]
fn what_a_task_asked_is_no_question_once_it_is_closed_put_off_or_removed() {
    on_each(&async |stage: &Stage| {
        for status in ["done", "cancelled", "failed", "on_hold", ""] {
            let task = stage.call("file.write", json!({"path": "a.txt", "content": "x"})).await;
            let question = stage.work(&task, &Nobody).await.standing.waits_for.unwrap();
            let run = stage.task(&task).await.standing.run.unwrap();
            stage.put(&task, status).await;
            assert_eq!(stage.asked().await, [""; 0], "{status}: the question is gone");
            assert_eq!(stage.store().run_seen(&run).await.unwrap().unwrap().state, "cancelled", "{status}");
            let late = stage.haft.approve(&question, &Decider::embedder("somebody"), &Halt::new()).await;
            assert!(!late.is_ok_and(|outcome| outcome.success), "{status}: a late yes runs nothing");
            stage.scheduler.tick(at("2027-11-16T05:00")).await.unwrap();
            assert_eq!(stage.read("a.txt"), None, "{status}");
            if let Some(left) = stage.store().task(&task.id).await.unwrap() {
                let now = (left.standing.waits_for, left.standing.run, left.standing.next_ms);
                assert_eq!(now, (None, None, None), "{status}");
                let word = if status == "on_hold" { "waiting" } else { status };
                assert_eq!(left.status.as_str(), word, "and so it stays");
            }
        }
    });
}

#[test]
fn a_pipeline_ends_with_its_task_and_goes_on_with_the_next_run() {
    on_each(&async |stage: &Stage| {
        let write = |path: &str| json!({"id": path, "tool": "file.write", "args": {"path": path, "content": "x"}});
        let mut last = write("c");
        last["needs"] = json!(["a"]);
        let plan = json!({"name": "writes", "steps": [write("a"), write("b"), last]});
        let kept = Stored { id: "p1".into(), name: "writes".into(), origin: "saved".into(), plan, at_ms: 0 };
        stage.store().keep_pipeline(&stage.root, kept).await.unwrap();
        let task = stage
            .hand(|wanted| {
                (wanted.pipeline, wanted.schedule) = (Some("writes".to_owned()), Some("daily at 4:00".to_owned()));
            })
            .await;
        let now = Edit { run_now: true, ..Edit::default() };
        edit(stage.store(), &task.id, now, (&[], &TimeZone::UTC), at(NOW)).await.unwrap();
        let run = stage.work(&task, &Nobody).await.standing.run.unwrap();
        assert_eq!(stage.asked().await.len(), 2);
        stage.put(&task, "on_hold").await;
        assert_eq!(stage.asked().await, [""; 0]);
        let steps = stage.store().steps(&run).await.unwrap();
        assert_eq!(steps.iter().map(|step| step.state.as_str()).collect::<Vec<_>>(), ["skipped"; 3]);
        let runs = stage.store().task_runs(&task.id, 9).await.unwrap();
        assert_eq!((runs[0].ok, runs[0].result.as_deref()), (Some(false), Some("its task was put off")));
        // Whoever opens it again gets its next time, and not what was put off.
        stage.put(&task, "pending").await;
        let open = stage.task(&task).await;
        assert_eq!((open.status, open.standing.next_ms), (TaskStatus::Pending, Some(at("2026-11-17T04:00"))));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_closed_between_its_claim_and_its_start_does_nothing() {
    let stage = Stage::new();
    for status in ["cancelled", ""] {
        let task = stage.call("calc.eval", json!({"expression": "1+1"})).await;
        let due = haft_core::schedule::Due { run: Some(at(NOW)), next: None, missed: 0 };
        assert!(stage.store().claim_task(&task.id, at(NOW), due, at(NOW)).await.unwrap().is_some());
        stage.put(&task, status).await;
        let starter: &dyn Starter = stage.haft.as_ref();
        let run = starter.start(&task, at(NOW)).await.unwrap();
        assert!(!stage.store().task_started(&task.id, at(NOW), &run).await.unwrap());
        assert_eq!(stage.store().run_seen(&run).await.unwrap().unwrap().state, "cancelled", "{status}");
    }
}

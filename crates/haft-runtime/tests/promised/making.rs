//! What somebody says becomes a task, or is refused with what would.

use crate::{Ground, Scene, at, who};
use haft_core::CallError;
use haft_core::ErrorKind;
use haft_core::outcome::Label;
use haft_core::policy::Autonomy;
use haft_runtime::promised::{Does, Edit, Query, Wanted, Who, does, edit, find, list, make, told};
use haft_store::tasks::{Ended, Task, TaskKind, TaskStatus};
use jiff::tz::TimeZone;
use serde_json::json;

const NOW: &str = "2026-11-16T05:00";

fn wanted(title: &str, edit: impl FnOnce(&mut Wanted)) -> Wanted {
    let mut wanted = Wanted { title: title.to_owned(), ..Wanted::default() };
    edit(&mut wanted);
    wanted
}

async fn made(scene: &Scene, wanted: Wanted) -> Task {
    make(&scene.store, wanted, &who(), at(NOW)).await.unwrap().0
}

async fn refused(scene: &Scene, wanted: Wanted) -> CallError {
    make(&scene.store, wanted, &who(), at(NOW)).await.unwrap_err()
}

async fn edited(scene: &Scene, id: &str, wanted: Edit) -> Result<(Task, usize), CallError> {
    let places = ["/p".to_owned(), String::new()];
    edit(&scene.store, id, wanted, (&places, &TimeZone::UTC), at(NOW) + 60_000).await
}

#[expect(clippy::unnecessary_wraps, reason = "what is wanted may be left out, and here it is not")]
fn text(words: &str) -> Option<String> {
    Some(words.to_owned())
}

#[tokio::test]
async fn what_is_said_decides_the_kind_and_when_it_is_due() {
    let scene = Scene::new(Ground::file());
    let later = |task: &Task| task.standing.next_ms.map(|next| (next - at(NOW)) / 60_000);
    let url = "https://example.com/a";
    let told = [
        wanted("by hand", |_| {}),
        wanted("by hand, with a tool", |wanted| wanted.tool = text("calc.eval")),
        wanted("handed over", |wanted| (wanted.prompt, wanted.assignee) = (text("go"), text("nodyn"))),
        wanted("scheduled", |wanted| wanted.schedule = text("every 5 minutes")),
        wanted("scheduled and watched", |wanted| (wanted.schedule, wanted.watch_url) = (text("1h"), text(url))),
        wanted("watched", |wanted| wanted.watch_url = text(url)),
        wanted("watched too often", |wanted| {
            (wanted.watch_url, wanted.watch_interval_minutes) = (text(url), Some(0.5));
        }),
        wanted("pipeline", |wanted| wanted.pipeline = text("nightly")),
        wanted("all", |wanted| {
            (wanted.pipeline, wanted.schedule, wanted.watch_url) = (text("nightly"), text("2h"), text(url));
        }),
    ];
    let mut lines = Vec::new();
    for wanted in told {
        let (task, notes) = make(&scene.store, wanted, &who(), at(NOW)).await.unwrap();
        let schedule = task.promise.schedule.clone().unwrap_or_default();
        let does = does(&task).map_or_else(
            |_| "nothing".to_owned(),
            |does| match does {
                Does::Call { tool, .. } => tool,
                Does::Pipeline { pipeline, .. } => format!("pipeline {pipeline}"),
                Does::Prompt(text) => format!("prompt {text}"),
            },
        );
        lines.push(format!(
            "{} | {} | {:?} | {schedule} | {does} | {}",
            task.about.title,
            task.kind.as_str(),
            later(&task),
            notes.join(";")
        ));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    by hand | manual | None |  | nothing | 
    by hand, with a tool | manual | None |  | calc.eval | 
    handed over | manual | Some(0) |  | prompt go | 
    scheduled | scheduled | Some(5) | every 5 minutes | prompt scheduled | 
    scheduled and watched | scheduled | Some(60) | 1h | prompt scheduled and watched | watch_url is left out: a schedule comes before it
    watched | watch | Some(0) | 60m | web.fetch | 
    watched too often | watch | Some(0) | 5m | web.fetch | 
    pipeline | pipeline | Some(0) |  | pipeline nightly | 
    all | pipeline | Some(120) | 2h | pipeline nightly | watch_url is left out: a pipeline comes before it
    ");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_what_would() {
    let scene = Scene::new(Ground::file());
    let mut lines = Vec::new();
    for wanted in [
        wanted("  ", |_| {}),
        wanted("a", |wanted| wanted.schedule = text("0 0 31 2 *")),
        wanted("a", |wanted| wanted.schedule = text("sometimes")),
        wanted("a", |wanted| wanted.schedule = text("every 9 seconds")),
        wanted("a", |wanted| wanted.zone = text("Europe/Vienna")),
        wanted("a", |wanted| wanted.priority = text("huge")),
        wanted("a", |wanted| wanted.due = text("someday")),
        wanted("a", |wanted| wanted.scope = text("galaxy")),
        wanted("a", |wanted| wanted.missed = text("some")),
        wanted("a", |wanted| wanted.autonomy = text("yolo")),
        wanted("a", |wanted| wanted.tags = vec!["two words".to_owned()]),
        wanted("a", |wanted| wanted.parent = text("abc")),
        wanted("a", |wanted| wanted.watch_url = text("file:///etc/passwd")),
        wanted("a", |wanted| (wanted.tool, wanted.prompt) = (text("calc.eval"), text("x"))),
        wanted("a", |wanted| (wanted.tool, wanted.args) = (text("calc.eval"), Some(json!([1])))),
        wanted("use AKIAABCDEFGHIJKLMNOP", |_| {}),
        wanted("a", |wanted| (wanted.tool, wanted.args) = (text("x.y"), Some(json!({"t": "a".repeat(70_000)})))),
    ] {
        lines.push(refused(&scene, wanted).await.message);
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    a title has between 1 and 200 characters
    `0 0 31 2 *` never happens: no such time is still to come
    `sometimes` is not a schedule
    `every 9 seconds` is more often than every 10 seconds
    a time zone without a schedule says nothing
    `huge` is no priority
    `someday` is no date
    there is no scope `galaxy`
    `some` is no policy for missed runs
    `yolo` is no level of autonomy
    `two words` is no tag
    there is no task `abc`
    `file` URLs are not asked for; only http and https are
    a task does one thing: a tool, a prompt or a pipeline
    `args` has to be an object
    the task contains what looks like a secret, and tasks are kept
    what the task does is longer than 64 KiB
    ");
    assert_eq!(scene.store.tasks(haft_store::tasks::TaskFilter::default()).await.unwrap(), []);
}

#[tokio::test]
async fn a_conversation_that_heard_an_attack_makes_tasks_that_ask() {
    let scene = Scene::new(Ground::file());
    let who = Who { labels: vec![Label::Untrusted, Label::Flagged], ..who() };
    let loose = wanted("a", |wanted| (wanted.schedule, wanted.autonomy) = (text("1h"), text("autonomous")));
    let (task, notes) = make(&scene.store, loose, &who, at(NOW)).await.unwrap();
    assert_eq!(task.promise.owner.autonomy, Some(Autonomy::Conservative));
    assert_eq!(task.promise.owner.labels, [Label::Untrusted, Label::Flagged], "and what it heard stays with it");
    assert!(notes[0].contains("looks like an attack"), "{notes:?}");
}

#[tokio::test]
async fn an_agent_has_less_room_for_open_tasks_than_a_person() {
    let scene = Scene::new(Ground::file());
    let numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9999)";
    let fill = format!(
        "{numbers} INSERT INTO tasks (id, place, root, title, tags, kind, status, priority, promise, made_ms, changed_ms,
         attempt, missed) SELECT 'f' || x, '/p', '/p', 'Task', '[]', 'manual', 'pending', 1, '{{}}', 0, 0, 0, 0 FROM n"
    );
    scene.store.run(haft_store::Mode::Write, move |db| db.execute(&fill, &[]).map(drop)).await.unwrap();
    let last = made(&scene, wanted("the last", |_| {})).await;
    let error = refused(&scene, wanted("one more", |_| {})).await;
    assert_eq!((error.kind, error.message.starts_with("10000 tasks are open")), (ErrorKind::Conflict, true));
    assert!(error.hint.unwrap().contains("complete, cancel or remove"));
    let person = Who { person: true, ..who() };
    make(&scene.store, wanted("by a person", |_| {}), &person, at(NOW)).await.unwrap();
    // What is over counts no more, and other projects never did.
    for id in [last.id.as_str(), "f1"] {
        scene.store.close_task(id, TaskStatus::Done, at(NOW)).await.unwrap();
    }
    made(&scene, wanted("one more", |_| {})).await;
    let elsewhere = Who { root: "/q".to_owned(), ..who() };
    make(&scene.store, wanted("elsewhere", |_| {}), &elsewhere, at(NOW)).await.unwrap();
}

#[tokio::test]
async fn a_name_may_be_short_but_not_ambiguous() {
    let scene = Scene::new(Ground::file());
    let first = made(&scene, wanted("first", |_| {})).await;
    for (id, place) in [("aaa111", "/p"), ("aaa222", ""), ("aab333", "/elsewhere")] {
        let task = Task { id: id.to_owned(), place: place.to_owned(), ..first.clone() };
        scene.store.add_task(task).await.unwrap();
    }
    let here = ["/p".to_owned(), String::new()];
    let named = async |name: &str| find(&scene.store, name, &here).await.map(|task| task.id);
    assert_eq!(named("aaa1").await.unwrap(), "aaa111");
    assert_eq!(named("#AAA222").await.unwrap(), "aaa222");
    let error = named("aaa").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    insta::assert_snapshot!(error.message, @r"
    2 tasks begin with `aaa`:
    aaa111 first
    aaa222 first
    ");
    // What belongs to another project is not there.
    assert_eq!(named("aab").await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(named("x' OR 1").await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(find(&scene.store, "aab", &[]).await.unwrap().id, "aab333");
}

#[tokio::test]
async fn tasks_are_listed_by_when_they_are_due() {
    let scene = Scene::new(Ground::file());
    for (title, due) in [("late", "2026-11-15"), ("today", "today"), ("soon", "in 3 days"), ("far", "in 2 weeks")] {
        made(&scene, wanted(title, |wanted| wanted.due = text(due))).await;
    }
    made(&scene, wanted("mine", |wanted| wanted.scope = text("user"))).await;
    let titles = async |query: Query, root: Option<&str>| {
        let found = list(&scene.store, query, root, &TimeZone::UTC, at(NOW)).await.unwrap();
        found.into_iter().map(|task| task.about.title).collect::<Vec<_>>().join(" ")
    };
    let due = |word: &str| Query { due: text(word), ..Query::default() };
    assert_eq!(titles(due("today"), Some("/p")).await, "today");
    assert_eq!(titles(due("week"), Some("/p")).await, "today soon");
    assert_eq!(titles(due("overdue"), Some("/p")).await, "late");
    assert_eq!(titles(Query::default(), Some("/p")).await, "late today soon far mine");
    assert_eq!(titles(Query::default(), Some("/other")).await, "mine");
    assert_eq!(titles(Query { scope: text("project"), ..Query::default() }, Some("/p")).await, "late today soon far");
    let odd = list(&scene.store, due("never"), Some("/p"), &TimeZone::UTC, 0).await.unwrap_err();
    assert!(odd.hint.unwrap().contains("today, week, overdue"));
}

#[tokio::test]
async fn completing_a_task_completes_its_parts_and_it_can_be_opened_again() {
    let scene = Scene::new(Ground::file());
    let whole = made(&scene, wanted("whole", |wanted| wanted.schedule = text("1h"))).await;
    let part = made(&scene, wanted("part", |wanted| wanted.parent = Some(whole.id.clone()))).await;
    let status = |word: &str| Edit { status: text(word), ..Edit::default() };
    let (task, parts) = edited(&scene, &whole.id, status("completed")).await.unwrap();
    assert_eq!((task.status, task.standing.next_ms, parts), (TaskStatus::Done, None, 1));
    assert_eq!(scene.task(&part.id).await.status, TaskStatus::Done);
    let closed = refused(&scene, wanted("late", |wanted| wanted.parent = Some(whole.id.clone()))).await;
    assert_eq!(closed.kind, ErrorKind::Conflict);
    let (task, _) = edited(&scene, &whole.id, status("open")).await.unwrap();
    assert_eq!((task.status, task.standing.closed_ms), (TaskStatus::Pending, None));
    assert_eq!(task.standing.next_ms, Some(at("2026-11-16T06:00")));
    assert!(edited(&scene, &whole.id, status("mañana")).await.unwrap_err().hint.unwrap().contains("in_progress"));
}

#[tokio::test]
async fn a_task_is_planned_anew_and_run_on_demand() {
    let scene = Scene::new(Ground::file());
    let task = made(&scene, wanted("a", |wanted| wanted.tool = text("calc.eval"))).await;
    let daily = Edit { schedule: text("daily at 9:00"), zone: text("Europe/Vienna"), ..Edit::default() };
    let (task, _) = edited(&scene, &task.id, daily).await.unwrap();
    assert_eq!((task.kind, task.standing.next_ms), (TaskKind::Scheduled, Some(at("2026-11-16T08:00"))));
    let (task, _) = edited(&scene, &task.id, Edit { run_now: true, ..Edit::default() }).await.unwrap();
    assert_eq!(task.standing.next_ms, Some(at(NOW) + 60_000));
    assert_eq!(scene.scheduler.tick(at(NOW) + 60_000).await.unwrap(), 1);
    let busy = edited(&scene, &task.id, Edit { run_now: true, ..Edit::default() }).await.unwrap_err();
    assert_eq!(busy.kind, ErrorKind::Conflict);
    scene.end_all(Ended::Well, at(NOW) + 90_000).await;
    assert_eq!(scene.task(&task.id).await.standing.next_ms, Some(at("2026-11-16T08:00")), "its times stay");
    let (task, _) = edited(&scene, &task.id, Edit { schedule: text("none"), ..Edit::default() }).await.unwrap();
    assert_eq!((task.kind, task.standing.next_ms), (TaskKind::Manual, None));
    let often = Edit { schedule: text("every 1 second"), ..Edit::default() };
    assert!(edited(&scene, &task.id, often).await.unwrap_err().hint.unwrap().contains("every 10 seconds"));
    let nothing = made(&scene, wanted("by hand", |_| {})).await;
    let error = edited(&scene, &nothing.id, Edit { run_now: true, ..Edit::default() }).await.unwrap_err();
    assert!(error.message.contains("for somebody to do"), "{}", error.message);
}

#[tokio::test]
async fn a_watched_page_that_leads_elsewhere_is_not_followed() {
    let scene = Scene::new(Ground::file());
    let task = made(&scene, wanted("a", |wanted| wanted.watch_url = text("http://example.com/a"))).await;
    let outcome = |url: &str| json!({"success": true, "output": "words", "data": {"url": url}});
    assert_eq!(told(&task, &outcome("https://example.com/b")), (Ended::Well, "words".to_owned()));
    let (ended, said) = told(&task, &outcome("https://evil.test/"));
    assert_eq!(ended, Ended::Badly);
    assert!(said.contains("leads elsewhere, to evil.test"), "{said}");
    let mut failed = outcome("https://example.com/");
    failed["error"] = json!(CallError::new(ErrorKind::Rejected, "somebody said no"));
    assert_eq!(told(&task, &failed), (Ended::ForGood, "somebody said no".to_owned()));
}

//! What a conversation has heard is known to the next process, and to whoever decides there.

use super::{process, roomy, run};
use haft_core::{Call, Outcome, SessionId};
use haft_runtime::{Haft, Halt, Nobody, new_call_id};
use serde_json::{Value, json};

async fn ask(haft: &Haft, session: &str, tool: &str, args: Value) -> Outcome {
    let mut call = Call::new(new_call_id(), tool, args);
    call.session = SessionId::new(session).unwrap();
    haft.call(call, &Nobody, &Halt::new()).await
}

#[test]
fn a_label_reaches_the_verdicts_of_later_processes() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::write(dir.path().join("project/.env"), "TOKEN=1").unwrap();
        let url = json!({"url": "http://no-such-name.invalid/"});
        let kind = |outcome: &Outcome| outcome.error.as_ref().unwrap().kind.as_str();

        let first = process(dir.path(), roomy());
        let before = ask(&first, "a", "probe.ask", url.clone()).await;
        assert_eq!(kind(&before), "upstream", "it goes out unasked: {before:?}");
        let mut read = Call::new(new_call_id(), "file.read", json!({"path": ".env"}));
        read.session = SessionId::new("a").unwrap();
        let read = first.call(read, &haft_runtime::Yes, &Halt::new()).await;
        assert!(read.success && !read.labels.is_empty(), "{read:?}");
        first.flush().await.unwrap();
        drop(first);

        let next = process(dir.path(), roomy());
        let after = ask(&next, "a", "probe.ask", url.clone()).await;
        assert_eq!(kind(&after), "approval_required", "{after:?}");
        assert!(after.error.as_ref().unwrap().message.contains("which looks like credentials"), "{after:?}");
        let other = ask(&next, "b", "probe.ask", url.clone()).await;
        assert_eq!(kind(&other), "upstream", "another conversation has not heard it: {other:?}");
        let explained = next.explain(Call::new(new_call_id(), "probe.ask", url.clone())).await.unwrap();
        assert_eq!(explained.verdict.decision, haft_core::approval::Decision::Allow, "nor has the usual one");
    });
}

#[test]
fn a_label_reaches_a_process_that_runs_already() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::write(dir.path().join("project/.env"), "TOKEN=1").unwrap();
        let url = json!({"url": "http://no-such-name.invalid/"});
        let kind = |outcome: &Outcome| outcome.error.as_ref().unwrap().kind.as_str();
        let (here, there) = (process(dir.path(), roomy()), process(dir.path(), roomy()));
        let before = ask(&here, "a", "probe.ask", url.clone()).await;
        assert_eq!(kind(&before), "upstream", "nobody has heard anything: {before:?}");
        let mut read = Call::new(new_call_id(), "file.read", json!({"path": ".env"}));
        read.session = SessionId::new("a").unwrap();
        assert!(there.call(read, &haft_runtime::Yes, &Halt::new()).await.success);
        there.flush().await.unwrap();
        // It is known a second later at the latest.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let after = ask(&here, "a", "probe.ask", url.clone()).await;
        assert_eq!(kind(&after), "approval_required", "{after:?}");
        assert_eq!(kind(&ask(&here, "b", "probe.ask", url).await), "upstream");
    });
}

#[test]
fn what_was_heard_long_ago_no_longer_counts() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let haft = process(dir.path(), roomy());
        let old = haft_store::HOLDS_MS + 1;
        let insert = |age: i64, session: &'static str| {
            haft.store().run(haft_store::Mode::Write, move |db| {
                db.execute(
                    "INSERT INTO heard (session, label, tool, at_ms)
                     VALUES (?1, 'flagged', 'web.fetch', unixepoch('now') * 1000 - ?2)",
                    haft_store::cells![session, age],
                )
            })
        };
        insert(old, "old").await.unwrap();
        insert(1000, "new").await.unwrap();
        let next = process(dir.path(), roomy());
        let url = json!({"url": "http://no-such-name.invalid/"});
        let kind = |outcome: Outcome| outcome.error.unwrap().kind.as_str();
        assert_eq!(kind(ask(&next, "old", "probe.ask", url.clone()).await), "upstream");
        assert_eq!(kind(ask(&next, "new", "probe.ask", url.clone()).await), "approval_required");
    });
}

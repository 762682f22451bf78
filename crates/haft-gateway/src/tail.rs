//! What other processes do on the same store, seen in the log: their calls and questions become events here.

use crate::gateway::Shared;
use crate::lines;
use haft_core::approval::DeciderIdentity;
use haft_core::{CallId, SessionId};
use haft_runtime::Resolution;
use haft_store::{Approval, ApprovalState, Kind, Record, Topic};
use serde_json::{Value, json};
use std::time::Duration;

/// How often the log is looked at. A record is told at the second look at the latest: by then this process has heard
/// of its own calls, and does not take them for somebody else's.
const LOOK: Duration = Duration::from_millis(250);
/// How long what a server tells of may gather before it is looked at.
const GATHER: Duration = Duration::from_millis(20);
/// How often a server's store is searched for calls whose machine is gone.
const MISS: Duration = Duration::from_secs(10);
/// How many records are read at once.
const AT_ONCE: u32 = 2000;

/// Follows the log until the gateway closes.
pub(crate) async fn follow(gateway: Shared) {
    let store = gateway.haft.store();
    let shared = store.kind() == Kind::Post;
    let Some(mut seen) = end_of_log(&gateway).await else { return };
    let mut mark = store.news(seen, -1, 0).await.map_or(-1, |news| news.mark);
    let mut fresh: Vec<Record> = Vec::new();
    let mut told = store.changed_elsewhere(Topic::Records);
    let mut missed = tokio::time::Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            // A file tells nothing; there it never comes.
            Ok(()) = told.changed() => tokio::time::sleep(GATHER).await,
            () = gateway.work.closing.cancelled() => return,
        }
        for record in std::mem::take(&mut fresh) {
            tell(&gateway, &record).await;
        }
        // A store that is busy for a moment is asked again.
        if let Ok(news) = store.news(seen, mark, AT_ONCE).await {
            (seen, mark, fresh) = (news.head, news.mark, news.records);
        }
        // A server knows whose records are whose: these are others', and need not wait.
        if shared {
            for record in std::mem::take(&mut fresh) {
                tell(&gateway, &record).await;
            }
        }
        if let Ok(pending) = store.pending_count().await {
            gateway.meters.pending.set(pending);
        }
        if shared && missed.elapsed() > MISS {
            missed = tokio::time::Instant::now();
            tell_missing(&gateway).await;
        }
    }
}

/// Where the log ends, as soon as the store can say so.
async fn end_of_log(gateway: &Shared) -> Option<i64> {
    loop {
        if let Ok(head) = gateway.haft.store().head().await {
            return Some(head.seq);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = gateway.work.closing.cancelled() => return None,
        }
    }
}

/// Calls of machines that have not been heard of are over: whoever looks at the page sees that, and the log says so once.
async fn tell_missing(gateway: &Shared) {
    for call in gateway.haft.store().take_interrupted().await.unwrap_or_default() {
        // An error is in the operational log.
        let _ = gateway.haft.sweep(&call.call_id).await;
        let body = json!({ "kind": "interrupted", "tool": call.tool });
        let data = json!({ "outcome": ended(&call.call_id, &body), "session": null });
        gateway.hub.publish("tool_end", None, &data.to_string());
    }
}

async fn tell(gateway: &Shared, record: &Record) {
    let body = &record.body;
    let Some(call) = body["call"].as_str().and_then(CallId::parse) else { return };
    let over = ["approved", "rejected", "answered"].iter().any(|said| body["said"] == *said);
    if body["kind"] == "approval" && over {
        gateway.hub.hand_over(&call);
    }
    if body["kind"] == "approval" && body["said"] == "allowed" {
        carry_out(gateway, &call, body["by"].as_str().unwrap_or_default()).await;
        return;
    }
    if gateway.hub.is_own(&call) {
        return;
    }
    let session = body["session"].as_str().and_then(SessionId::new);
    match body["kind"].as_str() {
        Some("intent") => {
            let data = json!({
                "call_id": call, "session": session, "tool": body["tool"], "preview": lines::recalled(gateway, body),
                "started_ms": body["at"],
            });
            gateway.hub.publish("tool_start", session, &data.to_string());
        }
        Some("outcome" | "refused" | "interrupted") => {
            let data = json!({ "outcome": ended(&call, body), "session": session });
            gateway.hub.publish("tool_end", session, &data.to_string());
        }
        Some("approval") => question(gateway, &call, body).await,
        _ => {}
    }
}

/// What the log says of an outcome. It has no output.
fn ended(call: &CallId, body: &Value) -> Value {
    let mut outcome = json!({
        "call_id": call, "tool": body["tool"], "success": body["success"].as_bool().unwrap_or(false), "output": "",
        "labels": [], "duration_ms": body["duration_ms"].as_u64().unwrap_or(0), "verdict": body["verdict"],
    });
    if body["kind"] == "interrupted" {
        outcome["error"] = json!({ "kind": "internal", "message": "its process died before it could finish" });
    }
    for name in ["error", "undo"] {
        if let Some(value) = body.get(name) {
            outcome[name] = value.clone();
        }
    }
    outcome
}

async fn question(gateway: &Shared, call: &CallId, body: &Value) {
    let said = body["said"].as_str().unwrap_or_default();
    // Nothing was decided by an answer that did not count.
    if said == "refused" {
        return;
    }
    if said != "asked" {
        let data = json!({ "call_id": call, "state": said, "by": body["by"].as_str().unwrap_or_default() });
        gateway.hub.publish("decided", None, &data.to_string());
        return;
    }
    let Ok(Some(asked)) = gateway.haft.store().approval(call.as_str()).await else { return };
    asked_again(gateway, &asked);
    (gateway.options.waiting)(call.as_str(), &asked.preview);
}

/// Runs what somebody on another machine allowed, if it is about this one. A door that waits for it does that itself.
async fn carry_out(gateway: &Shared, call: &CallId, by: &str) {
    if gateway.work.active.lock().is_ok_and(|active| active.contains_key(call)) {
        return;
    }
    let Ok(Some(asked)) = gateway.haft.store().approval(call.as_str()).await else { return };
    let open = asked.state == ApprovalState::Pending && asked.consent.as_deref() == Some(by);
    let here = asked.host.is_some() && asked.elsewhere().is_none();
    if !open || !here || haft_core::path_text::load(&asked.root) != gateway.haft.workspace().root() {
        return;
    }
    let (haft, end) = (gateway.haft.clone(), gateway.work.halt.narrowed());
    // Whoever said it was allowed to: otherwise the store would not have kept it.
    let by = DeciderIdentity::Stored { by: by.to_owned() }.into();
    gateway.work.tasks.spawn(async move { haft.decide(&asked.id, &by, Resolution::Once, &end).await });
}

/// Says that a stored question waits, or is another one now.
pub(crate) fn asked_again(gateway: &Shared, asked: &Approval) {
    let session = asked.session.as_deref().and_then(SessionId::new);
    let verdict = json!({ "decision": "ask", "by": "", "reason": asked.reason });
    let data = json!({
        "call_id": asked.id, "session": session, "preview": asked.preview, "verdict": verdict, "asked_ms": asked.asked_ms,
    });
    gateway.hub.publish("approval", session, &data.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Gateway;
    use crate::options::{Options, WhenGone};
    use crate::token::Token;
    use haft_core::{Call, Caller, Dialect};
    use haft_runtime::{Haft, Halt, Settings, Workspace, Yes, new_call_id};
    use haft_store::Store;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    fn haft(dir: &Path) -> Haft {
        let store = Store::open(&dir.join("haft.db")).unwrap();
        let workspace = Workspace::new(&dir.join("project")).unwrap();
        Haft::new(workspace, store, Settings::new(dir.join("data")))
    }

    fn options(dir: &Path) -> Options {
        let token = |name: &str| Token::load_or_make(&dir.join(name)).unwrap();
        Options {
            listen: ([127, 0, 0, 1], 0).into(),
            token: token("token"),
            agent_token: token("agent-token"),
            hosts: Vec::new(),
            links: false,
            patience: Duration::ZERO,
            when_gone: WhenGone::Cancel,
            tls: None,
            connections: 1,
            caller: Caller::default(),
            session: SessionId::default(),
            dialect: Dialect::Haft,
            config: Value::Null,
            confinement: Value::Null,
            servers: Arc::new(|| Value::Null),
            waiting: Arc::new(|_, _| {}),
            mcp: None,
        }
    }

    /// The process that dies while it replaces a file. By itself it does nothing.
    #[tokio::test]
    async fn inside() {
        let Some(dir) = std::env::var_os("HAFT_DYING_DIR") else { return };
        let haft = haft(Path::new(&dir));
        for (tool, args) in
            [("file.read", json!({"path": "a.txt"})), ("file.write", json!({"path": "a.txt", "content": "new"}))]
        {
            haft.call(Call::new(new_call_id(), tool, args), &Yes, &Halt::new()).await;
        }
    }

    #[tokio::test]
    async fn interrupted_call_is_swept_and_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("project/a.txt");
        std::fs::create_dir(dir.path().join("project")).unwrap();
        std::fs::write(&file, "old").unwrap();
        let haft = haft(dir.path());
        let gateway = Gateway::new(Arc::new(haft), options(dir.path()));
        let mut events = gateway.hub.listen(None);
        let died = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tail::tests::inside", "--nocapture"])
            .env("HAFT_DYING_DIR", dir.path())
            .env("HAFT_REFUSE", "renameat2")
            .env("HAFT_CRASH_AT", "taken")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!died.success() && !file.exists(), "it has to die while the file has no name");
        tell_missing(&gateway).await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        let event = events.coming.recv().await.unwrap();
        let told = String::from_utf8_lossy(&event.sse).into_owned();
        assert!(told.contains("event: tool_end") && told.contains("file.write"), "{told}");
        assert!(told.contains("its process died before it could finish"), "{told}");
        let records = gateway.haft.store().records(0, 100, None).await.unwrap();
        assert_eq!(records.iter().filter(|record| record.body["kind"] == "interrupted").count(), 1);
        tell_missing(&gateway).await;
        let again = gateway.haft.store().records(0, 100, None).await.unwrap();
        assert_eq!(again.len(), records.len(), "it is reported once");
    }
}

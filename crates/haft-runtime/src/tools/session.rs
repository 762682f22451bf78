//! session.list and session.delete: the conversations that haft remembers.

use crate::agent::worktrees::{self, Worktree};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::preview::inert;
use haft_core::{CallError, SessionId, ToolSpec};
use haft_store::Session;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// session.list.
pub fn list() -> Arc<dyn Tool> {
    let spec = declare(
        "session.list",
        "List haft's sessions (conversations), with the number of calls and the last use of each.",
    )
    .hint("conversations history");
    Arc::new(List { spec: Arc::new(spec) })
}

/// session.delete.
pub fn delete() -> Arc<dyn Tool> {
    let spec = declare(
        "session.delete",
        "Delete a session: its permissions and the list of files it has read. Stops its background processes unless \
         they were started with persist, and removes its agents' worktrees that have nothing left to merge. The log \
         of its calls stays. You cannot delete your own session.",
    )
    .hint("forget remove conversation")
    .input(json!({
        "type": "object",
        "properties": {
            "session": {"type": "string", "minLength": 1, "description": "The session's id from session.list"}
        },
        "required": ["session"],
        "additionalProperties": false
    }))
    .acts()
    .destructive();
    Arc::new(Delete { spec: Arc::new(spec) })
}

struct List {
    spec: Arc<ToolSpec>,
}

impl Tool for List {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let sessions = scene.store().sessions().await.map_err(crate::store_error)?;
            Ok(Reply::text(table(&sessions)).data(json!({ "sessions": sessions })))
        })
    }
}

struct Delete {
    spec: Arc<ToolSpec>,
}

#[derive(Deserialize)]
struct DeleteArgs {
    session: String,
}

impl Tool for Delete {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let args: DeleteArgs = scene.parse()?;
            let shown = inert(&args.session);
            let unknown = || {
                CallError::not_found(format!("there is no session `{shown}`"))
                    .hint("session.list shows those there are")
            };
            let session = SessionId::new(&args.session).ok_or_else(unknown)?;
            if session == scene.call().session {
                return Err(CallError::conflict(format!("`{shown}` is the session that makes this call"))
                    .hint("delete it from another session"));
            }
            let agents = worktrees::of_session(scene.store(), &session).await?;
            // What is known of them goes with the session.
            let busy = worktrees::busy(scene.store(), scene.agents(), &agents).await?;
            if !scene.store().delete_session(session.clone()).await.map_err(crate::store_error)? {
                return Err(unknown());
            }
            scene.browsers().end_session(&session);
            let ended = scene.desk().end_session(&session);
            let mut text = format!("Deleted session {shown}");
            if !ended.is_empty() {
                let ids: Vec<String> = ended.iter().map(ToString::to_string).collect();
                text.push_str(&format!("; what it left running is ended: {}", ids.join(", ")));
            }
            let (data_dir, halt) = (scene.terms().data_dir.clone(), scene.halt().clone());
            let sweep = move || worktrees::sweep(&data_dir, &agents, &busy, &halt);
            let kept = crate::tool::off_thread(scene.halt().clone(), sweep).await?;
            let mut reply = Reply::text(text).data(json!({ "session": args.session, "ended": ended }));
            let warning = |tree: &Worktree| {
                format!(
                    "the worktree {} is used, or has changes that are not in the project, and stays: `haft agents worktrees` lists it",
                    tree.id
                )
            };
            reply.warnings = kept.iter().map(warning).collect();
            Ok(reply)
        })
    }
}

/// Sessions in columns.
fn table(sessions: &[Session]) -> String {
    if sessions.is_empty() {
        return "No sessions".to_owned();
    }
    let head = ["SESSION".to_owned(), "CALLS".to_owned(), "LAST USED".to_owned()];
    let row = |session: &Session| [inert(&session.id), session.calls.to_string(), moment(session.used_ms)];
    let rows: Vec<[String; 3]> = std::iter::once(head).chain(sessions.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let lines = rows.iter().map(|[id, calls, used]| format!("{id:first$}  {calls:>second$}  {used}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A time of the Unix epoch in UTC.
fn moment(ms: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(ms);
    time.map_or_else(|_| "?".to_owned(), |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;
    use crate::tool::Blocking;
    use haft_core::ErrorKind;

    /// Makes a call in each of these sessions.
    fn remember(stage: &Stage, ids: &'static [&'static str]) {
        let touch = Blocking::tool(declare("test.touch", "Remembers sessions."), move |scene: &Scene| {
            for id in ids {
                scene.store().touch_session(&SessionId::new(id).unwrap());
            }
            Ok(Reply::default())
        });
        stage.act(&touch, json!({})).unwrap();
    }

    fn forget(stage: &Stage, session: &str) -> Result<Reply, CallError> {
        stage.act(&delete(), json!({ "session": session }))
    }

    #[test]
    fn sessions_come_in_columns() {
        let session = |id: &str, calls, used_ms| Session { id: id.to_owned(), created_ms: 0, used_ms, calls };
        let sessions = [session("default", 12, 1_700_000_000_000), session("review\u{202e}", 3, 1_600_000_000_123)];
        insta::assert_snapshot!(table(&sessions), @r"
        SESSION         CALLS  LAST USED
        default            12  2023-11-14T22:13:20Z
        review\u{202e}      3  2020-09-13T12:26:40Z
        ");
        assert_eq!(table(&[]), "No sessions");
    }

    #[test]
    fn a_session_is_listed_until_it_is_deleted() {
        let stage = Stage::new();
        remember(&stage, &["one", "two", "one"]);
        let calls = |stage: &Stage| {
            let data = stage.act(&list(), json!({})).unwrap().data.unwrap();
            let mut calls: Vec<String> = data["sessions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|session| format!("{} {}", session["id"].as_str().unwrap(), session["calls"]))
                .collect();
            calls.sort();
            calls
        };
        assert_eq!(calls(&stage), ["one 2", "two 1"]);
        assert_eq!(forget(&stage, "one").unwrap().text, "Deleted session one");
        assert_eq!(calls(&stage), ["two 1"]);
        assert_eq!(forget(&stage, "one").unwrap_err().kind, ErrorKind::NotFound);
    }

    #[test]
    fn a_session_does_not_delete_itself() {
        let stage = Stage::new();
        remember(&stage, &["default"]);
        let error = forget(&stage, "default").unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Conflict, "`default` is the session that makes this call")
        );
        assert_eq!(forget(&stage, "a\nb").unwrap_err().kind, ErrorKind::NotFound);
    }
}

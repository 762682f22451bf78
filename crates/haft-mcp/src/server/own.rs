//! What haft itself offers besides tools: the records of a session's calls, the whole of outputs that were cut, and
//! two prompts about them. Only calls of the same session are shown: others may hold what this client must not see.

use super::offer::Offer;
use super::recent::{Made, Recent};
use haft_core::preview::cut;
use haft_core::scan::{closing, mark_of};
use haft_core::{CallId, SessionId};
use haft_runtime::{BoxFuture, Haft};
use haft_store::UndoSelection;
use rmcp::model::{
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt, PromptArgument, PromptMessage,
    Reference, Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

/// All calls of a session; the records of one are below it.
pub(super) const CALLS: &str = "haft://log";
const LOG: &str = "haft://log/";
const OUTPUT: &str = "haft://output/";
const REVIEW: &str = "review-changes";
const EXPLAIN: &str = "explain-denial";
/// How many calls are listed.
const LISTED_MAX: usize = 50;
/// How many records of one call are shown.
const RECORDS_MAX: u32 = 100;
/// How much of an output is given at once.
const OUTPUT_MAX: u64 = 8 << 20;
/// How much of a diff a prompt holds.
const DIFF_MAX: usize = 48 << 10;

/// haft's own.
pub(super) struct Own {
    haft: Arc<Haft>,
    recent: Arc<Recent>,
}

impl Own {
    pub(super) fn new(haft: Arc<Haft>, recent: Arc<Recent>) -> Self {
        Self { haft, recent }
    }

    /// Where the whole output of a call would be kept. The name is made of the id alone, which holds no path.
    fn kept(&self, call: &CallId) -> PathBuf {
        self.haft.settings().data_dir.join("outputs").join(format!("{call}.txt"))
    }

    /// The records of a call, if it belongs to the session.
    async fn records(&self, session: &SessionId, call: &CallId) -> Result<Vec<Value>, ErrorData> {
        let failed = |error: haft_store::StoreError| ErrorData::internal_error(error.to_string(), None);
        // What reads is recorded a little later than it is answered.
        let store = self.haft.store();
        store.flush().await.map_err(failed)?;
        let found = store.records(0, RECORDS_MAX, Some(call.clone())).await.map_err(failed)?;
        let bodies: Vec<Value> = found.into_iter().map(|record| record.body).collect();
        let whose = |body: &Value| body.get("session").and_then(Value::as_str) == Some(session.as_str());
        if bodies.iter().any(whose) { Ok(bodies) } else { Err(missing()) }
    }

    async fn belongs(&self, session: &SessionId, call: &CallId) -> Result<(), ErrorData> {
        if self.recent.holds(session, call) { Ok(()) } else { self.records(session, call).await.map(drop) }
    }

    async fn find(&self, session: &SessionId, uri: &str) -> Option<Result<Vec<ResourceContents>, ErrorData>> {
        if uri == CALLS {
            return Some(Ok(vec![self.calls(session)]));
        }
        if let Some(id) = uri.strip_prefix(LOG) {
            return Some(self.log(session, uri, id).await);
        }
        let id = uri.strip_prefix(OUTPUT)?;
        Some(self.output(session, uri, id).await)
    }

    /// The latest calls of a session, newest first.
    fn calls(&self, session: &SessionId) -> ResourceContents {
        let told =
            |made: &Made| json!({"call_id": made.id, "tool": made.spoken, "records": format!("{LOG}{}", made.id)});
        let calls: Vec<Value> = self.recent.of(session, LISTED_MAX * 4).iter().map(told).collect();
        let text = serde_json::to_string_pretty(&calls).unwrap_or_default();
        ResourceContents::text(text, CALLS).with_mime_type("application/json")
    }

    async fn log(&self, session: &SessionId, uri: &str, id: &str) -> Result<Vec<ResourceContents>, ErrorData> {
        let call = CallId::parse(id).ok_or_else(missing)?;
        let records = self.records(session, &call).await?;
        let text = serde_json::to_string_pretty(&records).unwrap_or_default();
        Ok(vec![ResourceContents::text(text, uri).with_mime_type("application/json")])
    }

    async fn output(&self, session: &SessionId, uri: &str, id: &str) -> Result<Vec<ResourceContents>, ErrorData> {
        let call = CallId::parse(id).ok_or_else(missing)?;
        self.belongs(session, &call).await?;
        let path = self.kept(&call);
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            haft_runtime::files::open(&path)?.take(OUTPUT_MAX).read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        });
        let bytes = read.await.ok().and_then(Result::ok).ok_or_else(missing)?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        // What was cut has lost the end of its wrapper.
        if let Some(end) = mark_of(&text).map(closing).filter(|end| !text.ends_with(end)) {
            text.push_str(&format!("\n{end}"));
        }
        Ok(vec![ResourceContents::text(text, uri)])
    }

    async fn fill(
        &self,
        session: &SessionId,
        request: &GetPromptRequestParams,
    ) -> Option<Result<GetPromptResult, ErrorData>> {
        let call = request.arguments.as_ref().and_then(|args| args.get("call")).and_then(Value::as_str);
        match request.name.as_str() {
            REVIEW => Some(self.review(session, call).await),
            EXPLAIN => Some(self.explain(session, call).await),
            _ => None,
        }
    }

    async fn review(&self, session: &SessionId, call: Option<&str>) -> Result<GetPromptResult, ErrorData> {
        let wrong = |error: haft_core::CallError| ErrorData::invalid_params(error.message, None);
        let call = if let Some(text) = call {
            self.haft.call_named(text).map_err(wrong)?
        } else {
            let selection = UndoSelection { session: Some(session.clone()), ..UndoSelection::default() };
            self.haft.last_change(selection).await.map_err(wrong)?
        };
        self.belongs(session, &call).await?;
        let changed = self.haft.changes(&call).await.map_err(wrong)?;
        let mut diff = changed.diff;
        if diff.len() > DIFF_MAX {
            diff.truncate(diff.floor_char_boundary(DIFF_MAX));
            diff.push_str("\n[the rest is not shown]");
        }
        let text = format!(
            "Review what call {call} changed. Say what it does, whether that is what was wanted, and what could go \
             wrong; name file and line. If it should be taken back, say so: `haft undo {call}` does.\n\n```diff\n{diff}\n```"
        );
        let message = PromptMessage::new_text(Role::User, text);
        Ok(GetPromptResult::new(vec![message]).with_description("Review what a call changed"))
    }

    async fn explain(&self, session: &SessionId, call: Option<&str>) -> Result<GetPromptResult, ErrorData> {
        let call = call.and_then(CallId::parse);
        let call = call.ok_or_else(|| ErrorData::invalid_params("`call` has to be the id of a call", None))?;
        let records = self.records(session, &call).await?;
        let records = serde_json::to_string_pretty(&records).unwrap_or_default();
        let text = format!(
            "Explain to the user in plain words why call {call} was not carried out: which rule or person decided, \
             and what the call would have done. Then say what they can do if they want it after all, and do not \
             suggest a way around the rule. These are its records:\n\n```json\n{}\n```",
            cut(&records, DIFF_MAX)
        );
        let message = PromptMessage::new_text(Role::User, text);
        Ok(GetPromptResult::new(vec![message]).with_description("Explain why a call was denied"))
    }
}

fn missing() -> ErrorData {
    ErrorData::resource_not_found("there is no such call in this session, or nothing of it is kept", None)
}

impl Offer for Own {
    fn prompts(&self) -> Vec<Prompt> {
        let call = |required: bool, about: &str| {
            Some(vec![PromptArgument::new("call").with_description(about).with_required(required)])
        };
        vec![
            Prompt::new(
                EXPLAIN,
                Some("Explain why a call was denied and what can be done about it"),
                call(true, "The call's id"),
            ),
            Prompt::new(REVIEW, Some("Review what a call changed"), call(false, "The call's id [default: the latest]")),
        ]
    }

    fn prompt<'a>(
        &'a self,
        session: &'a SessionId,
        request: &'a GetPromptRequestParams,
    ) -> BoxFuture<'a, Option<Result<GetPromptResponse, ErrorData>>> {
        Box::pin(async move { Some(self.fill(session, request).await?.map(Into::into)) })
    }

    fn resources<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Vec<Resource>> {
        Box::pin(async move {
            let calls = self.recent.of(session, LISTED_MAX);
            let all = Resource::new(CALLS, "calls")
                .with_description("The latest calls of this session; it can be watched")
                .with_mime_type("application/json");
            let listed = calls.iter().flat_map(|Made { id: call, .. }| {
                let log = Resource::new(format!("{LOG}{call}"), format!("record of {call}"))
                    .with_description("What was asked, decided and done")
                    .with_mime_type("application/json");
                let whole = self.kept(call).is_file().then(|| {
                    Resource::new(format!("{OUTPUT}{call}"), format!("output of {call}"))
                        .with_description("The whole of an output that was cut")
                        .with_mime_type("text/plain")
                });
                std::iter::once(log).chain(whole)
            });
            std::iter::once(all).chain(listed).collect()
        })
    }

    fn templates(&self) -> Vec<ResourceTemplate> {
        vec![
            ResourceTemplate::new(format!("{LOG}{{call_id}}"), "record")
                .with_description("The records of a call of this session: what was asked, decided and done")
                .with_mime_type("application/json"),
            ResourceTemplate::new(format!("{OUTPUT}{{call_id}}"), "output")
                .with_description("The whole of an output that was cut")
                .with_mime_type("text/plain"),
        ]
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        uri: &'a str,
    ) -> BoxFuture<'a, Option<Result<Vec<ResourceContents>, ErrorData>>> {
        Box::pin(self.find(session, uri))
    }

    fn complete<'a>(
        &'a self,
        session: &'a SessionId,
        of: &'a Reference,
        argument: &'a str,
        begun: &'a str,
    ) -> BoxFuture<'a, Option<Vec<String>>> {
        let calls = || self.recent.of(session, LISTED_MAX * 4);
        let fitting = |calls: Vec<Made>| {
            calls.iter().filter(|call| call.id.as_str().starts_with(begun)).map(|call| call.id.to_string()).collect()
        };
        let values = match (of, argument) {
            (Reference::Prompt(prompt), "call") if [REVIEW, EXPLAIN].contains(&prompt.name.as_str()) => {
                Some(fitting(calls()))
            }
            (Reference::Prompt(prompt), _) if [REVIEW, EXPLAIN].contains(&prompt.name.as_str()) => Some(Vec::new()),
            (Reference::Resource(template), "call_id") if template.uri == format!("{LOG}{{call_id}}") => {
                Some(fitting(calls()))
            }
            (Reference::Resource(template), "call_id") if template.uri == format!("{OUTPUT}{{call_id}}") => {
                Some(fitting(calls().into_iter().filter(|call| self.kept(&call.id).is_file()).collect()))
            }
            _ => None,
        };
        Box::pin(std::future::ready(values))
    }
}

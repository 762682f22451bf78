//! The inbox: what waits for a person, and their answer.

use crate::body::{self, Asked};
use crate::gateway::{Gateway, Shared};
use crate::guard::{self, Holder, Visitor};
use crate::links;
use crate::problem::{Problem, told};
use crate::tail;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use haft_core::approval::{Decider, DecisionScope};
use haft_core::{CallError, Outcome};
use haft_runtime::{Question, Resolution, reason_now, store_error};
use haft_store::{Approval, ApprovalState};
use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::{Value, json};

/// How many approvals are listed at the most; of more, the latest.
const LIMIT: usize = 500;
/// How long a rejection's message may be.
const MESSAGE_MAX: usize = 4096;

#[derive(Deserialize)]
pub(crate) struct Which {
    #[serde(default)]
    all: bool,
}

/// What somebody decides.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decided {
    pub(crate) decision: Answer,
    pub(crate) pattern: Option<String>,
    pub(crate) message: Option<String>,
    /// What they filled in, where a form is asked for.
    pub(crate) answer: Option<Value>,
    /// What they saw: the question's `basis`. If it is another one now, the answer is not taken. `If-Match` says the
    /// same.
    pub(crate) basis: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    Once,
    Session,
    Always,
    Reject,
    #[serde(rename = "answer")]
    Form,
}

impl Answer {
    const fn scope(self) -> DecisionScope {
        match self {
            Self::Session | Self::Always => DecisionScope::Lasting,
            Self::Once | Self::Reject | Self::Form => DecisionScope::Once,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edited {
    args: Value,
}

/// What came of a decision.
pub(crate) enum Resolved {
    /// It ran.
    Ran(Box<Outcome>),
    /// It will not.
    Rejected,
    /// Whoever asked has what was filled in.
    Answered,
}

/// `GET /v1/approvals`.
pub(crate) async fn list(State(gateway): State<Shared>, Asked(which): Asked<Which>) -> Result<Json<Value>, Problem> {
    Ok(Json(gateway.inbox(which.all).await?))
}

/// `GET /v1/approvals/ID`.
pub(crate) async fn one(
    State(gateway): State<Shared>,
    Extension(decider): Extension<Decider>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let mut approval = gateway.approval(&id).await?;
    let open = approval.state == ApprovalState::Pending && gateway.is_here(&approval) && approval.elsewhere().is_none();
    let question = if open { gateway.question(&mut approval, &decider).await? } else { None };
    Ok(Json(shown(&approval, question.as_ref())))
}

/// Which part of a change is wanted.
#[derive(Deserialize)]
pub(crate) struct OpenedPath {
    path: String,
}

/// `GET /v1/approvals/ID/changes`.
pub(crate) async fn changes(
    State(gateway): State<Shared>,
    Path(id): Path<String>,
    Asked(part): Asked<OpenedPath>,
) -> Result<Json<Value>, Problem> {
    let view = gateway.haft.waiting_changes(&id, &part.path).await?;
    Ok(Json(serde_json::to_value(view).unwrap_or_default()))
}

/// `POST /v1/approvals/ID`.
pub(crate) async fn decide(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Extension(decider): Extension<Decider>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let seen = seen(request.headers())?;
    let mut answer: Decided = body::json(&gateway, request).await?;
    answer.basis = seen.or(answer.basis);
    let resolved = gateway.resolve(&id, &decider, answer).await?;
    if visitor.holder == Holder::Link {
        gateway.links.end(&id);
    }
    match resolved {
        Resolved::Ran(outcome) => Ok(told(&outcome)),
        Resolved::Rejected => Ok(Json(json!({ "id": id, "state": "rejected" })).into_response()),
        Resolved::Answered => Ok(Json(json!({ "id": id, "state": "answered" })).into_response()),
    }
}

/// `POST /v1/approvals/ID/edit`.
pub(crate) async fn edit(
    State(gateway): State<Shared>,
    Extension(decider): Extension<Decider>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let edited: Edited = body::json(&gateway, request).await?;
    let question = gateway.haft.amend(&id, &decider, edited.args).await?;
    let approval = gateway.approval(&id).await?;
    tail::asked_again(&gateway, &approval);
    Ok(Json(shown(&approval, Some(&question))))
}

/// `POST /v1/approvals/ID/try`.
pub(crate) async fn try_out(
    State(gateway): State<Shared>,
    Extension(decider): Extension<Decider>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let (haft, end, tried) = (gateway.haft.clone(), gateway.work.halt.narrowed(), id.clone());
    let question = gateway.to_its_end(async move { haft.try_waiting(&tried, &decider, &end).await }).await?;
    let approval = gateway.approval(&id).await?;
    tail::asked_again(&gateway, &approval);
    Ok(Json(shown(&approval, Some(&question))))
}

/// `POST /v1/approvals/ID/link`.
pub(crate) async fn link(State(gateway): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    if !gateway.options.links {
        return Err(Problem::denied("links are turned off").hint("start with --links, or set gateway.links"));
    }
    let approval = gateway.approval(&id).await?;
    if approval.state != ApprovalState::Pending {
        return Err(CallError::conflict(format!("{} has been decided already", approval.id)).into());
    }
    let chance = || CallError::internal("no link can be made: the machine gives no random numbers");
    let made = gateway.links.make(&approval.id).ok_or_else(chance)?;
    let url = format!("{}#link={}", links::reachable(&gateway.options, gateway.options.listen), made.code);
    Ok(Json(json!({ "qr": links::qr(&url).unwrap_or_default(), "url": url, "expires_ms": made.expires_ms })))
}

/// `POST /v1/links/CODE`: without a token, because it gives one.
pub(crate) async fn open_link(
    State(gateway): State<Shared>,
    Path(code): Path<String>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    match gateway.links.open(&code).filter(|_| gateway.options.links) {
        Some((token, approval)) => Ok(Json(json!({ "token": token, "approval": approval }))),
        None => Err(guard::refuse(&gateway, &request, "this link has been used, or is too old")),
    }
}

impl Gateway {
    /// What waits in this project, and how much elsewhere.
    pub(crate) async fn inbox(&self, all: bool) -> Result<Value, haft_store::StoreError> {
        let (here, elsewhere): (Vec<Approval>, Vec<Approval>) =
            self.haft.store().approvals(!all).await?.into_iter().partition(|approval| self.is_here(approval));
        let pending = elsewhere.iter().filter(|approval| approval.state == ApprovalState::Pending).count();
        let latest: Vec<Value> = here[here.len().saturating_sub(LIMIT)..].iter().map(told_of).collect();
        Ok(json!({ "approvals": latest, "elsewhere": pending }))
    }

    fn is_here(&self, approval: &Approval) -> bool {
        haft_core::path_text::load(&approval.root) == self.haft.workspace().root()
    }

    /// The question that an approval raises now, for an identity that may decide it. A page loads it again and again with nobody
    /// in front of it, so what a yes is for stays what it was: an answer names the basis that it is for.
    async fn question(&self, approval: &mut Approval, by: &Decider) -> Result<Option<Question>, CallError> {
        self.haft.store().authorize(&approval.id, by, DecisionScope::Once).await.map_err(store_error)?;
        let question = self.haft.glance_at(&approval.id).await?;
        if let Some(now) = &question {
            approval.reason = reason_now(approval, now);
        }
        Ok(question)
    }

    async fn approval(&self, id: &str) -> Result<Approval, Problem> {
        let found = self.haft.store().approval(id).await?;
        found.ok_or_else(|| Problem::not_found("there is no such approval").hint("/v1/approvals lists what waits"))
    }

    /// Decides about a stored call, and runs it if the answer is yes. Whoever decided may go: it runs to its end.
    pub(crate) async fn resolve(&self, id: &str, by: &Decider, decided: Decided) -> Result<Resolved, CallError> {
        self.haft.store().authorize(id, by, decided.decision.scope()).await.map_err(store_error)?;
        let Decided { decision, pattern, message, answer, basis } = decided;
        let resolution = match (decision, pattern) {
            (Answer::Once, _) => Resolution::Once,
            (Answer::Session, _) => Resolution::Session,
            (Answer::Always, Some(pattern)) => Resolution::Always(pattern),
            (Answer::Always, None) => {
                return Err(CallError::invalid("for always, a pattern is needed").hint("say what it is for: `pattern`"));
            }
            (Answer::Form, _) => {
                let missing = || CallError::invalid("there is no answer").hint("say it in `answer`, as an object");
                let answer = answer.ok_or_else(missing)?;
                return self.haft.answer_form(id, by, answer).await.map(|()| Resolved::Answered);
            }
            (Answer::Reject, _) => {
                if let Some(seen) = &basis {
                    self.haft.check_seen(id, seen).await?;
                }
                let message = message.unwrap_or_default();
                let message = haft_core::preview::cut(&message, MESSAGE_MAX);
                return self.haft.reject(id, by, &message).await.map(|()| Resolved::Rejected);
            }
        };
        let (haft, end, id, by) = (self.haft.clone(), self.work.halt.narrowed(), id.to_owned(), by.clone());
        let run = async move { haft.decide_as_seen(&id, &by, basis.as_deref(), resolution, &end).await };
        self.to_its_end(run).await.map(|outcome| Resolved::Ran(Box::new(outcome)))
    }
}

/// What somebody says that they saw.
fn seen(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut said = headers.get_all(header::IF_MATCH).iter();
    let Some(value) = said.next() else { return Ok(None) };
    let tag = value.to_str().ok().and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"'));
    match (tag, said.next()) {
        (Some(tag), None) => Ok(Some(tag.to_owned())),
        _ => Err(Problem::invalid("If-Match is to hold one basis, in quotes")),
    }
}

fn shown(approval: &Approval, question: Option<&Question>) -> Value {
    let mut value = json!({ "approval": told_of(approval) });
    if let Some(question) = question {
        value["question"] = asked(question);
    }
    value
}

/// An approval as every wire shows it. What it is stored by is for the store: the one basis that an answer may name is the
/// question's.
fn told_of(approval: &Approval) -> Value {
    let mut value = serde_json::to_value(approval).unwrap_or_default();
    value.as_object_mut().map(|members| members.remove("basis"));
    value
}

/// A question as every wire shows it: its basis is what an answer has to name.
pub(crate) fn asked(question: &Question) -> Value {
    let mut value = serde_json::to_value(question).unwrap_or_default();
    value["can_try"] = question.can_try().into();
    value["basis"] = question.face().to_string().into();
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_was_seen_is_one_tag_in_quotes_or_nothing() {
        let said = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::IF_MATCH, HeaderValue::from_static(value));
            }
            seen(&headers).map_err(|problem| problem.status.as_u16())
        };
        assert_eq!(said(&[]), Ok(None));
        assert_eq!(said(&["\"abc\""]), Ok(Some("abc".to_owned())));
        for bad in [&["abc"][..], &["*"], &["\""], &["\"a\"", "\"b\""]] {
            assert_eq!(said(bad), Err(400), "{bad:?}");
        }
    }
}

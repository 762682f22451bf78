//! JSON-RPC in two forms: Flynn's `{id, method, params}` and JSON-RPC 2.0. Each is answered in kind.

mod methods;

pub(crate) use methods::{Invoke, answer, given, invoked};

use crate::body;
use crate::gateway::Shared;
use crate::guard::Visitor;
use crate::problem::Problem;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use haft_core::{CallError, ErrorKind};
use http::{StatusCode, header};
use serde_json::{Value, json};

/// How many requests a batch may hold.
const BATCH_MAX: usize = 50;

pub(crate) const NOT_JSON: i32 = -32700;
pub(crate) const NOT_A_REQUEST: i32 = -32600;
pub(crate) const NO_METHOD: i32 = -32601;
pub(crate) const BAD_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;
pub(crate) const BUSY: i32 = -32000;
pub(crate) const NO_AGENT: i32 = -32001;

/// The code for an error of a call.
const fn code(kind: ErrorKind) -> i32 {
    match kind {
        ErrorKind::UnknownTool | ErrorKind::InvalidInput => BAD_PARAMS,
        ErrorKind::Denied => -32003,
        ErrorKind::ApprovalRequired => -32004,
        ErrorKind::Rejected => -32005,
        ErrorKind::NotFound => -32006,
        ErrorKind::Conflict => -32007,
        ErrorKind::Timeout => -32008,
        ErrorKind::Cancelled => -32009,
        ErrorKind::Confinement => -32010,
        ErrorKind::Failed => -32011,
        ErrorKind::Upstream => -32012,
        ErrorKind::Internal => INTERNAL,
    }
}

/// Which words a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `{id, method, params}`, with a number for an id.
    Flynn,
    /// JSON-RPC 2.0.
    Two,
}

/// What a client wants.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) form: Form,
    /// None for a notification, which is not answered.
    pub(crate) id: Option<Value>,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// Why it does not get it.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl Fault {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// As the data of an event.
    pub(crate) fn worded(&self) -> Value {
        json!({ "code": self.code, "message": self.message })
    }

    pub(crate) fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

impl From<CallError> for Fault {
    fn from(error: CallError) -> Self {
        let data = serde_json::to_value(&error).ok();
        Self { code: code(error.kind), message: error.message, data }
    }
}

impl From<haft_store::StoreError> for Fault {
    fn from(error: haft_store::StoreError) -> Self {
        Self::from(CallError::internal(error.to_string()).hint(error.hint()))
    }
}

impl Form {
    /// The answer to a request.
    pub(crate) fn answer(self, id: &Value, result: Result<Value, Fault>) -> Value {
        let mut answer = match self {
            Self::Flynn => json!({ "id": id }),
            Self::Two => json!({ "jsonrpc": "2.0", "id": id }),
        };
        match result {
            Ok(result) => answer["result"] = result,
            Err(Fault { code, message, data }) => {
                answer["error"] = json!({ "code": code, "message": message });
                if let Some(data) = data {
                    answer["error"]["data"] = data;
                }
            }
        }
        answer
    }

    /// Something that happens to a request before it is answered.
    pub(crate) fn event(self, id: &Value, name: &str, data: &Value) -> Value {
        let event = json!({ "id": id, "event": name, "data": data });
        match self {
            Self::Flynn => event,
            Self::Two => json!({ "jsonrpc": "2.0", "method": "event", "params": event }),
        }
    }
}

/// Reads one request. The error is the answer to what was none.
pub(crate) fn read(value: Value) -> Result<Wanted, Value> {
    let form = if value.get("jsonrpc").is_some() { Form::Two } else { Form::Flynn };
    let id = value.get("id").cloned();
    let fits = match (form, &id) {
        (Form::Flynn, Some(Value::Number(_)))
        | (Form::Two, None | Some(Value::Number(_) | Value::String(_) | Value::Null)) => true,
        (Form::Flynn | Form::Two, _) => false,
    };
    let known = id.clone().filter(|_| fits).unwrap_or(Value::Null);
    let refuse = |why: &str| Err(form.answer(&known, Err(Fault::new(NOT_A_REQUEST, why))));
    let Value::Object(mut fields) = value else { return refuse("a request is an object") };
    if form == Form::Two && fields.get("jsonrpc") != Some(&json!("2.0")) {
        return refuse("the only version of JSON-RPC that is spoken here is 2.0");
    }
    if !fits {
        return refuse("the id is a number (or, in JSON-RPC 2.0, a string)");
    }
    let Some(Value::String(method)) = fields.remove("method") else { return refuse("the method is a string") };
    let params = match fields.remove("params") {
        None | Some(Value::Null) => json!({}),
        Some(params @ Value::Object(_)) => params,
        Some(_) => return refuse("params are an object, by name"),
    };
    Ok(Wanted { form, id, method, params })
}

/// `POST /rpc`: one request or a batch of them, answered when all of them are.
pub(crate) async fn post(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, Problem> {
    let bytes = body::read(&gateway, request).await?;
    let answer = match serde_json::from_slice(&bytes) {
        Err(error) => Some(not_json(Form::Two, &error)),
        Ok(Value::Array(batch)) if batch.is_empty() || batch.len() > BATCH_MAX => {
            let why = format!("a batch holds 1 to {BATCH_MAX} requests");
            Some(Form::Two.answer(&Value::Null, Err(Fault::new(NOT_A_REQUEST, why))))
        }
        Ok(Value::Array(batch)) => {
            let mut answers = Vec::new();
            for value in batch {
                answers.extend(one(&gateway, visitor, value).await);
            }
            (!answers.is_empty()).then_some(Value::Array(answers))
        }
        Ok(value) => one(&gateway, visitor, value).await,
    };
    let Some(answer) = answer else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    Ok(([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response())
}

/// The answer to what cannot be read at all.
pub(crate) fn not_json(form: Form, error: &serde_json::Error) -> Value {
    form.answer(&Value::Null, Err(Fault::new(NOT_JSON, format!("that is not JSON: {error}"))))
}

async fn one(gateway: &Shared, visitor: Visitor, value: Value) -> Option<Value> {
    let Wanted { form, id, method, params } = match read(value) {
        Ok(wanted) => wanted,
        Err(answer) => return Some(answer),
    };
    let result = if method == "tools.invoke" {
        invoke(gateway, visitor, params).await
    } else {
        answer(gateway, visitor, &method, params).await
    };
    id.map(|id| form.answer(&id, result))
}

async fn invoke(gateway: &Shared, visitor: Visitor, params: Value) -> Result<Value, Fault> {
    let Invoke { call, manner } = Invoke::read(gateway, visitor, params)?;
    invoked(gateway.call(call, manner).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_what_is_neither_is_answered() {
        let flynn = read(json!({"id": 1, "method": "system.health"})).unwrap();
        assert_eq!((flynn.form, flynn.id, flynn.params), (Form::Flynn, Some(json!(1)), json!({})));
        let two = read(json!({"jsonrpc": "2.0", "id": "a", "method": "x", "params": {"y": 1}})).unwrap();
        assert_eq!((two.form, two.id, two.params), (Form::Two, Some(json!("a")), json!({"y": 1})));
        assert_eq!(read(json!({"jsonrpc": "2.0", "method": "x"})).unwrap().id, None, "a notification");
        for bad in [
            json!(1),
            json!("x"),
            json!(null),
            json!({}),
            json!({"method": "x"}),
            json!({"id": "1", "method": "x"}),
            json!({"id": [1], "method": "x"}),
            json!({"id": 1}),
            json!({"id": 1, "method": 2}),
            json!({"id": 1, "method": "x", "params": [1]}),
            json!({"jsonrpc": "1.0", "id": 1, "method": "x"}),
            json!({"jsonrpc": "2.0", "id": {}, "method": "x"}),
        ] {
            let answer = read(bad.clone()).unwrap_err();
            assert_eq!(answer["error"]["code"], NOT_A_REQUEST, "{bad}");
        }
    }

    #[test]
    fn answers_and_events_are_in_kind() {
        let id = json!(7);
        assert_eq!(Form::Flynn.answer(&id, Ok(json!(1))), json!({"id": 7, "result": 1}));
        assert_eq!(Form::Two.answer(&id, Ok(json!(1))), json!({"jsonrpc": "2.0", "id": 7, "result": 1}));
        let fault = || Err(Fault::new(BUSY, "busy"));
        assert_eq!(Form::Flynn.answer(&id, fault()), json!({"id": 7, "error": {"code": -32000, "message": "busy"}}));
        assert_eq!(Form::Flynn.event(&id, "done", &json!({})), json!({"id": 7, "event": "done", "data": {}}));
        assert_eq!(
            Form::Two.event(&id, "done", &json!({})),
            json!({"jsonrpc": "2.0", "method": "event", "params": {"id": 7, "event": "done", "data": {}}})
        );
    }
}

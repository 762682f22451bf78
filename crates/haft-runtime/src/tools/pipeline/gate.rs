//! pipeline.gate: a step that asks a person whether to go on. It does nothing; that it was let through is the answer.

use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::{CallError, ToolSpec};
use serde_json::json;
use std::sync::Arc;

pub(super) fn tool() -> Arc<dyn Tool> {
    let spec = declare(crate::work::GATE, "Ask the user whether to go on. Succeeds only if they say yes.")
        .hint("approval confirm ask gate")
        .input(json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "The yes-or-no question"}
            },
            "required": ["question"],
            "additionalProperties": false
        }))
        .acts()
        .asks();
    Arc::new(Gate { spec: Arc::new(spec) })
}

struct Gate {
    spec: Arc<ToolSpec>,
}

impl Tool for Gate {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, _: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async { Ok(Reply::text("yes").data(json!({"answer": "yes"}))) })
    }
}

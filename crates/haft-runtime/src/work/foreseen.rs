//! What a pipeline would do, without doing any of it.

use crate::new_call_id;
use crate::pipeline::Haft;
use haft_core::work::words::{Known, paths};
use haft_core::work::{Does, Plan};
use haft_core::{Call, CallError, Caller, Dialect, Origin, SessionId};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A pipeline by its name or id, to be looked at.
pub async fn plan(haft: &Haft, named: &str) -> Result<Plan, CallError> {
    crate::tools::pipeline::look(&haft.store, &haft.workspace, named).await
}

/// For each step: who would decide what about it, as far as that can be known before the others have run.
pub async fn foreseen(
    haft: &Haft,
    plan: &Plan,
    given: &Map<String, Value>,
    caller: &Caller,
) -> Result<Vec<Value>, CallError> {
    plan.order().map_err(|faults| super::unfit(&faults))?;
    let inputs = plan.given(given).map_err(|faults| super::unfit(&faults))?;
    let none = BTreeMap::new();
    let known = Known { inputs: &inputs, steps: &none };
    let mut all = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let told = match step.does() {
            Some(Does::Tool(tool, args)) => {
                let args = Value::Object(args.clone());
                let open: Vec<&str> = paths(&args).into_iter().filter(|path| known.get(path).is_err()).collect();
                match step.filled(known) {
                    Ok(args) => decided(haft, tool, args, caller).await,
                    Err(_) => json!({
                        "decision": "later", "reason": format!("it depends on {}", open.join(", ")), "tool": tool,
                    }),
                }
            }
            Some(Does::Pipeline(named, _)) => match self::plan(haft, named).await {
                Ok(inner) => json!({"decision": "by parts", "reason": format!("{} steps", inner.steps.len())}),
                Err(error) => json!({"decision": "fail", "reason": error.message}),
            },
            Some(Does::Ask(question)) => json!({"decision": "ask", "reason": question}),
            Some(Does::Wait(ms)) => json!({"decision": "wait", "reason": format!("{ms} ms")}),
            Some(Does::Prompt(_)) => {
                json!({"decision": "allow", "reason": "an agent does it, and each of its calls is decided by itself"})
            }
            None => json!({"decision": "fail", "reason": "it does not say what it does"}),
        };
        let mut told = told;
        told["step"] = step.id.clone().into();
        all.push(told);
    }
    Ok(all)
}

async fn decided(haft: &Haft, tool: &str, args: Value, caller: &Caller) -> Value {
    let call = Call {
        id: new_call_id(),
        spoken: tool.to_owned(),
        args,
        dialect: Dialect::Haft,
        session: SessionId::default(),
        caller: caller.clone(),
        origin: Origin::Work,
        parents: Vec::new(),
        turn: None,
        autonomy: None,
        independent: false,
    };
    match haft.explain(call).await {
        Ok(explained) => {
            let verdict = serde_json::to_value(&explained).unwrap_or_default()["verdict"].clone();
            json!({"decision": verdict["decision"], "by": verdict["by"], "reason": verdict["reason"], "tool": tool})
        }
        Err(error) => json!({"decision": "fail", "reason": error.message, "tool": tool}),
    }
}

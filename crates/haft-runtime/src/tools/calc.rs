//! calc.eval: arithmetic that does not depend on a model's memory of it.
//!
//! The evaluator is our own, because the well-kept crates for this are AGPL and the others abandoned.

mod functions;
mod lex;
mod parse;
#[cfg(test)]
mod tests;
mod value;

use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::{CallError, ToolSpec};
use parse::Step;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use value::Value;

/// How much of the expression is shown on each side of a fault.
const SHOWN: usize = 30;

#[derive(Deserialize)]
struct Args {
    expression: String,
    #[serde(default)]
    delay_ms: u64,
}

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    Arc::new(Calculator { spec: Arc::new(spec()) })
}

fn spec() -> ToolSpec {
    declare(
        "calc.eval",
        "Evaluate an arithmetic expression, for example `2 * (3 + 4) ^ 2` or `sqrt(2) / log(8, 2)`. Operators: + - * / \
         // (floor division) % (remainder with the sign of the dividend; mod(a, b) has the divisor's) ^ or ** ! \
         Functions: sqrt cbrt abs floor ceil round(x, digits?) trunc sin cos tan asin acos atan atan2 sinh cosh tanh \
         exp ln log(x, base?) log2 log10 pow min max hypot mod gcd lcm rad deg. Constants: pi tau e inf. Angles are in \
         radians; log is natural unless a base is given. Integers are exact up to 38 digits.",
    )
    .hint("calculator math compute arithmetic number")
    .input(json!({
        "type": "object",
        "properties": {
            "expression": {"type": "string", "maxLength": 10_000, "description": "The expression to evaluate"},
            "delay_ms": {
                "type": "integer",
                "minimum": 0,
                "maximum": 60_000,
                "description": "Wait this many milliseconds before answering (default 0)"
            }
        },
        "required": ["expression"],
        "additionalProperties": false
    }))
    // The longest delay, and time to spare.
    .timeout(Duration::from_secs(90))
}

struct Calculator {
    spec: Arc<ToolSpec>,
}

impl Tool for Calculator {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let args: Args = scene.parse()?;
            let value = evaluate(&args.expression).map_err(|fault| fault.explain(&args.expression))?;
            wait(scene, args.delay_ms).await?;
            Ok(Reply::text(value.to_string()).data(json!({ "value": value.json() })))
        })
    }
}

async fn wait(scene: &Scene, delay_ms: u64) -> Result<(), CallError> {
    if delay_ms == 0 {
        return Ok(());
    }
    scene.progress(format!("answering in {delay_ms} ms"));
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(delay_ms)) => Ok(()),
        stop = scene.halt().stopped() => Err(stop),
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq)]
enum Fault {
    /// It cannot be understood, from this column on.
    Syntax(usize, String),
    /// It is understood, and has no value.
    Undefined(String),
}

impl Fault {
    fn syntax(column: usize, why: impl Into<String>) -> Self {
        Self::Syntax(column, why.into())
    }

    fn undefined(why: impl Into<String>) -> Self {
        Self::Undefined(why.into())
    }

    fn explain(self, expression: &str) -> CallError {
        match self {
            Self::Syntax(column, why) => CallError::invalid(format!("{why}\n{}", pointed(expression, column))),
            Self::Undefined(why) => CallError::failed(why),
        }
    }
}

/// The expression around a column, and a caret under it.
fn pointed(expression: &str, column: usize) -> String {
    let from = column.saturating_sub(SHOWN);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let shown: String = expression.chars().skip(from).take(2 * SHOWN).map(visible).collect();
    format!("  {}\n  {}^", shown.trim_end(), " ".repeat(column - from))
}

/// The value of an expression.
fn evaluate(expression: &str) -> Result<Value, Fault> {
    let mut stack: Vec<Value> = Vec::new();
    for step in parse::steps(expression)? {
        let takes = match step {
            Step::Number(_) => 0,
            Step::Infix(_) => 2,
            Step::Negate | Step::Factorial => 1,
            Step::Call(_, count) => count,
        };
        let operands = stack.split_off(stack.len().saturating_sub(takes));
        stack.push(apply(step, &operands)?);
    }
    stack.pop().ok_or_else(|| Fault::undefined("the expression has no value"))
}

fn apply(step: Step, operands: &[Value]) -> Result<Value, Fault> {
    match (step, operands) {
        (Step::Number(value), _) => Ok(value),
        (Step::Infix(sign), [a, b]) => value::infix(sign, *a, *b),
        (Step::Negate, [a]) => Ok(value::negated(*a)),
        (Step::Factorial, [a]) => value::factorial(*a),
        (Step::Call(function, _), args) => function.apply(args),
        _ => Err(Fault::undefined("the expression is incomplete")),
    }
}

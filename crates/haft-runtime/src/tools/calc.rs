//! calc.eval: arithmetic that does not depend on a model's memory of it.
//!
//! Integers and fractions are exact, so decimals are. What is irrational is worked out in double precision.
//! The evaluator is our own, because the well-kept crates for this are AGPL and the others abandoned; the numbers are
//! num-bigint's and num-rational's.

mod arithmetic;
mod budget;
mod functions;
mod lex;
mod logarithm;
mod parse;
#[cfg(test)]
mod tests;
mod value;
mod written;

use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use budget::Budget;
use haft_core::{CallError, ToolSpec};
use parse::Step;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use value::Value;

/// An answer has at most so many digits.
const DIGITS_MAX: usize = 10_000;
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
         // (floor division) % (sign of the dividend; mod(a, b): of the divisor) ^ or ** ! Functions: sqrt cbrt abs \
         floor ceil round(x, digits?) trunc sin cos tan asin acos atan atan2 sinh cosh tanh exp ln log(x, base?) log2 \
         log10 pow(a, b, modulus?) min max hypot mod gcd lcm rad deg. Constants: pi tau e inf. Angles are in radians; \
         log is natural by default. Integers and decimals are exact (0.1 + 0.2 is 0.3); irrational results have 15 \
         digits.",
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
            let answer = evaluate(&args.expression).and_then(|value| answer(&value));
            let (text, data) = answer.map_err(|fault| fault.explain(&args.expression))?;
            wait(scene, args.delay_ms).await?;
            Ok(Reply::text(text).data(data))
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

    fn too_large() -> Self {
        Self::undefined(format!(
            "a number on the way has more than {} digits; pow(a, b, m) is a ^ b modulo m without the power in between",
            value::INTEGER_DIGITS_MAX
        ))
    }

    fn message(self) -> String {
        match self {
            Self::Syntax(_, why) | Self::Undefined(why) => why,
        }
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
    let mut budget = Budget::new();
    for step in parse::steps(expression)? {
        let takes = match step {
            Step::Number(_) => 0,
            Step::Infix(_) => 2,
            Step::Negate | Step::Factorial => 1,
            Step::Call(_, count) => count,
        };
        let operands = stack.split_off(stack.len().saturating_sub(takes));
        stack.push(apply(step, &operands, &mut budget)?);
    }
    stack.pop().ok_or_else(|| Fault::undefined("the expression has no value"))
}

fn apply(step: Step, operands: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    match (step, operands) {
        (Step::Number(value), _) => Ok(value),
        (Step::Infix(sign), [a, b]) => arithmetic::infix(sign, a, b, budget),
        (Step::Negate, [a]) => Ok(arithmetic::negated(a)),
        (Step::Factorial, [a]) => arithmetic::factorial(a, budget),
        (Step::Call(function, _), args) => function.apply(args, budget),
        _ => Err(Fault::undefined("the expression is incomplete")),
    }
}

/// The answer: its text, and its data.
fn answer(value: &Value) -> Result<(String, serde_json::Value), Fault> {
    let text = value.to_string();
    if text.len() > DIGITS_MAX {
        let why = format!("the answer has {} digits, and at most {DIGITS_MAX} are shown", text.len());
        return Err(Fault::undefined(format!("{why}; ask for its remainder with `% m`, or for log10 of it")));
    }
    let (number, exact) = value.json();
    Ok((text, json!({ "value": number, "exact": exact })))
}

//! Conditions of steps: whether one is wanted, judged by what came before it.

use super::words::Known;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Less.
    Lt,
    /// More.
    Gt,
    /// The same.
    Eq,
    /// Not the same.
    Neq,
    /// Not less.
    Gte,
    /// Not more.
    Lte,
    /// There is something.
    Exists,
    /// There is nothing.
    NotExists,
    /// The text has it in it, or the list has it as a part.
    Contains,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// What is looked at: `step.data.count`, or the name of an input.
    pub path: String,
    /// How.
    #[serde(alias = "operator")]
    pub op: Op,
    /// With what it is compared.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
}

impl When {
    /// Whether it holds. What is not there is neither more nor less nor the same as anything.
    pub fn holds(&self, known: Known<'_>) -> bool {
        let found = known.get(&self.path).ok().filter(|value| !value.is_null());
        let Some(found) = found else { return matches!(self.op, Op::NotExists | Op::Neq) };
        match self.op {
            Op::Exists => true,
            Op::NotExists => false,
            Op::Eq => same(&found, &self.value),
            Op::Neq => !same(&found, &self.value),
            Op::Lt => order(&found, &self.value) == Some(std::cmp::Ordering::Less),
            Op::Gt => order(&found, &self.value) == Some(std::cmp::Ordering::Greater),
            Op::Lte => order(&found, &self.value).is_some_and(std::cmp::Ordering::is_le),
            Op::Gte => order(&found, &self.value).is_some_and(std::cmp::Ordering::is_ge),
            Op::Contains => match &*found {
                Value::Array(items) => items.iter().any(|item| same(item, &self.value)),
                Value::String(text) => self.value.as_str().is_some_and(|part| text.contains(part)),
                Value::Object(map) => self.value.as_str().is_some_and(|key| map.contains_key(key)),
                _ => false,
            },
        }
    }
}

/// What a value is as a number. What a tool prints is text, and `3` is a number there, too.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|number| number.is_finite())
}

fn same(one: &Value, other: &Value) -> bool {
    one == other || order(one, other) == Some(std::cmp::Ordering::Equal)
}

fn order(one: &Value, other: &Value) -> Option<std::cmp::Ordering> {
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one.partial_cmp(&other),
        _ => Some(one.as_str()?.cmp(other.as_str()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::words::Gave;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn every_way_of_comparing() {
        let inputs = json!({"n": 3, "text": "10", "list": ["a", 2], "null": null, "word": "beta"});
        let steps = BTreeMap::from([(
            "s".to_owned(),
            Gave { success: true, output: "7\n".to_owned(), data: json!({"k": {"x": 1}}) },
        )]);
        let known = Known { inputs: inputs.as_object().unwrap(), steps: &steps };
        let holds = |path: &str, op: &str, value: Value| {
            let when: When = serde_json::from_value(json!({"path": path, "op": op, "value": value})).unwrap();
            when.holds(known)
        };
        for (path, op, value) in [
            ("n", "gt", json!(2)),
            ("n", "lt", json!("4")),
            ("text", "gt", json!(9)),
            ("n", "eq", json!("3")),
            ("n", "gte", json!(3)),
            ("n", "lte", json!(3)),
            ("word", "gt", json!("alpha")),
            ("word", "neq", json!("alpha")),
            ("list", "contains", json!("a")),
            ("list", "contains", json!(2.0)),
            ("word", "contains", json!("et")),
            ("s.k", "contains", json!("x")),
            ("s", "eq", json!(7)),
            ("s.data.k.x", "exists", json!(null)),
            ("null", "not_exists", json!(null)),
            ("s.nope", "not_exists", json!(null)),
            ("nobody", "neq", json!(1)),
        ] {
            assert!(holds(path, op, value.clone()), "{path} {op} {value}");
        }
        for (path, op, value) in [
            ("n", "lt", json!("x")),
            ("nobody", "lt", json!(1)),
            ("nobody", "eq", json!(null)),
            ("null", "exists", json!(null)),
            ("n", "contains", json!(3)),
            ("list", "gt", json!(1)),
        ] {
            assert!(!holds(path, op, value.clone()), "{path} {op} {value}");
        }
    }
}

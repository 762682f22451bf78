//! What is taken of an answer, and whether it is the one that an example promises.

mod expected;

pub use expected::{Mismatch, expected, pattern};

use super::{Answer, Field};
use serde_json::{Map, Value};

/// How many keys of an answer a warning names.
const NAMED_MAX: usize = 10;

/// What was taken of an answer, and what was not there.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    /// What was taken.
    pub value: Value,
    /// What was not there, a sentence each.
    pub warnings: Vec<String>,
}

impl Answer {
    /// Takes of an answer what the manifest asks for: first the part at `json_path`, then its `fields`, or those of each
    /// item if it is a list. What is not there is null and a warning; an answer never becomes an error here.
    pub fn take(&self, body: Value) -> Taken {
        let mut warnings = Vec::new();
        let part = match &self.json_path {
            None => body,
            Some(path) => at(&body, path).cloned().unwrap_or_else(|| {
                warnings.push(format!("`json_path` leads to nothing: {}", why(&body, path)));
                Value::Null
            }),
        };
        if self.fields.is_empty() || part.is_null() {
            return Taken { value: part, warnings };
        }
        let mut missing = vec![0_usize; self.fields.len()];
        let (value, of) = match part {
            Value::Array(items) => {
                let of = items.len();
                (items.iter().map(|item| chosen(&self.fields, item, &mut missing)).collect(), of)
            }
            one => (chosen(&self.fields, &one, &mut missing), 1),
        };
        let absent = self.fields.iter().zip(missing).filter(|(_, count)| *count > 0);
        warnings.extend(absent.map(|(field, count)| {
            let (name, path) = (crate::preview::inert(&field.name), crate::preview::inert(&field.path));
            if of == 1 {
                format!("the field `{name}` is null: there is no `{path}`")
            } else {
                format!("the field `{name}` is null in {count} of {of} items: there is no `{path}`")
            }
        }));
        Taken { value, warnings }
    }
}

/// The fields of one item. What is missing is counted.
fn chosen(fields: &[Field], item: &Value, missing: &mut [usize]) -> Value {
    let mut taken = Map::new();
    for (field, missing) in fields.iter().zip(missing) {
        let found = at(item, &field.path);
        *missing += usize::from(found.is_none());
        taken.insert(field.name.clone(), found.cloned().unwrap_or_default());
    }
    Value::Object(taken)
}

/// What a path leads to: names with dots between, numbers count into lists.
pub fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, step)
}

fn step<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    }
}

/// Where a path ends, and what is there instead.
fn why(body: &Value, path: &str) -> String {
    let mut here = body;
    let mut walked = Vec::new();
    for name in path.split('.') {
        let Some(next) = step(here, name) else {
            let place = if walked.is_empty() { "the answer".to_owned() } else { format!("`{}`", walked.join(".")) };
            return format!("{place} has no `{}`; it {}", crate::preview::inert(name), inside(here));
        };
        walked.push(crate::preview::inert(name));
        here = next;
    }
    String::new()
}

/// What a value has in it.
fn inside(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "is empty".to_owned(),
        Value::Object(map) => {
            let names: Vec<String> = map.keys().take(NAMED_MAX).map(|key| crate::preview::inert(key)).collect();
            let more = if map.len() > NAMED_MAX { ", …" } else { "" };
            crate::preview::cut(&format!("has {}{more}", names.join(", ")), 200)
        }
        Value::Array(items) => format!("is a list of {}", items.len()),
        Value::String(_) => "is text".to_owned(),
        Value::Number(_) => "is a number".to_owned(),
        Value::Bool(_) => "is true or false".to_owned(),
        Value::Null => "is null".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn taken(json_path: Option<&str>, fields: &[(&str, &str)], body: Value) -> Taken {
        let field = |(name, path): &(&str, &str)| Field { name: (*name).to_owned(), path: (*path).to_owned() };
        Answer { json_path: json_path.map(str::to_owned), fields: fields.iter().map(field).collect() }.take(body)
    }

    #[test]
    fn the_part_that_counts_and_its_fields() {
        let body = json!({"web": {"results": [{"title": "A", "url": "https://a", "n": {"x": 1}}, {"title": "B"}]}});
        assert_eq!(taken(None, &[], body.clone()), Taken { value: body.clone(), warnings: vec![] });
        let found = taken(Some("web.results"), &[("title", "title"), ("x", "n.x")], body.clone());
        assert_eq!(found.value, json!([{"title": "A", "x": 1}, {"title": "B", "x": null}]));
        assert_eq!(found.warnings, ["the field `x` is null in 1 of 2 items: there is no `n.x`"]);
        let one = taken(Some("web.results.1"), &[("name", "title")], body.clone());
        assert_eq!(one, Taken { value: json!({"name": "B"}), warnings: vec![] });
        let gone = taken(Some("web.hits"), &[("name", "title")], body);
        assert_eq!(gone.value, Value::Null);
        assert_eq!(gone.warnings, ["`json_path` leads to nothing: `web` has no `hits`; it has results"]);
    }

    #[test]
    fn no_answer_is_an_error() {
        for body in [json!(null), json!("text"), json!(5), json!([]), json!([1, null]), json!({})] {
            let found = taken(Some("a.0.b"), &[("x", "y")], body.clone());
            assert!(found.value.is_null() && found.warnings.len() == 1, "{body}");
            taken(None, &[("x", "y")], body);
        }
        assert_eq!(taken(None, &[("x", "y")], json!([])).value, json!([]));
    }
}

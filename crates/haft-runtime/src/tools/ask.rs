//! user.ask: a model asks the person it works for. The questions become a form; whoever is there fills it in, at the
//! terminal, in an MCP client, or in an inbox. If nobody is, the model is told so, and goes on.

use crate::approver::asker;
use crate::back::{Form, Written};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::preview::inert;
use haft_core::schema::Schema;
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a person may take. Doors have limits of their own, which are shorter.
const TIMEOUT: Duration = Duration::from_hours(2);
/// How often an answer that does not fit is asked for again.
const TRIES: usize = 3;
const QUESTIONS_MAX: usize = 8;
const OPTIONS_MAX: usize = 50;

const NOBODY: &str = "Nobody is there to answer. Go on with your best judgement, and say what you assumed.";
const DECLINED: &str =
    "The user declined to answer. Do not ask the same again; go on without it if you can, and say what you assumed.";
const CLOSED: &str =
    "The user closed the question without an answer. Go on with your best judgement, and say what you assumed.";

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    let spec = declare(
        "user.ask",
        "Ask the user one or several questions: they pick options, answer yes or no, or write text. Use it only for \
         what you can neither find out nor assume. Returns the answers, or says that nobody is there.",
    )
    .hint("question clarify confirm choose options human input")
    .input(json!({
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "maxLength": 4000,
                "description": "The question; with `questions`, their common topic"},
            "options": options(),
            "multiple": {"type": "boolean", "description": "Allow several options"},
            "confirm": {"type": "boolean", "description": "Ask for yes or no"},
            "default": usual(),
            "questions": {
                "type": "array", "minItems": 1, "maxItems": QUESTIONS_MAX,
                "description": "Several questions in one form; each may also have header, multiple, confirm and default",
                "items": {
                    "type": "object",
                    "properties": {
                        "question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "What to ask"},
                        "options": options()
                    },
                    "required": ["question"]
                }
            }
        },
        "additionalProperties": false
    }))
    .timeout(TIMEOUT);
    Arc::new(Ask { spec: Arc::new(spec) })
}

fn options() -> Value {
    json!({"type": "array", "maxItems": OPTIONS_MAX, "items": {"type": "string", "minLength": 1, "maxLength": 400},
        "description": "The options to choose from"})
}

fn usual() -> Value {
    json!({"type": ["string", "boolean", "array"], "items": {"type": "string"},
        "description": "The answer if nobody replies"})
}

struct Ask {
    spec: Arc<ToolSpec>,
}

#[derive(Debug, Clone, Deserialize)]
struct Args {
    question: Option<String>,
    questions: Option<Vec<Asked>>,
    #[serde(flatten)]
    how: How,
}

/// One question.
#[derive(Debug, Clone, Deserialize)]
struct Asked {
    question: String,
    header: Option<String>,
    #[serde(flatten)]
    how: How,
}

/// How it is answered.
#[derive(Debug, Clone, Default, Deserialize)]
struct How {
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    multiple: bool,
    #[serde(default)]
    confirm: bool,
    default: Option<Value>,
}

impl Tool for Ask {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let (head, asked) = questions(scene.parse()?)?;
            put(scene, head, &asked).await
        })
    }
}

/// Asks until what is said fits.
async fn put(scene: &Scene, head: Option<String>, asked: &[Asked]) -> Result<Reply, CallError> {
    let caller = &scene.call().caller;
    let from = asker(caller, scene.workspace()).or_else(|| caller.agent.clone());
    let from = from.unwrap_or_else(|| "the agent".to_owned());
    let schema = schema(asked);
    let rules = Schema::compile(&schema).map_err(|error| CallError::invalid(error.to_string()))?;
    let head = head.unwrap_or_else(|| asked.first().map(|one| one.question.clone()).unwrap_or_default());
    let mut message = head.clone();
    for _ in 0..TRIES {
        let form = Form { from: from.clone(), message, schema: schema.clone() };
        let written = scene.back().elicit(form).await;
        // Nobody closed it if the call itself was ended.
        scene.halt().check()?;
        let mut answer = match written {
            Written::Answer(answer) => answer,
            Written::Declined => return Ok(unanswered(asked, DECLINED, &[])),
            Written::Cancelled => return Ok(unanswered(asked, CLOSED, &[])),
            Written::Nobody => return Ok(unanswered(asked, NOBODY, &usual_answers(asked))),
        };
        rules.prepare(&mut answer);
        let wrong = rules.violations(&answer);
        if wrong.is_empty() {
            return Ok(answered(asked, &answer));
        }
        let why: Vec<String> =
            wrong.iter().map(|wrong| format!("expected {}, got {}", wrong.expected, wrong.found)).collect();
        message = format!("{head}\n(The last answer did not fit: {})", why.join("; "));
    }
    let mut reply = unanswered(asked, CLOSED, &[]);
    reply.warnings.push(format!("what was answered did not fit, {TRIES} times"));
    Ok(reply)
}

/// What to ask, and what it is about.
fn questions(args: Args) -> Result<(Option<String>, Vec<Asked>), CallError> {
    let (head, asked) = match (args.question, args.questions) {
        (head, Some(several)) => (head, several),
        (Some(question), None) => (None, vec![Asked { question, header: None, how: args.how }]),
        (None, None) => {
            return Err(
                CallError::invalid("there is no question").hint("say it in `question`, or several in `questions`")
            );
        }
    };
    asked.iter().try_for_each(check)?;
    Ok((head, asked))
}

fn check(asked: &Asked) -> Result<(), CallError> {
    let How { options, multiple, confirm, default } = &asked.how;
    let wrong = |why: &str| Err(CallError::invalid(format!("`{}`: {why}", inert(&asked.question))));
    let twice = |(at, option): (usize, &String)| options[..at].contains(option);
    let fits = match default {
        None => true,
        Some(Value::Bool(_)) => *confirm,
        Some(Value::String(text)) => !confirm && !multiple && (options.is_empty() || options.contains(text)),
        Some(Value::Array(list)) => {
            *multiple && list.iter().all(|one| one.as_str().is_some_and(|one| options.iter().any(|known| known == one)))
        }
        Some(_) => false,
    };
    match () {
        () if *confirm && !options.is_empty() => wrong("it is answered by yes or no, so there are no options"),
        () if *multiple && options.is_empty() => wrong("several can be chosen only of options"),
        () if options.iter().enumerate().any(twice) => wrong("an option is there twice"),
        () if !fits => wrong("its default is no answer to it"),
        () => Ok(()),
    }
}

/// Under which name a question is answered.
fn name(at: usize, asked: &[Asked]) -> String {
    if asked.len() == 1 { "answer".to_owned() } else { format!("q{}", at + 1) }
}

/// The form, in the words of MCP's elicitation.
fn schema(asked: &[Asked]) -> Value {
    let mut properties = Map::new();
    for (at, one) in asked.iter().enumerate() {
        let How { options, multiple, confirm, default } = &one.how;
        let mut field = match (confirm, options.is_empty(), multiple) {
            (true, ..) => json!({ "type": "boolean" }),
            (false, true, _) => json!({ "type": "string" }),
            (false, false, false) => json!({ "type": "string", "enum": options }),
            (false, false, true) => json!({ "type": "array", "items": { "type": "string", "enum": options } }),
        };
        field["title"] = one.header.as_ref().unwrap_or(&one.question).clone().into();
        if one.header.is_some() {
            field["description"] = one.question.clone().into();
        }
        if let Some(default) = default {
            field["default"] = default.clone();
        }
        properties.insert(name(at, asked), field);
    }
    let required: Vec<String> =
        (0..asked.len()).filter(|at| asked[*at].how.default.is_none()).map(|at| name(at, asked)).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn answered(asked: &[Asked], answer: &Value) -> Reply {
    let given: Vec<Option<Value>> = (0..asked.len()).map(|at| answer.get(name(at, asked)).cloned()).collect();
    let text = match given.as_slice() {
        [Some(only)] => words(only),
        several => lines(asked, several, ""),
    };
    Reply::text(text).data(json!({ "answered": true, "answers": told(asked, &given) }))
}

/// What is said if there is no answer, with what counts instead.
fn unanswered(asked: &[Asked], why: &str, instead: &[Option<Value>]) -> Reply {
    let mut text = why.to_owned();
    let mut data = json!({ "answered": false });
    if instead.iter().any(Option::is_some) {
        text.push_str("\nThese defaults count:\n");
        text.push_str(&lines(asked, instead, " (default)"));
        data["answers"] = told(asked, instead);
    }
    Reply::text(text).data(data)
}

fn usual_answers(asked: &[Asked]) -> Vec<Option<Value>> {
    asked.iter().map(|one| one.how.default.clone()).collect()
}

fn told(asked: &[Asked], given: &[Option<Value>]) -> Value {
    asked.iter().zip(given).map(|(one, answer)| json!({ "question": one.question, "answer": answer })).collect()
}

fn lines(asked: &[Asked], given: &[Option<Value>], mark: &str) -> String {
    let line = |(one, answer): (&Asked, &Option<Value>)| {
        let name = one.header.as_ref().unwrap_or(&one.question);
        answer.as_ref().map(|answer| format!("{name}: {}{mark}", words(answer)))
    };
    asked.iter().zip(given).filter_map(line).collect::<Vec<_>>().join("\n")
}

/// An answer as text.
fn words(answer: &Value) -> String {
    match answer {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Array(list) if list.is_empty() => "(none)".to_owned(),
        Value::Array(list) => list.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;
    use haft_core::ErrorKind;

    fn asked(args: Value) -> Result<Vec<Asked>, CallError> {
        questions(serde_json::from_value(args).unwrap()).map(|(_, asked)| asked)
    }

    #[test]
    fn without_anybody_it_succeeds_and_says_what_counts() {
        let reply = Stage::new().act(&tool(), json!({"question": "Which?", "options": ["a", "b"]})).unwrap();
        assert_eq!((reply.text.as_str(), reply.data), (NOBODY, Some(json!({"answered": false}))));
        let args = json!({"questions": [
            {"question": "Which?", "options": ["a", "b"], "default": "b"},
            {"question": "Why?"},
            {"question": "Go?", "header": "go", "confirm": true, "default": false}
        ]});
        let reply = Stage::new().act(&tool(), args).unwrap();
        assert!(reply.text.ends_with("These defaults count:\nWhich?: b (default)\ngo: no (default)"), "{}", reply.text);
        assert_eq!(reply.data.unwrap()["answers"][1], json!({"question": "Why?", "answer": null}));
    }

    #[test]
    fn each_kind_of_question_becomes_a_field_that_clients_know() {
        let asked = asked(json!({"question": "Set up", "questions": [
            {"question": "Which?", "options": ["a", "b"]},
            {"question": "Which of these?", "options": ["a", "b"], "multiple": true, "default": ["a"]},
            {"question": "Sure?", "confirm": true},
            {"question": "What is it called?", "header": "name"}
        ]}))
        .unwrap();
        let expected = json!({"type": "object", "properties": {
            "q1": {"type": "string", "enum": ["a", "b"], "title": "Which?"},
            "q2": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "title": "Which of these?", "default": ["a"]},
            "q3": {"type": "boolean", "title": "Sure?"},
            "q4": {"type": "string", "title": "name", "description": "What is it called?"}
        }, "required": ["q1", "q3", "q4"]});
        assert_eq!(schema(&asked), expected);
        assert_eq!(haft_core::form::fields(&schema(&asked)).unwrap().len(), 4);
        let given = json!({"q1": "b", "q2": ["a", "b"], "q3": true, "q4": "haft"});
        let reply = answered(&asked, &given);
        assert_eq!(reply.text, "Which?: b\nWhich of these?: a, b\nSure?: yes\nname: haft");
        assert_eq!(reply.data.unwrap()["answers"][2], json!({"question": "Sure?", "answer": true}));
    }

    #[test]
    fn questions_that_cannot_be_answered_are_refused() {
        for (args, why) in [
            (json!({}), "there is no question"),
            (json!({"question": "a?", "options": ["x"], "confirm": true}), "no options"),
            (json!({"question": "a?", "multiple": true}), "only of options"),
            (json!({"question": "a?", "options": ["x", "x"]}), "twice"),
            (json!({"question": "a?", "options": ["x"], "default": "y"}), "default"),
            (json!({"question": "a?", "default": true}), "default"),
            (json!({"question": "a?", "options": ["x"], "default": ["x"]}), "default"),
        ] {
            let error = asked(args.clone()).unwrap_err();
            assert!(error.kind == ErrorKind::InvalidInput && error.message.contains(why), "{args}: {}", error.message);
        }
    }

    #[test]
    fn nodyns_call_means_the_same() {
        let entry = haft_core::dialect::elsewhere("ask_user");
        assert_eq!(entry[0].canonical(), "user.ask");
        let spoken =
            json!({"question": "Which?", "options": ["a"], "questions": [{"question": "b?", "options": ["c"]}]});
        let canonical = entry[0].to_canonical(spoken.clone()).unwrap().args;
        assert_eq!(canonical, spoken);
        assert_eq!(asked(canonical).unwrap()[0].how.options, ["c"]);
    }
}

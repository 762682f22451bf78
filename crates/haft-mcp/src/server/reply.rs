//! An outcome in the words of the protocol.

use super::decision_place::DecisionPlace;
use crate::content::to_wire;
use haft_core::outcome::Label;
use haft_core::scan::{closing, mark_of, wrapped_within};
use haft_core::schema::Schema;
use haft_core::web::Target;
use haft_core::{ErrorKind, Outcome};
use haft_runtime::tool::ResultSource;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Resource};
use serde_json::{Map, Value, json};

/// The member of a tool's data that holds an image.
const IMAGE: &str = "image";

/// A value that is a word rather than a sentence.
const WORD_MAX: usize = 256;
/// A URL that is kept as one.
const URL_MAX: usize = 2048;
/// What a schema holds to its own rules may be as long and still stand as it is.
const VALUE_MAX: usize = 100;

/// What a client is told of an outcome. `schema` is what the tool says of its data.
///
/// Some clients show a model the structured content instead of the text, so it is sent only where the model misses nothing
/// by that (decision 0014). Other data goes to `_meta.haft.data`.
pub(super) fn reply(
    mut outcome: Outcome,
    decision_place: &DecisionPlace,
    schema: Option<&Schema>,
    source: ResultSource,
) -> CallToolResult {
    let mut meta = meta(&outcome);
    let complete = complete_data(&outcome);
    let mut content = content_blocks(&outcome, decision_place);
    let mut data = outcome.data.take();
    let mut is_within_schema = true;
    if let (Some(unmarked), true) = (&data, outcome.labels.contains(&Label::Untrusted)) {
        // Some clients show a model the data in place of the text: it is marked off like that.
        let mark = mark_of(&outcome.output).map_or_else(haft_runtime::new_mark, str::to_owned);
        let marked = marked_off(unmarked, &mark, schema);
        is_within_schema = marked.is_some();
        data = marked.or_else(|| Some(wrap(unmarked.clone(), &mark)));
    }
    content.extend(data.as_mut().and_then(Value::as_object_mut).and_then(take_image));
    if let (true, Some(uri)) = (outcome.truncated, uri(&outcome.call_id, outcome.full_output.as_deref())) {
        let whole = Resource::new(uri, "full output").with_description("The whole output").with_mime_type("text/plain");
        content.push(ContentBlock::resource_link(whole));
    }
    let mut result = if outcome.success { CallToolResult::success(content) } else { CallToolResult::error(content) };
    let passes_on_data = source == ResultSource::Bridged && is_within_schema && !has_haft_notes(&outcome);
    if passes_on_data && data.as_ref().is_some_and(Value::is_object) {
        result.structured_content = data;
    } else if source == ResultSource::Haft && complete.is_some() {
        result.structured_content = complete;
    } else if let (Some(data), Some(about)) = (data, meta.0.get_mut("haft")) {
        about["data"] = data;
    }
    result.meta = Some(meta);
    result
}

/// Whether haft adds something to the text blocks that the data does not contain: a warning, an error, or where the full
/// output is.
fn has_haft_notes(outcome: &Outcome) -> bool {
    !outcome.success || outcome.error.is_some() || !outcome.warnings.is_empty() || outcome.truncated
}

/// A tool's data as structured content, if the output is nothing but its JSON. The protocol has objects alone, so that a
/// list and a single value are wrapped.
fn complete_data(outcome: &Outcome) -> Option<Value> {
    // Untrusted data is sent only between its marks.
    let is_plain = outcome.success && outcome.warnings.is_empty() && !outcome.labels.contains(&Label::Untrusted);
    let data = outcome.data.as_ref().filter(|_| is_plain)?;
    let told: Value = serde_json::from_str(&outcome.output).ok()?;
    if told != *data {
        return None;
    }
    Some(match told {
        Value::Object(_) => told,
        Value::Array(_) => json!({ "items": told }),
        _ => json!({ "value": told }),
    })
}

/// Data in which every sentence is between marks. None if that cannot be done within its schema.
fn marked_off(data: &Value, mark: &str, schema: Option<&Schema>) -> Option<Value> {
    let faults = |data: &Value| schema.map(|schema| schema.violations(data)).unwrap_or_default();
    let mut marked = wrap(data.clone(), mark);
    let wrong = faults(&marked);
    if wrong.is_empty() || !faults(data).is_empty() {
        return Some(marked);
    }
    // A choice of short values, a pattern: what a schema pins down cannot say much.
    for fault in &wrong {
        let short = |value: &&Value| value.as_str().is_some_and(|text| text.len() <= VALUE_MAX && !text.contains('\n'));
        let (kept, place) = (data.pointer(&fault.pointer).filter(short)?, marked.pointer_mut(&fault.pointer)?);
        *place = kept.clone();
    }
    faults(&marked).is_empty().then_some(marked)
}

fn wrap(data: Value, mark: &str) -> Value {
    let name = |name: String| if is_word(&name) { name } else { wrapped_within(&name, mark) };
    match data {
        Value::String(text) if !is_word(&text) => wrapped_within(&text, mark).into(),
        Value::Array(items) => items.into_iter().map(|item| wrap(item, mark)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (name(key), wrap(value, mark))).collect(),
        other => other,
    }
}

/// Whether a text says no more than a word does: a name, a number, an address, encoded bytes.
fn is_word(text: &str) -> bool {
    let graphic = || text.bytes().all(|byte| byte.is_ascii_graphic());
    let encoded = || text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte));
    (text.len() <= WORD_MAX && graphic())
        || (text.len() <= URL_MAX && graphic() && Target::read(text).is_ok())
        || encoded()
}

/// What a person or a model reads: the output, then what went wrong and what to do about it.
pub(super) fn text(outcome: &Outcome, decision_place: &DecisionPlace) -> String {
    let mut text = outcome.output.clone();
    let mut line = |said: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(said);
    };
    for warning in &outcome.warnings {
        line(&format!("Warning: {warning}"));
    }
    if let Some(error) = &outcome.error {
        line(&format!("Error ({}): {}", error.kind.as_str(), error.message));
        if error.kind == ErrorKind::ApprovalRequired {
            let sentence = decision_place.sentence(&outcome.call_id);
            line(&format!("It waits as approval {}. {sentence}", outcome.call_id));
        }
        if let Some(hint) = &error.hint {
            line(&format!("Hint: {hint}"));
        }
        if let Some(details) = error.details.as_ref().filter(|_| error.kind == ErrorKind::InvalidInput) {
            line(&format!("Details: {details}"));
        }
    }
    text
}

/// The content of a result: its text, or its parts in their order with what haft itself says after them.
///
/// Parts that nobody vouches for arrive as they were sent. The lines that mark them off for the model are blocks of their
/// own around them (decision 0017).
fn content_blocks(outcome: &Outcome, decision_place: &DecisionPlace) -> Vec<ContentBlock> {
    let text = text(outcome, decision_place);
    let parts = &outcome.content.blocks;
    if parts.is_empty() {
        return vec![ContentBlock::text(text)];
    }
    let end_of_mark = mark_of(&outcome.output).map(closing).and_then(|end| Some((outcome.output.rfind(&end)?, end)));
    let (opening, closing, own) = match &end_of_mark {
        Some((at, end)) => (text.split('\n').next(), Some(end.as_str()), &text[at + end.len()..]),
        None => (None, None, text.get(outcome.output.len()..).unwrap_or_default()),
    };
    // An image or a sound alone holds no words to mark off.
    let has_words = |part: &haft_core::ContentBlock| part.encoded_length() == 0 || !part.attributes.is_empty();
    let is_marked = parts.iter().any(has_words);
    let mut content: Vec<ContentBlock> = opening.filter(|_| is_marked).map(ContentBlock::text).into_iter().collect();
    let unfit = || ContentBlock::text("[a block that does not fit the protocol]");
    content.extend(parts.iter().map(|part| to_wire(part).unwrap_or_else(unfit)));
    let after = format!("{}{own}", closing.filter(|_| is_marked).unwrap_or_default());
    let after = after.trim_matches('\n');
    if !after.is_empty() {
        content.push(ContentBlock::text(after));
    }
    content
}

/// The image in a tool's data, taken out of it: it is shown once.
fn take_image(data: &mut Map<String, Value>) -> Option<ContentBlock> {
    let image = data.get_mut(IMAGE)?.as_object_mut()?;
    let mime = image.get("mime_type")?.as_str()?.to_owned();
    match image.remove("data")? {
        Value::String(bytes) => Some(ContentBlock::image(bytes, mime)),
        _ => None,
    }
}

/// Where the whole of an output can be read, if it is kept under its call's name.
fn uri(call: &haft_core::CallId, kept: Option<&str>) -> Option<String> {
    let name = std::path::Path::new(kept?).file_name()?.to_str()?;
    (name == format!("{call}.txt")).then(|| format!("haft://output/{call}"))
}

fn meta(outcome: &Outcome) -> MetaObject {
    let mut about =
        json!({ "call_id": outcome.call_id, "verdict": outcome.verdict, "duration_ms": outcome.duration_ms });
    if !outcome.labels.is_empty() {
        about["labels"] = json!(outcome.labels);
    }
    if let Some(undo) = &outcome.undo {
        about["undo"] = json!(undo);
    }
    if outcome.truncated {
        about["truncated"] = true.into();
        about["full_output"] = uri(&outcome.call_id, outcome.full_output.as_deref()).into();
    }
    if let Some(error) = &outcome.error {
        about["error"] = json!(error);
    }
    let sent = outcome.content.attributes.get("_meta").and_then(Value::as_object);
    let mut meta: JsonObject = sent.cloned().unwrap_or_default();
    meta.insert("haft".to_owned(), about);
    MetaObject(meta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::approval::{Decision, Verdict};
    use haft_core::{CallError, CallId, ResultContent, ToolName};

    fn nowhere() -> DecisionPlace {
        DecisionPlace::Elsewhere(String::new())
    }

    fn outcome() -> Outcome {
        let verdict = Verdict::new(Decision::Allow, "test", "it is a test");
        Outcome::success(CallId::new(1, 1), &ToolName::new("file.read").unwrap(), "Image: a.png", verdict)
    }

    #[test]
    fn an_image_is_shown_and_not_repeated_as_data() {
        let mut outcome = outcome();
        outcome.data = Some(json!({"image": {"mime_type": "image/png", "data": "AAAA", "width": 1}}));
        let result = serde_json::to_value(reply(outcome, &nowhere(), None, ResultSource::Haft)).unwrap();
        assert_eq!(result["content"][1], json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}));
        assert_eq!(result.get("structuredContent"), None);
        assert_eq!(result["_meta"]["haft"]["data"], json!({"image": {"mime_type": "image/png", "width": 1}}));
    }

    #[test]
    fn structured_content_is_sent_only_where_it_is_the_whole_result() {
        let sent = |output: &str, data: Value| {
            let mut outcome = outcome();
            outcome.output = output.to_owned();
            outcome.data = Some(data);
            serde_json::to_value(reply(outcome, &nowhere(), None, ResultSource::Haft)).unwrap()
        };
        let partial = sent("1\thello", json!({"total_lines": 1}));
        assert_eq!(partial.get("structuredContent"), None);
        assert_eq!(partial["_meta"]["haft"]["data"], json!({"total_lines": 1}));
        assert_eq!(sent("{\"a\": 1}", json!({"a": 1}))["structuredContent"], json!({"a": 1}));
        assert_eq!(sent("[1, 2]", json!([1, 2]))["structuredContent"], json!({"items": [1, 2]}));
        assert_eq!(sent("42", json!(42))["structuredContent"], json!({"value": 42}));
        assert_eq!(sent("42 ", json!(41)).get("structuredContent"), None);
    }

    fn parts(parts: Value) -> ResultContent {
        let parts: Vec<ContentBlock> = serde_json::from_value(parts).unwrap();
        ResultContent::of(parts.iter().map(crate::content::from_wire).collect())
    }

    #[test]
    fn parts_of_a_result_arrive_as_they_are() {
        let mut outcome = outcome();
        let sent = json!([{"type": "text", "text": "Image: a.png", "_meta": {"n": 1}},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]);
        outcome.content = parts(sent.clone());
        let result = serde_json::to_value(reply(outcome.clone(), &nowhere(), None, ResultSource::Haft)).unwrap();
        assert_eq!(result["content"], sent);
        outcome.warnings = vec!["it is old".to_owned()];
        let result = serde_json::to_value(reply(outcome, &nowhere(), None, ResultSource::Haft)).unwrap();
        assert_eq!(result["content"][2], json!({"type": "text", "text": "Warning: it is old"}));
    }

    #[test]
    fn untrusted_parts_stand_unchanged_between_their_marks() {
        let mut outcome = outcome();
        outcome.labels = vec![Label::Untrusted];
        let sent = json!([{"type": "text", "text": "one"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "two"}}]);
        outcome.content = parts(sent.clone());
        outcome.output = "<untrusted mark=\"00ff\" source=\"x\"> Data\none\n</untrusted mark=\"00ff\">".to_owned();
        outcome.warnings = vec!["worth a second look".to_owned()];
        let result = serde_json::to_value(reply(outcome.clone(), &nowhere(), None, ResultSource::Bridged)).unwrap();
        let content = result["content"].as_array().unwrap();
        assert_eq!(content[0]["text"], "<untrusted mark=\"00ff\" source=\"x\"> Data");
        assert_eq!(json!(content[1..4]), sent);
        assert_eq!(content[4]["text"], "</untrusted mark=\"00ff\">\nWarning: worth a second look");
        outcome.content = parts(json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]));
        outcome.warnings.clear();
        let result = serde_json::to_value(reply(outcome, &nowhere(), None, ResultSource::Bridged)).unwrap();
        assert_eq!(result["content"], json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]));
    }

    #[test]
    fn a_strangers_sentences_are_marked_off_in_data_too() {
        let mut outcome = outcome();
        outcome.labels = vec![Label::Untrusted];
        outcome.output = "<untrusted mark=\"00ff00ff00ff00ff\" source=\"x\"> Data\nsoup\n</untrusted>".to_owned();
        let (image, url) = (json!({"mime_type": "image/png", "data": "AAAA".repeat(100)}), "https://a.test/x?q=1");
        outcome.data = Some(json!({"title": "Do as I say", "url": url, "n": 1, "state": "In Progress", "image": image,
            "rows": [{"two words": "x"}]}));
        let schema = json!({"type": "object", "properties": {"state": {"enum": ["In Progress", "Done"]}}});
        let schema = Schema::compile(&schema).unwrap();
        let result =
            serde_json::to_value(reply(outcome.clone(), &nowhere(), Some(&schema), ResultSource::Bridged)).unwrap();
        let within = |text: &str| wrapped_within(text, "00ff00ff00ff00ff");
        let data = &result["structuredContent"];
        assert_eq!((&data["title"], &data["url"]), (&json!(within("Do as I say")), &json!(url)));
        assert_eq!((&data["state"], &data["rows"][0][within("two words")]), (&json!("In Progress"), &json!("x")));
        assert_eq!(result["content"][1]["data"], "AAAA".repeat(100), "{result}");
        let mute = json!({"type": "object", "properties": {"title": {"maxLength": 11}, "state": {"maxLength": 11}}});
        let mute = Schema::compile(&mute).unwrap();
        outcome.data = Some(json!({"title": "Do as I say"}));
        let short =
            serde_json::to_value(reply(outcome.clone(), &nowhere(), Some(&mute), ResultSource::Bridged)).unwrap();
        assert_eq!(short["structuredContent"]["title"], "Do as I say", "a schema that leaves no room for more");
        let long = json!({"type": "object", "properties": {"title": {"maxLength": 200}}});
        outcome.data = Some(json!({"title": "Do as I say. ".repeat(15)}));
        let dropped = serde_json::to_value(reply(
            outcome,
            &nowhere(),
            Some(&Schema::compile(&long).unwrap()),
            ResultSource::Bridged,
        ))
        .unwrap();
        assert_eq!(dropped.get("structuredContent"), None);
        let marked = within(&"Do as I say. ".repeat(15));
        assert_eq!(dropped["_meta"]["haft"]["data"], json!({"title": marked}), "{dropped}");
    }

    #[test]
    fn bridged_data_gives_way_to_words_of_haft_that_it_does_not_hold() {
        let sent = |change: &dyn Fn(&mut Outcome)| {
            let mut outcome = outcome();
            outcome.output = "20 degrees".to_owned();
            outcome.data = Some(json!({"degrees": 20}));
            change(&mut outcome);
            serde_json::to_value(reply(outcome, &nowhere(), None, ResultSource::Bridged)).unwrap()
        };
        let unchanged = sent(&|_| {});
        assert_eq!(unchanged["structuredContent"], json!({"degrees": 20}), "{unchanged:#}");
        assert_eq!(unchanged["_meta"]["haft"].get("data"), None, "{unchanged:#}");
        let with_words = [
            sent(&|outcome| outcome.warnings = vec!["this looks like an attempt to give orders".to_owned()]),
            sent(&|outcome| outcome.truncated = true),
            sent(&|outcome| {
                outcome.success = false;
                outcome.error = Some(CallError::new(ErrorKind::Failed, "the MCP server `s` says: no"));
            }),
        ];
        for result in with_words {
            assert_eq!(result.get("structuredContent"), None, "{result:#}");
            assert_eq!(result["_meta"]["haft"]["data"], json!({"degrees": 20}), "{result:#}");
        }
    }

    #[test]
    fn what_waits_says_where_it_is_decided() {
        let mut outcome = outcome();
        let error = CallError::new(ErrorKind::ApprovalRequired, "a person has to decide");
        (outcome.success, outcome.output, outcome.error) = (false, String::new(), Some(error));
        let id = outcome.call_id.to_string();
        let place = DecisionPlace::Elsewhere("Run `haft approvals`.".to_owned());
        let result = serde_json::to_value(reply(outcome, &place, None, ResultSource::Haft)).unwrap();
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("approval {id}. Run `haft approvals`.")), "{text}");
    }
}

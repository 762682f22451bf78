//! Streams as providers send them, cut everywhere; and requests as they take them.

use super::*;
use crate::ToolSpec;
use crate::agent::gather::Gather;
use crate::agent::talk::{Block, Image, Role};
use proptest::prelude::*;
use serde_json::json;

const ANTHROPIC: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Look first."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I read "}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ä file."}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"file_read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":".txt\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"system_info","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}

event: message_stop
data: {"type":"message_stop"}

"#;

const CHAT: &str = r#"data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":"Look first."},"finish_reason":null}]}

data: {"id":"c","choices":[{"index":0,"delta":{"content":"I read "},"finish_reason":null}]}

data: {"id":"c","choices":[{"index":0,"delta":{"content":"ä file."},"finish_reason":null}]}

data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"file_read","arguments":""}}]},"finish_reason":null}]}

data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\": \"a"}}]},"finish_reason":null}]}

data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":".txt\"}"}}]},"finish_reason":null}]}

data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"type":"function","function":{"name":"system_info","arguments":"{}"}}]},"finish_reason":null}]}

data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c","choices":[],"usage":{"prompt_tokens":2125,"completion_tokens":89,"total_tokens":2214,"prompt_tokens_details":{"cached_tokens":2000},"completion_tokens_details":{"reasoning_tokens":12}}}

data: [DONE]

"#;

const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Look first."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Look first."}],"encrypted_content":"gAAA"}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"I read "}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"ä file."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"I read ä file."}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"file_read"}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\": \"a"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":".txt\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\": \"a.txt\"}","call_id":"call_1","name":"file_read"}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":3,"item":{"id":"fc_2","type":"function_call","status":"in_progress","arguments":"","call_id":"call_2","name":"system_info"}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":3,"item":{"id":"fc_2","type":"function_call","status":"completed","arguments":"{}","call_id":"call_2","name":"system_info"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":2125,"input_tokens_details":{"cached_tokens":2000},"output_tokens":89,"output_tokens_details":{"reasoning_tokens":12}}}}

"#;

const GEMINI: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Look first.\",\"thought\":true}]},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":2125}}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"I read \"}]}}]}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"ä file.\"}]}}]}\r\n\r\ndata: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"file_read\",\"args\":{\"path\":\"a.txt\"}},\"thoughtSignature\":\"Cg==\"},{\"functionCall\":{\"name\":\"system_info\"}}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":2125,\"cachedContentTokenCount\":2000,\"candidatesTokenCount\":77,\"thoughtsTokenCount\":12}}\r\n\r\n";

const ALL: [(Wire, &str); 4] =
    [(Wire::Anthropic, ANTHROPIC), (Wire::Chat, CHAT), (Wire::Responses, RESPONSES), (Wire::Gemini, GEMINI)];

/// The message, what was counted, why it ended, and the calls in the order in which they were whole.
fn read(wire: Wire, chunks: &[&[u8]]) -> Result<(Message, Usage, Option<Stop>, Vec<String>), Broken> {
    let (mut decoder, mut gather, mut calls) = (wire.decoder("t1"), Gather::default(), Vec::new());
    let mut deltas = Vec::new();
    for chunk in chunks {
        deltas.extend(decoder.feed(chunk)?);
    }
    deltas.extend(decoder.finish()?);
    for delta in deltas {
        if let Some(Block::Use { name, .. }) = gather.take(delta) {
            calls.push(name);
        }
    }
    Ok((gather.message(), gather.usage(), gather.stop(), calls))
}

#[test]
fn every_provider_says_the_same_in_its_own_way() {
    for (wire, stream) in ALL {
        let (message, usage, stop, calls) = read(wire, &[stream.as_bytes()]).unwrap();
        assert_eq!(message.text(), "I read ä file.", "{wire:?}");
        assert_eq!(calls, ["file_read", "system_info"], "{wire:?}");
        let uses: Vec<_> = message.uses().map(|(_, name, input)| (name.to_owned(), input.clone())).collect();
        let expected = [("file_read".to_owned(), json!({"path": "a.txt"})), ("system_info".to_owned(), json!({}))];
        assert_eq!(uses, expected, "{wire:?}");
        let ids: std::collections::BTreeSet<_> = message.uses().map(|(id, ..)| id.to_owned()).collect();
        assert_eq!(ids.len(), 2, "{wire:?}: each has an id of its own");
        assert!(matches!(&message.blocks[0], Block::Thinking { text, .. } if text == "Look first."), "{wire:?}");
        assert_eq!((usage.read(), usage.cache_read, usage.output), (2125, 2000, 89), "{wire:?}");
        assert_eq!(stop, Some(Stop::Calls), "{wire:?}");
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_is_cut_off_and_never_something_else() {
    for (wire, stream) in ALL {
        let whole = read(wire, &[stream.as_bytes()]).unwrap();
        for end in 0..stream.len() {
            match read(wire, &[&stream.as_bytes()[..end]]) {
                // The last bytes only repeat that it is over.
                Ok(said) => assert_eq!((&said.0, said.2), (&whole.0, whole.2), "{wire:?} at {end}"),
                Err(error) => assert!(matches!(error, Broken::Cut | Broken::Odd(_)), "{wire:?} at {end}: {error:?}"),
            }
        }
    }
}

#[test]
fn what_is_no_stream_is_said_to_be_none() {
    for (wire, _) in ALL {
        assert_eq!(read(wire, &[b"<html><body>502 Bad Gateway</body></html>"]), Err(Broken::Cut), "{wire:?}");
        assert!(matches!(read(wire, &[b"data: <html>\n\n"]), Err(Broken::Odd(_))), "{wire:?}");
    }
    let said = read(Wire::Anthropic, &[b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"]);
    assert_eq!(said, Err(Broken::Said { kind: "overloaded_error".into(), message: "Overloaded".into() }));
}

fn read_back(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn history() -> Vec<Message> {
    let (_, stream) = ALL[0];
    let (said, ..) = read(Wire::Anthropic, &[stream.as_bytes()]).unwrap();
    let picture = Image { media_type: "image/png".into(), data: "iVBO".into() };
    let result = |id: &str, images: Vec<Image>, failed| {
        let (id, text) = (id.into(), "gave".into());
        Block::Result { id, text, images, failed, awaits: None }
    };
    let results = vec![result("toolu_1", vec![picture], false), result("toolu_2", vec![], true)];
    vec![Message::user("Read it."), said, Message { role: Role::User, blocks: results }]
}

#[test]
fn requests_are_what_providers_take() {
    let spec = ToolSpec::new("file.read", "Reads a file").unwrap();
    let input = json!({"type": "object", "properties": {"path": {"type": "string", "description": "Which"}}, "required": ["path"]});
    let tools = [Offered { name: "file_read", spec: &spec, input: &input }];
    let (history, system) = (history(), ["You are haft.".to_owned(), "It is Monday.".to_owned()]);
    for (wire, _) in ALL {
        let request = Request {
            model: "m",
            system: &system,
            tools: &tools,
            history: &history,
            max_output: 8000,
            effort: Some(Effort::Medium),
            native_search: false,
            scribe: &Scribe::default(),
        };
        let name = format!("request_{}", serde_json::to_value(wire).unwrap().as_str().unwrap());
        insta::assert_snapshot!(name, serde_json::to_string_pretty(&read_back(&wire.body(&request))).unwrap());
    }
}

proptest! {
    #[test]
    fn what_was_written_before_is_what_would_be_written_now(at in 0..4_usize, grown in proptest::collection::vec(0..4_usize, 1..8), other_tools in any::<bool>()) {
        let (wire, _) = ALL[at];
        let spec = ToolSpec::new("file.read", "Reads a file").unwrap();
        let input = json!({"type": "object", "properties": {}});
        let tools = [Offered { name: "file_read", spec: &spec, input: &input }, Offered { name: "more", spec: &spec, input: &input }];
        let (scribe, system) = (Scribe::default(), ["You are haft.".to_owned()]);
        let mut said: Vec<Message> = Vec::new();
        for (number, step) in grown.iter().enumerate() {
            match step {
                // The last message may get longer, and more may come after it.
                0 if !said.is_empty() => {
                    said.last_mut().unwrap().blocks.push(Block::Text { text: format!("and {number}\n") });
                }
                1 => {
                    said.clear();
                    scribe.forget();
                }
                _ => said.extend(history()),
            }
            let so_many = if other_tools && number % 2 == 1 { 2 } else { 1 };
            if other_tools {
                scribe.forget_tools();
            }
            let request = |scribe| {
                let body = wire.body(&Request {
                    model: "m", system: &system, tools: &tools[..so_many], history: &said, max_output: 8000, effort: None,
                    native_search: false, scribe,
                });
                read_back(&body)
            };
            prop_assert_eq!(request(&scribe), request(&Scribe::default()));
        }
    }

    #[test]
    fn wherever_bytes_are_cut_the_same_is_said(at in 0..4_usize, cuts in proptest::collection::vec(any::<prop::sample::Index>(), 1..12)) {
        let (wire, stream) = ALL[at];
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.index(stream.len())).collect();
        cuts.sort_unstable();
        let (mut chunks, mut from) = (Vec::new(), 0);
        for cut in cuts.into_iter().chain([stream.len()]) {
            chunks.push(&stream.as_bytes()[from..cut]);
            from = cut;
        }
        prop_assert_eq!(read(wire, &chunks), read(wire, &[stream.as_bytes()]));
    }
}

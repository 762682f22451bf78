//! Resources, prompts and completion.

use crate::{Client, Env, text};
use serde_json::{Value, json};

#[test]
fn a_call_can_be_looked_back_at_by_its_own_session_alone() {
    let env = Env::new();
    let mut client = env.connect();
    let result = client.call("calc_eval", json!({"expression": "6*7"}));
    let id = result["_meta"]["haft"]["call_id"].as_str().unwrap();
    let uri = format!("haft://log/{id}");
    let listed = client.ask("resources/list", json!({}));
    let uris: Vec<&Value> =
        listed["result"]["resources"].as_array().unwrap().iter().map(|resource| &resource["uri"]).collect();
    assert_eq!(uris, ["haft://log", uri.as_str()]);
    let calls = client.ask("resources/read", json!({"uri": "haft://log"}));
    let calls: Value = serde_json::from_str(calls["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(calls, json!([{"call_id": id, "tool": "calc_eval", "records": uri}]));
    let read = client.ask("resources/read", json!({"uri": uri}));
    let records: Value = serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&records[0]["kind"], &records[0]["tool"]), (&json!("intent"), &json!("calc.eval")), "{records:#}");
    let mut other = env.connect();
    for missing in
        [uri.as_str(), "haft://log/../../etc/passwd", "haft://output/..%2f..", "haft://log/", "file:///etc/passwd"]
    {
        let refused = other.ask("resources/read", json!({"uri": missing}));
        assert_eq!(refused["error"]["code"], -32002, "{missing}: {refused:#}");
        assert_eq!(refused["error"]["data"]["uri"], missing);
    }
}

#[test]
fn the_whole_of_what_was_cut_can_be_read() {
    let env = Env::new();
    for number in 0..1900 {
        env.file(&format!("dir{}/a-file-with-a-rather-long-name-{number}.txt", number % 10), "");
    }
    let mut client = env.connect();
    let result = client.call("file_list", json!({"recursive": true}));
    let about = &result["_meta"]["haft"];
    assert_eq!(about["truncated"], true, "{result:#}");
    let uri = about["full_output"].as_str().unwrap();
    let link = result["content"].as_array().unwrap().iter().find(|block| block["type"] == "resource_link").unwrap();
    assert_eq!(link["uri"], uri);
    let read = client.ask("resources/read", json!({"uri": uri}));
    let whole = read["result"]["contents"][0]["text"].as_str().unwrap();
    let shown = |number: &usize, text: &str| text.contains(&format!("a-file-with-a-rather-long-name-{number}.txt"));
    assert!(!(0..1900).all(|number| shown(&number, text(&result))), "it was not cut");
    assert_eq!((0..1900).find(|number| !shown(number, whole)), None, "this is missing from the whole");
    let mut other = env.connect();
    assert_eq!(other.ask("resources/read", json!({"uri": uri}))["error"]["code"], -32002);
}

#[test]
fn templates_prompts_and_their_arguments_are_told() {
    let mut client = Env::with("deny: [\"system.info\"]\n").connect();
    let templates = client.ask("resources/templates/list", json!({}));
    let uris: Vec<&Value> =
        templates["result"]["resourceTemplates"].as_array().unwrap().iter().map(|one| &one["uriTemplate"]).collect();
    assert_eq!(uris, ["haft://log/{call_id}", "haft://output/{call_id}"]);
    let prompts = client.ask("prompts/list", json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "explain-denial");
    let denied = client.call("system_info", json!({}));
    let id = denied["_meta"]["haft"]["call_id"].as_str().unwrap();
    let of = json!({"type": "ref/prompt", "name": "explain-denial"});
    let completed =
        client.ask("completion/complete", json!({"ref": of, "argument": {"name": "call", "value": &id[..6]}}));
    assert_eq!(completed["result"]["completion"]["values"], json!([id]));
    let of = json!({"type": "ref/resource", "uri": "haft://log/{call_id}"});
    let completed = client.ask("completion/complete", json!({"ref": of, "argument": {"name": "call_id", "value": ""}}));
    assert_eq!(completed["result"]["completion"]["values"], json!([id]));
    let prompt = client.ask("prompts/get", json!({"name": "explain-denial", "arguments": {"call": id}}));
    let message = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(message.contains(id) && message.contains("system.info"), "{message}");
    let missing = client.ask("prompts/get", json!({"name": "explain-denial"}));
    assert_eq!(missing["error"]["code"], -32602);
}

#[test]
fn what_was_changed_can_be_reviewed() {
    let env = Env::with("approval:\n  level: yolo\n");
    let mut client = env.connect();
    let written = client.call("file_write", json!({"path": "a.txt", "content": "hello\n"}));
    assert_eq!(written["_meta"]["haft"]["undo"]["available"], true, "{written:#}");
    let prompt = client.ask("prompts/get", json!({"name": "review-changes"}));
    let message = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(message.contains("+hello"), "{message}");
}

#[test]
fn the_calls_of_a_session_can_be_watched() {
    let mut client = Env::new().connect();
    let all = json!({"uri": "haft://log"});
    assert_eq!(client.ask("resources/subscribe", all.clone())["result"], json!({}));
    let result = client.call("calc_eval", json!({"expression": "6*7"}));
    assert_eq!(client.hear("notifications/resources/updated")["params"]["uri"], "haft://log");
    let id = result["_meta"]["haft"]["call_id"].as_str().unwrap();
    let read = client.ask("resources/read", all.clone());
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains(id), "{read:#}");
    assert_eq!(client.ask("resources/unsubscribe", all)["result"], json!({}));
    client.call("calc_eval", json!({"expression": "1"}));
    assert!(client.heard.is_empty(), "{:#?}", client.heard);
}

#[test]
fn resource_of_a_skill_is_what_the_hooks_left_of_it() {
    use std::os::unix::fs::PermissionsExt;
    let env = Env::new();
    let home_file = |path: &str, content: &[u8]| {
        let path = env.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    };
    home_file(
        ".claude/skills/review/SKILL.md",
        b"---\nname: review\ndescription: Reviews\n---\nThe word is hunter2.\n",
    );
    home_file(".claude/skills/review/long.md", format!("{}hunter2 at the end\n", "line\n".repeat(40_000)).as_bytes());
    home_file(".claude/skills/review/dot.bin", &[0, 159, 146, 150]);
    let mut client = env.connect();
    let read = |client: &mut Client, file: &str| {
        let answer = client.ask("resources/read", json!({"uri": format!("skill://review/{file}")}));
        answer["result"]["contents"][0].clone()
    };
    let whole = read(&mut client, "SKILL.md")["text"].as_str().unwrap().to_owned();
    assert!(whole.starts_with("---\nname: review") && whole.ends_with("The word is hunter2.\n"), "{whole}");
    let long = read(&mut client, "long.md")["text"].as_str().unwrap().to_owned();
    assert!(long.len() > 200_000 && long.ends_with("hunter2 at the end\n"), "{}", long.len());
    assert_eq!(read(&mut client, "dot.bin")["blob"], "AJ+Slg==");
    drop(client);
    let replacing = "#!/bin/sh\ncat > /dev/null\necho '{\"output\": \"[replaced]\"}'\n";
    for (script, told) in [(replacing, "[replaced]"), ("#!/bin/sh\nexit 1\n", "[withheld: ")] {
        let hook = home_file("hook", script.as_bytes());
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = format!("hooks: {{after: [{{tools: [skill.read], command: [{}]}}]}}\n", hook.display());
        home_file(".config/haft/config.yml", config.as_bytes());
        let mut client = env.connect();
        for file in ["SKILL.md", "long.md", "dot.bin"] {
            let found = read(&mut client, file);
            assert!(found["text"].as_str().is_some_and(|text| text.starts_with(told)), "{file}: {found:#}");
            assert!(found.get("blob").is_none(), "{file}: {found:#}");
        }
    }
}

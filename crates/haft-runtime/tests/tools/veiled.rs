//! Secrets in what is cut: what a program prints, raises or dies of is longer than what is shown of it.

use super::{Stage, permissions};
use haft_core::Outcome;
use haft_runtime::secrets::{SecretSource, Secrets};
use serde_json::{Value, json};
use std::sync::Arc;

const SECRET: &str = "sk8qzvjwx0123456789";

fn stage() -> Stage {
    let command = ["echo", SECRET].map(str::to_owned).to_vec();
    let source = SecretSource { command: Some(command), hosts: Vec::new() };
    Stage::with(|settings| settings.secrets = Arc::new(Secrets::new(None, [("KEY".to_owned(), source)].into())))
}

fn held() -> Value {
    permissions(json!(false), &["."], &[], json!({"KEY": {"type": "string", "required": true}}))
}

/// Nothing of it that is worth anything is in what came of a call.
fn is_hidden(outcome: &Outcome, how: &str) {
    let shown = serde_json::to_string(outcome).unwrap();
    let pieces = SECRET.as_bytes().windows(4).map(|piece| std::str::from_utf8(piece).unwrap());
    let told: Vec<&str> = pieces.filter(|piece| shown.contains(piece)).collect();
    assert!(told.is_empty(), "{how}: {told:?} in {shown}");
    assert!(shown.contains("[secret]"), "{how}: {shown}");
}

#[tokio::test]
async fn half_a_secret_is_not_shown_where_a_function_says_too_much() {
    let stage = stage();
    let cases = [
        ("a message cut for the sentence", "raise RuntimeError('-' * 375 + K)"),
        ("a message cut by the driver", "raise RuntimeError('-' * 3985 + K)"),
        ("a name cut by the driver", "raise type('-' * 182 + K, (Exception,), {})()"),
        ("printed, and then gone", "print(K + '-' * 590, flush=True); os._exit(3)"),
        ("printed more than is kept, and all is well", "print('-' * 9000 + K + '-' * 590)"),
        ("printed in part, and then killed", "os.write(2, b'-' * 99 + K[:11].encode()); os.kill(os.getpid(), 9)"),
        ("what it returned is no answer", "os.write(4, b'\\x4f\\0\\0\\0\"' + K.encode() * 4 + b'\"\\n')"),
    ];
    for (number, (how, line)) in cases.iter().enumerate() {
        for write in [&[][..], &["out"]] {
            std::fs::create_dir_all(stage.root().join("out")).unwrap();
            let name = format!("case{number}{}", write.len());
            let mut held = held();
            held["fs"]["write"] = json!(write);
            let text = format!("import os\nK = os.environ['KEY']\ndef run():\n    {line}\n");
            stage.python_with(&name, &text, json!({"permissions": held}));
            is_hidden(&stage.call(&name, json!({})).await, &format!("{how} {write:?}"));
        }
    }
}

#[tokio::test]
async fn half_a_secret_is_not_shown_where_a_program_says_too_much() {
    let stage = stage();
    let cases = [
        ("complaints cut at their beginning", "{ printf '%s' $KEY; head -c 4090 /dev/zero | tr '\\0' -; } >&2; exit 1"),
        ("killed in the middle of a word", "printf '%.9s' $KEY; kill -9 $$"),
        ("ended for what it printed", "yes \"$KEY$KEY$KEY\" | tr -d '\\n'"),
    ];
    for (number, (how, line)) in cases.iter().enumerate() {
        let name = format!("case{number}");
        let exec = json!({"command": {"entrypoint": "sh", "args": ["-c", line]}});
        stage.tool(&name, json!({"exec": exec, "permissions": held(), "outputs": {"format": "text"}}));
        is_hidden(&stage.call(&name, json!({})).await, how);
    }
}

//! Write a tool in Rust: `cargo run --example tool`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use haft::{
    Blocking, Call, CallError, Haft, Halt, Nobody, Reply, Scene, Settings, Store, ToolSpec, Workspace, new_call_id,
};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Args {
    text: String,
    times: u32,
}

/// The work: plain Rust. The arguments were validated and their defaults filled before.
fn repeat(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    if args.text.is_empty() {
        return Err(CallError::invalid("there is nothing to repeat"));
    }
    let words = vec![args.text; args.times as usize];
    Ok(Reply::text(words.join(" ")).data(json!({ "words": words.len() })))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The declaration: it is what models are shown, what input is checked against and what policy sees.
    let spec = ToolSpec::new("text.repeat", "Repeat a text")?.input(json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to repeat"},
            "times": {"type": "integer", "minimum": 1, "maximum": 100, "default": 2}
        },
        "required": ["text"],
        "additionalProperties": false
    }));

    let data = std::env::temp_dir().join(format!("haft-example-tool-{}", std::process::id()));
    let store = Store::open(&data.join("haft.db"))?;
    let haft = Haft::new(Workspace::new(&std::env::temp_dir())?, store, Settings::new(&data));
    haft.registry().register(Blocking::tool(spec, repeat))?;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    for args in [json!({"text": "knock"}), json!({"text": "knock", "times": 1000, "loud": true})] {
        let call = Call::new(new_call_id(), "text_repeat", args);
        let outcome = runtime.block_on(haft.call(call, &Nobody, &Halt::new()));
        println!("{}{}", outcome.output, outcome.error.map(|error| error.message).unwrap_or_default());
    }
    runtime.block_on(haft.flush())?;
    Ok(std::fs::remove_dir_all(&data)?)
}

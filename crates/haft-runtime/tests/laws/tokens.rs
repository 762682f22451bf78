//! The estimate of tokens, beside a real tokenizer.

use haft_core::provider::Provider;
use haft_core::tokens::estimate;
use haft_core::{Dialect, ToolSpec};
use haft_runtime::tools;
use serde_json::Value;

/// Every tool as every dialect and provider is told of it.
fn declarations() -> Vec<String> {
    let specs: Vec<&ToolSpec> = tools::all().iter().map(|tool| &**tool.spec()).collect();
    let forms = |name: &str, spec: &ToolSpec, input: &Value| {
        Provider::ALL.map(|provider| {
            provider.declare(name, spec, input).value.map(|value| value.to_string()).unwrap_or_default()
        })
    };
    let mut texts: Vec<String> =
        specs.iter().flat_map(|spec| forms(&spec.name.api_name(), spec, &spec.shapes.input)).collect();
    for entry in Dialect::ALL.iter().flat_map(|dialect| dialect.entries()) {
        texts.push(entry.declaration.to_string());
        let spec = specs.iter().find(|spec| spec.name.as_str() == entry.canonical());
        texts.extend(spec.into_iter().flat_map(|spec| forms(entry.spoken(), spec, entry.input_schema())));
    }
    texts
}

#[test]
fn the_estimate_is_near_what_a_tokenizer_counts() {
    let tokenizer = tiktoken_rs::o200k_base().unwrap();
    let (mut estimated, mut counted) = (0, 0);
    let texts = declarations();
    assert!(texts.len() > 150, "only {} declarations", texts.len());
    for text in &texts {
        let (ours, theirs) = (estimate(text), tokenizer.encode_ordinary(text).len());
        assert!(ours * 4 >= theirs * 3 && ours * 4 <= theirs * 5, "{ours} for {theirs}: {text}");
        estimated += ours;
        counted += theirs;
    }
    assert!(estimated * 10 >= counted * 9 && estimated * 10 <= counted * 11, "{estimated} for {counted}");
}

//! The registry: names are taken once, sources never block, outputs are checked.

use crate::Stage;
use haft_core::pattern::ToolPattern;
use haft_core::{CallError, ToolName, ToolSpec};
use haft_runtime::registry::RegisterError;
use haft_runtime::{Blocking, BoxFuture, Reply, Scope, Source, Tool};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn tool(name: &str) -> Arc<dyn Tool> {
    let spec = ToolSpec::new(name, "A test").unwrap().output(json!({"type": "object", "required": ["n"]}));
    Blocking::tool(spec, |_| Ok(Reply::text("hi").data(json!({"m": 1}))))
}

#[test]
fn a_name_is_taken_once_and_replaced_only_on_purpose() {
    let stage = Stage::new();
    let registry = stage.haft.registry();
    registry.register(tool("my.tool")).unwrap();
    assert!(matches!(registry.register(tool("my.tool")), Err(RegisterError::Taken(_))));
    assert!(
        matches!(registry.register(tool("my_tool")), Err(RegisterError::Clash { .. })),
        "models could not tell them apart"
    );
    assert!(registry.replace(tool("my.tool")).is_some());
    assert!(registry.get_by_api_name("my_tool").is_some() && registry.has("my.tool"));
    assert!(registry.unregister(&ToolName::new("my.tool").unwrap()));
    assert!(!registry.has("my.tool"));
    let bad = ToolSpec::new("bad.tool", "").unwrap().input(json!({"type": "nonsense"}));
    let bad = Blocking::tool(bad, |_| Ok(Reply::default()));
    assert!(matches!(registry.register(bad), Err(RegisterError::Schema(..))));
}

#[test]
fn a_scope_shows_less_and_never_more() {
    let stage = Stage::new();
    let patterns = |list: &[&str]| list.iter().map(|text| ToolPattern::new(text).unwrap()).collect::<Vec<_>>();
    let scope = Scope { allow: Some(patterns(&["file.*"])), deny: patterns(&["file.write"]) };
    let names: Vec<String> =
        stage.haft.registry().scoped(&scope).iter().map(|entry| entry.spec().name.to_string()).collect();
    assert!(names.contains(&"file.read".to_owned()));
    assert!(!names.contains(&"file.write".to_owned()) && !names.contains(&"calc.eval".to_owned()));
}

#[test]
fn output_that_does_not_fit_its_schema_is_a_warning() {
    let stage = Stage::new();
    stage.haft.registry().register(tool("my.tool")).unwrap();
    let outcome = stage.call("my.tool", json!({}));
    assert!(outcome.success);
    assert_eq!(outcome.data, Some(json!({"m": 1})));
    assert_eq!(outcome.warnings, ["output does not fit its schema: /n: expected a value, got nothing"]);
}

/// A source that answers after a while, or with an error.
struct Slow(Duration, bool);

impl Source for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }
    fn timeout(&self) -> Duration {
        Duration::from_millis(100)
    }
    fn load(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Tool>>, CallError>> {
        Box::pin(async {
            tokio::time::sleep(self.0).await;
            if self.1 { Ok(vec![tool("late.tool")]) } else { Err(CallError::failed("no such server")) }
        })
    }
}

#[test]
fn a_late_or_failing_source_is_a_warning() {
    let stage = Stage::new();
    let load = |source: Slow| stage.runtime.block_on(stage.haft.registry().load(&[Arc::new(source)]));
    let late = load(Slow(Duration::from_mins(1), true));
    assert!(late[0].contains("did not answer within"), "{late:?}");
    assert!(load(Slow(Duration::ZERO, false))[0].contains("failed: no such server"));
    assert!(load(Slow(Duration::ZERO, true)).is_empty());
    assert!(stage.haft.registry().has("late.tool"));
    assert!(load(Slow(Duration::ZERO, true))[0].contains("is registered already"));
}

//! Every tool as every provider is told of it: haft's own in every dialect, those of manifests, and those of real MCP
//! servers (`servers/*.json`: what the reference servers list, and a server written with the Python SDK).
//!
//! Two judges look at each request: haft's validator, and the scripted model of `haft-stub`, which has rules of its own.

use haft_core::agent::Message;
use haft_core::agent::wire::{Offered, Request, Scribe, Wire};
use haft_core::manifest::Manifest;
use haft_core::provider::{DeclarationNote, NoteKind, Provider, validator};
use haft_core::{Dialect, ToolSpec};
use haft_runtime::tools;
use serde_json::{Value, json};

const WIRES: [(Wire, haft_stub::Wire); 4] = [
    (Wire::Anthropic, haft_stub::Wire::Anthropic),
    (Wire::Responses, haft_stub::Wire::Responses),
    (Wire::Chat, haft_stub::Wire::Chat),
    (Wire::Gemini, haft_stub::Wire::Gemini),
];

/// A tool and the name that models call it by.
struct ListedTool {
    name: String,
    spec: ToolSpec,
}

impl ListedTool {
    fn new(spec: ToolSpec) -> Self {
        Self { name: spec.name.api_name(), spec }
    }
}

fn shipped() -> Vec<ListedTool> {
    tools::all().iter().map(|tool| ListedTool::new((**tool.spec()).clone())).collect()
}

/// The tools in the words of a dialect.
fn spoken(dialect: Dialect) -> Vec<ListedTool> {
    let shipped = shipped();
    let each = dialect.entries().filter_map(|entry| {
        let tool = shipped.iter().find(|tool| tool.spec.name.as_str() == entry.canonical())?;
        let spec = tool.spec.clone().input(entry.input_schema().clone());
        Some(ListedTool { name: entry.spoken().replace('.', "_"), spec })
    });
    each.collect()
}

fn of_manifests() -> Vec<ListedTool> {
    let texts = [
        include_str!("../../../haft-core/tests/tools/web_search/tool.yml"),
        include_str!("../../../haft-core/tests/tools/slack_notify/tool.yml"),
        include_str!("../../../haft-core/tests/tools/repo_stats/tool.yml"),
        include_str!("../../../haft-core/tests/tools/repo_scan/tool.yml"),
        include_str!("../../../haft/src/commands/new/command.yml"),
        include_str!("../../../haft/src/commands/new/http.yml"),
        include_str!("../../../haft/src/commands/new/mcp.yml"),
        include_str!("../../../haft/src/commands/new/pipeline.yml"),
        include_str!("../../../haft/src/commands/new/python.yml"),
    ];
    let each = texts.iter().enumerate().map(|(at, text)| {
        let manifest = Manifest::read(&text.replace("NAME", &format!("made_{at}"))).unwrap();
        let spec = ToolSpec::new(&manifest.name, manifest.description.trim()).unwrap();
        ListedTool::new(spec.input(manifest.inputs.schema.clone()))
    });
    each.collect()
}

fn of_servers() -> Vec<ListedTool> {
    let servers = [
        ("everything", include_str!("servers/everything.json")),
        ("filesystem", include_str!("servers/filesystem.json")),
        ("memory", include_str!("servers/memory.json")),
        ("time", include_str!("servers/time.json")),
        ("python_sdk", include_str!("servers/python_sdk.json")),
    ];
    let mut all = Vec::new();
    for (server, text) in servers {
        for tool in serde_json::from_str::<Vec<Value>>(text).unwrap() {
            let name = format!("mcp:{server}:{}", tool["name"].as_str().unwrap());
            let spec = ToolSpec::new(&name, tool["description"].as_str().unwrap()).unwrap();
            all.push(ListedTool::new(spec.input(tool["inputSchema"].clone())));
        }
    }
    all
}

fn offered(tools: &[ListedTool]) -> Vec<Offered<'_>> {
    tools.iter().map(|tool| Offered { name: &tool.name, spec: &tool.spec, input: &tool.spec.shapes.input }).collect()
}

/// Sends the tools in a request on every wire, and gives what differs from their own schemas.
fn accepted_everywhere(tools: &[ListedTool]) -> Vec<DeclarationNote> {
    assert!(!tools.is_empty());
    let mut notes = Vec::new();
    for (wire, judge) in WIRES {
        let provider = wire.declares();
        for tool in offered(tools) {
            let declaration = provider.declare(tool.name, tool.spec, tool.input);
            let value = declaration.value.unwrap_or_else(|| panic!("{provider:?}: {:?}", declaration.notes));
            assert_eq!(validator::violations(provider, &value), [], "{value}");
            notes.extend(declaration.notes);
        }
        // A request takes so many tools at the most; all of them are looked at.
        for part in offered(tools).chunks(100) {
            let history = [Message::user("Go on.")];
            let request = Request {
                model: "m",
                system: &[],
                tools: part,
                history: &history,
                max_output: 1000,
                effort: None,
                native_search: false,
                scribe: &Scribe::default(),
            };
            let body: Value = serde_json::from_slice(&wire.body(&request)).unwrap();
            assert_eq!(haft_stub::fault(judge, &body), None, "{wire:?}");
        }
    }
    notes
}

fn reasons(notes: &[DeclarationNote], kind: NoteKind) -> Vec<String> {
    notes.iter().filter(|note| note.kind == kind).map(ToString::to_string).collect()
}

#[test]
fn every_shipped_tool_is_accepted_by_every_provider() {
    let notes = accepted_everywhere(&shipped());
    insta::assert_debug_snapshot!(reasons(&notes, NoteKind::NotStrict));
    let others: Vec<&DeclarationNote> = notes.iter().filter(|note| note.kind != NoteKind::NotStrict).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn every_dialect_is_accepted_by_every_provider() {
    for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Haft) {
        let notes = accepted_everywhere(&spoken(dialect));
        assert!(!notes.iter().any(|note| note.kind.is_warning()), "{dialect:?}: {notes:?}");
    }
}

#[test]
fn every_manifest_is_accepted_by_every_provider_and_strict() {
    let notes = accepted_everywhere(&of_manifests());
    assert_eq!(notes, []);
}

#[test]
fn every_bridged_tool_is_accepted_by_every_provider() {
    let notes = accepted_everywhere(&of_servers());
    insta::assert_debug_snapshot!(reasons(&notes, NoteKind::NotStrict));
    assert!(!notes.iter().any(|note| note.kind.is_warning()), "{notes:?}");
}

#[test]
fn tool_that_a_provider_cannot_take_is_left_out_and_the_others_are_sent() {
    let good = ListedTool::new(ToolSpec::new("test.good", "Works").unwrap());
    let bad = ToolSpec::new("mcp:odata:list", "Lists").unwrap();
    let input = json!({"type": "object", "required": ["$top"], "properties": {"$top": {"type": "integer"}}});
    let tools = [good, ListedTool::new(bad.input(input))];
    let told = Provider::Anthropic.declare_all(offered(&tools));
    assert_eq!(told.tools.len(), 1);
    assert_eq!(
        told.notes[0].to_string(),
        "`mcp:odata:list` is not offered to anthropic: its parameter `$top` has a name that the provider does not take"
    );
    assert_eq!(Provider::OpenAi.declare_all(offered(&tools)).tools.len(), 2);
}

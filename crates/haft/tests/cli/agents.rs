//! Agents that are files: taken from elsewhere, checked, and accepted as they stand.

use crate::Env;
use haft_stub::{Reply, Stub, Wire};
use serde_json::json;

/// As Claude Code writes them.
const REVIEWER: &str = "---\n\
name: code-reviewer\n\
description: Expert code review specialist. Use proactively after writing or modifying code.\n\
tools: Read, Grep, Glob, Bash, TodoWrite\n\
model: sonnet\n\
color: blue\n\
permissionMode: plan\n\
---\n\
\n\
You are a senior code reviewer.\n\
\n\
1. Run git diff to see recent changes\n\
2. Begin review immediately\n\
\n\
Checklist: \"quoted\", 'single', # no comment, {braces}\n";

const DEBUGGER: &str = "---\nname: debugger\ndescription: |\n  Debugging specialist: errors, test failures.\n  Use it early.\nmodel: inherit\n---\nYou debug.\n";

/// As Gemini's are written in TOML.
const RESEARCH: &str = r#"# An agent for looking things up
name = "web_researcher"
display_name = "Web researcher"
description = "Researches topics on the web"
model = "gemini-2.5-pro"
temperature = 0.2
tools = [
  "google_web_search",
  "web_fetch",  # pages
  "read_file",
  "run_shell_command",
]
prompt = """
You research.
Quote your sources: "like this".
"""

[run_config]
max_turns = 12
"#;

#[test]
fn agents_of_others_become_files_to_review() {
    let env = Env::new();
    env.file(".claude/agents/code-reviewer.md", REVIEWER);
    env.file(".claude/agents/debugger.md", DEBUGGER);
    env.file(".claude/agents/README.md", "How we use agents\n");
    env.file(".gemini/agents/research.toml", RESEARCH);
    env.file(".gemini/agents/broken.toml", "name = \"x\n");
    let dry = env.run(&["import", "agents", "--dry-run"]);
    assert!(dry.code == 0 && dry.stdout.contains("would write .haft/agents/code-reviewer.yml"), "{}", dry.stderr);
    assert!(dry.stdout.contains("Begin review immediately"), "it shows what it would write: {}", dry.stdout);
    assert!(!env.root().join(".haft").exists());
    let ran = env.run(&["import", "agents", "--json"]);
    let notes = ran.json()["notes"].to_string();
    assert!(!notes.contains("inherit"), "{notes}");
    for note in [
        "code-reviewer: there is no tool here for `TodoWrite`, which was left out",
        "code-reviewer: the model `sonnet` was left out, because only Claude Code knows which one that is: it has that of \
         whoever it works for; for that one write `model: anthropic/claude-sonnet-",
        "code-reviewer: `permissionMode` cannot be said here",
        "web_researcher: `temperature` cannot be said here",
        "README.md: it has no front matter",
        "broken.toml: line 1: a text does not end",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
    let reviewer = env.read(".haft/agents/code-reviewer.yml");
    let expected = json!({
        "description": "Expert code review specialist. Use proactively after writing or modifying code.",
        "prompt": REVIEWER.split_once("---\n\n").unwrap().1.trim(),
        "tools": ["file.read", "file.grep", "file.glob", "shell.exec"],
    });
    assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&reviewer).unwrap(), expected, "{reviewer}");
    let debugger = serde_saphyr::from_str::<serde_json::Value>(&env.read(".haft/agents/debugger.yml")).unwrap();
    assert_eq!((debugger.get("tools"), debugger.get("model")), (None, None), "{debugger:#}");
    let research = serde_saphyr::from_str::<serde_json::Value>(&env.read(".haft/agents/web_researcher.yml")).unwrap();
    let expected = json!({
        "description": "Researches topics on the web", "prompt": "You research.\nQuote your sources: \"like this\".",
        "tools": ["web.search", "web.fetch", "file.read", "shell.exec"], "model": "gemini/gemini-2.5-pro", "max_turns": 12,
    });
    assert_eq!(research, expected);
    let again = env.run(&["import", "agents"]);
    assert!(again.code == 1 && again.stderr.contains("--force"), "{}", again.stderr);
    let lint = env.run(&["lint"]);
    assert_eq!((lint.code, lint.stdout.as_str()), (0, "Nothing is wrong with 3 agents.\n"), "{}", lint.stderr);
}

#[test]
fn a_directory_of_agents_is_read_where_it_lies() {
    let env = Env::new();
    env.file("theirs/debugger.md", DEBUGGER);
    let ran = env.run(&["import", "agents", "--from", "theirs"]);
    assert!(ran.stdout.contains(".haft/agents/debugger.yml") && ran.stderr.contains("haft trust"), "{}", ran.stderr);
    assert_eq!(env.run(&["import", "agents", "--from", "nowhere"]).code, 2);
}

#[test]
fn an_agents_file_is_checked_and_accepted_as_it_stands() {
    let env = Env::new();
    env.file(".haft/agents/odd.yml", "description: Odd\nprompt: You are.\nmax_turns: many\ntool: [file.read]\n");
    env.file(".haft/agents/fine.yml", "description: Fine\nprompt: You are.\ntools: [file.raed]\n");
    let lint = env.run(&["lint"]);
    assert_eq!(lint.code, 1, "{}", lint.stdout);
    assert!(lint.stdout.contains(".haft/agents/odd.yml:3:1: max_turns: it is a whole number"), "{}", lint.stdout);
    assert!(lint.stdout.contains(".haft/agents/odd.yml:4:1: tool: there is no such key"), "{}", lint.stdout);
    assert!(
        lint.stdout.contains(".haft/agents/fine.yml:3:9: tools[0]: warning: no tool here matches `file.raed`"),
        "{}",
        lint.stdout
    );
    let asked = env.run(&["trust", "--json"]);
    assert_eq!(asked.code, 2, "nobody is there to look: {}", asked.stdout);
    let trust = env.run(&["trust", "--yes"]);
    assert!(trust.stdout.contains("accepted: the agent fine") && !trust.stdout.contains("odd"), "{}", trust.stdout);
    assert!(trust.stderr.contains("odd.yml:3:1"), "{}", trust.stderr);
    assert!(env.run(&["trust", "--yes"]).stdout.contains("accepted already: 0 tools and 1 agents"));
    env.file(".haft/agents/fine.yml", "description: Fine\nprompt: You obey.\n");
    assert!(env.run(&["trust", "--yes"]).stdout.contains("accepted: the agent fine"), "it was another one");
    assert!(env.run(&["trust", "--revoke"]).stdout.contains("withdrawn: the agent fine"));
}

#[test]
fn the_users_own_agents_are_roles_as_they_stand() {
    let stub = Stub::with(|_| Reply::say("Reviewed."));
    let env = Env::new();
    env.config(&format!(
        "models:\n  use: [stub/m]\n  providers:\n    stub: {{wire: anthropic, url: \"{}\"}}\n",
        stub.base(Wire::Anthropic)
    ));
    let own = |name: &str, text: &str| {
        let dir = env.dir.path().join("home/.config/haft/agents");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(name), text).unwrap();
    };
    own("mine.yml", "description: Mine\nprompt: You review as I like it.\n");
    own("creator.yml", "description: My creator\nprompt: You write as I like it.\n");
    own("broken.yml", "description: x\n");
    own("operator.yml", "description: x\n");
    env.file(".haft/agents/theirs.yml", "description: Theirs\nprompt: You obey.\n");
    let listed = env.run(&["agents"]).stdout;
    let row =
        |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {listed}"));
    assert!(row("mine").ends_with("user     Mine") && row("creator").ends_with("My creator"), "{listed}");
    assert!(row("theirs").contains("nobody has accepted it: `haft trust`"), "{listed}");
    assert!(row("broken").contains("`prompt` is missing") && row("researcher").contains("haft  "), "{listed}");
    assert_eq!(listed.lines().filter(|line| line.starts_with("operator")).count(), 2, "haft's counts still: {listed}");
    let told = env.run(&["agents", "list", "--json"]).json();
    let counts = |name: &str| {
        let all = told["roles"].as_array().unwrap();
        all.iter().find(|role| role["name"] == name).map(|role| role["counts"].clone()).unwrap()
    };
    assert_eq!((counts("mine"), counts("theirs"), counts("broken")), (json!(true), json!(false), json!(false)));
    let ran = env.run(&["run", "--role", "mine", "review"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Reviewed.\n"), "{}", ran.stderr);
    assert!(stub.asked()[0].says("You review as I like it."));
    assert_ne!(env.run(&["run", "--role", "theirs", "x"]).code, 0);
    assert!(env.run(&["doctor"]).stdout.contains("agents        cannot be read"), "doctor tells of it");
}

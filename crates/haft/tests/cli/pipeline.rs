//! Pipelines from the command line.

use crate::Env;

const DEMO: &str = r#"
description: A little of everything
inputs:
  n: {default: 20}
steps:
  - {id: sum, tool: calc.eval, args: {expression: "{{n}} + 1"}}
  - {id: double, tool: calc.eval, args: {expression: "2 * {{sum}}"}}
  - {id: write, tool: file.write, args: {path: out.txt, content: "it is {{double}}\n"}}
  - {id: ship, ask: "Ship {{double}}?", needs: [write]}
  - {id: read, tool: file.read, args: {path: out.txt}, needs: [ship]}
output: "{{read.output}}"
"#;

fn run_of(env: &Env) -> String {
    env.run(&["pipeline", "runs", "--json"]).json()[0]["run"].as_str().unwrap().to_owned()
}

fn trust(env: &Env) {
    let trusted = env.run(&["trust", "--yes"]);
    assert_eq!(trusted.code, 0, "{}{}", trusted.stdout, trusted.stderr);
}

#[test]
fn a_workflow_is_listed_drawn_foreseen_and_run() {
    let env = Env::new();
    env.file(".haft/workflows/demo.yml", DEMO);
    env.file(".haft/workflows/odd.yml", "steps:\n  - {id: a, tool: t, needs: [b]}\n");
    let listed = env.run(&["pipeline", "list"]).stdout;
    assert!(listed.contains("demo  5 steps  untrusted; `haft trust` shows it and asks"), "{listed}");
    assert!(listed.contains("waits for `b`, and there is none"), "{listed}");
    let drawn = env.run(&["pipeline", "show", "demo"]).stdout;
    assert!(drawn.contains("· sum\n    · double ◄─ sum\n"), "{drawn}");
    let dry = env.run(&["pipeline", "run", "demo", "--dry-run"]);
    assert!(dry.code == 0 && dry.stdout.contains("later: it depends on double"), "{}{}", dry.stdout, dry.stderr);
    assert!(!env.root().join("out.txt").exists());
    let early = env.run(&["pipeline", "run", "demo", "--yes"]);
    assert!(early.code == 3 && early.stderr.contains("nobody has accepted it"), "{}", early.stderr);
    let looked = env.run(&["trust"]);
    assert!(looked.code == 2 && looked.stderr.contains("    description: A little of everything"), "{}", looked.stderr);
    trust(&env);
    let ran = env.run(&["pipeline", "run", "demo", "--input", "n=20", "--yes"]);
    assert!(ran.code == 0 && ran.stdout.contains("it is 42"), "{}{}", ran.stdout, ran.stderr);
    let missing = env.run(&["pipeline", "run", "demos"]);
    assert!(missing.code == 1 && missing.stderr.contains("there is no pipeline `demos`"), "{}", missing.stderr);
    let wrong = env.run(&["pipeline", "run", "odd"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("odd.yml: "), "{}", wrong.stderr);
}

#[test]
fn what_waits_for_a_person_is_gone_on_with() {
    let env = Env::new();
    env.file(".haft/workflows/demo.yml", DEMO);
    trust(&env);
    let waits = env.run(&["pipeline", "run", "demo", "--no-input"]);
    assert_eq!(waits.code, 4, "{}{}", waits.stdout, waits.stderr);
    let run = run_of(&env);
    let runs = env.run(&["pipeline", "runs"]).stdout;
    assert!(runs.contains("  asking  2/5  demo"), "{runs}");
    let runs = env.run(&["pipeline", "runs", "--json"]).json();
    assert_eq!((&runs[0]["state"], &runs[0]["stands"]), (&"running".into(), &"asking".into()), "{runs:#}");
    for _ in ["write", "ship"] {
        let asked = env.run(&["approvals", "list", "--json"]).json();
        let id = asked[0]["id"].as_str().unwrap().to_owned();
        assert!(id.starts_with(&run), "{id}");
        assert_eq!(env.run(&["approvals", "approve", &id]).code, 0);
        env.run(&["pipeline", "resume", &run[..12], "--no-input"]);
    }
    let seen = env.run(&["pipeline", "show", &run, "--json"]).json();
    assert_eq!(seen["state"], "done", "{seen:#}");
    assert_eq!(env.read("out.txt"), "it is 42\n");
    let over = env.run(&["pipeline", "cancel", &run]);
    assert!(over.code == 1 && over.stderr.contains("is over already"), "{}", over.stderr);
}

#[test]
fn a_workflow_is_accepted_as_it_is_and_what_changed_is_shown() {
    let env = Env::new();
    env.file(".haft/workflows/demo.yml", DEMO);
    let trusted = env.run(&["trust", "--yes", "--json"]).json();
    assert_eq!(trusted["workflows"][0]["name"], "demo", "{trusted:#}");
    assert!(env.run(&["trust"]).stdout.contains("accepted already: 0 tools and 1 workflows"));
    env.file(".haft/workflows/demo.yml", DEMO.replace("2 *", "3 *"));
    let changed = env.run(&["pipeline", "run", "demo", "--yes"]);
    assert!(changed.code == 3 && changed.stderr.contains("has changed since it was accepted"), "{}", changed.stderr);
    assert!(env.run(&["pipeline", "run", "demo", "--dry-run"]).code == 0 && env.run(&["lint"]).code == 0);
    let looked = env.run(&["trust"]).stderr;
    assert!(looked.contains("+  - {id: double, tool: calc.eval, args: {expression: \"3 *"), "{looked}");
    trust(&env);
    assert_eq!(env.run(&["pipeline", "run", ".haft/workflows/demo.yml", "--yes"]).code, 0);
    let revoked = env.run(&["trust", "--revoke"]).stdout;
    assert!(revoked.contains("withdrawn: the workflow demo"), "{revoked}");
    assert_eq!(env.run(&["pipeline", "run", "demo", "--yes"]).code, 3);
}

#[test]
fn a_file_is_run_by_its_path_if_it_is_a_workflow_of_the_project() {
    let env = Env::new();
    env.file("elsewhere.yml", DEMO);
    let outside = env.run(&["pipeline", "run", "elsewhere.yml"]);
    assert!(outside.code == 2 && outside.stderr.contains("is no workflow of this project"), "{}", outside.stderr);
    let missing = env.run(&["pipeline", "run", "missing.yml"]);
    assert!(missing.code == 1 && missing.stderr.contains("missing.yml: "), "{}", missing.stderr);
}

#[test]
fn a_yes_is_not_for_what_is_asked_elsewhere() {
    let env = Env::new();
    env.file(".haft/workflows/demo.yml", DEMO);
    trust(&env);
    let refused = env.run(&["pipeline", "run", "demo", "--background", "--yes"]);
    assert!(
        refused.code == 2 && refused.stderr.contains("with --background nothing is asked here"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("haft approvals grant"), "{}", refused.stderr);
    assert_eq!(env.run(&["pipeline", "runs", "--json"]).json(), serde_json::json!([]), "nothing was begun");
    assert_eq!(env.run(&["pipeline", "run", "demo", "--background"]).code, 0);
    let run = run_of(&env);
    let shown = env.run(&["pipeline", "show", &run]).stdout;
    assert!(
        shown.contains(": waiting, ") && shown.contains("sum: waits for a worker; none is there: haft worker"),
        "{shown}"
    );
}

#[test]
fn a_label_that_no_worker_has_is_told() {
    let env = Env::new();
    let steps = "steps:\n  - {id: nap, tool: shell.exec, args: {command: sleep 2}}\n  - {id: big, tool: calc.eval, label: gpu, \
                 args: {expression: '1'}}\n";
    env.file(".haft/workflows/big.yml", steps);
    trust(&env);
    let ran = env.run(&["pipeline", "run", "big", "--yes"]);
    let said = "big: waits for a worker with the label `gpu`; none is there: haft worker --label gpu";
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(said), "while the other runs: {}", ran.stderr);
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    let shown = env.run(&["pipeline", "show", &run_of(&env)]).stdout;
    assert!(shown.contains(said), "{shown}");
}

#[test]
fn what_nobody_knows_is_in_the_inbox() {
    let env = Env::new();
    env.file(".haft/workflows/nap.yml", "steps:\n  - {id: nap, tool: shell.exec, args: {command: sleep 60}}\n");
    trust(&env);
    let mut lost = env.command(&["pipeline", "run", "nap", "--yes"]).spawn().unwrap();
    let db = || rusqlite::Connection::open(env.store()).unwrap();
    let intent =
        "SELECT EXISTS (SELECT 1 FROM journal JOIN steps ON steps.call_id = journal.call_id WHERE kind = 'intent')";
    for _ in 0..600 {
        if env.store().exists() && db().query_row(intent, [], |row| row.get::<_, bool>(0)).unwrap_or(false) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    lost.kill().unwrap();
    lost.wait().unwrap();
    // Its lease would end in a while; whoever looks after it then finds the intent and no end.
    db().execute("UPDATE steps SET lease_ms = 1 WHERE state = 'running'", []).unwrap();
    let run = run_of(&env);
    env.run(&["pipeline", "resume", &run, "--no-input"]);
    let settle = format!("haft pipeline settle {run} nap done|failed|again");
    let listed = env.run(&["approvals", "list"]).stdout;
    assert!(listed.contains("steps of which nobody knows") && listed.contains(&settle), "{listed}");
    let listed = env.run(&["approvals", "list", "--json"]).json();
    assert_eq!(
        (&listed[0]["state"], &listed[0]["settle"]),
        (&"uncertain".into(), &settle.clone().into()),
        "{listed:#}"
    );
    let shown = env.run(&["pipeline", "show", &run]).stdout;
    assert!(shown.contains(": uncertain, ") && shown.contains(&settle), "{shown}");
    let shown = env.run(&["pipeline", "show", &run, "--json"]).json();
    assert_eq!((&shown["stands"], &shown["steps"][0]["remedy"]), (&"uncertain".into(), &settle.into()), "{shown:#}");
    assert_eq!(env.run(&["pipeline", "settle", &run, "nap", "done"]).code, 0);
    assert_eq!(env.run(&["approvals", "list", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn people_plan_capture_and_promote() {
    let env = Env::new();
    let plan = "summary: Make a number\nphases:\n  - name: Number\n    steps: [compute]\n    calls: [{tool: calc.eval, args: \
                {expression: 6*7}}]\n";
    env.file("plan.yml", plan);
    let asked = env.run(&["pipeline", "plan", "plan.yml", "--no-input"]);
    assert_eq!(asked.code, 4, "{}{}", asked.stdout, asked.stderr);
    let planned = env.run(&["pipeline", "plan", "plan.yml", "--name", "number", "--yes"]);
    assert!(planned.code == 0 && planned.stdout.contains("1. Number"), "{}{}", planned.stdout, planned.stderr);
    let ran = env.run(&["pipeline", "run", "number"]);
    assert!(ran.code == 0 && ran.stdout.contains("42"), "{}{}", ran.stdout, ran.stderr);
    env.file("odd.yml", "summary: [");
    assert_eq!(env.run(&["pipeline", "plan", "odd.yml", "--yes"]).code, 2);
    for path in ["a.txt", "a.txt"] {
        env.ok("file.write", serde_json::json!({"path": path, "content": "hello\n"}));
    }
    for _ in 0..2 {
        env.ok("shell.exec", serde_json::json!({"command": "cat a.txt"}));
    }
    let captured = env.run(&["pipeline", "capture", "greet", "--description", "Say hello", "--yes", "--json"]).json();
    let steps = captured["data"]["plan"]["steps"].as_array().unwrap();
    let commands: Vec<_> = steps.iter().filter_map(|step| step["args"]["command"].as_str()).collect();
    assert_eq!(commands, ["cat a.txt", "cat a.txt"], "a command is no input: {captured:#}");
    let promoted = env.run(&["pipeline", "promote", "greet", "--value", "path=b.txt", "--yes"]);
    assert!(promoted.code == 0 && promoted.stdout.contains("greet is a pipeline now"), "{}", promoted.stderr);
    let odd = env.run(&["pipeline", "promote", "greet", "--value", "path", "--yes"]);
    assert_eq!(odd.code, 2, "{}", odd.stderr);
}

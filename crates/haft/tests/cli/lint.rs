//! Tools that are files, as whoever writes them meets haft: `haft lint`, `haft new`, `haft config schema --tool`.

use crate::Env;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const GOOD: &str = "\
name: NAME
description: Look something up
kind: http
version: 1
inputs: {schema: {type: object, properties: {q: {type: string}}}}
outputs: {format: json}
exec: {http: {method: GET, url: \"https://a.test/${q}\"}}
permissions: {network: [a.test], fs: {read: [], write: []}}
approval: {required: false}
";

fn tool(env: &Env, name: &str, from: &str, to: &str) {
    assert!(GOOD.contains(from), "{from}");
    env.file(&format!(".haft/tools/{name}/tool.yml"), GOOD.replace("NAME", name).replace(from, to));
}

#[test]
fn nothing_wrong_is_one_sentence() {
    let env = Env::new();
    let ran = env.run(&["lint"]);
    assert!(ran.code == 0 && ran.stdout.starts_with("There are no tools in .haft/tools"), "{}", ran.stdout);
    tool(&env, "look", "", "");
    env.file(".glee/tools/other/tool.yml", GOOD.replace("NAME", "other"));
    env.file(".haft/tools/README.md", "no tool");
    let ran = env.run(&["lint"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "Nothing is wrong with 2 tools.\n", ""));
    let elsewhere = env.root();
    let there = env.command(&["lint", "--root", elsewhere.to_str().unwrap()]).current_dir("/").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&there.stdout), "Nothing is wrong with 2 tools.\n");
}

#[test]
fn schema_that_a_provider_cannot_take_is_a_warning_wherever_the_tool_is_registered() {
    let env = Env::new();
    let schema = "properties: {q: {type: string}}, anyOf: [{required: [q]}]";
    tool(&env, "look", "properties: {q: {type: string}}", schema);
    let warning = "`look` is declared to anthropic with a looser schema: `anyOf` at the top level";
    let lint = env.run(&["lint"]);
    assert_eq!(lint.code, 0, "{}", lint.stdout);
    let report = lint.stdout.lines().find(|text| text.contains(warning)).unwrap_or_default();
    assert!(report.starts_with(".haft/tools/look/tool.yml:5:") && report.contains(": warning: "), "{}", lint.stdout);
    assert_eq!(env.run(&["lint", "--strict"]).code, 1);
    let looked = env.run(&["trust"]);
    assert!(looked.code == 2 && looked.stderr.contains(warning), "{}", looked.stderr);
    let trusted = env.run(&["trust", "--yes"]);
    assert!(trusted.code == 0 && trusted.stderr.contains(warning), "{}", trusted.stderr);
    let doctor = env.run(&["doctor"]);
    let check = doctor.stdout.lines().find(|text| text.contains(warning)).unwrap_or_default();
    assert!(check.starts_with("care  provider "), "{}", doctor.stdout);
}

#[test]
fn each_flaw_is_a_line_and_no_bad_tool_hides_another() {
    let env = Env::new();
    tool(&env, "a_shape", "version: 1", "version: one");
    tool(&env, "b_yaml", "kind: http", "kind: http\nkind: http");
    tool(&env, "c_lint", "${q}", "${query}");
    tool(&env, "d_good", "", "");
    std::fs::create_dir_all(env.root().join(".haft/tools/e_empty")).unwrap();
    env.file(".haft/tools/f_bytes/tool.yml", b"x: y\nb: \xff\n");
    env.file(".haft/tools/g_large/tool.yml", "x".repeat(10 << 20));
    env.file(".haft/tools/h_yaml/tool.yaml", "");
    let ran = env.run(&["lint"]);
    assert_eq!(ran.code, 1);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            ".haft/tools/a_shape/tool.yml:4:1: version: expected integer, got string \"one\"",
            ".haft/tools/b_yaml/tool.yml:4:1: the key `kind` is given twice",
            ".haft/tools/c_lint/tool.yml:5:46: inputs.schema.properties.q: warning: is declared and not used: whoever gives it is not heard",
            ".haft/tools/c_lint/tool.yml:7:28: exec.http.url: `query` is used and not declared; name it under `inputs.schema.properties`",
            ".haft/tools/e_empty/tool.yml: is not there, so the directory is no tool",
            ".haft/tools/f_bytes/tool.yml:2:4: has a byte here that is not UTF-8",
            ".haft/tools/g_large/tool.yml:1:1: it is larger than 256 KiB, and a manifest may not be",
            ".haft/tools/h_yaml/tool.yml: is not there; tool.yaml is, and has to be called tool.yml",
            "7 errors, 1 warning in 8 tools.",
        ]
    );
    let one = env.run(&["lint", "d_good"]);
    assert_eq!((one.code, one.stdout.as_str()), (0, "Nothing is wrong with 1 tool.\n"));
    let none = env.run(&["lint", "d_god"]);
    assert!(none.code == 2 && none.stderr.contains("did you mean `d_good`?"), "{}", none.stderr);
}

#[test]
fn warnings_are_no_errors_unless_asked_for() {
    let env = Env::new();
    tool(&env, "look", "properties: {q:", "properties: {unused: {type: string}, q:");
    let ran = env.run(&["lint"]);
    assert!(ran.code == 0 && ran.stdout.ends_with("1 warning in 1 tool, no errors.\n"), "{}", ran.stdout);
    assert_eq!(env.run(&["lint", "--strict"]).code, 1);
}

#[test]
fn what_is_mechanical_is_mended_in_place() {
    let env = Env::new();
    let broken = GOOD
        .replace("name: NAME", "name: other # the name")
        .replace("{required: false}", "\n\trequired: true # ask")
        .replace("read: []", "read: [\".\"]");
    let path = env.file(".haft/tools/look/tool.yml", &broken);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(env.run(&["lint"]).code, 1);
    assert_eq!(env.read(".haft/tools/look/tool.yml"), broken, "only with --fix");
    let ran = env.run(&["lint", "--fix"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "4 flaws mended; Nothing is wrong with 1 tool.\n"));
    let mended = env.read(".haft/tools/look/tool.yml");
    assert!(mended.starts_with("name: look # the name\n"), "{mended}");
    assert!(
        mended.ends_with("approval: \n  required: true # ask\n  reason: \"Sends a GET request to a.test\"\n"),
        "{mended}"
    );
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(env.run(&["lint", "--fix"]).stdout, "Nothing is wrong with 1 tool.\n");
    assert_eq!(env.read(".haft/tools/look/tool.yml"), mended);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn programs_and_modules_are_looked_at() {
    let env = Env::new();
    let command = "name: run\ndescription: Run\nkind: command\nversion: 1\ninputs: {schema: {type: object}}\n\
        outputs: {format: text}\nexec: {command: {entrypoint: ENTRY}}\n\
        permissions: {network: false, fs: {read: [], write: []}}\napproval: {required: false}\n";
    let outside = env.root().parent().unwrap().join("outside.sh");
    std::fs::write(&outside, "#!/bin/sh\n").unwrap();
    std::os::unix::fs::symlink(&outside, env.root().join("linked.sh")).unwrap();
    env.file("plain.sh", "#!/bin/sh\n");
    let script = env.file("env.py", "#!/usr/bin/env python3\n");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (entry, code, expected) in [
        ("./gone.sh", 1, "is not there; paths begin at the project's root"),
        ("./plain.sh", 1, "`chmod +x` makes it so"),
        ("../outside.sh", 1, "leads out of the project"),
        ("./linked.sh", 1, "is outside of the project"),
        (outside.to_str().unwrap(), 1, "is outside of the project"),
        ("./env.py", 0, "warning: its first line asks for any `python3`"),
        ("env.py", 0, "warning: is not installed here: a name without a slash is looked up on the PATH"),
        ("sh, cwd: ../..", 1, "exec.command.cwd: leads out of the project"),
        ("sh, cwd: gone", 1, "exec.command.cwd: is not there"),
        ("no-such-program-anywhere", 0, "warning: is not installed here"),
        ("/bin/sh", 0, "Nothing is wrong"),
    ] {
        env.file(".haft/tools/run/tool.yml", command.replace("ENTRY", entry));
        let ran = env.run(&["lint"]);
        assert!(ran.code == code && ran.stdout.contains(expected), "{entry}: {} {}", ran.code, ran.stdout);
    }
    let python = command.replace("kind: command", "kind: python");
    let python = python.replace("{command: {entrypoint: ENTRY}}", "{python: {module: tools.m, function: run}}");
    env.file(".haft/tools/run/tool.yml", &python);
    assert!(env.run(&["lint"]).stdout.contains("exec.python.module: is not there: neither ./tools/m.py nor"));
    env.file("tools/m.py", "import os, json\nfrom tools import n\nimport requests\n");
    assert!(env.run(&["lint"]).stdout.contains("warning: imports `requests`, and no `venv` says which one"));
    env.file(".haft/tools/run/tool.yml", python.replace("function: run", "function: run, venv: .venv"));
    assert!(env.run(&["lint"]).stdout.contains("`python3 -m venv .venv` makes it"));
    env.file(".venv/bin/python3", "");
    assert!(env.run(&["lint"]).stdout.contains("is no virtual environment below the project"));
    env.file(".venv/pyvenv.cfg", "");
    let ran = env.run(&["lint"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Nothing is wrong with 1 tool.\n"));
}

#[test]
fn links_and_pipes_are_not_followed() {
    let env = Env::new();
    let outside = env.root().parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("tool.yml"), "secret: content").unwrap();
    std::fs::create_dir_all(env.root().join(".haft/tools/pipe")).unwrap();
    std::os::unix::fs::symlink(&outside, env.root().join(".haft/tools/linked")).unwrap();
    let pipe = env.root().join(".haft/tools/pipe/tool.yml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let ran = env.run(&["lint", "--fix"]);
    assert_eq!(
        ran.stdout,
        ".haft/tools/linked/tool.yml: is a link that leads out of the project\n\
         .haft/tools/pipe/tool.yml: is not a file\n2 errors in 2 tools.\n"
    );
}

#[test]
fn machines_read_it_as_well() {
    let env = Env::new();
    tool(&env, "a b", "version: 1", "version: 0");
    std::fs::create_dir_all(env.root().join(".haft/tools/none")).unwrap();
    let ran = env.run(&["lint", "--json"]);
    let report = ran.json();
    assert_eq!(ran.code, 1);
    assert_eq!((&report["tools"], &report["errors"], &report["warnings"]), (&json!(2), &json!(3), &json!(0)));
    assert_eq!(report["flaws"][1]["path"], "version");
    assert_eq!(env.run(&["lint", "--format", "text", "--json"]).json(), report, "stdout carries JSON and nothing else");
    let sarif = env.run(&["lint", "--format", "sarif"]).json();
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules: Vec<&str> =
        run["tool"]["driver"]["rules"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(Some(rules[index]), result["ruleId"].as_str());
        assert!(result["message"]["text"].is_string() && result["level"] == "error");
        let place = &result["locations"][0]["physicalLocation"];
        assert!(place["artifactLocation"]["uri"].as_str().is_some_and(|uri| !uri.contains(' ')));
        assert!(place["region"].is_null() || place["region"]["startLine"].as_u64() >= Some(1));
    }
    assert_eq!(results[1]["locations"][0]["physicalLocation"]["region"], json!({"startLine": 4, "startColumn": 1}));
}

#[test]
fn five_thousand_tools_are_looked_at_and_twins_are_told() {
    let env = Env::new();
    for index in 0..5000 {
        tool(&env, &format!("t{index:04}"), "", "");
    }
    env.file(".glee/tools/t0001/tool.yml", GOOD.replace("NAME", "t0001"));
    let ran = env.run(&["lint"]);
    assert_eq!(
        ran.stdout,
        ".glee/tools/t0001/tool.yml:1:1: name: warning: .haft/tools/t0001/tool.yml has the same name, and counts instead\n\
         1 warning in 5001 tools, no errors.\n"
    );
}

#[test]
fn your_own_tools_are_looked_at_when_asked_for() {
    let env = Env::new();
    let dir = env.dir.path().join("home/.config/haft/tools/mine");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("tool.yml"), GOOD.replace("NAME", "yours")).unwrap();
    assert_eq!(env.run(&["lint"]).code, 0);
    let ran = env.run(&["lint", "--global"]);
    assert!(
        ran.stdout.starts_with("~/.config/haft/tools/mine/tool.yml:1:1: name: its directory is `mine`"),
        "{}",
        ran.stdout
    );
}

#[test]
fn paths_of_your_own_tools_begin_beside_them() {
    let env = Env::new();
    let dir = env.dir.path().join("home/.config/haft/tools/mine");
    std::fs::create_dir_all(&dir).unwrap();
    let text = "name: mine\ndescription: Run\nkind: command\nversion: 1\ninputs: {schema: {type: object}}\n\
        outputs: {format: text}\nexec: {command: {entrypoint: ./run.sh}}\n\
        permissions: {network: false, fs: {read: [], write: []}}\napproval: {required: false}\n";
    std::fs::write(dir.join("tool.yml"), text).unwrap();
    let script = env.file("run.sh", "#!/bin/sh\necho the project\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = env.run(&["lint", "--global", "mine"]);
    assert!(ran.code == 1 && ran.stdout.contains("begin beside its manifest"), "{}", ran.stdout);
    assert_eq!(env.err("mine", json!({}), &["--yes"]).1, "there is no program `./run.sh`");
    std::fs::rename(&script, dir.join("run.sh")).unwrap();
    assert_eq!(env.run(&["lint", "--global", "mine"]).stdout, "Nothing is wrong with 1 tool.\n");
    assert_eq!(env.ok("mine", json!({}))["output"], "the project\n");
    // It stands before a project's of its name, whether it is looked at or not.
    tool(&env, "mine", "", "");
    let ran = env.run(&["lint"]);
    assert!(ran.stdout.contains("~/.config/haft/tools/mine/tool.yml has the same name, and counts"), "{}", ran.stdout);
}

#[test]
fn a_pipeline_knows_the_other_tools_and_servers() {
    let env = Env::new();
    let steps = |steps: &str| {
        let text = GOOD.replace("NAME", "pipe").replace("kind: http", "kind: pipeline").replace("[a.test]", "false");
        let (before, after) = text.split_once("exec:").unwrap();
        let after = after.split_once('\n').unwrap().1;
        let output = "\"${q} ${steps.b.success} ${steps.b.data.0.name}\"";
        let exec = format!("exec: {{pipeline: {{steps: [{steps}], output: {output}}}}}");
        env.file(".haft/tools/pipe/tool.yml", format!("{before}{exec}\n{after}"));
    };
    tool(&env, "other", "", "");
    let own = env.dir.path().join("home/.config/haft/tools/mine");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("tool.yml"), GOOD.replace("NAME", "mine")).unwrap();
    env.config("mcp: {servers: {github: {command: none}}}\n");
    steps("{id: a, tool: other}, {id: b, tool: mine}, {id: c, tool: \"mcp:github:search\"}");
    let ran = env.run(&["lint", "pipe"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Nothing is wrong with 1 tool.\n"));
    steps("{id: a, tool: othr}, {id: b, tool: mine}, {id: c, tool: \"mcp:gitlab:search\"}");
    let ran = env.run(&["lint", "pipe"]);
    assert!(ran.code == 1 && ran.stdout.contains("there is no tool `othr`; did you mean `other`?"), "{}", ran.stdout);
    assert!(ran.stdout.contains("tool: warning: no server `gitlab` is bridged here; did you mean"), "{}", ran.stdout);
    env.config("nonsense: [");
    assert!(!env.run(&["lint", "pipe"]).stdout.contains("gitlab"), "what nobody can know is not judged");
}

#[test]
fn a_manifest_beside_the_tools_is_told() {
    let env = Env::new();
    tool(&env, "look", "", "");
    env.file(".haft/tools/notes.md", "fine");
    env.file(".haft/tools/lost.yml", GOOD);
    let ran = env.run(&["lint"]);
    assert_eq!(
        ran.stdout,
        ".haft/tools/lost.yml: warning: is no tool: a tool is a directory with a tool.yml in it\n\
         1 warning in 1 tool, no errors.\n"
    );
    assert_eq!(env.run(&["lint", "look"]).stdout, "Nothing is wrong with 1 tool.\n");
}

#[test]
fn a_network_is_narrowed_to_the_host_that_is_asked() {
    let env = Env::new();
    tool(&env, "wide", "network: [a.test]", "network: true");
    let ran = env.run(&["lint"]);
    assert!(ran.code == 0 && ran.stdout.contains("the request goes to `a.test` alone"), "{}", ran.stdout);
    assert_eq!(env.run(&["lint", "--strict"]).code, 1);
    assert_eq!(env.run(&["lint", "--fix"]).stdout, "1 flaw mended; Nothing is wrong with 1 tool.\n");
    assert!(env.read(".haft/tools/wide/tool.yml").contains("network: [\"a.test\"]"));
}

#[test]
fn a_broken_configuration_does_not_matter() {
    let env = Env::new();
    env.config("nonsense: [");
    tool(&env, "look", "", "");
    assert_eq!(env.run(&["lint"]).code, 0);
    assert_eq!(env.run(&["new", "fresh", "--kind", "command"]).code, 0);
}

#[test]
fn every_new_tool_is_clean_and_nothing_is_overwritten() {
    let env = Env::new();
    for kind in ["http", "command", "python", "mcp", "pipeline"] {
        let ran = env.run(&["new", &format!("my_{kind}"), "--kind", kind]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.starts_with(&format!("made .haft/tools/my_{kind}/tool.yml\n")), "{}", ran.stdout);
    }
    let ran = env.run(&["lint"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (
            0,
            ".haft/tools/my_mcp/tool.yml:23:5: exec.mcp.server: warning: no server `documents` is bridged here; \
             `haft mcp add documents` bridges it\n1 warning in 5 tools, no errors.\n"
        )
    );
    assert!(env.read(".haft/tools/my_http/tool.yml").contains("${API_KEY}"));
    let script = env.root().join(".haft/tools/my_command/run.sh");
    assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o111, 0o111);
    let greeted = std::process::Command::new(&script).args(["--", "$(id) Ada"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&greeted.stdout), "Hello, $(id) Ada!\n");
    let before = crate::snapshot(&env.root());
    let again = env.run(&["new", "my_http", "--kind", "command"]);
    assert!(again.code == 1 && again.stderr.contains("is there already"), "{}", again.stderr);
    for bad in ["../x", "a.b", "a:b", "9a", "", "a b"] {
        let ran = env.run(&["new", "--kind", "http", "--", bad]);
        assert!(ran.code == 2 && ran.stderr.contains("cannot be a tool's name"), "{bad}: {}", ran.stderr);
    }
    assert_eq!(crate::snapshot(&env.root()), before);
}

#[test]
fn nothing_new_is_led_out_of_the_project() {
    let env = Env::new();
    let outside = env.root().parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::create_dir(env.root().join(".haft")).unwrap();
    std::os::unix::fs::symlink(&outside, env.root().join(".haft/tools")).unwrap();
    let ran = env.run(&["new", "x", "--kind", "http"]);
    assert!(ran.code == 1 && ran.stderr.contains("leads out of the project"), "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn editors_get_the_schema_that_is_checked() {
    let env = Env::new();
    let schema = env.run(&["config", "schema", "--tool"]).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["kind"]["enum"], json!(["http", "command", "python", "mcp", "pipeline"]));
    assert!(env.run(&["config", "schema"]).json() != schema);
    let wrong = env.run(&["config", "--tool"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("haft config schema --tool"), "{}", wrong.stderr);
}

#[test]
fn workflows_are_checked_with_the_tools() {
    let env = Env::new();
    env.file(".haft/workflows/good.yml", "steps:\n  - {id: a, tool: calc.eval, args: {expression: '1'}}\n");
    let ran = env.run(&["lint"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Nothing is wrong with 1 workflow.\n"));
    tool(&env, "look", "", "");
    env.file(".glee/workflows/named.yml", "steps:\n  - id: a\n    tool: calc.evl\n  - id: b\n    pipeline: god\n");
    let ran = env.run(&["lint"]);
    let warnings = "\
.glee/workflows/named.yml:3:5: steps[0].tool: warning: there is no tool `calc.evl`; did you mean `calc.eval`?
.glee/workflows/named.yml:5:5: steps[1].pipeline: warning: no workflow here is called `god`; did you mean `good`?
2 warnings in 1 tool and 2 workflows, no errors.
";
    assert_eq!((ran.code, ran.stdout.as_str()), (0, warnings));
    assert_eq!(env.run(&["lint", "--strict"]).code, 1);
    env.file(
        ".haft/workflows/round.yml",
        "steps:\n  - {id: a, wait: 1s, needs: [b]}\n  - {id: b, wait: 1s, needs: [a]}\n",
    );
    env.file(".haft/workflows/torn.yml", "steps: [\n");
    let ran = env.run(&["lint"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("Dependency cycle detected: a → b → a"), "{}", ran.stdout);
    assert!(ran.stdout.contains(".haft/workflows/torn.yml:"), "{}", ran.stdout);
    let json = env.run(&["lint", "--format", "json"]).json();
    assert_eq!((&json["workflows"], &json["warnings"]), (&json!(4), &json!(2)), "{json:#}");
    let sarif = env.run(&["lint", "--format", "sarif"]).json();
    let run = &sarif["runs"][0];
    for result in run["results"].as_array().unwrap() {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
    }
    assert_eq!(env.run(&["lint", "look"]).code, 0, "whoever names a tool asks about that one");
}

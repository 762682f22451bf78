//! A yes to a command is for the bytes that it runs: programs, scripts, what they source, what build tools read.

use crate::Env;
use crate::process::{has, until};
use crate::shell::scene;
use crate::terminal::typed;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Writes a file of the project that can be run.
fn program(env: &Env, path: &str, content: &str) {
    let path = env.file(path, content);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes a call that nobody answers, and returns the id of its question.
fn ask(env: &Env, command: &str) -> String {
    let (outcome, code) = env.call("shell.exec", json!({ "command": command }), &["--no-input"]);
    assert_eq!((code, outcome["error"]["kind"].as_str()), (4, Some("approval_required")), "{command}: {outcome:#}");
    outcome["error"]["details"]["approval_id"].as_str().unwrap().to_owned()
}

#[test]
fn script_rewritten_after_the_question_does_not_run_and_is_asked_anew() {
    let Some(env) = scene() else { return };
    program(&env, "build.sh", "#!/bin/sh\necho one > out.txt\n");
    let id = ask(&env, "./build.sh");
    let stored = env.run(&["approvals", "show", &id, "--json"]).json();
    let old = stored["executed"][0]["sha256"].as_str().unwrap()[..12].to_owned();
    assert_eq!(stored["executed"][0]["path"], "build.sh", "{stored:#}");
    let shown = env.run(&["approvals", "show", &id]).stdout;
    assert!(shown.contains(&format!("runs ./build.sh (sha256 {old}")), "{shown}");
    env.file("build.sh", "#!/bin/sh\necho two > out.txt\n");
    let ran = env.run(&["approvals", "approve", &id]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains(&format!("what it runs has changed: ./build.sh (sha256 {old}")), "{}", ran.stderr);
    assert!(!env.root().join("out.txt").exists());
    // It is asked as it is now, and says what changed.
    let shown = env.run(&["approvals", "show", &id]).stdout;
    assert!(!shown.contains(&format!("runs ./build.sh (sha256 {old}")), "{shown}");
    assert!(shown.contains("changed since it was asked: ./build.sh"), "{shown}");
    let listed = env.run(&["approvals"]).stdout;
    assert!(listed.contains(&format!("changed since it was asked: ./build.sh (sha256 {old}")), "{listed}");
    let ran = env.run(&["approvals", "approve", &id]);
    assert_eq!((ran.code, env.read("out.txt").as_str()), (0, "two\n"), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn every_file_that_a_command_runs_is_bound_to_its_approval() {
    let Some(env) = scene() else { return };
    env.file("sub/package.json", r#"{"scripts": {"build": "node build.js"}}"#);
    env.file("sub/build.js", "1\n");
    env.file("chain/package.json", r#"{"scripts": {"build": "npm run compile", "compile": "sh scripts/compile.sh"}}"#);
    env.file("chain/scripts/compile.sh", "true\n");
    env.file("sub/both.sh", ". sub/deep.sh\n");
    program(&env, "bin/mytool", "#!/bin/sh\n");
    env.file("sub/build.rs", "fn main() {}\n");
    env.file("sub/Cargo.toml", "[package]\n");
    env.file("sub/compose.yaml", "services: {}\n");
    env.file("sub/Makefile", "include rules.mk\nall:\n\ttouch made\n");
    env.file("sub/rules.mk", "x = 1\n");
    env.file("sub/lib.sh", ". \"$(dirname \"$0\")/deep.sh\"\n");
    env.file("sub/deep.sh", "true\n");
    env.file("sub/x.py", "print(1)\n");
    env.file("sub/prog.awk", "{ print }\n");
    env.file("sub/tool", "#!sub/interpreter\n");
    program(&env, "sub/interpreter", "#!/bin/sh\n");
    program(&env, "sub/run.sh", "#!/usr/bin/env bash\nset -e\nsource sub/lib.sh\npython3 sub/x.py\n");
    let cases = [
        ("sub/run.sh", "sub/run.sh"),
        ("sub/run.sh", "sub/lib.sh"),
        ("bash sub/run.sh", "sub/deep.sh"),
        ("timeout 5 sub/run.sh", "sub/x.py"),
        (". sub/lib.sh; touch x", "sub/lib.sh"),
        ("python3 -u sub/x.py --fast", "sub/x.py"),
        ("cd sub && python3 < x.py", "sub/x.py"),
        ("make -C sub", "sub/Makefile"),
        ("make -C sub", "sub/rules.mk"),
        ("make -C sub", "sub/GNUmakefile"),
        ("cd sub && npm run build", "sub/build.js"),
        ("cd sub && npm run build", "sub/package.json"),
        ("cd sub && cargo build", "sub/build.rs"),
        ("cd sub && docker compose up", "sub/compose.yaml"),
        ("awk -f sub/prog.awk sub/x.py", "sub/prog.awk"),
        ("sub/tool", "sub/interpreter"),
        ("cd chain && npm run build", "chain/scripts/compile.sh"),
        ("awk -f sub/both.sh /dev/null; sh ./sub/both.sh", "sub/deep.sh"),
        ("PATH=$PWD/bin:$PATH mytool", "bin/mytool"),
        ("(sh() { :; }); sh ./sub/run.sh", "sub/run.sh"),
        ("bash -s -- x < sub/lib.sh", "sub/lib.sh"),
    ];
    for (command, file) in cases {
        let id = ask(&env, command);
        let before = std::fs::read(env.root().join(file)).unwrap_or_default();
        env.file(file, [before.as_slice(), b"\n# changed\n"].concat());
        let ran = env.run(&["approvals", "approve", &id]);
        let (said, named) = ("what it runs has changed: ", format!(" ./{file} ("));
        let is_named = ran.stderr.contains(said) && ran.stderr.contains(&named);
        assert!(ran.code == 1 && is_named, "{command}, {file}: {} {}", ran.stdout, ran.stderr);
        if before.is_empty() {
            std::fs::remove_file(env.root().join(file)).unwrap();
        }
    }
}

#[test]
fn script_swapped_between_the_approval_and_the_start_does_not_run_and_is_asked_anew() {
    let Some(env) = scene() else { return };
    program(&env, "build.sh", "#!/bin/sh\necho one > out.txt\n");
    // The user's hook is asked after the approval is taken and before anything runs.
    let (hook, script) = (env.dir.path().join("home/swap"), env.root().join("build.sh"));
    let swap = format!(
        "#!/bin/sh\nif grep -q '\"origin\":\"approval\"'; then echo '#!/bin/sh\necho two > out.txt' > {}; fi\necho '{{}}'\n",
        script.display()
    );
    std::fs::write(&hook, swap).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.config(&format!("hooks: {{before: [{{tools: [shell.exec], command: [{}]}}]}}\n", hook.display()));
    let id = ask(&env, "./build.sh");
    let ran = env.run(&["approvals", "approve", &id, "--json"]);
    let outcome = ran.json();
    assert_eq!((ran.code, outcome["error"]["kind"].as_str()), (1, Some("conflict")), "{outcome:#}");
    assert_eq!(outcome["error"]["details"]["changed_files"][0]["path"], "./build.sh", "{outcome:#}");
    assert!(!env.root().join("out.txt").exists());
    let again = outcome["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
    assert_ne!(again, id);
    let listed = env.run(&["approvals"]).stdout;
    assert!(listed.contains(&again) && listed.contains("changed since it was approved: ./build.sh"), "{listed}");
    env.config("");
    let ran = env.run(&["approvals", "approve", &again]);
    assert_eq!((ran.code, env.read("out.txt").as_str()), (0, "two\n"), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn approval_for_the_session_ends_when_the_script_changes() {
    let Some(env) = scene() else { return };
    program(&env, "build.sh", "#!/bin/sh\n. ./lib.sh\necho $what > out.txt\n");
    env.file("lib.sh", "what=one\n");
    let call = r#"shell.exec '{"command":"./build.sh"}'"#;
    let (screen, code) = typed(&env, call, "s\n");
    assert_eq!((code, env.read("out.txt").as_str()), (0, "one\n"), "{screen}");
    assert!(screen.contains("runs ./build.sh (sha256 ") && screen.contains("runs ./lib.sh (sha256 "), "{screen}");
    let args = json!({"command": "./build.sh"});
    let (outcome, code) = env.call("shell.exec", args.clone(), &["--no-input"]);
    assert_eq!((code, outcome["verdict"]["by"].as_str()), (0, Some("grant")), "{outcome:#}");
    env.file("lib.sh", "what=two\n");
    let (outcome, code) = env.call("shell.exec", args.clone(), &["--no-input"]);
    assert_eq!((code, env.read("out.txt").as_str()), (4, "one\n"), "{outcome:#}");
    let reason = outcome["error"]["message"].as_str().unwrap();
    assert!(reason.contains("changed since it was approved: ./lib.sh (sha256 "), "{reason}");
    env.file("lib.sh", "what=one\n");
    assert_eq!(env.call("shell.exec", args, &["--no-input"]).1, 0, "it is what was approved again");
}

#[test]
fn what_goes_beyond_the_bounds_is_said_and_asked_each_time() {
    let Some(env) = scene() else { return };
    let many: Vec<String> = (0..70).map(|number| format!(". ./lib{number}.sh\n")).collect();
    program(&env, "many.sh", &format!("#!/bin/sh\n{}", many.concat()));
    for number in 0..70 {
        env.file(&format!("lib{number}.sh"), "true\n");
    }
    program(&env, "large.sh", &format!("#!/bin/sh\nexit 0\n{}", "#".repeat(5 << 20)));
    for (command, said) in [("./many.sh", "more than 64 files"), ("./large.sh", "not hashed: more than 4 MiB are run")]
    {
        let call = format!("shell.exec '{}'", json!({ "command": command }));
        let (screen, code) = typed(&env, &call, "s\n");
        assert!(code == 0 && screen.contains(said), "{code} {screen}");
        ask(&env, command);
    }
}

#[test]
fn nothing_is_kept_of_a_script_that_is_replaced_while_it_runs() {
    let Some(env) = scene() else { return };
    // It goes on once the project has a file that it has not asked for before: names that were not there may be remembered.
    let script = "#!/bin/sh\necho x > out.txt\ntouch ready\nn=0\n\
                  until [ -e go$n ] || [ $n -gt 600 ]; do n=$((n + 1)); sleep 0.05; done\n";
    for background in [false, true] {
        program(&env, "build.sh", script);
        let args = json!({"command": "./build.sh", "background": background}).to_string();
        let mut command = env.command(&["call", "shell.exec", &args, "--yes", "--json"]);
        let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        until(|| has(&env.data().join("staging"), "ready"));
        // The same text, written again: nobody knows what was there in between.
        std::fs::remove_file(env.root().join("build.sh")).unwrap();
        program(&env, "build.sh", script);
        for number in 0..=600 {
            env.file(&format!("go{number}"), "");
        }
        let outcome: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        let ended = match outcome["data"]["task"]["id"].as_str().filter(|_| background) {
            Some(id) => env.ended(id),
            None => outcome,
        };
        assert_eq!(ended["error"]["kind"], "conflict", "{ended:#}");
        let message = ended["error"]["message"].as_str().unwrap();
        assert!(message.contains("was changed while it ran") && message.contains("build.sh"), "{message}");
        assert!(!env.root().join("out.txt").exists());
        for number in 0..=600 {
            std::fs::remove_file(env.root().join(format!("go{number}"))).unwrap();
        }
    }
}

#[test]
fn nothing_is_kept_of_a_script_whose_directory_or_link_is_swapped_while_it_is_waited_for() {
    let Some(env) = scene() else { return };
    let wait = "touch ready; n=0; until [ -e go$n ] || [ $n -gt 100 ]; do n=$((n + 1)); sleep 0.05; done";
    for dir in ["sc", "sc.evil"] {
        program(&env, &format!("{dir}/x.sh"), &format!("echo {dir} > out.txt\n"));
    }
    std::os::unix::fs::symlink("sc", env.root().join("cur")).unwrap();
    let mv = |from: &str, to: &str| std::fs::rename(env.root().join(from), env.root().join(to)).unwrap();
    let link = |to: &str| {
        std::os::unix::fs::symlink(to, env.root().join("new")).unwrap();
        mv("new", "cur");
    };
    for (script, is_swapped) in [("sc/x.sh", true), ("cur/x.sh", true), ("sc/x.sh", false)] {
        let args = json!({"command": format!("{wait}; sh {script}")}).to_string();
        let mut command = env.command(&["call", "shell.exec", &args, "--yes", "--json"]);
        let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        until(|| has(&env.data().join("staging"), "ready"));
        match (script, is_swapped) {
            (_, false) => drop(env.file("sc/other.txt", "")),
            ("sc/x.sh", _) => {
                mv("sc", "sc.ok");
                mv("sc.evil", "sc");
                mv("sc", "sc.evil");
                mv("sc.ok", "sc");
            }
            _ => {
                link("sc.evil");
                link("sc");
            }
        }
        if is_swapped {
            for number in 0..=600 {
                env.file(&format!("go{number}"), "");
            }
        }
        let outcome: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        if is_swapped {
            assert_eq!(outcome["error"]["kind"], "conflict", "{outcome:#}");
            let path = outcome["error"]["details"]["changed_files"][0]["path"].as_str().unwrap();
            assert!(path.ends_with(script.split('/').next().unwrap()), "{outcome:#}");
            assert!(!env.root().join("out.txt").exists());
        } else {
            // A file beside the script is none that it runs.
            assert_eq!(env.read("out.txt"), "sc\n", "{outcome:#}");
        }
        for number in 0..=600 {
            drop(std::fs::remove_file(env.root().join(format!("go{number}"))));
        }
    }
}

#[test]
fn stored_question_carries_what_came_of_a_trial() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "one\n");
    program(&env, "build.sh", "#!/bin/sh\necho building\necho two >> a.txt\n");
    let id = ask(&env, "./build.sh");
    assert_eq!(env.read("a.txt"), "one\n", "nothing of the trial is kept");
    let shown = env.run(&["approvals", "show", &id]).stdout;
    assert!(shown.contains("trial run from when") && shown.contains("building") && shown.contains("+two"), "{shown}");
    // Of other bytes it says nothing.
    env.file("build.sh", "#!/bin/sh\necho three >> a.txt\n");
    let shown = env.run(&["approvals", "show", &id]).stdout;
    assert!(!shown.contains("trial run from when") && !shown.contains("+two"), "{shown}");
    assert_eq!(env.run(&["approvals", "approve", &id]).code, 0);
    assert_eq!(env.read("a.txt"), "one\nthree\n");
    let kept = env.run(&["approvals", "show", &id, "--json"]).json();
    assert_eq!(kept.get("trial"), None, "{kept:#}");
}

#[test]
fn command_that_was_not_tried_changes_nothing_that_cannot_be_undone() {
    let Some(env) = scene() else { return };
    env.config("undo: {max_file_bytes: 10}\n");
    env.file("large.txt", "more than ten bytes");
    let call = r#"shell.exec '{"command":"echo 2 > large.txt"}'"#;
    let (screen, code) = typed(&env, call, "o\n");
    assert_eq!((code, env.read("large.txt").as_str()), (1, "more than ten bytes"), "{screen}");
    assert!(screen.contains("could not be taken back") && screen.contains("large.txt"), "{screen}");
    let (screen, code) = typed(&env, call, "t\no\n");
    assert_eq!((code, env.read("large.txt").as_str()), (0, "2\n"), "who has seen it may: {screen}");
}

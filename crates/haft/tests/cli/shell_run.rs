//! shell.exec as it runs: what is printed and how it is shown, time, signals, bounds, and what it is given.

use crate::Env;
use crate::shell::{exec, scene};
use crate::terminal::typed;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};

fn text(outcome: &Value) -> &str {
    outcome["output"].as_str().unwrap()
}

#[test]
fn lines_come_in_the_order_in_which_they_were_printed() {
    let Some(env) = scene() else { return };
    let command = "echo one; sleep 0.2; echo two >&2; sleep 0.2; printf three";
    assert_eq!(text(&exec(&env, command).0), "one\n[stderr] two\nthree");
    env.config("shell: {output: separate}\n");
    assert_eq!(text(&exec(&env, command).0), "one\nthree\n[stderr] two\n");
}

#[test]
fn exit_code_and_signal_are_told_apart() {
    let Some(env) = scene() else { return };
    let (outcome, code) = exec(&env, "exit 42");
    assert_eq!((code, &outcome["data"]["exit_code"], &outcome["data"]["signal"]), (1, &json!(42), &Value::Null));
    let (outcome, _) = exec(&env, "echo before; kill -KILL $$");
    assert_eq!((&outcome["data"]["exit_code"], &outcome["data"]["signal"]), (&Value::Null, &json!(9)));
    assert_eq!(text(&outcome), "before\n[ended by signal 9]\n");
    assert!(outcome["data"]["duration_ms"].as_u64().unwrap() < 5000);
}

#[test]
fn how_long_it_took_is_said_of_what_takes_long() {
    let Some(env) = scene() else { return };
    let (outcome, _) = exec(&env, "sleep 5.1");
    assert!(text(&outcome).starts_with("[took 5."), "{outcome:#}");
    let (outcome, _) = exec(&env, "echo quick");
    assert_eq!(text(&outcome), "quick\n");
}

#[test]
fn what_is_not_text_is_replaced_by_a_notice() {
    let Some(env) = scene() else { return };
    let (outcome, code) = exec(&env, "printf '\\x89PNG\\r\\n\\x1a\\n\\0\\0\\0'; echo fine >&2");
    assert_eq!(code, 0);
    let notice = text(&outcome);
    assert!(notice.starts_with("[stderr] fine\n[stdout is not text: PNG, 11 bytes, kept in /"), "{notice}");
    let path = notice.trim_end().trim_end_matches(']').rsplit(' ').next().unwrap();
    assert_eq!(std::fs::read(path).unwrap(), b"\x89PNG\r\n\x1a\n\0\0\0");
}

#[test]
fn a_long_output_keeps_both_ends_and_the_whole_in_a_file() {
    let Some(env) = scene() else { return };
    let (outcome, code) = exec(&env, "seq 1 100000; echo last");
    assert_eq!((code, &outcome["truncated"]), (0, &json!(true)));
    let shown = text(&outcome);
    assert!(shown.starts_with("1\n2\n") && shown.contains("bytes hidden]") && shown.contains("100000\nlast\n"));
    assert!((256 << 10..257 << 10).contains(&shown.len()), "{}", shown.len());
    let path = outcome["full_output"].as_str().unwrap();
    assert!(shown.ends_with(&format!("\n[the whole output is in {path}]")));
    let whole = std::fs::read_to_string(path).unwrap();
    assert_eq!((whole.lines().count(), whole.ends_with("100000\nlast\n")), (100_001, true));
    env.config("shell: {output: separate}\n");
    let (outcome, _) = exec(&env, "seq 1 100000; seq 1 20000 >&2");
    let shown = text(&outcome);
    assert_eq!(shown.matches("bytes hidden]").count(), 2, "each is cut by itself");
    let complaints = shown.find("[stderr] 1\n").unwrap();
    assert!((200 << 10..201 << 10).contains(&complaints), "{complaints}");
    let whole = std::fs::read_to_string(outcome["full_output"].as_str().unwrap()).unwrap();
    assert!(whole.contains("\n100000\n[stderr] 1\n") && whole.ends_with("[stderr] 20000\n"));
}

#[test]
fn a_flood_is_ended_with_both_ends_of_it_and_in_little_memory() {
    let Some(env) = scene() else { return };
    env.config("confinement: {limits: {output: 160m}}\n");
    let args =
        json!({"command": "echo first; echo half > a.txt; yes 0123456789012345678901234567890123456789 | head -c 10G"});
    let haft = env.command(&["call", "shell.exec", &args.to_string(), "--yes", "--json"]);
    // Less address space than is printed: whoever kept it in memory would not live.
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", "ulimit -v 150000; exec \"$@\"", "bash"]).arg(haft.get_program()).args(haft.get_args());
    shell.current_dir(env.root()).env_clear();
    for (name, value) in haft.get_envs() {
        value.map(|value| shell.env(name, value));
    }
    let output = shell.output().unwrap();
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        outcome["error"]["message"],
        "the command reached its limit of output; what it had changed was discarded"
    );
    assert!(outcome["error"]["hint"].as_str().unwrap().contains("confinement.limits"));
    assert!(text(&outcome).starts_with("first\n0123456789") && text(&outcome).contains("bytes hidden]"));
    let kept = std::fs::metadata(outcome["full_output"].as_str().unwrap()).unwrap().len();
    assert!((159 << 20..=160 << 20).contains(&kept), "{kept}");
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn a_fork_bomb_ends_with_a_clear_error() {
    let Some(env) = scene() else { return };
    env.config("confinement: {limits: {processes: 60}}\n");
    let begun = Instant::now();
    // Branches as a bomb does, but only seven times: if nobody stops it, the machine lives on.
    let bomb = "b() { if [ $1 -gt 0 ]; then b $(($1 - 1)) & b $(($1 - 1)) & fi; sleep 20; }; echo half > a.txt; b 7";
    let (outcome, code) = env.call("shell.exec", json!({"command": bomb, "timeout_ms": 20000}), &["--yes"]);
    assert_eq!((code, &outcome["verdict"]["decision"]), (3, &json!("deny")), "it is seen for what it is: {outcome:#}");
    // What stands in a file is not looked at before it runs.
    env.file("bomb.sh", bomb);
    let args = json!({"command": "bash bomb.sh", "timeout_ms": 20000});
    let (outcome, code) = env.call("shell.exec", args, &["--yes"]);
    assert_eq!(code, 1, "{outcome:#}");
    assert!(outcome["error"]["message"].as_str().unwrap().contains("limit of processes"), "{outcome:#}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn what_was_printed_before_the_time_was_up_is_shown() {
    let Some(env) = scene() else { return };
    let command = "exec 2>/dev/null; trap 'echo bye; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    let (outcome, code) = env.call("shell.exec", json!({"command": command, "timeout_ms": 700}), &["--yes"]);
    assert_eq!(code, 6);
    let said = "[the command did not finish in time; what it had changed was discarded]";
    assert!(text(&outcome).starts_with("begun\nbye\n"), "it was asked first, and heard to the end: {outcome:#}");
    assert!(text(&outcome).ends_with(&format!("\n{said}\n")), "{outcome:#}");
}

#[test]
fn whoever_does_not_end_when_asked_is_made_to() {
    let Some(env) = scene() else { return };
    let begun = Instant::now();
    let args = json!({"command": "trap '' TERM; echo deaf; while :; do sleep 0.2; done", "timeout_ms": 300});
    let (outcome, code) = env.call("shell.exec", args, &["--yes"]);
    assert_eq!((code, &outcome["data"]["signal"]), (6, &json!(9)), "{outcome:#}");
    let took = begun.elapsed();
    assert!((Duration::from_secs(5)..Duration::from_secs(12)).contains(&took), "five seconds of grace: {took:?}");
    assert!(text(&outcome).starts_with("deaf\n"));
}

#[test]
fn what_was_printed_before_the_caller_cancelled_is_shown() {
    let Some(env) = scene() else { return };
    let args = json!({"command": "echo begun; echo x > a.txt; touch ready; sleep 60"}).to_string();
    let mut haft = env.command(&["call", "shell.exec", &args, "--yes", "--json"]);
    let child = haft.stdout(Stdio::piped()).spawn().unwrap();
    crate::process::until(|| crate::process::has(&env.data(), "ready"));
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["error"]["kind"], "cancelled", "{outcome:#}");
    assert_eq!(text(&outcome), "begun\n[the call was cancelled]\n");
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn nobody_is_there_to_answer_a_command_that_asks() {
    let Some(env) = scene() else { return };
    let begun = Instant::now();
    let (outcome, _) = exec(&env, "read -p 'Sure? ' answer || echo nobody; cat; echo end");
    assert_eq!(text(&outcome), "nobody\nend\n");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_environment_is_a_list_of_what_passes() {
    let Some(env) = scene() else { return };
    let args = json!({"command": "env"}).to_string();
    let mut haft = env.command(&["call", "shell.exec", &args, "--yes"]);
    haft.env("GITHUB_TOKEN", "hush").env("MY_SETTING", "hush").env("LC_TIME", "C");
    let output = String::from_utf8(haft.output().unwrap().stdout).unwrap();
    assert!(!output.contains("hush") && output.contains("LC_TIME=C") && output.contains("PATH="), "{output}");
}

#[test]
fn a_command_leads_a_group_of_its_own() {
    let Some(env) = scene() else { return };
    // Its own number, its group, its session.
    let (outcome, _) = exec(&env, "set -- $(cat /proc/$$/stat); echo $1 $5 $6");
    let numbers: Vec<&str> = text(&outcome).split_whitespace().collect();
    assert!(numbers.windows(2).all(|pair| pair[0] == pair[1]), "{numbers:?}");
}

#[test]
fn it_starts_where_it_is_told() {
    let Some(env) = scene() else { return };
    env.file("sub/x", "");
    let run = |cwd: &str| env.call("shell.exec", json!({"command": "basename $PWD", "cwd": cwd}), &["--yes"]);
    assert_eq!(text(&run("sub").0), "sub\n");
    assert_eq!(run("nowhere").0["error"]["kind"], "not_found");
    assert_eq!(run("sub/x").0["error"]["message"], "sub/x is not a directory to start in");
}

#[test]
fn times_beyond_the_limit_are_refused() {
    let env = Env::new();
    for bad in [json!(600_001), json!(0), json!(-5), json!("soon")] {
        let args = json!({"command": "true", "timeout_ms": bad});
        let (kind, message, code) = env.err("shell.exec", args, &["--yes"]);
        assert_eq!((kind.as_str(), code), ("invalid_input", 2), "{message}");
    }
}

#[test]
fn another_shell_is_the_users_to_choose() {
    let Some(env) = scene() else { return };
    assert_eq!(text(&exec(&env, "echo ${BASH_VERSION:+bash}").0), "bash\n");
    for program in ["sh", "/bin/sh"] {
        env.config(&format!("shell: {{program: {program}}}\n"));
        // In bash `$0` would say so, too.
        assert!(text(&exec(&env, "cat /proc/$$/cmdline").0).contains("/sh"), "{program}");
    }
    env.config("shell: {program: /nowhere/fish}\n");
    let (outcome, _) = exec(&env, "true");
    assert_eq!(outcome["error"]["message"], "the shell /nowhere/fish is not on this machine");
    env.config("shell: {program: python}\n");
    let ran = env.run(&["tools"]);
    assert!(
        ran.stderr.contains("config.yml:1:18") && ran.stderr.contains("no shell that haft knows"),
        "{}",
        ran.stderr
    );
    env.config("");
    env.file(".haft/config.yml", "shell: {program: /bin/sh}\n");
    let ran = env.run(&["call", "shell.exec", r#"{"command":"echo ${BASH_VERSION:+bash}"}"#, "--yes"]);
    assert_eq!(ran.stdout, "bash\n", "an untrusted project does not choose what runs");
    assert!(ran.stderr.contains("shell"), "{}", ran.stderr);
}

#[test]
fn a_person_sees_lines_while_a_long_command_runs() {
    let Some(env) = scene() else { return };
    let call = r#"shell.exec '{"command":"echo early; sleep 1.5; echo late; sleep 1"}' --yes"#;
    let (screen, code) = typed(&env, call, "");
    assert_eq!(code, 0, "{screen}");
    assert_eq!(screen.matches("early").count(), 1, "what comes in the first second is shown once: {screen}");
    assert_eq!(screen.matches("late").count(), 2, "live, and in the end: {screen}");
}

//! Scripts that call tools, as `haft call tool.script` runs them: the real host, confined.

use crate::Env;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn script(code: &str) -> Value {
    json!({ "code": code })
}

#[test]
fn ten_calls_are_one_and_what_is_on_the_way_is_not_told() {
    let env = Env::new();
    for number in 0..10 {
        env.file(&format!("f{number}.txt"), format!("marker-{number}\n").repeat(number + 1));
    }
    let code = "local calls, lines = {}, 0
        for i = 0, 9 do calls[#calls + 1] = {'file.read', {path = 'f' .. i .. '.txt'}} end
        for _, read in ipairs(all(calls)) do
            for _ in read.output:gmatch('marker') do lines = lines + 1 end
        end
        print('counted')
        return {lines = lines}";
    let outcome = env.ok("tool.script", script(code));
    assert_eq!(outcome["data"], json!({"value": {"lines": 55}, "calls": 10}), "{outcome:#}");
    let output = outcome["output"].as_str().unwrap();
    assert!(output.starts_with("counted\n{") && !outcome.to_string().contains("marker-"), "{outcome:#}");
    let log = env.run(&["log", "--json", "-n", "1000"]).stdout;
    assert!(log.matches("\"file.read\"").count() >= 10, "each is recorded as itself: {log}");
}

#[test]
fn each_call_is_decided_by_itself() {
    let env = Env::new();
    env.file("a.txt", "hello");
    // Nobody is asked about the script itself, and reading is free.
    let (outcome, code) =
        env.call("tool.script", script("return call('file.read', {path = 'a.txt'}).output"), &["--no-input"]);
    assert!(code == 0 && outcome["output"].as_str().unwrap().contains("hello"), "{outcome:#}");
    let write = "local ok, why = try('file.write', {path = 'b.txt', content = 'x'}) return {ok, why}";
    let (outcome, _) = env.call("tool.script", script(write), &["--no-input"]);
    assert_eq!(outcome["data"]["value"][0], false, "{outcome:#}");
    assert!(!env.root().join("b.txt").exists());
    let outcome = env.ok("tool.script", script(write));
    assert_eq!((outcome["data"]["value"][0].as_bool(), env.read("b.txt").as_str()), (Some(true), "x"), "{outcome:#}");
    let deny = "return {try('shell.exec', {command = 'echo hi'})}";
    let (outcome, _) = env.call("tool.script", script(deny), &["--yes", "--deny", "echo"]);
    assert_eq!(outcome["data"]["value"][0], false, "{outcome:#}");
    assert!(outcome["data"]["value"][1].as_str().unwrap().starts_with("shell.exec: "), "{outcome:#}");
    let (kind, message, _) =
        env.err("tool.script", script("local read = call('file.read', {path = 'none'})"), &["--yes"]);
    assert_eq!(kind, "failed");
    assert!(message.starts_with("the script failed: script:1: file.read: "), "{message}");
}

#[test]
fn some_tools_are_not_for_scripts() {
    let env = Env::new();
    for code in [
        "return {try('tool.script', {code = 'return 1'})}",
        "return {try('tool_script', {code = 'return 1'})}",
        "return {try('tool.call', {name = 'tool.script', args = {code = 'return 1'}})}",
    ] {
        let outcome = env.ok("tool.script", script(code));
        assert_eq!(
            outcome["data"]["value"],
            json!([false, "tool.script cannot be called by a script", {"ok": false, "error": "tool.script cannot be called by a script", "output": "", "truncated": false}]),
            "{outcome:#}"
        );
    }
    for tool in ["agent.spawn", "agent.delegate", "pipeline.run", "pipeline.promote"] {
        let code = format!("return {{try('{tool}', {{steps = {{{{id = 'a', tool = 'calc.eval', args = {{}}}}}}}})}}");
        let outcome = env.ok("tool.script", script(&code));
        let expected = format!("{tool} cannot be called by a script");
        assert_eq!(outcome["data"]["value"][1], expected, "{outcome:#}");
    }
    let outcome = env.ok("tool.script", script("return {try('no.such')}"));
    assert!(outcome["data"]["value"][1].as_str().unwrap().contains("there is no tool"), "{outcome:#}");
    let many = "local n = 0 for i = 1, 70 do if try('calc.eval', {expression = '1'}) then n = n + 1 end end return n";
    let outcome = env.ok("tool.script", script(many));
    assert_eq!(outcome["data"]["value"], 64, "a tree of calls has an end");
}

#[test]
fn what_is_too_much_to_be_told_is_said_to_be() {
    let env = Env::new();
    let (kind, message, _) = env.err("tool.script", script("return ('\\1'):rep(4000000)"), &["--yes"]);
    assert_eq!(kind, "failed");
    assert!(message.contains("cannot be told: that is more than one call can take"), "{message}");
}

#[test]
fn where_data_came_from_is_known_of_the_whole() {
    let env = Env::new();
    let outside = env.dir.path().join("outside.txt");
    std::fs::write(&outside, "elsewhere").unwrap();
    let code = format!(
        "call('calc.eval', {{expression = '1'}}) return #call('file.read', {{path = '{}'}}).output",
        outside.display()
    );
    let outcome = env.ok("tool.script", script(&code));
    assert_eq!(outcome["labels"], json!(["outside"]), "{outcome:#}");
    assert_eq!(
        env.ok("tool.script", script("return call('calc.eval', {expression = '1'}).output"))["labels"],
        json!([])
    );
}

#[test]
fn what_would_never_end_is_ended() {
    let env = Env::new();
    for (code, why) in [
        ("while true do end", "million steps"),
        ("while true do pcall(function() while true do end end) end", "million steps"),
        ("local t = {} while true do t[#t + 1] = ('x'):rep(1 << 20) .. #t end", "of memory"),
        (
            "local t = {} while true do t[#t + 1] = coroutine.wrap(function() coroutine.yield() end) t[#t]() end",
            "of memory",
        ),
        ("return ('a'):rep(60):find(('a?'):rep(60) .. ('a'):rep(60))", "did not come to its end"),
        ("setmetatable({}, {__gc = function() while true do end end}) return 1", ""),
    ] {
        let begun = Instant::now();
        let (outcome, _) = env.call("tool.script", script(code), &["--yes"]);
        let message = outcome["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{code}: {outcome:#}");
        assert!(begun.elapsed() < Duration::from_mins(1), "{code}");
    }
}

#[test]
fn a_script_reaches_nothing_but_tools() {
    let env = Env::new();
    let code = "local seen, odd = {}, {}
        local function look(value, path)
            if type(value) == 'userdata' or type(value) == 'table' or type(value) == 'function' then
                if seen[value] then return end
                seen[value] = true
            end
            local name = path:match('[^.]+$')
            for _, bad in ipairs({'open', 'popen', 'execute', 'getenv', 'exit', 'load', 'loadfile', 'require', 'dofile', 'getinfo', 'sethook', 'getregistry', 'dump', 'loadlib'}) do
                if name == bad and value ~= nil then odd[#odd + 1] = path end
            end
            if type(value) == 'table' then for k, v in next, value do look(v, path .. '.' .. tostring(k)) end end
            local ok, meta = pcall(getmetatable, value)
            if ok and type(meta) == 'table' then look(meta, path .. '.(meta)') end
        end
        look(_G, '_G')
        look('', 'string')
        local _, raised = pcall(call, {})
        look(raised, 'raised')
        local _, raised = pcall(json.decode, '{')
        look(raised, 'raised2')
        look(coroutine.create(print), 'thread')
        look(json.null, 'null')
        return odd";
    let outcome = env.ok("tool.script", script(code));
    assert!(matches!(&outcome["data"]["value"], Value::Object(none) if none.is_empty()), "{outcome:#}");
    let (_, message, _) = env.err("tool.script", script("\u{1b}Lua\u{54}"), &["--yes"]);
    assert!(message.contains("binary"), "{message}");
}

#[test]
fn whoever_halts_the_call_halts_the_script() {
    let env = Env::new();
    let args = script("call('shell.exec', {command = 'touch begun; sleep 60; touch ended'})").to_string();
    let mut call = env
        .command(&["call", "tool.script", &args, "--yes", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let pid = rustix::process::Pid::from_raw(i32::try_from(call.id()).unwrap()).unwrap();
    // Other tests have hosts of their own.
    let hosts = below(call.id());
    assert!(!hosts.is_empty(), "the script runs in a process of its own");
    let begun = Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = call.wait().unwrap();
    assert!(!status.success() && begun.elapsed() < Duration::from_secs(20), "{status:?}");
    assert!(!env.root().join("ended").exists());
    let mut left = hosts.clone();
    for _ in 0..50 {
        left.retain(|pid| is_host(*pid));
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(left.is_empty(), "{left:?}");
}

/// Whether a process runs a script.
fn is_host(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().ends_with(b"haft\0script\0")
}

/// The processes below one that run a script.
fn below(ancestor: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:")).and_then(|pid| pid.trim().parse().ok())
    };
    let is_below = |pid: u32| std::iter::successors(Some(pid), |pid| parent(*pid)).take(32).any(|pid| pid == ancestor);
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| is_host(*pid) && is_below(*pid))
        .collect()
}

#[test]
fn people_find_tools_by_what_they_do() {
    let env = Env::new();
    let found = env.run(&["tools", "search", "read", "a", "file", "--limit", "3"]);
    assert!(found.code == 0 && found.stdout.starts_with("file.read"), "{}{}", found.stdout, found.stderr);
    assert_eq!(found.stdout.lines().count(), 3);
    let found = env.run(&["tools", "search", "arithmetic", "--json"]).json();
    assert_eq!(found["tools"][0]["name"], "calc.eval", "{found:#}");
    assert!(env.run(&["tools", "search", "qqqqzzzz"]).stderr.contains("no tool fits"));
    assert_eq!(env.run(&["tools", "file.read", "more"]).code, 2);
    assert!(env.run(&["tools", "file.read"]).stdout.contains("file.read"));
}

//! Warm interpreters: who shares one, and when one goes.

use crate::{Stage, data, permissions, wrong};
use haft_core::{Call, ErrorKind, Outcome, SessionId};
use haft_runtime::{Halt, Yes, new_call_id};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Says how often it was called in this interpreter, and which one that is.
const COUNTS: &str = "import os, time\nCOUNT = 0\nME = os.urandom(8).hex()\ndef run(x=0):\n    global COUNT\n    COUNT += 1\n    time.sleep(x)\n    return [COUNT, ME]\n";

fn counted(outcome: &Outcome) -> (u64, String) {
    let data = data(outcome);
    (data[0].as_u64().unwrap(), data[1].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn the_second_call_finds_the_first_ones_interpreter() {
    let stage = Stage::new();
    stage.python("counts", COUNTS);
    let (first, one) = counted(&stage.call("counts", json!({})).await);
    let (second, same) = counted(&stage.call("counts", json!({})).await);
    assert_eq!((first, second, &one), (1, 2, &same));
    // An exception is an answer like another.
    stage.python("raises", "COUNT = 0\ndef run():\n    global COUNT\n    COUNT += 1\n    raise ValueError(COUNT)\n");
    for count in 1..3 {
        assert_eq!(wrong(&stage.call("raises", json!({})).await), format!("ValueError: {count}"));
    }
}

#[tokio::test]
async fn tools_that_differ_in_anything_share_none() {
    let stage = Stage::new();
    stage.python("counts", COUNTS);
    let mut seen = vec![counted(&stage.call("counts", json!({})).await).1];
    let exec = json!({"python": {"module": "py.counts", "function": "run"}});
    stage.tool("other", json!({"exec": exec}));
    seen.push(counted(&stage.call("other", json!({})).await).1);
    stage.tool("counts", json!({"exec": exec, "permissions": permissions(json!(false), &["py"], &[], json!({}))}));
    seen.push(counted(&stage.call("counts", json!({})).await).1);
    stage.tool("counts", json!({"exec": exec, "version": 2}));
    seen.push(counted(&stage.call("counts", json!({})).await).1);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4);
}

#[tokio::test]
async fn sessions_share_none() {
    let stage = Stage::new();
    stage.python("counts", COUNTS);
    let call = |session: &str| {
        let mut call = Call::new(new_call_id(), "counts", json!({}));
        call.session = SessionId::new(session).unwrap();
        call
    };
    let mut seen = Vec::new();
    for session in ["one", "two", "one"] {
        seen.push(counted(&stage.haft.call(call(session), &Yes, &Halt::new()).await));
    }
    assert_eq!((seen[0].0, seen[1].0, seen[2].0), (1, 1, 2), "{seen:?}");
    assert!(seen[0].1 == seen[2].1 && seen[0].1 != seen[1].1, "{seen:?}");
}

#[tokio::test]
async fn what_was_edited_is_read_anew() {
    let stage = Stage::new();
    stage.file("py/part.py", "VALUE = 1\n");
    stage.python("edited", "from py import part\nCOUNT = 0\ndef run():\n    global COUNT\n    COUNT += 1\n    return [part.VALUE, COUNT]\n");
    assert_eq!(data(&stage.call("edited", json!({})).await), &json!([1, 1]));
    assert_eq!(data(&stage.call("edited", json!({})).await), &json!([1, 2]));
    stage.file("py/part.py", "VALUE = 22\n");
    assert_eq!(data(&stage.call("edited", json!({})).await), &json!([22, 1]), "also what it imports");
    stage.python("edited", "def run(): return 'all new'\n");
    assert_eq!(data(&stage.call("edited", json!({})).await), &json!("all new"));
}

#[tokio::test]
async fn what_comes_to_be_hidden_is_hidden_from_the_next_call() {
    let stage = Stage::new();
    stage.python("peeks", "def run(): return open('.env').read()\n");
    assert!(wrong(&stage.call("peeks", json!({})).await).starts_with("FileNotFoundError"));
    stage.file(".env", "TOKEN=x");
    assert!(wrong(&stage.call("peeks", json!({})).await).starts_with("PermissionError"));
}

#[tokio::test]
async fn nothing_outlives_its_call() {
    let stage = Stage::new();
    let cases = [
        (
            "threads",
            "import os, threading, time\nME = os.urandom(8).hex()\ndef run():\n    threading.Thread(target=time.sleep, args=(60,)).start()\n    return [1, ME]\n",
        ),
        (
            "processes",
            "import os, subprocess\nME = os.urandom(8).hex()\ndef run():\n    subprocess.Popen(['sleep', '60'])\n    return [1, ME]\n",
        ),
    ];
    for (left, text) in cases {
        stage.python(left, text);
        let first = stage.call(left, json!({})).await;
        assert_eq!(first.warnings, [format!("{left} that it left running were ended with its interpreter")]);
        assert_ne!(counted(&first).1, counted(&stage.call(left, json!({})).await).1);
    }
    // One whose parent is gone is found by whoever watches from outside.
    let text = "import os, time\nME = os.urandom(8).hex()\ndef run():\n    if os.fork() == 0:\n        if os.fork() == 0:\n            os.setsid(); time.sleep(60)\n        os._exit(0)\n    os.wait()\n    return [1, ME]\n";
    stage.python("orphans", text);
    let first = counted(&stage.call("orphans", json!({})).await).1;
    let begun = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        if counted(&stage.call("orphans", json!({})).await).1 != first {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it is still the same");
    }
}

#[tokio::test]
async fn calls_at_once_have_one_each_and_no_more_than_four() {
    let stage = Stage::new();
    stage.python("counts", COUNTS);
    let calls = (0..8).map(|_| stage.call("counts", json!({"x": 0.3})));
    let outcomes = futures_util::future::join_all(calls).await;
    let mut names: Vec<String> = outcomes.iter().map(|outcome| counted(outcome).1).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4, "each of the first four has its own, and the others wait for one of them");
    // A fifth tool takes the place of the one that was used longest ago.
    stage.python("fifth", COUNTS);
    let (count, _) = counted(&stage.call("fifth", json!({})).await);
    assert_eq!(count, 1);
    assert_eq!(interpreters(stage.root()), 4);
}

/// How many interpreters this process has running that started in this place.
fn interpreters(place: &Path) -> usize {
    let of = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let there = |pid: u32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(place));
    let mut ahead = vec![std::process::id()];
    let mut found = 0;
    while let Some(pid) = ahead.pop() {
        found += usize::from(there(pid) && of(pid).contains("Runs one function at a time for haft"));
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            ahead.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    found
}

#[tokio::test]
async fn one_that_is_cancelled_is_ended_and_no_failure() {
    let stage = Stage::new();
    stage.python("counts", COUNTS);
    let halt = Halt::new();
    let (outcome, ()) = tokio::join!(stage.call_until("counts", json!({"x": 60}), &halt), async {
        while interpreters(stage.root()) == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        halt.cancel();
    });
    assert_eq!(outcome.error.as_ref().unwrap().kind, ErrorKind::Cancelled, "{outcome:?}");
    assert_eq!(interpreters(stage.root()), 0);
    assert_eq!(counted(&stage.call("counts", json!({})).await).0, 1);
}

#[tokio::test]
async fn all_end_with_haft() {
    let stage = Stage::new();
    stage.python("counts", COUNTS);
    stage.call("counts", json!({})).await;
    let place = stage.root().to_owned();
    assert_eq!(interpreters(&place), 1);
    drop(stage);
    let begun = Instant::now();
    while interpreters(&place) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "it still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn one_is_recycled_after_many_calls() {
    let stage = Stage::new();
    stage.python("counts", COUNTS);
    let mut last = Value::Null;
    for _ in 0..201 {
        last = data(&stage.call("counts", json!({})).await).clone();
    }
    assert_eq!(last[0], json!(1));
}

#[tokio::test]
async fn a_failure_is_forgotten_when_a_call_answers() {
    let stage = Stage::new();
    stage.python("moody", "import os\ndef run(x): return os._exit(3) if x else 'fine'\n");
    assert!(wrong(&stage.call("moody", json!({"x": 1})).await).starts_with("the interpreter gave no answer"));
    let refused = stage.call("moody", json!({"x": 0})).await;
    let wait = refused.error.as_ref().unwrap().details.as_ref().unwrap()["retry_after_ms"].as_u64().unwrap();
    assert!(wait <= 1000, "{refused:?}");
    tokio::time::sleep(Duration::from_millis(wait + 20)).await;
    assert_eq!(data(&stage.call("moody", json!({"x": 0})).await), &json!("fine"));
    assert!(wrong(&stage.call("moody", json!({"x": 1})).await).starts_with("the interpreter gave no answer"));
    let again = stage.call("moody", json!({"x": 0})).await;
    assert!(again.error.unwrap().details.unwrap()["retry_after_ms"].as_u64().unwrap() <= 1000, "it begins anew");
}

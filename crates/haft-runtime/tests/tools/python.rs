//! Functions: what goes in, what comes out, and everything that can go wrong in between.

use crate::{Stage, data, permissions, wrong};
use haft_core::ErrorKind;
use serde_json::{Value, json};

#[tokio::test]
async fn a_function_gets_values_and_gives_values() {
    let stage = Stage::new();
    stage.file(
        "tools/stats.py",
        "import os\ndef run(path, *rest, **named):\n    return [path, rest, named, os.getcwd()]\n",
    );
    let exec = json!({"module": "tools.stats", "function": "run", "args": ["${path}", "${n}", "${gone}"], "kwargs": {"list": "${list}", "off": "${gone}", "text": "n=${n}"}});
    stage.tool("stats", json!({"exec": {"python": exec}}));
    let outcome = stage.call("stats", json!({"path": "größe ✓", "n": 5, "list": [1.5, null, true]})).await;
    assert_eq!(data(&outcome), &json!(["größe ✓", [5], {"list": [1.5, null, true], "text": "n=5"}, stage.root()]));
    assert!(outcome.warnings.is_empty(), "{outcome:?}");
    assert!(!stage.root().join("tools/__pycache__").exists(), "nothing is written beside it");
}

#[tokio::test]
async fn a_text_is_what_str_makes_of_it() {
    let stage = Stage::new();
    stage.file("py/words.py", "def run(): return {'a': (1, 2)}\n");
    let exec = json!({"module": "py.words", "function": "run", "return": "text"});
    stage.tool("words", json!({"outputs": {"format": "text"}, "exec": {"python": exec}}));
    let outcome = stage.call("words", json!({})).await;
    assert_eq!((outcome.output.as_str(), outcome.data), ("{'a': (1, 2)}", None));
    stage.python_with("plain", "def run(): return 'just words'\n", json!({"outputs": {"format": "text"}}));
    assert_eq!(stage.call("plain", json!({})).await.output, "just words");
}

#[tokio::test]
async fn what_does_not_fit_its_schema_is_passed_on_with_a_warning() {
    let stage = Stage::new();
    stage.python_with(
        "odd",
        "def run(): return 5\n",
        json!({"outputs": {"format": "json", "schema": {"type": "string"}}}),
    );
    let odd = stage.call("odd", json!({})).await;
    assert_eq!(data(&odd), &json!(5));
    assert_eq!(odd.warnings, ["output does not fit its schema: : expected string, got number 5"]);
}

#[tokio::test]
async fn what_is_printed_is_heard_and_spoils_nothing() {
    let stage = Stage::new();
    let text = "import os, sys, subprocess\ndef run(x):\n    print('hello')\n    sys.stderr.write('there\\n')\n    sys.stderr.flush()\n    \
                os.write(1, b'raw\\n')\n    subprocess.run(['echo', 'child'])\n    return sys.stdin.read() + str(x)\n";
    stage.python("prints", text);
    for x in [1, 2] {
        let outcome = stage.call("prints", json!({"x": x})).await;
        assert_eq!(data(&outcome), &json!(x.to_string()));
        assert_eq!(outcome.warnings.len(), 1, "{outcome:?}");
        let said = &outcome.warnings[0];
        assert!(
            said.starts_with("printed: ") && ["hello", "there", "raw", "child"].iter().all(|word| said.contains(word)),
            "{said}"
        );
    }
    stage.python("floods", "def run():\n    print('x' * 5_000_000)\n    return 1\n");
    let outcome = stage.call("floods", json!({})).await;
    assert_eq!(data(&outcome), &json!(1));
    assert!(outcome.warnings[0].len() < 1000, "{}", outcome.warnings[0].len());
}

#[tokio::test]
async fn an_exception_is_told_by_type_and_message() {
    let stage = Stage::new();
    stage
        .python("fails", "class Own(Exception): pass\ndef inner(x): raise Own('no ' + x)\ndef run(x):\n    inner(x)\n");
    let outcome = stage.call("fails", json!({"x": "luck"})).await;
    let error = outcome.error.as_ref().unwrap();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Failed, "py.fails.Own: no luck"));
    let details = error.details.as_ref().unwrap();
    assert_eq!((&details["type"], &details["message"]), (&json!("py.fails.Own"), &json!("no luck")));
    let trace = details["traceback"].as_str().unwrap();
    assert!(trace.contains("fails.py\", line 2, in inner") && trace.contains("line 4, in run"), "{trace}");
    stage.python("huge", "def run(): raise ValueError('x' * 50_000_000)\n");
    let huge = stage.call("huge", json!({})).await;
    assert!(wrong(&huge).starts_with("ValueError: xxx") && serde_json::to_string(&huge).unwrap().len() < 20_000);
}

#[tokio::test]
async fn each_way_to_go_wrong_has_its_words() {
    let stage = Stage::new();
    let cases = [
        (
            "def run(): return float('nan')",
            "what it returned (a float) is no JSON: ValueError: Out of range float values are not JSON compliant",
        ),
        (
            "def run(): return [float('inf')]",
            "what it returned (a list) is no JSON: ValueError: Out of range float values",
        ),
        (
            "def run(): return {1, 2}",
            "what it returned (a set) is no JSON: TypeError: Object of type set is not JSON serializable",
        ),
        (
            "def run():\n    while True: yield 1",
            "what it returned (a generator) is no JSON: TypeError: Object of type generator",
        ),
        (
            "def run():\n    a = []\n    a.append(a)\n    return a",
            "what it returned (a list) is no JSON: ValueError: Circular reference",
        ),
        ("def run(): return '\\ud800'", "what it returned (a str) is no JSON: UnicodeEncodeError"),
        ("def run(): return 10 ** 400", "what it returned cannot be passed on: number out of range"),
        ("def run(): return 'x' * (20 << 20)", "it returned 20 MiB, and at most 8 MiB are passed on"),
        ("def run(): return run()", "RecursionError: maximum recursion depth exceeded"),
        ("import sys\ndef run(): sys.exit(3)", "SystemExit: 3"),
        ("def run(a, b): pass", "TypeError: run() missing 2 required positional arguments: 'a' and 'b'"),
        ("def other(): pass", "the module `py.case` has no function `run`"),
        ("run = 5", "`run` in the module `py.case` is not a function"),
        ("import no_such_module", "the module cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("\n\ndef run(:\n", "the module cannot be loaded: SyntaxError: invalid syntax (py/case.py:3)"),
        ("raise OSError('at once')", "the module cannot be loaded: OSError: at once"),
        ("def run(): return bytearray(1 << 30)", "MemoryError"),
    ];
    for (text, expected) in cases {
        stage.python("case", text);
        let outcome = stage.call("case", json!({})).await;
        assert!(!outcome.success && wrong(&outcome).starts_with(expected), "{text}: {outcome:?}");
    }
    stage.tool("case", json!({"exec": {"python": {"module": "not.there", "function": "run"}}}));
    assert_eq!(wrong(&stage.call("case", json!({})).await), "there is no module `not`; it is looked for from cwd");
    stage.tool("case", json!({"exec": {"python": {"module": "a;b", "function": "run"}}}));
    assert_eq!(wrong(&stage.call("case", json!({})).await), "`a;b` is not the name of a module or function");
    stage.tool("case", json!({"exec": {"python": {"module": "py.case", "function": "run", "venv": "nowhere"}}}));
    assert_eq!(wrong(&stage.call("case", json!({})).await), "there is no virtual environment at `nowhere`");
}

#[tokio::test]
async fn one_that_breaks_its_interpreter_is_told_so() {
    let stage = Stage::new();
    let cases = [
        ("import os\ndef run(): os._exit(7)", "the interpreter gave no answer: it ended with exit status 7"),
        (
            "import os, signal\ndef run(): os.kill(os.getpid(), signal.SIGSEGV)",
            "the interpreter gave no answer: it was ended by signal 11",
        ),
        ("import os\ndef run(): os.closerange(0, 1000)", "the interpreter gave no answer: it ended with exit status 1"),
        (
            "import os\ndef run():\n    for fd in range(3, 20):\n        try: os.write(fd, b'rubbish' * 9)\n        except OSError: pass",
            "the interpreter did not answer as agreed: it announces",
        ),
        (
            "import mmap\ndef run():\n    held = []\n    while True:\n        m = mmap.mmap(-1, 32 << 20)\n        for at in range(0, 32 << 20, 4096): m[at] = 1\n        held.append(m)",
            "the interpreter gave no answer: it reached its limit of memory",
        ),
    ];
    for (number, (text, expected)) in cases.into_iter().enumerate() {
        let name = format!("breaks{number}");
        stage.python(&name, text);
        let outcome = stage.call(&name, json!({})).await;
        assert!(wrong(&outcome).starts_with(expected), "{text}: {outcome:?}");
        // It is not started again at once.
        let again = stage.call(&name, json!({})).await;
        assert!(wrong(&again).starts_with("its interpreter ended by itself; it may be tried again in "), "{again:?}");
    }
}

#[tokio::test]
async fn its_keeper_cannot_be_killed_and_a_child_that_comes_back_is_no_answer() {
    let stage = Stage::new();
    stage.python(
        "kills",
        "import os\ndef run(x):\n    for pid in (os.getppid(), 1, -1):\n        try: os.kill(pid, 9)\n        except OSError: pass\n    return 'here'\n",
    );
    assert_eq!(data(&stage.call("kills", json!({"x": 0})).await), &json!("here"));
    stage.python("forks", "import os\ndef run():\n    return os.fork() > 0\n");
    for _ in 0..3 {
        assert_eq!(data(&stage.call("forks", json!({})).await), &json!(true));
    }
}

#[tokio::test]
async fn one_that_never_returns_is_ended() {
    let stage = Stage::new();
    let exec = |name: &str| json!({"exec": {"python": {"module": format!("py.{name}"), "function": "run", "timeout_ms": 400}}});
    stage.python_with(
        "never",
        "import time\ndef run():\n    print('so far')\n    while True: time.sleep(1)\n",
        exec("never"),
    );
    stage.python_with(
        "deaf",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef run():\n    while True: pass\n",
        exec("deaf"),
    );
    for name in ["never", "deaf"] {
        let outcome = stage.call(name, json!({})).await;
        assert_eq!(outcome.error.as_ref().unwrap().kind, ErrorKind::Timeout, "{outcome:?}");
        assert_eq!(wrong(&outcome), "it did not finish within 400 ms; it was ended");
    }
}

#[tokio::test]
async fn one_that_writes_is_shown_kept_and_undone() {
    let stage = Stage::new();
    stage.file("out/keep", "");
    let text = "COUNT = 0\ndef run(x):\n    global COUNT\n    COUNT += 1\n    open('out/' + x, 'w').write('new')\n    print('wrote')\n    return COUNT\n";
    let writes = permissions(json!(false), &["."], &["out"], json!({}));
    stage.python_with("writes", text, json!({"permissions": writes}));
    for name in ["a.txt", "b.txt"] {
        let outcome = stage.call("writes", json!({"x": name})).await;
        assert_eq!(data(&outcome), &json!(1), "each call has an interpreter of its own");
        assert_eq!(outcome.warnings, ["printed: wrote"]);
        assert_eq!(stage.read(&format!("out/{name}")).as_deref(), Some("new"));
        stage.haft.undo(&outcome.call_id).await.unwrap();
        assert_eq!(stage.read(&format!("out/{name}")), None);
    }
    let fails = "def run(x):\n    open('out/' + x, 'w').write('new')\n    raise ValueError('after')\n";
    stage.python_with("writes", fails, json!({"permissions": permissions(json!(false), &["."], &["out"], json!({}))}));
    let outcome = stage.call("writes", json!({"x": "c.txt"})).await;
    assert_eq!(wrong(&outcome), "ValueError: after");
    let exit = "import os\ndef run(x):\n    open('out/' + x, 'w').write('new')\n    os._exit(9)\n";
    stage.python_with("writes", exit, json!({"permissions": permissions(json!(false), &["."], &["out"], json!({}))}));
    let outcome = stage.call("writes", json!({"x": "d.txt"})).await;
    assert!(wrong(&outcome).starts_with("the interpreter gave no answer: exit status 9"), "{outcome:?}");
}

#[tokio::test]
async fn the_interpreter_of_a_venv_finds_its_packages() {
    let stage = Stage::new();
    let made = std::process::Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(stage.root().join(".venv"))
        .status();
    assert!(made.unwrap().success(), "python3-venv is needed for this test");
    let lib = std::fs::read_dir(stage.root().join(".venv/lib")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(lib.join("site-packages/only_there.py"), "VALUE = 41\n").unwrap();
    stage.file("py/uses.py", "import only_there, sys\ndef run(): return [only_there.VALUE + 1, sys.prefix]\n");
    let exec = json!({"module": "py.uses", "function": "run", "venv": ".venv"});
    // It reads what it is made of, although nothing is declared.
    let none = permissions(json!(false), &[], &[], json!({}));
    stage.tool("uses", json!({"exec": {"python": exec}, "permissions": none}));
    let outcome = stage.call("uses", json!({})).await;
    assert_eq!(data(&outcome), &json!([42, stage.root().join(".venv")]));
}

#[tokio::test]
async fn large_arguments_go_in() {
    let stage = Stage::new();
    stage.python("sizes", "def run(x): return len(x)\n");
    let outcome = stage.call("sizes", json!({"x": "y".repeat(10 << 20)})).await;
    assert_eq!(data(&outcome), &json!(10 << 20));
    let deep = (0..50).fold(Value::Null, |inner, _| json!([inner]));
    stage.python("deep", "def run(x): return x\n");
    assert_eq!(data(&stage.call("deep", json!({"x": deep})).await), &deep);
    stage.python("deeper", "def run():\n    x = None\n    for _ in range(500): x = [x]\n    return x\n");
    assert!(
        wrong(&stage.call("deeper", json!({})).await)
            .starts_with("what it returned cannot be passed on: recursion limit")
    );
}

//! What a manifest declares is what the kernel enforces: each way around it is tried from inside, by a program and by a
//! function, and what is declared works.

use crate::{Stage, data, permissions, wrong};
use haft_core::ErrorKind;
use haft_runtime::secrets::{SecretSource, Secrets};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

/// Tries things, and says of each what came of it.
const PROBE: &str = r#"
import json, os, socket

def tried(what):
    try:
        what()
        return "worked"
    except BaseException as error:
        return type(error).__name__

def reads(path):
    with open(path, "rb") as file:
        file.read(10)

def writes(path):
    with open(path, "w") as file:
        file.write("x")

def connects(kind, address):
    with socket.socket(kind, socket.SOCK_STREAM) as line:
        line.settimeout(2)
        line.connect(address)

def run(order):
    out = {}
    for name, how, what in order:
        if how == "read": out[name] = tried(lambda: reads(what))
        if how == "list": out[name] = tried(lambda: os.listdir(what))
        if how == "list parts": out[name] = tried(lambda: os.listdir("".join(what)))
        if how == "read parts": out[name] = tried(lambda: reads("".join(what)))
        if how == "write": out[name] = tried(lambda: writes(what))
        if how == "remove": out[name] = tried(lambda: os.remove(what))
        if how == "tcp": out[name] = tried(lambda: connects(socket.AF_INET, tuple(what)))
        if how == "unix": out[name] = tried(lambda: connects(socket.AF_UNIX, what))
        if how == "abstract": out[name] = tried(lambda: connects(socket.AF_UNIX, "\0" + what))
        if how == "name": out[name] = tried(lambda: socket.getaddrinfo(what, 80))
        if how == "raw": out[name] = tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
        if how == "env": out[name] = os.environ.get(what)
        if how == "kill": out[name] = tried(lambda: os.kill(what, 0))
        if how == "pids": out[name] = sum(entry.isdigit() for entry in os.listdir("/proc")) < 8
    return out
"#;

/// A stage with the same probe as a program and as a function.
fn stage() -> Stage {
    probed(Stage::new())
}

fn probed(stage: Stage) -> Stage {
    stage.script(
        "probe/main.py",
        "#!/usr/bin/python3 -IB\nimport json, os, sys\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n\
         import probe\nprint(json.dumps(probe.run(json.load(sys.stdin))))\n",
    );
    stage.file("probe/probe.py", PROBE);
    stage.file("src/a.txt", "declared");
    stage.file("src/.env", "TOKEN=x");
    stage.file("other/b.txt", "not declared");
    stage.file("out/c.txt", "writable");
    std::fs::write(stage.outside().join("elsewhere.txt"), "x").unwrap();
    stage
}

/// What each kind of tool finds when it tries these things under these permissions.
async fn tries(stage: &Stage, permissions: Value, order: Value) -> [(&'static str, Value); 2] {
    let command = json!({"entrypoint": "./probe/main.py", "stdin": "${order}"});
    let python = json!({"module": "probe", "function": "run", "args": ["${order}"], "cwd": "probe"});
    let mut found = Vec::new();
    for (name, exec) in [("command", command), ("python", python)] {
        stage.tool(name, json!({"exec": {name: exec}, "permissions": permissions}));
        let outcome = stage.call(name, json!({"order": order})).await;
        found.push((name, data(&outcome).clone()));
    }
    found.try_into().unwrap()
}

/// What nobody may do whatever is declared here: read `src` and `probe`, write `out`.
fn narrow() -> Value {
    permissions(json!(false), &["src", "probe"], &["out"], json!({}))
}

#[tokio::test]
async fn nothing_is_read_but_what_is_declared() {
    let stage = stage();
    let (root, outside) = (stage.root().to_owned(), stage.outside());
    let home = std::env::var("HOME").unwrap_or("/root".to_owned());
    let order = json!([
        ["declared", "read", root.join("src/a.txt")],
        ["undeclared", "read", root.join("other/b.txt")],
        ["undeclared directory", "list", root.join("other")],
        ["the repository", "list", root.join(".git")],
        ["credentials", "read", root.join("src/.env")],
        ["outside", "read", outside.join("elsewhere.txt")],
        ["up and out", "read", "../../elsewhere.txt"],
        ["haft's records", "read", outside.join("haft.db")],
        // Named as they are, haft would refuse the call before anything runs.
        ["haft's data", "list parts", [outside.join("da"), "ta"]],
        ["who started it", "read parts", ["/pro", format!("c/{}/environ", std::process::id())]],
        ["accounts", "read", "/etc/passwd"],
        ["passwords", "read", "/etc/shadow"],
        ["keys", "list", format!("{home}/.ssh")],
        ["settings", "read", format!("{home}/.gitconfig")],
        ["the first process", "read", "/proc/1/environ"],
        ["only its own processes", "pids", ""],
    ]);
    // With layers and, where nothing may be written, without them.
    let no_writes = permissions(json!(false), &["src", "probe"], &[], json!({}));
    for permissions in [narrow(), no_writes] {
        for (kind, mut found) in tries(&stage, permissions, order.clone()).await {
            let found = found.as_object_mut().unwrap();
            assert_eq!(found.remove("declared"), Some(json!("worked")), "{kind}");
            assert_eq!(found.remove("only its own processes"), Some(json!(true)), "{kind}");
            assert_eq!(found.len(), 14);
            for (what, came) in found {
                assert!(
                    ["FileNotFoundError", "PermissionError"].contains(&came.as_str().unwrap()),
                    "{kind}: {what}: {came}"
                );
            }
        }
    }
}

#[tokio::test]
async fn what_is_named_itself_is_read() {
    let stage = stage();
    let outside = stage.outside().join("elsewhere.txt");
    let order = json!([
        ["accounts", "read", "/etc/passwd"],
        ["credentials", "read", stage.root().join("src/.env")],
        ["outside", "read", outside]
    ]);
    let declared =
        permissions(json!(false), &["probe", "/etc/passwd", "src/.env", outside.to_str().unwrap()], &[], json!({}));
    for (kind, found) in tries(&stage, declared, order).await {
        assert_eq!(found, json!({"accounts": "worked", "credentials": "worked", "outside": "worked"}), "{kind}");
    }
}

#[tokio::test]
async fn nothing_is_written_but_what_is_declared() {
    let stage = stage();
    let root = stage.root().to_owned();
    let elsewhere = stage.outside().join("elsewhere.txt");
    std::fs::write(&elsewhere, "elsewhere").unwrap();
    // What lies below /tmp is written in its own scratch, which nobody else sees.
    let scratch = stage.outside().starts_with("/tmp");
    let unseen = |what: &str| scratch && ["outside", "haft's records"].contains(&what);
    let order = json!([
        ["declared", "write", root.join("out/new.txt")],
        ["declared and there", "write", root.join("out/c.txt")],
        ["its own scratch", "write", "/tmp/x"],
        ["what is read", "write", root.join("src/a.txt")],
        ["beside what is read", "write", root.join("src/new.txt")],
        ["undeclared", "write", root.join("other/b.txt")],
        ["new in the project", "write", root.join("new.txt")],
        ["its own program", "write", root.join("probe/probe.py")],
        ["its own manifest", "write", root.join(".haft/tools/python/tool.yml")],
        ["a removal", "remove", root.join("src/a.txt")],
        ["outside", "write", stage.outside().join("elsewhere.txt")],
        ["haft's records", "write", stage.outside().join("haft.db")],
        ["the system", "write", "/etc/hosts"],
        ["programs", "write", "/usr/bin/x"],
        ["the kernel", "write", "/proc/sys/kernel/core_pattern"],
    ]);
    for (kind, mut found) in tries(&stage, narrow(), order.clone()).await {
        let found = found.as_object_mut().unwrap();
        for what in ["declared", "declared and there", "its own scratch"] {
            assert_eq!(found.remove(what), Some(json!("worked")), "{kind}: {what}");
        }
        for (what, came) in found {
            assert!(unseen(what) || came != "worked", "{kind}: {what}");
        }
    }
    assert_eq!(stage.read("out/new.txt").as_deref(), Some("x"), "what is declared is kept");
    let nowhere = permissions(json!(false), &["."], &[], json!({}));
    for (kind, found) in tries(&stage, nowhere, order).await {
        let worked: Vec<&String> =
            found.as_object().unwrap().iter().filter(|(_, came)| *came == "worked").map(|(what, _)| what).collect();
        let worked: Vec<&String> = worked.into_iter().filter(|what| !unseen(what)).collect();
        assert_eq!(worked, ["its own scratch"], "{kind}");
    }
    assert_eq!(std::fs::read_to_string(elsewhere).unwrap(), "elsewhere", "nobody wrote there");
    assert_eq!(stage.read("src/a.txt").as_deref(), Some("declared"));
    assert_eq!(stage.read("other/b.txt").as_deref(), Some("not declared"));
    assert_eq!(stage.read("new.txt"), None);
}

#[tokio::test]
async fn what_is_not_declared_is_read_only_wherever_the_project_lies() {
    // In /tmp, as in a home, a program may write; but not in what of the project is there.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let stage = Stage::at(dir, |_| {});
    stage.file("src/a.txt", "a");
    stage.file("out/b.txt", "b");
    stage.file("sub/c.txt", "c");
    stage.script(
        "src/run.sh",
        "#!/bin/sh\nfor place in zz sub/zz .haft/new \"$ROOT/new\" out/new /tmp/scratch; do\n\
         if echo x > \"$place\"; then echo \"$place worked\"; else echo \"$place failed\"; fi; done 2>&1\n",
    );
    for (cwd, write) in [(".", vec!["out"]), (".", vec![]), ("src", vec!["out"])] {
        stage.tool(
            "command",
            json!({"outputs": {"format": "text"},
            "exec": {"command": {"entrypoint": "./src/run.sh", "cwd": cwd, "env": {"ROOT": stage.root()}}},
            "permissions": permissions(json!(false), &["src"], &write, json!({}))}),
        );
        let outcome = stage.call("command", json!({})).await;
        let worked: Vec<&str> = outcome.output.lines().filter_map(|line| line.strip_suffix(" worked")).collect();
        let expected: &[&str] =
            if cwd == "." && !write.is_empty() { &["out/new", "/tmp/scratch"] } else { &["/tmp/scratch"] };
        assert_eq!(worked, expected, "{cwd} {write:?}: {outcome:?}");
        assert!(cwd != "." || outcome.output.contains("zz: Read-only file system"), "{}", outcome.output);
    }
}

#[tokio::test]
async fn nobody_is_reached_but_who_is_declared() {
    let stage = stage();
    let (open, closed) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (open, closed) = (open.local_addr().unwrap(), closed.local_addr().unwrap());
    let (near, far) = (stage.root().join("src/socket"), stage.outside().join("socket"));
    let _listeners = (UnixListener::bind(&near).unwrap(), UnixListener::bind(&far).unwrap());
    let name = format!("haft-test-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let order = json!([
        ["open", "tcp", ["127.0.0.1", open.port()]],
        ["closed", "tcp", ["127.0.0.1", closed.port()]],
        ["the internet", "tcp", ["1.1.1.1", 53]],
        ["metadata", "tcp", ["169.254.169.254", 80]],
        ["names", "name", "example.com"],
        ["a socket of the project", "unix", near],
        ["a socket elsewhere", "unix", far],
        ["a socket without a place", "abstract", name],
        ["packets", "raw", ""],
    ]);
    let none = permissions(json!(false), &["src", "probe"], &[], json!({}));
    for (kind, found) in tries(&stage, none, order.clone()).await {
        for (what, came) in found.as_object().unwrap() {
            assert_ne!(came, "worked", "{kind}: {what}");
        }
    }
    let one = permissions(json!([format!("127.0.0.1:{}", open.port())]), &["src", "probe"], &[], json!({}));
    for (kind, found) in tries(&stage, one, order).await {
        for (what, came) in found.as_object().unwrap() {
            assert_eq!(came == "worked", what == "open", "{kind}: {what}: {came}");
        }
    }
}

#[tokio::test]
async fn an_address_that_is_refused_is_told() {
    let stage = stage();
    let order = json!([["the internet", "tcp", ["192.0.2.1", 53]]]);
    let none = permissions(json!(false), &["probe"], &[], json!({}));
    tries(&stage, none, order.clone()).await;
    let outcome = stage.call("command", json!({"order": order})).await;
    let told = "a name was looked up, and commands have no network here: `permissions.network` allows hosts";
    assert_eq!(outcome.warnings, [told], "{outcome:?}");
}

#[tokio::test]
async fn what_is_inside_is_named_with_its_port() {
    let stage = stage();
    let open = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = open.local_addr().unwrap().port();
    let order = json!([["address", "tcp", ["127.0.0.1", port]], ["name", "tcp", ["localhost", port]]]);
    for (network, reached) in [
        (json!(["127.0.0.1", "localhost"]), false),
        (json!(true), false),
        (json!([format!("127.0.0.1:{port}"), format!("localhost:{port}")]), true),
    ] {
        let declared = permissions(network.clone(), &["probe"], &[], json!({}));
        for (kind, found) in tries(&stage, declared, order.clone()).await {
            for (what, came) in found.as_object().unwrap() {
                assert_eq!(came == "worked", reached, "{kind} {network}: {what}: {came}");
            }
        }
    }
}

#[tokio::test]
async fn only_declared_secrets_are_there_and_none_is_told() {
    // Cargo sets both for every test.
    let (secret, other) = ("CARGO_PKG_NAME", "CARGO_MANIFEST_DIR");
    let stage = stage();
    let order = json!([["secret", "env", secret], ["other", "env", other]]);
    let declared = |required| {
        permissions(json!(false), &["probe"], &[], json!({secret: {"type": "string", "required": required}}))
    };
    for (kind, found) in tries(&stage, declared(true), order.clone()).await {
        assert_eq!(found, json!({"secret": "[secret]", "other": null}), "{kind}: it was there, and is masked");
    }
    for (kind, found) in tries(&stage, permissions(json!(false), &["probe"], &[], json!({})), order).await {
        assert_eq!(found, json!({"secret": null, "other": null}), "{kind}");
    }
    let python = json!({"module": "probe", "function": "run", "args": ["${NO_SUCH_SECRET}"], "cwd": "probe"});
    let command = json!({"entrypoint": "touch", "args": ["/tmp/x"], "env": {"X": "${NO_SUCH_SECRET}"}});
    for (name, exec) in [("command", command), ("python", python)] {
        let needs = permissions(json!(false), &["probe"], &[], json!({"NO_SUCH_SECRET": {"type": "string"}}));
        stage.tool(name, json!({"exec": {name: exec}, "permissions": needs}));
        let outcome = stage.call(name, json!({})).await;
        assert_eq!(outcome.error.as_ref().unwrap().kind, ErrorKind::NotFound, "{outcome:?}");
        assert!(wrong(&outcome).ends_with("is declared and nowhere to be found; nothing ran"), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_bound_secret_goes_to_no_program_that_could_carry_it_elsewhere() {
    // Cargo sets it for every test.
    let secret = "CARGO_PKG_NAME";
    let stage = probed(Stage::with(|settings| {
        let hosts = vec!["api.test".parse().unwrap(), "*.pages.test:443".parse().unwrap()];
        let source = SecretSource { command: None, hosts };
        settings.secrets = Arc::new(Secrets::new(None, [(secret.to_owned(), source)].into()));
    }));
    let order = json!([["secret", "env", secret]]);
    let declared =
        |network: Value| permissions(network, &["probe"], &[], json!({secret: {"type": "string", "required": false}}));
    for network in [json!(false), json!([]), json!(["api.test:8443", "api.test", "*.a.pages.test:443"])] {
        for (kind, found) in tries(&stage, declared(network.clone()), order.clone()).await {
            assert_eq!(found, json!({"secret": "[secret]"}), "{kind} {network}: it was there, and is masked");
        }
    }
    let command = json!({"entrypoint": "./probe/main.py", "stdin": "${order}"});
    let python = json!({"module": "probe", "function": "run", "args": ["${order}"], "cwd": "probe"});
    for (network, beyond) in [
        (json!(true), "the whole web"),
        (json!(["evil.test"]), "evil.test"),
        (json!(["api.test", "evil.test:443"]), "evil.test:443"),
        (json!(["*.api.test"]), "*.api.test"),
        (json!(["a.pages.test"]), "a.pages.test"),
    ] {
        for (name, exec) in [("command", &command), ("python", &python)] {
            stage.tool(name, json!({"exec": {name: exec}, "permissions": declared(network.clone())}));
            let outcome = stage.call(name, json!({"order": order})).await;
            let error = outcome.error.as_ref().unwrap();
            let bound = "the secret `CARGO_PKG_NAME` is bound to api.test, *.pages.test:443";
            assert_eq!(error.message, format!("{bound}, and this tool may reach {beyond}; nothing ran"), "{name}");
            assert_eq!(error.kind, ErrorKind::Denied);
            assert!(error.hint.as_ref().unwrap().contains("haft secret set CARGO_PKG_NAME --host"), "{outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_file_that_holds_a_secret_is_told_and_stays_as_it_is() {
    let stage = stage();
    std::fs::create_dir_all(stage.root().join("out")).unwrap();
    stage.script(
        "probe/leak.sh",
        "#!/bin/sh\nmkdir out/deep; printf %s \"$CARGO_PKG_NAME\" > out/deep/a.txt; echo plain > out/b.txt\n",
    );
    let secrets = json!({"CARGO_PKG_NAME": {"type": "string"}});
    stage.tool(
        "leak",
        json!({"outputs": {"format": "text"}, "exec": {"command": {"entrypoint": "./probe/leak.sh"}},
            "permissions": permissions(json!(false), &["probe"], &["out"], secrets)}),
    );
    let dry = stage
        .haft
        .dry_run(haft_core::Call::new(haft_runtime::new_call_id(), "leak", json!({})), &haft_runtime::Halt::new())
        .await;
    let diff = dry.data.as_ref().unwrap()["diff"].as_str().unwrap();
    assert!(diff.contains("+[secret]") && diff.contains("+plain") && !diff.contains("haft-runtime"), "{diff}");
    let outcome = stage.call("leak", json!({})).await;
    assert_eq!(outcome.warnings, ["`out/deep/a.txt` now holds a secret that the tool was given"], "{outcome:?}");
    assert_eq!(stage.read("out/deep/a.txt").as_deref(), Some("haft-runtime"), "what can be taken back is exact");
}

#[tokio::test]
async fn others_are_not_signalled() {
    let stage = stage();
    let order = json!([
        ["who started it", "kill", std::process::id()],
        ["its keeper's keeper", "kill", std::os::unix::process::parent_id()]
    ]);
    for (kind, found) in tries(&stage, narrow(), order).await {
        for (what, came) in found.as_object().unwrap() {
            assert_ne!(came, "worked", "{kind}: {what}");
        }
    }
}

#[tokio::test]
async fn no_link_and_no_environment_shows_more_than_is_declared() {
    let stage = stage();
    std::os::unix::fs::symlink(stage.outside(), stage.root().join("way")).unwrap();
    let place = stage.outside().join("elsewhere.txt");
    let order = json!([["it", "read", place]]);
    stage.tool(
        "linked",
        json!({"exec": {"command": {"entrypoint": "./probe/main.py", "stdin": "${order}"}},
        "permissions": permissions(json!(false), &["way/elsewhere.txt"], &[], json!({}))}),
    );
    let came = stage.call("linked", json!({ "order": order })).await;
    let said = wrong(&came);
    assert!(said.contains("there is a link on the way to it"), "{said}");
    for venv in ["/", "/usr", ".", "way"] {
        let python = json!({"module": "probe", "function": "run", "args": ["${order}"], "cwd": "probe", "venv": venv});
        stage.tool(
            "housed",
            json!({"exec": {"python": python}, "permissions": permissions(json!(false), &[], &[], json!({}))}),
        );
        let came = stage.call("housed", json!({ "order": order })).await;
        let said = wrong(&came);
        assert!(said.contains("virtual environment"), "{venv}: {said}");
    }
}

#[tokio::test]
async fn a_declared_place_is_where_it_says_and_nowhere_else() {
    let stage = stage();
    let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, stage.root().join(at)).unwrap();
    stage.file(".git/hooks/old", "x");
    stage.file("sub/x", "x");
    link(".git", "a");
    link("sub", "inside");
    link(stage.root().to_str().unwrap(), "round");
    std::os::unix::fs::symlink(stage.root().join("sub"), stage.outside().join("back")).unwrap();
    let (absolute, back) = (stage.root().join("a/hooks"), stage.outside().join("back"));
    for place in [
        "/proc/self/cwd/sub",
        "a/hooks",
        "a",
        "inside",
        "round/sub",
        "sub/..",
        "sub/../.git/hooks",
        absolute.to_str().unwrap(),
        back.to_str().unwrap(),
    ] {
        for declared in
            [permissions(json!(false), &[], &[place], json!({})), permissions(json!(false), &[place], &[], json!({}))]
        {
            stage.tool(
                "writer",
                json!({"exec": {"command": {"entrypoint": "/bin/sh", "args": ["-c", "echo x > .git/hooks/pre-commit; echo x > a/hooks/y"]}},
                "permissions": declared}),
            );
            let came = stage.call("writer", json!({})).await;
            let said = wrong(&came);
            assert!(said.contains("link") || said.contains("`..` behind a name"), "{place}: {said}");
        }
    }
    let hooks: Vec<_> = std::fs::read_dir(stage.root().join(".git/hooks")).unwrap().flatten().collect();
    assert_eq!(hooks.len(), 1);
}

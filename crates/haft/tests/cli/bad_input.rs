//! Bad input gets a clear error and loses nothing.

use crate::{Env, Ran};
use serde_json::json;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

#[test]
fn every_violation_is_listed_with_its_pointer() {
    let env = Env::new();
    let (kind, message, code) = env.err("file.edit", json!({"path": 5, "old_string": "a", "newstring": "b"}), &[]);
    assert_eq!((kind.as_str(), code), ("invalid_input", 2));
    insta::assert_snapshot!(message, @r#"
    the arguments of `file.edit` do not fit its schema:
      /new_string: expected string, got nothing
      /path: expected string, got number 5
      /newstring: expected no such property (did you mean `new_string`?), got string "b"
    "#);
}

#[test]
fn bytes_that_are_not_utf8_hide_nothing_else() {
    let env = Env::new();
    env.file("bad.txt", [b"fine\n".repeat(200).as_slice(), b"\xff\xfe\x01", b"fine\n"].concat());
    let read = env.ok("file.read", json!({"path": "bad.txt", "offset": 200}));
    let output = read["output"].as_str().unwrap();
    assert!(output.starts_with("   200\tfine\n   201\t\u{fffd}\u{fffd}"), "{output}");
    assert!(output.ends_with("[bytes that are not valid UTF-8 are shown as \u{fffd}]"), "{output}");
    let whole = env.ok("file.read", json!({"path": "bad.txt", "encoding": "base64"}));
    assert!(whole["output"].as_str().unwrap().len() > 1300 || whole["data"].is_object());
}

#[test]
fn arguments_that_are_not_utf8_are_bad_usage() {
    let env = Env::new();
    let mut command = env.command(&["call", "file.read"]);
    command.arg(std::ffi::OsStr::from_bytes(b"path=\xff"));
    assert_eq!(Ran::from(command.output().unwrap()).code, 2);
}

#[test]
fn a_nul_in_a_path() {
    let (kind, message, code) = Env::new().err("file.read", json!({"path": "a\0b"}), &[]);
    assert_eq!((kind.as_str(), code), ("invalid_input", 2));
    assert!(message.contains("NUL"), "{message}");
}

#[test]
fn a_loop_of_links() {
    let env = Env::new();
    symlink("b", env.root().join("a")).unwrap();
    symlink("a", env.root().join("b")).unwrap();
    let (kind, message, _) = env.err("file.read", json!({"path": "a"}), &[]);
    assert_eq!(kind, "invalid_input");
    assert!(message.contains("loop"), "{message}");
    env.ok("file.glob", json!({"pattern": "**/*"}));
}

#[test]
fn an_unreadable_file() {
    let env = Env::new();
    let path = env.file("secret.txt", "x");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&path).is_ok() {
        return; // root reads everything; the ordinary user's run of this test proves it
    }
    let (kind, message, _) = env.err("file.read", json!({"path": "secret.txt"}), &[]);
    assert_eq!((kind.as_str(), message.as_str()), ("failed", "secret.txt: permission denied"));
}

#[test]
fn a_fifo_does_not_hang_and_a_directory_says_what_to_use() {
    let env = Env::new();
    assert!(Command::new("mkfifo").arg(env.root().join("pipe")).status().unwrap().success());
    let (_, message, _) = env.err("file.read", json!({"path": "pipe"}), &[]);
    assert!(message.contains("not a regular file"), "{message}");
    std::fs::create_dir(env.root().join("sub")).unwrap();
    let (outcome, _) = env.call("file.read", json!({"path": "sub"}), &[]);
    assert!(outcome["error"]["hint"].as_str().unwrap().contains("ls"), "{outcome:#}");
}

#[test]
fn fifo_among_the_locks_of_a_shared_data_directory_does_not_hang_a_call() {
    let env = Env::new();
    let write = r#"{"path": "a.txt", "content": "a"}"#;
    assert_eq!(env.run(&["call", "file.write", write, "--yes"]).code, 0);
    let fifo = env.store().parent().unwrap().join("locks/00aa");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(Command::new("touch").args(["-d", "2020-01-01"]).arg(&fifo).status().unwrap().success());
    let other = r#"{"path": "b.txt", "content": "b"}"#;
    let mut call = env.command(&["call", "file.write", other, "--yes"]).spawn().unwrap();
    let begun = std::time::Instant::now();
    let ended = loop {
        if let Some(ended) = call.try_wait().unwrap() {
            break Some(ended);
        }
        if begun.elapsed() > std::time::Duration::from_mins(1) {
            let _ = call.kill();
            break None;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_eq!(ended.and_then(|ended| ended.code()), Some(0), "it waits for the FIFO");
    assert!(fifo.symlink_metadata().is_ok(), "it is no lock, and is not swept");
}

#[test]
fn a_working_directory_that_vanished() {
    let env = Env::new();
    let gone = env.root().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!(
        "cd {} && rmdir {} && exec {} tools",
        gone.display(),
        gone.display(),
        env!("CARGO_BIN_EXE_haft")
    ));
    let ran = Ran::from(command.env("HOME", env.dir.path()).output().unwrap());
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("--root"), "{}", ran.stderr);
}

#[test]
fn a_thousand_nested_arrays() {
    let nested = format!("{{\"expression\": {}1{}}}", "[".repeat(1000), "]".repeat(1000));
    let ran = Env::new().run(&["call", "calc.eval", &nested, "--json"]);
    assert_eq!(ran.code, 2);
    assert!(ran.json()["error"]["message"].as_str().unwrap().contains("nests too deeply"), "{}", ran.stdout);
}

#[test]
fn a_ten_megabyte_argument_is_written_and_a_larger_one_refused() {
    let env = Env::new();
    let send = |megabytes: usize| {
        let args = json!({"path": "big.txt", "content": "x".repeat(megabytes << 20)}).to_string();
        let mut child = env
            .command(&["call", "file.write", "-", "--yes", "--json", "--session", &megabytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(args.as_bytes()).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    };
    assert_eq!(send(10).code, 0);
    assert_eq!(std::fs::metadata(env.root().join("big.txt")).unwrap().len(), 10 << 20);
    let refused = send(20);
    assert_eq!(refused.code, 2);
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("larger than 16 MiB"), "{}", refused.stdout);
}

#[test]
fn a_two_gigabyte_file_is_read_in_little_memory() {
    let env = Env::new();
    let path = env.file("huge.txt", "first line\n");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(2 << 30).unwrap();
    // A bound on the address space that reading it whole would break through at once.
    let script =
        format!("ulimit -v 1000000; exec {} call file.read path=huge.txt limit:=1 --json", env!("CARGO_BIN_EXE_haft"));
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).current_dir(env.root()).env("HOME", env.dir.path().join("home"));
    let ran = Ran::from(command.output().unwrap());
    let outcome = ran.json();
    // A sparse file is full of NUL bytes, so it is either shown to its first line or called binary.
    assert!(
        outcome["success"] == true || outcome["error"]["message"].as_str().unwrap().contains("binary"),
        "{outcome:#}"
    );
    let (_, message, _) =
        env.err("file.edit", json!({"path": "huge.txt", "old_string": "a", "new_string": "b"}), &["--yes"]);
    assert!(message.contains("larger than 64.0MB"), "{message}");
}

#[test]
fn a_full_disk_leaves_the_old_content() {
    let env = Env::new();
    let script = format!(
        r#"set -e
        mount -t tmpfs -o size=64k none {root}
        cd {root} && printf precious > a.txt
        haft={haft}
        $haft call file.read path=a.txt --json >/dev/null
        head -c 200000 /dev/zero | tr '\0' x > /tmp/haft-full-$$ ; big=$(cat /tmp/haft-full-$$); rm /tmp/haft-full-$$
        printf '{{"path":"a.txt","content":"%s"}}' "$big" | $haft call file.write - --yes --json || true
        cat a.txt; ls -A"#,
        root = env.root().display(),
        haft = env!("CARGO_BIN_EXE_haft"),
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    let ran = Ran::from(command.env("HOME", env.dir.path().join("home")).output().unwrap());
    if ran.stderr.contains("unshare") && ran.stdout.is_empty() {
        // Where the kernel gives ordinary users no namespaces, there is no disk that may be filled.
        assert!(ran.stderr.contains("Operation not permitted"), "{}", ran.stderr);
        return;
    }
    let (outcome, rest) = ran.stdout.split_once('\n').unwrap_or_else(|| panic!("{}", ran.stderr));
    let outcome: serde_json::Value =
        serde_json::from_str(outcome).unwrap_or_else(|_| panic!("{} {}", ran.stdout, ran.stderr));
    assert_eq!(outcome["error"]["kind"], "failed", "{outcome:#}");
    assert!(outcome["error"]["message"].as_str().unwrap().contains("nothing was changed"), "{outcome:#}");
    assert_eq!(rest, "preciousa.txt\n", "the old content, and no draft left behind");
}

#[test]
fn a_binary_file_is_not_shown_as_text() {
    let env = Env::new();
    env.file("a.out", b"\x7fELF\x02\x01\x01\0\0\0");
    let (kind, message, _) = env.err("file.read", json!({"path": "a.out"}), &[]);
    assert_eq!(kind, "failed");
    assert!(message.contains("ELF"), "{message}");
}

#[test]
fn a_file_with_a_bad_line_runs_nothing_as_a_batch() {
    let env = Env::new();
    env.file("in.jsonl", "{\"tool\":\"file.write\",\"args\":{\"path\":\"a\",\"content\":\"x\"}}\n{\"tool\":\n");
    let ran = env.run(&["batch", "in.jsonl", "--yes"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("line 2"), "{}", ran.stderr);
    assert!(!env.root().join("a").exists());
}

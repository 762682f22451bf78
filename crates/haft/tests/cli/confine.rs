//! `haft confine`: any program under explicit permissions, and everything odd that can be asked of it.

use crate::shell::confines;
use crate::{Env, Ran};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;

fn scene() -> Option<Env> {
    let env = Env::new();
    confines(&env).then_some(env)
}

fn confine(env: &Env, flags: &[&str], command: &[&str]) -> Ran {
    env.run(&[&["confine"], flags, &["--"], command].concat())
}

fn sh(env: &Env, flags: &[&str], script: &str) -> Ran {
    confine(env, flags, &["sh", "-c", script])
}

#[test]
fn the_exit_status_and_the_streams_are_the_programs_own() {
    let Some(env) = scene() else { return };
    let ran = sh(&env, &[], "echo out; echo err >&2; exit 42");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (42, "out\n", "err\n"));
    assert_eq!(sh(&env, &[], "kill -9 $$").code, 137);
    assert_eq!(confine(&env, &[], &["no-such-program"]).code, 127);
    assert_eq!(confine(&env, &[], &["/etc/passwd"]).code, 126);
    assert_eq!(sh(&env, &["--wall", "0.3"], "sleep 30").code, 124);
    let mut child = env
        .command(&["confine", "--", "cat"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"through");
}

#[test]
fn what_is_not_named_is_not_there() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "inside");
    let root = env.root().display().to_string();
    assert_ne!(sh(&env, &[], &format!("cat {root}/a.txt")).code, 0);
    assert_eq!(sh(&env, &["--read", "."], "cat a.txt").stdout, "inside");
    assert_ne!(sh(&env, &["--read", "."], "echo x > a.txt").code, 0);
    assert_eq!(sh(&env, &["--write", "."], "echo new > a.txt; echo b > b.txt").code, 0);
    assert_eq!((env.read("a.txt").as_str(), env.read("b.txt").as_str()), ("new\n", "b\n"));
    assert_ne!(sh(&env, &["--write", ".", "--protect", "a.txt"], "echo again > a.txt").code, 0);
    assert_eq!(env.read("a.txt"), "new\n");
    let mut command = env.command(&["confine", "--secret", "TOKEN", "--", "sh", "-c", "echo $TOKEN $OTHER"]);
    let ran = Ran::from(command.env("TOKEN", "t").env("OTHER", "o").output().unwrap());
    assert_eq!(ran.stdout, "t\n");
    assert_eq!(confine(&env, &["--secret", "NOT_SET"], &["true"]).code, 2);
}

#[test]
fn the_report_says_what_happened() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "one\n");
    let report = |flags: &[&str], script: &str| -> Value {
        let file = env.dir.path().join("report.json");
        sh(&env, &[flags, &["--json", file.to_str().unwrap()]].concat(), script);
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    };
    let said = report(&["--write", "."], "echo two >> a.txt; mkdir d; rm -f nothing");
    assert_eq!(said["level"], "full");
    assert_eq!(
        said["files"],
        serde_json::json!([{"path": "a.txt", "change": "changed"}, {"path": "d", "change": "created"}])
    );
    let said = report(&["--write", ".", "--dry-run"], "rm a.txt");
    assert!(said["diff"].as_str().unwrap().contains("-two"), "{said:#}");
    assert!(env.root().join("a.txt").exists());
    let said = report(&["--wall", "0.2"], "sleep 9");
    assert_eq!(said["limits_hit"], serde_json::json!(["wall"]));
    let said = report(&[], "bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'");
    assert_eq!(
        (said["hosts"][0]["host"].as_str(), said["hosts"][0]["allowed"].as_bool()),
        (Some("192.0.2.1"), Some(false)),
        "{said:#}"
    );
}

#[test]
fn a_policy_file_says_the_same_and_counts_from_its_own_place() {
    let Some(env) = scene() else { return };
    env.file("sub/in.txt", "in\n");
    env.file("policy/p.yml", "write: [../sub]\nprotect: [../sub/in.txt]\nnet: none\nmem: 256m\npids: 50\nwall: 20\n");
    let ran = sh(&env, &["--policy", "policy/p.yml"], "cd sub && echo x > new.txt; echo y > in.txt");
    assert_ne!(ran.code, 0);
    assert_eq!((env.read("sub/new.txt").as_str(), env.read("sub/in.txt").as_str()), ("x\n", "in\n"));
    env.file("policy/p.json", r#"{"read": ["../sub"], "net": {"allow": []}}"#);
    assert_eq!(sh(&env, &["--policy", "policy/p.json"], "cat sub/in.txt").stdout, "in\n");
    env.file("policy/bad.yml", "wirte: [.]\n");
    let ran = confine(&env, &["--policy", "policy/bad.yml"], &["true"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("wirte"), "{}", ran.stderr);
}

#[test]
fn odd_requests_have_defined_answers() {
    let Some(env) = scene() else { return };
    env.file("dir/a.txt", "a");
    std::os::unix::fs::symlink("dir", env.root().join("link")).unwrap();
    for (flags, said) in [
        (&["--write", "not-there"][..], "does not exist; make it first"),
        (&["--read", "not-there"], "does not exist"),
        (&["--write", "link"], "is a symbolic link to dir"),
        (&["--write", "/"], "contains the system's own directories"),
        (&["--read", "/proc"], "belongs to the kernel"),
        (&["--write", "dir", "--protect", "other"], "is in no writable root"),
        (&["--net", "a.*.com"], "a.*.com"),
        (&["--net", "*"], "*"),
        (&["--net", "example.com:0"], "example.com:0"),
        (&["--net", "http://example.com"], "http://example.com"),
        (&["--mem", "lots"], "expected a size"),
        (&["--wall", "0"], "expected a number of seconds"),
        (&["--write", "dir", "--direct", "--protect", "dir/later"], "can only protect what is there"),
    ] {
        let ran = confine(&env, flags, &["true"]);
        assert_eq!(ran.code, 2, "{flags:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{flags:?}: {}", ran.stderr);
    }
    // A root inside another, a relative one, one named twice: each is what it says.
    let ran = sh(
        &env,
        &["--read", ".", "--write", "dir", "--write", "./dir", "--read", "dir"],
        "echo b > dir/b.txt; echo x > x.txt",
    );
    assert_ne!(ran.code, 0);
    assert!(env.root().join("dir/b.txt").exists() && !env.root().join("x.txt").exists());
    // A protected place that does not exist stays absent.
    let ran = sh(&env, &["--write", "dir", "--protect", "dir/later"], "echo x > dir/later");
    assert_eq!(ran.code, 125, "{}", ran.stderr);
    assert!(!env.root().join("dir/later").exists());
    // An empty list of hosts is none.
    assert_ne!(sh(&env, &["--net", ""], "exec 3<>/dev/tcp/192.0.2.1/80").code, 0);
}

#[test]
fn the_report_and_the_guard_cannot_be_led_astray() {
    let Some(env) = scene() else { return };
    let ran = sh(&env, &["--write", ".", "--json", "report.json"], "ln -s /tmp/x report.json");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("the program may write there"), "{}", ran.stderr);
    assert_eq!(confine(&env, &["--json", "/no/such/place"], &["true"]).code, 2);
    // Naming a repository does not name its hooks; naming its hooks does, and a single file can be named.
    env.file(".git/hooks/x", "x");
    env.file(".git/config", "c");
    assert_ne!(sh(&env, &["--write", ".git"], "echo evil > .git/hooks/x").code, 0);
    assert_eq!(sh(&env, &["--write", ".", "--write", ".git/hooks"], "echo y > .git/hooks/x").code, 0);
    assert_eq!(sh(&env, &["--write", ".", "--write", ".git/config"], "echo d > .git/config").code, 0);
    assert_eq!((env.read(".git/hooks/x").as_str(), env.read(".git/config").as_str()), ("y\n", "d\n"));
    // A home that is a link, or lies below a root, is a home.
    let home = env.dir.path().join("home");
    std::fs::write(home.join(".bashrc"), "mine").unwrap();
    let ran = sh(&env, &["--write", ".."], "echo evil > ../home/.bashrc");
    assert_eq!(ran.code, 125, "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(home.join(".bashrc")).unwrap(), "mine");
    let ran =
        sh(&env, &["--write", ".."], "mkdir -p ../home/.config/haft; echo 'x: 1' > ../home/.config/haft/config.yml");
    assert_eq!(ran.code, 125, "{}", ran.stderr);
}

#[test]
fn what_is_cut_off_is_not_kept() {
    let Some(env) = scene() else { return };
    assert_eq!(sh(&env, &["--write", ".", "--wall", "0.3"], "echo half > a.txt; sleep 9").code, 124);
    assert!(!env.root().join("a.txt").exists());
    let ran = sh(&env, &["--write", ".", "--cpu", "1"], "echo half > a.txt; while :; do :; done");
    assert!(ran.stderr.contains("processor time"), "{}", ran.stderr);
    assert!(!env.root().join("a.txt").exists());
    env.file("p.json", r#"{"disk": 0}"#);
    assert_eq!(confine(&env, &["--policy", "p.json"], &["true"]).code, 2);
}

/// The command as an ordinary user: root may look into everything, and would prove nothing.
fn as_an_ordinary_user(env: &Env, args: &[&str]) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let plain = env.command(args);
    if !rustix::process::geteuid().is_root() {
        return plain;
    }
    // Wherever the project was built, others need not be able to go.
    let haft = env.dir.path().join("haft");
    std::fs::copy(env!("CARGO_BIN_EXE_haft"), &haft).unwrap();
    let owner = std::process::Command::new("chown").args(["-R", "54321:54321"]).arg(env.dir.path()).status();
    assert!(owner.unwrap().success());
    let mut command = std::process::Command::new(haft);
    command.args(args).current_dir(env.root()).env_clear().uid(54321).gid(54321);
    command.env("HOME", env.dir.path().join("home")).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

#[test]
fn what_nobody_may_look_into_is_not_kept() {
    let Some(env) = scene() else { return };
    let script = "mkdir -p d/.git/hooks; echo evil > d/.git/hooks/p; chmod 311 d";
    let output = as_an_ordinary_user(&env, &["confine", "--write", ".", "--", "sh", "-c", script]).output().unwrap();
    let ran = Ran::from(output);
    assert_eq!(ran.code, 125, "{}", ran.stderr);
    assert!(ran.stderr.contains("could not be looked through"), "{}", ran.stderr);
    assert!(!env.root().join("d").exists());
}

#[test]
fn whoever_writes_is_gone_before_what_was_written_is_judged() {
    let Some(env) = scene() else { return };
    // Children that wait for their parent's end, and then move a prepared repository into place.
    let script = "import os,time\nfor i in range(20):\n  os.makedirs(f'd{i}/x/hooks'); open(f'd{i}/x/hooks/p','w').write('evil')\n  if os.fork()==0:\n    p=os.getppid()\n    while os.getppid()==p: pass\n    time.sleep(i*0.0001)\n    os.rename(f'd{i}/x',f'd{i}/.git')\n    os._exit(0)\n";
    for round in 0..5 {
        let dir = env.root().join(format!("r{round}"));
        std::fs::create_dir(&dir).unwrap();
        let mut command = env.command(&["confine", "--write", ".", "--", "python3", "-c", script]);
        command.current_dir(&dir).output().unwrap();
        let planted =
            std::fs::read_dir(&dir).unwrap().flatten().filter(|entry| entry.path().join(".git").exists()).count();
        assert_eq!(planted, 0);
    }
}

#[test]
fn signals_reach_the_program_and_haft_waits_for_it() {
    let Some(env) = scene() else { return };
    let script = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.1; done";
    let mut child =
        env.command(&["confine", "--", "sh", "-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut ready = [0; 6];
    stdout.read_exact(&mut ready).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("caught\n", Some(7)));
}

/// A server on loopback that answers every connection with one line.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
        }
    });
    port
}

#[test]
fn a_list_of_hosts_is_the_only_way_out() {
    let Some(env) = scene() else { return };
    let (allowed, other) = (server(), server());
    let fetch = "import sys,urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode(), end='')";
    let get = |flags: &[&str], url: &str| confine(&env, flags, &["python3", "-c", fetch, url]);
    let list = format!("127.0.0.1:{allowed}");
    let ran = get(&["--net", &list], &format!("http://127.0.0.1:{allowed}/"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{}", ran.stderr);
    for url in [format!("http://127.0.0.1:{other}/"), "http://example.com/".to_owned()] {
        let ran = get(&["--net", &list], &url);
        assert_ne!(ran.code, 0, "{url}: {}", ran.stdout);
        assert!(!ran.stdout.contains("hello"), "{url}");
    }
    let named = format!("localhost:{allowed}");
    let ran = get(&["--net", &named], &format!("http://localhost:{allowed}/"));
    assert_ne!(ran.code, 0, "a name that leads to a private address is refused: {}", ran.stdout);
    assert_ne!(get(&[], &format!("http://127.0.0.1:{allowed}/")).code, 0, "loopback is the program's own");
    let ran = get(&["--net", "all"], &format!("http://127.0.0.1:{allowed}/"));
    assert_eq!(ran.stdout, "hello\n", "{}", ran.stderr);
}

/// Runs haft where no user namespaces can be made: in one whose limit is zero.
fn without_namespaces(env: &Env, args: &str) -> Ran {
    let haft = env!("CARGO_BIN_EXE_haft");
    let script = format!("echo 0 > /proc/sys/user/max_user_namespaces && exec {haft} {args}");
    let mut command = std::process::Command::new("unshare");
    command.args(["-Ur", "sh", "-c", &script]).current_dir(env.root()).env_clear();
    command.env("HOME", env.dir.path().join("home")).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    Ran::from(command.output().unwrap())
}

#[test]
fn with_less_than_namespaces_less_is_offered_and_said() {
    let Some(env) = scene() else { return };
    std::fs::remove_dir_all(env.root().join(".git")).unwrap();
    env.file("dir/a.txt", "a\n");
    let doctor = without_namespaces(&env, "doctor").stdout;
    assert!(
        doctor.contains("landlock+seccomp") && doctor.contains("sysctl user.max_user_namespaces=10000"),
        "{doctor}"
    );
    let outside = env.file("outside.txt", "out");
    let ran = without_namespaces(
        &env,
        &format!(
            "confine --write dir -- sh -c 'cat dir/a.txt; echo b > dir/b.txt; cat {}; echo x > {}'",
            outside.display(),
            outside.display()
        ),
    );
    assert_eq!(ran.stdout, "a\n", "{}", ran.stderr);
    assert_eq!((env.read("dir/b.txt").as_str(), env.read("outside.txt").as_str()), ("b\n", "out"));
    for refused in ["--net example.com", "--write dir --dry-run", "--write dir --protect dir/a.txt"] {
        let ran = without_namespaces(&env, &format!("confine {refused} -- true"));
        assert_eq!(ran.code, 125, "{refused}: {}", ran.stderr);
        assert!(ran.stderr.contains("needs namespaces"), "{refused}: {}", ran.stderr);
    }
    env.config("confinement: {require: full}\n");
    assert_eq!(without_namespaces(&env, "confine -- true").code, 125);
    let ran = without_namespaces(&env, "call shell.exec command=true --yes --json");
    assert_eq!(ran.json()["error"]["kind"], "confinement", "{}", ran.stdout);
    assert_eq!(without_namespaces(&env, "doctor").code, 1);
}

//! Everyday programs in the sandbox: what they do there is what they do without it.

use crate::Env;
use crate::shell::{exec, scene};
use serde_json::json;
use std::process::Stdio;

const SOCKET: &str = "import os, socket, tempfile
path = os.path.join(tempfile.mkdtemp(), 's')
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen()
socket.socket(socket.AF_UNIX).connect(path)
print('connected')
";

fn has(program: &str) -> bool {
    let found =
        std::process::Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("SKIPPED: {program} is not here");
    }
    found.is_ok()
}

fn run_in(env: &Env, variables: &[(&str, &str)], command: &str) -> (serde_json::Value, i32) {
    let args = json!({"command": command}).to_string();
    let mut haft = env.command(&["call", "shell.exec", &args, "--yes", "--json"]);
    haft.envs(variables.iter().copied());
    let ran = crate::Ran::from(haft.output().unwrap());
    (ran.json(), ran.code)
}

#[test]
fn unix_sockets_work_beside_a_git_configuration_and_on_the_network() {
    let Some(env) = scene() else { return };
    std::fs::write(env.dir.path().join("home/.gitconfig"), "[user]\n\tname = A\n").unwrap();
    env.file("connect.py", SOCKET);
    for config in ["", "permissions: {network: true}\n"] {
        env.config(config);
        let (outcome, code) = exec(&env, "/usr/bin/python3 connect.py");
        assert_eq!((code, outcome["output"].as_str().unwrap()), (0, "connected\n"), "{config} {outcome:#}");
    }
}

#[test]
fn debuggers_trace_their_own_processes() {
    let Some(env) = scene() else { return };
    if !has("strace") {
        return;
    }
    let (outcome, code) =
        exec(&env, "strace -f -e trace=execve -o trace.log sh -c 'ls > /dev/null'; grep -c execve trace.log");
    assert_eq!(code, 0, "{outcome:#}");
    let refused = exec(&env, "strace -p 1 2>&1").0;
    assert!(refused["output"].as_str().unwrap().contains("ermitted"), "the keeper is not traced: {refused:#}");
}

#[test]
fn shared_memory_segments_work_up_to_a_bound() {
    let Some(env) = scene() else { return };
    let ask = |size: u64| {
        let program = format!(
            "import ctypes
l = ctypes.CDLL(None, use_errno=True)
l.shmat.restype = ctypes.c_void_p
i = l.shmget(0, ctypes.c_size_t({size}), 0o1600)
assert i >= 0, ctypes.get_errno()
ctypes.memset(l.shmat(i, None, 0), 7, 4096)
print('written')
"
        );
        env.file("segment.py", program);
        exec(&env, "/usr/bin/python3 segment.py")
    };
    assert_eq!(ask(1 << 20).0["output"], "written\n");
    let (outcome, code) = ask(300 << 20);
    assert!(code != 0 && outcome["output"].as_str().unwrap().contains("AssertionError: 28"), "{outcome:#}");
}

#[test]
fn environment_of_python_outside_the_project_is_used_whole() {
    let Some(env) = scene() else { return };
    let place = env.dir.path().join("environments/one");
    let made = std::process::Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(&place)
        .status()
        .unwrap();
    if !made.success() {
        eprintln!("SKIPPED: python3 has no venv");
        return;
    }
    let lib = std::fs::read_dir(place.join("lib")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(lib.join("site-packages/only_here.py"), "NAME = 'only here'\n").unwrap();
    let path = format!("{}:/usr/bin:/bin", place.join("bin").display());
    let activated = [("VIRTUAL_ENV", place.to_str().unwrap()), ("PATH", path.as_str())];
    let (outcome, code) = run_in(&env, &activated, "python3 -c 'import only_here; print(only_here.NAME)'");
    assert_eq!((code, &outcome["output"]), (0, &json!("only here\n")), "{outcome:#}");
}

#[test]
fn certificates_and_toolchains_that_variables_name_are_found() {
    let Some(env) = scene() else { return };
    let outside = env.dir.path().join("outside");
    std::fs::create_dir_all(outside.join("jdk/lib")).unwrap();
    std::fs::write(outside.join("jdk/lib/release"), "21\n").unwrap();
    std::fs::write(outside.join("ca.crt"), "certificate\n").unwrap();
    std::fs::write(outside.join("other"), "of nobody's concern\n").unwrap();
    let at = |name: &str| outside.join(name).to_str().unwrap().to_owned();
    let (jdk, certificate) = (at("jdk"), at("ca.crt"));
    let variables = [("JAVA_HOME", jdk.as_str()), ("SSL_CERT_FILE", &certificate), ("CI", "true"), ("API_TOKEN", "x")];
    let command = "cat \"$JAVA_HOME/lib/release\" \"$SSL_CERT_FILE\"; echo \"$CI.$API_TOKEN.\"; ls \"$JAVA_HOME/..\"";
    let (outcome, code) = run_in(&env, &variables, command);
    assert_eq!((code, &outcome["output"]), (0, &json!("21\ncertificate\ntrue..\nca.crt\njdk\n")), "{outcome:#}");
}

/// Settings under which git does the same everywhere.
const GIT: &str = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b.test GIT_COMMITTER_NAME=A \
GIT_COMMITTER_EMAIL=a@b.test GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'; ";

/// What git says of a repository.
fn git_state(dir: &std::path::Path) -> String {
    let script = "git config --list --local; git for-each-ref; git status --short --branch; git worktree list --porcelain | \
grep -v ^worktree; git submodule status; find . -name .git -prune -o -type f -print | LC_ALL=C sort; ls .git/hooks";
    let out =
        std::process::Command::new("bash").args(["-c", &format!("{GIT}{script}")]).current_dir(dir).output().unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Each command is run by haft in one project and by bash in another, and both have to be alike after it.
#[test]
fn git_does_in_the_sandbox_what_it_does_without() {
    let Some(env) = scene() else { return };
    let outside = tempfile::tempdir().unwrap();
    let plain = outside.path().join("project");
    for dir in [&env.root(), &plain] {
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir).unwrap();
    }
    // Removing the directory took its place in the store along; the project is found by its settings.
    std::fs::create_dir_all(env.root().join(".haft")).unwrap();
    std::fs::create_dir_all(plain.join(".haft")).unwrap();
    for command in [
        "git init -q -b main; echo .haft > .gitignore; echo one > a; git add .; git commit -qm one",
        "git remote add origin https://example.com/a.git; git remote -v",
        "git checkout -q -b topic; echo two >> a; git commit -qam two; git branch -m topic renamed",
        "git config user.name 'Someone Else'; git config branch.renamed.description 'what it is'",
        "git checkout -q main; echo three >> a; git commit -qam three; git rebase main renamed; echo $?",
        "printf 'one\\nthree\\ntwo\\n' > a; git add a; GIT_EDITOR=true git rebase --continue; echo $?",
        "git worktree add -q ../project/tree main; git -C tree log --oneline | cat",
        "git worktree remove tree",
        "git init -q --bare /tmp/lib.git; mkdir lib; git -C lib init -q -b main; echo x > lib/x; git -C lib add x; \
git -C lib commit -qm x; rm -rf /tmp/lib.git",
        "git clone -q lib copy; git -C copy log --oneline | cat; rm -rf copy",
        "git sparse-checkout set --cone lib; git sparse-checkout disable; git tag v1; git stash list",
        "git checkout -q main; git merge -q renamed -m merged; git cherry-pick --no-commit renamed~0; git status --short",
    ] {
        let (outcome, code) = exec(&env, &format!("{GIT}{command}"));
        let ran = std::process::Command::new("bash")
            .args(["-c", &format!("{GIT}{command}")])
            .current_dir(&plain)
            .output()
            .unwrap();
        assert_eq!(code != 0, !ran.status.success(), "{command}: {outcome:#}");
        assert_eq!(outcome["warnings"], serde_json::Value::Null, "{command}: {outcome:#}");
        assert_eq!(git_state(&env.root()), git_state(&plain), "{command}: {outcome:#}");
    }
}

#[test]
fn what_makes_git_run_something_is_not_kept_and_the_rest_is() {
    let Some(env) = scene() else { return };
    let _ = std::fs::remove_dir_all(env.root().join(".git"));
    std::fs::create_dir_all(env.root().join(".haft")).unwrap();
    exec(&env, &format!("{GIT}git init -q -b main; echo one > a; git add a; git commit -qm one"));
    let command = "git config core.fsmonitor ./run.sh; printf '#!/bin/sh\\ntouch ran' > .git/hooks/pre-commit; \
chmod +x .git/hooks/pre-commit; echo two > a; git add a";
    let (outcome, code) = exec(&env, &format!("{GIT}{command}"));
    assert_eq!(code, 0, "{outcome:#}");
    let warnings = outcome["warnings"].to_string();
    assert!(warnings.contains(".git/config is not kept: line 6: `core.fsmonitor` = `./run.sh`"), "{warnings}");
    assert!(warnings.contains(".git/hooks/pre-commit is not kept: git runs it as a hook"), "{warnings}");
    assert_eq!(env.read("a"), "two\n");
    assert!(!env.read(".git/config").contains("fsmonitor") && !env.root().join(".git/hooks/pre-commit").exists());
    // Nothing in a repository leads git elsewhere, whoever made it.
    for (command, what) in [
        ("ln -s /usr .git/worktrees", ".git/worktrees is not kept: git would follow the link"),
        (
            "rm -f .git/COMMIT_EDITMSG; ln -s ../a .git/COMMIT_EDITMSG",
            ".git/COMMIT_EDITMSG is not kept: git would follow the link",
        ),
        ("printf '%s/a\n' /usr > .git/objects/info/alternates", ".git/objects/info/alternates is not kept"),
        ("rm -rf .git; git init -q", ".git is not kept: the repository would be lost"),
        ("mkdir .git/commondir", ".git/commondir is not kept: git expects a file there"),
        ("chmod 777 .git/refs", ".git/refs is not kept: others could write it"),
    ] {
        let (outcome, _) = exec(&env, &format!("{GIT}{command}"));
        assert!(outcome["warnings"].to_string().contains(what), "{command}: {outcome:#}");
    }
    let status = exec(&env, &format!("{GIT}git status --short -- a")).0;
    assert_eq!(status["output"], "M  a\n", "what was added to the index is there: {status:#}");
}

#[test]
fn package_managers_without_a_network_end_soon_and_are_told_why() {
    let Some(env) = scene() else { return };
    env.file("package.json", r#"{"name": "a", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"}}"#);
    env.file("crate/Cargo.toml", "[package]\nname = \"a\"\nversion = \"0.1.0\"\n[dependencies]\nleft-pad = \"1\"\n");
    env.file("crate/src/lib.rs", "");
    for (program, command) in [
        ("npm", "npm install --no-audit --no-fund"),
        ("cargo", "cd crate; cargo fetch"),
        ("git", "git ls-remote https://example.com/a.git"),
        ("pip3", "pip3 download --no-cache-dir left-pad"),
    ] {
        if !has(program) {
            continue;
        }
        // The programs on the PATH may be those of a home that is not this test's.
        let home = std::env::var("HOME").unwrap();
        let (rustup, pyenv) = (format!("{home}/.rustup"), format!("{home}/.pyenv"));
        let began = std::time::Instant::now();
        let (outcome, code) = run_in(&env, &[("RUSTUP_HOME", &rustup), ("PYENV_ROOT", &pyenv)], command);
        assert!(code != 0 && began.elapsed().as_secs() < 8, "{command}: {:?} {outcome:#}", began.elapsed());
        let warnings = outcome["warnings"].to_string();
        assert!(warnings.contains("commands have no network here: `permissions.network`"), "{command}: {outcome:#}");
    }
}

/// What one command changes while another one runs is kept, or the later one is told.
#[test]
fn commands_that_end_together_are_both_kept_or_one_is_told() {
    let Some(env) = scene() else { return };
    let run = |line: &str| {
        let args = json!({"command": format!("sleep 0.2; echo {line} >> together")}).to_string();
        env.command(&["call", "shell.exec", &args, "--yes", "--json"]).stdout(Stdio::piped()).spawn().unwrap()
    };
    for _ in 0..10 {
        env.file("together", "");
        let running = ["one", "two"].map(|line| (line, run(line)));
        let ended = running.map(|(line, haft)| (line, crate::Ran::from(haft.wait_with_output().unwrap())));
        for (line, ran) in ended {
            let is_there = env.read("together").lines().any(|known| known == line);
            let is_told = ran.code != 0 && ran.json()["error"]["kind"] == "conflict";
            assert!(is_there != is_told, "{line}: {} {}", env.read("together"), ran.stdout);
        }
    }
}

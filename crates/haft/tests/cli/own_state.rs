//! haft's own state is handed out and changed by no tool, whoever says yes: here the user does, with `--yes`.

use crate::Env;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// What stands in each secret file, and must not be seen.
const SECRET: &str = "not-for-any-agent-8f3a";

/// A home in which everything may be read, with haft's state in it.
struct Scene {
    env: Env,
    data: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let env = Env::new();
        let home = env.dir.path().join("home");
        env.config(&format!("# {SECRET}\nfiles: {{read: [{}]}}\n", home.display()));
        env.ok("calc.eval", json!({"expression": "1"}));
        let data = home.join(".local/share/haft");
        for name in ["gateway-token", "gateway-agent-token", "secrets.json"] {
            std::fs::write(data.join(name), SECRET).unwrap();
        }
        std::fs::write(home.join(".config/haft/secret.key"), SECRET).unwrap();
        Self { env, data }
    }

    /// A call that the user agrees to has to be denied, and to say nothing.
    fn denied(&self, tool: &str, args: &Value) {
        let before = self.state();
        let (outcome, code) = self.env.call(tool, args.clone(), &["--yes"]);
        assert_eq!((code, outcome["error"]["kind"].as_str()), (3, Some("denied")), "{tool} {args} {outcome:#}");
        assert!(outcome["error"]["message"].as_str().unwrap().contains("own state"), "{tool} {args} {outcome:#}");
        assert!(!outcome.to_string().contains(SECRET), "{tool} {args} {outcome:#}");
        assert_eq!(self.state(), before, "{tool} {args}");
    }

    /// A call may run, but sees nothing of it.
    fn unseen(&self, tool: &str, args: &Value) {
        let before = self.state();
        let (outcome, _) = self.env.call(tool, args.clone(), &["--yes"]);
        assert!(!outcome.to_string().contains(SECRET), "{tool} {args} {outcome:#}");
        assert_eq!(self.state(), before, "{tool} {args}");
    }

    fn state(&self) -> Vec<String> {
        let secrets = ["gateway-token", "gateway-agent-token", "secrets.json", "../../../.config/haft/secret.key"];
        secrets.iter().map(|name| std::fs::read_to_string(self.data.join(name)).unwrap_or_default()).collect()
    }
}

#[test]
fn file_tools_touch_no_state_of_haft_by_any_name() {
    let scene = Scene::new();
    let token = scene.data.join("gateway-token");
    symlink(&token, scene.env.root().join("link")).unwrap();
    symlink(&scene.data, scene.env.root().join("dir")).unwrap();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let mut names = vec![
        text(&token),
        "link".to_owned(),
        "dir/gateway-token".to_owned(),
        "~/.local/share/haft/gateway-token".to_owned(),
        "../home/.local/share/haft/gateway-token".to_owned(),
        text(&scene.data.join("haft.db")),
        text(&scene.data.join("secrets.json")),
        "~/.config/haft/config.yml".to_owned(),
        "~/.config/haft/secret.key".to_owned(),
    ];
    for path in &names {
        scene.denied("file.read", &json!({"path": path}));
        scene.denied("file.write", &json!({"path": path, "content": "mine"}));
        scene.denied("file.edit", &json!({"path": path, "old_string": "x", "new_string": "mine"}));
    }
    std::fs::hard_link(&token, scene.env.root().join("hard")).unwrap();
    names.push("hard".to_owned());
    scene.denied("file.read", &json!({"path": "hard"}));
    scene.denied("file.write", &json!({"path": "hard", "content": "mine"}));
    for dir in [text(&scene.data), "dir".to_owned(), "~/.config/haft".to_owned()] {
        scene.denied("file.list", &json!({"path": dir}));
        scene.denied("file.glob", &json!({"path": dir, "pattern": "**"}));
        scene.denied("file.grep", &json!({"path": dir, "pattern": ".", "output_mode": "content"}));
    }
    for root in ["~", "."] {
        scene.unseen("file.grep", &json!({"path": root, "pattern": ".", "output_mode": "content"}));
    }
    scene.denied("file.read", &json!({"path": "/proc/self/environ"}));
    // As an address, whatever tool would be given it: a bridged one may read it.
    let address = format!("file://{}", token.display());
    scene.denied("memory.search", &json!({"query": address}));
    scene.unseen("web.fetch", &json!({"url": address}));
}

#[test]
fn shell_commands_that_name_state_of_haft_are_denied() {
    let scene = Scene::new();
    let token = scene.data.join("gateway-token");
    let token = token.to_str().unwrap();
    symlink(token, scene.env.root().join("link")).unwrap();
    for command in [
        format!("cat {token}"),
        "cat ~/.local/share/haft/gateway-token".to_owned(),
        "cat \"$HOME/.local/share/haft/gateway-token\"".to_owned(),
        "cat link".to_owned(),
        format!("ln {token} mine"),
        format!("cp {token} mine"),
        format!("tar cf mine.tar {}", scene.data.display()),
        format!("python3 -c \"print(open('{token}').read())\""),
        format!("sqlite3 {}/haft.db 'delete from approvals'", scene.data.display()),
        format!("echo x > {token}"),
        "rm -rf ~/.config/haft".to_owned(),
        "haft approvals approve 1".to_owned(),
        "env -u CLAUDECODE haft approvals approve 1".to_owned(),
        "sh -c 'haft approvals approve 1'".to_owned(),
        "/usr/bin/haft --root . approvals grant file.write '**'".to_owned(),
        "haft call file.write '{}' --yes".to_owned(),
        "haft serve --print-url".to_owned(),
        "haft secret show KEY --reveal".to_owned(),
        "haft trust --yes".to_owned(),
        "haft log".to_owned(),
    ] {
        scene.denied("shell.exec", &json!({"command": command}));
    }
}

#[test]
fn program_in_the_sandbox_does_not_see_state_of_haft_by_a_name_that_it_makes() {
    let scene = Scene::new();
    let deep = scene.env.root().join("a/b/c/d");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::hard_link(scene.data.join("gateway-token"), deep.join("hard")).unwrap();
    for command in [
        "d=.local; cat ~/$d/share/haft/gateway-token",
        "cd ~/.local/share && cat ha*/gateway-tok*",
        "find ~ -type f -name '*token*' -exec cat {} +",
        "grep -r . ~ 2>/dev/null",
        "tar cf - ~ 2>/dev/null | cat",
        "cat a/b/c/d/hard",
        "d=a/b/c; cat $d/d/ha*",
        "python3 -c 'import os; print(open(os.path.expanduser(\"~\")+\"/.local/share/\"+\"haft/gateway-token\").read())'",
    ] {
        scene.unseen("shell.exec", &json!({"command": command}));
    }
}

#[test]
fn outputs_of_earlier_calls_and_a_projects_own_files_stay_readable() {
    let scene = Scene::new();
    let outputs = scene.data.join("outputs");
    std::fs::create_dir_all(&outputs).unwrap();
    std::fs::write(outputs.join("1.txt"), "all of it").unwrap();
    let path = outputs.join("1.txt");
    let read = scene.env.ok("file.read", json!({"path": path}));
    assert!(read["output"].as_str().unwrap().contains("all of it"), "{read:#}");
    scene.env.file(".haft/config.yml", "# of the project\n");
    let read = scene.env.ok("file.read", json!({"path": ".haft/config.yml"}));
    assert!(read["output"].as_str().unwrap().contains("of the project"), "{read:#}");
    let (kind, message, code) = scene.env.err("file.write", json!({"path": ".haft/x", "content": "x"}), &["--yes"]);
    assert_eq!((kind.as_str(), code), ("denied", 3), "{message}");
    let (kind, _, code) = scene.env.err("file.read", json!({"path": path}), &["--no-input"]);
    assert_eq!((kind.as_str(), code), ("approval_required", 4));
}

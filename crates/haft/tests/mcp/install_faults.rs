//! `haft mcp install` and `uninstall` when a file cannot be written after others were: every file of the user is byte for
//! byte as it was before.

use crate::Env;
use crate::install::{files, install, place, uninstall};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The clients with two files: the one that is written first, and the one that cannot be written.
const TWO_FILES: [(&str, &str, &str); 3] = [
    ("claude", "project/.mcp.json", "project/.claude/settings.local.json"),
    ("gemini", "home/.gemini/settings.json", "home/.gemini/policies/haft.toml"),
    ("cursor", "home/.cursor/mcp.json", "home/.cursor/cli-config.json"),
];
/// A file larger than all else that haft writes here.
const LARGE: usize = 64 << 10;

/// A configuration of exactly this many bytes.
fn large_text(path: &str, bytes: usize) -> String {
    let (head, tail) = if Path::new(path).extension().is_some_and(|extension| extension == "toml") {
        ("note = \"", "\"\n")
    } else {
        ("{\"note\": \"", "\"}\n")
    };
    format!("{head}{}{tail}", "x".repeat(bytes - head.len() - tail.len()))
}

/// Runs haft with a limit on the size of files, as on a disk that is full. Unlike the mode of a file, it holds for the
/// superuser as well.
fn run_with_limit(env: &Env, bytes: usize, args: &[&str]) -> Output {
    let script = format!("trap '' XFSZ; exec prlimit --fsize={bytes}:{bytes} \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_haft")]).args(args);
    command.current_dir(env.root()).env_clear().env("HOME", env.home()).stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).output().unwrap()
}

/// What a command says that failed at a file.
fn assert_failed_at(output: &Output, file: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    let name = Path::new(file).file_name().unwrap().to_str().unwrap();
    assert!(!output.status.success() && said.contains(name) && said.contains("File too large"), "{output:?}");
    assert!(!said.contains("could not be put back"), "{said}");
}

#[test]
fn failed_installation_puts_every_file_back() {
    for (client, first, second) in TWO_FILES {
        for original in [Some("{\n\t\"mine\": [1]\n}"), None] {
            let env = Env::new();
            original.map(|text| place(&env, first, text));
            place(&env, second, &large_text(second, LARGE));
            let before = files(&env);
            let args = ["mcp", "install", client, "--replace", "--yes"];
            assert_failed_at(&run_with_limit(&env, LARGE, &args), second);
            assert!(files(&env) == before, "{client}: a file is not as it was");
            assert_eq!(uninstall(&env, client)["state"], "not there", "{client}: a record of what was not done");
            // Without the fault, the same command goes through.
            assert_eq!(install(&env, client, &["--replace"])["state"], "written", "{client}");
            assert!(files(&env) != before, "{client}");
        }
    }
}

#[test]
fn failed_removal_leaves_the_installation_in_force() {
    for (client, first, second) in TWO_FILES {
        let env = Env::new();
        place(&env, first, "{}");
        place(&env, second, &large_text(second, LARGE));
        let before = files(&env);
        install(&env, client, &["--replace"]);
        let installed = files(&env);
        let args = ["mcp", "uninstall", client, "--yes"];
        assert_failed_at(&run_with_limit(&env, LARGE - 1, &args), second);
        assert!(files(&env) == installed, "{client}: a file is not as it was");
        assert_eq!(uninstall(&env, client)["state"], "restored", "{client}: the record is kept");
        assert!(files(&env) == before, "{client}");
    }
}

/// Between the question and the answer, a directory takes the place of the second file.
#[test]
fn directory_in_a_files_place_meanwhile_puts_the_others_back() {
    for original in [Some("{}\n"), None] {
        let env = Env::new();
        original.map(|text| place(&env, "project/.mcp.json", text));
        let before = files(&env);
        let in_place = env.root().join(".claude/settings.local.json");
        let said = crate::install::answer_on_a_terminal(&env, "mcp install claude --replace", || {
            std::fs::create_dir_all(&in_place).unwrap();
        });
        assert!(said.contains("another program changed the file"), "{said}");
        assert_eq!(files(&env), before);
        assert!(in_place.is_dir(), "what the other program made stays");
    }
}

//! Skills in the hands of the Python SDK: listed by name and description, read in full as resources and prompts.

use crate::run::within;
use crate::{Env, HAFT, real_program, script};
use serde_json::{Value, json};

const REVIEW: &str =
    "---\nname: review\ndescription: Reviews a change\nallowed-tools: Bash\n---\n\nLook at the quokka.\n";

fn write(env: &Env, path: &str, text: impl AsRef<[u8]>) {
    let file = env.root().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn tour(env: &Env) -> Value {
    let plan = json!({
        "stdio": [HAFT, "mcp"],
        "read": [
            "skill://review/SKILL.md", "skill://review/a%20b/list.md", "skill://review/dot.bin",
            "skill://review/../../hello.txt", "skill://review/out.txt", "skill://nobody/SKILL.md",
        ],
        "prompts": [{"name": "review", "arguments": {"arguments": "the last commit"}}, {"name": "nobody"}],
    });
    let mut command = env.command(real_program("HAFT_TEST_PYTHON"), &[]);
    command.arg(script("python/skills.py")).arg(plan.to_string());
    let said = within(90, &mut command);
    assert_eq!(said.code, Some(0), "{} {}", said.stdout, said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

pub(crate) fn python_sdk_reads_skills_as_resources_and_prompts() {
    let env = Env::new();
    write(&env, ".claude/skills/review/SKILL.md", REVIEW);
    write(&env, ".claude/skills/review/a b/list.md", "1. names\n");
    write(&env, ".claude/skills/review/dot.bin", [0, 159, 146, 150]);
    std::os::unix::fs::symlink(env.root().join("hello.txt"), env.root().join(".claude/skills/review/out.txt")).unwrap();
    let named = |list: &Value, what: &str| list.as_array().unwrap().iter().any(|one| one["name"] == what);
    let before = tour(&env);
    assert!(!named(&before["resources"], "review") && !named(&before["prompts"], "review"), "{before:#}");
    assert!(before["read"][0]["error"].as_str().unwrap().contains("nobody has accepted it"), "{before:#}");
    assert_eq!(within(30, &mut env.command(HAFT, &["trust", "--yes"])).code, Some(0));
    let came = tour(&env);
    let resource = came["resources"].as_array().unwrap().iter().find(|one| one["name"] == "review").unwrap();
    assert_eq!(resource["uri"], "skill://review/SKILL.md", "{came:#}");
    assert_eq!(resource["description"], "Reviews a change", "{came:#}");
    assert!(came["templates"].to_string().contains("skill://{name}/{+file}"), "{came:#}");
    let text = |at: usize| came["read"][at]["contents"][0]["text"].as_str();
    assert_eq!((text(0), text(1)), (Some(REVIEW), Some("1. names\n")), "{came:#}");
    assert_eq!(came["read"][2]["contents"][0]["blob"], "AJ+Slg==", "{came:#}");
    for at in [3, 4, 5] {
        assert!(came["read"][at]["error"].is_string(), "{at}: {came:#}");
    }
    assert!(!came.to_string().contains("hello from a file"), "{came:#}");
    let prompt = came["filled"][0]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(
        prompt.contains("Look at the quokka.") && prompt.ends_with("Apply this skill to: the last commit"),
        "{prompt}"
    );
    assert!(came["filled"][1]["error"].is_string(), "{came:#}");
    let log = within(30, &mut env.command(HAFT, &["log", "--json", "-n", "100"])).stdout;
    assert!(log.contains("\"skill.read\""), "what was read is in the log: {log}");
}

//! Tools taken from elsewhere: what is written, what is left alone, and that nothing of it runs unreviewed.

use crate::Env;
use serde_json::json;

const PETSTORE: &str = include_str!("../../src/openapi/petstore.yml");

#[test]
fn an_openapi_document_becomes_tools_to_review() {
    let env = Env::new();
    env.file("petstore.yml", PETSTORE);
    let dry = env.run(&["import", "openapi", "petstore.yml", "--dry-run", "--json"]);
    assert_eq!(dry.json()["made"].as_array().unwrap().len(), 4, "{}", dry.stderr);
    let notes = dry.json()["notes"].to_string();
    assert!(notes.contains("petstore_create_pet: its schema refers to itself"), "{notes}");
    assert!(!env.root().join(".haft").exists(), "nothing is written");
    let ran = env.run(&["import", "openapi", "petstore.yml", "--only", "list*"]);
    assert!(ran.code == 0 && ran.stdout.contains(".haft/tools/petstore_list_pets/tool.yml"), "{}", ran.stderr);
    assert!(ran.stderr.contains("haft trust"), "{}", ran.stderr);
    assert!(env.read(".haft/tools/petstore_list_pets/tool.yml").contains("network:\n  - petstore.example.com\n"));
    let again = env.run(&["import", "openapi", "petstore.yml", "--only", "list*"]);
    assert!(again.code == 1 && again.stderr.contains("--force"), "{}", again.stderr);
    assert_eq!(env.run(&["import", "openapi", "petstore.yml", "--only", "list*", "--force"]).code, 0);
    let (outcome, code) = env.call("petstore_list_pets", json!({}), &["--yes"]);
    assert_eq!(code, 3, "it is not accepted: {outcome}");
}

#[test]
fn what_is_imported_from_a_service_of_ones_own_runs() {
    let env = Env::new();
    let port = crate::shelf::answering(r#"[{"id": "1", "name": "Rex"}]"#);
    env.file("petstore.yml", PETSTORE);
    let url = format!("http://127.0.0.1:{port}/v1");
    let ran = env.run(&["import", "openapi", "petstore.yml", "--only", "list*", "--url", &url]);
    assert!(ran.stderr.contains(&format!("`127.0.0.1:{port}` is private")), "{}", ran.stderr);
    let lint = env.run(&["lint"]);
    assert_eq!((lint.code, lint.stdout.as_str()), (0, "Nothing is wrong with 1 tool.\n"));
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    let mut call = env.command(&["call", "petstore_list_pets", "limit:=3", "--yes", "--json"]);
    let ran = crate::Ran::from(call.env("PETSTORE_TOKEN", "t0p-s3cret").output().unwrap());
    assert_eq!(ran.json()["data"], json!([{"id": "1", "name": "Rex"}]), "{}", ran.stdout);
    let typed = env.run(&["call", "petstore_list_pets", "limit=3", "--yes"]);
    assert!(typed.code == 2 && typed.stderr.contains("`limit=3` is text; write `limit:=3`"), "{}", typed.stderr);
}

#[test]
fn claude_skills_become_tools_and_skills() {
    let env = Env::new();
    env.file("skills/pdf/SKILL.md", "---\nname: pdf-tools\ndescription: Work with PDFs\nlicense: MIT\n---\n\n# PDF\n");
    env.file("skills/pdf/scripts/extract.py", "#!/usr/bin/env python3\nprint('x')\n");
    env.file("skills/pdf/scripts/join.sh", "#!/bin/sh\necho joined\n");
    env.file("skills/style/SKILL.md", "---\nname: style\ndescription: How we write\n---\n\nPlainly.\n");
    env.file("skills/style/references/words.md", "short\n");
    env.file("skills/broken/SKILL.md", "no front matter\n");
    let ran = env.run(&["import", "claude-skills", "skills", "--json"]);
    let made = ran.json();
    let names: Vec<&str> = made["made"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["pdf_tools_extract", "pdf_tools_join", "style"], "{made:#}");
    let notes = made["notes"].to_string();
    assert!(
        notes.contains("`license` has no equivalent in haft and is dropped") && notes.contains("no front matter"),
        "{notes}"
    );
    let manifest = env.read(".haft/tools/pdf_tools_join/tool.yml");
    for part in ["kind: command", "entrypoint: bash", ".haft/tools/pdf_tools_join/scripts/join.sh", "required: true"] {
        assert!(manifest.contains(part), "{part}: {manifest}");
    }
    assert_eq!(env.read(".haft/tools/pdf_tools_join/scripts/join.sh"), "#!/bin/sh\necho joined\n");
    assert!(notes.contains("no argument may begin with `-`"), "{notes}");
    let lint = env.run(&["lint", "pdf_tools_join"]);
    assert_eq!((lint.code, lint.stdout.as_str()), (0, "Nothing is wrong with 1 tool.\n"));
    let (kind, _, _) = env.err("pdf_tools_join", json!({"args": ["--output=/x"]}), &["--yes"]);
    assert_eq!(kind, "invalid_input");
    assert_eq!(env.read(".haft/skills/style/references/words.md"), "short\n");
    let (_, code) = env.call("pdf_tools_join", json!({}), &["--yes"]);
    assert_eq!(code, 3, "it is not accepted");
    let none = env.run(&["import", "claude-skills", "skills/style/references"]);
    assert!(none.code == 1 && none.stderr.contains("nothing to import"), "{}", none.stderr);
}

#[test]
fn a_link_leads_nothing_out_of_the_project() {
    let env = Env::new();
    env.file("petstore.yml", PETSTORE);
    let outside = env.root().parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, env.root().join(".haft")).unwrap();
    let ran = env.run(&["import", "openapi", "petstore.yml"]);
    assert!(ran.code == 1 && ran.stderr.contains("is a link"), "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn an_unknown_server_is_told() {
    let ran = Env::new().run(&["import", "mcp", "nobody"]);
    assert!(ran.code == 1 && ran.stderr.contains("haft mcp add"), "{}", ran.stderr);
}

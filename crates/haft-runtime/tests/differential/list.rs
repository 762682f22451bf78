//! file.list beside the file system and `git ls-files`.

use crate::cases::{Generator, compare};
use crate::project::Project;
use haft_core::path_text;
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

/// A name; some bytes in it are no text, or act on a screen.
fn name(generator: &mut Generator) -> OsString {
    let mut name = Vec::new();
    for _ in 0..=generator.below(4) {
        let piece: &[u8] =
            generator.pick_slice(&[b"a", b"b", b".", b"~", b" ", "é".as_bytes(), b"\xe9", b"\n", b"\\x41", b"-"]);
        name.extend_from_slice(piece);
    }
    if name.iter().all(|byte| *byte == b'.') {
        name.push(b'x');
    }
    OsString::from_vec(name)
}

/// Makes files, directories and links.
fn fill(project: &Project, generator: &mut Generator) {
    for _ in 0..generator.below(12) {
        let dir = if generator.chance(50) { project.root().to_owned() } else { project.root().join(name(generator)) };
        let _ = std::fs::create_dir(&dir);
        let path = dir.join(name(generator));
        let _ = match generator.below(10) {
            0 => std::os::unix::fs::symlink("nowhere", path),
            1 => std::fs::create_dir(path),
            _ => std::fs::write(path, "x".repeat(generator.below(3000))),
        };
    }
}

/// The entries of the reply by name: kind and size.
fn listed(project: &Project, recursive: bool) -> BTreeMap<OsString, (String, Option<u64>)> {
    let outcome = project.call("file.list", json!({"recursive": recursive}));
    assert!(outcome.success, "{outcome:?}");
    let data = outcome.data.unwrap();
    let entries = data["entries"].as_array().unwrap();
    assert_eq!(data["total"], entries.len());
    if !entries.is_empty() {
        assert_eq!(outcome.output.lines().count(), entries.len(), "{}", outcome.output);
    }
    let entry = |entry: &serde_json::Value| {
        let shown = entry["name"].as_str().unwrap();
        let name = path_text::read(shown.strip_prefix("./").unwrap_or(shown));
        (name, (entry["kind"].as_str().unwrap().to_owned(), entry["size"].as_u64()))
    };
    entries.iter().map(entry).collect()
}

#[test]
fn one_level_is_what_the_file_system_has() {
    compare("list::one_level_is_what_the_file_system_has", 60, |generator| {
        let project = Project::new();
        fill(&project, generator);
        let there = std::fs::read_dir(project.root()).unwrap().map(|entry| {
            let entry = entry.unwrap();
            let (kind, meta) = (entry.file_type().unwrap(), entry.metadata().unwrap());
            let told = match kind {
                kind if kind.is_symlink() => ("symlink".to_owned(), None),
                kind if kind.is_dir() => ("directory".to_owned(), None),
                _ => ("file".to_owned(), Some(meta.len())),
            };
            (entry.file_name(), told)
        });
        assert_eq!(listed(&project, false), there.collect());
    });
}

#[test]
fn every_name_is_accepted_as_it_is_shown() {
    compare("list::every_name_is_accepted_as_it_is_shown", 30, |generator| {
        let project = Project::new();
        fill(&project, generator);
        let outcome = project.call("file.list", json!({"recursive": true}));
        let data = outcome.data.unwrap();
        for entry in data["entries"].as_array().unwrap() {
            let shown = entry["name"].as_str().unwrap();
            let real = project.root().join(path_text::read(shown));
            let tool = match entry["kind"].as_str().unwrap() {
                "file" => "file.read",
                "directory" => "file.list",
                _ => continue,
            };
            let outcome = project.call(tool, json!({"path": shown}));
            assert!(outcome.success, "{shown} {outcome:?}");
            if tool == "file.read" {
                let all = project.call(tool, json!({"path": shown, "encoding": "base64"}));
                assert_eq!(all.data.unwrap()["bytes"], std::fs::metadata(&real).unwrap().len(), "{shown}");
                let edit = json!({"path": shown, "content": "written"});
                assert!(project.call("file.write", edit).success, "{shown}");
                assert_eq!(std::fs::read(&real).unwrap(), b"written", "{shown}");
            }
        }
    });
}

#[test]
fn a_tree_is_what_git_does_not_ignore() {
    compare("list::a_tree_is_what_git_does_not_ignore", 40, |generator| {
        let project = Project::new();
        fill(&project, generator);
        let patterns = ["a*\n", "*b\n", "!ab\n", "/a\n", "d/\n", "*.x\n"];
        project.write(".gitignore", generator.text(&patterns, 3));
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.args(args).current_dir(project.root()).env("GIT_CONFIG_GLOBAL", "/dev/null");
            let output = command.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
            assert!(output.status.success(), "{output:?}");
            output.stdout
        };
        git(&["init", "--quiet"]);
        let files = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let mut expected: Vec<&OsStr> =
            files.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(OsStr::from_bytes).collect();
        expected.sort_unstable();
        let listed = listed(&project, true);
        let found: Vec<&OsStr> =
            listed.iter().filter(|(_, (kind, _))| kind != "directory").map(|(name, _)| name.as_os_str()).collect();
        assert_eq!(found, expected);
        for (name, (kind, _)) in &listed {
            assert!(kind != "directory" || project.root().join(Path::new(name)).is_dir());
        }
    });
}

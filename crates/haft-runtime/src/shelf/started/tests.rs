//! What a start opens, over real directories.

use super::*;
use haft_core::manifest::Manifest;
use std::os::unix::fs::{PermissionsExt, symlink};

struct Place {
    _dir: tempfile::TempDir,
    top: PathBuf,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("project");
        std::fs::create_dir_all(root.join(".haft/tools/t")).unwrap();
        Self { _dir: dir, top, root }
    }

    fn put(&self, path: &str, text: &str) -> PathBuf {
        let path = self.top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// What a start opens, with these directories on the PATH before the system's.
    fn opens(&self, exec: &str, path: &[&str], read: &str) -> Result<Vec<String>, String> {
        let kind = if exec.starts_with("{module") { "python" } else { "command" };
        let text = format!(
            "name: t\ndescription: T\nkind: {kind}\nversion: 1\ninputs: {{schema: {{type: object, properties: {{d: {{type: \
             string, default: sub}}}}}}}}\noutputs: {{format: text}}\nexec: {{{kind}: {exec}}}\n\
             permissions: {{network: false, fs: {{read: [{read}], write: []}}}}\napproval: {{required: false}}\n"
        );
        let manifest = Manifest::read(&text).unwrap();
        let dir = self.root.join(".haft/tools/t");
        let subject = Subject { root: &self.root, dir: &dir, manifest: &manifest };
        let system = ["/usr/bin", "/bin"].map(PathBuf::from);
        let found = started_on(subject, path.iter().map(|dir| self.top.join(dir)).chain(system).collect())?;
        let shown = |path: PathBuf| path.strip_prefix(&self.top).unwrap_or(&path).display().to_string();
        Ok(found.into_iter().map(shown).collect())
    }
}

#[test]
fn a_name_that_the_path_finds_in_the_project_is_the_projects() {
    let place = Place::new();
    place.put("project/bin/mytool", "#!/bin/sh\n");
    place.put("project/bin/myreader", "ELF");
    place.put("project/run.sh", "#!/usr/bin/env myreader\n");
    let bin: &[&str] = &["project/bin"];
    assert_eq!(place.opens("{entrypoint: mytool}", bin, "").unwrap(), ["project/bin/mytool"]);
    assert_eq!(place.opens("{entrypoint: env, args: [A=b, mytool]}", bin, "").unwrap(), ["project/bin/mytool"]);
    let both = ["project/bin/myreader", "project/run.sh"];
    assert_eq!(place.opens("{entrypoint: ./run.sh}", bin, "").unwrap(), both);
    assert_eq!(place.opens("{entrypoint: sh}", bin, "").unwrap(), [""; 0], "the system's is nobody's here");
    // A link there may be led to another of the system's programs.
    symlink("/bin/true", place.root.join("bin/linked")).unwrap();
    assert_eq!(place.opens("{entrypoint: linked}", bin, "").unwrap(), ["project/bin/linked"]);
    // A function has no interpreter of the project but that of its environment.
    place.put("project/bin/python3", "ELF");
    place.put("project/m.py", "");
    assert!(place.opens("{module: m, function: f}", bin, "").unwrap_err().contains("a python3 of the project"));
    assert_eq!(place.opens("{module: m, function: f}", &[], "").unwrap(), ["project/m.py"]);
}

#[test]
fn whoever_reads_a_script_of_the_project_belongs_to_it() {
    let place = Place::new();
    let reader = place.put("project/scripts/interp", "#!project/scripts/deeper -x\n");
    place.put("project/project/scripts/deeper", "ELF");
    place.put("project/run.sh", &format!("#!{} -e\n", reader.display()));
    let all = ["project/project/scripts/deeper", "project/run.sh", "project/scripts/interp"];
    assert_eq!(place.opens("{entrypoint: ./run.sh}", &[], "").unwrap(), all, "also where a reader is a script");
    let adrift = place.opens("{entrypoint: ./run.sh, cwd: \"${d}\"}", &[], "").unwrap_err();
    assert!(adrift.contains("`project/scripts/deeper` may be a file"), "{adrift}");
    place.put("project/env.sh", "#!/usr/bin/env -S python3 -m pkg.mod\n");
    place.put("project/pkg/mod.py", "");
    assert_eq!(place.opens("{entrypoint: ./env.sh}", &[], "").unwrap(), ["project/env.sh", "project/pkg/mod.py"]);
}

#[test]
fn what_variables_name_belongs_to_it() {
    let place = Place::new();
    place.put("project/scripts/env.sh", "");
    place.put("project/scripts/__pycache__/mod.cpython-311.pyc", "");
    let opens = |env: &str| place.opens(&format!("{{entrypoint: sh, env: {{{env}}}}}"), &[], "");
    let both = ["project/scripts/__pycache__/mod.cpython-311.pyc", "project/scripts/env.sh"];
    for (env, found) in [
        ("BASH_ENV: scripts/env.sh", &both[1..]),
        ("PYTHONPATH: scripts", &both),
        ("PYTHONPATH: \"/nowhere:scripts\"", &both),
        ("PATH: \"scripts:/usr/bin\"", &both),
        ("LD_PRELOAD: \"./scripts/env.sh /usr/lib/x.so\"", &both[1..]),
        ("NODE_OPTIONS: \"--require ./scripts/env.sh\"", &both[1..]),
        ("NODE_OPTIONS: \"--require=./scripts/env.sh\"", &both[1..]),
        ("RUBYOPT: \"-r./scripts/env.sh\"", &both[1..]),
        ("PLUGINS: scripts", &both),
        ("WORDS: \"no scripts here\"", &[]),
        ("GREETING: \"${d}\"", &[]),
        ("PROJECT: .", &[]),
        ("PYTHONPATH: \"\"", &[]),
    ] {
        assert_eq!(opens(env).unwrap(), found, "{env}");
    }
    for env in ["PYTHONPATH: \"${d}\"", "LD_PRELOAD: \"./${d}.so\"", "PATH: \"${d}:/bin\"", "BASH_ENV: \"${d}\""] {
        assert!(opens(env).unwrap_err().contains("says what is loaded and is filled in"), "{env}");
    }
    for env in ["PYTHONPATH: .", "PATH: \":/usr/bin\"", "PYTHONPATH: ..", "HOME: ."] {
        assert!(opens(env).unwrap_err().contains("names the whole project"), "{env}");
    }
}

#[test]
fn where_it_starts_has_to_be_known_if_something_is_found_from_there() {
    let place = Place::new();
    place.put("project/sub/x4.py", "");
    let opens = |rest: &str| place.opens(&format!("{{entrypoint: python3, cwd: \"${{d}}\", {rest}}}"), &[], "");
    for rest in [
        "args: [x4.py]",
        "args: [-m, x4]",
        "args: [\"--file=x4\"]",
        "args: [./x4.py]",
        "env: {PYTHONPATH: sub}",
        "env: {X: a/b}",
    ] {
        assert!(opens(rest).unwrap_err().contains("`cwd` is filled in by whoever calls it"), "{rest}");
    }
    for rest in ["args: [\"${d}\", -la, --all]", "args: [/usr/bin/true]", "env: {LANG: C, URL: \"https://a.test/x\"}"] {
        assert_eq!(opens(rest).unwrap(), [""; 0], "{rest}");
    }
}

#[test]
fn modules_are_found_whatever_starts_python() {
    let place = Place::new();
    place.put("project/em.py", "");
    place.put("project/docs/guide.md", "");
    for exec in [
        "{entrypoint: env, args: [python3, -m, em]}",
        "{entrypoint: timeout, args: [5, python3, -Im, em]}",
        "{entrypoint: sh, args: [-c, \"python3 -m em ${d}\"]}",
        "{entrypoint: uv, args: [run, -m, em]}",
        "{entrypoint: python3, args: [-Bmem]}",
    ] {
        assert_eq!(place.opens(exec, &[], "").unwrap(), ["project/em.py"], "{exec}");
    }
    assert_eq!(place.opens("{entrypoint: git, args: [commit, -m, docs]}", &[], "").unwrap(), [""; 0]);
    for module in ["", "a/b", "..", "/"] {
        assert!(of_module(&place.root, module).is_empty(), "{module} is no name");
    }
}

#[test]
fn what_is_declared_outside_is_named_in_full() {
    let place = Place::new();
    let outside = place.put("lib/tool.sh", "#!/bin/sh\n");
    place.put("lib/mod.py", "");
    let both = ["lib/mod.py", "lib/tool.sh"];
    assert_eq!(place.opens("{entrypoint: ../lib/tool.sh}", &[], "../lib").unwrap(), both[1..]);
    let exec = format!("{{entrypoint: sh, args: [{}]}}", outside.display());
    assert_eq!(place.opens(&exec, &[], "../lib").unwrap(), both[1..]);
    assert_eq!(place.opens(&exec, &[], "").unwrap(), [""; 0], "it could not be read");
    let all = "what lies beside a module elsewhere can be imported";
    assert_eq!(place.opens("{module: mod, function: f, cwd: ../lib}", &[], "../lib").unwrap(), both, "{all}");
}

#[test]
fn a_dollar_that_is_written_twice_is_no_template() {
    let place = Place::new();
    place.put("project/${x}/run.py", "");
    assert_eq!(
        place.opens("{entrypoint: python3, args: [\"$${x}/run.py\"]}", &[], "").unwrap(),
        ["project/${x}/run.py"]
    );
    let words =
        vec!["x"; WORDS_MAX + 1].iter().enumerate().map(|(at, x)| format!("{x}{at}")).collect::<Vec<_>>().join(" ");
    assert!(
        place.opens(&format!("{{entrypoint: sh, args: [-c, \"{words}\"]}}"), &[], "").unwrap_err().contains("words")
    );
}

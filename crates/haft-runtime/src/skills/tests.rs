//! Skills in folders: found, accepted, changed, shadowed.

use super::*;
use std::os::unix::fs::symlink;
use std::path::Path;

struct Ground {
    dir: tempfile::TempDir,
    store: Store,
    runtime: tokio::runtime::Runtime,
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project")).unwrap();
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { dir, store, runtime }
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let file = self.dir.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn skill(&self, dir: &str, description: &str) {
        let name = Path::new(dir).file_name().unwrap().to_str().unwrap();
        let text = format!("---\nname: {name}\ndescription: {description}\n---\nDo {name}.\n");
        self.write(&format!("{dir}/SKILL.md"), text);
    }

    fn catalog(&self) -> SkillCatalog {
        let folder = |path: &str, whose| SkillFolder { path: self.dir.path().join(path), whose };
        let folders = vec![
            folder("project/.haft/skills", Whose::Project),
            folder("project/.claude/skills", Whose::Project),
            folder("home/.agents/skills", Whose::Own),
            folder("home/.claude/skills", Whose::Own),
        ];
        SkillCatalog::new(folders, &self.dir.path().join("project"), self.store.clone())
    }

    fn accept(&self) -> usize {
        let offers = self.runtime.block_on(self.catalog().offers()).unwrap();
        let count = offers.open.len();
        self.runtime.block_on(self.catalog().accept(offers.open)).unwrap();
        count
    }

    fn offered(&self) -> Vec<String> {
        let offered = self.runtime.block_on(self.catalog().offered()).unwrap();
        offered.iter().map(|skill| format!("{}: {}", skill.name, skill.description())).collect()
    }

    fn open(&self, name: &str) -> Result<OpenSkill, CallError> {
        self.runtime.block_on(self.catalog().open(name))
    }

    fn file(&self, name: &str, file: &str) -> Result<Vec<u8>, CallError> {
        self.runtime.block_on(self.catalog().file(name, file))
    }
}

#[test]
fn project_skill_counts_once_accepted_and_as_it_was_then() {
    let ground = Ground::new();
    ground.skill("project/.claude/skills/pdf", "Fills forms");
    ground.write("project/.claude/skills/pdf/scripts/fill.sh", "echo fill\n");
    assert_eq!(ground.offered(), [""; 0]);
    let refused = ground.open("pdf").unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Denied);
    assert!(refused.message.contains("nobody has accepted it"), "{refused:?}");
    assert_eq!(ground.file("pdf", "scripts/fill.sh").unwrap_err().kind, ErrorKind::Denied);
    assert_eq!(ground.accept(), 1);
    assert_eq!(ground.offered(), ["pdf: Fills forms"]);
    let open = ground.open("pdf").unwrap();
    assert_eq!(open.files, ["scripts/fill.sh"]);
    assert_eq!(ground.file("pdf", "scripts/fill.sh").unwrap(), b"echo fill\n");
    for (file, content) in [("scripts/fill.sh", "rm -rf /\n"), ("new.md", "x"), (".hidden", "x")] {
        let path = ground.dir.path().join("project/.claude/skills/pdf").join(file);
        let before = std::fs::read(&path).ok();
        std::fs::write(&path, content).unwrap();
        assert_eq!(ground.offered(), [""; 0], "{file} changed");
        assert!(ground.open("pdf").unwrap_err().message.contains("has changed since"), "{file}");
        assert_eq!(ground.file("pdf", "SKILL.md").unwrap_err().kind, ErrorKind::Denied, "{file}");
        match before {
            Some(before) => std::fs::write(&path, before).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        assert_eq!(ground.offered().len(), 1, "{file} is as it was");
    }
    assert_eq!(ground.runtime.block_on(ground.catalog().revoke()).unwrap(), [".claude/skills/pdf"]);
    assert_eq!(ground.offered(), [""; 0]);
}

#[test]
fn compiled_python_that_was_not_accepted_is_a_change_of_the_skill() {
    let ground = Ground::new();
    ground.skill("project/.claude/skills/pdf", "Fills forms");
    ground.write("project/.claude/skills/pdf/scripts/fill.py", "import fields\n");
    ground.accept();
    assert_eq!(ground.offered(), ["pdf: Fills forms"]);
    let compiled = "project/.claude/skills/pdf/scripts/__pycache__/fields.cpython-311.pyc";
    ground.write(compiled, "compiled");
    assert_eq!(ground.offered(), [""; 0], "Python would run it in place of its source");
    ground.accept();
    assert_eq!(ground.offered(), ["pdf: Fills forms"]);
    assert_eq!(ground.open("pdf").unwrap().files, ["scripts/fill.py"], "nobody reads bytecode");
    ground.write(compiled, "something else");
    assert_eq!(ground.offered(), [""; 0]);
}

#[test]
fn changed_skill_is_offered_with_what_changed() {
    let ground = Ground::new();
    ground.skill("project/.haft/skills/a", "First");
    ground.write("project/.haft/skills/a/run.sh", "one\n");
    ground.accept();
    ground.write("project/.haft/skills/a/run.sh", "two\n");
    let offers = ground.runtime.block_on(ground.catalog().offers()).unwrap();
    let diff = offers.open[0].shown.diff.as_deref().unwrap();
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    // What changes between the look and the yes is not accepted.
    ground.write("project/.haft/skills/a/run.sh", "three\n");
    ground.runtime.block_on(ground.catalog().accept(offers.open)).unwrap();
    assert_eq!(ground.offered(), [""; 0]);
}

#[test]
fn stronger_folder_shadows_only_with_a_skill_that_counts() {
    let ground = Ground::new();
    ground.skill("home/.claude/skills/review", "Last");
    ground.skill("home/.agents/skills/review", "Third");
    ground.skill("project/.claude/skills/review", "Second");
    ground.skill("project/.haft/skills/review", "First");
    assert_eq!(ground.offered(), ["review: Third"], "the project's are not accepted");
    ground.accept();
    assert_eq!(ground.offered(), ["review: First"]);
    let survey = ground.runtime.block_on(ground.catalog().survey()).unwrap();
    let shadowed: Vec<bool> = survey.skills.iter().map(|skill| skill.shadowed_by.is_some()).collect();
    assert_eq!(shadowed, [false, true, true, true]);
    ground.write("project/.haft/skills/review/SKILL.md", "no front matter");
    assert_eq!(ground.offered(), ["review: Second"], "one that cannot be read takes nobody's place");
}

#[test]
fn nothing_outside_of_a_skill_is_reached() {
    let ground = Ground::new();
    ground.write("secret.txt", "secret");
    ground.write("outside/evil/SKILL.md", "---\nname: evil\ndescription: d\n---\nDo.\n");
    ground.skill("home/.claude/skills/own", "Own");
    ground.skill("project/.haft/skills/ours", "Ours");
    for skill in ["home/.claude/skills/own", "project/.haft/skills/ours"] {
        let dir = ground.dir.path().join(skill);
        symlink(ground.dir.path().join("secret.txt"), dir.join("link.txt")).unwrap();
        symlink(ground.dir.path(), dir.join("linked")).unwrap();
    }
    symlink(ground.dir.path().join("outside/evil"), ground.dir.path().join("project/.haft/skills/evil")).unwrap();
    ground.accept();
    assert_eq!(ground.offered(), ["ours: Ours", "own: Own"], "a project's link out of the project is no skill");
    for skill in ["own", "ours"] {
        assert!(ground.open(skill).unwrap().files.iter().all(|file| file != "linked/secret.txt"));
        for file in
            ["link.txt", "linked/secret.txt", "../../../secret.txt", "/etc/passwd", "", ".", "SKILL.md/x", "a\0b"]
        {
            let error = ground.file(skill, file).unwrap_err();
            assert!(!error.message.contains("secret\n"), "{file}: {error:?}");
        }
    }
    let survey = ground.runtime.block_on(ground.catalog().survey()).unwrap();
    let evil = survey.skills.iter().find(|skill| skill.name == "evil").unwrap();
    assert!(evil.reading.flaws[0].message.contains("leads out of the project"), "{:?}", evil.reading);
}

#[test]
fn link_to_a_skill_inside_the_project_is_the_same_skill() {
    let ground = Ground::new();
    ground.skill("project/.agents/skills/shared", "Shared");
    std::fs::create_dir_all(ground.dir.path().join("project/.claude/skills")).unwrap();
    symlink("../../.agents/skills/shared", ground.dir.path().join("project/.claude/skills/shared")).unwrap();
    assert_eq!(ground.accept(), 1);
    assert_eq!(ground.offered(), ["shared: Shared"]);
}

#[test]
fn bad_files_are_listed_with_what_is_wrong_and_hide_no_other() {
    let ground = Ground::new();
    let own = "home/.claude/skills";
    ground.skill(&format!("{own}/good"), "Good");
    ground.write(&format!("{own}/bytes/SKILL.md"), b"---\nname: bytes\ndescription: \xff\n---\n");
    ground.write(&format!("{own}/huge/SKILL.md"), vec![b'x'; 300 << 10]);
    ground.write(&format!("{own}/empty/SKILL.md"), "");
    ground.write(&format!("{own}/Upper/SKILL.md"), "---\nname: Upper\ndescription: d\n---\nDo.\n");
    std::fs::create_dir_all(ground.dir.path().join(own).join("odd/SKILL.md")).unwrap();
    std::fs::create_dir_all(ground.dir.path().join(own).join("none")).unwrap();
    let pipe = ground.dir.path().join(own).join("pipe/SKILL.md");
    std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!(ground.offered(), ["good: Good"]);
    let survey = ground.runtime.block_on(ground.catalog().survey()).unwrap();
    let why = |name: &str| {
        let skill = survey.skills.iter().find(|skill| skill.name == name).unwrap();
        skill.reading.flaws[0].to_string()
    };
    assert_eq!(why("bytes"), "3:14: has a byte here that is not UTF-8");
    assert_eq!(why("huge"), "1:1: is larger than 256 KiB");
    assert_eq!(why("odd"), "1:1: is not a file");
    assert_eq!(why("pipe"), "1:1: is not a file");
    assert!(why("empty").contains("no front matter") && why("Upper").contains("lower-case"));
    assert!(survey.skills.iter().all(|skill| skill.name != "none"));
    let error = ground.open("huge").unwrap_err();
    assert!(error.message.contains("cannot be used: 1:1: is larger"), "{error:?}");
    let error = ground.open("goood").unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("did you mean `good`?"));
}

#[test]
fn thousands_of_skills_are_cut_and_told_within_a_budget() {
    let ground = Ground::new();
    for n in 0..600 {
        ground.skill(&format!("home/.claude/skills/skill-{n:04}"), &"words that say when ".repeat(12));
    }
    let survey = ground.runtime.block_on(ground.catalog().survey()).unwrap();
    assert_eq!(survey.skills.len(), 500);
    assert!(survey.notes[0].ends_with("only the first 500 skills are loaded; 100 are ignored"), "{:?}", survey.notes);
    let told = section(&ground.runtime.block_on(ground.catalog().offered()).unwrap()).unwrap();
    let tokens = haft_core::tokens::estimate(&told);
    assert!(tokens < 3_600, "{tokens}");
    assert!(told.contains("- skill-0000: words") && told.contains("More, by name: skill-"), "{told}");
    assert!(told.contains("others that skill_read without a name lists"), "{told}");
}

#[test]
fn skill_that_is_not_for_models_is_not_told() {
    let ground = Ground::new();
    ground.write(
        "home/.claude/skills/deploy/SKILL.md",
        "---\nname: deploy\ndescription: d\ndisable-model-invocation: true\n---\nDo.\n",
    );
    let offered = ground.runtime.block_on(ground.catalog().offered()).unwrap();
    assert_eq!((offered.len(), section(&offered)), (1, None));
}

/// Where the kernel lacks `openat2`, files are opened one component at a time, with the same answers.
#[cfg(debug_assertions)]
#[test]
fn skill_files_are_read_without_openat2_and_no_link_is_followed() {
    let ground = Ground::new();
    ground.skill("home/.claude/skills/pdf", "Makes PDF files");
    ground.write("home/.claude/skills/pdf/scripts/deep/run.sh", "echo");
    ground.write("home/secret.txt", "secret");
    let dir = ground.dir.path().join("home/.claude/skills/pdf");
    symlink(ground.dir.path().join("home"), dir.join("out")).unwrap();
    symlink("scripts", dir.join("alias")).unwrap();
    symlink(ground.dir.path().join("home/secret.txt"), dir.join("secret.txt")).unwrap();
    let read = || {
        let opened = SkillDirectory::open(&dir).unwrap();
        let paths = [
            "SKILL.md",
            "scripts/deep/run.sh",
            "scripts/../scripts/deep/run.sh",
            "out/secret.txt",
            "alias/deep/run.sh",
            "secret.txt",
            "../../../secret.txt",
            "scripts/../../pdf/SKILL.md",
            "/etc/passwd",
            "missing",
            "SKILL.md/x",
            "scripts",
            "",
        ];
        let found = paths.map(|path| (path, opened.read(path, 1 << 20).map(|bytes| bytes.len())));
        (found, opened.inventory(&mut KnownDigests::new()).unwrap())
    };
    let with = read();
    let _refused = haft_sandbox::faults::refuse(&["openat2"]);
    assert_eq!(read(), with);
    let over_link = Err("leads over a link, and none is followed".to_owned());
    let out = Err("leads out of its directory".to_owned());
    let expected = [&Ok(4), &over_link, &over_link, &over_link, &out, &out, &out];
    assert_eq!(with.0[2..].iter().take(7).map(|(_, found)| found).collect::<Vec<_>>(), expected);
}

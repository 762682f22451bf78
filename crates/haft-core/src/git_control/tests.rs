//! What of a repository is kept, and what is not.

use super::*;

const ROOT: &str = "/p";
fn leads_outside(path: &Path, root: &Path) -> bool {
    path.starts_with("/usr") && !path.starts_with(root)
}

const PLAIN: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

fn judged(control: GitControl, path: &str, before: &str, after: &str) -> Result<(), String> {
    let (path, root) = (Path::new(ROOT).join(path), Path::new(ROOT));
    let file =
        ControlFile { control, path: &path, root, before: before.as_bytes(), after: after.as_bytes(), leads_outside };
    file.judge().map_err(|refusal| refusal.to_string())
}

fn config(before: &str, after: &str) -> Result<(), String> {
    judged(GitControl::Config, ".git/config", before, after)
}

#[test]
fn settings_that_git_itself_makes_are_kept() {
    let remote =
        "[remote \"origin\"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n";
    let branch = "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
    let cloned = format!("{PLAIN}{remote}{branch}");
    assert_eq!(config("", PLAIN), Ok(()), "init");
    assert_eq!(config("", &cloned), Ok(()), "clone");
    assert_eq!(config(PLAIN, &format!("{PLAIN}{remote}")), Ok(()), "remote add");
    assert_eq!(config(&format!("{PLAIN}{remote}"), &cloned), Ok(()), "checkout -b");
    assert_eq!(config(PLAIN, &format!("{PLAIN}[user]\n\tname = \"A # B\"\n\temail = a@b.test ; mine\n")), Ok(()));
    for address in ["git@example.com:a/b.git", "ssh://git@example.com:22/a", "/usr", "file:///usr"] {
        assert_eq!(config(PLAIN, &format!("{PLAIN}[remote \"new\"]\n\turl = {address}\n")), Ok(()), "{address}");
    }
    assert_eq!(config(PLAIN, &format!("{PLAIN}[submodule \"lib\"]\n\tactive = true\n")), Ok(()));
    let sparse = "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n";
    assert_eq!(judged(GitControl::Config, ".git/config.worktree", "", sparse), Ok(()));
}

#[test]
fn settings_that_run_programs_or_redirect_are_named_with_their_line() {
    for (setting, name) in [
        ("[core]\n\tfsmonitor = ./run.sh", "core.fsmonitor"),
        ("[core]\n\thooksPath = hooks", "core.hookspath"),
        ("[core]\n\tsshCommand = ./run.sh", "core.sshcommand"),
        ("[core]\n\tpager = ./run.sh", "core.pager"),
        ("[core]\n\teditor = ./run.sh", "core.editor"),
        ("[core]\n\tattributesFile = a", "core.attributesfile"),
        ("[core]\n\tworktree = /elsewhere", "core.worktree"),
        ("[include]\n\tpath = ../x", "include.path"),
        ("[includeIf \"gitdir:/\"]\n\tpath = ../x", "includeif.gitdir:/.path"),
        ("[filter \"x\"]\n\tclean = ./run.sh", "filter.x.clean"),
        ("[diff \"x\"]\n\ttextconv = ./run.sh", "diff.x.textconv"),
        ("[diff]\n\texternal = ./run.sh", "diff.external"),
        ("[merge \"x\"]\n\tdriver = ./run.sh", "merge.x.driver"),
        ("[mergetool \"x\"]\n\tcmd = ./run.sh", "mergetool.x.cmd"),
        ("[alias]\n\tst = !./run.sh", "alias.st"),
        ("[credential]\n\thelper = ./run.sh", "credential.helper"),
        ("[url \"https://evil.test/\"]\n\tinsteadOf = https://example.com/", "url.https://evil.test/.insteadof"),
        ("[gpg]\n\tprogram = ./run.sh", "gpg.program"),
        ("[sequence]\n\teditor = ./run.sh", "sequence.editor"),
        ("[http]\n\tproxy = http://evil.test", "http.proxy"),
        ("[safe]\n\tdirectory = *", "safe.directory"),
        ("[protocol \"ext\"]\n\tallow = always", "protocol.ext.allow"),
        ("[uploadpack]\n\tpackObjectsHook = ./run.sh", "uploadpack.packobjectshook"),
        ("[submodule \"a\"]\n\tupdate = !./run.sh", "submodule.a.update"),
        ("[remote \"x\"]\n\turl = ext::sh -c run", "remote.x.url"),
        ("[remote \"x\"]\n\turl = --upload-pack=./run.sh", "remote.x.url"),
        ("[remote \"x\"]\n\turl = ./evil.git", "remote.x.url"),
        ("[remote \"x\"]\n\turl = file:///p/evil.git", "remote.x.url"),
        ("[remote \"x\"]\n\tuploadpack = ./run.sh", "remote.x.uploadpack"),
        ("[remote \"x\"]\n\tvcs = run", "remote.x.vcs"),
        ("[branch \"main\"]\n\tmergeOptions = --strategy=run", "branch.main.mergeoptions"),
        ("[pull]\n\ttwohead = run", "pull.twohead"),
        ("[remote \"x\"]\n\turl = ../evil.git", "remote.x.url"),
        ("[remote \"x\"]\n\turl = /proc/self/cwd/evil.git", "remote.x.url"),
        ("[remote \"x\"]\n\tpushurl = https://evil.test/a", "remote.x.pushurl"),
        ("[remote \"x\"]\n\tfetch = +refs/heads/*:refs/heads/*", "remote.x.fetch"),
        ("[remote \"x\"]\n\tpromisor = true", "remote.x.promisor"),
        ("[branch \"main\"]\n\tremote = ../evil.git", "branch.main.remote"),
        ("[branch \"main\"]\n\tremote = origin\u{a0}", "branch.main.remote"),
        ("[push]\n\tdefault = upstream", "push.default"),
        ("[rerere]\n\tenabled = true", "rerere.enabled"),
    ] {
        let said = config(PLAIN, &format!("{PLAIN}{setting}\n")).unwrap_err();
        assert!(said.starts_with("line 7: ") && said.contains(&format!("`{name}`")), "{setting}: {said}");
    }
}

#[test]
fn what_was_there_stays_as_it_was() {
    for own in ["[commit]\n\tgpgSign = true\n", "[transfer]\n\tfsckObjects = true\n"] {
        assert!(config(&format!("{PLAIN}{own}"), PLAIN).is_err(), "{own}");
    }
    let guarded = format!("{PLAIN}\thooksPath = .husky\n[alias]\n\tst = !run\n");
    assert_eq!(config(&guarded, &format!("{guarded}[user]\n\tname = A\n")), Ok(()));
    assert_eq!(config(&guarded, &guarded.replace("= true", "= false")), Ok(()));
    assert!(config(&guarded, PLAIN).unwrap_err().contains("`core.hookspath` = `.husky` would be lost"));
    assert!(config(&guarded, &guarded.replace(".husky", "evil")).unwrap_err().contains("line 6"));
    let origin = format!("{PLAIN}[remote \"origin\"]\n\turl = https://example.com/a\n");
    let elsewhere = origin.replace("example.com", "evil.test");
    assert!(
        config(&origin, &elsewhere).unwrap_err().contains("remote.origin.url"),
        "nobody pushes elsewhere than they think"
    );
    assert!(config(&origin, &format!("{origin}\tpushurl = https://evil.test/a\n")).is_err());
    assert!(config(&origin, PLAIN).is_err() && config(&origin, &origin.replace("origin", "up")).is_err());
    let own = "[remote \"origin\"]\n\tpushurl = https://evil.test/a\n";
    assert!(judged(GitControl::Config, ".git/config.worktree", "", own).is_err(), "it would override the repository's");
    let evil = format!("{origin}[remote \"evil\"]\n\turl = https://evil.test/a\n");
    assert_eq!(config(&origin, &evil), Ok(()));
    for redirect in ["[branch \"main\"]\n\tremote = evil\n", "[remote]\n\tpushDefault = evil\n"] {
        assert!(config(&origin, &format!("{evil}{redirect}")).is_err(), "{redirect}");
    }
}

#[test]
fn what_git_might_read_otherwise_is_not_kept() {
    for odd in [
        "[core] hooksPath = x\n",
        "[core]\n\tbare = \\\n\tfalse\n",
        "[core]\n\tbare = \"false\n",
        "[core]\n\tbare = fal\\qse\n",
        "[core\n",
        "[core.x]\n\tbare = true\n",
        "bare = true\n",
        "[core]\n\tba re = true\n",
        "[remote \"a\"b\"]\n\turl = x\n",
        "[core]\n\tbare = a\u{0}b\n",
    ] {
        assert!(config("", odd).is_err(), "{odd:?}");
    }
    assert!(config("[core] x = y\n", PLAIN).is_err(), "what cannot be read stays as it is");
    let file = |after| ControlFile {
        control: GitControl::Config,
        path: Path::new("/p/.git/config"),
        root: Path::new(ROOT),
        before: b"",
        after,
        leads_outside,
    };
    assert!(file(b"[core]\n\tbare = \xff\n").judge().is_err());
}

#[test]
fn todo_lists_hooks_and_links_are_judged_by_what_is_in_them() {
    let todo = |text: &str| judged(GitControl::Todo, ".git/rebase-merge/git-rebase-todo", "", text);
    assert_eq!(todo("pick 1234 a\nfixup -C 5678 b\n# exec is a comment\n\nupdate-ref refs/heads/x\n"), Ok(()));
    assert!(todo("pick 1234 a\nexec ./run.sh\n").unwrap_err().starts_with("line 2: git would run `exec ./run.sh`"));
    assert!(todo("x ./run.sh\n").is_err());
    let kind = |path: &str| GitControl::of(&path.split('/').collect::<Vec<_>>());
    assert_eq!(kind("hooks/pre-commit.sample"), Some(GitControl::Hook { is_sample: true }));
    assert_eq!(kind("hooks/pre-commit"), Some(GitControl::Hook { is_sample: false }));
    assert_eq!(kind("hooks/x.sample/y"), Some(GitControl::Hook { is_sample: false }));
    assert_eq!(kind("modules/a/b/config"), Some(GitControl::Config));
    assert_eq!(kind("worktrees/w/gitdir"), Some(GitControl::Link));
    assert_eq!(kind("modules/a/rebase-merge/git-rebase-todo"), Some(GitControl::Todo));
    assert_eq!(kind("refs/heads/config"), None);
    assert_eq!(kind("worktrees/w/commondir"), Some(GitControl::CommonDir));
    for closed in
        ["commondir", "modules/rebase-merge/config", "remotes/origin", "objects/info/alternates", "rebase-merge/a/b"]
    {
        assert_eq!(kind(closed), Some(GitControl::Closed), "{closed}");
    }
    for index in ["index", "sharedindex.12", "worktrees/w/index", "modules/a/index"] {
        assert_eq!(kind(index), Some(GitControl::Index), "{index}");
    }
    let link = |path: &str, text: &str| judged(GitControl::Link, path, "", text);
    assert_eq!(link("lib/.git", "gitdir: ../.git/modules/lib\n"), Ok(()));
    assert_eq!(link("wt/.git", "gitdir: /p/.git/worktrees/wt\n"), Ok(()));
    assert_eq!(link(".git/worktrees/wt/gitdir", "/p/wt/.git\n"), Ok(()));
    for (path, text) in [
        ("lib/.git", "gitdir: /elsewhere/.git\n"),
        ("lib/.git", "gitdir: ../evil\n"),
        ("lib/.git", "gitdir: ../.git/refs/evil\n"),
        ("lib/.git", "gitdir: ../../q/.git\n"),
        ("lib/.git", "../.git\n"),
        ("lib/.git", "gitdir: ../.git/modules/lib\nx\n"),
        (".git/worktrees/wt/gitdir", "/elsewhere/.git\n"),
    ] {
        assert!(link(path, text).is_err(), "{path}: {text}");
    }
    let common = |text: &str| judged(GitControl::CommonDir, ".git/worktrees/wt/commondir", "", text);
    assert_eq!(common("../..\n"), Ok(()));
    assert!(common("../../../evil\n").is_err());
    let options = |text: &str| judged(GitControl::SequencerOptions, ".git/sequencer/opts", "", text);
    assert_eq!(options("[options]\n\tstrategy = ort\n\tedit = true\n"), Ok(()));
    assert!(options("[options]\n\tstrategy = run\n").is_err());
    assert!(judged(GitControl::Strategy, ".git/rebase-merge/strategy", "", "run\n").is_err());
}

/// An index as git writes it, with entries of these names.
fn index_of(version: u32, names: &[&str]) -> Vec<u8> {
    let mut index = b"DIRC".to_vec();
    index.extend(version.to_be_bytes());
    index.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
    for name in names {
        let begin = index.len();
        index.extend([0; 60]);
        index.extend([0, 1]);
        // Version 4 drops what a name does not share with the one before.
        let dropped = if version == 4 { u8::try_from(previous(names, name).len()).ok() } else { None };
        index.extend(dropped);
        index.extend(name.bytes());
        index.push(0);
        while version < 4 && !(index.len() - begin).is_multiple_of(8) {
            index.push(0);
        }
    }
    index.extend(b"TREE\0\0\0\x02xx");
    index.extend([7; 20]);
    index
}

fn previous<'n>(names: &[&'n str], name: &str) -> &'n str {
    let at = names.iter().position(|known| *known == name).unwrap();
    if at == 0 { "" } else { names[at - 1] }
}

#[test]
fn an_index_names_files_of_the_work_tree_alone() {
    let judge = |content: &[u8]| {
        let file = ControlFile {
            control: GitControl::Index,
            path: Path::new("/p/.git/index"),
            root: Path::new(ROOT),
            before: b"",
            after: content,
            leads_outside,
        };
        file.judge().map_err(|refusal| refusal.to_string())
    };
    for version in [2, 4] {
        assert_eq!(judge(&index_of(version, &["a", "src/.gitignore", "x/y z"])), Ok(()));
        for odd in [
            ".git/hooks/pre-commit",
            "../.bashrc",
            "/etc/x",
            "a//b",
            "a/./b",
            ".GIT/config",
            "a/.git ./x",
            ".g\u{200c}it/x",
        ] {
            let said = judge(&index_of(version, &["a", odd, "z"])).unwrap_err();
            assert!(said.contains("no file of the work tree"), "{version} {odd}: {said}");
        }
    }
    assert!(judge(b"DIRC\0\0\0\x02\0\0\0\x01short").is_err());
    let mut long = index_of(2, &["a"]);
    long.push(0);
    assert!(judge(&long).is_err(), "what cannot be read is not kept");
}

#[test]
fn remembered_conflicts_name_files_of_the_work_tree_alone() {
    let judge = |text: &str| judged(GitControl::MergeRecords, ".git/MERGE_RR", "", text);
    let id = "ab".repeat(20);
    assert_eq!(judge(&format!("{id}\tsrc/a\0{id}.1\tb\0")), Ok(()));
    for odd in ["/home/x", "../x", ".git/config"] {
        assert!(judge(&format!("{id}\t{odd}\0")).is_err(), "{odd}");
    }
    assert!(judge(&format!("{id}.-1\tb\0")).is_err() && judge("b\0").is_err());
}

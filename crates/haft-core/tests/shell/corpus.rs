//! Every command of the corpus is judged as it stands there.

use crate::sample::{Verdict, judged, shown, verdict, verdict_of};
use haft_core::shell::Judged;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// One entry, as `corpus/README.md` describes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) command: String,
    class: Option<String>,
    pub(crate) verdict: Wanted,
    reads: Option<Vec<String>>,
    writes: Option<Vec<String>>,
    #[serde(default)]
    finds: Vec<String>,
    why: Option<String>,
    pub(crate) twin: Option<String>,
}

/// What has to become of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wanted {
    Allow,
    Ask,
    Deny,
    /// Ask or deny.
    Stop,
}

impl Wanted {
    fn is(self, verdict: Verdict) -> bool {
        match self {
            Self::Allow => verdict == Verdict::Allow,
            Self::Ask => verdict == Verdict::Ask,
            Self::Deny => verdict == Verdict::Deny,
            Self::Stop => verdict > Verdict::Allow,
        }
    }
}

/// All files of the corpus by name, each with its entries.
pub(crate) fn files() -> Vec<(String, Vec<Entry>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shell/corpus");
    let mut files = Vec::new();
    for path in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|ext| ext == "yml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let entries = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            files.push((name, entries));
        }
    }
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    files
}

/// How bad it is that a judgement is wrong, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    WronglyAllowed,
    NotDenied,
    WronglyDenied,
    WronglyAsked,
    Missed,
    Paths,
    Class,
    Reason,
}

fn wrong_verdict(wanted: Wanted, found: Verdict) -> Option<Fault> {
    if wanted.is(found) {
        return None;
    }
    Some(match (wanted, found) {
        (_, Verdict::Allow) => Fault::WronglyAllowed,
        (Wanted::Deny, _) => Fault::NotDenied,
        (_, Verdict::Deny) => Fault::WronglyDenied,
        _ => Fault::WronglyAsked,
    })
}

fn reasons(judged: &Judged) -> String {
    let doubts = judged.doubts.iter().map(|doubt| doubt.why.as_str());
    judged.catastrophe.as_deref().into_iter().chain(doubts).collect::<Vec<_>>().join("; ")
}

fn faults(entry: &Entry) -> Vec<(Fault, String)> {
    let mut found = Vec::new();
    let judged = judged(&entry.command);
    let (verdict, reasons) = (verdict(&judged), reasons(&judged));
    let mut say = |fault, what: String| found.push((fault, format!("{:?}: {what}", entry.command)));
    if let Some(fault) = wrong_verdict(entry.verdict, verdict) {
        let reads: Vec<&str> = judged.reads.iter().map(haft_core::shell::Target::text).collect();
        say(fault, format!("is {verdict:?}, wanted {:?} ({reasons}) reads {reads:?}", entry.verdict));
    }
    if let Some(class) = entry.class.as_deref().filter(|class| *class != judged.class.name()) {
        say(Fault::Class, format!("is {}, wanted {class} ({reasons})", judged.class.name()));
    }
    for (what, wanted, found) in [("reads", &entry.reads, &judged.reads), ("writes", &entry.writes, &judged.writes)] {
        let found: BTreeSet<String> = found.iter().map(shown).collect();
        if let Some(wanted) = wanted.as_ref().filter(|wanted| found != wanted.iter().cloned().collect()) {
            say(Fault::Paths, format!("{what} {found:?}, wanted {wanted:?} ({reasons})"));
        }
    }
    let names: BTreeSet<&str> = judged.commands.iter().filter_map(|command| command.name.as_deref()).collect();
    for wanted in entry.finds.iter().filter(|wanted| !names.contains(wanted.as_str())) {
        say(Fault::Missed, format!("{wanted} is not among {names:?} ({reasons})"));
    }
    if let Some(why) = entry.why.as_ref().filter(|why| !reasons.contains(*why)) {
        say(Fault::Reason, format!("{why} does not occur in: {reasons}"));
    }
    found
}

fn twin_faults(twin: &str) -> Option<(Fault, String)> {
    let judged = judged(twin);
    let fault = wrong_verdict(Wanted::Allow, verdict(&judged))?;
    let reads: Vec<&str> = judged.reads.iter().map(haft_core::shell::Target::text).collect();
    Some((fault, format!("{twin:?} (a twin): is {:?} ({}) reads {reads:?}", verdict(&judged), reasons(&judged))))
}

#[test]
fn every_command_is_judged_as_it_should_be() {
    let mut found = BTreeSet::new();
    for (file, entries) in files() {
        for entry in &entries {
            found.extend(faults(entry).into_iter().map(|(fault, what)| (fault, file.clone(), what)));
            let twin = entry.twin.as_deref().and_then(twin_faults);
            found.extend(twin.map(|(fault, what)| (fault, file.clone(), what)));
        }
    }
    let lines: Vec<String> = found.iter().map(|(fault, file, what)| format!("{fault:?}: {file}: {what}")).collect();
    assert!(lines.is_empty(), "{} faults\n{}", lines.len(), lines.join("\n"));
}

/// What the change that brought the judge has promised.
#[test]
fn the_corpus_is_as_large_as_it_claims() {
    let files = files();
    let commands: BTreeSet<&str> = files.iter().flat_map(|(_, all)| all).map(|entry| entry.command.as_str()).collect();
    let twins: BTreeSet<&str> =
        files.iter().flat_map(|(_, all)| all).filter_map(|entry| entry.twin.as_deref()).collect();
    assert!(commands.len() >= 450 && twins.len() >= 400, "{} commands, {} twins", commands.len(), twins.len());
    let all = files.iter().map(|(_, entries)| entries.len()).sum::<usize>();
    assert_eq!(commands.len(), all, "no command is there twice");
    // Every trick stands beside something that only looks like it.
    let alone = |name: &str| matches!(name, "bad-input" | "everyday");
    for (name, entries) in files.iter().filter(|(name, _)| !alone(name)) {
        let without: Vec<&str> = entries
            .iter()
            .filter(|entry| entry.verdict != Wanted::Allow && entry.twin.is_none())
            .map(|entry| entry.command.as_str())
            .collect();
        assert!(without.is_empty(), "{name}: {without:?} have no twin");
    }
}

/// Everything that runs, writes or sends by another's hand and that was promised to be known.
const PROMISED: &[&str] = &[
    "env ",
    "sudo ",
    "doas ",
    "nohup ",
    "nice ",
    "time ",
    "timeout ",
    "setsid ",
    "stdbuf ",
    "command ",
    "builtin ",
    "exec ",
    "xargs ",
    "parallel ",
    "find . -exec ",
    "-execdir ",
    "-ok ",
    "-okdir ",
    "-delete",
    "-fprint ",
    "-fprintf ",
    "-fls ",
    "sh -c ",
    "bash -c ",
    "zsh -c ",
    "eval ",
    "source ",
    "ssh ",
    "docker exec ",
    "kubectl exec ",
    "watch ",
    "script ",
    "busybox ",
    "python3 -c ",
    "perl -e ",
    "ruby -e ",
    "node -e ",
    "awk ",
    "tee ",
    "dd ",
    "git -c alias.",
    "git -c ",
    "git log --output",
    "--ext-diff",
    "--textconv",
    "-c core.pager",
    "--to-command",
    "sed 'w x'",
    "sed 'e ",
    "sed '1W ",
    "sed -i ",
    "sort -o ",
    "--compress-program",
    "rg --pre ",
    "less ",
    "man ",
    "vi ",
    "LD_PRELOAD=",
    "PAGER=",
    "GIT_PAGER=",
    "GIT_SSH_COMMAND=",
    "GIT_EXTERNAL_DIFF=",
    "BASH_ENV=",
    "PROMPT_COMMAND=",
    "[[ -v a[$(",
    "declare 'x[$(",
    "@P}",
    "trap ",
    "alias ",
    "coproc ",
    "select ",
    "<<-",
    "<<<",
    "<(",
    ">(",
    "$((1 << ",
    "cargo ",
    "npm ",
    "pip ",
    "docker ",
    "kubectl ",
    "systemctl ",
    "curl ",
    "wget ",
    "tar ",
    "unzip ",
    "zip ",
    "apt-get ",
    "dpkg ",
];

#[test]
fn everything_promised_is_in_the_corpus() {
    let files = files();
    let stopped = files.iter().flat_map(|(_, all)| all).filter(|entry| entry.verdict != Wanted::Allow);
    let commands: Vec<&str> = stopped.map(|entry| entry.command.as_str()).collect();
    let missing: Vec<&&str> =
        PROMISED.iter().filter(|word| !commands.iter().any(|command| command.contains(**word))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A command that the corpus calls catastrophic stays one beside any other of the corpus.
#[test]
fn a_catastrophe_is_seen_beside_everything_harmless() {
    let files = files();
    let all = || files.iter().flat_map(|(_, entries)| entries);
    let bad = all().find(|entry| entry.command == "rm -rf /").unwrap();
    for twin in all().filter_map(|entry| entry.twin.as_deref()) {
        let both = format!("{twin}\n{}", bad.command);
        assert_eq!(verdict_of(&both), Verdict::Deny, "{both}");
    }
}

#[test]
fn commands_without_secrets_are_recorded_as_they_are() {
    let commands: Vec<String> =
        files().into_iter().flat_map(|(_, entries)| entries).map(|entry| entry.command).collect();
    let masked = |command: &&String| haft_core::shell::masking::mask_command(command) != **command;
    let masked: Vec<&String> = commands.iter().filter(masked).collect();
    assert!(commands.len() > 500 && masked.is_empty(), "of {}: {masked:#?}", commands.len());
}

#[test]
fn examples_of_the_shipped_table_are_recorded_as_they_are() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/commands");
    let (mut count, mut changed) = (0, Vec::new());
    for file in std::fs::read_dir(dir).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let examples = text.lines().filter_map(|line| line.trim_start().strip_prefix("- "));
        for example in examples.map(|line| line.trim_matches(['"', '\''])) {
            count += 1;
            changed.extend((haft_core::shell::masking::mask_command(example) != example).then(|| example.to_owned()));
        }
    }
    assert!(count > 200 && changed.is_empty(), "of {count} examples: {changed:#?}");
}

//! file.grep beside ripgrep.
//!
//! Haft searches text as it is shown, so ripgrep is given a copy of the files whose line ends are plain line feeds, but for
//! patterns that name a carriage return. That is what `--crlf` means, too, where no carriage return stands alone.
//!
//! Not generated is what ripgrep 13 gets wrong: `\B`, which it finds between the bytes of a character; assertions that follow each
//! other, as in `$\b`; and `^` and `\b` at the beginning of a pattern across lines, which it finds behind every match.

use crate::cases::{Generator, compare};
use crate::needs::need;
use crate::project::Project;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What patterns are made of that match in one line.
const PIECES: &[&str] = &[
    "a",
    "b",
    "c",
    "foo",
    "bar",
    "é",
    "É",
    "日",
    "ß",
    ";",
    " ",
    ".",
    ".",
    ".*",
    ".+?",
    "a*",
    "b+",
    "(a|b)",
    "(foo|x)?",
    "[ab]",
    "[^a]",
    "[^;]*",
    "[é日]",
    r"\w",
    r"\w+",
    r"\d",
    r"\s",
    r"\s+",
    r"\S",
    "x{2}",
    r"\.",
    r"\(",
    r"\x61",
    r"\u{e9}",
    r"\p{L}",
    "(?i)f",
    r"[[:upper:]]",
    r"\D",
];
/// What they may begin and end with.
const BEGINNINGS: &[&str] = &["", "", "", "^", r"\b", r"^\s*"];
const ENDINGS: &[&str] = &["", "", "", "$", r"\b", ";$", r"\s*$", "^$"];
/// What they need to match in several.
const ENDS: &[&str] = &[
    r"\n",
    r"\n",
    r"\n\n",
    r"[\n,]",
    r"[\n;]+",
    r"(a|\n)",
    r"(;\nb|x)",
    r"\n?",
    r"\s*\n",
    r"(?s).",
    r"\x0a",
    r"\n*",
    "\n",
];
/// What they need to ask for carriage returns.
const RETURNS: &[&str] = &[r"\r", r"\r$", r"\r\n", r"\r?\n", r"[\r;]", r"(\r|b)"];
const GLOBS: &[&str] = &[
    "*.txt", "!*.txt", "*.{c,md}", "sub/*", "sub/**", "/*.txt", "!sub", "!/sub/", "**/b*", "[ab]*", "![a-c]*", "?.txt",
    "!sub/b*", "nothing", "*",
];

/// What lines are made of.
const WORDS: &[&str] = &[
    "a", "b", "c", "aa", "foo", "bar", "Foo", "é", "É", "日本", "ß", "x", "xx", "1", "42", ";", ";", " ", " ", "\t",
    ".", "(", ",", "_", "foo;bar", "a1",
];

struct Corpus {
    project: Project,
    /// The same files with line feeds for line ends.
    copy: tempfile::TempDir,
    rg: PathBuf,
}

impl Corpus {
    /// Files that are always the same, so that a case needs nothing but its arguments. `alone`: whether carriage returns stand
    /// where no line ends, too.
    fn new(alone: Alone) -> Option<Self> {
        let rg = need("HAFT_TEST_RG")?;
        let (project, copy) = (Project::new(), tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        let corpus = Self { project, copy, rg };
        let mut generator = Generator::seeded(11);
        for number in 0..40 {
            let name =
                format!("{}{number}.{}", ["a", "b", "sub/b", "sub/deep/c"][number % 4], ["txt", "c", "md"][number % 3]);
            let text = text(&mut generator, number, alone);
            corpus.write(&name, &encoded(&text, number), &encoded(&text.replace("\r\n", "\n"), number));
        }
        corpus.write("empty.txt", b"", b"");
        corpus.write("binary.txt", b"a\0foo\n", b"a\0foo\n");
        corpus.write("ends.txt", b"\n\n\n", b"\n\n\n");
        Some(corpus)
    }

    fn write(&self, name: &str, content: &[u8], copied: &[u8]) {
        self.project.write(name, content);
        let copy = self.copy.path().join(name);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::write(copy, copied).unwrap();
    }

    /// What haft says, as ripgrep would.
    fn haft(&self, args: &Value) -> String {
        let outcome = self.project.call("file.grep", args.clone());
        assert!(outcome.success && outcome.warnings.is_empty(), "{args}: {outcome:?}");
        assert!(!outcome.truncated, "{args}: too much for one reply");
        if outcome.data.unwrap()["files"] == 0 { String::new() } else { outcome.output }
    }

    fn ripgrep(&self, root: &Path, args: &[String]) -> String {
        let fixed = [
            "--no-config",
            "--hidden",
            "--no-ignore",
            "--no-heading",
            "--line-number",
            "--with-filename",
            "--color=never",
        ];
        let mut command = Command::new(&self.rg);
        command.current_dir(root).args(fixed).args(["--sort=path", "--glob=!.git"]).args(args).arg("./");
        let output = command.stdin(Stdio::null()).output().unwrap();
        // It says with 1 that nothing matches.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = said.lines().map(|line| line.strip_prefix("./").unwrap_or(line)).collect();
        lines.join("\n")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Alone {
    Sometimes,
    Never,
}

/// A text whose line ends are of one kind, or of both.
fn text(generator: &mut Generator, number: usize, alone: Alone) -> String {
    let ends: &[&str] = [&["\n"][..], &["\r\n"], &["\n", "\r\n"]][number % 3];
    let mut text = String::new();
    for _ in 0..generator.below(12) {
        text.push_str(&generator.text(WORDS, 6));
        if alone == Alone::Sometimes && generator.chance(10) {
            text.push_str("\rb");
        }
        text.push_str(generator.pick(ends));
    }
    if generator.chance(40) {
        text.push_str(generator.pick(WORDS));
    }
    text
}

/// Most files are UTF-8, some have a byte order mark, some are UTF-16 or Latin-1.
fn encoded(text: &str, number: usize) -> Vec<u8> {
    match number % 10 {
        6 => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        7 => [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect(),
        8 => [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect(),
        9 => text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect(),
        _ => text.as_bytes().to_vec(),
    }
}

/// A pattern that matches in one line.
fn line_pattern(generator: &mut Generator) -> String {
    let middle = generator.text(PIECES, 4);
    let (beginning, ending) = (generator.pick(BEGINNINGS), generator.pick(ENDINGS));
    match middle.as_str() {
        "" if ending.is_empty() => beginning.to_owned(),
        "" => ending.to_owned(),
        middle => format!("{beginning}{middle}{}", ending.trim_start_matches('^')),
    }
}

/// Options that both have, for haft and for ripgrep.
fn options(generator: &mut Generator, pattern: &str) -> (Value, Vec<String>) {
    let mut args = json!({"pattern": pattern, "head_limit": 10_000});
    let mut given = vec![format!("--regexp={pattern}")];
    if generator.chance(20) {
        args["case_insensitive"] = true.into();
        given.push("--ignore-case".to_owned());
    }
    if generator.chance(30) {
        let context = generator.below(4);
        args["context"] = context.into();
        given.push(format!("--context={context}"));
    }
    if generator.chance(20) {
        let glob = generator.pick(GLOBS);
        args["glob"] = glob.into();
        // `dir/` is more in haft than in ripgrep where it does not exclude.
        given.push(format!("--glob={glob}"));
    }
    (args, given)
}

/// Modes that say less than lines.
fn mode(generator: &mut Generator, args: &mut Value, given: &mut Vec<String>) {
    match generator.below(4) {
        0 => {
            args["output_mode"] = "count".into();
            given.push("--count".to_owned());
        }
        1 => {
            args["output_mode"] = "files_with_matches".into();
            given.push("--files-with-matches".to_owned());
        }
        _ => return,
    }
    given.retain(|arg| !arg.starts_with("--context"));
}

#[test]
fn lines_are_ripgreps() {
    let Some(corpus) = Corpus::new(Alone::Sometimes) else { return };
    compare("grep::lines_are_ripgreps", 120, |generator| {
        let pattern = line_pattern(generator);
        let (mut args, mut given) = options(generator, &pattern);
        mode(generator, &mut args, &mut given);
        assert_eq!(corpus.haft(&args), corpus.ripgrep(corpus.copy.path(), &given), "{args}");
    });
}

#[test]
fn matches_across_lines_are_ripgreps() {
    let Some(corpus) = Corpus::new(Alone::Sometimes) else { return };
    compare("grep::matches_across_lines_are_ripgreps", 120, |generator| {
        let end_of_line = generator.pick(&["", "", "$"]);
        let (before, after) = (generator.text(PIECES, 2), generator.text(PIECES, 2));
        let pattern = format!("{before}{end_of_line}{}{after}{}", generator.pick(ENDS), generator.pick(&["", "", "$"]));
        let (args, mut given) = options(generator, &pattern);
        given.push("--multiline".to_owned());
        assert_eq!(corpus.haft(&args), corpus.ripgrep(corpus.copy.path(), &given), "{args}");
    });
}

#[test]
fn carriage_returns_are_found_where_they_are_named() {
    let Some(corpus) = Corpus::new(Alone::Sometimes) else { return };
    compare("grep::carriage_returns_are_found_where_they_are_named", 80, |generator| {
        let pattern = format!("{}{}{}", generator.text(PIECES, 2), generator.pick(RETURNS), generator.text(PIECES, 2));
        let (args, mut given) = options(generator, &pattern);
        if pattern.contains(r"\n") {
            given.push("--multiline".to_owned());
        }
        let said = corpus.ripgrep(corpus.project.root(), &given);
        let lines: Vec<&str> = said.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        assert_eq!(corpus.haft(&args), lines.join("\n"), "{args}");
    });
}

#[test]
fn line_ends_are_those_of_crlf() {
    let Some(corpus) = Corpus::new(Alone::Never) else { return };
    compare("grep::line_ends_are_those_of_crlf", 80, |generator| {
        let pattern = line_pattern(generator);
        let (args, mut given) = options(generator, &pattern);
        given.push("--crlf".to_owned());
        let said = corpus.ripgrep(corpus.project.root(), &given);
        let lines: Vec<&str> = said.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        assert_eq!(corpus.haft(&args), lines.join("\n"), "{args}");
    });
}

//! Git, asked about a repository.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes a directory a repository.
pub(crate) fn init(root: &Path) {
    ask(root, &["init", "--quiet"], b"");
}

/// The paths that git would add, in order: what is there and not ignored. None of them is tracked.
pub(crate) fn others(root: &Path) -> Vec<OsString> {
    let said = ask(root, &["ls-files", "--others", "--exclude-standard", "-z"], b"");
    let mut paths: Vec<OsString> = fields(&said).map(|path| OsStr::from_bytes(path).to_owned()).collect();
    paths.sort();
    paths
}

/// Which line of which file decides about a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) path: String,
    /// As `file:line`, if any does.
    pub(crate) source: Option<String>,
    pub(crate) ignored: bool,
}

/// Git's decisions about these paths.
pub(crate) fn decisions(root: &Path, paths: &[String]) -> Vec<Decision> {
    let input = paths.join("\0") + "\0";
    let args = ["check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin"];
    let said = ask(root, &args, input.as_bytes());
    let fields: Vec<&[u8]> = fields(&said).collect();
    let decision = |four: &[&[u8]]| {
        let [file, line, pattern, path] = four else { panic!("{four:?}") };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let source = (!file.is_empty()).then(|| format!("{}:{}", text(file), text(line)));
        let ignored = source.is_some() && !pattern.starts_with(b"!");
        Decision { path: text(path), source, ignored }
    };
    fields.chunks(4).map(decision).collect()
}

/// The fields of an answer that ends each with a NUL. Empty ones count.
fn fields(said: &[u8]) -> impl Iterator<Item = &[u8]> {
    said.strip_suffix(b"\0").into_iter().flat_map(|said| said.split(|byte| *byte == 0))
}

fn ask(root: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start git: {error}"));
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let complaint = OsString::from_vec(output.stderr);
    // It says with 1 that nothing is ignored.
    assert!(matches!(output.status.code(), Some(0 | 1)), "git {args:?}: {}", complaint.display());
    output.stdout
}

//! The files that a command runs: found, read and hashed, so that a yes holds for their bytes (guards against TOCTOU).
//!
//! Files of the system, which no agent may write, are not looked at. Everything else is opened without following a link
//! on the last step, waits for nobody, and is bounded in number and size. What could not be hashed makes the judgement
//! stricter: no earlier yes covers it.

mod started;

use super::on_path;
use crate::confined::environment::{self, is_system};
use crate::file_stamp::FileStamp;
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::tool::off_thread;
use crate::workspace::Workspace;
use haft_core::admit::{Checked, Facts};
use haft_core::executed::{ChangedFile, ExecutedFile, ExecutedFiles, described};
use haft_core::record::Digest;
use haft_core::shell::{self, ExecutedLanguage, ExecutedLookup, ExecutedTarget, Ground, Judged, Table};
use haft_core::{Admitted, CallError};
use serde_json::{Value, json};
pub(crate) use started::{StartedFile, verify_untouched};
use started::{touched_error, way_to};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// More files than this are not hashed.
const FILES_MAX: usize = 64;
/// How much they may hold together.
const BYTES_MAX: u64 = 4 << 20;
/// How many scripts deep files are looked for.
const DEPTH_MAX: usize = 2;
/// How much of scripts is looked through for further files.
const SCANNED_MAX: usize = 512 << 10;
/// How many things are named that a yes is not bound to.
const UNBOUND_MAX: usize = 12;
/// The longest first line that may name an interpreter.
const INTERPRETER_MAX: usize = 256;
/// Interpreters whose scripts are shell scripts.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash"];
/// Under which key an error says which files have changed.
pub(crate) const CHANGED: &str = "changed_files";

/// The files that a command runs, as they stand now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExecutedSnapshot {
    pub(crate) files: ExecutedFiles,
    stamps: BTreeMap<String, StartedFile>,
    way: BTreeMap<String, StartedFile>,
}

impl ExecutedSnapshot {
    /// The files that are there, and what leads to them, to be compared when the command has ended.
    pub(crate) fn started(&self) -> Vec<StartedFile> {
        self.stamps.values().chain(self.way.values()).cloned().collect()
    }
}

/// A target, and how many scripts lead to it.
struct Lead {
    target: ExecutedTarget,
    /// The directory of the script that names it.
    beside: Option<PathBuf>,
    depth: usize,
}

struct Search<'s> {
    workspace: &'s Workspace,
    table: &'s Table,
    home: Option<&'s str>,
    leads: Vec<Lead>,
    found: BTreeMap<String, ExecutedFile>,
    /// What the files hold, by the paths that are shown.
    contents: BTreeMap<String, Rc<Content>>,
    /// Which file was looked through as what, and from where: one file can be run in several ways.
    looked_through: HashSet<(String, ExecutedLanguage, String)>,
    stamps: BTreeMap<String, StartedFile>,
    /// What leads to the files, by its path.
    way: BTreeMap<String, StartedFile>,
    unbound: Vec<String>,
    left_out: usize,
    bytes_left: u64,
    scan_left: usize,
}

/// What a file holds, if it is looked through.
struct Content {
    bytes: Vec<u8>,
    shown: String,
    /// The directory that the file is in.
    dir: PathBuf,
}

impl Search<'_> {
    fn lead(&mut self, target: ExecutedTarget, beside: Option<&Path>, depth: usize) {
        self.leads.push(Lead { target, beside: beside.map(Path::to_owned), depth });
    }

    fn leave_unbound(&mut self, what: String) {
        if !self.unbound.contains(&what) {
            self.unbound.push(what);
        }
    }

    /// Follows every lead, first come, first served.
    fn run(mut self) -> ExecutedSnapshot {
        let mut next = 0;
        while next < self.leads.len() {
            let Lead { target, beside, depth } = &self.leads[next];
            let (target, beside, depth) = (target.clone(), beside.clone(), *depth);
            next += 1;
            self.follow(&target, beside.as_deref(), depth);
        }
        let more = self.unbound.len().saturating_sub(UNBOUND_MAX);
        self.unbound.truncate(UNBOUND_MAX);
        if more > 0 {
            self.unbound.push(format!("{more} more things that scripts name"));
        }
        let beyond = (self.left_out > 0)
            .then(|| format!("it would run more than {FILES_MAX} files, and {} were not hashed", self.left_out));
        let files = ExecutedFiles { files: self.found.into_values().collect(), unbound: self.unbound, beyond };
        ExecutedSnapshot { files, stamps: self.stamps, way: self.way }
    }

    fn follow(&mut self, target: &ExecutedTarget, beside: Option<&Path>, depth: usize) {
        let is_there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
        let here = Path::new(&target.dir).join(&target.file);
        let path = match (target.lookup, beside) {
            (ExecutedLookup::Named | ExecutedLookup::Default, _) => here,
            (ExecutedLookup::Beside, Some(dir)) => dir.join(&target.file),
            (ExecutedLookup::Beside, None) => {
                return self.leave_unbound(format!("`{}` beside a script that is not known", target.file));
            }
            (ExecutedLookup::Upward, _) => {
                let mut above = Path::new(&target.dir).ancestors().map(|dir| dir.join(&target.file));
                above.find(|path| is_there(path)).unwrap_or(here)
            }
        };
        // An interpreter can be given a directory.
        let inner = ["__main__.py", "index.js"].map(|name| path.join(name));
        match inner.into_iter().find(|inner| path.is_dir() && is_there(inner)) {
            Some(inner) => self.take(&inner, target, depth),
            None => self.take(&path, target, depth),
        }
    }

    /// Hashes a file, and looks for others in it.
    fn take(&mut self, path: &Path, target: &ExecutedTarget, depth: usize) {
        // Before the file is found and read: a swap in between is a change, too.
        for one in way_to(path, self.workspace.writable_roots()) {
            self.way.entry(one.path.clone()).or_insert(one);
        }
        let real = path.canonicalize();
        let workspace = self.workspace;
        let is_own = |real: &PathBuf| workspace.writable_roots().iter().any(|root| real.starts_with(root));
        if real.as_ref().is_ok_and(|real| is_system(real) && !is_own(real)) {
            return;
        }
        // A directory of the system's that a `PATH` names does not have every program.
        if real.is_err() && target.lookup == ExecutedLookup::Default && is_system(path) && !is_own(&normal(path)) {
            return;
        }
        let shown = self.workspace.shown(&normal(path));
        if self.found.contains_key(&shown) {
            if let Some(content) = self.contents.get(&shown).map(Rc::clone) {
                self.look_through(&content, target, depth);
            }
            return;
        }
        if self.found.len() >= FILES_MAX {
            self.left_out += 1;
            return;
        }
        let is_writable = real.as_ref().is_ok_and(is_own);
        let content = real.and_then(|real| self.read(&real, &shown));
        if matches!(content, Ok(None)) && !is_writable {
            return self.leave_unbound(format!("{shown}, which is large and lies outside of what may be written"));
        }
        let file = match &content {
            Ok(Some(bytes)) => ExecutedFile::hashed(shown.clone(), Digest::of(bytes)),
            Ok(None) => {
                let mib = BYTES_MAX >> 20;
                let stamp = self.stamps.get(&shown).map(|StartedFile { stamp, .. }| {
                    format!("{} bytes, changed {}.{:09}", stamp.size, stamp.changed.0, stamp.changed.1)
                });
                let why = format!("more than {mib} MiB are run; {}", stamp.unwrap_or_default());
                ExecutedFile::unhashed(shown.clone(), why)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                match target.lookup {
                    ExecutedLookup::Named | ExecutedLookup::Beside => ExecutedFile::missing(shown.clone()),
                    ExecutedLookup::Default | ExecutedLookup::Upward => ExecutedFile::absent(shown.clone()),
                }
            }
            Err(error) => ExecutedFile::unhashed(shown.clone(), format!("it cannot be read ({error})")),
        };
        self.found.insert(shown.clone(), file);
        if let (Ok(Some(bytes)), Some(dir)) = (content, path.parent()) {
            let content = Rc::new(Content { bytes, shown: shown.clone(), dir: dir.to_owned() });
            self.contents.insert(shown, Rc::clone(&content));
            self.look_through(&content, target, depth);
        }
    }

    /// The content of a file; none if it is too much.
    fn read(&mut self, real: &Path, shown: &str) -> io::Result<Option<Vec<u8>>> {
        let mut file: File = crate::files::open(real)?;
        let meta = file.metadata()?;
        let stamp = FileStamp::from(&meta);
        self.stamps.insert(shown.to_owned(), StartedFile::file(real, stamp));
        if meta.len() > self.bytes_left {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.by_ref().take(self.bytes_left + 1).read_to_end(&mut bytes)?;
        let Some(left) = self.bytes_left.checked_sub(bytes.len() as u64) else { return Ok(None) };
        self.bytes_left = left;
        if FileStamp::from(&file.metadata()?) != FileStamp::from(&meta) {
            return Err(io::Error::other("it is being changed"));
        }
        Ok(Some(bytes))
    }

    /// Looks for further files in what is run.
    fn look_through(&mut self, content: &Content, target: &ExecutedTarget, depth: usize) {
        let how = (content.shown.clone(), target.language.clone(), target.dir.clone());
        if !self.looked_through.insert(how) {
            return;
        }
        let first = first_line(&content.bytes);
        let interpreter = first.filter(|_| target.language == ExecutedLanguage::Program).and_then(interpreter);
        if let Some((program, _)) = &interpreter {
            self.interpreted_by(program, &target.dir, depth);
        }
        if depth >= DEPTH_MAX {
            return;
        }
        let language = match (&target.language, &interpreter) {
            (ExecutedLanguage::Program, Some((_, name))) if SHELLS.contains(&name.as_str()) => ExecutedLanguage::Shell,
            (ExecutedLanguage::Program, Some((_, name))) if name == "make" => ExecutedLanguage::Makefile,
            // A shell takes a text that names no interpreter for its own.
            (ExecutedLanguage::Program, None) if !content.bytes.starts_with(b"\x7fELF") => ExecutedLanguage::Shell,
            (ExecutedLanguage::Program, _) => ExecutedLanguage::Other,
            (other, _) => other.clone(),
        };
        if language == ExecutedLanguage::Other {
            return;
        }
        let Some(left) = self.scan_left.checked_sub(content.bytes.len()) else {
            return self.leave_unbound(format!("what {} runs, which is too much to look through", content.shown));
        };
        let Ok(text) = std::str::from_utf8(&content.bytes) else { return };
        self.scan_left = left;
        match language {
            ExecutedLanguage::Shell => self.script(text, &target.dir, content, depth),
            ExecutedLanguage::Makefile => self.makefile(text, target, content, depth),
            ExecutedLanguage::Package { scripts } => self.package(text, &scripts, content, depth),
            ExecutedLanguage::Program | ExecutedLanguage::Other => {}
        }
    }

    /// The program that a first line names.
    fn interpreted_by(&mut self, program: &str, dir: &str, depth: usize) {
        if program.contains('/') {
            let (dir, file) = (dir.to_owned(), program.to_owned());
            let (language, lookup) = (ExecutedLanguage::Other, ExecutedLookup::Named);
            self.lead(ExecutedTarget { dir, file, language, lookup }, None, depth + 1);
        } else {
            self.by_name(program, depth + 1);
        }
    }

    /// A program that is found by its name, where it lies in a place that agents may write.
    fn by_name(&mut self, name: &str, depth: usize) {
        let Some((_, real)) = on_path(name) else { return };
        if self.workspace.writable_roots().iter().any(|root| real.starts_with(root)) {
            let file = real.to_string_lossy().into_owned();
            let (language, lookup) = (ExecutedLanguage::Program, ExecutedLookup::Named);
            self.lead(ExecutedTarget { dir: "/".to_owned(), file, language, lookup }, None, depth);
        }
    }

    fn script(&mut self, text: &str, cwd: &str, content: &Content, depth: usize) {
        let cwd = if cwd.is_empty() { content.dir.to_str().unwrap_or("/") } else { cwd };
        let judged = shell::judge(text, &Ground { cwd, home: self.home, table: self.table });
        if judged.error.is_some() {
            self.leave_unbound(format!("what {} runs, which is not understood", content.shown));
        }
        self.all_of(judged, content, depth + 1);
    }

    /// Everything that a script runs.
    fn all_of(&mut self, judged: Judged, content: &Content, depth: usize) {
        for what in judged.unbound {
            self.leave_unbound(format!("{what} (in {})", content.shown));
        }
        for target in judged.executed {
            let dir = (target.lookup == ExecutedLookup::Beside).then(|| content.dir.clone());
            self.lead(target, dir.as_deref(), depth);
        }
    }

    fn makefile(&mut self, text: &str, target: &ExecutedTarget, content: &Content, depth: usize) {
        let included = text.lines().filter_map(|line| {
            let line = line.split('#').next().unwrap_or_default();
            ["include ", "-include ", "sinclude "].iter().find_map(|word| line.trim_start().strip_prefix(word))
        });
        for word in included.flat_map(str::split_whitespace) {
            if word.contains(['$', '*', '?', '[']) {
                self.leave_unbound(format!("`{word}` (included by {})", content.shown));
                continue;
            }
            let (language, lookup) = (ExecutedLanguage::Makefile, ExecutedLookup::Default);
            let included = ExecutedTarget { dir: target.dir.clone(), file: word.to_owned(), language, lookup };
            self.lead(included, None, depth + 1);
        }
    }

    /// The scripts of a `package.json`, which run where that is.
    fn package(&mut self, text: &str, scripts: &[String], content: &Content, depth: usize) {
        let Ok(package) = serde_json::from_str::<Value>(text) else { return };
        let Some(cwd) = content.dir.to_str() else { return };
        for name in scripts {
            let Some(text) = package["scripts"][name].as_str() else { continue };
            let judged = shell::judge(text, &Ground { cwd, home: self.home, table: self.table });
            self.all_of(judged, content, depth + 1);
        }
    }
}

/// A path without `.` and, by name, without `..`.
fn normal(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // Where the directory is a link, the path stays as it is written.
            Component::ParentDir if !normal.is_symlink() => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

fn first_line(bytes: &[u8]) -> Option<&str> {
    let line = bytes.get(..bytes.len().min(INTERPRETER_MAX))?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()
}

/// The program that a first line names, and its name without its directory.
fn interpreter(line: &str) -> Option<(String, String)> {
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let mut program = words.next()?;
    if Path::new(program).file_name().is_some_and(|name| name == "env") {
        program = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    let name = Path::new(program).file_name()?.to_str()?;
    Some((program.to_owned(), name.to_owned()))
}

/// The files that a judged command runs, as they stand now. Blocks: the files are opened and hashed.
fn executed_files(judged: &Judged, workspace: &Workspace, table: Option<&Table>) -> ExecutedSnapshot {
    let home = environment::home();
    let mut search = Search {
        workspace,
        table: table.unwrap_or_else(|| Table::shipped()),
        home: home.as_ref().and_then(|home| home.to_str()),
        leads: Vec::new(),
        found: BTreeMap::new(),
        contents: BTreeMap::new(),
        looked_through: HashSet::new(),
        stamps: BTreeMap::new(),
        way: BTreeMap::new(),
        unbound: judged.unbound.clone(),
        left_out: 0,
        bytes_left: BYTES_MAX,
        scan_left: SCANNED_MAX,
    };
    for target in &judged.executed {
        search.lead(target.clone(), None, 0);
    }
    let mut names: Vec<&str> = judged.commands.iter().filter_map(|command| command.name.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names.into_iter().filter(|name| !name.contains('/')) {
        search.by_name(name, 0);
    }
    search.run()
}

/// Whether the files that a call runs are those that it was let through with.
pub(crate) enum ExecutedCheck {
    /// The yes to the call is not for bytes.
    NotBound,
    Same(ExecutedSnapshot),
    Changed(Vec<ChangedFile>),
}

impl Haft {
    /// The files that a judged command runs, as they stand now. They are hashed on a thread of their own: a file may lie on
    /// a mount that hangs.
    pub(crate) async fn executed_files(&self, judged: &Judged, halt: &Halt) -> Result<ExecutedSnapshot, CallError> {
        let (judged, workspace, table) = (judged.clone(), Arc::clone(&self.workspace), self.settings.table.clone());
        let find = move || Ok(executed_files(&judged, &workspace, table.as_deref()));
        off_thread(halt.clone(), find).await
    }

    /// The files that an admitted call runs, as they stand now, if the yes to it is for their bytes.
    async fn executed_now(&self, admitted: &Admitted, halt: &Halt) -> Result<Option<ExecutedSnapshot>, CallError> {
        match admitted.facts().shell.as_ref().filter(|_| admitted.is_for_bytes()) {
            Some(shell) => self.executed_files(&shell.judged, halt).await.map(Some),
            None => Ok(None),
        }
    }

    /// Compares the files that a call runs with those that it was let through with.
    pub(crate) async fn verify_executed(&self, admitted: &Admitted, halt: &Halt) -> Result<ExecutedCheck, CallError> {
        let Some(now) = self.executed_now(admitted, halt).await? else { return Ok(ExecutedCheck::NotBound) };
        let changed = changed_since_decision(&now, admitted.facts());
        Ok(if changed.is_empty() { ExecutedCheck::Same(now) } else { ExecutedCheck::Changed(changed) })
    }

    /// Refuses to keep what a program did if the files that it runs were touched while it ran: nobody knows which of their
    /// versions ran.
    pub(crate) async fn verify_after(
        &self,
        admitted: &Admitted,
        before: &ExecutedSnapshot,
        halt: &Halt,
    ) -> Result<(), CallError> {
        let Some(now) = self.executed_now(admitted, halt).await? else { return Ok(()) };
        let changed = now.files.changed_since(&before.files.files);
        if changed.is_empty() { verify_untouched(&before.started()) } else { Err(touched_error(&changed)) }
    }
}

fn changed_since_decision(now: &ExecutedSnapshot, facts: &Facts) -> Vec<ChangedFile> {
    if now.files.identity() == facts.executed.identity() {
        return Vec::new();
    }
    let mut changed = now.files.changed_since(&facts.executed.files);
    if changed.is_empty() {
        let state = |files: &ExecutedFiles| files.beyond.clone().unwrap_or_else(|| "all of them hashed".to_owned());
        let (before, now) = (state(&facts.executed), state(&now.files));
        changed.push(ChangedFile { path: "the files that it runs".to_owned(), before, now });
    }
    changed
}

/// What a caller is told whose call runs other files than those that were approved.
pub(crate) fn changed_error(checked: &Checked, changed: &[ChangedFile]) -> CallError {
    let message = format!(
        "what `{}` runs has changed since it was approved, and nothing was run: {}",
        checked.spec().name,
        described(changed)
    );
    CallError::conflict(message)
        .details(json!({ CHANGED: changed }))
        .hint("call again to be asked about it as it is now")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_names_the_interpreter() {
        let of = |line: &str| interpreter(line).map(|(program, name)| format!("{program} {name}"));
        assert_eq!(of("#!/bin/sh -e").as_deref(), Some("/bin/sh sh"));
        assert_eq!(of("#! /usr/bin/env -S FOO=1 bash -x").as_deref(), Some("bash bash"));
        assert_eq!(of("#!./run").as_deref(), Some("./run run"));
        assert_eq!((of("echo"), of("#!")), (None, None));
    }

    #[test]
    fn paths_are_told_without_dots() {
        assert_eq!(normal(Path::new("/p/sub/.././x")), Path::new("/p/x"));
    }
}

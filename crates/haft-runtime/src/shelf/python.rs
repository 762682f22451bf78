//! Manifests of the kind `python`: a function, in an interpreter that is held to what its manifest declares.
//!
//! A tool that writes no files has warm interpreters. One that does has a fresh one for each call, on layers, so that what
//! it changes can be shown and undone.

use super::interpreter::{Answer, Broken, DRIVER, Head, Interpreter, answers, framed, frames, greeted, heard};
use super::inventory::of_module;
use super::made::{Made, inputs, reply, unfit, values};
use super::places::Ground;
use super::program::{self, Order, Tail, late, said};
use super::raised;
use super::standing::{Accepted, Care};
use super::venv::interpreter;
use crate::scene::Scene;
use crate::tool::Reply;
use crate::tools::running::to_its_end;
use haft_core::manifest::{Format, Python};
use haft_core::preview::{cut, inert};
use haft_core::record::Digest;
use haft_core::{CallError, ErrorKind};
use haft_sandbox::Program;
use haft_sandbox::net::Contact;
use haft_sandbox::roots::followed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What one interpreter may use.
const MEMORY: u64 = 256 << 20;
/// The largest thing that is passed in.
const ORDER_MAX: usize = 17 << 20;

/// How an interpreter is started: by itself, without what the user or an environment adds. The driver adds that when it
/// watches what is loaded. It is told the environment, the project, the tool's directory, and what may be imported besides.
const FLAGS: [&str; 7] = ["-I", "-S", "-B", "-X", "utf8", "-c", DRIVER];

/// A call that is ready to be made.
struct Ready {
    program: Program,
    made_of: Vec<PathBuf>,
    /// What is asked of the driver.
    order: Vec<u8>,
    id: u64,
    timeout: Duration,
}

/// Calls it.
pub(super) async fn run(made: &Made, python: &Python, scene: &Scene) -> Result<Reply, CallError> {
    let secrets = made.secrets(scene)?;
    let ready = ready(made, python, scene, &secrets)?;
    let mut came = if made.manifest().permissions.fs.write.is_empty() {
        warm(made, scene, ready, &secrets).await?
    } else {
        fresh(made, scene, ready, &secrets).await?
    };
    let answer = came.answer.take();
    let told = answer.map_or_else(|| Ok(Reply::default()), |answer| told(made, python, scene, answer));
    let (mut reply, error) = match told {
        Ok(reply) => (reply, None),
        Err(error) => (Reply::default(), Some(error)),
    };
    reply.error = came.reply.error.take().or(error);
    reply.warnings = std::mem::take(&mut came.reply.warnings);
    let printed = said(&came.printed);
    if !printed.is_empty() {
        reply.warnings.push(format!("printed: {printed}"));
    }
    Ok(Reply { changes: came.reply.changes, staging: came.reply.staging, ..reply })
}

/// What came of a call, before anybody has read the answer.
struct Came {
    answer: Option<Answer>,
    /// Without secrets.
    printed: Vec<u8>,
    /// Changes, warnings, and why there is no answer.
    reply: Reply,
}

fn ready(made: &Made, python: &Python, scene: &Scene, secrets: &BTreeMap<String, String>) -> Result<Ready, CallError> {
    for name in [&python.module, &python.function] {
        check_name(name)?;
    }
    let inputs = inputs(scene.args());
    let (values, bad) = (values(&inputs, secrets), |error| unfit(&error));
    let id = crate::chance();
    let order = framed(&json!({
        "id": id,
        "module": python.module,
        "function": python.function,
        "args": values.fill_each(&python.args).map_err(bad)?,
        "kwargs": values.fill_map(&python.kwargs).map_err(bad)?,
        "return": if python.gives == Format::Text { "text" } else { "json" },
    }));
    if order.len() > ORDER_MAX {
        return Err(CallError::invalid(format!("its arguments are larger than {} MiB", ORDER_MAX >> 20)));
    }
    let ground = Ground::of(scene, (made.dir(), made.whose()), &made.manifest().permissions);
    let cwd = ground.start(python.cwd.as_deref())?;
    let project = scene.workspace().root();
    let around = if python.venv.is_some() { ground.root } else { project };
    let found = interpreter((around, made.dir()), python.venv.as_deref())?;
    let mut made_of = found.made_of;
    made_of.extend(followed(made.dir()));
    made_of.extend(module_files(&cwd, &python.module));
    let files = match made.pinned() {
        Some(pinned) => accepted(&pinned, project),
        // What a tool of the user's own consists of lies beside it.
        None if ground.root != project => Vec::new(),
        None => of_module(&cwd, &python.module),
    };
    let own = followed(made.dir()).unwrap_or_else(|_| made.dir().to_owned());
    let importable = [found.venv.unwrap_or_default(), project.to_owned(), own].into_iter().chain(files);
    let argv = std::iter::once(found.path.into()).chain(FLAGS.map(Into::into));
    let argv = argv.chain(importable.map(PathBuf::into_os_string)).collect();
    let program =
        Program { argv, env: program::environment(scene.workspace().project(), secrets, &[])?, shares_job: false, cwd };
    Ok(Ready { program, made_of, order, id, timeout: program::timeout(made) })
}

/// The files that were accepted with a tool.
fn accepted(pinned: &Accepted, root: &Path) -> Vec<PathBuf> {
    pinned.files().into_iter().flat_map(|files| files.keys()).map(|file| root.join(file)).collect()
}

/// Names of modules and functions: words with dots between.
fn check_name(name: &str) -> Result<(), CallError> {
    let word = |word: &str| {
        word.chars()
            .enumerate()
            .all(|(at, c)| c == '_' || if at == 0 { c.is_alphabetic() } else { c.is_alphanumeric() })
            && !word.is_empty()
    };
    if name.split('.').all(word) {
        return Ok(());
    }
    Err(CallError::invalid(format!("`{}` is not the name of a module or function", cut(&inert(name), 60))))
}

/// In an interpreter that stays.
async fn warm(made: &Made, scene: &Scene, ready: Ready, secrets: &BTreeMap<String, String>) -> Result<Came, CallError> {
    let permissions = &made.manifest().permissions;
    let mut settled = program::settle(scene, (permissions, &ready.made_of), Path::new(""))?;
    settled.plan.confinement.bounds.memory = Some(MEMORY);
    // Whatever it is held by belongs to its name: one that is held otherwise is another.
    let pinned = made.pinned();
    let held = format!("{:?} {:?}", settled.plan.confinement, pinned.as_ref().map(|pinned| pinned.mark()));
    let key = key((made, scene), &ready.program, secrets, &held)?;
    let pool = scene.interpreters();
    let mut seat = pool.seat(key.tool, scene.halt()).await?;
    let check = |care| pinned.as_ref().map_or(Ok(()), |pinned| pinned.check(care));
    let mut interpreter = if let Some(interpreter) = pool.take(key.own, &mut seat).await {
        if let Err(error) = check(Care::Warm) {
            interpreter.end().await;
            return Err(error);
        }
        interpreter
    } else {
        // What is copied is then looked at, so that nothing can come between.
        program::stand_in(scene, &mut settled, pinned.as_deref())?;
        check(Care::Fresh)?;
        Interpreter::start(settled, ready.program).await?
    };
    let mut printed = Tail::default();
    let heard = tokio::select! {
        biased;
        heard = interpreter.call(&ready.order, ready.id, &mut printed) => Ok(heard),
        error = scene.halt().stopped() => Err(error),
        () = tokio::time::sleep(ready.timeout) => Err(late(ready.timeout, false)),
    };
    let printed = printed.masked(scene.used(), !matches!(heard, Ok(Ok(_))));
    let mut reply = Reply { warnings: contacted(&interpreter.contacts()), ..Reply::default() };
    let answer = match heard {
        Ok(Ok(answer)) => answer,
        Ok(Err(broken)) => {
            let ends_itself = !matches!(broken, Broken::Unfit(_));
            let why = interpreter.ended().await;
            if ends_itself {
                pool.failed(key.tool);
            }
            reply.error = Some(raised::broken(broken, &why, &printed, scene.used()));
            return Ok(Came { answer: None, printed, reply });
        }
        Err(error) => {
            interpreter.end().await;
            reply.error = Some(error);
            return Ok(Came { answer: None, printed, reply });
        }
    };
    pool.answered(key.tool);
    reply.warnings.extend(left_over(&answer.head));
    let failed_to_load = answer.head.wrong.is_some() || answer.head.during.as_deref() == Some("import");
    if answer.head.left.is_empty() && !failed_to_load && !interpreter.is_spent() {
        pool.give_back(key.own, interpreter, seat);
    } else {
        interpreter.end().await;
    }
    Ok(Came { answer: Some(answer), printed, reply })
}

/// In one that is started for it, on layers.
async fn fresh(
    made: &Made,
    scene: &Scene,
    ready: Ready,
    secrets: &BTreeMap<String, String>,
) -> Result<Came, CallError> {
    let key = key((made, scene), &ready.program, secrets, "fresh")?;
    let pool = scene.interpreters();
    let mut seat = pool.seat(key.tool, scene.halt()).await?;
    pool.take(key.own, &mut seat).await;
    let (manifest, pinned) = (made.shared(), made.pinned());
    let came = to_its_end(scene, move |stage| {
        // As long as it runs, it is one of a few.
        let _seat = seat;
        let Ready { program, made_of, order, id, timeout } = ready;
        let permissions = &manifest.permissions;
        let (made_of, stdin, memory, fine) = (made_of.as_slice(), Some(order.as_slice()), Some(MEMORY), &[0]);
        let run = Order { permissions, made_of, program, stdin, timeout, memory, fine, pinned };
        program::run(stage, run).map(|came| (came, id))
    });
    let (came, id) = came.await?;
    let printed = came.stderr.masked(scene.used(), came.ended);
    let mut reply = Reply {
        changes: came.kept.changes,
        staging: came.kept.staging,
        warnings: came.ending.warnings,
        ..Reply::default()
    };
    let answer = match (last(&came.stdout, id), came.ending.error) {
        (Ok(answer), None) => Some(answer),
        // It did not end as it should, or its changes cannot be kept.
        (Ok(_), Some(error)) => {
            reply.error = Some(error);
            None
        }
        (Err(broken), error) => {
            let why = error.as_ref().map_or("it ended", |error| error.message.as_str());
            // Somebody ended it, or it took too long: that is no failure of its own.
            let early = error.clone().filter(|error| error.kind != ErrorKind::Failed);
            if early.is_none() && !matches!(broken, Broken::Unfit(_)) {
                pool.failed(key.tool);
            }
            reply.error = Some(early.unwrap_or_else(|| raised::broken(broken, why, &printed, scene.used())));
            None
        }
    };
    if let Some(answer) = &answer {
        pool.answered(key.tool);
        reply.warnings.extend(left_over(&answer.head));
    }
    Ok(Came { answer, printed, reply })
}

/// What one said that has ended: that it is there, and its answer.
fn last(stdout: &[u8], id: u64) -> Result<Answer, Broken> {
    let frames = frames(stdout)?;
    let mut frames = frames.into_iter().map(heard);
    greeted(&frames.next().ok_or(Broken::Ended)??)?;
    let answer = frames.next().ok_or(Broken::Ended)??;
    answers(&answer, id)?;
    Ok(answer)
}

/// The names of an interpreter.
struct Key {
    /// The tool as it stands, and all that it was started with: what fails for one session fails for all.
    tool: Digest,
    /// The same in its session: what a function remembers of one is nobody else's.
    own: Digest,
}

fn key(
    (made, scene): (&Made, &Scene),
    program: &Program,
    secrets: &BTreeMap<String, String>,
    held: &str,
) -> Result<Key, CallError> {
    let bad = |error: serde_json::Error| CallError::internal(format!("the manifest cannot be written down: {error}"));
    let argv = format!("{:?}", program.argv);
    let text = serde_json::to_vec(&(made.manifest(), made.dir(), argv, &program.cwd, secrets, held)).map_err(bad)?;
    let tool = Digest::of(&text);
    Ok(Key { tool, own: Digest::of(format!("{tool} {}", scene.call().session.as_str()).as_bytes()) })
}

fn left_over(head: &Head) -> Option<String> {
    (!head.left.is_empty()).then(|| format!("{} that it left running were ended with its interpreter", head.left))
}

/// Whom it contacted, in sentences.
fn contacted(contacts: &[Contact]) -> Vec<String> {
    let (allowed, refused): (Vec<&Contact>, Vec<&Contact>) = contacts.iter().partition(|contact| contact.allowed);
    let refused = refused.into_iter().map(|contact| {
        let why = contact.reason.as_deref().unwrap_or("it is not on the list");
        format!("{}:{} was refused: {why}", contact.host, contact.port)
    });
    let mut said: Vec<String> = refused.collect();
    let allowed: Vec<String> = allowed.iter().map(|contact| format!("{}:{}", contact.host, contact.port)).collect();
    if !allowed.is_empty() {
        said.push(format!("it contacted {}", allowed.join(", ")));
    }
    said
}

/// The answer as a reply, or what went wrong.
fn told(made: &Made, python: &Python, scene: &Scene, answer: Answer) -> Result<Reply, CallError> {
    raised::check(answer.head, scene.used(), &|path| scene.shown(path))?;
    let format = made.manifest().outputs.format;
    if python.gives == Format::Text {
        return Ok(reply(Format::Text, String::from_utf8_lossy(&answer.body).into_owned(), None));
    }
    let value: Value = serde_json::from_slice(&answer.body).map_err(|error| {
        CallError::failed(format!("what it returned cannot be passed on: {error}"))
            .hint("numbers must fit 64 bits, and lists may be 127 deep")
    })?;
    let text = haft_core::manifest::template::rendered(&value);
    Ok(reply(format, text, Some(value)))
}

/// What a module consists of: its file, or the outermost package that it is in. All of that was accepted with it, and its
/// parts import one another.
fn module_files(cwd: &Path, module: &str) -> Vec<PathBuf> {
    let first = module.split('.').next().unwrap_or(module);
    [cwd.join(format!("{first}.py")), cwd.join(first)].iter().filter_map(|path| followed(path).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for good in ["run", "tools.repo_stats", "_x1", "größe"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "a.", "a-b", "1a", "a b", "os;x", "a/b"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_module_is_its_file_or_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        for file in ["a/__init__.py", "a/b/__init__.py", "a/c.py", "other.py"] {
            std::fs::write(top.join(file), "").unwrap();
        }
        assert_eq!(module_files(&top, "a.b"), [top.join("a")]);
        assert_eq!(module_files(&top, "a.c"), [top.join("a")]);
        assert_eq!(module_files(&top, "other"), [top.join("other.py")]);
        assert_eq!(module_files(&top, "nothing"), Vec::<PathBuf>::new());
    }
}

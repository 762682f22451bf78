//! Manifests of the kind `python`: a function, in an interpreter that is held to what its manifest declares.
//!
//! A tool that writes no files has warm interpreters. One that does has a fresh one for each call, on layers, so that what
//! it changes can be shown and undone.

use super::interpreter::{Answer, Broken, DRIVER, Head, Interpreter, answers, framed, frames, greeted, heard};
use super::inventory::of_module;
use super::made::{Made, inputs, reply, unfit, values};
use super::places::{Ground, look_up};
use super::program::{self, Order, Tail, late, said};
use super::raised;
use super::standing::Care;
use crate::confined::environment;
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
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What one interpreter may use.
const MEMORY: u64 = 256 << 20;
/// The largest thing that is passed in.
const ORDER_MAX: usize = 17 << 20;

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
    let ground = Ground::of(scene, made.dir(), &made.manifest().permissions);
    let cwd = ground.start(python.cwd.as_deref())?;
    let found = interpreter((ground.root, made.dir()), python.venv.as_deref())?;
    let mut made_of = found.made_of;
    made_of.extend(followed(made.dir()));
    made_of.extend(module_files(&cwd, &python.module));
    let vouched = of_module(&cwd, &python.module);
    let importable = importable(made, &ground, scene, &vouched).into_iter().map(PathBuf::into_os_string);
    // What is compiled and lies beside a source is not what somebody looked at.
    let flags = ["-I", "-B", "-X", "utf8", "-X", "pycache_prefix=/tmp/pycache", "-c", DRIVER];
    let argv = std::iter::once(found.path.into()).chain(flags.map(Into::into));
    let venv = found.venv.unwrap_or_default().into_os_string();
    let argv = argv.chain(std::iter::once(venv)).chain(importable).collect();
    let program = Program { argv, env: program::environment(secrets, &[])?, shares_job: false, cwd };
    Ok(Ready { program, made_of, order, id, timeout: program::timeout(made) })
}

/// What it may import of the project, as the driver hears it: the project, the tool's own directory, its environment, and
/// the files that were accepted with it. For a tool that somebody registered by hand and vouches for, what would be accepted
/// of its module; a tool of the user's own has nothing there.
fn importable(made: &Made, ground: &Ground<'_>, scene: &Scene, vouched: &[PathBuf]) -> Vec<PathBuf> {
    let root = scene.workspace().root();
    let own = followed(made.dir()).unwrap_or_else(|_| made.dir().to_owned());
    let files = match made.pinned() {
        Some(pinned) => pinned.files().into_iter().flat_map(|files| files.keys()).map(|file| root.join(file)).collect(),
        None if ground.root == root => vouched.to_vec(),
        None => Vec::new(),
    };
    [root.to_owned(), own].into_iter().chain(files).collect()
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
    let held = format!("{:?}", settled.plan.confinement);
    let key = key((made, scene), &ready.program, secrets, &held)?;
    let pool = scene.interpreters();
    let mut seat = pool.seat(key.tool, scene.halt()).await?;
    let pinned = made.pinned();
    let check = |care| pinned.as_ref().map_or(Ok(()), |pinned| pinned.check(care));
    let mut interpreter = if let Some(interpreter) = pool.take(key.own, &mut seat).await {
        if let Err(error) = check(Care::Warm) {
            interpreter.end().await;
            return Err(error);
        }
        interpreter
    } else {
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

/// An interpreter, and what of it lies outside the system.
pub(super) struct Found {
    path: PathBuf,
    made_of: Vec<PathBuf>,
    /// The virtual environment that it is of.
    venv: Option<PathBuf>,
}

/// The interpreter of a virtual environment, or the machine's own. An environment lies in the project or beside the
/// manifest, and nothing of it is shown but what an environment has.
pub(super) fn interpreter((root, own): (&Path, &Path), venv: Option<&str>) -> Result<Found, CallError> {
    let Some(venv) = venv else {
        let path = machines_own().ok_or_else(|| {
            CallError::not_found("there is no python3 on this machine")
                .hint("install Python 3.8 or later, or name a venv")
        })?;
        let made_of = prefix(&path).into_iter().collect();
        return Ok(Found { path, made_of, venv: None });
    };
    let dir = root.join(venv).canonicalize().ok();
    let path = dir.as_ref().and_then(|dir| {
        ["python3", "python"].map(|name| dir.join("bin").join(name)).into_iter().find(|path| path.exists())
    });
    let (Some(dir), Some(path)) = (dir, path) else {
        let shown = cut(&inert(venv), 80);
        return Err(CallError::not_found(format!("there is no virtual environment at `{shown}`"))
            .hint(format!("`python3 -m venv {shown}` makes one")));
    };
    let below = |place: &Path| place.canonicalize().is_ok_and(|place| dir.starts_with(&place) && dir != place);
    if !(below(root) || below(own)) || !dir.join("pyvenv.cfg").is_file() {
        let shown = cut(&inert(venv), 80);
        return Err(CallError::invalid(format!("`{shown}` is no virtual environment of the project"))
            .hint("one that `python3 -m venv` made lies below the project's root and has a pyvenv.cfg"));
    }
    let parts = ["bin", "lib", "lib64", "pyvenv.cfg"].map(|part| dir.join(part));
    // `lib64` is a link to `lib` there, and links are not roots.
    let real = |part: &PathBuf| part.symlink_metadata().is_ok_and(|meta| !meta.is_symlink());
    let made_of = parts.into_iter().filter(real).chain(prefix(&path)).collect();
    Ok(Found { path, made_of, venv: Some(dir) })
}

/// The first python3 on the PATH that is a program. A script by that name chooses one by files that a confined program
/// does not see.
fn machines_own() -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        let mut first = [0; 2];
        std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first != *b"#!"
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).map(|dir| dir.join("python3"));
    let usual = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
    look_up("python3").into_iter().chain(on_path).chain(usual).find(is_program)
}

/// Where an interpreter's own library is, if that is not the system's.
fn prefix(path: &Path) -> Option<PathBuf> {
    let real = followed(path).ok().filter(|real| !environment::is_system(real))?;
    let prefix = real.parent().and_then(Path::parent)?;
    // Only where programs are kept is there an installation around one; a home is none.
    let installed = environment::toolchains().iter().any(|place| prefix.starts_with(place) || real.starts_with(place));
    let around_home = environment::real_home().is_some_and(|home| home.starts_with(prefix));
    if !installed || around_home || prefix.parent().is_none() || !prefix.join("lib").is_dir() {
        return Some(real);
    }
    Some(prefix.to_owned())
}

/// What a module consists of: its file or its package, and what its parents say of themselves.
fn module_files(cwd: &Path, module: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dir = cwd.to_owned();
    let parts: Vec<&str> = module.split('.').collect();
    for (number, part) in parts.iter().enumerate() {
        let (package, file) = (dir.join(part), dir.join(format!("{part}.py")));
        if number + 1 < parts.len() {
            found.push(package.join("__init__.py"));
        } else {
            found.extend([file, package.clone()]);
        }
        dir = package;
    }
    found.into_iter().filter_map(|path| followed(&path).ok()).collect()
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
        assert_eq!(module_files(&top, "a.b"), [top.join("a/__init__.py"), top.join("a/b")]);
        assert_eq!(module_files(&top, "a.c"), [top.join("a/__init__.py"), top.join("a/c.py")]);
        assert_eq!(module_files(&top, "other"), [top.join("other.py")]);
        assert_eq!(module_files(&top, "nothing"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_venv_that_is_not_there_is_said_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let error = interpreter((dir.path(), dir.path()), Some(".venv")).err().unwrap();
        assert_eq!(error.message, "there is no virtual environment at `.venv`");
        assert_eq!(error.hint.as_deref(), Some("`python3 -m venv .venv` makes one"));
        for elsewhere in ["/", "/usr", "."] {
            let error = interpreter((dir.path(), dir.path()), Some(elsewhere)).err().unwrap();
            let known = ["no virtual environment", "there is no virtual"];
            assert!(known.iter().any(|word| error.message.contains(word)), "{elsewhere}: {}", error.message);
        }
    }
}

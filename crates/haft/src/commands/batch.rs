//! `haft batch`: a line in, a line out. What comes on stdin runs as it comes, so that a program can hold a conversation;
//! a file is there whole, so all of it is read before any of it runs.

use super::call::{approver, watched};
use crate::app::{App, Failure, unrun};
use crate::cli::BatchArgs;
use crate::{input, style};
use haft_core::{CallError, CallId, Dialect};
use haft_runtime::{Asked, Halt, new_call_id};
use serde::Deserialize;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use tokio::sync::mpsc;

/// The longest line.
const LINE_MAX: u64 = 16 << 20;
/// How many lines are read ahead of the calls that run.
const AHEAD: usize = 16;
/// What a line looks like.
const LIKE: &str = r#"each line is an object like {"tool": "file.read", "args": {"path": "a.txt"}}"#;

/// One line of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) args: Value,
    #[serde(default)]
    pub(super) dialect: Option<Dialect>,
    /// The call's id, chosen by whoever may have to send the line again.
    #[serde(default)]
    pub(super) call_id: Option<String>,
}

/// A line, or why it is none.
type Heard = Result<Line, CallError>;

/// Calls many tools.
pub(super) fn run(app: &App, args: &BatchArgs) -> Result<u8, Failure> {
    let dialect = args.dialect.as_deref();
    app.dialect(dialect)?;
    let heard = if args.file == "-" { listen()? } else { from_file(&args.file)? };
    let (halt, approver) = (Halt::new(), approver(app, &args.asking));
    let (sender, asked) = mpsc::channel(AHEAD);
    let mut worst = 0;
    app.block_on(async {
        let calls = app.haft.call_each(asked, approver.as_ref(), &halt, |outcome| {
            // The first failure's code is the batch's.
            worst = if worst == 0 { outcome.exit_code() } else { worst };
            style::json(&outcome);
        });
        // When the calls have ended nobody listens to what is handed on, and so that ends, too.
        let work = async { tokio::join!(hand_on(app, heard, sender, dialect), calls) };
        watched(app, work, &halt).await;
        app.haft.flush().await
    })?;
    Ok(worst)
}

/// Makes calls of lines, in their order.
async fn hand_on(app: &App, mut heard: mpsc::Receiver<Heard>, sender: mpsc::Sender<Asked>, dialect: Option<&str>) {
    while let Some(heard) = tokio::select! { heard = heard.recv() => heard, () = sender.closed() => None } {
        let asked = match heard {
            Ok(line) => call(app, line, dialect).await,
            Err(error) => Err(Box::new(unrun(new_call_id(), "", error))),
        };
        if sender.send(asked).await.is_err() {
            return;
        }
    }
}

async fn call(app: &App, line: Line, dialect: Option<&str>) -> Asked {
    let Line { tool, args, dialect: own, call_id } = line;
    let unmade = |error| Box::new(unrun(new_call_id(), &tool, error));
    let mut call = app.call_soon(&tool, args, dialect).await.map_err(unmade)?;
    call.dialect = own.unwrap_or(call.dialect);
    if let Some(id) = call_id {
        call.id = CallId::chosen(&id).map_err(unmade)?;
    }
    Ok(call)
}

/// Reads all lines of a file before any is run: a typing error in the last must not leave the first half done.
fn from_file(path: &str) -> Result<mpsc::Receiver<Heard>, Failure> {
    let file = std::fs::File::open(path).map_err(|error| CallError::invalid(format!("{path}: {error}")))?;
    let text = input::read(file, path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let lines: Vec<Line> = lines
        .map(|(at, text)| line(text.as_bytes(), at + 1))
        .collect::<Result<_, _>>()
        .map_err(|error: CallError| CallError { message: format!("{}; nothing was run", error.message), ..error })?;
    let (sender, heard) = mpsc::channel(lines.len().max(1));
    for line in lines {
        // There is room for all of them.
        let _ = sender.try_send(Ok(line));
    }
    Ok(heard)
}

fn line(text: &[u8], number: usize) -> Heard {
    serde_json::from_slice(text).map_err(|error| CallError::invalid(format!("line {number}: {error}")).hint(LIKE))
}

/// Reads stdin line by line, as far ahead as there is room.
fn listen() -> Result<mpsc::Receiver<Heard>, Failure> {
    let (sender, heard) = mpsc::channel(AHEAD);
    let work = move || {
        let mut stdin = BufReader::new(std::io::stdin());
        let mut number = 0;
        // It ends with its input, when nobody listens any more, or with the process.
        while let Some(text) = next_line(&mut stdin).transpose() {
            number += 1;
            let ends = text.is_err();
            let said = match &text {
                Ok(text) if text.trim_ascii().is_empty() => continue,
                Ok(text) => line(text, number),
                Err(why) => Err(CallError::invalid(format!("line {number}: {why}")).hint(LIKE)),
            };
            if sender.blocking_send(said).is_err() || ends {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("haft-batch".to_owned())
        .spawn(work)
        .map_err(|error| CallError::internal(format!("stdin cannot be read: {error}")))?;
    Ok(heard)
}

/// The next line. After one that cannot be read nothing more is.
fn next_line(source: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut line = Vec::new();
    let read = source.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
    if read as u64 == LINE_MAX && line.last() != Some(&b'\n') {
        return Err(format!("longer than {} MiB; nothing after it is read", LINE_MAX >> 20));
    }
    Ok((read > 0).then_some(line))
}

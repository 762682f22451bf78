//! file.read: shows a file: text of any encoding by lines, images as images, anything as base64.
//!
//! The tool cuts its own output, because only it can say at which line to go on.

mod lines;
mod sample;
#[cfg(test)]
mod tests;

use crate::files;
use crate::hygiene::Looked;
use crate::media::picture;
use crate::run::OUTPUTS;
use crate::scene::Scene;
use crate::text_encoding::{self, TextEncoding};
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use base64::Engine as _;
use haft_core::outcome::Label;
use haft_core::place::{Access, Place};
use haft_core::preview::size;
use haft_core::scan::unwrapped;
use haft_core::shape::{Binary, Keep, Limits, detect};
use haft_core::{CallError, ToolSpec};
use haft_store::Sighting;
use lines::{Form, Page, Window};
use serde::Deserialize;
use serde_json::json;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// Files up to this size are taken in whole, so that what is shown and what is hashed are the same bytes.
const HASH_MAX: u64 = 16 << 20;
/// How much of a larger file is looked at to tell what it is.
const START: u64 = text_encoding::START as u64;
/// Larger files are not given as base64.
const BASE64_MAX: u64 = 10 << 20;
/// What is no text and no format that is known.
const UNKNOWN: Binary = Binary { name: "binary", mime: "application/octet-stream" };
/// More than any reply that this tool gives.
const OUTPUT_MAX: usize = 16 << 20;

#[derive(Deserialize)]
struct Args {
    offset: Option<u64>,
    limit: Option<u64>,
    #[serde(default)]
    encoding: Encoding,
    line_numbers: bool,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Utf8,
    Base64,
}

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    Blocking::tool(spec(), read)
}

fn spec() -> ToolSpec {
    declare(
        "file.read",
        "Read a file. Returns text with line numbers, up to 2000 lines or 50 KB at a time; if there is more, the last \
         line gives the offset to continue with. Decodes UTF-16 and other encodings, and names them. Returns PNG, JPEG, GIF, WebP, TIFF and BMP files as images. Read a file \
         before you edit or overwrite it.",
    )
    .hint("cat view show open head lines text image photo")
    .input(json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File to read, absolute or relative to the project root"},
            "offset": {"type": "integer", "minimum": 1, "description": "First line to show, counted from 1"},
            "limit": {"type": "integer", "minimum": 1, "description": "Number of lines (default and maximum 2000)"},
            "encoding": {
                "type": "string",
                "enum": ["utf8", "base64"],
                "description": "base64 returns the whole file, also a binary one, up to 10 MB (default utf8)"
            },
            "line_numbers": {"type": "boolean", "default": true, "description": "Number the lines like cat -n"}
        },
        "required": ["path"],
        "additionalProperties": false
    }))
    .touches("path", Access::Read, None)
    .limits(Limits { lines: usize::MAX, bytes: OUTPUT_MAX, keep: Keep::Head })
}

/// The file that a call is about, opened once: everything said about it is said about the same file.
struct Subject<'s> {
    scene: &'s Scene,
    place: &'s Place,
    meta: Metadata,
}

impl<'s> Subject<'s> {
    fn open(scene: &'s Scene) -> Result<(Self, File), CallError> {
        let place = scene.place("path")?;
        let explain = |error| files::explain(&place.shown, &error);
        let file = files::open(&place.real).map_err(explain)?;
        let meta = file.metadata().map_err(explain)?;
        Ok((Self { scene, place, meta }, file))
    }

    fn explain(&self, error: &std::io::Error) -> CallError {
        files::explain(&self.place.shown, error)
    }

    /// Takes in the next bytes of the file, at most `max`.
    fn take(&self, file: &mut File, max: u64, into: &mut Vec<u8>) -> Result<(), CallError> {
        self.scene.halt().check()?;
        file.take(max).read_to_end(into).map(drop).map_err(|error| self.explain(&error))
    }

    /// Takes in the whole file, of which `content` is the beginning, unless it is larger than `max`.
    fn take_all(&self, file: &mut File, mut content: Vec<u8>, max: u64) -> Result<Vec<u8>, CallError> {
        let missing = (max + 1).saturating_sub(content.len() as u64);
        if self.meta.len() <= max {
            self.take(file, missing, &mut content)?;
        }
        if self.meta.len() > max || content.len() as u64 > max {
            let limit = size(usize::try_from(max).unwrap_or(usize::MAX));
            return Err(CallError::failed(format!(
                "{} is larger than {limit}, the limit for this way of reading",
                self.place.shown
            )));
        }
        Ok(content)
    }

    /// What was found in a file that haft itself keeps and that bears a wrapper: the whole of an output that was somebody
    /// else's words, and still is.
    fn strangers(&self, file: &File) -> Result<Option<Looked>, CallError> {
        let outputs = self.scene.terms().data_dir.join(OUTPUTS).canonicalize();
        if !outputs.is_ok_and(|outputs| self.place.real.starts_with(outputs)) {
            return Ok(None);
        }
        let mut content = vec![0; usize::try_from(self.meta.len().min(HASH_MAX)).unwrap_or_default()];
        file.read_exact_at(&mut content, 0).map_err(|error| self.explain(&error))?;
        // Its own last line is no attempt to end the wrapper.
        Ok(unwrapped(&String::from_utf8_lossy(&content)).map(Looked::at))
    }

    /// The file's size, for people.
    fn size(&self) -> String {
        size(usize::try_from(self.meta.len()).unwrap_or(usize::MAX))
    }

    /// Notes that the session has seen all of this content.
    fn note_whole(&self, content: &[u8]) {
        self.scene.seen().note(&self.place.real, crate::seen::whole(content, files::mtime_ns(&self.meta)));
    }

    /// Notes that the session has seen a part of a file that was too large to hash.
    fn note_part(&self) {
        let size = i64::try_from(self.meta.len()).unwrap_or(i64::MAX);
        let sighting = Sighting { digest: None, size, mtime_ns: files::mtime_ns(&self.meta), whole: false };
        self.scene.seen().note(&self.place.real, sighting);
    }
}

fn read(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let (subject, file) = Subject::open(scene)?;
    let looked = subject.strangers(&file)?;
    let mut reply = match args.encoding {
        Encoding::Base64 => base64(&subject, file, &args)?,
        Encoding::Utf8 => shown(&subject, file, &args)?,
    };
    if !subject.place.inside {
        reply.labels.push(Label::Outside);
    }
    if subject.place.sensitive.is_some() {
        reply.labels.push(Label::Sensitive);
    }
    if looked.is_some() {
        reply.labels.push(Label::Untrusted);
        reply.looked = looked;
    }
    Ok(reply)
}

fn base64(subject: &Subject<'_>, mut file: File, args: &Args) -> Result<Reply, CallError> {
    if args.offset.is_some() || args.limit.is_some() {
        return Err(CallError::invalid("`offset` and `limit` count lines, and base64 has none; leave them out"));
    }
    let content = subject.take_all(&mut file, Vec::new(), BASE64_MAX)?;
    subject.note_whole(&content);
    let text = base64::prelude::BASE64_STANDARD.encode(&content);
    Ok(Reply::text(text).data(json!({"path": subject.place.shown, "encoding": "base64", "bytes": content.len()})))
}

/// The file as what it is, judged by its first bytes.
fn shown(subject: &Subject<'_>, mut file: File, args: &Args) -> Result<Reply, CallError> {
    let mut start = Vec::new();
    subject.take(&mut file, if subject.meta.len() > HASH_MAX { START } else { HASH_MAX }, &mut start)?;
    if start.is_empty() {
        return Ok(empty(subject));
    }
    let binary_format = detect(&start);
    // Two letters are not enough to tell a bitmap.
    if binary_format.is_none_or(|found| matches!(found.name, "binary" | "BMP")) {
        let is_all = subject.meta.len() <= HASH_MAX;
        let encoding = if is_all { TextEncoding::detect(&start) } else { sample::detect(subject, &file, &start)? };
        if let Some(encoding) = encoding {
            return text(subject, (file, start), args, encoding);
        }
    }
    match binary_format.unwrap_or(UNKNOWN) {
        found if found.mime.starts_with("image/") => image(subject, file, start, found),
        found if found.name == "PDF" => Ok(pdf(subject, found)),
        found => Err(binary(subject, found)),
    }
}

fn empty(subject: &Subject<'_>) -> Reply {
    subject.note_whole(&[]);
    Reply::text("File exists but is empty").data(json!({"path": subject.place.shown, "total_lines": 0}))
}

fn pdf(subject: &Subject<'_>, found: Binary) -> Reply {
    let text = format!(
        "PDF document, {}; its text cannot be shown here: extract it in a shell with pdftotext, or read the file with encoding base64",
        subject.size()
    );
    Reply::text(text).data(json!({"type": found.mime, "bytes": subject.meta.len()}))
}

fn binary(subject: &Subject<'_>, found: Binary) -> CallError {
    let kind = if found.name == "binary" { String::new() } else { format!("{}, ", found.name) };
    CallError::failed(format!("{} is a binary file ({kind}{})", subject.place.shown, subject.size()))
        .hint("read it with encoding base64")
}

fn image(subject: &Subject<'_>, mut file: File, start: Vec<u8>, found: Binary) -> Result<Reply, CallError> {
    // Whether it can be decoded is known before it is read.
    picture::format(&subject.place.shown, found)?;
    let content = subject.take_all(&mut file, start, picture::BYTES_MAX)?;
    let reply = picture::reply(&subject.place.shown, &content, found)?;
    subject.note_whole(&content);
    Ok(reply)
}

fn text(
    subject: &Subject<'_>,
    (mut file, start): (File, Vec<u8>),
    args: &Args,
    encoding: TextEncoding,
) -> Result<Reply, CallError> {
    let window = Window {
        first: args.offset.unwrap_or(1),
        limit: args.limit.unwrap_or(lines::LINES_MAX).min(lines::LINES_MAX),
        form: if args.line_numbers { Form::Numbered } else { Form::Plain },
    };
    // A size may lie (in /proc it is 0) or be outgrown, so the file's own end decides what is all of it.
    let mut beyond = Vec::new();
    subject.take(&mut file, 1, &mut beyond)?;
    let complete = beyond.is_empty();
    let page = lines::page(start.chain(beyond.as_slice()).chain(file), encoding, subject, window)?;
    if complete {
        let whole = page.is_whole();
        let sighting = Sighting { whole, ..crate::seen::whole(&start, files::mtime_ns(&subject.meta)) };
        subject.scene.seen().note(&subject.place.real, sighting);
    } else {
        subject.note_part();
    }
    Ok(leaf(subject, page, encoding, window.form))
}

/// The reply that shows a page.
fn leaf(subject: &Subject<'_>, page: Page, encoding: TextEncoding, form: Form) -> Reply {
    let shown = &subject.place.shown;
    let mut data = json!({
        "path": shown, "first_line": page.first, "last_line": page.last, "encoding": encoding.name()
    });
    if encoding.has_bom() {
        data["bom"] = true.into();
    }
    match page.rest {
        lines::Rest::Nothing => data["total_lines"] = page.last.into(),
        lines::Rest::Counted(total) => data["total_lines"] = total.into(),
        lines::Rest::Uncounted => {}
    }
    let said = (!encoding.is_utf8()).then(|| format!("encoding {}; edits keep it", encoding.title()));
    let garbled =
        page.is_garbled.then(|| format!("bytes that are not valid {} are shown as \u{fffd}", encoding.name()));
    let cut = page.note();
    let mut warnings: Vec<String> = Vec::new();
    let mut text = page.text;
    let mut add = |line: &str| {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(line);
    };
    for note in said.into_iter().chain(garbled) {
        match form {
            Form::Numbered => add(&format!("[{note}]")),
            // The text alone, for programs.
            Form::Plain => warnings.push(note),
        }
    }
    if let Some(note) = &cut {
        add(note);
    }
    let whole = cut.is_some().then(|| shown.clone());
    Reply { warnings, whole, ..Reply::text(text).data(data) }
}

//! What is not text: how it comes in, how it is delivered, and who looks at pictures and listens to sounds.
//!
//! A tool is given a `Material` (a file of the project or bytes of the caller's own). What is for the person becomes an
//! [`Attachment`]: a file that is kept, an event for who listens, a block for who speaks MCP. What is for a model goes to
//! the endpoint that the configuration names, by the guarded way out, or to a program on this machine, confined.

pub(crate) mod model;
pub(crate) mod picture;

use crate::files;
use crate::scene::Scene;
use base64::Engine as _;
use haft_core::preview::{inert, size};
use haft_core::shape::detect;
use haft_core::{CallError, CallId};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The largest thing that is taken in.
pub(crate) const BYTES_MAX: u64 = 25 << 20;
/// How much text base64 makes of that.
pub(crate) const TEXT_MAX: u64 = BYTES_MAX.div_ceil(3) * 4;
/// The longest name, in characters.
const NAME_MAX: usize = 100;
/// The same, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// What media tools go by.
#[derive(Debug, Clone, Default)]
pub struct MediaSettings {
    /// Who looks at pictures.
    pub vision: Option<Endpoint>,
    /// Who listens.
    pub transcriber: Option<Transcriber>,
}

/// A model behind an OpenAI-compatible address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its base, as in `https://api.example.com/v1`.
    pub url: String,
    /// Which model.
    pub model: String,
    /// The variable of the environment that holds its key.
    pub key_env: Option<String>,
}

/// Who turns sound into text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transcriber {
    /// A model elsewhere.
    Endpoint(Endpoint),
    /// A program here: its arguments, among which `{file}` stands for the sound, and how long it may take.
    Command(Vec<String>, Duration),
}

/// What a tool is given.
pub(crate) struct Material {
    /// How it is called.
    pub(crate) name: String,
    /// Its media type.
    pub(crate) mime: String,
    /// It.
    pub(crate) bytes: Vec<u8>,
}

/// How a caller names what a tool is about: a file, or the bytes themselves.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Given {
    pub(crate) path: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) filename: Option<String>,
}

impl Material {
    /// Takes in what the caller names. What the bytes say they are counts for more than what the caller says.
    pub(crate) fn take(scene: &Scene, given: &Given) -> Result<Self, CallError> {
        let (name, bytes) = match (&given.path, &given.data) {
            (Some(_), None) => {
                let place = scene.place("path")?;
                let (bytes, _) = files::load(&place.real, &place.shown, BYTES_MAX)?;
                (file_name(&place.shown), bytes)
            }
            (None, Some(text)) => (String::new(), decoded(text)?),
            _ => return Err(CallError::invalid("either `path` or `data` is needed, and not both")),
        };
        if bytes.is_empty() {
            return Err(CallError::invalid("there is nothing in it"));
        }
        let said = given.mime_type.as_deref().unwrap_or_default().trim().to_ascii_lowercase();
        let mime = match detect(&bytes) {
            Some(found) if found.mime != "application/octet-stream" => found.mime.to_owned(),
            _ if is_mime(&said) => said,
            Some(_) => "application/octet-stream".to_owned(),
            None => "text/plain".to_owned(),
        };
        let name = given.filename.as_deref().map(file_name).filter(|name| !name.is_empty()).unwrap_or(name);
        let name = if name.is_empty() { format!("attachment{}", ending(&mime)) } else { name };
        Ok(Self { name, mime, bytes })
    }

    /// It in words.
    pub(crate) fn shown(&self) -> String {
        format!("{} ({}, {})", inert(&self.name), self.mime, size(self.bytes.len()))
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, CallError> {
    // A data URL is what browsers and models have at hand.
    let text = text.split_once(";base64,").map_or(text, |(_, rest)| rest);
    let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    base64::prelude::BASE64_STANDARD
        .decode(text)
        .map_err(|error| CallError::invalid(format!("`data` is not base64: {error}")))
}

fn is_mime(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-+.".contains(&b));
    text.len() <= NAME_MAX && text.split_once('/').is_some_and(|(kind, rest)| plain(kind) && plain(rest))
}

/// The last part of a path, fit to be a file's name anywhere.
fn file_name(path: &str) -> String {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let tame = |c: char| if c.is_control() || ":*?\"<>|".contains(c) { '_' } else { c };
    let mut name: String = inert(last).chars().map(tame).take(NAME_MAX).collect();
    // Systems count bytes, and a character may have four.
    name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
    name.trim_start_matches('.').trim().to_owned()
}

/// How a file of a type is called at its end.
pub(crate) fn ending(mime: &str) -> &'static str {
    match mime {
        "image/png" => ".png",
        "image/jpeg" => ".jpg",
        "image/gif" => ".gif",
        "image/webp" => ".webp",
        "audio/wav" | "audio/x-wav" | "audio/wave" => ".wav",
        "audio/ogg" | "application/ogg" => ".ogg",
        "audio/mpeg" => ".mp3",
        "audio/flac" | "audio/x-flac" => ".flac",
        "audio/webm" | "video/webm" => ".webm",
        "audio/mp4" | "video/mp4" => ".m4a",
        "application/pdf" => ".pdf",
        "text/plain" => ".txt",
        _ => ".bin",
    }
}

/// A name as a part of a URL.
pub fn url_safe(name: &str) -> String {
    let mut safe = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            safe.push(char::from(byte));
        } else {
            safe.push_str(&format!("%{byte:02X}"));
        }
    }
    safe
}

/// Something for the person, kept where it can be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attachment {
    /// What it is called.
    pub name: String,
    /// Its media type.
    pub mime_type: String,
    /// How large it is.
    pub bytes: usize,
    /// Where it is kept.
    pub path: PathBuf,
}

impl Attachment {
    /// Keeps it under its call's name.
    pub(crate) fn keep(data_dir: &Path, call: &CallId, name: &str, mime: &str, bytes: &[u8]) -> std::io::Result<Self> {
        let dir = Self::dir(data_dir, call);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let path = dir.join(name);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(bytes)?;
        Ok(Self { name: name.to_owned(), mime_type: mime.to_owned(), bytes: bytes.len(), path })
    }

    /// Where the attachments of a call are.
    pub fn dir(data_dir: &Path, call: &CallId) -> PathBuf {
        data_dir.join(crate::kept::ATTACHMENTS).join(call.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_directory() {
        for (given, name) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("a\\b.txt", "b.txt"),
            ("..", ""),
            (".bashrc", "bashrc"),
            ("x\n\u{202e}y", "x↵\\u{202e}y"),
        ] {
            assert_eq!(file_name(given), name, "{given}");
        }
        assert!(file_name(&"a".repeat(500)).len() <= NAME_MAX);
        assert_eq!(file_name(&"\u{597d}".repeat(500)), "\u{597d}".repeat(66), "at most 200 bytes, whole characters");
    }

    #[test]
    fn base64_comes_plain_or_as_a_data_url() {
        assert_eq!(decoded("aGVsbG8=").unwrap(), b"hello");
        assert_eq!(decoded("data:text/plain;base64,aGVs\nbG8=").unwrap(), b"hello");
        assert!(decoded("***").unwrap_err().message.contains("not base64"));
    }
}

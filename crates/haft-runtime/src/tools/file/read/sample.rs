//! The part of a large file that tells its encoding, found without taking in the file.

use super::Subject;
use crate::files::LOAD_MAX;
use crate::text_encoding::{LEAD, SAMPLE, TextEncoding};
use haft_core::CallError;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// How much is read at once.
const PIECE: usize = 256 << 10;

/// The encoding of a file that begins with `start`: the same that an edit of it finds, which loads no more than this looks at.
pub(super) fn detect(subject: &Subject<'_>, file: &File, start: &[u8]) -> Result<Option<TextEncoding>, CallError> {
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < LOAD_MAX {
        subject.scene.halt().check()?;
        let length = read_at(subject, file, &mut piece, at)?;
        if let Some(first) = piece[..length].iter().position(|byte| !byte.is_ascii()) {
            let mut sample = vec![0; SAMPLE];
            let length = read_at(subject, file, &mut sample, (at + first as u64).saturating_sub(LEAD as u64))?;
            return Ok(TextEncoding::judge(start, &sample[..length]));
        }
        if length < piece.len() {
            break;
        }
        at += length as u64;
    }
    Ok(TextEncoding::judge(start, &[]))
}

/// Fills the buffer from a place of the file on, unless the file ends before.
fn read_at(subject: &Subject<'_>, file: &File, buffer: &mut [u8], at: u64) -> Result<usize, CallError> {
    let mut length = 0;
    while length < buffer.len() {
        let read = file.read_at(&mut buffer[length..], at + length as u64);
        match read.map_err(|error| subject.explain(&error))? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

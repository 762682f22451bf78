//! The body of a forwarded request, and not a byte more: what follows it would be a second request, whose
//! host nobody has looked at.

use std::io::{self, BufRead, ErrorKind, Read, Write};

/// The longest line between chunks.
const LINE_MAX: u64 = 1024;
/// How many trailer lines are read past.
const TRAILERS_MAX: usize = 64;

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    Empty,
    /// This many bytes.
    Length(u64),
    /// In chunks, until one is empty.
    Chunked,
}

/// Carries a body over. Chunks are written anew, without extensions and trailers, so that both sides agree
/// on where they end.
pub(super) fn carry(framing: Framing, from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    match framing {
        Framing::Empty => Ok(()),
        Framing::Length(length) => exactly(length, from, to),
        Framing::Chunked => chunks(from, to),
    }
}

fn exactly(length: u64, from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    let copied = io::copy(&mut from.take(length), to)?;
    if copied == length { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn chunks(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    loop {
        let size = chunk_size(&line(from)?)?;
        write!(to, "{size:x}\r\n")?;
        if size == 0 {
            trailers(from)?;
            return to.write_all(b"\r\n");
        }
        exactly(size, from, to)?;
        if !line(from)?.is_empty() {
            return Err(ErrorKind::InvalidData.into());
        }
        to.write_all(b"\r\n")?;
    }
}

fn trailers(from: &mut impl BufRead) -> io::Result<()> {
    for _ in 0..TRAILERS_MAX {
        if line(from)?.is_empty() {
            return Ok(());
        }
    }
    Err(ErrorKind::InvalidData.into())
}

fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| plain);
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// A line without its end, which has to be CR LF.
fn line(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(LINE_MAX).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(text) if !text.contains(&b'\r') => Ok(text.to_vec()),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn carried(framing: Framing, sent: &str) -> (Result<(), ErrorKind>, String, String) {
        let mut from = sent.as_bytes();
        let mut to = Vec::new();
        let done = carry(framing, &mut from, &mut to).map_err(|error| error.kind());
        (done, String::from_utf8_lossy(&to).into_owned(), String::from_utf8_lossy(from).into_owned())
    }

    #[test]
    fn a_body_ends_where_it_says() {
        let carry = |framing, sent| carried(framing, sent);
        assert_eq!(carry(Framing::Empty, "GET / HTTP/1.1"), (Ok(()), String::new(), "GET / HTTP/1.1".into()));
        assert_eq!(carry(Framing::Length(3), "abcdef"), (Ok(()), "abc".into(), "def".into()));
        assert_eq!(carry(Framing::Length(9), "abc").0, Err(ErrorKind::UnexpectedEof));
        let chunked = "3;x=\"y\"\r\nabc\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /";
        let anew = "3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(carry(Framing::Chunked, chunked), (Ok(()), anew.into(), "GET /".into()));
    }

    #[test]
    fn chunks_that_two_readers_could_count_differently_are_refused() {
        for odd in [
            "3\nabc\r\n0\r\n\r\n",
            "+3\r\nabc",
            "0x3\r\nabc",
            " 3\r\nabc",
            "\r\n",
            "3\r\nabcd\r\n",
            "3\r\r\nabc",
            "11111111111111111\r\n",
        ] {
            assert_eq!(carried(Framing::Chunked, odd).0, Err(ErrorKind::InvalidData), "{odd:?}");
        }
        let endless = "x".repeat(5000);
        assert_eq!(carried(Framing::Chunked, &endless).0, Err(ErrorKind::InvalidData));
    }

    proptest! {
        #[test]
        fn any_bytes_are_carried_or_refused(sent in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = carry(Framing::Chunked, &mut sent.as_slice(), &mut Vec::new());
        }
    }
}

//! The body of an answer, decoded and never larger than its bound: a bomb is cut, not unpacked.

use flate2::write::{GzDecoder, ZlibDecoder};
use std::io::{self, Write};

/// Keeps what is written up to a bound, and notes whether there was more.
#[derive(Debug)]
pub(super) struct Bounded {
    bytes: Vec<u8>,
    bound: usize,
    cut: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.bound - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            self.cut = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes in a body piece by piece.
#[derive(Debug)]
pub(super) enum Intake {
    Plain(Bounded),
    Gzip(Box<GzDecoder<Bounded>>),
    Deflate(Box<ZlibDecoder<Bounded>>),
}

/// What is asked for, because it can be decoded here.
pub(super) const ACCEPTED: &str = "gzip, deflate";

impl Intake {
    /// For this content coding. One that was not asked for cannot be read.
    pub(super) fn new(coding: Option<&str>, bound: usize) -> Result<Self, String> {
        let body = Bounded { bytes: Vec::new(), bound, cut: false };
        match coding.map(str::trim).unwrap_or_default().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Plain(body)),
            "gzip" | "x-gzip" => Ok(Self::Gzip(Box::new(GzDecoder::new(body)))),
            "deflate" => Ok(Self::Deflate(Box::new(ZlibDecoder::new(body)))),
            other => Err(format!("it is encoded as `{}`, which was not asked for", haft_core::preview::inert(other))),
        }
    }

    /// Takes in a piece. Returns whether there is room for more.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<bool, String> {
        let written = match self {
            Self::Plain(body) => body.write_all(piece),
            Self::Gzip(decoder) => decoder.write_all(piece),
            Self::Deflate(decoder) => decoder.write_all(piece),
        };
        match written {
            Ok(()) => Ok(true),
            Err(_) if self.body().cut => Ok(false),
            Err(error) => Err(format!("it cannot be decoded: {error}")),
        }
    }

    fn body(&self) -> &Bounded {
        match self {
            Self::Plain(body) => body,
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Deflate(decoder) => decoder.get_ref(),
        }
    }

    /// The bytes, and whether there were more.
    pub(super) fn finish(self) -> Result<(Vec<u8>, bool), String> {
        let undecodable = |error: io::Error| format!("it cannot be decoded: {error}");
        let cut = self.body().cut;
        let body = match self {
            Self::Plain(body) => body,
            Self::Gzip(mut decoder) if cut => std::mem::replace(decoder.get_mut(), Bounded::none()),
            Self::Deflate(mut decoder) if cut => std::mem::replace(decoder.get_mut(), Bounded::none()),
            Self::Gzip(decoder) => match decoder.finish() {
                Ok(body) => body,
                Err(error) => return Err(undecodable(error)),
            },
            Self::Deflate(decoder) => decoder.finish().map_err(undecodable)?,
        };
        Ok((body.bytes, body.cut))
    }
}

impl Bounded {
    fn none() -> Self {
        Self { bytes: Vec::new(), bound: 0, cut: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    fn through(coding: Option<&str>, bytes: &[u8], bound: usize) -> Result<(Vec<u8>, bool), String> {
        let mut intake = Intake::new(coding, bound)?;
        for piece in bytes.chunks(7) {
            if !intake.take(piece)? {
                break;
            }
        }
        intake.finish()
    }

    #[test]
    fn every_coding_gives_the_same_bytes() {
        let text = b"the same bytes ".repeat(100);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let zlib = zlib.finish().unwrap();
        for (coding, bytes) in [(None, &text), (Some("gzip"), &gzip), (Some("deflate"), &zlib)] {
            assert_eq!(through(coding, bytes, 1 << 20).unwrap(), (text.clone(), false), "{coding:?}");
        }
        assert!(through(Some("br"), &text, 100).unwrap_err().contains("not asked for"));
        assert!(through(Some("gzip"), &text, 100).unwrap_err().contains("cannot be decoded"));
        assert!(through(Some("gzip"), &gzip[..gzip.len() - 9], 1 << 20).unwrap_err().contains("cannot be decoded"));
    }

    #[test]
    fn a_bomb_is_cut() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![0; 50 << 20]).unwrap();
        let bomb = bomb.finish().unwrap();
        let (bytes, cut) = through(Some("gzip"), &bomb, 1000).unwrap();
        assert_eq!((bytes.len(), cut), (1000, true));
    }
}

//! The body of an answer, decoded and never larger than its bound: a bomb is cut, not unpacked.

use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
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

/// What servers call `deflate`: deflate in the clothes of zlib, as the standard says, or bare, as some always sent it.
/// The first two bytes tell.
#[derive(Debug)]
struct Inflate {
    body: Bounded,
    head: Vec<u8>,
    state: Option<Decompress>,
    ended: bool,
}

impl Inflate {
    fn take(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.state.is_some() {
            return self.inflate(piece);
        }
        self.head.extend_from_slice(piece);
        let [first, second, ..] = self.head[..] else { return Ok(()) };
        let zlib = first & 0x0f == 8 && u16::from_be_bytes([first, second]) % 31 == 0;
        self.state = Some(Decompress::new(zlib));
        let head = std::mem::take(&mut self.head);
        self.inflate(&head)
    }

    fn inflate(&mut self, mut piece: &[u8]) -> io::Result<()> {
        let Some(state) = &mut self.state else { return Ok(()) };
        let mut out = [0; 8 << 10];
        // What follows the end is nobody's.
        while !self.ended {
            let (read, made) = (state.total_in(), state.total_out());
            let status = state.decompress(piece, &mut out, FlushDecompress::None)?;
            let read = usize::try_from(state.total_in() - read).unwrap_or(piece.len());
            let made = usize::try_from(state.total_out() - made).unwrap_or(0);
            self.body.write_all(&out[..made])?;
            piece = &piece[read..];
            self.ended = status == Status::StreamEnd;
            if read == 0 && made == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Takes in a body piece by piece.
#[derive(Debug)]
pub(super) struct Intake {
    kind: Kind,
    /// How much has come in, as it came.
    pub(super) received: usize,
}

#[derive(Debug)]
enum Kind {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
    Deflate(Box<Inflate>),
}

/// What is asked for, because it can be decoded here.
pub(super) const ACCEPTED: &str = "gzip, deflate";
/// How much of an encoded body is decoded at once while it should stay small. Nothing becomes more than about a thousand
/// times larger.
const SIP: usize = 256;

impl Intake {
    /// For this content coding. One that was not asked for cannot be read.
    pub(super) fn new(coding: &str, bound: usize) -> Result<Self, String> {
        let body = Bounded { bytes: Vec::new(), bound, cut: false };
        let kind = match coding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Kind::Plain(body),
            "gzip" | "x-gzip" => Kind::Gzip(Box::new(MultiGzDecoder::new(body))),
            "deflate" => Kind::Deflate(Box::new(Inflate { body, head: Vec::new(), state: None, ended: false })),
            other => {
                let shown = haft_core::preview::cut(&haft_core::preview::inert(other), 60);
                return Err(format!("it is encoded as `{shown}`, which was not asked for"));
            }
        };
        Ok(Self { kind, received: 0 })
    }

    /// How large the body has become.
    pub(super) fn size(&self) -> usize {
        self.body().bytes.len()
    }

    /// How much of a piece can be taken in so that the body does not grow beyond `limit` by much.
    pub(super) fn fits(&self, piece: &[u8], limit: usize) -> usize {
        let room = limit.saturating_sub(self.body().bytes.len());
        match self.kind {
            Kind::Plain(_) => piece.len().min(room),
            _ if limit == usize::MAX => piece.len(),
            _ if room == 0 => 0,
            _ => piece.len().min(SIP),
        }
    }

    /// Makes room for all that it may become at once, rather than again and again. Memory that nobody writes to costs
    /// nothing.
    pub(super) fn widen(&mut self, bytes: usize) {
        let body = self.body_mut();
        let more = bytes.min(body.bound).saturating_sub(body.bytes.len());
        body.bytes.reserve_exact(more);
    }

    /// Takes in a piece. Returns whether there is room for more.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<bool, String> {
        self.received += piece.len();
        let written = match &mut self.kind {
            Kind::Plain(body) => body.write_all(piece),
            Kind::Gzip(decoder) => decoder.write_all(piece),
            Kind::Deflate(decoder) => decoder.take(piece),
        };
        match written {
            // What comes encoded and never becomes anything has no end, either.
            Ok(()) if self.received > self.body().bound.saturating_add(SIP) => {
                self.body_mut().cut = true;
                Ok(false)
            }
            Ok(()) => Ok(true),
            Err(_) if self.body().cut => Ok(false),
            Err(error) => Err(format!("it cannot be decoded: {error}")),
        }
    }

    fn body(&self) -> &Bounded {
        match &self.kind {
            Kind::Plain(body) => body,
            Kind::Gzip(decoder) => decoder.get_ref(),
            Kind::Deflate(decoder) => &decoder.body,
        }
    }

    fn body_mut(&mut self) -> &mut Bounded {
        match &mut self.kind {
            Kind::Plain(body) => body,
            Kind::Gzip(decoder) => decoder.get_mut(),
            Kind::Deflate(decoder) => &mut decoder.body,
        }
    }

    /// The bytes, and whether there were more.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, bool), String> {
        let undecodable = |error: io::Error| format!("it cannot be decoded: {error}");
        if !self.body().cut && self.received > 0 {
            match &mut self.kind {
                Kind::Plain(_) => {}
                Kind::Gzip(decoder) => decoder.try_finish().map_err(undecodable)?,
                Kind::Deflate(decoder) if decoder.ended => {}
                Kind::Deflate(_) => return Err(undecodable(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        let body = self.body_mut();
        let (mut bytes, cut) = (std::mem::take(&mut body.bytes), body.cut);
        // A decoder that is dropped tries to write what it still has; nobody wants it.
        body.bound = 0;
        bytes.shrink_to_fit();
        Ok((bytes, cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    fn through(coding: &str, bytes: &[u8], bound: usize) -> Result<(Vec<u8>, bool), String> {
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
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        bare.write_all(&text).unwrap();
        let bare = bare.finish().unwrap();
        // Members that follow one another are one text.
        let half = |part: &[u8]| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(part).unwrap();
            gzip.finish().unwrap()
        };
        let twice = [half(&text[..700]), half(&text[700..])].concat();
        for (coding, bytes) in [("", &text), ("gzip", &gzip), ("deflate", &zlib), ("deflate", &bare), ("gzip", &twice)]
        {
            assert_eq!(through(coding, bytes, 1 << 20).unwrap(), (text.clone(), false), "{coding}");
        }
        assert!(through("br", &text, 100).unwrap_err().contains("not asked for"));
        assert!(through("gzip", &text, 100).unwrap_err().contains("cannot be decoded"));
        for (coding, bytes) in [("deflate", &zlib), ("deflate", &bare)] {
            assert!(through(coding, &bytes[..bytes.len() / 2], 1 << 20).unwrap_err().contains("cannot be decoded"));
            assert_eq!(through(coding, &[&bytes[..], b"and more"].concat(), 1 << 20).unwrap(), (text.clone(), false));
        }
        assert_eq!(through("gzip", &[], 100).unwrap(), (Vec::new(), false), "what did not come needs no decoding");
        assert!(through("gzip", &gzip[..gzip.len() - 9], 1 << 20).unwrap_err().contains("cannot be decoded"));
    }

    #[test]
    fn a_bomb_is_cut() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![0; 50 << 20]).unwrap();
        let bomb = bomb.finish().unwrap();
        let (bytes, cut) = through("gzip", &bomb, 1000).unwrap();
        assert_eq!((bytes.len(), cut), (1000, true));
    }

    #[test]
    fn what_never_becomes_anything_is_cut() {
        // Stored blocks of no bytes, one after the other, without an end.
        let nothing = [0x00, 0x00, 0x00, 0xff, 0xff].repeat(1000);
        let (bytes, cut) = through("deflate", &nothing, 1000).unwrap();
        assert_eq!((bytes.len(), cut), (0, true));
    }

    #[test]
    fn small_bodies_grow_in_small_steps() {
        let mut intake = Intake::new("", 1 << 20).unwrap();
        assert_eq!(intake.fits(&[0; 4000], 1000), 1000);
        intake.take(&[0; 1000]).unwrap();
        assert_eq!(intake.fits(&[0; 4000], 1000), 0);
        assert_eq!(Intake::new("gzip", 1 << 20).unwrap().fits(&[0; 4000], 1000), SIP);
    }
}

//! Character encodings of text files: found by byte order mark or by detection, decoded for reading, encoded for writing.
//!
//! A file is text if its first bytes hold no NUL (other than in UTF-16) and, unless they are UTF-8, no control characters that
//! texts do not have. Without a byte order mark a text is UTF-8 if most of it that is not ASCII is valid UTF-8; otherwise the
//! encoding is guessed from up to one MiB. Bytes that cannot be decoded are shown as U+FFFD and never written back: an edit
//! replaces ranges of the file's bytes.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, DecoderResult, EncoderResult, Encoding};
use encoding_rs::{UTF_8, UTF_8_INIT, UTF_16BE, UTF_16LE, WINDOWS_1252};
use haft_core::shape;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// How much at the beginning of a file tells text from binary.
pub(crate) const START: usize = 512;
/// How much of a file tells one encoding from another.
pub(crate) const SAMPLE: usize = 1 << 20;
/// The sample begins this far before the first byte that is not ASCII, because a guess looks at the letters around it.
pub(crate) const LEAD: usize = 64;
/// Fewer code units than this are not taken for UTF-16 without a byte order mark.
const UTF16_UNITS_MIN: usize = 4;
/// With fewer different bytes beyond ASCII than this, a text is taken for Western European.
const WESTERN_ONLY_BELOW: usize = 4;
/// With fewer than this, it is so if it can be.
const WESTERN_LIKELY_BELOW: usize = 6;

/// The character encoding of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextEncoding {
    encoding: &'static Encoding,
    has_bom: bool,
}

impl TextEncoding {
    /// UTF-8 without a byte order mark.
    pub(crate) const UTF_8: Self = Self { encoding: &UTF_8_INIT, has_bom: false };

    /// The encoding of a file with this content; none if the file is binary.
    pub(crate) fn detect(content: &[u8]) -> Option<Self> {
        let from = Encoding::ascii_valid_up_to(content).saturating_sub(LEAD);
        let sample = &content[from..content.len().min(from + SAMPLE)];
        Self::judge(&content[..content.len().min(START)], sample)
    }

    /// The encoding of a file that begins with `start`; `sample` is what begins [`LEAD`] bytes before the first byte that is not
    /// ASCII.
    pub(crate) fn judge(start: &[u8], sample: &[u8]) -> Option<Self> {
        if let Some((encoding, length)) = Encoding::for_bom(start) {
            let has_nul = if encoding == UTF_8 {
                start.contains(&0)
            } else {
                start[length..].chunks_exact(2).any(|unit| unit == [0, 0])
            };
            return (!has_nul).then_some(Self { encoding, has_bom: true });
        }
        if start.contains(&0) {
            return utf16_without_bom(start).map(|encoding| Self { encoding, has_bom: false });
        }
        let (valid, invalid) = multibyte_sequences(sample);
        if valid >= invalid {
            return Some(Self::UTF_8);
        }
        if is_foreign_format(start) {
            return None;
        }
        if start.iter().chain(sample).any(|byte| is_no_text(*byte)) {
            let is_utf8 = std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true);
            return is_utf8.then_some(Self::UTF_8);
        }
        Some(Self { encoding: guess(sample), has_bom: false })
    }

    /// Its name, as the Encoding Standard has it.
    pub(crate) fn name(self) -> &'static str {
        self.encoding.name()
    }

    /// The name together with the byte order mark, if the file has one.
    pub(crate) fn title(self) -> String {
        let mark = if self.has_bom { " with BOM" } else { "" };
        format!("{}{mark}", self.name())
    }

    /// Whether the bytes of the file are those of the text.
    pub(crate) fn is_utf8(self) -> bool {
        self.encoding == UTF_8
    }

    /// Whether every ASCII character has a NUL in it.
    pub(crate) fn is_utf16(self) -> bool {
        self.encoding == UTF_16LE || self.encoding == UTF_16BE
    }

    /// Whether the file begins with a byte order mark.
    pub(crate) fn has_bom(self) -> bool {
        self.has_bom
    }

    /// How many bytes at the beginning of the file are not part of the text: the byte order mark of UTF-16. In UTF-8 it is the
    /// first character.
    pub(crate) fn mark_length(self) -> usize {
        if self.has_bom && !self.is_utf8() { 2 } else { 0 }
    }

    /// The text; bytes that cannot be decoded become U+FFFD.
    pub(crate) fn decode(self, content: &[u8]) -> Cow<'_, str> {
        if self.is_utf8() {
            return String::from_utf8_lossy(content);
        }
        self.encoding.decode_without_bom_handling(&content[self.mark_length().min(content.len())..]).0
    }

    /// The text, if all of the content can be decoded.
    pub(crate) fn decode_exactly(self, content: &[u8]) -> Option<Cow<'_, str>> {
        let rest = content.get(self.mark_length()..)?;
        self.encoding.decode_without_bom_handling_and_without_replacement(rest)
    }

    /// The text of a file that is too long for memory, decoded as it is read.
    pub(crate) fn reader(self, file: impl std::io::Read) -> impl std::io::Read {
        // Bytes of UTF-8 are passed on as they are, so that whoever reads them sees which are not valid.
        let encoding = (!self.is_utf8()).then_some(self.encoding);
        encoding_rs_io::DecodeReaderBytesBuilder::new().bom_sniffing(false).encoding(encoding).build(file)
    }

    /// The bytes of a part of a text. Errs with the first character that the encoding does not have.
    pub(crate) fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        let units = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect();
        match self.encoding {
            utf8 if utf8 == UTF_8 => Ok(text.as_bytes().to_vec()),
            little if little == UTF_16LE => Ok(units(u16::to_le_bytes)),
            big if big == UTF_16BE => Ok(units(u16::to_be_bytes)),
            other => encode_legacy(other, text),
        }
    }

    /// The content of a file with this text, its byte order mark included.
    pub(crate) fn encode_file(self, text: &str) -> Result<Vec<u8>, char> {
        let text = text.strip_prefix('\u{feff}').filter(|_| self.has_bom).unwrap_or(text);
        let mark = if self.has_bom { self.encode("\u{feff}")? } else { Vec::new() };
        Ok([mark, self.encode(text)?].concat())
    }

    /// A warning if a file with this content, written in this encoding, will be taken for a text in another one.
    pub(crate) fn read_differently(self, content: &[u8]) -> Option<String> {
        let taken = Self::detect(content);
        if self.is_utf8() || taken.is_some_and(|taken| taken.decode(content) == self.decode(content)) {
            return None;
        }
        let taken = taken.map_or("a binary file", Self::name);
        Some(format!("what is left is too little to tell {}: from now on the file is read as {taken}", self.name()))
    }

    /// The way from places in the text of `content` to places in `content` itself. None of it may be beyond decoding, unless it
    /// is UTF-8.
    pub(crate) fn byte_offsets(self, content: &[u8]) -> ByteOffsets<'_> {
        let decoder = (!self.is_utf8()).then(|| self.encoding.new_decoder_without_bom_handling());
        ByteOffsets { content, decoder, bytes: self.mark_length(), text: 0 }
    }
}

/// Places in a decoded text as places in the bytes that it was decoded from.
pub(crate) struct ByteOffsets<'c> {
    content: &'c [u8],
    /// None where both are the same.
    decoder: Option<Decoder>,
    /// How many bytes have been decoded.
    bytes: usize,
    /// How many bytes of text they are.
    text: usize,
}

impl ByteOffsets<'_> {
    /// More than any character that a decoder gives at once.
    const STEP: usize = 16;

    /// The place of a character boundary of the text. Places have to be asked for in order. None inside a character of the
    /// encoding that is two in the text.
    pub(crate) fn of(&mut self, text: usize) -> Option<usize> {
        let Some(decoder) = &mut self.decoder else { return Some(text) };
        let mut buffer = [0; 4096];
        while self.text < text {
            let wanted = text - self.text;
            // A decoder stops before its buffer is full, so the last characters are taken byte by byte.
            let (length, room) = if wanted > Self::STEP {
                (self.content.len() - self.bytes, (wanted - Self::STEP).clamp(Self::STEP, buffer.len()))
            } else {
                (1.min(self.content.len() - self.bytes), Self::STEP)
            };
            let piece = &self.content[self.bytes..self.bytes + length];
            let (_, read, written) = decoder.decode_to_utf8_without_replacement(piece, &mut buffer[..room], false);
            if (read, written) == (0, 0) {
                return None;
            }
            self.bytes += read;
            self.text += written;
        }
        (self.text == text).then_some(self.bytes)
    }
}

/// How many characters beyond ASCII are valid UTF-8, and how many sequences are not. One that ends with the sample may go on.
fn multibyte_sequences(sample: &[u8]) -> (usize, usize) {
    let (mut valid, mut invalid) = (0, 0);
    let mut left = sample.len();
    for chunk in sample.utf8_chunks() {
        valid += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        left -= chunk.valid().len() + chunk.invalid().len();
        let goes_on = left == 0 && sample.len() >= SAMPLE;
        invalid += usize::from(!chunk.invalid().is_empty() && !goes_on);
    }
    (valid, invalid)
}

/// Whether a file begins like one of a known binary format. Two letters are not enough to tell a bitmap.
fn is_foreign_format(start: &[u8]) -> bool {
    shape::detect(start).is_some_and(|found| !matches!(found.name, "binary" | "BMP"))
}

/// Control characters that no text has, as file(1) judges, but for the end of file of DOS.
fn is_no_text(byte: u8) -> bool {
    matches!(byte, 0..=6 | 14..=25 | 28..=31 | 127)
}

/// UTF-16 without a byte order mark: three of four code units are ASCII, and none is anything that texts do not have.
fn utf16_without_bom(start: &[u8]) -> Option<&'static Encoding> {
    let cut = start.len() == START;
    if start.len() < UTF16_UNITS_MIN * 2 || (start.len() % 2 == 1 && !cut) {
        return None;
    }
    let is_text = |encoding: &&'static Encoding| {
        let read = if *encoding == UTF_16LE { u16::from_le_bytes } else { u16::from_be_bytes };
        let units = start.chunks_exact(2).map(|unit| read([unit[0], unit[1]]));
        let (mut ascii, mut all) = (0, 0);
        for unit in units {
            let low = u8::try_from(unit).ok().filter(u8::is_ascii);
            if low.is_some_and(is_no_text) || matches!(unit, 0x80..=0x9f | 0xfdd0..=0xfdef | 0xfffe..) {
                return false;
            }
            ascii += usize::from(low.is_some());
            all += 1;
        }
        ascii * 4 >= all * 3
    };
    [UTF_16LE, UTF_16BE].into_iter().find(is_text)
}

/// The encoding that bytes which are not UTF-8 look like. In the one that is taken if all else fails, every byte is a character.
fn guess(sample: &[u8]) -> &'static Encoding {
    let distinct = sample.iter().filter(|byte| !byte.is_ascii()).collect::<BTreeSet<_>>().len();
    // Out of a few bytes a detector makes `Ł5` of `£5` and a Chinese character of `µm`.
    let expected_in = match distinct {
        0..WESTERN_ONLY_BELOW => return WINDOWS_1252,
        WESTERN_ONLY_BELOW..WESTERN_LIKELY_BELOW => Some(b"us".as_slice()),
        _ => None,
    };
    let is_cut = sample.len() >= SAMPLE;
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, !is_cut);
    let guessed = detector.guess(expected_in, Utf8Detection::Deny);
    let mut decoder = guessed.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length_without_replacement(sample.len()).unwrap_or(0));
    let (result, _) = decoder.decode_to_string_without_replacement(sample, &mut text, !is_cut);
    if result == DecoderResult::InputEmpty { guessed } else { WINDOWS_1252 }
}

fn encode_legacy(encoding: &'static Encoding, text: &str) -> Result<Vec<u8>, char> {
    let mut encoder = encoding.new_encoder();
    let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len() * 4);
    let mut bytes = Vec::with_capacity(room);
    let (result, _) = encoder.encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true);
    if let EncoderResult::Unmappable(character) = result {
        return Err(character);
    }
    // Some encoders write a similar character in place of one that they lack.
    let back = encoding.decode_without_bom_handling(&bytes).0;
    match text.chars().zip(back.chars()).find(|(meant, read)| meant != read) {
        Some((character, _)) => Err(character),
        None => Ok(bytes),
    }
}

#[cfg(test)]
mod tests;

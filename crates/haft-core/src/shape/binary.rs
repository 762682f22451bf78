//! Telling text from binary by the first bytes.

/// A format known by its magic bytes.
struct Magic {
    name: &'static str,
    mime: &'static str,
    offset: usize,
    bytes: &'static [u8],
}

const fn magic(name: &'static str, mime: &'static str, offset: usize, bytes: &'static [u8]) -> Magic {
    Magic { name, mime, offset, bytes }
}

/// The formats that are named rather than just called binary.
const FORMATS: &[Magic] = &[
    magic("ELF", "application/x-elf", 0, b"\x7fELF"),
    magic("PNG", "image/png", 0, b"\x89PNG\r\n\x1a\n"),
    magic("JPEG", "image/jpeg", 0, b"\xff\xd8\xff"),
    magic("PDF", "application/pdf", 0, b"%PDF-"),
    magic("GIF", "image/gif", 0, b"GIF8"),
    magic("GZIP", "application/gzip", 0, b"\x1f\x8b"),
    magic("ZIP", "application/zip", 0, b"PK\x03\x04"),
    magic("ZIP", "application/zip", 0, b"PK\x05\x06"),
    magic("TAR", "application/x-tar", 257, b"ustar"),
    magic("WASM", "application/wasm", 0, b"\0asm"),
    magic("Mach-O 32-bit", "application/x-mach-binary", 0, b"\xce\xfa\xed\xfe"),
    magic("Mach-O 32-bit", "application/x-mach-binary", 0, b"\xfe\xed\xfa\xce"),
    magic("Mach-O 64-bit", "application/x-mach-binary", 0, b"\xcf\xfa\xed\xfe"),
    magic("Mach-O 64-bit", "application/x-mach-binary", 0, b"\xfe\xed\xfa\xcf"),
    magic("WEBP", "image/webp", 8, b"WEBP"),
    magic("WAV", "audio/wav", 8, b"WAVE"),
    magic("RIFF", "application/octet-stream", 0, b"RIFF"),
    magic("OGG", "audio/ogg", 0, b"OggS"),
    magic("FLAC", "audio/flac", 0, b"fLaC"),
    magic("MP3", "audio/mpeg", 0, b"ID3"),
    magic("MP3", "audio/mpeg", 0, b"\xff\xfb"),
    magic("WebM", "video/webm", 0, b"\x1a\x45\xdf\xa3"),
    magic("M4A", "audio/mp4", 4, b"ftypM4A"),
    magic("MP4", "video/mp4", 4, b"ftypisom"),
    magic("MP4", "video/mp4", 4, b"ftypmp42"),
    magic("BMP", "image/bmp", 0, b"BM"),
    magic("TIFF", "image/tiff", 0, b"II*\0"),
    magic("TIFF", "image/tiff", 0, b"MM\0*"),
    magic("HEIC", "image/heic", 4, b"ftypheic"),
    magic("HEIC", "image/heic", 4, b"ftypheix"),
    magic("HEIC", "image/heic", 4, b"ftypmif1"),
    magic("AVIF", "image/avif", 4, b"ftypavif"),
    magic("SQLite", "application/vnd.sqlite3", 0, b"SQLite format 3\0"),
];

/// How many bytes at the beginning are looked at.
const LOOKED_AT: usize = 512;

/// What data is, if it is not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binary {
    /// The format's name, for people.
    pub name: &'static str,
    /// Its media type.
    pub mime: &'static str,
}

/// Judges data by its beginning. `None` means text.
pub fn detect(data: &[u8]) -> Option<Binary> {
    let start = &data[..data.len().min(LOOKED_AT)];
    let known =
        FORMATS.iter().find(|format| start.get(format.offset..).is_some_and(|rest| rest.starts_with(format.bytes)));
    if let Some(format) = known {
        // Two letters are not enough to tell a bitmap from a text that begins with "BM".
        let textual = format.name == "BMP" && !has_binary_bytes(start);
        return (!textual).then_some(Binary { name: format.name, mime: format.mime });
    }
    has_binary_bytes(start).then_some(Binary { name: "binary", mime: "application/octet-stream" })
}

/// A NUL byte, or bytes that are not UTF-8 (other than a character cut off by the window).
fn has_binary_bytes(start: &[u8]) -> bool {
    let invalid = std::str::from_utf8(start).is_err_and(|error| error.error_len().is_some());
    invalid || start.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirteen_formats_and_more_are_named() {
        let mut tar = vec![b'a'; 300];
        tar[257..262].copy_from_slice(b"ustar");
        let cases: &[(&[u8], &str)] = &[
            (b"\x7fELF\x02", "ELF"),
            (b"\x89PNG\r\n\x1a\n", "PNG"),
            (b"\xff\xd8\xff\xe0", "JPEG"),
            (b"%PDF-1.7", "PDF"),
            (b"GIF89a", "GIF"),
            (b"\x1f\x8b\x08", "GZIP"),
            (b"PK\x03\x04", "ZIP"),
            (&tar, "TAR"),
            (b"\0asm\x01", "WASM"),
            (b"\xce\xfa\xed\xfe", "Mach-O 32-bit"),
            (b"\xcf\xfa\xed\xfe", "Mach-O 64-bit"),
            (b"BM\0\0", "BMP"),
            (b"RIFF\0\0\0\0WEBP", "WEBP"),
            (b"RIFF\0\0\0\0WAVE", "WAV"),
            (b"RIFF\0\0\0\0AVI ", "RIFF"),
            (b"OggS\0\x02", "OGG"),
            (b"fLaC\0\0", "FLAC"),
            (b"ID3\x04\0", "MP3"),
            (b"a\0b", "binary"),
            (b"\xff\xfe", "binary"),
        ];
        for (data, name) in cases {
            assert_eq!(detect(data).map(|found| found.name), Some(*name));
        }
    }

    #[test]
    fn text_is_text() {
        let mut long = "é".repeat(400).into_bytes();
        long.insert(0, b'a'); // the window now ends inside a character
        for text in [b"".as_slice(), b"hello\n", "日本語".as_bytes(), b"BMW is a brand", &long] {
            assert_eq!(detect(text), None);
        }
    }
}

//! A text without what is used to hide words in it: case, accents, spaces, punctuation, characters nobody sees.

use super::hidden::Hidden;

/// The letters and digits of a text, in one spelling, and what was hidden between them.
pub(super) fn squeeze(text: &str, hidden: &mut Hidden) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte < 128 {
            let plain = PLAIN[byte as usize];
            out.push(plain);
            if plain == 0 {
                out.pop();
            }
            at += 1;
            continue;
        }
        let Some(c) = text[at..].chars().next() else { break };
        let end = at + c.len_utf8();
        // Scripts of one spelling, and small Cyrillic letters, stay as they are.
        if matches!(c as u32, 0x430..=0x45f | 0x3040..=0x30ff | 0x4e00..=0x9fff | 0xac00..=0xd7a3) {
            out.extend_from_slice(&bytes[at..end]);
        } else if !hidden.sees(c, at) {
            fold(c, &mut out);
        }
        at = end;
    }
    // Only whole characters were written.
    String::from_utf8(out).unwrap_or_default()
}

/// The place in the text of a place in its squeezed form. Both grow, so that all places are found in one walk.
#[derive(Clone)]
pub(super) struct Places<'t> {
    text: &'t str,
    at: usize,
    squeezed: usize,
}

impl<'t> Places<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, squeezed: 0 }
    }

    pub(super) fn of(&mut self, squeezed: usize) -> usize {
        let mut buffer = Vec::with_capacity(8);
        while let Some(c) = self.text[self.at..].chars().next() {
            buffer.clear();
            if c.is_ascii() {
                buffer.extend(Some(PLAIN[c as usize]).filter(|plain| *plain != 0));
            } else if !super::hidden::is_hidden(c) {
                fold(c, &mut buffer);
            }
            if self.squeezed + buffer.len() > squeezed {
                break;
            }
            self.squeezed += buffer.len();
            self.at += c.len_utf8();
        }
        self.at
    }
}

/// ASCII letters and digits in lower case; nothing else.
const PLAIN: [u8; 128] = {
    let mut table = [0; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

/// Letters with accents by the letters they are taken for.
const ACCENTS: &[(&str, &str)] = &[
    ("àáâãäåāăąæ", "a"),
    ("çćĉċč", "c"),
    ("ďđð", "d"),
    ("èéêëēĕėęě", "e"),
    ("ğĝġģ", "g"),
    ("ìíîïĩīĭįı", "i"),
    ("ĺļľŀł", "l"),
    ("ñńņň", "n"),
    ("òóôõöøōŏő", "o"),
    ("ŕŗř", "r"),
    ("śŝşšș", "s"),
    ("ţťŧț", "t"),
    ("ùúûüũūŭůűų", "u"),
    ("ýÿŷ", "y"),
    ("źżž", "z"),
    ("ß", "ss"),
];

/// Small capitals by their letters.
const CAPITALS: &[(char, u8)] = &[
    ('ᴀ', b'a'),
    ('ʙ', b'b'),
    ('ᴄ', b'c'),
    ('ᴅ', b'd'),
    ('ᴇ', b'e'),
    ('ꜰ', b'f'),
    ('ɢ', b'g'),
    ('ɡ', b'g'),
    ('ʜ', b'h'),
    ('ɪ', b'i'),
    ('ᴊ', b'j'),
    ('ᴋ', b'k'),
    ('ʟ', b'l'),
    ('ᴍ', b'm'),
    ('ɴ', b'n'),
    ('ᴏ', b'o'),
    ('ᴘ', b'p'),
    ('ʀ', b'r'),
    ('ꜱ', b's'),
    ('ᴛ', b't'),
    ('ᴜ', b'u'),
    ('ᴠ', b'v'),
    ('ᴡ', b'w'),
    ('ʏ', b'y'),
    ('ᴢ', b'z'),
    ('ɑ', b'a'),
];

fn fold(c: char, out: &mut Vec<u8>) {
    let code = c as u32;
    match code {
        // Letters of full width, and those of mathematics.
        0xff01..=0xff5e => out.extend(ascii(code - 0xfee0)),
        0x1d400..=0x1d6a3 => out.extend(ascii(u32::from(
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[((code - 0x1d400) % 52) as usize],
        ))),
        // Letters in circles, and small capitals.
        0x24b6..=0x24e9 => out.extend(ascii(u32::from(b'a') + (code - 0x24b6) % 26)),
        0x1f150..=0x1f169 => out.extend(ascii(u32::from(b'a') + code - 0x1f150)),
        0x1f170..=0x1f189 => out.extend(ascii(u32::from(b'a') + code - 0x1f170)),
        0x250..=0x2af | 0x1d00..=0x1d22 | 0xa730..=0xa731 => match CAPITALS.iter().find(|(capital, _)| *capital == c) {
            Some((_, plain)) => out.push(*plain),
            None => push(c, out),
        },
        0xc0..=0x24f => {
            for c in c.to_lowercase().filter(|c| !is_mark(*c)) {
                let plain = ACCENTS.iter().find(|(letters, _)| letters.contains(c)).map(|(_, plain)| *plain);
                match plain {
                    Some(plain) => out.extend(plain.bytes()),
                    None => push(c, out),
                }
            }
        }
        // Cyrillic and Greek have two cases; most of what follows has one.
        0x370..=0x58f => c.to_lowercase().for_each(|c| push(c, out)),
        _ if is_mark(c) => {}
        _ => push(c, out),
    }
}

/// Marks that stand on letters, and punctuation.
fn is_mark(c: char) -> bool {
    matches!(c as u32, 0x80..=0xbf | 0x300..=0x36f | 0x64b..=0x65f | 0x2000..=0x206f | 0x3000..=0x303f | 0xff5f..=0xff65)
        || c.is_whitespace()
}

fn ascii(code: u32) -> Option<u8> {
    PLAIN.get(code as usize).copied().filter(|plain| *plain != 0)
}

fn push(c: char, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
}

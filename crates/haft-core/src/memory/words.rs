//! The words of a text, as search knows them.
//!
//! Runs of letters and digits, in lower case and without their endings; of names such as `readFile` and `read_file` also
//! the parts; of scripts without spaces every two characters that follow one another; of pictures each by itself.

use super::stem::stem;

/// What stored words were made by. Another way of making them is another number, and what is stored is made anew.
pub const WORDS_VERSION: i64 = 1;

/// A longer word is cut.
const WORD_MAX: usize = 64;

/// Hands over each word of a text.
pub fn words(text: &str, mut each: impl FnMut(&str)) {
    spelled(text, |_, word| each(word));
}

/// The same, each after how it was spelled: in lower case, with its ending.
pub(crate) fn spelled(text: &str, mut each: impl FnMut(&str, &str)) {
    let (mut run, mut wide): (String, Option<char>) = (String::new(), None);
    let mut alone = false;
    for c in text.chars() {
        if is_wide(c) {
            emit(&mut run, &mut each);
            let mut pair = String::new();
            if let Some(before) = wide {
                pair.push(before);
                pair.push(c);
                each(&pair, &pair);
            }
            alone = wide.is_none();
            wide = Some(c);
            continue;
        }
        if let Some(last) = wide.take().filter(|_| alone) {
            alike(last, &mut each);
        }
        alone = false;
        if c.is_alphanumeric() || c == '_' {
            run.push(c);
        } else {
            emit(&mut run, &mut each);
            if is_picture(c) {
                alike(c, &mut each);
            }
        }
    }
    if let Some(last) = wide.filter(|_| alone) {
        alike(last, &mut each);
    }
    emit(&mut run, &mut each);
}

/// A run of letters as words: the whole, and its parts if it has several.
fn emit(run: &mut String, each: &mut impl FnMut(&str, &str)) {
    let whole = run.trim_matches('_');
    if !whole.is_empty() {
        let (mut parts, mut last) = (vec![String::new()], ' ');
        for c in whole.chars() {
            let begins = c == '_' || (c.is_uppercase() && (last.is_lowercase() || last.is_ascii_digit()));
            if begins && parts.last().is_some_and(|part| !part.is_empty()) {
                parts.push(String::new());
            }
            if let Some(part) = parts.last_mut().filter(|_| c != '_') {
                part.extend(c.to_lowercase());
            }
            last = c;
        }
        if parts.len() > 1 {
            let mut joined = parts.concat();
            shorten(&mut joined);
            each(&joined, &joined);
        }
        for mut part in parts {
            shorten(&mut part);
            let whole = part.clone();
            stem(&mut part);
            if !part.is_empty() {
                each(&whole, &part);
            }
        }
    }
    run.clear();
}

/// A sign that is a word by itself.
fn alike(sign: char, each: &mut impl FnMut(&str, &str)) {
    let (mut room, sign) = ([0; 4], sign);
    let word: &str = sign.encode_utf8(&mut room);
    each(word, word);
}

fn shorten(word: &mut String) {
    word.truncate(word.floor_char_boundary(WORD_MAX));
}

/// Whether a script puts no spaces between its words.
fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x3FFFF)
}

/// Whether a sign means something by itself: not what only joins or varies others.
fn is_picture(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x2BFF | 0x1F000..=0x1FAFF) && !matches!(u32::from(c), 0x2500..=0x25FF)
}

/// The number that stands for a word. Two words with the same number are so rare that nobody notices.
pub fn hash(word: &str) -> u32 {
    let mut value = 0xcbf2_9ce4_8422_2325_u64;
    for byte in word.bytes() {
        value = (value ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    u32::try_from((value >> 32) ^ (value & 0xffff_ffff)).unwrap_or_default()
}

/// How often each word is in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// Words by number, in order, and how often each is there.
    pub words: Vec<(u32, u8)>,
    /// How many there are, with repetitions.
    pub length: u32,
}

impl Counted {
    /// Counts the words of several texts together.
    pub fn of(texts: &[&str]) -> Self {
        let mut all = Vec::new();
        for text in texts {
            words(text, |word| all.push(hash(word)));
        }
        let length = u32::try_from(all.len()).unwrap_or(u32::MAX);
        all.sort_unstable();
        let mut counted: Vec<(u32, u8)> = Vec::with_capacity(all.len());
        for word in all {
            match counted.last_mut().filter(|(last, _)| *last == word) {
                Some((_, count)) => *count = count.saturating_add(1),
                None => counted.push((word, 1)),
            }
        }
        Self { words: counted, length }
    }

    /// As bytes: the length, then each word with its count.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.length.to_le_bytes().to_vec();
        for (word, count) in &self.words {
            bytes.extend_from_slice(&word.to_le_bytes());
            bytes.push(*count);
        }
        bytes
    }

    /// From such bytes; of others, what can be read of them.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let number = |part: &[u8]| part.try_into().map(u32::from_le_bytes).unwrap_or_default();
        let (length, rest) = bytes.split_at(bytes.len().min(4));
        let words = rest.as_chunks::<5>().0.iter().map(|part| (number(&part[..4]), part[4])).collect();
        Self { words, length: number(length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> String {
        let mut found = Vec::new();
        words(text, |word| found.push(word.to_owned()));
        found.join(" ")
    }

    #[test]
    fn words_of_many_kinds() {
        for (text, found) in [
            ("The files, connected!", "the file connect"),
            ("readFile read_file HTTPServer2Go", "readfile read file readfile read file httpserver2go httpserver2 go"),
            ("a 🦀 b❤️", "a 🦀 b ❤"),
            ("東京都に住む x 水", "東京 京都 都に に住 住む x 水"),
            ("NEAR(\"a\" OR b*) -c:d", "near a or b c d"),
            ("", ""),
            ("___ \0 \u{200d}", ""),
            ("Größe ПРИВЕТ", "größe привет"),
        ] {
            assert_eq!(all(text), found, "{text}");
        }
        assert_eq!(all(&"x".repeat(1000)).len(), WORD_MAX);
    }

    #[test]
    fn counts_survive_bytes() {
        let counted = Counted::of(&["a b a", "c"]);
        assert_eq!(counted.length, 4);
        assert_eq!(counted.words.len(), 3);
        assert_eq!(Counted::from_bytes(&counted.to_bytes()), counted);
        for odd in [&b""[..], b"abc", b"abcdefg"] {
            assert!(Counted::from_bytes(odd).words.is_empty());
        }
    }
}

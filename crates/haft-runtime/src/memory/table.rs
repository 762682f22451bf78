//! A table of word vectors: the meaning of a text is the mean of the vectors of its parts of words.
//!
//! Parts are found as the table's makers did (byte-pair merging, most frequent first). A part's number says how frequent
//! it is, so the numbers alone are the order of merging. Frequent parts count less; that is worked into the table.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

const MAGIC: &[u8; 8] = b"haftwv01";
/// Stands for a space at the beginning of a word.
const SPACE: char = '\u{2581}';
/// A longer word is cut: merging takes the square of its length.
const WORD_MAX: usize = 40;
/// So many words are remembered while one text or several are looked at.
const REMEMBERED_MAX: usize = 50_000;
/// No table that is meant has more.
const FILE_MAX: u64 = 64 << 20;
/// Numbers below this stand for bytes and marks.
const FIRST_PART: u32 = 259;
/// How fast parts begin to count, by how frequent they are.
const FREQUENT: f32 = 100.0;

/// Word vectors.
pub struct Table {
    parts: HashMap<Box<str>, u32>,
    dims: usize,
    /// What one step of a part's numbers is worth.
    scales: Vec<f32>,
    numbers: Vec<i8>,
}

impl Table {
    /// Which table made a vector.
    pub const MODEL: &'static str = "wordllama-l2-256/1";

    /// A table of these parts, each with its vector.
    #[expect(clippy::cast_precision_loss, reason = "numbers of parts")]
    pub fn new(parts: Vec<(String, Vec<f32>)>) -> Self {
        let dims = parts.first().map_or(0, |(_, vector)| vector.len());
        let mut table = Self { parts: HashMap::new(), dims, scales: Vec::new(), numbers: Vec::new() };
        for (number, (part, vector)) in (0_u32..).zip(parts) {
            let rank = number.saturating_sub(FIRST_PART - 1).max(1) as f32;
            let most = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            table.scales.push(most / 127.0 * weight(&part, rank));
            table.numbers.extend(haft_core::memory::narrowed(&vector));
            table.parts.insert(part.into(), number);
        }
        table
    }

    /// Reads one that was written; none if it is not there or not whole.
    pub fn read(file: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        std::fs::File::open(file).ok()?.take(FILE_MAX).read_to_end(&mut bytes).ok()?;
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let (count, dims) = (number(&mut rest)? as usize, number(&mut rest)? as usize);
        let mut parts = HashMap::with_capacity(count.min(1 << 20));
        for number in 0..u32::try_from(count).ok()? {
            let (length, tail) = rest.split_first()?;
            let (part, tail) = tail.split_at_checked(usize::from(*length))?;
            parts.insert(std::str::from_utf8(part).ok()?.into(), number);
            rest = tail;
        }
        let mut scales = Vec::with_capacity(count.min(1 << 20));
        for _ in 0..count {
            scales.push(f32::from_bits(number(&mut rest)?));
        }
        let numbers: Vec<i8> = rest.iter().map(|byte| byte.cast_signed()).collect();
        (numbers.len() == count.checked_mul(dims)?).then_some(Self { parts, dims, scales, numbers })
    }

    /// As a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for size in [self.scales.len(), self.dims] {
            bytes.extend_from_slice(&u32::try_from(size).unwrap_or_default().to_le_bytes());
        }
        let mut parts: Vec<(&str, u32)> = self.parts.iter().map(|(part, number)| (&**part, *number)).collect();
        parts.sort_by_key(|(_, number)| *number);
        for (part, _) in parts {
            bytes.push(u8::try_from(part.len()).unwrap_or_default());
            bytes.extend_from_slice(part.as_bytes());
        }
        self.scales.iter().for_each(|scale| bytes.extend_from_slice(&scale.to_bits().to_le_bytes()));
        bytes.extend(self.numbers.iter().map(|number| number.cast_unsigned()));
        bytes
    }

    /// The meaning of each text.
    pub fn embed(&self, texts: &[String]) -> Vec<Vec<i8>> {
        let mut known: HashMap<String, Vec<u32>> = HashMap::new();
        texts.iter().map(|text| self.meaning(text, &mut known)).collect()
    }

    /// The meaning of one text.
    pub fn embed_one(&self, text: &str) -> Vec<i8> {
        self.meaning(text, &mut HashMap::new())
    }

    /// Whether a word is in it whole.
    pub fn knows(&self, word: &str) -> bool {
        self.cut(word).len() == 1
    }

    fn meaning(&self, text: &str, known: &mut HashMap<String, Vec<u32>>) -> Vec<i8> {
        let mut sum = vec![0.0_f32; self.dims];
        for word in text.split_whitespace() {
            if !known.contains_key(word) {
                if known.len() >= REMEMBERED_MAX {
                    known.clear();
                }
                known.insert(word.to_owned(), self.cut(word));
            }
            for part in known.get(word).into_iter().flatten() {
                let at = *part as usize;
                let scale = self.scales[at];
                let numbers = &self.numbers[at * self.dims..(at + 1) * self.dims];
                sum.iter_mut().zip(numbers).for_each(|(sum, x)| *sum += f32::from(*x) * scale);
            }
        }
        haft_core::memory::narrowed(&sum)
    }

    /// The parts of a word that the table knows.
    pub(crate) fn cut(&self, word: &str) -> Vec<u32> {
        let text: String = std::iter::once(SPACE).chain(word.chars().take(WORD_MAX)).collect();
        let mut ends: Vec<(usize, usize)> = text.char_indices().map(|(at, c)| (at, at + c.len_utf8())).collect();
        while let Some((_, first)) = ends
            .windows(2)
            .enumerate()
            .filter_map(|(at, pair)| self.parts.get(&text[pair[0].0..pair[1].1]).map(|part| (*part, at)))
            .min()
        {
            ends[first].1 = ends[first + 1].1;
            ends.remove(first + 1);
        }
        ends.iter().filter_map(|(start, end)| self.parts.get(&text[*start..*end]).copied()).collect()
    }
}

/// How much a part counts: the more, the rarer it is. What has no letter says next to nothing.
fn weight(part: &str, rank: f32) -> f32 {
    let plain = part.trim_start_matches(SPACE);
    let rare = (1.0 + FREQUENT / (rank + 1.0)).recip();
    if !plain.chars().any(char::is_alphanumeric) {
        rare.min(0.05)
    } else if plain.chars().count() == 1 {
        rare / 2.0
    } else {
        rare
    }
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_le_bytes(*head))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A small table in which `tea` and `ta` are alike, and `e` is something else.
    pub(crate) fn small() -> Table {
        let vectors: [(&str, [f32; 4]); 9] = [
            ("\u{2581}", [0.1, 0.1, 0.1, 0.1]),
            ("t", [0.0, 0.0, 0.2, 0.1]),
            ("e", [0.0, 0.0, 0.1, 0.2]),
            ("a", [0.0, 0.1, 0.1, 0.2]),
            ("\u{2581}t", [0.1, 0.0, 0.0, 0.2]),
            ("\u{2581}te", [0.0, 0.1, 0.1, 0.0]),
            ("\u{2581}tea", [1.0, 0.2, 0.0, 0.0]),
            ("\u{2581}ta", [0.9, 0.3, 0.0, 0.0]),
            ("\u{2581}e", [0.0, 0.0, 0.0, 1.0]),
        ];
        Table::new(vectors.iter().map(|(part, vector)| ((*part).to_owned(), vector.to_vec())).collect())
    }

    #[test]
    fn words_are_cut_most_frequent_first() {
        let table = small();
        assert_eq!(table.cut("tea"), [6]);
        assert_eq!(table.cut("et"), [8, 1]);
        assert_eq!(table.cut("\u{1f980}"), [0]);
        assert!(table.cut(&"t".repeat(1000)).len() <= WORD_MAX + 1);
    }

    #[test]
    fn a_file_is_read_as_it_was_written_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("table");
        assert!(Table::read(&file).is_none());
        let bytes = small().to_bytes();
        std::fs::write(&file, &bytes).unwrap();
        let texts = ["tea".to_owned(), String::new(), "x".repeat(10_000)];
        assert_eq!(Table::read(&file).unwrap().embed(&texts), small().embed(&texts));
        for broken in [&bytes[..bytes.len() - 1], &bytes[..20], b"haftwv01\xff\xff\xff\xff\xff\xff\xff\xff", b""] {
            std::fs::write(&file, broken).unwrap();
            assert!(Table::read(&file).is_none());
        }
    }
}

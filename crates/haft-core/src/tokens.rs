//! About how many tokens a text costs a model.
//!
//! Every provider has a tokenizer of its own, and none of their tables is small. This counts what they have in
//! common: a word, a number's digits by threes, and a short run of punctuation are about one token each; long words
//! are more. On declarations of tools in every dialect and form, all together are within a tenth of what
//! `o200k_base` gives, and each within a quarter (`haft-runtime/tests/laws/tokens.rs`).

/// About how many tokens a text is.
pub fn estimate(text: &str) -> usize {
    let mut count = 0.0_f64;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = Kind::of(first);
        let end = rest.find(|c: char| Kind::of(c) != kind).unwrap_or(rest.len());
        let (run, tail) = rest.split_at(end);
        count += kind.cost(run);
        rest = tail;
    }
    // Rounded up: a budget is better kept than missed.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count that is never negative")]
    let whole = count.ceil() as usize;
    whole
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Digits,
    Blank,
    Marks,
    Foreign,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letters,
            '0'..='9' => Self::Digits,
            c if c.is_whitespace() => Self::Blank,
            c if c.is_ascii() => Self::Marks,
            _ => Self::Foreign,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "runs are short")]
    fn cost(self, run: &str) -> f64 {
        let length = run.len() as f64;
        match self {
            // A word of up to ten letters is mostly one token; longer ones fall apart.
            Self::Letters if length <= 10.0 => 1.0,
            Self::Letters => 1.0 + (length - 10.0) / 6.0,
            Self::Digits => (length / 3.0).ceil(),
            // `":{"` and the like are one token; longer runs are few.
            Self::Marks => (length / 4.0).ceil(),
            // One blank belongs to the word after it.
            Self::Blank if length <= 1.0 => 0.0,
            Self::Blank => 1.0,
            Self::Foreign => run.chars().count() as f64 * 0.7,
        }
    }
}

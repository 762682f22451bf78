//! The stem of an English word: the first step of Porter's algorithm and the last, which is what finding takes
//! (plurals, -ed, -ing, -y, -e). Words of other alphabets stay as they are.

/// Cuts a lower-case word to its stem.
pub(super) fn stem(word: &mut String) {
    if word.len() < 4 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return;
    }
    plural(word);
    ending(word);
    if word.ends_with('y') && has_vowel(&word[..word.len() - 1]) {
        word.pop();
        word.push('i');
    }
    if let Some(rest) = word.strip_suffix('e') {
        let m = measure(rest);
        if m > 1 || (m == 1 && !short(rest)) {
            word.pop();
        }
    }
}

fn plural(word: &mut String) {
    if word.ends_with("sses") || word.ends_with("ies") {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us") {
        word.pop();
    }
}

fn ending(word: &mut String) {
    if let Some(rest) = word.strip_suffix("eed") {
        if measure(rest) > 0 {
            word.pop();
        }
        return;
    }
    let cut = ["ed", "ing"].iter().find_map(|end| word.strip_suffix(end)).filter(|rest| has_vowel(rest));
    let Some(length) = cut.map(str::len) else { return };
    word.truncate(length);
    let last = word.as_bytes().last().copied().unwrap_or_default();
    if ["at", "bl", "iz"].iter().any(|end| word.ends_with(end)) || (measure(word) == 1 && short(word)) {
        word.push('e');
    } else if doubled(word) && !b"lsz".contains(&last) {
        word.pop();
    }
}

fn is_vowel(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'a' | b'e' | b'i' | b'o' | b'u' => true,
        b'y' => at > 0 && !is_vowel(bytes, at - 1),
        _ => false,
    }
}

fn has_vowel(word: &str) -> bool {
    (0..word.len()).any(|at| is_vowel(word.as_bytes(), at))
}

/// How many times vowels are followed by consonants.
fn measure(word: &str) -> usize {
    let kinds: Vec<bool> = (0..word.len()).map(|at| is_vowel(word.as_bytes(), at)).collect();
    kinds.windows(2).filter(|pair| pair[0] && !pair[1]).count()
}

/// Whether it ends consonant, vowel, consonant, the last none of w, x, y.
fn short(word: &str) -> bool {
    let bytes = word.as_bytes();
    let n = bytes.len();
    n >= 3
        && !is_vowel(bytes, n - 3)
        && is_vowel(bytes, n - 2)
        && !is_vowel(bytes, n - 1)
        && !b"wxy".contains(&bytes[n - 1])
}

fn doubled(word: &str) -> bool {
    let bytes = word.as_bytes();
    let n = bytes.len();
    n >= 2 && bytes[n - 1] == bytes[n - 2] && !is_vowel(bytes, n - 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn forms_of_one_word_are_one() {
        for (forms, same) in [
            (&["connect", "connects", "connected", "connecting"][..], "connect"),
            (&["file", "files", "filed", "filing"], "file"),
            (&["policy", "policies"], "polici"),
            (&["run", "running", "runs"], "run"),
            (&["using", "used", "uses", "use"], "us"),
            (&["status"], "status"),
            (&["class", "classes"], "class"),
            (&["größen"], "größen"),
        ] {
            for form in forms {
                let mut word = (*form).to_owned();
                super::stem(&mut word);
                let cut = |w: &str| w.strip_suffix('e').unwrap_or(w).to_owned();
                assert_eq!(cut(&word), cut(same), "{form}");
            }
        }
    }
}

//! Letters of other scripts that look like Latin ones, in words that are meant to be read as Latin.

use super::found::Found;
use super::hidden::is_hidden;

/// The text with such letters replaced, one for one, if any word of it mixes the scripts. A text in Greek or Russian
/// has no such words.
pub(super) fn latin(text: &str) -> Option<String> {
    // The first bytes of Greek, Cyrillic and Armenian letters.
    if !text.bytes().any(|byte| matches!(byte, 0xcd..=0xd6)) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut mixed = false;
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|c: char| !in_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        mixed |= spell(word, &mut out);
        let gap = after.find(in_word).unwrap_or(after.len());
        out.push_str(&after[..gap]);
        rest = &after[gap..];
    }
    mixed.then_some(out)
}

/// Writes a word as it looks. Whether it mixes scripts. A word all of look-alikes is read as Latin as well: beside mixed
/// ones it is one more of them.
fn spell(word: &str, out: &mut String) -> bool {
    let latin = word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let like = !word.is_ascii() && word.chars().any(|c| look(c).is_some());
    let plain = |c: char| c.is_ascii() || look(c).is_some() || !c.is_alphabetic();
    if like && (latin || word.chars().all(plain)) {
        out.extend(word.chars().map(|c| look(c).unwrap_or(c)));
    } else {
        out.push_str(word);
    }
    like && latin
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && (is_hidden(c) || matches!(c as u32, 0x300..=0x36f)))
}

/// Takes over what was found in the Latin form of a text, at its places in the text itself.
pub(super) fn take(inside: Found, text: &str, latin: &str, found: &mut Found) {
    let mut findings = inside.told();
    findings.sort_by_key(|finding| finding.at);
    let mut places = text.char_indices().zip(latin.char_indices()).map(|((place, _), (at, _))| (place, at));
    let mut here = (0, 0);
    for finding in findings {
        while here.1 < finding.at {
            let Some(next) = places.next() else { break };
            here = next;
        }
        found.say(finding.kind, finding.weight, &finding.why, here.0);
    }
}

/// The Latin letter that a letter looks like.
fn look(c: char) -> Option<char> {
    Some(match c {
        'а' | 'А' | 'α' | 'Α' => 'a',
        'в' | 'В' | 'ь' | 'Ь' | 'β' | 'Β' => 'b',
        'с' | 'С' | 'ϲ' | 'Ϲ' => 'c',
        'ԁ' | 'Ԁ' => 'd',
        'е' | 'Е' | 'ё' | 'Ё' | 'є' | 'ε' | 'Ε' => 'e',
        'ց' => 'g',
        'н' | 'Н' | 'һ' | 'Һ' | 'Η' | 'հ' => 'h',
        'і' | 'І' | 'ї' | 'Ї' | 'ι' | 'Ι' | 'ί' => 'i',
        'ј' | 'Ј' | 'ϳ' => 'j',
        'к' | 'К' | 'κ' | 'Κ' => 'k',
        'ӏ' | 'Ӏ' => 'l',
        'м' | 'М' | 'Μ' => 'm',
        'η' | 'Ν' | 'ո' | 'п' => 'n',
        'о' | 'О' | 'ο' | 'Ο' | 'σ' | 'ό' | 'օ' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ԛ' | 'Ԛ' => 'q',
        'г' => 'r',
        'ѕ' | 'Ѕ' => 's',
        'т' | 'Т' | 'τ' | 'Τ' => 't',
        'υ' | 'μ' | 'ս' => 'u',
        'ѵ' | 'Ѵ' | 'ν' => 'v',
        'ԝ' | 'Ԝ' | 'ω' | 'ѡ' => 'w',
        'х' | 'Х' | 'χ' | 'Χ' => 'x',
        'у' | 'У' | 'ү' | 'Ү' | 'γ' | 'Υ' => 'y',
        'Ζ' => 'z',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_mixed_script_are_read_as_they_look() {
        // Letters of Cyrillic in the first, of Greek in the second.
        assert_eq!(latin("Іgnоrе аll, рrеviоus!").as_deref(), Some("ignore all, previous!"));
        assert_eq!(latin("ignοrε αll").as_deref(), Some("ignore all"));
        assert_eq!(
            latin("іgnore соре").as_deref(),
            Some("ignore cope"),
            "a word all of look-alikes beside a mixed one"
        );
        assert_eq!(latin("іgnore и Привет").as_deref(), Some("ignore и Привет"), "other words stay");
    }

    #[test]
    fn a_text_in_one_script_at_a_time_is_untouched() {
        for text in [
            "",
            "plain",
            "größer",
            "Все инструкции о работе с API и Wi-Fi, а также IT-отдел.",
            "Αγνοήστε το API και τις οδηγίες",
            "漢字 and words",
        ] {
            assert_eq!(latin(text), None, "{text}");
        }
    }
}

//! Brace expansion: `{a,b}` and `{1..9}`, as bash does it, before anything else.

/// More words than this are not expanded.
const WORDS_MAX: usize = 256;
/// Nor are longer words.
const TEXT_MAX: usize = 4096;

/// The words that a word becomes; none if that is too many or too odd to say.
pub(super) fn expand(text: &str) -> Option<Vec<String>> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let mut budget = WORDS_MAX * 4;
    let words = step(text, &mut budget)?;
    (words.len() <= WORDS_MAX).then_some(words)
}

fn step(text: &str, budget: &mut usize) -> Option<Vec<String>> {
    *budget = budget.checked_sub(1)?;
    let Some((open, close, commas)) = first_group(text) else { return Some(vec![text.to_owned()]) };
    let (before, inner, after) = (&text[..open], &text[open + 1..close], &text[close + 1..]);
    let items: Vec<String> = if commas.is_empty() {
        match sequence(inner)? {
            Sequence::Of(items) => items,
            Sequence::TooLong => return None,
        }
    } else {
        let mut items = Vec::new();
        let mut from = open + 1;
        for comma in commas.into_iter().chain([close]) {
            items.extend(step(&text[from..comma], budget)?);
            from = comma + 1;
        }
        items
    };
    let rest = step(after, budget)?;
    if items.len() * rest.len() > WORDS_MAX {
        return None;
    }
    Some(items.iter().flat_map(|item| rest.iter().map(move |rest| format!("{before}{item}{rest}"))).collect())
}

/// The first group that expands: where it opens and closes, and its commas.
fn first_group(text: &str) -> Option<(usize, usize, Vec<usize>)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' if at == 0 || bytes[at - 1] != b'$' => {
                if let Some((close, commas)) = closing(text, at)
                    && (!commas.is_empty() || sequence(&text[at + 1..close]).is_some())
                {
                    return Some((at, close, commas));
                }
                at += 1;
            }
            _ => at = past(bytes, at),
        }
    }
    None
}

fn closing(text: &str, open: usize) -> Option<(usize, Vec<usize>)> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut commas) = (open + 1, 0_usize, Vec::new());
    while at < bytes.len() {
        match bytes[at] {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some((at, commas)),
            b'}' => depth -= 1,
            b',' if depth == 0 => commas.push(at),
            _ => {
                at = past(bytes, at);
                continue;
            }
        }
        at += 1;
    }
    None
}

/// The place after a character, or after what a quote holds.
fn past(bytes: &[u8], at: usize) -> usize {
    let until = |quote: u8| {
        let mut end = at + 1;
        while end < bytes.len() && bytes[end] != quote {
            end += if bytes[end] == b'\\' && quote == b'"' { 2 } else { 1 };
        }
        end + 1
    };
    match bytes[at] {
        b'\\' => at + 2,
        b'\'' if at > 0 && bytes[at - 1] == b'$' => {
            let mut end = at + 1;
            while end < bytes.len() && bytes[end] != b'\'' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            end + 1
        }
        quote @ (b'\'' | b'"') => until(quote),
        _ => at + 1,
    }
}

/// What stands between braces and is a sequence.
enum Sequence {
    Of(Vec<String>),
    /// One that is too long, or too odd, to say.
    TooLong,
}

/// `1..9`, `a..e`, `1..9..2`; none if it is no such thing.
fn sequence(inner: &str) -> Option<Sequence> {
    let parts: Vec<&str> = inner.split("..").collect();
    let (from, to, by) = match parts.as_slice() {
        [from, to] => (*from, *to, 1),
        [from, to, by] => (*from, *to, by.parse::<i64>().ok()?.unsigned_abs().max(1)),
        _ => return None,
    };
    let (numbers, from, to) = match (from.parse::<i64>(), to.parse::<i64>()) {
        (Ok(from), Ok(to)) => (true, from, to),
        _ => (false, letter(from)?, letter(to)?),
    };
    let count = (from.abs_diff(to) / by).saturating_add(1);
    if count > WORDS_MAX as u64 || inner.starts_with('0') || inner.contains("..0") || inner.contains("-0") {
        return Some(Sequence::TooLong);
    }
    let step = i64::try_from(by).ok()? * if from <= to { 1 } else { -1 };
    let all = (0..i64::try_from(count).ok()?).map(|number| from + number * step);
    if numbers {
        return Some(Sequence::Of(all.map(|number| number.to_string()).collect()));
    }
    let letters: Option<Vec<String>> =
        all.map(|code| u8::try_from(code).ok().map(|byte| char::from(byte).to_string())).collect();
    Some(letters.map_or(Sequence::TooLong, Sequence::Of))
}

fn letter(text: &str) -> Option<i64> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) if c.is_ascii_alphabetic() => Some(i64::from(u32::from(c))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn braces_become_words() {
        let words = |text: &str| expand(text).map(|words| words.join(" "));
        for (text, want) in [
            ("a", Some("a")),
            ("{a,b}", Some("a b")),
            ("x{a,b}y{1..3}", Some("xay1 xay2 xay3 xby1 xby2 xby3")),
            ("{a,{b,c}}", Some("a b c")),
            ("{a}", Some("{a}")),
            ("'{a,b}'", Some("'{a,b}'")),
            ("${a,b}", Some("${a,b}")),
            ("{a..e}", Some("a b c d e")),
            ("{3..1}", Some("3 2 1")),
            ("-{r,f}", Some("-r -f")),
            ("{1..1000000}", None),
            ("{9223372036854775807..-9223372036854775808}", None),
            ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", None),
        ] {
            assert_eq!(words(text).as_deref(), want, "{text}");
        }
    }
}

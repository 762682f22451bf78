//! "Did you mean": the nearest known word to one that nobody knows.

/// The farthest a word may be from the one meant.
const MAX_DISTANCE: usize = 3;

/// The known word nearest to `word`, if it is near enough to be worth suggesting.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let lower = word.to_lowercase();
    // A word as long as its distance has nothing in common with the other.
    let reach = MAX_DISTANCE.min(word.chars().count().saturating_sub(1));
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= reach)
        .min()
        .map(|(_, candidate)| candidate)
}

/// A sentence that suggests the nearest word, to append to an error.
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|candidate| format!("did you mean `{candidate}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_what_is_near() {
        let known = ["file.read", "file.write", "calc.eval"];
        assert_eq!(nearest("file.raed", known), Some("file.read"));
        assert_eq!(nearest("File.Read", known), Some("file.read"));
        assert_eq!(nearest("browser.open", known), None);
        assert_eq!(nearest("ab", ["xy"]), None);
    }
}

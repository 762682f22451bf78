//! Which calls of a list may run together.

use std::ops::Range;

/// How many calls of a batch run at once.
pub const AT_ONCE: usize = 10;

/// Splits a list of calls into batches: consecutive concurrency-safe calls together, others alone.
pub fn batches(concurrency_safe: &[bool]) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    for (index, safe) in concurrency_safe.iter().enumerate() {
        match batches.last_mut() {
            Some(batch) if *safe && concurrency_safe[batch.start] => batch.end = index + 1,
            _ => batches.push(index..index + 1),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_example() {
        // Glob, Grep, Edit, Glob, Grep, Bash
        assert_eq!(batches(&[true, true, false, true, true, false]), [0..2, 2..3, 3..5, 5..6]);
        assert!(batches(&[]).is_empty());
        assert_eq!(batches(&[false, false]), [0..1, 1..2]);
    }
}

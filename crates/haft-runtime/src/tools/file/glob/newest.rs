//! The newest of many files, without holding all of them.

use crate::files;
use std::cmp::Ordering;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A file that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) mtime_ns: i64,
    pub(super) is_link: bool,
}

impl Found {
    pub(super) fn new(path: PathBuf, meta: &Metadata) -> Self {
        Self { path, size: meta.size(), mtime_ns: files::mtime_ns(meta), is_link: meta.is_symlink() }
    }

    /// Newest first; files of the same instant by path, so that the order never depends on the threads.
    fn order(&self, other: &Self) -> Ordering {
        other.mtime_ns.cmp(&self.mtime_ns).then_with(|| self.path.as_os_str().cmp(other.path.as_os_str()))
    }
}

/// At most `max` files, and how many there were. It never holds more than twice as many.
#[derive(Debug)]
pub(super) struct Newest {
    kept: Vec<Found>,
    total: usize,
    max: usize,
}

impl Newest {
    pub(super) fn new(max: usize) -> Self {
        Self { kept: Vec::new(), total: 0, max }
    }

    pub(super) fn push(&mut self, found: Found) {
        self.total += 1;
        self.kept.push(found);
        if self.kept.len() >= self.max * 2 {
            self.shrink();
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.total += other.total;
        self.kept.extend(other.kept);
        self.shrink();
    }

    /// The newest files in order, and how many there were.
    pub(super) fn finish(mut self) -> (Vec<Found>, usize) {
        self.shrink();
        self.kept.sort_unstable_by(Found::order);
        (self.kept, self.total)
    }

    fn shrink(&mut self) {
        if self.kept.len() > self.max {
            self.kept.select_nth_unstable_by(self.max, Found::order);
            self.kept.truncate(self.max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_survive_whatever_the_order() {
        let file = |n: u32| Found {
            path: PathBuf::from(format!("{n:02}")),
            size: 0,
            mtime_ns: i64::from(n / 2),
            is_link: false,
        };
        let (mut one, mut two) = (Newest::new(3), Newest::new(3));
        (0..10).for_each(|n| one.push(file(n)));
        (10..20).rev().for_each(|n| two.push(file(n)));
        one.merge(two);
        assert_eq!(one.finish(), (vec![file(18), file(19), file(16)], 20));
    }
}

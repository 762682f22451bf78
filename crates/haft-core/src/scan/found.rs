//! What is found while a text is looked at: everything is judged, and a part of it is kept to be told.

use super::{Finding, Kind};

/// So many findings are kept, however many there are.
const KEPT_MAX: usize = 64;

/// Findings as they are made.
#[derive(Debug, Default)]
pub(super) struct Found {
    kept: Vec<Finding>,
    strongest: [u8; Kind::Unreadable as usize + 1],
}

impl Found {
    /// Takes in a finding. One that is stronger than all of its kind before is kept in any case, so that weak ones in
    /// front of it cannot crowd it out. Weights are few, so that this is bounded too.
    pub(super) fn say(&mut self, kind: Kind, weight: u8, why: &str, at: usize) {
        let strongest = &mut self.strongest[kind as usize];
        let stronger = weight > *strongest;
        *strongest = weight.max(*strongest);
        if stronger || self.kept.len() < KEPT_MAX {
            self.kept.push(Finding { kind, why: why.to_owned(), at, weight });
        }
    }

    /// The greatest weight of a kind.
    pub(super) fn strongest(&self, kind: Kind) -> u8 {
        self.strongest[kind as usize]
    }

    /// The greatest weight of all.
    pub(super) fn most(&self) -> u8 {
        self.strongest.iter().copied().max().unwrap_or(0)
    }

    /// What was kept, the weightiest first.
    pub(super) fn told(mut self) -> Vec<Finding> {
        self.kept.sort_by_key(|finding| (std::cmp::Reverse(finding.weight), finding.at));
        self.kept
    }
}

//! Generated cases: every case is made from one number, its seed, so that a failure can be reproduced from that number alone.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs only the case of this seed.
const SEED: &str = "HAFT_DIFF_SEED";
/// Runs this many cases of every comparison instead of its own number.
const CASES: &str = "HAFT_DIFF_CASES";

/// Runs `check` on `cases` generated cases. `name` is the path of the test; a failure prints the command that reproduces it.
pub(crate) fn compare(name: &str, cases: u64, check: impl Fn(&mut Generator)) {
    let number = |variable| std::env::var(variable).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(CASES).unwrap_or(cases),
    };
    for seed in seeds {
        let run = || check(&mut Generator { state: seed });
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            eprintln!("reproduce with: cargo xtask diff {name} --seed {seed}");
            resume_unwind(panic);
        }
    }
}

/// A source of choices that is the same for the same seed (`SplitMix64`).
pub(crate) struct Generator {
    state: u64,
}

impl Generator {
    /// One for what is the same in all cases.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    /// True in `percent` of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'c, T: ?Sized>(&mut self, choices: &[&'c T]) -> &'c T {
        choices[self.below(choices.len())]
    }

    /// One of several lists.
    pub(crate) fn pick_slice<'c, T>(&mut self, choices: &[&'c [T]]) -> &'c [T] {
        choices[self.below(choices.len())]
    }

    /// Up to `most` of the pieces, one after the other, with repetitions.
    pub(crate) fn text(&mut self, pieces: &[&str], most: usize) -> String {
        (0..self.below(most + 1)).map(|_| self.pick(pieces)).collect()
    }
}

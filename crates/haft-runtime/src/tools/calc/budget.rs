//! How much work an expression may ask for, counted in steps on single words of 64 bits.

use super::Fault;

/// About a second of work.
const STEPS_MAX: u64 = 1 << 30;
const WORD_BITS: u64 = 64;

/// The work that is left to an expression.
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { left: STEPS_MAX }
    }

    /// Pays for the product or the quotient of numbers with so many bits.
    pub(super) fn multiply(&mut self, a_bits: u64, b_bits: u64) -> Result<(), Fault> {
        self.pay((a_bits / WORD_BITS + 1).saturating_mul(b_bits / WORD_BITS + 1))
    }

    /// Pays for the greatest common divisor of numbers with so many bits, which is found bit by bit.
    pub(super) fn divisor(&mut self, a_bits: u64, b_bits: u64) -> Result<(), Fault> {
        self.pay((a_bits + b_bits).saturating_mul(a_bits.max(b_bits) / WORD_BITS + 1))
    }

    fn pay(&mut self, steps: u64) -> Result<(), Fault> {
        self.left = self.left.checked_sub(steps).ok_or_else(|| {
            Fault::undefined(
                "the expression is too much work: its numbers are too long; use smaller ones, or several calls",
            )
        })?;
        Ok(())
    }
}

//! Numbers. Integers and fractions are exact, so decimals are: 0.1 is one tenth. What roots, logarithms and angles give is a
//! double.

use super::{Budget, Fault};
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;

/// A number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Exact.
    Int(BigInt),
    /// Exact, and not whole.
    Fraction(BigRational),
    /// As near as a double comes.
    Real(f64),
}

use Value::{Fraction, Int, Real};

/// Integers have at most so many bits.
pub(super) const INTEGER_BITS_MAX: u64 = 1 << 17;
/// The same in digits.
pub(super) const INTEGER_DIGITS_MAX: u64 = 39_456;
/// A fraction with more bits above or below its line becomes a double.
pub(super) const FRACTION_BITS_MAX: u64 = 1 << 14;
/// Up to here every integer is a double, and every JSON reader agrees about it.
pub(super) const DOUBLE_INTEGER_MAX: u64 = 1 << 53;

impl Value {
    pub(super) fn small(int: i64) -> Self {
        Int(int.into())
    }

    /// An integer, unless it is too large to go on with.
    pub(super) fn integer(int: BigInt) -> Result<Self, Fault> {
        if int.bits() > INTEGER_BITS_MAX { Err(Fault::too_large()) } else { Ok(Int(int)) }
    }

    /// A fraction in lowest terms, or the integer that it is.
    pub(super) fn ratio(ratio: BigRational) -> Result<Self, Fault> {
        if ratio.is_integer() {
            return Self::integer(ratio.into_raw().0);
        }
        if ratio.numer().bits().max(ratio.denom().bits()) <= FRACTION_BITS_MAX {
            return Ok(Fraction(ratio));
        }
        double(&ratio).map(Real)
    }

    /// The quotient of two integers.
    pub(super) fn quotient(above: &BigInt, below: &BigInt, budget: &mut Budget) -> Result<Self, Fault> {
        budget.multiply(above.bits(), below.bits())?;
        let (quotient, remainder) = above.div_rem(below);
        if remainder.is_zero() {
            return Self::integer(quotient);
        }
        budget.divisor(above.bits(), below.bits())?;
        Self::ratio(BigRational::new(above.clone(), below.clone()))
    }

    /// The result of an operation on doubles; `what` names it in case it has none.
    pub(super) fn from_real(real: f64, what: impl FnOnce() -> String) -> Result<Self, Fault> {
        if real.is_nan() { Err(Fault::undefined(format!("{} is not a real number", what()))) } else { Ok(Real(real)) }
    }

    /// The same for operands that are finite: a double calls what is too large for it infinite.
    pub(super) fn from_finite(real: f64, what: impl Fn() -> String) -> Result<Self, Fault> {
        if real.is_infinite() {
            let why = format!("{} is too large for double precision, which ends at 1.8e308", what());
            return Err(Fault::undefined(why));
        }
        Self::from_real(real, what)
    }

    /// The exact value, unless it is a double.
    pub(super) fn exact(&self) -> Option<BigRational> {
        match self {
            Int(int) => Some(int.clone().into()),
            Fraction(ratio) => Some(ratio.clone()),
            Real(_) => None,
        }
    }

    /// The nearest double.
    pub(super) fn double(&self) -> Result<f64, Fault> {
        match self {
            Int(int) => finite(int.to_f64(), || self.brief()),
            Fraction(ratio) => double(ratio),
            Real(real) => Ok(*real),
        }
    }

    /// The integer that it is, if it is one.
    pub(super) fn int(&self) -> Option<BigInt> {
        match self {
            Int(int) => Some(int.clone()),
            Fraction(_) => None,
            Real(real) => whole(settled(*real)),
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        match self {
            Int(int) => int.is_zero(),
            Fraction(_) => false,
            Real(real) => *real == 0.0,
        }
    }

    pub(super) fn is_negative(&self) -> bool {
        match self {
            Int(int) => int.is_negative(),
            Fraction(ratio) => ratio.is_negative(),
            Real(real) => *real < 0.0,
        }
    }

    pub(super) fn is_infinite(&self) -> bool {
        matches!(self, Real(real) if real.is_infinite())
    }

    /// Which is larger.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Int(a), Int(b)) => a.cmp(b),
            (Real(a), Real(b)) => a.total_cmp(b),
            (a, b) => match (a.finite(), b.finite()) {
                (Some(a), Some(b)) => a.cmp(&b),
                (None, _) => {
                    if a.is_negative() {
                        Ordering::Less
                    } else {
                        Ordering::Greater
                    }
                }
                (_, None) => {
                    if b.is_negative() {
                        Ordering::Greater
                    } else {
                        Ordering::Less
                    }
                }
            },
        }
    }

    /// The exact value, for a double of the double itself.
    fn finite(&self) -> Option<BigRational> {
        match self {
            Real(real) => BigRational::from_float(*real),
            exact => exact.exact(),
        }
    }
}

/// The nearest double of a fraction.
fn double(ratio: &BigRational) -> Result<f64, Fault> {
    let near = finite(ratio.to_f64(), || super::written::ratio_brief(ratio))?;
    if near == 0.0 && !ratio.is_zero() {
        let shown = super::written::ratio_brief(ratio);
        return Err(Fault::undefined(format!("{shown} is too small for double precision, which ends at 4.9e-324")));
    }
    Ok(near)
}

fn finite(near: Option<f64>, what: impl FnOnce() -> String) -> Result<f64, Fault> {
    near.filter(|near| near.is_finite())
        .ok_or_else(|| Fault::undefined(format!("{} is too large for double precision, which ends at 1.8e308", what())))
}

/// The integer that a double is exactly, where doubles still know every integer.
pub(super) fn whole(real: f64) -> Option<BigInt> {
    let int = if real.fract() == 0.0 { real.to_i64()? } else { return None };
    (int.unsigned_abs() <= DOUBLE_INTEGER_MAX).then(|| int.into())
}

/// Fifteen digits are what a double can promise: sqrt(2) ^ 2 is 2.
pub(super) fn settled(real: f64) -> f64 {
    format!("{real:.14e}").parse().unwrap_or(real)
}

/// Whether a double still knows the digits at the point.
pub(super) fn knows_units(real: f64) -> bool {
    real.trunc().to_i64().is_some_and(|int| int.unsigned_abs() < DOUBLE_INTEGER_MAX)
}

/// A double as the decimal that it is shown as, exactly.
pub(super) fn decimal(real: f64) -> Option<BigRational> {
    let text = format!("{real:.14e}");
    let (digits, exponent) = text.split_once('e')?;
    let (digits, exponent): (BigInt, i64) = (digits.replace('.', "").parse().ok()?, exponent.parse().ok()?);
    Some(BigRational::from(digits) * power_of_ten(exponent - 14))
}

/// A power of ten.
pub(super) fn power_of_ten(exponent: i64) -> BigRational {
    let power = BigInt::from(10).pow(u32::try_from(exponent.unsigned_abs()).unwrap_or(u32::MAX));
    if exponent < 0 { BigRational::new_raw(BigInt::one(), power) } else { power.into() }
}

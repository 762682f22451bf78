//! How numbers are written: exact where the digits end soon, else rounded.

use super::value::Value::{self, Fraction, Int, Real};
use super::value::{DOUBLE_INTEGER_MAX, power_of_ten, settled, whole};
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use std::fmt;

/// A decimal with no more digits is written whole.
const WHOLE_DIGITS: usize = 50;
/// One with more, or without end, is rounded to so many.
const ROUNDED_DIGITS: usize = 20;
/// Smaller numbers are written with an exponent.
const LEAST_EXPONENT: i64 = -5;

/// A number's digits, without zeros at the end: 0.d₁d₂d₃… times ten to the power of `exponent + 1`.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
    exact: bool,
}

impl Decimal {
    /// The digits of a number that is not zero.
    fn of(ratio: &BigRational) -> Self {
        let length = |int: &BigInt| i64::try_from(int.magnitude().to_string().len()).unwrap_or(i64::MAX);
        let wanted = i64::try_from(WHOLE_DIGITS).unwrap_or(i64::MAX);
        // It may be less by one.
        let mut exponent = length(ratio.numer()) - length(ratio.denom());
        if ratio.abs() < power_of_ten(exponent) {
            exponent -= 1;
        }
        let scaled = ratio.abs() * power_of_ten(wanted - 1 - exponent);
        let (mut digits, rest) = scaled.numer().div_rem(scaled.denom());
        let exact = rest.is_zero();
        if !exact {
            let unit = BigInt::from(10).pow(u32::try_from(WHOLE_DIGITS - ROUNDED_DIGITS).unwrap_or_default());
            digits = (digits + &unit / 2) / unit;
        }
        let text = digits.to_string();
        let carried = text.len() > if exact { WHOLE_DIGITS } else { ROUNDED_DIGITS };
        let digits = text.trim_end_matches('0').to_owned();
        Self { negative: ratio.is_negative(), digits, exponent: exponent + i64::from(carried), exact }
    }

    fn write(&self) -> String {
        let Self { digits, exponent, exact, .. } = self;
        let sign = if self.negative { "-" } else { "" };
        let most = if *exact { WHOLE_DIGITS } else { ROUNDED_DIGITS };
        let places = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX);
        if *exponent >= 0 && places < most {
            let padded = format!("{digits:0<width$}", width = places + 1);
            let (before, after) = padded.split_at(places + 1);
            let point = if after.is_empty() { "" } else { "." };
            return format!("{sign}{before}{point}{after}");
        }
        if (LEAST_EXPONENT..0).contains(exponent) {
            return format!("{sign}0.{}{digits}", "0".repeat(places - 1));
        }
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{sign}{first}{point}{rest}e{exponent}")
    }
}

/// A fraction in a message.
pub(super) fn ratio_brief(ratio: &BigRational) -> String {
    if ratio.is_zero() { "0".to_owned() } else { Decimal::of(ratio).write() }
}

impl Value {
    /// The number in a message, never long.
    pub(super) fn brief(&self) -> String {
        match self {
            Int(int) if !int.is_zero() => ratio_brief(&int.clone().into()),
            other => other.to_string(),
        }
    }

    /// The number as JSON, and whether that says it exactly. Integers that JSON readers would distort are strings.
    pub(super) fn json(&self) -> (serde_json::Value, bool) {
        match self {
            Int(int) => match int.to_i64().filter(|small| small.unsigned_abs() <= DOUBLE_INTEGER_MAX) {
                Some(small) => (small.into(), true),
                None => (int.to_string().into(), true),
            },
            Fraction(ratio) => {
                let digits = Decimal::of(ratio);
                match ratio.to_f64().filter(|near| near.is_normal()) {
                    Some(near) => {
                        let same = digits.exact && shortest(near).is_some_and(|shortest| &shortest == ratio);
                        (near.into(), same)
                    }
                    None => (digits.write().into(), digits.exact),
                }
            }
            Real(real) => {
                let near = settled(*real);
                let int = whole(near).and_then(|int| int.to_i64());
                let text = || near.to_string().into();
                (int.map_or_else(|| if near.is_finite() { near.into() } else { text() }, Into::into), false)
            }
        }
    }
}

/// The decimal that a double is written as.
fn shortest(real: f64) -> Option<BigRational> {
    let text = format!("{real:e}");
    let (digits, exponent) = text.split_once('e')?;
    let places = digits.split_once('.').map_or(0, |(_, after)| after.len());
    let digits: BigInt = digits.replace('.', "").parse().ok()?;
    Some(BigRational::from(digits) * power_of_ten(exponent.parse::<i64>().ok()? - i64::try_from(places).ok()?))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Int(int) => write!(f, "{int}"),
            Fraction(ratio) => f.write_str(&ratio_brief(ratio)),
            Real(real) => {
                let near = settled(*real);
                match whole(near) {
                    Some(int) => write!(f, "{int}"),
                    None if !near.is_finite() || (1e-5..1e15).contains(&near.abs()) => write!(f, "{near}"),
                    None => write!(f, "{near:e}"),
                }
            }
        }
    }
}

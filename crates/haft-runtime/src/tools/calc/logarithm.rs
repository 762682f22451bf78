//! Logarithms: exact where they are whole, and of numbers that are too large for a double.

use super::arithmetic::infix;
use super::functions::called;
use super::value::Value;
use super::{Budget, Fault};
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use std::f64::consts::{LN_2, LOG10_2};
use std::slice;

/// A logarithm is worked out from the difference to one, where that is smaller than this.
const NEAR_ONE: f64 = 0.1;

/// The natural logarithm.
pub(super) fn natural(x: &Value) -> Result<Value, Fault> {
    let what = || called("ln", slice::from_ref(x));
    positive(x, what)?;
    Value::from_real(ln(x), what)
}

/// The logarithm to a base.
pub(super) fn to_base(name: &str, x: &Value, base: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    let what =
        || if name == "log" { called(name, &[x.clone(), base.clone()]) } else { called(name, slice::from_ref(x)) };
    positive(x, what)?;
    positive(base, what)?;
    let (two, ten) = (Value::small(2), Value::small(10));
    let near = match () {
        () if *base == two => by_parts(x, f64::log2, 1.0),
        () if *base == ten => by_parts(x, f64::log10, LOG10_2),
        () => ln(x) / ln(base),
    };
    if base.exact().is_some_and(|base| base.is_one()) || ln(base) == 0.0 {
        return Err(Fault::undefined(format!("{} is not a real number", what())));
    }
    match whole(x, base, near, budget) {
        Some(exact) => Ok(exact),
        None => Value::from_real(near, what),
    }
}

/// A logarithm of zero is no number either, though a double calls it infinite.
fn positive(x: &Value, what: impl Fn() -> String) -> Result<(), Fault> {
    if x.is_zero() || x.is_negative() {
        return Err(Fault::undefined(format!("{} is not a real number", what())));
    }
    Ok(())
}

/// The logarithm if it is exactly the whole number that it is near.
fn whole(x: &Value, base: &Value, near: f64, budget: &mut Budget) -> Option<Value> {
    let exponent = near.round().to_i64().filter(|_| (near - near.round()).abs() < 1e-9)?;
    let (x, exponent) = (x.exact()?, Value::small(exponent));
    base.exact()?;
    // What is too large to be worked out is not `x`, which was.
    let power = infix("^", base, &exponent, budget).ok()?;
    (power.exact()? == x).then_some(exponent)
}

fn ln(x: &Value) -> f64 {
    if let Some(exact) = x.exact() {
        let difference = (exact - BigRational::one()).to_f64().unwrap_or(f64::INFINITY);
        if difference.abs() < NEAR_ONE {
            return difference.ln_1p();
        }
    }
    by_parts(x, f64::ln, LN_2)
}

/// The logarithm of a double, and of a number beyond them as the sum of two: of its mantissa and of its power of two.
fn by_parts(x: &Value, log: fn(f64) -> f64, log_of_two: f64) -> f64 {
    match (x.double().ok().filter(|real| *real != 0.0 && !real.is_subnormal()), x.exact()) {
        (None, Some(exact)) => {
            let (mantissa, exponent) = scaled(&exact);
            log(mantissa) + exponent.to_f64().unwrap_or(f64::NAN) * log_of_two
        }
        (real, _) => log(real.unwrap_or(f64::NAN)),
    }
}

/// A number as a double between a half and two, and a power of two.
pub(super) fn scaled(ratio: &BigRational) -> (f64, i64) {
    if ratio.is_zero() {
        return (0.0, 0);
    }
    let bits = |bits: u64| i64::try_from(bits).unwrap_or(i64::MAX);
    let exponent = bits(ratio.numer().bits()) - bits(ratio.denom().bits());
    let (numer, denom) = if exponent >= 0 {
        (ratio.numer().clone(), ratio.denom() << exponent)
    } else {
        (ratio.numer() << -exponent, ratio.denom().clone())
    };
    (BigRational::new_raw(numer, denom).to_f64().unwrap_or(f64::NAN), exponent)
}

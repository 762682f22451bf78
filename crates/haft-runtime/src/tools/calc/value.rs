//! Numbers: integers are exact as long as they fit 128 bits, everything else is a double.

use super::Fault;
use std::cmp::Ordering;
use std::fmt;

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    /// Exact.
    Int(i128),
    /// As near as a double comes.
    Real(f64),
}

use Value::{Int, Real};

/// Up to here every integer is a double, and every JSON reader agrees about it.
const EXACT_MAX: i128 = 1 << 53;

impl Value {
    /// The nearest double.
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
    pub(super) fn real(self) -> f64 {
        match self {
            Int(int) => int as f64,
            Real(real) => real,
        }
    }

    /// The integer that it is, if it is one.
    pub(super) fn int(self) -> Option<i128> {
        match self {
            Int(int) => Some(int),
            Real(real) => exact(real),
        }
    }

    /// The result of an operation on doubles; `what` names it in case it has none.
    pub(super) fn from_real(real: f64, what: impl FnOnce() -> String) -> Result<Self, Fault> {
        if real.is_nan() { Err(Fault::undefined(what())) } else { Ok(exact(real).map_or(Real(real), Int)) }
    }

    /// The number as it is told: without the noise of doubles, and whole where that leaves it whole.
    fn settled(self) -> Self {
        let Real(real) = self else { return self };
        let near = rounded(real);
        exact(real).or_else(|| exact(near)).map_or(Real(near), Int)
    }

    /// The number as JSON; what JSON readers would distort is a string.
    pub(super) fn json(self) -> serde_json::Value {
        match self.settled() {
            Int(int) => match i64::try_from(int) {
                Ok(small) if int.abs() <= EXACT_MAX => small.into(),
                _ => int.to_string().into(),
            },
            Real(real) if real.is_finite() => real.into(),
            Real(real) => real.to_string().into(),
        }
    }

    /// Which is larger. Two integers may differ by less than doubles can tell.
    pub(super) fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Int(a), Int(b)) => a.cmp(&b),
            (a, b) => a.real().total_cmp(&b.real()),
        }
    }

    fn is_zero(self) -> bool {
        self.real() == 0.0
    }
}

/// The integer that a double is exactly, where doubles still know every integer.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers below 2^53 get there")]
#[expect(clippy::cast_precision_loss, reason = "2^53 is a double")]
fn exact(real: f64) -> Option<i128> {
    (real.fract() == 0.0 && real.abs() <= EXACT_MAX as f64).then_some(real as i128)
}

/// Fifteen digits are what a double can promise: 0.1 + 0.2 is 0.3.
fn rounded(real: f64) -> f64 {
    format!("{real:.14e}").parse().unwrap_or(real)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.settled() {
            Int(int) => write!(f, "{int}"),
            Real(real) if !real.is_finite() || (1e-5..1e15).contains(&real.abs()) => write!(f, "{real}"),
            Real(real) => write!(f, "{real:e}"),
        }
    }
}

/// Exact where it can be, else with doubles.
fn either(a: Value, b: Value, exact: fn(i128, i128) -> Option<i128>, near: fn(f64, f64) -> f64) -> Option<Value> {
    if let (Int(a), Int(b)) = (a, b)
        && let Some(exact) = exact(a, b)
    {
        return Some(Int(exact));
    }
    let near = near(a.real(), b.real());
    (!near.is_nan()).then_some(Real(near))
}

/// What a sign between two numbers does.
pub(super) fn infix(sign: &str, a: Value, b: Value) -> Result<Value, Fault> {
    if matches!(sign, "/" | "//" | "%") && b.is_zero() {
        return Err(Fault::undefined(format!("{a} {sign} {b} divides by zero")));
    }
    if sign == "^" && a.is_zero() && b.real() < 0.0 {
        return Err(Fault::undefined(format!("{a} ^ {b} divides by zero")));
    }
    let result = match sign {
        "+" => either(a, b, i128::checked_add, |a, b| a + b),
        "-" => either(a, b, i128::checked_sub, |a, b| a - b),
        "*" => either(a, b, i128::checked_mul, |a, b| a * b),
        "/" => either(a, b, divided, |a, b| a / b),
        "//" => either(a, b, floor_divided, |a, b| (a / b).floor()),
        "%" => either(a, b, i128::checked_rem, |a, b| a % b),
        _ => either(a, b, powered, f64::powf),
    };
    result.ok_or_else(|| {
        let a = if a.real() < 0.0 { format!("({a})") } else { a.to_string() };
        Fault::undefined(format!("{a} {sign} {b} is not a real number"))
    })
}

fn divided(a: i128, b: i128) -> Option<i128> {
    (a.checked_rem(b)? == 0).then(|| a.checked_div(b)).flatten()
}

fn floor_divided(a: i128, b: i128) -> Option<i128> {
    let down = a.checked_rem(b)? != 0 && (a < 0) != (b < 0);
    a.checked_div(b)?.checked_sub(i128::from(down))
}

fn powered(a: i128, b: i128) -> Option<i128> {
    a.checked_pow(u32::try_from(b).ok()?)
}

/// The other sign.
pub(super) fn negated(value: Value) -> Value {
    match value {
        Int(int) => int.checked_neg().map_or(Real(-value.real()), Int),
        Real(real) => Real(-real),
    }
}

/// The product of the integers up to this one.
pub(super) fn factorial(value: Value) -> Result<Value, Fault> {
    let count = value.int().filter(|int| *int >= 0);
    let count = count.ok_or_else(|| Fault::undefined(format!("{value}! is not defined; only 0!, 1!, 2! … are")))?;
    // Past this a double is infinite.
    let count = count.min(171);
    (1..=count).try_fold(Int(1), |product, next| infix("*", product, Int(next)))
}

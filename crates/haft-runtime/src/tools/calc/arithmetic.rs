//! What the signs do: exactly wherever both operands are exact, else with doubles.

use super::value::Value::{self, Fraction, Int, Real};
use super::value::{FRACTION_BITS_MAX, INTEGER_BITS_MAX, knows_units, settled};
use super::{Budget, Fault};
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Pow, Signed, ToPrimitive, Zero};

/// Roots of a higher degree are worked out with doubles, also where they are exact.
const ROOT_MAX: u32 = 64;
/// A power that is too large to be exact is worked out with so many bits, so that a million years of interest are right.
const POWER_BITS: u64 = 256;
/// Its exponent may have so many, so that enough of those are right.
const EXPONENT_BITS_MAX: u64 = 128;

/// What a sign between two numbers does.
pub(super) fn infix(sign: &str, a: &Value, b: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    if matches!(sign, "/" | "//" | "%") && b.is_zero() {
        return Err(Fault::undefined(format!("{} {sign} {} divides by zero", a.brief(), b.brief())));
    }
    match (sign, a, b) {
        ("^", ..) => power(a, b, budget),
        (_, Int(a), Int(b)) => integers(sign, a, b, budget),
        _ => match (a.exact(), b.exact()) {
            (Some(a), Some(b)) => fractions(sign, &a, &b, budget),
            _ => doubles(sign, a, b),
        },
    }
}

fn integers(sign: &str, a: &BigInt, b: &BigInt, budget: &mut Budget) -> Result<Value, Fault> {
    match sign {
        "+" => Value::integer(a + b),
        "-" => Value::integer(a - b),
        "/" => Value::quotient(a, b, budget),
        _ => {
            budget.multiply(a.bits(), b.bits())?;
            Value::integer(match sign {
                "*" => a * b,
                "//" => a.div_floor(b),
                _ => a % b,
            })
        }
    }
}

fn fractions(sign: &str, a: &BigRational, b: &BigRational, budget: &mut Budget) -> Result<Value, Fault> {
    let bits = |ratio: &BigRational| ratio.numer().bits().max(ratio.denom().bits());
    // A fraction is made of two products, and brought to lowest terms.
    budget.divisor(bits(a) + bits(b), bits(a) + bits(b))?;
    Value::ratio(match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "//" => (a / b).floor(),
        _ => a % b,
    })
}

fn doubles(sign: &str, a: &Value, b: &Value) -> Result<Value, Fault> {
    let (x, y) = (a.double()?, b.double()?);
    let quotient = settled(x / y);
    if matches!(sign, "//" | "%") && quotient.is_finite() && !knows_units(quotient) {
        let why = format!(
            "{} {sign} {} needs more digits than the operands have: a root, a logarithm, an angle or a constant has 15",
            a.brief(),
            b.brief()
        );
        return Err(Fault::undefined(why));
    }
    let result = match sign {
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "/" => x / y,
        "//" => quotient.floor(),
        // A quotient that is whole but for noise leaves nothing.
        _ if quotient.fract() == 0.0 && y.is_finite() => 0.0,
        _ => x % y,
    };
    doubled(result, sign, a, b)
}

/// The result of a sign between doubles.
fn doubled(result: f64, sign: &str, a: &Value, b: &Value) -> Result<Value, Fault> {
    let what = || format!("{} {sign} {}", in_parentheses(a), b.brief());
    if a.is_infinite() || b.is_infinite() { Value::from_real(result, what) } else { Value::from_finite(result, what) }
}

fn in_parentheses(value: &Value) -> String {
    if value.is_negative() { format!("({})", value.brief()) } else { value.brief() }
}

fn power(a: &Value, b: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    if a.is_zero() && b.is_negative() {
        return Err(Fault::undefined(format!("{} ^ {} divides by zero", a.brief(), b.brief())));
    }
    match (a.exact(), b) {
        (Some(base), Int(exponent)) => whole_power(&base, exponent, budget),
        (Some(base), Fraction(exponent)) => match exact_power(&base, exponent, budget)? {
            Some(value) => Ok(value),
            None => doubled(a.double()?.powf(b.double()?), "^", a, b),
        },
        _ => doubled(a.double()?.powf(b.double()?), "^", a, b),
    }
}

/// A power with a whole exponent: exact, or as near as a double where that would be too large a fraction.
fn whole_power(base: &BigRational, exponent: &BigInt, budget: &mut Budget) -> Result<Value, Fault> {
    let negative = exponent.is_negative();
    if exponent.is_zero() || base.is_one() {
        return Ok(Value::small(1));
    }
    if base.is_zero() {
        return Ok(Value::small(0));
    }
    if base.abs().is_one() {
        return Ok(Value::small(if exponent.is_even() { 1 } else { -1 }));
    }
    let bits = base.numer().bits().max(base.denom().bits());
    let most = if base.is_integer() && !negative { INTEGER_BITS_MAX } else { FRACTION_BITS_MAX };
    // The leading bit of the base is at least one bit of the power for each factor.
    let count = exponent.magnitude().to_u64().filter(|count| count.saturating_mul(bits - 1) <= most);
    match count.and_then(|count| i32::try_from(count).ok()) {
        Some(count) => {
            budget.multiply(most.min(bits * u64::from(count.unsigned_abs())), most)?;
            Value::ratio(Pow::pow(base, if negative { -count } else { count }))
        }
        None if base.is_integer() && !negative => Err(Fault::too_large()),
        None => near_power(base, exponent),
    }
}

/// A power that is not exact: squared again and again, with more bits than a double has.
fn near_power(base: &BigRational, exponent: &BigInt) -> Result<Value, Fault> {
    let beyond = |what: &str, end: &str| {
        let (base, exponent) = (Value::Fraction(base.clone()), Int(exponent.clone()));
        let shown = format!("{} ^ {}", in_parentheses(&base), exponent.brief());
        Fault::undefined(format!("{shown} is too {what} for double precision, which ends at {end}"))
    };
    let grows = (base.abs() > BigRational::one()) != exponent.is_negative();
    let beyond = || if grows { beyond("large", "1.8e308") } else { beyond("small", "4.9e-324") };
    if exponent.bits() > EXPONENT_BITS_MAX {
        return Err(Fault::undefined(format!("the exponent {} is too large", Int(exponent.clone()).brief())));
    }
    let base = Wide::of(&if exponent.is_negative() { base.recip() } else { base.clone() });
    let mut product = Wide { mantissa: BigInt::one(), exponent: 0 };
    for bit in (0..exponent.bits()).rev() {
        product = product.times(&product);
        if exponent.magnitude().bit(bit) {
            product = product.times(&base);
        }
        if product.exponent.abs() > 1 << 40 {
            return Err(beyond());
        }
    }
    let near = product.double();
    if near == 0.0 || near.is_infinite() { Err(beyond()) } else { Ok(Real(near)) }
}

/// A number with [`POWER_BITS`] bits: the mantissa times two to the power of the exponent.
struct Wide {
    mantissa: BigInt,
    exponent: i64,
}

impl Wide {
    fn of(ratio: &BigRational) -> Self {
        let shift = ratio.denom().bits() + POWER_BITS;
        let mantissa = (ratio.numer() << shift) / ratio.denom();
        Self { mantissa, exponent: -i64::try_from(shift).unwrap_or(i64::MAX) }.rounded()
    }

    fn times(&self, other: &Self) -> Self {
        Self { mantissa: &self.mantissa * &other.mantissa, exponent: self.exponent + other.exponent }.rounded()
    }

    fn rounded(mut self) -> Self {
        let over = self.mantissa.bits().saturating_sub(POWER_BITS);
        self.mantissa >>= over;
        self.exponent += i64::try_from(over).unwrap_or(i64::MAX);
        self
    }

    fn double(&self) -> f64 {
        let mantissa = self.mantissa.to_f64().unwrap_or(f64::NAN);
        let exponent = i32::try_from(self.exponent.clamp(-4000, 4000)).unwrap_or_default();
        // In two halves, because the mantissa and the power of two may each be beyond a double where the number is not.
        mantissa * 2_f64.powi(exponent / 2) * 2_f64.powi(exponent - exponent / 2)
    }
}

/// A power with a fraction as its exponent, where it is exact: 8 ^ (2/3) is 4.
fn exact_power(base: &BigRational, exponent: &BigRational, budget: &mut Budget) -> Result<Option<Value>, Fault> {
    let degree = exponent.denom().to_u32().filter(|degree| *degree <= ROOT_MAX && !base.is_negative());
    let Some(degree) = degree else { return Ok(None) };
    match exact_root(base, degree, budget)? {
        Some(root) => whole_power(&root, exponent.numer(), budget).map(Some),
        None => Ok(None),
    }
}

/// The root of this degree, where it is exact. A negative number has roots of odd degree only.
pub(super) fn exact_root(ratio: &BigRational, degree: u32, budget: &mut Budget) -> Result<Option<BigRational>, Fault> {
    if ratio.is_negative() && degree.is_even() {
        return Ok(None);
    }
    let mut root = |int: &BigInt| {
        // Newton's method takes about as many divisions as the root has bits to double.
        (0..8).try_for_each(|_| budget.multiply(int.bits(), int.bits()))?;
        let root = int.nth_root(degree);
        Ok((&Pow::pow(&root, degree) == int).then_some(root))
    };
    let (Some(above), Some(below)) = (root(ratio.numer())?, root(ratio.denom())?) else { return Ok(None) };
    Ok(Some(BigRational::new_raw(above, below)))
}

/// `a ^ b` modulo `m`, with the sign of `m`.
pub(super) fn modular_power(a: &BigInt, b: &BigInt, m: &BigInt, budget: &mut Budget) -> Result<Value, Fault> {
    if m.is_zero() {
        return Err(Fault::undefined("pow(a, b, 0) divides by zero"));
    }
    for _ in 0..b.bits().max(1) {
        budget.multiply(2 * m.bits(), 2 * m.bits())?;
    }
    budget.divisor(a.bits(), m.bits())?;
    if !b.is_negative() {
        return Value::integer(a.modpow(b, m));
    }
    let inverse = a.modinv(m).ok_or_else(|| {
        let (a, m) = (Int(a.clone()), Int(m.clone()));
        Fault::undefined(format!("{} has no inverse modulo {}", a.brief(), m.brief()))
    })?;
    Value::integer(inverse.modpow(&-b, m))
}

/// The other sign.
pub(super) fn negated(value: &Value) -> Value {
    match value {
        Int(int) => Int(-int),
        Fraction(ratio) => Fraction(-ratio),
        Real(real) => Real(-real),
    }
}

/// The product of the integers up to this one.
pub(super) fn factorial(value: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    let count = value
        .int()
        .filter(|int| !int.is_negative())
        .ok_or_else(|| Fault::undefined(format!("{}! is not defined; only 0!, 1!, 2! … are", in_parentheses(value))))?;
    let count = count.to_u64().ok_or_else(Fault::too_large)?;
    let mut product = BigInt::one();
    for next in 2..=count {
        budget.multiply(product.bits(), 64)?;
        product *= next;
        if product.bits() > INTEGER_BITS_MAX {
            return Err(Fault::too_large());
        }
    }
    Ok(Int(product))
}

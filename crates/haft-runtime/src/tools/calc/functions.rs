//! The names an expression may use.

use super::arithmetic::{exact_root, infix, modular_power, negated};
use super::logarithm;
use super::value::Value::{self, Fraction, Int, Real};
use super::value::{decimal, knows_units, power_of_ten};
use super::{Budget, Fault};
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::ops::RangeInclusive;
use std::slice;

/// Named numbers.
pub(super) const CONSTANTS: &[(&str, f64)] = &[
    ("pi", std::f64::consts::PI),
    ("π", std::f64::consts::PI),
    ("tau", std::f64::consts::TAU),
    ("e", std::f64::consts::E),
    ("inf", f64::INFINITY),
    ("infinity", f64::INFINITY),
    ("huge", f64::INFINITY),
];

/// A number is rounded to so many digits after the point, or before it.
const ROUND_MAX: i64 = 1000;

/// A named operation.
#[derive(Debug)]
pub(super) struct Function {
    /// Its name.
    pub(super) name: &'static str,
    /// How many arguments it takes.
    pub(super) takes: RangeInclusive<usize>,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// On one double.
    One(fn(f64) -> f64),
    /// On one angle.
    Angle(fn(f64) -> f64),
    /// On two doubles.
    Two(fn(f64, f64) -> f64),
    /// The root of this degree.
    Root(u32, fn(f64) -> f64),
    /// To a whole number; integers are left alone.
    Whole(fn(&BigRational) -> BigRational),
    /// On anything.
    Any(fn(&[Value], &mut Budget) -> Result<Value, Fault>),
}

const fn function(name: &'static str, takes: RangeInclusive<usize>, work: Work) -> Function {
    Function { name, takes, work }
}

const fn one(name: &'static str, work: fn(f64) -> f64) -> Function {
    function(name, 1..=1, Work::One(work))
}

const fn angle(name: &'static str, work: fn(f64) -> f64) -> Function {
    function(name, 1..=1, Work::Angle(work))
}

const fn whole_number(name: &'static str, work: fn(&BigRational) -> BigRational) -> Function {
    function(name, 1..=1, Work::Whole(work))
}

type Anything = fn(&[Value], &mut Budget) -> Result<Value, Fault>;

const fn any(name: &'static str, takes: RangeInclusive<usize>, work: Anything) -> Function {
    function(name, takes, Work::Any(work))
}

/// Every function.
pub(super) const FUNCTIONS: &[Function] = &[
    function("sqrt", 1..=1, Work::Root(2, f64::sqrt)),
    function("cbrt", 1..=1, Work::Root(3, f64::cbrt)),
    angle("sin", f64::sin),
    angle("cos", f64::cos),
    angle("tan", f64::tan),
    one("asin", f64::asin),
    one("acos", f64::acos),
    one("atan", f64::atan),
    one("sinh", f64::sinh),
    one("cosh", f64::cosh),
    one("tanh", f64::tanh),
    one("exp", f64::exp),
    one("rad", f64::to_radians),
    one("deg", f64::to_degrees),
    function("atan2", 2..=2, Work::Two(f64::atan2)),
    whole_number("floor", BigRational::floor),
    whole_number("ceil", BigRational::ceil),
    whole_number("trunc", BigRational::trunc),
    any("hypot", 2..=2, hypot),
    any("ln", 1..=1, |args, _| logarithm::natural(&args[0])),
    any("log2", 1..=1, |args, budget| logarithm::to_base("log2", &args[0], &Value::small(2), budget)),
    any("log10", 1..=1, |args, budget| logarithm::to_base("log10", &args[0], &Value::small(10), budget)),
    any("log", 1..=2, |args, budget| match args {
        [x, base] => logarithm::to_base("log", x, base, budget),
        _ => logarithm::natural(&args[0]),
    }),
    any("round", 1..=2, round),
    any("abs", 1..=1, |args, _| Ok(if args[0].is_negative() { negated(&args[0]) } else { args[0].clone() })),
    any("pow", 2..=3, power),
    any("mod", 2..=2, floored_remainder),
    any("min", 1..=usize::MAX, |args, _| Ok(pick(args, Ordering::Less))),
    any("max", 1..=usize::MAX, |args, _| Ok(pick(args, Ordering::Greater))),
    any("gcd", 1..=usize::MAX, |args, budget| {
        integers("gcd", args)?.iter().try_fold(BigInt::zero(), |a, b| gcd(&a, b, budget)).map(Int)
    }),
    any("lcm", 1..=usize::MAX, |args, budget| {
        let args = integers("lcm", args)?;
        args.iter().try_fold(Value::small(1), |a, b| lcm(a.int().unwrap_or_default(), b, budget))
    }),
];

impl Function {
    /// The function of this name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }

    /// How many arguments it takes, in words.
    pub(super) fn arity(&self) -> String {
        match (*self.takes.start(), *self.takes.end()) {
            (least, usize::MAX) => format!("at least {least}"),
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} or {most}"),
        }
    }

    /// Applies it. There are as many arguments as it takes.
    pub(super) fn apply(&self, args: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
        match self.work {
            Work::One(work) => self.result(work(args[0].double()?), args),
            Work::Angle(work) => self.result(work(self.angle(&args[0])?), args),
            Work::Two(work) => self.result(work(args[0].double()?, args[1].double()?), args),
            Work::Root(degree, work) => self.root(&args[0], degree, work, budget),
            Work::Whole(work) => whole(&args[0], work),
            Work::Any(work) => work(args, budget),
        }
    }

    fn result(&self, real: f64, args: &[Value]) -> Result<Value, Fault> {
        let what = || called(self.name, args);
        if args.iter().any(Value::is_infinite) { Value::from_real(real, what) } else { Value::from_finite(real, what) }
    }

    /// An angle, unless its double may be turns away from it.
    fn angle(&self, value: &Value) -> Result<f64, Fault> {
        let real = value.double()?;
        let same =
            || BigRational::from_float(real).is_some_and(|near| value.exact().is_some_and(|exact| exact == near));
        if knows_units(real) || real.is_infinite() || same() {
            return Ok(real);
        }
        let shown = called(self.name, slice::from_ref(value));
        Err(Fault::undefined(format!(
            "{shown} has no digit that is right: the angle is too large for double precision"
        )))
    }

    fn root(&self, value: &Value, degree: u32, work: fn(f64) -> f64, budget: &mut Budget) -> Result<Value, Fault> {
        let Some(exact) = value.exact() else { return self.result(work(value.double()?), slice::from_ref(value)) };
        if let Some(root) = exact_root(&exact, degree, budget)? {
            return Value::ratio(root);
        }
        let (mantissa, exponent) = logarithm::scaled(&exact);
        // The power of two that is taken out is one whose root is a power of two.
        let over = exponent.rem_euclid(i64::from(degree));
        let root = work(mantissa * 2_f64.powi(i32::try_from(over).unwrap_or_default()));
        let exponent = (exponent - over) / i64::from(degree);
        let power = 2_f64.powi(i32::try_from(exponent).unwrap_or(i32::MAX));
        self.result(root * power, slice::from_ref(value))
    }
}

/// The whole number that a number is brought to.
fn whole(value: &Value, work: fn(&BigRational) -> BigRational) -> Result<Value, Fault> {
    match value {
        Int(_) => Ok(value.clone()),
        Fraction(ratio) => Value::ratio(work(ratio)),
        Real(real) => match decimal(*real).filter(|_| knows_units(*real)) {
            Some(shown) => Value::ratio(work(&shown)),
            None => Ok(value.clone()),
        },
    }
}

/// A call in a message.
pub(super) fn called(name: &str, args: &[Value]) -> String {
    let args: Vec<String> = args.iter().map(Value::brief).collect();
    format!("{name}({})", args.join(", "))
}

/// Halves go away from zero. What is shown of a double is what is rounded.
fn round(args: &[Value], _: &mut Budget) -> Result<Value, Fault> {
    let (value, digits) = (&args[0], args.get(1).map_or_else(|| Some(BigInt::zero()), Value::int));
    let digits = digits.and_then(|digits| digits.to_i64()).filter(|digits| digits.abs() <= ROUND_MAX);
    let Some(digits) = digits else {
        let shown = args[1].brief();
        return Err(Fault::undefined(format!(
            "{shown} is not a number of digits between -{ROUND_MAX} and {ROUND_MAX}"
        )));
    };
    let ratio = match value {
        Int(_) if digits >= 0 => return Ok(value.clone()),
        // A double that knows no digit there is not made to look exact.
        Real(real) if !knows_units(real * 10_f64.powi(i32::try_from(digits).unwrap_or_default())) => {
            return Ok(value.clone());
        }
        Real(real) => decimal(*real),
        exact => exact.exact(),
    };
    let Some(ratio) = ratio else { return Ok(value.clone()) };
    Value::ratio((ratio * power_of_ten(digits)).round() * power_of_ten(-digits))
}

/// Exact where it is a whole number or a fraction.
fn hypot(args: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    let mut square = |value: &Value| infix("*", value, value, budget);
    if let (Some(_), Some(_)) = (args[0].exact(), args[1].exact()) {
        let (a, b) = (square(&args[0])?, square(&args[1])?);
        let sum = infix("+", &a, &b, budget)?;
        if let Some(root) = sum.exact().map(|sum| exact_root(&sum, 2, budget)).transpose()?.flatten() {
            return Value::ratio(root);
        }
    }
    let what = || called("hypot", args);
    let length = args[0].double()?.hypot(args[1].double()?);
    if args.iter().any(Value::is_infinite) { Value::from_real(length, what) } else { Value::from_finite(length, what) }
}

/// A power, or with a third argument its remainder, without the power in between.
fn power(args: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    match args {
        [a, b] => infix("^", a, b, budget),
        _ => match &integers("pow with three arguments", args)?[..] {
            [a, b, m] => modular_power(a, b, m, budget),
            _ => Err(Fault::undefined("pow takes 2 or 3 arguments")),
        },
    }
}

/// The remainder with the sign of the divisor.
fn floored_remainder(args: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    let remainder = infix("%", &args[0], &args[1], budget)?;
    let turn = !remainder.is_zero() && remainder.is_negative() != args[1].is_negative();
    if turn { infix("+", &remainder, &args[1], budget) } else { Ok(remainder) }
}

/// The least or the greatest.
fn pick(args: &[Value], wanted: Ordering) -> Value {
    args.iter().skip(1).fold(&args[0], |best, next| if next.order(best) == wanted { next } else { best }).clone()
}

fn integers(name: &str, args: &[Value]) -> Result<Vec<BigInt>, Fault> {
    let wrong = |value: &Value| Fault::undefined(format!("{name} is about integers, and {} is not one", value.brief()));
    args.iter().map(|value| value.int().ok_or_else(|| wrong(value))).collect()
}

fn gcd(a: &BigInt, b: &BigInt, budget: &mut Budget) -> Result<BigInt, Fault> {
    budget.divisor(a.bits(), b.bits())?;
    Ok(a.gcd(b))
}

fn lcm(a: BigInt, b: &BigInt, budget: &mut Budget) -> Result<Value, Fault> {
    let divisor = gcd(&a, b, budget)?;
    if divisor.is_zero() {
        return Ok(Value::small(0));
    }
    budget.multiply(a.bits(), b.bits())?;
    Value::integer((a / divisor * b).abs())
}

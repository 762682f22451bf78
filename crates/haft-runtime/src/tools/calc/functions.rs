//! The names an expression may use.

use super::Fault;
use super::value::Value::{self, Int, Real};
use super::value::{infix, negated};
use std::cmp::Ordering;
use std::ops::RangeInclusive;

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
    /// On two doubles.
    Two(fn(f64, f64) -> f64),
    /// To a whole number; integers are left alone.
    Whole(fn(f64) -> f64),
    /// On anything.
    Any(fn(&[Value]) -> Result<Value, Fault>),
}

const fn one(name: &'static str, work: fn(f64) -> f64) -> Function {
    Function { name, takes: 1..=1, work: Work::One(work) }
}

const fn two(name: &'static str, work: fn(f64, f64) -> f64) -> Function {
    Function { name, takes: 2..=2, work: Work::Two(work) }
}

const fn whole(name: &'static str, work: fn(f64) -> f64) -> Function {
    Function { name, takes: 1..=1, work: Work::Whole(work) }
}

const fn any(name: &'static str, takes: RangeInclusive<usize>, work: fn(&[Value]) -> Result<Value, Fault>) -> Function {
    Function { name, takes, work: Work::Any(work) }
}

/// Every function.
pub(super) const FUNCTIONS: &[Function] = &[
    one("sqrt", f64::sqrt),
    one("cbrt", f64::cbrt),
    one("sin", f64::sin),
    one("cos", f64::cos),
    one("tan", f64::tan),
    one("asin", f64::asin),
    one("acos", f64::acos),
    one("atan", f64::atan),
    one("sinh", f64::sinh),
    one("cosh", f64::cosh),
    one("tanh", f64::tanh),
    one("exp", f64::exp),
    one("ln", |x| positive(x).ln()),
    one("log2", |x| positive(x).log2()),
    one("log10", |x| positive(x).log10()),
    one("rad", f64::to_radians),
    one("deg", f64::to_degrees),
    two("atan2", f64::atan2),
    two("hypot", f64::hypot),
    whole("floor", f64::floor),
    whole("ceil", f64::ceil),
    whole("trunc", f64::trunc),
    any("round", 1..=2, round),
    any("log", 1..=2, log),
    any("abs", 1..=1, |args| Ok(if args[0].real() < 0.0 { negated(args[0]) } else { args[0] })),
    any("pow", 2..=2, |args| infix("^", args[0], args[1])),
    any("mod", 2..=2, floored_remainder),
    any("min", 1..=usize::MAX, |args| Ok(pick(args, Ordering::Less))),
    any("max", 1..=usize::MAX, |args| Ok(pick(args, Ordering::Greater))),
    any("gcd", 1..=usize::MAX, |args| integers("gcd", args)?.into_iter().try_fold(Int(0), gcd)),
    any("lcm", 1..=usize::MAX, |args| integers("lcm", args)?.into_iter().try_fold(Int(1), lcm)),
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
    pub(super) fn apply(&self, args: &[Value]) -> Result<Value, Fault> {
        let what = || {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            format!("{}({}) is not a real number", self.name, args.join(", "))
        };
        match self.work {
            Work::One(work) => Value::from_real(work(args[0].real()), what),
            Work::Two(work) => Value::from_real(work(args[0].real(), args[1].real()), what),
            Work::Whole(work) => match args[0] {
                Int(_) => Ok(args[0]),
                Real(real) => Value::from_real(work(real), what),
            },
            Work::Any(work) => work(args),
        }
    }
}

/// A logarithm of zero is no number either, though a double calls it infinite.
fn positive(x: f64) -> f64 {
    if x > 0.0 { x } else { f64::NAN }
}

/// Halves go away from zero.
fn round(args: &[Value]) -> Result<Value, Fault> {
    let (value, digits) = (args[0], args.get(1).map_or(Some(0), |digits| digits.int()));
    let digits = digits.and_then(|digits| i32::try_from(digits).ok()).filter(|digits| digits.abs() <= 15);
    let Some(digits) = digits else {
        return Err(Fault::undefined(format!("{} is not a number of digits between -15 and 15", args[1])));
    };
    if digits >= 0 && matches!(value, Int(_)) {
        return Ok(value);
    }
    let scale = 10_f64.powi(digits.abs());
    let real = value.real();
    let near = if digits >= 0 { (real * scale).round() / scale } else { (real / scale).round() * scale };
    // A number too large to be scaled has no digits after the point.
    Value::from_real(if near.is_finite() { near } else { real }, || format!("round({value}) is not a real number"))
}

/// Natural, unless a base is given.
fn log(args: &[Value]) -> Result<Value, Fault> {
    let x = positive(args[0].real());
    let Some(base) = args.get(1) else {
        return Value::from_real(x.ln(), || format!("log({}) is not a real number", args[0]));
    };
    let log = match *base {
        Int(2) => x.log2(),
        Int(10) => x.log10(),
        Int(1) => f64::NAN,
        base => x.ln() / positive(base.real()).ln(),
    };
    Value::from_real(log, || format!("log({}, {base}) is not a real number", args[0]))
}

/// The remainder with the sign of the divisor.
fn floored_remainder(args: &[Value]) -> Result<Value, Fault> {
    let remainder = infix("%", args[0], args[1])?;
    let turn = remainder.real() != 0.0 && (remainder.real() < 0.0) != (args[1].real() < 0.0);
    if turn { infix("+", remainder, args[1]) } else { Ok(remainder) }
}

/// The least or the greatest.
fn pick(args: &[Value], wanted: Ordering) -> Value {
    args.iter().skip(1).fold(args[0], |best, next| if next.order(best) == wanted { *next } else { best })
}

fn integers(name: &str, args: &[Value]) -> Result<Vec<Value>, Fault> {
    let wrong = |value: &Value| Fault::undefined(format!("{name} is about integers, and {value} is not one"));
    args.iter().map(|value| value.int().map(Int).ok_or_else(|| wrong(value))).collect()
}

fn gcd(a: Value, b: Value) -> Result<Value, Fault> {
    let (mut a, mut b) = (a, b);
    while b.real() != 0.0 {
        (a, b) = (b, infix("%", a, b)?);
    }
    Ok(if a.real() < 0.0 { negated(a) } else { a })
}

fn lcm(a: Value, b: Value) -> Result<Value, Fault> {
    let divisor = gcd(a, b)?;
    if divisor.real() == 0.0 {
        return Ok(Int(0));
    }
    let multiple = infix("*", infix("/", a, divisor)?, b)?;
    Ok(if multiple.real() < 0.0 { negated(multiple) } else { multiple })
}

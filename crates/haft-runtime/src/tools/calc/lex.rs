//! An expression's words: numbers, names and signs, each with its column.

use super::Fault;
use super::value::{Value, power_of_ten};
use haft_core::preview::inert;
use num_bigint::BigInt;
use num_rational::BigRational;

/// The exponent of ten that a number may be written with.
const EXPONENT_MAX: i64 = 4000;

/// What a word is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A number.
    Number(Value),
    /// A function or a constant, in lower case and without `math.`.
    Name(String),
    /// An operator, a parenthesis or a comma.
    Sign(&'static str),
    /// Nothing follows.
    End,
}

/// A word and the column where it begins, counted from zero.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub(super) token: Token,
    pub(super) column: usize,
}

/// Signs and what they mean; a longer one stands before its own beginning.
const SIGNS: &[(&str, &str)] = &[
    ("**", "^"),
    ("//", "//"),
    ("+", "+"),
    ("-", "-"),
    ("−", "-"),
    ("*", "*"),
    ("×", "*"),
    ("·", "*"),
    ("/", "/"),
    ("÷", "/"),
    ("%", "%"),
    ("^", "^"),
    ("!", "!"),
    ("(", "("),
    (")", ")"),
    (",", ","),
];

/// Splits an expression into words; the last is always the end.
pub(super) fn words(expression: &str) -> Result<Vec<Word>, Fault> {
    let mut words = Vec::new();
    let (mut rest, mut column) = (expression, 0);
    loop {
        let trimmed = rest.trim_start();
        column += rest[..rest.len() - trimmed.len()].chars().count();
        let Some(first) = trimmed.chars().next() else {
            words.push(Word { token: Token::End, column });
            return Ok(words);
        };
        let (token, length) = word(trimmed, first).map_err(|why| Fault::syntax(column, why))?;
        words.push(Word { token, column });
        column += trimmed[..length].chars().count();
        rest = &trimmed[length..];
    }
}

/// The word at the beginning of a text, and its length in bytes.
fn word(text: &str, first: char) -> Result<(Token, usize), String> {
    let after_point = text.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if first.is_ascii_digit() || after_point {
        return number(text);
    }
    if first.is_alphabetic() || first == '_' {
        return Ok(name(text));
    }
    let sign = SIGNS.iter().find(|(spelling, _)| text.starts_with(spelling));
    let (spelling, sign) = sign.ok_or_else(|| format!("`{}` has no meaning here", inert(&first.to_string())))?;
    Ok((Token::Sign(sign), spelling.len()))
}

fn name(text: &str) -> (Token, usize) {
    let length = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(text.len());
    let name = text[..length].to_lowercase();
    (Token::Name(name.strip_prefix("math.").unwrap_or(&name).to_owned()), length)
}

fn number(text: &str) -> Result<(Token, usize), String> {
    let radix = match text.get(..2).unwrap_or_default() {
        "0x" | "0X" => 16,
        "0b" | "0B" => 2,
        "0o" | "0O" => 8,
        _ => return decimal(text),
    };
    let length = 2 + text[2..].find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len() - 2);
    let digits = text[2..length].replace('_', "");
    let wrong = || format!("`{}` is not a number of base {radix}", inert(&text[..length]));
    let value = BigInt::parse_bytes(digits.as_bytes(), radix).ok_or_else(wrong)?;
    Ok((Token::Number(Value::Int(value)), length))
}

fn decimal(text: &str) -> Result<(Token, usize), String> {
    let digits = |from: usize| {
        from + text[from..].find(|c: char| !(c.is_ascii_digit() || c == '_')).unwrap_or(text.len() - from)
    };
    let mut length = digits(0);
    let mut point = length;
    if text[length..].starts_with('.') {
        length = digits(length + 1);
        point += 1;
    }
    let mantissa = length;
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let end = digits(length + 1 + sign);
        // Without digits after it, the `e` is the constant.
        length = if end > length + 1 + sign { end } else { length };
    }
    let value = exact(&text[..mantissa], &text[point..mantissa], text[mantissa..length].get(1..).unwrap_or("0"))?;
    Ok((Token::Number(value), length))
}

/// A decimal: all of its digits with their point, those after the point, and the exponent of ten.
fn exact(mantissa: &str, after: &str, exponent: &str) -> Result<Value, String> {
    let places = after.chars().filter(|c| *c != '_').count();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits: BigInt = digits.parse().map_err(|_| format!("`{}` is not a number", inert(mantissa)))?;
    let exponent = exponent.replace('_', "").parse().ok().filter(|exponent: &i64| exponent.abs() <= EXPONENT_MAX);
    let exponent = exponent.ok_or_else(|| {
        format!("the exponent of this number is beyond {EXPONENT_MAX}; write a power, like 10^{EXPONENT_MAX}")
    })?;
    let places = i64::try_from(places).unwrap_or(i64::MAX);
    Value::ratio(BigRational::from(digits) * power_of_ten(exponent - places)).map_err(Fault::message)
}

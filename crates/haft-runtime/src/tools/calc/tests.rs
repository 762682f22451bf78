//! What expressions are worth, and what is said about those that are worth nothing.

use super::*;
use crate::halt::Halt;
use crate::testing::Stage;
use haft_core::ErrorKind;
use proptest::prelude::*;

fn worth(expression: &str) -> String {
    let answer = evaluate(expression).and_then(|value| answer(&value));
    answer.map_or_else(|fault| fault.explain(expression).message, |(text, _)| text)
}

#[test]
fn arithmetic() {
    let cases = [
        ("2 + 2", "4"),
        ("2 * (3 + 4) ^ 2", "98"),
        ("-2^2", "-4"),
        ("2^-2^2", "0.0625"),
        ("2 ** 3 ** 2", "512"),
        ("--3 - -+4", "7"),
        ("10 - 4 - 3", "3"),
        ("7 / 2", "3.5"),
        ("6 / 2", "3"),
        ("-7 // 2", "-4"),
        ("-7.5 // 2", "-4"),
        ("-7 % 3", "-1"),
        ("mod(-7, 3)", "2"),
        ("5.5 % 2", "1.5"),
        ("3! + 0!", "7"),
        ("2^3!", "64"),
        ("-3!", "-6"),
        ("0.1 + 0.2", "0.3"),
        ("1_000 × 2 ÷ 4", "500"),
        ("0xff + 0b11 + 0o17", "273"),
        (".5 + 5. + 1e3 + 2E-1", "1005.7"),
        ("2^100", "1267650600228229401496703205376"),
        ("2^200", "1606938044258990275541962092341162602522202993782792835301376"),
        ("1 / 3", "0.33333333333333333333"),
        ("1 / 3e10", "3.3333333333333333333e-11"),
        ("25!", "15511210043330985984000000"),
        ("171! / 169!", "29070"),
        ("170141183460469231731687303715884105727 + 1", "170141183460469231731687303715884105728"),
        ("0 * -1.5", "0"),
        ("7^50 % 10", "9"),
        ("(10^38 + 1) * 10 - 10^39", "10"),
        ("10^30 // 7 * 7 + 10^30 % 7 - 10^30", "0"),
        ("0.1 * 3 - 0.3", "0"),
        ("0.3 // 0.1", "3"),
        ("1.1 * 1.1", "1.21"),
        ("1e308 * 10 / 1e309", "1"),
        ("1e-400 * 1e400", "1"),
        ("2/3 + 1/6 + 1/6", "1"),
        ("200 / 3", "66.666666666666666667"),
        ("-2/3e20", "-6.6666666666666666667e-21"),
        ("(10^40 + 1) / 3", "3.3333333333333333333e39"),
        ("1 - 1e-30", "0.999999999999999999999999999999"),
        ("1 - 1e-60", "1"),
        ("1e-60", "1e-60"),
        ("12345678901234567890.5 * 2", "24691357802469135781"),
        ("8 ^ (2/3) + 0.25 ^ -0.5", "6"),
        ("(1 + 0.05/365) ^ (365 * 100)", "148.362346020004"),
        ("(1 + 1e-20) ^ 1e20", "2.71828182845905"),
    ];
    for (expression, expected) in cases {
        assert_eq!(worth(expression), expected, "{expression}");
    }
}

#[test]
fn names() {
    let cases = [
        ("sqrt(16) + cbrt(27)", "7"),
        ("math.sqrt(2)", "1.4142135623731"),
        ("Math.PI * 2 - tau", "0"),
        ("ln(e)", "1"),
        ("log(8, 2) + log10(1000) + log2(8)", "9"),
        ("log(27, 3)", "3"),
        ("sin(pi/6)", "0.5"),
        ("deg(pi) + rad(180)/pi", "181"),
        ("atan2(1, 1) * 4 - pi", "0"),
        ("hypot(3, 4)", "5"),
        ("round(2.5) + round(-2.5)", "0"),
        ("round(3.14159, 2)", "3.14"),
        ("round(1234, -2)", "1200"),
        ("floor(-1.5) + ceil(1.2) + trunc(-1.9)", "-1"),
        ("abs(-3) + abs(2.5)", "5.5"),
        ("pow(2, 0.5)^2", "2"),
        ("max(1, 7, 3) - min(4, 2)", "5"),
        ("max(9007199254740993, 9007199254740992)", "9007199254740993"),
        ("gcd(12, 18) + lcm(4, 6)", "18"),
        ("min(inf, 3) + exp(0)", "4"),
        ("round(2.675, 2)", "2.68"),
        ("round(1.005, 2) * 100", "101"),
        ("round(pi, 2) * 100 - 314", "0"),
        ("round(-0.5) + round(1.5)", "1"),
        ("round(exp(50), 2)", "5.18470552858707e21"),
        ("floor(log(1000) / log(10))", "3"),
        ("log(10^400, 10) + log2(2^-300) + log(0.001, 10)", "97"),
        ("ln(1e-400)", "-921.034037197618"),
        ("ln(1 + 1e-20) * 1e20", "1"),
        ("sqrt(10^401) / 10^200", "3.16227766016838"),
        ("sqrt(2^1001 * 2^1001) / 2^1001", "1"),
        ("cbrt(-0.008) + hypot(0.3, 0.4)", "0.3"),
        ("pow(7, 10^9, 10) + pow(3, -1, 11)", "5"),
        ("sqrt(2)^2 // 1 + sqrt(2)^2 % 1", "2"),
    ];
    for (expression, expected) in cases {
        assert_eq!(worth(expression), expected, "{expression}");
    }
}

#[test]
fn what_cannot_be_understood_is_pointed_at() {
    let expressions =
        ["2 +", "2 $ 3", "(1 + 2", "1)", "1,000", "2 pi", "sqroot(4)", "sqrt 4", "atan2(1)", "0xzz", "7 7"];
    insta::assert_snapshot!(expressions.map(worth).join("\n"), @r"
    the expression ends too early
      2 +
         ^
    `$` has no meaning here
      2 $ 3
        ^
    a `)` is missing
      (1 + 2
            ^
    this parenthesis was never opened
      1)
       ^
    a comma only separates a function's arguments; write 1000, not 1,000
      1,000
       ^
    an operator is missing here
      2 pi
        ^
    `sqroot` is neither a function nor a constant; did you mean `sqrt`?
      sqroot(4)
      ^
    `sqrt` is a function: its arguments go in parentheses
      sqrt 4
           ^
    `atan2` takes 2 arguments, not 1
      atan2(1)
      ^
    `0xzz` is not a number of base 16
      0xzz
      ^
    an operator is missing here
      7 7
        ^
    ");
}

#[test]
fn a_long_expression_is_shown_around_the_fault() {
    let expression = format!("{} 1 ? 2 {}", "1+".repeat(100), "+1".repeat(100));
    insta::assert_snapshot!(worth(&expression), @r"
    `?` has no meaning here
      +1+1+1+1+1+1+1+1+1+1+1+1+1+ 1 ? 2 +1+1+1+1+1+1+1+1+1+1+1+1+1
                                    ^
    ");
}

#[test]
fn what_has_no_value_is_said_in_a_sentence() {
    let expressions = [
        "1 / 0",
        "5 % 0",
        "5 // 0.0",
        "0 ^ -1",
        "sqrt(-1)",
        "ln(0)",
        "log(5, 1)",
        "(-8)^(1/3)",
        "inf - inf",
        "1.5!",
        "gcd(1.5, 2)",
        "round(1, 1001)",
        "sqrt(2) * 10^20 % 10",
        "pi * 10^20 // 7",
        "sin(10^30)",
        "exp(1000)",
        "10^400 * sqrt(2)",
        "sqrt(2) / 10^400",
        "1.5^1e9",
        "pow(2, -1, 4)",
        "pow(2, 3, 0)",
        "2^10^9",
        "10^12!",
        "10^10001",
        "1e9999",
    ];
    insta::assert_snapshot!(expressions.map(worth).join("\n"), @r"
    1 / 0 divides by zero
    5 % 0 divides by zero
    5 // 0 divides by zero
    0 ^ -1 divides by zero
    sqrt(-1) is not a real number
    ln(0) is not a real number
    log(5, 1) is not a real number
    (-8) ^ 0.33333333333333333333 is not a real number
    inf - inf is not a real number
    1.5! is not defined; only 0!, 1!, 2! … are
    gcd is about integers, and 1.5 is not one
    1001 is not a number of digits between -1000 and 1000
    1.4142135623731e20 % 10 needs more digits than the operands have: a root, a logarithm, an angle or a constant has 15
    3.14159265358979e20 // 7 needs more digits than the operands have: a root, a logarithm, an angle or a constant has 15
    sin(1000000000000000000000000000000) has no digit that is right: the angle is too large for double precision
    exp(1000) is too large for double precision, which ends at 1.8e308
    1e400 is too large for double precision, which ends at 1.8e308
    1e400 is too large for double precision, which ends at 1.8e308
    1.5 ^ 1000000000 is too large for double precision, which ends at 1.8e308
    2 has no inverse modulo 4
    pow(a, b, 0) divides by zero
    a number on the way has more than 39456 digits; pow(a, b, m) is a ^ b modulo m without the power in between
    a number on the way has more than 39456 digits; pow(a, b, m) is a ^ b modulo m without the power in between
    the answer has 10002 digits, and at most 10000 are shown; ask for its remainder with `% m`, or for log10 of it
    the exponent of this number is beyond 4000; write a power, like 10^4000
      1e9999
      ^
    ");
    assert_eq!(evaluate("1/0").unwrap_err().explain("1/0").kind, ErrorKind::Failed);
    assert_eq!(evaluate("1+").unwrap_err().explain("1+").kind, ErrorKind::InvalidInput);
}

#[test]
fn no_expression_is_too_deep_or_too_long_for_the_stack() {
    for (open, close) in [("(", ")"), ("-", ""), ("2^", ""), ("sqrt(", ")")] {
        let expression = format!("{}1{}", open.repeat(5000), close.repeat(5000));
        assert!(worth(&expression).starts_with("more than 200 levels of nesting"));
    }
    assert_eq!(worth(&format!("1{}", "+1".repeat(4999))), "5000");
    assert_eq!(worth(&format!("{}7{}", "(".repeat(190), ")".repeat(190))), "7");
}

#[test]
fn expressions_that_explode_are_refused_in_time() {
    let long_sum = format!("2^131000{}", " * 3 + 2^131000 // 3".repeat(500));
    let fractions = format!("0{}", " + 1/(10^800+7) * 1/(10^900+9)".repeat(330));
    let divisors = format!("gcd({})", vec!["3^80000 + 1"; 800].join(", "));
    let hostile = [
        "9^9^9^9",
        "(9^9^9)!",
        "99999999999999999999!",
        "1000000!!!",
        "2^131000 / (3^80000 + 1)",
        "pow(3^80000, 3^80000, 3^80000 + 2)",
        "lcm(2^131000, 3^80000)",
        "1.000000001 ^ (2^64 - 1)",
        "1.000000001 ^ -(10^30)",
        "1.000000001 ^ (10^3000)",
        "sqrt(2^131000 + 1) * 2^131000",
        &long_sum,
        &fractions,
        &divisors,
    ];
    for expression in hostile {
        let begun = std::time::Instant::now();
        let answer = worth(expression);
        let shown = &expression[..expression.len().min(60)];
        assert!(begun.elapsed() < Duration::from_secs(30), "{shown} took {:?}", begun.elapsed());
        assert!(answer.len() <= DIGITS_MAX, "{shown} gives {} bytes", answer.len());
    }
}

#[test]
fn the_answer_is_text_and_data() {
    let stage = Stage::new();
    let data = |expression: &str| stage.act(&tool(), json!({"expression": expression})).unwrap().data.unwrap();
    assert_eq!(data("0.1 + 0.2"), json!({"value": 0.3, "exact": true}));
    assert_eq!(data("sqrt(16)"), json!({"value": 4, "exact": true}));
    assert_eq!(data("2^53"), json!({"value": 9_007_199_254_740_992_u64, "exact": true}));
    assert_eq!(data("2^53 + 1"), json!({"value": "9007199254740993", "exact": true}));
    assert_eq!(data("2^64"), json!({"value": "18446744073709551616", "exact": true}));
    assert_eq!(data("1 / 3"), json!({"value": 1.0 / 3.0, "exact": false}));
    assert_eq!(data("1.00000000000000000001"), json!({"value": 1.0, "exact": false}));
    assert_eq!(data("1e-400"), json!({"value": "1e-400", "exact": true}));
    assert_eq!(data("sqrt(3)"), json!({"value": 1.732_050_807_568_88, "exact": false}));
    assert_eq!(data("-inf"), json!({"value": "-inf", "exact": false}));
    let error = stage.act(&tool(), json!({"expression": "1".repeat(10_001)})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidInput);
}

#[test]
fn a_delayed_answer_can_be_cut_short() {
    let stage = Stage::new();
    let halt = Halt::new().within(Duration::from_millis(20));
    let begun = std::time::Instant::now();
    let args = json!({"expression": "1", "delay_ms": 60_000});
    assert_eq!(stage.act_until(&tool(), args, &halt).unwrap_err().kind, ErrorKind::Timeout);
    assert!(begun.elapsed() < Duration::from_secs(10));
    let reply = stage.act(&tool(), json!({"expression": "1", "delay_ms": 5})).unwrap();
    assert_eq!(reply.text, "1");
}

proptest! {
    #[test]
    fn integers_survive_their_written_form(int: i128) {
        prop_assert_eq!(evaluate(&int.to_string()), Ok(Value::Int(int.into())));
    }

    #[test]
    fn sums_agree_with_the_machine(a: i64, b: i64, c in 1i64..1000) {
        let expected = i128::from(a) * i128::from(b) - i128::from(c);
        prop_assert_eq!(evaluate(&format!("{a} * {b} - {c}")), Ok(Value::Int(expected.into())));
    }

    #[test]
    fn no_text_makes_it_crash(text in ".{0,200}") {
        let _ = worth(&text);
    }

    #[test]
    fn no_jumble_of_words_makes_it_crash(
        words in proptest::collection::vec(
            prop::sample::select(vec![
                "1", "0", "2.5", "1e308", "170141183460469231731687303715884105727", "inf", "e", "+", "-", "*", "/", "//",
                "%", "^", "!", "(", ")", ",", "gcd(", "lcm(", "mod(", "round(", "log(", "max(", "floor(", "pow(",
            ]),
            0..30,
        )
    ) {
        let _ = worth(&words.join(" "));
    }
}

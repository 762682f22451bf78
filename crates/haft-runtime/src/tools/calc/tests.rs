//! What expressions are worth, and what is said about those that are worth nothing.

use super::*;
use crate::halt::Halt;
use crate::testing::Stage;
use haft_core::ErrorKind;
use proptest::prelude::*;

fn worth(expression: &str) -> String {
    evaluate(expression).map_or_else(|fault| fault.explain(expression).message, |value| value.to_string())
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
        ("2^200", "1.60693804425899e60"),
        ("1 / 3", "0.333333333333333"),
        ("1 / 3e10", "3.33333333333333e-11"),
        ("25!", "15511210043330985984000000"),
        ("171!", "inf"),
        ("170141183460469231731687303715884105727 + 1", "1.70141183460469e38"),
        ("0 * -1.5", "0"),
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
    `0xzz` is not a number of base 16, or too large
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
        "round(1, 99)",
    ];
    insta::assert_snapshot!(expressions.map(worth).join("\n"), @r"
    1 / 0 divides by zero
    5 % 0 divides by zero
    5 // 0 divides by zero
    0 ^ -1 divides by zero
    sqrt(-1) is not a real number
    ln(0) is not a real number
    log(5, 1) is not a real number
    (-8) ^ 0.333333333333333 is not a real number
    inf - inf is not a real number
    1.5! is not defined; only 0!, 1!, 2! … are
    gcd is about integers, and 1.5 is not one
    99 is not a number of digits between -15 and 15
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
fn the_answer_is_text_and_data() {
    let stage = Stage::new();
    let data = |expression: &str| stage.act(&tool(), json!({"expression": expression})).unwrap().data.unwrap();
    assert_eq!(data("0.1 + 0.2"), json!({"value": 0.3}));
    assert_eq!(data("sqrt(16)"), json!({"value": 4}));
    assert_eq!(data("2^64"), json!({"value": "18446744073709551616"}));
    assert_eq!(data("-inf"), json!({"value": "-inf"}));
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
        // The least integer is written with a sign in front of one that does not fit.
        prop_assume!(int != i128::MIN);
        prop_assert_eq!(evaluate(&Value::Int(int).to_string()), Ok(Value::Int(int)));
    }

    #[test]
    fn sums_agree_with_the_machine(a: i64, b: i64, c in 1i64..1000) {
        let expected = i128::from(a) * i128::from(b) - i128::from(c);
        prop_assert_eq!(evaluate(&format!("{a} * {b} - {c}")), Ok(Value::Int(expected)));
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

//! calc.eval beside Python: integers beside `int`, decimals and fractions beside `fractions.Fraction`, functions beside `math`.

use crate::cases::{Generator, compare};
use crate::project::Project;
use crate::python::Python;
use serde_json::{Value, json};

/// Answers a question with what is wrong about haft's answer, or with nothing.
const JUDGE: &str = r"
import ast, math, re
from decimal import Decimal, localcontext
from fractions import Fraction as F

def rounded(x, digits=0):
    scaled = abs(x) * F(10) ** digits
    whole = F(math.floor(scaled + F(1, 2))) / F(10) ** digits
    return whole if x >= 0 else -whole

def integer_root(x, degree):
    low, high = 0, 1
    while high ** degree <= x:
        high *= 2
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle ** degree <= x else (low, middle - 1)
    return low

exact = {
    'mod': lambda a, b: a % b, 'abs': abs, 'min': min, 'max': max, 'round': rounded, 'F': F,
    'floor': lambda a: F(math.floor(a)), 'ceil': lambda a: F(math.ceil(a)), 'trunc': lambda a: F(math.trunc(a)),
    'gcd': lambda *a: F(math.gcd(*map(int, a))), 'lcm': lambda *a: F(math.lcm(*map(int, a))),
    'pow': lambda a, b, m=None: a ** b if m is None else F(pow(int(a), int(b), int(m))),
}

# The quotient of two fractions that // gives is an int, and the quotient of two of those a float.
class Exact(ast.NodeTransformer):
    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.FloorDiv):
            return node
        return ast.copy_location(ast.Call(ast.Name('F', ast.Load()), [node], []), node)

def value_of(expression):
    quoted = re.sub(r'(\d+(?:\.\d+)?(?:e[+-]?\d+)?)', lambda found: f'F(\'{found[1]}\')', expression)
    tree = Exact().visit(ast.parse(quoted, mode='eval'))
    return F(eval(compile(ast.fix_missing_locations(tree), 'expression', 'eval'), dict(exact)))

def near(found, expected, digits):
    return found == expected or abs(found - expected) <= abs(expected) / F(10) ** digits

def whole_decimal(value):
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    with localcontext() as context:
        context.prec = 50
        return rest == 1 and F(Decimal(value.numerator) / Decimal(value.denominator)) == value

def answer(question):
    expression, text, data = question['expression'], question['text'], question['data']
    try:
        expected = value_of(expression)
    except (ZeroDivisionError, ValueError) as error:
        return None if text is None else f'{error}, not {text}'
    if text is None:
        return f'{expected}, not a failure'
    number = F(str(data['value']))
    if expected.denominator == 1 or whole_decimal(expected):
        if F(text) != expected:
            return f'{expected}, not {text}'
    elif not near(F(text), expected, 19):
        return f'about {float(expected)}, not {text}'
    if data['exact'] and number != expected:
        return f'the number {number} is not exactly {expected}'
    if isinstance(data['value'], float) and abs(expected) < F(10) ** 300 and data['value'] != float(expected):
        return f'the number nearest to {expected} is not {number}'
    return None
";

/// The same for functions whose values are irrational.
const FUNCTIONS: &str = r"
import math
from decimal import Decimal, localcontext
from fractions import Fraction as F

def precise(name, args):
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 100, 10**17, -10**17
        args = [Decimal(arg.numerator) / Decimal(arg.denominator) for arg in args]
        match name:
            case 'sqrt': return args[0].sqrt()
            case 'cbrt': return (1 if args[0] >= 0 else -1) * abs(args[0]) ** (Decimal(1) / 3)
            case 'ln': return args[0].ln()
            case 'log2': return args[0].ln() / Decimal(2).ln()
            case 'log10': return args[0].log10()
            case 'log': return args[0].ln() / args[1].ln()
            case 'exp' if args[0] < -10**5: return Decimal(0)
            case 'exp' if args[0] > 10**5: raise OverflowError('beyond doubles')
            case 'exp': return args[0].exp()
            case 'power': return args[0] ** args[1]
            case 'hypot': return (args[0] ** 2 + args[1] ** 2).sqrt()
    return None

def answer(question):
    name, args, text = question['name'], [F(arg) for arg in question['args']], question['text']
    try:
        expected = precise(name, args)
        if expected is None:
            expected = Decimal(getattr(math, {'rad': 'radians', 'deg': 'degrees'}.get(name, name))(*map(float, args)))
    except (ArithmeticError, ValueError) as error:
        return None if text is None else f'{error}, not {text}'
    if text is None:
        beyond = any(arg and not F('5e-324') <= abs(arg) < F('1.797e308') for arg in [*args, F(expected)])
        return None if beyond else f'{expected}, not a failure'
    found, tolerance = Decimal(text), question['tolerance']
    if abs(found - expected) <= abs(expected) * Decimal(tolerance) or abs(expected) < Decimal('1e-307') and found == 0:
        return None
    return f'{expected}, not {text}'
";

fn judge(project: &Project, python: &Python, expression: &str, mut question: Value) {
    let outcome = project.call("calc.eval", json!({"expression": expression}));
    let text = outcome.success.then(|| outcome.output.trim().to_owned());
    question["text"] = json!(text);
    question["data"] = json!(outcome.data);
    let verdict = python.ask(&question);
    assert!(verdict.is_null(), "{expression} is {}\n{}", verdict.as_str().unwrap(), outcome.output);
}

#[test]
fn integers_are_pythons() {
    let (project, python) = (Project::new(), Python::start(JUDGE));
    compare("calc::integers_are_pythons", 200, |generator| {
        let expression = expression(generator, 4, &|generator| match generator.below(4) {
            0 => (generator.next() % 10_000_000_000).to_string(),
            1 => format!("{}{:018}", generator.below(1000), generator.next() % 1_000_000_000_000_000_000),
            _ => generator.below(100).to_string(),
        });
        judge(&project, &python, &expression, json!({"expression": expression}));
    });
}

#[test]
fn decimals_are_fractions() {
    let (project, python) = (Project::new(), Python::start(JUDGE));
    compare("calc::decimals_are_fractions", 200, |generator| {
        let expression = expression(generator, 4, &|generator| match generator.below(4) {
            0 => format!("{}.{:02}", generator.below(1000), generator.below(100)),
            1 => format!("{}e{}", generator.below(1000), generator.pick(&["-20", "-3", "2", "15"])),
            2 => format!("0.{:03}", generator.below(1000)),
            _ => generator.below(100).to_string(),
        });
        judge(&project, &python, &expression, json!({"expression": expression}));
    });
}

/// Operations that are exact on exact numbers.
fn expression(generator: &mut Generator, depth: usize, leaf: &dyn Fn(&mut Generator) -> String) -> String {
    if depth == 0 || generator.chance(15) {
        return leaf(generator);
    }
    let a = expression(generator, depth - 1, leaf);
    let b = expression(generator, depth - 1, leaf);
    match generator.below(12) {
        0 => format!("mod({a}, {b})"),
        1 => format!("{}({a}, {b})", generator.pick(&["min", "max"])),
        2 => format!("{}({a})", generator.pick(&["floor", "ceil", "trunc", "round", "abs"])),
        3 => format!("round({a}, {})", generator.pick(&["0", "1", "2", "-1", "-3", "12"])),
        4 => format!("pow({a}, {})", generator.pick(&["0", "1", "2", "3", "7"])),
        5 => format!("{}(floor({a}), trunc({b}))", generator.pick(&["gcd", "lcm"])),
        6 => format!("pow(floor({a}), abs(floor({b})), {})", generator.pick(&["1", "7", "1000", "999999999999999989"])),
        _ => format!("({a} {} {b})", generator.pick(&["+", "-", "*", "/", "//"])),
    }
}

#[test]
fn functions_are_right_to_fourteen_digits() {
    let (project, python) = (Project::new(), Python::start(FUNCTIONS));
    compare("calc::functions_are_right_to_fourteen_digits", 200, |generator| {
        let name = generator.pick(&[
            "sqrt", "cbrt", "ln", "log2", "log10", "log", "exp", "power", "hypot", "sin", "cos", "tan", "asin", "acos",
            "atan", "sinh", "cosh", "tanh", "atan2", "rad", "deg",
        ]);
        // Nobody's doubles tell the angle of a power of ten.
        let angles = matches!(name, "sin" | "cos" | "tan");
        let number = |generator: &mut Generator| match generator.below(if angles { 2 } else { 4 }) {
            0 => format!("{}{}", generator.pick(&["", "-"]), generator.below(100)),
            1 => format!("{}.{:03}", generator.below(40), generator.below(1000)),
            2 => format!("0.{:05}", generator.below(100_000)),
            _ => format!(
                "{}e{}",
                generator.below(1000),
                generator.pick(&["-350", "-30", "-5", "12", "40", "200", "400"])
            ),
        };
        let (a, mut b) = (number(generator), number(generator));
        if name == "power" {
            b = format!(
                "{}{}",
                generator.pick(&["", "-"]),
                generator.pick(&["0.5", "1.5", "0.001", "2", "17", "99.75", "400"])
            );
        }
        let args = if matches!(name, "log" | "power" | "hypot" | "atan2") { vec![a, b] } else { vec![a] };
        let expression = match name {
            "power" => format!("({}) ^ ({})", args[0], args[1]),
            _ => format!("{name}({})", args.join(", ")),
        };
        judge(&project, &python, &expression, json!({"name": name, "args": args, "tolerance": "2e-14"}));
    });
}

#[test]
fn interest_is_right_to_fourteen_digits() {
    let (project, python) = (Project::new(), Python::start(FUNCTIONS));
    compare("calc::interest_is_right_to_fourteen_digits", 100, |generator| {
        let (rate, years) = (generator.below(20) + 1, generator.below(1000));
        let periods = generator.pick(&["1", "12", "365", "525600"]);
        let expression = format!("(1 + {rate}/100/{periods}) ^ ({periods} * {years})");
        let periods: usize = periods.parse().unwrap();
        let args = [format!("{}/{}", 100 * periods + rate, 100 * periods), (periods * years).to_string()];
        judge(&project, &python, &expression, json!({"name": "power", "args": args, "tolerance": "1e-14"}));
    });
}

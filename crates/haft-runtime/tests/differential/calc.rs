//! calc.eval beside Python's integers.

use crate::cases::{Generator, compare};
use crate::project::Project;
use crate::python::Python;
use serde_json::json;

const INTEGERS: &str = "
def answer(expression):
    try:
        return str(eval(expression))
    except ZeroDivisionError:
        return None
";

#[test]
fn integers_are_pythons() {
    let (project, python) = (Project::new(), Python::start(INTEGERS));
    compare("calc::integers_are_pythons", 300, |generator| {
        let expression = integer_expression(generator, 3);
        let expected = python.ask(&json!(expression));
        let outcome = project.call("calc.eval", json!({"expression": expression}));
        let found = outcome.success.then(|| outcome.output.trim().to_owned());
        assert_eq!(found.as_deref(), expected.as_str(), "{expression}");
    });
}

fn integer_expression(generator: &mut Generator, depth: usize) -> String {
    if depth == 0 || generator.chance(20) {
        return generator.below(1000).to_string();
    }
    let (left, right) = (integer_expression(generator, depth - 1), integer_expression(generator, depth - 1));
    format!("({left} {} {right})", generator.pick(&["+", "-", "*", "//"]))
}

//! Tests that the runner counts as skipped, by name, where the person who runs them does without real programs. The
//! built-in harness decides that when it compiles, and a test that returned early would count as passed.

use libtest_mimic::Trial;

/// A test under the name that the runner shows. Any of these variables, set to 1, leaves it out.
pub(crate) fn trial(name: &str, left_out_by: &[&str], test: fn()) -> Trial {
    let is_set = |variable: &&str| std::env::var_os(variable).is_some_and(|value| value == "1");
    let trial = Trial::test(name, move || {
        test();
        Ok(())
    });
    trial.with_ignored_flag(left_out_by.iter().any(is_set))
}

/// The tests of some modules: `module["VARIABLE"]: test, test;`, with the variables that leave them out, if there are any. A
/// test that is not named here is dead code, which the compiler reports.
macro_rules! trials {
    ($($module:ident $left_out_by:tt: $($test:ident),+;)+) => {
        vec![$($($crate::trials::trial(
            concat!(stringify!($module), "::", stringify!($test)),
            &$left_out_by,
            $crate::$module::$test,
        )),+),+]
    };
}
pub(crate) use trials;

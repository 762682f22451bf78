//! Tests that the runner counts as skipped, by name, where the person who runs them does without real programs. The
//! built-in harness decides that when it compiles, so that a test that returned early would count as passed.

use libtest_mimic::Trial;

/// What a test runs besides haft itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requires {
    /// Programs that `cargo xtask needs` installs. `HAFT_TEST_WITHOUT_MCP=1` leaves the test out.
    RealPrograms,
    /// Nothing that could be left out.
    #[allow(dead_code, reason = "not every test binary has such tests")]
    Nothing,
}

/// A test under the name that the runner shows.
pub(crate) fn trial(name: &str, requires: Requires, test: fn()) -> Trial {
    let trial = Trial::test(name, move || {
        test();
        Ok(())
    });
    trial.with_ignored_flag(requires == Requires::RealPrograms && is_left_out())
}

/// Whether the person who runs the tests does without real programs.
fn is_left_out() -> bool {
    std::env::var_os("HAFT_TEST_WITHOUT_MCP").is_some_and(|value| value == "1")
}

/// The tests of some modules, as a list of trials: `module(what it requires): test, test;`. A test that is not named here
/// is dead code, which the compiler reports.
macro_rules! trials {
    ($($module:ident($requires:ident): $($test:ident),+;)+) => {
        vec![$($($crate::trials::trial(
            concat!(stringify!($module), "::", stringify!($test)),
            $crate::trials::Requires::$requires,
            $crate::$module::$test,
        )),+),+]
    };
}
pub(crate) use trials;

//! Which cargo builds the chores start.
//!
//! Cargo chooses the features of a shared dependency (tokio's `test-util`, say) anew for each set of packages and targets
//! that it is asked to build. Two sets that differ in one feature build nearly everything twice. So every chore that needs
//! a program builds the same set, with the development dependencies of all packages, as the tests do.

use crate::sh;
use anyhow::Result;

/// The fuzz crate needs a C++ compiler, so no step but its own may touch it.
pub(crate) const ALL_BUT_FUZZ: [&str; 3] = ["--workspace", "--exclude", "haft-fuzz"];

/// Builds `target/debug/haft`, the other programs and the examples.
pub(crate) fn programs() -> Result<()> {
    sh::run(sh::cargo(&["build"]).args(ALL_BUT_FUZZ).args(["--bins", "--examples"]))
}

/// Builds the fuzz targets the ordinary way, to know that they still fit the code.
pub(crate) fn fuzz_targets() -> Result<()> {
    sh::run(&mut sh::cargo(&["build", "--workspace", "--bins", "--examples"]))
}

//! Fault injection: system calls that a test declares to be missing, as they are on old kernels, in container filters and on
//! some file systems. Absent from release builds.
//!
//! `HAFT_REFUSE` names them, separated by commas, for a whole process; [`refuse`] does for one thread.

#[cfg(debug_assertions)]
mod injected {
    use std::cell::RefCell;
    use std::sync::OnceLock;

    thread_local! {
        static REFUSED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    /// Takes back what was declared when it is dropped.
    #[derive(Debug)]
    #[must_use]
    pub struct Refusal(usize);

    impl Drop for Refusal {
        fn drop(&mut self) {
            REFUSED.with_borrow_mut(|refused| refused.truncate(self.0));
        }
    }

    /// Declares system calls to be missing on this thread, until the value is dropped.
    pub fn refuse(names: &[&'static str]) -> Refusal {
        REFUSED.with_borrow_mut(|refused| {
            let before = refused.len();
            refused.extend_from_slice(names);
            Refusal(before)
        })
    }

    /// Whether a system call, or a flag of it, is declared to be missing.
    pub fn is_refused(name: &str) -> bool {
        static PROCESS: OnceLock<Vec<String>> = OnceLock::new();
        let process = PROCESS.get_or_init(|| {
            let named = std::env::var("HAFT_REFUSE").unwrap_or_default();
            named.split(',').map(str::to_owned).collect()
        });
        process.iter().any(|refused| refused == name) || REFUSED.with_borrow(|refused| refused.contains(&name))
    }
}

#[cfg(debug_assertions)]
pub use injected::{Refusal, is_refused, refuse};

/// Whether a system call, or a flag of it, is declared to be missing.
#[cfg(not(debug_assertions))]
pub fn is_refused(_: &str) -> bool {
    false
}

//! Which calls of a list may run together: consecutive concurrency-safe ones do, others run alone. The list may still
//! be growing while its first calls run.

/// How many calls run at once.
pub const AT_ONCE: usize = 10;

/// The calls that are running, as far as it matters to the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Running {
    calls: usize,
    alone: bool,
}

impl Running {
    /// Whether the next call may start now. `safe` says that it is concurrency-safe.
    pub const fn admits(self, safe: bool) -> bool {
        self.calls == 0 || (safe && !self.alone && self.calls < AT_ONCE)
    }

    /// It starts.
    pub const fn start(&mut self, safe: bool) {
        self.calls += 1;
        self.alone = !safe;
    }

    /// The first of them has ended.
    pub const fn end(&mut self) {
        self.calls = self.calls.saturating_sub(1);
        self.alone = self.alone && self.calls > 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What runs together if nothing ends before it is waited for.
    fn batches(safe: &[bool]) -> Vec<usize> {
        let (mut running, mut sizes) = (Running::default(), Vec::new());
        for &safe in safe {
            if running.admits(safe) && running != Running::default() {
                *sizes.last_mut().unwrap() += 1;
            } else {
                running = Running::default();
                sizes.push(1);
            }
            running.start(safe);
        }
        sizes
    }

    #[test]
    fn the_documents_example() {
        // Glob, Grep, Edit, Glob, Grep, Bash
        assert_eq!(batches(&[true, true, false, true, true, false]), [2, 1, 2, 1]);
        assert!(batches(&[]).is_empty());
        assert_eq!(batches(&[false, false]), [1, 1]);
        assert_eq!(batches(&[true; AT_ONCE + 1]), [AT_ONCE, 1]);
    }

    #[test]
    fn one_that_ends_makes_room_for_the_next() {
        let mut running = Running::default();
        (0..AT_ONCE).for_each(|_| running.start(true));
        assert!(!running.admits(true));
        running.end();
        assert!(running.admits(true) && !running.admits(false));
        let mut running = Running::default();
        running.start(false);
        assert!(!running.admits(true) && !running.admits(false));
        running.end();
        assert!(running.admits(false));
    }
}

//! Progress at a pace that a listener can follow: lines come one by one as long as they come slowly; of a
//! flood only some are told, and how many were not.

use std::time::{Duration, Instant};

/// How many lines may come at once.
const BURST: u32 = 20;
/// How often one more may.
const EACH: Duration = Duration::from_millis(50);
/// How much of a line is told.
const COLUMNS: usize = 500;

/// Tells lines at a pace.
pub(crate) struct Pace {
    left: u32,
    since: Instant,
    skipped: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { left: BURST, since: Instant::now(), skipped: 0 }
    }
}

impl Pace {
    /// Tells a line, if it is time for one.
    pub(crate) fn line(&mut self, line: &[u8], tell: &mut dyn FnMut(String)) {
        if self.left == 0 {
            self.refill();
        }
        let Some(left) = self.left.checked_sub(1) else {
            self.skipped += 1;
            return;
        };
        self.left = left;
        if self.skipped > 0 {
            tell(format!("… {} lines", std::mem::take(&mut self.skipped)));
        }
        // No character takes more than four bytes.
        let line = &line[..line.len().min(4 * COLUMNS)];
        tell(haft_core::preview::cut(&String::from_utf8_lossy(line), COLUMNS));
    }

    fn refill(&mut self) {
        let passed = self.since.elapsed().as_millis() / EACH.as_millis();
        let more = u32::try_from(passed).unwrap_or(BURST).min(BURST);
        if more > 0 {
            self.left = more;
            self.since = Instant::now();
        }
    }
}

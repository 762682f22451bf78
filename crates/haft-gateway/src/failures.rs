//! How often an address may be wrong: a bucket each, in a table that does not grow.
//!
//! Whoever has the right token is let in all the same: otherwise anybody on this machine could lock its owner out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many failures are answered at once,
const BURST: u32 = 10;
/// and then one each time this has passed.
const REFILL: Duration = Duration::from_secs(3);
/// How many addresses are told apart. Beyond, new ones share a bucket.
const ADDRESSES: usize = 4096;

/// The failures of each address.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<Option<IpAddr>, Bucket>>);

struct Bucket {
    spent: u32,
    since: Instant,
}

impl Failures {
    /// Notes a failure. Says after how many seconds to come again, if there were too many.
    pub(crate) fn note(&self, address: IpAddr, now: Instant) -> Option<u64> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.len() >= ADDRESSES && !table.contains_key(&Some(address)) {
            table.retain(|_, bucket| bucket.left(now) < BURST);
        }
        let full = table.len() >= ADDRESSES && !table.contains_key(&Some(address));
        let key = if full { None } else { Some(address) };
        let bucket = table.entry(key).or_insert(Bucket { spent: 0, since: now });
        if bucket.left(now) == 0 {
            let next = REFILL.saturating_sub(now.duration_since(bucket.since));
            return Some(next.as_secs() + 1);
        }
        bucket.spent += 1;
        None
    }
}

impl Bucket {
    fn left(&mut self, now: Instant) -> u32 {
        let refills =
            u32::try_from(now.duration_since(self.since).as_millis() / REFILL.as_millis()).unwrap_or(u32::MAX);
        if refills >= self.spent {
            (self.spent, self.since) = (0, now);
        } else if refills > 0 {
            self.spent -= refills;
            self.since += REFILL * refills;
        }
        BURST - self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn failures_run_out_and_come_back_with_time() {
        let (failures, peer, start) = (Failures::default(), IpAddr::from([127, 0, 0, 1]), Instant::now());
        let tries = |now: Instant| (0..BURST + 5).filter(|_| failures.note(peer, now).is_none()).count();
        assert_eq!(tries(start), 10);
        assert_eq!(failures.note(peer, start), Some(4));
        assert_eq!(tries(start + REFILL * 2), 2);
        assert_eq!(tries(start + REFILL * 1000), 10);
    }

    #[test]
    fn the_table_does_not_grow() {
        let (failures, now) = (Failures::default(), Instant::now());
        for number in 0..3 * u32::try_from(ADDRESSES).unwrap() {
            failures.note(IpAddr::from(Ipv4Addr::from(number)), now);
        }
        assert!(failures.0.lock().unwrap().len() <= ADDRESSES + 1);
        let crowded = IpAddr::from([10, 0, 0, 1]);
        assert!(failures.note(crowded, now).is_some(), "newcomers share what is left");
    }
}

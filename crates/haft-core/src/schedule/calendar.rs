//! Times by the calendar: a cron expression, read by the clock on the wall of some zone.
//!
//! The expression is searched without a zone, and what is found is looked up in one. Searching in the zone itself is what
//! cron libraries offer, and where it goes wrong: on a day without 2:30, `30 1 * * *` must still happen once.

use croner::Cron;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// So many times in a row may turn out not to be later than the one before: those of a whole day, by the minute.
const STEPS_MAX: usize = 25 * 60;

/// Times by the calendar.
#[derive(Debug, Clone)]
pub struct Calendar {
    cron: Cron,
    zone: TimeZone,
    /// Whether hour and minute are given, rather than every or every so many.
    fixed: bool,
}

impl Calendar {
    pub(super) fn new(cron: Cron, text: &str, zone: TimeZone) -> Self {
        let fixed = !text.split_whitespace().take(2).any(|field| field.contains(['*', '/']));
        Self { cron, zone, fixed }
    }

    /// The first time after a moment.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        if self.fixed { self.next_fixed(after) } else { self.next_by_the_wall(after) }
    }

    /// The last time before a moment.
    pub(super) fn before(&self, moment: Timestamp) -> Option<Timestamp> {
        if self.fixed { self.fixed_before(moment) } else { self.by_the_wall_before(moment) }
    }

    /// Each time on the wall means one moment, and a later one never an earlier: the search goes on from what the wall
    /// shows now.
    fn next_fixed(&self, after: Timestamp) -> Option<Timestamp> {
        let mut wall = after.to_zoned(self.zone.clone()).datetime();
        for _ in 0..STEPS_MAX {
            wall = self.following(wall, false)?;
            let meant = self.meant(wall)?;
            if meant > after {
                return Some(meant);
            }
        }
        None
    }

    fn fixed_before(&self, moment: Timestamp) -> Option<Timestamp> {
        // Where clocks were put back, what the wall shows next has been before.
        let offset = self.zone.to_offset(moment);
        let earlier = self.zone.preceding(moment).next().map_or(offset, |change| {
            moment_before(change.timestamp()).map_or(offset, |before| self.zone.to_offset(before))
        });
        let mut wall = offset.max(earlier).to_datetime(moment);
        for _ in 0..STEPS_MAX {
            wall = self.preceding(wall)?;
            let meant = self.meant(wall)?;
            if meant < moment {
                return Some(meant);
            }
        }
        None
    }

    /// Between two changes of the clock, wall and time run side by side.
    fn next_by_the_wall(&self, after: Timestamp) -> Option<Timestamp> {
        let (mut from, mut inclusive) = (after, false);
        let mut changes = self.zone.following(after);
        loop {
            let offset = self.zone.to_offset(from);
            let found = offset.to_timestamp(self.following(offset.to_datetime(from), inclusive)?).ok();
            match (found, changes.next().map(|change| change.timestamp())) {
                (Some(found), None) => return Some(found),
                (Some(found), Some(change)) if found < change => return Some(found),
                (_, Some(change)) => (from, inclusive) = (change, true),
                (None, None) => return None,
            }
        }
    }

    fn by_the_wall_before(&self, moment: Timestamp) -> Option<Timestamp> {
        let mut to = moment;
        let mut changes = self.zone.preceding(moment);
        loop {
            let offset: Offset = self.zone.to_offset(moment_before(to)?);
            let found = offset.to_timestamp(self.preceding(offset.to_datetime(to))?).ok()?;
            match changes.next().map(|change| change.timestamp()) {
                Some(change) if found < change => to = change,
                _ => return Some(found),
            }
        }
    }

    /// The moment that a time on the wall means: the first of two, and the first after a gap.
    fn meant(&self, wall: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
            AmbiguousOffset::Gap { before, .. } => {
                let inside = before.to_timestamp(wall).ok()?.checked_add(jiff::SignedDuration::from_nanos(1)).ok()?;
                self.zone.preceding(inside).next().map(|change| change.timestamp())
            }
        }
    }

    fn following(&self, wall: DateTime, inclusive: bool) -> Option<DateTime> {
        self.cron.find_next_occurrence(&zoneless(wall)?, inclusive).ok().map(|found| found.datetime())
    }

    fn preceding(&self, wall: DateTime) -> Option<DateTime> {
        self.cron.find_previous_occurrence(&zoneless(wall)?, false).ok().map(|found| found.datetime())
    }
}

fn zoneless(wall: DateTime) -> Option<Zoned> {
    wall.to_zoned(TimeZone::UTC).ok()
}

fn moment_before(moment: Timestamp) -> Option<Timestamp> {
    moment.checked_sub(jiff::SignedDuration::from_nanos(1)).ok()
}

//! Laws of schedules, over years that have days of 23 and of 25 hours.

use super::tests::{at, zones};
use super::*;
use proptest::prelude::*;

/// Zones that differ in what they do to their clocks, and when: by half an hour, at midnight, in the south, not at all.
const PLACES: &[&str] = &[
    "UTC",
    "Europe/Vienna",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Santiago",
    "Asia/Kolkata",
];

fn field(low: u8, high: u8) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        3 => (low..=high).prop_map(|at| at.to_string()),
        1 => (2u8..=high.min(20)).prop_map(|step| format!("*/{step}")),
        1 => (low..=high, low..=high).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
    ]
}

fn schedule() -> impl Strategy<Value = (String, &'static str)> {
    let cron = (field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6))
        .prop_map(|(minute, hour, day, month, week)| format!("{minute} {hour} {day} {month} {week}"));
    let every = (1u32..100_000).prop_map(|seconds| format!("{seconds}s"));
    (prop_oneof![4 => cron, 1 => every], prop::sample::select(PLACES))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn times_go_forward_and_none_comes_twice((text, zone) in schedule(), start in 0i64..1_000) {
        let mut now = at("2026-01-01T00:00:00Z") + start * 86_400_000;
        let schedule = Schedule::read(&text, Some(zone), now, &zones).unwrap();
        for _ in 0..200 {
            let Some(next) = schedule.next(now) else { break };
            prop_assert!(next > now, "{text} {zone}: {next} after {now}");
            // Nothing lies between: asked from anywhere in between, the answer is the same.
            let between = now + (next - now) / 2;
            prop_assert_eq!(schedule.next(between), Some(next), "{} {}", text, zone);
            now = next;
        }
    }

    #[test]
    fn weeks_of_looking_meet_each_time_once(
        (text, zone) in schedule(),
        start in 0i64..800,
        steps in prop::collection::vec(1i64..200_000, 1..60),
    ) {
        let begin = at("2026-01-01T00:00:00Z") + start * 86_400_000;
        let schedule = Schedule::read(&text, Some(zone), begin, &zones).unwrap();
        for policy in Missed::ALL {
            let (mut now, mut next, mut met) = (begin, schedule.next(begin), Vec::new());
            for step in &steps {
                // A clock that is set back now and then, and machines that sleep for two days.
                now += if step % 7 == 0 { -step * 300 } else { step * 1_000 };
                while let Some(first) = next {
                    let due = schedule.due(first, now, policy);
                    prop_assert!(due.next.is_none_or(|next| next >= first));
                    next = due.next;
                    met.extend(due.run);
                    if due.run.is_none() {
                        break;
                    }
                }
            }
            prop_assert!(met.windows(2).all(|pair| pair[0] < pair[1]), "{text} {zone} {policy:?}: {met:?}");
            // What was met is a time of the schedule.
            for time in met.iter().take(50) {
                prop_assert_eq!(schedule.next(time - 1), Some(*time), "{} {} {:?}", text, zone, policy);
            }
        }
    }
}

#[test]
fn a_daily_time_happens_once_on_each_of_a_thousand_days() {
    for zone in PLACES {
        let tz = zones(zone).unwrap();
        for time in ["0:00", "0:30", "1:30", "2:00", "2:30", "3:00", "23:59"] {
            let mut now = at("2026-01-01T12:00:00Z");
            let schedule = Schedule::read(&format!("daily at {time}"), Some(zone), now, &zones).unwrap();
            let mut days = Vec::new();
            for _ in 0..1_000 {
                now = schedule.next(now).unwrap();
                days.push(Timestamp::from_millisecond(now).unwrap().to_zoned(tz.clone()).date());
            }
            let gaps: Vec<_> = days.windows(2).filter(|pair| pair[0].tomorrow().unwrap() != pair[1]).collect();
            assert!(gaps.is_empty(), "{zone} at {time}: {gaps:?}");
        }
    }
}

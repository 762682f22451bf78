//! Times come, are met, are missed.

use crate::{BEGIN, Ground, Scene, at, shown};
use haft_core::{CallError, ErrorKind};
use haft_runtime::Halt;
use haft_runtime::promised::run_id;
use haft_store::tasks::{Ended, LEASE_MS, TaskStatus};
use std::collections::BTreeMap;
use std::time::Duration;

#[test]
fn weeks_of_schedules_are_kept_to_the_second_over_a_change_of_clocks() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for ground in [Some(Ground::file()), Ground::server()].into_iter().flatten() {
        let scene = Scene::new(ground);
        let vienna = |schedule: &str| format!("{schedule} Europe/Vienna");
        runtime.block_on(scene.add("work", &vienna("weekdays at 9:00"), BEGIN, |_| {}));
        runtime.block_on(scene.add("night", &vienna("daily at 2:30"), BEGIN, |_| {}));
        runtime.block_on(scene.add("quarter", &vienna("0 */6 * * *"), BEGIN, |_| {}));
        runtime.block_on(scene.add("period", "every 7 hours", BEGIN, |_| {}));
        runtime.block_on(scene.live(BEGIN, "2026-11-09T00:00"));
        let started = scene.started();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &started {
            *counts.entry(line.split_once(' ').unwrap().0).or_default() += 1;
        }
        let counts: Vec<String> = counts.iter().map(|(title, count)| format!("{title} {count}")).collect();
        assert_eq!(counts.join(", "), "night 28, period 96, quarter 112, work 20");
        let mut unique = started.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), started.len(), "no time is met twice");
        let of = |title: &str, day: &str| {
            started
                .iter()
                .filter(|line| line.starts_with(&format!("{title} {day}")))
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        };
        // The clocks of Vienna are put back on 25 October: 9:00 is an hour later after that.
        assert_eq!(of("work", "10-23"), "work 10-23T07:00:00");
        assert_eq!(of("work", "10-26"), "work 10-26T08:00:00");
        assert_eq!(of("night", "10-25"), "night 10-25T00:30:00");
        assert_eq!(
            of("quarter", "10-25"),
            "quarter 10-25T05:00:00, quarter 10-25T11:00:00, quarter 10-25T17:00:00, quarter 10-25T23:00:00"
        );
    }
}

#[tokio::test]
async fn what_a_sleeping_machine_missed_is_made_up_for_by_policy() {
    let scene = Scene::new(Ground::file());
    for policy in ["skip", "once", "all"] {
        scene.add(policy, "daily at 7:00", BEGIN, |wanted| wanted.missed = Some(policy.to_owned())).await;
    }
    let plain = scene.add("default", "daily at 7:00", BEGIN, |_| {}).await;
    scene.live(BEGIN, "2026-10-13T12:00").await;
    assert_eq!(scene.started().len(), 8);
    // Asleep from Tuesday noon to Saturday evening.
    scene.live("2026-10-17T20:00", "2026-10-17T20:00").await;
    let mut started = scene.started();
    started.sort();
    let expected = ["all 10-14", "all 10-15", "all 10-16", "all 10-17", "default 10-17", "once 10-17"];
    assert_eq!(started, expected.map(|line| format!("{line}T07:00:00")));
    let task = scene.task(&plain.id).await;
    assert_eq!((task.standing.missed, task.standing.next_ms), (3, Some(at("2026-10-18T07:00"))));
}

#[tokio::test]
async fn a_clock_that_is_set_back_starts_nothing_again() {
    let scene = Scene::new(Ground::file());
    scene.add("daily", "daily at 7:00", BEGIN, |wanted| wanted.missed = Some("all".to_owned())).await;
    scene.live(BEGIN, "2026-10-14T12:00").await;
    assert_eq!(scene.started().len(), 3);
    // Set back by two days, and on from there.
    for hour in 0..48 {
        let now = at("2026-10-12T12:00") + hour * 3_600_000;
        assert_eq!(scene.scheduler.tick(now).await.unwrap(), 0, "{}", shown(now));
    }
    scene.live("2026-10-14T12:00", "2026-10-15T12:00").await;
    assert_eq!(scene.started(), ["daily 10-15T07:00:00"]);
}

#[tokio::test]
async fn a_task_has_one_run_at_a_time() {
    let scene = Scene::new(Ground::file());
    let task = scene.add("long", "every 10 minutes", BEGIN, |_| {}).await;
    assert_eq!(scene.scheduler.tick(at("2026-10-12T00:10")).await.unwrap(), 1);
    // It takes a week: a person was asked.
    let run = run_id(&task.id, at("2026-10-12T00:10")).to_string();
    for day in 13..19 {
        assert_eq!(scene.scheduler.tick(at(&format!("2026-10-{day}T00:00"))).await.unwrap(), 0);
    }
    let answered = at("2026-10-19T00:05");
    scene.store.task_ran_at(&task.id, &run, Ended::Well, "", answered).await.unwrap();
    assert_eq!(scene.scheduler.tick(answered).await.unwrap(), 1);
    assert_eq!(scene.started(), ["long 10-12T00:10:00", "long 10-19T00:00:00"]);
}

#[tokio::test]
async fn whoever_dies_before_starting_is_followed_by_another() {
    let scene = Scene::new(Ground::file());
    let task = scene.add("daily", "daily at 7:00", BEGIN, |_| {}).await;
    let seven = at("2026-10-12T07:00");
    // As if the process had died between claiming and starting: its store failed it.
    *scene.ledger.trouble.lock().unwrap() = Some(CallError::internal("the disk is full"));
    assert_eq!(scene.scheduler.tick(seven).await.unwrap_err().kind, ErrorKind::Internal);
    *scene.ledger.trouble.lock().unwrap() = None;
    assert_eq!(scene.scheduler.tick(seven + LEASE_MS - 1).await.unwrap(), 0);
    assert_eq!(scene.scheduler.tick(seven + LEASE_MS).await.unwrap(), 1);
    // It is the run for seven o'clock, whenever it is started.
    assert_eq!(scene.started(), ["daily 10-12T07:00:00"]);
    assert_eq!(scene.task(&task.id).await.standing.run, Some(run_id(&task.id, seven).to_string()));
    scene.end_all(Ended::Well, seven + 2 * LEASE_MS).await;
    assert_eq!(scene.task(&task.id).await.standing.next_ms, Some(at("2026-10-13T07:00")));
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let scene = Scene::new(Ground::file());
    let once = scene.add("once", "in 1 hour", BEGIN, |wanted| wanted.retries = Some(1)).await;
    let daily = scene.add("daily", "daily at 1:00", BEGIN, |_| {}).await;
    *scene.ledger.trouble.lock().unwrap() = Some(CallError::invalid("no agent is configured").hint("configure one"));
    assert_eq!(scene.scheduler.tick(at("2026-10-12T01:00")).await.unwrap(), 0);
    let task = scene.task(&once.id).await;
    let expected = (TaskStatus::Failed, Some("no agent is configured\nhint: configure one"), None);
    assert_eq!((task.status, task.standing.result.as_deref(), task.standing.next_ms), expected);
    // What repeats is tried again at its next time.
    let task = scene.task(&daily.id).await;
    assert_eq!((task.status, task.standing.next_ms), (TaskStatus::Pending, Some(at("2026-10-13T01:00"))));
}

#[tokio::test]
async fn a_zone_that_is_gone_is_told_once() {
    let scene = Scene::new(Ground::file());
    let task = scene.add("daily", "daily at 7:00", BEGIN, |_| {}).await;
    scene.store.edit_task(&task.id, |task| task.promise.zone = Some("Atlantis/Capital".to_owned())).await.unwrap();
    assert_eq!(scene.scheduler.tick(at("2026-10-12T07:00")).await.unwrap(), 0);
    let task = scene.task(&task.id).await;
    assert_eq!((task.status, task.standing.next_ms), (TaskStatus::Failed, None));
    assert!(task.standing.result.unwrap().contains("Atlantis/Capital"));
}

#[tokio::test(start_paused = true)]
async fn it_wakes_when_something_is_due_and_when_something_is_new() {
    let scene = Scene::new(Ground::file());
    let begin = tokio::time::Instant::now();
    let clock = || at(BEGIN) + i64::try_from(begin.elapsed().as_millis()).unwrap();
    let task = scene.add("minutes", "every 10 minutes", BEGIN, |_| {}).await;
    let halt = Halt::new();
    let story = async {
        let mut seen = Vec::new();
        while seen.len() < 5 {
            scene.ledger.news.notified().await;
            seen.extend(scene.started());
            // It is noted as started before it ends.
            while scene.task(&task.id).await.standing.run.is_none() {
                tokio::task::yield_now().await;
            }
            scene.end_all(Ended::Well, clock()).await;
        }
        // Somebody makes one that is due now.
        let hand = |wanted: &mut haft_runtime::promised::Wanted| {
            wanted.schedule = None;
            wanted.assignee = Some("haft".to_owned());
        };
        scene.add("now", "", &jiff::Timestamp::from_millisecond(clock()).unwrap().to_string(), hand).await;
        let before = tokio::time::Instant::now();
        scene.ledger.news.notified().await;
        assert_eq!(before.elapsed(), Duration::ZERO, "it was told");
        halt.cancel();
        seen
    };
    let (seen, ()) = tokio::join!(story, scene.scheduler.run_by(&halt, clock));
    let minutes = [10, 20, 30, 40, 50].map(|minute| format!("minutes 10-12T00:{minute}:00"));
    assert_eq!(seen, minutes);
}

//! A server that goes away while calls are made: they wait, and each is done once or not at all.

use crate::real::Server;
use crate::{Machine, until};
use serde_json::json;

#[test]
fn calls_wait_for_a_server_that_restarts_and_none_is_lost_or_doubled() {
    let Some(server) = Server::start("", &[]) else { return };
    let here = Machine::new(server.address());
    here.config("approval: {level: yolo}\n");
    let gateway = here.serve();
    let ledger = here.root().join("ledger");
    let made = std::thread::scope(|scope| {
        let calls = scope.spawn(|| {
            let one = |number: usize| {
                let command = format!("echo {number} >> ledger");
                gateway.call("shell.exec", json!({ "command": command }), 0)
            };
            (0..40).map(one).collect::<Vec<_>>()
        });
        for _ in 0..3 {
            let size = || ledger.metadata().map_or(0, |meta| meta.len());
            let before = size();
            until(|| (size() > before || calls.is_finished()).then_some(()));
            server.crash();
            until(|| (gateway.health() == "degraded").then_some(()));
            server.up();
        }
        calls.join().unwrap()
    });
    until(|| (gateway.health() == "ok").then_some(()));
    let written = here.read("ledger");
    let log = here.text(&["log", "--json", "-n", "10000"]);
    for (number, (status, outcome)) in made.iter().enumerate() {
        let times = written.lines().filter(|line| *line == number.to_string()).count();
        let ran = outcome["success"] == true;
        assert_eq!(times, usize::from(ran), "{number}: {status} {outcome:#}");
        if ran {
            let id = outcome["call_id"].as_str().unwrap();
            let of_it = |kind: &str| log.lines().filter(|line| line.contains(id) && line.contains(kind)).count();
            let records = (of_it("\"kind\":\"intent\""), of_it("\"kind\":\"outcome\""));
            assert_eq!(records, (1, 1), "{number}");
        }
    }
    let done = made.iter().filter(|(_, outcome)| outcome["success"] == true).count();
    assert!(done >= 35, "what was under way when it crashed may fail, and nothing else: {done} of {}", made.len());
    assert!(here.text(&["log", "verify"]).contains("the chain holds"));
}

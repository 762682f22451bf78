//! Many at once, in little memory. Measured in a process of its own.

use super::server::{Answer, Server};
use super::{Stage, alone, part, passes, run};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::Write;
use std::time::Duration;

const FETCHES: usize = 200;
const EXTRA_MAX_KB: u64 = 64 << 10;

#[test]
fn two_hundred_at_once_stay_within_their_memory() {
    if part().is_none() {
        return passes(alone(&[], "memory::two_hundred_at_once_stay_within_their_memory"));
    }
    run(two_hundred_at_once());
}

/// A line of what the kernel says about this process, in kB.
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let found = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    found.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

async fn two_hundred_at_once() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..16 {
        bomb.write_all(&zeros).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
    let bomb = [head.as_bytes(), &bomb].concat();
    let plain = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_vec();
    let server = Server::start(move |request| {
        if request.contains("/bomb") {
            Answer::Bytes(bomb.clone())
        } else {
            Answer::Endless(plain.clone(), vec![b'x'; 16 << 10], Duration::ZERO)
        }
    })
    .await;
    let stage = Stage::reaching(&[server.port()]);
    // What is made once is not counted.
    assert!(stage.ask(json!({"url": server.url("/"), "bytes": 10_000})).await.success);
    let before = memory("VmRSS");
    let asked = (0..FETCHES).map(|at| {
        let url = server.url(if at % 4 == 0 { "/bomb" } else { "/" });
        stage.ask(json!({"url": url, "bytes": 1 << 20}))
    });
    let outcomes = futures_util::future::join_all(asked).await;
    let extra = memory("VmHWM").saturating_sub(before);
    for outcome in &outcomes {
        let data = super::data(outcome);
        assert_eq!((&data["size"], &data["cut"]), (&json!(1 << 20), &json!(true)), "{outcome:?}");
    }
    assert!(extra <= EXTRA_MAX_KB, "{FETCHES} fetches took {extra} kB more than {before} kB");
}

//! Two gateways in two networks, the server in a third; one is cut off, and healed.

use crate::real::Server;
use crate::{Machine, until};
use serde_json::json;
use std::process::{Child, Command, Stdio};

/// A network of its own, as long as this is there.
struct Network(Child);

impl Network {
    /// None where nobody may make one.
    fn new() -> Option<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up && echo ready && exec sleep 600"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut said = [0; 5];
        let ready = std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said);
        let made = Self(child);
        if ready.is_err() {
            eprintln!("left out: only root may make networks");
            return None;
        }
        Some(made)
    }

    /// The words by which something runs in it.
    fn enter(&self) -> Vec<String> {
        ["nsenter", "-t", &self.0.id().to_string(), "-n"].map(str::to_owned).to_vec()
    }

    fn ip(&self, words: &str) {
        let enter = self.enter();
        let done = Command::new(&enter[0]).args(&enter[1..]).arg("ip").args(words.split(' ')).status().unwrap();
        assert!(done.success(), "ip {words}");
    }

    /// A wire to another one: this end gets `net.1`, the other `net.2`.
    fn wire(&self, name: &str, other: &Self, net: &str) {
        self.ip(&format!("link add {name} type veth peer name {name}x netns {}", other.0.id()));
        self.ip(&format!("addr add {net}.1/24 dev {name}"));
        self.ip(&format!("link set {name} up"));
        other.ip(&format!("addr add {net}.2/24 dev {name}x"));
        other.ip(&format!("link set {name}x up"));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn machine(network: &Network, net: &str) -> Machine {
    let mut machine = Machine::new(format!("postgres://haft@{net}.1:5432/postgres?sslmode=disable"));
    machine.inside = network.enter();
    machine.config("approval: {auto_approve: [\"file.write\"]}\n");
    machine
}

#[test]
fn who_is_cut_off_says_so_loses_nothing_and_goes_on() {
    let (Some(middle), Some(left), Some(right)) = (Network::new(), Network::new(), Network::new()) else { return };
    middle.wire("left", &left, "10.91.1");
    middle.wire("right", &right, "10.91.2");
    let inside = middle.enter();
    let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
    let Some(_server) = Server::start("-c listen_addresses=* -c port=5432", &inside) else { return };
    let (near, far) = (machine(&left, "10.91.1"), machine(&right, "10.91.2"));
    let (stays, cut) = (near.serve(), far.serve());
    let write = |path: &str| json!({"path": path, "content": "hello"});
    assert_eq!(stays.call("file.write", write("before"), 0).0, 200);
    assert_eq!(cut.call("file.write", write("before"), 0).0, 200);
    middle.ip("link set right down");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| cut.call("file.write", write("meanwhile"), 0));
        until(|| (cut.health() == "degraded").then_some(()));
        assert!(!far.root().join("meanwhile").exists(), "what cannot be recorded is not done");
        for number in 0..3 {
            assert_eq!(stays.call("file.write", write(&number.to_string()), 0).0, 200, "the other one goes on");
        }
        assert_eq!(stays.health(), "ok");
        middle.ip("link set right up");
        let (status, outcome) = waits.join().unwrap();
        assert_eq!((status, &outcome["success"]), (200, &json!(true)), "it waited: {outcome:#}");
        let id = outcome["call_id"].as_str().unwrap();
        let ends = until(|| {
            let log = near.text(&["log", id, "--json"]);
            let count = |kind: &str| log.lines().filter(|line| line.contains(kind)).count();
            let found = (count("\"kind\":\"intent\""), count("\"kind\":\"outcome\""));
            (found.1 > 0).then_some(found)
        });
        assert_eq!(ends, (1, 1), "once");
    });
    until(|| (cut.health() == "ok").then_some(()));
    assert_eq!(far.read("meanwhile"), "hello");
    assert_eq!(cut.call("file.write", write("after"), 0).0, 200);
    assert!(near.text(&["log", "verify"]).contains("the chain holds"));
}

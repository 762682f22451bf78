//! Names that lead inside, at once or later. A network of its own: a DNS server that means no good, and a host that
//! really is at a public address, behind a wire.

use super::server::{Server, ok, sends_on};
use super::{Stage, data, fault, loopback, manifests, part, passes, roomy, run};
use haft_runtime::web::WebSettings;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;

/// The address of the host behind the wire. It belongs to nobody here.
pub(crate) const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);

/// Makes a network of two halves, and runs one test in each. The second half ends with the first.
pub(crate) const SETUP: &str = r#"
set -e
test="$1"
printf 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n' > "$2/resolv.conf"
mount --bind "$2/resolv.conf" /etc/resolv.conf
ip link set lo up
mkfifo "$2/ready"
unshare -n sh -c 'echo ready > "$1/ready"; exec sleep 600' sh "$2" &
half=$!
read -r _ < "$2/ready"
ip link add v0 type veth peer name v1
ip link set v1 netns "$half"
ip addr add 93.184.216.1/24 dev v0
ip link set v0 up
nsenter -t "$half" -n sh -c 'ip link set lo up; ip addr add 93.184.216.34/24 dev v1; ip link set v1 up'
HAFT_TEST_PART=host nsenter -t "$half" -n "$test" "$3" --exact --nocapture > "$2/host.log" 2>&1 &
host=$!
trap 'kill $host $half 2>/dev/null || true' EXIT
HAFT_TEST_PART=guest "$test" "$3" --exact --nocapture
"#;

#[test]
fn no_name_leads_inside_not_even_later() {
    match part().as_deref() {
        Some("host") => return run(be_a_public_host()),
        Some(_) => return run(in_a_network_of_its_own()),
        None => {}
    }
    let dir = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", SETUP, "sh"]).arg(own).arg(dir.path());
    command.arg("names::no_name_leads_inside_not_even_later");
    passes(command);
}

/// A tool that asks a host which its manifest names with its port.
fn asking(name: &str, host: &str) -> Value {
    json!({
        "name": name, "description": "Asks.", "kind": "http", "version": 1,
        "inputs": {"schema": {"type": "object"}}, "outputs": {"format": "text"},
        "exec": {"http": {"method": "GET", "url": format!("http://{host}/")}},
        "permissions": {"network": [host], "fs": {"read": [], "write": []}, "secrets": {}},
        "approval": {"required": false}
    })
}

async fn be_a_public_host() {
    let listener = loop {
        // The wire takes a moment.
        match TcpListener::bind((PUBLIC, 80)).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let _server = Server::serve(listener, None, |request| match request.split(' ').nth(1).unwrap() {
        "/inward" => sends_on(302, "http://inside.example/"),
        "/own" => sends_on(302, "http://93.184.216.1/"),
        _ => ok("", "from a public host"),
    });
    std::future::pending::<()>().await;
}

/// Answers questions for addresses by a table; of a list of lists, each time the next.
pub(crate) struct Names {
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Names {
    pub(crate) async fn start(table: fn(&str, usize) -> Vec<Ipv4Addr>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:53").await.unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (notes, mut tasks) = (Arc::clone(&asked), JoinSet::new());
        tasks.spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((size, from)) = socket.recv_from(&mut buffer).await {
                let (name, kind) = question(&buffer[..size]);
                let mut addresses = Vec::new();
                if kind == 1 {
                    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                    let times = notes.iter().filter(|known| **known == name).count();
                    addresses = table(&name, times);
                    notes.push(name);
                }
                let _ = socket.send_to(&answer(&buffer[..size], &addresses), from).await;
            }
        });
        Self { asked, _tasks: tasks }
    }

    fn asked(&self, name: &str) -> usize {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|known| *known == name).count()
    }
}

fn question(packet: &[u8]) -> (String, u16) {
    let (mut at, mut labels) = (12, Vec::new());
    while packet[at] != 0 {
        let length = usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(&packet[at + 1..=at + length]).to_lowercase());
        at += length + 1;
    }
    (labels.join("."), u16::from_be_bytes([packet[at + 1], packet[at + 2]]))
}

/// The answer to a question: these addresses, for no time at all.
fn answer(packet: &[u8], addresses: &[Ipv4Addr]) -> Vec<u8> {
    let end = 12 + packet[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    let mut reply = packet[..end].to_vec();
    reply[2] = 0x81;
    reply[3] = 0x80;
    reply[6..12].copy_from_slice(&[0, u8::try_from(addresses.len()).unwrap(), 0, 0, 0, 0]);
    for address in addresses {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend(address.octets());
    }
    reply
}

fn table(name: &str, times: usize) -> Vec<Ipv4Addr> {
    match name {
        "public.example" => vec![PUBLIC],
        // Public when it is checked, this machine when it is asked again.
        "rebind.example" if times == 0 => vec![PUBLIC],
        "rebind.example" | "inside.example" | "named.example" => vec![Ipv4Addr::LOCALHOST],
        "metadata.example" => vec![Ipv4Addr::new(169, 254, 169, 254)],
        "both.example" => vec![PUBLIC, Ipv4Addr::LOCALHOST],
        "other-way.example" => vec![Ipv4Addr::new(10, 0, 0, 1), PUBLIC],
        "own.example" => vec![Ipv4Addr::new(93, 184, 216, 1)],
        "zero.example" => vec![Ipv4Addr::UNSPECIFIED],
        _ => Vec::new(),
    }
}

async fn in_a_network_of_its_own() {
    let names = Names::start(table).await;
    let visits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&visits);
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    let secret = Server::serve(listener, None, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        ok("", "the inner secret")
    });
    let stage = Stage::new(roomy());
    // The host behind the wire takes a moment to be there.
    let public = loop {
        let outcome = stage.get("http://public.example/").await;
        if outcome.success {
            break outcome;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!(data(&public)["body"], "from a public host");

    let outcome = stage.get("http://rebind.example/").await;
    assert_eq!(data(&outcome)["body"], "from a public host", "what was checked is what is connected to");
    assert_eq!(names.asked("rebind.example"), 1, "a name is looked up once");
    // A new client has no connection to use again: it looks anew, and finds the name pointing inside.
    let later = Stage::new(roomy());
    for (name, address) in [
        ("rebind.example", "127.0.0.1"),
        ("inside.example", "127.0.0.1"),
        ("metadata.example", "169.254.169.254"),
        ("both.example", "127.0.0.1"),
        ("other-way.example", "10.0.0.1"),
        ("own.example", "93.184.216.1"),
        ("zero.example", "0.0.0.0"),
    ] {
        let outcome = later.get(&format!("http://{name}/")).await;
        let (kind, why) = fault(&outcome);
        let expected = format!("`{name}` leads to {address}, which is not a public address");
        assert!(kind == "denied" && why == expected, "{name}: {outcome:?}");
    }
    for (path, why) in [("/inward", "`inside.example` leads to 127.0.0.1"), ("/own", "`93.184.216.1:80` is not")] {
        let outcome = later.get(&format!("http://public.example{path}")).await;
        let (kind, said) = fault(&outcome);
        assert!(kind == "denied" && said.contains(why), "{path}: {outcome:?}");
    }
    let outcome = later.get("http://93.184.216.1/").await;
    assert_eq!(fault(&outcome).0, "denied", "our own address is inside, however public: {outcome:?}");
    assert_eq!((visits.load(Ordering::Relaxed), secret.connections()), (0, 0), "nobody came inside");

    // That a manifest names a public name with its port does not open where its owner lets it lead.
    let hosts = [("public", "public.example:80"), ("inward", "inside.example:80"), ("clouds", "metadata.example:80")];
    let stage = manifests::with(&hosts.map(|(tool, host)| asking(tool, host)));
    assert!(manifests::call(&stage.haft, "public", json!({})).await.success);
    for (tool, why) in [("inward", "`inside.example` leads to 127.0.0.1"), ("clouds", "leads to 169.254.169.254")] {
        let outcome = manifests::call(&stage.haft, tool, json!({})).await;
        let (kind, said) = fault(&outcome);
        assert!(kind == "denied" && said.contains(why), "{tool}: {outcome:?}");
    }
    assert_eq!((visits.load(Ordering::Relaxed), secret.connections()), (0, 0), "nobody came inside");

    // Whoever is named may be inside, and only they.
    let opened = vec!["named.example:80".parse().unwrap()].into();
    let stage = Stage::new(WebSettings { allow_private: opened, ..roomy() });
    assert_eq!(data(&stage.get("http://named.example/").await)["body"], "the inner secret");
    assert_eq!(fault(&stage.get("http://inside.example/").await).0, "denied");
    // That a name's address is allowed does not allow the name.
    let stage = Stage::new(WebSettings { allow_private: loopback(&[80]), ..roomy() });
    assert_eq!(fault(&stage.get("http://inside.example/").await).0, "denied");
}

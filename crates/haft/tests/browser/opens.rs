//! Opening pages: what comes of it where nobody is there, where nobody may go, and who may come along.

use crate::Scene;
use crate::site::{Site, page};
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

#[test]
fn what_cannot_be_opened_fails_as_it_does_for_a_fetch() {
    let inside = Site::start(|_, _| page("secret"));
    let port = inside.port;
    let site = Site::start(move |path, _| match path {
        "/inward" => (leak(format!("302 Found\r\nLocation: http://127.0.0.1:{port}/")), Vec::new()),
        "/missing" => ("404 Not Found\r\nContent-Type: text/html", b"<title>No</title>It is not here.".to_vec()),
        "/own-502" => ("502 Bad Gateway\r\nContent-Type: text/html", b"Their own words.".to_vec()),
        _ => page("<title>Here</title><p>fine"),
    });
    // Nobody listens there any more.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Some(scene) = Scene::new(&[site.port, closed]) else { return };
    let opens = |url: &str| {
        let outcome = scene.tries("browser.navigate", json!({ "url": url }));
        let kind = outcome.error.as_ref().map_or("", |error| error.kind.as_str()).to_owned();
        let status = outcome.data.as_ref().map_or(Value::Null, |data| data["status"].clone());
        (kind, outcome.exit_code(), status, outcome)
    };

    let (kind, code, status, _) = opens(&site.url("/"));
    assert_eq!((kind.as_str(), code, status), ("", 0, json!(200)));
    let (kind, code, status, outcome) = opens(&site.url("/missing"));
    assert_eq!((kind.as_str(), code, status), ("failed", 1, json!(404)));
    assert!(outcome.output.contains("It is not here."), "{outcome:#?}");
    let (kind, code, status, outcome) = opens(&site.url("/own-502"));
    assert_eq!((kind.as_str(), code, status), ("failed", 1, json!(502)));
    assert!(outcome.output.contains("Their own words."), "{outcome:#?}");

    for url in [format!("http://127.0.0.1:{closed}/"), "http://nobody.invalid/".to_owned()] {
        let (kind, code, _, outcome) = opens(&url);
        assert_eq!((kind.as_str(), code, outcome.output.as_str()), ("upstream", 1, ""), "{url}: {outcome:#?}");
    }
    let (kind, code, _, outcome) = opens(&site.url("/inward"));
    assert_eq!((kind.as_str(), code, outcome.output.as_str()), ("denied", 3, ""), "{outcome:#?}");
    let (kind, code, _, outcome) = opens(&inside.url("/"));
    assert_eq!((kind.as_str(), code), ("denied", 3), "{outcome:#?}");
    assert!(inside.asked().is_empty(), "{:?}", inside.asked());
    let after = scene.call("browser.content", json!({}));
    assert!(!after.output.contains("haft:"), "nothing of ours is shown as a page: {after:#?}");
}

/// A network of two halves: this one, and one with a host at a public address.
const SETUP: &str = r#"
set -e
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
HAFT_TEST_PART=host nsenter -t "$half" -n "$1" "$3" --exact --nocapture > "$2/host.log" 2>&1 &
host=$!
trap 'kill $host $half 2>/dev/null || true' EXIT
HAFT_TEST_PART=guest "$1" "$3" --exact --nocapture
"#;

const PUBLIC: &str = "93.184.216.34:80";

#[test]
fn a_page_of_the_internet_does_not_reach_a_service_of_ones_own() {
    match std::env::var("HAFT_TEST_PART").as_deref() {
        Ok("host") => return be_a_public_host(),
        Ok(_) => return in_a_network_of_its_own(),
        Err(_) => {}
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", SETUP, "sh"]);
    command.arg(std::env::current_exe().unwrap()).arg(dir.path());
    command.arg("opens::a_page_of_the_internet_does_not_reach_a_service_of_ones_own");
    let ran = command.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

fn be_a_public_host() {
    let _site = Site::on(TcpListener::bind(PUBLIC).unwrap(), |path, _| match path.strip_prefix("/to/") {
        Some(port) => (leak(format!("302 Found\r\nLocation: http://127.0.0.1:{port}/led")), Vec::new()),
        None => page("<title>Stranger</title><p>hello"),
    });
    loop {
        std::thread::park();
    }
}

fn in_a_network_of_its_own() {
    crate::until("the public host listens", || TcpStream::connect(PUBLIC).is_ok());
    let bank = Site::start(|_, _| page("<title>Bank</title><p>yours"));
    let sends = |to: u16| {
        let args = format!("'http://127.0.0.1:{to}/pay', {{ method: 'POST', mode: 'no-cors', body: 'all of it' }}");
        format!("fetch({args}).then(answer => answer.type, () => 'failed')")
    };
    let Some(scene) = Scene::new(&[bank.port]) else { return };
    let own = format!("127.0.0.1:{}", bank.port);

    // The service itself is opened, and its page talks to it.
    scene.navigate(&bank.url("/"));
    assert_eq!(scene.evaluate("fetch('/own').then(answer => answer.status)"), 200);

    // Another page may neither send to it, nor lead there, nor open it. `opaque` is what the gate answered with.
    scene.navigate("http://93.184.216.34/");
    let before = bank.asked();
    let tried = scene.tries("browser.evaluate", json!({ "expression": sends(bank.port) }));
    assert!(tried.warnings.iter().any(|said| said.contains("is a service of your own")), "{tried:#?}");
    scene.evaluate(&format!("void window.open('http://{own}/popup')"));
    let led = scene.tries("browser.navigate", json!({ "url": format!("http://93.184.216.34/to/{}", bank.port) }));
    assert_eq!(led.exit_code(), 3, "{led:#?}");
    assert_eq!(bank.asked(), before, "nothing arrived");
    assert!(scene.requests().contains(&(own.clone(), Some("denied".to_owned()))), "{:?}", scene.requests());

    // Whoever opens it again gets a browser in which nobody else has been.
    let again = scene.navigate(&bank.url("/again"));
    assert!(again.warnings.iter().any(|said| said.contains("has seen nothing else")), "{again:#?}");
    assert!(bank.asked().contains(&"GET /again".to_owned()));

    // Unless the configuration says that every page may reach it.
    let Some(scene) = Scene::open_to_all(&[bank.port]) else { return };
    scene.navigate("http://93.184.216.34/");
    assert_eq!(scene.evaluate(&sends(bank.port)), "opaque");
    assert!(bank.asked().contains(&"POST /pay all of it".to_owned()), "{:?}", bank.asked());
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

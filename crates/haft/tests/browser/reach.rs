//! What a page may reach: what the rules of the web allow, and nothing else, whatever it tries.

use crate::Scene;
use crate::site::{Site, page};
use serde_json::json;

/// Tries to get something from elsewhere, and says what came of each attempt. Only what is there says `secret`: what the
/// gate answers in its place is not taken for it.
const TRIES: &str = r#"(async (inside) => {
    const fetched = url => fetch(url).then(answer => answer.text()).then(
        text => text.includes("secret") ? "reached" : "other", () => "failed");
    const socket = url => new Promise(done => {
        const ws = new WebSocket(url);
        ws.onopen = () => done("reached");
        ws.onerror = () => done("failed");
    });
    const image = url => new Promise(done => {
        const img = new Image();
        img.onload = () => done("reached");
        img.onerror = () => done("failed");
        img.src = url;
    });
    const frame = url => new Promise(done => {
        const frame = document.createElement("iframe");
        // What is there speaks before it has loaded.
        onmessage = () => done("reached");
        frame.onload = () => setTimeout(() => done("failed"));
        frame.src = url;
        document.body.append(frame);
    });
    const peers = () => new Promise(done => {
        const seen = [];
        const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:" + inside }] });
        peer.createDataChannel("x");
        peer.onicecandidate = event => event.candidate ? seen.push(event.candidate.candidate) : done(seen.length);
        peer.createOffer().then(offer => peer.setLocalDescription(offer));
        setTimeout(() => done(seen.length), 2000);
    });
    const there = "127.0.0.1:" + inside;
    return {
        fetch: await fetched("http://" + there + "/fetch"),
        metadata: await fetched("http://169.254.169.254/latest/meta-data/"),
        redirect: await fetched("/inward"),
        secure: await fetched("https://" + there + "/tls"),
        named: await fetched("http://localhost:" + inside + "/named"),
        odd: await fetched("http://0x7f.1:" + inside + "/odd"),
        six: await fetched("http://[::1]:" + inside + "/six"),
        socket: await socket("ws://" + there + "/socket"),
        image: await image("http://" + there + "/image"),
        frame: await frame("http://" + there + "/frame"),
        peers: await peers(),
        beacon: navigator.sendBeacon("http://" + there + "/beacon", "x") ? "asked" : "failed",
        own: await fetched("/own"),
    };
})"#;

#[test]
fn a_page_reaches_nothing_that_the_rules_refuse() {
    let inside = Site::start(|path, _| match path {
        "/image" => ("200 OK\r\nContent-Type: image/svg+xml", br#"<svg xmlns="http://www.w3.org/2000/svg"/>"#.to_vec()),
        _ => (
            "200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *",
            b"secret<script>parent.postMessage('secret', '*')</script>".to_vec(),
        ),
    });
    let port = inside.port;
    let open = Site::start(move |path, _| match path {
        "/inward" => (leak(format!("302 Found\r\nLocation: http://127.0.0.1:{port}/redirected")), Vec::new()),
        "/" => page("<title>Open</title><body>"),
        "/own" => page("no secret"),
        _ => page("fine"),
    });
    // Where it is allowed all of it works, so that what fails below fails because it is refused.
    let Some(allowed) = Scene::open_to_all(&[open.port, port]) else { return };
    allowed.navigate(&open.url("/"));
    let came = allowed.evaluate(&format!("{TRIES}({port})"));
    for attempt in ["fetch", "redirect", "image", "frame", "own"] {
        assert_eq!(came[attempt], "reached", "{attempt}: {came}");
    }
    for path in ["fetch", "redirected", "socket", "image", "frame"] {
        assert!(inside.asked().contains(&format!("GET /{path}")), "{path}: {:?}", inside.asked());
    }
    allowed.call("browser.close", json!({}));
    let before = inside.asked();
    let Some(scene) = Scene::new(&[open.port]) else { return };
    scene.navigate(&open.url("/"));
    let came = scene.evaluate(&format!("{TRIES}({port})"));
    assert_eq!(came.as_object().map_or(0, serde_json::Map::len), 13, "{came}");
    for (attempt, end) in came.as_object().unwrap() {
        match attempt.as_str() {
            "own" => assert_eq!(end, "reached", "{came}"),
            "peers" => assert_eq!(end, 0, "no address of this machine is told: {came}"),
            // A page is not told what became of it; the site would have heard.
            "beacon" => assert_eq!(end, "asked", "{came}"),
            _ => assert_eq!(end, "failed", "{attempt}: {came}"),
        }
    }
    assert_eq!(inside.asked(), before, "nobody was there");

    // Whoever called is told, and so is the log.
    let tried = scene.tries("browser.evaluate", json!({ "expression": format!("{TRIES}({port})") }));
    let refused = format!("the page was refused: `127.0.0.1:{port}` is not a public address");
    assert!(tried.warnings.contains(&refused), "{tried:#?}");
    let requests = scene.requests();
    let ended = |host: &str, end: Option<&str>| requests.iter().any(|(to, how)| to == host && how.as_deref() == end);
    assert!(ended(&format!("127.0.0.1:{port}"), Some("denied")), "{requests:?}");
    assert!(ended("169.254.169.254:80", Some("denied")), "{requests:?}");
    assert!(ended(&format!("127.0.0.1:{}", open.port), None), "{requests:?}");

    // A page cannot be led there, nor to what is not of the web.
    let led = scene.tries("browser.navigate", json!({ "url": open.url("/inward") }));
    assert_eq!(led.exit_code(), 3, "{led:#?}");
    assert_eq!(inside.asked(), before);
    let direct = scene.refused("browser.navigate", json!({ "url": inside.url("/") }));
    assert!(direct.starts_with("denied: "), "{direct}");
    for url in ["file:///etc/passwd", "chrome://version", "data:text/html,x", "javascript:1", "view-source:http://a/"] {
        let said = scene.refused("browser.navigate", json!({ "url": url }));
        assert!(said.contains("URLs are not asked for"), "{url}: {said}");
    }
    scene.navigate(&open.url("/"));
    let blob = "location.href = URL.createObjectURL(new Blob(['<p>made up'], { type: 'text/html' })); 1";
    scene.tries("browser.evaluate", json!({ "expression": blob }));
    let after = scene.tries("browser.content", json!({}));
    assert!(!after.output.contains("made up"), "{after:#?}");
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

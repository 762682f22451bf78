//! The gate as a program inside sees it, on real sockets. Rules that are addresses may name loopback, so
//! hosts stand there.

use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A host on loopback that serves each connection with `serve`, and tells what that returned.
fn host<T: Send + 'static>(serve: impl Fn(TcpStream) -> T + Send + Sync + 'static) -> (u16, Receiver<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = channel();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (serve, tell) = (Arc::clone(&serve), tell.clone());
            thread::spawn(move || tell.send(serve(stream)));
        }
    });
    (port, told)
}

/// A web server that says hello, and tells everything it was sent.
fn web() -> (u16, Receiver<String>) {
    host(|mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut heard, mut length) = (String::new(), 0);
        while !heard.ends_with("\r\n\r\n") && reader.read_line(&mut heard).unwrap() > 0 {
            let line = heard.lines().last().unwrap_or_default();
            length = line.strip_prefix("Content-Length: ").map_or(length, |digits| digits.parse().unwrap());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut after = String::new();
        let _ = reader.read_to_string(&mut after);
        heard + &String::from_utf8(body).unwrap() + &after
    })
}

/// Repeats everything once the other side has said its last.
fn echo() -> u16 {
    let (port, _) = host(|mut stream| {
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        stream.write_all(&heard).unwrap();
    });
    port
}

fn rules(list: &[String]) -> haft_core::host::HostRules {
    list.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>().into()
}

fn gate_within(list: &[String], limits: Limits) -> (Gate, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ways = Ways { proxy: Some(listener), ..Ways::default() };
    (Gate::open_within(rules(list).into(), ways, limits, None).unwrap(), address)
}

fn gate(list: &[String]) -> (Gate, SocketAddr) {
    gate_within(list, Limits::default())
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

fn say(address: SocketAddr, what: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(what.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// Opens a tunnel and reads past the proxy's consent.
fn tunnel(proxy: SocketAddr, target: &str) -> TcpStream {
    let mut stream = connect(proxy);
    write!(stream, "CONNECT {target} HTTP/1.1\r\n\r\n").unwrap();
    let mut consent = [0; "HTTP/1.1 200 Connection established\r\n\r\n".len()];
    stream.read_exact(&mut consent).unwrap();
    assert!(consent.starts_with(b"HTTP/1.1 200 "));
    stream
}

/// A port that nobody listens at.
fn nobody() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Contacts on one line each, with the port that differs from run to run taken out.
fn shown(contacts: &[Contact], port: u16) -> String {
    let line = |c: &Contact| {
        let verdict = if c.allowed { "allowed" } else { "refused" };
        let reason = c.reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
        let Contact { host, port, how, times, sent, received, .. } = c;
        format!("{verdict} {how:?} {host}:{port} x{times} {sent}/{received}{reason}")
    };
    contacts.iter().map(line).collect::<Vec<_>>().join("\n").replace(&port.to_string(), "PORT")
}

#[test]
fn a_tunnel_carries_both_ways_and_passes_the_end_on() {
    let port = echo();
    let (gate, proxy) = gate(&[format!("127.0.0.1:{port}")]);
    let mut stream = tunnel(proxy, &format!("127.0.0.1:{port}"));
    let sent = vec![7; 3_000_000];
    stream.write_all(&sent).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert!(back == sent);
    assert_eq!(shown(&gate.close(), port), "allowed Proxy 127.0.0.1:PORT x1 3000000/3000000");
}

#[test]
fn what_follows_connect_in_the_same_packet_is_not_lost() {
    let port = echo();
    let (_gate, proxy) = gate(&[format!("127.0.0.1:{port}")]);
    let mut stream = connect(proxy);
    write!(stream, "CONNECT 127.1:{port} HTTP/1.1\r\n\r\nearly").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nearly");
}

#[test]
fn a_request_reaches_the_host_of_its_url_and_a_second_one_does_not() {
    let (port, told) = web();
    let (gate, proxy) = gate(&[format!("127.0.0.1:{port}")]);
    let asked = format!(
        "POST http://127.0.0.1:{port}/x?y HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: x\r\n\
         Connection: keep-alive\r\nContent-Length: 4\r\nX-Kept: 1\r\n\r\nbodyGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    );
    let answer = say(proxy, &asked);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("hello"), "{answer}");
    let heard = told.recv_timeout(Duration::from_secs(5)).unwrap().replace(&port.to_string(), "PORT");
    insta::assert_snapshot!(heard.replace("\r\n", "\n"), @"
    POST /x?y HTTP/1.1
    Host: 127.0.0.1:PORT
    Connection: close
    Content-Length: 4
    X-Kept: 1

    body
    ");
    assert_eq!(gate.close().len(), 1);
}

#[test]
fn a_connection_is_not_used_twice_even_if_the_host_would() {
    let (port, told) = host(|mut stream| {
        let mut heard = vec![0; 1000];
        let count = stream.read(&mut heard).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        heard.truncate(count);
        stream.read_to_end(&mut heard).unwrap();
        String::from_utf8(heard).unwrap()
    });
    let (_gate, proxy) = gate(&[format!("127.0.0.1:{port}")]);
    let asked = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n");
    let mut stream = connect(proxy);
    stream.write_all(asked.as_bytes()).unwrap();
    let mut answer = [0; "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".len()];
    stream.read_exact(&mut answer).unwrap();
    stream.write_all(asked.as_bytes()).unwrap();
    assert!(matches!(stream.read(&mut answer), Ok(0) | Err(_)), "the program learns that it has to connect anew");
    assert_eq!(told.recv_timeout(Duration::from_secs(5)).unwrap().matches("GET").count(), 1);
}

#[test]
fn a_body_in_chunks_is_carried() {
    let (port, told) = host(|mut stream| {
        let (mut heard, mut buffer) = (String::new(), [0; 1000]);
        while !heard.ends_with("0\r\n\r\n") {
            let count = stream.read(&mut buffer).unwrap();
            heard.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        heard
    });
    let (_gate, proxy) = gate(&[format!("127.0.0.1:{port}")]);
    let asked = format!("PUT http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(say(proxy, &format!("{asked}5\r\nhello\r\n0\r\n\r\nGET")).starts_with("HTTP/1.1 204"));
    let heard = told.recv_timeout(Duration::from_secs(5)).unwrap();
    assert!(heard.ends_with("chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "{heard}");
}

#[test]
fn what_is_not_listed_is_refused_with_the_list_and_noted_once() {
    let port = nobody();
    let (gate, proxy) = gate(&[format!("127.0.0.1:{port}"), "*.example.com:443".to_owned()]);
    let answer = say(proxy, "GET http://evil.test/x HTTP/1.1\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
    insta::assert_snapshot!(body.replace(&port.to_string(), "PORT"), @"
    haft: `evil.test:80` is not on the list of hosts that this program may reach
    The list: 127.0.0.1:PORT, *.example.com:443
    ");
    for target in ["evil.test:80", "EVIL.test.:80", "a.example.com:22", "127.0.0.1:1", "2130706433:1", "[::1]:1"] {
        let answer = say(proxy, &format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{target}: {answer}");
    }
    let contacts = gate.close();
    assert!(contacts.iter().all(|contact| !contact.allowed && contact.reason.is_some()), "{contacts:?}");
    let counted: Vec<_> = contacts.iter().map(|c| (c.host.as_str(), c.port, c.times)).collect();
    assert_eq!(counted, [("evil.test", 80, 3), ("a.example.com", 22, 1), ("127.0.0.1", 1, 2), ("[::1]", 1, 1)]);
}

#[test]
fn a_listed_name_that_leads_inside_is_refused() {
    let (port, _told) = web();
    let (gate, proxy) = gate(&[format!("localhost:{port}")]);
    let answer = say(proxy, &format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("not a public address"), "{answer}");
    let contacts = gate.close();
    assert_eq!((contacts.len(), contacts[0].allowed, contacts[0].host.as_str()), (1, false, "localhost"));
}

#[test]
fn a_host_that_does_not_answer_is_a_bad_gateway() {
    let port = nobody();
    let (gate, proxy) = gate(&[format!("127.0.0.1:{port}"), "no-such-host.invalid".to_owned()]);
    for target in [format!("127.0.0.1:{port}"), "no-such-host.invalid:443".to_owned()] {
        let answer = say(proxy, &format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
    }
    let contacts = gate.close();
    assert!(contacts.iter().all(|contact| contact.allowed && contact.reason.is_some()), "{contacts:?}");
}

#[test]
fn heads_that_are_too_long_too_slow_or_no_heads_are_turned_away() {
    let limits = Limits { head: Duration::from_millis(300), ..Limits::default() };
    let (gate, proxy) = gate_within(&[], limits);
    let long = format!("GET http://a.test/ HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(70_000));
    assert!(say(proxy, &long).starts_with("HTTP/1.1 431 "));
    assert!(say(proxy, &long.replace('\r', "")).starts_with("HTTP/1.1 431 "));
    assert!(say(proxy, "GET http://a.test/ HTTP/1.1\r\n").starts_with("HTTP/1.1 408 "));
    assert!(say(proxy, "GET https://a.test/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(say(proxy, "\u{16}\u{3}\u{1} not http\r\n\r\n").starts_with("HTTP/1.1 400 "));
    drop(connect(proxy));
    assert_eq!(gate.close(), [], "nobody was asked for");
}

#[test]
fn a_head_that_comes_by_drops_has_no_more_time_than_another() {
    let limits = Limits { head: Duration::from_millis(300), ..Limits::default() };
    let (_gate, proxy) = gate_within(&[], limits);
    let (started, mut stream) = (Instant::now(), connect(proxy));
    while stream.write_all(b"G").is_ok() && started.elapsed() < Duration::from_secs(3) {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[test]
fn a_direct_way_leads_to_its_host() {
    let (port, told) = web();
    let rules = rules(&[format!("127.0.0.1:{port}")]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ways = Ways { direct: vec![("127.0.0.1".to_owned(), port, listener)], ..Ways::default() };
    let gate = Gate::open(rules.clone(), ways).unwrap();
    assert!(say(address, "GET / HTTP/1.1\r\n\r\n").ends_with("hello"));
    assert_eq!(told.recv_timeout(Duration::from_secs(5)).unwrap(), "GET / HTTP/1.1\r\n\r\n");
    let contacts = gate.close();
    assert_eq!((contacts.len(), contacts[0].how, contacts[0].sent), (1, Via::Direct, 18));
    assert!(TcpStream::connect(address).is_err(), "a closed gate does not listen");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ways = Ways { direct: vec![("evil.test".to_owned(), 80, listener)], ..Ways::default() };
    let refused = Gate::open(rules, ways).unwrap_err().to_string();
    assert_eq!(refused, "`evil.test:80` has a way, but no rule covers it");
}

#[test]
fn names_are_answered_from_the_table_and_nothing_else_exists() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = socket.local_addr().unwrap();
    let table = vec![("A.test".to_owned(), Ipv4Addr::new(198, 18, 0, 1))];
    let ways = Ways { names: Some((socket, table)), ..Ways::default() };
    let gate = Gate::open(rules(&["a.test:443".to_owned(), "*.b.test".to_owned()]), ways).unwrap();
    let asker = UdpSocket::bind("127.0.0.1:0").unwrap();
    asker.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let ask = |packet: &[u8]| {
        asker.send_to(packet, server).unwrap();
        let mut buffer = [0; 512];
        let length = asker.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    };
    asker.send_to(b"noise", server).unwrap();
    asker.send_to(&[0xff; 300], server).unwrap();
    assert!(ask(&names::tests::question("a.TEST", 1)).ends_with(&[198, 18, 0, 1]));
    for name in ["secret-data.evil.test", "secret-data.evil.test", "x.b.test"] {
        assert_eq!(ask(&names::tests::question(name, 1))[3] & 15, 3);
    }
    insta::assert_snapshot!(shown(&gate.close(), u16::MAX), @"
    refused Name secret-data.evil.test:0 x2 0/0 (the name is not on the list of hosts that this program may reach)
    refused Name x.b.test:0 x1 0/0 (a rule covers the name, but it has no address here; the proxy can reach it)
    ");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let ways = Ways { names: Some((socket, vec![("evil.test".to_owned(), Ipv4Addr::LOCALHOST)])), ..Ways::default() };
    assert!(Gate::open(rules(&[]), ways).is_err());
}

#[test]
fn closing_does_not_wait_for_idle_connections() {
    let (port, _told) = host(|mut stream| stream.read(&mut [0]).unwrap_or_default());
    let (gate, proxy) = gate(&[format!("127.0.0.1:{port}")]);
    let mut open: Vec<TcpStream> = (0..10).map(|_| tunnel(proxy, &format!("127.0.0.1:{port}"))).collect();
    open.extend((0..10).map(|_| connect(proxy)));
    let started = Instant::now();
    let contacts = gate.close();
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    assert_eq!(shown(&contacts, port), "allowed Proxy 127.0.0.1:PORT x10 0/0");
    for mut stream in open {
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
}

#[test]
fn closing_does_not_wait_for_a_host_that_is_silent() {
    // Where the queue is full, the kernel drops what knocks, and says nothing.
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let address = full.local_addr().unwrap();
    let moment = Duration::from_millis(100);
    let _queue: Vec<_> = (0..4).map_while(|_| TcpStream::connect_timeout(&address, moment).ok()).collect();
    let (gate, proxy) = gate(&[address.to_string()]);
    let mut stream = connect(proxy);
    write!(stream, "CONNECT {address} HTTP/1.1\r\n\r\n").unwrap();
    thread::sleep(moment);
    let started = Instant::now();
    let contacts = gate.close();
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    let said = shown(&contacts, address.port());
    assert_eq!(said, "allowed Proxy 127.0.0.1:PORT x1 0/0 (the program ended first)");
}

#[test]
fn more_connections_than_places_are_all_served() {
    let (port, _told) = web();
    let limits = Limits { connections: 16, ..Limits::default() };
    let (gate, proxy) = gate_within(&[format!("127.0.0.1:{port}")], limits);
    let asked = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n");
    thread::scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|| assert!(say(proxy, &asked).ends_with("hello")));
        }
    });
    let contacts = gate.close();
    assert_eq!((contacts.len(), contacts[0].times), (1, 200));
}

#[test]
fn a_full_house_still_closes_at_once_and_still_answers_names() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (server, proxy) = (socket.local_addr().unwrap(), listener.local_addr().unwrap());
    let ways = Ways { proxy: Some(listener), names: Some((socket, Vec::new())), ..Ways::default() };
    let gate =
        Gate::open_within(rules(&[]).into(), ways, Limits { connections: 2, ..Limits::default() }, None).unwrap();
    let _open: Vec<TcpStream> = (0..10).map(|_| connect(proxy)).collect();
    let asker = UdpSocket::bind("127.0.0.1:0").unwrap();
    asker.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    asker.send_to(&names::tests::question("a.test", 1), server).unwrap();
    assert!(asker.recv(&mut [0; 512]).unwrap() > 12);
    let started = Instant::now();
    drop(gate);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[test]
fn noise_does_not_close_the_gate() {
    let port = echo();
    let limits = Limits { head: Duration::from_millis(200), ..Limits::default() };
    let (_gate, proxy) = gate_within(&[format!("127.0.0.1:{port}")], limits);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    thread::scope(|scope| {
        for _ in 0..40 {
            let noise: Vec<u8> = std::iter::repeat_with(|| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()
            })
            .take(20)
            .flatten()
            .chain(*b"\r\n\r\n")
            .collect();
            scope.spawn(move || {
                let mut stream = connect(proxy);
                let _ = stream.write_all(&noise);
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
    drop(tunnel(proxy, &format!("127.0.0.1:{port}")));
}

/// What curl printed and how it ended; none where there is no curl.
fn curl(proxy: SocketAddr, args: &[&str]) -> Option<String> {
    let through = format!("http://{proxy}");
    let ours = ["-sS", "--max-time", "10", "--noproxy", "", "-x", &through];
    let output = Command::new("curl").args(ours).args(args).output().ok()?;
    Some(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn curl_goes_through() {
    let (port, _told) = web();
    let (gate, proxy) = gate(&[format!("127.0.0.1:{port}")]);
    let url = format!("http://127.0.0.1:{port}/");
    let Some(plain) = curl(proxy, &[&url]) else { return };
    assert_eq!(plain, "hello");
    assert_eq!(curl(proxy, &["--proxytunnel", &url]).as_deref(), Some("hello"));
    assert_eq!(curl(proxy, &["--data", "some", &url, &url]).as_deref(), Some("hellohello"));
    let refused = curl(proxy, &["http://evil.test/"]).unwrap();
    assert!(refused.starts_with("haft: `evil.test:80` is not on the list"), "{refused}");
    let tunnel = curl(proxy, &["https://evil.test/"]).unwrap();
    assert!(tunnel.contains("403"), "{tunnel}");
    assert_eq!(gate.close().iter().map(|contact| contact.times).sum::<u64>(), 6);
}

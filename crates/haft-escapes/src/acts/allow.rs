//! Going further than a list of hosts allows. The list names one server of the harness (`friend`); the
//! listeners that must stay alone are others.

use super::net::{address, local, tcp, udp};
use super::{Act, Prop, Sight};
use crate::attack::{Brief, Stop, Tried, any, broken, stopped};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) const ACTS: &[Act] = &[
    listed("allow.other_port", |b| tcp(local(b, "tcp4")?)),
    listed("allow.other_host", |b| tcp(address(b, "own")?)),
    listed("allow.udp", |b| udp(local(b, "udp")?, false)),
    listed("allow.connect_other", |b| connect(b, b.get("forbidden")?)),
    listed("allow.connect_spellings", spellings),
    listed("allow.connect_user_info", user_info),
    listed("allow.connect_smuggled", smuggled),
    listed("allow.connect_own_address", |b| connect(b, b.get("own")?)),
    listed("allow.absolute_form", |b| {
        request(b, &format!("GET http://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", b.get("forbidden")?, b.get("friend")?))
    }),
    listed("allow.host_header", |b| request(b, &format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", b.get("forbidden")?))),
    listed("allow.host_header_twice", host_header_twice),
    listed("allow.second_request", second_request),
    listed("allow.length_smuggling", length_smuggling),
    listed("allow.redirect", redirect),
    Act::new("allow.unix_abstract", |b| super::net::unix_at(&b.file("reading", "s.sock")?, libc::SOCK_STREAM))
        .with(Prop::Friend)
        .flags(LIST)
        .seen(Sight::Reached),
    Act::new("allow.name_of_loopback", name_of_loopback)
        .with(Prop::Friend)
        .flags(&["--net", "localhost:{tcp4}"])
        .seen(Sight::Reached)
        .judged_outside(),
    Act::new("allow.wildcard_name", name_of_loopback)
        .with(Prop::Friend)
        .flags(&["--net", "*.localhost:{tcp4}"])
        .seen(Sight::Reached)
        .judged_outside(),
];

const LIST: &[&str] = &["--net", "{friend}"];

const fn listed(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    Act::new(name, attempt).with(Prop::Friend).flags(LIST).seen(Sight::Reached)
}

/// The proxy of whoever confines, if it says where one is; an unconfined attacker dials by itself.
pub(crate) fn proxy() -> Option<SocketAddr> {
    let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"];
    let said = names.iter().find_map(|name| std::env::var(name).ok())?;
    let host = said.rsplit_once("//").map_or(said.as_str(), |(_, host)| host);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    std::net::ToSocketAddrs::to_socket_addrs(host.trim_end_matches('/')).ok()?.next()
}

fn dial(to: SocketAddr) -> Result<TcpStream, Stop> {
    let stream = TcpStream::connect_timeout(&to, Duration::from_millis(700))?;
    stream.set_read_timeout(Some(Duration::from_millis(700)))?;
    Ok(stream)
}

/// Says something to the proxy, or straight to the forbidden one where no proxy is; and to the friend,
/// since whoever stands in its place may understand it too.
fn request(b: &Brief, text: &str) -> Tried {
    let first = match proxy() {
        Some(proxy) => proxy,
        None => address(b, "forbidden")?,
    };
    let tried = [first, address(b, "friend")?].map(|to| ask(to, text));
    let why = |tried: &Tried| match tried {
        Ok(got) | Err(Stop::Stopped(got) | Stop::Broken(got)) => got.clone(),
    };
    stopped(tried.iter().map(why).collect::<Vec<_>>().join("; "))
}

fn ask(to: SocketAddr, text: &str) -> Tried {
    let mut stream = dial(to)?;
    stream.write_all(text.as_bytes())?;
    let mut answer = [0u8; 2048];
    let length = stream.read(&mut answer).unwrap_or(0);
    // Whether somebody was reached is seen outside; an answer of the proxy's own is none.
    stopped(format!("{to} says {:?}", String::from_utf8_lossy(&answer[..length]).lines().next().unwrap_or_default()))
}

fn connect(b: &Brief, to: &str) -> Tried {
    request(b, &format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n"))
}

/// The same address as others write it.
fn spellings(b: &Brief) -> Tried {
    let port = b.get("tcp4")?;
    let hosts = [
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "localhost",
        "0.0.0.0",
        "0",
        "localhost.",
        "127.0.0.1.",
    ];
    let mut said = Vec::new();
    for host in hosts {
        if let Err(Stop::Stopped(why) | Stop::Broken(why)) = connect(b, &format!("{host}:{port}")) {
            said.push(why);
        }
    }
    stopped(said.join("; "))
}

fn user_info(b: &Brief) -> Tried {
    let (friend, forbidden) = (b.get("friend")?, b.get("forbidden")?);
    let forms = [
        format!("{friend}@{forbidden}"),
        format!("{forbidden}#{friend}"),
        format!("{friend}/../{forbidden}"),
        format!("{forbidden}%00{friend}"),
        format!("{forbidden}\\@{friend}"),
    ];
    let mut said = Vec::new();
    for form in &forms {
        let absolute = format!("GET http://{form}/ HTTP/1.1\r\nHost: {friend}\r\n\r\n");
        for outcome in [connect(b, form), request(b, &absolute)] {
            if let Err(Stop::Stopped(why) | Stop::Broken(why)) = outcome {
                said.push(why);
            }
        }
    }
    stopped(said.join("; "))
}

fn smuggled(b: &Brief) -> Tried {
    let (friend, forbidden) = (b.get("friend")?, b.get("forbidden")?);
    let forms = [
        format!("CONNECT {friend} HTTP/1.1\r\nHost: {forbidden}\r\n\r\n"),
        format!("CONNECT {friend}\tHTTP/1.1\nCONNECT {forbidden} HTTP/1.1\r\n\r\n"),
        format!("CONNECT {friend} {forbidden} HTTP/1.1\r\n\r\n"),
        format!("\r\nCONNECT {forbidden} HTTP/1.1\r\nHost: {friend}\r\n\r\n"),
    ];
    forms.iter().fold(stopped("nothing was tried"), |_, form| request(b, form))
}

fn host_header_twice(b: &Brief) -> Tried {
    let (friend, forbidden) = (b.get("friend")?, b.get("forbidden")?);
    request(b, &format!("GET / HTTP/1.1\r\nHost: {friend}\r\nHost: {forbidden}\r\n\r\n"))
}

/// A connection that was allowed once is used for somebody else.
fn second_request(b: &Brief) -> Tried {
    let (friend, forbidden) = (b.get("friend")?, b.get("forbidden")?);
    let first = format!("GET http://{friend}/ HTTP/1.1\r\nHost: {friend}\r\n\r\n");
    let second = format!("GET http://{forbidden}/ HTTP/1.1\r\nHost: {forbidden}\r\n\r\n");
    request(b, &format!("{first}{second}"))
}

fn length_smuggling(b: &Brief) -> Tried {
    let (friend, forbidden) = (b.get("friend")?, b.get("forbidden")?);
    let inner = format!("GET http://{forbidden}/ HTTP/1.1\r\nHost: {forbidden}\r\n\r\n");
    let head = format!("POST http://{friend}/ HTTP/1.1\r\nHost: {friend}\r\nContent-Length: 5\r\n");
    request(b, &format!("{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"))
}

/// The friend sends one on to the forbidden one; a proxy must not go there by itself.
fn redirect(b: &Brief) -> Tried {
    let (friend, forbidden) = (b.get("friend")?, b.get("forbidden")?);
    request(b, &format!("GET http://{friend}/redirect?{forbidden} HTTP/1.1\r\nHost: {friend}\r\n\r\n"))
}

fn name_of_loopback(b: &Brief) -> Tried {
    let port = b.get("tcp4")?;
    let direct = |host: &str| {
        let found = std::net::ToSocketAddrs::to_socket_addrs(&format!("{host}:{port}"))?.collect::<Vec<_>>();
        found.into_iter().map(tcp).find(Result::is_ok).unwrap_or_else(|| broken("no address"))
    };
    any(&[
        ("by its name", &|| direct("localhost")),
        ("by another", &|| direct("x.localhost")),
        ("by the proxy", &|| connect(b, &format!("localhost:{port}"))),
        ("by the other name", &|| connect(b, &format!("x.localhost:{port}"))),
    ])
}

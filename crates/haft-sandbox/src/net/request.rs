//! What a program asks of the proxy: the head of one HTTP/1 request, read strictly and written anew.
//!
//! A head that two readers could take for different requests is refused rather than repaired.

use super::body::Framing;
use super::splice::is_timeout;
use haft_core::host::{Host, authority};
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest head that is read.
const HEAD_MAX: usize = 64 * 1024;
const END: &[u8] = b"\r\n\r\n";

/// Fields about the connection to the proxy, which the host behind it has nothing to do with. Those that
/// begin with `Proxy-` belong here too.
const OWN_FIELDS: &[&str] = &["connection", "host", "keep-alive", "te", "upgrade"];
/// Fields that say where the body ends: they stay, whatever `Connection` says about them.
const FRAMING_FIELDS: &[&str] = &["content-length", "transfer-encoding"];

/// A request that was understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) wish: Wish,
}

/// What to do with the host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Connect, and stay out of it.
    Tunnel,
    /// Pass one request on: this head, then a body.
    Forward(Vec<u8>, Framing),
}

/// Why a request is not answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadRequest {
    #[error("the head of the request is longer than {HEAD_MAX} bytes")]
    TooLong,
    #[error("the head of the request did not come in time")]
    Late,
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("this is not an HTTP/1 request that a proxy could pass on: {0}")]
    Malformed(&'static str),
}

impl BadRequest {
    pub(super) fn status(&self) -> &'static str {
        match self {
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::Late => "408 Request Timeout",
            Self::Broken(_) | Self::Malformed(_) => "400 Bad Request",
        }
    }
}

use BadRequest::Malformed;

/// The bytes of a head without its final empty line, and what came along behind it.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) head: Vec<u8>,
    pub(super) rest: Vec<u8>,
}

/// Reads up to the end of the head. None: the program went away without a word.
pub(super) fn read_head(stream: &TcpStream, patience: Duration) -> Result<Option<Heard>, BadRequest> {
    let end = Instant::now() + patience;
    let (mut head, mut buffer) = (Vec::new(), vec![0; 8 * 1024]);
    loop {
        let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or(BadRequest::Late)?;
        stream.set_read_timeout(Some(left))?;
        let count = match (&*stream).read(&mut buffer) {
            Ok(0) if head.is_empty() => return Ok(None),
            Ok(0) => return Err(Malformed("it ends in the middle of its head")),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted || is_timeout(&error) => continue,
            Err(error) => return Err(error.into()),
        };
        // The end may lie across two reads.
        let seen = head.len().saturating_sub(END.len());
        head.extend_from_slice(&buffer[..count]);
        let found = head[seen..].windows(END.len()).position(|window| window == END).map(|at| seen + at);
        if found.unwrap_or(head.len()) > HEAD_MAX {
            return Err(BadRequest::TooLong);
        }
        if let Some(at) = found {
            let rest = head.split_off(at + END.len());
            head.truncate(at);
            return Ok(Some(Heard { head, rest }));
        }
    }
}

/// Understands a head.
pub(super) fn parse(head: &[u8]) -> Result<Request, BadRequest> {
    let (first, fields) = lines(head)?;
    let [method, target, version] = first.split(' ').collect::<Vec<_>>()[..] else {
        return Err(Malformed("its first line has not three words"));
    };
    if !is_token(method.as_bytes()) || !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return Err(Malformed("its first line has no method, or another version than HTTP/1.0 and HTTP/1.1"));
    }
    if method == "CONNECT" {
        return tunnel(target);
    }
    let (host, port, path) = origin(target)?;
    let framing = framing(&fields)?;
    let shown_port = if port == 80 { String::new() } else { format!(":{port}") };
    let path = if method == "OPTIONS" && path.is_empty() { "*".to_owned() } else { path };
    let path = if path.starts_with('/') || path == "*" { path } else { format!("/{path}") };
    let mut anew =
        format!("{method} {path} {version}\r\nHost: {host}{shown_port}\r\nConnection: close\r\n").into_bytes();
    write_fields(&fields, &mut anew);
    Ok(Request { host, port, wish: Wish::Forward(anew, framing) })
}

fn tunnel(target: &str) -> Result<Request, BadRequest> {
    match authority(target) {
        Some((host, Some(port))) => Ok(Request { host, port, wish: Wish::Tunnel }),
        _ => Err(Malformed("CONNECT takes `host:port`")),
    }
}

/// Takes `http://host:port/path?query` apart.
fn origin(target: &str) -> Result<(Host, u16, String), BadRequest> {
    let Some((scheme, rest)) = target.split_once("://") else {
        return Err(Malformed("its target is not a whole URL; this is a proxy, not a server"));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" => {}
        "https" => return Err(Malformed("https goes through CONNECT, so that it stays end to end")),
        _ => return Err(Malformed("its target is not an http URL")),
    }
    let (place, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if path.contains('#') || place.contains('@') {
        return Err(Malformed("its target has a fragment or a user name"));
    }
    let (host, port) = authority(place).ok_or(Malformed("its target names no host"))?;
    Ok((host, port.unwrap_or(80), path.to_owned()))
}

/// A field as it came: its name, its value without the blanks around it.
type Field<'a> = (&'a str, &'a [u8]);

fn lines(head: &[u8]) -> Result<(&str, Vec<Field<'_>>), BadRequest> {
    let mut lines = Vec::new();
    let mut rest = head;
    while let Some(at) = rest.windows(2).position(|window| window == b"\r\n") {
        lines.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    lines.push(rest);
    let (first, fields) = lines.split_first().ok_or(Malformed("it is empty"))?;
    let first = std::str::from_utf8(first).ok().filter(|line| line.bytes().all(|b| b == b' ' || b.is_ascii_graphic()));
    let first = first.ok_or(Malformed("its first line has odd characters"))?;
    Ok((first, fields.iter().map(|line| field(line)).collect::<Result<_, _>>()?))
}

fn field(line: &[u8]) -> Result<Field<'_>, BadRequest> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Malformed("a field has no colon"))?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let name = std::str::from_utf8(name).ok().filter(|name| is_token(name.as_bytes()));
    let name = name.ok_or(Malformed("the name of a field has odd characters"))?;
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(Malformed("a field has control characters"));
    }
    Ok((name, value))
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

fn framing(fields: &[Field<'_>]) -> Result<Framing, BadRequest> {
    let all = |wanted: &str| -> Vec<&[u8]> {
        fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value).collect()
    };
    match (&all("content-length")[..], &all("transfer-encoding")[..]) {
        ([], []) => Ok(Framing::Empty),
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        ([length], []) if !length.is_empty() && length.iter().all(u8::is_ascii_digit) => std::str::from_utf8(length)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .map(Framing::Length)
            .ok_or(Malformed("its length is too large")),
        _ => Err(Malformed("it does not say clearly how long its body is")),
    }
}

/// Writes all fields that are for the host, and the empty line.
fn write_fields(fields: &[Field<'_>], anew: &mut Vec<u8>) {
    let connection = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
    let named: Vec<String> = connection
        .flat_map(|(_, value)| value.split(|byte| *byte == b','))
        .map(|word| String::from_utf8_lossy(word.trim_ascii()).to_ascii_lowercase())
        .filter(|word| !FRAMING_FIELDS.contains(&word.as_str()))
        .collect();
    for (name, value) in fields {
        let low = name.to_ascii_lowercase();
        if !OWN_FIELDS.contains(&low.as_str()) && !low.starts_with("proxy-") && !named.contains(&low) {
            anew.extend_from_slice(name.as_bytes());
            anew.extend_from_slice(b": ");
            anew.extend_from_slice(value);
            anew.extend_from_slice(b"\r\n");
        }
    }
    anew.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forwarded(head: &str) -> String {
        match parse(head.replace('\n', "\r\n").as_bytes()).map(|request| request.wish) {
            Ok(Wish::Forward(anew, framing)) => {
                format!("{}{framing:?}", String::from_utf8_lossy(&anew).replace("\r\n", "\n"))
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_request_is_written_anew_for_the_host_it_names() {
        let asked = "POST http://Example.com:8080?a=b HTTP/1.1\nHost: evil.test\nhost: other.test\nAccept: */*\n\
            Proxy-Authorization: secret\nProxy-Connection: keep-alive\nConnection: X-Mine, content-length\n\
            X-Mine: 1\nKeep-Alive: 5\nTE: trailers\nUpgrade: h2c\nContent-Length: 3";
        insta::assert_snapshot!(forwarded(asked), @"
        POST /?a=b HTTP/1.1
        Host: example.com:8080
        Connection: close
        Accept: */*
        Content-Length: 3

        Length(3)
        ");
        assert!(forwarded("GET http://127.1/x HTTP/1.0").starts_with("GET /x HTTP/1.0\nHost: 127.0.0.1\n"));
        assert!(forwarded("OPTIONS http://a.test HTTP/1.1").starts_with("OPTIONS * HTTP/1.1\n"));
        assert!(forwarded("GET http://a.test HTTP/1.1").starts_with("GET / HTTP/1.1\n"));
    }

    #[test]
    fn connect_names_a_host_and_a_port() {
        let tunnel = parse(b"CONNECT Example.com:443 HTTP/1.1\r\nHost: evil.test").unwrap();
        let host = Host::Name("example.com".to_owned());
        assert_eq!(tunnel, Request { host, port: 443, wish: Wish::Tunnel });
        for target in ["example.com", "example.com:0", "::1:443", "http://a.test:80", "u@a.test:443", "a.test:443/"] {
            assert!(parse(format!("CONNECT {target} HTTP/1.1").as_bytes()).is_err(), "{target}");
        }
    }

    #[test]
    fn what_two_readers_could_take_differently_is_refused() {
        for head in [
            "",
            "GET / HTTP/1.1",
            "GET /\nHost: a.test",
            "GET https://a.test/ HTTP/1.1",
            "GET ftp://a.test/ HTTP/1.1",
            "GET http://u@a.test/ HTTP/1.1",
            "GET http://a.test\\@evil.test/ HTTP/1.1",
            "GET http://a.test/#x HTTP/1.1",
            "GET http:///x HTTP/1.1",
            "GET http://a.test/ HTTP/2",
            "GET  http://a.test/ HTTP/1.1",
            "G\u{e9}T http://a.test/ HTTP/1.1",
            "GET http://a.test/ HTTP/1.1\n folded: x",
            "GET http://a.test/ HTTP/1.1\nHost : x",
            "GET http://a.test/ HTTP/1.1\nno colon",
            "GET http://a.test/ HTTP/1.1\nA: b\rHost: evil.test",
            "GET http://a.test/ HTTP/1.1\nA: b\0",
            "POST http://a.test/ HTTP/1.1\nContent-Length: 1\nContent-Length: 1",
            "POST http://a.test/ HTTP/1.1\nContent-Length: 1\nTransfer-Encoding: chunked",
            "POST http://a.test/ HTTP/1.1\nContent-Length: +1",
            "POST http://a.test/ HTTP/1.1\nContent-Length: 99999999999999999999",
            "POST http://a.test/ HTTP/1.1\nTransfer-Encoding: gzip, chunked",
        ] {
            let refused = parse(head.replace('\n', "\r\n").as_bytes()).unwrap_err();
            assert_eq!(refused.status(), "400 Bad Request", "{head:?}");
        }
        let bare = parse(b"GET http://a.test/ HTTP/1.1\r\nA: b\nHost: evil.test");
        assert!(bare.is_err(), "a bare LF");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_not(head in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&head);
        }

        #[test]
        fn nothing_breaks_out_of_a_field(value in "[ -~\r\n\t]{0,20}") {
            let head = format!("GET http://a.test/ HTTP/1.1\r\nA: {value}");
            if let Ok(Request { wish: Wish::Forward(anew, _), .. }) = parse(head.as_bytes()) {
                let lines = String::from_utf8(anew).unwrap();
                prop_assert_eq!(lines.matches("\nHost:").count(), 1);
                prop_assert!(!lines.replace("\r\n", "").contains(['\r', '\n']));
            }
        }
    }
}

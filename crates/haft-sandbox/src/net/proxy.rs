//! The proxy that `HTTP_PROXY` and `HTTPS_PROXY` point to: one request a connection.

use super::body;
use super::dial::NoWay;
use super::hall::{Reached, Visit};
use super::request::{self, BadRequest, Heard, Request, Wish};
use super::splice;
use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long, and how much, is listened to after a refusal was written: closing with bytes unread would
/// make the kernel take the refusal back.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_MAX: usize = 1024 * 1024;

/// Answers one connection.
pub(super) fn serve(visit: &Visit) {
    match hear(visit) {
        Ok(Some((request, rest))) => fulfil(visit, request, &rest),
        // It connected and went away.
        Ok(None) | Err(BadRequest::Broken(_)) => {}
        Err(bad) => turn_away(&visit.near, bad.status(), &format!("haft: {bad}\n")),
    }
}

fn hear(visit: &Visit) -> Result<Option<(Request, Vec<u8>)>, BadRequest> {
    let heard = request::read_head(&visit.near, visit.hall.limits.head)?;
    heard.map(|Heard { head, rest }| Ok((request::parse(&head)?, rest))).transpose()
}

fn fulfil(visit: &Visit, Request { host, port, wish }: Request, rest: &[u8]) {
    match (visit.reach(&host, port), wish) {
        (Ok(reached), Wish::Tunnel) => tunnel(visit, reached, rest),
        (Ok(reached), Wish::Forward(head, framing)) => reached.exchange(|near, far| {
            far.write_all(&head)?;
            let mut near = BufReader::with_capacity(64 * 1024, rest.chain(near));
            body::carry(framing, &mut near, far)?;
            // Until the program goes away. Should it say more, that is another request, which nobody has
            // checked: it goes unread, and the host learns that nothing else will come.
            near.read(&mut [0]).map(drop)
        }),
        (Err(no), _) => {
            let status = if no.is_refusal() { "403 Forbidden" } else { "502 Bad Gateway" };
            turn_away(&visit.near, status, &explain(visit, &no));
        }
    }
}

fn tunnel(visit: &Visit, reached: Reached<'_>, rest: &[u8]) {
    let said = (&*visit.near).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n");
    reached.exchange(|near, far| {
        said?;
        far.write_all(rest)?;
        splice::copy(near, far)
    });
}

/// For the model or person that reads it: what was refused, and what would not be.
fn explain(visit: &Visit, no: &NoWay) -> String {
    if no.is_refusal() { format!("haft: {no}\n{}\n", visit.hall.rules) } else { format!("haft: {no}\n") }
}

fn turn_away(stream: &TcpStream, status: &str, text: &str) {
    let head = "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length";
    let answer = format!("HTTP/1.1 {status}\r\n{head}: {}\r\n\r\n{text}", text.len());
    let mut said = stream;
    if said.write_all(answer.as_bytes()).and_then(|()| stream.shutdown(Shutdown::Write)).is_ok() {
        hear_out(stream);
    }
}

fn hear_out(mut stream: &TcpStream) {
    let (end, mut heard, mut buffer) = (Instant::now() + LINGER, 0, vec![0; 16 * 1024]);
    while heard < LINGER_MAX {
        let left = end.saturating_duration_since(Instant::now());
        // A timeout of zero is an error too.
        if stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => heard += count,
        }
    }
}

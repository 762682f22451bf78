//! A client that does what it is told, well formed or not.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Where a gateway listens.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) host: String,
}

/// What it said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Server {
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, String)], body: Option<&str>) -> Answer {
        let mut stream = self.connect();
        self.send(&mut stream, method, path, headers, body);
        read_answer(&mut BufReader::new(stream))
    }

    pub(crate) fn send(
        &self,
        stream: &mut TcpStream,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Option<&str>,
    ) {
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text.push_str(&format!("Host: {}\r\n", self.host));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            text.push_str(&format!("Content-Length: {}\r\nContent-Type: application/json\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(body.unwrap_or_default());
        stream.write_all(text.as_bytes()).unwrap();
    }
}

/// Reads one answer, and no more.
pub(crate) fn read_answer(reader: &mut impl BufRead) -> Answer {
    let (status, headers) = read_head(reader);
    let find = |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let mut body = Vec::new();
    if let Some(length) = find("content-length") {
        body.resize(length.parse().unwrap(), 0);
        reader.read_exact(&mut body).unwrap();
    } else if find("transfer-encoding").is_some() {
        while let Some(chunk) = read_chunk(reader) {
            body.extend(chunk);
        }
    }
    Answer { status, headers, body }
}

pub(crate) fn read_head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: `{line}`")).parse().unwrap();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    (status, headers)
}

/// The next chunk of a body that comes in chunks; none at its end.
pub(crate) fn read_chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return None;
    }
    let size = usize::from_str_radix(line.trim(), 16).ok()?;
    let mut chunk = vec![0; size + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    (size > 0).then_some(chunk)
}

/// Server-sent events, one after the other.
pub(crate) struct Stream {
    reader: BufReader<TcpStream>,
    rest: String,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Stream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader);
        assert_eq!(status, 200, "{headers:?}");
        Self { reader, rest: String::new() }
    }

    /// The next block, comments included; none when the stream ends.
    pub(crate) fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.rest.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.rest = rest;
                return Some(block);
            }
            self.rest.push_str(&String::from_utf8(read_chunk(&mut self.reader)?).unwrap());
        }
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Option<Told> {
        loop {
            let block = self.block()?;
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            if let (Some(name), Some(data)) = (field("event: "), field("data: ")) {
                let id = field("id: ").map(|id| id.parse().unwrap());
                return Some(Told { id, name, data: serde_json::from_str(&data).unwrap() });
            }
        }
    }

    /// The next event of that name about that call.
    pub(crate) fn about(&mut self, name: &str, call: &str) -> Told {
        loop {
            let told = self.next().unwrap_or_else(|| panic!("the stream ended before {name} {call}"));
            let id = told.data["call_id"].as_str().or(told.data["outcome"]["call_id"].as_str());
            if told.name == name && id == Some(call) {
                return told;
            }
        }
    }
}

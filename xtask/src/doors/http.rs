//! HTTP/1.1 with one connection that is kept.

use super::{PATIENCE, greeting, result};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// Where the gateway is, and the word that opens it.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) token: String,
}

impl Address {
    /// Reads `http://HOST:PORT/#token=TOKEN`.
    pub(crate) fn read(url: &str) -> Result<Self> {
        let (address, token) = url.trim().split_once("#token=").context("the address has no token")?;
        let host = address.strip_prefix("http://").context("the address is not of http")?.trim_end_matches('/');
        Ok(Self { host: host.to_owned(), token: token.to_owned() })
    }

    pub(super) fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(&self.host).with_context(|| format!("cannot reach {}", self.host))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// A stream of events, past its head.
    pub(crate) fn listen(&self) -> Result<BufReader<TcpStream>> {
        let mut stream = self.connect()?;
        let Self { host, token } = self;
        write!(stream, "GET /v1/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n")?;
        let mut reader = BufReader::with_capacity(4096, stream);
        let head = Head::read(&mut reader)?;
        if head.status != 200 {
            bail!("the stream of events answers {}", head.status);
        }
        Ok(reader)
    }
}

/// One connection.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    fixed: String,
    session: Option<String>,
    next: u64,
}

impl Http {
    pub(crate) fn connect(address: &Address) -> Result<Self> {
        let fixed = format!(
            "Host: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n",
            address.host, address.token
        );
        Ok(Self { stream: BufReader::new(address.connect()?), fixed, session: None, next: 0 })
    }

    /// Calls a tool by the REST door.
    pub(crate) fn call(&mut self, tool: &str, args: &Value) -> Result<()> {
        let (status, body) = self.post(&format!("/v1/tools/{tool}/call"), &json!({ "args": args }).to_string())?;
        // Looked at, not parsed: the measurement is of the server.
        if status != 200 || !body.contains("\"success\":true") {
            bail!("{status}: {body}");
        }
        Ok(())
    }

    /// Begins a session at the MCP door.
    pub(crate) fn initialize(&mut self) -> Result<()> {
        self.ask("initialize", &greeting())?;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        let (status, body) = self.post("/mcp", &initialized)?;
        if status != 202 && status != 200 {
            bail!("{status}: {body}");
        }
        Ok(())
    }

    /// Calls a tool at the MCP door.
    pub(crate) fn call_mcp(&mut self, tool: &str, args: &Value) -> Result<()> {
        self.ask("tools/call", &json!({ "name": tool, "arguments": args })).map(drop)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        let (status, body) = self.post("/mcp", &request.to_string())?;
        if status != 200 {
            bail!("{status}: {body}");
        }
        // One JSON text, or events of which one has the answer.
        let texts = body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        let messages = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let answer = messages.into_iter().find(|message| message["id"] == self.next && message.get("method").is_none());
        result(answer.with_context(|| format!("no answer in {body}"))?)
    }

    fn post(&mut self, path: &str, body: &str) -> Result<(u16, String)> {
        let session = self.session.as_deref().map(session_header).unwrap_or_default();
        let request =
            format!("POST {path} HTTP/1.1\r\n{}{session}Content-Length: {}\r\n\r\n{body}", self.fixed, body.len());
        self.stream.get_mut().write_all(request.as_bytes()).context("the gateway does not listen")?;
        let head = Head::read(&mut self.stream)?;
        let body = head.body(&mut self.stream)?;
        self.session = head.session.or(self.session.take());
        Ok((head.status, String::from_utf8_lossy(&body).into_owned()))
    }
}

fn session_header(id: &str) -> String {
    format!("Mcp-Session-Id: {id}\r\nMcp-Protocol-Version: 2025-11-25\r\n")
}

/// What matters of the head of an answer.
pub(super) struct Head {
    pub(super) status: u16,
    length: Option<usize>,
    chunked: bool,
    session: Option<String>,
}

impl Head {
    pub(super) fn read(from: &mut impl BufRead) -> Result<Self> {
        let mut line = String::new();
        from.read_line(&mut line).context("the gateway does not answer")?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.with_context(|| format!("this is no answer of HTTP: {line:?}"))?;
        let mut head = Self { status, length: None, chunked: false, session: None };
        loop {
            line.clear();
            if from.read_line(&mut line)? == 0 {
                bail!("the answer ends in its head");
            }
            let Some((name, value)) = line.split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = Some(value.trim().parse()?),
                "transfer-encoding" => head.chunked = value.contains("chunked"),
                "mcp-session-id" => head.session = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        Ok(head)
    }

    fn body(&self, from: &mut impl BufRead) -> Result<Vec<u8>> {
        if !self.chunked {
            return exactly(from, self.length.unwrap_or(0));
        }
        let (mut body, mut line) = (Vec::new(), String::new());
        loop {
            line.clear();
            from.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).with_context(|| format!("no chunk: {line:?}"))?;
            body.extend(exactly(from, size)?);
            exactly(from, 2)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
}

pub(super) fn exactly(from: &mut impl Read, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).context("the answer ends too early")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<(u16, String)> {
        let mut from = text.as_bytes();
        let head = Head::read(&mut from)?;
        let body = head.body(&mut from)?;
        assert!(from.is_empty(), "the next answer begins where this one ends");
        Ok((head.status, String::from_utf8(body)?))
    }

    #[test]
    fn an_answer_ends_where_it_says() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(answer(whole).unwrap(), (200, "hi".to_owned()));
        let parts = "HTTP/1.1 404 No\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\nA\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(answer(parts).unwrap(), (404, "hi0123456789".to_owned()));
        assert_eq!(answer("HTTP/1.1 202 Accepted\r\n\r\n").unwrap(), (202, String::new()));
        for cut in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi"] {
            assert!(answer(cut).is_err(), "{cut:?}");
        }
    }

    #[test]
    fn an_address_is_read_with_its_token() {
        let read = Address::read("http://127.0.0.1:4747/#token=abc\n").unwrap();
        assert_eq!((read.host.as_str(), read.token.as_str()), ("127.0.0.1:4747", "abc"));
        assert!(Address::read("http://127.0.0.1:4747/").is_err());
    }
}

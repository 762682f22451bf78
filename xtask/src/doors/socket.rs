//! A WebSocket that carries JSON-RPC.

use super::http::{Address, Head, exactly};
use super::result;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

const TEXT: u8 = 1;
const PING: u8 = 9;
const PONG: u8 = 10;

/// An open socket.
pub(crate) struct Socket {
    stream: BufReader<TcpStream>,
    next: u64,
}

impl Socket {
    pub(crate) fn connect(address: &Address) -> Result<Self> {
        let mut stream = address.connect()?;
        let Address { host, token } = address;
        write!(
            stream,
            "GET /ws HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: aGFmdCBtZWFzdXJlcyBpdA==\r\n\r\n"
        )?;
        let mut stream = BufReader::new(stream);
        let head = Head::read(&mut stream)?;
        if head.status != 101 {
            bail!("the socket answers {}", head.status);
        }
        Ok(Self { stream, next: 0 })
    }

    /// Calls a tool; what else is told meanwhile is not for a measurement.
    pub(crate) fn call(&mut self, tool: &str, args: &Value) -> Result<Value> {
        self.next += 1;
        let params = json!({ "tool": tool, "args": args });
        let request = json!({ "jsonrpc": "2.0", "id": self.next, "method": "tools.invoke", "params": params });
        self.send(TEXT, request.to_string().as_bytes())?;
        loop {
            match frame(&mut self.stream)? {
                (PING, body) => self.send(PONG, &body)?,
                (TEXT, body) => {
                    let message: Value = serde_json::from_slice(&body).context("this is no JSON")?;
                    if message["id"] == self.next {
                        return result(message);
                    }
                }
                (kind, _) => bail!("the socket was ended by a frame of kind {kind}"),
            }
        }
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(&masked(kind, body)).context("the gateway does not listen")
    }
}

/// A frame as clients must send it: masked, here with a mask of zeros.
fn masked(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | kind];
    match u16::try_from(body.len()) {
        Ok(short) if short < 126 => bytes.push(0x80 | short.to_be_bytes()[1]),
        Ok(long) => {
            bytes.push(0x80 | 0x7e);
            bytes.extend(long.to_be_bytes());
        }
        Err(_) => {
            bytes.push(0x80 | 0x7f);
            bytes.extend((body.len() as u64).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

/// The kind and the body of a server's frame.
fn frame(from: &mut impl Read) -> Result<(u8, Vec<u8>)> {
    let head = exactly(from, 2)?;
    let number = |bytes: Vec<u8>| bytes.iter().fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
    let length = match head[1] & 0x7f {
        126 => number(exactly(from, 2)?),
        127 => number(exactly(from, 8)?),
        short => usize::from(short),
    };
    if length > 1 << 24 {
        bail!("a frame of {length} bytes");
    }
    Ok((head[0] & 0x0f, exactly(from, length)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        for length in [0, 125, 126, 70_000] {
            let body = vec![b'x'; length];
            let mut bytes = masked(TEXT, &body);
            // A server's frame has no mask.
            let mask = bytes.len() - length - 4;
            bytes.drain(mask..mask + 4);
            bytes[1] &= 0x7f;
            assert_eq!(frame(&mut bytes.as_slice()).unwrap(), (TEXT, body));
        }
        assert!(frame(&mut [0x81_u8, 5, b'x'].as_slice()).is_err());
    }
}

//! A server that answers as it is told and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What it was asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// `METHOD /path?query`.
    pub(crate) line: String,
    /// The headers, one a line, names in small letters.
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// What it answers: status, headers and body.
pub(crate) type Answer = (u16, Vec<(String, String)>, String);
type Answers = dyn Fn(&Asked) -> Answer + Send + Sync;

/// A server on this machine, as long as this lives.
pub(crate) struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// One that answers by this function.
    pub(crate) fn new(answers: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (heard, answers): (_, Arc<Answers>) = (Arc::clone(&asked), Arc::new(answers));
        let serve = move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                // What is heard in vain is the end.
                if answer(&stream, &heard, &*answers).is_none() {
                    return;
                }
            }
        };
        Self { address, asked, thread: Some(std::thread::spawn(serve)) }
    }

    /// One that gives everybody the same text.
    pub(crate) fn saying(text: &'static str) -> Self {
        Self::new(move |_| ok(text))
    }

    pub(crate) fn authority(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it was asked since the last time.
    pub(crate) fn heard(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An empty connection is the end.
        drop(TcpStream::connect(self.address));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A plain answer.
pub(crate) fn ok(text: &str) -> Answer {
    (200, vec![("content-type".to_owned(), "text/plain".to_owned())], text.to_owned())
}

fn answer(stream: &TcpStream, heard: &Mutex<Vec<Asked>>, answers: &Answers) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut asked = Asked { line: line.trim_end_matches(" HTTP/1.1\r\n").to_owned(), ..Asked::default() };
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(": ")?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().ok()?;
        }
        asked.headers.push_str(&format!("{}: {value}\n", name.to_ascii_lowercase()));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    asked.body = String::from_utf8_lossy(&body).into_owned();
    let (status, headers, body) = answers(&asked);
    heard.lock().unwrap().push(asked);
    let mut text = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = stream;
    // Whoever asked may have gone away.
    let _ = stream.write_all(format!("{text}\r\n{body}").as_bytes());
    Some(())
}

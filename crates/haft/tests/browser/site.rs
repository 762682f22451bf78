//! A site on loopback: pages by path, cookies, downloads, redirects, and a list of who asked for what.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What is answered to a path: the status and fields, and the body.
pub(crate) type Answer = (&'static str, Vec<u8>);

/// A site that answers as long as the test runs.
pub(crate) struct Site {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

/// A page of HTML.
pub(crate) fn page(html: &str) -> Answer {
    ("200 OK\r\nContent-Type: text/html; charset=utf-8", html.as_bytes().to_vec())
}

impl Site {
    pub(crate) fn start(answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
    }

    pub(crate) fn on(listener: TcpListener, answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heard, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (heard, answer) = (Arc::clone(&heard), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &heard, &*answer));
            }
        });
        Self { port, asked }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Every request so far: method, path, body.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, heard: &Mutex<Vec<String>>, answer: &dyn Fn(&str, &str) -> Answer) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length, mut cookie) = (String::new(), 0, String::new());
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "cookie" => value.trim().clone_into(&mut cookie),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().to_owned());
    heard.lock().unwrap().push(format!("{method} {path} {}", String::from_utf8_lossy(&body)).trim().to_owned());
    let (status, body) = answer(&path, &cookie);
    let sent = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let mut stream = reader.into_inner();
    // A browser that has seen enough hangs up.
    let _ = stream.write_all(sent.as_bytes()).and_then(|()| stream.write_all(&body));
}

//! A web server that answers every request with the same page, and a project that may reach it.

use crate::project::Project;
use haft_core::Outcome;
use haft_core::host::HostRules;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What is answered: the content type and the body.
type Answer = Arc<Mutex<(String, Vec<u8>)>>;

pub(crate) struct Server {
    answer: Answer,
    port: u16,
    project: Project,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = Answer::default();
        let shared = Arc::clone(&answer);
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(&stream, &shared);
            }
        });
        let project = Project::with(|settings| {
            settings.web.allow_private = HostRules::from(vec![format!("127.0.0.1:{port}").parse().unwrap()]);
            settings.web.quota = haft_runtime::web::Quota { session: u32::MAX, hour: u32::MAX, day: u32::MAX };
        });
        Self { answer, port, project }
    }

    /// What web.fetch makes of a page.
    pub(crate) fn fetch(&self, content_type: &str, body: impl Into<Vec<u8>>) -> Outcome {
        *self.answer.lock().unwrap() = (content_type.to_owned(), body.into());
        self.project
            .call("web.fetch", json!({"url": format!("http://127.0.0.1:{}/page", self.port), "limit": 1_000_000}))
    }
}

/// The text that web.fetch gives, without the lines that mark it off.
pub(crate) fn inner(outcome: &Outcome) -> &str {
    assert!(outcome.success, "{outcome:?}");
    let (head, rest) = outcome.output.split_once('\n').unwrap();
    let mark = head.strip_prefix("<untrusted mark=\"").unwrap().split('"').next().unwrap();
    rest.rsplit_once(&format!("</untrusted mark=\"{mark}\">")).unwrap().0
}

fn serve(stream: &TcpStream, answer: &Answer) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let _ = lines.find(String::is_empty);
    let (content_type, body) = &*answer.lock().unwrap();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).unwrap();
}

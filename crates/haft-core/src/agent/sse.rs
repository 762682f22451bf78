//! Event streams: bytes as they come, cut anywhere, into events.

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Its name; empty if it has none.
    pub name: String,
    /// What it carries.
    pub data: String,
}

/// The longest line that is waited for. A server that sends more without an end is broken.
const LINE_MAX: usize = 16 << 20;

/// Puts events together.
#[derive(Debug, Default)]
pub struct Events {
    line: Vec<u8>,
    event: Event,
    any_data: bool,
    /// The last byte was a carriage return, so a line feed belongs to it.
    returned: bool,
}

impl Events {
    /// Takes bytes, and gives the events that are whole with them. None if a line has no end.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Vec<Event>> {
        let mut whole = Vec::new();
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.returned, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => whole.extend(self.end_line()),
                _ if self.line.len() >= LINE_MAX => return None,
                other => self.line.push(*other),
            }
        }
        Some(whole)
    }

    /// The stream is over: an event that nobody ended is no event, but some servers forget the last empty line.
    pub fn finish(mut self) -> Option<Event> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_event()
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if std::mem::replace(&mut self.any_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // A comment, or something that nobody here needs.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.any_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str =
        ": hello\r\nevent: one\r\ndata: {\"a\":1}\r\n\r\ndata: x\ndata:  y\n\nevent: empty\n\nid: 4\rdata: ü\r\r";

    fn read(chunks: &[&[u8]]) -> Vec<Event> {
        let mut events = Events::default();
        let mut all: Vec<Event> = chunks.iter().flat_map(|chunk| events.feed(chunk).unwrap()).collect();
        all.extend(events.finish());
        all
    }

    #[test]
    fn events_are_what_the_standard_says() {
        let event = |name: &str, data: &str| Event { name: name.to_owned(), data: data.to_owned() };
        let expected = [event("one", "{\"a\":1}"), event("", "x\n y"), event("", "ü")];
        assert_eq!(read(&[STREAM.as_bytes()]), expected);
        assert_eq!(read(&[b"data: last"]), [event("", "last")], "and the end of a stream is one of an event");
    }

    proptest! {
        #[test]
        fn wherever_it_is_cut_it_says_the_same(cuts in proptest::collection::vec(0..STREAM.len(), 0..6)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let (mut chunks, mut from) = (Vec::new(), 0);
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                chunks.push(&STREAM.as_bytes()[from..cut]);
                from = cut;
            }
            prop_assert_eq!(read(&chunks), read(&[STREAM.as_bytes()]));
        }
    }
}

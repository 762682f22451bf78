//! An event as one line: time, level, process, source, message, fields.
//!
//! `2026-11-19T14:24:16.123Z  INFO 4711 haft::call: a call begins call=c-1 tool=file.read`

use haft_core::preview::inert;
use haft_core::secret::{MASK, is_secret_name, mask_urls};
use std::fmt::{Debug, Write};
use tracing::Event;
use tracing::field::{Field, Visit};

/// How long a line may be.
const LINE_MAX: usize = 8 << 10;

/// The line, with its end. Nothing in it acts on a terminal or looks like another line, and secrets are masked.
pub(super) fn line(event: &Event<'_>) -> String {
    let about = event.metadata();
    let now = jiff::Timestamp::now();
    let mut words = Words::default();
    event.record(&mut words);
    let Words { message, fields } = words;
    let head = format!("{now:.3} {:>5} {} {}:", about.level(), std::process::id(), about.target());
    let text = inert(&mask_urls(&format!("{message}{fields}")));
    let end = text.floor_char_boundary(LINE_MAX);
    format!("{head} {}\n", &text[..end])
}

/// The message and the fields of an event.
#[derive(Default)]
struct Words {
    message: String,
    fields: String,
}

impl Words {
    fn add(&mut self, field: &Field, value: &str) {
        let name = field.name();
        if name == "message" {
            value.clone_into(&mut self.message);
        } else if is_secret_name(name) {
            let _ = write!(self.fields, " {name}={MASK}");
        } else if value.is_empty() || value.contains([' ', '"', '=']) {
            let _ = write!(self.fields, " {name}={value:?}");
        } else {
            let _ = write!(self.fields, " {name}={value}");
        }
    }
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_store::waits::{self, Wait, WaitKind};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;
    use tracing::Subscriber;
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Lines {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap().push(line(event));
        }
    }

    fn lines(log: impl FnOnce()) -> Vec<String> {
        let lines = Lines::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines.clone()), log);
        lines.0.lock().unwrap().clone()
    }

    #[test]
    fn an_event_is_one_line_without_secrets_that_acts_on_nothing() {
        let key = concat!("sk-ant-", "api03-0123456789012345678901234567890123456789");
        let said = lines(|| {
            tracing::info!(target: "haft::call", tool = "a b", n = 3, "one\n\u{1b}[31mtwo");
            tracing::warn!(
                why = format!("401 for {key} at https://me:pw@host/?token=abc"),
                api_token = "abc",
                "failed"
            );
        });
        let [first, second] = &said[..] else { panic!("{said:?}") };
        let pid = std::process::id();
        assert!(
            first.ends_with(&format!("  INFO {pid} haft::call: one↵\\u{{1b}}[31mtwo tool=\"a b\" n=3\n")),
            "{first}"
        );
        assert!(second.contains("  WARN ") || second.contains(" WARN "), "{second}");
        assert!(second.contains("api_token=[secret]"), "{second}");
        for secret in [key, "me:pw", "token=abc"] {
            assert!(!second.contains(secret), "{second}");
        }
        let long = lines(|| tracing::info!("{}", "x".repeat(1 << 20)));
        assert!(long[0].len() < LINE_MAX + 200 && long[0].ends_with("x\n"));
    }

    #[test]
    fn a_wait_that_takes_long_is_named_while_it_lasts() {
        waits::watch();
        let said = lines(|| {
            let wait = Wait::begin(WaitKind::Approval, || "call-1 (file.write)".to_owned());
            let _other = Wait::begin(WaitKind::Store, || "Write of haft.db".to_owned());
            waits::report_long_waits(Duration::from_hours(1));
            waits::report_long_waits(Duration::ZERO);
            drop(wait);
        });
        let said: Vec<&str> =
            said.iter().filter_map(|line| line.split_once("haft::wait: ").map(|(_, said)| said)).collect();
        let cut = |line: &str| line.split(" ms=").next().unwrap_or_default().trim_end().to_owned();
        assert_eq!(
            said.iter().map(|line| cut(line)).collect::<Vec<_>>(),
            [
                "a wait begins kind=approval about=\"call-1 (file.write)\"",
                "a wait begins kind=store about=\"Write of haft.db\"",
                "still waits kind=approval about=\"call-1 (file.write)\"",
                "still waits kind=store about=\"Write of haft.db\"",
                "a long wait ended kind=approval about=\"call-1 (file.write)\"",
                "a long wait ended kind=store about=\"Write of haft.db\"",
            ]
        );
    }
}

//! What is counted, for Prometheus.

use haft_core::Outcome;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

type Labels = [(&'static str, String); 2];

/// Everything that is counted.
pub(crate) struct Meters {
    registry: Registry,
    calls: Family<Labels, Counter>,
    seconds: Histogram,
    pub(crate) connections: Gauge,
    pub(crate) listeners: Gauge,
    pub(crate) sockets: Gauge,
    pub(crate) pending: Gauge,
    pub(crate) refused: Counter,
    pub(crate) missed: Counter,
    pub(crate) turned_away: Counter,
}

impl Meters {
    pub(crate) fn new() -> Self {
        let mut meters = Self {
            registry: Registry::with_prefix("haft"),
            calls: Family::default(),
            // From a tenth of a millisecond to some minutes.
            seconds: Histogram::new(exponential_buckets(0.0001, 4.0, 11)),
            connections: Gauge::default(),
            listeners: Gauge::default(),
            sockets: Gauge::default(),
            pending: Gauge::default(),
            refused: Counter::default(),
            missed: Counter::default(),
            turned_away: Counter::default(),
        };
        let to = &mut meters.registry;
        to.register("calls", "Calls that ended, by family of tools and how", meters.calls.clone());
        to.register_with_unit("call_duration", "How long calls took", Unit::Seconds, meters.seconds.clone());
        to.register("connections", "Open connections", meters.connections.clone());
        to.register("event_listeners", "Open streams of events", meters.listeners.clone());
        to.register("websockets", "Open WebSockets", meters.sockets.clone());
        to.register("approvals_pending", "Calls that wait for a person", meters.pending.clone());
        to.register("auth_failures", "Requests without the right token", meters.refused.clone());
        to.register("events_missed", "Events that slow listeners did not get", meters.missed.clone());
        to.register("connections_refused", "Connections beyond the limit", meters.turned_away.clone());
        meters
    }

    /// Counts a call. Tools are counted by family: their names may come from anywhere, and labels must stay few.
    pub(crate) fn ended(&self, outcome: &Outcome, known: bool) {
        let family = match outcome.tool.split(['.', ':']).next() {
            Some(family) if known => family.to_owned(),
            _ => "unknown".to_owned(),
        };
        let how = outcome.error.as_ref().map_or("success", |error| error.kind.as_str());
        self.calls.get_or_create(&[("family", family), ("outcome", how.to_owned())]).inc();
        self.seconds.observe(std::time::Duration::from_millis(outcome.duration_ms).as_secs_f64());
    }

    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Counts something for as long as this lives.
pub(crate) struct Counted(Gauge);

impl Counted {
    pub(crate) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

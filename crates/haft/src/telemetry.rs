//! Where spans and events go: spans to an OpenTelemetry collector, if the usual environment variables name one; events to the
//! operational log, where there is one. Otherwise nowhere, and nothing is set up for them.

use crate::cli::Cli;
use crate::operational_log::{LogPlan, LogWriter};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;

/// Sends spans and logs events as long as it lives; what is left goes out when it is dropped.
pub(crate) struct Telemetry {
    _log: Option<LogWriter>,
    spans: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Starts sending if `OTEL_EXPORTER_OTLP_ENDPOINT` (or its variant for traces) is set and `OTEL_SDK_DISABLED` and
    /// `OTEL_TRACES_EXPORTER` do not say otherwise, and logging as the command has it. A collector that cannot be used is a
    /// warning: it must not keep anybody from working.
    pub(crate) fn start(cli: &Cli) -> Self {
        let (spans, plan) = (provider_wanted(), LogPlan::of(cli));
        if spans.is_none() && plan.is_none() {
            return Self { _log: None, spans };
        }
        let sending = spans.as_ref().map(|provider| {
            let layer = tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("haft"))
                .with_location(false)
                .with_threads(false);
            // What libraries say about themselves is not what a call did, and the operational log is for people.
            let ours = Targets::new()
                .with_target("haft", tracing::Level::INFO)
                .with_target("haft::call", LevelFilter::OFF)
                .with_target("haft::wait", LevelFilter::OFF);
            layer.with_filter(ours)
        });
        let role = plan.as_ref().map(LogPlan::role);
        let (layer, log) = plan.and_then(LogPlan::start).unzip();
        let all = tracing_subscriber::registry().with(layer).with(sending);
        if tracing::subscriber::set_global_default(all).is_err() {
            crate::style::warn("spans and events are collected by somebody else already");
            return Self { _log: None, spans };
        }
        if let (true, Some(role)) = (log.is_some(), role) {
            LogWriter::begin(role);
        }
        Self { _log: log, spans }
    }
}

fn provider_wanted() -> Option<SdkTracerProvider> {
    let provider = wanted().then(provider)?;
    provider.inspect_err(|error| crate::style::warn(&format!("spans cannot be sent: {error}"))).ok()
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = self.spans.take() {
            // What cannot be delivered now is lost: the log has everything.
            let _ = provider.shutdown();
        }
    }
}

fn wanted() -> bool {
    let set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|said| said.eq_ignore_ascii_case(value));
    let named = set("OTEL_EXPORTER_OTLP_ENDPOINT") || set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    named && !is("OTEL_SDK_DISABLED", "true") && !is("OTEL_TRACES_EXPORTER", "none")
}

fn provider() -> Result<SdkTracerProvider, opentelemetry_otlp::ExporterBuildError> {
    haft_runtime::http::ready();
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().build()?;
    // `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say otherwise if they are set.
    let resource =
        Resource::builder().with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
    let resource = if named { resource } else { resource.with_service_name("haft") };
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build())
}

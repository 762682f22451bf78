//! Where spans go: to an OpenTelemetry collector, if the usual environment variables name one. Otherwise nowhere, and
//! nothing is set up for them.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

/// Sends spans as long as it lives; what is left goes out when it is dropped.
pub(crate) struct Telemetry(Option<SdkTracerProvider>);

impl Telemetry {
    /// Starts sending if `OTEL_EXPORTER_OTLP_ENDPOINT` (or its variant for traces) is set and `OTEL_SDK_DISABLED` and
    /// `OTEL_TRACES_EXPORTER` do not say otherwise. A collector that cannot be used is a warning: it must not keep
    /// anybody from working.
    pub(crate) fn from_env() -> Self {
        if !wanted() {
            return Self(None);
        }
        match provider() {
            Ok(provider) => {
                let layer = tracing_opentelemetry::layer()
                    .with_tracer(provider.tracer("haft"))
                    .with_location(false)
                    .with_threads(false);
                // What libraries say about themselves is not what a call did.
                let ours = Targets::new().with_target("haft", tracing::Level::INFO);
                let all = tracing_subscriber::registry().with(ours).with(layer);
                if tracing::subscriber::set_global_default(all).is_err() {
                    crate::style::warn("spans are collected by somebody else already");
                }
                Self(Some(provider))
            }
            Err(error) => {
                crate::style::warn(&format!("spans cannot be sent: {error}"));
                Self(None)
            }
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(provider) = self.0.take() {
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

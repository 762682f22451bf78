//! The one place that knows how requests leave this process.

/// Makes TLS ready. Whoever builds a client calls this first; once is enough, and more do no harm.
pub fn ready() {
    // An error only says that it has been done.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

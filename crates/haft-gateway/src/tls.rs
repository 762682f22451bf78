//! HTTPS, from a certificate and a key that the operator brings.

use crate::accept::ServeError;
use crate::options::Tls;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What turns connections into encrypted ones.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
    let fail = |what: &str, why: &dyn std::fmt::Display| ServeError::Tls(format!("{what}: {why}"));
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&tls.cert)
        .collect::<Result<_, _>>()
        .map_err(|error| fail("the certificate cannot be read", &error))?;
    if chain.is_empty() {
        return Err(fail("the certificate cannot be read", &"the file holds none"));
    }
    let key =
        PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| fail("the private key cannot be read", &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| fail("TLS cannot be set up", &error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| fail("certificate and key do not fit", &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

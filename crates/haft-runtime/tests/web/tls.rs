//! Certificates that do not hold. Trust is set by a variable, so the asking is done in a process of its own.

use super::server::{Server, ok};
use super::{Stage, alone, data, fault, part, passes, run};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub(crate) fn file(name: &str) -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web/tls").join(name)
}

pub(crate) fn acceptor(certificate: &str) -> TlsAcceptor {
    let chain = vec![CertificateDer::from_pem_file(file(certificate)).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[test]
fn only_a_certificate_that_holds_is_believed() {
    if part().is_some() {
        return run(with_an_authority_of_its_own());
    }
    let mut command = alone(&[], "tls::only_a_certificate_that_holds_is_believed");
    command.env("SSL_CERT_FILE", file("authority.pem")).env_remove("SSL_CERT_DIR");
    passes(command);
}

async fn with_an_authority_of_its_own() {
    for (certificate, why) in [
        ("good.pem", None),
        ("expired.pem", Some("its certificate has expired")),
        ("elsewhere.pem", Some("its certificate is for another host")),
        ("self.pem", Some("nobody who is trusted here vouches for its certificate")),
    ] {
        let server = Server::secure(acceptor(certificate), |_| ok("", "trusted")).await;
        let stage = Stage::reaching(&[server.port()]);
        let outcome = stage.get(&format!("https://127.0.0.1:{}/", server.port())).await;
        let Some(why) = why else {
            assert_eq!(data(&outcome)["body"], "trusted", "{outcome:?}");
            continue;
        };
        let (kind, said) = fault(&outcome);
        assert!(kind == "upstream" && said.contains(why), "{certificate}: {outcome:?}");
        assert!(server.heard().is_empty(), "nothing was said before trust");
    }
    // What does not speak TLS at all; and what is sent on to where nothing is encrypted.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let rude = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    });
    let plain = Server::start(|_| ok("", "plain")).await;
    let to = plain.url("/");
    let secure = Server::secure(acceptor("good.pem"), move |_| super::server::sends_on(302, &to)).await;
    let stage = Stage::reaching(&[rude, plain.port(), secure.port()]);
    let outcome = stage.get(&format!("https://127.0.0.1:{rude}/")).await;
    assert!(fault(&outcome).1.contains("no encrypted connection could be made"), "{outcome:?}");
    let outcome = stage.get(&format!("https://127.0.0.1:{}/", secure.port())).await;
    let (kind, said) = fault(&outcome);
    assert!(kind == "denied" && said.contains("would be asked without encryption"), "{outcome:?}");
    assert!(plain.heard().is_empty(), "nobody was asked in clear");
}

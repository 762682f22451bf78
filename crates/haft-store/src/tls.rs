//! The way to a server, encrypted: what `sslmode` and `sslrootcert` in its address say, as PostgreSQL's own programs
//! understand them. Where nothing is said, a server on another machine has to prove who it is; theirs would believe anybody.

use postgres::config::{Host, SslMode};
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use postgres::{Config, Socket};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// How much is asked of the way there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Nothing is encrypted.
    Disable,
    /// Encrypted if the server can.
    Prefer,
    /// Encrypted; whoever answers is believed.
    Require,
    /// Encrypted, and the certificate is one that is trusted.
    VerifyCa,
    /// Encrypted, and the certificate is one that is trusted, of this very name.
    VerifyFull,
}

/// How a server is spoken to.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    wanted: Wanted,
    roots: Option<PathBuf>,
}

impl Tls {
    /// Takes what an address says of this out of it.
    pub(crate) fn read(text: &str) -> Result<(String, Self), String> {
        let (mut said, mut named, mut roots) = (None, false, None);
        let (front, query) = text.split_once('?').map_or((text, None), |(front, query)| (front, Some(query)));
        let mut rest = Vec::new();
        for pair in query.into_iter().flat_map(|query| query.split('&')) {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => said = Some(wanted(mode)?),
                Some(("sslrootcert", "system")) => (named, roots) = (true, None),
                Some(("sslrootcert", file)) => {
                    (named, roots) = (true, Some(PathBuf::from(file.replace("%2F", "/"))));
                }
                _ => rest.push(pair),
            }
        }
        let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
        let text = format!("{front}{query}");
        let wanted = match (said, named) {
            // Whoever names whom to trust wants it looked at.
            (Some(Wanted::Require), true) => Wanted::VerifyCa,
            (Some(said), _) => said,
            (None, named) => unsaid(&text, named),
        };
        Ok((text, Self { wanted, roots }))
    }

    /// What the connection has to begin with.
    pub(crate) fn asked(&self) -> SslMode {
        match self.wanted {
            Wanted::Disable => SslMode::Disable,
            Wanted::Prefer => SslMode::Prefer,
            Wanted::Require | Wanted::VerifyCa | Wanted::VerifyFull => SslMode::Require,
        }
    }

    /// In words.
    pub(crate) fn privacy(&self, hosts: &[Host]) -> &'static str {
        if hosts.iter().all(|host| matches!(host, Host::Unix(_))) {
            return "on this machine";
        }
        match self.wanted {
            Wanted::Disable => "not encrypted",
            Wanted::Prefer => "encrypted only if the server offers it",
            Wanted::Require => "encrypted, but whoever answers is believed",
            Wanted::VerifyCa => "encrypted, the certificate verified but not its name",
            Wanted::VerifyFull => "encrypted and verified",
        }
    }

    /// Whether nobody can listen, nor pretend to be the server.
    pub(crate) fn connector(&self) -> Result<Connector, String> {
        let provider = Arc::new(ring::default_provider());
        let fail = |error: rustls::Error| format!("TLS cannot be set up: {error}");
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(fail)?.dangerous();
        let config = builder.with_custom_certificate_verifier(self.verifier(provider)?).with_no_client_auth();
        Ok(Connector(Arc::new(config)))
    }

    fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, String> {
        let chain: Option<Arc<dyn ServerCertVerifier>> = match (&self.roots, self.wanted) {
            (_, Wanted::Disable | Wanted::Prefer | Wanted::Require) => None,
            (Some(file), _) => {
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(file)?), provider.clone());
                Some(verifier.build().map_err(|error| format!("{}: {error}", file.display()))?)
            }
            (None, _) => {
                let verifier = rustls_platform_verifier::Verifier::new(provider.clone());
                Some(Arc::new(
                    verifier.map_err(|error| format!("this machine's certificates cannot be used: {error}"))?,
                ))
            }
        };
        if let (Some(chain), Wanted::VerifyFull) = (&chain, self.wanted) {
            return Ok(Arc::clone(chain));
        }
        Ok(Arc::new(Lenient { chain, provider }))
    }
}

/// What is asked of the way to a server of which nothing is said. An address that cannot be read is refused later.
fn unsaid(address: &str, named: bool) -> Wanted {
    let Ok(config) = address.parse::<Config>() else { return Wanted::VerifyFull };
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let on_socket = |host: &Host| matches!(host, Host::Unix(_));
    let here = |host: &Host| match host {
        Host::Tcp(name) => {
            let loopback = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
            loopback || name.eq_ignore_ascii_case("localhost")
        }
        Host::Unix(_) => true,
    };
    if !hosts.is_empty() && addresses.is_empty() && hosts.iter().all(on_socket) {
        return Wanted::Prefer;
    }
    // A name is asked for its address only where none is given.
    let stays =
        if addresses.is_empty() { hosts.iter().all(here) } else { addresses.iter().all(std::net::IpAddr::is_loopback) };
    if stays && !named { Wanted::Prefer } else { Wanted::VerifyFull }
}

fn wanted(mode: &str) -> Result<Wanted, String> {
    Ok(match mode {
        "disable" => Wanted::Disable,
        "allow" | "prefer" => Wanted::Prefer,
        "require" => Wanted::Require,
        "verify-ca" => Wanted::VerifyCa,
        "verify-full" => Wanted::VerifyFull,
        _ => return Err("its sslmode is none of disable, prefer, require, verify-ca, verify-full".to_owned()),
    })
}

fn roots(file: &std::path::Path) -> Result<RootCertStore, String> {
    let fail = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| fail(&error))? {
        store.add(certificate.map_err(|error| fail(&error))?).map_err(|error| fail(&error))?;
    }
    if store.is_empty() { Err(fail(&"it holds no certificate")) } else { Ok(store) }
}

/// Looks at less than everything, because that is what was asked for: at no chain, or at a chain but at no name.
#[derive(Debug)]
struct Lenient {
    chain: Option<Arc<dyn ServerCertVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use rustls::CertificateError as Bad;
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Makes encrypted connections.
#[derive(Clone)]
pub(crate) struct Connector(Arc<ClientConfig>);

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, Self::Error> {
        // A socket of this machine has no name; nor is it encrypted.
        let name = if domain.is_empty() { "localhost" } else { domain };
        Ok(Handshake { config: Arc::clone(&self.0), name: ServerName::try_from(name.to_owned())? })
    }
}

/// One on its way.
pub(crate) struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = TlsConnector::from(self.config).connect(self.name, stream).await?;
            Ok(Encrypted(Box::new(stream)))
        })
    }
}

/// One that is made.
pub(crate) struct Encrypted(Box<tokio_rustls::client::TlsStream<Socket>>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_asks_for_is_taken_out_of_it() {
        let (text, tls) = Tls::read("postgres://h/db?sslmode=verify-full&port=1&sslrootcert=/ca.pem").unwrap();
        assert_eq!((text.as_str(), tls.wanted), ("postgres://h/db?port=1", Wanted::VerifyFull));
        assert_eq!(tls.roots.unwrap(), PathBuf::from("/ca.pem"));
        let (_, named) = Tls::read("postgres://h/db?sslmode=require&sslrootcert=/ca.pem").unwrap();
        assert_eq!(named.wanted, Wanted::VerifyCa, "whom to trust is not named for nothing");
        assert!(Tls::read("postgres://h/db?sslmode=verifyfull").unwrap_err().contains("none of"));
    }

    #[test]
    fn another_machine_has_to_prove_who_it_is_unless_somebody_says_otherwise() {
        for (address, wanted) in [
            ("postgres://db.example/haft", Wanted::VerifyFull),
            ("postgres://me:pw@10.0.0.7:5432/haft?connect_timeout=3", Wanted::VerifyFull),
            ("postgres://localhost,db.example/haft", Wanted::VerifyFull),
            ("postgres://localhost/haft?hostaddr=10.0.0.7", Wanted::VerifyFull),
            ("postgres://localhost.example/haft", Wanted::VerifyFull),
            ("postgres://db.example/haft?sslmode=prefer", Wanted::Prefer),
            ("postgres://db.example/haft?sslmode=disable", Wanted::Disable),
            ("postgres://db.example/haft?sslrootcert=system", Wanted::VerifyFull),
            ("postgres://localhost/haft", Wanted::Prefer),
            ("postgres://LOCALHOST:5433/haft", Wanted::Prefer),
            ("postgres://127.0.0.1/haft", Wanted::Prefer),
            ("postgres://[::1]/haft", Wanted::Prefer),
            ("postgres://localhost/haft?sslrootcert=/ca.pem", Wanted::VerifyFull),
            ("postgres:///haft?host=/run/postgresql", Wanted::Prefer),
            ("postgres:///haft?host=/run/postgresql&sslrootcert=/ca.pem", Wanted::Prefer),
            ("postgres://me@%2Frun%2Fpostgresql/haft", Wanted::Prefer),
        ] {
            assert_eq!(Tls::read(address).unwrap().1.wanted, wanted, "{address}");
        }
    }
}

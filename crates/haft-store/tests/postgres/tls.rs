//! The way to a server, encrypted.

use crate::real::Server;
use haft_store::Store;
use std::path::{Path, PathBuf};
use std::process::Command;

fn openssl(dir: &Path, words: &str) {
    let done = Command::new("openssl").args(words.split(' ')).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A certificate for `localhost` that nobody but whoever made it trusts.
fn certificate(dir: &Path) {
    openssl(dir, "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca");
    openssl(dir, "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost");
    std::fs::write(dir.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    openssl(
        dir,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 -extfile names",
    );
    std::fs::copy(dir.join("server.key"), dir.join("own.key")).unwrap();
}

#[test]
fn who_answers_is_verified_as_far_as_it_was_asked_for() {
    let keys = tempfile::Builder::new().prefix("haft-tls-").tempdir_in("/tmp").unwrap();
    certificate(keys.path());
    for file in ["", "server.key", "server.pem"] {
        let done = Command::new("chmod").args(["go+rX"]).arg(keys.path().join(file)).status().unwrap();
        assert!(done.success());
    }
    let Some(server) = Server::start("", &[]) else { return };
    // The server takes only a key that is its own.
    let (cert, key) = (server.dir.path().join("server.pem"), server.dir.path().join("server.key"));
    std::fs::copy(keys.path().join("server.pem"), &cert).unwrap();
    std::fs::copy(keys.path().join("server.key"), &key).unwrap();
    let owner = std::fs::metadata(server.dir.path()).unwrap();
    std::os::unix::fs::chown(&key, Some(std::os::unix::fs::MetadataExt::uid(&owner)), None).unwrap();
    std::os::unix::fs::chown(&cert, Some(std::os::unix::fs::MetadataExt::uid(&owner)), None).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let port = free_port();
    let server = server.with(&format!(
        "-c listen_addresses=localhost -c port={port} -c ssl=on -c ssl_cert_file={} -c ssl_key_file={}",
        cert.display(),
        key.display()
    ));
    let open = |host: &str, options: &str| {
        let address = format!("postgres://haft@{host}:{port}/postgres?{options}");
        Store::open(&PathBuf::from(address)).map(|store| store.privacy()).map_err(|error| error.to_string())
    };
    let root = format!("sslrootcert={}", keys.path().join("ca.pem").display());
    assert_eq!(open("localhost", "sslmode=require").unwrap(), "encrypted, but whoever answers is believed");
    assert_eq!(open("localhost", &format!("sslmode=verify-full&{root}")).unwrap(), "encrypted and verified");
    assert!(open("127.0.0.1", &format!("sslmode=verify-ca&{root}")).is_ok(), "the name is not looked at");
    let refused = open("127.0.0.1", &format!("sslmode=verify-full&{root}")).unwrap_err();
    assert!(refused.contains("not valid for"), "{refused}");
    let refused = open("localhost", "sslmode=verify-full").unwrap_err();
    assert!(refused.contains("certificate"), "nobody here knows who signed it: {refused}");
    // Whoever names whom to trust wants it looked at, name and all.
    assert_eq!(open("localhost", &root).unwrap(), "encrypted and verified");
    let refused = open("127.0.0.1", &root).unwrap_err();
    assert!(refused.contains("not valid for"), "{refused}");
    assert!(open("localhost", "sslmode=disable").is_ok());
    server.only_encrypted();
    let refused = open("localhost", "sslmode=disable").unwrap_err();
    assert!(refused.contains("pg_hba.conf") || refused.contains("no encryption"), "{refused}");
    assert!(open("localhost", "sslmode=prefer").is_ok());
    assert!(open("localhost", "").is_ok(), "nobody is between this machine and itself");
}

#[test]
fn a_server_on_another_machine_that_cannot_prove_who_it_is_is_refused_with_what_to_say() {
    // An address of this machine that is not the one of itself.
    let Some(here) = own_address() else { return };
    let Some(server) = Server::start("", &[]) else { return };
    let port = free_port();
    let server = server.with(&format!("-c listen_addresses={here} -c port={port}"));
    let rules = "local all all trust\nhost all all all trust\n";
    std::fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
    let done = server.command("pg_ctl").arg("-D").arg(server.data()).args(["-s", "reload"]).status().unwrap();
    assert!(done.success());
    let open = |options: &str| {
        let address = format!("postgres://haft@{here}:{port}/postgres?{options}");
        Store::open(&PathBuf::from(address)).map(|store| store.privacy()).map_err(|error| error.to_string())
    };
    let refused = open("").unwrap_err();
    assert!(refused.contains("does not support TLS") && refused.contains("sslmode="), "{refused}");
    assert_eq!(open("sslmode=disable").unwrap(), "not encrypted", "whoever says so gets it");
}

/// The address by which others know this machine, if it has one.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: it is only asked which way it would go.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

impl Server {
    /// The same, started anew with other options.
    fn with(mut self, options: &str) -> Self {
        self.stop("fast");
        options.clone_into(&mut self.options);
        self.up();
        self
    }

    /// From now on lets nobody in over the network whose connection is not encrypted.
    fn only_encrypted(&self) {
        let rules = "local all all trust\nhostssl all all all trust\n";
        std::fs::write(self.data().join("pg_hba.conf"), rules).unwrap();
        let done = self.command("pg_ctl").arg("-D").arg(self.data()).args(["-s", "reload"]).status().unwrap();
        assert!(done.success());
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

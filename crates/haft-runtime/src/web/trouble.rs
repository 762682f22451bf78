//! Why there is no answer, in words that say what to do.

use super::room::STEP;
use crate::http::{CONNECT, Unknown};
use haft_core::manifest::{Permissions, Reachable};
use haft_core::preview::{cut, inert, size};
use haft_core::web::{Refusal, Target};
use haft_core::{CallError, ErrorKind};
use rustls::CertificateError;
use std::error::Error;
use std::io;
use std::time::Duration;

/// The rules say no.
pub(super) fn refused(refusal: &Refusal) -> CallError {
    CallError::new(ErrorKind::Denied, refusal.to_string()).hint(refusal.hint())
}

/// The same for a manifest's request: it is the manifest's own list that is too short, unless the user's is as well.
pub(super) fn refused_to(refusal: &Refusal, target: &Target, permissions: Option<&Permissions>) -> CallError {
    match (refusal, permissions.map(|permissions| &permissions.network)) {
        (Refusal::NotListed(_), Some(Reachable::Hosts(hosts)))
            if !hosts.iter().any(|rule| rule.covers(target.host(), target.port())) =>
        {
            refused(refusal).hint("its manifest's `permissions.network` would have to name the host")
        }
        _ => refused(refusal),
    }
}

/// The time is up.
pub(super) fn late(timeout: Duration) -> CallError {
    CallError::new(ErrorKind::Timeout, format!("no whole answer within {} s", timeout.as_secs_f64()))
        .hint("the host is slow, or sends without end; allow more time, or ask for less")
}

/// It takes room that others wait for, and does not use it.
pub(super) fn slow(target: &Target, pace: Duration) -> CallError {
    let message =
        format!("{} sends too slowly: less than {} within {} s", target.origin(), size(STEP), pace.as_secs_f64());
    CallError::new(ErrorKind::Timeout, message).hint("try again later, or ask for less")
}

/// An answer came, and is no good.
pub(super) fn unreadable(target: &Target, why: &str) -> CallError {
    CallError::new(ErrorKind::Upstream, format!("the answer of {} cannot be read: {why}", target.origin()))
}

/// Nobody was reached: the guard's own word if it was the guard, else what the connection says.
pub(crate) fn unreached(target: &Target, error: &reqwest::Error) -> CallError {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = source {
        if let Some(refusal) = current.downcast_ref::<Refusal>() {
            return refused(refusal);
        }
        if let Some((why, hint)) = known(current) {
            let message = format!("{} cannot be reached: {why}", target.origin());
            return CallError::new(ErrorKind::Upstream, message).hint(hint);
        }
        source = current.source();
    }
    if error.is_timeout() {
        let message = format!("{} did not take the connection within {} s", target.origin(), CONNECT.as_secs());
        return CallError::new(ErrorKind::Timeout, message).hint("check the address, and that the host is up");
    }
    let message = format!("{} cannot be reached: {}", target.origin(), cause(error));
    let hint = if error.is_connect() { "check the address, and that the host is up" } else { "try again later" };
    CallError::new(ErrorKind::Upstream, message).hint(hint)
}

fn known(error: &(dyn Error + 'static)) -> Option<(String, &'static str)> {
    if let Some(unknown) = error.downcast_ref::<Unknown>() {
        return Some((unknown.to_string(), "check the spelling of the name, and the connection to the internet"));
    }
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some((untrusted(tls), "whoever runs the host has to mend this; the check cannot be switched off"));
    }
    let io = error.downcast_ref::<io::Error>()?;
    // An I/O error does not count what it wraps as its source.
    if let Some(inner) = io.get_ref() {
        return known(inner);
    }
    let why = match io.kind() {
        io::ErrorKind::ConnectionRefused => "nobody listens at that port",
        io::ErrorKind::ConnectionReset => "the connection was cut",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "there is no way to it from here",
        _ => return None,
    };
    Some((why.to_owned(), "check the address, and that the host is up"))
}

fn untrusted(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(fault) = error else {
        return format!("no encrypted connection could be made ({})", cut(&inert(&error.to_string()), 160));
    };
    match fault {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host".to_owned()
        }
        CertificateError::UnknownIssuer => "nobody who is trusted here vouches for its certificate".to_owned(),
        CertificateError::Revoked => "its certificate has been revoked".to_owned(),
        other => format!("its certificate is not valid ({})", cut(&inert(&other.to_string()), 160)),
    }
}

/// The innermost of a chain of errors, which is the one that says something.
pub(crate) fn cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    cut(&inert(&innermost.to_string()), 200)
}

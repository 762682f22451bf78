//! Permissions against what is done with them: neither more than it can use, nor less than it needs.

use super::super::ceiling::is_within;
use super::super::fix::Fix;
use super::super::flaw::Flaw;
use super::super::reach::{self, Own};
use super::super::template::{Piece, pieces};
use super::super::{Exec, Http, Manifest, Reachable};
use crate::host::Host;
use serde_json::{Value, json};
use url::Url;

pub(super) fn check(manifest: &Manifest, flaws: &mut Vec<Flaw>) {
    match &manifest.exec {
        Exec::Http(http) => {
            match (host_is_fixed(http), readable(http)) {
                (Some(flaw), _) => flaws.push(flaw),
                (None, Ok(url)) => way(manifest, &url, flaws),
                (None, Err(message)) => flaws.push(Flaw::error("url", "/exec/http/url", message)),
            }
            files(manifest, "a request uses no files", flaws);
        }
        Exec::Command(_) | Exec::Python(_) => paths(manifest, flaws),
        Exec::Mcp(_) | Exec::Pipeline(_) => {
            let why = "the tools that are called have permissions of their own";
            if manifest.permissions.network.is_any() {
                flaws.push(wide("/permissions/network", json!(false), why));
            }
            files(manifest, why, flaws);
        }
    }
}

fn wide(pointer: &str, narrow: Value, why: &str) -> Flaw {
    let fix = Fix::Set { pointer: pointer.to_owned(), value: narrow };
    Flaw::error("permissions-wide", pointer, format!("is wider than it can use: {why}")).mended_by(fix)
}

fn files(manifest: &Manifest, why: &str, flaws: &mut Vec<Flaw>) {
    let lists = [
        ("/permissions/fs/read", &manifest.permissions.fs.read),
        ("/permissions/fs/write", &manifest.permissions.fs.write),
    ];
    let full = lists.into_iter().filter(|(_, list)| !list.is_empty());
    flaws.extend(full.map(|(pointer, _)| wide(pointer, json!([]), why)));
}

/// Inputs may stand in a URL's path and query only.
fn host_is_fixed(http: &Http) -> Option<Flaw> {
    let mut before = String::new();
    for piece in pieces(&http.url).unwrap_or_default() {
        match piece {
            Piece::Text(text) => before.push_str(&text),
            Piece::Name(_) if before.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?', '#'])) => {
                return None;
            }
            Piece::Name(name) => {
                let message =
                    format!("`${{{name}}}` stands in what names the host; only path and query may hold inputs");
                return Some(Flaw::error("template-host", "/exec/http/url", message));
            }
        }
    }
    None
}

/// The URL with something in place of each input.
fn readable(http: &Http) -> Result<Url, String> {
    let pieces = pieces(&http.url).unwrap_or_default();
    let text: String = pieces.iter().map(|piece| if let Piece::Text(text) = piece { text } else { "x" }).collect();
    let url = Url::parse(&text).map_err(|error| format!("is no URL: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user name or password; send credentials in a header, from a secret".to_owned());
    }
    Ok(url)
}

/// Whom a request reaches, and what it takes along.
fn way(manifest: &Manifest, url: &Url, flaws: &mut Vec<Flaw>) {
    let Some((own, host)) = reach::own(url).zip(url.host_str().and_then(Host::read)) else { return };
    flaws.extend(reached(&manifest.permissions.network, url, &own, &host));
    let loopback = matches!(&host, Host::Address(address) if address.is_loopback()) || host.to_string() == "localhost";
    if url.scheme() == "http" && !loopback && !manifest.permissions.secrets.is_empty() {
        let message = "is not encrypted, and everybody on the way could read the secrets; use https";
        flaws.push(Flaw::error("secret-plain", "/exec/http/url", message));
    }
}

/// Whether the request is let through, and nobody else.
fn reached(network: &Reachable, url: &Url, own: &Own, host: &Host) -> Option<Flaw> {
    const AT: &str = "/permissions/network";
    let port = url.port_or_known_default().unwrap_or_default();
    let narrow = Fix::Set { pointer: AT.to_owned(), value: json!([own.rule]) };
    let private = "is reached only if it is named with its port";
    let Reachable::Hosts(hosts) = network else {
        let any = *network == Reachable::Any(true);
        let message = match (any, own.private) {
            (true, true) => format!("`true` is the public web, and `{}` is private, so it {private}", own.rule),
            (true, false) => format!("is wider than it can use: the request goes to `{}` alone", own.rule),
            (false, _) => return Some(Flaw::error("permissions-narrow", AT, unreached(own))),
        };
        // It is the web's usual spelling, and works.
        return Some(Flaw::warning("permissions-wide", AT, message).mended_by(narrow));
    };
    let covering: Vec<_> = hosts.iter().filter(|rule| rule.covers(host, port)).collect();
    if covering.is_empty() {
        return Some(Flaw::error("permissions-narrow", AT, unreached(own)));
    }
    if own.private && !covering.iter().any(|rule| rule.host().is_some() && rule.port().is_some()) {
        let message = format!("`{}` is private, and {private}", own.rule);
        return Some(Flaw::warning("permissions-narrow", AT, message).mended_by(narrow));
    }
    let kept: Vec<String> = covering.iter().map(ToString::to_string).collect();
    let why = format!("the request goes to {host} alone");
    (kept.len() < hosts.len()).then(|| wide(AT, json!(kept), &why))
}

fn unreached(own: &Own) -> String {
    // What has a colon or a bracket in it is no plain word in YAML.
    let quote = if own.rule.contains([':', '[']) { "\"" } else { "" };
    format!("does not reach `{}`; say `network: [{quote}{}{quote}]`", own.rule, own.rule)
}

/// Files outside the project are worth a look.
fn paths(manifest: &Manifest, flaws: &mut Vec<Flaw>) {
    for (name, list) in [("read", &manifest.permissions.fs.read), ("write", &manifest.permissions.fs.write)] {
        let outside = list.iter().enumerate().filter(|(_, path)| !is_within(path, "."));
        flaws.extend(outside.map(|(index, _)| {
            let message = "is not in the project: what it is differs from machine to machine";
            Flaw::warning("permissions-path", format!("/permissions/fs/{name}/{index}"), message)
        }));
    }
}

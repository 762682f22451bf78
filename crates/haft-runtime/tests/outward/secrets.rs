//! `secret:NAME` in a request: who is asked, where it goes, and that nobody sees it.

use super::server::Server;
use super::{Stage, kind, run};
use haft_runtime::secrets::{SecretSource, Secrets, Vault};
use serde_json::{Value, json};
use std::sync::Arc;

const VALUE: &str = "hunter2/hunter2+hunter2";

/// A stage whose secrets are kept for these servers.
fn stage(servers: &[&Server], hosts: &[&Server]) -> Stage {
    Stage::keeping(servers, |dir| {
        let vault = Vault::new(dir.join("data/secrets.json"), dir.join("config/secret.key"), None);
        let hosts = hosts.iter().map(|server| server.authority().parse().unwrap()).collect();
        vault.set("API_KEY", VALUE, hosts, 0).unwrap();
        vault.set("LOOSE_KEY", VALUE, Vec::new(), 0).unwrap();
        Arc::new(Secrets::new(Some(vault), [("TOLD".to_owned(), SecretSource::default())].into()))
    })
}

fn bearing(server: &Server, path: &str) -> Value {
    json!({"url": server.url(path), "headers": {"Authorization": "Bearer secret:API_KEY"}})
}

#[test]
fn the_first_use_at_a_host_asks_by_name_and_is_remembered_for_the_session() {
    run(async {
        let (one, other) = (Server::saying("one"), Server::saying("other"));
        let stage = stage(&[&one, &other], &[&one, &other]);
        assert!(stage.call("web.request", bearing(&one, "/a")).await.success);
        let reason = stage.person.reasons.lock().unwrap().pop().unwrap();
        assert!(
            reason.contains("API_KEY") && reason.contains(&one.authority()) && !reason.contains("hunter2"),
            "{reason}"
        );
        assert_eq!(stage.asked(), 1);
        assert!(stage.call("web.request", bearing(&one, "/b")).await.success);
        assert_eq!(stage.asked(), 0, "the same secret at the same host");
        assert!(stage.call("web.request", bearing(&other, "/a")).await.success);
        assert_eq!(stage.asked(), 1, "another host");
        assert!(stage.call_in("second", "web.request", bearing(&one, "/a")).await.success);
        assert_eq!(stage.asked(), 1, "another session");
        let heard = one.heard();
        assert!(
            heard.iter().all(|asked| asked.headers.contains(&format!("authorization: Bearer {VALUE}"))),
            "it is sent"
        );
    });
}

#[test]
fn a_grant_for_everything_at_a_host_is_none_for_a_secret() {
    run(async {
        let server = Server::saying("one");
        let stage = stage(&[&server], &[&server]);
        assert!(stage.call("web.request", json!({"url": server.url("/"), "method": "POST"})).await.success);
        assert_eq!(stage.asked(), 1, "the host is known now");
        assert!(stage.call("web.request", bearing(&server, "/")).await.success);
        assert_eq!(stage.asked(), 1, "the secret is asked about all the same");
    });
}

#[test]
fn it_goes_nowhere_that_it_is_not_bound_to() {
    run(async {
        let (bound, other) = (Server::saying("bound"), Server::saying("other"));
        let stage = stage(&[&bound, &other], &[&bound]);
        for (args, why) in [
            (bearing(&other, "/"), "is bound to"),
            (json!({"url": bound.url("/?k=secret:LOOSE_KEY")}), "haft secret set LOOSE_KEY --host"),
            (json!({"url": bound.url("/"), "method": "POST", "body": {"k": ["secret:NOBODYS"]}}), "there is no secret"),
            (json!({"url": "https://other.example/", "headers": {"A": "secret:API_KEY"}}), "is bound to"),
        ] {
            let outcome = stage.call("web.request", args.clone()).await;
            assert_eq!(kind(&outcome), "denied", "{outcome:?}");
            assert!(outcome.error.unwrap().message.contains(why), "{args}");
        }
        assert_eq!((stage.asked(), bound.heard().len(), other.heard().len()), (0, 0, 0));
    });
}

#[test]
fn a_server_that_repeats_it_shows_it_to_nobody() {
    run(async {
        let server = Server::new(|asked| {
            let body = format!("{} {} {}", asked.line, asked.headers, asked.body);
            (200, vec![("x-echo".to_owned(), VALUE.to_owned())], body)
        });
        let stage = stage(&[&server], &[&server]);
        let args = json!({
            "url": server.url("/a?k=secret:API_KEY"), "method": "POST",
            "headers": {"X-Key": "secret:API_KEY"}, "body": {"deep": ["secret:API_KEY"]}
        });
        let outcome = stage.call("web.request", args).await;
        assert!(outcome.success, "{outcome:?}");
        let heard = &server.heard()[0];
        assert!(heard.line.contains("k=hunter2%2Fhunter2%2Bhunter2"), "{}", heard.line);
        assert_eq!(heard.body, json!({"deep": [VALUE]}).to_string());
        let shown = serde_json::to_string(&outcome).unwrap();
        let asked = format!("{:?}{:?}", stage.person.asked.lock().unwrap(), stage.person.reasons.lock().unwrap());
        for (place, text) in [("outcome", shown), ("question", asked), ("log", stage.on_disk().await)] {
            assert!(!text.contains("hunter2"), "in the {place}: {text}");
        }
    });
}

#[test]
fn where_it_is_sent_on_to_does_not_get_it() {
    run(async {
        let other = Server::saying("arrived");
        let to = other.url("/there?k=secret:API_KEY");
        let server = Server::new(move |asked| {
            let here = asked.line.contains("/here");
            let to = if here { "/again?k=secret:API_KEY".to_owned() } else { to.clone() };
            (307, vec![("location".to_owned(), to)], String::new())
        });
        let stage = stage(&[&server, &other], &[&server, &other]);
        let args = json!({
            "url": server.url("/here"), "method": "POST", "headers": {"X-Key": "secret:API_KEY"}, "body": "secret:API_KEY"
        });
        let outcome = stage.call("web.request", args).await;
        assert!(outcome.success, "{outcome:?}");
        let again = &server.heard()[1];
        assert!(again.headers.contains(VALUE) && again.body == VALUE, "the same origin is still meant");
        assert!(!again.line.contains("hunter2"), "but what the server names is not filled in: {}", again.line);
        let there = &other.heard()[0];
        assert!(!format!("{}{}{}", there.line, there.headers, there.body).contains("hunter2"));
    });
}

#[test]
fn elsewhere_it_is_text() {
    run(async {
        let server = Server::saying("ok");
        let stage = stage(&[&server], &[&server]);
        let path = stage.dir.path().join("project/a.txt");
        let outcome = stage.call("file.write", json!({"path": "a.txt", "content": "secret:API_KEY"})).await;
        assert!(outcome.success, "{outcome:?}");
        assert_eq!(std::fs::read_to_string(path).unwrap().trim(), "secret:API_KEY");
        assert!(stage.call("web.fetch", json!({"url": server.url("/?k=secret:API_KEY")})).await.success);
        assert!(server.heard()[0].line.contains("secret:API_KEY"), "{}", server.heard()[0].line);
    });
}

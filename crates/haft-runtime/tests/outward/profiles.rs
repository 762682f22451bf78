//! What is known of an API is applied to what is sent there, and to nothing else.

use super::server::{Server, ok};
use super::{Stage, kind, run};
use haft_core::approval::Decider;
use haft_runtime::Halt;
use haft_runtime::tools::web::search::SearchSettings;
use serde_json::{Value, json};

const KEY: &str = "hunter2-hunter2-hunter2";

fn profile(id: &str, base: &str, auth: Value) -> Value {
    json!({"id": id, "name": "Acme", "base_url": base, "description": "Orders and customers of a shop.",
        "auth": auth, "endpoints": [{"method": "GET", "path": "/orders", "description": "All orders"}],
        "guidelines": ["Ask for few at once"], "avoid": ["Mondays"]})
}

/// A server that repeats what it is sent, and sends on what asks for it.
fn repeating(elsewhere: String) -> Server {
    Server::new(move |asked| {
        let to = asked.line.split("to=").nth(1).map(|to| to.split('&').next().unwrap().to_owned());
        let (method, path) = asked.line.split_once(' ').unwrap();
        // What looks like an API elsewhere is not followed at all.
        let plain = path.replace("/v1", "");
        match to.as_deref() {
            Some("elsewhere") => (302, vec![("location".to_owned(), format!("{elsewhere}{plain}&x=1"))], String::new()),
            Some("aside") => (
                302,
                vec![("location".to_owned(), format!("/aside{}", plain.replace("to=aside", "a=b")))],
                String::new(),
            ),
            Some("near") => (307, vec![("location".to_owned(), path.replace("to=near", "a=b"))], String::new()),
            _ => ok(&format!("{method} {path}\n{}", asked.headers)),
        }
    })
}

#[test]
fn a_request_is_signed_and_nothing_shows_it() {
    run(async {
        let there = Server::saying("there");
        let here = repeating(there.url(""));
        let stage = Stage::reaching(&[&here, &there]);
        let base = here.url("/v1");
        for (auth, sent) in [
            (json!({"type": "bearer", "token": KEY}), format!("authorization: Bearer {KEY}")),
            (
                json!({"type": "basic", "username": "me", "password": KEY}),
                "authorization: Basic bWU6aHVudGVyMi1o".to_owned(),
            ),
            (json!({"type": "header", "name": "X-Key", "value": KEY}), format!("x-key: {KEY}")),
            (json!({"type": "query", "name": "key", "value": KEY}), format!("key={KEY}")),
        ] {
            let made = stage
                .call("api.setup", json!({"action": "create", "profile": profile("acme", &base, auth.clone())}))
                .await;
            assert!(made.success, "{made:?}");
            let outcome = stage.call("web.request", json!({"url": here.url("/v1/orders?n=1")})).await;
            assert!(outcome.success, "{outcome:?}");
            let heard = here.heard().pop().unwrap();
            assert!(format!("{}\n{}", heard.line, heard.headers).contains(&sent), "{auth}: {heard:?}");
            assert!(outcome.output.contains("[secret]"), "what repeats it is masked: {}", outcome.output);
            // Below another path it is not sent, nor to another origin, nor where either is pointed at.
            for path in ["/other?n=1", "/v10?n=1", "/v1/x?to=elsewhere", "/v1/x?to=aside"] {
                let outcome = stage.call("web.request", json!({"url": here.url(path)})).await;
                assert!(outcome.success, "{path}: {outcome:?}");
                let shown = serde_json::to_string(&outcome).unwrap();
                assert!(!shown.contains("hunter2") && !shown.contains("bWU6aHVu"), "{path}: {shown}");
                let last = there.heard().pop().or_else(|| here.heard().pop()).unwrap_or_default();
                let last = format!("{} {}", last.line, last.headers);
                assert!(!last.contains("hunter2") && !last.contains("bWU6aHVu"), "{path}: {last}");
            }
            here.heard();
            // Where it is sent on to within the API it goes along, once.
            let outcome = stage.call("web.request", json!({"url": here.url("/v1/x?to=near")})).await;
            assert!(outcome.success, "{outcome:?}");
            let heard = here.heard().pop().unwrap();
            let text = format!("{}\n{}", heard.line, heard.headers);
            assert_eq!(text.matches(&sent).count(), 1, "{text}");
            assert!(!outcome.data.unwrap().to_string().contains("hunter2"));
            assert!(stage.call("api.setup", json!({"action": "delete", "id": "acme"})).await.success);
        }
        assert!(!stage.on_disk().await.contains("hunter2"));
    });
}

#[test]
fn setting_up_asks_and_looking_does_not() {
    run(async {
        let stage = Stage::reaching(&[]);
        let auth = json!({"type": "bearer", "token": "${ACME_TOKEN}"});
        let made = json!({"action": "create", "profile": profile("acme", "https://api.acme.test", auth)});
        assert!(stage.call("api.setup", made).await.success);
        let asked = stage.person.asked.lock().unwrap().drain(..).collect::<Vec<_>>();
        assert_eq!(
            asked,
            ["api.setup: create acme: sends ${ACME_TOKEN} to api.acme.test:443 as bearer  https://api.acme.test"]
        );
        let auth = json!({"auth": {"type": "bearer", "token": "${AWS_SECRET_ACCESS_KEY}"}});
        assert!(stage.call("api.setup", json!({"action": "update", "id": "acme", "profile": auth})).await.success);
        let asked = stage.person.asked.lock().unwrap().drain(..).collect::<Vec<_>>();
        let update = "api.setup: update acme: sends ${AWS_SECRET_ACCESS_KEY} to api.acme.test:443 as bearer";
        assert!(asked[0].starts_with(update), "{asked:?}");
        for looks in [json!({"action": "list"}), json!({"action": "view", "id": "acme"})] {
            assert!(stage.call("api.setup", looks).await.success);
        }
        assert_eq!(stage.asked(), 0);
        assert!(stage.call("api.setup", json!({"action": "delete", "id": "acme"})).await.success);
        assert_eq!(stage.asked(), 1, "one yes is not one for everything");
    });
}

#[test]
fn a_key_is_in_no_question_and_survives_an_edit() {
    run(async {
        let stage = Stage::reaching(&[]);
        let made = profile("acme", "https://api.acme.test", json!({"type": "bearer", "token": KEY}));
        let call = haft_core::Call::new(
            haft_runtime::new_call_id(),
            "api.setup",
            json!({"action": "create", "profile": made.clone()}),
        );
        let id = call.id.to_string();
        let waits = stage.haft.call(call, &haft_runtime::Nobody, &Halt::new()).await;
        assert_eq!(kind(&waits), "approval_required");
        let question = stage.haft.look_at(&id, &Decider::embedder("test")).await.unwrap().unwrap();
        let shown = serde_json::to_string(&question).unwrap();
        assert!(!shown.contains("hunter2") && shown.contains("[secret]"), "{shown}");
        let mut edited = question.args.clone();
        edited["profile"]["name"] = json!("Acme Inc.");
        let question = stage.haft.amend(&id, &Decider::embedder("a test"), edited).await.unwrap();
        assert!(!serde_json::to_string(&question).unwrap().contains("hunter2"));
        assert!(stage.haft.approve(&id, &Decider::embedder("a test"), &Halt::new()).await.unwrap().success);
        let kept = std::fs::read_to_string(stage.haft.settings().data_dir.join("apis/acme.json")).unwrap();
        assert!(kept.contains(KEY) && kept.contains("Acme Inc."), "{kept}");
    });
}

#[test]
fn limits_hold_for_all_sessions_and_say_when_they_end() {
    run(async {
        let server = Server::saying("ok");
        let stage = Stage::reaching(&[&server]);
        let mut acme = profile("acme", &server.url("/"), json!(null));
        acme.as_object_mut().unwrap().remove("auth");
        acme["rate_limit"] = json!({"per_second": 100, "per_day": 2});
        assert!(stage.call("api.setup", json!({"action": "create", "profile": acme})).await.success);
        let ask = json!({"url": server.url("/orders")});
        assert!(stage.call("web.request", ask.clone()).await.success);
        assert!(stage.call_in("other", "web.request", ask.clone()).await.success);
        let outcome = stage.call("web.request", ask).await;
        let message = outcome.error.unwrap().message;
        assert_eq!(message, "the 2 requests a day of the API `acme` are used up; the next is free in 24 h");
        assert_eq!(server.heard().len(), 2);
    });
}

#[test]
fn a_session_is_told_once_what_to_look_out_for() {
    run(async {
        let server = Server::saying("ok");
        let stage = Stage::reaching(&[&server]);
        let acme = profile("acme", &server.url("/"), json!({"type": "query", "name": "k", "value": KEY}));
        assert!(stage.call("api.setup", json!({"action": "create", "profile": acme})).await.success);
        let ask = json!({"url": server.url("/orders")});
        let told =
            "The profile of the API acme (\"Acme\") says:\n- guidelines: \"Ask for few at once\"\n- avoid: \"Mondays\"";
        assert_eq!(stage.call("web.request", ask.clone()).await.warnings, [told]);
        assert!(stage.call("web.request", ask.clone()).await.warnings.is_empty());
        assert_eq!(stage.call_in("other", "web.request", ask).await.warnings, [told]);
    });
}

#[test]
fn a_key_shows_in_no_error_and_in_no_part_of_an_answer() {
    run(async {
        let server = Server::new(|asked| match asked.line.split_once("to=") {
            Some(_) => {
                (302, vec![("location".to_owned(), format!("ftp://x/{}", asked.line.replace(' ', "")))], String::new())
            }
            None => ok("you sent hunter2\\u002dhunter2-hunter2"),
        });
        let stage = Stage::reaching(&[&server]);
        let acme = profile("acme", &server.url("/v1"), json!({"type": "query", "name": "key", "value": KEY}));
        assert!(stage.call("api.setup", json!({"action": "create", "profile": acme})).await.success);
        for args in [
            json!({"url": server.url("/v1/x?to=nowhere")}),
            json!({"url": server.url("/v1/x")}),
            json!({"url": server.url("/v1/x"), "headers": {"Range": "bytes=0-15"}}),
        ] {
            let outcome = stage.call("web.request", args.clone()).await;
            let shown = serde_json::to_string(&outcome).unwrap();
            assert!(!shown.contains("hunter2"), "{args}: {shown}");
        }
        assert_eq!(server.heard().len(), 2, "a part is not asked for");
        let part = json!({"url": server.url("/page"), "headers": {"Range": "bytes=0-15"}});
        assert!(stage.call("web.request", part).await.success, "of what is not signed in to, it may be");
    });
}

#[test]
fn where_a_request_is_sent_on_to_the_same_rules_hold() {
    run(async {
        let server = Server::new(|asked| {
            let to = asked.line.split("to=").nth(1).map(str::to_owned);
            to.map_or_else(|| ok("fine"), |to| (302, vec![("location".to_owned(), to)], String::new()))
        });
        let stage = Stage::reaching(&[&server]);
        let mut acme = profile("acme", &server.url("/v1"), json!(null));
        acme.as_object_mut().unwrap().remove("auth");
        acme["rate_limit"] = json!({"per_day": 3});
        assert!(stage.call("api.setup", json!({"action": "create", "profile": acme})).await.success);
        // What nobody knows is not reached by a detour.
        let outcome = stage.call("web.fetch", json!({"url": server.url("/page?to=/api/x")})).await;
        assert_eq!(kind(&outcome), "denied");
        assert!(outcome.error.unwrap().message.contains("no API profile covers it"));
        assert_eq!(server.heard().len(), 1);
        // What is known is counted however it is reached: by a detour, by another tool, twice.
        assert!(stage.call("web.fetch", json!({"url": server.url("/page?to=/v1/a")})).await.success);
        assert!(stage.call("web.fetch", json!({"url": server.url("/v1/b?to=/v1/c")})).await.success);
        let outcome = stage.call("web.request", json!({"url": server.url("/page?to=/v1/d")})).await;
        assert!(outcome.error.unwrap().message.contains("3 requests a day of the API `acme`"));
    });
}

#[test]
fn while_there_are_profiles_other_apis_are_refused_in_every_process() {
    run(async {
        let server = Server::saying("ok");
        let stage = Stage::reaching(&[&server]);
        let other = Stage::layer(stage.dir.path(), &[&server], SearchSettings::default());
        let ask =
            || haft_core::Call::new(haft_runtime::new_call_id(), "web.request", json!({"url": server.url("/api/x")}));
        assert!(other.call(ask(), &stage.person, &Halt::new()).await.success);
        let acme = profile("acme", "https://api.acme.test/v1", json!({"type": "bearer", "token": "${ACME_TOKEN}"}));
        assert!(stage.call("api.setup", json!({"action": "create", "profile": acme})).await.success);
        let refused = other.call(ask(), &stage.person, &Halt::new()).await;
        assert_eq!(kind(&refused), "denied");
        assert!(refused.error.unwrap().message.contains("no API profile covers it"), "at once, elsewhere");
        assert!(stage.call("web.request", json!({"url": server.url("/page")})).await.success, "a page is no API");
        assert!(stage.call("api.setup", json!({"action": "delete", "id": "acme"})).await.success);
        assert!(other.call(ask(), &stage.person, &Halt::new()).await.success);
    });
}

#[test]
fn a_variable_that_is_not_set_is_named_and_nothing_is_sent() {
    run(async {
        let server = Server::saying("ok");
        let stage = Stage::reaching(&[&server]);
        let auth = json!({"type": "bearer", "token": "${HAFT_TEST_NOT_SET}"});
        let made = json!({"action": "create", "profile": profile("acme", &server.url("/"), auth)});
        assert!(stage.call("api.setup", made).await.success);
        let outcome = stage.call("web.request", json!({"url": server.url("/x")})).await;
        assert!(outcome.error.unwrap().message.contains("${HAFT_TEST_NOT_SET}"));
        assert!(server.heard().is_empty());
    });
}

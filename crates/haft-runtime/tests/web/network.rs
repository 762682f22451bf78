//! Who may be reached: by everybody, by one agent, with one tool.

use super::server::{Server, ok};
use super::{Stage, fault, loopback, roomy, run};
use haft_core::Call;
use haft_core::host::HostRules;
use haft_core::pattern::ToolPattern;
use haft_core::web::Network;
use haft_runtime::web::WebSettings;
use haft_runtime::{Halt, Yes, new_call_id};
use serde_json::json;

fn only(hosts: &[String]) -> Network {
    let rules: HostRules = hosts.iter().map(|host| host.parse().unwrap()).collect::<Vec<_>>().into();
    Network::Only(rules)
}

async fn ask_as(stage: &Stage, agent: &str, url: &str) -> haft_core::Outcome {
    let mut call = Call::new(new_call_id(), "probe.ask", json!({ "url": url }));
    call.caller.agent = Some(agent.to_owned());
    stage.haft.call(call, &Yes, &Halt::new()).await
}

#[test]
fn all_some_or_none() {
    run(async {
        let server = Server::start(|_| ok("", "fine")).await;
        let (url, host) = (server.url("/"), format!("127.0.0.1:{}", server.port()));
        let base = WebSettings { allow_private: loopback(&[server.port()]), ..roomy() };
        for (network, refusal) in [
            (Network::All, None),
            (only(std::slice::from_ref(&host)), None),
            (only(&["example.com".to_owned()]), Some("is not on the list of hosts")),
            (only(&[]), Some("is not on the list of hosts")),
            (Network::None, Some("gives no network")),
        ] {
            let stage = Stage::new(WebSettings { network: network.clone(), ..base.clone() });
            let outcome = stage.get(&url).await;
            match refusal {
                None => assert!(outcome.success, "{network:?}: {outcome:?}"),
                Some(why) => {
                    let (kind, said) = fault(&outcome);
                    assert!(kind == "denied" && said.contains(why), "{network:?}: {outcome:?}");
                }
            }
        }
        // To be on the list is not to be let inside.
        let stage = Stage::new(WebSettings { network: only(&[host]), ..roomy() });
        assert!(fault(&stage.get(&url).await).1.contains("is not a public address"));
    });
}

#[test]
fn an_agent_and_a_tool_can_only_have_less() {
    run(async {
        let server = Server::start(|_| ok("", "fine")).await;
        let (url, host) = (server.url("/"), format!("127.0.0.1:{}", server.port()));
        let base = WebSettings { allow_private: loopback(&[server.port()]), ..roomy() };
        let agents =
            [("shut".to_owned(), Network::None), ("open".to_owned(), Network::All), ("here".to_owned(), only(&[host]))];
        let stage = Stage::new(WebSettings { agents: agents.into(), ..base.clone() });
        for (agent, allowed) in [("shut", false), ("open", true), ("here", true), ("unknown", true)] {
            assert_eq!(ask_as(&stage, agent, &url).await.success, allowed, "{agent}");
        }
        let opened = [("open".to_owned(), Network::All)];
        let stage = Stage::new(WebSettings { network: Network::None, agents: opened.into(), ..base.clone() });
        assert!(!ask_as(&stage, "open", &url).await.success, "more than everybody has");
        let tool = |pattern: &str, network| vec![(ToolPattern::new(pattern).unwrap(), network)];
        for (tools, allowed) in [
            (tool("probe.*", Network::None), false),
            (tool("probe.ask", only(&["example.com".to_owned()])), false),
            (tool("other.*", Network::None), true),
        ] {
            let stage = Stage::new(WebSettings { tools: tools.clone(), ..base.clone() });
            assert_eq!(stage.get(&url).await.success, allowed, "{tools:?}");
        }
    });
}

#[test]
fn a_hop_is_judged_by_the_same_list() {
    run(async {
        let other = Server::start(|_| ok("", "elsewhere")).await;
        let to = other.url("/");
        let server = Server::start(move |_| super::server::sends_on(302, &to)).await;
        let stage = Stage::new(WebSettings {
            allow_private: loopback(&[server.port(), other.port()]),
            network: only(&[format!("127.0.0.1:{}", server.port())]),
            ..roomy()
        });
        let outcome = stage.get(&server.url("/")).await;
        assert!(fault(&outcome).1.contains("is not on the list of hosts"), "{outcome:?}");
        assert_eq!(other.connections(), 0);
    });
}

//! Who may be reached, as people write it; and what an untrusted project can make of it.

use super::super::{Choices, Loaded, Paths, Trust, load};
use haft_core::host::Host;
use haft_core::web::{Network, Target};
use haft_core::{Caller, ToolName};
use haft_runtime::http::Carrier;
use haft_runtime::web::Web;
use insta::assert_snapshot;

fn resolve(user: &str, project: &str, trust: Trust) -> Result<Loaded, String> {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("home/project"));
    std::fs::create_dir_all(home.join(".config/haft")).unwrap();
    std::fs::create_dir_all(root.join(".haft")).unwrap();
    let paths = Paths::new(&home, &root);
    std::fs::write(paths.user_config(), user).unwrap();
    if !project.is_empty() {
        std::fs::write(paths.project_config(), project).unwrap();
    }
    let layers = load(&paths, Choices::default(), Choices::default()).map_err(|error| error.to_string())?;
    layers.resolve(&[], trust).map_err(|error| error.to_string())
}

/// Whether an agent may reach a URL with a tool.
fn reaches(loaded: &Loaded, agent: &str, tool: &str, url: &str) -> bool {
    let web = Web::new(loaded.settings.web.clone(), std::path::Path::new("/nowhere"));
    let caller = Caller { agent: Some(agent.to_owned()), ..Caller::default() };
    web.rules(&caller, &ToolName::new(tool).unwrap()).admits(&Target::read(url).unwrap()).is_ok()
}

const URL: &str = "https://api.example.com/";

#[test]
fn everything_public_unless_somebody_says_otherwise() {
    for (user, allowed) in [
        ("", true),
        ("web: {network: true}", true),
        ("web: {network: false}", false),
        ("web: {network: {allow: [api.example.com]}}", true),
        ("web: {network: {allow: ['*.example.com:443']}}", true),
        ("web: {network: {allow: ['api.example.com:80']}}", false),
        ("web: {network: {allow: []}}", false),
    ] {
        assert_eq!(reaches(&resolve(user, "", Trust::Absent).unwrap(), "bot", "web.fetch", URL), allowed, "{user}");
    }
    let usual = resolve("", "", Trust::Absent).unwrap().settings.web;
    assert_eq!((usual.quota.session, usual.quota.hour, usual.quota.day), (100, 200, 2000));
    assert!(usual.carrier == Carrier::Own && usual.network == Network::All);
    for (user, carrier) in [
        ("web: {proxy: false}", Carrier::Own),
        ("web: {proxy: true}", Carrier::Environment),
        ("web: {proxy: trust}", Carrier::Trusted),
    ] {
        assert_eq!(resolve(user, "", Trust::Absent).unwrap().settings.web.carrier, carrier, "{user}");
    }
    assert!(resolve("web: {proxy: trusted}", "", Trust::Absent).is_err());
}

#[test]
fn an_agent_or_a_tool_has_less_and_never_more() {
    let user = "web:\n  network: {allow: [api.example.com]}\n  agents:\n    shut: false\n    open: true\n    other: {allow: [b.example]}\n  tools:\n    web.request: false\n    group:media: false\n";
    let loaded = resolve(user, "", Trust::Absent).unwrap();
    for (agent, tool, url, allowed) in [
        ("somebody", "web.fetch", URL, true),
        ("open", "web.fetch", URL, true),
        ("shut", "web.fetch", URL, false),
        ("other", "web.fetch", URL, false),
        ("other", "web.fetch", "https://b.example/", false),
        ("open", "web.fetch", "https://c.example/", false),
        ("somebody", "web.request", URL, false),
    ] {
        assert_eq!(reaches(&loaded, agent, tool, url), allowed, "{agent} {tool} {url}");
    }
}

#[test]
fn services_inside_are_named_one_by_one() {
    let loaded = resolve("web: {allow_private: ['127.0.0.1:8080', 'db.corp:5432']}", "", Trust::Absent).unwrap();
    for (url, allowed) in [
        ("http://127.0.0.1:8080/", true),
        ("http://127.0.0.1/", false),
        ("http://db.corp:5432/", true),
        ("http://db.corp/", false),
    ] {
        assert_eq!(reaches(&loaded, "bot", "web.fetch", url), allowed, "{url}");
    }
    assert!(loaded.settings.web.allow_private.know(&Host::read("db.corp").unwrap()));
}

#[test]
fn a_bad_rule_says_where_it_stands() {
    let error = |text: &str| resolve(text, "", Trust::Absent).err().expect("an error");
    assert_snapshot!(error("web:\n  allow_private:\n    - 127.0.0.1\n"), @"~/.config/haft/config.yml:3:7: `127.0.0.1` is not one service; write its host and port, as in `127.0.0.1:8080`");
    assert_snapshot!(error("web:\n  allow_private: ['*.corp.example:80']\n"), @"~/.config/haft/config.yml:2:19: `*.corp.example:80` is not one service; write its host and port, as in `127.0.0.1:8080`");
    assert_snapshot!(error("web:\n  network:\n    allow:\n      - https://example.com/\n"), @"~/.config/haft/config.yml:4:9: `https://example.com/` is not a host rule: it has parts of a URL; write only the host, as in `example.com`");
    assert_snapshot!(error("web:\n  agents:\n    bot: {allow: ['*']}\n"), @"~/.config/haft/config.yml:3:19: `*` is not a host rule: it would allow every host; if that is meant, say `network: true`");
    assert_snapshot!(error("web:\n  tools:\n    web.fetch: {allow: [0x7f.1]}\n"), @"~/.config/haft/config.yml:3:25: `0x7f.1` is not a host rule: it is an odd spelling of an address; write `127.0.0.1`");
}

#[test]
fn an_untrusted_project_can_only_take_away() {
    let user = "web:\n  network: {allow: [api.example.com]}\n  agents: {bot: false}\n";
    for (project, allowed) in [
        ("web: {network: true}", true),
        ("web: {network: false}", false),
        ("web: {tools: {web.fetch: false}}", false),
        ("web: {agents: {somebody: false}}", false),
        (
            "web: {network: {allow: [evil.example]}, allow_private: ['127.0.0.1:80'], proxy: trust, limits: {day: 1000000}}",
            true,
        ),
    ] {
        let loaded = resolve(user, project, Trust::Absent).unwrap();
        assert_eq!(reaches(&loaded, "somebody", "web.fetch", URL), allowed, "{project}");
        for never in ["https://evil.example/", "http://127.0.0.1/", "https://c.example/"] {
            assert!(!reaches(&loaded, "somebody", "web.fetch", never), "{project}: {never}");
        }
        let web = &loaded.settings.web;
        assert!(web.carrier == Carrier::Own && web.quota.day == 2000, "{project}");
    }
    let opening = resolve(user, "web: {agents: {bot: true}}", Trust::Absent).unwrap();
    assert!(!reaches(&opening, "bot", "web.fetch", URL), "what the user has shut stays shut");
}

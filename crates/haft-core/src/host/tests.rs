//! Rules as they are written, hosts as they are asked for.

use super::*;

fn rule(text: &str) -> HostRule {
    text.parse().unwrap()
}

fn refused(text: &str) -> String {
    let BadHost { rule, fault } = text.parse::<HostRule>().unwrap_err();
    format!("{rule}: {fault}")
}

#[test]
fn a_rule_is_kept_in_its_one_spelling() {
    for (written, kept) in [
        ("example.com", "example.com"),
        ("Example.COM.", "example.com"),
        ("example.com:443", "example.com:443"),
        ("example.com.:443", "example.com:443"),
        ("*.Example.com", "*.example.com"),
        ("*.a.example.com:8443", "*.a.example.com:8443"),
        ("localhost", "localhost"),
        ("_srv.x-y.example", "_srv.x-y.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("192.0.2.7", "192.0.2.7"),
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("[::1]", "[::1]"),
        ("[2001:DB8:0:0::7]:443", "[2001:db8::7]:443"),
    ] {
        assert_eq!(rule(written).to_string(), kept);
        assert_eq!(rule(kept), rule(written));
    }
}

#[test]
fn a_rule_that_cannot_be_meant_says_what_to_write() {
    let said: Vec<String> = [
        "",
        ":443",
        " example.com",
        "a\u{7}b",
        "bücher.example",
        "https://example.com/a",
        "example.com/a",
        "me@example.com",
        "example.com:0",
        "example.com:65536",
        "example.com:+443",
        "example.com:",
        "*",
        "*:443",
        "*.com",
        "a.*.com",
        "ex*mple.com",
        "*.*.example.com",
        "0177.0.0.1",
        "2130706433",
        "127.1",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "[::7f00:1]",
        "::1",
        "[::1",
        "[127.0.0.1]",
        "[fe80::1%eth0]",
        "1.2.3.4.5",
        "*.0.0.1",
        "a..b",
        "..",
        "a,b",
    ]
    .into_iter()
    .map(refused)
    .collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    : it names no host; write one as in `example.com` or `example.com:443`
    :443: it names no host; write one as in `example.com` or `example.com:443`
     example.com: it has spaces or control characters; write one host and nothing else
    a\u{7}b: it has spaces or control characters; write one host and nothing else
    bücher.example: it has letters outside ASCII; write the name in punycode, as in `xn--bcher-kva.example`
    https://example.com/a: it has parts of a URL; write only the host, as in `example.com`
    example.com/a: it has parts of a URL; write only the host, as in `example.com`
    me@example.com: it has a user name; write only the host, as in `example.com`
    example.com:0: its port is not a number from 1 to 65535; write `example.com:443`, or no port for every port
    example.com:65536: its port is not a number from 1 to 65535; write `example.com:443`, or no port for every port
    example.com:+443: its port is not a number from 1 to 65535; write `example.com:443`, or no port for every port
    example.com:: its port is not a number from 1 to 65535; write `example.com:443`, or no port for every port
    *: it would allow every host; if that is meant, say `network: true`
    *:443: it would allow every host; if that is meant, say `network: true`
    *.com: it would allow all of `.com`; write a domain below it, as in `*.example.com`
    a.*.com: `*` can only stand for the whole first label; write `*.example.com`
    ex*mple.com: `*` can only stand for the whole first label; write `*.example.com`
    *.*.example.com: `*` can only stand for the whole first label; write `*.example.com`
    0177.0.0.1: it is an odd spelling of an address; write `127.0.0.1`
    2130706433: it is an odd spelling of an address; write `127.0.0.1`
    127.1: it is an odd spelling of an address; write `127.0.0.1`
    0x7f.1: it is an odd spelling of an address; write `127.0.0.1`
    [::ffff:127.0.0.1]: it is an odd spelling of an address; write `127.0.0.1`
    [::7f00:1]: it is an odd spelling of an address; write `127.0.0.1`
    ::1: an IPv6 address stands in brackets; write `[2001:db8::7]` or `[2001:db8::7]:443`
    [::1: an IPv6 address stands in brackets; write `[2001:db8::7]` or `[2001:db8::7]:443`
    [127.0.0.1]: an IPv6 address stands in brackets; write `[2001:db8::7]` or `[2001:db8::7]:443`
    [fe80::1%eth0]: a zone id means something on one machine only; write the address without `%`
    1.2.3.4.5: a name cannot end in a number; write a whole address, as in `192.0.2.7`
    *.0.0.1: a name cannot end in a number; write a whole address, as in `192.0.2.7`
    a..b: a name is labels of 1 to 63 letters, digits, `-` and `_`, joined by dots, at most 253 in all
    ..: a name is labels of 1 to 63 letters, digits, `-` and `_`, joined by dots, at most 253 in all
    a,b: a name is labels of 1 to 63 letters, digits, `-` and `_`, joined by dots, at most 253 in all
    ");
}

#[test]
fn a_host_and_a_port_are_both_matched() {
    assert!(rule("example.com").matches("EXAMPLE.com.", 1));
    assert!(rule("example.com:443").matches("example.com", 443));
    assert!(!rule("example.com:443").matches("example.com", 80));
    for other in
        ["a.example.com", "example.com.evil.test", "xexample.com", "example.co", "", "example.com..", "exa mple.com"]
    {
        assert!(!rule("example.com").matches(other, 443), "{other}");
    }
}

#[test]
fn a_wildcard_covers_what_is_below() {
    let below = rule("*.example.com");
    assert!(below.matches("a.example.com", 443) && below.matches("a.b.Example.com.", 80));
    for other in ["example.com", "badexample.com", ".example.com", "a..example.com", "a.example.com.evil.test"] {
        assert!(!below.matches(other, 443), "{other}");
    }
}

#[test]
fn an_address_is_an_address_in_every_spelling_and_never_a_name() {
    let loopback = rule("127.0.0.1");
    for spelling in ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1.", "[::ffff:127.0.0.1]"] {
        assert!(loopback.matches(spelling, 80), "{spelling}");
    }
    assert!(rule("[::1]").matches("[0:0::1]", 80) && rule("[::1]").matches("::1", 80));
    assert_eq!(Host::read("1.2.3.4.5"), None);
    assert_eq!(Host::read("a.0x7f"), None);
    assert_eq!(Host::read("fe80::1%eth0"), None);
    assert_eq!(Host::read("１２７.0.0.1"), None);
}

#[test]
fn an_authority_is_a_host_and_perhaps_a_port() {
    let read = |text| authority(text).map(|(host, port)| (host.to_string(), port));
    assert_eq!(read("Example.com:80"), Some(("example.com".into(), Some(80))));
    assert_eq!(read("[::1]:80"), Some(("[::1]".into(), Some(80))));
    assert_eq!(read("127.1"), Some(("127.0.0.1".into(), None)));
    for text in ["", ":80", "a:", "a:0", "a:b", "::1:80", "a:1:2", "u@a", "[::1]x:80", "[::1]]", "a\0b:80"] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn what_is_private_is_so_by_its_own_words() {
    for private in [
        "localhost",
        "db",
        "a.localhost",
        "localhost.localdomain",
        "nas.local",
        "db.corp",
        "wiki.intranet",
        "x.home",
        "x.home.arpa",
        "vault.internal",
        "x.lan",
        "a.private",
        "127.1",
        "10.0.0.7",
        "169.254.169.254",
        "[::1]",
    ] {
        assert!(Host::read(private).unwrap().is_private(), "{private}");
    }
    for public in ["example.com", "corp.example.com", "localhost.example", "xlocal.test", "93.184.216.34"] {
        assert!(!Host::read(public).unwrap().is_private(), "{public}");
    }
    assert!(rule("*.a.corp:80").is_private() && !rule("*.corp.example").is_private());
}

#[test]
fn rules_are_text_in_settings() {
    let rules: HostRules = serde_json::from_str(r#"["a.example:443", "*.b.example"]"#).unwrap();
    assert_eq!(rules.to_string(), "a.example:443, *.b.example");
    assert_eq!(serde_json::to_string(&rules).unwrap(), r#"["a.example:443","*.b.example"]"#);
    assert!(serde_json::from_str::<HostRules>(r#"["*"]"#).unwrap_err().to_string().contains("network: true"));
    let asked = Host::read("x.b.example").unwrap();
    assert_eq!(rules.rule_for(&asked, 22).map(ToString::to_string).as_deref(), Some("*.b.example"));
    assert!(rules.know(&Host::read("a.example").unwrap()));
    assert_eq!(rules.rule_for(&Host::read("a.example").unwrap(), 80), None);
    assert_eq!(HostRules::default().to_string(), "no host");
}

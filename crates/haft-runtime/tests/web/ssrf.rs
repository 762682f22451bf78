//! Every spelling of an address inside that anybody has thought of, and none of them gets there.

use super::{Stage, alone, fault, part, passes, roomy, run};
use haft_core::host::{Host, is_public};
use haft_core::web::{Network, Rules, Target};
use proptest::prelude::*;

/// Read as an address or name inside, and refused as such.
const INSIDE: &[&str] = &[
    // This machine, in the spellings of inet_aton.
    "http://127.0.0.1/",
    "http://127.0.0.1:80/",
    "http://127.0.0.1:22/",
    "http://127.0.0.1:65535/",
    "https://127.0.0.1/",
    "HTTP://127.0.0.1/",
    "http:127.0.0.1/",
    "http:/127.0.0.1/",
    "http:///127.0.0.1/",
    "http://////127.0.0.1/",
    "http://127.0.0.1./",
    "http://127.1/",
    "http://127.1./",
    "http://127.0.1/",
    "http://127.255.255.254/",
    "http://127.127.127.127/",
    "http://2130706433/",
    "http://2130706433./",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://0177.1/",
    "http://00000177.0.0.1/",
    "http://0000000000000000000000000177.0.0.1/",
    "http://0x7f.0.0.1/",
    "http://0x7F.0x0.0x0.0x1/",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://0X7F000001/",
    "http://0x0000000000000000007f000001/",
    "http://0x7f.0.1/",
    "http://0x7f.00000000.0x1/",
    "http://127.0x0.0.01/",
    "http://0177.0x0.0.1/",
    "http://127.0.0.0x1/",
    "http://127.0.0x1/",
    "http://127.0x000001/",
    // Nobody's address means this machine, too.
    "http://0/",
    "http://0./",
    "http://00/",
    "http://0x/",
    "http://0x0/",
    "http://0.0/",
    "http://0.0.0.0/",
    "http://0.0.0.0:8080/",
    "http://0.1.2.3/",
    "http://0x0.0x0.0x0.0x0/",
    "http://00000000000/",
    // Percent signs, and letters that only look like digits and dots.
    "http://%31%32%37%2e%30%2e%30%2e%31/",
    "http://127%2e0%2e0%2e1/",
    "http://%30%78%37%66.1/",
    "http://%6c%6f%63%61%6c%68%6f%73%74/",
    "http://１２７.０.０.１/",
    "http://127。0。0。1/",
    "http://127．0．0．1/",
    "http://127｡0｡0｡1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://𝟏𝟐𝟕.𝟎.𝟎.𝟏/",
    "http://𝟙𝟚𝟟.𝟘.𝟘.𝟙/",
    "http://¹²⁷.⁰.⁰.¹/",
    "http://０ｘ７ｆ.１/",
    "http://２１３０７０６４３３/",
    "http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/",
    "http://ｌｏｃａｌｈｏｓｔ/",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
    "http://LOCALHOST/",
    // Names of this machine and its network.
    "http://localhost/",
    "http://localhost./",
    "http://localhost:8080/",
    "http://LocalHost/",
    "http://foo.localhost/",
    "http://a.b.localhost/",
    "http://localhost.localdomain/",
    "http://localhost6.localdomain6.localdomain/",
    "http://printer.local/",
    "http://router.lan/",
    "http://nas.home/",
    "http://nas.home.arpa/",
    "http://wiki.corp/",
    "http://wiki.intranet/",
    "http://db.internal/",
    "http://db.private/",
    "http://kubernetes/",
    "http://kubernetes.default.svc.cluster.local/",
    "http://host.docker.internal/",
    "http://gateway.docker.internal/",
    "http://intranet/",
    "http://router/",
    "http://com/",
    "http://-1/",
    "http://:@127.0.0.1/",
    "http://127.0.0/1.2.3.4:x",
    // What clouds tell their machines.
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.169.254:80/latest/meta-data/iam/security-credentials/",
    "http://169.254.169.254./",
    "http://169.254.43518/",
    "http://169.16689662/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0xA9.0xFE.0xA9.0xFE/",
    "http://0251.0376.0251.0376/",
    "http://025177524776/",
    "http://0xa9.254.0251.254/",
    "http://169.254.169.253/",
    "http://169.254.170.2/v2/credentials/",
    "http://169.254.0.0/",
    "http://169.254.255.255/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[fd20:ce::254]/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://metadata.google.internal./",
    "http://metadata/",
    "http://instance-data/latest/meta-data/",
    "http://instance-data.ec2.internal/",
    "http://100.100.100.200/latest/meta-data/",
    "http://192.0.0.192/opc/v1/",
    "http://168.63.129.16/machine?comp=goalstate",
    "http://2822734096/",
    "http://0xa83f8110/",
    // The edges of every closed network.
    "http://0.255.255.255/",
    "http://10.0.0.0/",
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://012.0.0.1/",
    "http://0xa.0.0.1/",
    "http://167772161/",
    "http://100.64.0.0/",
    "http://100.127.255.255/",
    "http://127.0.0.0/",
    "http://127.255.255.255/",
    "http://172.16.0.0/",
    "http://172.31.255.255/",
    "http://192.0.0.0/",
    "http://192.0.0.255/",
    "http://192.0.2.0/",
    "http://192.0.2.255/",
    "http://192.88.99.1/",
    "http://192.168.0.0/",
    "http://192.168.1.1/",
    "http://192.168.255.255/",
    "http://192.168.257/",
    "http://3232235777/",
    "http://0xc0a80101/",
    "http://198.18.0.0/",
    "http://198.19.255.255/",
    "http://198.51.100.0/",
    "http://198.51.100.255/",
    "http://203.0.113.0/",
    "http://203.0.113.255/",
    "http://224.0.0.0/",
    "http://239.255.255.255/",
    "http://240.0.0.0/",
    "http://255.255.255.254/",
    "http://255.255.255.255/",
    "http://4294967295/",
    // IPv6: this machine, links, sites, groups, and addresses in one another's clothes.
    "http://[::]/",
    "http://[::]:8080/",
    "http://[0:0:0:0:0:0:0:0]/",
    "http://[::1]/",
    "http://[::1]:80/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]/",
    "http://[::0001]/",
    "http://[::0.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[::7f00:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::FFFF:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[0:0:0:0:0:ffff:7f00:0001]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::ffff:c0a8:101]/",
    "http://[::ffff:0.0.0.0]/",
    "http://[::10.0.0.1]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[::ffff:0:7f00:1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b::168.63.129.16]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[64:ff9b:1:fffe::10.0.0.1]/",
    "http://[64:ff9b:1:a00:0:100:808:808]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:7f00:0001::1]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[2002:c0a8:0101::1]/",
    "http://[2001:0:7f00:1::]/",
    "http://[2001::f5ff:fffe]/",
    "http://[2001:0000:4136:e378:8000:63bf:3f57:fefd]/",
    "http://[2001:2::1]/",
    "http://[2001:10::1]/",
    "http://[2001:20::1]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[100::1]/",
    "http://[5f00::1]/",
    "http://[fe80::1]/",
    "http://[febf:ffff::1]/",
    "http://[fec0::1]/",
    "http://[fc00::1]/",
    "http://[fdff:ffff::1]/",
    "http://[ff00::1]/",
    "http://[ff02::1]/",
    "http://[ff05::1:3]/",
    "http://[2606:4700::5efe:127.0.0.1]/",
    "http://[2606:4700::200:5efe:a00:1]/",
];

/// Not read at all: somebody would take it for another place than somebody else.
const UNREAD: &[&str] = &[
    // Whose host is it?
    "http://good.example@127.0.0.1/",
    "http://good.example:80@127.0.0.1/",
    "http://good.example%40127.0.0.1/",
    "http://good.example%2f@127.0.0.1/",
    "http://good.example#@127.0.0.1\\",
    "http://good.example&@127.0.0.1/",
    "http://good.example:@127.0.0.1/",
    "http://127.0.0.1\\@good.example/",
    "http://good.example\\@127.0.0.1/",
    "http:\\\\127.0.0.1\\",
    "http://127.0.0.1\\.good.example/",
    "http://a:b@c:d@127.0.0.1/",
    "http://[::1]@good.example/",
    // What a parser drops, and a reader may not see.
    "http://127.0.0.1\t/",
    "http://127.0\t.0.1/",
    "http://127.0.0.1\n/",
    "http://127.0.0.1\r\nHost: good.example/",
    "ht\ntp://127.0.0.1/",
    " http://127.0.0.1/",
    "http://127.0.0.1 /",
    "http://127.0.0.1\0/",
    "\u{feff}http://127.0.0.1/",
    "http://127.0.0.1\u{200b}/",
    "http://local\u{200d}host/",
    "http://good.example\u{202e}/",
    "http://127\u{2024}0\u{2024}0\u{2024}1\u{7f}/",
    // Zone ids, brackets, and numbers that are no address.
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[::1%25lo]/",
    "http://[::1%251]/",
    "http://[::1/",
    "http://::1/",
    "http://::1:80/",
    "http://[127.0.0.1]/",
    "http://[localhost]/",
    "http://[[::1]]/",
    "http://[::ffff:127.1]/",
    "http://[::ffff:0x7f.0.0.1]/",
    "http://[:::1]/",
    "http://[1:2:3:4:5:6:7:8:9]/",
    "http://127.0.0.1.5/",
    "http://127.0.0.256/",
    "http://256.0.0.1/",
    "http://4294967296/",
    "http://0x100000000/",
    "http://0x7g.1/",
    "http://08.0.0.1/",
    "http://127..0.1/",
    "http://127.0.0.1../",
    "http://.127.0.0.1/",
    "http://1.2.3.4.5.6/",
    "http://foo.127/",
    "http://foo.0x7f/",
    "http://+2130706433/",
    "http://127.0.0.1%00.good.example/",
    "http://127.0.0.1%0d%0a/",
    "http://127.0.0.1%20/",
    "http://a..b/",
    "http://./",
    "http://../",
    // Ports and schemes.
    "http://good.example:0/",
    "http://good.example:65536/",
    "http://good.example:80:80/",
    "http://good.example:-80/",
    "http://good.example:0x50/",
    "http://good.example:8o/",
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "gopher://127.0.0.1:25/_HELO",
    "dict://127.0.0.1:11211/stats",
    "ftp://127.0.0.1/",
    "ldap://127.0.0.1/",
    "ws://127.0.0.1/",
    "jar:http://127.0.0.1!/",
    "view-source:http://127.0.0.1/",
    "javascript:fetch('http://127.0.0.1')",
    "data:text/html,x",
    "unix:/var/run/docker.sock",
    "http+unix://%2fvar%2frun%2fdocker.sock/",
    "//127.0.0.1/",
    "127.0.0.1",
    "localhost:8080/",
    "http://",
    "http:",
    "",
];

/// What must stay reachable, however near it lies to what is not.
const OUTSIDE: &[&str] = &[
    "http://1.1.1.1/",
    "https://8.8.8.8:443/",
    "http://134744072/",
    "http://0x08080808/",
    "http://9.255.255.255/",
    "http://11.0.0.0/",
    "http://100.63.255.255/",
    "http://100.128.0.0/",
    "http://126.255.255.255/",
    "http://128.0.0.1/",
    "http://168.63.129.15/",
    "http://169.253.255.255/",
    "http://169.255.0.0/",
    "http://172.15.255.255/",
    "http://172.32.0.0/",
    "http://192.0.1.0/",
    "http://192.0.3.0/",
    "http://192.167.255.255/",
    "http://192.169.0.0/",
    "http://198.17.255.255/",
    "http://198.20.0.0/",
    "http://198.51.99.255/",
    "http://203.0.112.255/",
    "http://203.0.114.0/",
    "http://223.255.255.255/",
    "http://[::ffff:8.8.8.8]/",
    "http://[2606:4700::1111]/",
    "http://[2001:4860:4860::8888]/",
    "http://[2003::1]/",
    "http://[2a00:1450:4001::1]/",
    "https://example.com/",
    "https://EXAMPLE.com./a?b#c",
    "https://sub.domain.example.co.uk:8443/",
    "https://bücher.example/",
    "https://例え.テスト/",
    "https://xn--bcher-kva.example/",
    "https://localhost.example.com/",
    "https://internal.example.com/",
    "https://local.example/",
    "https://10.example.com/",
    "https://127.0.0.1.example.com/",
    "https://a_b.example.com/",
    "https://example.com/path/http://127.0.0.1/?u=http://127.0.0.1/",
    "https://example.com/a%20b?q=%3D",
    "https://example.com/@user",
];

fn open() -> Rules {
    Rules { networks: vec![Network::All], ..Rules::default() }
}

#[test]
fn no_spelling_gets_inside() {
    assert!(INSIDE.len() + UNREAD.len() >= 250, "{} and {}", INSIDE.len(), UNREAD.len());
    let mut wrong = Vec::new();
    for url in INSIDE {
        match Target::read(url).map(|target| open().admits(&target)) {
            Ok(Err(refusal)) if refusal.to_string().contains("is not a public address") => {}
            other => wrong.push(format!("{url}: {other:?}")),
        }
    }
    for url in UNREAD {
        if let Ok(target) = Target::read(url) {
            wrong.push(format!("{url:?} was read as {target}"));
        }
    }
    for url in OUTSIDE {
        let judged = Target::read(url).map(|target| open().admits(&target));
        if judged != Ok(Ok(())) {
            wrong.push(format!("{url} is not let out: {judged:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_product_says_why_it_does_not_go_there() {
    // Nothing is there to be reached if the table or the guard is wrong.
    let nowhere = ["unshare", "--user", "--map-root-user", "--net"];
    if part().is_none() {
        return passes(alone(&nowhere, "ssrf::the_product_says_why_it_does_not_go_there"));
    }
    run(async {
        let stage = Stage::new(roomy());
        for url in INSIDE.iter().chain(UNREAD) {
            let outcome = stage.get(url).await;
            let (kind, why) = fault(&outcome);
            assert!(matches!(kind, "denied" | "invalid_input") && !why.is_empty(), "{url:?}: {outcome:?}");
            if kind == "denied" {
                assert!(why.contains("is not a public address"), "{url:?}: {why}");
            }
        }
        assert_eq!(stage.requests().await.len(), 0, "nothing was sent");
    });
}

/// Texts that are nearly hosts.
fn spelled() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<u8>().prop_map(|n| n.to_string()),
        any::<u8>().prop_map(|n| format!("0x{n:x}")),
        any::<u8>().prop_map(|n| format!("0{n:o}")),
        any::<u32>().prop_map(|n| n.to_string()),
        any::<u32>().prop_map(|n| format!("0x{n:X}")),
        any::<u8>().prop_map(|n| n.to_string().bytes().map(|b| format!("%{b:02x}")).collect()),
        any::<u8>().prop_map(|n| {
            n.to_string().chars().filter_map(|c| char::from_u32(c as u32 - 0x30 + 0xff10)).collect::<String>()
        }),
        Just("localhost".to_owned()),
    ];
    let dot = prop_oneof![8 => Just("."), 1 => Just("。"), 1 => Just("%2e"), 1 => Just(".."), 1 => Just("@")];
    let dotted = prop::collection::vec((number, dot), 1..5)
        .prop_map(|parts| parts.into_iter().map(|(number, dot)| number + dot).collect::<String>())
        .prop_map(|text| text.trim_end_matches('.').to_owned());
    let six = any::<[u16; 8]>().prop_map(|parts| format!("[{}]", std::net::Ipv6Addr::from(parts)));
    let dressed = (0usize..6, any::<[u8; 4]>()).prop_map(|(kind, [a, b, c, d])| {
        let v4 = format!("{a}.{b}.{c}.{d}");
        let clothes = ["::", "::ffff:", "64:ff9b::", "::ffff:0:", "2606:4700::5efe:", "64:ff9b:1::"];
        format!("[{}{v4}]", clothes[kind])
    });
    prop_oneof![dotted, six, dressed]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_is_let_out_is_public_or_a_name(host in spelled(), port in prop::option::of(any::<u16>()), end in "[a-z/?#@.%]{0,6}") {
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let Ok(target) = Target::read(&format!("http://{host}{port}{end}")) else { return Ok(()) };
        // One spelling: reading it again gives the same.
        prop_assert_eq!(Target::read(&target.to_string()), Ok(target.clone()));
        if open().admits(&target).is_ok() {
            match target.host() {
                Host::Address(address) => prop_assert!(is_public(*address), "{}", target),
                // Nothing that the system would take for an address passes as a name.
                Host::Name(name) => {
                    prop_assert!(haft_core::host::literal(name).is_none() && name.parse::<std::net::IpAddr>().is_err());
                    prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)), "{}", name);
                }
            }
        }
    }
}

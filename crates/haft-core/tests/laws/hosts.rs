//! Laws of hosts and of the rules about them.

use haft_core::host::{Host, HostRule, authority, is_public, literal};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 address in one of the ways that some library reads: parts of any base, and as many as given.
fn spelled(address: Ipv4Addr, parts: usize, bases: &[usize]) -> String {
    let [a, b, c, d] = address.octets().map(u32::from);
    let numbers = match parts {
        1 => vec![u32::from(address)],
        2 => vec![a, u32::from(address) & 0x00ff_ffff],
        3 => vec![a, b, u32::from(address) & 0xffff],
        _ => vec![a, b, c, d],
    };
    let write = |(number, base): (&u32, &usize)| match base {
        0 => format!("{number}"),
        1 => format!("0{number:o}"),
        2 => format!("0x{number:x}"),
        _ => format!("0X{number:08X}"),
    };
    numbers.iter().zip(bases).map(write).collect::<Vec<_>>().join(".")
}

proptest! {
    #[test]
    fn no_spelling_hides_an_address(
        bytes in any::<u32>(),
        parts in 1..5_usize,
        bases in prop::collection::vec(0..4_usize, 4),
        dot in any::<bool>(),
    ) {
        let address = Ipv4Addr::from(bytes);
        let spelling = spelled(address, parts, &bases) + if dot { "." } else { "" };
        prop_assert_eq!(literal(&spelling), Some(IpAddr::V4(address)));
        prop_assert_eq!(Host::read(&spelling), Some(Host::Address(address.into())));
        let rule = spelling.parse::<HostRule>();
        prop_assert_eq!(rule.is_ok(), spelling.trim_end_matches('.') == address.to_string());
    }

    #[test]
    fn clothes_do_not_make_an_address_public(bytes in any::<u32>()) {
        let v4 = Ipv4Addr::from(bytes);
        prop_assert_eq!(is_public(v4.to_ipv6_mapped().into()), is_public(v4.into()));
        let nat64 = u128::from(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0)) | u128::from(bytes);
        prop_assert_eq!(is_public(Ipv6Addr::from(nat64).into()), is_public(v4.into()));
        let six_to_four = 0x2002_u128 << 112 | u128::from(bytes) << 80 | 1;
        prop_assert_eq!(is_public(Ipv6Addr::from(six_to_four).into()), is_public(v4.into()));
    }

    #[test]
    fn a_rule_reads_back_as_itself(text in r"(\*\.)?[a-zA-Z0-9_.:\[\]x-]{0,24}") {
        if let Ok(rule) = text.parse::<HostRule>() {
            prop_assert_eq!(rule.to_string().parse::<HostRule>(), Ok(rule));
        }
    }

    #[test]
    fn any_text_is_read_without_harm(text in any::<String>(), port in any::<u16>()) {
        let rule = text.parse::<HostRule>();
        prop_assert!(!rule.is_ok_and(|rule| rule.matches("example.com", port)));
        if let Some((host, _)) = authority(&text) {
            prop_assert!(host.to_string().is_ascii());
        }
    }

    #[test]
    fn a_wildcard_covers_names_below_and_nothing_else(name in "[a-c]{1,2}(\\.[a-c]{1,2}){0,3}") {
        let rule: HostRule = "*.a.b".parse().unwrap();
        prop_assert_eq!(rule.matches(&name, 443), name.ends_with(".a.b"));
    }
}

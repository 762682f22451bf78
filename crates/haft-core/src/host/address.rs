//! Addresses behind their spellings, and which of them lie on the public internet.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks that no name may lead to: (first address, length of the prefix).
const CLOSED_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Looks public; on Azure's machines the host itself answers there.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The only part of IPv6 that is given out for the internet; loopback, links, sites and groups lie outside of it, and
/// so do the well-known networks of translators.
const OPEN_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What is closed inside of it: protocols' own numbers (Teredo among them), examples, 6to4. Tunnelled networks are
/// closed whole: behind them stands an IPv4 address that somebody else unpacks.
const CLOSED_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether an address lies on the public internet, rather than on this machine, its network, or a
/// network that is nobody's. An IPv4 address in IPv6 clothes is judged as the IPv4 address.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !CLOSED_V4.iter().any(|(net, bits)| (u32::from(*net) ^ u32::from(v4)) >> (32 - bits) == 0),
        IpAddr::V6(v6) => dressed(v6).map_or_else(|| is_public_v6(v6), |v4| is_public(IpAddr::V4(v4))),
    }
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    let within = |(net, bits): &(Ipv6Addr, u32)| (u128::from(*net) ^ u128::from(v6)) >> (128 - bits) == 0;
    within(&OPEN_V6) && !CLOSED_V6.iter().any(within) && !is_isatap(v6)
}

/// Whether an IPv4 address stands in the second half, for routers inside to unpack (`…:0:5efe:a.b.c.d`).
fn is_isatap(v6: Ipv6Addr) -> bool {
    let parts = v6.segments();
    parts[4] & !0x0200 == 0 && parts[5] == 0x5efe
}

/// The IPv4 address inside a mapped (`::ffff:a.b.c.d`) or compatible (`::a.b.c.d`) one. `::` and `::1`
/// count as compatible by their bytes, and are no less closed as `0.0.0.0` and `0.0.0.1`.
pub(super) fn dressed(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    v6.to_ipv4()
}

/// The address that a host is, in any spelling that `inet_aton` or a URL parser takes for one: decimal,
/// octal or hexadecimal parts, fewer than four of them, brackets, a final dot. A mapped IPv4 address comes
/// back as IPv4. None is a name, or nothing; an address with a zone id is nothing.
///
/// Only ASCII is looked at: a URL parser turns full-width digits and percent signs into these first.
pub fn literal(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => v6(rest.strip_suffix(']')?),
        None if host.contains(':') => v6(host),
        None => v4(host.strip_suffix('.').unwrap_or(host)).map(IpAddr::V4),
    }
}

fn v6(text: &str) -> Option<IpAddr> {
    text.parse::<Ipv6Addr>().ok().map(|address| address.to_canonical())
}

/// One to four numbers; the last fills all bytes that the others leave.
fn v4(text: &str) -> Option<Ipv4Addr> {
    let numbers = text.split('.').map(number).collect::<Option<Vec<u64>>>()?;
    let (last, first) = numbers.split_last()?;
    let room = 32_u32.checked_sub(8 * u32::try_from(first.len()).ok()?).filter(|room| *room > 0)?;
    if first.iter().any(|part| *part > 0xff) || *last >= 1 << room {
        return None;
    }
    let high = first.iter().fold(0, |sum, part| (sum << 8) | part) << room;
    u32::try_from(high | last).ok().map(Ipv4Addr::from)
}

fn number(part: &str) -> Option<u64> {
    let hex = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
    let (digits, radix) = match (hex, part.strip_prefix('0')) {
        // URL parsers read a bare `0x` as zero.
        (Some(""), _) | (None, Some("")) => return Some(0),
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) => (digits, 8),
        (None, None) => (part, 10),
    };
    // `from_str_radix` would take a sign.
    let plain = digits.chars().all(|c| c.is_digit(radix));
    plain.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// Whether a label is a number to a URL parser, which then never takes the host for a name.
pub(super) fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    let digits = |text: &str, radix| text.chars().all(|c| c.is_digit(radix));
    hex.map_or(!label.is_empty() && digits(label, 10), |hex| digits(hex, 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_address_is_the_address() {
        let loopback = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        for spelling in [
            "127.0.0.1",
            "127.0.0.1.",
            "0177.0.0.1",
            "0x7f.1",
            "0X7F.0.0.0x1",
            "127.1",
            "127.0.1",
            "2130706433",
            "017700000001",
            "0x7f000001",
            "00000000000000000000000000177.0.0.1",
            "[::ffff:127.0.0.1]",
            "::ffff:7f00:1",
        ] {
            assert_eq!(literal(spelling), loopback, "{spelling}");
        }
        assert_eq!(literal("0x"), Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
        assert_eq!(literal("255.255.255.255"), Some(IpAddr::V4(Ipv4Addr::BROADCAST)));
        assert_eq!(literal("4294967295"), Some(IpAddr::V4(Ipv4Addr::BROADCAST)));
        assert_eq!(literal("[::1]"), Some(IpAddr::V6(Ipv6Addr::LOCALHOST)));
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in [
            "",
            ".",
            "a",
            "1.2.3.4.5",
            "1.2.3.256",
            "256.1",
            "4294967296",
            "08.1",
            "+1",
            "1..2",
            "1.2.3.4..",
            "[127.0.0.1]",
            "[::1",
            "::1]",
            "[fe80::1%eth0]",
            "fe80::1%1",
            "0xg",
            "99999999999999999999999",
        ] {
            assert_eq!(literal(text), None, "{text}");
        }
    }

    #[test]
    fn closed_networks_begin_and_end_where_they_should() {
        let public = |text: &str| is_public(text.parse().unwrap());
        for inside in [
            "0.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.8.8.8",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "fc00::1",
            "fdff::1",
            "ff02::1",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:db8::1",
            "::ffff:10.0.0.1",
            "::ffff:7f00:1",
            "::7f00:1",
            "::ffff:0:808:808",
            "168.63.129.16",
            "192.88.99.1",
            "2001::1",
            "2001:1ff:ffff::1",
            "3fff::1",
            "100::1",
            "4000::1",
            "5f00::1",
            "fec0::1",
            "64:ff9b:1::808:808",
            "2606:4700::5efe:10.0.0.1",
            "2606:4700::200:5efe:10.0.0.1",
        ] {
            assert!(!public(inside), "{inside}");
        }
        for outside in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2003::1",
            "3ffe:ffff::1",
            "168.63.129.17",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "::808:808",
        ] {
            assert!(public(outside), "{outside}");
        }
    }
}

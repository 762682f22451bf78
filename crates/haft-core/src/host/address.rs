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

/// The only part of IPv6 that is given out for the internet; loopback, links, sites and groups lie outside of it.
const OPEN_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// What is closed inside of it: protocols' own numbers and examples.
const CLOSED_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether an address lies on the public internet, rather than on this machine, its network, or a network that is
/// nobody's: the judgement that protects against SSRF. An IPv6 address that a translator or tunnel unpacks to an IPv4
/// address (IPv4-mapped, NAT64, 6to4, Teredo, ISATAP) is judged by every IPv4 address inside it.
///
/// A network-specific NAT64 prefix is an ordinary IPv6 network to everybody but its translator, so addresses below one
/// are judged as that network is: refused where the prefix is a private one.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !CLOSED_V4.iter().any(|(net, bits)| (u32::from(*net) ^ u32::from(v4)) >> (32 - bits) == 0),
        IpAddr::V6(v6) => {
            let inside = embedded_v4(v6);
            let routed = if is_unpacked_whole(v6) { !inside.is_empty() } else { is_public_network(v6) };
            routed && inside.into_iter().all(|v4| is_public(IpAddr::V4(v4)))
        }
    }
}

/// Whether the network that an address is routed by is one of the internet's.
fn is_public_network(v6: Ipv6Addr) -> bool {
    is_within(v6, OPEN_V6) && !CLOSED_V6.iter().any(|network| is_within(v6, *network))
}

fn is_within(v6: Ipv6Addr, (network, bits): (Ipv6Addr, u32)) -> bool {
    (u128::from(network) ^ u128::from(v6)) >> (128 - bits) == 0
}

/// IPv4-compatible and IPv4-mapped addresses (RFC 4291).
const COMPATIBLE: (Ipv6Addr, u32) = (Ipv6Addr::UNSPECIFIED, 96);
const MAPPED: (Ipv6Addr, u32) = (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
/// The well-known prefix of NAT64 (RFC 6052).
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
/// The prefix from which an operator takes prefixes for translators of their own (RFC 8215).
const LOCAL_NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48);
/// 6to4 (RFC 3056).
const SIX_TO_FOUR: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);
/// Teredo (RFC 4380).
const TEREDO: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32);

/// Whether an address means an IPv4 address and nothing else, so that its own network says nothing.
fn is_unpacked_whole(v6: Ipv6Addr) -> bool {
    [COMPATIBLE, MAPPED, NAT64, LOCAL_NAT64, SIX_TO_FOUR, TEREDO].into_iter().any(|network| is_within(v6, network))
}

/// Every IPv4 address that a translator or tunnel may find inside an IPv6 address; none in an ordinary one.
pub fn embedded_v4(v6: Ipv6Addr) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let within = |network| is_within(v6, network);
    if [COMPATIBLE, MAPPED, NAT64].into_iter().any(within) {
        found.push(bits_at(v6, 96));
    } else if within(LOCAL_NAT64) {
        found.extend(local_nat64(v6));
    } else if within(SIX_TO_FOUR) {
        found.push(bits_at(v6, 16));
    } else if within(TEREDO) {
        // The server that traffic is asked for through, and the client, whose address is written inverted.
        found.extend([bits_at(v6, 32), Ipv4Addr::from_bits(!bits_at(v6, 96).to_bits())]);
    }
    if is_isatap(v6) {
        found.push(bits_at(v6, 96));
    }
    found
}

/// The 32 bits from `start` on.
fn bits_at(v6: Ipv6Addr, start: u32) -> Ipv4Addr {
    let kept = u128::from(v6) >> (96 - start) & u128::from(u32::MAX);
    Ipv4Addr::from_bits(u32::try_from(kept).unwrap_or_default())
}

/// The IPv4 addresses in one below the local-use prefix. How long the operator's own prefix is cannot be seen from an
/// address, and a translator ignores what follows the IPv4 address (RFC 6052, section 2.2), so each length gives a reading.
/// A reading in 0.0.0.0/8 is padding: no translator has such a destination.
fn local_nat64(v6: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    // The octet after the first 64 bits belongs to no reading.
    let (high, low) = ((u128::from(v6) >> 64) << 64, u128::from(v6) << 72 >> 64);
    let without_octet = Ipv6Addr::from(high | low);
    let by_length = [48, 56, 64].map(|length| bits_at(without_octet, length));
    by_length.into_iter().chain([bits_at(v6, 96)]).filter(|v4| v4.octets()[0] != 0)
}

/// Whether an IPv4 address stands in the second half, for routers inside to unpack (`…:0:5efe:a.b.c.d`, RFC 5214).
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

    /// Addresses in networks that are closed to the public, at their ends where they have some.
    const CLOSED: &[&str] = &[
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
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "64:ff9b::169.254.169.254",
        "64:ff9b::168.63.129.16",
        "64:ff9b::",
        "2002:7f00:1::1",
        "2002:c0a8:101::1",
        "2002:808:808::5efe:10.0.0.1",
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
        "64:ff9b:1::",
        "64:ff9b:1::7f00:1",
        "64:ff9b:1:7f00:0:100::",
        "64:ff9b:1:fffe::10.0.0.1",
        // Whichever prefix the operator chose: one of its readings is 10.0.0.1, whatever follows it.
        "64:ff9b:1:a00:0:100:808:808",
        "64:ff9b:1:80a:0:1::",
        "64:ff9b:1::a:0:100:0",
        // Teredo with a server, then with a client inside.
        "2001:0:a00:1::f7f7:f7f7",
        "2001:0:808:808::80ff:fffe",
        "2606:4700::5efe:10.0.0.1",
        "2001:db8::5efe:8.8.8.8",
        "fe80::5efe:8.8.8.8",
        "2606:4700::200:5efe:10.0.0.1",
    ];

    /// Public addresses, beside the ends of closed networks and with a public address inside.
    const PUBLIC: &[&str] = &[
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
        "64:ff9b::808:808",
        "64:ff9b::140.82.121.4",
        "64:ff9b:1::808:808",
        "64:ff9b:1:808:8:800::",
        "2002:808:808::1",
        "2001:0:4136:e378:8000:63bf:f7f7:f7f7",
        "2606:4700::5efe:8.8.8.8",
        "2606:4700::200:5efe:8.8.8.8",
    ];

    #[test]
    fn closed_networks_begin_and_end_where_they_should() {
        let public = |text: &str| is_public(text.parse().unwrap());
        for closed in CLOSED {
            assert!(!public(closed), "{closed}");
        }
        for outside in PUBLIC {
            assert!(public(outside), "{outside}");
        }
    }
}

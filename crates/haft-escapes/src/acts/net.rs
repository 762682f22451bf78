//! Reaching anybody, when the network was not granted.

use super::write::IntoTried;
use super::{Act, Prop, Sight};
use crate::attack::{Brief, Stop, Tried, any, broken, stopped};
use crate::sys::{self, at, call, int, into, zeroed};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

pub(crate) const ACTS: &[Act] = &[
    reached("net.tcp", |b| tcp(local(b, "tcp4")?)),
    reached("net.tcp_v6", |b| tcp((Ipv6Addr::LOCALHOST, port(b, "tcp6")?).into())),
    reached("net.tcp_own_address", |b| tcp(address(b, "own")?)),
    reached("net.tcp_any_address", |b| tcp((Ipv4Addr::UNSPECIFIED, port(b, "tcp4")?).into())),
    reached("net.tcp_mapped", |b| tcp((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port(b, "tcp4")?).into())),
    reached("net.tcp_sweep", sweep),
    reached("net.tcp_fast_open", fast_open),
    reached("net.mptcp", |b| stream_of(libc::AF_INET, 262, local(b, "tcp4")?)),
    reached("net.inherited_socket", |_| inherited_socket()),
    reached("net.udp", |b| udp(local(b, "udp")?, false)),
    reached("net.udp_connected", |b| udp(local(b, "udp")?, true)),
    reached("net.udp_own_address", |b| udp(address(b, "own_udp")?, false)),
    Act::new("net.udp_broadcast", |_| broadcast()),
    Act::new("net.multicast", |_| multicast()),
    Act::new("net.sctp", |_| socket(libc::AF_INET, libc::SOCK_STREAM, 132)),
    Act::new("net.raw", |_| socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)),
    Act::new("net.raw_v6", |_| socket(libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6)),
    Act::new("net.raw_any", |_| socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW)),
    Act::new("net.icmp", |_| socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP)),
    Act::new("net.packet", |_| packet()),
    Act::new("net.vsock", |_| socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)),
    Act::new("net.alg", |_| socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)),
    Act::new("net.families", |_| families()),
    Act::new("net.netlink_interfaces", |_| netlink_interfaces()),
    Act::new("net.proc_interfaces", |_| proc_interfaces()),
    Act::new("net.ioctl_interfaces", |_| ioctl_interfaces()),
    Act::new("net.netlink_uevent", |_| netlink(libc::NETLINK_KOBJECT_UEVENT)),
    Act::new("net.netlink_audit", |_| netlink(libc::NETLINK_AUDIT)),
    Act::new("net.netlink_diag", |_| netlink(libc::NETLINK_SOCK_DIAG)),
    Act::new("net.netlink_netfilter", |_| netlink(libc::NETLINK_NETFILTER)),
    Act::new("net.tun", |_| sys::open("/dev/net/tun", libc::O_RDWR).tried()),
    Act::new("net.dns", |_| dns()),
    reached("net.unix_abstract", |b| unix(b"\0", b.get("abstract")?.as_bytes(), libc::SOCK_STREAM)),
    reached("net.unix_outside", |b| unix_at(&b.file("outside", "s.sock")?, libc::SOCK_STREAM)),
    reached("net.unix_in_read_root", |b| unix_at(&b.file("reading", "s.sock")?, libc::SOCK_STREAM)),
    reached("net.unix_in_write_root", |b| unix_at(&b.file("project", "s.sock")?, libc::SOCK_STREAM)),
    reached("net.unix_in_tmp", |b| unix_at(&b.path("tmp_socket")?, libc::SOCK_STREAM)),
    reached("net.unix_datagram", |b| unix_at(&b.file("reading", "d.sock")?, libc::SOCK_DGRAM)),
    reached("net.unix_datagram_project", |b| unix_at(&b.file("project", "d.sock")?, libc::SOCK_DGRAM)),
    reached("net.unix_by_symlink", unix_by_symlink),
    Act::new("net.listen", listen).with(Prop::Dialler).seen(Sight::Reached),
];

const fn reached(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    Act::new(name, attempt).seen(Sight::Reached)
}

const PATIENCE: Duration = Duration::from_millis(700);

fn port(b: &Brief, key: &str) -> Result<u16, Stop> {
    b.number(key).map(|number| number as u16)
}

pub(crate) fn local(b: &Brief, key: &str) -> Result<SocketAddr, Stop> {
    Ok((Ipv4Addr::LOCALHOST, port(b, key)?).into())
}

pub(crate) fn address(b: &Brief, key: &str) -> Result<SocketAddr, Stop> {
    b.get(key)?.parse().or_else(|_| broken(format!("{key} is no address")))
}

pub(crate) fn tcp(to: SocketAddr) -> Tried {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.write_all(b"evil")?;
    Ok(format!("connected to {to}"))
}

/// Every address that might be the host from inside.
fn sweep(b: &Brief) -> Tried {
    let port = port(b, "tcp4")?;
    let hosts = [
        "127.0.0.1",
        "127.0.0.2",
        "127.1.2.3",
        "10.0.2.2",
        "172.17.0.1",
        "192.168.0.1",
        "198.18.0.1",
        "169.254.169.254",
    ];
    let reach = |host: &&str| {
        let to = format!("{host}:{port}").parse().ok()?;
        TcpStream::connect_timeout(&to, Duration::from_millis(80)).ok().map(|_| format!("connected to {to}"))
    };
    hosts.iter().find_map(reach).map_or_else(|| stopped("nobody answers"), Ok)
}

fn raw_v4(to: SocketAddr) -> Result<libc::sockaddr_in, Stop> {
    let SocketAddr::V4(to) = to else { return broken("not an IPv4 address") };
    let mut raw: libc::sockaddr_in = zeroed();
    raw.sin_family = libc::AF_INET as u16;
    raw.sin_port = to.port().to_be();
    raw.sin_addr.s_addr = u32::from_ne_bytes(to.ip().octets());
    Ok(raw)
}

fn fast_open(b: &Brief) -> Tried {
    let raw = raw_v4(local(b, "tcp4")?)?;
    let fd = call(libc::SYS_socket, &[libc::AF_INET as usize, libc::SOCK_STREAM as usize, 0])?;
    let flag = libc::MSG_FASTOPEN as usize;
    call(libc::SYS_sendto, &[fd, at(b"evil"), 4, flag, at(&raw), size_of_val(&raw)]).tried()
}

fn stream_of(family: i32, protocol: i32, to: SocketAddr) -> Tried {
    let raw = raw_v4(to)?;
    let fd = call(libc::SYS_socket, &[family as usize, libc::SOCK_STREAM as usize, int(protocol)])?;
    call(libc::SYS_connect, &[fd, at(&raw), size_of_val(&raw)]).tried()
}

fn inherited_socket() -> Tried {
    let sent: Vec<i32> =
        (3..1024).filter(|fd| call(libc::SYS_sendto, &[int(*fd), at(b"evil"), 4, 0, 0, 0]).is_ok()).collect();
    if sent.is_empty() { stopped("no descriptor sends") } else { Ok(format!("by descriptors {sent:?}")) }
}

/// Sends from this side; whether it arrived is seen on the other. Inside a network of its own the
/// loopback takes a datagram for nobody, so the sender's word counts for nothing.
pub(crate) fn udp(to: SocketAddr, connected: bool) -> Tried {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    if connected {
        socket.connect(to)?;
        socket.send(b"evil")?;
    } else {
        socket.send_to(b"evil", to)?;
    }
    stopped("sent, perhaps to nobody")
}

/// Every interface but the loopback is asked for by a route to everybody.
fn broadcast() -> Tried {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_broadcast(true)?;
    socket.send_to(b"evil", "255.255.255.255:9")?;
    Ok("sent".to_owned())
}

fn multicast() -> Tried {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.send_to(b"evil", "224.0.0.251:9")?;
    Ok("sent".to_owned())
}

fn socket(family: i32, kind: i32, protocol: i32) -> Tried {
    call(libc::SYS_socket, &[family as usize, kind as usize, int(protocol)])?;
    Ok(format!("a socket of family {family}"))
}

fn packet() -> Tried {
    any(&[
        ("raw", &|| socket(libc::AF_PACKET, libc::SOCK_RAW, 0x0300)),
        ("datagram", &|| socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0x0300)),
        ("old", &|| socket(libc::AF_INET, 10, 0x0300)),
    ])
}

/// Every family that an ordinary program has no use for.
fn families() -> Tried {
    let usual = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let kinds = [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET, libc::SOCK_RAW];
    let unusual = (1..46).filter(|family| !usual.contains(family));
    let opens = |family: &i32| kinds.iter().any(|kind| socket(*family, *kind, 0).is_ok());
    let open: Vec<i32> = unusual.filter(opens).collect();
    if open.is_empty() { stopped("none opens") } else { Ok(format!("families {open:?}")) }
}

fn netlink(protocol: i32) -> Tried {
    let fd = call(libc::SYS_socket, &[libc::AF_NETLINK as usize, libc::SOCK_RAW as usize, int(protocol)])?;
    let mut address: libc::sockaddr_nl = zeroed();
    address.nl_family = libc::AF_NETLINK as u16;
    call(libc::SYS_bind, &[fd, at(&address), size_of_val(&address)]).tried()
}

/// Lists the interfaces; the loopback alone tells nothing.
fn netlink_interfaces() -> Tried {
    let fd = call(libc::SYS_socket, &[libc::AF_NETLINK as usize, libc::SOCK_RAW as usize, 0])?;
    // nlmsghdr of a dump of links, then an empty ifinfomsg.
    let mut request = Vec::new();
    request.extend(32u32.to_ne_bytes());
    request.extend(libc::RTM_GETLINK.to_ne_bytes());
    request.extend(0x301u16.to_ne_bytes());
    request.extend([0u8; 24]);
    call(libc::SYS_sendto, &[fd, at(request.as_slice()), request.len(), 0, 0, 0])?;
    let mut answer = vec![0u8; 65536];
    let length = call(libc::SYS_recvfrom, &[fd, into(answer.as_mut_slice()), answer.len(), 0, 0, 0])?;
    let text = String::from_utf8_lossy(&answer[..length]).into_owned();
    beyond_loopback(text.split('\0').filter(|word| !word.is_empty()).map(str::to_owned))
}

/// Names of common kinds of interfaces among some words.
fn beyond_loopback(words: impl Iterator<Item = String>) -> Tried {
    let kinds = ["eth", "en", "wl", "docker", "br-", "veth", "ifb", "tap", "tun", "bond"];
    let is_one = |word: &String| {
        let rest = kinds.iter().find_map(|kind| word.strip_prefix(kind));
        rest.is_some_and(|rest| rest.len() < 14 && rest.chars().all(char::is_alphanumeric) && word.is_ascii())
            && word.chars().any(|c| c.is_ascii_digit())
    };
    let found: Vec<String> = words.filter(is_one).collect();
    if found.is_empty() { stopped("only the loopback") } else { Ok(found.join(" ")) }
}

fn proc_interfaces() -> Tried {
    let text = std::fs::read_to_string("/proc/net/dev")?;
    beyond_loopback(text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim().to_owned()))
}

fn ioctl_interfaces() -> Tried {
    let fd = call(libc::SYS_socket, &[libc::AF_INET as usize, libc::SOCK_DGRAM as usize, 0])?;
    let name = |index: i32| {
        let mut request: libc::ifreq = zeroed();
        request.ifr_ifru.ifru_ifindex = index;
        sys::ioctl(fd as i32, 0x8910, into(&mut request)).ok()?;
        Some(request.ifr_name.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect::<String>())
    };
    beyond_loopback((1..64).filter_map(name))
}

/// Asks the first name server of the machine, and waits for its answer.
fn dns() -> Tried {
    let text = std::fs::read_to_string("/etc/resolv.conf")?;
    let server = text.lines().find_map(|line| line.strip_prefix("nameserver ")).unwrap_or("127.0.0.53").trim();
    let bind = if server.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(bind)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01";
    socket.send_to(query, (server, 53))?;
    let mut answer = [0u8; 512];
    let length = socket.recv(&mut answer)?;
    Ok(format!("{length} bytes from {server}"))
}

pub(crate) fn unix_at(path: &Path, kind: i32) -> Tried {
    unix(b"", path.as_os_str().as_bytes(), kind)
}

/// Connects to a socket by its name, and says something.
fn unix(prefix: &[u8], name: &[u8], kind: i32) -> Tried {
    let mut address: libc::sockaddr_un = zeroed();
    address.sun_family = libc::AF_UNIX as u16;
    for (place, byte) in address.sun_path.iter_mut().zip(prefix.iter().chain(name)) {
        *place = *byte as libc::c_char;
    }
    let length = 2 + prefix.len() + name.len() + usize::from(prefix.is_empty());
    let fd = call(libc::SYS_socket, &[libc::AF_UNIX as usize, int(kind), 0])?;
    call(libc::SYS_connect, &[fd, at(&address), length])?;
    sys::write(fd as i32, b"evil").tried()
}

fn unix_by_symlink(b: &Brief) -> Tried {
    let link = b.file("project", "way.sock")?;
    std::os::unix::fs::symlink(b.file("outside", "s.sock")?, &link)?;
    unix_at(&link, libc::SOCK_STREAM)
}

/// Waits for somebody outside to come in by a port that was opened here.
fn listen(b: &Brief) -> Tried {
    let listener = TcpListener::bind(("0.0.0.0", port(b, "back")?))?;
    let wait = libc::timeval { tv_sec: 1, tv_usec: 0 };
    let option = [int(listener.as_raw_fd()), libc::SOL_SOCKET as usize, libc::SO_RCVTIMEO as usize, at(&wait), 16];
    call(libc::SYS_setsockopt, &option)?;
    let (mut stream, from) = listener.accept()?;
    let mut buffer = [0u8; 16];
    let _ = stream.read(&mut buffer);
    Ok(format!("{from} came in"))
}

//! Words and descriptors over a local socket: between whoever wants a program started, the helper that
//! starts it, and the program's keeper inside.

use crate::standing::Machine;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// How many descriptors one message may carry.
pub(super) const FDS_MAX: usize = 200;
/// The longest word.
const WORD_MAX: usize = 16 << 10;
/// The longest order: arguments and environment together are bounded by the kernel at less.
const ORDER_MAX: usize = 64 << 20;

/// What is said about a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// The keeper is born. Comes with its pidfd.
    Born { pid: i32 },
    /// The ways out are there. Comes with their sockets.
    Ways,
    /// The program's connections are reported. Comes with the seccomp listener.
    Watch,
    /// It could not be set up.
    Failed { step: String, errno: i32 },
    /// The program itself could not be started.
    NoProgram { errno: i32 },
    /// The program ended.
    Exited { code: i32 },
    /// A signal ended it.
    Signalled { signal: i32 },
    /// What the machine offers.
    Machine(Machine),
}

/// A pair of sockets that keeps messages apart.
pub(super) fn words() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// A pair of sockets for messages of any length.
pub(super) fn orders() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

fn send_bytes(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors in one message"));
    }
    Ok(rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

fn receive_bytes(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        match rustix::net::recvmsg(&socket, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            got => break got?,
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok((got.bytes, fds))
}

/// Says a word.
pub(super) fn say(socket: impl AsFd, word: &Word, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_bytes(socket, &serde_json::to_vec(word)?, fds).map(drop)
}

/// Hears a word; none if the other side is gone.
pub(super) fn hear(socket: impl AsFd) -> io::Result<Option<(Word, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; WORD_MAX];
    let (length, fds) = receive_bytes(socket, &mut bytes)?;
    if length == 0 {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(bytes.get(..length).unwrap_or_default())?, fds)))
}

/// Sends an order: its length and the descriptors first, then itself.
pub(super) fn order(socket: impl AsFd, order: &impl Serialize, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(order)?;
    send_bytes(&socket, &(bytes.len() as u64).to_ne_bytes(), fds)?;
    let mut left = bytes.as_slice();
    while !left.is_empty() {
        let sent = send_bytes(&socket, left, &[])?;
        left = left.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// Takes an order; none if whoever gives them is gone.
pub(super) fn take_order<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut head = [0; 8];
    let (length, fds) = receive_bytes(&socket, &mut head)?;
    if length == 0 {
        return Ok(None);
    }
    let length = usize::try_from(u64::from_ne_bytes(head)).unwrap_or(usize::MAX);
    if length > ORDER_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the order is too long"));
    }
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let Some(rest) = bytes.get_mut(filled..) else { break };
        match receive_bytes(&socket, rest)?.0 {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => filled += more,
        }
    }
    Ok(Some((serde_json::from_slice(&bytes)?, fds)))
}

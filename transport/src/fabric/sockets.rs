//! Detects that the other host of a connection is gone: its cable was pulled, or it lost power.
//!
//! In that case nothing arrives. TCP by itself waits for a quarter of an hour, or for ever if
//! nothing is sent. This module therefore asks the system to probe silent connections, and to end a
//! connection when the other host's system answers nothing for the *patience* of the link. The
//! other end's process need not answer: it may compute, or be stopped, for any time.
//!
//! TCP_USER_TIMEOUT only fits in part, because it also counts the time in which data wait for room
//! at the other end, even if that end's system keeps answering. It is therefore set only for
//! connections that aren't established, and for connections with unacknowledged data that were sent
//! again. A thread, the [`keeper`](super::keeper), looks for these.
//!
//! libfabric doesn't name the sockets of its endpoints, so this module finds them among the
//! process's sockets by their addresses. A listener and its accepted sockets are found by their own
//! address, and a connecting socket by its peer's. Options don't identify a socket, because newer
//! versions of libfabric set options while a connection is being established. The keeper therefore
//! sets an option again if it has changed.
//!
//! Where the system doesn't report the destination of a connecting socket, as under some emulators,
//! all sockets that are connecting over the interface are probed. That harms none of them.
#![allow(unsafe_code)]

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;
use std::{fs, io, ptr};

use nix::errno::Errno;
use nix::sys::socket::sockopt::{
    KeepAlive, SockType, TcpKeepCount, TcpKeepIdle, TcpKeepInterval, TcpUserTimeout,
};
use nix::sys::socket::{
    self, SetSockOpt, SockaddrLike, SockaddrStorage, getpeername, getsockname, getsockopt,
};

/// The number of probes before a connection is given up.
const PROBES: u32 = 4;

/// Asks the system to end the connections of a listener that are silent for `patience`, and to hand
/// on only those whose other end has sent something. Returns `false` if the listener isn't among
/// this process's sockets, because not all providers use the system's sockets.
///
/// # Errors
/// The system refuses the option.
pub(super) fn watch_listener(address: SocketAddr, patience: Duration) -> io::Result<bool> {
    let Some(listener) = sockets()?.find(|socket| socket.local() == Some(address)) else {
        return Ok(false);
    };
    listener.watch(patience)?;
    // A system without it hands on silent connections, which `guests` closes.
    let _ = listener.defer();
    Ok(true)
}

/// The listening addresses of this process and its peers, by which connections are found.
pub(super) struct Ends {
    own: Vec<SocketAddr>,
    peers: HashSet<(IpAddr, u16)>,
}

impl Ends {
    pub(super) fn new(
        own: impl IntoIterator<Item = SocketAddr>,
        peers: impl IntoIterator<Item = SocketAddr>,
    ) -> Ends {
        let peers = peers.into_iter().map(|peer| (peer.ip(), peer.port())).collect();
        Ends { own: own.into_iter().collect(), peers }
    }

    /// Whether a socket is a listener of this process, accepted by one, or connected to a peer's
    /// listener.
    pub(super) fn have(&self, socket: &Socket) -> bool {
        let is = |local: SocketAddr| {
            self.own.iter().any(|own| (own.ip(), own.port()) == (local.ip(), local.port()))
        };
        socket.local().is_some_and(is)
            || socket.peer().is_some_and(|peer| self.peers.contains(&(peer.ip(), peer.port())))
    }
}

/// Whether a connection to an address is established, whatever the process at its other end does.
///
/// # Errors
/// This process's sockets can't be listed.
pub(super) fn is_connected(to: SocketAddr) -> io::Result<bool> {
    let ends = Ends::new([], [to]);
    Ok(sockets()?.any(|socket| ends.have(&socket)))
}

/// Asks the system to watch all sockets that connect, or are connected, to an address. Where the
/// system doesn't report the destination, watches all sockets that are connecting over `interface`.
///
/// Sockets that another thread has closed meanwhile are ignored.
///
/// # Errors
/// This process's sockets can't be listed.
pub(super) fn watch_connecting(
    interface: IpAddr,
    to: SocketAddr,
    patience: Duration,
) -> io::Result<()> {
    let connects = |socket: &Socket| match socket.destination() {
        Ok(destination) => destination == to,
        Err(Errno::ENOTCONN) => false,
        Err(_) => {
            let may_connect = socket.standing().is_none_or(|standing| standing.connects);
            may_connect && socket.local().is_some_and(|local| local.ip() == interface)
        }
    };
    for socket in sockets()?.filter(|socket| connects(socket)) {
        let _ = socket.watch(patience);
    }
    Ok(())
}

/// The socket options for a patience.
pub(super) struct Times {
    /// Seconds of silence before the first probe.
    pub(super) idle: u32,
    /// Seconds between two probes.
    interval: u32,
    /// Milliseconds for an acknowledgement.
    pub(super) within: u32,
}

impl Times {
    pub(super) fn of(patience: Duration) -> Times {
        let seconds = u32::try_from(patience.as_secs()).unwrap_or(u32::MAX).max(1);
        let interval = (seconds / (2 * PROBES)).clamp(1, 60);
        let idle = seconds.saturating_sub(interval * PROBES).clamp(1, 32767);
        let within = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX).min(i32::MAX as u32);
        Times { idle, interval, within }
    }
}

/// The state of a connection, as the system reports it.
pub(super) struct TcpState {
    /// Whether it is being established.
    connects: bool,
    /// Whether it is or was established.
    pub(super) stands: bool,
    /// Whether data were sent again, and the other end, which has room for them, hasn't
    /// acknowledged them.
    pub(super) unanswered: bool,
    /// The bytes that arrived on it, which kernels report from 4.1 on.
    pub(super) received: Option<u64>,
}

/// Offsets in tcp_info, which the kernel's interface defines for all machines: the state, the
/// number of retransmissions of the oldest data, the number of bytes that arrived, and the other
/// end's window, which kernels report from 5.4 on.
const STATE: usize = 0;
const RETRANSMITS: usize = 2;
const RECEIVED: std::ops::Range<usize> = 128..136;
const ROOM: std::ops::Range<usize> = 228..232;

const SYN_SENT: u8 = 2;
const LISTENS: u8 = 10;

/// A stream socket over IP of this process, by a duplicated descriptor. The original number may
/// belong to another file by the time that an option is set.
pub(super) struct Socket(OwnedFd);

/// All stream sockets over IP of this process, one descriptor at a time.
pub(super) fn sockets() -> io::Result<impl Iterator<Item = Socket>> {
    let all = fs::read_dir("/proc/self/fd")?.flatten();
    // The numbers are listed first, so that the duplicates are not listed too.
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.collect::<Vec<RawFd>>().into_iter().filter_map(Socket::of))
}

impl Socket {
    fn of(number: RawFd) -> Option<Socket> {
        // SAFETY: not -1. Its owner may have closed it, and the number may be reused; the queries
        // below then are about the new file. Only sockets are duplicated, because closing a
        // duplicate of a file would release the file's locks.
        let theirs = unsafe { BorrowedFd::borrow_raw(number) };
        let kind = getsockopt(&theirs, SockType);
        let own = (kind == Ok(socket::SockType::Stream)).then(|| theirs.try_clone_to_owned());
        Some(Socket(own?.ok()?)).filter(|socket| socket.local().is_some())
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(super) fn local(&self) -> Option<SocketAddr> {
        address(&getsockname(self.0.as_raw_fd()).ok()?)
    }

    pub(super) fn peer(&self) -> Option<SocketAddr> {
        address(&getpeername(self.0.as_raw_fd()).ok()?)
    }

    /// The address to which the socket is connected or connecting. ENOTCONN if there is none;
    /// another error where the system doesn't report it.
    fn destination(&self) -> Result<SocketAddr, Errno> {
        if let Some(peer) = self.peer() {
            return Ok(peer);
        }
        // Exactly the length of the system's address: the system refuses a shorter buffer.
        let mut len = match self.local() {
            Some(SocketAddr::V4(_)) => size_of::<libc::sockaddr_in>(),
            _ => size_of::<libc::sockaddr_in6>(),
        } as libc::socklen_t;
        // SAFETY: plain data; all zeros is a value of it.
        let mut found: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        // SAFETY: a buffer of at least that length.
        let status = unsafe {
            let buffer = ptr::from_mut(&mut found).cast();
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERNAME,
                buffer,
                &mut len,
            )
        };
        Errno::result(status)?;
        // SAFETY: the system wrote an address of its family, of a socket over IP, into a buffer
        // with room for any address.
        let found = unsafe { SockaddrStorage::from_raw(ptr::from_ref(&found).cast(), Some(len)) };
        found.as_ref().and_then(address).ok_or(Errno::EAFNOSUPPORT)
    }

    /// Probes a silent connection so that all probes fit the patience. Limits unacknowledged data,
    /// and the time to establish the connection, to the patience.
    fn watch(&self, patience: Duration) -> io::Result<()> {
        let times = Times::of(patience);
        self.probe(&times)?;
        Ok(TcpUserTimeout.set(&self.descriptor(), &times.within)?)
    }

    pub(super) fn probe(&self, times: &Times) -> io::Result<()> {
        let descriptor = self.descriptor();
        TcpKeepIdle.set(&descriptor, &times.idle)?;
        TcpKeepInterval.set(&descriptor, &times.interval)?;
        TcpKeepCount.set(&descriptor, &PROBES)?;
        Ok(KeepAlive.set(&descriptor, &true)?)
    }

    /// Whether it is probed like that, by its own options or by those inherited from its listener.
    pub(super) fn is_probed(&self, times: &Times) -> bool {
        let descriptor = self.descriptor();
        getsockopt(&descriptor, KeepAlive) == Ok(true)
            && getsockopt(&descriptor, TcpKeepCount) == Ok(PROBES)
            && getsockopt(&descriptor, TcpKeepIdle) == Ok(times.idle)
            && getsockopt(&descriptor, TcpKeepInterval) == Ok(times.interval)
    }

    /// The state of the connection; `None` where the system doesn't report it, as under some
    /// emulators.
    pub(super) fn standing(&self) -> Option<TcpState> {
        let mut info = [0u8; 256];
        let mut len = info.len() as libc::socklen_t;
        // SAFETY: a buffer of that length, of which the system fills as much as it has.
        let status = unsafe {
            let buffer = info.as_mut_ptr().cast();
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                buffer,
                &mut len,
            )
        };
        let told = info.get(..len as usize).filter(|told| status == 0 && told.len() > 100)?;
        let stands = !matches!(told[STATE], SYN_SENT | LISTENS);
        let is_full = told.get(ROOM).is_some_and(|room| room == [0; 4]);
        let connects = told[STATE] == SYN_SENT;
        let received = told.get(RECEIVED).and_then(|bytes| bytes.try_into().ok());
        Some(TcpState {
            connects,
            stands,
            unanswered: told[RETRANSMITS] > 0 && !is_full,
            received: received.map(u64::from_ne_bytes),
        })
    }

    /// Ends a connection. Its owner still has to close it.
    pub(super) fn shut_down(&self) {
        // An error means that it has ended already.
        let _ = socket::shutdown(self.0.as_raw_fd(), socket::Shutdown::Both);
    }

    /// Asks the system to hand on the connections of a listener only after their other end has sent
    /// something, for as long as the system can wait for that.
    fn defer(&self) -> io::Result<()> {
        let seconds: libc::c_int = 1 << 15;
        // SAFETY: a value of that length.
        let status = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_DEFER_ACCEPT,
                (&raw const seconds).cast(),
                size_of_val(&seconds) as libc::socklen_t,
            )
        };
        Ok(Errno::result(status).map(drop)?)
    }
}

fn address(of: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = of.as_sockaddr_in().map(|&address| SocketAddr::V4(address.into()));
    v4.or_else(|| of.as_sockaddr_in6().map(|&address| SocketAddr::V6(address.into())))
}

/// Stops the probes at both ends of the connections to an address. Both ends are in this process.
/// Returns the number of ends.
#[cfg(test)]
pub(super) fn forget(to: SocketAddr) -> io::Result<usize> {
    let ends = sockets()?.filter(|socket| {
        socket.peer().is_some() && (socket.peer() == Some(to) || socket.local() == Some(to))
    });
    // Another thread may look at a socket at the moment, which then has two descriptors.
    let mut found = HashSet::new();
    for end in ends {
        KeepAlive.set(&end.descriptor(), &false)?;
        found.insert((end.local(), end.peer()));
    }
    Ok(found.len())
}

/// Whether both ends of the connections to an address are probed.
#[cfg(test)]
pub(super) fn are_probed(to: SocketAddr, patience: Duration) -> io::Result<bool> {
    let times = Times::of(patience);
    let are = |socket: &Socket| socket.local() == Some(to) || socket.peer() == Some(to);
    Ok(sockets()?.filter(|socket| are(socket)).all(|socket| socket.is_probed(&times)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn accepted_sockets_inherit_the_options_of_their_listener() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(watch_listener(address, Duration::from_secs(30)).unwrap());
        let mut connecting = TcpStream::connect(address).unwrap();
        connecting.write_all(&[1]).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let accepted = accepted.as_fd();
        assert_eq!(getsockopt(&accepted, KeepAlive), Ok(true));
        assert_eq!(getsockopt(&accepted, TcpUserTimeout), Ok(30_000));
        let idle = getsockopt(&accepted, TcpKeepIdle).unwrap();
        let interval = getsockopt(&accepted, TcpKeepInterval).unwrap();
        assert_eq!(idle + interval * getsockopt(&accepted, TcpKeepCount).unwrap(), 30);
        let nowhere = SocketAddr::from(([127, 9, 8, 7], 1));
        assert!(!watch_listener(nowhere, Duration::from_secs(30)).unwrap());
    }

    #[test]
    fn only_sockets_that_connect_to_the_peer_are_watched() {
        let full = |last| {
            let listener = TcpListener::bind((format!("127.9.8.{last}"), 0)).unwrap();
            socket::listen(&listener, socket::Backlog::new(0).unwrap()).unwrap();
            let to = listener.local_addr().unwrap();
            (TcpStream::connect(to).unwrap(), listener, to)
        };
        let interface = IpAddr::from([127, 9, 8, 1]);
        let connecting = |to: Option<SocketAddr>| {
            let (domain, kind) = (socket::AddressFamily::Inet, socket::SockType::Stream);
            let flags = socket::SockFlag::SOCK_NONBLOCK;
            let socket = socket::socket(domain, kind, flags, None).unwrap();
            socket::bind(socket.as_raw_fd(), &socket::SockaddrIn::new(127, 9, 8, 1, 0)).unwrap();
            if let Some(to) = to {
                let begun = socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(to));
                assert_eq!(begun, Err(Errno::EINPROGRESS));
            }
            socket
        };
        let ((connected, _listener, to), (_other, _stranger, elsewhere)) = (full(3), full(6));
        let here = connecting(Some(to));
        let seen = Socket::of(here.as_raw_fd()).unwrap();
        assert!(seen.standing().is_none_or(|standing| standing.connects));
        let listens = TcpListener::bind((interface, 0)).unwrap();
        let foreign = [connecting(Some(elsewhere)), connecting(None), listens.into()];
        watch_connecting(interface, to, Duration::from_millis(10)).unwrap();
        assert_eq!(getsockopt(&connected.as_fd(), TcpUserTimeout), Ok(10));
        assert_eq!(getsockopt(&here, TcpUserTimeout), Ok(10));
        assert_eq!(getsockopt(&here, TcpKeepIdle), Ok(1));
        for foreign in foreign {
            assert_eq!(getsockopt(&foreign, TcpUserTimeout), Ok(0));
            assert_eq!(getsockopt(&foreign, KeepAlive), Ok(false));
        }
    }
}

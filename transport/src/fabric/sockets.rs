//! How soon the system notices that a connection leads nowhere any more: a cable pulled, a host without power.
//!
//! Nothing arrives then that says so, and TCP by itself waits for a quarter of an hour, or for ever where nothing is sent. So
//! the system is asked to probe a silent connection, and to end one whose other end's system answers nothing for so long. The
//! other end's process need not answer: it may compute, or be stopped, for as long as it likes.
//!
//! libfabric has no name for the sockets under its endpoints, so they are found among this process's: the listener by its
//! address, one that connects by its interface while it isn't connected, or by its other end. What is accepted inherits from the
//! listener. Other sockets that this process connects over the same interface at the same moment are probed as well, which harms
//! none.
#![allow(unsafe_code)]

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;
use std::{fs, io};

use nix::sys::socket::sockopt::{
    KeepAlive, SockType, TcpKeepCount, TcpKeepIdle, TcpKeepInterval, TcpUserTimeout,
};
use nix::sys::socket::{self, SetSockOpt, SockaddrStorage, getpeername, getsockname, getsockopt};

/// Probes before a connection is given up.
const PROBES: u32 = 4;

/// Has the system give up those connections of a listener that are silent for so long. False if the listener isn't among this
/// process's sockets: not all providers go by the system's.
///
/// # Errors
/// The system refuses the option.
pub(super) fn watch_listener(address: SocketAddr, patience: Duration) -> io::Result<bool> {
    let found = sockets()?.into_iter().find(|socket| socket.local() == Some(address));
    found.map_or(Ok(false), |socket| socket.watch(patience).map(|()| true))
}

/// Likewise for whatever connects over an interface at present, or has connected to an address. What another thread has closed
/// meanwhile is left alone.
///
/// # Errors
/// This process's sockets can't be listed.
pub(super) fn watch_connecting(
    interface: IpAddr,
    to: SocketAddr,
    patience: Duration,
) -> io::Result<()> {
    let connects = |socket: &Socket| match socket.peer() {
        Some(peer) => peer == to,
        None => socket.local().is_some_and(|local| local.ip() == interface),
    };
    for socket in sockets()?.iter().filter(|socket| connects(socket)) {
        let _ = socket.watch(patience);
    }
    Ok(())
}

/// A socket of this process that carries streams over IP.
struct Socket(RawFd);

fn sockets() -> io::Result<Vec<Socket>> {
    let all = fs::read_dir("/proc/self/fd")?.flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.map(Socket).filter(Socket::is_stream).collect())
}

impl Socket {
    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: not -1. Whoever it belongs to may have closed it by now, and it may be another's: then what is asked of it
        // here fails, or is true of that one.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }

    fn is_stream(&self) -> bool {
        let kind = getsockopt(&self.descriptor(), SockType);
        kind == Ok(socket::SockType::Stream) && self.local().is_some()
    }

    fn local(&self) -> Option<SocketAddr> {
        address(&getsockname(self.0).ok()?)
    }

    fn peer(&self) -> Option<SocketAddr> {
        address(&getpeername(self.0).ok()?)
    }

    /// A silent connection is probed so often that all probes fit; data without an answer, and a connection that doesn't come
    /// about, have as long.
    fn watch(&self, patience: Duration) -> io::Result<()> {
        let seconds = u32::try_from(patience.as_secs()).unwrap_or(u32::MAX).max(1);
        let interval = (seconds / (2 * PROBES)).clamp(1, 60);
        let idle = seconds.saturating_sub(interval * PROBES).clamp(1, 32767);
        let within = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX).min(i32::MAX as u32);
        let descriptor = self.descriptor();
        KeepAlive.set(&descriptor, &true)?;
        TcpKeepIdle.set(&descriptor, &idle)?;
        TcpKeepInterval.set(&descriptor, &interval)?;
        TcpKeepCount.set(&descriptor, &PROBES)?;
        Ok(TcpUserTimeout.set(&descriptor, &within)?)
    }
}

fn address(of: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = of.as_sockaddr_in().map(|&address| SocketAddr::V4(address.into()));
    v4.or_else(|| of.as_sockaddr_in6().map(|&address| SocketAddr::V6(address.into())))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_accepted_is_watched_as_its_listener() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(watch_listener(address, Duration::from_secs(30)).unwrap());
        let _connecting = TcpStream::connect(address).unwrap();
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
    fn what_connects_over_an_interface_is_watched() {
        let domain = socket::AddressFamily::Inet;
        let none = socket::SockFlag::empty();
        let open = || socket::socket(domain, socket::SockType::Stream, none, None).unwrap();
        let (here, elsewhere) = (open(), open());
        let at = |last| socket::SockaddrIn::new(127, 9, 8, last, 0);
        socket::bind(std::os::fd::AsRawFd::as_raw_fd(&here), &at(1)).unwrap();
        socket::bind(std::os::fd::AsRawFd::as_raw_fd(&elsewhere), &at(2)).unwrap();
        let listener = TcpListener::bind(("127.9.8.3", 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let connected = TcpStream::connect(to).unwrap();
        watch_connecting(IpAddr::from([127, 9, 8, 1]), to, Duration::from_millis(10)).unwrap();
        assert_eq!(getsockopt(&connected.as_fd(), TcpUserTimeout), Ok(10));
        assert_eq!(getsockopt(&here, TcpUserTimeout), Ok(10));
        assert_eq!(getsockopt(&here, TcpKeepIdle), Ok(1));
        assert_eq!(getsockopt(&elsewhere, TcpUserTimeout), Ok(0));
    }
}

//! Limits the accepted connections whose other end has requested nothing.
//!
//! libfabric accepts every connection to a listener, and waits for its request without limit. Each
//! takes a descriptor of this process, so a stranger could take all of them: the program could open
//! no file, and peers could no longer connect. Three measures keep descriptors free:
//!
//! - The system holds a connection back until its other end sends something (TCP_DEFER_ACCEPT). A
//!   silent one takes no descriptor.
//! - An accepted connection that hasn't brought a request within [`QUIET`] is closed. So are the
//!   oldest of more than [`MOST`].
//! - If fewer than [`RESERVE`] descriptors are left, those are closed that brought a part of a
//!   request, or nothing for [`FIRST_BYTE`].
//!
//! A connection is closed by `shutdown`: libfabric then reads its end, and gives up the descriptor.
//! Guests are remembered by their addresses, since a socket that is held takes a second descriptor.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, rlim_t};

use super::sockets::{Socket, sockets};

/// The time within which a connection must have brought a request.
const QUIET: Duration = Duration::from_secs(5);

/// The most connections without a request.
const MOST: usize = 32;

/// The number of descriptors that are left to the program and to peers. Strangers take some of them
/// between two checks, and libfabric gives up a closed one some polls later.
const RESERVE: rlim_t = 96;

/// The time for the first byte where descriptors are scarce. A peer's request arrives whole, and
/// usually before the connection is accepted.
const FIRST_BYTE: Duration = Duration::from_millis(100);

/// The shortest time between two checks of the descriptors that are left, while nobody is known to
/// connect. The endpoints for access to memory accept without an event: a rank that wakes may find
/// hundreds of connections in the system's queue, of which each poll accepts one.
const INTERVAL: Duration = Duration::from_micros(250);

/// A listener of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Door {
    pub address: SocketAddr,
    /// The bytes of the shortest request.
    pub request: u64,
}

/// An accepted connection that has brought no request.
pub(super) struct Guest {
    ends: Ends,
    received: u64,
}

/// The addresses of an accepted connection, which no other has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Ends {
    door: SocketAddr,
    peer: SocketAddr,
}

impl Ends {
    fn of(socket: &Socket) -> Option<Ends> {
        Some(Ends { door: socket.local()?, peer: socket.peer()? })
    }
}

/// The listeners, and the times at which their guests came.
pub(super) struct Guests {
    doors: Vec<Door>,
    quiet: Duration,
    /// When each guest was first seen.
    seen: HashMap<Ends, Instant>,
    /// Closed while this process's sockets are listed, because listing takes a descriptor.
    spare: Option<File>,
    checked: Instant,
}

impl Guests {
    pub(super) fn new(doors: Vec<Door>) -> Guests {
        Guests {
            doors,
            quiet: QUIET,
            seen: HashMap::new(),
            spare: spare(),
            checked: Instant::now(),
        }
    }

    /// The connection of a socket, if it was accepted and has brought no request.
    pub(super) fn guest(&self, socket: &Socket) -> Option<Guest> {
        let ends = Ends::of(socket)?;
        let door = self.doors.iter().find(|door| door.address == ends.door)?;
        let received = socket.standing()?.received?;
        (received < door.request).then_some(Guest { ends, received })
    }

    /// Closes those of all guests that are due, and the oldest of too many.
    pub(super) fn limit(&mut self, guests: Vec<Guest>) {
        let quiet = self.quiet;
        self.close(guests, MOST, |_, age| age >= quiet);
    }

    /// Closes guests if few descriptors are left. A check takes a microsecond, so it waits for its
    /// interval, except while strangers `arrive`: they could take all descriptors within that time.
    pub(super) fn make_room(&mut self, arrive: bool) {
        if !arrive && self.checked.elapsed() < INTERVAL {
            return;
        }
        self.checked = Instant::now();
        let Ok((limit, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
        // The system gives out the lowest free number.
        let free = self.spare.as_ref().and_then(|spare| spare.try_clone().ok());
        if free.is_some_and(|free| (free.as_raw_fd() as rlim_t).saturating_add(RESERVE) < limit) {
            return;
        }
        self.spare = None;
        if let Ok(all) = sockets() {
            let guests = all.filter_map(|socket| self.guest(&socket)).collect();
            self.close(guests, usize::MAX, |received, age| received > 0 || age >= FIRST_BYTE);
        }
        self.spare = spare();
    }

    /// Closes those of all guests that are due, by their bytes and their age, and the oldest of
    /// more than `most`.
    fn close(
        &mut self,
        mut guests: Vec<Guest>,
        most: usize,
        is_due: impl Fn(u64, Duration) -> bool,
    ) {
        let (now, before) = (Instant::now(), std::mem::take(&mut self.seen));
        // A connection is listed twice while another thread holds a duplicate of its descriptor.
        let mut listed = HashSet::new();
        guests.retain(|guest| listed.insert(guest.ends));
        let surplus = guests.len().saturating_sub(most);
        let since = |guest: &Guest| before.get(&guest.ends).copied().unwrap_or(now);
        let mut aged: Vec<_> = guests.into_iter().map(|guest| (since(&guest), guest)).collect();
        aged.sort_by_key(|(since, _)| *since);
        let mut due = HashSet::new();
        for (index, (since, guest)) in aged.into_iter().enumerate() {
            if index < surplus || is_due(guest.received, now.duration_since(since)) {
                due.insert(guest.ends);
            } else {
                self.seen.insert(guest.ends, since);
            }
        }
        if due.is_empty() {
            return;
        }
        // If the sockets can't be listed now, the next check finds the same guests.
        for socket in sockets().into_iter().flatten() {
            if Ends::of(&socket).is_some_and(|ends| due.contains(&ends)) {
                socket.shut_down();
            }
        }
        tracing::warn!(
            closed = due.len(),
            kept = self.seen.len(),
            "closed connections without a request"
        );
    }
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::super::sockets;
    use super::*;

    /// A listener, and connections that it has accepted. The first `loud` of them have sent a
    /// request.
    fn accepted(loud: usize, silent: usize) -> (Guests, Vec<TcpStream>, Vec<TcpStream>) {
        let listener = TcpListener::bind(("127.9.8.9", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for index in 0..loud + silent {
            let mut other = TcpStream::connect(address).unwrap();
            let (mut own, _) = listener.accept().unwrap();
            let sent = if index < loud { 100 } else { 99 };
            other.write_all(&vec![1; sent]).unwrap();
            own.read_exact(&mut vec![0; sent]).unwrap();
            near.push(own);
            far.push(other);
        }
        (Guests::new(vec![Door { address, request: 100 }]), near, far)
    }

    fn tend(guests: &mut Guests) {
        let all = sockets::sockets().unwrap();
        let found = all.filter_map(|socket| guests.guest(&socket)).collect();
        guests.limit(found);
    }

    /// Whether the other end was closed.
    fn is_closed(far: &mut TcpStream) -> bool {
        far.set_nonblocking(true).unwrap();
        matches!(far.read(&mut [0]), Ok(0))
    }

    #[test]
    fn the_surplus_of_connections_without_a_request_is_closed() {
        let (mut guests, _near, mut far) = accepted(5, MOST + 3);
        tend(&mut guests);
        let closed = far.iter_mut().map(is_closed).collect::<Vec<_>>();
        assert!(!closed[..5].contains(&true));
        assert_eq!(closed.iter().filter(|&&closed| closed).count(), 3);
        assert_eq!(guests.seen.len(), MOST);
    }

    #[test]
    fn listing_guests_holds_no_descriptor_of_them() {
        let (guests, _near, _far) = accepted(0, 8);
        let opened = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let mut listed = sockets::sockets().unwrap().filter_map(|socket| guests.guest(&socket));
        let (first, before) = (listed.next(), opened());
        let found: Vec<Guest> = first.into_iter().chain(listed.by_ref().take(7)).collect();
        assert_eq!(found.len(), 8);
        // Other tests open and close files meanwhile.
        assert!((0..1000).any(|_| opened() <= before), "{} descriptors", opened());
    }

    #[test]
    fn connections_without_a_request_are_closed_after_a_while() {
        let (mut guests, _near, mut far) = accepted(1, 2);
        guests.quiet = Duration::from_millis(1);
        tend(&mut guests);
        assert!(!far.iter_mut().any(is_closed));
        std::thread::sleep(guests.quiet);
        tend(&mut guests);
        assert_eq!(far.iter_mut().map(is_closed).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn silent_connections_are_not_accepted() {
        let listener = TcpListener::bind(("127.9.8.9", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(sockets::watch_listener(address, Duration::from_secs(30)).unwrap());
        let _silent = TcpStream::connect(address).unwrap();
        let mut loud = TcpStream::connect(address).unwrap();
        loud.write_all(&[1]).unwrap();
        let (_, first) = listener.accept().unwrap();
        assert_eq!(first, loud.local_addr().unwrap());
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
    }
}

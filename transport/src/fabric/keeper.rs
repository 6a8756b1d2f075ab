//! A thread that tends a rank's connections: those that may only end because of a silent host, and
//! those whose other end requests nothing.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use nix::sys::socket::sockopt::TcpUserTimeout;
use nix::sys::socket::{SetSockOpt, getsockopt};

use super::guests::Guests;
use super::sockets::{Ends, TcpState, Times, sockets};
use crate::signals;

/// The number of the keeper's checks within the patience.
const ROUNDS: u32 = 4;

/// A thread that ensures that a connection only ends because of a silent host. Dropping this ends
/// it.
pub(super) struct Keeper {
    /// Dropped to end the thread.
    held: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread for all connections between `ends`.
    pub(super) fn start(
        ends: Ends,
        patience: Duration,
        guests: Arc<Mutex<Guests>>,
    ) -> io::Result<Keeper> {
        let pause = (patience / ROUNDS).clamp(Duration::from_millis(100), Duration::from_secs(5));
        let (held, end) = bounded(0);
        let keep = move || {
            while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                // If the sockets can't be listed now, the next round checks them.
                let mut guests = guests.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = tend(&ends, patience, &mut guests);
            }
        };
        let builder = Builder::new().name("longshore-keeper".to_owned());
        let thread = signals::blocked(|| builder.spawn(keep))?;
        Ok(Keeper { held: Some(held), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.held = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}

/// Checks all connections: probes every one, and sets TCP_USER_TIMEOUT only on established ones
/// with unacknowledged data. Limits those without a request.
fn tend(ends: &Ends, patience: Duration, guests: &mut Guests) -> io::Result<()> {
    let times = Times::of(patience);
    let mut found = Vec::new();
    for socket in sockets()?.filter(|socket| ends.have(socket)) {
        // Errors are ignored: another thread may have closed the socket meanwhile.
        if !socket.is_probed(&times) {
            let _ = socket.probe(&times);
        }
        let Some(TcpState { stands: true, unanswered, .. }) = socket.standing() else { continue };
        let within = if unanswered { times.within } else { 0 };
        let descriptor = socket.descriptor();
        if getsockopt(&descriptor, TcpUserTimeout) != Ok(within) {
            let _ = TcpUserTimeout.set(&descriptor, &within);
        }
        found.extend(guests.guest(&socket));
    }
    guests.limit(found);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use nix::sys::socket::sockopt::{KeepAlive, TcpKeepIdle};

    use super::super::sockets::watch_connecting;
    use super::*;

    #[test]
    fn changed_options_are_set_again() {
        let (listener, stranger) =
            (TcpListener::bind(("127.9.8.5", 0)).unwrap(), TcpListener::bind(("127.9.8.5", 0)));
        let (to, patience) = (listener.local_addr().unwrap(), Duration::from_secs(1));
        let stranger = stranger.unwrap();
        let connected = TcpStream::connect(to).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let other = TcpStream::connect(stranger.local_addr().unwrap()).unwrap();
        // One end is found by the address to which it is connected, the other by the address that
        // accepted it.
        for (ends, end) in [(Ends::new([], [to]), &connected), (Ends::new([to], []), &accepted)] {
            let end = end.as_fd();
            watch_connecting(to.ip(), to, patience).unwrap();
            let times = Times::of(patience);
            tend(&ends, patience, &mut Guests::new(Vec::new())).unwrap();
            assert_eq!(getsockopt(&end, TcpUserTimeout), Ok(0));
            // libfabric sets these options from version 2.2 on.
            KeepAlive.set(&end, &false).unwrap();
            TcpKeepIdle.set(&end, &7200).unwrap();
            TcpUserTimeout.set(&end, &times.within).unwrap();
            tend(&ends, patience, &mut Guests::new(Vec::new())).unwrap();
            assert_eq!(getsockopt(&end, KeepAlive), Ok(true));
            assert_eq!(getsockopt(&end, TcpKeepIdle), Ok(times.idle));
            assert_eq!(getsockopt(&end, TcpUserTimeout), Ok(0));
            assert_eq!(getsockopt(&other.as_fd(), KeepAlive), Ok(false));
        }
    }

    #[test]
    fn a_connection_whose_peer_has_no_room_is_kept() {
        let listener = TcpListener::bind(("127.9.8.4", 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let mut connected = TcpStream::connect(to).unwrap();
        let _stopped = listener.accept().unwrap();
        let patience = Duration::from_secs(1);
        watch_connecting(to.ip(), to, patience).unwrap();
        let keeper = Keeper::start(
            Ends::new([], [to]),
            patience,
            Arc::new(Mutex::new(Guests::new(Vec::new()))),
        )
        .unwrap();
        connected.set_nonblocking(true).unwrap();
        while connected.write(&[0; 65536]).is_ok() {}
        std::thread::sleep(4 * patience);
        assert_eq!(connected.take_error().unwrap().map(|error| error.kind()), None);
        drop(keeper);
    }
}

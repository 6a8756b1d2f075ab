//! Tests of encrypted links, with a proxy between the two hosts that alters and records what
//! travels.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;

/// A third party on the way from rank 0 to rank 1, or back: all connections to its address go on to
/// `to`.
struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    to: SocketAddr,
    /// The place of the byte to alter in the next piece to `to`, from its end; 0 for none.
    alter: AtomicUsize,
    /// All bytes that went to `to`, by connection.
    seen: Mutex<Vec<Vec<u8>>>,
}

impl Proxy {
    fn start(to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { to, alter: AtomicUsize::new(0), seen: Mutex::default() });
        let proxy = Proxy { address, shared: shared.clone() };
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(shared.to) else { continue };
                let number = {
                    let mut seen = shared.seen.lock().unwrap();
                    seen.push(Vec::new());
                    seen.len() - 1
                };
                let (back, forth) = ((far.try_clone(), near.try_clone()), shared.clone());
                thread::spawn(move || forth.pass(near, far, number));
                if let (Ok(mut from), Ok(mut to)) = back {
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        proxy
    }

    /// Alters the byte at `place` from the end of the next piece that travels.
    fn alter(&self, place: usize) {
        self.shared.alter.store(place, SeqCst);
    }

    /// Whether the byte was altered.
    fn has_altered(&self) -> bool {
        self.shared.alter.load(SeqCst) == 0
    }

    /// The bytes that travelled over the first connection: at least those that have arrived.
    fn seen(&self) -> Vec<u8> {
        self.shared.seen.lock().unwrap().first().cloned().unwrap_or_default()
    }
}

impl Shared {
    fn pass(&self, mut near: TcpStream, mut far: TcpStream, number: usize) {
        let mut piece = vec![0; 1 << 16];
        while let Ok(len @ 1..) = near.read(&mut piece) {
            self.seen.lock().unwrap()[number].extend(&piece[..len]);
            let place = self.alter.load(SeqCst);
            if (1..=len).contains(&place) {
                piece[len - place] ^= 0x10;
                self.alter.store(0, SeqCst);
            }
            if far.write_all(&piece[..len]).is_err() {
                break;
            }
        }
        let _ = far.shutdown(Shutdown::Both);
    }
}

/// Two ranks, of which rank 0 reaches rank 1 by way of the proxy.
fn pair_by_proxy(encrypt: [bool; 2]) -> ([FabricLink; 2], Proxy) {
    let mut listeners = [(); 2].map(|()| Listener::open("tcp", HERE, PATIENCE).unwrap());
    for (listener, encrypts) in listeners.iter_mut().zip(encrypt) {
        if encrypts {
            listener.encrypt();
        }
    }
    let [zero, one] = listeners.each_ref().map(Listener::address);
    let proxy = Proxy::start(one);
    let mut addresses =
        [vec![Some(zero), Some(proxy.address)], vec![Some(zero), Some(one)]].into_iter();
    let mut ranks = 0..;
    let links = listeners.map(|listener| {
        let segment = Segment::create(2).unwrap().as_rank(ranks.next().unwrap()).unwrap();
        listener.link(segment, addresses.next().unwrap(), &[], SECRET).unwrap()
    });
    (links, proxy)
}

fn encrypted_pair() -> ([FabricLink; 2], Proxy) {
    pair_by_proxy([true, true])
}

const WORD: &[u8] = b"a word that nobody on the way may read";

fn send_word(from: &mut FabricLink) {
    wait(|| match from.reserve(1, WORD.len()) {
        Ok(mut frame) => {
            frame.copy_from_slice(WORD);
            frame.commit();
            Some(())
        }
        Err(_) => from.receive().map(|_| None).unwrap(),
    });
}

/// The next word of rank 0.
fn receive_word(from: &mut FabricLink, to: &mut FabricLink) {
    wait(|| {
        assert!(from.receive().unwrap().is_none());
        let frame = to.receive().unwrap()?;
        assert_eq!(&*frame, WORD);
        Some(())
    });
}

#[test]
fn encrypted_frames_arrive_and_cannot_be_read_on_the_way() {
    crate::needs_libfabric!();
    for encrypts in [true, false] {
        let ([mut left, mut right], proxy) = pair_by_proxy([encrypts; 2]);
        for _ in 0..3 {
            send_word(&mut left);
            receive_word(&mut left, &mut right);
        }
        let travelled = proxy.seen();
        let readable = travelled.windows(WORD.len()).filter(|part| *part == WORD).count();
        assert_eq!(readable, if encrypts { 0 } else { 3 });
    }
}

#[test]
fn farewells_are_encrypted_both_ways() {
    crate::needs_libfabric!();
    for ends in 0..2 {
        let ([mut left, mut right], _proxy) = encrypted_pair();
        // The only connection is the one that rank 0 made.
        send_word(&mut left);
        receive_word(&mut left, &mut right);
        let (ended, mut stays) = if ends == 0 { (left, right) } else { (right, left) };
        // It waits until the other end has taken the farewell.
        thread::scope(|scope| {
            scope.spawn(move || finalize(ended));
            let state = wait(|| {
                assert!(stays.receive().unwrap().is_none());
                let state = stays.peers.segment.rank_state(ends);
                state.is_gone().then_some(state)
            });
            assert_eq!(state, RankState::Finalized);
        });
    }
}

/// The error that rank 1 reads in place of frames.
fn error_at(left: &mut FabricLink, right: &mut FabricLink) -> String {
    wait(|| {
        let _ = left.receive();
        match right.receive() {
            Ok(Some(frame)) => panic!("{} bytes arrived", frame.len()),
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        }
    })
}

#[test]
fn an_altered_byte_ends_the_connection_and_never_arrives() {
    crate::needs_libfabric!();
    // The tag, and the encrypted frame with its header.
    for place in [1, 16, 17, 30, WORD.len() + 24] {
        let ([mut left, mut right], proxy) = encrypted_pair();
        send_word(&mut left);
        receive_word(&mut left, &mut right);
        proxy.alter(place);
        send_word(&mut left);
        let error = error_at(&mut left, &mut right);
        assert!(proxy.has_altered());
        for part in ["rank 0 on host 127.0.0.1", "rank 1 on host 127.0.0.1", "was altered"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        // The connection has ended for its other end, too.
        wait(|| {
            let _ = left.receive();
            left.peers.segment.rank_state(1).is_gone().then_some(())
        });
        // Its end, which follows, is no second report.
        wait(|| {
            let _ = left.receive();
            assert!(right.receive().unwrap().is_none());
            right.peers.segment.rank_state(0).is_gone().then_some(())
        });
        assert!(right.receive().unwrap().is_none());
    }
}

/// The header of libfabric too: the connection may end or stand still, but
/// nothing arrives that was not sent.
#[test]
fn nothing_false_arrives_wherever_a_byte_is_altered() {
    crate::needs_libfabric!();
    for place in 1..=8 + WORD.len() + 16 + 16 {
        let ([mut left, mut right], proxy) = encrypted_pair();
        send_word(&mut left);
        receive_word(&mut left, &mut right);
        proxy.alter(place);
        send_word(&mut left);
        let until = Instant::now() + Duration::from_millis(50);
        while Instant::now() < until {
            let _ = left.receive();
            match right.receive() {
                Ok(Some(frame)) => assert_eq!(&*frame, WORD, "at {place}"),
                Ok(None) => thread::yield_now(),
                Err(_) => break,
            }
        }
        assert!(proxy.has_altered());
    }
}

#[test]
fn a_recorded_connection_that_is_played_again_is_dropped_and_the_link_goes_on() {
    crate::needs_libfabric!();
    let ([mut left, mut right], proxy) = encrypted_pair();
    send_word(&mut left);
    receive_word(&mut left, &mut right);
    let recorded = proxy.seen();
    let mut again = TcpStream::connect(proxy.shared.to).unwrap();
    again.write_all(&recorded).unwrap();
    wait(|| {
        assert!(right.receive().unwrap().is_none());
        (right.drops() == 1).then_some(())
    });
    send_word(&mut left);
    receive_word(&mut left, &mut right);
    // To a rank with the same secret that hasn't met rank 0, the recording gets no further than its
    // greeting.
    let ([_left, mut right], proxy) = encrypted_pair();
    let mut again = TcpStream::connect(proxy.shared.to).unwrap();
    again.write_all(&recorded).unwrap();
    wait(|| {
        assert!(right.receive().unwrap().is_none());
        (right.drops() == 1).then_some(())
    });
    assert!(right.inbox.guests().all(|guest| guest.peer().is_none()));
}

#[test]
fn ranks_that_differ_in_encryption_refuse_each_other() {
    crate::needs_libfabric!();
    for encrypt in [[true, false], [false, true]] {
        let ([mut left, mut right], _proxy) = pair_by_proxy(encrypt);
        assert!(send(&mut left, 1, 8));
        wait(|| {
            let _ = left.receive();
            assert!(right.receive().unwrap().is_none());
            (right.drops() == 1).then_some(())
        });
        let error = wait(|| {
            assert!(right.receive().unwrap().is_none());
            left.receive().err().map(|error| error.to_string())
        });
        assert!(error.contains("can't connect to it at 127.0.0.1:"), "{error}");
    }
}

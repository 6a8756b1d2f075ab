//! Loom models of the words in the segment (ring, locks, callers, mailboxes, states, notes): all
//! interleavings, within bounds. Run them with `RUSTFLAGS="--cfg loom" cargo test -p
//! longshore-transport --release --test loom`.
#![cfg(loom)]
#![allow(unsafe_code)]

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering::SeqCst};
use loom::sync::{Arc, Notify};
use loom::thread;

use longshore_transport::callers::{Callers, Word};
use longshore_transport::lock::{
    BriefLock, BriefWord, FairLock, LockEntry, LockHead, SharedLock, Sharing, User,
};
use longshore_transport::ring::{
    Access, Control, Header, INLINE, Memory, Position, Receiver, SLOTS, Sender,
};
use longshore_transport::segment::mailbox::{Letter, Mailbox, Outcome, WORDS};
use longshore_transport::segment::state::{AbortCode, AbortWord, NoteWords, StateWords};
use longshore_transport::{Cause, RankState};

/// The memory of a ring, with loom's race detector over each slot and over each half of the bulk.
struct Heap {
    control: Control,
    headers: [Header; SLOTS as usize],
    slots: [UnsafeCell<[u8; INLINE]>; SLOTS as usize],
    bulk: [UnsafeCell<[u8; 256]>; 2],
}

// SAFETY: both ends share it as they share a ring; loom checks the accesses.
unsafe impl Sync for Heap {}
// SAFETY: plain data.
unsafe impl Send for Heap {}

#[derive(Clone)]
struct Shared(Arc<Heap>);

impl Shared {
    fn new() -> Self {
        let control = Control::default();
        let headers = [Header::default(), Header::default()];
        let slots = [UnsafeCell::new([0; INLINE]), UnsafeCell::new([0; INLINE])];
        let bulk = [UnsafeCell::new([0; 256]), UnsafeCell::new([0; 256])];
        Self(Arc::new(Heap { control, headers, slots, bulk }))
    }
}

// SAFETY: the words are the heap's own. The models' long frames have 256 bytes, so each lies in one
// half of the bulk.
unsafe impl Memory for Shared {
    fn control(&self) -> &Control {
        &self.0.control
    }

    fn header(&self, slot: usize) -> &Header {
        &self.0.headers[slot]
    }

    fn bulk_len(&self) -> u64 {
        512
    }

    fn bytes(&self, position: Position, access: Access) -> *mut u8 {
        fn touch<const N: usize>(cell: &UnsafeCell<[u8; N]>, access: Access) -> *mut u8 {
            match access {
                Access::Read => cell.with(|bytes| bytes.cast_mut().cast()),
                Access::Write => cell.with_mut(|bytes| bytes.cast()),
            }
        }
        match position {
            Position::Slot(slot) => touch(&self.0.slots[slot], access),
            Position::Bulk(start) => touch(&self.0.bulk[start / 256], access),
        }
    }
}

fn send(sender: &mut Sender<Shared>, len: usize, byte: u8) -> bool {
    let Some(mut bytes) = sender.reserve(len).unwrap() else { return false };
    // SAFETY: only the sender uses the bytes until it publishes them.
    let bytes = unsafe { bytes.as_mut() };
    bytes.fill(byte);
    sender.publish(bytes);
    true
}

fn receive(receiver: &mut Receiver<Shared>) -> Option<(usize, u8)> {
    receiver.settle();
    let bytes = receiver.poll().unwrap()?;
    // SAFETY: only the receiver uses the bytes until it releases them.
    let bytes = unsafe { bytes.as_ref() };
    let seen = (bytes.len(), bytes[0]);
    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
    receiver.release();
    Some(seen)
}

/// Checks that frames arrive whole and in order, through more than one lap, and that the two ends
/// never touch a byte at the same time.
fn carries(lengths: &'static [usize], claimed: bool) {
    loom::model(move || {
        let memory = Shared::new();
        let mut sender = Sender::new(memory.clone());
        sender.claim(claimed);
        let mut receiver = Receiver::new(memory, 256);
        let sending = thread::spawn(move || {
            for (i, &len) in lengths.iter().enumerate() {
                while !send(&mut sender, len, i as u8 + 1) {
                    thread::yield_now();
                }
            }
        });
        for (i, &len) in lengths.iter().enumerate() {
            let seen = loop {
                if let Some(seen) = receive(&mut receiver) {
                    break seen;
                }
                thread::yield_now();
            };
            assert_eq!(seen, (len, i as u8 + 1));
        }
        sending.join().unwrap();
    });
}

#[test]
fn the_ring_delivers_short_frames_in_order() {
    carries(&[1, 2, 3], false);
}

#[test]
fn the_ring_delivers_long_frames_in_order() {
    for claimed in [false, true] {
        carries(&[256, 256, 256], claimed);
    }
}

/// A sender found no room and sleeps: the receiver that makes room must ring it.
#[test]
fn a_sender_without_room_is_rung() {
    loom::model(|| {
        let memory = Shared::new();
        let mut sender = Sender::new(memory.clone());
        let mut receiver = Receiver::new(memory, 256);
        for _ in 0..SLOTS {
            assert!(send(&mut sender, 1, 1));
        }
        let receiving = thread::spawn(move || {
            let mut rung = false;
            while receiver.poll().unwrap().is_some() {
                rung |= receiver.release();
            }
            rung | receiver.publish()
        });
        let sent = send(&mut sender, 1, 2);
        let rung = receiving.join().unwrap();
        assert!(sent || rung, "the sender sleeps for ever");
    });
}

/// A frame arrives in a ring that the receiver stops watching: the receiver sees it, or the sender
/// calls.
#[test]
fn a_frame_in_an_unwatched_ring_is_seen_or_its_sender_calls() {
    loom::model(|| {
        let memory = Shared::new();
        let mut sender = Sender::new(memory.clone());
        let mut receiver = Receiver::new(memory, 256);
        receiver.watch();
        let sending = thread::spawn(move || {
            // SAFETY: only the sender uses the bytes until it publishes them.
            let bytes = unsafe { sender.reserve(1).unwrap().unwrap().as_mut() };
            bytes[0] = 1;
            sender.publish(bytes).call
        });
        let seen = receiver.unwatch();
        let called = sending.join().unwrap();
        assert!(seen || called, "the frame is never read");
    });
}

struct Locked {
    head: LockHead,
    entries: [LockEntry; 4],
    dead: AtomicU32,
    /// The data under the lock.
    guarded: UnsafeCell<u32>,
}

// SAFETY: the cell is accessed only under the lock; loom checks that.
unsafe impl Sync for Locked {}
// SAFETY: plain data.
unsafe impl Send for Locked {}

impl Locked {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            head: LockHead::default(),
            entries: Default::default(),
            dead: AtomicU32::new(u32::MAX),
            guarded: UnsafeCell::new(0),
        })
    }

    fn lock(&self) -> FairLock<'_> {
        FairLock::new(&self.head, &self.entries)
    }

    fn add(&self, rank: u32) {
        let held = self.lock().acquire(rank, |rank| self.dead.load(SeqCst) == rank);
        assert_eq!(self.lock().holder(), Some(rank));
        // SAFETY: under the lock.
        self.guarded.with_mut(|count| unsafe { *count += 1 });
        drop(held);
    }
}

/// Only one rank at a time holds the lock, and each gets its turn. Loom's sleeps have no timeout,
/// so a lost wake-up would be a deadlock.
#[test]
fn two_ranks_never_hold_the_fair_lock_together() {
    loom::model(|| {
        let locked = Locked::new();
        let other = locked.clone();
        let adding = thread::spawn(move || other.add(1));
        locked.add(0);
        adding.join().unwrap();
        // SAFETY: the other thread has ended.
        assert_eq!(locked.guarded.with(|count| unsafe { *count }), 2);
    });
}

#[test]
fn three_ranks_never_hold_the_fair_lock_together() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let locked = Locked::new();
        let adding: Vec<_> = (1..3)
            .map(|rank| {
                let other = locked.clone();
                thread::spawn(move || other.add(rank))
            })
            .collect();
        locked.add(0);
        adding.into_iter().for_each(|thread| thread.join().unwrap());
        // SAFETY: the other threads have ended.
        assert_eq!(locked.guarded.with(|count| unsafe { *count }), 3);
    });
}

/// The holder of the lock dies. The waiters still get it, one at a time.
#[test]
fn a_dead_holder_is_passed_over() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let locked = Locked::new();
        std::mem::forget(locked.lock().acquire(2, |_| false));
        locked.dead.store(2, SeqCst);
        let other = locked.clone();
        let adding = thread::spawn(move || other.add(1));
        locked.add(0);
        adding.join().unwrap();
        // SAFETY: the other thread has ended.
        assert_eq!(locked.guarded.with(|count| unsafe { *count }), 2);
    });
}

struct Share {
    head: LockHead,
    entries: [Word; 4],
    holders: [Word; 1],
    bells: [Notify; 3],
    guarded: UnsafeCell<u32>,
}

// SAFETY: the cell is accessed only under the lock; loom checks that.
unsafe impl Sync for Share {}
// SAFETY: plain data.
unsafe impl Send for Share {}

impl Share {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            head: LockHead::default(),
            entries: Default::default(),
            holders: Default::default(),
            bells: std::array::from_fn(|_| Notify::new()),
            guarded: UnsafeCell::new(0),
        })
    }

    /// Sleeps until the lock is held. A lost wake-up makes the sleep endless.
    fn hold(&self, number: u32, sharing: Sharing, body: impl FnOnce(&UnsafeCell<u32>)) {
        let lock = SharedLock::over(&self.head, &self.entries, &self.holders);
        let wake = |user: User| self.bells[user.number as usize].notify();
        let mut claim = lock.claim(User { number, served: false }, sharing, wake);
        while !lock.poll(&mut claim, |_| false, wake) {
            self.bells[number as usize].wait();
        }
        body(&self.guarded);
        lock.release(claim, wake);
    }

    fn add(&self, number: u32) {
        // SAFETY: under the lock, held exclusively.
        self.hold(number, Sharing::Exclusive, |cell| cell.with_mut(|count| unsafe { *count += 1 }));
    }

    fn look(&self, number: u32) {
        self.hold(number, Sharing::Shared, |cell| {
            // SAFETY: under the lock, nobody writes.
            cell.with(|count| unsafe { assert!(*count < 3) })
        });
    }
}

fn users(body: [fn(&Share); 3]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let share = Share::new();
        let others = [body[1], body[2]].map(|other| {
            let share = share.clone();
            thread::spawn(move || other(&share))
        });
        body[0](&share);
        others.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn readers_and_a_writer_never_hold_the_shared_lock_together() {
    users([|share| share.add(0), |share| share.look(1), |share| share.look(2)]);
    users([|share| share.add(0), |share| share.add(1), |share| share.look(2)]);
    users([|share| share.add(0), |share| share.look(1), |_| {}]);
}

struct Brief {
    word: BriefWord,
    dead: AtomicU32,
    guarded: UnsafeCell<u32>,
}

// SAFETY: the cell is accessed only under the lock; loom checks that.
unsafe impl Sync for Brief {}
// SAFETY: plain data.
unsafe impl Send for Brief {}

impl Brief {
    fn add(&self, number: u32) {
        let lock = BriefLock::new(&self.word);
        let held = lock.acquire(number, |number| self.dead.load(SeqCst) == number);
        assert_eq!(lock.holder(), Some(number));
        // SAFETY: under the lock.
        self.guarded.with_mut(|count| unsafe { *count += 1 });
        drop(held);
    }
}

/// Only one user at a time holds the lock, and a dead holder doesn't block it.
#[test]
fn two_users_never_hold_the_brief_lock_together() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    for dead in [None, Some(3)] {
        model.check(move || {
            let brief = Arc::new(Brief {
                word: BriefWord::default(),
                dead: AtomicU32::new(dead.unwrap_or(u32::MAX)),
                guarded: UnsafeCell::new(0),
            });
            if let Some(number) = dead {
                std::mem::forget(BriefLock::new(&brief.word).acquire(number, |_| false));
            }
            // Only two users: of three, two waiters would yield to each other for ever.
            let other = brief.clone();
            let adding = thread::spawn(move || other.add(1));
            brief.add(0);
            adding.join().unwrap();
            // SAFETY: the other thread has ended.
            assert_eq!(brief.guarded.with(|count| unsafe { *count }), 2);
        });
    }
}

/// Every caller is found, by the look that its call falls into or by the next one, and what it
/// published before is seen.
#[test]
fn no_caller_is_missed() {
    /// The bits of the two are in different words.
    const NAMES: [u32; 2] = [0, 32];
    struct Called {
        words: [Word; 3],
        published: [UnsafeCell<bool>; 2],
    }
    // SAFETY: each cell is written by one caller, and read after its call; loom checks that.
    unsafe impl Sync for Called {}
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        assert_eq!(Callers::words(33), 3);
        let published = [UnsafeCell::new(false), UnsafeCell::new(false)];
        let called = Arc::new(Called { words: Default::default(), published });
        let calling = [0, 1].map(|caller| {
            let called = called.clone();
            thread::spawn(move || {
                // SAFETY: nobody reads the cell before the call.
                called.published[caller].with_mut(|cell| unsafe { *cell = true });
                Callers::new(&called.words).call(NAMES[caller]);
            })
        });
        let callers = Callers::new(&called.words);
        let mut seen = [0; 2];
        let mut look = || {
            if callers.is_called() {
                callers.take(|caller| {
                    let caller = NAMES.iter().position(|name| *name == caller).unwrap();
                    // SAFETY: its writer has called.
                    assert!(called.published[caller].with(|cell| unsafe { *cell }));
                    seen[caller] += 1;
                });
            }
        };
        look();
        look();
        calling.into_iter().for_each(|thread| thread.join().unwrap());
        look();
        assert_eq!(seen, [1, 1]);
    });
}

/// A reader sees no death without its own code, and a death stays as it was seen first.
#[test]
fn a_death_and_its_code_are_seen_together() {
    let deaths = [Cause::Signal(9), Cause::Exit(3), Cause::Lost].map(RankState::Dead);
    for (first, second) in [(0, 1), (0, 2), (2, 1)] {
        loom::model(move || {
            let words = Arc::new(StateWords::default());
            words.mark(RankState::Alive);
            let marking = [first, second].map(|death| {
                let words = words.clone();
                thread::spawn(move || words.mark(deaths[death]))
            });
            let seen = words.load();
            assert!(seen == RankState::Alive || [deaths[first], deaths[second]].contains(&seen));
            marking.into_iter().for_each(|thread| thread.join().unwrap());
            let last = words.load();
            assert!([deaths[first], deaths[second]].contains(&last));
            assert!(seen == RankState::Alive || seen == last);
        });
    }
}

/// The first request to end the job counts, with its own code. A request is seen after its call.
#[test]
fn the_job_ends_with_the_code_of_the_first_that_asks() {
    struct Job {
        job: AbortWord,
        own: [AbortCode; 2],
    }
    impl Job {
        fn load(&self) -> Option<(u32, i32)> {
            self.job.load(|by| self.own.get(by as usize - 1))
        }
    }
    // Two ranks ask, and then two threads of one rank.
    for names in [[1, 2], [1, 1]] {
        loom::model(move || {
            let job = Arc::new(Job { job: AbortWord::default(), own: Default::default() });
            let ask = |at: usize| {
                let job = job.clone();
                move || {
                    let name = names[at];
                    job.job.ask(name, &job.own[name as usize - 1], 5 + at as i32);
                    job.load().expect("somebody has asked")
                }
            };
            let asking = thread::spawn(ask(1));
            let seen = ask(0)();
            assert_eq!(asking.join().unwrap(), seen);
            assert!([(names[0], 5), (names[1], 6)].contains(&seen));
        });
    }
}

/// A reader sees a whole note.
#[test]
fn notes_are_seen_whole() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let words = Arc::new(NoteWords::default());
        let other = words.clone();
        let writing = thread::spawn(move || (1..=3).for_each(|n| other.write(n, 10 * n)));
        let note = words.read();
        assert_eq!((note.code, note.detail), (note.calls, 10 * note.calls));
        writing.join().unwrap();
        assert_eq!(words.read().calls, 3);
    });
}

/// Names of an earlier lap are replaced by one rank only.
#[test]
fn two_ranks_never_hold_the_fair_lock_together_in_a_later_lap() {
    loom::model(|| {
        let locked = Locked::new();
        for rank in (0..4).cycle().take(9) {
            locked.add(rank);
        }
        let other = locked.clone();
        let adding = thread::spawn(move || other.add(1));
        locked.add(0);
        adding.join().unwrap();
    });
}

/// Each frame is handled by the rank or taken back by its peer, and never both. Its bytes and those
/// of its answer are seen whole.
#[test]
fn a_frame_in_a_mailbox_is_handled_or_taken_back() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let mailbox = Arc::new(Mailbox::default());
        mailbox.open();
        let peers = [1u32, 2].map(|peer| {
            let mailbox = mailbox.clone();
            thread::spawn(move || {
                if !mailbox.claim() {
                    return 0;
                }
                let number = mailbox.post(peer, 8, &[u64::from(peer) << 33 | 1; WORDS]);
                thread::yield_now();
                let done = match mailbox.outcome(number) {
                    None if mailbox.withdraw(number) => false,
                    Some(outcome) => outcome == Outcome::Done,
                    None => loop {
                        match mailbox.outcome(number) {
                            Some(outcome) => break outcome == Outcome::Done,
                            None => thread::yield_now(),
                        }
                    },
                };
                if done {
                    assert_eq!(mailbox.read_answer(8)[0], u64::from(peer) << 34 | 2);
                }
                mailbox.release();
                u32::from(done)
            })
        });
        let mut handled = 0;
        let mut look = || {
            if mailbox.is_posted() {
                if let Some(Letter { number, sender, frame, .. }) = mailbox.take() {
                    assert_eq!(frame[0], u64::from(sender) << 33 | 1);
                    handled += 1;
                    mailbox.answer(number, 8, &[2 * frame[0]; WORDS]);
                }
            }
        };
        look();
        look();
        let done: u32 = peers.into_iter().map(|peer| peer.join().unwrap()).sum();
        assert_eq!(handled, done);
    });
}

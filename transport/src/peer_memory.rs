//! The private memory of the other processes of this host, which the system copies.
//!
//! A copy by process_vm_readv or process_vm_writev needs nothing of its peer, which may compute
//! meanwhile. The system may refuse it: to other users, in other namespaces, in containers, and
//! where a security module or an emulator says so. No rule says when. So each process tries it
//! once with each peer, on a word whose value the peer has published in the segment.
//!
//! ```text
//!     peer                                     this process
//!     a word of its own memory = random
//!     value, address, pid --- release --->     pid isn't 0: acquire
//!                                              reads the word at the address by process_vm_readv
//!                                              it has the value: the peer's memory can be copied
//! ```
//!
//! A pid may name another process of the same user once the peer has died and its parent has reaped
//! it. A launcher clears the published pid before it reaps a rank. So a copy begins only while the
//! pid is there and the peer lives, and counts only if both hold afterwards. Only a pid that is
//! used again within the time of one system call could be mistaken.
//!
//! A process may offer memory to a peer, which reads it later, and may have to take it back before
//! the peer has answered. So it counts its withdrawals in the segment, and an offer names their
//! number. The peer reads the memory, and then the number. If that has changed, the memory may have
//! been overwritten meanwhile, and the bytes don't count.
#![allow(unsafe_code)]

use std::collections::hash_map::RandomState;
use std::ffi::c_void;
use std::hash::{BuildHasher, Hasher};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering, fence};

use crate::Access;
use crate::segment::Segment;

/// The word by which peers try whether they may. Its value is random.
static WORD: OnceLock<u64> = OnceLock::new();

/// The most runs of a system call on each side (IOV_MAX).
const RUNS: usize = 1024;

/// A run of bytes of this process.
pub type NearRun = (NonNull<u8>, usize);

/// Memory that a process offers to a peer, until it takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its address in the process.
    pub address: u64,
    /// The number of the process's withdrawals when it made the offer.
    pub withdrawals: u32,
}

/// The private memory of the other processes of this host, for one rank.
#[derive(Debug)]
pub struct PeerMemory {
    segment: Segment,
    /// The process of each peer by its rank, or [`UNTRIED`], or [`REFUSED`]. No other memory
    /// depends on such a number, so all accesses are relaxed. Made for the first copy.
    tried: OnceLock<Box<[AtomicI32]>>,
}

/// This process hasn't tried the peer.
const UNTRIED: libc::pid_t = 0;

/// The system refuses copies of the peer's memory.
const REFUSED: libc::pid_t = -1;

impl PeerMemory {
    /// Publishes where this process has its word. The segment's handle must be a rank's.
    pub fn new(segment: &Segment) -> PeerMemory {
        if let Some(block) = segment.rank().and_then(|rank| segment.block(rank)) {
            allow_siblings();
            let word = WORD.get_or_init(|| RandomState::new().build_hasher().finish() | 1);
            block.beacon.publish(std::process::id(), ptr::from_ref(word).addr() as u64, *word);
        }
        PeerMemory { segment: segment.clone(), tried: OnceLock::new() }
    }

    /// Where the process of a peer is kept; `None` for a rank that doesn't exist.
    fn tried(&self, peer: u32) -> Option<&AtomicI32> {
        let untried = || (0..self.segment.size()).map(|_| AtomicI32::new(UNTRIED)).collect();
        self.tried.get_or_init(untried).get(peer as usize)
    }

    /// The process of a peer whose memory the system copies, and where it is kept. The first call
    /// for a peer tries it.
    fn process(&self, peer: u32) -> Option<(libc::pid_t, &AtomicI32)> {
        let tried = self.tried(peer)?;
        let pid = match tried.load(Ordering::Relaxed) {
            UNTRIED => {
                let pid = self.try_out(peer).unwrap_or(REFUSED);
                tried.store(pid, Ordering::Relaxed);
                pid
            }
            pid => pid,
        };
        (pid != REFUSED).then_some((pid, tried))
    }

    /// Whether the system copies the memory of a peer, as far as this process knows. The first call
    /// for a peer tries it.
    pub fn may_read(&self, peer: u32) -> bool {
        self.process(peer).is_some()
    }

    /// Reads a peer's word.
    fn try_out(&self, peer: u32) -> Option<libc::pid_t> {
        let (pid, address, value) = self.segment.block(peer)?.beacon.read()?;
        let (pid, mut word) = (libc::pid_t::try_from(pid).ok()?, 0u64);
        let near = [(NonNull::from(&mut word).cast(), size_of::<u64>())];
        // SAFETY: the word is this function's own.
        let outcome = unsafe { copy(pid, Access::Read, &near, &[(address, 8)]) };
        (outcome.is_ok() && word == value).then_some(pid)
    }

    /// Offers memory of this process to its peers.
    pub fn offer(&self, address: u64) -> Offer {
        Offer { address, withdrawals: self.withdrawals(self.segment.rank()) }
    }

    /// Takes all offers of this process back. Afterwards it may overwrite the memory. Only one
    /// thread at a time may call this.
    pub fn withdraw(&self) {
        if let Some(block) = self.segment.rank().and_then(|rank| self.segment.block(rank)) {
            let next = block.withdrawals.load(Ordering::Relaxed).wrapping_add(1);
            block.withdrawals.store(next, Ordering::Relaxed);
            // Before the memory is overwritten. Pairs with the fence in `take`.
            fence(Ordering::Release);
        }
    }

    /// The number of a rank's withdrawals.
    fn withdrawals(&self, rank: Option<u32>) -> u32 {
        let block = rank.and_then(|rank| self.segment.block(rank));
        block.map_or(0, |block| block.withdrawals.load(Ordering::Relaxed))
    }

    /// Reads memory that a peer has offered into runs of this process, from byte `position` of the
    /// offer on. Returns false if the peer has taken it back, or as [`copy`](PeerMemory::copy).
    ///
    /// # Safety
    /// As of [`copy`](PeerMemory::copy).
    pub unsafe fn take(&self, peer: u32, offer: &Offer, position: u64, near: &[NearRun]) -> bool {
        let len = near.iter().map(|&(_, len)| len as u64).sum();
        let Some(address) = offer.address.checked_add(position) else { return false };
        // SAFETY: as the caller promises.
        let is_read = unsafe { self.copy(peer, Access::Read, near, &[(address, len)]) };
        // After the bytes have been read. Pairs with the fence in `withdraw`.
        fence(Ordering::Acquire);
        is_read && self.withdrawals(Some(peer)) == offer.withdrawals
    }

    /// Reads runs of a peer's memory, given by address and length, into runs of this process, or
    /// writes them. The runs of both sides have the same number of bytes in all.
    ///
    /// Returns false if the system didn't copy all bytes, or the peer is gone. It may have copied
    /// some then.
    ///
    /// # Safety
    /// The near runs are memory that this process may read for a write, and write for a read, until
    /// the call returns. Nobody writes them meanwhile, and for a read nobody reads them.
    pub unsafe fn copy(
        &self,
        peer: u32,
        access: Access,
        near: &[NearRun],
        far: &[(u64, u64)],
    ) -> bool {
        let Some((pid, tried)) = self.process(peer) else { return false };
        let is_alive = || {
            let published = self.segment.block(peer).and_then(|block| block.beacon.read());
            let is_same = published.is_some_and(|(published, ..)| published as libc::pid_t == pid);
            is_same && !self.segment.rank_state(peer).is_gone()
        };
        if !is_alive() {
            return false;
        }
        // SAFETY: as the caller promises.
        match unsafe { copy(pid, access, near, far) } {
            Ok(()) => is_alive(),
            Err(errno) => {
                // A peer may end the permission. Memory that can't be copied says nothing of other
                // memory of the same peer.
                if errno != libc::EFAULT {
                    tried.store(REFUSED, Ordering::Relaxed);
                }
                false
            }
        }
    }
}

/// Where Yama restricts such copies to ancestors, lets this process's parent and all of that one's
/// descendants make them: the other ranks, if the launcher has started this one.
fn allow_siblings() {
    // SAFETY: the call changes no memory. Without Yama it fails, and isn't needed.
    unsafe {
        libc::prctl(libc::PR_SET_PTRACER, libc::getppid() as libc::c_ulong);
    }
}

/// Copies all bytes, or returns the number of the error.
///
/// # Safety
/// As [`PeerMemory::copy`].
unsafe fn copy(
    pid: libc::pid_t,
    access: Access,
    near: &[NearRun],
    far: &[(u64, u64)],
) -> Result<(), i32> {
    let ours = |&(start, len): &NearRun| run(start.as_ptr().cast(), len);
    let theirs = |&(address, len): &(u64, u64)| {
        let (address, len) = (usize::try_from(address).ok()?, usize::try_from(len).ok()?);
        // An address of the other process, which isn't dereferenced here.
        Some(run(std::ptr::without_provenance_mut(address), len))
    };
    // SAFETY: the near runs are the caller's, who promises what the function asks for.
    unsafe {
        match (near, far) {
            // Needs no allocation.
            ([near], [far]) => {
                copy_runs(pid, access, &mut [ours(near)], &mut [theirs(far).ok_or(libc::EFAULT)?])
            }
            _ => {
                let mut near: Vec<_> = near.iter().map(ours).collect();
                let far: Option<Vec<_>> = far.iter().map(theirs).collect();
                copy_runs(pid, access, &mut near, &mut far.ok_or(libc::EFAULT)?)
            }
        }
    }
}

/// Copies all bytes, or returns the number of the error.
///
/// # Safety
/// As [`PeerMemory::copy`], of the near runs.
unsafe fn copy_runs(
    pid: libc::pid_t,
    access: Access,
    mut near: &mut [libc::iovec],
    mut far: &mut [libc::iovec],
) -> Result<(), i32> {
    while !near.is_empty() && !far.is_empty() {
        let (ours, theirs) = (near.len().min(RUNS) as _, far.len().min(RUNS) as _);
        // SAFETY: both are arrays of this many runs. The near runs are memory that may be accessed
        // so, as the caller promises.
        let copied = unsafe {
            match access {
                Access::Read => {
                    libc::process_vm_readv(pid, near.as_ptr(), ours, far.as_ptr(), theirs, 0)
                }
                Access::Write => {
                    libc::process_vm_writev(pid, near.as_ptr(), ours, far.as_ptr(), theirs, 0)
                }
            }
        };
        match usize::try_from(copied) {
            Ok(0) => return Err(libc::EFAULT),
            Ok(bytes) => {
                near = advance(near, bytes);
                far = advance(far, bytes);
            }
            Err(_) => match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                errno => return Err(errno.unwrap_or(libc::EFAULT)),
            },
        }
    }
    Ok(())
}

fn run(start: *mut c_void, len: usize) -> libc::iovec {
    libc::iovec { iov_base: start, iov_len: len }
}

/// Leaves out the first bytes of runs.
fn advance(mut runs: &mut [libc::iovec], mut bytes: usize) -> &mut [libc::iovec] {
    while let Some(first) = runs.first_mut() {
        let whole = first.iov_len;
        if bytes < whole {
            *first = run(first.iov_base.wrapping_byte_add(bytes), whole - bytes);
            break;
        }
        bytes -= whole;
        runs = &mut runs[1..];
    }
    runs
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::RankState;

    /// Two ranks, and one's view of the other. `None`, once it is checked that nothing is copied,
    /// where the system has no such calls: under an emulator.
    fn pair() -> Option<(Segment, PeerMemory)> {
        let segment = Segment::create(2).unwrap();
        let ranks = [0, 1].map(|rank| segment.as_rank(rank).unwrap());
        ranks[1].mark(1, RankState::Alive);
        PeerMemory::new(&ranks[1]);
        let memory = PeerMemory::new(&ranks[0]);
        let (mut from, mut to) = ([7u8], [0u8]);
        let (near, far) = (near(&mut to, &[(0, 1)]), far(&mut from, &[(0, 1)]));
        // SAFETY: both bytes are this function's own.
        let copied = unsafe { memory.copy(1, Access::Read, &near, &far) };
        assert_eq!((copied, to), if is_there() { (true, [7]) } else { (false, [0]) });
        copied.then_some((segment, memory))
    }

    /// Whether the system copies this process's own memory.
    fn is_there() -> bool {
        let (from, mut to) = (7u8, 0u8);
        let (near, far) =
            (run((&raw mut to).cast(), 1), run((&raw const from).cast_mut().cast(), 1));
        // SAFETY: both bytes are this function's own.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &near, 1, &far, 1, 0) };
        copied == 1 && to == from
    }

    fn far(bytes: &mut [u8], parts: &[(usize, usize)]) -> Vec<(u64, u64)> {
        let start = bytes.as_mut_ptr().addr();
        parts.iter().map(|&(at, len)| ((start + at) as u64, len as u64)).collect()
    }

    fn near(bytes: &mut [u8], parts: &[(usize, usize)]) -> Vec<NearRun> {
        let start = NonNull::new(bytes.as_mut_ptr()).unwrap();
        // SAFETY: the parts are in the array.
        parts.iter().map(|&(at, len)| (unsafe { start.add(at) }, len)).collect()
    }

    /// A process may copy its own memory by these calls, so both ranks are in this one.
    #[test]
    fn runs_of_different_lengths_are_copied_in_their_order() {
        let Some((_segment, memory)) = pair() else { return };
        let (mut ours, mut theirs): (Vec<u8>, _) = ((0..100).collect(), vec![0u8; 100]);
        let to = far(&mut theirs, &[(50, 3), (0, 7), (20, 10)]);
        let from = near(&mut ours, &[(0, 10), (90, 10)]);
        // SAFETY: both arrays are this test's own.
        assert!(unsafe { memory.copy(1, Access::Write, &from, &to) });
        assert_eq!((&theirs[50..53], &theirs[..7]), (&[0, 1, 2][..], &[3, 4, 5, 6, 7, 8, 9][..]));
        assert_eq!(theirs[20..30], ours[90..100]);
        let back = near(&mut ours, &[(40, 20)]);
        // SAFETY: as above.
        assert!(unsafe { memory.copy(1, Access::Read, &back, &to) });
        assert_eq!((&ours[40..43], &ours[50..60]), (&[0, 1, 2][..], &theirs[20..30]));
    }

    #[test]
    fn more_runs_than_the_system_takes_at_a_time_are_copied() {
        let Some((_segment, memory)) = pair() else { return };
        let len = 5 * RUNS;
        let (mut ours, mut theirs) = (vec![7u8; len], vec![0u8; 2 * len]);
        let every: Vec<_> = (0..len).map(|at| (2 * at, 1)).collect();
        let (from, to) = (near(&mut ours, &[(0, len)]), far(&mut theirs, &every));
        // SAFETY: both arrays are this test's own.
        assert!(unsafe { memory.copy(1, Access::Write, &from, &to) });
        assert!(theirs.chunks(2).all(|pair| pair == [7, 0]));
    }

    #[test]
    fn memory_that_is_unmapped_or_of_a_lost_peer_is_refused() {
        let Some((segment, memory)) = pair() else { return };
        let (mut ours, mut theirs) = (vec![1u8; 8], vec![0u8; 8]);
        let from = near(&mut ours, &[(0, 8)]);
        // SAFETY: the array is this test's own. Nothing is mapped at the other address.
        assert!(!unsafe { memory.copy(1, Access::Write, &from, &[(4096, 8)]) });
        let to = far(&mut theirs, &[(0, 8)]);
        // SAFETY: both arrays are this test's own.
        assert!(unsafe { memory.copy(1, Access::Write, &from, &to) });
        segment.mark(1, RankState::Finalized);
        // SAFETY: as above.
        assert!(!unsafe { memory.copy(1, Access::Write, &from, &to) });
        // SAFETY: as above.
        assert!(!unsafe { memory.copy(7, Access::Write, &from, &to) });
    }

    #[test]
    fn memory_that_was_taken_back_is_refused() {
        let Some((segment, memory)) = pair() else { return };
        let peer = PeerMemory::new(&segment.as_rank(1).unwrap());
        let (mut ours, mut theirs) = (vec![0u8; 8], (0..8).collect::<Vec<u8>>());
        let offer = |theirs: &mut [u8]| peer.offer(far(theirs, &[(0, 8)])[0].0);
        let into = near(&mut ours, &[(0, 2), (4, 2)]);
        let first = offer(&mut theirs);
        // SAFETY: both arrays are this test's own.
        assert!(unsafe { memory.take(1, &first, 3, &into) });
        assert_eq!(ours, [3, 4, 0, 0, 5, 6, 0, 0]);
        peer.withdraw();
        // SAFETY: as above.
        assert!(!unsafe { memory.take(1, &first, 0, &into) });
        // SAFETY: as above.
        assert!(unsafe { memory.take(1, &offer(&mut theirs), 0, &into) });
    }

    #[test]
    fn a_peer_that_is_about_to_be_reaped_is_refused() {
        let Some((segment, memory)) = pair() else { return };
        let (mut ours, mut theirs) = (vec![1u8; 8], vec![0u8; 8]);
        let (from, to) = (near(&mut ours, &[(0, 8)]), far(&mut theirs, &[(0, 8)]));
        // SAFETY: both arrays are this test's own.
        assert!(unsafe { memory.copy(1, Access::Write, &from, &to) });
        segment.retire(1);
        // SAFETY: as above.
        assert!(!unsafe { memory.copy(1, Access::Write, &from, &to) });
    }
}

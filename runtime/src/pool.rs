//! The threads that divide long transfers: one pool for all ranks of a process.
//!
//! The pool is made by the first transfer that is long enough. It has as many threads as the
//! process may use cores, divided by the ranks of the host that share them. A control group may
//! grant all of these ranks less: then that is divided. With one core there is no pool.
//! `LONGSHORE_THREADS` sets another number, and 1 or `off` switches the pool off, as does building
//! without the cargo feature `rayon`.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use shipable::Program;
use shipable::program::Pool;

/// The processes that share this process's cores.
static SHARERS: AtomicUsize = AtomicUsize::new(1);

/// The processors that they may use together; 0 if no launcher has said so.
static GRANTED: AtomicUsize = AtomicUsize::new(0);

/// The threads of the pool.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// The number of the pool's threads; 0 before it is made.
pub(crate) fn made() -> usize {
    MADE.load(Relaxed)
}

/// Records that a host's ranks share its cores, before the pool is made, and how many processors
/// the launcher grants them together.
///
/// A rank that may use some of the cores only is assumed to share them with as large a part of the
/// ranks.
pub(crate) fn share(ranks: usize, granted: Option<usize>) {
    SHARERS.store(ranks.max(1), Relaxed);
    GRANTED.store(granted.unwrap_or(0), Relaxed);
}

/// The pool for a transfer of `length` bytes of the packed stream. `None` if one thread is as fast.
#[inline]
pub(crate) fn of(program: &Program, length: u64) -> Option<&'static dyn Pool> {
    if program.is_divisible(length) { any() } else { None }
}

/// The pool for a transfer of `length` bytes by a program that isn't made yet.
#[inline]
pub(crate) fn of_bytes(length: u64) -> Option<&'static dyn Pool> {
    /// No shorter transfer is divided.
    const LEAST: u64 = 32 << 10;
    if length >= LEAST { any() } else { None }
}

/// The number of threads: that of the environment, or the cores by the processes that share them,
/// which use at most the processors that are `granted` to them together.
#[cfg(any(feature = "rayon", test))]
fn threads(
    asked: Option<usize>,
    cores: usize,
    all_cores: usize,
    sharers: usize,
    granted: Option<usize>,
) -> usize {
    asked.unwrap_or_else(|| {
        // The ranks are spread over the machine's cores. Rounded down: a rank that is bound to the
        // larger share of cores has it to itself.
        let beside = (sharers * cores / all_cores.max(1)).max(1);
        let granted = granted.map_or(usize::MAX, |granted| granted.div_ceil(sharers.max(1)));
        (cores / beside).min(granted).max(1)
    })
}

#[cold]
#[cfg(feature = "rayon")]
fn any() -> Option<&'static dyn Pool> {
    use std::sync::OnceLock;

    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;

    use crate::job;

    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let make = || {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let own = sched_getaffinity(Pid::from_raw(0)).map_or(available, |set| {
            (0..CpuSet::count()).filter(|&core| set.is_set(core) == Ok(true)).count()
        });
        let granted = match GRANTED.load(Relaxed) {
            // The limit of a control group holds for all ranks in it.
            0 => Some(available).filter(|available| *available < own),
            granted => Some(granted),
        };
        let all = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN);
        let all = all.ok().flatten().and_then(|cores| usize::try_from(cores).ok());
        // `init` has refused other words.
        let asked = job::threads().ok().flatten();
        let sharers = SHARERS.load(Relaxed);
        let threads = threads(asked, own, all.unwrap_or(own), sharers, granted);
        if threads < 2 {
            return None;
        }
        build(threads)
    };
    POOL.get_or_init(make).as_ref().map(|pool| pool as &dyn Pool)
}

/// Makes a pool, and counts its threads. Without one, transfers take longer but are right.
#[cfg(feature = "rayon")]
fn build(threads: usize) -> Option<rayon::ThreadPool> {
    let name = |index| format!("longshore-{index}");
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok()?;
    MADE.fetch_add(threads, Relaxed);
    Some(pool)
}

#[cfg(not(feature = "rayon"))]
fn any() -> Option<&'static dyn Pool> {
    None
}

#[cfg(test)]
mod tests {
    use super::threads;

    #[test]
    fn ranks_divide_the_cores_that_they_share() {
        assert_eq!(threads(None, 8, 8, 1, None), 8);
        assert_eq!(threads(None, 8, 8, 4, Some(8)), 2);
        assert_eq!(threads(None, 8, 8, 16, None), 1);
        // Four ranks, each on two cores of its own.
        assert_eq!(threads(None, 2, 8, 4, None), 2);
        assert_eq!(threads(None, 1, 64, 64, None), 1);
        // Three ranks on eight cores: one has two of them.
        assert_eq!(threads(None, 3, 8, 3, Some(8)), 3);
        assert_eq!(threads(None, 2, 8, 3, Some(8)), 2);
    }

    #[test]
    fn ranks_divide_what_a_control_group_grants() {
        assert_eq!(threads(None, 16, 16, 4, Some(2)), 1);
        assert_eq!(threads(None, 16, 16, 1, Some(4)), 4);
        // Bound to cores of their own, on which they have half of the time.
        assert_eq!(threads(None, 4, 16, 4, Some(8)), 2);
    }

    #[test]
    fn the_environment_sets_the_number_of_threads() {
        assert_eq!(threads(Some(1), 8, 8, 1, None), 1);
        assert_eq!(threads(Some(3), 8, 8, 4, Some(2)), 3);
    }

    #[test]
    #[cfg(feature = "rayon")]
    fn the_threads_of_a_pool_are_counted() {
        let pool = super::build(2).unwrap();
        assert_eq!(pool.current_num_threads(), 2);
        assert!(super::made() >= 2);
    }
}

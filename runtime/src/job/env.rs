//! The environment variables by which a rank finds its job.
//!
//! The first ones are PMI-1's and PMIx's, and mean the same under every launcher that speaks either; the others are
//! set by `longshore run` or by hand. A rank's children should be given none of them.

/// Descriptor of the stream socket to the PMI-1 server, in decimal.
pub const PMI_FD: &str = "PMI_FD";
/// `host:port` of the PMI-1 server, where no descriptor is inherited.
pub const PMI_PORT: &str = "PMI_PORT";
/// The process's identity towards a server reached by [`PMI_PORT`].
pub const PMI_ID: &str = "PMI_ID";
/// This process's rank, from 0.
pub const PMI_RANK: &str = "PMI_RANK";
/// The number of ranks in the job.
pub const PMI_SIZE: &str = "PMI_SIZE";

/// The name of this process's job, under a launcher that speaks PMIx. With `PMI_FD` or `PMI_PORT` beside it, those count.
pub const PMIX_NAMESPACE: &str = "PMIX_NAMESPACE";
/// This process's rank, under a launcher that speaks PMIx.
pub const PMIX_RANK: &str = "PMIX_RANK";
/// The path of libpmix, by which PMIx is spoken; absent: `libpmix.so.2` beside the launcher, or where the system finds it.
pub const PMIX_LIBRARY: &str = "LONGSHORE_PMIX";

/// Descriptor of the job's shared segment on this host, in decimal.
pub const SEGMENT: &str = "LONGSHORE_SEGMENT";
/// The job's secret, 64 hexadecimal digits. Never on a command line, where every user could read it.
pub const SECRET: &str = "LONGSHORE_SECRET";
/// How many ranks each host has, in the order of ranks: `4,4`. Absent: all that share the segment.
pub const HOSTS: &str = "LONGSHORE_HOSTS";
/// The interface on which this rank listens for ranks of other hosts, by its address or name; absent: the first that isn't the
/// loopback.
pub const INTERFACE: &str = "LONGSHORE_INTERFACE";
/// The provider of libfabric between hosts; absent: `tcp`.
pub const FABRIC: &str = "LONGSHORE_FABRIC";
/// For how many seconds another host may be silent until its ranks are taken for lost; absent: 20.
pub const SILENCE: &str = "LONGSHORE_SILENCE";
/// Among how many hosts [`sim`](crate::sim)'s jobs deal their ranks, in a build with the cargo feature `fabric`.
#[cfg(feature = "fabric")]
pub const SIM_HOSTS: &str = "LONGSHORE_SIM_HOSTS";
/// How much a rank tells on its standard error of what it does: `warn`, `info`, `debug` or `trace`; absent: nothing, unless the program
/// listens to `tracing` by itself.
pub const LOG: &str = "LONGSHORE_LOG";
/// Name of the data representation that this rank emulates; absent: the machine's own. Set by hand, without a launcher too, or by
/// `longshore run --arch`, which alone decides under `longshore run`.
pub const ARCH: &str = "LONGSHORE_ARCH";
/// `message`: every operation travels as a message; `best` or absent: the best route for each pair. Set by hand, without a launcher
/// too, or by `longshore run --route`, which alone decides under `longshore run`.
pub const ROUTE: &str = "LONGSHORE_ROUTE";
/// A seed: whatever MPI leaves open about the order of operations, and a link about frames, is decided by it, and all
/// travels as messages. Set by hand or by `longshore run --adversary`; [`sim`](crate::sim)'s jobs heed it too.
pub const ADVERSARY: &str = "LONGSHORE_ADVERSARY";
/// `on` (default) or `off`, or 1 or 0: whether a thread answers peers while the program computes.
pub const PROGRESS: &str = "LONGSHORE_PROGRESS";
/// `end` (default) or `report`: what the death of a rank does to the others.
pub const ON_DEATH: &str = "LONGSHORE_ON_DEATH";
/// `off` (default), `report` or `fail`, or 0 or 1: whether uses of windows that MPI leaves undefined are reported, and all travels
/// as messages; [`Checking`](super::Checking). Set by hand or by `longshore run --check`; [`sim`](crate::sim)'s jobs heed it too.
pub const CHECK: &str = "LONGSHORE_CHECK";

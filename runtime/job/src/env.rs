//! The environment variables that describe a rank's job.
//!
//! The first ones belong to PMI-1 and PMIx and have the same meaning under every launcher that
//! speaks these protocols. `longshore run` or the user sets the others. A rank should pass none of
//! them on to its children.

/// Descriptor of the stream socket to the PMI-1 server, in decimal.
pub const PMI_FD: &str = "PMI_FD";
/// `host:port` of the PMI-1 server, used if there is no [`PMI_FD`].
pub const PMI_PORT: &str = "PMI_PORT";
/// The identity by which the server at [`PMI_PORT`] knows this process.
pub const PMI_ID: &str = "PMI_ID";
/// This process's rank, from 0.
pub const PMI_RANK: &str = "PMI_RANK";
/// The number of ranks in the job.
pub const PMI_SIZE: &str = "PMI_SIZE";

/// The name of this process's job, under a launcher that speaks PMIx. [`PMI_FD`] and [`PMI_PORT`]
/// take precedence.
pub const PMIX_NAMESPACE: &str = "PMIX_NAMESPACE";
/// This process's rank, under a launcher that speaks PMIx.
pub const PMIX_RANK: &str = "PMIX_RANK";
/// The path of libpmix. If absent: `libpmix.so.2` of the launcher, or from the system's search
/// path.
pub const PMIX_LIBRARY: &str = "LONGSHORE_PMIX";

/// Set if the launcher is `longshore run`. Its PMI-1 server also passes the job's segment on this
/// host and the job's secret. Without it, the ranks make both themselves.
pub const LAUNCHER: &str = "LONGSHORE_LAUNCHER";
/// The number of rank 0 among all ranks of the job, if a rank had these ranks started.
pub const FIRST: &str = "LONGSHORE_FIRST";
/// The port by which these ranks meet those that had them started.
pub const PARENT: &str = "LONGSHORE_PARENT";
/// The hosts of all ranks, as runs of consecutive ranks on one host: `4,4`. A run whose host has
/// ranks before it names that host by its number from 0: `1,1,1@0,1@1`. If absent: all ranks are on
/// this host.
pub const HOSTS: &str = "LONGSHORE_HOSTS";
/// The network interface on which this rank listens for ranks on other hosts, by address or name.
/// If absent: the first one that is neither the loopback nor a bridge of containers.
pub const INTERFACE: &str = "LONGSHORE_INTERFACE";
/// The lowest and the highest port at which this rank may listen for ranks on other hosts, as
/// `5000:5099`. If absent: any port that the system finds free.
pub const PORTS: &str = "LONGSHORE_PORTS";
/// `on` or `off` (default), or 1 or 0: whether this rank encrypts all that it sends to other hosts,
/// and accepts nothing else from them. All ranks must have the same value. `longshore run
/// --encrypt` sets it.
pub const ENCRYPT: &str = "LONGSHORE_ENCRYPT";
/// The libfabric provider between hosts. If absent: `tcp`.
pub const FABRIC: &str = "LONGSHORE_FABRIC";
/// libfabric's file, by a path or by a name on the system's search path. If absent:
/// `libfabric.so.1`.
pub const LIBFABRIC: &str = longshore_transport::fabric::LIBRARY;
/// The number of seconds without a sign of life after which the ranks of another host are lost. If
/// absent: 20.
pub const SILENCE: &str = "LONGSHORE_SILENCE";
/// The number of simulated hosts for the jobs of `longshore::sim`.
pub const SIM_HOSTS: &str = "LONGSHORE_SIM_HOSTS";
/// The level of a rank's log on standard error: `off`, `error`, `warn`, `info`, `debug` or `trace`.
/// If absent: no log, unless the program installs a `tracing` subscriber of its own.
pub const LOG: &str = "LONGSHORE_LOG";
/// The data representation that this rank emulates: a name or a descriptor. If
/// absent: the machine's own. Under `longshore run`, only its option `--arch` decides.
pub const ARCH: &str = "LONGSHORE_ARCH";
/// `message`: every operation travels as a message. `best` or absent: the best route for each pair
/// of ranks. Under `longshore run`, only its option `--route` decides.
pub const ROUTE: &str = "LONGSHORE_ROUTE";
/// The seed of the adversary. It picks among all orders of operations that MPI allows, and among
/// all behaviours of a link, and makes all operations travel as messages. `longshore run
/// --adversary` sets it; the jobs of `longshore::sim` use it too.
pub const ADVERSARY: &str = "LONGSHORE_ADVERSARY";
/// `on` (default) or `off`, or 1 or 0: whether a thread answers peers while the program computes.
pub const PROGRESS: &str = "LONGSHORE_PROGRESS";
/// The number of processors that the ranks of this host may use together. If absent: those of this
/// rank. `longshore run` sets it, since it binds ranks to some of them.
pub const PROCESSORS: &str = "LONGSHORE_PROCESSORS";
/// A number, or `off`: the threads that divide long transfers of datatypes. Otherwise the cores
/// that the rank may use, divided by the ranks that share them.
pub const THREADS: &str = "LONGSHORE_THREADS";
/// `end` (default) or `survive`: the effect of a rank's death on the other ranks.
pub const ON_DEATH: &str = "LONGSHORE_ON_DEATH";
/// `off` (default), `report` or `fail`, or 0 or 1, and the kinds of reports: the value of
/// [`Checking`](crate::Checking).
/// `longshore run --check` sets it; the jobs of `longshore::sim` use it too.
pub const CHECK: &str = "LONGSHORE_CHECK";
/// `on` (default) or `off`, or 1 or 0: whether a rank takes the shortest way of operations that it
/// knows. `off` checks each of them in full, to find out whether the memory of valid operations is
/// to blame for an effect.
pub const FAST: &str = "LONGSHORE_FAST";
/// `off` (default) or `on`, or 0 or 1: whether a rank tells on standard error by which paths its
/// operations reach windows, and why not by faster ones. `longshore run --explain` sets it.
pub const EXPLAIN: &str = "LONGSHORE_EXPLAIN";
/// A number of bytes, perhaps with K, M or G; 64M by default: the short messages that this rank
/// holds for each sender before they are received. A sender that has filled it waits.
pub const ROOM: &str = "LONGSHORE_ROOM";

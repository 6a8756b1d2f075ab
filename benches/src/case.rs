//! A case: the description of one measurement, as a line of text that every contender reads.
//!
//! ```
//! use longshore_benches::case::{Bench, Case};
//!
//! let case = Case { bench: Bench::PutLatency, bytes: 8, ..Case::default() };
//! assert_eq!(
//!     case.to_string(),
//!     "bench=put_latency window=allocate sync=flush bytes=8 type=d count=1 way=portable route=best arch=native,native \
//!      ranks=2 calls=2000 rounds=41"
//! );
//! assert_eq!("bench=put_latency".parse(), Ok(case));
//! ```

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use longshore::job::Routes;
use longshore::{Architecture, Datatype};

/// Defines an enum whose values are words in the line of a case.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$note:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$note])* $value,)+ }

        impl $name {
            /// All values, in their order.
            pub const ALL: &[$name] = &[$($name::$value),+];
            /// The words of all values, in the order of [`ALL`](Self::ALL).
            pub const WORDS: &[&str] = &[$($word),+];

            /// The value's word in a line.
            pub fn word(self) -> &'static str {
                match self { $($name::$value => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<$name, String> {
                match word {
                    $($word => Ok($name::$value),)+
                    _ => Err(format!("`{word}`; expected {}", Self::WORDS.join(", "))),
                }
            }
        }
    };
}

words! {
    /// The work. The names are those of OSU's micro-benchmarks without `osu_`, where OSU has the
    /// bench.
    Bench {
        /// A put, and its synchronisation.
        PutLatency = "put_latency",
        /// A get, and its synchronisation.
        GetLatency = "get_latency",
        /// An accumulate (sum), and its synchronisation.
        AccLatency = "acc_latency",
        /// A get_accumulate (sum), and its synchronisation.
        GetAccLatency = "get_acc_latency",
        /// A fetch_and_op (sum), and its synchronisation.
        FopLatency = "fop_latency",
        /// A compare_and_swap, and its synchronisation.
        CasLatency = "cas_latency",
        /// [`IN_FLIGHT`] puts to each synchronisation.
        PutBw = "put_bw",
        /// [`IN_FLIGHT`] gets to each synchronisation.
        GetBw = "get_bw",
        /// [`IN_FLIGHT`] puts to each synchronisation, from both ranks at once.
        PutBibw = "put_bibw",
        /// [`IN_FLIGHT`] gets to each synchronisation, from both ranks at once.
        GetBibw = "get_bibw",
        /// The rate of puts, with [`IN_FLIGHT`] puts to each synchronisation.
        PutMr = "put_mr",
        /// The rate of gets, with [`IN_FLIGHT`] gets to each synchronisation.
        GetMr = "get_mr",
        /// A put of which the target learns, and one back, halved. With `sync=flush` the target
        /// learns it by an empty message after the flush.
        PutPingpong = "put_pingpong",
        /// A synchronisation without an operation.
        Sync = "sync",
        /// A put and flush to a rank that computes for 200 ms without calling the library. If the
        /// value isn't there at the end, the put took 200 ms.
        Computing = "computing",
        /// Memory to a packed stream. The first architecture is the memory's, the second the
        /// stream's.
        Pack = "pack",
        /// A packed stream to memory. The first architecture is the memory's.
        Unpack = "unpack",
        /// Memory of one architecture to memory of the other, as a direct put does it.
        Copy = "copy",
        /// A type's constructor, its commit, and its free.
        Commit = "commit",
        /// A type's constructor, its commit, its form, its program, and its free. Commit leaves the
        /// A type's constructor, and its free.
        Define = "define",
        /// Type_send of a type, and Type_recv of it at the other rank.
        TypeSend = "type_send",
        /// A message to the other rank and one back, halved.
        Latency = "latency",
        /// The same, with a probe before each receive.
        ProbeLatency = "probe_latency",
        /// The same by isend, irecv and waits.
        IsendLatency = "isend_latency",
        /// [`IN_FLIGHT`] isends to as many irecvs, and a byte in answer to all.
        MessageMr = "message_mr",
        /// A sendrecv of both ranks.
        Sendrecv = "sendrecv",
        /// A barrier.
        Barrier = "barrier",
        /// A broadcast. Each rank is the root in turn, here and in the other rooted calls.
        Bcast = "bcast",
        /// A sum at the root.
        Reduce = "reduce",
        /// A sum at both ranks.
        Allreduce = "allreduce",
        /// Blocks of both ranks to both.
        Allgather = "allgather",
        /// A block of each rank to each.
        Alltoall = "alltoall",
        /// Blocks of both ranks to the root.
        Gather = "gather",
        /// Blocks of the root to both ranks.
        Scatter = "scatter",
        /// A sum, of which each rank gets a block.
        ReduceScatter = "reduce_scatter",
        /// A sum of the ranks up to this one.
        Scan = "scan",
        /// The machine's limit: a copy of contiguous bytes.
        Memcpy = "memcpy",
        /// The machine's limit: a copy of doubles that reverses the bytes of each.
        ByteSwap = "byte_swap",
        /// The machine's limit: a cache line to the other core and back, halved.
        CacheLine = "cache_line",
        /// The machine's limit: a message over TCP to this host itself and back, halved.
        Tcp = "tcp",
        /// The network's limit: a write to registered memory by libfabric only, until remote
        /// completion.
        Fabric = "fabric",
        /// The network's limit: up to [`IN_FLIGHT`] writes by libfabric at once.
        FabricBw = "fabric_bw",
        /// The time from launch to exit of a job that only calls init, barrier and finalize.
        Launch = "launch",
        /// A rank's memory after init and a barrier, with its share of shared pages (Pss). Its unit
        /// is kB, not microseconds.
        Memory = "memory",
    }
}

impl Bench {
    /// Whether one synchronisation completes several operations.
    pub fn streams(self) -> bool {
        use Bench::*;
        matches!(self, PutBw | GetBw | PutBibw | GetBibw | PutMr | GetMr | MessageMr)
    }

    /// Whether the work is a message or a collective call, which has no window.
    pub fn has_no_window(self) -> bool {
        MESSAGES.contains(&self) || COLLECTIVES.contains(&self)
    }

    /// Whether the bench has few rounds, because each takes long or is precise enough.
    pub fn has_few_rounds(self) -> bool {
        matches!(self, Bench::Computing | Bench::Launch | Bench::Memory)
    }
}

words! {
    /// The kind of window, by the call that makes it.
    Flavor {
        /// MPI_Win_allocate.
        Allocate = "allocate",
        /// MPI_Win_create.
        Create = "create",
        /// MPI_Win_create_dynamic and MPI_Win_attach.
        Dynamic = "dynamic",
        /// MPI_Win_allocate_shared.
        Shared = "shared",
    }
}

words! {
    /// The synchronisation that completes an operation.
    Sync {
        /// A flush, within one epoch of lock_all.
        Flush = "flush",
        /// A local flush, within one epoch of lock_all: the origin has the value that it fetched.
        FlushLocal = "flush_local",
        /// An exclusive lock before the operation and an unlock after it.
        Lock = "lock",
        /// A shared lock before the operation and an unlock after it.
        LockShared = "lock_shared",
        /// lock_all before the operation and unlock_all after it.
        LockAll = "lock_all",
        /// A fence after the operation.
        Fence = "fence",
        /// Start and complete at the origin, post and wait at the target.
        Pscw = "pscw",
        /// A counter at the target, which the operation raises, within one epoch of lock_all.
        Notify = "notify",
    }
}

words! {
    /// The kind of target datatype that an operation names.
    Way {
        /// A portable type.
        Portable = "portable",
        /// A type that the target built and sent with Type_send.
        TypeSend = "type_send",
        /// The origin's own locale-specific type, on a window with info `target_types=same_layout`.
        SameLayout = "same_layout",
    }
}

words! {
    /// The interface by which operations are called. Other libraries have only C.
    By {
        /// Scoped epochs: [`longshore::Epoch`], with slices where a program has slices.
        Scope = "scope",
        /// Pointers and committed types: [`longshore::Raw`].
        Pointer = "pointer",
    }
}

/// Benches of messages between two ranks.
pub const MESSAGES: [Bench; 5] =
    [Bench::Latency, Bench::ProbeLatency, Bench::IsendLatency, Bench::MessageMr, Bench::Sendrecv];

/// Benches of collective calls.
pub const COLLECTIVES: [Bench; 10] = [
    Bench::Barrier,
    Bench::Bcast,
    Bench::Reduce,
    Bench::Allreduce,
    Bench::Allgather,
    Bench::Alltoall,
    Bench::Gather,
    Bench::Scatter,
    Bench::ReduceScatter,
    Bench::Scan,
];

/// Operations to each synchronisation in benches of bandwidth or rate, as in OSU's benchmarks.
pub const IN_FLIGHT: u32 = 64;

/// The description of one measurement. Fields that a bench doesn't use have their defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The work.
    pub bench: Bench,
    /// The kind of window.
    pub window: Flavor,
    /// The synchronisation.
    pub sync: Sync,
    /// Bytes of data that one call moves.
    pub bytes: u64,
    /// The type of one element, on both sides, in its canonical
    /// [notation](longshore::shipable::notation). It contains no blanks.
    pub datatype: String,
    /// The type's name in reports, one word. `None` for a type without a name.
    pub name: Option<String>,
    /// Elements of one call.
    pub count: u64,
    /// The kind of target datatype.
    pub way: Way,
    /// The interface by which operations are called.
    pub by: By,
    /// The routes that this library may take. Other libraries have no such choice.
    pub route: Routes,
    /// The number of hosts. With more than one, the ranks act as if each were on its own host, over
    /// the loopback interface.
    pub hosts: u32,
    /// Bytes from the start of a page to the origin's memory: a multiple of 8.
    pub offset: u64,
    /// The data representations of the two ranks, or of memory and stream: names that
    /// [`Architecture::by_name`] knows, or `native`.
    pub arch: [String; 2],
    /// Threads that divide a transfer, in benches of pack, unpack and copy. Other libraries have no
    /// such choice.
    pub threads: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// Calls in a round. In benches of bandwidth or rate it is a multiple of [`IN_FLIGHT`], or a
    /// power of two below it.
    pub calls: u32,
    /// Rounds. Each gives one time.
    pub rounds: u32,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            bench: Bench::PutLatency,
            window: Flavor::Allocate,
            sync: Sync::Flush,
            bytes: 8,
            datatype: "d".to_owned(),
            name: None,
            count: 1,
            way: Way::Portable,
            by: By::Scope,
            route: Routes::Best,
            hosts: 1,
            offset: 0,
            arch: ["native".to_owned(), "native".to_owned()],
            threads: 1,
            ranks: 2,
            calls: 2000,
            rounds: 41,
        }
    }
}

impl Case {
    /// The two architectures that [`arch`](Case::arch) names.
    ///
    /// # Errors
    /// An unknown name.
    pub fn architectures(&self) -> Result<[Architecture; 2], String> {
        let [first, second] = &self.arch;
        Ok([architecture(first)?, architecture(second)?])
    }

    /// Bytes that are moved during one call: twice [`bytes`](Case::bytes) if both ranks are
    /// origins.
    pub fn moved(&self) -> u64 {
        match self.bench {
            Bench::PutBibw | Bench::GetBibw => 2 * self.bytes,
            _ => self.bytes,
        }
    }
}

/// The architecture with a name. `native` is this machine's.
///
/// # Errors
/// An unknown name. The message lists the known ones.
pub fn architecture(name: &str) -> Result<Architecture, String> {
    match name {
        "native" => Ok(Architecture::NATIVE),
        _ => Architecture::by_name(name).map_err(|error| error.to_string()),
    }
}

/// Checks that a rank can have the representation with a name. external32 and XDR are refused: they
/// are representations of files and buffers.
///
/// # Errors
/// A representation of files, or an unknown name. The message lists the names that a rank can have.
pub fn of_rank(name: &str) -> Result<(), String> {
    let is_of_files = |architecture: &Architecture| {
        [Architecture::EXTERNAL32, Architecture::XDR].contains(architecture)
    };
    if name == "native" {
        return Ok(());
    }
    match Architecture::by_name(name) {
        Ok(found) if is_of_files(&found) => Err(format!(
            "{name} is a representation of files and buffers, which no rank can have: `longshore \
             inspect` shows it, and `longshore bench pack unpack` measures it"
        )),
        Ok(_) => Ok(()),
        Err(shipable::Error::UnknownArchitecture { name, .. }) => {
            let known = Architecture::all().iter().filter(|each| !is_of_files(each));
            let known: Vec<_> = std::iter::once("native").chain(known.map(|a| a.name())).collect();
            let known = known.join(", ");
            Err(shipable::Error::UnknownArchitecture { name, known }.to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Writes one line of `key=value` words with blanks in between. `name`, `by`, `hosts`, `offset`
/// and `threads` are left out if they have their defaults.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { bench, window, sync, bytes, datatype, name, count, .. } = self;
        write!(f, "bench={bench} window={window} sync={sync} bytes={bytes} type={datatype}")?;
        if let Some(name) = name {
            write!(f, " name={name}")?;
        }
        let Case { way, by, route, hosts, offset, arch: [first, second], .. } = self;
        let Case { threads, ranks, calls, rounds, .. } = self;
        write!(f, " count={count} way={way}")?;
        if *by != By::Scope {
            write!(f, " by={by}")?;
        }
        write!(f, " route={route} arch={first},{second}")?;
        if *hosts != 1 {
            write!(f, " hosts={hosts}")?;
        }
        if *offset != 0 {
            write!(f, " offset={offset}")?;
        }
        if *threads != 1 {
            write!(f, " threads={threads}")?;
        }
        write!(f, " ranks={ranks} calls={calls} rounds={rounds}")
    }
}

/// An error in the line of a case: the bad word and its problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word}: {problem}")]
pub struct CaseError {
    word: String,
    problem: String,
}

/// Parses the line that [`Display`](fmt::Display) writes. The words may stand in any order, and a
/// missing word has its default.
impl FromStr for Case {
    type Err = CaseError;

    fn from_str(line: &str) -> Result<Case, CaseError> {
        let mut case = Case::default();
        let mut seen = HashSet::new();
        for word in line.split_ascii_whitespace() {
            let error = |problem: String| CaseError { word: word.to_owned(), problem };
            let (key, value) =
                word.split_once('=').ok_or_else(|| error("expected key=value".to_owned()))?;
            if !seen.insert(key) {
                return Err(error("the key is given twice".to_owned()));
            }
            case.set(key, value).map_err(error)?;
        }
        Ok(case)
    }
}

impl Case {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn above_0<T: FromStr + Default + PartialEq>(value: &str) -> Result<T, String> {
            let number = value.parse().ok().filter(|number| *number != T::default());
            number.ok_or_else(|| "expected a number above 0".to_owned())
        }
        match key {
            "bench" => self.bench = value.parse()?,
            "window" => self.window = value.parse()?,
            "sync" => self.sync = value.parse()?,
            "bytes" => self.bytes = value.parse().map_err(|_| "expected a number of bytes")?,
            "type" => {
                let datatype: Datatype =
                    value.parse().map_err(|error| format!("not a datatype: {error}"))?;
                self.datatype = datatype.to_string();
            }
            "name" if value.is_empty() => return Err("expected a name".to_owned()),
            "name" => self.name = Some(value.to_owned()),
            "count" => self.count = above_0(value)?,
            "way" => self.way = value.parse()?,
            "by" => self.by = value.parse()?,
            "route" => {
                self.route = value
                    .parse()
                    .map_err(|error: longshore::job::UnknownWord| error.to_string())?;
            }
            "hosts" => self.hosts = above_0(value)?,
            "offset" => {
                let offset =
                    value.parse().ok().filter(|offset: &u64| offset % 8 == 0 && *offset < 4096);
                self.offset = offset.ok_or("expected a multiple of 8 below 4096")?;
            }
            "arch" => {
                let (first, second) =
                    value.split_once(',').ok_or("expected two names with a comma in between")?;
                self.arch = [first.to_owned(), second.to_owned()];
                self.architectures()?;
            }
            "threads" => self.threads = above_0(value)?,
            "ranks" => self.ranks = above_0(value)?,
            "calls" => self.calls = above_0(value)?,
            "rounds" => self.rounds = above_0(value)?,
            _ => return Err("there is no such key".to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cases_are_read_back() -> Result<(), CaseError> {
        for (at, &bench) in Bench::ALL.iter().enumerate() {
            let case = Case {
                bench,
                window: Flavor::ALL[at % Flavor::ALL.len()],
                sync: Sync::ALL[at % Sync::ALL.len()],
                bytes: 96 * at as u64,
                datatype: "U1(V:d:4:1:5)".to_owned(),
                name: (at % 2 == 0).then(|| "column".to_owned()),
                count: 3,
                way: Way::ALL[at % Way::ALL.len()],
                by: By::ALL[at % By::ALL.len()],
                route: [Routes::Best, Routes::Message][at % 2],
                hosts: 1 + at as u32 % 2,
                offset: 8 * (at as u64 % 3),
                arch: ["s390x".to_owned(), "native".to_owned()],
                threads: 1 + at as u32 % 3,
                ranks: 2 + at as u32,
                calls: 64,
                rounds: 1,
            };
            assert_eq!(case.to_string().parse::<Case>()?, case);
        }
        assert_eq!("".parse(), Ok(Case::default()));
        Ok(())
    }

    #[test]
    fn types_are_kept_in_canonical_notation() -> Result<(), CaseError> {
        assert_eq!("type=U7(V:d:4:1:5)".parse::<Case>()?.datatype, "U1(V:d:4:1:5)");
        Ok(())
    }

    #[test]
    fn representations_of_files_are_refused_for_ranks() {
        assert_eq!(["native", "s390x"].map(of_rank), [Ok(()), Ok(())]);
        assert!(["external32", "xdr"].map(of_rank).iter().all(Result::is_err));
        let unknown = of_rank("pdp11").unwrap_err();
        assert!(unknown.contains("use one of native, x86-64"), "{unknown}");
        assert!(!unknown.contains("external32") && !unknown.contains("xdr"), "{unknown}");
    }

    #[test]
    fn errors_name_the_word_and_its_problem() {
        for (line, part) in [
            ("bench=put", "expected put_latency, get_latency"),
            ("bytes", "expected key=value"),
            ("bytes=8 bytes=8", "twice"),
            ("size=8", "no such key"),
            ("type=U1(V:d:4)", "not a datatype"),
            ("arch=vax,native", "vax"),
            ("arch=native", "two"),
            ("route=fast", "best or message"),
            ("calls=0", "above 0"),
            ("offset=12", "multiple of 8"),
        ] {
            let error = line.parse::<Case>().expect_err(line).to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

//! One-sided communication (RMA) between unlike machines.
//!
//! Each process exposes a window of its memory, and the other processes put data into it and get
//! data from it. Values arrive unchanged even if byte order, word size, alignment or `long double`
//! format differ between the two machines.
//!
//! # A first program
//!
//! ```
//! use longshore::{Datatype, Info, Window};
//!
//! fn main() -> longshore::Result<()> {
//!     let rank = longshore::init()?;
//!     let world = rank.world();
//!     // The window of each rank is a matrix of 8 rows of 10 doubles.
//!     let mut window = Window::allocate(world, 8 * 10 * 8, 8, &Info::default())?;
//!     let column = rank.commit(&Datatype::vector(8, 1, 10, &Datatype::double())?)?;
//!     let next = (world.rank() + 1) % world.size();
//!     window.fence(|epoch| epoch.put(&[1.0; 8], next, 3, 1, &column))?;
//!     assert_eq!(window.get::<f64>(7 * 10 + 3)?, 1.0);
//!     window.free()?;
//!     rank.finalize()
//! }
//! ```
//!
//! `longshore run -n 4 ./program` starts the program as a job of four ranks, and `longshore run -n
//! 2 --arch native,s390x ./program` as one of unlike ranks. The command comes with the repository:
//! `cargo install --path runtime/cli`. Without a launcher, the program is a job of one rank.
//! Launchers that speak PMI-1 or PMIx can start jobs too: see [`job`].
//!
//! The [guide] leads from here to real big-endian processes and to several hosts.
//!
//! # The calls of a program
//!
//! | a program | by |
//! |---|---|
//! | joins and leaves its job | [`init`], [`Rank::finalize`] |
//! | describes data | [`Datatype`], [`#[derive(Shipable)]`](derive@Shipable), [`Rank::commit`], [`Rank::type_of`] |
//! | exposes memory | [`Window::allocate`], [`Window::create`], [`Window::allocate_shared`], [`Window::create_dynamic`] |
//! | opens an epoch | [`Window::fence`], [`Window::fences`], [`Window::lock`], [`Window::lock_all`], [`Window::start`] and [`Window::post`] |
//! | moves data within it | [`Epoch::put`], [`Epoch::get`], [`Epoch::accumulate`], [`Epoch::fetch_and_op`], [`Epoch::compare_and_swap`] |
//! | loads and stores in its own window | [`Window::get`], [`Window::set`], [`Window::local`] |
//! | sends messages, and makes collective calls | [`Communicator`] |
//! | learns what failed | [`Error`], with MPI's [`Class`] and the values in its [`ErrorKind`] |
//! | makes MPI's calls one by one, with pointers | [`Window::raw`], [`Origin::raw`], [`Destination::raw`] |
//! | is tested without a launcher | [`sim`] |
//!
//! # Numbers
//!
//! Arguments and results have the type that belongs to their kind:
//!
//! | numbers | type |
//! |---|---|
//! | ranks, sizes of communicators and groups, tags, colors, keys: special ones, such as [`PROC_NULL`], are negative | `i32` |
//! | counts of elements, displacements, displacement units, extents, addresses; sizes of windows | `i64` |
//! | lengths of Rust memory: slices, vectors, [`Buffer`] | `usize` |
//! | sizes of packed data, and positions in it | `u64` |
//!
//! They have one width on all machines, since a window of a peer may be larger than this machine's
//! memory; only lengths of Rust memory can't be. A negative count or displacement is an error that
//! names it. The values in an [`ErrorKind`] are as exact as the mistake requires, and may be wider.
//!
//! # Panics
//!
//! A panic within an epoch unwinds after the epoch's operations are complete and its locks are
//! released. The window is poisoned: later calls on it return WIN at every rank. If the panic ends
//! the program, the job ends, and `longshore run` names the rank.
//!
//! # Events
//!
//! Events for an operator go to the crate `tracing`, so a program sees them if it installs a
//! subscriber. The events are: the start of a rank, its windows, the route to each target, refusals
//! sent and received, and lost peers. A subscriber is called in the middle of calls, and while the
//! rank's engine is locked: it must make no call of this crate.
//!
//! # Structure
//!
//! ```text
//!   Rank ─ Communicator ─ Window ─ Epoch          the API of a program
//!              │             │       │
//!              │           route: Direct, Rdma or Message, per origin, target and window
//!              │             │             │
//!          barrier      memory, mapped   engine: outboxes, handlers, forms, messages
//!              │             │             │
//!              └── segment ──┘           link          (crate longshore-transport)
//!                        programs, forms               (crate shipable)
//! ```

#[cfg(feature = "ndarray")]
pub mod arrays;
mod assert;
mod barrier;
mod buffer;
mod bytes;
mod check;
mod communicator;
mod control;
mod counter;
mod dropped;
mod engine;
pub mod error;
mod flat;
mod flavor;
#[cfg(fuzzing)]
pub mod fuzzing;
mod general;
mod given;
mod group;
#[cfg(any(doc, doctest))]
pub mod guide;
pub mod job;
mod log;
mod memory;
mod notification;
mod numbers;
mod object;
mod observe;
mod origin;
mod p2p;
mod packed;
mod pointer;
mod pool;
mod port;
mod process;
mod program;
mod rank;
mod raw;
mod route;
mod sequence;
mod several;
pub mod sim;
mod special;
mod stream;
mod tap;
mod types;
mod waiter;
mod window;
#[doc(hidden)]
pub mod wire;

pub use assert::Assert;
pub use buffer::Buffer;
#[doc(hidden)]
pub use communicator::Partitioned;
pub use communicator::{
    ANY_SOURCE, ANY_TAG, Collective, Communicator, Neighbors, Operator, ROOT, SharedOperator,
    Spawn, Spawned, SplitType, UserOp,
};
pub use engine::{Policy as TargetTypes, Status, UNDEFINED};
pub use error::{Error, ErrorKind, Place, Result};
pub use flavor::{Flavor, Model};
pub use general::{Completer, General};
pub use given::Given;
pub use group::{Comparison, Group, PROC_NULL};
#[doc(hidden)]
pub use longshore_job::endpoint;
#[doc(hidden)]
pub use longshore_transport::MemoryLimit;
pub use memory::Memory;
pub use object::{Cacheable, Callbacks, ErrorHandler, Holder, Keyval, Outcome};
pub use origin::{Destination, IN_PLACE, InPlace, Origin, RankMemory, RankMemoryMut};
pub use p2p::{Envelope, Matched, Receiving, Sending};
pub use port::Port;
pub use program::{Interface, Language, SourceLine};
pub use rank::{Matching, Rank, init, init_with, watched_pages};
pub use raw::{Pointed, Promised};
pub use route::Route;
pub use several::{
    Waitable, test_some, test_some_by, wait_all, wait_all_by, wait_some, wait_some_by,
};
pub use shipable;
pub use shipable::flat::CommunicatorDescription;
pub use shipable::reduce::Op;
pub use shipable::{
    Architecture, Bounds, Class, Data, Datatype, Distribution, Element, Enum, Enumeration, Form,
    Order, Shipable, Signature, Tag, TypeClass, address, arch, c, fortran,
};
pub use stream::{Holding, Sink, Source};
pub use tap::{Direction, Tapped};
pub use types::{ForeignType, IntoTargetType, TargetType, Type};
pub use window::{
    AccumulateOps, AccumulateOrdering, Alignment, Allocated, Allocation, Attached, Buffers, Chain,
    Epoch, Fetched, Info, Local, LockType, Passive, Raw, Request, Window,
};

/// Runs the Rust code blocks of the documentation pages as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/datatypes.md")]
#[doc = include_str!("../docs/windows.md")]
struct Pages;

//! The kinds of errors, with the text and the MPI error class of each.

use shipable::Class;

use super::words::{
    address_remedy, call_name, counter_remedy, flavor_call, locale_cause, owner, range_remedy,
    rank_name, ranks, spoken, tag_name, words,
};
use crate::flavor::Flavor;
use crate::job;

/// The fault of an [`Error`](crate::Error), with its values. Rules are numbered as in
/// docs/rules.md.
///
/// Rank numbers are ranks in the job, except in [`Rank`](ErrorKind::Rank),
/// [`RankTwice`](ErrorKind::RankTwice), [`Root`](ErrorKind::Root) and
/// [`LockedWindow`](ErrorKind::LockedWindow). Of a long type only the beginning is shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A call was made before `init` had ended.
    #[error("the rank isn't initialized yet: call {} first", words().init)]
    NotInitialized,
    /// A call was made after `finalize`.
    #[error("the rank is finalized: make all calls before {}", words().finalize)]
    Finalized,
    /// The process couldn't join its job.
    #[error(transparent)]
    Job(#[from] job::Error),
    /// A datatype or form was refused.
    #[error(transparent)]
    Datatype(#[from] shipable::Error),
    /// The link to a peer failed.
    #[error(transparent)]
    Link(#[from] longshore_transport::LinkError),
    /// Shared memory failed.
    #[error(transparent)]
    Segment(#[from] longshore_transport::SegmentError),
    /// The rank isn't in the communicator or group (rule 27).
    #[error(
        "no rank {} in a communicator or group of {size}: use one from 0 up and below {size}{}",
        rank_name(*rank), if *null { format!(", or {}", words().proc_null) } else { String::new() }
    )]
    Rank {
        /// The rank that was passed.
        rank: i32,
        /// The communicator's or group's size.
        size: u32,
        /// Whether the call also accepts PROC_NULL.
        null: bool,
    },
    /// A type is received from PROC_NULL.
    #[error("{} sends no types: receive the type from the rank that built it", words().proc_null)]
    TypeOfNull,
    /// A group call names the same rank twice.
    #[error("rank {0} is named twice: name each once")]
    RankTwice(i32),
    /// A range of ranks has stride 0.
    #[error("a range of ranks with stride 0: use another stride")]
    Stride,
    /// The call can't use this group.
    #[error("{0}: pass the same group of the communicator's ranks at every member of the group")]
    Group(String),
    /// The group of a post or start contains a process outside the window's group.
    #[error(
        "process {process} of the group isn't in the window's group: name only ranks of its communicator"
    )]
    Outside {
        /// The process, by its rank in the job.
        process: u32,
    },
    /// The communicator can't be used.
    #[error("the communicator is {0}")]
    CommunicatorHandle(&'static str),
    /// The packed data is in the representation of an architecture that this rank doesn't know.
    #[error(
        "the communicator's data is in the representation of an architecture that isn't known here: \
         let its ranks pack external32"
    )]
    Unrecognised,
    /// The arguments of a pack or unpack call contradict each other.
    #[error("{0}")]
    PackArguments(String),
    /// The root isn't in the communicator.
    #[error(
        "no root {} in a communicator of {size}: use one from 0 up and below {size}, the same at all ranks",
        rank_name(*root)
    )]
    Root {
        /// The root that was passed.
        root: i32,
        /// The communicator's size.
        size: u32,
    },
    /// The elements can't be divided into equal blocks.
    #[error(
        "{count} elements don't divide into {size} equal blocks, one for each rank: pass a multiple of {size}"
    )]
    Blocks {
        /// The number of elements.
        count: u64,
        /// The number of ranks.
        size: u64,
    },
    /// The ranges don't lie within the buffer, or there isn't one for each rank.
    #[error("{0}: give each rank a range of the elements in the buffer")]
    Ranges(String),
    /// A rank's edges to itself aren't in both lists of its neighbours.
    #[error(
        "rank {rank} is {to} times among its own destinations and {from} times among its own \
         sources: each edge has to be in both lists"
    )]
    Edges {
        /// The rank.
        rank: i32,
        /// How often it is among its destinations.
        to: usize,
        /// How often it is among its sources.
        from: usize,
    },
    /// `IN_PLACE` was passed to a call that doesn't accept it.
    #[error(
        "{} isn't allowed here: only collective calls take it, and rooted ones only at the root; \
         pass a buffer", words().in_place
    )]
    InPlace,
    /// The operands of a reduction consist of several predefined types.
    #[error(
        "{datatype} isn't made of one predefined type: reduce the items of each type in a call of their own"
    )]
    NotReducible {
        /// The type.
        datatype: String,
    },
    /// An operation of the program on elements of another type than the data's.
    #[error(
        "the operation combines elements of {element}, and the data is of type {datatype}: give the \
         operation data of its element type, or define one on the data's"
    )]
    UserOperands {
        /// The element type of the operation.
        element: &'static str,
        /// The data's type.
        datatype: String,
    },
    /// The operation is only for windows.
    #[error("MPI_REPLACE and MPI_NO_OP are for windows: use another operation in a reduction")]
    NotReducing,
    /// The message of a collective call can't be decoded.
    #[error(
        "the message of another rank in a collective call can't be decoded: make the same call at all \
         ranks, with the same version of Longshore"
    )]
    Collective,
    /// The color of a split is negative.
    #[error("color {0} is negative: use 0 or more, or {none}", none = words().no_color)]
    Color(i32),
    /// All numbers of communicators, or of windows, were used.
    #[error("no number is left for another communicator or window: make fewer")]
    Numbers,
    /// The count is negative (rule 27).
    #[error("count {0} is negative: use 0 or more")]
    Count(i64),
    /// There are more elements than memory or a 64-bit count can hold.
    #[error(
        "{count} of {datatype} are more than memory, or a count of 64 bits, can hold: use fewer"
    )]
    TooLarge {
        /// The number of elements.
        count: u64,
        /// The type of the elements.
        datatype: String,
    },
    /// The tag is invalid.
    #[error("tag {}: use 0 to {max}, or {any} in a receive", tag_name(*.0), max = i32::MAX, any = words().any_tag)]
    Tag(i32),
    /// The target type is locale-specific (rule T2).
    #[error(
        "{datatype} is locale-specific{}: it is right only on this rank, so it can't be a target type; \
         {remedy}, or let the target build it and send it with {type_send}{hint}",
        locale_cause(culprit, constructor, datatype), type_send = words().type_send
    )]
    LocaleTarget {
        /// The type, in text notation.
        datatype: String,
        /// The component whose constructor made the type locale-specific, possibly the type itself.
        culprit: String,
        /// The name of that constructor.
        constructor: String,
        /// The portable replacement for that component.
        remedy: &'static str,
        /// The effect of the window's target type policy, if there is one.
        hint: std::borrow::Cow<'static, str>,
    },
    /// The target didn't build the foreign type (rule T4).
    #[error(
        "{datatype} was built at process {builder} and is right only there, but the target is process \
         {target}: ask process {target} to build the type and send it with {type_send}, or use a portable one",
        type_send = words().type_send
    )]
    ForeignTarget {
        /// The type, in its builder's language.
        datatype: String,
        /// The process that built it.
        builder: u32,
        /// The target of the operation.
        target: u32,
    },
    /// A form has a tag that this version doesn't know (rule T6).
    #[error("a form with the unknown tag {0}: origin and target are different versions")]
    UnknownTag(u8),
    /// The type can't be used (rule 18).
    #[error("the type is {0}")]
    TypeHandle(&'static str),
    /// The keyval can't be used.
    #[error("the keyval is {0}")]
    Keyval(&'static str),
    /// An attribute callback failed.
    #[error("the {which} callback of an attribute failed: {error}")]
    Callback {
        /// `copy` or `delete`.
        which: &'static str,
        /// The error that the callback returned.
        #[source]
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The type signatures at origin and target differ (rule 19).
    #[error("the signatures differ: {origin} at the origin, {target} at the target: {remedy}")]
    Signature {
        /// Count and basic types at the origin.
        origin: String,
        /// Count and basic types at the target.
        target: String,
        /// The correct call.
        remedy: String,
    },
    /// A type of an accumulate consists of several predefined types (rule 21).
    #[error(
        "{datatype}, the {role}'s type, isn't made of one predefined type, as an accumulate requires: \
         accumulate the items of each type in a call of their own{}", if *pairs { format!(", and use {} or another of MPI's pair types for pairs", words().pair_type) } else { String::new() }
    )]
    MixedTypes {
        /// The type.
        datatype: String,
        /// The argument that has this type.
        role: &'static str,
        /// Whether the operation works on pairs.
        pairs: bool,
    },
    /// The sides of an accumulate have different predefined types (rule 21).
    #[error(
        "an accumulate has one predefined type on all sides, but {datatype} is of {found} and the target's \
         type is of {wanted}: use the same, pair types included"
    )]
    OtherType {
        /// The type at the origin.
        datatype: String,
        /// Its predefined type.
        found: String,
        /// The predefined type of the target type.
        wanted: String,
    },
    /// The call takes one element of a predefined type, and this type isn't one (rule 21).
    #[error(
        "{} takes one element of a predefined type, and {datatype} isn't one: {}",
        call_name(.call, true),
        words().predefined
    )]
    NotPredefined {
        /// The call.
        call: &'static str,
        /// The type.
        datatype: String,
    },
    /// MPI_NO_OP was passed to a call that fetches nothing (rule 21).
    #[error(
        "MPI_NO_OP accumulates nothing: use it in {}, which return the target's elements",
        words().fetching
    )]
    NoOp,
    /// This version doesn't know the operation of an accumulate.
    #[error(
        "an accumulate with the unknown operation {0}: origin and target are different versions"
    )]
    UnknownOperation(u8),
    /// A request was misused (rule 13).
    #[error("{0}")]
    Request(&'static str),
    /// The items of a type that is written to overlap (rule 20).
    #[error(
        "{count} of {datatype} touch a byte twice: a type that is written to must not overlap itself"
    )]
    Overlap {
        /// The number of elements.
        count: i64,
        /// The type.
        datatype: String,
    },
    /// The target displacement is negative (rule 14).
    #[error(
        "target displacement {0} is negative: use 0 or more, in the target's displacement units"
    )]
    Displacement(i64),
    /// The operation reaches bytes outside the window (rule 14).
    #[error(
        "bytes {start} to {end} lie outside of {} window of {size} bytes (displacement {displacement} in units of {unit} \
         bytes): {}", owner(*own), range_remedy((*start, *end), *size, *displacement, *unit)
    )]
    Range {
        /// The first byte.
        start: i128,
        /// The byte after the last.
        end: i128,
        /// The window's size.
        size: u64,
        /// The displacement that was passed.
        displacement: i64,
        /// The target's displacement unit.
        unit: u32,
        /// Whether the window is the caller's own.
        own: bool,
    },
    /// The window has no notification counter with this index (rule 31).
    #[error("no notification counter {index}: {}", counter_remedy(*number))]
    Counter {
        /// The index that was passed.
        index: i32,
        /// The number of counters of each rank of the window.
        number: u16,
    },
    /// The address doesn't fit the target's pointers (rule 29).
    #[error(
        "displacement {displacement} in units of {unit} bytes lies beyond the reach of the target's pointers of {pointer} bytes: {}",
        address_remedy(*size, *pointer)
    )]
    Address {
        /// The displacement that was passed.
        displacement: i64,
        /// The target's displacement unit.
        unit: u32,
        /// The window's size. For a dynamic window: the size of the target's address space.
        size: u64,
        /// The size of the target's pointers in bytes.
        pointer: u8,
    },
    /// The caller's buffer is smaller than count and type require.
    #[error(
        "{count} of {datatype} reach bytes {start} to {end} of a buffer of {size}: pass a longer one"
    )]
    Buffer {
        /// The number of elements.
        count: i64,
        /// The type.
        datatype: String,
        /// The first byte.
        start: i128,
        /// The byte after the last.
        end: i128,
        /// The buffer's size.
        size: u64,
    },
    /// An explicit type selects padding between the members of a slice's elements.
    #[error(
        "{datatype} selects byte {byte} of a slice of {element}, which is padding: describe members only, or \
         use a Buffer, all of whose bytes are initialized"
    )]
    Padding {
        /// The type.
        datatype: String,
        /// The type of the slice's elements.
        element: String,
        /// The offset of the byte from the slice's start.
        byte: u64,
    },
    /// A slice is in the machine's representation, but the rank emulates another architecture.
    #[error(
        "this rank emulates {architecture}, but a Vec or slice is in this machine's representation: make it with \
         Rank::buffer, or pass bytes"
    )]
    Emulated {
        /// The emulated architecture.
        architecture: String,
    },
    /// The state of the epoch doesn't allow the call (rules 1 to 6, 9, 11, 12 and 25). The text has
    /// the names of calls in braces, which the error shows in the program's language.
    #[error("{}", spoken(.0))]
    Epoch(&'static str),
    /// A window can't be exposed while it is locked (rule 6); found at the target.
    #[error(
        "a post while rank {by} has the window locked, or is about to: a window can't be exposed and locked at the same \
         time (rule 6); post after its unlock"
    )]
    LockedWindow {
        /// The rank that holds the lock, numbered in the window's group.
        by: u32,
    },
    /// The call doesn't take these asserts (rule 10).
    #[error("{} takes no assert of bits {unknown:#x}: leave them out (rule 10)", call_name(.call, true))]
    Assert {
        /// The call.
        call: &'static str,
        /// The bits that the call doesn't take.
        unknown: u32,
    },
    /// The lock type is unknown (rule 10).
    #[error("lock type {0} doesn't exist: use {types} (rule 10)", types = words().lock_types)]
    LockType(i32),
    /// The window is freed (rule 25).
    #[error("the window is freed: make all calls on it before free")]
    WindowFreed,
    /// A rank panicked within an epoch of the window, so its calls no longer pair off with those of
    /// the other ranks.
    #[error(
        "rank {by} panicked within an epoch of the window, which no rank can synchronise any more: read this rank's own \
         memory if you need it, drop the window, and make another"
    )]
    WindowPoisoned {
        /// The rank that panicked.
        by: u32,
    },
    /// An argument of a call that makes a window is wrong (rule 26).
    #[error("{problem}")]
    WindowArgument {
        /// The MPI error class: SIZE, DISP, BASE or ARG.
        class: Class,
        /// The fault and its remedy.
        problem: String,
    },
    /// The call isn't for windows of this flavor (rule 16).
    #[error("{} is for a window of flavor {wanted}, but this window has flavor {flavor}: make the window with `{}`", call_name(.call, true), flavor_call(*wanted))]
    Flavor {
        /// The call.
        call: &'static str,
        /// The flavor of the window.
        flavor: Flavor,
        /// The flavor that the call requires.
        wanted: Flavor,
    },
    /// The memory is attached already (rule 15).
    #[error(
        "bytes {start:#x} to {end:#x} overlap {:#x} to {:#x}, which are attached already: detach those first (rule 15)", there.0, there.1
    )]
    AttachedTwice {
        /// The first byte.
        start: u64,
        /// The byte after the last.
        end: u64,
        /// The range that is attached already.
        there: (u64, u64),
    },
    /// An operation reaches memory outside an attachment (rule 15).
    #[error(
        "bytes {start:#x} to {end:#x} don't lie in attached memory of {}{}: use addresses of memory that is attached \
         (rule 15)", if *own { "this rank" } else { "the target" }, touched.map(|(start, end)| format!(" (an attachment has {start:#x} to {end:#x})")).unwrap_or_default()
    )]
    NotAttached {
        /// The first byte.
        start: i128,
        /// The byte after the last.
        end: i128,
        /// An attachment that contains some of the bytes.
        touched: Option<(u64, u64)>,
        /// Whether the window is the caller's own.
        own: bool,
    },
    /// The memory isn't attached to this window (rule 15).
    #[error(
        "the memory to detach isn't attached to this window: detach it once, from the window it is attached to (rule 15)"
    )]
    Detached,
    /// An emulated rank's address space has no room for the memory (rules 15 and 29).
    #[error(
        "{size} bytes don't fit the address space of this rank's pointers of {pointer} bytes: attach less, or detach some (rule 15)"
    )]
    NoAddress {
        /// The size of the memory in bytes.
        size: u64,
        /// The size of the rank's pointers in bytes.
        pointer: u8,
    },
    /// The ranks can't share the window's memory (rule 17).
    #[error(
        "{0}: make the window on ranks that can map all of it ({split}), or make it smaller (rule 17)",
        split = words().split_type
    )]
    NotShared(String),
    /// The info key doesn't take this value.
    #[error("info {key}={value}: expected {expected}")]
    Info {
        /// The info key.
        key: &'static str,
        /// The value that was passed.
        value: String,
        /// The values that the key takes.
        expected: &'static str,
    },
    /// A value doesn't fit the representation of the receiving side (rule 28).
    #[error("{0}; this item and all later ones aren't written")]
    Conversion(String),
    /// The message is longer than the buffer of its receive.
    #[error("a message of {length} bytes for a receive of at most {room}: pass a longer buffer")]
    Truncate {
        /// The packed size of the message in bytes.
        length: u64,
        /// The packed size that the buffer takes, in bytes.
        room: u64,
    },
    /// Another rank refused the operation.
    #[error("rank {by} refused the operation: {text}")]
    Refused {
        /// The rank that refused.
        by: u32,
        /// The MPI class of the rank's error.
        class: Class,
        /// The text of the rank's error.
        text: String,
    },
    /// A collective call failed at another rank, so it failed at all ranks.
    #[error("the call failed at rank {by}, so it failed at all ranks: {text}")]
    Elsewhere {
        /// The rank where it failed first.
        by: u32,
        /// The MPI class of that rank's error.
        class: Class,
        /// The text of that rank's error.
        text: String,
    },
    /// An interface, such as that of C, has found a fault in the arguments of a collective call:
    /// see [`Communicator::refuse`](crate::Communicator::refuse).
    #[error("{text}")]
    Interface {
        /// The MPI class of the fault.
        class: Class,
        /// What is wrong.
        text: String,
    },
    /// A rank that the call needs is dead or has left the job.
    #[error("rank {rank} is gone: {state}")]
    Gone {
        /// The rank that is gone.
        rank: u32,
        /// How it ended.
        state: String,
    },
    /// A rank that the call needs has failed, in a job that survives deaths.
    #[error("rank {rank} has failed: {state}")]
    Failed {
        /// The rank that has failed.
        rank: u32,
        /// How it ended.
        state: String,
    },
    /// Ranks have failed, and not all ranks of an agreement have acknowledged that.
    #[error(
        "{} failed, and not all members of the agreement had acknowledged it: call {ack} before it",
        ranks(failed), ack = words().ack_failed
    )]
    Unacknowledged {
        /// The ranks of the job that have failed.
        failed: Vec<u32>,
        /// The flag on which the members have agreed nevertheless.
        flag: i32,
    },
    /// The communicator is revoked.
    #[error(
        "the communicator is revoked, so calls on it fail: make one of the survivors ({shrink})",
        shrink = words().shrink
    )]
    Revoked,
    /// The sender's call failed, so the rest of the data won't arrive.
    #[error("rank {by} stopped sending the data, because its call failed: see its error")]
    GivenUp {
        /// The sender.
        by: u32,
    },
    /// The job is being aborted.
    #[error("the job is being aborted{}", by.map(|rank| format!(" by rank {rank}")).unwrap_or_default())]
    Aborting {
        /// The rank that asked for it; `None` if it was the launcher.
        by: Option<u32>,
    },
    /// `--check` found that the ranks make different collective calls (rule 8). Contains the
    /// report.
    #[error("ranks make different collective calls on one communicator (rule 8):\n{0}")]
    OutOfOrder(String),
    /// `--check` found ranks that wait for each other. Contains the report.
    #[error("ranks wait for each other in a circle, so none of their calls can end:\n{0}")]
    Circle(String),
    /// `--check=fail` found faults in the job.
    #[error("--check reported {0} faults: see standard error")]
    Found(u64),
    /// The ranks make different collective calls on one communicator (rule 8).
    #[error(
        "rank {peer} makes {theirs} where this rank makes {ours}: make the same collective calls in the same order at all \
         ranks of a communicator, with the same root and operation (rule 8); `longshore run --check` shows their source lines"
    )]
    Mismatch {
        /// The rank whose call differs.
        peer: u32,
        /// The rank's call.
        theirs: String,
        /// The call of this rank.
        ours: String,
    },
    /// There isn't enough memory for the data of a call.
    #[error(
        "{0} bytes for the data of a call can't be allocated: move fewer elements at a time ({limit})",
        limit = longshore_transport::MemoryLimit::find()
    )]
    NoMemory(u64),
    /// An error of the program, or of another library, in the body of an epoch. See
    /// [`Error::other`](crate::Error::other).
    #[error("{0}")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A peer sent a frame that no correct peer of this version sends.
    #[error("rank {peer} broke the protocol: {what}")]
    Protocol {
        /// The peer.
        peer: u32,
        /// The fault.
        what: String,
    },
    /// A call on a partitioned message can't be meant (MPI-5.0 section 4.2).
    #[error("{what}")]
    Partition {
        /// Its class.
        class: Class,
        /// What is wrong.
        what: String,
    },
    /// A port can't be used (MPI-5.0 section 11.4).
    #[error("the port can't be used: {0}")]
    Port(String),
    /// No port is published under the name (MPI-5.0 section 11.4.4).
    #[error("no port is published under the name {0:?}: publish one there first")]
    Name(String),
    /// A port can't be published under the name, or unpublished (MPI-5.0 section 11.4.4).
    #[error("the name {name:?} {what}")]
    Service {
        /// The name.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Processes can't be started (MPI-5.0 section 11.3).
    #[error("no process is started: {0}")]
    Spawn(String),
    /// The programs to start can't be meant (MPI-5.0 section 11.3).
    #[error("no process is started: {0}")]
    SpawnArgument(String),
    /// The call needs a launcher, and the rank was started without one.
    #[error(
        "this rank was started without a launcher, which starts processes and keeps names of ports: \
         start it by `longshore run -n 1`"
    )]
    NoLauncher,
    /// A form can't be used, received from the peer or to be sent to it.
    #[error("a form between this rank and rank {peer} can't be used: {what}")]
    Form {
        /// The peer.
        peer: u32,
        /// The fault.
        what: String,
    },
}

impl ErrorKind {
    /// The error of a collective call that failed at rank `by`, decoded from that rank's message.
    pub(crate) fn elsewhere(by: u32, class: u8, text: String) -> ErrorKind {
        ErrorKind::Elsewhere { by, class: Class::from_wire(class).unwrap_or(Class::Unknown), text }
    }
}

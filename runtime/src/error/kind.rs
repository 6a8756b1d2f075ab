//! What was wrong: the kinds of errors, their texts, and the MPI error class of each.

use shipable::datatype::Combiner;
use shipable::{Class, Datatype, Form};

use super::excerpt::excerpt;
use crate::flavor::Flavor;
use crate::job;
use crate::pointer::address_space;

/// What was wrong. The rules are numbered as in docs/rules.md. Ranks and processes that are named here are ranks in the job, but for [`Rank`](ErrorKind::Rank) and [`RankTwice`](ErrorKind::RankTwice).
/// Of a long type the beginning is shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A call before `init` has ended.
    #[error("the rank isn't initialized yet: call init first")]
    NotInitialized,
    /// A call after `finalize`.
    #[error("the rank is finalized: make all calls before finalize")]
    Finalized,
    /// The process can't join its job.
    #[error(transparent)]
    Job(#[from] job::Error),
    /// A datatype or form is refused.
    #[error(transparent)]
    Datatype(#[from] shipable::Error),
    /// The link to a peer failed.
    #[error(transparent)]
    Link(#[from] longshore_transport::LinkError),
    /// Shared memory failed.
    #[error(transparent)]
    Segment(#[from] longshore_transport::SegmentError),
    /// A rank outside of the group (rule 27).
    #[error(
        "no rank {rank} in a communicator or group of {size}: use one from 0 up and below {size}{}",
        if *null { ", or PROC_NULL" } else { "" }
    )]
    Rank {
        /// What was given.
        rank: i32,
        /// The communicator's or group's size.
        size: u32,
        /// Whether the call takes PROC_NULL too.
        null: bool,
    },
    /// A rank that is to be in a group, or out of it, twice.
    #[error("rank {0} is named twice: name each once")]
    RankTwice(i32),
    /// A range of ranks without an end.
    #[error("a range of ranks with stride 0: use another stride")]
    Stride,
    /// A group that the call can't take.
    #[error("{0}: give the same group of the communicator's own ranks at all of its members")]
    Group(String),
    /// A group for a post or start with a process that the window hasn't.
    #[error(
        "process {process} of the group isn't in the window's group: name ranks of its communicator alone"
    )]
    Outside {
        /// Who: a rank in the job, whatever its rank in a communicator is.
        process: u32,
    },
    /// A communicator that can't be used.
    #[error("the communicator is {0}")]
    CommunicatorHandle(&'static str),
    /// Packed data of an architecture that can't be read here.
    #[error(
        "the communicator's data are of an architecture that isn't recognised here: let its ranks pack external32"
    )]
    Unrecognised,
    /// Data without a buffer.
    #[error("data need a buffer: only datatypes and communicators are packed without")]
    NoBuffer,
    /// Null handles that say neither what to pack or unpack, nor what to do with it.
    #[error("{0}")]
    PackArguments(String),
    /// A root outside of the communicator.
    #[error(
        "no root {root} in a communicator of {size}: use one from 0 up and below {size}, the same at all ranks"
    )]
    Root {
        /// What was given.
        root: i32,
        /// The communicator's size.
        size: u32,
    },
    /// Elements that can't be dealt out.
    #[error(
        "{count} elements aren't {size} equal blocks, one for each rank: pass a multiple of {size}"
    )]
    Blocks {
        /// How many elements there are.
        count: u64,
        /// How many ranks.
        size: u64,
    },
    /// Blocks of elements that don't lie in their memory, or not one for each rank.
    #[error("{0}: give each rank's elements as a range of those that are there")]
    Ranges(String),
    /// A buffer that is to be another, in a call that doesn't allow it.
    #[error(
        "IN_PLACE: only collective calls take it, and those with a root at their root alone; pass a buffer"
    )]
    InPlace,
    /// Operands of a reduction that have several types.
    #[error(
        "{datatype} isn't made of one predefined type: reduce what is of one type in a call of its own"
    )]
    NotReducible {
        /// The type.
        datatype: String,
    },
    /// Operations that are for windows.
    #[error("MPI_REPLACE and MPI_NO_OP are for windows: use another operation in a reduction")]
    NotReducing,
    /// What came in a collective call is of no call of this version.
    #[error(
        "what a rank sent in a collective call can't be read: call the same one at all ranks, of one version"
    )]
    Collective,
    /// A color that is none.
    #[error("color {0} is negative: use 0 or more, or none")]
    Color(i32),
    /// There are no more contexts.
    #[error("no context is left for another communicator: make fewer")]
    Contexts,
    /// Two threads of a rank that make communicators or windows.
    #[error(
        "another thread of this rank is making a communicator or window: make one at a time at each rank"
    )]
    MakingTwo,
    /// A negative count (rule 27).
    #[error("count {0} is negative: use 0 or more")]
    Count(i64),
    /// More elements than there is room for, or than can be counted.
    #[error(
        "{count} of {datatype} are more than memory, or a count of 64 bits, can hold: use fewer"
    )]
    TooLarge {
        /// How many.
        count: u64,
        /// Their type.
        datatype: String,
    },
    /// A tag that isn't one.
    #[error("tag {0} is negative: use 0 to {max}, or ANY_TAG in a receive", max = i32::MAX)]
    Tag(i32),
    /// Rule T2.
    #[error(
        "{datatype} is locale-specific{}, right on this rank alone, hence no target type: {remedy}, or let the target build \
         it and send it with type_send{hint}",
        made_so(culprit, datatype)
    )]
    LocaleTarget {
        /// The type, in text notation.
        datatype: String,
        /// The part whose constructor made it locale-specific, perhaps itself.
        culprit: String,
        /// What to build in place of that part.
        remedy: &'static str,
        /// What the window's policy has to do with it.
        hint: &'static str,
    },
    /// Rule T3.
    #[error(
        "{datatype} is foreign, built at process {builder}: it can be the target type of an operation on that process and \
         nothing else, not {role}"
    )]
    ForeignElsewhere {
        /// The type's form in text.
        datatype: String,
        /// The process that built it.
        builder: u32,
        /// What it was used as.
        role: &'static str,
    },
    /// Rule T4.
    #[error(
        "{datatype} was built at process {builder} and is right there alone, but the target is process {target}: ask \
         process {target} to build the type and send it with type_send, or use a portable one"
    )]
    ForeignTarget {
        /// The type's form in text.
        datatype: String,
        /// The process that built it.
        builder: u32,
        /// The process that was to interpret it.
        target: u32,
    },
    /// Rule T6.
    #[error("a form with the unknown tag {0}: origin and target are different versions")]
    UnknownTag(u8),
    /// Rule 18.
    #[error("the type handle is {0}")]
    TypeHandle(&'static str),
    /// A keyval that can't be used.
    #[error("the keyval is {0}")]
    Keyval(&'static str),
    /// An attribute's callback failed.
    #[error("the {which} callback of an attribute failed: {error}")]
    Callback {
        /// `copy` or `delete`.
        which: &'static str,
        /// What it returned.
        #[source]
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Rule 19.
    #[error("the signatures differ: {origin} at the origin, {target} at the target: {remedy}")]
    Signature {
        /// Count and basic types at the origin.
        origin: String,
        /// Count and basic types at the target.
        target: String,
        /// What to write instead.
        remedy: String,
    },
    /// Rule 21, in one type.
    #[error(
        "{datatype} isn't made of one predefined type, as an accumulate wants on all sides, but is the {role}'s: accumulate \
         what is of one type in a call of its own{}", if *pairs { ", and use MPI's pair types for pairs" } else { "" }
    )]
    MixedTypes {
        /// The type.
        datatype: String,
        /// Whose it is.
        role: &'static str,
        /// Whether the operation is one on pairs.
        pairs: bool,
    },
    /// Rule 21, between the sides.
    #[error(
        "an accumulate is of one predefined type on all sides, but {datatype} is of {found} where the target's is of \
         {wanted}: use the same, pair types included"
    )]
    OtherType {
        /// The type at this rank.
        datatype: String,
        /// What it is made of.
        found: String,
        /// What the target type is made of.
        wanted: String,
    },
    /// Rule 21, of what takes one element.
    #[error(
        "{call} takes one element of a predefined type, and {datatype} isn't one: use a number or one of the types of `c` and \
         `fortran`, or get_accumulate"
    )]
    NotPredefined {
        /// The call.
        call: &'static str,
        /// The type.
        datatype: String,
    },
    /// Rule 21: MPI_NO_OP where nothing is fetched.
    #[error(
        "MPI_NO_OP accumulates nothing: use it in get_accumulate and fetch_and_op, which return what is there"
    )]
    NoOp,
    /// An operation that this version doesn't know.
    #[error(
        "an accumulate with the unknown operation {0}: origin and target are different versions"
    )]
    UnknownOperation(u8),
    /// Rule 13.
    #[error("{0}")]
    Request(&'static str),
    /// Rule 20.
    #[error(
        "{count} of {datatype} touch a byte twice: a type that is written to must not overlap itself"
    )]
    Overlap {
        /// How many.
        count: i64,
        /// The type.
        datatype: String,
    },
    /// Rule 14, the displacement itself.
    #[error(
        "target displacement {0} is negative: use 0 or more, in the target's displacement units"
    )]
    Displacement(i64),
    /// Rule 14, the bytes reached.
    #[error(
        "bytes {start} to {end} lie outside of {} window of {size} bytes (displacement {displacement} in units of {unit} \
         bytes): stay within it", whose(*own)
    )]
    Range {
        /// First byte.
        start: i128,
        /// End.
        end: i128,
        /// The window's size.
        size: u64,
        /// As given.
        displacement: i64,
        /// The target's displacement unit.
        unit: u32,
        /// Whether the window is the caller's own.
        own: bool,
    },
    /// Rule 29.
    #[error(
        "displacement {displacement} in units of {unit} bytes lies beyond what the target's pointers of {pointer} bytes reach: {}",
        within(*size, *pointer)
    )]
    Address {
        /// As given.
        displacement: i64,
        /// The target's displacement unit.
        unit: u32,
        /// The window's size; of a dynamic one what its pointers reach.
        size: u64,
        /// Bytes in the target's pointers.
        pointer: u8,
    },
    /// The caller's own buffer is smaller than what it is said to hold.
    #[error(
        "{count} of {datatype} reach bytes {start} to {end} of a buffer of {size}: pass a longer one"
    )]
    Buffer {
        /// How many.
        count: i64,
        /// The type.
        datatype: String,
        /// First byte.
        start: i128,
        /// End.
        end: i128,
        /// The buffer's size.
        size: u64,
    },
    /// An explicit type that picks what lies between the members of a slice's elements.
    #[error(
        "{datatype} picks byte {byte} of a slice of {element}, which is padding and holds nothing: describe members only, or \
         use a Buffer, which has all its bytes"
    )]
    Padding {
        /// The type.
        datatype: String,
        /// The type of the slice's elements.
        element: String,
        /// The byte, from the slice's start.
        byte: u64,
    },
    /// A slice where memory of an emulated representation is due.
    #[error(
        "this rank emulates {architecture}, but a Vec or slice is in this machine's representation: make it with \
         Rank::buffer, or pass bytes"
    )]
    Emulated {
        /// What it emulates.
        architecture: String,
    },
    /// Rules 1 to 6, 9, 11, 12 and 25: the epoch doesn't allow it.
    #[error("{0}")]
    Epoch(&'static str),
    /// Rule 6, at the owner.
    #[error(
        "a post while rank {by} has the window locked, or is about to: a window is either exposed or locked, not both at a \
         time (rule 6); post after its unlock"
    )]
    LockedWindow {
        /// Who, as a rank of the window.
        by: u32,
    },
    /// Rule 10: bits that aren't asserts of the call.
    #[error("{call} takes no assert of bits {unknown:#x}: leave them out (rule 10)")]
    Assert {
        /// The call.
        call: &'static str,
        /// The bits.
        unknown: u32,
    },
    /// Rule 10: a number that is no lock type.
    #[error("lock type {0} is none: use LOCK_SHARED or LOCK_EXCLUSIVE (rule 10)")]
    LockType(i32),
    /// Rule 25: the window is gone.
    #[error("the window is freed: nothing can be done with it any more")]
    WindowFreed,
    /// Rule 26.
    #[error("{problem}")]
    WindowArgument {
        /// SIZE, DISP, BASE or ARG.
        class: Class,
        /// What is wrong.
        problem: String,
    },
    /// Rule 16.
    #[error("{call} is for a window of flavor {wanted}, and this one's is {flavor}: make the window with `{}`", wanted.call())]
    Flavor {
        /// The call.
        call: &'static str,
        /// The window's flavor.
        flavor: Flavor,
        /// The one that the call takes.
        wanted: Flavor,
    },
    /// Rule 15: memory that is attached already.
    #[error(
        "bytes {start:#x} to {end:#x} overlap {:#x} to {:#x}, which is attached already: detach it first (rule 15)", there.0, there.1
    )]
    AttachedTwice {
        /// First byte.
        start: u64,
        /// End.
        end: u64,
        /// The range that is attached.
        there: (u64, u64),
    },
    /// Rule 15: an operation outside of what is attached.
    #[error(
        "bytes {start:#x} to {end:#x} don't lie in one attachment of {}{}: use addresses of memory that is attached \
         (rule 15)", if *own { "this rank" } else { "the target" }, touched.map(|(start, end)| format!(" (one has {start:#x} to {end:#x})")).unwrap_or_default()
    )]
    NotAttached {
        /// First byte.
        start: i128,
        /// End.
        end: i128,
        /// An attachment that has some of them.
        touched: Option<(u64, u64)>,
        /// Whether the window is the caller's own.
        own: bool,
    },
    /// Rule 15: memory that isn't attached to this window.
    #[error(
        "what is to be detached isn't attached to this window: detach it from its own, once (rule 15)"
    )]
    Detached,
    /// Rules 15 and 29: memory without an address.
    #[error(
        "{size} bytes have no place among the addresses of this rank, of {pointer} bytes: attach less, or detach some (rule 15)"
    )]
    NoAddress {
        /// Its size.
        size: u64,
        /// Bytes in the rank's pointers.
        pointer: u8,
    },
    /// Rule 17.
    #[error(
        "{0}: make the window on ranks that can map all of it (split_type), or let it be smaller (rule 17)"
    )]
    NotShared(String),
    /// A value for an info key that the key doesn't take.
    #[error("info {key}={value}: expected {expected}")]
    Info {
        /// The key.
        key: &'static str,
        /// The value given.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// Rule 28.
    #[error("{0}; that item and all after it are left unwritten")]
    Conversion(String),
    /// A message longer than the buffer of its receive.
    #[error("a message of {length} bytes for a receive of at most {room}: pass a longer buffer")]
    Truncate {
        /// Bytes in the message, packed.
        length: u64,
        /// Bytes that the buffer takes, packed.
        room: u64,
    },
    /// The other side refused the operation.
    #[error("rank {by} refused it: {text}")]
    Refused {
        /// Who.
        by: u32,
        /// The class of its error.
        class: Class,
        /// Its text.
        text: String,
    },
    /// A collective call failed at another rank, so it failed everywhere.
    #[error("it failed at rank {by}, so it failed at all: {text}")]
    Elsewhere {
        /// Where.
        by: u32,
        /// The class of its error.
        class: Class,
        /// Its text.
        text: String,
    },
    /// A rank that the call needs is gone.
    #[error("rank {rank} is gone: {state}")]
    Gone {
        /// Who.
        rank: u32,
        /// What became of it.
        state: String,
    },
    /// Data of which no more come: the sender's call failed.
    #[error("rank {by} gave up sending the data, since its call failed: see its error")]
    GivenUp {
        /// Who.
        by: u32,
    },
    /// The job is being ended.
    #[error("the job is being ended{}", by.map(|rank| format!(" by rank {rank}")).unwrap_or_default())]
    Aborting {
        /// Who asked for it; the launcher where none.
        by: Option<u32>,
    },
    /// Rule 8, where uses of windows are checked: the report.
    #[error("ranks make different collective calls on one communicator (rule 8):\n{0}")]
    OutOfOrder(String),
    /// Ranks that wait for each other, where uses of windows are checked.
    #[error("ranks wait for each other in a circle, so that none of their calls can end:\n{0}")]
    Circle(String),
    /// What was found, where that is to be an error.
    #[error("--check found {0} things to report: see standard error")]
    Found(u64),
    /// A peer sent what no peer of this version sends.
    #[error("rank {peer} broke the protocol: {what}")]
    Protocol {
        /// Who.
        peer: u32,
        /// What was wrong.
        what: String,
    },
    /// A form that a peer shipped, or was to be shipped, can't be used.
    #[error("a form between this rank and rank {peer} can't be used: {what}")]
    Form {
        /// Who.
        peer: u32,
        /// What was wrong.
        what: String,
    },
}

impl ErrorKind {
    /// What another rank said of its error.
    pub(crate) fn elsewhere(by: u32, class: u8, text: String) -> ErrorKind {
        ErrorKind::Elsewhere { by, class: Class::from_wire(class).unwrap_or(Class::Unknown), text }
    }

    pub(super) fn class(&self) -> Class {
        match self {
            ErrorKind::NotInitialized
            | ErrorKind::Finalized
            | ErrorKind::Job(_)
            | ErrorKind::Callback { .. }
            | ErrorKind::Found(_)
            | ErrorKind::MakingTwo
            | ErrorKind::GivenUp { .. }
            | ErrorKind::Link(_) => Class::Other,
            ErrorKind::Keyval(_) => Class::Keyval,
            ErrorKind::Segment(_) => Class::NoMem,
            ErrorKind::Datatype(error) => error.class(),
            ErrorKind::Rank { .. } | ErrorKind::RankTwice(_) => Class::Rank,
            ErrorKind::Stride | ErrorKind::Color(_) => Class::Arg,
            ErrorKind::Group(_) | ErrorKind::Outside { .. } => Class::Group,
            ErrorKind::Root { .. } => Class::Root,
            ErrorKind::Blocks { .. } | ErrorKind::Ranges(_) => Class::Count,
            ErrorKind::InPlace => Class::Buffer,
            ErrorKind::NotReducible { .. } => Class::Type,
            ErrorKind::NotReducing => Class::Op,
            ErrorKind::Collective => Class::Intern,
            ErrorKind::PackArguments(_) => Class::Arg,
            ErrorKind::Unrecognised => Class::UnsupportedDatarep,
            ErrorKind::CommunicatorHandle(_) => Class::Comm,
            ErrorKind::Contexts => Class::Comm,
            ErrorKind::Count(_) => Class::Count,
            ErrorKind::TooLarge { .. } => Class::ValueTooLarge,
            ErrorKind::Tag(_) => Class::Tag,
            ErrorKind::LocaleTarget { .. }
            | ErrorKind::ForeignElsewhere { .. }
            | ErrorKind::ForeignTarget { .. }
            | ErrorKind::UnknownTag(_)
            | ErrorKind::TypeHandle(_)
            | ErrorKind::Signature { .. }
            | ErrorKind::Overlap { .. }
            | ErrorKind::MixedTypes { .. }
            | ErrorKind::OtherType { .. }
            | ErrorKind::NotPredefined { .. }
            | ErrorKind::Form { .. } => Class::Type,
            ErrorKind::NoOp | ErrorKind::UnknownOperation(_) => Class::Op,
            ErrorKind::Request(_) => Class::Request,
            ErrorKind::Displacement(_) => Class::Disp,
            ErrorKind::Range { .. } | ErrorKind::Address { .. } | ErrorKind::NotAttached { .. } => {
                Class::RmaRange
            }
            ErrorKind::NoBuffer
            | ErrorKind::Buffer { .. }
            | ErrorKind::Padding { .. }
            | ErrorKind::Emulated { .. } => Class::Buffer,
            ErrorKind::Epoch(_)
            | ErrorKind::LockedWindow { .. }
            | ErrorKind::OutOfOrder(_)
            | ErrorKind::Circle(_) => Class::RmaSync,
            ErrorKind::Assert { .. } => Class::Assert,
            ErrorKind::LockType(_) => Class::Locktype,
            ErrorKind::WindowFreed => Class::Win,
            ErrorKind::Flavor { .. } => Class::RmaFlavor,
            ErrorKind::NotShared(_) => Class::RmaShared,
            ErrorKind::AttachedTwice { .. } | ErrorKind::NoAddress { .. } | ErrorKind::Detached => {
                Class::RmaAttach
            }
            ErrorKind::WindowArgument { class, .. }
            | ErrorKind::Refused { class, .. }
            | ErrorKind::Elsewhere { class, .. } => *class,
            ErrorKind::Info { .. } => Class::InfoValue,
            ErrorKind::Conversion(_) => Class::Conversion,
            ErrorKind::Truncate { .. } => Class::Truncate,
            ErrorKind::Gone { .. } | ErrorKind::Aborting { .. } => Class::ProcAborted,
            ErrorKind::Protocol { .. } => Class::Intern,
        }
    }
}

/// Rules T1 and T2, of a type that isn't portable.
pub(crate) fn locale_target(datatype: &Datatype, form: &Form, hint: &'static str) -> ErrorKind {
    let culprit = form.culprit();
    let remedy = match culprit.map(Datatype::combiner) {
        Some(Combiner::Struct | Combiner::StructInteger) => {
            "build it with simple_struct, or derive it from a #[repr(C)] struct"
        }
        Some(Combiner::Hvector | Combiner::HvectorInteger) => {
            "build it with vector, which strides in extents"
        }
        Some(Combiner::Hindexed | Combiner::HindexedInteger) => {
            "build it with indexed, which counts extents"
        }
        Some(Combiner::HindexedBlock) => "build it with indexed_block, which counts extents",
        Some(Combiner::Resized) => {
            "build it with a stride of vector, or as a larger simple_struct, in place of resized"
        }
        Some(Combiner::ValueIndex) => "use one of MPI's named pair types",
        _ => "build it of portable constructors",
    };
    let culprit = culprit.map_or("byte displacements".to_owned(), |culprit| excerpt(culprit));
    ErrorKind::LocaleTarget { datatype: excerpt(datatype), culprit, remedy, hint }
}

/// What made a type locale-specific, unless it is the type itself.
fn made_so(culprit: &str, datatype: &str) -> String {
    if culprit == datatype { String::new() } else { format!(" ({culprit} made it so)") }
}

fn whose(own: bool) -> &'static str {
    if own { "this rank's" } else { "the target's" }
}

/// What to do about a displacement that pointers don't reach.
fn within(size: u64, pointer: u8) -> String {
    match size == address_space(pointer) {
        true => "give an address of what it attached".to_owned(),
        false => format!("stay within its window of {size} bytes"),
    }
}

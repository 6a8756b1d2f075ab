//! The creation of windows: every rank offers, all compare, and either all have a window or none.
//!
//! A flavor decides only which [`Contribution`] a rank makes. [`agree`] does the rest.

mod agree;
mod build;
mod layout;
mod offer;
mod reach;

use std::panic::Location;
use std::sync::Arc;

use super::core::Core;
use super::directory::Directory;
use super::info::{Alignment, Info, check};
use super::own::find_pointed;
use super::part::{LINE, LONG, Part, lead};
use crate::communicator::{Call, Communicator};
use crate::engine::Measures;
use crate::error::{ErrorKind, Result};
use crate::flavor::Flavor;
use crate::job::Activity;
use crate::memory::{Exposed, Memory, Placed};
use crate::observe::At;
use crate::process::Process;
use crate::program::Line;
use agree::agree;
use layout::Layout;
use reach::has_direct_peers;

/// A rank's memory and where it lies.
struct Contribution {
    ground: Ground,
    measures: Measures,
    /// The part of the segment where it lies.
    part: Option<Part>,
    /// Whether the memory itself keeps this part allocated.
    placed: bool,
    /// Whether the program keeps a pointer to it.
    pointed: bool,
}

/// The memory that a rank contributes.
enum Ground {
    /// Its own.
    Own(Arc<Exposed>),
    /// A part of the memory that rank 0 allocates for all.
    Shared(Layout),
}

#[track_caller]
pub(super) fn allocate(
    communicator: &Communicator,
    size: i64,
    unit: i64,
    info: &Info,
) -> Result<Core> {
    let segment = communicator.process().segment();
    let contribute = || {
        let (size, unit) = check(size, unit, pointer(communicator))?;
        let lead = lead(size, communicator.rank() as u32, info.minimum_memory_alignment);
        let alignment = u64::from(info.minimum_memory_alignment.bytes());
        let is_short = lead == 0 && size < LONG && alignment <= LINE;
        let (part, exposed) = match is_short {
            true => {
                let piece = Arc::new(piece(communicator.process(), size)?);
                (Part { offset: piece.offset(), len: size }, Exposed::kept(piece.span(), piece))
            }
            false => {
                let part = Part::allocate(segment, size, lead)?;
                // It may be more than this process can map.
                let exposed = part.map(segment).inspect_err(|_| {
                    let _ = segment.free(part.range());
                })?;
                (part, exposed)
            }
        };
        let (ground, measures) = (Ground::Own(Arc::new(exposed)), Measures { size, unit });
        Ok(Contribution { ground, measures, part: Some(part), placed: is_short, pointed: false })
    };
    open(communicator, Flavor::Allocate, contribute, info)
}

/// A rank's part begins after the parts of the ranks before it. So all ranks learn all sizes first,
/// and rank 0 allocates the memory of all.
#[track_caller]
pub(super) fn allocate_shared(
    communicator: &Communicator,
    size: i64,
    unit: i64,
    info: &Info,
) -> Result<Core> {
    let contribute = || {
        let checked = check(size, unit, pointer(communicator));
        // A rank whose arguments are refused takes part, since the others expect its word.
        let layout = Layout::agree(communicator, &checked, info)?;
        let (size, unit) = checked?;
        let layout = layout?;
        layout.check_shareable(communicator)?;
        let segment = communicator.process().segment();
        let part = match communicator.rank() {
            0 => Some(Part::allocate(segment, layout.total, layout.lead)?),
            _ => None,
        };
        let (ground, measures) = (Ground::Shared(layout), Measures { size, unit });
        Ok(Contribution { ground, measures, part, placed: false, pointed: false })
    };
    open(communicator, Flavor::Shared, contribute, info)
}

#[track_caller]
pub(super) fn create<M: Memory>(
    communicator: &Communicator,
    memory: Result<M, ErrorKind>,
    unit: i64,
    info: &Info,
) -> Result<Core> {
    let contribute = || {
        let memory = memory?;
        check_native::<M>(communicator.process())?;
        let exposed = Exposed::created(memory)?;
        let size = exposed.span().len() as i64;
        let (size, unit) = check(size, unit, pointer(communicator))?;
        let (segment, rank) = (communicator.process().segment(), communicator.rank() as u32);
        let pointed = !M::is_enclosed();
        let (exposed, part) = match pointed {
            true => find_pointed(communicator.process(), exposed),
            false if has_direct_peers(communicator, Flavor::Create) => {
                Part::enclose(segment, exposed, rank)
            }
            false => (exposed, None),
        };
        let placed = pointed && part.is_some();
        let (ground, measures) = (Ground::Own(Arc::new(exposed)), Measures { size, unit });
        Ok(Contribution { ground, measures, part, placed, pointed })
    };
    open(communicator, Flavor::Create, contribute, info)
}

/// Memory in the segment, outside of any window.
pub(super) fn place(process: &Process, len: u64) -> Result<Arc<Placed>> {
    let (segment, len) = (process.segment(), len.max(1));
    if len < LONG {
        let placed = Arc::new(piece(process, len)?);
        process.places().add(&placed);
        return Ok(placed);
    }
    let part = Part::allocate(segment, len, lead(len, process.me().rank, Alignment::default()))?;
    let memory = part.map(segment).inspect_err(|_| {
        // There is an error to return already.
        let _ = segment.free(part.range());
    })?;
    let placed = Arc::new(Placed::new(segment, part.range(), part.offset, memory));
    process.places().add(&placed);
    Ok(placed)
}

/// Short memory in the segment, which shares pages with other such memory of this process.
fn piece(process: &Process, len: u64) -> Result<Placed> {
    let segment = process.segment();
    let range = segment.allocate_piece(len)?;
    let memory = segment.map(range).map(|mapping| Exposed::allocated(mapping, 0, len));
    let memory = memory.inspect_err(|_| {
        // There is an error to return already.
        let _ = segment.free(range);
    })?;
    Ok(Placed::new(segment, range, range.offset, memory))
}

/// Memory is attached to the window later.
#[track_caller]
pub(super) fn create_dynamic(communicator: &Communicator, info: &Info) -> Result<Core> {
    let contribute = || {
        let ground = Ground::Own(Arc::new(Exposed::created(Vec::<u8>::new())?));
        let segment = communicator.process().segment();
        let part = match has_direct_peers(communicator, Flavor::Dynamic) {
            true => Some(Part::allocate(segment, Directory::BYTES, 0)?),
            false => None,
        };
        let measures = Measures { size: 0, unit: 1 };
        Ok(Contribution { ground, measures, part, placed: false, pointed: false })
    };
    open(communicator, Flavor::Dynamic, contribute, info)
}

/// Refuses elements of more than a byte on a rank that emulates another architecture: they are in
/// this machine's representation, and the rank's memory isn't.
pub(super) fn check_native<M: Memory>(process: &Process) -> Result<()> {
    match process.me().emulated && M::native_element().is_some_and(|size| size > 1) {
        true => Err(process.me().emulated().into()),
        false => Ok(()),
    }
}

/// The user's memory out of a freed window.
pub(super) fn give_back<M: Memory>(exposed: Exposed) -> Result<M> {
    exposed.give_back().ok_or_else(|| ErrorKind::WindowFreed.into())
}

/// Bytes in this rank's pointers.
fn pointer(communicator: &Communicator) -> u8 {
    communicator.process().me().architecture.pointer().size
}

/// Opens a window of a flavor. A rank whose contribution fails still takes part in every exchange.
#[track_caller]
fn open(
    communicator: &Communicator,
    flavor: Flavor,
    contribute: impl FnOnce() -> Result<Contribution>,
    info: &Info,
) -> Result<Core> {
    let (process, caller) = (communicator.process(), Location::caller());
    let make = || {
        let contribution = contribute();
        let mut ranges = Vec::new();
        let own = contribution.as_ref().ok().filter(|contribution| !contribution.placed);
        ranges.extend(own.and_then(|contribution| contribution.part).map(Part::range));
        let opened = agree(communicator, flavor, contribution, &mut ranges, info, caller);
        if opened.is_err() {
            for range in ranges {
                // There is an error to return already.
                let _ = process.segment().free(range);
            }
        }
        opened
    };
    let opened = || {
        communicator.ready()?;
        communicator.intra()?;
        process.during(Activity::CreateWindow, 0, At::of(caller), || {
            let call = Call::new(match flavor {
                Flavor::Create => "create of a window",
                Flavor::Allocate => "allocate of a window",
                Flavor::Shared => "allocate_shared of a window",
                Flavor::Dynamic => "create_dynamic of a window",
            });
            communicator.announce(|| call.to_string(), caller)?;
            let at = communicator.begin(call);
            let core = communicator.end_call(at, make())?;
            let made = match process.checks() {
                true => Line::of(caller),
                false => Line::Rust(caller),
            };
            process.windows().made(core.parts().id(), core.card(), made);
            Ok(core)
        })
    };
    opened().map_err(|error| communicator.raised(error, flavor.call(), caller))
}

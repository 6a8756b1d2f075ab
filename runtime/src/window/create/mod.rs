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
use super::part::{Edges, Part, lead};
use crate::communicator::{Call, Communicator};
use crate::engine::Measures;
use crate::error::{ErrorKind, Result};
use crate::flavor::Flavor;
use crate::job::Activity;
use crate::memory::{Exposed, Mappings, Memory, Pages, Placed};
use crate::observe::At;
use crate::process::Process;
use agree::agree;
use layout::Layout;
use reach::has_like_peers;

/// A rank's memory and where it lies.
struct Contribution {
    ground: Ground,
    measures: Measures,
    /// The part of the segment where it lies.
    part: Option<Part>,
    /// Whether the memory itself keeps this part allocated.
    placed: bool,
    /// The bytes of the part that aren't in the segment.
    edges: Edges,
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
        let part = Part::allocate(segment, size, lead)?;
        // It may be more than this process can map.
        let exposed = part.map(segment).inspect_err(|_| {
            let _ = segment.free(part.range());
        })?;
        let (ground, measures) = (Ground::Own(Arc::new(exposed)), Measures { size, unit });
        Ok(Contribution {
            ground,
            measures,
            part: Some(part),
            placed: false,
            edges: Edges::default(),
            pointed: false,
        })
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
        let edges = Edges::default();
        Ok(Contribution { ground, measures, part, placed: false, edges, pointed: false })
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
        let near = has_like_peers(communicator);
        let (exposed, found) = match pointed {
            true => find_pointed(communicator.process(), exposed, near),
            false if near => {
                let (exposed, part) = Part::enclose(segment, exposed, rank);
                (exposed, part.map(|part| Found { part, placed: false, edges: Edges::default() }))
            }
            false => (exposed, None),
        };
        let (placed, edges) =
            found.as_ref().map_or_else(Default::default, |it| (it.placed, it.edges));
        let part = found.map(|found| found.part);
        let (ground, measures) = (Ground::Own(Arc::new(exposed)), Measures { size, unit });
        Ok(Contribution { ground, measures, part, placed, edges, pointed })
    };
    open(communicator, Flavor::Create, contribute, info)
}

/// The part of the segment where a window's memory lies.
struct Found {
    part: Part,
    placed: bool,
    edges: Edges,
}

/// Finds memory that stays in place in the segment. If like ranks are `near`, and the memory is the
/// program's own, the pages that have only this memory move there.
fn find_pointed(process: &Process, exposed: Exposed, near: bool) -> (Exposed, Option<Found>) {
    let (places, memory) = (process.places(), exposed.span());
    if let Some((allocation, offset)) = places.find(memory) {
        let part = Part { offset, len: memory.len() };
        let found = Found { part, placed: true, edges: Edges::default() };
        return (exposed.placed_in(allocation), Some(found));
    }
    if !near {
        return (exposed, None);
    }
    let mappings = Mappings::read();
    let pages = Pages::of(memory, &mappings);
    let found = places.find(pages.span).or_else(|| cover(process, &pages, &mappings));
    let Some((allocation, offset)) = found else { return (exposed, None) };
    let (skip, len) = (pages.distance(memory), memory.len());
    let edge = |bytes: i64| u16::try_from(bytes.max(0)).ok();
    let after = skip.saturating_add_unsigned(len).saturating_sub_unsigned(pages.span.len());
    let edges = edge(skip.saturating_neg()).zip(edge(after));
    let (Some((before, after)), Some(offset)) = (edges, offset.checked_add_signed(skip)) else {
        return (exposed, None);
    };
    let found = Found { part: Part { offset, len }, placed: true, edges: Edges { before, after } };
    (exposed.placed_in(allocation), Some(found))
}

/// Moves pages to the segment.
fn cover(process: &Process, pages: &Pages, mappings: &Mappings) -> Option<(Arc<Placed>, u64)> {
    if pages.span.len() == 0 {
        return None;
    }
    let segment = process.segment();
    let range = Part::allocate(segment, pages.span.len(), 0).ok()?.range();
    // Without it the progress thread writes no memory of the program's.
    let engine = process.engine();
    let placed = Placed::over(segment, range, pages, mappings);
    drop(engine);
    let Some(placed) = placed.map(Arc::new) else {
        // Messages reach the memory where it is.
        let _ = segment.free(range);
        return None;
    };
    process.places().add(&placed);
    Some((placed, range.offset))
}

/// Memory in the segment, outside of any window.
pub(super) fn place(process: &Process, len: u64) -> Result<Arc<Placed>> {
    let (segment, len) = (process.segment(), len.max(1));
    let part = Part::allocate(segment, len, lead(len, process.me().rank, Alignment::default()))?;
    let memory = part.map(segment).inspect_err(|_| {
        // There is an error to return already.
        let _ = segment.free(part.range());
    })?;
    let placed = Arc::new(Placed::new(segment, part.range(), part.offset, memory));
    process.places().add(&placed);
    Ok(placed)
}

/// Memory is attached to the window later.
#[track_caller]
pub(super) fn create_dynamic(communicator: &Communicator, info: &Info) -> Result<Core> {
    let contribute = || {
        let ground = Ground::Own(Arc::new(Exposed::created(Vec::<u8>::new())?));
        let segment = communicator.process().segment();
        let part = match has_like_peers(communicator) {
            true => Some(Part::allocate(segment, Directory::BYTES, 0)?),
            false => None,
        };
        let measures = Measures { size: 0, unit: 1 };
        let edges = Edges::default();
        Ok(Contribution { ground, measures, part, placed: false, edges, pointed: false })
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
        let opened = agree(communicator, flavor, contribution, &mut ranges, info);
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
            communicator.begin(call);
            let core = communicator.end_call(make())?;
            process.windows().made(core.parts().id(), core.card(), caller);
            Ok(core)
        })
    };
    opened().map_err(|error| communicator.raised(error, flavor.call(), caller))
}

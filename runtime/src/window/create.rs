//! The creation of windows: every rank offers, all compare, and either all have a window or none.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use longshore_transport::Range;
use serde::{Deserialize, Serialize};
use shipable::Class;

use super::core::{Core, EpochState, Target};
use super::info::{Info, check};
use crate::attribute::Card;
use crate::barrier::Barrier;
use crate::communicator::{Communicator, told};
use crate::engine::{Exposure, Ledger, Measures, Policy};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::group::Group;
use crate::job::{Activity, Routes};
use crate::memory::{Exposed, Memory};
use crate::route::{Pair, Route, choose};

/// What a rank brings to a window.
#[derive(Debug, Serialize, Deserialize)]
struct Offer {
    size: u64,
    unit: u32,
    same_layout: bool,
    /// Where its memory lies in the segment, if it does.
    range: Option<(u64, u64)>,
    /// From rank 0: where the window's barrier lies.
    barrier: Option<(u64, u64)>,
    /// The lowest number that no window of this rank had.
    number: u32,
    /// The class and text of what is wrong at this rank.
    error: Option<(u8, String)>,
}

/// A rank's memory and where it lies.
struct Brought {
    exposed: Exposed,
    measures: Measures,
    range: Option<Range>,
}

pub(super) fn allocate(
    communicator: &Communicator,
    size: i64,
    unit: i64,
    info: &Info,
) -> Result<Core> {
    let segment = communicator.process().segment();
    let bring = || {
        let (size, unit) = check(size, unit)?;
        let range = segment.allocate(size.max(1))?;
        // More than this process can map, perhaps.
        let mapping = segment.map(range).inspect_err(|_| {
            let _ = segment.free(range);
        })?;
        let exposed = Exposed::allocated(mapping, size);
        Ok(Brought { exposed, measures: Measures { size, unit }, range: Some(range) })
    };
    open(communicator, "allocate", bring, info)
}

pub(super) fn create<M: Memory>(
    communicator: &Communicator,
    memory: M,
    unit: i64,
    info: &Info,
) -> Result<Core> {
    let emulated = communicator.process().me().emulated;
    let bring = || {
        if emulated && M::native_element().is_some_and(|size| size > 1) {
            return Err(ErrorKind::Emulated.into());
        }
        let exposed = Exposed::created(memory)?;
        let (size, unit) = check(exposed.span().len() as i64, unit)?;
        Ok(Brought { exposed, measures: Measures { size, unit }, range: None })
    };
    open(communicator, "create", bring, info)
}

/// The user's memory back out of a freed window.
pub(super) fn give_back<M: Memory>(exposed: Exposed) -> Result<M> {
    exposed.give_back().ok_or_else(|| ErrorKind::WindowFreed.into())
}

fn open(
    communicator: &Communicator,
    call: &'static str,
    bring: impl FnOnce() -> Result<Brought>,
    info: &Info,
) -> Result<Core> {
    let process = communicator.process();
    process.ready()?;
    process.note(Activity::CreateWindow, 0);
    let brought = bring();
    let mut ranges = Vec::new();
    ranges.extend(brought.as_ref().ok().and_then(|brought| brought.range));
    let opened = agree(communicator, brought, &mut ranges, info);
    process.note(Activity::Computing, 0);
    if opened.is_err() {
        for range in ranges {
            // There is an error to return already.
            let _ = process.segment().free(range);
        }
    }
    let place = || Place { call, rank: process.me().rank, ..Place::default() };
    opened.map_err(|error| error.at(place))
}

/// 1. Every rank tells all others what it brings, or what is wrong with it.
/// 2. All check the same offers, so all come to the same end.
/// 3. The memory is opened to the peers, and all meet: from there on operations can come.
fn agree(
    communicator: &Communicator,
    brought: Result<Brought>,
    ranges: &mut Vec<Range>,
    info: &Info,
) -> Result<Core> {
    let process = communicator.process();
    let (me, group) = (*process.me(), communicator.group());
    let mut offer = offer(&brought, info, process.next_window());
    if communicator.rank() == 0 {
        match process.segment().allocate(Barrier::bytes(group.size() as u32)) {
            Ok(range) => {
                ranges.push(range);
                offer.barrier = Some((range.offset, range.len));
            }
            Err(error) => {
                let error = Error::from(error);
                offer.error.get_or_insert(told(&error));
            }
        }
    }
    let protocol = |peer, what: String| Error::from(ErrorKind::Protocol { peer, what });
    let offers: Vec<Offer> = communicator.tell(&offer)?;
    let Brought { exposed, measures, .. } = brought?;
    compare(&offers, group, info)?;
    let window = offers.iter().map(|offer| offer.number).max().unwrap_or(0);
    process.set_next_window(window + 1);
    let barrier = process.barrier_at(offers[0].barrier, group, communicator.rank() as u32)?;
    let exposed = Arc::new(exposed);
    let ledger = Arc::new(Ledger::new(me.size));
    let exposure = Exposure {
        window,
        exposed: exposed.clone(),
        unit: measures.unit,
        policy: info.target_types,
        group: group.clone(),
    };
    let targets = {
        let mut engine = process.engine();
        engine.state().open_window(Arc::new(exposure), ledger.clone());
        let targets = group.processes().iter().zip(&offers).map(|(&peer, offer)| {
            let (architecture, emulated) = engine
                .state()
                .representation(peer)
                .ok_or_else(|| protocol(peer, "it said no hello".to_owned()))?;
            let range = offer.range.map(|(offset, len)| Range { offset, len });
            let route = choose(Pair {
                message_only: process.routes() == Routes::Message,
                emulated: emulated || me.emulated,
                same_representation: architecture.same_representation(&me.architecture),
                reachable: range.is_some() || peer == me.rank,
            });
            let measures = Measures { size: offer.size, unit: offer.unit };
            tracing::debug!(rank = me.rank, window, peer, %route, ?measures, "target");
            Ok(Target { peer, measures, architecture, route, range, door: OnceCell::new() })
        });
        targets.collect::<Result<Box<[Target]>>>()?
    };
    let direct = targets.iter().filter(|target| target.route == Route::Direct).count();
    tracing::info!(rank = me.rank, window, ?measures, direct, of = targets.len(), "window made");
    // From here on others may use the memory, even if this rank fails to meet them: it stays theirs.
    let ranges = std::mem::take(ranges);
    process.meet(&barrier)?;
    Ok(Core {
        process: process.clone(),
        window,
        exposed,
        measures,
        policy: info.target_types,
        targets,
        ledger,
        barrier,
        communicator: communicator.share(),
        card: Card::new(process.names()),
        ranges,
        epoch: Cell::new(EpochState::Closed),
        shipped: Cell::new(false),
        matched: Cell::new(None),
    })
}

fn offer(brought: &Result<Brought>, info: &Info, number: u32) -> Offer {
    let same_layout = info.target_types == Policy::SameLayout;
    let nothing =
        Offer { size: 0, unit: 1, same_layout, range: None, barrier: None, number, error: None };
    match brought {
        Ok(Brought { measures, range, .. }) => Offer {
            size: measures.size,
            unit: measures.unit,
            range: range.map(|range| (range.offset, range.len)),
            ..nothing
        },
        Err(error) => Offer { error: Some(told(error)), ..nothing },
    }
}

/// What all ranks have to agree on; rule 26 for the info's assurances.
fn compare(offers: &[Offer], group: &Group, info: &Info) -> Result<()> {
    let failed = |(by, offer): (&u32, &Offer)| Some((*by, offer.error.clone()?));
    if let Some((by, (class, text))) = group.processes().iter().zip(offers).find_map(failed) {
        return Err(ErrorKind::elsewhere(by, class, text).into());
    }
    let differ = |what: &dyn Fn(&Offer) -> u64| {
        let other = offers.iter().position(|offer| what(offer) != what(&offers[0]))?;
        Some((other, what(&offers[other]), what(&offers[0])))
    };
    let wrong = |problem| Err(ErrorKind::WindowArgument { class: Class::Arg, problem }.into());
    if let Some((rank, ..)) = differ(&|offer| offer.same_layout.into()) {
        return wrong(format!(
            "ranks 0 and {rank} give different target_types: give the same at all ranks"
        ));
    }
    if info.same_size {
        if let Some((rank, there, here)) = differ(&|offer| offer.size) {
            return wrong(format!(
                "info same_size=true, but rank 0 gives {here} bytes and rank {rank} {there}"
            ));
        }
    }
    if info.same_disp_unit {
        if let Some((rank, there, here)) = differ(&|offer| offer.unit.into()) {
            return wrong(format!(
                "info same_disp_unit=true, but rank 0 gives {here} and rank {rank} {there}"
            ));
        }
    }
    Ok(())
}

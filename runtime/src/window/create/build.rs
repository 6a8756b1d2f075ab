//! A window built from the offers of all ranks.

use std::sync::Arc;

use longshore_transport::Range;

use super::offer::Offer;
use super::reach::{Peer, pair_with};
use super::{Contribution, Ground};
use crate::check::alignment::LINE;
use crate::communicator::Communicator;
use crate::control::Control;
use crate::endpoint::Endpoint;
use crate::engine::{Addresses, Attachments, Exposure, Ledger, Measures, Opened, Venue};
use crate::error::{Error, ErrorKind, Result};
use crate::flavor::Flavor;
use crate::memory::{Exposed, Registered};
use crate::pointer::address_space;
use crate::process::{Meeting, Process};
use crate::route::{Route, RouteFacts, choose};
use crate::window::access::Epochs;
use crate::window::core::Core;
use crate::window::directory::Directory;
use crate::window::flight::Flight;
use crate::window::info::{AccumulateOps, Info};
use crate::window::own::{Dynamic, Made, OwnMemory, Whole};
use crate::window::part::Part;
use crate::window::parts::Parts;
use crate::window::peers::{Known, Location, Peers};

/// Builds a window, and opens it to the peers.
///
/// 1. Find the control blocks and the meeting.
/// 2. Find this rank's memory; map shared memory.
/// 3. Make the table of attachments, if the window is dynamic.
/// 4. Choose the route to each rank.
/// 5. Open the window at the engine: operations can arrive from here on.
/// 6. Let a thread answer, if peers send messages.
pub(super) fn build(
    communicator: &Communicator,
    window: u32,
    contribution: Contribution,
    registered: Option<Registered>,
    offers: &[Offer],
    info: &Info,
) -> Result<Core> {
    let (process, rank) = (communicator.process(), communicator.rank() as u32);
    let (control, meeting) = control(communicator, window, offers, info)?;
    let Contribution { ground, measures, part, pointed, .. } = contribution;
    let (exposed, shared) = place(communicator, ground, measures, offers)?;
    let flavor = offers[rank as usize].flavor;
    let dynamic = match flavor {
        Flavor::Dynamic => Some(dynamic(process, part)?),
        _ => None,
    };
    let starts = shared.as_ref().map(|Shared { whole, starts }| (whole.offset, &starts[..]));
    let targets = Targets { communicator, window, offers, starts, flavor };
    let peers = targets.peers(control.clone(), meeting)?;
    let opened = match &dynamic {
        Some(dynamic) => Opened::Attached(dynamic.attachments.clone()),
        None => Opened::Whole(exposed.clone()),
    };
    let exposure = Exposure {
        window,
        _registered: registered,
        opened,
        unit: measures.unit,
        policy: info.target_types,
        same_op: info.accumulate_ops == AccumulateOps::SameOp,
        is_shared: flavor == Flavor::Shared,
        group: communicator.group().clone(),
        control,
    };
    let ledger = Arc::new(Ledger::new(process.me().size));
    process.engine().state().open_window(Arc::new(exposure), ledger.clone());
    answer_peers(process, &peers, flavor)?;
    let (direct, of) = (peers.count_by(Route::Direct), peers.len());
    tracing::info!(rank = process.me().rank, window, ?measures, direct, of, "window made");
    let whole = shared.map(|shared| shared.whole);
    let made = Made { flavor, rank, measures, exposed, whole, dynamic };
    let memory = OwnMemory::new(process.segment(), made);
    let (epochs, flight) = (Epochs::new(pointed), Flight::new(ledger));
    Ok(Core::new(Parts::new(process, window, *info, peers, epochs, memory, flight)))
}

fn protocol(peer: u32, what: &str) -> Error {
    ErrorKind::Protocol { peer, what: what.to_owned() }.into()
}

/// The control blocks of this rank's host, and how all ranks meet.
fn control(
    communicator: &Communicator,
    window: u32,
    offers: &[Offer],
    info: &Info,
) -> Result<(Arc<Control>, Meeting)> {
    let (process, group) = (communicator.process(), communicator.group());
    let rank = communicator.rank() as u32;
    let first = group.first_beside(process.hosts(), process.me().rank);
    let missing = || protocol(group.process(first), "it named no control blocks");
    let ((offset, len), barrier) = offers[first as usize].control.ok_or_else(missing)?;
    let meeting = match group.is_on_one(process.hosts()) {
        true => Meeting::Flags(process.barrier_at(barrier, group, rank)?.of_window(window)),
        false => Meeting::Messages(Venue::Window(window)),
    };
    let (place, notifications) = (Range { offset, len }, info.max_num_notify);
    let control = Control::new(process.segment(), place, group, rank, notifications)?;
    Ok((Arc::new(control.ok_or_else(missing)?), meeting))
}

/// The memory that the ranks share, and where each rank's part begins in it.
struct Shared {
    whole: Whole,
    starts: Vec<u64>,
}

/// This rank's memory, and all that is shared if it is a part of that (rule 17).
fn place(
    communicator: &Communicator,
    ground: Ground,
    measures: Measures,
    offers: &[Offer],
) -> Result<(Arc<Exposed>, Option<Shared>)> {
    let layout = match ground {
        Ground::Own(exposed) => return Ok((exposed, None)),
        Ground::Shared(layout) => layout,
    };
    let (process, first) = (communicator.process(), communicator.group().process(0));
    let offset = offers[0].offset.ok_or_else(|| protocol(first, "it shared no memory"))?;
    let part = Part { offset, len: layout.total };
    let exposed = part.map(process.segment()).map_err(|error| {
        let (me, len) = (process.me().rank, part.len);
        ErrorKind::NotShared(format!(
            "rank {me} can't map the {len} bytes that are shared: {error}"
        ))
    })?;
    let own = exposed.part(layout.starts[communicator.rank() as usize], measures.size);
    let own = own.ok_or_else(|| protocol(first, "it shared too little memory"))?;
    let whole = Whole { offset, exposed };
    Ok((Arc::new(own), Some(Shared { whole, starts: layout.starts })))
}

/// The attachments of a dynamic window, with a directory if other ranks may access them.
fn dynamic(process: &Process, part: Option<Part>) -> Result<Dynamic> {
    let me = process.me();
    let addresses = match me.emulated {
        true => Addresses::Emulated(me.architecture.pointer().size),
        false => Addresses::Real,
    };
    let attachments = Arc::new(Attachments::new(addresses));
    let directory = part.map(|part| Directory::new(process.segment(), part.offset)).transpose()?;
    Ok(Dynamic { attachments, directory })
}

/// The ranks of a window as targets, before the routes to them are chosen.
struct Targets<'a> {
    communicator: &'a Communicator,
    window: u32,
    offers: &'a [Offer],
    /// The offset of the memory that all share, and the starts of the ranks' parts in it.
    starts: Option<(u64, &'a [u64])>,
    flavor: Flavor,
}

impl Targets<'_> {
    fn peers(&self, control: Arc<Control>, meeting: Meeting) -> Result<Peers> {
        let processes = self.communicator.group().processes();
        let known = (0..).zip(processes).map(|(rank, &peer)| self.known(rank, peer));
        let is_dynamic = self.flavor == Flavor::Dynamic;
        Peers::new(self.communicator, known, is_dynamic, control, meeting)
    }

    /// The facts about a rank, with the route that they decide.
    fn known(&self, rank: usize, peer: u32) -> Result<Known> {
        let (process, offer) = (self.communicator.process(), &self.offers[rank]);
        let (me, window) = (process.me(), self.window);
        let known = process.engine().state().representation(peer);
        let known = Peer::of(known.ok_or_else(|| protocol(peer, "it said no hello"))?);
        let (architecture, alike) = (known.architecture, known.is_like(process));
        let beside = process.hosts().share(peer, me.rank);
        let offset =
            self.starts.map_or(offer.offset, |(offset, starts)| Some(offset + starts[rank]));
        // Segments begin at a page.
        let start = offset.or(offer.address).filter(|_| process.checks());
        let lead = start.map_or(0, |start| (start % LINE) as u8);
        let offset = offset.filter(|_| beside);
        let is_dynamic = self.flavor == Flavor::Dynamic;
        let (endpoint, why) = process.endpoint(peer, &architecture);
        let reachable = offset.is_some() || peer == me.rank && !is_dynamic;
        let registered = offer.key.is_some() && endpoint == Endpoint::Datagram;
        let route = choose(RouteFacts {
            beside: beside && !is_dynamic,
            ..pair_with(process, known, self.flavor, reachable, registered)
        });
        let offset = match route {
            Route::Rdma => offer.key,
            Route::Peer => offer.address,
            // Memory that all ranks share is loaded from whatever its representation.
            Route::Message if peer != me.rank && self.starts.is_none() => None,
            Route::Message | Route::Direct => offset,
        };
        // Only a rank itself knows its attachments: any address may be one.
        let space = || address_space(architecture.pointer().size);
        let size = if is_dynamic { space() } else { offer.size };
        let measures = Measures { size, unit: offer.unit };
        match beside {
            true => tracing::debug!(rank = me.rank, window, peer, %route, ?measures, "target"),
            false => tracing::debug!(
                rank = me.rank, window, peer, %route, ?measures, %endpoint, why, "target on another host"
            ),
        }
        // An attachment may be private.
        let may_be_private = route == Route::Peer || is_dynamic && route == Route::Direct;
        let has_mailbox = may_be_private && peer != me.rank && process.mailboxes().is_some();
        Ok(Known { measures, architecture, alike, route, offset, has_mailbox, lead })
    }
}

/// Lets a thread answer peers that reach this rank's memory by messages.
fn answer_peers(process: &Arc<Process>, peers: &Peers, flavor: Flavor) -> Result<()> {
    // Much of what goes to private memory goes by message, also from ranks whose memory this rank
    // reaches directly. An attachment may be private. So does what unlike ranks convert.
    let is_private = peers.own().location == Location::Private;
    let is_reached = flavor != Flavor::Dynamic && !is_private;
    let others = |route| peers.has_other_by(route);
    if others(Route::Message)
        || others(Route::Peer)
        || others(Route::Rdma)
        || others(Route::Direct) && !is_reached
        || !peers.kinds().is_empty()
    {
        process.answer_peers()?;
    }
    Ok(())
}

//! The creation of windows: every rank offers, all compare, and either all have a window or none.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::Arc;

use longshore_transport::{GRANULE, Range, Segment};
use serde::{Deserialize, Serialize};
use shipable::{Architecture, Class};

use super::accumulate::Ready;
use super::core::{Core, Whole};
use super::directory::Directory;
use super::flight::Flight;
use super::info::{AccumulateOps, Alignment, Info, check};
use super::pairs::Pairs;
use super::part::{Part, lead};
use super::state::EpochState;
use super::targets::{Known, Targets};
use crate::barrier::Barrier;
use crate::communicator::{Communicator, told};
use crate::control::Control;
use crate::endpoint::Endpoint;
use crate::engine::{Addresses, Attachments, Exposure, Ledger, Measures, Opened, Venue};
use crate::error::{Error, ErrorKind, Result};
use crate::flavor::Flavor;
use crate::group::Group;
use crate::job::{Activity, Routes};
use crate::memory::{Exposed, Memory, Registered};
use crate::object::Card;
use crate::pointer::{address_space, fits};
use crate::process::{Meeting, Process};
use crate::route::{Pair, Route, choose};

/// Where something lies in a host's segment.
type Lies = (u64, u64);

/// What a rank brings to a window.
#[derive(Debug, Serialize, Deserialize)]
struct Offer {
    flavor: Flavor,
    size: u64,
    unit: u32,
    info: Info,
    /// Where its memory begins in the segment, if it lies there; from rank 0 where everyone's does that is shared. Of a dynamic
    /// window where its directory begins.
    offset: Option<u64>,
    /// From the first rank of each host: where the control blocks lie there, and the window's barrier if all are on one.
    shared: Option<(Lies, Option<Lies>)>,
    /// The key of its memory for ranks of other hosts, if it is registered.
    key: Option<u64>,
    /// The lowest number that no window of this rank had.
    number: u32,
    /// The class and text of what is wrong at this rank.
    error: Option<(u8, String)>,
}

/// A rank's memory and where it lies.
struct Brought {
    ground: Ground,
    measures: Measures,
    part: Option<Part>,
}

enum Ground {
    /// Its own memory.
    Own(Arc<Exposed>),
    /// A part of the memory that rank 0 allocated for all.
    Shared(Layout),
}

/// Where the parts of shared memory begin, by rank, and how long it is.
struct Layout {
    /// How far into what is allocated.
    lead: u64,
    starts: Vec<u64>,
    total: u64,
}

/// What a rank tells before shared memory is laid out.
#[derive(Debug, Serialize, Deserialize)]
struct Wish {
    size: u64,
    info: Info,
    /// The class and text of what is wrong at this rank.
    error: Option<(u8, String)>,
}

#[track_caller]
pub(super) fn allocate(
    communicator: &Communicator,
    size: i64,
    unit: i64,
    info: &Info,
) -> Result<Core> {
    let segment = communicator.process().segment();
    let bring = |begun: Result<()>| {
        begun?;
        let (size, unit) = check(size, unit, pointer(communicator))?;
        let lead = lead(size, communicator.rank() as u32, info.minimum_memory_alignment);
        let part = Part::allocate(segment, size, lead)?;
        // More than this process can map, perhaps.
        let exposed = part.map(segment).inspect_err(|_| {
            let _ = segment.free(part.range());
        })?;
        let (ground, measures) = (Ground::Own(Arc::new(exposed)), Measures { size, unit });
        Ok(Brought { ground, measures, part: Some(part) })
    };
    open(communicator, Flavor::Allocate, bring, info)
}

/// Where a rank's part begins depends on the sizes of those before it: all ranks tell theirs first, and rank 0 allocates
/// the memory of all.
#[track_caller]
pub(super) fn allocate_shared(
    communicator: &Communicator,
    size: i64,
    unit: i64,
    info: &Info,
) -> Result<Core> {
    let bring = |begun: Result<()>| {
        let checked = begun.and_then(|()| check(size, unit, pointer(communicator)));
        let wish = Wish {
            size: checked.as_ref().map_or(0, |(size, _)| *size),
            info: *info,
            error: checked.as_ref().err().map(told),
        };
        let wishes: Vec<Wish> = communicator.tell(&wish)?;
        let (size, unit) = checked?;
        let layout = Layout::new(&wishes, communicator.group())?;
        check_shareable(communicator, layout.total)?;
        let segment = communicator.process().segment();
        let part = match communicator.rank() {
            0 => Some(Part::allocate(segment, layout.total, layout.lead)?),
            _ => None,
        };
        Ok(Brought { ground: Ground::Shared(layout), measures: Measures { size, unit }, part })
    };
    open(communicator, Flavor::Shared, bring, info)
}

impl Layout {
    fn new(wishes: &[Wish], group: &Group) -> Result<Layout> {
        let failed = |(by, wish): (&u32, &Wish)| Some((*by, wish.error.clone()?));
        if let Some((by, (class, text))) = group.processes().iter().zip(wishes).find_map(failed) {
            return Err(ErrorKind::elsewhere(by, class, text).into());
        }
        let infos: Vec<_> = wishes.iter().map(|wish| wish.info).collect();
        Info::check_equal(&infos)?;
        let Info { alloc_shared_noncontig, minimum_memory_alignment: alignment, .. } =
            wishes[0].info;
        let place = |end: &mut u64, (rank, wish): (u32, &Wish)| -> Option<u64> {
            let lead = || lead(wish.size, rank, alignment);
            let start = match alloc_shared_noncontig {
                true => end.checked_next_multiple_of(GRANULE)?.checked_add(lead())?,
                false => *end,
            };
            *end = start.checked_add(wish.size)?;
            Some(start)
        };
        let (mut total, ranks) = (0, (0..).zip(wishes));
        let starts: Option<_> = ranks.map(|wish| place(&mut total, wish)).collect();
        let too_long = || {
            let problem = "the parts of all ranks together are longer than 2^64 bytes".to_owned();
            ErrorKind::WindowArgument { class: Class::Size, problem }
        };
        let lead = match alloc_shared_noncontig {
            true => 0,
            false => lead(total, 0, alignment),
        };
        Ok(Layout { lead, starts: starts.ok_or_else(too_long)?, total })
    }
}

/// Rule 17, as far as everyone can tell: all ranks reach all of the memory.
fn check_shareable(communicator: &Communicator, total: u64) -> Result<()> {
    let hosts = communicator.process().hosts();
    let processes = communicator.group().processes();
    if let Some(away) = processes.iter().find(|&&peer| !hosts.share(peer, processes[0])) {
        let what = format!(
            "rank {away} runs on another host than rank {}: split the communicator by SHARED first",
            processes[0]
        );
        return Err(ErrorKind::NotShared(what).into());
    }
    let mut engine = communicator.process().engine();
    for &peer in communicator.group().processes() {
        let pointer = engine.state().representation(peer).map_or(0, |(of, _)| of.pointer().size);
        if !fits(total, pointer) {
            let what = format!(
                "rank {peer}'s pointers of {pointer} bytes can't reach the {total} bytes that are shared"
            );
            return Err(ErrorKind::NotShared(what).into());
        }
    }
    Ok(())
}

/// Bytes in this rank's pointers.
fn pointer(communicator: &Communicator) -> u8 {
    communicator.process().me().architecture.pointer().size
}

#[track_caller]
pub(super) fn create<M: Memory>(
    communicator: &Communicator,
    memory: M,
    unit: i64,
    info: &Info,
) -> Result<Core> {
    let bring = |begun: Result<()>| {
        begun?;
        check_native::<M>(communicator.process())?;
        let exposed = Exposed::created(memory)?;
        let size = exposed.span().len() as i64;
        let (size, unit) = check(size, unit, pointer(communicator))?;
        let (segment, rank) = (communicator.process().segment(), communicator.rank() as u32);
        let (exposed, part) = match M::is_enclosed() && has_like_peers(communicator) {
            true => moved_within_reach(segment, exposed, rank),
            false => (exposed, None),
        };
        let (ground, measures) = (Ground::Own(Arc::new(exposed)), Measures { size, unit });
        Ok(Brought { ground, measures, part })
    };
    let core = open(communicator, Flavor::Create, bring, info)?;
    // Whoever has another way to the memory doesn't come by here.
    core.pointed.set(!M::is_enclosed());
    Ok(core)
}

/// Whether there are other ranks that reach this one's memory directly if it lies in the segment.
fn has_like_peers(communicator: &Communicator) -> bool {
    let process = communicator.process();
    let me = process.me();
    let is_direct = |&peer: &u32| {
        let known = process.engine().state().representation(peer);
        let reachable = process.hosts().share(peer, me.rank);
        let pair = known.map(|known| pair_with(process, known, reachable, false));
        peer != me.rank && pair.is_some_and(|pair| choose(pair) == Route::Direct)
    };
    communicator.group().processes().iter().any(is_direct)
}

/// How this rank and one with a representation, emulated or not, stand to each other, whose memory it reaches directly or not, and
/// which is registered or not.
fn pair_with(
    process: &Process,
    (architecture, emulated): (Architecture, bool),
    reachable: bool,
    registered: bool,
) -> Pair {
    let me = process.me();
    Pair {
        message_only: process.routes() == Routes::Message,
        emulated: emulated || me.emulated,
        same_representation: architecture.same_representation(&me.architecture),
        reachable,
        registered,
    }
}

/// Moves memory to where like ranks reach it directly, if there is room for it. The program can't tell: it has no way to the
/// memory but the window's, until the window gives it back.
pub(super) fn moved_within_reach(
    segment: &Segment,
    exposed: Exposed,
    rank: u32,
) -> (Exposed, Option<Part>) {
    let len = exposed.span().len();
    if len == 0 {
        return (exposed, None);
    }
    let part = Part::allocate(segment, len, lead(len, rank, Alignment::default()));
    let Ok(part) = part else { return (exposed, None) };
    match part.map(segment) {
        Ok(room) => (exposed.moved_to(room), Some(part)),
        Err(_) => {
            // There is another way.
            let _ = segment.free(part.range());
            (exposed, None)
        }
    }
}

/// Memory is attached later.
#[track_caller]
pub(super) fn create_dynamic(communicator: &Communicator, info: &Info) -> Result<Core> {
    let bring = |begun: Result<()>| {
        begun?;
        let ground = Ground::Own(Arc::new(Exposed::created(Vec::<u8>::new())?));
        let segment = communicator.process().segment();
        let part = match has_like_peers(communicator) {
            true => Some(Part::allocate(segment, Directory::BYTES, 0)?),
            false => None,
        };
        Ok(Brought { ground, measures: Measures { size: 0, unit: 1 }, part })
    };
    open(communicator, Flavor::Dynamic, bring, info)
}

/// A rank that emulates another machine takes no elements of its own.
pub(super) fn check_native<M: Memory>(process: &Process) -> Result<()> {
    match process.me().emulated && M::native_element().is_some_and(|size| size > 1) {
        true => Err(process.me().emulated().into()),
        false => Ok(()),
    }
}

/// The user's memory back out of a freed window.
pub(super) fn give_back<M: Memory>(exposed: Exposed) -> Result<M> {
    exposed.give_back().ok_or_else(|| ErrorKind::WindowFreed.into())
}

#[track_caller]
fn open(
    communicator: &Communicator,
    flavor: Flavor,
    bring: impl FnOnce(Result<()>) -> Result<Brought>,
    info: &Info,
) -> Result<Core> {
    let (process, caller) = (communicator.process(), Location::caller());
    let made = || {
        communicator.ready()?;
        process.during(Activity::CreateWindow, 0, || {
            communicator.announce(|| format!("{} of a window", flavor.call()), caller)?;
            make(communicator, flavor, bring, info)
        })
    };
    made().map_err(|error| communicator.raise(error.at(|| communicator.place(flavor.call()))))
}

fn make(
    communicator: &Communicator,
    flavor: Flavor,
    bring: impl FnOnce(Result<()>) -> Result<Brought>,
    info: &Info,
) -> Result<Core> {
    let process = communicator.process();
    // Whoever may not begin says so where the others expect its word.
    let (_making, brought) = match process.begin_making() {
        Ok(making) => (Some(making), bring(Ok(()))),
        Err(error) => (None, bring(Err(error))),
    };
    let mut ranges = Vec::new();
    ranges.extend(brought.as_ref().ok().and_then(|brought| brought.part).map(Part::range));
    let opened = agree(communicator, flavor, brought, &mut ranges, info);
    if opened.is_err() {
        for range in ranges {
            // There is an error to return already.
            let _ = process.segment().free(range);
        }
    }
    opened
}

/// 1. Every rank tells all others what it brings, or what is wrong with it.
/// 2. All check the same offers, so all come to the same end.
/// 3. Each maps what is shared, opens its memory to the peers, and tells all whether it could. From there on operations
///    can come.
fn agree(
    communicator: &Communicator,
    flavor: Flavor,
    brought: Result<Brought>,
    ranges: &mut Vec<Range>,
    info: &Info,
) -> Result<Core> {
    let (process, group) = (communicator.process(), communicator.group());
    let mut offer = offer(flavor, &brought, info, process.next_window());
    let registered = match &brought {
        Ok(Brought { ground: Ground::Own(memory), .. }) => register(communicator, memory),
        _ => None,
    };
    offer.key = registered.as_ref().map(Registered::key);
    let hosts = process.hosts();
    if hosts.first_beside(group, process.me().rank) == communicator.rank() as u32 {
        let size = group.size() as u32;
        let mut allocate = |bytes| -> Result<Lies> {
            let range = process.segment().allocate(bytes)?;
            ranges.push(range);
            Ok((range.offset, range.len))
        };
        let mut shared = || {
            let barrier = hosts.hold(group).then(|| allocate(Barrier::bytes(size))).transpose()?;
            Ok((allocate(Control::bytes(size))?, barrier))
        };
        match shared() {
            Ok(shared) => offer.shared = Some(shared),
            Err(error) => _ = offer.error.get_or_insert(told(&error)),
        }
    }
    let offers: Vec<Offer> = communicator.tell(&offer)?;
    let brought = brought?;
    compare(&offers, group)?;
    let window = offers.iter().map(|offer| offer.number).max().unwrap_or(0);
    process.set_next_window(window.saturating_add(1));
    let opened = open_at(communicator, window, brought, registered, &offers, info);
    let failed = opened.as_ref().err().map(told);
    let close = || process.engine().state().close_window(window);
    let failures = match communicator.tell(&failed) {
        Ok(failures) => failures,
        Err(error) => {
            // Others may have heard that all could, and use the memory: it stays theirs. What doesn't lie in the segment they reach no more.
            ranges.clear();
            close();
            return Err(error);
        }
    };
    let elsewhere = group.processes().iter().zip(failures).find_map(|(&by, failed)| {
        let (class, text) = failed?;
        Some(ErrorKind::elsewhere(by, class, text))
    });
    match (opened, elsewhere) {
        (Ok(core), None) => Ok(Core { ranges: std::mem::take(ranges), ..core }),
        (Ok(_), Some(elsewhere)) => {
            close();
            Err(elsewhere.into())
        }
        (Err(error), _) => {
            close();
            Err(error)
        }
    }
}

/// Maps what the ranks share and lets peers in.
fn open_at(
    communicator: &Communicator,
    window: u32,
    brought: Brought,
    registered: Option<Registered>,
    offers: &[Offer],
    info: &Info,
) -> Result<Core> {
    let process = communicator.process();
    let (me, group, rank) = (*process.me(), communicator.group(), communicator.rank() as u32);
    let protocol =
        |peer, what: &str| Error::from(ErrorKind::Protocol { peer, what: what.to_owned() });
    let hosts = process.hosts();
    let first = hosts.first_beside(group, me.rank);
    let missing = || protocol(group.process(first), "it named no control blocks");
    let ((offset, len), barrier) = offers[first as usize].shared.ok_or_else(missing)?;
    let meeting = match hosts.hold(group) {
        true => Meeting::Flags(process.barrier_at(barrier, group, rank)?),
        false => Meeting::Messages(Venue::Window(window)),
    };
    let control = Control::new(process.segment(), Range { offset, len }, group, rank)?;
    let control = Arc::new(control.ok_or_else(missing)?);
    let Brought { ground, measures, part } = brought;
    let (exposed, shared) = match ground {
        Ground::Own(exposed) => (exposed, None),
        Ground::Shared(layout) => {
            let offset = offers[0]
                .offset
                .ok_or_else(|| protocol(group.process(0), "it shared no memory"))?;
            let whole = share(process, Part { offset, len: layout.total })?;
            let own = whole.exposed.part(layout.starts[rank as usize], measures.size);
            let own =
                own.ok_or_else(|| protocol(group.process(0), "it shared too little memory"))?;
            (Arc::new(own), Some((whole, layout.starts)))
        }
    };
    let flavor = offers[rank as usize].flavor;
    let is_dynamic = flavor == Flavor::Dynamic;
    let addresses = match me.emulated {
        true => Addresses::Emulated(me.architecture.pointer().size),
        false => Addresses::Real,
    };
    let attachments = is_dynamic.then(|| Arc::new(Attachments::new(addresses)));
    let directory = match part {
        Some(part) if is_dynamic => Some(Directory::new(process.segment(), part.offset)?),
        _ => None,
    };
    let opened = match &attachments {
        Some(attachments) => Opened::Attached(attachments.clone()),
        None => Opened::Whole(exposed.clone()),
    };
    let ledger = Arc::new(Ledger::new(me.size));
    let exposure = Exposure {
        window,
        _registered: registered,
        opened,
        unit: measures.unit,
        policy: info.target_types,
        same_op: info.accumulate_ops == AccumulateOps::SameOp,
        group: group.clone(),
        control: control.clone(),
    };
    let mut engine = process.engine();
    let known = (0usize..).zip(group.processes()).zip(offers).map(|((rank, &peer), offer)| {
        let (architecture, emulated) = engine
            .state()
            .representation(peer)
            .ok_or_else(|| protocol(peer, "it said no hello"))?;
        let offset = match &shared {
            Some((Whole { offset, .. }, starts)) => Some(offset + starts[rank]),
            None => offer.offset,
        };
        let offset = offset.filter(|_| hosts.share(peer, me.rank));
        let (endpoint, why) = process.endpoint(peer, &architecture);
        let reachable = offset.is_some() || peer == me.rank && !is_dynamic;
        let registered = offer.key.is_some() && endpoint == Endpoint::Datagram;
        let route = choose(pair_with(process, (architecture, emulated), reachable, registered));
        let offset = if route == Route::Rdma { offer.key } else { offset };
        // What is attached, its rank alone knows.
        let space = || address_space(architecture.pointer().size);
        let size = if is_dynamic { space() } else { offer.size };
        let measures = Measures { size, unit: offer.unit };
        match hosts.share(peer, me.rank) {
            true => tracing::debug!(rank = me.rank, window, peer, %route, ?measures, "target"),
            false => tracing::debug!(
                rank = me.rank, window, peer, %route, ?measures, %endpoint, why, "target on another host"
            ),
        }
        Ok(Known { measures, architecture, route, offset })
    });
    let targets = Targets::new(group, known)?;
    engine.state().open_window(Arc::new(exposure), ledger.clone());
    drop(engine);
    let others = |route| targets.by(route).any(|target| target != rank as usize);
    // What is attached may be out of direct reach. And this rank may reach the memory of a like one, which doesn't reach its own.
    let is_reached = !is_dynamic && targets[rank as usize].offset.is_some();
    if others(Route::Message) || others(Route::Rdma) || others(Route::Direct) && !is_reached {
        process.answer_peers()?;
    }
    let direct = targets.by(Route::Direct).count();
    tracing::info!(rank = me.rank, window, ?measures, direct, of = targets.len(), "window made");
    Ok(Core {
        process: process.clone(),
        window,
        flavor,
        exposed,
        whole: shared.map(|(whole, _)| whole),
        attachments,
        directory,
        measures,
        info: Cell::new(*info),
        targets,
        flight: Flight::new(ledger),
        meeting,
        communicator: communicator.share(),
        card: Arc::new(Card::new(process.names())),
        ranges: Vec::new(),
        control,
        epoch: Cell::new(EpochState::Closed),
        used: Cell::new(false),
        stored: Cell::new(false),
        pointed: Cell::new(false),
        claims: Cell::new(false),
        opened: RefCell::default(),
        posted: RefCell::new(None),
        caller: Cell::new(None),
        started: Cell::new((false, None)),
        matched: Cell::new(None),
        pairs: Pairs::default(),
        recent: Ready::default(),
    })
}

/// Lets like ranks of other hosts access a window's memory, if there are any. Without that there are messages.
fn register(communicator: &Communicator, memory: &Arc<Exposed>) -> Option<Registered> {
    let process = communicator.process();
    let rdma = process.rdma()?;
    let me = process.me();
    let like = |&peer: &u32| {
        let known = process.engine().state().representation(peer);
        known.is_some_and(|known| {
            let registered = process.endpoint(peer, &known.0).0 == Endpoint::Datagram;
            choose(pair_with(process, known, false, registered)) == Route::Rdma
        })
    };
    if !communicator.group().processes().iter().any(like) {
        return None;
    }
    process.expose();
    let registered = Registered::new(memory, &**rdma);
    registered.unwrap_or_else(|error| {
        tracing::warn!(rank = me.rank, %error, "can't register a window's memory");
        None
    })
}

/// Maps the memory that all ranks share (rule 17).
fn share(process: &Process, part: Part) -> Result<Whole> {
    let exposed = part.map(process.segment()).map_err(|error| {
        let (me, len) = (process.me().rank, part.len);
        ErrorKind::NotShared(format!(
            "rank {me} can't map the {len} bytes that are shared: {error}"
        ))
    })?;
    Ok(Whole { offset: part.offset, exposed })
}

fn offer(flavor: Flavor, brought: &Result<Brought>, info: &Info, number: u32) -> Offer {
    let (info, offset, shared, key, error) = (*info, None, None, None, None);
    let nothing = Offer { flavor, size: 0, unit: 1, info, offset, shared, key, number, error };
    match brought {
        Ok(Brought { measures, part, .. }) => Offer {
            size: measures.size,
            unit: measures.unit,
            offset: part.map(|part| part.offset),
            ..nothing
        },
        Err(error) => Offer { error: Some(told(error)), ..nothing },
    }
}

/// What all ranks have to agree on; rule 26 for the info's assurances.
fn compare(offers: &[Offer], group: &Group) -> Result<()> {
    let failed = |(by, offer): (&u32, &Offer)| Some((*by, offer.error.clone()?));
    if let Some((by, (class, text))) = group.processes().iter().zip(offers).find_map(failed) {
        return Err(ErrorKind::elsewhere(by, class, text).into());
    }
    let differ = |what: &dyn Fn(&Offer) -> u64| {
        let other = offers.iter().position(|offer| what(offer) != what(&offers[0]))?;
        Some((other, what(&offers[other]), what(&offers[0])))
    };
    let wrong = |problem| Err(ErrorKind::WindowArgument { class: Class::Arg, problem }.into());
    if let Some(rank) = offers.iter().position(|offer| offer.flavor != offers[0].flavor) {
        let (one, other) = (offers[0].flavor.call(), offers[rank].flavor.call());
        return wrong(format!(
            "rank 0 calls {one} and rank {rank} {other}: make a window by one call at all ranks"
        ));
    }
    let infos: Vec<_> = offers.iter().map(|offer| offer.info).collect();
    Info::check_equal(&infos)?;
    let info = infos[0];
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

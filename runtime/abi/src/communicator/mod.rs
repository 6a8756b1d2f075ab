//! Communicators (MPI-5.0 section 7.4), and groups of processes.
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | [`Comm`], the object behind a handle, and its functions |
//! | [`group`] | groups (section 7.3) |
//! | [`duplication`] | duplicates that are made with a request |
//! | [`hints`], [`promise`] | the promises that a communicator's hints make; whether they are true |
//! | [`envelope`] | statuses of messages between its members |
//!
//! Communicators that need requests, buffers or a session are made in
//! [`lifetime`](crate::collective::lifetime) and
//! [`intercommunicator`](crate::environment::intercommunicator).

pub(crate) mod duplication;
pub(crate) mod envelope;
pub(crate) mod group;
pub(crate) mod hints;
pub(crate) mod promise;

use std::any::Any;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use longshore::{Class, Communicator, Rank, SplitType};

use crate::communicator::group::{Group, compared};
use crate::communicator::hints::Promises;
use crate::edge::arg::{Address, Chars};
use crate::edge::constants::{
    COMM_NULL, COMM_SELF, COMM_TYPE_HW_GUIDED, COMM_TYPE_HW_UNGUIDED, COMM_TYPE_RESOURCE_GUIDED,
    COMM_TYPE_SHARED, COMM_WORLD, MAX_OBJECT_NAME, PROC_NULL, ROOT, UNDEFINED,
};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, Kind, Object, borrow_object, find, insert};
use crate::edge::lock::lock;
use crate::edge::{constants, state};
use crate::objects::errhandler::Errhandler;
use crate::objects::info::{self, Info, Pairs};
use crate::objects::keyval::{Attributes, Holder};
use crate::objects::object::Card;
use crate::objects::{codes, keyval};

/// How a communicator's ranks are arranged: a grid or a graph.
pub type Topology = Arc<dyn Any + Send + Sync>;

/// A communicator.
pub struct Comm {
    inner: Communicator,
    own: Arc<Own>,
}

impl Object for Comm {
    const KIND: Kind = Kind::Comm;
    const CLASS: Class = Class::Comm;
    const NULL: Handle = COMM_NULL;

    fn predefined(handle: Handle) -> Option<Arc<Comm>> {
        match handle {
            COMM_WORLD => INITIAL.get().map(|[world, _]| world.clone()),
            COMM_SELF => INITIAL.get().map(|[_, alone]| alone.clone()),
            _ => None,
        }
    }
}

impl Holder for Comm {
    fn attributes(&self) -> MutexGuard<'_, Attributes> {
        self.own.card.attributes()
    }

    fn predefined_attribute(&self, keyval: c_int) -> Option<Address> {
        static TAG_UB: c_int = c_int::MAX;
        static ANY_RANK: c_int = constants::ANY_SOURCE;
        static NO_RANK: c_int = constants::PROC_NULL;
        static NO: c_int = 0;
        match keyval {
            constants::TAG_UB => Some(Address::of(&TAG_UB)),
            constants::IO => Some(Address::of(&ANY_RANK)),
            constants::HOST => Some(Address::of(&NO_RANK)),
            constants::WTIME_IS_GLOBAL => Some(Address::of(&NO)),
            constants::LASTUSEDCODE => Some(kept(&LAST_USED, codes::last_used())),
            constants::UNIVERSE_SIZE => Some(kept(&UNIVERSE, state::get()?.rank().universe_size())),
            constants::APPNUM => {
                let number = state::get()?.rank().program_number()?;
                Some(kept(&PROGRAM, c_int::try_from(number).ok()?))
            }
            _ => None,
        }
    }
}

static LAST_USED: Mutex<Option<&'static c_int>> = Mutex::new(None);
static PROGRAM: Mutex<Option<&'static c_int>> = Mutex::new(None);
static UNIVERSE: Mutex<Option<&'static c_int>> = Mutex::new(None);

/// The address of a number that the program may read at any time. A number that changes gets a new
/// address.
fn kept(place: &Mutex<Option<&'static c_int>>, number: c_int) -> Address {
    let mut place = lock(place);
    match *place {
        Some(kept) if *kept == number => Address::of(kept),
        _ => {
            let kept: &'static c_int = Box::leak(Box::new(number));
            *place = Some(kept);
            Address::of(kept)
        }
    }
}

impl Comm {
    fn new(
        inner: Communicator,
        card: Card,
        topology: Option<Topology>,
        session: Option<u64>,
    ) -> Comm {
        let promises = Promises::of(&card.hints());
        Comm { inner, own: Arc::new(Own { card, topology, session, promises }) }
    }

    /// A handle of a communicator that comes from no other, but perhaps from a session.
    pub fn from_group(
        inner: Communicator,
        errhandler: Arc<Errhandler>,
        info: Option<&Info>,
        session: Option<u64>,
    ) -> Result<Handle> {
        let card = Card::default();
        card.set_errhandler(errhandler);
        take_hints(&card, info);
        insert(Arc::new(Comm::new(inner, card, None, session)))
    }

    /// The communicator of a handle, without a reference count. `None` outside of MPI_Init and
    /// MPI_Finalize, and for a handle that another thread may free during the call.
    #[inline]
    pub fn borrow(handle: Handle) -> Option<&'static Comm> {
        if !state::is_active() {
            return None;
        }
        match handle {
            COMM_WORLD => INITIAL.get().map(|[world, _]| &**world),
            COMM_SELF => INITIAL.get().map(|[_, alone]| &**alone),
            _ if state::is_threaded() => None,
            _ => borrow_object(handle),
        }
    }

    pub fn inner(&self) -> &Communicator {
        &self.inner
    }

    /// The ranks that this one addresses: the remote ones of an intercommunicator.
    pub fn peers(&self) -> c_int {
        self.inner.remote_group().map_or(self.inner.size(), |remote| remote.size())
    }

    /// Whether this rank has the root's part in a call.
    pub fn is_root(&self, root: c_int) -> bool {
        match self.inner.remote_group() {
            Some(_) => root == ROOT,
            None => root == self.inner.rank(),
        }
    }

    /// Whether this rank takes no data to a call with this root: an intercommunicator's root, and
    /// the other ranks of its group.
    pub fn gives_nothing(&self, root: c_int) -> bool {
        self.inner.remote_group().is_some() && matches!(root, ROOT | PROC_NULL)
    }

    /// Whether this rank takes no part in a call with this root.
    pub fn is_idle(&self, root: c_int) -> bool {
        self.inner.remote_group().is_some() && root == PROC_NULL
    }

    /// Refuses intercommunicators, for calls that aren't defined on them.
    pub fn intra(&self) -> Result<()> {
        match self.inner.remote_group() {
            None => Ok(()),
            Some(_) => {
                let what = "the call takes no intercommunicator: merge its groups first";
                Err(Fault::new(Class::Comm, what.to_owned()))
            }
        }
    }

    pub fn card(&self) -> &Card {
        &self.own.card
    }

    /// The promises of its hints.
    #[inline]
    pub fn promises(&self) -> &Promises {
        &self.own.promises
    }

    /// The number of the session that it comes from.
    pub fn session(&self) -> Option<u64> {
        self.own.session
    }

    /// The error of a rank that isn't in it.
    pub fn no_rank(&self, rank: c_int) -> Fault {
        let what = format!("there is no rank {rank} in a communicator of {}", self.peers());
        Fault::new(Class::Rank, what)
    }

    /// Its topology, if that is of this kind.
    pub fn topology<T: Any>(&self) -> Option<&T> {
        self.own.topology.as_deref()?.downcast_ref()
    }

    /// The topology of this kind, for a call that needs it.
    pub fn needed_topology<T: Any>(&self, kind: &str) -> Result<&T> {
        self.topology().ok_or_else(|| {
            let what = format!("the communicator has no {kind}: make one that has");
            Fault::new(Class::Topology, what)
        })
    }
}

/// MPI_COMM_WORLD and MPI_COMM_SELF.
static INITIAL: OnceLock<[Arc<Comm>; 2]> = OnceLock::new();

/// Makes the two communicators that exist from the start.
pub fn begin(rank: &Rank) {
    let initial = |inner: &Communicator, name: &str| {
        Arc::new(Comm::new(inner.share(), Card::named(name), None, None))
    };
    let all = [initial(rank.world(), "MPI_COMM_WORLD"), initial(rank.alone(), "MPI_COMM_SELF")];
    let _ = INITIAL.set(all);
    if let Some(parent) = rank.parent() {
        let made = insert(initial(parent, "MPI_COMM_PARENT"));
        *lock(&PARENT) = made.unwrap_or(COMM_NULL);
    }
}

/// The communicator with the ranks that had this one started, until the program frees it.
static PARENT: Mutex<Handle> = Mutex::new(COMM_NULL);

/// The handle of the communicator with the ranks that had this one started; null if there is none.
pub fn parent() -> Handle {
    *lock(&PARENT)
}

/// Forgets the communicator with the ranks that had this one started, if it is this one.
pub fn forget_parent(freed: Handle) {
    let mut parent = lock(&PARENT);
    if *parent == freed {
        *parent = COMM_NULL;
    }
}

/// A handle of a communicator that comes from that of the rank by itself.
pub fn of_alone(inner: Option<Communicator>) -> Result<Handle> {
    made(&*find::<Comm>(COMM_SELF)?, inner, Card::default())
}

/// A handle of a new communicator, with the error handler of the one that it comes from (MPI-5.0
/// section 9.3.1); null if this process isn't in it.
pub fn made(parent: &Comm, inner: Option<Communicator>, card: Card) -> Result<Handle> {
    with_topology(parent, inner, card, None)
}

/// As [`made`], with a topology.
pub fn with_topology(
    parent: &Comm,
    inner: Option<Communicator>,
    card: Card,
    topology: Option<Topology>,
) -> Result<Handle> {
    let Some(inner) = inner else { return Ok(COMM_NULL) };
    card.set_errhandler(parent.own.card.errhandler());
    insert(Arc::new(Comm::new(inner, card, topology, parent.session())))
}

/// Takes part in a collective call for which this rank has a fault, so that no other rank waits for
/// it, and returns the fault. `function` is the name of the function in the table.
pub fn refused_by(handle: Handle, function: &str, fault: Fault) -> Fault {
    let call = match function {
        "comm_accept" => "accept",
        "comm_connect" => "connect",
        "comm_spawn" | "comm_spawn_multiple" => "spawn",
        "comm_dup_with_info" => "dup",
        "comm_split" => "split",
        "comm_split_type" => "split_type",
        "comm_create" => "create",
        "comm_agree" => "agree",
        "comm_shrink" => "shrink",
        "intercomm_merge" => "merge",
        _ => "open",
    };
    match find::<Comm>(handle) {
        Ok(comm) => comm.refused(call, fault),
        // No rank waits for one that has no communicator.
        Err(_) => fault,
    }
}

impl Comm {
    /// Takes part in a collective call for which this rank has a fault, so that no other rank waits
    /// for it, and returns the fault. `call` is the method of the crate `longshore`, or `open` for
    /// that of a file.
    pub fn refused(&self, call: &str, fault: Fault) -> Fault {
        let (class, text) = (fault.class(), fault.text());
        // The error is this fault, or one of the runtime, which follows from it.
        if call == "open" {
            let problem = text.to_owned();
            let error = longshore_file::Error::Argument { class, problem };
            let _ = longshore_file::File::refuse_open(&self.inner, error);
        } else {
            let _ = self.inner.refuse(call, class, text);
        }
        fault
    }
}

pub fn comm_size(comm: &Comm) -> Result<c_int> {
    Ok(comm.inner.size())
}

pub fn comm_rank(comm: &Comm) -> Result<c_int> {
    Ok(comm.inner.rank())
}

pub fn comm_compare(one: &Comm, other: &Comm) -> Result<c_int> {
    Ok(compared(one.inner.compare(&other.inner)))
}

pub fn comm_dup(handle: Handle) -> Result<Handle> {
    dup(handle, None)
}

pub fn comm_dup_with_info(handle: Handle, info: Option<&Info>) -> Result<Handle> {
    dup(handle, info)
}

/// What a communicator has of its own. While it is being made, its handle refers to this.
pub struct Own {
    card: Card,
    topology: Option<Topology>,
    /// The number of the session that it comes from.
    session: Option<u64>,
    promises: Promises,
}

impl Object for Own {
    const KIND: Kind = Kind::Draft;
    const CLASS: Class = Class::Comm;
    const NULL: Handle = COMM_NULL;

    fn predefined(_: Handle) -> Option<Arc<Own>> {
        None
    }
}

/// What a communicator has of its own, which may be one that is being made.
pub fn own_of(handle: Handle) -> Result<Arc<Own>> {
    find::<Own>(handle).or_else(|_| Ok(find::<Comm>(handle)?.own.clone()))
}

impl Own {
    /// What a duplicate has: the attributes, the error handler and the topology.
    pub fn copy(comm: &Comm, handle: Handle, info: Option<&Info>) -> Result<Arc<Own>> {
        let card = Card::with_attributes(keyval::copy(comm, handle)?);
        card.set_errhandler(comm.card().errhandler());
        take_hints(&card, info);
        let (topology, promises) = (comm.own.topology.clone(), Promises::of(&card.hints()));
        Ok(Arc::new(Own { card, topology, session: comm.session(), promises }))
    }

    /// What a communicator of its survivors has: the error handler.
    pub fn fresh(comm: &Comm) -> Arc<Own> {
        let card = Card::default();
        card.set_errhandler(comm.card().errhandler());
        let promises = Promises::of(&card.hints());
        Arc::new(Own { card, topology: None, session: comm.session(), promises })
    }

    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The communicator that has this.
    pub fn with(self: Arc<Own>, inner: Communicator) -> Comm {
        Comm { inner, own: self }
    }
}

/// The copy functions come first: if one fails, this rank makes no communicator.
fn dup(handle: Handle, info: Option<&Info>) -> Result<Handle> {
    let comm = find::<Comm>(handle)?;
    let own = Own::copy(&comm, handle, info).map_err(|fault| comm.refused("dup", fault))?;
    insert(Arc::new(own.with(comm.inner.dup()?)))
}

pub fn comm_create(comm: &Comm, group: &Group) -> Result<Handle> {
    made(comm, comm.inner.create(group.inner())?, Card::default())
}

pub fn comm_create_group(comm: &Comm, group: &Group, tag: c_int) -> Result<Handle> {
    // A process outside of the group takes no part.
    if group.inner().rank().is_none() {
        return Ok(COMM_NULL);
    }
    made(comm, Some(comm.inner.create_group(group.inner(), tag)?), Card::default())
}

pub fn comm_split(comm: &Comm, color: c_int, key: c_int) -> Result<Handle> {
    let color = match color {
        UNDEFINED => None,
        0.. => Some(color),
        _ => {
            let what = format!("the color is {color}: use 0 or more, or MPI_UNDEFINED");
            return Err(comm.refused("split", Fault::argument(what)));
        }
    };
    made(comm, comm.inner.split(color, key)?, Card::default())
}

/// The key of an info that names a kind of hardware.
const RESOURCE: &str = "mpi_hw_resource_type";
/// The kind of hardware of ranks with one data representation.
const ARCHITECTURE: &str = "longshore:architecture";
/// The kind of hardware of ranks that can share memory.
const MEMORY: &str = "mpi_shared_memory";

pub fn comm_split_type(
    comm: &Comm,
    kind: c_int,
    key: c_int,
    info: Option<&Info>,
) -> Result<Handle> {
    match kind {
        UNDEFINED => made(comm, comm.inner.split_type(None, key)?, Card::default()),
        COMM_TYPE_SHARED => made(comm, shared(comm, key)?, Card::default()),
        COMM_TYPE_HW_GUIDED | COMM_TYPE_RESOURCE_GUIDED => {
            let resource = info.and_then(|info| info.get(RESOURCE));
            match resource.as_deref() {
                Some(ARCHITECTURE) => {
                    let alike = comm.inner.split_type(Some(SplitType::Architecture), key)?;
                    made(comm, alike, Card::default())
                }
                Some(MEMORY) => made(comm, shared(comm, key)?, Card::default()),
                // No process has hardware of another kind.
                _ => made(comm, comm.inner.split(None, key)?, Card::default()),
            }
        }
        COMM_TYPE_HW_UNGUIDED => {
            let near = shared(comm, key)?;
            // The new communicator must be smaller, so that a program that splits again and again
            // comes to an end.
            let near = match near {
                Some(near) if near.size() == comm.inner.size() => {
                    near.free()?;
                    None
                }
                near => near,
            };
            if let (Some(info), true) = (info, near.is_some()) {
                crate::objects::info::info_set(info, RESOURCE, MEMORY)?;
            }
            made(comm, near, Card::default())
        }
        _ => {
            let fault = Fault::argument(format_args!("there is no split type {kind}"));
            Err(comm.refused("split_type", fault))
        }
    }
}

/// The ranks of one host with one data representation. A program goes on to share a window among
/// them, of which it uses all memory as its own.
fn shared(comm: &Comm, key: c_int) -> Result<Option<Communicator>> {
    let Some(host) = comm.inner.split_type(Some(SplitType::Shared), key)? else { return Ok(None) };
    let alike = host.split_type(Some(SplitType::Architecture), 0)?;
    host.free()?;
    Ok(alike)
}

pub fn comm_set_name(comm: &Comm, name: &str) -> Result<()> {
    comm.own.card.set_name(name);
    Ok(())
}

pub fn comm_get_name(handle: Handle, room: Chars) -> Result<usize> {
    let name = match handle {
        COMM_NULL => "MPI_COMM_NULL".to_owned(),
        _ => find::<Comm>(handle)?.card().name(),
    };
    Ok(room.write(&name, MAX_OBJECT_NAME as usize))
}

/// Takes the hints that MPI defines for communicators. Others mean nothing here.
fn take_hints(card: &Card, info: Option<&Info>) {
    const KNOWN: [&str; 5] = [
        "mpi_assert_no_any_tag",
        "mpi_assert_no_any_source",
        "mpi_assert_exact_length",
        "mpi_assert_allow_overtaking",
        "mpi_assert_strict_persistent_collective_ordering",
    ];
    let Some(info) = info else { return };
    let mut hints = card.hints();
    for (key, value) in info.pairs() {
        let is_flag = matches!(value.as_str(), "true" | "false");
        if KNOWN.contains(&key.as_str()) && is_flag {
            info::set(&mut hints, &key, &value);
        }
    }
}

pub fn comm_set_info(comm: &Comm, info: &Info) -> Result<()> {
    take_hints(&comm.own.card, Some(info));
    comm.promises().renew(&comm.own.card.hints());
    Ok(())
}

pub fn comm_get_info(comm: &Comm) -> Result<Handle> {
    let mut hints: Pairs = comm.own.card.hints().clone();
    hints.push(info::kinds_of_memory());
    insert(Arc::new(Info::new(hints)))
}

pub fn comm_group(comm: &Comm) -> Result<Handle> {
    group::made(comm.inner.group().clone(), comm.session())
}

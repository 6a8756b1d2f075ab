//! [`Rank`]: a process as a member of its job, from `init` to `finalize`.

mod ports;

use std::any::Any;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;

use longshore_transport::shm::ShmLink;
use longshore_transport::{Journal, Link, Segment};
use shipable::{Architecture, Datatype, Element};

use crate::buffer::Buffer;
use crate::check::loads;
use crate::communicator::Communicator;
use crate::error::{ErrorKind, Result, type_string};
use crate::job::Hosts;
use crate::job::{Activity, Environment, Network, Topic};
use crate::object::{Cacheable, Callbacks, Holder, Keyval};
use crate::process::{Conduct, ForkGuard, Process, Setup};
use crate::program::{Line, SourceLine};
use crate::tap::Tapped;
use crate::types::{ForeignType, OTHER_RANK, Type};
use crate::window::Allocation;

/// This process as a rank of its job (MPI-5.0 section 11.2). [`init`] creates it,
/// [`finalize`](Rank::finalize) consumes it.
///
/// There is no global state, so several ranks can live in one process: see [`sim`](crate::sim).
///
/// Several threads of a rank may make calls at the same time, as under MPI_THREAD_MULTIPLE. Only
/// one thread at a time can use a window, which the compiler enforces.
///
/// ```
/// let rank = longshore::init()?; // without a launcher: a job of one
/// let world = rank.world();
/// println!("rank {} of {}", world.rank(), world.size());
/// world.barrier()?;
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Rank {
    process: Arc<Process>,
    world: Communicator,
    alone: Communicator,
    /// With the ranks that had this one started.
    parent: Option<Communicator>,
    _fork_guard: ForkGuard,
}

/// Joins the job that the environment describes, or makes a job of one rank.
///
/// Returns after all ranks of the job have called it. From then on, each rank knows the
/// architecture of the others.
///
/// # Errors
/// OTHER if the launcher can't be reached, if the environment names an unknown architecture or
/// route, or if a rank dies before it calls `init`.
#[doc(alias = "MPI_Init")]
#[doc(alias = "MPI_Init_thread")]
pub fn init() -> Result<Rank> {
    init_with(Matching::Signatures)
}

/// Which data match in messages and collective calls (MPI-5.0 section 3.3.1). Windows have a
/// [policy](crate::TargetTypes) of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// Data of equal type signatures, as MPI asks.
    #[default]
    Signatures,
    /// Data of equal length in bytes too, between ranks that both ask for it. Programs in C send
    /// MPI_LONG and receive MPI_INT64_T, or MPI_BYTE. In messages between two representations, both
    /// types must have the same bytes at both ranks. Collective calls match so only if all ranks
    /// have one representation.
    ///
    /// They also give hints and asserts that turn out false, which other libraries ignore. With
    /// this value, such a call works as if the promise hadn't been given, and only `--check`
    /// reports it.
    Lengths,
}

/// [`init`], with the data that match in messages and collective calls. Ranks tell each other when
/// they join.
///
/// ```
/// let rank = longshore::init_with(longshore::Matching::Lengths)?;
/// let mut bytes = [0u8; 8];
/// rank.alone().send(&[1.0], 0, 0)?;
/// rank.alone().recv(&mut bytes, 0, 0)?;
/// assert_eq!(bytes, 1f64.to_ne_bytes());
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// Those of [`init`].
pub fn init_with(matching: Matching) -> Result<Rank> {
    let by_length = matching == Matching::Lengths;
    if let Some(most) = crate::job::log_level()? {
        crate::log::start(most);
    }
    // Long transfers read it later, where no call can return the error.
    crate::job::threads()?;
    let adversary = crate::job::adversary()?;
    let (check, ladder) = (crate::job::checking()?, crate::job::ladder()?);
    let room = crate::job::room()?;
    let Some(mut environment) = Environment::from_env()? else {
        let segment = Segment::create(1)?.as_rank(0)?;
        let link = Box::new(ShmLink::new(segment.clone())?);
        let mut setup = Setup {
            conduct: Conduct { routes: crate::job::routes()?, ladder, adversary, check },
            room,
            whole: true,
            by_length,
            ..Setup::new(segment, link)
        };
        if let Some(architecture) = crate::job::architecture()? {
            setup.architecture = architecture;
        }
        return Rank::start(setup);
    };
    let duplicate = environment.segment.try_clone();
    let fd = duplicate.map_err(crate::job::Error::Segment)?;
    let first = environment.start.first;
    let segment = Segment::attach(fd, first + environment.rank)?;
    let near = ShmLink::new(segment.clone())?;
    let (hosts, secret) = (environment.hosts.clone(), environment.secret.bytes());
    let link = join(&segment, near, &hosts, environment.network.take(), secret)?;
    let conduct = Conduct { routes: environment.routes, ladder, adversary, check };
    let mut setup =
        Setup { conduct, whole: true, by_length, room, hosts, ..Setup::new(segment, link) };
    if let Some(architecture) = crate::job::architecture()? {
        setup.architecture = architecture;
    }
    setup.world = Some(first..first + environment.size);
    setup.on_death = environment.on_death;
    if let Some(journal) = environment.journal.take() {
        setup.journal = Some(Journal::open(journal)?);
    }
    setup.progress = environment.progress;
    // A rank's own processors may be fewer, since the launcher binds it.
    setup.processors = environment.processors.or(setup.processors);
    if setup.hosts.is_one() {
        // Jobs on several hosts prove the secret while they connect, so it must not be sent in
        // hello frames.
        setup.secret = environment.secret.bytes().to_vec().into();
    }
    let parent = environment.start.parent.take();
    setup.environment = Some(environment);
    let mut rank = Rank::start(setup)?;
    if let Some(port) = parent {
        rank.meet_parent(&port)?;
    }
    Ok(rank)
}

/// Combines the link within this host with the network's, if the job has a network.
fn join(
    segment: &Segment,
    near: ShmLink,
    hosts: &Hosts,
    network: Option<Network>,
    secret: &[u8],
) -> Result<Box<dyn Link>> {
    Ok(match network {
        Some(network) => network.join(segment, near, hosts, secret)?,
        None => Box::new(near),
    })
}

impl Rank {
    /// Joins the job. Returns after all its ranks have joined.
    pub(crate) fn start(setup: Setup) -> Result<Rank> {
        let (process, meeting) = setup.start()?;
        let world = Communicator::world(process.clone(), meeting);
        let alone = Communicator::alone(process.clone());
        let _fork_guard = ForkGuard::new(&process);
        Ok(Rank { process, world, alone, parent: None, _fork_guard })
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The communicator of all ranks of the job: MPI_COMM_WORLD.
    pub fn world(&self) -> &Communicator {
        &self.world
    }

    /// The communicator that contains only this rank: MPI_COMM_SELF.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert_eq!((rank.alone().rank(), rank.alone().size()), (0, 1));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn alone(&self) -> &Communicator {
        &self.alone
    }

    /// The data representation of this rank's memory: the machine's, or the emulated one.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// // `longshore run --arch s390x` makes the rank emulate another representation.
    /// let native = rank.architecture().same_representation(&longshore::Architecture::NATIVE);
    /// assert_eq!(rank.is_emulated(), !native);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn architecture(&self) -> &Architecture {
        &self.process.me().architecture
    }

    /// The data representation of a process that this rank knows, by its rank in the job.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let me = rank.world().group().processes()[rank.world().rank() as usize];
    /// assert_eq!(rank.representation_of(me)?, *rank.architecture());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RANK for a process that this rank doesn't know.
    pub fn representation_of(&self, process: u32) -> Result<Architecture> {
        let found = self.process.engine().state().representation(process);
        let size = self.process.me().size;
        let unknown = || ErrorKind::Rank { rank: process as i32, size, null: false };
        Ok(found.ok_or_else(unknown)?.0)
    }

    /// Whether this rank's data representation differs from its machine's.
    pub fn is_emulated(&self) -> bool {
        self.process.me().emulated
    }

    /// Commits a datatype for this rank's memory (MPI-5.0 section 5.1.9).
    ///
    /// # Errors
    /// TYPE if this rank's architecture can't represent the datatype, for instance because it lacks
    /// a Fortran kind. OTHER after [`finalize`](Rank::finalize).
    #[doc(alias = "MPI_Type_commit")]
    pub fn commit(&self, datatype: &Datatype) -> Result<Type> {
        self.process.ready()?;
        self.process.elements().commit(datatype)
    }

    /// A type of this rank as if it had sent the type to itself: the target type of operations of
    /// this rank on itself, where a locale-specific type is none (rule T2). Takes no message.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// use longshore::Datatype;
    ///
    /// let members = [Datatype::int(), Datatype::double()];
    /// let pair = rank.commit(&Datatype::struct_(&[1, 1], &[0, 16], &members)?)?;
    /// let own = rank.foreign(&pair)?;
    /// let mut window = Window::allocate(rank.world(), 64, 1, &Info::default())?;
    /// let me = rank.world().rank();
    /// let mut memory = [0u8; 24];
    /// memory[..4].copy_from_slice(&7i32.to_ne_bytes());
    /// let origin = longshore::Origin::typed(&memory[..], 1, &pair);
    /// window.fence(|epoch| epoch.put(origin, me, 0, 1, &own))?;
    /// assert_eq!(window.get::<i32>(0)?, 7);
    /// window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a type of another rank. OTHER after [`finalize`](Rank::finalize).
    pub fn foreign(&self, datatype: &Type) -> Result<ForeignType> {
        self.process.ready()?;
        if !datatype.is_of(self.process.names()) {
            return Err(OTHER_RANK.into());
        }
        let me = self.process.me();
        let form = datatype.form().to_locale(&me.architecture)?;
        ForeignType::new(self.process.names(), form, type_string(datatype.datatype()), me.rank)
    }

    /// Creates a key for attributes of types, communicators or windows (MPI-5.0 section 7.7.2). The
    /// callbacks run when an object with such an attribute is duplicated or freed. See [`Keyval`].
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::{Callbacks, Communicator, Keyval};
    ///
    /// let level: Keyval<Communicator, u32> = rank.create_keyval(Callbacks::default())?;
    /// rank.world().set_attr(&level, 3u32)?;
    /// assert_eq!(*rank.world().attr(&level)?.unwrap(), 3);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// OTHER after [`finalize`](Rank::finalize).
    #[doc(alias = "MPI_Win_create_keyval")]
    #[doc(alias = "MPI_Comm_create_keyval")]
    #[doc(alias = "MPI_Type_create_keyval")]
    pub fn create_keyval<K: Cacheable, T: Any + Send + Sync>(
        &self,
        callbacks: Callbacks<T>,
    ) -> Result<Keyval<K, T>> {
        self.process.ready()?;
        Ok(Keyval::new(self.process.names(), callbacks))
    }

    /// Registers a handler that is called whenever a type of this rank is freed. The type
    /// is still valid during the call.
    ///
    /// A type is freed by `free` of one of its references, and by the drop of the last one.
    /// Predefined types are never freed.
    ///
    /// Packages use it to drop data that they keep for a type. Each call adds one handler.
    /// [`finalize`](Rank::finalize) drops all handlers, and with them any types that they own.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::sync::Arc;
    ///
    /// # let rank = longshore::init()?;
    /// let freed = Arc::new(AtomicUsize::new(0));
    /// let count = freed.clone();
    /// rank.type_free_handler(move |_| {
    ///     count.fetch_add(1, Ordering::Relaxed);
    /// })?;
    /// rank.commit(&longshore::Datatype::contiguous(3, &longshore::Datatype::int())?)?.free()?;
    /// assert_eq!(freed.load(Ordering::Relaxed), 1);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// OTHER after [`finalize`](Rank::finalize).
    pub fn type_free_handler(
        &self,
        handler: impl Fn(&Holder<'_>) + Send + Sync + 'static,
    ) -> Result<()> {
        self.process.ready()?;
        self.process.names().add_free_handler(Arc::new(handler));
        Ok(())
    }

    /// The committed type of `T` in this rank's memory. It is portable for numbers, and for structs
    /// with the layout of C.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let long = rank.type_of::<longshore::c::Long>()?;
    /// assert_eq!(long.to_string(), "l");
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a struct with a layout of its own, if this rank emulates another architecture: the
    /// struct has no layout there.
    pub fn type_of<T: Element>(&self) -> Result<Type> {
        self.process.elements().in_memory::<T>().cloned()
    }

    /// Allocates memory for `len` elements in this rank's representation. All bytes are zero.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let values = rank.buffer::<f64>(100)?;
    /// assert_eq!((values.len(), values.get(99)?), (100, 0.0));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// VALUE_TOO_LARGE for more bytes than this machine can address; otherwise the errors of
    /// [`type_of`](Rank::type_of).
    pub fn buffer<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(self.process.elements(), &self.process.me().architecture, len)
    }

    /// Allocates memory for copies of elements, in this rank's representation.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let values = rank.buffer_from(&[1.5, 2.5])?;
    /// assert_eq!((values.len(), values.get(1)?), (2, 2.5));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`buffer`](Rank::buffer), and CONVERSION for a value that this rank's
    /// representation can't hold.
    pub fn buffer_from<T: Element>(&self, values: &[T]) -> Result<Buffer<T>> {
        let mut buffer = self.buffer(values.len())?;
        buffer.write(0, values)?;
        Ok(buffer)
    }

    /// Promises that one thread at a time makes calls, so that no thread can end the call of
    /// another one, as programs below MPI_THREAD_MULTIPLE do (MPI-5.0 section 11.2.1). Under
    /// `--check`, mismatches are then reported even if the process has other threads, or if these
    /// can't be counted: in a job on several hosts, and in a simulation. `false` takes the promise
    /// back.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// rank.promise_one_thread(true);
    /// rank.world().barrier()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn promise_one_thread(&self, promised: bool) {
        self.process.promise_one_thread(promised);
    }

    /// The texts of all reports so far about uses of windows, by this rank or in its windows. Empty
    /// unless checking is on ([`Checking`](crate::job::Checking)).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// // Reports appear under `longshore run --check`.
    /// for report in rank.reports() {
    ///     eprintln!("{report}");
    /// }
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn reports(&self) -> Vec<String> {
        let mut engine = self.process.engine();
        let check = engine.state().check();
        check.map_or_else(Vec::new, |check| check.texts().to_vec())
    }

    /// Whether uses are checked, for an interface in another language that prepares a report.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert!(!rank.is_checked() || rank.reports().is_empty());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn is_checked(&self) -> bool {
        self.process.checks()
    }

    /// Under `--check`, reports a fault that an interface in another language has found, if `text`
    /// finds one and its topic is reported. Those of one `kind` are reported once. [Notes] are
    /// remarks, and no faults.
    ///
    /// [Notes]: Topic::Notes
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::job::Topic;
    ///
    /// rank.report(Topic::Windows, "info no_lock", || Some("check: no_locks?\n".to_owned()));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn report(&self, topic: Topic, kind: &str, text: impl FnOnce() -> Option<String>) {
        let Some(text) = self.process.checks().then(text).flatten() else { return };
        if let Some(check) = self.process.engine().state().check() {
            match topic {
                Topic::Notes => check.remark(topic, kind.to_owned(), || text),
                _ => check.tell(topic, kind.to_owned(), || text),
            }
        }
    }

    /// Under `--check`, an interface in another language has given the operations of its current
    /// call a request of this number, and `is_active` finds out whether the program has completed
    /// it. Until then, no other operation may use its memory.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// rank.under_way(1, || false);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(hidden)]
    #[track_caller]
    pub fn under_way(&self, request: usize, is_active: impl Fn() -> bool + Send + Sync + 'static) {
        let line = Line::of(Location::caller());
        if let Some(check) = self.process.engine().state().check() {
            check.keep_uses(line, request, Arc::new(is_active));
        }
    }

    /// Under `--check`, code of the program at the address `place` loads these bytes of memory, or
    /// stores to them, as its compiler reports. `finder` finds the source line of an address. Call
    /// it for each access whose page is [watched](watched_pages).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// static LINE: longshore::SourceLine =
    ///     longshore::SourceLine { file: String::new(), line: 1, column: 0 };
    /// rank.touched(0x1000..0x1008, true, 0x5000, |_| &LINE);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn touched(
        &self,
        bytes: Range<usize>,
        stores: bool,
        place: usize,
        finder: fn(usize) -> &'static SourceLine,
    ) {
        self.process.touched(bytes, stores, place, finder);
    }

    /// Starts to record the frames that this rank sends and receives, or stops and drops the
    /// records.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// rank.tap(true);
    /// rank.world().send(&[1.5], rank.world().rank(), 0)?;
    /// # rank.world().recv(&mut [0.0], rank.world().rank(), 0)?;
    /// for frame in rank.tapped() {
    ///     println!("{:?} {} {} bytes", frame.direction, frame.peer, frame.length);
    /// }
    /// rank.tap(false);
    /// assert!(rank.frames_sent() > 0);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn tap(&self, on: bool) {
        self.process.engine().tap().turn(on);
    }

    /// Returns the frames recorded since the last call, at most the last 4096.
    pub fn tapped(&self) -> Vec<Tapped> {
        self.process.engine().tap().take()
    }

    /// The number of frames that this rank has sent since it joined the job. It measures the cost
    /// of calls on the message route.
    pub fn frames_sent(&self) -> u64 {
        self.process.engine().tap().sent
    }

    /// Allocates memory over which windows can be created that related ranks of this host access
    /// directly, as MPI_Alloc_mem does (MPI-5.0 section 10.2). It is given back when it is dropped.
    ///
    /// ```
    /// use longshore::{Info, Pointed, Window};
    ///
    /// let rank = longshore::init()?;
    /// let (world, long) = (rank.world(), rank.type_of::<i64>()?);
    /// let memory = rank.alloc_mem(32)?;
    /// // SAFETY: the allocation outlives the window, and is accessed only through it.
    /// let pointed = unsafe { Pointed::new(memory.start(), memory.len()) };
    /// let mut window = Window::create(world, pointed, 8, &Info::default())?;
    /// window.fence(|epoch| epoch.put(&[7i64], world.rank(), 2, 1, &long))?;
    /// window.free()?;
    /// // SAFETY: the bytes are initialized, and no window uses them any more.
    /// assert_eq!(unsafe { memory.start().cast::<i64>().add(2).read() }, 7);
    /// drop(memory);
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// NO_MEM if the segment has no room for it.
    #[doc(alias = "MPI_Alloc_mem")]
    pub fn alloc_mem(&self, len: usize) -> Result<Allocation> {
        self.process.ready()?;
        Allocation::new(&self.process, len)
    }

    /// Ends the whole job with an exit status, as MPI_Abort does (MPI-5.0 section 9.8). Exits this
    /// process if it contains only this rank.
    ///
    /// The job's exit status is that of the first rank that ends it.
    ///
    /// ```no_run
    /// let rank = longshore::init()?;
    /// if std::fs::metadata("input").is_err() {
    ///     rank.abort(2);
    /// }
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Abort")]
    pub fn abort(&self, status: i32) {
        self.process.abort_with(status, None);
    }

    /// Leaves the job (MPI-5.0 section 11.2.2). Collective. Later calls on objects of this rank
    /// fail.
    ///
    /// # Errors
    /// PROC_ABORTED if a rank died before it called `finalize`. In a job that survives deaths,
    /// `finalize` waits for the survivors instead. The error of a delete callback.
    /// OTHER if `--check=fail` is on and there were reports.
    #[track_caller]
    #[doc(alias = "MPI_Finalize")]
    pub fn finalize(self) -> Result<()> {
        self.leave()
    }

    /// Leaves the job as [`finalize`](Rank::finalize) does, for a rank that others refer to, such
    /// as the one of a C interface.
    ///
    /// ```
    /// let rank = longshore::init()?;
    /// rank.leave()?;
    /// assert!(rank.world().barrier().is_err());
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`finalize`](Rank::finalize), and OTHER the second time.
    #[track_caller]
    pub fn leave(&self) -> Result<()> {
        self.process.ready()?;
        self.process.note(Activity::Finalize, 0);
        if self.process.checks() {
            self.process.check_windows();
        }
        // MPI-5.0 section 11.2.4: the attributes of MPI_COMM_SELF are deleted first, in reverse
        // order of their setting.
        let cleared = self.alone.clear_attributes().and(self.world.clear_attributes());
        let flushed = self.process.wait(|state, _| state.is_flushed().then_some(Ok(())));
        let met = self.world.meet_to_end(Location::caller());
        let ended = self.process.end();
        self.process.names().forget_free_handlers();
        ended.and(flushed).and(met).and(cleared)
    }
}

/// How many areas of memory the checks of this process watch in the pages of 4096 bytes whose
/// numbers end in the same 16 bits. All are 0 without `--check`.
///
/// ```
/// assert_eq!(longshore::watched_pages().len(), 1 << 16);
/// ```
#[doc(hidden)]
pub fn watched_pages() -> &'static [AtomicU16] {
    loads::pages()
}

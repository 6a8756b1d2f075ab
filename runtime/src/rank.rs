//! A rank of a job as a program has it, from `init` to `finalize`.

use std::any::Any;
use std::panic::Location;
use std::sync::Arc;

use longshore_transport::shm::ShmLink;
use longshore_transport::{Link, Segment};
use shipable::{Architecture, Datatype, Element};

use crate::buffer::Buffer;
use crate::communicator::Communicator;
use crate::error::Result;
use crate::hosts::Hosts;
use crate::job::{Activity, Environment, Network};
use crate::object::{Cacheable, Callbacks, Holder, Keyval};
use crate::process::{Process, Setup};
use crate::tap::Tapped;
use crate::types::Type;

/// This process as a rank of its job (MPI-5.0 section 11.2): what [`init`] gives, and [`finalize`](Rank::finalize) takes.
///
/// No state is global: several ranks can live in one process, as [`sim`](crate::sim) has them. Several threads of a rank may
/// make calls at the same time, as under MPI_THREAD_MULTIPLE, with two exceptions: a window is one thread's at a time, which the
/// compiler sees to, and a rank makes communicators and windows one after the other, or is refused.
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
}

/// Joins the job that the environment tells of, or makes a job of one.
///
/// Returns once all ranks have called it: they know each other's architecture from here on.
///
/// # Errors
/// A launcher that can't be spoken to, an unknown architecture or route, a rank that dies before it has called this too.
pub fn init() -> Result<Rank> {
    if let Some(most) = crate::job::log_level()? {
        crate::log::start(most);
    }
    let adversary = crate::job::adversary()?;
    let check = crate::job::checking()?;
    let Some(mut environment) = Environment::from_env()? else {
        let segment = Segment::create(1)?.as_rank(0)?;
        let link = Box::new(ShmLink::new(segment.clone())?);
        let mut setup = Setup { adversary, check, whole: true, ..Setup::new(segment, link) };
        if let Some(architecture) = crate::job::architecture()? {
            setup.architecture = architecture;
        }
        setup.routes = crate::job::routes()?;
        return Rank::start(setup);
    };
    let duplicate = environment.segment.try_clone();
    let fd = duplicate.map_err(crate::job::Error::Segment)?;
    let segment = Segment::attach(fd, environment.rank)?;
    let near = ShmLink::new(segment.clone())?;
    let (hosts, secret) = (environment.hosts.clone(), environment.secret.bytes());
    let link = join(&segment, near, &hosts, environment.network.take(), secret)?;
    let mut setup = Setup { whole: true, hosts, ..Setup::new(segment, link) };
    if let Some(architecture) = crate::job::architecture()? {
        setup.architecture = architecture;
    }
    setup.routes = environment.routes;
    setup.adversary = adversary;
    setup.check = check;
    setup.progress = environment.progress;
    if setup.hosts.is_one() {
        // Between hosts the link has seen a proof of it, and nobody says it aloud.
        setup.secret = environment.secret.bytes().to_vec();
    }
    setup.environment = Some(environment);
    Rank::start(setup)
}

/// The link to all ranks, however each is reached.
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
    /// Joins the job, once all its ranks do.
    pub(crate) fn start(setup: Setup) -> Result<Rank> {
        let (process, meeting) = setup.start()?;
        let world = Communicator::world(process.clone(), meeting);
        let alone = Communicator::alone(process.clone());
        Ok(Rank { process, world, alone })
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The communicator of all ranks of the job.
    pub fn world(&self) -> &Communicator {
        &self.world
    }

    /// The communicator of this rank alone: MPI_COMM_SELF.
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

    /// The representation of this rank's memory: the machine's, or the one that it was told to emulate.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// // `longshore run --arch s390x` makes it another one.
    /// assert_eq!(rank.is_emulated(), !rank.architecture().same_representation(&longshore::Architecture::NATIVE));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn architecture(&self) -> &Architecture {
        &self.process.me().architecture
    }

    /// Whether this rank's representation is another than its machine's.
    pub fn is_emulated(&self) -> bool {
        self.process.me().emulated
    }

    /// Commits a datatype for this rank's memory (MPI-5.0 section 5.1.9).
    ///
    /// # Errors
    /// What the architecture can't represent, such as a Fortran kind that it lacks: TYPE.
    pub fn commit(&self, datatype: &Datatype) -> Result<Type> {
        self.process.ready()?;
        Type::new(self.process.names(), datatype, &self.process.me().architecture, None)
    }

    /// A key for attributes of types, communicators or windows (MPI-5.0 section 7.7.2), with what is done with them when their
    /// object is duplicated or ends. See [`Keyval`].
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
    pub fn create_keyval<K: Cacheable, T: Any + Send + Sync>(
        &self,
        callbacks: Callbacks<T>,
    ) -> Result<Keyval<K, T>> {
        self.process.ready()?;
        Ok(Keyval::new(self.process.names(), callbacks))
    }

    /// Registers what is called whenever a type of this rank is freed, by [`Type::free`] or by handle, while it is still
    /// valid: for packages that keep something about types. There can be several; each call adds one.
    /// [`finalize`](Rank::finalize) lets go of them, and so of the types by handle that one may hold.
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

    /// The type of `T` in this rank's memory: portable for numbers, and for structs that C would lay out.
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
    /// On a rank that emulates another architecture: a struct with a layout of its own has none there. TYPE.
    pub fn type_of<T: Element>(&self) -> Result<Type> {
        self.process.elements().in_memory::<T>()
    }

    /// Memory for `len` elements in this rank's representation, all zero.
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
    /// As [`type_of`](Rank::type_of); VALUE_TOO_LARGE for more than this machine can address.
    pub fn buffer<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Buffer::new(self.process.elements(), &self.process.me().architecture, len)
    }

    /// What was reported so far of uses of windows by this rank or in its windows, where they are checked
    /// ([`Checking`](crate::job::Checking)): the texts.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// // Under `longshore run --check`; nothing is checked otherwise.
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

    /// Records frames from here on, or stops and forgets.
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

    /// The frames that were sent and received since the last call, at most the last 4096.
    pub fn tapped(&self) -> Vec<Tapped> {
        self.process.engine().tap().take()
    }

    /// How many frames this rank has sent since it joined: what its calls cost on the route of messages.
    pub fn frames_sent(&self) -> u64 {
        self.process.engine().tap().sent
    }

    /// Leaves the job (MPI-5.0 section 11.2.2). Collective. Calls on what this rank made fail afterwards.
    ///
    /// # Errors
    /// A rank that died before it came here.
    #[track_caller]
    pub fn finalize(self) -> Result<()> {
        self.process.ready()?;
        self.process.note(Activity::Finalize, 0);
        // MPI-5.0 section 11.2.4: first of all the attributes of MPI_COMM_SELF, the last one set first.
        let cleared = self.alone.clear_attributes().and(self.world.clear_attributes());
        let flushed = self.process.wait(|state, _| state.is_flushed().then_some(Ok(())));
        let met = self.world.barrier_as(Activity::Finalize, Location::caller());
        let ended = self.process.end();
        self.process.names().forget_free_handlers();
        ended.and(flushed).and(met).and(cleared)
    }
}

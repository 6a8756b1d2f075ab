//! `init`: the parts of a rank, and its introduction to the other ranks.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use longshore_transport::fault::{Chance, Faults, Faulty};
use longshore_transport::{Journal, Link, PeerMemory, RankState, Segment};
use shipable::Architecture;
use zeroize::Zeroizing;

use super::mailbox::Mailboxes;
use super::{
    Beside, Books, CHECKED, Course, Identity, Life, Meeting, Process, Serving, Settings, Threads,
    Windows,
};
use crate::barrier::Barrier;
use crate::check::{Check, report};
use crate::engine::{Channel, Context, Engine, Me, Venue};
use crate::error::{ErrorKind, Result};
use crate::group::Group;
use crate::job::{Activity, Checking, Environment, Hosts, Ladder, OnDeath, ROOM, Routes};
use crate::log;
use crate::memory::Places;
use crate::object::Names;
use crate::observe::{FrameObserver, Observer};
use crate::pool;
use crate::types::Elements;
use crate::waiter::{self, Waiter};
use crate::wire::Founding;

/// The parts and settings of a rank.
pub(crate) struct Setup {
    pub segment: Segment,
    pub link: Box<dyn Link>,
    pub hosts: Hosts,
    /// The ranks that were started together with this one; `None`: all ranks of the link.
    pub world: Option<Range<u32>>,
    pub architecture: Architecture,
    /// Whether data of equal length match, where both ranks let them.
    pub by_length: bool,
    /// Bytes of short messages that the rank holds for each sender before they are received.
    pub room: u64,
    pub conduct: Conduct,
    /// The effect of a rank's death on the others.
    pub on_death: OnDeath,
    pub secret: Zeroizing<Vec<u8>>,
    pub environment: Option<Environment>,
    /// Whether the process contains only this rank, so that it ends with the rank.
    pub whole: bool,
    /// The number of processors that the ranks of this host may use. Waits spin only if the ranks
    /// aren't more; `None`: never.
    pub processors: Option<usize>,
    /// Whether a progress thread is allowed.
    pub progress: bool,
    /// Where the rank records what its launcher asks for.
    pub journal: Option<Journal>,
}

/// By which ways a rank carries out operations.
#[derive(Default)]
pub(crate) struct Conduct {
    pub routes: Routes,
    pub ladder: Ladder,
    /// The seed of an adversary that makes every choice left to timing. Implies messages.
    pub adversary: Option<u64>,
    /// Whether uses of windows are checked. Implies messages.
    pub check: Checking,
}

impl Setup {
    pub(crate) fn new(segment: Segment, link: Box<dyn Link>) -> Setup {
        Setup {
            segment,
            link,
            hosts: Hosts::one(),
            world: None,
            architecture: Architecture::NATIVE,
            by_length: false,
            room: ROOM,
            conduct: Conduct::default(),
            on_death: OnDeath::End,
            secret: Zeroizing::default(),
            environment: None,
            whole: false,
            processors: Some(waiter::processors()),
            progress: false,
            journal: None,
        }
    }

    /// Exchanges hello frames with all ranks. Returns after all ranks have done so, with the
    /// barrier of all ranks.
    pub(crate) fn start(self) -> Result<(Arc<Process>, Meeting)> {
        let Setup {
            segment,
            link,
            hosts,
            world,
            architecture,
            by_length,
            room,
            conduct: Conduct { routes, ladder, adversary, check },
            on_death,
            secret,
            environment,
            whole,
            processors,
            progress,
            journal,
        } = self;
        let (link, routes): (Box<dyn Link>, _) = match adversary {
            Some(seed) => (Box::new(Faulty::new(link, Faults::adversary(seed))), Routes::Message),
            None if check != Checking::Off => (link, Routes::Message),
            None => (link, routes),
        };
        let world = world.unwrap_or(0..link.size());
        let me = Me {
            rank: link.rank(),
            size: link.size(),
            first: world.start,
            count: world.end - world.start,
            architecture,
            emulated: !architecture.same_representation(&Architecture::NATIVE),
            by_length,
            room,
            survives: on_death == OnDeath::Survive,
        };
        segment.mark(me.rank, RankState::Alive);
        let beside = match hosts.is_one() {
            true => segment.started(),
            false => hosts.count_beside(me.rank, me.size),
        };
        // The ranks of a simulation are threads of one process, which share its pool.
        if processors.is_some() {
            let granted = environment.as_ref().and_then(|environment| environment.processors);
            pool::share(beside as usize, granted);
        }
        let waiter = match processors {
            Some(processors) => Waiter::new(me.rank, link.doorbell(), beside, processors),
            None => Waiter::sleeping(me.rank, link.doorbell()),
        };
        let waiter = Arc::new(waiter);
        let founding = match me.rank - me.first {
            0 => {
                // Ranks of several hosts use a barrier by messages.
                let barrier = match hosts.is_one() {
                    true => segment.allocate(Barrier::bytes(me.count))?,
                    false => longshore_transport::Range { offset: 0, len: 0 },
                };
                Some(Founding { barrier: (barrier.offset, barrier.len), job: random_identity() })
            }
            _ => None,
        };
        let names = Arc::new(Names::default());
        let rdma = link.rdma();
        let mut engine = Engine::new(me, link, secret, names.clone(), founding);
        let polls = waiter.spins() > 0 && beside > 1;
        let mailboxes = polls.then(|| Mailboxes::new(&segment, me.rank));
        let peer_memory = Arc::new(PeerMemory::new(&segment));
        if routes == Routes::Best {
            engine.state().set_peer_memory(peer_memory.clone());
        }
        if polls {
            engine.open_mailbox(&segment);
        }
        let state = engine.state();
        state.set_hosts(hosts.clone());
        let (bereft, stranded, unmatched) = (state.bereft(), state.stranded(), state.unmatched());
        let observer = journal.map(|journal| Arc::new(Observer::new(me.rank, &segment, journal)));
        if let Some(observer) = &observer {
            engine.tap().observe(FrameObserver::new(observer.clone()));
        }
        let identity = Identity {
            me,
            hosts,
            pid: std::process::id(),
            whole,
            environment: Mutex::new(environment),
        };
        let notes_callers = check != Checking::Off || observer.is_some();
        let process = Arc::new_cyclic(|process| Process {
            identity,
            settings: Settings { routes, ladder, check, notes_callers },
            engine: Mutex::new(engine),
            serving: Serving {
                process: process.clone(),
                progress,
                longer_ways: AtomicU8::new(if check == Checking::Off { 0 } else { CHECKED }),
                server: Mutex::default(),
            },
            course: Course {
                life: AtomicU8::new(Life::Starting as u8),
                // One less than now, so that the engine learns of ranks that died before.
                events: AtomicU32::new(segment.events().wrapping_sub(1)),
                bereft,
                stranded,
                unmatched,
                untold: AtomicBool::new(false),
                lingers: AtomicBool::new(false),
            },
            books: Books {
                elements: Elements::new(names.clone(), architecture),
                names,
                windows: Windows::default(),
                places: Places::default(),
                schedules: super::Schedules::default(),
                ports: super::Ports::default(),
                windows_numbered: AtomicU32::new(0),
                contexts_numbered: AtomicU32::new(0),
            },
            beside: Beside { rdma, mailboxes, peer_memory },
            segment,
            waiter,
            observer,
            loads: Arc::default(),
            threads: Threads::new(),
        });
        process.note(Activity::Init, 0);
        let chance = adversary.map(|seed| Chance::new(seed ^ u64::from(me.rank) << 32));
        process.engine().state().set_chance(chance);
        if check != Checking::Off {
            let (topics, loads) = (check.topics(), process.loads.clone());
            process.engine().state().set_check(Check::new(me.rank, me.size, topics, loads));
            if me.rank == 0 && !process.identity.hosts.is_one() {
                log::say(report::SEVERAL_HOSTS);
            }
        }
        process.engine().state().start_hello()?;
        process.hear_of_ranks(&mut process.engine());
        let founding = process.wait(|state, _| {
            let taken = state.take_hello();
            if taken.is_none() {
                process.note_wait(state.awaited_hello());
            }
            taken
        })?;
        let (group, position) = (Group::of_world(me.world(), me.rank), me.rank - me.first);
        let meeting = match process.identity.hosts.is_one() {
            true => {
                let barrier = process.barrier_at(Some(founding.barrier), &group, position)?;
                Meeting::Flags(barrier.of_communicator(Context::WORLD.of(Channel::Calls)))
            }
            false => Meeting::Messages(Venue::Communicator(Context::WORLD.number())),
        };
        // Ranks accept other frames only from ranks that they know.
        match process.meet(&meeting, &group, position, None) {
            // Another rank has left the barrier, so all have entered it, and has revoked the
            // communicator before this rank could leave.
            Err(error) if matches!(error.kind(), ErrorKind::Revoked) => {}
            met => met?,
        }
        process.note(Activity::Computing, 0);
        process.course.life.store(Life::Ready as u8, Ordering::Release);
        tracing::info!(rank = me.rank, size = me.count, architecture = %me.architecture, ?routes, "initialized");
        Ok((process, meeting))
    }
}

/// A random number that identifies the job.
fn random_identity() -> u128 {
    let word = || u128::from(RandomState::new().build_hasher().finish());
    word() << 64 | word()
}

//! Intercommunicators of ranks that were started apart (MPI-5.0 chapter 11): accept, connect and
//! spawn.
//!
//! A *world* is the ranks that were started together. Ranks of two worlds know nothing of each
//! other before they meet at a port. One rank of each group, the root, meets for all:
//!
//! 1. The ranks of each group exchange their roots, or their errors. So no root meets another if a
//!    rank of its group can't take part.
//! 2. The connecting root introduces itself to the accepting one, and sends a [`Request`] with the
//!    port's key and the number of the communicator to be.
//! 3. The accepting root answers that it is ready, or refuses the key. A root that waits for no
//!    answer any more withdraws its request instead, so an accept never ends for a rank that has
//!    given up. Requests at a port that is closed are refused.
//! 4. The roots exchange the introductions of all ranks of their groups, and pass them on.
//! 5. Once all ranks of both groups know each other, the roots say so, and the calls return. So no
//!    rank gets a frame of a rank that it doesn't know.
//!
//! If a step fails, all ranks of both groups get the error.
//!
//! A spawn has the launcher start processes, which connect in their init to a port that the root
//! accepts at.

use std::ops::Range;
use std::panic::Location;
use std::pin::pin;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shipable::Class;

use super::Communicator;
use super::calls::Call;
use super::inter::{Inter, OVERLAP};
use super::participants::{Participants, finish, protocol, told};
use crate::engine::{Channel, Context, Landing, Message, Pattern, Sender, Source, State, Subject};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::job::{Activity, Order, Started, Wanted};
use crate::observe::At;
use crate::port::{Asked, Port};
use crate::wire::Introduction;

/// The time for which a connect waits for the accept, unless the program gives another.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The tag of the answer that the accepting root is ready.
const READY: i32 = 0;
/// The tag of the answer that the key isn't that of an open port.
const REFUSED: i32 = 1;
/// The tag of the message that the connecting root goes on.
const GOES_ON: i32 = 2;
/// The tag of the message that it has given up.
const WITHDRAWN: i32 = 3;
/// The tag of the introductions.
const INTRODUCED: i32 = 4;
/// The tag of what became of the introductions in each group.
const SETTLED: i32 = 5;

/// Bytes of the longest introduction of one rank.
const INTRODUCTION: usize = 512;

/// Programs for [`Communicator::spawn`], with the number of their processes.
///
/// ```
/// use longshore::Spawn;
///
/// let workers = Spawn { arguments: vec!["--quiet".to_owned()], ..Spawn::new("./worker", 4) };
/// assert_eq!(workers.counts, [4]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// The program. If it contains no slash, it is looked up in the folders of `path`, and then in
    /// those of PATH.
    pub program: String,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// The acceptable numbers of processes, all above 0. The largest for which there is room is
    /// started.
    pub counts: Vec<u32>,
    /// The host on which the processes run: this rank's, if `None`.
    pub host: Option<String>,
    /// Their working directory: that of the job, if `None`.
    pub folder: Option<String>,
    /// Folders in which to look for the program first, separated by colons.
    pub path: Option<String>,
    /// The name of the data representation that they emulate: the machine's, if `None`.
    pub architecture: Option<String>,
}

impl Spawn {
    /// `processes` processes of a program, without arguments.
    pub fn new(program: impl Into<String>, processes: u32) -> Spawn {
        Spawn {
            program: program.into(),
            arguments: Vec::new(),
            counts: vec![processes],
            host: None,
            folder: None,
            path: None,
            architecture: None,
        }
    }
}

/// The processes that a [`spawn`](Communicator::spawn) has started.
pub struct Spawned {
    /// The intercommunicator with them.
    pub communicator: Communicator,
    /// The number of processes of each program.
    pub counts: Vec<u32>,
    /// The largest acceptable number of processes of each program.
    pub asked: Vec<u32>,
}

/// The first message of a connecting root.
#[derive(Serialize, Deserialize)]
struct Request {
    key: u128,
    /// The number of the communicator to be.
    context: u32,
}

/// What one root tells the other of its group.
#[derive(Serialize, Deserialize)]
struct Roster {
    ranks: Vec<(u32, Introduction)>,
}

/// What a root tells its own group.
#[derive(Serialize, Deserialize)]
struct Met {
    /// The ranks of the other group.
    ranks: Vec<(u32, Introduction)>,
    /// The number of the communicator.
    context: u32,
    /// The other root.
    other: u32,
    /// The number of processes of each program that was started.
    counts: Vec<u32>,
    /// The largest acceptable number of processes of each.
    asked: Vec<u32>,
}

/// A value, or the class and text of an error.
type Told<T> = std::result::Result<T, (u8, String)>;

impl Communicator {
    /// Waits until another group of ranks connects to a port of the root, and makes an
    /// intercommunicator with them (MPI-5.0 section 11.4.2). Collective. Only the root's `port`
    /// counts. It waits without a limit.
    ///
    /// ```
    /// use longshore::ROOT;
    ///
    /// let rank = longshore::init()?;
    /// let world = rank.world();
    /// if world.size() > 1 && world.rank() < 2 {
    ///     // Rank 0 accepts, rank 1 connects.
    ///     let mut value = [5];
    ///     let both = if world.rank() == 0 {
    ///         let port = rank.open_port()?;
    ///         world.send(port.to_string().as_bytes(), 1, 0)?;
    ///         rank.alone().accept(&port, 0)?
    ///     } else {
    ///         let mut text = vec![0; 200];
    ///         let length = world.recv(&mut text[..], 0, 0)?.bytes as usize;
    ///         let port = String::from_utf8_lossy(&text[..length]).parse()?;
    ///         value = [0];
    ///         rank.alone().connect(&port, 0)?
    ///     };
    ///     both.bcast(&mut value, if world.rank() == 0 { ROOT } else { 0 })?;
    ///     assert_eq!(value, [5]);
    ///     both.disconnect()?;
    /// }
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PORT at all ranks if the root hasn't opened the port. COMM for an intercommunicator, and if
    /// both groups have a process in common. PROC_ABORTED if a rank died.
    #[track_caller]
    #[doc(alias = "MPI_Comm_accept")]
    pub fn accept(&self, port: &Port, root: i32) -> Result<Communicator> {
        let caller = Location::caller();
        let joined = self.join("accept", Activity::Accept, Ok(root), caller, || {
            self.accept_one(port, 0..0, Vec::new())
        });
        joined.map(|joined| joined.communicator)
    }

    /// Connects to a port of another group of ranks, and makes an intercommunicator with them
    /// (MPI-5.0 section 11.4.3). Collective. Only the root's `port` counts. It waits for the accept
    /// for at most 30 seconds. See [`accept`](Communicator::accept) for an example.
    ///
    /// # Errors
    /// PORT at all ranks if the port is closed, of another job, or of a rank that has ended, and if
    /// nobody accepts in time. Otherwise the errors of [`accept`](Communicator::accept).
    #[track_caller]
    #[doc(alias = "MPI_Comm_connect")]
    pub fn connect(&self, port: &Port, root: i32) -> Result<Communicator> {
        self.connect_within(port, root, PATIENCE)
    }

    /// [`connect`](Communicator::connect), with the time for which the root waits for the accept.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let rank = longshore::init()?;
    /// let port = rank.open_port()?;
    /// // A rank can't connect to itself.
    /// let refused = rank.alone().connect_within(&port, 0, Duration::from_millis(1));
    /// assert_eq!(refused.err().map(|error| error.class()), Some(longshore::Class::Port));
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`connect`](Communicator::connect).
    #[track_caller]
    pub fn connect_within(&self, port: &Port, root: i32, limit: Duration) -> Result<Communicator> {
        let caller = Location::caller();
        let joined = self
            .join("connect", Activity::Connect, Ok(root), caller, || self.connect_to(port, limit));
        joined.map(|joined| joined.communicator)
    }

    /// Starts processes, and makes an intercommunicator with them (MPI-5.0 section 11.3).
    /// Collective. Only the root's `programs` count. The processes of all programs form one world,
    /// in the order of the programs. Returns after they have called init. They find this
    /// communicator's ranks by [`Rank::parent`](crate::Rank::parent).
    ///
    /// ```no_run
    /// use longshore::{ROOT, Spawn};
    ///
    /// let rank = longshore::init()?;
    /// let workers = rank.world().spawn(&[Spawn::new("./worker", 4)], 0)?.communicator;
    /// let root = if rank.world().rank() == 0 { ROOT } else { longshore::PROC_NULL };
    /// workers.bcast(&mut [42], root)?;
    /// workers.disconnect()?;
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// SPAWN at all ranks if a program can't be started or has no room, or if a process ends before
    /// it has called init. If one process can't be started, none is. ARG for no program, and for a
    /// number of 0 processes. UNSUPPORTED_OPERATION without a launcher. OTHER if the launcher isn't
    /// `longshore run`. Otherwise the errors of [`accept`](Communicator::accept).
    #[track_caller]
    #[doc(alias = "MPI_Comm_spawn")]
    #[doc(alias = "MPI_Comm_spawn_multiple")]
    pub fn spawn(&self, programs: &[Spawn], root: i32) -> Result<Spawned> {
        let caller = Location::caller();
        self.join("spawn", Activity::Spawn, Ok(root), caller, || self.start_programs(programs))
    }

    /// Waits until all communication on the communicator has ended at all of its ranks, and frees
    /// it (MPI-5.0 section 11.10.4). Collective. See [`accept`](Communicator::accept) for an
    /// example.
    ///
    /// Ranks that had processes started stay in one job with them.
    ///
    /// # Errors
    /// COMM for the two initial communicators, and if it is freed already. PROC_ABORTED if a rank
    /// died.
    #[track_caller]
    #[doc(alias = "MPI_Comm_disconnect")]
    pub fn disconnect(self) -> Result<()> {
        if ![Context::WORLD, Context::SELF].contains(&self.shared.context) {
            let caller = Location::caller();
            let met = || -> Result<()> {
                self.ready()?;
                self.end_messages()?;
                self.announce(|| "disconnect".to_owned(), caller)?;
                let at = self.begin(Call::new("disconnect"));
                let all = self.participants(at).by_message();
                let met = finish(pin!(all.allgather_values(&0u8))).map(|_| ());
                self.end_call(at, met)
            };
            let met = self.process().during(Activity::Disconnect, 0, At::of(caller), met);
            met.map_err(|error| self.raised(error, "disconnect", caller))?;
        }
        self.free()
    }

    /// Takes part in a collective call for which this rank has a fault, in place of making it: the
    /// call fails at all ranks, and the others get an error that names this rank and the fault. For
    /// interfaces that check arguments before the call. `call` is a method of this type: `accept`,
    /// `connect`, `spawn`, `dup`, `split`, `split_type`, `create`, `merge`, `agree` or `shrink`.
    ///
    /// ```
    /// use longshore::Class;
    ///
    /// let rank = longshore::init()?;
    /// let error = rank.world().refuse("split", Class::Arg, "the color is -7");
    /// assert_eq!(error.class(), Class::Arg);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the fault as an error, or the first of a rank before this one. Otherwise the error
    /// for which this rank can't take part.
    #[track_caller]
    pub fn refuse(&self, call: &str, class: Class, text: &str) -> Error {
        let caller = Location::caller();
        let fault = Error::from(ErrorKind::Interface { class, text: text.to_owned() });
        let join = |name, activity, fault| {
            let meet = || Err(ErrorKind::Collective.into());
            self.join(name, activity, Err(fault), caller, meet).err()
        };
        let failed = match call {
            "accept" => join("accept", Activity::Accept, fault),
            "connect" => join("connect", Activity::Connect, fault),
            "spawn" => join("spawn", Activity::Spawn, fault),
            "dup" => self.make_of_all("dup", || Err(fault)).err(),
            "split" => self.make_of_all("split", || Err(fault)).err(),
            "split_type" => self.make_of_all("split_type", || Err(fault)).err(),
            "create" => self.make_of_all("create", || Err(fault)).err(),
            "agree" => self.refuse_agreement(Subject::Flag, fault, caller).err(),
            "shrink" => self.refuse_agreement(Subject::Survivors, fault, caller).err(),
            "merge" => self.make_of_all("intercomm_merge", || Err(fault)).err(),
            _ => Some(fault),
        };
        failed.unwrap_or_else(|| ErrorKind::Collective.into())
    }

    /// Waits until the sends and receives of this rank on the communicator have ended.
    fn end_messages(&self) -> Result<()> {
        let (context, (all, _)) = (self.context(Channel::Calls), self.everyone());
        self.process().wait(|state, _| {
            if !state.has_messages_under_way(self.number()) {
                return Some(Ok(()));
            }
            state.revoked(context).or_else(|| state.lost_among(all, None)).map(Err)
        })
    }

    /// Makes the intercommunicator with the group that the root meets. A rank whose arguments are
    /// wrong gives its error in place of the root. Then no rank meets anyone.
    fn join(
        &self,
        name: &'static str,
        activity: Activity,
        root: Result<i32>,
        caller: &'static Location<'static>,
        meet: impl FnOnce() -> Result<Met>,
    ) -> Result<Spawned> {
        let make = || -> Result<Spawned> {
            self.ready()?;
            self.intra()?;
            self.announce(|| name.to_owned(), caller)?;
            // Its messages don't bear the root, which this rank may not know.
            let at = self.begin(Call::new(name));
            let first = self.agreed_root(name, root)?;
            let by = self.group().process(first);
            let mut own = None;
            let met: Option<Told<Met>> = (self.shared.rank == first).then(|| {
                meet().map_err(|error| {
                    let said = told(&error);
                    own = Some(error);
                    said
                })
            });
            let heard = self.told_by_root(first, met.as_ref());
            if let (Some(Ok(met)), Err(error)) = (&met, &heard) {
                // The other root waits for what becomes of this group.
                let failed = Err(told(error));
                let _ = self.exchange_settled(met, &failed);
            }
            let met = match heard? {
                Ok(met) => met,
                Err((class, text)) => {
                    let elsewhere = || ErrorKind::elsewhere(by, class, text).into();
                    return Err(own.unwrap_or_else(elsewhere));
                }
            };
            self.settle(first, &met)?;
            let context = Context::new(met.context).ok_or(ErrorKind::Numbers)?;
            let me = self.process().me().rank;
            let remote: Vec<u32> = met.ranks.iter().map(|(rank, _)| *rank).collect();
            let inter = Inter::new(self.group(), remote, by < met.other, me);
            let communicator = self.with_remote(context, self.group().clone(), inter);
            let Met { counts, asked, .. } = met;
            self.end_call(at, Ok(Spawned { communicator, counts, asked }))
        };
        let made = self.process().during(activity, 0, At::of(caller), make);
        made.map_err(|error| self.raised(error, name, caller))
    }

    /// The root, which all ranks give alike. Fails at all ranks if one of them has an error.
    fn agreed_root(&self, name: &'static str, root: Result<i32>) -> Result<u32> {
        let size = self.size();
        let checked = root.and_then(|root| {
            let first = u32::try_from(root).ok().filter(|_| root < size);
            first.ok_or_else(|| ErrorKind::Root { root, size: size as u32 }.into())
        });
        let mine: Told<u32> = checked.as_ref().map(|root| *root).map_err(told);
        let all = self.participants(self.current_call()).by_message();
        let all: Vec<Told<u32>> = finish(pin!(all.allgather_values(&mine)))?;
        let root = checked?;
        for (theirs, peer) in all.into_iter().zip(self.group().processes().iter().copied()) {
            let theirs = theirs.map_err(|(class, text)| ErrorKind::elsewhere(peer, class, text))?;
            if theirs != root {
                let of = |root: u32| Call::new(name).with_root(root as i32).to_string();
                return Err(ErrorKind::Mismatch { peer, theirs: of(theirs), ours: of(root) }.into());
            }
        }
        Ok(root)
    }

    /// Takes in the introductions of the other group. Returns once all ranks of both groups have.
    fn settle(&self, root: u32, met: &Met) -> Result<()> {
        let overlaps = met.ranks.iter().any(|(rank, _)| self.group().contains(*rank));
        let own = match overlaps {
            true => Err(OVERLAP.into()),
            false => self.process().engine().state().acquaint(met.other, &met.ranks),
        };
        let own: Told<()> = own.map_err(|error: Error| told(&error));
        let all = self.participants(self.current_call()).by_message();
        // The other root waits for this group, also if a rank of it has died.
        let all: Told<()> = match finish(pin!(all.allgather_values(&own))) {
            Ok(all) => Vec::<Told<()>>::into_iter(all).collect(),
            Err(error) => Err(told(&error)),
        };
        let is_root = self.group().rank() == Some(root as i32);
        let both = is_root.then(|| -> Told<()> {
            let settled = self.exchange_settled(met, &all);
            settled.map_err(|error| told(&error))?.into_iter().collect()
        });
        let by = self.group().process(root);
        let both = self.told_by_root(root, both.as_ref())?;
        both.map_err(|(class, text)| ErrorKind::elsewhere(by, class, text).into())
    }

    /// What became of the introductions in both groups, at a root.
    fn exchange_settled(&self, met: &Met, mine: &Told<()>) -> Result<Vec<Told<()>>> {
        let context = Context::new(met.context).ok_or(ErrorKind::Numbers)?;
        self.with_other(met.other, context, SETTLED, mine)
    }

    /// The values of both roots, the one with the lower number in the job first.
    fn with_other<T: Serialize + DeserializeOwned>(
        &self,
        other: u32,
        context: Context,
        tag: i32,
        mine: &T,
    ) -> Result<Vec<T>> {
        let process = self.process();
        let me = process.me().rank;
        let pair = Group::new(vec![me.min(other), me.max(other)], me);
        let (rank, context) = (u32::from(me > other), context.of(Channel::Groups));
        let roots = Participants::new(process, &pair, rank, context, tag);
        finish(pin!(roots.allgather_values_within(mine, self.longest())))
    }

    /// Bytes of the longest encoded list of introductions.
    fn longest(&self) -> usize {
        4096 + INTRODUCTION * self.process().me().size as usize
    }

    /// The root's value, at all ranks of this communicator.
    fn told_by_root<T: Serialize + DeserializeOwned>(
        &self,
        root: u32,
        mine: Option<&Told<T>>,
    ) -> Result<Told<T>> {
        let by = self.group().process(root);
        let limit = self.longest();
        let wrong = |error: shipable::codec::CodecError| protocol(by, &error.to_string());
        let encoded = mine.map(|mine| shipable::codec::encode(mine, limit)).transpose();
        let encoded = encoded.map_err(wrong)?.unwrap_or_default();
        let all = self.participants(self.current_call()).by_message().rooted(root);
        let heard = finish(pin!(all.broadcast(encoded.into())))?;
        shipable::codec::decode(&heard, limit).map_err(wrong)
    }

    /// Exchanges introductions with the other root.
    fn introduce(&self, other: u32, context: Context, counts: Vec<u32>) -> Result<Met> {
        let ranks = self.process().engine().state().introductions(self.group());
        let mine = Roster { ranks };
        let both = self.with_other(other, context, INTRODUCED, &mine)?;
        let theirs = both.into_iter().nth(usize::from(self.process().me().rank < other));
        let ranks = theirs.map_or_else(Vec::new, |theirs| theirs.ranks);
        let asked = Vec::new();
        Ok(Met { ranks, context: context.number(), other, counts, asked })
    }

    /// Meets the next root that connects to a port of this rank. Fails if one of the `expected`
    /// processes ends.
    fn accept_one(&self, port: &Port, expected: Range<u32>, counts: Vec<u32>) -> Result<Met> {
        let process = self.process();
        if !process.is_open(port) {
            let what = "this rank hasn't opened it, or has closed it: accept at the rank that \
                        opened it";
            return Err(ErrorKind::Port(what.to_owned()).into());
        }
        loop {
            let Asked { peer, context, .. } = self.next_request(port, &expected)?;
            if self.say(peer, context, READY).is_err() {
                // It has ended since.
                continue;
            }
            // The other root goes on once it is ready, so this one does too, also if its group has
            // lost a rank: both groups learn of it when they settle.
            let heard = self.hear(peer, context, [GOES_ON, WITHDRAWN], |_| None);
            if heard.is_ok_and(|tag| tag == GOES_ON) {
                return self.introduce(peer, context, counts);
            }
        }
    }

    /// The next request of a root that connects to a port of this rank.
    fn next_request(&self, port: &Port, expected: &Range<u32>) -> Result<Asked> {
        let process = self.process();
        loop {
            self.sort_requests()?;
            if let Some(asked) = process.take_asked(port.number) {
                return Ok(asked);
            }
            process.note_wait(None);
            process.wait(|state, _| {
                // Another thread may have taken the request in.
                if state.probe(&self.requests()).is_some_and(|found| found.is_ok())
                    || process.has_asked(port.number)
                {
                    return Some(Ok(()));
                }
                let ended = |rank: &u32| process.segment().rank_state(*rank).is_gone();
                if let Some(rank) = expected.clone().find(ended) {
                    let state = process.segment().rank_state(rank);
                    let what =
                        format!("rank {rank} of the new processes is {state} before its init");
                    return Some(Err(ErrorKind::Spawn(what).into()));
                }
                self.lost_here(state).map(Err)
            })?;
        }
    }

    /// The requests at all ports of this rank.
    fn requests(&self) -> Pattern {
        let me = self.process().me();
        let everyone = Group::of_world(0..me.size, me.rank);
        Pattern { context: Context::PORTS, sender: Sender::Any(everyone), tag: None }
    }

    /// Takes in the requests that have come: refuses those at ports that aren't open, or with
    /// another key, and forgets those of roots that have given up. So none stays for a port at
    /// which nobody accepts.
    pub(crate) fn sort_requests(&self) -> Result<()> {
        let process = self.process();
        let requests = self.requests();
        loop {
            // That some rank is lost doesn't matter.
            let claimed = process.engine().state().claim(&requests);
            let Some(Ok((arrival, request))) = claimed else { break };
            process.engine().state().receive_claimed(request, Landing::Bytes);
            let bytes = match process.wait(|state, _| state.take_received(request)) {
                Ok(delivery) => delivery.bytes.map(|bytes| bytes.to_vec()),
                Err(_) => {
                    process.check_job()?;
                    None
                }
            };
            let request = bytes.and_then(|it| shipable::codec::decode::<Request>(&it, 4096).ok());
            let Some(Request { key, context }) = request else { continue };
            let Some(context) = Context::new(context) else { continue };
            process.add_asked(Asked { peer: arrival.peer, context, port: arrival.tag as u32, key });
        }
        process.retain_asked(|asked, is_open| {
            let withdrawn = Pattern {
                context: asked.context.of(Channel::Groups),
                sender: Sender::One(asked.peer),
                tag: Some(WITHDRAWN),
            };
            let mut engine = process.engine();
            let state = engine.state();
            if let Some(Ok((_, number))) = state.claim(&withdrawn) {
                state.discard_claimed(number);
                return false;
            }
            let is_gone = state.gone(asked.peer).is_some();
            drop(engine);
            if !is_open && !is_gone {
                // It may have ended since.
                let _ = self.say(asked.peer, asked.context, REFUSED);
            }
            is_open && !is_gone
        });
        Ok(())
    }

    /// The error of a call that waits for another group, if this one can't go on.
    fn lost_here(&self, state: &State) -> Option<Error> {
        let revoked = state.revoked(self.context(Channel::Calls));
        revoked.or_else(|| state.lost_among(self.group(), None))
    }

    /// Sends an empty message of this tag to the other root.
    fn say(&self, peer: u32, context: Context, tag: i32) -> Result<()> {
        self.send_in(peer, context.of(Channel::Groups), tag, Vec::new())
    }

    fn send_in(&self, peer: u32, context: u32, tag: i32, bytes: Vec<u8>) -> Result<()> {
        let message = Message {
            context,
            tag,
            length: bytes.len() as u64,
            signature: 0,
            source: Source::Bytes(bytes.into()),
            synchronous: false,
        };
        let mut engine = self.process().engine();
        if let Some(number) = engine.start_send(peer, message)? {
            // The engine has the bytes, so nothing waits for the receiver.
            engine.state().forget_send(number);
        }
        Ok(())
    }

    /// Waits for an empty message of one of these tags, and takes it. Otherwise fails as
    /// `give_up` says, and if the other root is gone.
    fn hear(
        &self,
        peer: u32,
        context: Context,
        tags: [i32; 2],
        give_up: impl Fn(&State) -> Option<Error>,
    ) -> Result<i32> {
        let (context, sender) = (context.of(Channel::Groups), Sender::One(peer));
        let patterns = tags.map(|tag| Pattern { context, sender: sender.clone(), tag: Some(tag) });
        self.process().note_wait(Some(peer));
        self.process().wait(|state, _| {
            for pattern in &patterns {
                if let Some(Ok((arrival, number))) = state.claim(pattern) {
                    state.discard_claimed(number);
                    return Some(Ok(arrival.tag));
                }
            }
            state.gone(peer).or_else(|| give_up(state)).map(Err)
        })
    }

    /// Meets the root that accepts at a port.
    fn connect_to(&self, port: &Port, limit: Duration) -> Result<Met> {
        let process = self.process();
        let me = process.me();
        let wrong = |what: String| -> Result<Met> { Err(ErrorKind::Port(what).into()) };
        let (segment, started) = (process.segment(), process.segment().started());
        if port.segment != process.segment_number()? || port.process >= started {
            return wrong(
                "it is a port of another job: only ranks of one job connect, those of one launcher \
                 and those that they have started"
                    .to_owned(),
            );
        }
        let peer = port.process;
        if peer == me.rank {
            return wrong("it is a port of this rank itself: connect from another".to_owned());
        }
        let until = Instant::now().checked_add(limit);
        let is_late = || until.is_some_and(|until| Instant::now() >= until);
        let late = || {
            let what = format!("rank {peer} hasn't accepted within {} s", limit.as_secs_f64());
            Error::from(ErrorKind::Port(what))
        };
        let ended = || {
            let state = segment.rank_state(peer);
            Error::from(ErrorKind::Port(format!("rank {peer}, which opened it, is {state}")))
        };
        process.engine().state().approach(peer)?;
        process.note_wait(Some(peer));
        process.wait(|state, _| {
            if state.gone(peer).is_some() {
                return Some(Err(ended()));
            }
            let known = state.is_known(peer).then_some(Ok(()));
            let known = known.or_else(|| self.lost_here(state).map(Err));
            known.or_else(|| is_late().then(|| Err(late())))
        })?;
        let context = Context::new(process.number_context()?).ok_or(ErrorKind::Numbers)?;
        let request = Request { key: port.key, context: context.number() };
        let request = shipable::codec::encode(&request, 4096);
        let request = request.map_err(|error| protocol(me.rank, &error.to_string()))?;
        self.send_in(peer, Context::PORTS, port.number as i32, request)?;
        let give_up = |state: &State| self.lost_here(state).or_else(|| is_late().then(late));
        match self.hear(peer, context, [READY, REFUSED], give_up) {
            Ok(READY) => {
                self.say(peer, context, GOES_ON)?;
                self.introduce(peer, context, Vec::new())
            }
            Ok(_) => wrong("it isn't open there, or has another key".to_owned()),
            Err(_) if segment.rank_state(peer).is_gone() => Err(ended()),
            Err(error) => {
                // The other root may wait for this one.
                let _ = self.say(peer, context, WITHDRAWN);
                Err(error)
            }
        }
    }

    /// Has the launcher start processes, and meets them.
    fn start_programs(&self, programs: &[Spawn]) -> Result<Met> {
        let process = self.process();
        if programs.is_empty() {
            return Err(ErrorKind::SpawnArgument("there is no program".to_owned()).into());
        }
        let programs = programs.iter().map(wanted).collect::<Result<Vec<Wanted>>>()?;
        let asked = programs.iter().filter_map(|wanted| wanted.counts.last().copied()).collect();
        let port = process.open_port()?;
        let met = || {
            let order = Order { port: port.to_string(), programs };
            match process.ask_launcher(|launcher| launcher.order(&order))? {
                Started::Refused(why) => Err(ErrorKind::Spawn(why).into()),
                Started::Running { first, counts } => {
                    let end = first.saturating_add(counts.iter().sum());
                    self.accept_one(&port, first..end, counts)
                }
            }
        };
        let met = met();
        process.close_port(&port);
        self.sort_requests()?;
        met.map(|met| Met { asked, ..met })
    }
}

/// The launcher's form of a program.
///
/// # Errors
/// ARG for a number of 0 processes, or none, and for no program.
fn wanted(spawn: &Spawn) -> Result<Wanted> {
    let Spawn { program, arguments, counts, host, folder, path, architecture } = spawn.clone();
    if program.is_empty() {
        return Err(ErrorKind::SpawnArgument("a program has no name".to_owned()).into());
    }
    let mut counts = counts;
    counts.sort_unstable();
    if counts.first().is_none_or(|least| *least == 0) {
        let what = format!("{program} is to have no process: ask for 1 or more");
        return Err(ErrorKind::SpawnArgument(what).into());
    }
    Ok(Wanted { program, arguments, counts, host, folder, path, arch: architecture })
}

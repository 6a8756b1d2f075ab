//! Creation and freeing of communicators (MPI-5.0 section 7.4).
//!
//! Each rank sends its proposal, or its error, to all others. All ranks evaluate the same
//! proposals, so all of them reach the same result.
//!
//! A context is a number that none of the agreeing ranks has used before. Two disjoint sets of
//! ranks may choose the same number.

use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::calls::Call;
use super::nonblocking::{Back, Collective, Held, no_short};
use super::participants::{Participants, finish, told};
use super::{Communicator, FIRST, FREED, HAS_ENDED, Shared};
use crate::engine::{Channel, Context};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::job::Activity;
use crate::object::Card;
use crate::observe::At;

/// The property that ranks of a new communicator have in common (MPI-5.0 section 7.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SplitType {
    /// The ranks can share memory: MPI_COMM_TYPE_SHARED.
    Shared,
    /// The ranks have one data representation. They exchange data without conversion, and a
    /// locale-specific type of one is right at all. This type isn't in MPI.
    Architecture,
}

/// A rank's contribution to the creation of communicators.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Proposal {
    /// The number of the new communicator, from the first rank that is asked; 0 from others.
    context: u32,
    /// The new communicator to which the rank will belong, as a color; `None` for no communicator.
    part: Option<u64>,
    /// The rank's sort key in the new communicator.
    key: i32,
    /// The number of members that the rank expects, if it knows it.
    due: Option<u32>,
    /// The class and text of this rank's error.
    error: Option<(u8, String)>,
}

impl Proposal {
    pub(super) fn new(part: Option<u64>, key: i32) -> Proposal {
        Proposal { context: 0, part, key, due: None, error: None }
    }

    /// A proposal to join the communicator of this group. Its color is a hash of the group.
    fn of(group: &Group) -> Proposal {
        match group.rank() {
            Some(rank) => {
                // FNV-1a over the processes. It must be the same on every machine and with every
                // compiler.
                let step = |hash: u64, process: &u32| {
                    (hash ^ u64::from(*process)).wrapping_mul(0x0000_0100_0000_01b3)
                };
                let hash = group.processes().iter().fold(0xcbf2_9ce4_8422_2325, step);
                let due = Some(group.size() as u32);
                Proposal { due, ..Proposal::new(Some(hash), rank) }
            }
            None => Proposal::new(None, 0),
        }
    }
}

/// A rank's proposal, and its error, which the others learn by the proposal.
fn proposed(outcome: Result<Proposal>) -> (Proposal, Option<Error>) {
    match outcome {
        Ok(proposal) => (proposal, None),
        Err(error) => {
            (Proposal { error: Some(told(&error)), ..Proposal::new(None, 0) }, Some(error))
        }
    }
}

impl Communicator {
    /// Makes a communicator of the same ranks with a context of its own (MPI-5.0 section 7.4.2).
    /// The copy callbacks decide which attributes it gets. Collective.
    ///
    /// ```
    /// use longshore::Comparison;
    ///
    /// # let rank = longshore::init()?;
    /// let mine = rank.world().dup()?;
    /// assert_eq!(mine.compare(rank.world()), Comparison::Congruent);
    /// mine.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of a copy callback, at all ranks. PROC_ABORTED if a rank died.
    #[track_caller]
    #[doc(alias = "MPI_Comm_dup")]
    pub fn dup(&self) -> Result<Communicator> {
        let card = Card::new(self.process().names());
        let propose = || {
            self.card().copy_to(&card)?;
            Ok(Proposal::new(Some(0), self.rank()))
        };
        let made = self.make_of_all("dup", propose)?.ok_or_else(|| self.absent())?;
        Ok(self.duplicate(&made, card))
    }

    /// Starts to make a communicator of the same ranks with a context of its own (MPI-5.0 section
    /// 7.4.2). It copies the attributes in this call. See [`dup`](Communicator::dup). Collective.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let making = rank.world().idup()?;
    /// // Other work.
    /// let mine = making.wait()?;
    /// assert_eq!(mine.size(), rank.world().size());
    /// mine.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`dup`](Communicator::dup), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Comm_idup")]
    pub fn idup(&self) -> Result<Collective<Communicator>> {
        let hold = |own: &Communicator, _| {
            let card = Card::new(own.process().names());
            let copied = own.card().copy_to(&card);
            let made = Arc::new(OnceLock::new());
            let place = made.clone();
            let back = Back::by(|| Arc::into_inner(made).and_then(OnceLock::into_inner));
            Ok(Held { memory: (card, copied, place), back, sample: None })
        };
        type Making = (Card, Result<()>, Arc<OnceLock<Communicator>>);
        let general = async move |own: Communicator, at, (card, copied, place): Making| {
            // The other ranks wait for this one's proposal, so it tells them of its error.
            let (proposal, wrong) = proposed(copied.map(|()| Proposal::new(Some(0), own.rank())));
            let all = own.participants(at);
            let agreed = own.make_agreed(&all, own.everyone().0, proposal).await;
            let agreed = wrong.map_or(agreed, Err)?.ok_or_else(|| own.absent())?;
            let _ = place.set(own.duplicate(&agreed, card));
            Ok(())
        };
        self.start(("idup", Call::new("dup")), hold, no_short, general)
    }

    /// This communicator with the context of a new one, on which all ranks agreed.
    fn duplicate(&self, agreed: &Communicator, card: Card) -> Communicator {
        card.set_errhandler(self.errhandler());
        let Shared { group, rank, inter, .. } = &*self.shared;
        let ranks = (group.clone(), *rank, inter.clone());
        Communicator::with_card(self.process().clone(), agreed.shared.context, ranks, card)
    }

    /// Divides the ranks by color (MPI-5.0 section 7.4.2). The ranks with equal colors form a new
    /// communicator, ordered by key, and by their rank here where keys are equal. A rank without a
    /// color (MPI_UNDEFINED) gets no communicator. Collective.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// // Odd and even ranks, in reverse order.
    /// let parity = world.split(Some(world.rank() % 2), -world.rank())?.unwrap();
    /// parity.barrier()?;
    /// parity.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    /// # Errors
    /// ARG at all ranks if a color is negative. PROC_ABORTED if a rank died.
    #[track_caller]
    #[doc(alias = "MPI_Comm_split")]
    pub fn split(&self, color: Option<i32>, key: i32) -> Result<Option<Communicator>> {
        self.make("split", || {
            let part = match color {
                None => None,
                Some(color) => match u64::try_from(color) {
                    Ok(color) => Some(color),
                    Err(_) => return Err(ErrorKind::Color(color).into()),
                },
            };
            Ok(Proposal::new(part, key))
        })
    }

    /// Divides the ranks by a common property (MPI-5.0 section 7.4.2): see
    /// [`split`](Communicator::split). Collective.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::SplitType;
    ///
    /// // The ranks that share memory, and among them those that exchange data without conversion.
    /// let host = rank.world().split_type(Some(SplitType::Shared), 0)?.unwrap();
    /// let alike = host.split_type(Some(SplitType::Architecture), 0)?.unwrap();
    /// assert!(alike.size() <= host.size());
    /// alike.free()?;
    /// host.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PROC_ABORTED if a rank died.
    #[track_caller]
    #[doc(alias = "MPI_Comm_split_type")]
    pub fn split_type(&self, kind: Option<SplitType>, key: i32) -> Result<Option<Communicator>> {
        self.make("split_type", || {
            let part = match kind {
                None => None,
                Some(SplitType::Shared) => {
                    let process = self.process();
                    Some(process.hosts().of(process.me().rank).into())
                }
                // The color is the first rank with this representation. Bit 32 keeps it apart from
                // host numbers.
                Some(SplitType::Architecture) => Some((1 << 32) + u64::from(self.first_alike())),
            };
            Ok(Proposal::new(part, key))
        })
    }

    /// Makes a communicator of some of the ranks (MPI-5.0 section 7.4.2). Collective over all ranks
    /// of this communicator. A rank outside the group that it passes gets no communicator. If ranks
    /// pass disjoint groups, one call makes a communicator of each group.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// // All but the last rank.
    /// let group = world.group().excl(&[world.size() - 1])?;
    /// let part = world.create(&group)?;
    /// assert_eq!(part.is_some(), world.rank() != world.size() - 1);
    /// if let Some(part) = part {
    ///     part.free()?;
    /// }
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// GROUP at all ranks if a group contains a process outside this communicator, or if a member
    /// of a group passed another group. PROC_ABORTED if a rank died.
    #[track_caller]
    #[doc(alias = "MPI_Comm_create")]
    pub fn create(&self, group: &Group) -> Result<Option<Communicator>> {
        self.make("create", || {
            self.check_part(group)?;
            Ok(match (self.is_inter(), group.rank()) {
                // The members of the other group can't know this one.
                (true, rank) => Proposal::new(rank.map(|_| 0), rank.unwrap_or(0)),
                (false, _) => Proposal::of(group),
            })
        })
    }

    /// Makes a communicator of some of the ranks, collective only over the group (MPI-5.0 section
    /// 7.4.2). The tag distinguishes calls that are made at the same time.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// if world.rank() == 0 {
    ///     // The other ranks don't call it.
    ///     let group = world.group().incl(&[0])?;
    ///     world.create_group(&group, 0)?.free()?;
    /// }
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// GROUP for a group without this rank, or with a process outside this communicator. TAG for a
    /// negative tag. PROC_ABORTED if a rank of the group died.
    #[track_caller]
    #[doc(alias = "MPI_Comm_create_group")]
    pub fn create_group(&self, group: &Group, tag: i32) -> Result<Communicator> {
        let caller = Location::caller();
        let made = || -> Result<Option<Communicator>> {
            self.ready()?;
            self.intra()?;
            if tag < 0 {
                return Err(ErrorKind::Tag(tag).into());
            }
            // Other ranks aren't involved, so an error needn't be sent to them.
            self.check_part(group)?;
            let rank = group.rank().ok_or_else(|| self.absent())? as u32;
            let context = self.context(Channel::Groups);
            let participants = Participants::new(self.process(), group, rank, context, tag);
            finish(pin!(self.make_agreed(&participants, group, Proposal::of(group))))
        };
        let made = self.process().during(Activity::MakeCommunicator, 0, At::of(caller), made);
        made.and_then(|made| made.ok_or_else(|| self.absent()))
            .map_err(|error| self.raised(error, "create_group", caller))
    }

    /// Frees the communicator and deletes its attributes (MPI-5.0 section 7.4.3). Collective, but
    /// it doesn't wait for the other ranks. Windows made on it remain usable, and operations that
    /// are pending on it complete.
    ///
    /// # Errors
    /// COMM for the two initial communicators, and if it is freed already. The error of a delete
    /// callback of this rank; the communicator is freed all the same.
    #[track_caller]
    #[doc(alias = "MPI_Comm_free")]
    pub fn free(self) -> Result<()> {
        let caller = Location::caller();
        let end = || {
            self.present()?;
            if [Context::WORLD, Context::SELF].contains(&self.shared.context) {
                return Err(FIRST.into());
            }
            if !self.has_failed() {
                let announced = self.announce(|| "free of a communicator".to_owned(), caller);
                // A revocation meanwhile ends the announcement, but not the free.
                announced.or_else(|error| if self.has_failed() { Ok(()) } else { Err(error) })?;
            }
            self.begin(Call::new("free of a communicator"));
            // The other ranks leave as well, so this one must go on even if a callback failed or
            // panicked.
            let cleared = catch_unwind(AssertUnwindSafe(|| self.clear_attributes()));
            if self.shared.ended.fetch_or(HAS_ENDED, Ordering::Relaxed) & HAS_ENDED != 0 {
                return Err(FREED.into());
            }
            self.release_meeting()?;
            cleared.unwrap_or_else(|panic| resume_unwind(panic))
        };
        let ended = self.process().during(Activity::FreeCommunicator, 0, At::of(caller), end);
        ended.map_err(|error| self.raised(error, "free", caller))
    }

    /// Makes communicators of the ranks that propose the same color. Those of an intercommunicator
    /// are intercommunicators.
    #[track_caller]
    fn make(
        &self,
        call: &'static str,
        propose: impl FnOnce() -> Result<Proposal>,
    ) -> Result<Option<Communicator>> {
        let made = self.make_of_all(call, propose)?;
        Ok(made.and_then(|made| if self.is_inter() { self.divided(&made) } else { Some(made) }))
    }

    /// Makes communicators of the ranks of both groups.
    #[track_caller]
    pub(super) fn make_of_all(
        &self,
        call: &'static str,
        propose: impl FnOnce() -> Result<Proposal>,
    ) -> Result<Option<Communicator>> {
        let caller = Location::caller();
        let made = || {
            self.ready()?;
            self.announce(|| call.to_owned(), caller)?;
            let at = self.begin(Call::new(call));
            let (proposal, wrong) = proposed(propose());
            let all = self.participants(at);
            let made = finish(pin!(self.make_agreed(&all, self.everyone().0, proposal)));
            self.end_call(at, wrong.map_or(made, Err))
        };
        let made = self.process().during(Activity::MakeCommunicator, 0, At::of(caller), made);
        made.map_err(|error| self.raised(error, call, caller))
    }

    /// Evaluates the proposals of the ranks in `asked`, and makes the communicator of this rank.
    async fn make_agreed(
        &self,
        participants: &Participants<'_>,
        asked: &Group,
        proposal: Proposal,
    ) -> Result<Option<Communicator>> {
        let process = self.process();
        let number = match asked.rank() {
            Some(0) => process.number_context(),
            _ => Ok(0),
        };
        let none_left = number.as_ref().err().map(told);
        let (part, context) = (proposal.part, number.unwrap_or(0));
        let proposal = Proposal { context, error: proposal.error.or(none_left), ..proposal };
        let proposals = participants.allgather_values(&proposal).await?;
        if let Some((rank, (class, text))) =
            (0..).zip(&proposals).find_map(|(rank, proposal)| Some((rank, proposal.error.clone()?)))
        {
            return Err(ErrorKind::elsewhere(asked.process(rank), class, text).into());
        }
        let of = |part: u64| proposals.iter().filter(move |other| other.part == Some(part)).count();
        for (rank, proposal) in (0..).zip(&proposals) {
            let Some((due, part)) = proposal.due.zip(proposal.part) else { continue };
            if of(part) != due as usize {
                let by = asked.process(rank);
                let what = format!(
                    "process {by} gave {due} processes, of which not all gave the same group"
                );
                return Err(ErrorKind::Group(what).into());
            }
        }
        let context = proposals.first().map_or(0, |proposal| proposal.context);
        let context = Context::new(context).ok_or(ErrorKind::Numbers)?;
        let Some(part) = part else { return Ok(None) };
        let mut members: Vec<(i32, u32)> = (0..)
            .zip(&proposals)
            .filter(|(_, other)| other.part == Some(part))
            .map(|(rank, other)| (other.key, asked.process(rank)))
            .collect();
        // A stable sort: members with equal keys stay in the order of their ranks here.
        members.sort_by_key(|(key, _)| *key);
        let members = members.into_iter().map(|(_, process)| process).collect();
        let group = Group::new(members, process.me().rank);
        let rank = group.rank().ok_or_else(|| self.absent())? as u32;
        tracing::debug!(rank = process.me().rank, ?context, ?group, "communicator made");
        let made = Communicator::new(process.clone(), context, group, rank);
        made.set_errhandler(self.errhandler());
        Ok(Some(made))
    }

    /// Refuses a group with processes outside this communicator.
    fn check_part(&self, group: &Group) -> Result<()> {
        self.group().check_own(group)?;
        let outside = group.processes().iter().find(|process| !self.group().contains(**process));
        match outside {
            None => Ok(()),
            Some(process) => {
                let what = format!("process {process} of the group isn't in the communicator");
                Err(ErrorKind::Group(what).into())
            }
        }
    }

    /// The first rank whose data representation equals this rank's.
    fn first_alike(&self) -> u32 {
        let process = self.process();
        let mine = process.me().architecture;
        let mut engine = process.engine();
        let alike = |other: &u32| {
            let known = engine.state().representation(*other);
            known.is_some_and(|(other, _)| other.same_representation(&mine))
        };
        let first = self.group().processes().iter().position(alike);
        first.unwrap_or_default() as u32
    }

    /// The error of a rank that isn't in the group it must belong to.
    fn absent(&self) -> Error {
        let what = format!("process {} isn't in the group", self.process().me().rank);
        ErrorKind::Group(what).into()
    }
}

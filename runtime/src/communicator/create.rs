//! New communicators out of old ones, and their end (MPI-5.0 section 7.4).
//!
//! Every rank tells all others what it proposes, or what is wrong with it; all look at the same proposals, so all come to
//! the same end. A context is a number that none of the ranks which agree on it has had before; ranks that know nothing of
//! each other may have the same one.

use std::panic::Location;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::agree::{Circle, told};
use super::{Communicator, FIRST, FREED, Shared};
use crate::engine::{Channel, Context};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::job::Activity;
use crate::object::Card;

/// What ranks have to have in common to be together (MPI-5.0 section 7.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SplitType {
    /// They can share memory: MPI_COMM_TYPE_SHARED.
    Shared,
    /// One data representation: between them no conversion is needed, and locale-specific types are right. Not in MPI.
    Architecture,
}

/// What a rank brings to the making of communicators.
#[derive(Debug, Serialize, Deserialize)]
struct Proposal {
    /// The lowest context that this rank hasn't had.
    context: u32,
    /// Which of the new communicators it will belong to, if to any.
    part: Option<u64>,
    /// Its place there.
    key: i32,
    /// How many have to be there, if that is known.
    due: Option<u32>,
    /// The class and text of what is wrong at this rank.
    error: Option<(u8, String)>,
}

impl Proposal {
    fn new(part: Option<u64>, key: i32) -> Proposal {
        Proposal { context: 0, part, key, due: None, error: None }
    }

    /// To be one of a group, or of none.
    fn of(group: &Group) -> Proposal {
        match group.rank() {
            Some(rank) => {
                // FNV-1a, process by process: the same on every machine, and with every compiler.
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

/// The tag of what all ranks of a communicator agree on.
const ALL: i32 = 3;

impl Communicator {
    /// The same ranks in a context of their own (MPI-5.0 section 7.4.2), with what the copy callbacks make of the attributes.
    /// Collective.
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
    /// What a copy callback returns, at all ranks; PROC_ABORTED where a rank died.
    #[track_caller]
    pub fn dup(&self) -> Result<Communicator> {
        let card = Card::new(self.process().names());
        let propose = || {
            self.card().copy_to(&card, None)?;
            Ok(Proposal::new(Some(0), self.rank()))
        };
        let made = self.make("dup", propose)?.ok_or_else(|| self.absent())?;
        card.set_errhandler(self.errhandler());
        let Shared { context, group, rank, .. } = &*made.shared;
        Ok(Communicator::with_card(self.process().clone(), *context, group.clone(), *rank, card))
    }

    /// As many communicators as there are colors: this rank is with those that give the same, in the order of their keys,
    /// then of their ranks here; with none, if it gives none (MPI_UNDEFINED). Collective (MPI-5.0 section 7.4.2).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// // Odd and even ranks, the last one first.
    /// let parity = world.split(Some(world.rank() % 2), -world.rank())?.unwrap();
    /// parity.barrier()?;
    /// parity.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// ARG for a negative color, at all ranks; PROC_ABORTED where a rank died.
    #[track_caller]
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

    /// As [`split`](Communicator::split), by what the ranks have in common.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::SplitType;
    ///
    /// // Those that share memory, and of them those that need no conversion.
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
    /// PROC_ABORTED where a rank died.
    #[track_caller]
    pub fn split_type(&self, kind: Option<SplitType>, key: i32) -> Result<Option<Communicator>> {
        self.make("split_type", || {
            let part = match kind {
                None => None,
                Some(SplitType::Shared) => {
                    let process = self.process();
                    Some(process.hosts().of(process.me().rank).into())
                }
                // The first that is like this rank; in the other half of the numbers.
                Some(SplitType::Architecture) => Some((1 << 32) + u64::from(self.first_alike())),
            };
            Ok(Proposal::new(part, key))
        })
    }

    /// A communicator of a part of the ranks (MPI-5.0 section 7.4.2). Collective over all of this one: those that aren't in
    /// the group they give get none. Several at once are made where ranks give groups that have no rank in common.
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
    /// GROUP for one with ranks from elsewhere, and where a member gave another group, at all ranks; PROC_ABORTED where a
    /// rank died.
    #[track_caller]
    pub fn create(&self, group: &Group) -> Result<Option<Communicator>> {
        self.make("create", || self.check_part(group).map(|()| Proposal::of(group)))
    }

    /// As [`create`](Communicator::create), collective over the group alone; `tag` tells apart calls that are made at the
    /// same time (MPI-5.0 section 7.4.2).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// if world.rank() == 0 {
    ///     // Nobody else calls.
    ///     let group = world.group().incl(&[0])?;
    ///     world.create_group(&group, 0)?.free()?;
    /// }
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// GROUP for one without this rank, or with ranks from elsewhere; TAG; PROC_ABORTED where a rank of the group died.
    pub fn create_group(&self, group: &Group, tag: i32) -> Result<Communicator> {
        let made = || -> Result<Option<Communicator>> {
            self.ready()?;
            if tag < 0 {
                return Err(ErrorKind::Tag(tag).into());
            }
            // Nobody else is asked, so nobody else learns of it.
            self.check_part(group)?;
            let rank = group.rank().ok_or_else(|| self.absent())? as u32;
            let context = self.context(Channel::Groups);
            let circle = Circle::new(self.process(), group, rank, context, tag);
            self.agree(&circle, group, Proposal::of(group))
        };
        let made = self.process().during(Activity::MakeCommunicator, 0, made);
        made.and_then(|made| made.ok_or_else(|| self.absent()))
            .map_err(|error| self.raise(error.at(|| self.place("create_group"))))
    }

    /// Ends the communicator (MPI-5.0 section 7.4.3) and deletes its attributes. Collective. Windows made on it go on.
    ///
    /// # Errors
    /// COMM for the communicators that are there from the start, and one that is freed. What a delete callback of this rank
    /// returns, and the communicator is gone all the same; PROC_ABORTED where a rank died.
    #[track_caller]
    pub fn free(self) -> Result<()> {
        let caller = Location::caller();
        let end = || {
            self.ready()?;
            if [Context::WORLD, Context::SELF].contains(&self.shared.context) {
                return Err(FIRST.into());
            }
            self.announce(|| "free of a communicator".to_owned(), caller)?;
            // The others count on this rank, whatever its callbacks say.
            let cleared = self.clear_attributes();
            if self.shared.freed.swap(true, Ordering::Relaxed) {
                return Err(FREED.into());
            }
            self.rendezvous()?;
            self.release_meeting()?;
            cleared
        };
        let ended = self.process().during(Activity::FreeCommunicator, 0, end);
        ended.map_err(|error| self.raise(error.at(|| self.place("free"))))
    }

    #[track_caller]
    fn make(
        &self,
        call: &'static str,
        propose: impl FnOnce() -> Result<Proposal>,
    ) -> Result<Option<Communicator>> {
        let caller = Location::caller();
        let made = || {
            self.ready()?;
            self.announce(|| call.to_owned(), caller)?;
            let (proposal, wrong) = match propose() {
                Ok(proposal) => (proposal, None),
                Err(error) => {
                    let error = Some(error);
                    (Proposal { error: error.as_ref().map(told), ..Proposal::new(None, 0) }, error)
                }
            };
            let made = self.agree(&self.circle(ALL), self.group(), proposal);
            wrong.map_or(made, Err)
        };
        let made = self.process().during(Activity::MakeCommunicator, 0, made);
        made.map_err(|error| self.raise(error.at(|| self.place(call))))
    }

    /// Makes the communicator that this rank belongs to by everyone's proposals, `asked` being who makes them.
    fn agree(
        &self,
        circle: &Circle<'_>,
        asked: &Group,
        proposal: Proposal,
    ) -> Result<Option<Communicator>> {
        let process = self.process();
        let making = process.begin_making();
        let busy = making.as_ref().err().map(told);
        let proposal = Proposal { error: proposal.error.or(busy), ..proposal };
        let part = proposal.part;
        let proposals = circle.tell(&Proposal { context: process.next_context(), ..proposal })?;
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
        let context = proposals.iter().map(|proposal| proposal.context).max().unwrap_or(0);
        let next = context.checked_add(1).ok_or(ErrorKind::Contexts)?;
        let context = Context::new(context).ok_or(ErrorKind::Contexts)?;
        process.set_next_context(next);
        let Some(part) = part else { return Ok(None) };
        let mut members: Vec<(i32, u32)> = (0..)
            .zip(&proposals)
            .filter(|(_, other)| other.part == Some(part))
            .map(|(rank, other)| (other.key, asked.process(rank)))
            .collect();
        // By key, and where keys are equal in the order that they have here.
        members.sort_by_key(|(key, _)| *key);
        let members = members.into_iter().map(|(_, process)| process).collect();
        let group = Group::new(members, process.me().rank);
        let rank = group.rank().ok_or_else(|| self.absent())? as u32;
        tracing::debug!(rank = process.me().rank, ?context, ?group, "communicator made");
        let made = Communicator::new(process.clone(), context, group, rank);
        made.set_errhandler(self.errhandler());
        Ok(Some(made))
    }

    /// Refuses a group that isn't a part of this communicator's.
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

    /// The first rank whose representation is this one's.
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

    /// The error of a rank that is to be in a group, and isn't.
    fn absent(&self) -> Error {
        let what = format!("process {} isn't in the group", self.process().me().rank);
        ErrorKind::Group(what).into()
    }
}

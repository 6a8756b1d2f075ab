//! Intercommunicators: two groups, of which each rank addresses those of the other one (MPI-5.0
//! sections 7.2.3 and 7.6).
//!
//! Both groups together are a group as any other, the one with the lower leader first. Most
//! exchanges take place in it, and in the context that both groups share.

mod collective;

use std::panic::Location;
use std::pin::pin;

use serde::{Deserialize, Serialize};

use super::Communicator;
use super::calls::Call;
use super::create::Proposal;
use super::participants::{Participants, finish, told};
use crate::engine::{Channel, Context};
use crate::error::{ErrorKind, Result};
use crate::group::Group;
use crate::job::Activity;
use crate::object::Card;
use crate::observe::At;

pub(super) const OVERLAP: ErrorKind = ErrorKind::CommunicatorHandle(
    "made of two groups with a process in common: give groups without common processes",
);
const NO_PEER: ErrorKind = ErrorKind::CommunicatorHandle(
    "missing by which the leaders know each other: pass it at the leader of each group",
);
const NO_INTER: ErrorKind =
    ErrorKind::CommunicatorHandle("no intercommunicator: only those have two groups");
const INTER: ErrorKind = ErrorKind::CommunicatorHandle(
    "an intercommunicator: this call takes communicators of one group, such as merge makes",
);

/// The groups of an intercommunicator, beside the own one.
#[derive(Clone)]
pub(super) struct Inter {
    /// The ranks that this one addresses.
    remote: Group,
    /// Both groups.
    all: Group,
    /// The rank of this process among all.
    rank: u32,
}

impl Inter {
    /// The groups around `own`, which comes first if it `leads`.
    pub(super) fn new(own: &Group, remote: Vec<u32>, leads: bool, me: u32) -> Inter {
        let all = match leads {
            true => [own.processes(), &remote].concat(),
            false => [&remote, own.processes()].concat(),
        };
        let all = Group::new(all, me);
        let rank = all.rank().unwrap_or_default() as u32;
        Inter { remote: Group::new(remote, me), all, rank }
    }

    /// Where the remote ranks are among all.
    fn remote_range(&self) -> std::ops::Range<usize> {
        let (remote, all) = (self.remote.size() as usize, self.all.size() as usize);
        match self.all.process(0) == self.remote.process(0) {
            true => 0..remote,
            false => all - remote..all,
        }
    }
}

/// What the leaders of two groups exchange.
#[derive(Serialize, Deserialize)]
struct Meeting {
    processes: Vec<u32>,
    /// The number of the new communicator; that of the leader that comes first counts.
    context: u32,
}

/// The other group and the number of the new communicator, or the class and text of the leader's
/// error.
type Met = std::result::Result<(Vec<u32>, u32, bool), (u8, String)>;

impl Communicator {
    /// Makes an intercommunicator of this communicator's ranks and those of another one (MPI-5.0
    /// section 7.6.2). Collective over both communicators, which have no process in common.
    ///
    /// One rank of each is its leader. The leaders know each other by a third communicator: each
    /// passes that and the rank of the other leader in it as `peer`. The other ranks pass `None`.
    /// The tag distinguishes calls that are made at the same time.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::ROOT;
    ///
    /// let world = rank.world();
    /// if world.size() > 1 {
    ///     // The first rank, and the others.
    ///     let is_first = world.rank() == 0;
    ///     let part = world.split(Some(i32::from(is_first)), 0)?.unwrap();
    ///     let peer = Some((world, i32::from(is_first)));
    ///     let both = part.intercomm_create(0, peer.filter(|_| part.rank() == 0), 7)?;
    ///     assert_eq!(both.remote_group().unwrap().size(), world.size() - part.size());
    ///     // The first rank sends to all others.
    ///     let mut value = [if is_first { 5 } else { 0 }];
    ///     both.bcast(&mut value, if is_first { ROOT } else { 0 })?;
    ///     assert_eq!(value, [5]);
    ///     let merged = both.merge(!is_first)?;
    ///     assert_eq!(merged.rank(), world.rank());
    ///     merged.free()?;
    ///     both.free()?;
    ///     part.free()?;
    /// }
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RANK for a leader outside of its communicator. TAG for a negative tag. COMM if the groups
    /// have a process in common, if this communicator is an intercommunicator, or if the leader
    /// passes no other one. The ranks of one group get the error of their leader.
    #[track_caller]
    #[doc(alias = "MPI_Intercomm_create")]
    pub fn intercomm_create(
        &self,
        leader: i32,
        peer: Option<(&Communicator, i32)>,
        tag: i32,
    ) -> Result<Communicator> {
        const NAME: &str = "intercomm_create";
        let caller = Location::caller();
        let make = || -> Result<Communicator> {
            self.ready()?;
            self.intra()?;
            let outside = ErrorKind::Rank { rank: leader, size: self.size() as u32, null: false };
            let first = u32::try_from(leader).ok().filter(|_| leader < self.size());
            let first = first.ok_or(outside)?;
            self.announce(|| NAME.to_owned(), caller)?;
            let at = self.begin(Call::new(NAME));
            let met: Option<Met> = (self.rank() == leader)
                .then(|| self.meet_leader(peer, tag).map_err(|error| told(&error)));
            let met = self.told_by(first, met)?;
            let by = self.group().process(first);
            let (remote, context, leads) =
                met.map_err(|(class, text)| ErrorKind::elsewhere(by, class, text))?;
            if remote.iter().any(|process| self.group().contains(*process)) {
                return Err(OVERLAP.into());
            }
            let context = Context::new(context).ok_or(ErrorKind::Numbers)?;
            let inter = Inter::new(self.group(), remote, leads, self.process().me().rank);
            self.end_call(at, Ok(self.with_remote(context, self.group().clone(), inter)))
        };
        let made = self.process().during(Activity::MakeCommunicator, 0, At::of(caller), make);
        made.map_err(|error| self.raised(error, NAME, caller))
    }

    /// Exchanges groups with the other leader. Returns its group, the number of the new
    /// communicator, and whether this group comes first.
    fn meet_leader(
        &self,
        peer: Option<(&Communicator, i32)>,
        tag: i32,
    ) -> Result<(Vec<u32>, u32, bool)> {
        let process = self.process();
        let (peer, leader) = peer.ok_or(NO_PEER)?;
        peer.ready()?;
        if tag < 0 {
            return Err(ErrorKind::Tag(tag).into());
        }
        let size = peer.peers().size() as u32;
        let outside = ErrorKind::Rank { rank: leader, size, null: false };
        let other = peer.member(leader)?.ok_or(outside)?;
        let me = process.me().rank;
        if other == me {
            return Err(OVERLAP.into());
        }
        let pair = Group::new(vec![me.min(other), me.max(other)], me);
        let rank = u32::from(me > other);
        let context = peer.context(Channel::Groups);
        let leaders = Participants::new(process, &pair, rank, context, tag);
        let processes = self.group().processes().to_vec();
        let mine = Meeting { processes, context: process.number_context()? };
        let limit = self.longest_meeting();
        let both: Vec<Meeting> = finish(pin!(leaders.allgather_values_within(&mine, limit)))?;
        let number = both.first().map_or(0, |first| first.context);
        let remote = both.into_iter().nth(1 - rank as usize);
        Ok((remote.map_or_else(Vec::new, |remote| remote.processes), number, rank == 0))
    }

    /// The longest encoded group, in bytes.
    fn longest_meeting(&self) -> usize {
        4096 + 8 * self.process().me().size as usize
    }

    /// The leader's value, at all ranks of this communicator.
    fn told_by(&self, leader: u32, mine: Option<Met>) -> Result<Met> {
        let by = self.group().process(leader);
        let wrong = |error: shipable::codec::CodecError| ErrorKind::Protocol {
            peer: by,
            what: error.to_string(),
        };
        let limit = self.longest_meeting();
        let encoded = mine.map(|mine| shipable::codec::encode(&mine, limit)).transpose();
        let participants = self.participants(self.current_call()).rooted(leader);
        let told = participants.broadcast(encoded.map_err(wrong)?.unwrap_or_default().into());
        Ok(shipable::codec::decode(&finish(pin!(told))?, limit).map_err(wrong)?)
    }

    /// Makes a communicator of both groups of an intercommunicator (MPI-5.0 section 7.6.3). The
    /// ranks of the group that passes `high` come last. If both groups pass the same, the group
    /// whose leader has the lower rank in the job comes first. Collective over both groups. See
    /// [`intercomm_create`](Communicator::intercomm_create) for an example.
    ///
    /// # Errors
    /// COMM for a communicator that isn't an intercommunicator. PROC_ABORTED if a rank died.
    #[track_caller]
    #[doc(alias = "MPI_Intercomm_merge")]
    pub fn merge(&self, high: bool) -> Result<Communicator> {
        let made = self.make_of_all("intercomm_merge", || {
            let Some(_) = &self.shared.inter else { return Err(NO_INTER.into()) };
            Ok(Proposal::new(Some(0), i32::from(high)))
        })?;
        made.ok_or_else(|| NO_INTER.into())
    }

    /// The other group, of an intercommunicator; `None` for another communicator.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert!(rank.world().remote_group().is_none());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Comm_remote_group")]
    pub fn remote_group(&self) -> Option<&Group> {
        self.shared.inter.as_ref().map(|inter| &inter.remote)
    }

    pub(super) fn is_inter(&self) -> bool {
        self.shared.inter.is_some()
    }

    /// Refuses intercommunicators, for calls that aren't defined on them.
    pub(crate) fn intra(&self) -> Result<()> {
        if self.is_inter() { Err(INTER.into()) } else { Ok(()) }
    }

    /// The ranks that this one addresses: those of the other group in an intercommunicator.
    pub(crate) fn peers(&self) -> &Group {
        self.remote_group().unwrap_or(self.group())
    }

    /// All ranks, of both groups in an intercommunicator, and the rank of this process among them.
    pub(crate) fn everyone(&self) -> (&Group, u32) {
        match &self.shared.inter {
            Some(inter) => (&inter.all, inter.rank),
            None => (&self.shared.group, self.shared.rank),
        }
    }

    /// A communicator of a group that has this process, and another one.
    pub(super) fn with_remote(&self, context: Context, group: Group, inter: Inter) -> Communicator {
        let process = self.process().clone();
        let card = Card::new(process.names());
        card.set_errhandler(self.errhandler());
        let rank = group.rank().unwrap_or_default() as u32;
        Communicator::with_card(process, context, (group, rank, Some(inter)), card)
    }

    /// The intercommunicator of those ranks of this one that are in `made`; `None` if they are of
    /// one group.
    pub(super) fn divided(&self, made: &Communicator) -> Option<Communicator> {
        let inter = self.shared.inter.as_ref()?;
        let me = self.process().me().rank;
        let (remote, own): (Vec<u32>, Vec<u32>) =
            made.group().processes().iter().partition(|process| inter.remote.contains(**process));
        if remote.is_empty() {
            return None;
        }
        let leads = inter.remote_range().start > 0;
        let own = Group::new(own, me);
        let inter = Inter::new(&own, remote, leads, me);
        Some(self.with_remote(made.shared.context, own, inter))
    }
}

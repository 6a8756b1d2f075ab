//! Communicators after failures (the MPI Forum's proposal of fault tolerance, its issues 581 and
//! 583): which members have failed, revocation, agreement, and the communicator of the survivors.
//!
//! A call that needs a failed member returns PROC_FAILED where it needs it, so members may leave a
//! collective call with different outcomes. [`revoke`](Communicator::revoke) lets all of them
//! leave, [`agree`](Communicator::agree) lets them decide as one, and
//! [`shrink`](Communicator::shrink) gives them a communicator on which everything works again.
//!
//! Agreements are numbered apart from all other calls of the communicator, since their members may
//! be in different ones. [`engine::agreements`](crate::engine) has the algorithm.

use std::future::poll_fn;
use std::panic::Location;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use shipable::Architecture;

use super::Communicator;
use super::message::Side;
use super::nonblocking::{Collective, back, side, taken};
use super::participants::told;
use crate::check::Caller;
use crate::engine::{Context, Decision, Subject, Vote};
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::given::Given;
use crate::group::Group;
use crate::job::Activity;
use crate::memory::Memory;
use crate::observe::At;

impl Communicator {
    /// The members that have failed as far as this rank knows, in the order in which it has learned
    /// of it. In an intercommunicator, those of both groups. Local.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert_eq!(rank.world().get_failed()?.size(), 0);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COMM if the communicator is freed.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_get_failed")]
    pub fn get_failed(&self) -> Result<Group> {
        let found = self.failed().map(|failed| self.group_of(failed));
        let caller = Location::caller();
        found.map_err(|error| self.raised(error, "get_failed", caller))
    }

    /// Acknowledges the first `count` failures of [`get_failed`](Communicator::get_failed), or all
    /// of them if they are fewer. Returns how many are acknowledged. Local.
    ///
    /// Receives from any rank don't fail because of failures that are acknowledged. Neither does
    /// [`agree`](Communicator::agree), if all members have acknowledged them.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert_eq!(rank.world().ack_failed(rank.world().size())?, 0);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COMM if the communicator is freed.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_ack_failed")]
    pub fn ack_failed(&self, count: i32) -> Result<i32> {
        let acknowledge = || -> Result<i32> {
            let mut failed = self.failed()?;
            let mut engine = self.process().engine();
            let known = engine.state().acknowledged(self.number()).len();
            failed.truncate(known.max(usize::try_from(count).unwrap_or(0)));
            let all = failed.len() as i32;
            engine.state().acknowledge_failed(self.number(), failed);
            Ok(all)
        };
        let caller = Location::caller();
        acknowledge().map_err(|error| self.raised(error, "ack_failed", caller))
    }

    /// Acknowledges all failures of members that this rank knows. Local. See
    /// [`ack_failed`](Communicator::ack_failed).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// rank.world().failure_ack()?;
    /// assert_eq!(rank.world().failure_get_acked()?.size(), 0);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COMM if the communicator is freed.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_failure_ack")]
    pub fn failure_ack(&self) -> Result<()> {
        self.ack_failed(i32::MAX).map(drop)
    }

    /// The members whose failure this rank has acknowledged on this communicator. Local.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert_eq!(rank.world().failure_get_acked()?.size(), 0);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COMM if the communicator is freed.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_failure_get_acked")]
    pub fn failure_get_acked(&self) -> Result<Group> {
        let caller = Location::caller();
        self.present().map_err(|error| self.raised(error, "failure_get_acked", caller))?;
        let known = self.process().engine().state().acknowledged(self.number()).to_vec();
        Ok(self.group_of(known))
    }

    /// Revokes the communicator: calls on it fail with REVOKED from then on, at every member, also
    /// those that wait. Not collective; one member suffices, and the others learn it within their
    /// calls. Only this module's calls and [`free`](Communicator::free) remain. Windows made on the
    /// communicator go on.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world().dup()?;
    /// world.revoke()?;
    /// assert!(world.is_revoked()? && world.barrier().is_err());
    /// let again = world.shrink()?;
    /// again.barrier()?;
    /// again.free()?;
    /// world.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COMM if the communicator is freed.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_revoke")]
    pub fn revoke(&self) -> Result<()> {
        let caller = Location::caller();
        self.present().map_err(|error| self.raised(error, "revoke", caller))?;
        let mut engine = self.process().engine();
        engine.state().revoke(self.number());
        engine.progress();
        // Other threads of this rank may wait on the communicator.
        self.process().nudge();
        Ok(())
    }

    /// Whether the communicator is revoked, as far as this rank knows. Makes progress. Local.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert!(!rank.world().is_revoked()?);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COMM if the communicator is freed.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_is_revoked")]
    pub fn is_revoked(&self) -> Result<bool> {
        let caller = Location::caller();
        let looked = self.present().and_then(|()| self.process().poll());
        looked.map_err(|error| self.raised(error, "is_revoked", caller))?;
        Ok(self.has_been_revoked())
    }

    /// Agrees with all other surviving members on a flag: the bitwise "and" of the flags that they
    /// pass. Collective over the survivors, of both groups in an intercommunicator. Works on a
    /// revoked communicator too.
    ///
    /// All members that return have the same flag and the same outcome, also those that fail right
    /// afterwards.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let mut has_succeeded = 1;
    /// rank.world().agree(&mut has_succeeded)?;
    /// assert_eq!(has_succeeded, 1);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PROC_FAILED at all members if one has failed whose failure not all of them had
    /// [acknowledged](Communicator::ack_failed). The flag is agreed on even then. RMA_SYNC at all
    /// members if one makes another call in place of this one. COMM if the communicator is freed.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_agree")]
    pub fn agree(&self, flag: &mut i32) -> Result<()> {
        let caller = Location::caller();
        let agreed = self.process().during(Activity::Agree, 0, At::of(caller), || {
            let decision = self.decide(Subject::Flag, *flag as u32, Ok(0))?;
            *flag = decision.flag as i32;
            unacknowledged(decision)
        });
        agreed.map_err(|error| self.raised(error, "agree", caller))
    }

    /// Starts to agree on a flag, which is one `i32` in the memory that is given. The result is
    /// written there. See [`agree`](Communicator::agree).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let agreeing = rank.world().iagree(vec![3])?;
    /// // Other work.
    /// assert_eq!(agreeing.wait()?, [3]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COUNT for other memory than one `i32`, at all members. Those of
    /// [`agree`](Communicator::agree), when the call is waited for: the flag is written even if it
    /// is PROC_FAILED, and is also in the error, an
    /// [`Unacknowledged`](ErrorKind::Unacknowledged), since the memory is dropped then.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_iagree")]
    pub fn iagree<M: Memory>(&self, flag: impl Into<Given<M>>) -> Result<Collective<M>> {
        self.start_surviving("iagree", |own| {
            let given = taken(flag.into(), &own);
            let given = given.and_then(|place| Ok((own.read_flag(side(&place))?, 0, place)));
            let (name, place) = own.vote(Subject::Flag, given)?;
            let held = place.clone();
            let steps = async move {
                let decision = own.decision(name, Subject::Flag).await?;
                own.write_flag(side(&held), decision.flag)?;
                unacknowledged(decision)
            };
            Ok((steps, || back(place)))
        })
    }

    /// Makes a communicator of the members that survive: all agree on those that have failed, which
    /// it leaves out. The others keep their order. A member that fails later than that is in it.
    /// Collective over the survivors; that of an intercommunicator is an intercommunicator. Works
    /// on a revoked communicator too.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let survivors = rank.world().shrink()?;
    /// assert_eq!(survivors.size(), rank.world().size());
    /// survivors.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COMM if the communicator is freed. GROUP if no member of the other group of an
    /// intercommunicator survives. RMA_SYNC at all members if one makes another call in place of
    /// this one.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_shrink")]
    pub fn shrink(&self) -> Result<Communicator> {
        let caller = Location::caller();
        let made = self.process().during(Activity::MakeCommunicator, 0, At::of(caller), || {
            let number = self.process().number_context();
            self.without(&self.decide(Subject::Survivors, !0, number)?)
        });
        made.map_err(|error| self.raised(error, "shrink", caller))
    }

    /// Starts to make a communicator of the members that survive. See
    /// [`shrink`](Communicator::shrink).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let making = rank.world().ishrink()?;
    /// // Other work.
    /// let survivors = making.wait()?;
    /// survivors.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`shrink`](Communicator::shrink), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_ishrink")]
    pub fn ishrink(&self) -> Result<Collective<Communicator>> {
        self.start_surviving("ishrink", |own| {
            let number = own.process().number_context();
            let ballot = number.map(|number| (!0, number, ()));
            let (name, ()) = own.vote(Subject::Survivors, ballot)?;
            let made = Arc::new(OnceLock::new());
            let place = made.clone();
            let steps = async move {
                let survivors = own.without(&own.decision(name, Subject::Survivors).await?)?;
                let _ = place.set(survivors);
                Ok(())
            };
            Ok((steps, || Arc::into_inner(made).and_then(OnceLock::into_inner)))
        })
    }

    /// Returns after all other members have called it, or are gone.
    pub(super) fn meet_survivors(&self, caller: Caller) -> Result<()> {
        self.process().during(Activity::Finalize, 0, At::of(caller), || {
            self.decide(Subject::End, 0, Ok(0)).map(drop)
        })
    }

    /// Whether calls on the communicator fail: it is revoked, or a member has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_been_revoked() || self.process().check_living(self.everyone().0, None).is_err()
    }

    /// The members that have failed, by their ranks in the job. Makes progress first.
    fn failed(&self) -> Result<Vec<u32>> {
        self.present()?;
        self.process().poll()?;
        Ok(self.process().engine().state().failed_among(self.everyone().0))
    }

    fn group_of(&self, ranks: Vec<u32>) -> Group {
        Group::new(ranks, self.process().me().rank)
    }

    /// Votes in the next agreement: a flag and a number. Returns the agreement's name. A rank whose
    /// call has failed votes too, with its error. So the others learn of that, and all members go
    /// on to the same agreement.
    fn vote<T>(&self, subject: Subject, ballot: Result<(u32, u32, T)>) -> Result<((u32, u32), T)> {
        self.present()?;
        let name = (self.number(), self.begin_agreement());
        let mut engine = self.process().engine();
        let mut acknowledged = engine.state().acknowledged(self.number()).to_vec();
        acknowledged.sort_unstable();
        let vote = match &ballot {
            Ok((flag, number, _)) => Vote::new(subject, *flag, *number, acknowledged),
            Err(error) => Vote::of_fault(subject, told(error)),
        };
        engine.state().start_agreement(name, self.everyone().0, vote);
        if ballot.is_err() {
            engine.state().abandon_agreement(name);
        }
        engine.progress();
        ballot.map(|(_, _, held)| (name, held))
    }

    /// Votes in the next agreement for a call that has failed.
    pub(super) fn refuse_agreement(
        &self,
        subject: Subject,
        fault: Error,
        caller: Caller,
    ) -> Result<()> {
        let voted = self.vote::<()>(subject, Err(fault));
        voted.map(drop).map_err(|error| self.raised(error, subject.name(), caller))
    }

    /// Votes in the next agreement, and waits for the decision.
    fn decide(&self, subject: Subject, flag: u32, number: Result<u32>) -> Result<Decision> {
        let (name, ()) = self.vote(subject, number.map(|number| (flag, number, ())))?;
        let process = self.process();
        let decision = process.wait(|state, arming| {
            let decision = state.take_decision(name);
            if decision.is_none() && arming {
                process.note_wait(state.awaited_in_agreement(name));
            }
            decision.map(Ok)
        })?;
        valid(decision, subject)
    }

    /// The decision of an agreement, for the steps of a call with a request.
    async fn decision(&self, name: (u32, u32), subject: Subject) -> Result<Decision> {
        let found = || self.process().engine().state().take_decision(name);
        let found = poll_fn(|_| found().map_or(Poll::Pending, Poll::Ready)).await;
        valid(found, subject)
    }

    /// The communicator of the members that hadn't failed.
    fn without(&self, decision: &Decision) -> Result<Communicator> {
        let process = self.process();
        let context = Context::new(decision.number).ok_or(ErrorKind::Numbers)?;
        let members = self.everyone().0.processes().iter().copied();
        let living = members.filter(|member| !decision.failed.contains(member)).collect();
        let group = Group::new(living, process.me().rank);
        let outside = || ErrorKind::Group("this process was taken for failed".to_owned());
        let rank = group.rank().ok_or_else(outside)? as u32;
        let made = Communicator::new(process.clone(), context, group, rank);
        made.set_errhandler(self.errhandler());
        match self.is_inter() {
            false => Ok(made),
            true => self.divided(&made).ok_or_else(|| {
                let what = "no process of the other group has survived".to_owned();
                ErrorKind::Group(what).into()
            }),
        }
    }

    /// The flag in memory of one int.
    fn read_flag(&self, place: Side<'_>) -> Result<u32> {
        let all = place.resolve(self)?;
        let mut bytes = [0; 4];
        let datatype = all.datatype.committed();
        if all.count != 1 || datatype.pack_size(1, &Architecture::NATIVE)? != 4 {
            return Err(ErrorKind::Ranges("an agreement takes one int".to_owned()).into());
        }
        let packed = all.part(0)?.pack_to(datatype, 1, &mut bytes, &mut 0, &Architecture::NATIVE);
        packed.map_err(conversion)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// Writes the flag to memory of one int.
    fn write_flag(&self, place: Side<'_>, flag: u32) -> Result<()> {
        let all = place.resolve(self)?;
        let (datatype, bytes) = (all.datatype.committed(), flag.to_ne_bytes());
        let to = all.part(0)?;
        to.unpack_from(datatype, 1, &bytes, &mut 0, &Architecture::NATIVE).map_err(conversion)
    }
}

/// The error of an agreement with failures that not all members have acknowledged.
fn unacknowledged(Decision { mut failed, acknowledged, flag, .. }: Decision) -> Result<()> {
    failed.retain(|rank| !acknowledged.contains(rank));
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Error::from(ErrorKind::Unacknowledged { failed, flag: flag as i32 })),
    }
}

/// Refuses a decision on votes in different calls, and on one of a member whose call has failed.
fn valid(decision: Decision, subject: Subject) -> Result<Decision> {
    if let Some((by, class, text)) = decision.fault {
        return Err(ErrorKind::elsewhere(by, class, text).into());
    }
    let Some(other) = decision.other else { return Ok(decision) };
    let differs = if decision.first.1 == subject { other } else { decision.first };
    let (peer, theirs, ours) = (differs.0, differs.1.name().to_owned(), subject.name().to_owned());
    Err(ErrorKind::Mismatch { peer, theirs, ours }.into())
}

//! The state of a window's epochs at one rank: the calls that are legal in it (rules 1 to 5, 11, 12
//! and 25).

use std::fmt;

use longshore_transport::lock::Sharing;

use crate::error::ErrorKind;

/// The access epoch of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpochState {
    /// No epoch is open, so no operation is allowed.
    Closed,
    /// Between two fences, the first of which has this number.
    Fence(u64),
    /// Between start and complete, with this number of targets.
    Started(u32),
    /// This number of targets is locked individually.
    Locks(u32),
    /// Between lock_all and unlock_all.
    LockAll {
        /// With NOCHECK: no lock conflicts, so none is taken.
        unchecked: bool,
    },
    /// The window is freed.
    Freed,
    /// This rank of the job panicked within an epoch.
    Poisoned(u32),
}

/// A call that changes the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Fence { succeeds: bool },
    Start(u32),
    Complete,
    Lock,
    Unlock,
    LockAll { unchecked: bool },
    UnlockAll,
    Free,
}

/// The permission of this rank's operations on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The target isn't opened individually; an epoch may be open to all ranks.
    Closed,
    /// The target is in the start group.
    Started,
    /// The target is locked by this rank's own claim, whose ticket is in the target. One word holds
    /// the whole value: a larger one costs a store-forwarding stall (docs/tuning.md, "Scalar
    /// arguments").
    Claimed(Sharing),
    /// The target has granted its lock by message.
    Granted,
    /// The target needs no lock.
    Unchecked,
}

impl fmt::Display for EpochState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EpochState::Closed => f.write_str("no epoch"),
            EpochState::Fence(number) => write!(f, "fence epoch {number}"),
            EpochState::Started(1) => f.write_str("started to 1 target"),
            EpochState::Started(targets) => write!(f, "started to {targets} targets"),
            EpochState::Locks(1) => f.write_str("1 target locked"),
            EpochState::Locks(targets) => write!(f, "{targets} targets locked"),
            EpochState::LockAll { .. } => f.write_str("all targets locked"),
            EpochState::Freed => f.write_str("freed"),
            EpochState::Poisoned(_) => f.write_str("poisoned"),
        }
    }
}

impl EpochState {
    /// The error of every call, if the window can't be used any more.
    pub(super) fn over(self) -> Option<ErrorKind> {
        match self {
            EpochState::Freed => Some(ErrorKind::WindowFreed),
            EpochState::Poisoned(by) => Some(ErrorKind::WindowPoisoned { by }),
            _ => None,
        }
    }

    /// The state after a call. `used` is whether the fence epoch has had an operation. Until then,
    /// the epoch isn't open, and any other epoch may begin.
    #[inline]
    pub(super) fn after(self, step: Step, used: bool) -> Result<EpochState, ErrorKind> {
        use EpochState::*;
        let free = matches!(self, Closed) || matches!(self, Fence(_)) && !used;
        match (self, step) {
            (Freed | Poisoned(_), _) => Err(self.over().unwrap_or(ErrorKind::WindowFreed)),
            (Closed, Step::Fence { succeeds: true }) => Ok(Fence(1)),
            (Fence(number), Step::Fence { succeeds: true }) => Ok(Fence(number + 1)),
            (Closed | Fence(_), Step::Fence { succeeds: false }) => Ok(Closed),
            (_, Step::Fence { .. }) => Err(ErrorKind::Epoch(FENCE_WITHIN)),
            (_, Step::Start(targets)) if free => Ok(Started(targets)),
            (_, Step::Start(_)) => Err(ErrorKind::Epoch(START_WITHIN)),
            (Started(_), Step::Complete) => Ok(Closed),
            (_, Step::Complete) => Err(ErrorKind::Epoch(COMPLETE_WITHOUT)),
            (Locks(held), Step::Lock) => Ok(Locks(held + 1)),
            (_, Step::Lock) if free => Ok(Locks(1)),
            (_, Step::Lock) => Err(ErrorKind::Epoch(LOCK_WITHIN)),
            (Locks(1), Step::Unlock) => Ok(Closed),
            (Locks(held), Step::Unlock) => Ok(Locks(held - 1)),
            (LockAll { .. }, Step::Unlock) => Err(ErrorKind::Epoch(UNLOCK_WITHIN)),
            (_, Step::Unlock) => Err(ErrorKind::Epoch(UNLOCK_WITHOUT)),
            (_, Step::LockAll { unchecked }) if free => Ok(LockAll { unchecked }),
            (_, Step::LockAll { .. }) => Err(ErrorKind::Epoch(LOCK_WITHIN)),
            (LockAll { .. }, Step::UnlockAll) => Ok(Closed),
            (_, Step::UnlockAll) => Err(ErrorKind::Epoch(UNLOCK_ALL_WITHOUT)),
            (_, Step::Free) if free => Ok(Freed),
            (_, Step::Free) => Err(ErrorKind::Epoch(FREE_IN_EPOCH)),
        }
    }
}

const FENCE_WITHIN: &str = "a {fence} within another access epoch: end that by {complete}, {unlock} or {unlock_all} first (rule 3)";
const START_WITHIN: &str = "a {start} within another access epoch: end that by {complete}, {unlock} or a {fence} first (rule 3)";
const LOCK_WITHIN: &str = "a {lock} within another access epoch: end that by {complete}, {unlock}, {unlock_all} or a {fence} first (rule 3)";
const COMPLETE_WITHOUT: &str = "a {complete} without a {start}: call {start} before it (rule 4)";
const UNLOCK_WITHOUT: &str = "an {unlock} without a {lock}: lock the target before (rule 5)";
const UNLOCK_WITHIN: &str =
    "an {unlock} within {lock_all}, which ends as a whole: call {unlock_all} (rule 4)";
const UNLOCK_ALL_WITHOUT: &str =
    "an {unlock_all} without a {lock_all}: call {lock_all} before (rule 4)";
pub(super) const FREE_IN_EPOCH: &str = "a window isn't freed with an epoch open or operations under way: end the epoch first \
     (rule 25)";

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Step = Step::LockAll { unchecked: false };
    const FENCE: Step = Step::Fence { succeeds: true };
    const LAST: Step = Step::Fence { succeeds: false };
    const STATES: [EpochState; 8] = [
        EpochState::Closed,
        EpochState::Fence(1),
        EpochState::Started(2),
        EpochState::Locks(1),
        EpochState::Locks(2),
        EpochState::LockAll { unchecked: false },
        EpochState::Freed,
        EpochState::Poisoned(3),
    ];

    /// Each call, with the indices of the `STATES` in which it is legal: with a used and with an
    /// unused fence epoch.
    #[test]
    fn each_call_is_legal_only_in_its_states() {
        let table: [(Step, &[usize], &[usize]); 9] = [
            (FENCE, &[0, 1], &[0, 1]),
            (LAST, &[0, 1], &[0, 1]),
            (Step::Start(1), &[0], &[0, 1]),
            (Step::Complete, &[2], &[2]),
            (Step::Lock, &[0, 3, 4], &[0, 1, 3, 4]),
            (Step::Unlock, &[3, 4], &[3, 4]),
            (ALL, &[0], &[0, 1]),
            (Step::UnlockAll, &[5], &[5]),
            (Step::Free, &[0], &[0, 1]),
        ];
        for (step, used, unused) in table {
            for (at, state) in STATES.into_iter().enumerate() {
                for (is_used, legal) in [(true, used), (false, unused)] {
                    let after = state.after(step, is_used);
                    assert_eq!(after.is_ok(), legal.contains(&at), "{step:?} in {state:?}");
                    if let Err(error) = after {
                        let over = state.over().map(|over| over.to_string());
                        let text = error.to_string();
                        assert_eq!(over.unwrap_or_else(|| text.clone()), text);
                        assert!(state.over().is_some() || text.contains("(rule "), "{error}");
                    }
                }
            }
        }
    }
}

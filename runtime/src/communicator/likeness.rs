//! What the members of a communicator have in common.

use super::Communicator;

impl Communicator {
    /// Whether nothing is converted between the members.
    pub(crate) fn are_alike(&self) -> bool {
        self.likeness().alike
    }

    /// Whether collective data of equal length match without equal signatures: all members let
    /// them, and nothing is converted between them.
    pub(crate) fn matches_by_length(&self) -> bool {
        self.likeness().by_length
    }

    /// It is determined once: the members and their representations never change.
    fn likeness(&self) -> Likeness {
        *self.shared.likeness.get_or_init(|| {
            let own = self.process().me().architecture;
            let mut engine = self.process().engine();
            let state = engine.state();
            let members = self.everyone().0.processes();
            let is_alike = |&member: &u32| {
                let known = state.representation(member);
                known.is_some_and(|(other, _)| other.same_representation(&own))
            };
            let alike = members.iter().all(is_alike);
            let by_length = members.iter().all(|&member| state.matches_by_length(member));
            Likeness { alike, by_length }
        })
    }
}

/// The properties that all members share.
#[derive(Clone, Copy)]
pub(super) struct Likeness {
    /// Nothing is converted between them.
    alike: bool,
    /// Data of equal length match without equal signatures.
    by_length: bool,
}

//! What a rank knows of the others' past: vector clocks.

/// How much of each rank's past is known, by rank in the job.
///
/// A rank's own number grows whenever it tells others of its past. What it did, and saw done, under one number is known to
/// whoever knows that number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Vec<u64>);

impl Clock {
    /// What is known at the start of a job: nothing.
    pub(crate) fn new(ranks: u32) -> Clock {
        Clock(vec![0; ranks as usize])
    }

    /// How much is known of a rank.
    pub(crate) fn of(&self, rank: u32) -> u64 {
        self.0.get(rank as usize).copied().unwrap_or(0)
    }

    /// What a peer said of its knowledge.
    pub(crate) fn from_numbers(numbers: Vec<u64>) -> Clock {
        Clock(numbers)
    }

    pub(crate) fn numbers(&self) -> &[u64] {
        &self.0
    }

    /// Adds what another knows; true if that is more.
    pub(crate) fn join(&mut self, other: &Clock) -> bool {
        let mut grown = false;
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            grown |= theirs > *mine;
            *mine = theirs.max(*mine);
        }
        grown
    }

    /// The next stretch of a rank's own past begins.
    pub(crate) fn advance(&mut self, rank: u32) {
        if let Some(number) = self.0.get_mut(rank as usize) {
            *number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_join_to_what_either_knows() {
        let mut one = Clock::from_numbers(vec![3, 0, 2]);
        let two = Clock::from_numbers(vec![1, 4, 2]);
        assert!(one.join(&two));
        assert_eq!(one.numbers(), [3, 4, 2]);
        assert!(!one.join(&two));
        one.advance(2);
        assert_eq!((one.of(2), one.of(9)), (3, 0));
    }
}

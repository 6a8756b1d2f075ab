//! Vector clocks: the part of each rank's past that a rank knows.

/// The known part of each rank's past, by rank in the job.
///
/// A rank's own number grows whenever it sends its clock to others. A rank that knows a number
/// knows everything that its owner did, or saw done, under that number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Vec<u64>);

impl Clock {
    /// The clock at the start of a job, when nothing is known.
    pub(crate) fn new(ranks: u32) -> Clock {
        Clock(vec![0; ranks as usize])
    }

    /// The known number of a rank.
    pub(crate) fn of(&self, rank: u32) -> u64 {
        self.0.get(rank as usize).copied().unwrap_or(0)
    }

    /// A clock that a peer sent.
    pub(crate) fn from_numbers(numbers: Vec<u64>) -> Clock {
        Clock(numbers)
    }

    pub(crate) fn numbers(&self) -> &[u64] {
        &self.0
    }

    /// Adopts another clock: each number becomes the greater one. Returns whether any number grew.
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

    /// Starts the next number of a rank's own past.
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

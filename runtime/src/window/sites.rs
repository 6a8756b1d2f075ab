//! The source lines of operations that the engine has, for errors that come after their calls.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::flight::OUTSTANDING;
use crate::check::Caller;

/// The source lines of the operations on one target.
#[derive(Default)]
pub(super) struct Sites(RefCell<Runs>);

#[derive(Default)]
struct Runs {
    /// Runs of operations of one source line: the number of the last operation, and the line.
    runs: VecDeque<(u64, Caller)>,
    /// The last operation whose line is no longer kept.
    forgotten: u64,
}

impl Sites {
    /// Notes the source line of the operations up to `number` that aren't noted yet. `forget` is
    /// called before the lines of operations that are no longer in flight are forgotten.
    #[inline]
    pub(super) fn note(&self, number: u64, caller: Caller, forget: impl FnOnce()) {
        if let Some(last) = self.0.borrow_mut().runs.back_mut() {
            if std::ptr::eq(last.1, caller) {
                last.0 = number;
                return;
            }
        }
        self.begin(number, caller, forget);
    }

    #[cold]
    fn begin(&self, number: u64, caller: Caller, forget: impl FnOnce()) {
        // A run has an operation at least, so the first of so many has none in flight, where
        // answers come in order.
        if self.0.borrow().runs.len() as u64 > OUTSTANDING {
            forget();
            let mut sites = self.0.borrow_mut();
            sites.forgotten = sites.runs.pop_front().map_or(0, |run| run.0);
        }
        let mut sites = self.0.borrow_mut();
        // A call that issued no operation has no run.
        if sites.runs.back().map_or(sites.forgotten, |run| run.0) < number {
            sites.runs.push_back((number, caller));
        }
    }

    /// The source line of an operation, if it is kept.
    pub(super) fn of(&self, number: u64) -> Option<Caller> {
        let sites = self.0.borrow();
        let at = sites.runs.partition_point(|run| run.0 < number);
        sites.runs.get(at).filter(|_| number > sites.forgotten).map(|run| run.1)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;

    #[track_caller]
    fn here() -> Caller {
        Location::caller()
    }

    #[test]
    fn operations_have_the_line_of_their_run() {
        let (sites, [a, b]) = (Sites::default(), [here(), here()]);
        for (number, caller) in [(1, a), (2, a), (5, b), (5, a), (6, a)] {
            sites.note(number, caller, || panic!("nothing is forgotten"));
        }
        let lines = [1, 2, 3, 5, 6].map(|number| sites.of(number).unwrap());
        assert_eq!(lines, [a, a, b, b, a]);
        assert_eq!(sites.of(7), None);
    }

    #[test]
    fn only_lines_of_ended_operations_are_forgotten() {
        let (sites, [a, b]) = (Sites::default(), [here(), here()]);
        let mut forgotten = 0;
        for number in 1..=2 * OUTSTANDING {
            sites.note(number, if number % 2 == 0 { a } else { b }, || forgotten += 1);
            let first = number.saturating_sub(OUTSTANDING - 1).max(1);
            assert!((first..=number).all(|number| sites.of(number).is_some()), "{number}");
        }
        assert_eq!((forgotten, sites.of(1)), (OUTSTANDING - 1, None));
    }
}

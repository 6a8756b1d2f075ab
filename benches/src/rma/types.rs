//! The bench of Type_send and Type_recv.

use longshore::Datatype;

use super::Pair;
use crate::Failure;
use crate::case::Case;
use crate::row::{Outcome, Refusal, Sample};

impl Pair<'_> {
    /// Measures half of a round trip: a type is sent to the other rank, and one is received from
    /// there.
    pub(super) fn type_send(&self, case: &Case) -> Result<Outcome, Failure> {
        let commit = || -> Result<_, Failure> {
            let datatype: Datatype = case.datatype.parse()?;
            Ok(self.rank.commit(&datatype)?)
        };
        let datatype = match self.agree(commit())? {
            Ok(datatype) => datatype,
            Err(why) => return Ok(Err(Refusal::Unsupported(why))),
        };
        let (other, first) = (self.other, self.me == 0);
        let before = self.line()?;
        let took = self.rounds((case.rounds, 2 * case.calls, false), || {
            (0..case.calls).try_for_each(|_| {
                if first {
                    self.world.type_send(&datatype, other, 0)?;
                }
                self.world.type_recv(other, 0)?;
                if first { Ok(()) } else { self.world.type_send(&datatype, other, 0) }
            })
        })?;
        let sample = Sample::of(took, [before, self.line()?], false);
        Ok(sample.ok_or(Refusal::Unsupported("no rounds".to_owned())))
    }
}

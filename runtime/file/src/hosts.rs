//! The hosts of a file's ranks, and the ranks that access the file for others: the aggregators.

use std::collections::HashMap;
use std::sync::OnceLock;

use longshore::{Communicator, SplitType};

use crate::error::Result;

/// The first rank of each rank's host, found when it is first needed.
#[derive(Default)]
pub(crate) struct Hosts(OnceLock<Vec<i32>>);

impl Hosts {
    /// The first rank of each rank's host. Collective when it is first called.
    fn firsts(&self, comm: &Communicator) -> Result<&[i32]> {
        if let Some(known) = self.0.get() {
            return Ok(known);
        }
        let mut first = [comm.rank()];
        if let Some(host) = comm.split_type(Some(SplitType::Shared), comm.rank())? {
            host.bcast(&mut first, 0)?;
            host.free()?;
        }
        let firsts = comm.allgather(&first)?;
        Ok(self.0.get_or_init(|| firsts))
    }

    /// The aggregators: `wanted` ranks, or one on each host if that is 0. Collective when it is
    /// first called.
    pub fn aggregators(&self, comm: &Communicator, wanted: u32) -> Result<Vec<i32>> {
        Ok(choose(self.firsts(comm)?, wanted as usize))
    }
}

/// The aggregators of ranks whose hosts have these first ranks, in ascending order.
fn choose(firsts: &[i32], wanted: usize) -> Vec<i32> {
    let mut hosts = firsts.to_vec();
    hosts.sort_unstable();
    hosts.dedup();
    let wanted = if wanted == 0 { hosts.len() } else { wanted.min(firsts.len()) };
    // The first ranks of all hosts, then the second ones, and so on.
    let (mut ranks, mut seen) = (Vec::with_capacity(firsts.len()), HashMap::new());
    for (rank, first) in firsts.iter().enumerate() {
        let before: &mut usize = seen.entry(first).or_default();
        ranks.push((*before, rank as i32));
        *before += 1;
    }
    ranks.sort_unstable();
    let mut chosen: Vec<i32> = ranks.into_iter().take(wanted).map(|(_, rank)| rank).collect();
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregators_are_spread_over_the_hosts() {
        let hosts = [0, 0, 2, 2, 0, 5];
        assert_eq!(choose(&hosts, 0), [0, 2, 5]);
        assert_eq!(choose(&hosts, 1), [0]);
        assert_eq!(choose(&hosts, 4), [0, 1, 2, 5]);
        assert_eq!(choose(&hosts, 99), [0, 1, 2, 3, 4, 5]);
        assert_eq!(choose(&[0, 0], 0), [0]);
    }
}

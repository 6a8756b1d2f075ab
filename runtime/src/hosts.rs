//! Which ranks of a job share a host, and with it a segment.

use std::sync::Arc;

/// The hosts of a job's ranks. Hosts are numbers, of no other meaning than that they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// By rank; none: all are on one.
    of: Option<Arc<[u32]>>,
}

impl Hosts {
    /// All ranks on one host.
    pub(crate) fn one() -> Hosts {
        Hosts::default()
    }

    /// Rank r on host `of[r]`.
    pub(crate) fn new(of: Vec<u32>) -> Hosts {
        let several = of.iter().any(|host| *host != of[0]);
        Hosts { of: several.then(|| of.into()) }
    }

    /// The hosts of so many ranks each, in the order of ranks, as `4,4`; none where that isn't of `size` ranks.
    pub(crate) fn parse(text: &str, size: u32) -> Option<Hosts> {
        let mut of = Vec::new();
        for (host, count) in (0..).zip(text.split(',')) {
            let count = count.parse::<u32>().ok().filter(|&count| count <= size)?;
            of.extend(std::iter::repeat_n(host, count as usize));
        }
        (of.len() == size as usize).then(|| Hosts::new(of))
    }

    /// How many ranks each host has, for `size` ranks whose hosts follow each other.
    pub(crate) fn counts(&self, size: u32) -> Vec<u32> {
        let of: Vec<_> = (0..size).map(|rank| self.of(rank)).collect();
        of.chunk_by(|a, b| a == b).map(|run| run.len() as u32).collect()
    }

    /// Likewise, as [`parse`](Hosts::parse) reads it.
    pub(crate) fn to_text(&self, size: u32) -> String {
        let counts: Vec<_> = self.counts(size).iter().map(u32::to_string).collect();
        counts.join(",")
    }

    /// How many ranks there are, where they are on several hosts.
    pub(crate) fn size(&self) -> u32 {
        self.of.as_ref().map_or(0, |of| of.len() as u32)
    }

    /// Whether there is one for all ranks.
    pub(crate) fn is_one(&self) -> bool {
        self.of.is_none()
    }

    /// The host of a rank of the job.
    pub(crate) fn of(&self, rank: u32) -> u32 {
        self.of.as_ref().and_then(|of| of.get(rank as usize).copied()).unwrap_or(0)
    }

    /// Whether two ranks share one.
    pub(crate) fn share(&self, one: u32, other: u32) -> bool {
        self.of(one) == self.of(other)
    }

    /// How many of `size` ranks share the host of one.
    pub(crate) fn count_beside(&self, rank: u32, size: u32) -> u32 {
        (0..size).filter(|&other| self.share(rank, other)).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_host_find_each_other() {
        let hosts = Hosts::new(vec![4, 4, 7, 4]);
        assert!(hosts.share(0, 3) && !hosts.share(0, 2) && !hosts.is_one());
        assert_eq!((hosts.count_beside(3, 4), hosts.count_beside(2, 4)), (3, 1));
        assert_eq!(Hosts::new(vec![1, 1, 3]).to_text(3), "2,1");
        assert_eq!(Hosts::parse("2,1", 3), Some(Hosts::new(vec![0, 0, 1])));
        for wrong in ["", "2,2", "2,x", "-1,4", "3,", "4000000000,1"] {
            assert_eq!(Hosts::parse(wrong, 3), None, "{wrong}");
        }
        assert!(Hosts::new(vec![3, 3]).is_one());
    }
}

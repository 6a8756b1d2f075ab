//! The assignment of a job's ranks to hosts. Ranks on the same host share a segment.

use std::sync::Arc;

/// The host of each rank. Host numbers serve only to tell hosts apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// The host number of each rank; `None` if all ranks are on one host.
    of: Option<Arc<[u32]>>,
}

impl Hosts {
    /// All ranks on one host.
    pub(crate) fn one() -> Hosts {
        Hosts::default()
    }

    /// Rank `r` on host `of[r]`.
    pub(crate) fn new(of: Vec<u32>) -> Hosts {
        let several = of.iter().any(|host| *host != of[0]);
        Hosts { of: several.then(|| of.into()) }
    }

    /// Parses the number of ranks on each host, in the order of ranks: `4,4`. Returns `None` if the
    /// text is malformed or the sum isn't `size`.
    pub(crate) fn parse(text: &str, size: u32) -> Option<Hosts> {
        let mut of = Vec::new();
        for (host, count) in (0..).zip(text.split(',')) {
            let count = count.parse::<u32>().ok().filter(|&count| count <= size)?;
            of.extend(std::iter::repeat_n(host, count as usize));
        }
        (of.len() == size as usize).then(|| Hosts::new(of))
    }

    /// The number of ranks on each host, for `size` ranks. Ranks of a host must be consecutive.
    pub(crate) fn counts(&self, size: u32) -> Vec<u32> {
        let of: Vec<_> = (0..size).map(|rank| self.of(rank)).collect();
        of.chunk_by(|a, b| a == b).map(|run| run.len() as u32).collect()
    }

    /// The numbers of [`counts`](Hosts::counts) as text for [`parse`](Hosts::parse).
    pub(crate) fn to_text(&self, size: u32) -> String {
        let counts: Vec<_> = self.counts(size).iter().map(u32::to_string).collect();
        counts.join(",")
    }

    /// The number of ranks, if they are on several hosts; otherwise 0.
    pub(crate) fn size(&self) -> u32 {
        self.of.as_ref().map_or(0, |of| of.len() as u32)
    }

    /// Whether all ranks are on one host.
    pub(crate) fn is_one(&self) -> bool {
        self.of.is_none()
    }

    /// The host number of a rank.
    pub(crate) fn of(&self, rank: u32) -> u32 {
        self.of.as_ref().and_then(|of| of.get(rank as usize).copied()).unwrap_or(0)
    }

    /// Whether two ranks are on the same host.
    pub(crate) fn share(&self, one: u32, other: u32) -> bool {
        self.of(one) == self.of(other)
    }

    /// The number of ranks, out of `size`, on the host of `rank`, including `rank` itself.
    pub(crate) fn count_beside(&self, rank: u32, size: u32) -> u32 {
        (0..size).filter(|&other| self.share(rank, other)).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_counted_printed_and_parsed() {
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

//! The assignment of a job's ranks to hosts. Ranks on the same host share a segment.

use std::collections::HashMap;
use std::sync::Arc;

/// The host of each rank. Host numbers serve only to tell hosts apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// The host number of each rank; `None` if all ranks are on one host.
    of: Option<Arc<[u32]>>,
}

impl Hosts {
    /// All ranks on one host.
    pub fn one() -> Hosts {
        Hosts::default()
    }

    /// Rank `r` on host `of[r]`.
    pub fn new(of: Vec<u32>) -> Hosts {
        let several = of.iter().any(|host| *host != of[0]);
        Hosts { of: several.then(|| of.into()) }
    }

    /// Parses runs of consecutive ranks on one host: `4,4`, or `1,1,2@0`. A run is its number of
    /// ranks, and `@` with the host's number. Without a number, it is on the next host, which no
    /// run before it is on. Returns `None` if the text is malformed, if a number is that of a later
    /// host, or if the sum isn't `size`.
    pub fn parse(text: &str, size: u32) -> Option<Hosts> {
        let (mut of, mut known) = (Vec::new(), 0);
        for run in text.split(',') {
            let (count, host) = match run.split_once('@') {
                Some((count, host)) => (count, host.parse().ok().filter(|&host| host < known)?),
                None => (run, known),
            };
            known = known.max(host + 1);
            let count = count.parse::<u32>().ok().filter(|&count| count <= size)?;
            of.extend(std::iter::repeat_n(host, count as usize));
        }
        (of.len() == size as usize).then(|| Hosts::new(of))
    }

    /// The hosts of `size` ranks as text for [`parse`](Hosts::parse), which numbers hosts in the
    /// order of their first ranks.
    pub fn to_text(&self, size: u32) -> String {
        let mut known = 0;
        let runs = self.runs(size).into_iter().map(|(host, count)| match host < known {
            true => format!("{count}@{host}"),
            false => {
                known = host + 1;
                count.to_string()
            }
        });
        runs.collect::<Vec<_>>().join(",")
    }

    /// The runs of consecutive ranks on one host, for `size` ranks: the host and the number of
    /// ranks. Hosts are numbered in the order of their first ranks.
    pub fn runs(&self, size: u32) -> Vec<(u32, u32)> {
        let mut numbers = HashMap::new();
        let mut number = |host| {
            let next = numbers.len() as u32;
            *numbers.entry(host).or_insert(next)
        };
        let of: Vec<_> = (0..size).map(|rank| number(self.of(rank))).collect();
        of.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
    }

    /// The number of ranks, if they are on several hosts; otherwise 0.
    pub fn size(&self) -> u32 {
        self.of.as_ref().map_or(0, |of| of.len() as u32)
    }

    /// Whether all ranks are on one host.
    #[inline]
    pub fn is_one(&self) -> bool {
        self.of.is_none()
    }

    /// The host number of a rank.
    #[inline]
    pub fn of(&self, rank: u32) -> u32 {
        self.of.as_ref().and_then(|of| of.get(rank as usize).copied()).unwrap_or(0)
    }

    /// Whether two ranks are on the same host.
    #[inline]
    pub fn share(&self, one: u32, other: u32) -> bool {
        self.of(one) == self.of(other)
    }

    /// The number of ranks, out of `size`, on the host of `rank`, including `rank` itself.
    pub fn count_beside(&self, rank: u32, size: u32) -> u32 {
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
        let texts = [
            (vec![1, 1, 3], "2,1"),
            (vec![0, 1, 0, 1, 1], "1,1,1@0,2@1"),
            (vec![5, 2, 2, 7, 5], "1,2,1,1@0"),
            (vec![6, 6], "2"),
        ];
        for (of, text) in texts {
            let (size, hosts) = (of.len() as u32, Hosts::new(of));
            assert_eq!(hosts.to_text(size), text);
            let parsed = Hosts::parse(text, size).unwrap();
            assert_eq!(parsed.runs(size), hosts.runs(size), "{text}");
        }
        assert_eq!(Hosts::parse("2,1", 3), Some(Hosts::new(vec![0, 0, 1])));
        assert_eq!(Hosts::parse("1,1@0,1", 3), Some(Hosts::new(vec![0, 0, 1])));
        let wrong =
            ["", "2,2", "2,x", "-1,4", "3,", "4000000000,1", "2,1@1", "1@0,2", "2,1@", "2,1@-1"];
        for wrong in wrong {
            assert_eq!(Hosts::parse(wrong, 3), None, "{wrong}");
        }
        assert!(Hosts::new(vec![3, 3]).is_one());
    }
}

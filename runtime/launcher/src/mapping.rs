//! Assigns the ranks of a job to hosts.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::Error;
use longshore_job::Hosts;

/// The order in which ranks are assigned to hosts. Each host takes as many as it has room for.
///
/// ```
/// use longshore_launcher::Mapping;
///
/// assert_eq!("host".parse(), Ok(Mapping::Host));
/// assert_eq!(Mapping::default().to_string(), "core");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// Ranks fill a host, and then the next one: neighbours mostly share memory.
    #[default]
    Core,
    /// Ranks go to the hosts in turn: a job of few ranks has the processors and the memory of all
    /// hosts.
    Host,
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(word: &str) -> Result<Mapping, String> {
        match word {
            "core" => Ok(Mapping::Core),
            "host" => Ok(Mapping::Host),
            _ => Err("expected core or host".to_owned()),
        }
    }
}

impl Display for Mapping {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mapping::Core => "core",
            Mapping::Host => "host",
        })
    }
}

/// Assigns ranks to hosts that take at most `rooms` ranks, or all of them to this host if there are
/// none.
///
/// # Errors
/// The hosts have no room for all ranks.
pub(super) fn place_ranks(rooms: &[u32], mapping: Mapping, size: u32) -> Result<Hosts, Error> {
    if rooms.is_empty() {
        return Ok(Hosts::one());
    }
    let room = rooms.iter().fold(0u32, |room, more| room.saturating_add(*more));
    if room < size {
        return Err(Error::Room { ranks: size, room });
    }
    // A round gives each host that has room left its next ranks.
    let per_round = match mapping {
        Mapping::Core => size,
        Mapping::Host => 1,
    };
    let mut left = rooms.to_vec();
    let mut of = Vec::new();
    while of.len() < size as usize {
        for (number, left) in (0..).zip(&mut left) {
            let count = per_round.min(*left).min(size - of.len() as u32);
            *left -= count;
            of.extend(std::iter::repeat_n(number, count as usize));
        }
    }
    Ok(Hosts::new(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(rooms: &[u32], mapping: Mapping, size: u32) -> Vec<u32> {
        let placed = place_ranks(rooms, mapping, size).unwrap();
        (0..size).map(|rank| placed.of(rank)).collect()
    }

    #[test]
    fn ranks_fill_a_host_before_the_next() {
        assert_eq!(placed(&[2, 1, 9], Mapping::Core, 5), [0, 0, 1, 2, 2]);
        assert_eq!(placed(&[4, 4], Mapping::Core, 3), [0, 0, 0]);
        assert_eq!(placed(&[u32::MAX, 4], Mapping::Core, 2), [0, 0]);
    }

    #[test]
    fn ranks_go_to_hosts_in_turn_until_these_are_full() {
        assert_eq!(placed(&[2, 2], Mapping::Host, 4), [0, 1, 0, 1]);
        assert_eq!(placed(&[3, 1, 2], Mapping::Host, 6), [0, 1, 2, 0, 2, 0]);
        assert_eq!(placed(&[2, 2, 2], Mapping::Host, 2), [0, 1]);
        assert_eq!(placed(&[], Mapping::Host, 2), [0, 0]);
    }

    #[test]
    fn ranks_without_a_place_are_refused() {
        for mapping in [Mapping::Core, Mapping::Host] {
            let error = place_ranks(&[3], mapping, 4).unwrap_err().to_string();
            assert!(error.starts_with("the job has 4 ranks, but its hosts take only 3"), "{error}");
        }
    }
}

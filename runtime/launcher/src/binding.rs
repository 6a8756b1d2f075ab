//! The cores on which the ranks of a host may run.
//!
//! A bound rank stays on its cores, so its caches stay warm and its memory stays near. By default
//! each rank gets an equal share of the host's cores, rather than one, so that its threads have
//! cores too. Ranks that are more than the cores aren't bound: any choice would leave some core
//! idle while ranks wait for another.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// Which cores each rank of a host may use. A core is all of its hardware threads.
///
/// ```
/// use longshore_launcher::Binding;
///
/// assert_eq!("core".parse(), Ok(Binding::Core));
/// assert_eq!("0-3,4-7".parse(), Ok(Binding::List(vec![vec![0..=3], vec![4..=7]])));
/// assert!("7-4".parse::<Binding>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Binding {
    /// An equal share of the host's cores, at least one.
    Core,
    /// The cores of one NUMA node. Consecutive ranks share a node.
    Numa,
    /// All cores that the launcher may use.
    None,
    /// The processors of each rank of the host, by the system's numbers, assigned in turn.
    List(Vec<Processors>),
}

/// Ranges of the system's numbers of processors.
pub type Processors = Vec<std::ops::RangeInclusive<u32>>;

impl FromStr for Binding {
    type Err = String;

    /// `core`, `numa`, `none`, or a list: the processors of each rank with commas in between, such
    /// as `0,1` or `0-3,4-7`. `+` joins ranges of one rank: `0-1+4-5,2-3+6-7`.
    fn from_str(text: &str) -> Result<Binding, String> {
        match text {
            "core" => return Ok(Binding::Core),
            "numa" => return Ok(Binding::Numa),
            "none" => return Ok(Binding::None),
            _ => {}
        }
        let ranks: Option<Vec<Processors>> =
            text.split(',').map(|rank| rank.split('+').map(range).collect()).collect();
        ranks.map(Binding::List).ok_or_else(|| {
            "expected core, numa, none, or the processors of each rank, such as 0,1 or 0-3,4-7"
                .to_owned()
        })
    }
}

/// Parses `N` or `N-M`.
fn range(text: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let most = u32::try_from(CpuSet::count()).unwrap_or(u32::MAX);
    (first <= last && last < most).then_some(first..=last)
}

/// The processors of one rank.
#[derive(Clone, Copy)]
pub(super) struct Cores(CpuSet);

impl Cores {
    fn of(processors: impl IntoIterator<Item = usize>) -> Cores {
        let mut set = CpuSet::new();
        for processor in processors {
            // A number beyond the set's room was refused when it was read.
            let _ = set.set(processor);
        }
        Cores(set)
    }

    pub(super) fn set(&self) -> &CpuSet {
        &self.0
    }

    fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..CpuSet::count()).filter(|&processor| self.0.is_set(processor) == Ok(true))
    }
}

/// As the system prints them: `0-3,8`.
impl Display for Cores {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let numbers: Vec<usize> = self.numbers().collect();
        let ranges = numbers.chunk_by(|a, b| a + 1 == *b);
        for (index, range) in ranges.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match range {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

/// The processors of this host that the launcher may use.
pub(super) struct Machine {
    /// The processors of each core, in the order of packages and cores.
    cores: Vec<Vec<usize>>,
    /// The NUMA nodes, each with its cores.
    nodes: Vec<Vec<Vec<usize>>>,
}

impl Machine {
    /// Reads what the system says.
    ///
    /// # Errors
    /// The system doesn't say which processors this process may use.
    pub(super) fn read() -> io::Result<Machine> {
        let allowed: Vec<usize> = Cores(sched_getaffinity(Pid::from_raw(0))?).numbers().collect();
        // A processor of which the system tells nothing is a core and lies in the first node.
        let core = |processor: usize| -> (u32, u32) {
            let folder = format!("/sys/devices/system/cpu/cpu{processor}/topology");
            let number = |file| -> Option<u32> {
                fs::read_to_string(format!("{folder}/{file}")).ok()?.trim().parse().ok()
            };
            let alone = u32::MAX - processor as u32;
            (number("physical_package_id").unwrap_or(0), number("core_id").unwrap_or(alone))
        };
        let mut known: Vec<(usize, (u32, u32), usize)> = allowed
            .into_iter()
            .map(|processor| (node(processor), core(processor), processor))
            .collect();
        known.sort_unstable();
        let nodes: Vec<Vec<Vec<usize>>> = known
            .chunk_by(|a, b| a.0 == b.0)
            .map(|node| {
                let cores = node.chunk_by(|a, b| a.1 == b.1);
                cores.map(|core| core.iter().map(|known| known.2).collect()).collect()
            })
            .collect();
        Ok(Machine { cores: nodes.concat(), nodes })
    }

    /// All of them.
    pub(super) fn all(&self) -> Cores {
        Cores::of(self.cores.iter().flatten().copied())
    }

    /// Their number, or fewer if a control group limits the time on them.
    pub(super) fn processors(&self) -> usize {
        let here = self.cores.iter().map(Vec::len).sum();
        std::thread::available_parallelism().map_or(here, |processors| processors.get())
    }

    /// The processors of each of `ranks` ranks; `None` if they aren't bound. Without a `binding`,
    /// ranks are bound to cores if they fit.
    ///
    /// # Errors
    /// The binding can't be had on this host; the text says why.
    pub(super) fn divide(
        &self,
        binding: Option<&Binding>,
        ranks: usize,
    ) -> Result<Option<Vec<Cores>>, String> {
        let cores = self.cores.len();
        match binding {
            Some(Binding::None) => Ok(None),
            None if ranks > cores => Ok(None),
            Some(Binding::Core) if ranks > cores => Err(format!(
                "{ranks} ranks can't be bound to {cores} cores: use --bind none, or fewer ranks"
            )),
            None | Some(Binding::Core) => Ok(Some(shares(&self.cores, ranks))),
            Some(Binding::Numa) => {
                let node = |rank: usize| &self.nodes[rank * self.nodes.len() / ranks];
                let of_rank = |rank| Cores::of(node(rank).iter().flatten().copied());
                Ok(Some((0..ranks).map(of_rank).collect()))
            }
            Some(Binding::List(list)) => {
                let named =
                    list.iter().map(|rank| self.named(rank)).collect::<Result<Vec<_>, _>>()?;
                Ok(Some(named.into_iter().cycle().take(ranks).collect()))
            }
        }
    }

    fn named(&self, ranges: &Processors) -> Result<Cores, String> {
        let asked = Cores::of(ranges.iter().cloned().flatten().map(|number| number as usize));
        let all = self.all();
        match asked.numbers().find(|&processor| all.0.is_set(processor) != Ok(true)) {
            None => Ok(asked),
            Some(missing) => Err(format!(
                "--bind names processor {missing}, and the processors of this job are {all}"
            )),
        }
    }
}

/// An equal share of consecutive cores for each rank. The first ranks get those that are left over.
fn shares(cores: &[Vec<usize>], ranks: usize) -> Vec<Cores> {
    let bound = |rank: usize| rank * cores.len() / ranks;
    let share = |rank| cores[bound(rank)..bound(rank + 1)].iter().flatten().copied();
    (0..ranks).map(|rank| Cores::of(share(rank))).collect()
}

/// The NUMA node of a processor.
fn node(processor: usize) -> usize {
    let folder = fs::read_dir(format!("/sys/devices/system/cpu/cpu{processor}"));
    let number = |name: &str| name.strip_prefix("node")?.parse().ok();
    let names = folder.into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.into_iter().find_map(|name| number(name.to_str()?)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Binding, Machine};

    /// Two nodes of two cores, of two processors each, numbered as most machines do.
    fn machine() -> Machine {
        let nodes = vec![vec![vec![0, 4], vec![1, 5]], vec![vec![2, 6], vec![3, 7]]];
        Machine { cores: nodes.concat(), nodes }
    }

    fn divided(binding: Option<&str>, ranks: usize) -> Result<Option<String>, String> {
        let binding: Option<Binding> = binding.map(|binding| binding.parse().unwrap());
        let divided = machine().divide(binding.as_ref(), ranks)?;
        let texts = |all: Vec<super::Cores>| all.iter().map(|cores| cores.to_string()).collect();
        Ok(divided.map(texts).map(|texts: Vec<String>| texts.join(" ")))
    }

    #[test]
    fn ranks_that_fit_share_the_cores() {
        let cores = |ranks| divided(None, ranks).unwrap();
        assert_eq!(cores(1).as_deref(), Some("0-7"));
        assert_eq!(cores(2).as_deref(), Some("0-1,4-5 2-3,6-7"));
        assert_eq!(cores(3).as_deref(), Some("0,4 1,5 2-3,6-7"));
        assert_eq!(cores(4).as_deref(), Some("0,4 1,5 2,6 3,7"));
        assert_eq!(cores(5), None);
    }

    #[test]
    fn ranks_that_do_not_fit_are_refused_if_cores_are_asked_for() {
        let error = divided(Some("core"), 5).unwrap_err();
        assert_eq!(error, "5 ranks can't be bound to 4 cores: use --bind none, or fewer ranks");
    }

    #[test]
    fn nodes_and_lists_take_more_ranks_than_cores() {
        let bound = |binding, ranks| divided(Some(binding), ranks).unwrap();
        assert_eq!(bound("numa", 3).as_deref(), Some("0-1,4-5 0-1,4-5 2-3,6-7"));
        assert_eq!(bound("3,0+2", 3).as_deref(), Some("3 0,2 3"));
        assert_eq!(bound("none", 1), None);
    }

    #[test]
    fn a_processor_that_is_not_there_is_named() {
        let error = divided(Some("0,8-9"), 2).unwrap_err();
        assert_eq!(error, "--bind names processor 8, and the processors of this job are 0-7");
    }

    #[test]
    fn other_words_are_refused() {
        for text in ["", "cores", "1-", "3-1", "0,,1", "99999"] {
            text.parse::<Binding>().unwrap_err();
        }
    }
}

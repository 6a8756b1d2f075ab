//! Which cases a run measures.

mod list;

use std::collections::HashSet;

use longshore::Datatype;
use longshore::job::Routes;

use crate::case::{self, Bench, By, COLLECTIVES, Case, Flavor, MESSAGES, Sync};
use crate::types::{self, Named};
use crate::{Failure, catalog, kernels};
use list::{List, size_of};

/// The choice of cases, by the command's flags.
///
/// With only `benches`, `quick`, `sizes` and `rounds` set, it is the usual selection: every bench,
/// on the windows, synchronisations, sizes, routes, representations and types that are of interest
/// for it. If any other field is set, all combinations of the given values are measured. Fields
/// that aren't set then have one default value.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only these benches. Empty: all.
    pub benches: Vec<Bench>,
    /// Kinds of windows.
    pub windows: Vec<Flavor>,
    /// Synchronisations.
    pub syncs: Vec<Sync>,
    /// Interfaces.
    pub bys: Vec<By>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Sizes in bytes.
    pub sizes: Vec<u64>,
    /// Routes.
    pub routes: Vec<Routes>,
    /// Whether ranks act as if they were on different hosts.
    pub hosts: bool,
    /// Pairs of representations.
    pub archs: Vec<[String; 2]>,
    /// Types.
    pub types: Vec<Element>,
    /// Whether to measure only one or two short cases of each kind.
    pub quick: bool,
    /// Rounds of each case, except for benches that have few.
    pub rounds: Option<u32>,
}

/// A type that was asked for.
#[derive(Clone, Debug)]
pub enum Element {
    /// A named type, which has its own count.
    Named(Named),
    /// Any type. The count follows from the size that was asked for.
    Any(Datatype),
}

impl std::str::FromStr for Element {
    type Err = String;

    /// Parses a name, or a type in the notation.
    fn from_str(text: &str) -> Result<Element, String> {
        match text.parse::<Datatype>() {
            Ok(datatype) => Ok(Element::Any(datatype)),
            Err(error) if text.contains('(') => Err(format!("not a datatype: {error}")),
            Err(_) => catalog::named(text).map(Element::Named).map_err(|error| error.to_string()),
        }
    }
}

/// The powers of two of all sizes: 1 B to 4 MiB.
const ALL: std::ops::RangeInclusive<u32> = 0..=22;
/// Sizes that stand for all, where many values are combined.
const FEW: [u64; 4] = [8, 1 << 10, 64 << 10, 1 << 20];

/// Lengths of messages and of the blocks of collective calls: on both sides of the length from
/// which they go from memory to memory.
const LENGTHS: [u64; 5] = [8, 1 << 10, 4 << 10, 16 << 10, 256 << 10];

/// Latencies of operations that take any size.
const LATENCIES: [Bench; 4] =
    [Bench::PutLatency, Bench::GetLatency, Bench::AccLatency, Bench::GetAccLatency];
/// Operations on one number.
const SINGLES: [Bench; 2] = [Bench::FopLatency, Bench::CasLatency];
const BANDWIDTHS: [Bench; 4] = [Bench::PutBw, Bench::GetBw, Bench::PutBibw, Bench::GetBibw];
const RATES: [Bench; 2] = [Bench::PutMr, Bench::GetMr];
/// Benches of a type without ranks.
const OF_TYPES: [Bench; 5] =
    [Bench::Pack, Bench::Unpack, Bench::Copy, Bench::Commit, Bench::Define];
const LAUNCHES: [Bench; 2] = [Bench::Launch, Bench::Memory];

const NO_CASE: &str = "no case fits the given flags: fop_latency and cas_latency need int64, \
     byte_swap needs doubles, fabric and fabric_bw need --hosts, and types with the same layout on \
     both sides need like ranks";

/// The pairs of unlike ranks in the usual selection.
const UNLIKE: [[&str; 2]; 3] = [["native", "s390x"], ["native", "i686"], ["s390x", "native"]];

impl Choice {
    /// The cases, in an order in which adjacent cases can share a job.
    ///
    /// # Errors
    /// A type that doesn't exist on this machine, a representation that no rank can have for a
    /// bench with ranks, or a choice without cases.
    pub fn cases(&self) -> Result<Vec<Case>, Failure> {
        let combined = !(self.windows.is_empty()
            && self.syncs.is_empty()
            && self.bys.is_empty()
            && self.threads.is_empty()
            && self.routes.is_empty()
            && !self.hosts
            && self.archs.is_empty()
            && self.types.is_empty());
        let mut cases = match (combined, self.quick) {
            (true, _) => self.combinations()?,
            (false, true) => self.samples()?,
            (false, false) => self.selection()?,
        };
        cases.retain(|case| self.benches.is_empty() || self.benches.contains(&case.bench));
        // Benches of types have no ranks, so they may use representations of files.
        for case in cases.iter().filter(|case| !OF_TYPES.contains(&case.bench)) {
            case.arch.iter().try_for_each(|name| case::of_rank(name))?;
        }
        for case in cases.iter_mut().filter(|case| !case.bench.has_few_rounds()) {
            case.rounds = self.rounds.unwrap_or(case.rounds);
        }
        let mut met = HashSet::new();
        cases.retain(|case| met.insert(case.to_string()));
        match cases.is_empty() {
            true => Err(NO_CASE.into()),
            false => Ok(cases),
        }
    }

    /// Warnings about flags that a chosen bench doesn't use: none of its `cases` has the flag's
    /// value.
    pub fn unheeded(&self, cases: &[Case]) -> Vec<String> {
        /// Whether a value is given that none of the cases has.
        fn misses<T: PartialEq>(given: &[T], cases: &[&Case], of: impl Fn(&Case) -> T) -> bool {
            given.iter().any(|value| !cases.iter().any(|case| of(case) == *value))
        }
        let warnings = |bench: &Bench| {
            let of: Vec<&Case> = cases.iter().filter(|case| case.bench == *bench).collect();
            let sized = self.types.is_empty() && of.iter().all(|case| case.name.is_none());
            let options = [
                ("--window", misses(&self.windows, &of, |case| case.window)),
                ("--sync", misses(&self.syncs, &of, |case| case.sync)),
                ("--by", misses(&self.bys, &of, |case| case.by)),
                ("--threads", misses(&self.threads, &of, |case| case.threads)),
                ("--route", misses(&self.routes, &of, |case| case.route)),
                ("--arch", misses(&self.archs, &of, |case| case.arch.clone())),
                ("--size", sized && misses(&self.sizes, &of, |case| case.bytes)),
                ("--rounds", self.rounds.is_some() && bench.has_few_rounds()),
            ];
            let unheeded = options.into_iter().filter(|&(_, is_unheeded)| is_unheeded);
            match of.is_empty() {
                true => vec![format!("{bench} isn't measured: {NO_CASE}")],
                false => unheeded
                    .map(|(option, _)| {
                        format!(
                            "{bench} doesn't use all values of {option}: it is measured without"
                        )
                    })
                    .collect(),
            }
        };
        self.benches.iter().flat_map(warnings).collect()
    }

    fn sizes(&self, usual: impl IntoIterator<Item = u64>) -> Vec<u64> {
        if self.sizes.is_empty() { usual.into_iter().collect() } else { self.sizes.clone() }
    }

    /// The usual selection.
    fn selection(&self) -> Result<Vec<Case>, Failure> {
        let all = || self.sizes(ALL.map(|power| 1 << power));
        let some = || self.sizes(ALL.step_by(2).map(|power| 1 << power));
        let few = || self.sizes(FEW);
        let named = types::all()?;
        let mut list = List::new(self.quick);

        // Limits are measured close in time to the benches that they limit.
        list.sized(&[Bench::Memcpy, Bench::ByteSwap], &all(), &Case::default());
        list.sized(&LATENCIES[..2], &all(), &Case::default());
        list.sized(&LATENCIES[2..], &some(), &Case::default());
        list.singles(&Case::default());
        // Calls by pointer cost a program as little as scoped ones.
        let pointed = Case { by: By::Pointer, ..Case::default() };
        list.sized(&LATENCIES, &few(), &pointed);
        list.singles(&pointed);
        // Origin memory at the offset where malloc puts long arrays.
        let askew = Case { offset: 16, ..Case::default() };
        list.sized(&LATENCIES[..2], &some(), &askew);
        for &window in &Flavor::ALL[1..] {
            let on = Case { window, ..Case::default() };
            list.sized(&LATENCIES[..2], &some(), &on);
            list.sized(&LATENCIES[2..], &few(), &on);
            list.singles(&on);
        }
        list.sized(&[Bench::CacheLine, Bench::Tcp], &few(), &Case::default());
        for &sync in Sync::ALL {
            let by = Case { sync, ..Case::default() };
            list.sized(&[Bench::Sync], &[8], &by);
            list.sized(&LATENCIES, &few(), &by);
            list.singles(&by);
        }
        for sync in [Sync::Flush, Sync::Notify] {
            list.sized(&[Bench::PutPingpong], &few(), &Case { sync, ..Case::default() });
        }
        for sync in [Sync::Flush, Sync::FlushLocal] {
            let pointed = Case { sync, by: By::Pointer, ..Case::default() };
            list.sized(&[Bench::Sync], &[8], &pointed);
        }
        list.sized(&BANDWIDTHS, &some(), &Case::default());
        list.sized(&RATES, &self.sizes([1, 8, 64, 1 << 10]), &Case::default());
        let created = Case { window: Flavor::Create, ..Case::default() };
        list.sized(&BANDWIDTHS, &few(), &created);
        list.sized(&RATES, &[8], &created);
        list.sized(&[Bench::Computing], &[8], &created);
        for on in [Case::default(), created.clone()] {
            list.typed(&LATENCIES[..2], &named, &on)?;
        }
        list.typed(&[Bench::TypeSend], &named, &Case::default())?;
        list.sized(&MESSAGES, &self.sizes(LENGTHS), &Case::default());
        list.sized(&COLLECTIVES, &self.sizes(LENGTHS), &Case::default());

        // Other libraries send messages only for created windows, which they can't map.
        let message = Case { route: Routes::Message, ..created.clone() };
        let pairs = UNLIKE.map(|pair| Case { arch: pair.map(str::to_owned), ..Case::default() });
        for by in [&message].into_iter().chain(&pairs) {
            list.sized(&LATENCIES, &few(), by);
            list.singles(by);
            list.sized(&[Bench::PutBw, Bench::GetBw], &few(), by);
            for sync in [Sync::Flush, Sync::Notify] {
                list.sized(&[Bench::PutPingpong], &self.sizes([8]), &Case { sync, ..by.clone() });
            }
            list.sized(&[Bench::Computing], &[8], &Case { window: Flavor::Create, ..by.clone() });
        }
        for by in [&message, &pairs[0]] {
            list.typed(&LATENCIES[..2], &named, by)?;
        }

        // Types that applications exchange.
        let kernels = kernels::all()?;
        for on in [&Case::default(), &created] {
            list.typed(&LATENCIES[..2], &kernels, on)?;
        }
        for by in [&message, &pairs[0]] {
            list.typed(&LATENCIES[..1], &kernels, by)?;
        }
        list.typed(&OF_TYPES[..2], &kernels, &Case::default())?;

        list.typed(&OF_TYPES, &named, &Case::default())?;
        list.typed(&OF_TYPES[3..], &types::many_blocks()?, &Case::default())?;
        let external = ["native", "external32"].map(str::to_owned);
        let external = Case { arch: external, ..Case::default() };
        list.typed(&[Bench::Pack, Bench::Unpack], &named, &external)?;
        list.typed(&[Bench::Copy], &named, &pairs[0])?;
        for ranks in [2, 32] {
            list.sized(&LAUNCHES, &[8], &Case { ranks, ..Case::default() });
        }
        Ok(list.cases)
    }

    /// The quick selection: each bench, window, synchronisation, route and way at least once.
    fn samples(&self) -> Result<Vec<Case>, Failure> {
        let sizes = || self.sizes([8, 64 << 10]);
        let named = types::all()?.into_iter().chain(kernels::all()?);
        let named: Vec<Named> = named.filter(|named| named.quick).collect();
        let mut list = List::new(true);
        list.sized(&[Bench::Memcpy, Bench::ByteSwap], &sizes(), &Case::default());
        list.sized(&LATENCIES, &sizes(), &Case::default());
        list.singles(&Case::default());
        let pointed = Case { by: By::Pointer, ..Case::default() };
        list.sized(&LATENCIES, &[8], &pointed);
        list.singles(&pointed);
        for &window in &Flavor::ALL[1..] {
            list.sized(&LATENCIES[..1], &sizes(), &Case { window, ..Case::default() });
        }
        list.sized(&[Bench::CacheLine, Bench::Tcp], &[8], &Case::default());
        for &sync in Sync::ALL {
            list.sized(&[Bench::Sync, Bench::PutLatency], &[8], &Case { sync, ..Case::default() });
            list.sized(&[Bench::PutPingpong], &[8], &Case { sync, ..Case::default() });
        }
        for sync in [Sync::Flush, Sync::FlushLocal] {
            list.sized(&[Bench::Sync], &[8], &Case { sync, ..pointed.clone() });
        }
        list.sized(&BANDWIDTHS, &sizes(), &Case::default());
        list.sized(&RATES, &[8], &Case::default());
        let created = Case { window: Flavor::Create, ..Case::default() };
        list.sized(&[Bench::Computing], &[8], &created);
        list.typed(&[Bench::PutLatency, Bench::TypeSend], &named, &Case::default())?;
        list.sized(&MESSAGES, &sizes(), &Case::default());
        list.sized(&COLLECTIVES, &sizes(), &Case::default());
        let message = Case { route: Routes::Message, ..created };
        list.sized(&LATENCIES, &[8], &message);
        let unlike = Case { arch: UNLIKE[0].map(str::to_owned), ..Case::default() };
        list.sized(&LATENCIES, &sizes(), &unlike);
        list.typed(&OF_TYPES, &named, &Case::default())?;
        list.sized(&LAUNCHES, &[8], &Case { ranks: 2, ..Case::default() });
        Ok(list.cases)
    }

    /// All combinations of the given values.
    fn combinations(&self) -> Result<Vec<Case>, Failure> {
        fn or<T: Clone>(given: &[T], plain: T) -> Vec<T> {
            if given.is_empty() { vec![plain] } else { given.to_vec() }
        }
        let usual: Vec<Bench> =
            LATENCIES.into_iter().chain(SINGLES).chain(BANDWIDTHS).chain(RATES).collect();
        let benches = if self.benches.is_empty() { &usual } else { &self.benches };
        let sizes = self.sizes(ALL.step_by(2).map(|power| 1 << power));
        let mut list = List::new(self.quick);
        if self.hosts {
            list.sized(&[Bench::Fabric, Bench::FabricBw], &sizes, &Case::default());
        }
        for route in or(&self.routes, Routes::Best) {
            for arch in or(&self.archs, Case::default().arch) {
                for window in or(&self.windows, Flavor::Allocate) {
                    for sync in or(&self.syncs, Sync::Flush) {
                        for by in or(&self.bys, By::Scope) {
                            for threads in or(&self.threads, 1) {
                                let (arch, hosts) = (arch.clone(), 1 + u32::from(self.hosts));
                                let plain = Case { threads, ..Case::default() };
                                let like = Case { route, hosts, arch, window, sync, by, ..plain };
                                self.on(benches, &sizes, &like, &mut list)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(list.cases)
    }

    /// The given benches, sizes and types on one window with one synchronisation.
    fn on(
        &self,
        benches: &[Bench],
        sizes: &[u64],
        like: &Case,
        list: &mut List,
    ) -> Result<(), Failure> {
        if self.types.is_empty() {
            let plain = |bench: &Bench| !OF_TYPES.contains(bench) && *bench != Bench::TypeSend;
            let (plain, of_types): (Vec<Bench>, Vec<Bench>) =
                benches.iter().partition(|&b| plain(b));
            list.sized(&plain, sizes, like);
            return list.typed(&of_types, &types::all()?, like);
        }
        for element in &self.types {
            match element {
                Element::Named(named) => list.typed(benches, std::slice::from_ref(named), like)?,
                Element::Any(datatype) => {
                    let size = size_of(datatype)?.max(1);
                    for bytes in sizes {
                        list.any(benches, datatype, (bytes / size).max(1), like)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{IN_FLIGHT, Way};

    fn cases(choice: &Choice) -> Vec<Case> {
        choice.cases().expect("a choice with cases")
    }

    #[test]
    fn both_selections_have_every_bench_window_and_synchronisation() {
        for quick in [false, true] {
            let hosts = cases(&Choice { quick, hosts: true, ..Choice::default() });
            let cases = cases(&Choice { quick, ..Choice::default() });
            for bench in Bench::ALL {
                assert!(cases.iter().chain(&hosts).any(|case| case.bench == *bench), "{bench}");
            }
            for window in Flavor::ALL {
                assert!(cases.iter().any(|case| case.window == *window), "{window}");
            }
            for sync in Sync::ALL {
                assert!(cases.iter().any(|case| case.sync == *sync), "{sync}");
            }
            assert!(cases.iter().any(|case| case.route == Routes::Message));
            assert!(cases.iter().any(|case| case.arch[1] == "s390x"));
            for way in Way::ALL {
                assert!(cases.iter().any(|case| case.way == *way), "{way}");
            }
        }
    }

    #[test]
    fn every_case_is_parsed_back_unchanged() {
        for case in cases(&Choice::default()) {
            assert_eq!(case.to_string().parse().as_ref(), Ok(&case));
        }
    }

    #[test]
    fn rounds_are_those_asked_for() {
        for quick in [false, true] {
            let benches = vec![Bench::PutLatency, Bench::Computing, Bench::Launch];
            let usual = Choice { benches, quick, ..Choice::default() };
            let many = Choice { rounds: Some(5000), ..usual.clone() };
            let (usual, chosen) = (cases(&usual), cases(&many));
            assert_eq!(usual.len(), chosen.len());
            for (case, usual) in chosen.iter().zip(&usual) {
                let few = case.bench.has_few_rounds();
                assert_eq!(case.rounds, if few { usual.rounds } else { 5000 }, "{case}");
            }
            let told = many.unheeded(&chosen);
            assert!(told.iter().all(|told| told.contains("--rounds")), "{told:?}");
            assert!(told.iter().any(|told| told.starts_with("launch")), "{told:?}");
        }
    }

    #[test]
    fn flags_that_a_bench_does_not_use_are_reported() {
        let choice = Choice {
            benches: vec![Bench::CacheLine, Bench::PutLatency, Bench::Launch],
            sizes: vec![8, 64],
            ..Choice::default()
        };
        let chosen = cases(&choice);
        let of = |bench| chosen.iter().filter(|case| case.bench == bench).count();
        assert_eq!([of(Bench::CacheLine), of(Bench::Launch)], [1, 2], "of 2 and of 32 ranks");
        let told = choice.unheeded(&chosen);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("cache_line doesn't use all values of --size"), "{told:?}");
        let typed = Choice {
            benches: vec![Bench::PutLatency, Bench::FopLatency],
            types: vec![Element::Any(Datatype::double())],
            ..Choice::default()
        };
        let told = typed.unheeded(&cases(&typed));
        assert!(told.len() == 1 && told[0].starts_with("fop_latency isn't measured"), "{told:?}");
    }

    #[test]
    fn given_values_are_combined() {
        let choice = Choice {
            benches: vec![Bench::PutLatency, Bench::FopLatency],
            windows: vec![Flavor::Dynamic, Flavor::Shared],
            syncs: vec![Sync::Fence],
            sizes: vec![1, 4096],
            ..Choice::default()
        };
        let cases = cases(&choice);
        let found: Vec<_> =
            cases.iter().map(|case| (case.bench, case.window, case.sync, case.bytes)).collect();
        let expected = [Flavor::Dynamic, Flavor::Shared].map(|window| {
            [(Bench::PutLatency, 1), (Bench::PutLatency, 4096), (Bench::FopLatency, 8)]
                .map(|(bench, bytes)| (bench, window, Sync::Fence, bytes))
        });
        assert_eq!(found, expected.concat());
    }

    #[test]
    fn given_sizes_are_measured_exactly() {
        let given = vec![1, 7, 8, 12, 4096];
        let choice =
            Choice { benches: BANDWIDTHS.to_vec(), sizes: given.clone(), ..Choice::default() };
        let mut found: Vec<u64> = cases(&choice).iter().map(|case| case.bytes).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, given);
    }

    #[test]
    fn types_are_given_by_name_or_notation() -> Result<(), Failure> {
        let types = vec!["vector1".parse()?, "U1(V:d:4:1:5)".parse()?];
        let benches = vec![Bench::PutLatency];
        let choice = Choice { benches, types, sizes: vec![96], ..Choice::default() };
        let cases = cases(&choice);
        let found: Vec<_> =
            cases.iter().map(|case| (case.name.as_deref(), case.count, case.bytes)).collect();
        assert_eq!(found, [(Some("vector1"), 1, 1 << 20), (None, 3, 96)]);
        let [unknown, broken] = ["vector9", "U1(V:d:4)"].map(str::parse::<Element>);
        assert!(unknown.is_err_and(|error| error.contains("vector1")));
        assert!(broken.is_err_and(|error| error.contains("not a datatype")));
        Ok(())
    }

    #[test]
    fn same_layout_is_only_measured_between_like_ranks() -> Result<(), Failure> {
        for quick in [false, true] {
            let all = cases(&Choice { quick, ..Choice::default() });
            let same: Vec<_> = all.iter().filter(|case| case.way == Way::SameLayout).collect();
            assert!(!same.is_empty());
            for case in same {
                let [near, far] = case.architectures()?;
                assert!(near.same_representation(&far), "{:?}", case.arch);
            }
        }
        let of = |pair: [&str; 2]| -> Result<_, Failure> {
            let (types, archs) = (vec!["fft_columns".parse()?], vec![pair.map(str::to_owned)]);
            Ok(Choice { types, archs, benches: vec![Bench::PutLatency], ..Choice::default() }
                .cases()
                .is_ok())
        };
        assert!(of(["s390x", "s390x"])? && !of(["i686", "s390x"])?);
        Ok(())
    }

    #[test]
    fn bandwidth_is_measured_in_whole_batches() {
        for quick in [false, true] {
            for case in cases(&Choice { benches: BANDWIDTHS.to_vec(), quick, ..Choice::default() })
            {
                let whole = match case.calls {
                    0..=IN_FLIGHT => case.calls.is_power_of_two(),
                    calls => calls % IN_FLIGHT == 0,
                };
                assert!(whole, "{case}");
            }
        }
    }
}

//! The list of cases that a plan builds, and the effort that each case is worth.

use longshore::shipable::Committed;
use longshore::{Architecture, Datatype, Tag};

use super::{LATENCIES, LAUNCHES, SINGLES};
use crate::case::{Bench, By, Case, Flavor, IN_FLIGHT, Sync, Way};
use crate::types::Named;
use crate::{Failure, limits};

/// Bytes of data in one element.
pub fn size_of(datatype: &Datatype) -> Result<u64, Failure> {
    Ok(Committed::new(datatype, &Architecture::NATIVE)?.native().stream_size())
}

/// A growing list of cases.
pub struct List {
    quick: bool,
    pub cases: Vec<Case>,
}

impl List {
    pub fn new(quick: bool) -> List {
        List { quick, cases: Vec::new() }
    }

    /// Benches of predefined types, in several sizes.
    pub fn sized(&mut self, benches: &[Bench], sizes: &[u64], like: &Case) {
        for &bench in benches {
            for &bytes in sizes {
                // Sizes that aren't whole doubles use bytes, which have a sum, too.
                let (datatype, count) = match (bench, bytes) {
                    (Bench::FopLatency | Bench::CasLatency, _) => ("i64", 1),
                    _ if bytes < 8 || bytes % 8 != 0 => ("i8", bytes.max(1)),
                    _ => ("d", bytes / 8),
                };
                let bytes = if datatype == "i8" { count } else { 8 * count };
                let datatype = datatype.to_owned();
                self.push(Case { bench, bytes, datatype, count, ..like.clone() });
            }
        }
    }

    pub fn singles(&mut self, like: &Case) {
        self.sized(&SINGLES, &[8], like);
    }

    /// Benches of named types.
    pub fn typed(&mut self, benches: &[Bench], all: &[Named], like: &Case) -> Result<(), Failure> {
        for &bench in benches {
            for named in all {
                let bytes = named.count * size_of(&named.notation.parse()?)?;
                let (datatype, count, way) = (named.notation.clone(), named.count, named.way);
                let name = Some(named.name.to_owned());
                self.push(Case { bench, bytes, datatype, name, count, way, ..like.clone() });
            }
        }
        Ok(())
    }

    /// Benches of a type without a name.
    pub fn any(
        &mut self,
        benches: &[Bench],
        datatype: &Datatype,
        count: u64,
        like: &Case,
    ) -> Result<(), Failure> {
        let committed = Committed::new(datatype, &Architecture::NATIVE)?;
        let bytes = count.saturating_mul(committed.native().stream_size());
        let way = match committed.tag() {
            Tag::Portable => Way::Portable,
            _ => Way::TypeSend,
        };
        for &bench in benches {
            let datatype = datatype.to_string();
            self.push(Case { bench, bytes, datatype, count, way, ..like.clone() });
        }
        Ok(())
    }

    /// Adds a case with its calls and rounds. Fields that its bench doesn't use get their defaults,
    /// and a case that its bench can't do isn't added.
    fn push(&mut self, case: Case) {
        let plain = Case::default();
        let Case { bench, name, bytes, datatype, count, way, arch, ranks, .. } = case.clone();
        let kept = match bench {
            // Only whole doubles are swapped.
            Bench::ByteSwap if datatype != "d" => return,
            _ if limits::has(bench) || LAUNCHES.contains(&bench) => {
                let ranks = if limits::has(bench) { plain.ranks } else { ranks };
                match bench {
                    Bench::CacheLine | Bench::Launch | Bench::Memory => {
                        Case { bench, bytes: 8, count: 1, ranks, ..plain }
                    }
                    _ => Case { bench, bytes, count, datatype, ranks, ..plain },
                }
            }
            Bench::Commit | Bench::Define => {
                Case { bench, name, bytes: bytes / count, datatype, count: 1, ..plain }
            }
            Bench::Pack | Bench::Unpack | Bench::Copy => {
                Case { bench, name, bytes, datatype, count, arch, threads: case.threads, ..plain }
            }
            Bench::TypeSend => {
                let Case { arch, route, .. } = case;
                let bytes = bytes / count;
                Case { bench, name, bytes, datatype, count: 1, arch, route, ..plain }
            }
            // The calls of a sum need a number.
            bench if bench.has_no_window() && !matches!(datatype.as_str(), "d" | "i8") => return,
            bench if bench.has_no_window() => {
                let Case { arch, route, hosts, .. } = case;
                match bench {
                    Bench::Barrier => Case { bench, arch, route, hosts, ..plain },
                    _ => Case { bench, bytes, datatype, count, arch, route, hosts, ..plain },
                }
            }
            Bench::FopLatency | Bench::CasLatency if datatype != "i64" => return,
            Bench::Sync if case.sync == Sync::Notify => return,
            // Only by pointer is there a flush that is local, and one without a scope.
            Bench::Sync if case.sync == Sync::FlushLocal && case.by != By::Pointer => return,
            Bench::Sync => {
                let flushes = matches!(case.sync, Sync::Flush | Sync::FlushLocal);
                let by = if flushes { case.by } else { plain.by };
                let datatype = plain.datatype;
                Case { bytes: 8, datatype, count: 1, name: None, by, ..case }
            }
            Bench::Computing => {
                let (sync, window) = (Sync::Flush, Flavor::Create);
                let datatype = plain.datatype;
                let by = plain.by;
                Case { bytes: 8, datatype, count: 1, name: None, sync, window, by, ..case }
            }
            // A local flush completes a fetched value. Other scoped operations have none.
            _ if case.sync == Sync::FlushLocal
                && !matches!(bench, Bench::FopLatency | Bench::CasLatency) =>
            {
                return;
            }
            // Both are measured by pointer: a notification doesn't end the use of memory.
            Bench::PutPingpong if !matches!(case.sync, Sync::Flush | Sync::Notify) => return,
            Bench::PutPingpong => Case { way, by: By::Pointer, ..case },
            _ if case.sync == Sync::Notify && !LATENCIES.contains(&bench) => return,
            _ if case.sync == Sync::Notify => Case { way, by: By::Pointer, ..case },
            // By pointer, other operations are measured with a flush.
            _ if case.by == By::Pointer && !matches!(case.sync, Sync::Flush | Sync::FlushLocal) => {
                return;
            }
            // Unlike ranks don't have the same layout.
            _ if way == Way::SameLayout && !alike(&case) => return,
            _ => Case { way, ..case },
        };
        let (calls, rounds) = effort(&kept, self.quick);
        self.cases.push(Case { calls, rounds, ..kept });
    }
}

/// Whether both ranks have one representation.
fn alike(case: &Case) -> bool {
    case.architectures().is_ok_and(|[near, far]| near.same_representation(&far))
}

/// The calls of a round, and the rounds of a case. A fast case takes about ten milliseconds, a slow
/// case half a second, and with `quick` a hundredth of that.
fn effort(case: &Case, quick: bool) -> (u32, u32) {
    // Named types have gaps, which cost time, too.
    let bytes = if case.name.is_some() { 4 * case.bytes } else { case.bytes };
    let calls = match bytes {
        0..=8192 => 2000,
        8193..=65536 => 200,
        _ => 16,
    };
    let plain = Case::default();
    let slow = case.window == Flavor::Create
        || case.window == Flavor::Dynamic
        || !matches!(case.sync, Sync::Flush | Sync::FlushLocal)
        || case.route != plain.route
        || case.arch != plain.arch;
    let calls = calls / if slow { 4 } else { 1 };
    let of_text = |few, some, many| match case.datatype.len() {
        0..=256 => many,
        257..=32768 => some,
        _ => few,
    };
    let (calls, rounds) = match case.bench {
        Bench::Computing => return (1, 5),
        Bench::Launch => return (1, 3),
        Bench::Memory => return (1, 1),
        Bench::Tcp => (calls / 4, 41),
        Bench::Commit | Bench::Define | Bench::TypeSend => (of_text(2, 50, 500), 41),
        _ => (calls, 41),
    };
    let (calls, rounds) = if quick { (calls / 10, 5) } else { (calls, rounds) };
    match case.bench {
        bench if bench.streams() || bench == Bench::FabricBw => {
            // Whole batches, so that a round makes exactly as many calls as it counts.
            match calls {
                0..=IN_FLIGHT => (calls.max(1).next_power_of_two(), rounds),
                _ => (calls.next_multiple_of(IN_FLIGHT), rounds),
            }
        }
        _ => (calls.max(1), rounds),
    }
}

//! The report of a run, for people and for programs.
//!
//! [`Report`] holds the rows as they were measured. This module derives from them lines, sections
//! and ratios. The modules below render a report as tables, JSON, CSV and pictures.

mod json;
mod picture;
mod svg;
mod table;

use crate::case::{Bench, By, Case, Sync, Way};
use crate::environment::Environment;
use crate::limits;
use crate::row::{Distance, Gap, Refusal, Row, Sample};
use longshore::job::Routes;

pub use json::Unreadable;
pub use picture::{Chart, Curve, Picture, has_picture};
pub use svg::{Marker, PENS, Pen, page};

/// The name of this library among contenders.
pub const OURS: &str = "Longshore";
/// The name of the machine's limit among contenders.
pub const LIMIT: &str = "limit";
/// The name of hand-written loops among contenders.
pub const LOOP: &str = "loop";

/// A run: its circumstances and its results.
///
/// ```
/// use longshore_benches::environment::Environment;
/// use longshore_benches::report::Report;
/// use longshore_benches::row::{Row, Sample};
///
/// let sample = Sample { low: 0.0142, median: 0.0151, high: 0.0302, line: [45.0, 46.0], validated: true };
/// let row = |contender: &str, low| Row {
///     case: "bench=put_latency bytes=8".parse().unwrap(),
///     contender: contender.to_owned(),
///     turn: 0,
///     sample: Sample { low, ..sample },
/// };
/// let rows = vec![row("Longshore", 0.0142), row("MPICH", 0.0284)];
/// let report = Report { environment: Environment::read(), rows, gaps: Vec::new() };
/// assert!(report.text().contains("0.50"));
/// assert_eq!(Report::from_json(&report.json())?, report);
/// # Ok::<(), longshore_benches::report::Unreadable>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The machine and the versions.
    pub environment: Environment,
    /// The results, in the order of measuring.
    pub rows: Vec<Row>,
    /// The cases without results, with the reasons.
    pub gaps: Vec<Gap>,
}

/// Lines that differ only in size and type.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The bench, and the words of the case that differ from the defaults.
    pub heading: String,
    /// One line for each case and distance of the cores.
    pub lines: Vec<Line<'a>>,
}

/// The results of all contenders for a case at one distance of the cores.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The case.
    pub case: &'a Case,
    /// The distance of the cores.
    pub distance: Distance,
    /// The figures of each contender that has results.
    pub results: Vec<Figures<'a>>,
}

/// The results of one contender in all turns.
#[derive(Clone, Debug)]
pub struct Figures<'a> {
    /// The contender's name.
    pub contender: &'a str,
    /// The samples with their turns.
    samples: Vec<(u32, &'a Sample)>,
}

/// This library's time divided by another contender's, over all turns. Below 1 this library is
/// faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio of the best turn.
    pub least: f64,
    /// The median of the turns. For an even number of turns, the mean of the middle two.
    pub median: f64,
    /// The ratio of the worst turn.
    pub most: f64,
    /// Whether this library is slower in at least three quarters of the turns.
    pub behind: bool,
}

impl Report {
    /// The sections, in the order of their first rows. Rows during which the cores' distance
    /// changed are left out.
    pub fn sections(&self) -> Vec<Section<'_>> {
        let mut sections: Vec<Section<'_>> = Vec::new();
        for row in &self.rows {
            let Some(distance) = row.sample.distance() else { continue };
            let heading = heading(&row.case);
            let at = sections.iter().position(|section| section.heading == heading);
            let at = at.unwrap_or_else(|| {
                sections.push(Section { heading, lines: Vec::new() });
                sections.len() - 1
            });
            sections[at].add(row, distance);
        }
        for section in &mut sections {
            // Sorted by size, whatever the order of measuring. Named types come last.
            section.lines.sort_by_key(|Line { case, .. }| match is_typed(case) {
                true => (true, 0),
                false => (false, case.bytes),
            });
        }
        for line in sections.iter_mut().flat_map(|section| &mut section.lines) {
            if line.of(LIMIT).is_none() {
                line.results.extend(self.limit(line));
            }
        }
        sections
    }

    /// The machine's limit for a line: the time to copy as many bytes, to move a cache line, or,
    /// between hosts, to write the bytes with libfabric.
    fn limit<'a>(&'a self, line: &Line<'_>) -> Option<Figures<'a>> {
        let Case { bench, sync, hosts, .. } = line.case;
        let ends = line.case.architectures();
        let swapped = ends.is_ok_and(|[near, far]| near.order() != far.order());
        let swapped = swapped && line.case.datatype != "i8";
        let of = match bench {
            Bench::PutLatency | Bench::GetLatency if *hosts > 1 => Bench::Fabric,
            Bench::PutBw | Bench::GetBw | Bench::PutMr | Bench::GetMr if *hosts > 1 => {
                Bench::FabricBw
            }
            Bench::PutLatency
            | Bench::GetLatency
            | Bench::PutBw
            | Bench::GetBw
            | Bench::PutMr
            | Bench::GetMr => match swapped {
                true => Bench::ByteSwap,
                false => Bench::Memcpy,
            },
            Bench::Sync if matches!(sync, Sync::Fence | Sync::Pscw) => Bench::CacheLine,
            _ => return None,
        };
        let same = |row: &&Row| match row.case.bench {
            Bench::CacheLine => {
                of == Bench::CacheLine && row.sample.distance() == Some(line.distance)
            }
            bench => bench == of && row.case.bytes == line.case.bytes,
        };
        let samples: Vec<_> =
            self.rows.iter().filter(same).map(|row| (row.turn, &row.sample)).collect();
        (!samples.is_empty()).then_some(Figures { contender: LIMIT, samples })
    }

    /// The number of rows that are left out because the distance of the cores changed.
    pub fn moved(&self) -> usize {
        self.rows.iter().filter(|row| row.sample.distance().is_none()).count()
    }

    /// The reasons of each contender's gaps, with the number of gaps.
    fn reasons(&self) -> Vec<(String, usize)> {
        let mut reasons: Vec<(String, usize)> = Vec::new();
        for Gap { contender, why, .. } in &self.gaps {
            let reason = format!("{contender}: {why}");
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, cases)) => *cases += 1,
                None => reasons.push((reason, 1)),
            }
        }
        reasons
    }

    /// Whether the run failed: a contender moved wrong data, or a job of this library failed. Lost
    /// jobs of other contenders don't count.
    pub fn failed(&self) -> bool {
        self.gaps.iter().any(|gap| match gap.why {
            Refusal::Invalid(_) => true,
            Refusal::Lost(_) => gap.contender == OURS,
            Refusal::Unsupported(_) => false,
        })
    }
}

impl<'a> Section<'a> {
    fn add(&mut self, row: &'a Row, distance: Distance) {
        let same = |line: &Line<'_>| *line.case == row.case && line.distance == distance;
        let at = self.lines.iter().position(same).unwrap_or_else(|| {
            // Lines of one case are adjacent.
            let last = self.lines.iter().rposition(|line| *line.case == row.case);
            let at = last.map_or(self.lines.len(), |last| last + 1);
            self.lines.insert(at, Line { case: &row.case, distance, results: Vec::new() });
            at
        });
        let (results, sample) = (&mut self.lines[at].results, (row.turn, &row.sample));
        match results.iter_mut().find(|result| result.contender == row.contender) {
            Some(result) => result.samples.push(sample),
            None => results.push(Figures { contender: &row.contender, samples: vec![sample] }),
        }
    }
}

impl Line<'_> {
    /// The figures of a contender.
    pub fn of(&self, contender: &str) -> Option<&Figures<'_>> {
        self.results.iter().find(|result| result.contender == contender)
    }

    /// The ratio of this library to another contender. `None` if no turn has results of both.
    pub fn ratio(&self, other: &str) -> Option<Ratio> {
        self.of(OURS)?.ratio(self.of(other)?)
    }
}

/// The names of all contenders in these lines: this library, MPI libraries, loops, and the limit.
fn contenders<'a>(lines: &'a [Line<'_>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for result in lines.iter().flat_map(|line| &line.results) {
        if !names.contains(&result.contender) {
            names.push(result.contender);
        }
    }
    let place = |name: &str| match name {
        OURS => 0,
        LOOP => 2,
        LIMIT => 3,
        _ => 1,
    };
    names.sort_by_key(|name| (place(name), *name));
    names
}

impl Figures<'_> {
    /// The lowest low of all turns, in microseconds.
    pub fn low(&self) -> f64 {
        self.samples.iter().map(|(_, sample)| sample.low).fold(f64::INFINITY, f64::min)
    }

    /// The ratio to another contender, from the lows of the turns that have both. Other turns
    /// aren't compared, because the machine's speed changes. A limit hardly changes: if no turn has
    /// both, the ratio to it uses the lows of all turns.
    pub fn ratio(&self, other: &Figures<'_>) -> Option<Ratio> {
        let of_turn = |(turn, ours): &(u32, &Sample)| {
            let (_, theirs) = other.samples.iter().find(|(of, _)| of == turn)?;
            Some(ours.low / theirs.low)
        };
        let mut ratios: Vec<f64> = self.samples.iter().filter_map(of_turn).collect();
        if ratios.is_empty() {
            if other.contender != LIMIT {
                return None;
            }
            ratios.push(self.low() / other.low());
        }
        ratios.sort_unstable_by(f64::total_cmp);
        let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
        let behind = ratios[ratios.len() / 4] > 1.0;
        Some(Ratio { least, median: middle(ratios), most, behind })
    }
}

/// The median. `values` must not be empty.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let upper = values.len() / 2;
    let lower = (values.len() - 1) / 2;
    (values[lower] + values[upper]) / 2.0
}

/// The heading of a case's section: the bench, and the words that matter for the bench and differ
/// from the defaults.
fn heading(case: &Case) -> String {
    let Case { bench, window, sync, way, by, route, hosts, offset, threads, arch, ranks, .. } =
        case;
    let mut heading = bench.to_string();
    let mut add = |word: &str| heading += &format!(", {word}");
    match bench {
        Bench::Pack | Bench::Unpack | Bench::Copy => {}
        Bench::Commit | Bench::Define => {}
        Bench::TypeSend | Bench::Launch | Bench::Memory => {}
        bench if limits::has(*bench) || bench.has_no_window() => {}
        _ => {
            add(window.word());
            add(sync.word());
        }
    }
    if *way != Way::Portable {
        add(way.word());
    }
    if *by != By::Scope {
        add(&format!("by {by}"));
    }
    if *route != Routes::Best {
        add(&format!("route {route}"));
    }
    if *hosts != 1 {
        add(&format!("{hosts} hosts"));
    }
    if *threads != 1 {
        add(&format!("{threads} threads"));
    }
    if *offset != 0 {
        add(&format!("origin {offset} B into a page"));
    }
    if arch.iter().any(|arch| arch != "native") {
        add(&arch.join(" to "));
    }
    if *ranks != 2 && !matches!(bench, Bench::Launch | Bench::Memory) {
        add(&format!("{ranks} ranks"));
    }
    heading
}

/// Whether the case has a type that was asked for, not the plain type that follows from the size.
fn is_typed(case: &Case) -> bool {
    let plain = match case.bench {
        Bench::FopLatency | Bench::CasLatency => &["i64"][..],
        _ => &["d", "i8"],
    };
    case.name.is_some() || !plain.contains(&&*case.datatype)
}

/// The label of a line in its section: the type and the size.
fn label(case: &Case) -> String {
    if matches!(case.bench, Bench::Launch | Bench::Memory) {
        return format!("{} ranks", case.ranks);
    }
    let datatype = if is_typed(case) { &*case.datatype } else { "" };
    let named = case.name.as_deref().unwrap_or(datatype);
    match case.bytes {
        0 => named.to_owned(),
        bytes => format!("{named} {}", size(bytes)).trim_start().to_owned(),
    }
}

/// A number of bytes with a unit.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        _ if bytes % 1024 != 0 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{:.4} MiB", bytes as f64 / 1024.0 / 1024.0).replace(".0000", ""),
    }
}

/// The unit in which a bench's figures are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microseconds,
    Milliseconds,
    Gigabytes,
    Operations,
    Megabytes,
}

impl Unit {
    fn of(bench: Bench) -> Unit {
        match bench {
            Bench::PutBw | Bench::GetBw | Bench::PutBibw | Bench::GetBibw => Unit::Gigabytes,
            Bench::Pack | Bench::Unpack | Bench::Copy => Unit::Gigabytes,
            Bench::Memcpy | Bench::ByteSwap => Unit::Gigabytes,
            Bench::PutMr | Bench::GetMr | Bench::MessageMr => Unit::Operations,
            Bench::Launch => Unit::Milliseconds,
            Bench::Memory => Unit::Megabytes,
            _ => Unit::Microseconds,
        }
    }

    /// Converts a sample, which is in microseconds, to this unit. Samples of memory are in kB.
    fn convert(self, case: &Case, sample: f64) -> f64 {
        match self {
            Unit::Microseconds => sample,
            Unit::Milliseconds => sample / 1e3,
            Unit::Gigabytes => case.moved() as f64 / sample / 1e3,
            Unit::Operations => 1.0 / sample,
            Unit::Megabytes => sample / 1024.0,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::Gigabytes => "GB/s",
            Unit::Operations => "million/s",
            Unit::Megabytes => "MiB",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row of a contender in a turn.
    fn row(line: &str, contender: &str, turn: u32, low: f64, line_of: [f64; 2]) -> Row {
        let (median, high) = (2.0 * low, 4.0 * low);
        let sample = Sample { low, median, high, line: line_of, validated: true };
        Row { case: line.parse().unwrap(), contender: contender.to_owned(), turn, sample }
    }

    /// A run of several turns with every kind of row and gap.
    pub(super) fn report() -> Report {
        let (near, far, both) = ([45.0, 46.0], [250.0, 240.0], [45.0, 250.0]);
        let mut rows = Vec::new();
        let sizes = [(8u64, 1.0), (64, 1.0), (1024, 1.5), (65_536, 100.0), (1 << 20, 1000.0)];
        for (bytes, unit) in sizes {
            for (sync, more) in [("flush", 1.0), ("fence", 5.0)] {
                let case = format!("bench=put_latency bytes={bytes} sync={sync}");
                for turn in 0..2 {
                    rows.push(row(&case, OURS, turn, 0.01 * unit * more, near));
                    rows.push(row(
                        &case,
                        "MPICH",
                        turn,
                        0.02 * unit * more / f64::from(turn + 1),
                        near,
                    ));
                    rows.push(row(&case, "Open MPI", turn, 0.005 * unit * more, near));
                }
                rows.push(row(&case, OURS, 2, 0.04 * unit * more, far));
                rows.push(row(&case, "MPICH", 2, 0.05 * unit * more, both));
            }
            let case = format!("bench=memcpy bytes={bytes}");
            rows.push(row(&case, LIMIT, 0, 0.004 * unit, [0.0; 2]));
            let case = format!("bench=put_bw bytes={bytes} route=message arch=i686,s390x");
            rows.push(row(&case, OURS, 0, 0.5 * unit, near));
        }
        rows.push(row(
            "bench=pack type=U1(V:d:4:1:5) name=column bytes=32",
            OURS,
            0,
            0.01,
            [0.0; 2],
        ));
        rows.push(row("bench=launch ranks=32", OURS, 0, 93_000.0, [0.0; 2]));
        let gap = |contender: &str, why| Gap {
            case: "bench=put_latency window=dynamic".parse().unwrap(),
            contender: contender.to_owned(),
            turn: 0,
            why,
        };
        let gaps = vec![
            gap("MPICH", Refusal::Unsupported("no such type".to_owned())),
            gap("MPICH", Refusal::Unsupported("no such type".to_owned())),
            gap("Open MPI", Refusal::Lost("40 s without an answer".to_owned())),
        ];
        Report { environment: Environment::default(), rows, gaps }
    }

    #[test]
    fn a_section_has_the_sizes_of_one_bench() {
        let report = report();
        let sections = report.sections();
        let headings: Vec<&str> = sections.iter().map(|section| &*section.heading).collect();
        assert_eq!(
            headings,
            [
                "put_latency, allocate, flush",
                "put_latency, allocate, fence",
                "memcpy",
                "put_bw, allocate, flush, route message, i686 to s390x",
                "pack",
                "launch"
            ]
        );
        let lines: Vec<_> =
            sections[0].lines.iter().map(|line| (label(line.case), line.distance)).collect();
        let (near, far) = (Distance::Near, Distance::Far);
        let expected = ["8 B", "64 B", "1 KiB", "64 KiB", "1 MiB"];
        let expected: Vec<_> = expected
            .into_iter()
            .flat_map(|size| [near, far].map(|at| (size.to_owned(), at)))
            .collect();
        assert_eq!(lines, expected);
        assert_eq!(report.moved(), 10);
    }

    #[test]
    fn lines_are_sorted_by_size_with_types_last() {
        let mut report = report();
        for case in ["type=U1(V:d:4:1:5) name=column bytes=32", "bytes=16"] {
            let case = format!("bench=put_latency {case}");
            report.rows.push(row(&case, OURS, 2, 0.04, [250.0; 2]));
        }
        let sections = report.sections();
        let mut lines: Vec<_> = sections[0].lines.iter().map(|line| label(line.case)).collect();
        lines.dedup();
        assert_eq!(lines, ["8 B", "16 B", "64 B", "1 KiB", "64 KiB", "1 MiB", "column 32 B"]);
    }

    #[test]
    fn contenders_have_a_fixed_order() {
        let mut report = report();
        report.rows.reverse();
        let sections = report.sections();
        let puts = sections.iter().find(|section| section.heading.ends_with("flush")).unwrap();
        assert_eq!(contenders(&puts.lines), [OURS, "MPICH", "Open MPI", LIMIT]);
    }

    #[test]
    fn ratios_are_of_the_same_turns() {
        let report = report();
        let sections = report.sections();
        let line = &sections[0].lines[0];
        let ratio = line.ratio("MPICH");
        assert_eq!(ratio, Some(Ratio { least: 0.5, median: 0.75, most: 1.0, behind: false }));
        assert!(line.ratio("Open MPI").is_some_and(|ratio| ratio.behind && ratio.least == 2.0));
        assert_eq!(line.ratio(LIMIT).map(|ratio| ratio.median), Some(2.5));
        assert_eq!(line.of(OURS).map(Figures::low), Some(0.01));
        assert_eq!(sections[0].lines[1].ratio("MPICH"), None, "its cores were moved");
    }

    #[test]
    fn without_a_common_turn_only_the_limit_has_a_ratio() {
        let mut report = report();
        // The last turn of this library is far, and so is the other contender's turn now.
        let far = report.rows.iter_mut().filter(|row| row.sample.distance().is_none());
        far.for_each(|row| (row.turn, row.sample.line) = (3, [250.0, 240.0]));
        let sections = report.sections();
        let line = &sections[0].lines[1];
        assert!(line.of("MPICH").is_some() && line.of(OURS).is_some());
        assert_eq!(line.ratio("MPICH"), None);
        assert_eq!(line.ratio(LIMIT).map(|ratio| ratio.median), Some(10.0));
    }

    #[test]
    fn ranks_of_unlike_byte_order_have_the_limit_of_a_swap() {
        // The report has rows of memcpy, but none of byte_swap.
        for (arch, known) in [("x86_64,i686", true), ("x86_64,s390x", false)] {
            let mut report = report();
            for row in report.rows.iter_mut().filter(|row| row.case.bench == Bench::PutBw) {
                let case =
                    format!("bench=put_bw bytes={} route=message arch={arch}", row.case.bytes);
                row.case = case.parse().unwrap();
            }
            let sections = report.sections();
            let of_rates = |section: &&Section<'_>| section.heading.starts_with("put_bw");
            let line = &sections.iter().find(of_rates).unwrap().lines[0];
            assert_eq!(line.ratio(LIMIT).is_some(), known, "{arch}");
        }
    }

    #[test]
    fn wrong_data_and_lost_jobs_are_failures() {
        let mut report = report();
        assert!(!report.failed());
        report.gaps[2].contender = OURS.to_owned();
        assert!(report.failed());
        report.gaps[2].contender = "MPICH".to_owned();
        report.gaps[0].why = Refusal::Invalid("byte 3".to_owned());
        assert!(report.failed());
    }

    #[test]
    fn sizes_have_binary_units() {
        let sizes = [1, 1023, 1024, 1500, 65536, 1 << 20, (1 << 20) + (1 << 18)].map(size);
        assert_eq!(sizes, ["1 B", "1023 B", "1 KiB", "1.5 KiB", "64 KiB", "1 MiB", "1.2500 MiB"]);
    }
}

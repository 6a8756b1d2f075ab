//! The summary of a job's counters, which fits on a screen of 80 columns and 24 lines. The longest
//! wait comes first.

use std::collections::BTreeMap;
use std::fmt::Write;

use longshore_job::journal::open::OpenCall;
use longshore_job::journal::snapshot::{CallCounts, PeerCounts, Snapshot};
use longshore_job::journal::{KINDS, ROUTES, SIZES};

use super::counted::Counted;
use super::report::name;

/// The most waits. Each has two lines.
const WAITS: usize = 5;

/// The most calls that haven't returned, and the most waits below them.
const OPEN: usize = 2;

/// The most lines of operations.
const OPERATIONS: usize = 5;

/// The most pairs of kinds. A job that has some shows fewer waits and operations.
const PAIRS: usize = 4;

/// The most ranks that a list names.
const NAMED: usize = 4;

/// The calls of all ranks at one source line.
#[derive(Default)]
struct Wait {
    count: u64,
    nanos: u64,
    /// The longest call, and its rank.
    longest: (u64, u32),
    /// The ranks that made them, with their times.
    ranks: Vec<(u64, u32)>,
    waited_for: BTreeMap<u32, u64>,
}

/// The name of a call, its window, and its source line.
type Place<'a> = (&'static str, Option<u32>, &'a str, u32);

/// The summary.
pub(super) fn summary(ranks: &[Counted]) -> String {
    let counted: Vec<(u32, &Snapshot)> =
        (0..).zip(ranks).filter_map(|(rank, it)| Some((rank, it.snapshot.as_ref()?))).collect();
    let open: Vec<Opened<'_>> = (0..).zip(ranks).flat_map(|(rank, it)| opened(rank, it)).collect();
    let mut text = String::new();
    let elapsed = counted.iter().map(|(_, it)| it.elapsed).max().unwrap_or(0);
    let lasted = open.iter().filter_map(|open| open.nanos);
    let elapsed = lasted.clone().max().unwrap_or(0).max(elapsed);
    let waited: u64 = counted.iter().flat_map(|(_, it)| &it.calls).map(|calls| calls.nanos).sum();
    let waited = waited + lasted.sum::<u64>();
    // The last counters of a rank that was killed are older than its end.
    let all = counted.iter().map(|(_, it)| it.elapsed).sum::<u64>().max(waited);
    let share = percent(waited, all);
    let _ = writeln!(
        text,
        "longshore: {} of {} ranks, {}, {share} of it in calls that may wait",
        counted.len(),
        ranks.len(),
        duration(elapsed)
    );
    let cut: Vec<u32> =
        counted.iter().filter(|(_, it)| !it.complete).map(|(rank, _)| *rank).collect();
    if !cut.is_empty() {
        let _ = writeln!(text, "  ended without finalize: {}", list(&cut));
    }
    not_returned(&mut text, &open);
    let pairs = pairs(&counted);
    let (most, rows) = match (open.is_empty(), pairs.is_empty()) {
        (true, true) => (WAITS, OPERATIONS),
        (true, false) => (WAITS - 2, OPERATIONS - 3),
        (false, true) => (OPEN, OPERATIONS),
        (false, false) => (OPEN - 1, OPERATIONS - 4),
    };
    waits(&mut text, &counted, most);
    operations(&mut text, &counted, rows);
    kinds(&mut text, pairs);
    frames(&mut text, &counted);
    text
}

/// A call in which a rank has ended.
struct Opened<'a> {
    rank: u32,
    call: &'a OpenCall,
    nanos: Option<u64>,
}

fn opened(rank: u32, Counted { open, .. }: &Counted) -> impl Iterator<Item = Opened<'_>> {
    open.calls.iter().map(move |call| Opened { rank, call, nanos: call.nanos(open.end) })
}

/// The calls in which ranks have ended, by source line. Those that lasted longest come first.
fn not_returned(text: &mut String, open: &[Opened<'_>]) {
    let mut places: BTreeMap<Place<'_>, Wait> = BTreeMap::new();
    for Opened { rank, call, nanos } in open {
        let place = (name(call.activity), call.window, call.file.as_str(), call.line);
        let wait = places.entry(place).or_default();
        let nanos = nanos.unwrap_or(0);
        wait.count += 1;
        wait.nanos += nanos;
        wait.longest = wait.longest.max((nanos, *rank));
        wait.ranks.push((nanos, *rank));
        if let Some(awaited) = call.awaited {
            *wait.waited_for.entry(awaited).or_default() += 1;
        }
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, wait)| std::cmp::Reverse(wait.longest.0));
    if places.is_empty() {
        return;
    }
    let _ = writeln!(text, "not returned          calls             longest  waited for");
    let more = places.len().saturating_sub(OPEN);
    for (place, wait) in places.iter_mut().take(OPEN) {
        let what = what(place);
        let longest = match wait.longest.0 {
            0 => "-".to_owned(),
            nanos => duration(nanos),
        };
        let awaited: Vec<u32> = wait.waited_for.keys().copied().collect();
        let awaited = if awaited.is_empty() { "unknown".to_owned() } else { list(&awaited) };
        let _ = writeln!(text, "  {what:<18}{:>7}{longest:>20}  {awaited}", wait.count);
        wait.ranks.sort_by_key(|&(_, rank)| rank);
        let ranks: Vec<u32> = wait.ranks.iter().map(|(_, rank)| *rank).collect();
        let _ = writeln!(text, "    {}by {}", site(place), list(&ranks));
    }
    if more > 0 {
        let _ = writeln!(text, "  and {more} more: --stats=FILE.json has all");
    }
}

/// The name of a call, with its window.
fn what((call, window, ..): &Place<'_>) -> String {
    match window {
        Some(window) => format!("{call}, window {window}"),
        None => (*call).to_owned(),
    }
}

/// The source line of a call, before the ranks that made it.
fn site((_, _, file, line): &Place<'_>) -> String {
    match (*file, line) {
        ("", _) => String::new(),
        (file, 0) => format!("at {file}, "),
        (file, line) => format!("at {file}:{line}, "),
    }
}

/// The calls that took longest, by source line.
fn waits(text: &mut String, counted: &[(u32, &Snapshot)], most: usize) {
    let mut places: BTreeMap<Place<'_>, Wait> = BTreeMap::new();
    for &(rank, snapshot) in counted {
        for calls in &snapshot.calls {
            let CallCounts { window, count, nanos, longest, .. } = *calls;
            let place = (name(calls.activity), window, calls.file.as_str(), calls.line);
            let wait = places.entry(place).or_default();
            wait.count += count;
            wait.nanos += nanos;
            wait.longest = wait.longest.max((longest, rank));
            match wait.ranks.iter_mut().find(|(_, known)| *known == rank) {
                Some((sum, _)) => *sum += nanos,
                None => wait.ranks.push((nanos, rank)),
            }
            for &(rank, nanos) in &calls.waited_for {
                *wait.waited_for.entry(rank).or_default() += nanos;
            }
        }
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, wait)| std::cmp::Reverse(wait.nanos));
    if places.is_empty() {
        return;
    }
    let _ = writeln!(text, "longest waits         calls      time   longest  waited for");
    let more = places.len().saturating_sub(most);
    for (place, wait) in places.iter_mut().take(most) {
        let what = what(place);
        let _ = writeln!(
            text,
            "  {what:<18}{:>7}{:>10}{:>10}  {}",
            wait.count,
            duration(wait.nanos),
            duration(wait.longest.0),
            wait.awaited()
        );
        let _ = writeln!(text, "    {}by {}", site(place), wait.waiters());
    }
    if more > 0 {
        let _ = writeln!(text, "  and {more} more: --stats=FILE.json has all");
    }
}

impl Wait {
    /// The rank that was waited for most.
    fn awaited(&self) -> String {
        let most = self.waited_for.iter().max_by_key(|(_, nanos)| **nanos);
        match most {
            Some((rank, nanos)) if *nanos * 20 >= self.nanos => {
                format!("rank {rank}: {}", percent(*nanos, self.nanos))
            }
            _ => "nobody long".to_owned(),
        }
    }

    /// The ranks that waited, the longest first.
    fn waiters(&mut self) -> String {
        self.ranks.sort_by_key(|&(nanos, rank)| (std::cmp::Reverse(nanos), rank));
        // A rank that others waited for is among the callers, and has hardly waited.
        let most = self.ranks.first().map_or(0, |(nanos, _)| *nanos);
        let long = self.ranks.iter().filter(|(nanos, _)| *nanos * 10 >= most);
        let named: Vec<u32> = long.map(|(_, rank)| *rank).collect();
        list(&named)
    }
}

/// The operations of most bytes, by kind, route and size.
fn operations(text: &mut String, counted: &[(u32, &Snapshot)], most: usize) {
    let mut sums: BTreeMap<(u8, u8, u8), [u64; 3]> = BTreeMap::new();
    let windows = counted.iter().flat_map(|(_, it)| &it.windows);
    for row in windows.flat_map(|window| &window.targets).flat_map(|target| &target.rows) {
        let sum = sums.entry((row.kind, row.route, row.class)).or_default();
        for (sum, more) in sum.iter_mut().zip([row.count, row.bytes, row.nanos]) {
            *sum += more;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, [count, bytes, _])| std::cmp::Reverse((*bytes, *count)));
    if sums.is_empty() {
        return;
    }
    let _ = writeln!(text, "operations            count     bytes      time  route, size of each");
    for ((kind, route, class), [count, all, nanos]) in sums.iter().take(most) {
        let kind = KINDS.get(usize::from(*kind)).unwrap_or(&"unknown");
        let route = ROUTES.get(usize::from(*route)).unwrap_or(&"unknown");
        let size = match SIZES.get(usize::from(*class)) {
            Some(most) => format!("up to {}", bytes(*most)),
            None => format!("above {}", bytes(SIZES[SIZES.len() - 1])),
        };
        let time = if *nanos > 0 { duration(*nanos) } else { "-".to_owned() };
        let all = bytes(*all);
        let _ = writeln!(text, "  {kind:<16}{count:>9}{all:>10}{time:>10}  {route}, {size}");
    }
    if sums.len() > most {
        let _ = writeln!(text, "  and {} more rows", sums.len() - most);
    }
}

/// The bytes that were copied, and those that were converted.
type Data = [u64; 2];

/// Two kinds of ranks; the second is `None` for collective calls.
type Pair<'a> = (&'a str, Option<&'a str>);

/// The data between the kinds of ranks, of a job that has several. The pair of most bytes comes
/// first.
fn pairs<'a>(counted: &[(u32, &'a Snapshot)]) -> Vec<(Pair<'a>, Data)> {
    let mut sums: BTreeMap<Pair<'a>, Data> = BTreeMap::new();
    for counts in counted.iter().flat_map(|(_, it)| &it.kinds) {
        let sum = sums.entry((&counts.from, counts.to.as_deref())).or_default();
        sum[0] += counts.copied;
        sum[1] += counts.converted;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, [copied, converted])| {
        std::cmp::Reverse((converted + copied, *converted))
    });
    sums
}

/// The data between the kinds of ranks.
fn kinds(text: &mut String, pairs: Vec<(Pair<'_>, Data)>) {
    if pairs.is_empty() {
        return;
    }
    let _ = writeln!(text, "data between kinds                         copied converted");
    let more = pairs.len().saturating_sub(PAIRS);
    for ((from, to), [copied, converted]) in pairs.into_iter().take(PAIRS) {
        let pair = match to {
            Some(to) => format!("{from} -> {to}"),
            None => format!("{from}, collective calls"),
        };
        let _ = writeln!(text, "  {pair:<36}{:>11}{:>10}", bytes(copied), bytes(converted));
    }
    if more > 0 {
        let _ = writeln!(text, "  and {more} more: --stats=FILE.json has all");
    }
}

/// The frames of all ranks.
fn frames(text: &mut String, counted: &[(u32, &Snapshot)]) {
    let sum = |get: fn(&Snapshot) -> u64| counted.iter().map(|(_, it)| get(it)).sum::<u64>();
    let peers = |get: fn(&PeerCounts) -> u64| {
        counted.iter().flat_map(|(_, it)| &it.peers).map(get).sum::<u64>()
    };
    let _ = writeln!(
        text,
        "frames: {} sent, {}; {} from unlike ranks, {}; {} retries",
        peers(|peer| peer.sent),
        bytes(peers(|peer| peer.sent_bytes)),
        peers(|peer| peer.converted),
        bytes(peers(|peer| peer.converted_bytes)),
        sum(|it| it.retries)
    );
    let _ = writeln!(
        text,
        "wake-ups: {} after sleeps of {} in all; forms shipped: {}",
        sum(|it| it.sleeps),
        duration(sum(|it| it.slept)),
        sum(|it| it.forms)
    );
    let merged = sum(|it| it.merged);
    if merged > 0 {
        let _ = writeln!(text, "  {merged} windows are counted together, or by their waits only");
    }
}

/// The first of some ranks, and the number of the others.
fn list(ranks: &[u32]) -> String {
    let named: Vec<String> = ranks.iter().take(NAMED).map(u32::to_string).collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    match ranks.len().saturating_sub(NAMED) {
        0 => format!("{noun} {}", named.join(", ")),
        more => format!("{noun} {} and {more} more", named.join(", ")),
    }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// A time with three digits.
pub(super) fn duration(nanos: u64) -> String {
    scaled(nanos as f64, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)], 1000.0)
}

/// A number of bytes with three digits.
fn bytes(bytes: u64) -> String {
    let units = [("B", 1.0), ("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0)];
    scaled(bytes as f64, &units, 1024.0)
}

fn scaled(value: f64, units: &[(&str, f64)], step: f64) -> String {
    let fits = |(_, unit): &&(&str, f64)| value < unit * step;
    let (name, unit) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    let scaled = value / unit;
    match scaled {
        _ if *unit == 1.0 => format!("{scaled:.0} {name}"),
        ..10.0 => format!("{scaled:.2} {name}"),
        ..100.0 => format!("{scaled:.1} {name}"),
        _ => format!("{scaled:.0} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_job::journal::open::Open;
    use longshore_job::journal::snapshot::{KindCounts, Row, TargetCounts, WindowCounts};

    fn fence(line: u32, nanos: u64, waited_for: Vec<(u32, u64)>) -> CallCounts {
        CallCounts {
            activity: longshore_job::Activity::Fence.code(),
            window: Some(3),
            file: "src/halo.rs".to_owned(),
            line,
            count: 10,
            nanos,
            longest: nanos / 2,
            waited_for,
        }
    }

    #[test]
    fn the_longest_wait_comes_first_with_its_line_and_the_rank_waited_for() {
        let rank =
            |calls| Snapshot { elapsed: 10_000_000, complete: true, calls, ..Snapshot::default() };
        let first = rank(vec![fence(7, 9_000, vec![]), fence(70, 5_000_000, vec![(1, 4_900_000)])]);
        let second = rank(vec![fence(70, 40_000, vec![(0, 10)])]);
        let ranks = [Some(first), Some(second), None];
        let text = summary(&ranks.map(|snapshot| Counted { snapshot, ..Counted::default() }));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("longshore: 2 of 3 ranks, 10.0 ms, 25 %"), "{text}");
        assert_eq!(lines[2], "  fence, window 3        20   5.04 ms   2.50 ms  rank 1: 97 %");
        assert_eq!(lines[3], "    at src/halo.rs:70, by rank 0");
        assert!(lines[5].contains("src/halo.rs:7,"), "{text}");
    }

    #[test]
    fn a_summary_of_many_places_and_ranks_fits_on_a_screen() {
        let rows: Vec<Row> = (0..6)
            .flat_map(|kind| (0..7).map(move |class| (kind, class)))
            .map(|(kind, class)| Row {
                kind,
                route: 2,
                class,
                count: 1 << 20,
                bytes: 1 << 40,
                nanos: 1 << 40,
            })
            .collect();
        let targets = vec![TargetCounts { rank: 4000, rows }];
        let snapshot = Snapshot {
            elapsed: 1 << 40,
            windows: vec![WindowCounts { id: 1, name: "w".to_owned(), targets }],
            calls: (0..100).map(|line| fence(line, 1 << 40, vec![(4095, 1 << 39)])).collect(),
            sleeps: 1 << 40,
            merged: 1,
            ..Snapshot::default()
        };
        let call = |line| OpenCall {
            activity: longshore_job::Activity::Fence.code(),
            window: Some(3),
            file: "src/halo.rs".to_owned(),
            line,
            awaited: Some(4095),
            begin: Some(7),
            thread: 0,
        };
        let open = Open { end: 1 << 40, calls: (0..5).map(call).collect() };
        let kinds = ["x86-64", "aarch64", "loongarch64"].map(|from| KindCounts {
            from: from.to_owned(),
            to: Some("powerpc64le".to_owned()).filter(|_| from != "x86-64"),
            copied: 1 << 50,
            converted: 1 << 50,
        });
        let several = kinds.iter().cloned().chain(
            kinds.clone().map(|counts| KindCounts { to: Some("s390x".to_owned()), ..counts }),
        );
        let unlike = Snapshot { kinds: several.collect(), ..snapshot.clone() };
        for snapshot in [snapshot, unlike] {
            for open in [Open::default(), open.clone()] {
                let counted = Counted { snapshot: Some(snapshot.clone()), open };
                let text = summary(&vec![counted; 1000]);
                assert!(text.lines().count() <= 24, "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
                assert_eq!(text.contains("\ndata between kinds"), !snapshot.kinds.is_empty());
            }
        }
    }

    #[test]
    fn the_pair_of_kinds_with_most_bytes_comes_first() {
        let counts = |from: &str, to: Option<&str>, copied, converted| KindCounts {
            from: from.to_owned(),
            to: to.map(str::to_owned),
            copied,
            converted,
        };
        let rank = |kinds| Snapshot { complete: true, kinds, ..Snapshot::default() };
        let first = vec![counts("x86-64", Some("aarch64"), 1 << 20, 0)];
        let second =
            vec![counts("aarch64", None, 3 << 20, 0), counts("x86-64", Some("aarch64"), 0, 64)];
        let ranks = [first, second]
            .map(|kinds| Counted { snapshot: Some(rank(kinds)), ..Counted::default() });
        let text = summary(&ranks);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "data between kinds                         copied converted");
        assert_eq!(lines[2], "  aarch64, collective calls              3.00 MiB       0 B");
        assert_eq!(lines[3], "  x86-64 -> aarch64                      1.00 MiB      64 B");
    }

    #[test]
    fn calls_that_have_not_returned_come_first() {
        let call = |line, awaited| OpenCall {
            activity: longshore_job::Activity::Fence.code(),
            window: Some(3),
            file: "src/halo.rs".to_owned(),
            line,
            awaited,
            begin: (line > 0).then_some(1_000_000_000),
            thread: 0,
        };
        let rank = |calls| Counted { snapshot: None, open: Open { end: 3_500_000_000, calls } };
        let calls = [call(70, Some(2)), call(70, Some(2)), call(0, None)];
        let ranks: Vec<Counted> = calls.into_iter().map(|call| rank(vec![call])).collect();
        let text = summary(&ranks);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "longshore: 0 of 3 ranks, 2.50 s, 100 % of it in calls that may wait");
        assert_eq!(lines[2], "  fence, window 3         2              2.50 s  rank 2");
        assert_eq!(lines[3], "    at src/halo.rs:70, by ranks 0, 1");
        assert_eq!(lines[4], "  fence, window 3         1                   -  unknown");
    }

    #[test]
    fn numbers_have_three_digits() {
        let times = [999, 1_000, 12_340, 999_400, 1_500_000_000, 5_000_000_000_000].map(duration);
        assert_eq!(times, ["999 ns", "1.00 us", "12.3 us", "999 us", "1.50 s", "5000 s"]);
        assert_eq!([8, 4096, 1 << 30].map(bytes), ["8 B", "4.00 KiB", "1.00 GiB"]);
    }
}

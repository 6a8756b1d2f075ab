//! `longshore trace`: where the ranks of a traced job waited.

mod picture;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use longshore_launcher::timeline::{RankLine, Span, Timeline};

/// Prints where the ranks of a traced job waited, and for which rank
///
/// `longshore run --trace FILE` writes the trace. <https://ui.perfetto.dev> shows all of it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The trace
    file: PathBuf,
    /// Number of the longest waits to print
    #[arg(long, value_name = "N", default_value_t = 10)]
    longest: usize,
    /// Draws a time line of the ranks
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  longshore trace job.trace
  longshore trace --svg job.svg job.trace     and a time line, a row for each rank
  longshore trace --longest 50 job.trace";

/// The most ranks of the table, and of the picture. Those that waited longest are shown.
const RANKS: usize = 64;

/// A wait, with its rank.
#[derive(Clone, Copy)]
struct Wait<'a> {
    rank: u32,
    span: &'a Span,
}

/// Reads the trace, prints its waits, and draws the time line.
pub fn main(arguments: &Arguments) -> ExitCode {
    match summarise(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("longshore: {why}");
            ExitCode::FAILURE
        }
    }
}

fn summarise(arguments: &Arguments) -> Result<(), String> {
    let Arguments { file, longest, svg } = arguments;
    let timeline =
        Timeline::read(file).map_err(|error| format!("can't read {}: {error}", file.display()))?;
    let waits = longest_waits(&timeline, *longest);
    let text = text(&file.display().to_string(), &timeline, &waits);
    crate::print(&text).map_err(|error| format!("writing to standard output: {error}"))?;
    if let Some(path) = svg {
        let drawn = picture::draw(&timeline, &waits, RANKS);
        fs::write(path, drawn).map_err(|error| {
            format!("can't write {}: {error}; name another file", path.display())
        })?;
    }
    Ok(())
}

/// The longest waits of all ranks, the longest first.
fn longest_waits(timeline: &Timeline, most: usize) -> Vec<Wait<'_>> {
    let waits = timeline
        .ranks
        .iter()
        .flat_map(|line| line.calls.iter().map(|span| Wait { rank: line.rank, span }));
    let mut waits: Vec<_> = waits.collect();
    waits.sort_by_key(|wait| (std::cmp::Reverse(wait.span.nanos()), wait.rank));
    waits.truncate(most);
    waits
}

fn text(name: &str, timeline: &Timeline, waits: &[Wait<'_>]) -> String {
    let (begin, end) = timeline.times();
    let sum = |get: fn(&RankLine) -> u64| timeline.ranks.iter().map(get).sum::<u64>();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{name}: {} ranks, {}, {} calls that may wait, {} operations",
        timeline.ranks.len(),
        duration(end - begin),
        sum(|line| line.calls.len() as u64),
        sum(|line| line.operations)
    );
    let dropped = sum(|line| line.dropped);
    if dropped > 0 {
        let _ = writeln!(text, "{dropped} events had no room: mostly operations and frames");
    }
    let _ = writeln!(text, "\nrank      time  in calls  waited longest for");
    let mut lines: Vec<_> = timeline.ranks.iter().map(|line| (in_calls(line), line)).collect();
    if lines.len() > RANKS {
        lines.sort_by_key(|(nanos, _)| std::cmp::Reverse(*nanos));
        lines.truncate(RANKS);
        lines.sort_by_key(|(_, line)| line.rank);
    }
    for (nanos, line) in lines {
        let (begin, end) = line.times.unwrap_or_default();
        let all = end - begin;
        let host = line.name.split_once(" on ").map_or("", |(_, host)| host);
        let mut facts = vec![awaited(line)];
        facts.extend((!host.is_empty()).then(|| format!("on {host}: {}", line.clock)));
        facts.extend(line.cut.then(|| "ended without finalize".to_owned()));
        let share = nanos as f64 * 100.0 / all.max(1) as f64;
        let (rank, facts) = (line.rank, facts.join("; "));
        let _ = writeln!(text, "{rank:>4}{:>10}{share:>8.0} %  {facts}", duration(all));
    }
    if timeline.ranks.len() > RANKS {
        let _ = writeln!(text, "and {} more ranks", timeline.ranks.len() - RANKS);
    }
    let _ = writeln!(
        text,
        "\nlongest waits\n      from  rank  call                    took  for rank  at"
    );
    for Wait { rank, span } in waits {
        let what = match span.window {
            Some(window) => format!("{}, window {window}", span.name),
            None => span.name.clone(),
        };
        let (from, took) = (duration(span.begin - begin), duration(span.nanos()));
        let awaited = span.awaited.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
        let _ = writeln!(
            text,
            "{from:>10}{rank:>6}  {what:<19}{took:>9}{awaited:>10}  {}",
            place(span)
        );
    }
    text
}

/// The source place of a call, and whether it hasn't returned.
fn place(span: &Span) -> String {
    match (span.unfinished, span.source.as_str()) {
        (false, source) => source.to_owned(),
        (true, "") => "not returned".to_owned(),
        (true, source) => format!("{source}, not returned"),
    }
}

/// The time of a rank in calls that may wait.
fn in_calls(line: &RankLine) -> u64 {
    line.calls.iter().map(Span::nanos).sum()
}

/// The rank for which a rank waited longest.
fn awaited(line: &RankLine) -> String {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for span in &line.calls {
        if let Some(rank) = span.awaited {
            *sums.entry(rank).or_default() += span.nanos();
        }
    }
    match sums.into_iter().max_by_key(|&(_, nanos)| nanos) {
        Some((rank, nanos)) => format!("rank {rank}, {}", duration(nanos)),
        None => "nobody".to_owned(),
    }
}

/// A time with three digits.
fn duration(nanos: u64) -> String {
    let value = nanos as f64;
    let (scaled, unit) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => (value / 1e3, "us"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    match scaled {
        ..10.0 => format!("{scaled:.2} {unit}"),
        ..100.0 => format!("{scaled:.1} {unit}"),
        _ => format!("{scaled:.0} {unit}"),
    }
}

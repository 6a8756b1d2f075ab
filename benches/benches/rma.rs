//! Prints latencies of one-sided operations, what a launch costs, and memory:
//! `cargo bench -p longshore-benches --bench rma`. With `LONGSHORE_PEERS` (see `ci/peers`) MPICH and Open MPI do the same
//! work in between, and stand beside with the ratio. README.md says how to read it.
//!
//! The program launches itself: with a word after `rank` it is a rank of the job.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;

use longshore::job::Routes;
use longshore::launcher::{self, Control, Job, Part};
use longshore_benches::rma::{Distance, Row};
use longshore_benches::{launch, rma, worker as peers};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Turns of all contenders.
const TURNS: usize = 5;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["rank", work, file] => {
            let rank = longshore::init()?;
            let lines = match *work {
                "rows" => rma::measure(&rank)?.iter().map(Row::print).collect(),
                "messages" => rma::messages(&rank)?.iter().map(Row::print).collect(),
                "bulk" => rma::bulk(&rank)?.iter().map(Row::print).collect(),
                "many" => rma::many(&rank)?.map(|cost| format!("{cost}")).to_vec(),
                _ => vec![launch::memory(&rank)?.to_string()],
            };
            if rank.world().rank() == 0 {
                std::fs::write(file, lines.join("\n"))?;
            }
            Ok(rank.finalize()?)
        }
        ["rank", "nothing"] => {
            let rank = longshore::init()?;
            rank.world().barrier()?;
            Ok(rank.finalize()?)
        }
        _ => report(words.iter().any(|word| word == "--quick")),
    }
}

fn report(quick: bool) -> Outcome<()> {
    let turns = if quick { 1 } else { TURNS };
    against_peers(turns)?;
    unlike(turns)?;
    for ranks in [2, 32] {
        let jobs = if quick { 3 } else { 21 };
        let cost = launch::job(ranks, myself()?, vec!["rank".into(), "nothing".into()], jobs)?;
        println!("{:32}{:9.2} ms", format!("launch to exit, {ranks} ranks"), cost.millis);
    }
    for ranks in [2, 32] {
        let most = run("memory", Job::default(), ranks, &[])?;
        println!("{:32}{:>9.4} MB", format!("memory (Pss), {ranks} ranks"), most.trim());
    }
    for ranks in [8, 32] {
        let job = Job { routes: Routes::Message, ..Job::default() };
        let text = run("many", job, ranks, &[])?;
        let costs: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let [fence, fence_frames, lock, lock_frames, window] = costs[..] else {
            return Err("not all of a large job's costs".into());
        };
        println!(
            "{ranks:2} ranks by message: fence {fence:.1} us, {fence_frames} frames; lock_all {lock:.2} us, \
             {lock_frames} frames; {window:.1} KiB a window and rank"
        );
    }
    Ok(())
}

/// The lowest and the median times of a contender's turns, while the cores were near or far.
#[derive(Default)]
struct Times {
    low: Vec<f64>,
    median: Vec<f64>,
}

/// By the row's place, how far apart the cores were, and the contender.
type Table = BTreeMap<(usize, Distance), Vec<Times>>;

/// All contenders in turns, and the rows of each beside the ratio of ours to it.
fn against_peers(turns: usize) -> Outcome<()> {
    let peers = peers::find("rma.c")?;
    let (mut table, mut names, mut moved) = (Table::new(), Vec::new(), 0);
    for _ in 0..turns {
        for who in 0..=peers.len() {
            let (mut rows, of_messages) = match who.checked_sub(1) {
                None => {
                    let job = Job { routes: Routes::Message, ..Job::default() };
                    let of_messages = rows(run("messages", job, 2, &[])?);
                    (rows(run("rows", Job::default(), 2, &[])?), of_messages)
                }
                Some(peer) => {
                    let rows = peers[peer].run()?;
                    (rows.clone(), rows)
                }
            };
            // What the others do with created windows stands beside both that this library does.
            rows.retain(|row| !row.name.ends_with("computing target"));
            rows.extend(of_messages.into_iter().filter_map(|row| {
                let name = row.name.strip_prefix("created: ")?;
                Some(Row { name: format!("by message: {name}"), ..row })
            }));
            for row in rows {
                let Some(distance) = row.distance() else {
                    moved += 1;
                    continue;
                };
                let at = names.iter().position(|name| *name == row.name).unwrap_or(names.len());
                if at == names.len() {
                    names.push(row.name.clone());
                }
                let contenders = table.entry((at, distance)).or_default();
                contenders.resize_with(peers.len() + 1, Times::default);
                contenders[who].low.push(row.low);
                contenders[who].median.push(row.median);
            }
        }
    }
    print!("{:40} {:4} {:>12}", "two ranks, us", "", "Longshore");
    peers.iter().for_each(|peer| print!("   {:>9}   low  median", peer.name));
    println!();
    for ((at, distance), contenders) in &mut table {
        let name = &names[*at];
        let distance = if *distance == Distance::Near { "near" } else { "far" };
        print!("{name:40} {distance:4}");
        let ours = contenders[0].of_turns();
        match ours {
            Some((low, _)) => print!(" {low:12.4}"),
            None => print!(" {:>12}", "-"),
        }
        for (theirs, peer) in contenders[1..].iter_mut().zip(&peers) {
            match (ours, theirs.of_turns()) {
                (Some(ours), Some(theirs)) => {
                    let (low, median) = (ours.0 / theirs.0, ours.1 / theirs.1);
                    let behind =
                        if low > 1.05 { format!(" behind {}", peer.name) } else { String::new() };
                    print!("   {:9.4} {low:5.2} {median:7.2}{behind}", theirs.0);
                }
                (None, Some(theirs)) => print!("   {:9.4} {:>5} {:>7}", theirs.0, "-", "-"),
                (_, None) => print!("   {:>9} {:>5} {:>7}", "-", "-", "-"),
            }
        }
        println!();
    }
    println!("left out, since the cores were moved meanwhile: {moved}\n");
    Ok(())
}

impl Times {
    /// The lowest of the turns, and the median of their medians.
    fn of_turns(&mut self) -> Option<(f64, f64)> {
        let low = self.low.iter().copied().min_by(f64::total_cmp)?;
        Some((low, median(&mut self.median)))
    }
}

/// The route of messages between like ranks, and between unlike ones, in turns.
fn unlike(turns: usize) -> Outcome<()> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..2 * turns {
        for (archs, times) in [&["native"][..], &["native", "s390x"]].into_iter().zip(&mut times) {
            let job = Job { routes: Routes::Message, ..Job::default() };
            times.extend(rows(run("bulk", job, 2, archs)?).iter().map(|row| row.low));
        }
    }
    let [like, unlike] = times.map(|times| times.into_iter().fold(f64::MAX, f64::min));
    let rate = |micros: f64| f64::from(1 << 20) / micros / 1e3;
    println!(
        "put 1 MiB+flush by message, GB/s: like {:.1}, unlike {:.1}, ratio {:.2}\n",
        rate(like),
        rate(unlike),
        like / unlike
    );
    Ok(())
}

fn rows(text: String) -> Vec<Row> {
    text.lines().filter_map(Row::parse).collect()
}

/// Runs this program as a job of so many ranks: what its rank 0 has to say.
fn run(work: &str, job: Job, ranks: u32, archs: &[&str]) -> Outcome<String> {
    let file = std::env::temp_dir().join(format!("longshore-rma-{}", std::process::id()));
    let arguments = vec!["rank".into(), work.into(), file.clone().into()];
    let archs = archs.iter().map(|&arch| arch.to_owned()).collect();
    let part = Part { ranks, arguments, archs, ..Part::new(myself()?) };
    match launcher::run(&Job { parts: vec![part], ..job }, &Control::none())? {
        0 => {}
        status => return Err(format!("the job ended with status {status}").into()),
    }
    let text = std::fs::read_to_string(&file)?;
    std::fs::remove_file(&file)?;
    Ok(text)
}

fn myself() -> std::io::Result<OsString> {
    Ok(std::env::current_exe()?.into_os_string())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

//! Prints latencies of one-sided operations, what a launch costs, and memory:
//! `cargo bench -p longshore-benches --bench rma`. With `LONGSHORE_PEERS` (see `ci/peers`) MPICH and Open MPI do the same
//! work in between, and stand beside with the ratio.
//!
//! The program launches itself: with a word after `rank` it is a rank of the job.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;

use longshore::launcher::{self, Control, Job, Part};
use longshore_benches::peers::Peer;
use longshore_benches::{launch, peers, rma};

/// Turns of all contenders; each row is the median of its turns.
const TURNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["rank", "rows", file] => {
            let rank = longshore::init()?;
            let rows = rma::measure(&rank)?;
            if rank.world().rank() == 0 {
                let lines = rows.iter().map(|row| format!("{}\t{}\n", row.name, row.micros));
                std::fs::write(file, lines.collect::<String>())?;
            }
            Ok(rank.finalize()?)
        }
        ["rank", "nothing"] => {
            let rank = longshore::init()?;
            rank.world().barrier()?;
            Ok(rank.finalize()?)
        }
        ["rank", "memory"] => {
            let rank = longshore::init()?;
            let most = launch::memory(&rank)?;
            if rank.world().rank() == 0 {
                println!(
                    "{:28}{most:9.2} MB",
                    format!("memory (Pss), {} ranks", rank.world().size())
                );
            }
            Ok(rank.finalize()?)
        }
        _ => report(words.iter().any(|word| word == "--quick")),
    }
}

fn report(quick: bool) -> Result<(), Box<dyn Error>> {
    let peers = peers::find("rma.c")?;
    let mut table: BTreeMap<(usize, String), Vec<Vec<f64>>> = BTreeMap::new();
    for _ in 0..if quick { 1 } else { TURNS } {
        let mut note = |who: usize, rows: Vec<(String, f64)>| {
            for (at, (name, micros)) in rows.into_iter().enumerate() {
                let row =
                    table.entry((at, name)).or_insert_with(|| vec![Vec::new(); peers.len() + 1]);
                row[who].push(micros);
            }
        };
        note(0, ours()?);
        for (who, peer) in peers.iter().enumerate() {
            note(who + 1, peer.run()?);
        }
    }
    print!("{:28}{:>12}", "two ranks, allocated window", "Longshore");
    peers.iter().for_each(|peer: &Peer| print!("{:>12}   ratio", peer.name));
    println!();
    for ((_, name), contenders) in &mut table {
        let medians: Vec<f64> = contenders.iter_mut().map(|times| median(times)).collect();
        print!("{name:28}{:9.4} us", medians[0]);
        medians[1..].iter().for_each(|peer| print!("{peer:9.4} us{:8.2}", medians[0] / peer));
        println!();
    }
    println!();
    for ranks in [2, 32] {
        let jobs = if quick { 3 } else { 21 };
        let cost = launch::job(ranks, myself()?, words(&["rank", "nothing"]), jobs)?;
        println!("{:28}{:9.2} ms", format!("launch to exit, {ranks} ranks"), cost.millis);
    }
    for ranks in [2, 32] {
        run(ranks, words(&["rank", "memory"]))?;
    }
    Ok(())
}

/// One turn of our own.
fn ours() -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let file = std::env::temp_dir().join(format!("longshore-rma-{}", std::process::id()));
    let mut arguments = words(&["rank", "rows"]);
    arguments.push(file.clone().into());
    run(2, arguments)?;
    let text = std::fs::read_to_string(&file)?;
    std::fs::remove_file(&file)?;
    let rows = text.lines().filter_map(|line| line.split_once('\t'));
    rows.map(|(name, micros)| Ok((name.to_owned(), micros.parse()?))).collect()
}

fn run(ranks: u32, arguments: Vec<OsString>) -> Result<(), Box<dyn Error>> {
    let part = Part { ranks, arguments, ..Part::new(myself()?) };
    match launcher::run(&Job { parts: vec![part], ..Job::default() }, &Control::none())? {
        0 => Ok(()),
        status => Err(format!("the job ended with status {status}").into()),
    }
}

fn myself() -> std::io::Result<OsString> {
    Ok(std::env::current_exe()?.into_os_string())
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

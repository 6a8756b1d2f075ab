//! `longshore bench`: how fast it is, on this machine.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use longshore::job::Routes;
use longshore::launcher::{self, Control};
use longshore_benches::case::{Bench, Flavor, Sync};
use longshore_benches::peers::{self, Peer};
use longshore_benches::plan::{Choice, Element};
use longshore_benches::row::Refusal;
use longshore_benches::run::{self, Contender, Limits, Loops, Ours, Results};
use longshore_benches::{Failure, launch};

use crate::representation::Representations;

/// Measures one-sided operations, datatypes and launching, and what the machine allows
///
/// Two ranks, each pinned to a core, do the work of OSU's micro-benchmarks and more. Without any of --window, --sync,
/// --route, --arch and --type a selection of all that there is is measured. With any of them all combinations of the given
/// values are, and of what isn't given the plainest: an allocated window, a flush, the best route, like ranks, and doubles.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Only these benches, named as OSU's are
    #[arg(
        value_name = "BENCH",
        value_parser = PossibleValuesParser::new(Bench::WORDS).try_map(|word| word.parse::<Bench>())
    )]
    benches: Vec<Bench>,
    /// Kinds of windows: allocate, create, dynamic, shared, or all
    #[arg(long, value_name = "KIND,...", value_parser = windows)]
    window: Option<Several<Flavor>>,
    /// Synchronisations: flush, lock, lock_shared, lock_all, fence, pscw, or all
    #[arg(long, value_name = "SYNC,...", value_parser = syncs)]
    sync: Option<Several<Sync>>,
    /// Sizes in bytes, from 1 to 64M, such as 8,4K,1M
    #[arg(long, value_name = "BYTES,...", value_parser = sizes)]
    size: Option<Several<u64>>,
    /// Routes: best, message, or all
    #[arg(long, value_name = "ROUTE,...", value_parser = routes)]
    route: Option<Several<Routes>>,
    /// The representations of origin and target, or of memory and stream; may be repeated
    #[arg(long, value_name = "NAME,NAME", value_parser = pair)]
    arch: Vec<[String; 2]>,
    /// A datatype in the type notation, or a named one (vector1, vector8, indexed, struct, ...); may be repeated
    #[arg(long = "type", value_name = "TYPE", value_parser = Element::from_str)]
    types: Vec<Element>,
    /// Measures every operation once, in less than two minutes
    #[arg(long)]
    quick: bool,
    /// Checks the data that each case moves
    #[arg(long)]
    validate: bool,
    /// Lets MPICH and Open MPI do the same work in between, for ratios: those in the folders that LONGSHORE_PEERS lists
    #[arg(long)]
    peers: bool,
    /// How often each case is measured, in turns with all others. [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    turns: Option<u32>,
}

const AFTER_HELP: &str = "\
Exit status: 1 if data was wrong or a job failed.

Examples:
  longshore bench --quick --validate
  longshore bench put_latency get_latency --window all --size 8,1M
  longshore bench put_latency --sync fence,pscw --arch native,s390x
  longshore bench pack put_latency --type 'U1(V:d:1000:1:10)' --size 8000";

/// The values of one flag.
#[derive(Clone)]
struct Several<T>(Vec<T>);

/// Words between commas, or `all` for all that there are.
fn several<T: FromStr>(text: &str, all: &str) -> Result<Several<T>, String>
where
    T::Err: ToString,
{
    let words = if text == "all" { all } else { text };
    let values =
        words.split(',').map(|word| word.parse().map_err(|error: T::Err| error.to_string()));
    values.collect::<Result<_, _>>().map(Several)
}

fn windows(text: &str) -> Result<Several<Flavor>, String> {
    several(text, &Flavor::WORDS.join(","))
}

fn syncs(text: &str) -> Result<Several<Sync>, String> {
    several(text, &Sync::WORDS.join(","))
}

fn routes(text: &str) -> Result<Several<Routes>, String> {
    several(text, "best,message")
}

fn sizes(text: &str) -> Result<Several<u64>, String> {
    let size = |word: &str| {
        let (digits, unit) = match word.strip_suffix(['K', 'k']) {
            Some(digits) => (digits, 1 << 10),
            None => word.strip_suffix(['M', 'm']).map_or((word, 1), |digits| (digits, 1 << 20)),
        };
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        bytes.filter(|bytes| (1..=64 << 20).contains(bytes)).ok_or_else(|| {
            format!("`{word}`: expected a number of bytes from 1 to 64M, such as 8, 4K or 1M")
        })
    };
    text.split(',').map(size).collect::<Result<_, _>>().map(Several)
}

fn pair(text: &str) -> Result<[String; 2], String> {
    let Representations(names) = Representations::parse(text)?;
    names.try_into().map_err(|names: Vec<String>| {
        format!(
            "expected two names with a comma in between, such as native,s390x; found {}",
            names.len()
        )
    })
}

fn or_none<T>(several: Option<Several<T>>) -> Vec<T> {
    several.map_or_else(Vec::new, |Several(values)| values)
}

/// Measures, prints, and gives back 1 if data was wrong or a job failed.
pub fn main(arguments: Arguments) -> ExitCode {
    let Arguments { benches, window, sync, size, route, arch: archs, types, quick, .. } = arguments;
    let choice = Choice {
        benches,
        windows: or_none(window),
        syncs: or_none(sync),
        sizes: or_none(size),
        routes: or_none(route),
        archs,
        types,
        quick,
    };
    let turns = arguments.turns.unwrap_or(if quick { 1 } else { 5 });
    let measured = launcher::guarded(|control| {
        let peers = if arguments.peers { peers::find() } else { Ok(Vec::new()) };
        let measured = peers
            .map_err(Failure::from)
            .and_then(|peers| measure(&choice, turns, arguments.validate, peers, control));
        match measured {
            Ok(results) => report(&results),
            Err(error) => {
                eprintln!("longshore: {error}");
                1
            }
        }
    });
    match measured {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("longshore: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(
    choice: &Choice,
    turns: u32,
    validate: bool,
    peers: Vec<Peer>,
    control: &Control,
) -> Result<Results, Failure> {
    let cases = choice.cases()?;
    let program = std::env::current_exe()?.into_os_string();
    let mut contenders: Vec<Box<dyn Contender + '_>> =
        vec![Box::new(Ours { program, control }), Box::new(Loops), Box::new(Limits)];
    contenders.extend(peers.into_iter().map(|peer| Box::new(peer) as Box<dyn Contender>));
    Ok(run::run(&cases, turns, validate, &mut contenders, |_| {}))
}

/// Prints what was measured; 1 if something failed.
fn report(results: &Results) -> u8 {
    for row in &results.rows {
        println!(
            "{}\t{}\t{:.4}\t{:.4}",
            row.case, row.contender, row.sample.low, row.sample.median
        );
    }
    let mut status = 0;
    for gap in &results.gaps {
        eprintln!("{}: {}: {}", gap.contender, gap.case, gap.why);
        if !matches!(gap.why, Refusal::Unsupported(_)) {
            status = 1;
        }
    }
    status
}

/// Plays a rank of a bench's job
#[derive(clap::Args)]
pub struct Rank {
    #[command(subcommand)]
    part: RankPart,
}

/// Which.
#[derive(clap::Subcommand)]
enum RankPart {
    /// Measures the cases of a file, and appends an answer to each to another
    Plan {
        plan: PathBuf,
        answers: PathBuf,
        #[arg(long)]
        validate: bool,
    },
    /// Does nothing but init, barrier and finalize
    Nothing,
    /// Prints how much memory that takes
    Memory,
}

impl Rank {
    pub fn main(self) -> ExitCode {
        let played = match self.part {
            RankPart::Plan { plan, answers, validate } => run::rank(&plan, &answers, validate),
            RankPart::Nothing => launch::serve("nothing"),
            RankPart::Memory => launch::serve("memory"),
        };
        match played {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("longshore bench: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

//! `longshore run`: starts a job.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches};
use longshore::job::{Checking, OnDeath, Progress, Routes, env};
use longshore_launcher::{
    self as launcher, Control, Job, Output, Patience, Placement, Recording, Report, Settings, Stats,
};

use crate::hosts;
use crate::representation::Representations;

/// Runs programs as the ranks of one job
///
/// ':' separates the parts of a job. Ranks are numbered across the parts in order. -n, -x and
/// --arch apply to one part and precede its program. All other options apply to the whole job and
/// precede the first program. All words after a program, up to ':', are that program's arguments.
#[derive(clap::Args)]
#[command(
    override_usage = "longshore run [OPTIONS] [-n N] PROG [ARGS]...\n         [: [-n N] PROG [ARGS]...]...",
    after_help = AFTER_HELP
)]
pub struct Arguments {
    /// Hosts for the ranks, with room for N ranks each (1 by default). Write an IPv6 address in
    /// brackets: `[::1]:4`. Ranks on several hosts need libfabric on each (see `longshore info`)
    #[arg(long, value_name = "NAME[:N],...", value_delimiter = ',', value_parser = hosts::host, group = "hosts")]
    host: Vec<launcher::Host>,
    /// File with a host on each line, NAME, NAME:N or NAME slots=N, instead of --host
    #[arg(long, value_name = "FILE", alias = "machinefile", group = "hosts")]
    hostfile: Option<PathBuf>,
    /// Order in which ranks are assigned to hosts: fill a host before the next (`core`), or go to
    /// the hosts in turn (`host`)
    #[arg(long, value_name = "core|host", default_value_t)]
    map_by: launcher::Mapping,
    /// Command that starts a program on a host, run as WORDS HOST PROGRAM...; it must pass standard
    /// input and output through. Quotes keep words together, as in a shell
    #[arg(long, value_name = "WORDS", default_value = launcher::SSH, value_parser = words, requires = "hosts")]
    start: Words,
    /// Command that runs longshore on the hosts. [default: the path of this executable]
    #[arg(long, value_name = "WORDS", value_parser = words, requires = "hosts")]
    agent: Option<Words>,
    /// Working directory of the ranks. [default: the path of the current one]
    #[arg(long, value_name = "DIR", value_parser = clap::builder::OsStringValueParser::new())]
    wdir: Option<OsString>,
    /// Cores that each rank of a host may use: an equal share (`core`), those of a NUMA node
    /// (`numa`), all (`none`), or processors by their numbers, assigned to ranks in turn, such as
    /// 0,1 or 0-3,4-7. [default: core, or none where ranks are more than cores]
    #[arg(long, value_name = "core|numa|none|LIST")]
    bind: Option<launcher::Binding>,
    /// Prints the host and the processors of each rank on standard error and, if there are several
    /// hosts, where the rank listens for the others
    #[arg(short, long)]
    verbose: bool,
    /// Prefixes each line of output with its rank
    #[arg(long)]
    label: bool,
    /// Writes the output of rank N to DIR/N.out and its errors to DIR/N.err
    #[arg(long, value_name = "DIR", conflicts_with = "label")]
    output: Option<PathBuf>,
    /// Puts the words of a command, such as `valgrind`, before the program of some ranks: numbers,
    /// ranges such as 0-3, or `all`, with commas in between; may be repeated
    #[arg(long, num_args = 2, value_names = ["RANKS", "WORDS"])]
    wrap: Vec<String>,
    /// Ends the job after this many seconds, with status 124
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Reports which rank waits for which after SECS without progress (in one line after six times
    /// SECS, while any rank computes); 0 disables the report
    #[arg(long, value_name = "SECS", default_value_t = launcher::WATCHDOG.as_secs_f64(), value_parser = patience)]
    watchdog: f64,
    /// When gdb or eu-stack prints the stacks of ranks, which stops each rank for about a second:
    /// `hang`, when --timeout ends the job, and once when the watchdog first reports a hang, those
    /// of at most 16 ranks within 10 s; `timeout`, only the former; `all`, then and on each report
    /// of the watchdog, those of all ranks; `full`, as `all`, with the frames of libraries; `off`,
    /// never. [default: hang; --stacks alone: all]
    #[arg(long, value_name = "off|timeout|hang|all|full", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    stacks: Option<launcher::Stacks>,
    /// Reaction to a rank's death: end the job, or let the other ranks go on, whose calls that
    /// need the dead rank return PROC_FAILED
    #[arg(long, value_name = "end|survive", default_value_t)]
    on_death: OnDeath,
    /// Routes that operations may take: the best for each pair of ranks, or messages only
    #[arg(long, value_name = "best|message", default_value_t)]
    route: Routes,
    /// libfabric provider between hosts; `longshore info` lists the available ones.
    /// [default: LONGSHORE_FABRIC, or tcp]
    #[arg(long, value_name = "PROVIDER", value_parser = provider)]
    fabric: Option<String>,
    /// Encrypts all that ranks send to other hosts; implies --route message between hosts. A line
    /// of --hostfile with the word `encrypt` does so, too. [default: LONGSHORE_ENCRYPT, or off]
    #[arg(long)]
    encrypt: bool,
    /// Delays, reorders and splits operations as far as MPI allows, at random from SEED; implies
    /// --route message
    #[arg(long, value_name = "SEED", value_parser = seed)]
    adversary: Option<u64>,
    /// Whether a thread of each rank answers peers while the program computes; it sleeps while no
    /// message arrives. [default: on]
    #[arg(long, value_name = "on|off")]
    progress: Option<Progress>,
    /// Reports conflicting accesses to windows and mismatched calls, with the calls' source
    /// locations; implies --route message. With `fail`, finalize fails after any report. KINDS
    /// chooses what is reported: races, buffers, requests, messages, collectives, windows, notes,
    /// with commas between them, also after `fail`; all but notes otherwise
    #[arg(long, value_name = "report|fail|KINDS", num_args = 0..=1, require_equals = true, default_missing_value = "report")]
    check: Option<Checking>,
    /// Tells by which path the operations of each window go, by type, target and size, and why they
    /// don't go by a faster one. Operations take longer then
    #[arg(long)]
    explain: bool,
    /// Counts operations, waits and frames of all ranks. A summary of a screen, the longest wait
    /// first, goes to standard error or to FILE at the end; FILE.json gets all counters as JSON
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    stats: Option<PathBuf>,
    /// Writes the waits, epochs, operations and frames of all ranks to FILE, which ui.perfetto.dev
    /// opens and `longshore trace` summarises
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    first: PartArguments,
}

const AFTER_HELP: &str = "\
Exit status: 0 if all ranks exit with 0; otherwise the status of the first failing rank, or 128 + N if signal N \
killed it. 124 after a timeout; 126 if a program can't be started; 127 if it isn't found; 1 if a host can't be reached.

Examples:
  longshore run -n 4 ./halo
  longshore run --label -n 2 ./prog : -n 2 qemu-s390x-static ./prog-s390x
  longshore run -n 4 --arch native,s390x ./prog     ranks 1 and 3 emulate a big-endian machine
  longshore run -n 4 --wrap 0 'valgrind --log-file=leaks' ./prog     rank 0 under valgrind
  longshore run -v -n 2 --bind 0-3,4-7 ./prog     four processors for each rank
  longshore run -n 4 --stats ./prog     where the time went, the longest wait first
  longshore run -n 4 --stats=stats.json ./prog     all counters, for a program to read
  longshore run -n 4 --trace job.trace ./prog     then `longshore trace job.trace`
  longshore run --hostfile hosts -n 8 --output logs ./prog     a file for the output of each rank
  longshore run -n 4 --timeout 60 ./prog     where each rank hangs, if it takes a minute
  longshore run -n 64 --stacks ./prog     the stacks of all ranks whenever the watchdog reports a hang
  longshore run --host a:2,b:2 -n 4 ./prog     on two hosts, by ssh, which must not ask for a password
  longshore run --host a:2,b:2 --start 'ip netns exec' -n 4 ./prog     in two network namespaces
  longshore run --host a:2,b:2 --map-by host -n 4 ./prog     ranks 0 and 2 on a, 1 and 3 on b";

/// Starts ranks on this host for a launcher on another host
#[derive(clap::Args)]
pub struct Agent {}

impl Agent {
    /// Serves until the launcher has finished or has disappeared.
    pub fn main(self) -> ExitCode {
        guarded("the agent of this host", launcher::serve)
    }
}

/// The options of one part of the job, and its program.
#[derive(clap::Args)]
struct PartArguments {
    /// Number of ranks that run the program. [default: 1; for a single program with --host, as many
    /// as the hosts take]
    #[arg(short, value_name = "N", value_parser = ranks)]
    n: Option<u32>,
    /// Sets a variable in the ranks' environment, or passes the current value on; may be repeated.
    /// Ranks on other hosts get these, all LONGSHORE_* variables, and a login's own environment
    #[arg(short = 'x', long, value_name = "K[=V]", value_parser = clap::builder::OsStringValueParser::new())]
    env: Vec<OsString>,
    /// Data representations that the ranks emulate, assigned in turn: names from `longshore info`,
    /// `native`, or one descriptor
    #[arg(long, value_name = "NAME,...", value_parser = Representations::of_ranks)]
    arch: Option<Representations>,
    /// The program and its arguments
    #[arg(value_name = "PROG", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl PartArguments {
    /// Parses the words of a later part, between two ':'.
    fn parse(words: &[OsString]) -> Result<PartArguments, clap::Error> {
        let command = clap::Command::new("longshore run ... :")
            .override_usage(
                "longshore run ... : [-n N] [-x K[=V]]... [--arch NAME,...] PROG [ARGS]...",
            )
            .no_binary_name(true)
            .disable_help_flag(true);
        let command = PartArguments::augment_args(command);
        PartArguments::from_arg_matches(&command.try_get_matches_from(words)?)
    }
}

/// Runs the job and returns its status.
pub fn main(arguments: Arguments) -> ExitCode {
    let job = job(arguments).unwrap_or_else(|error| error.exit());
    let launch = |control: &Control| {
        launcher::run(&job, control).unwrap_or_else(|error| {
            eprintln!("longshore: {error}");
            error.status()
        })
    };
    guarded("the launcher", launch)
}

fn guarded(name: &str, launch: impl FnOnce(&Control) -> u8) -> ExitCode {
    match launcher::guarded(name, launch) {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("longshore: {error}");
            ExitCode::FAILURE
        }
    }
}

fn job(arguments: Arguments) -> Result<Job, clap::Error> {
    let Arguments {
        host: mut hosts,
        hostfile,
        map_by: mapping,
        start: Words(start),
        agent,
        wdir: folder,
        bind: binding,
        verbose,
        label,
        output,
        wrap,
        timeout,
        watchdog,
        stacks,
        on_death,
        route: routes,
        fabric,
        mut encrypt,
        adversary,
        progress,
        check,
        explain,
        stats,
        trace,
        mut first,
    } = arguments;
    if let Some(file) = hostfile {
        let found = hosts::file(&file).map_err(|why| usage(ErrorKind::ValueValidation, why))?;
        hosts = found.hosts;
        encrypt |= found.encrypt;
    }
    let wraps = wrap.chunks_exact(2).map(|pair| wrapper(&pair[0], &pair[1]));
    let wraps = wraps.collect::<Result<_, _>>()?;
    let watchdog = (watchdog > 0.0).then(|| Duration::from_secs_f64(watchdog));
    let command = std::mem::take(&mut first.command);
    let mut segments = command.split(|word| word == ":");
    first.command = segments.next().unwrap_or_default().to_vec();
    let places = hosts.iter().fold(0u32, |places, host| places.saturating_add(host.ranks));
    let is_alone = first.n.is_none() && command.iter().all(|word| word != ":");
    if is_alone && places > 0 {
        first.n = Some(places);
    }
    let mut parts = vec![part(1, first)?];
    for (number, segment) in (2..).zip(segments) {
        parts.push(part(number, PartArguments::parse(segment)?)?);
    }
    if let Some(provider) = fabric {
        let variable = (OsString::from(env::FABRIC), OsString::from(provider));
        parts.iter_mut().for_each(|part| part.environment.push(variable.clone()));
    }
    // The words name a longshore, whose hidden subcommand `agent` serves.
    let agent = agent.map_or_else(Vec::new, |Words(mut words)| {
        words.push("agent".into());
        words
    });
    Ok(Job {
        parts,
        wraps,
        folder,
        placement: Placement { hosts, mapping, start, agent, binding },
        settings: Settings { on_death, routes, encrypt, adversary, progress, check, explain },
        output: Output { verbose, label, folder: output },
        recording: Recording { stats: stats.map(destination), trace },
        patience: Patience { timeout, watchdog, stacks: stacks.unwrap_or_default() },
    })
}

/// Where the counters go, by the argument of --stats.
fn destination(path: PathBuf) -> Stats {
    match path.extension() {
        _ if path.as_os_str() == "-" => Stats::Screen,
        Some(extension) if extension == "json" => Stats::Report(path, json),
        _ => Stats::File(path),
    }
}

/// All counters of a job as JSON.
fn json(report: &Report<'_>) -> String {
    // Its keys are strings, so it has a form in JSON.
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}

/// The words of --wrap, and the ranks that they are for.
fn wrapper(ranks: &str, command: &str) -> Result<launcher::Wrap, clap::Error> {
    let wrong = |why: String| usage(ErrorKind::ValueValidation, format!("--wrap {ranks}: {why}"));
    let range = |text: &str| -> Option<RangeInclusive<u32>> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(first..=last)
    };
    let of_ranks: Option<Vec<_>> = match ranks {
        "all" => Some(vec![0..=u32::MAX]),
        _ => ranks.split(',').map(range).collect(),
    };
    let of_ranks = of_ranks.ok_or_else(|| {
        wrong("expected ranks, such as 0, 1-3 or all, with commas in between".to_owned())
    })?;
    let Words(words) = words(command).map_err(wrong)?;
    Ok(launcher::Wrap { ranks: of_ranks, words })
}

fn part(number: usize, arguments: PartArguments) -> Result<launcher::Part, clap::Error> {
    let PartArguments { n: ranks, env, arch, command } = arguments;
    let Some((program, arguments)) = command.split_first() else {
        let message =
            format!("part {number} has no program: give one after its options, or after ':'");
        return Err(usage(ErrorKind::MissingRequiredArgument, message));
    };
    if program.as_bytes().starts_with(b"-") {
        // clap accepts any word here, because a program's own arguments may start with '-'.
        let option = program.to_string_lossy();
        if number > 1 && is_of_job(&option) {
            let message = format!(
                "part {number}: '{option}' is an option of the whole job: give it before the first program"
            );
            return Err(usage(ErrorKind::UnknownArgument, message));
        }
        let hint = match suggestion(&option) {
            Some(suggestion) => format!(": did you mean {suggestion}?"),
            None => ": `longshore run --help` lists the options".to_owned(),
        };
        let message = format!("part {number}: unknown option '{option}' before the program{hint}");
        return Err(usage(ErrorKind::UnknownArgument, message));
    }
    let environment =
        env.iter().map(|assignment| variable(assignment)).collect::<Result<_, _>>()?;
    let (program, arguments) = (program.clone(), arguments.to_vec());
    let archs = arch.map_or_else(Vec::new, |Representations(names)| names);
    Ok(launcher::Part { ranks: ranks.unwrap_or(1), program, arguments, environment, archs })
}

/// Whether `option` (`--NAME` or `--NAME=VALUE`) is an option of the whole job.
fn is_of_job(option: &str) -> bool {
    let name = option.split('=').next().and_then(|name| name.strip_prefix("--"));
    let command = Arguments::augment_args(clap::Command::new("run"));
    name.is_some() && command.get_arguments().any(|argument| argument.get_long() == name)
}

/// The option of this command that corresponds to an `option` of mpiexec or another launcher, or
/// that has a similar name.
fn suggestion(option: &str) -> Option<String> {
    let glued = option.strip_prefix("-np").or(option.strip_prefix("-n"));
    match option.split('=').next() {
        _ if glued.is_some_and(|n| n.parse::<u32>().is_ok()) => Some(format!("-n {}", glued?)),
        Some("-np" | "--np" | "--n" | "--ranks") => Some("-n".to_owned()),
        Some("-rr" | "-bynode" | "--bynode") => Some("--map-by host".to_owned()),
        Some("-ppn" | "-perhost" | "-npernode" | "--npernode") => {
            Some("--host NAME:N, or NAME:N in the lines of --hostfile".to_owned())
        }
        _ => match option.strip_prefix("-x") {
            Some(variable) => Some(format!("-x {variable}")),
            None => similar(option),
        },
    }
}

/// The option of this command whose name clap finds similar to that of `option`.
fn similar(option: &str) -> Option<String> {
    let all = Arguments::augment_args(clap::Command::new("run"));
    let options = all.get_arguments().filter(|argument| !argument.is_positional()).cloned();
    let command = clap::Command::new("run").no_binary_name(true).args(options);
    let error = command.try_get_matches_from([option]).err()?;
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(suggestion) => Some(suggestion.clone()),
        _ => None,
    }
}

/// Variables that the launcher always sets itself, with the option that decides each value.
const OPTIONS: [(&str, &str); 3] =
    [(env::ARCH, "--arch"), (env::ROUTE, "--route"), (env::ON_DEATH, "--on-death")];

fn variable(assignment: &OsStr) -> Result<(OsString, OsString), clap::Error> {
    let bytes = assignment.as_bytes();
    let wrong = |reason: &str| {
        let message = format!("-x {}: {reason}", assignment.to_string_lossy());
        usage(ErrorKind::ValueValidation, message)
    };
    let name = bytes.split(|&byte| byte == b'=').next().unwrap_or_default();
    for (taken, option) in OPTIONS {
        if name == taken.as_bytes() {
            return Err(wrong(&format!("`longshore run` sets this variable itself: use {option}")));
        }
    }
    match bytes.iter().position(|&byte| byte == b'=') {
        Some(at @ 1..) => {
            let (name, value) = (&bytes[..at], &bytes[at + 1..]);
            Ok((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(value).to_owned()))
        }
        Some(_) => Err(wrong("expected NAME=VALUE, or the NAME of a variable that is set")),
        None => match std::env::var_os(assignment) {
            Some(value) => Ok((assignment.to_owned(), value)),
            None => Err(wrong("no such variable is set here: give it a value")),
        },
    }
}

/// Accepts a libfabric provider that is available on this machine.
fn provider(name: &str) -> Result<String, String> {
    let found = longshore_transport::fabric::find().map_err(|error| error.to_string())?.providers;
    match found.iter().any(|provider| provider == name) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "no provider of this name offers connected endpoints (FI_EP_MSG) here, which every pair of ranks needs; available: {}",
            found.join(", ")
        )),
    }
}

/// The words of a command.
#[derive(Clone, Debug)]
struct Words(Vec<OsString>);

/// Splits a command as a shell does, so that quotes keep words together.
fn words(text: &str) -> Result<Words, String> {
    match shlex::split(text) {
        None => Err("a quote isn't closed, or the last word ends with a backslash".to_owned()),
        Some(words) if words.is_empty() => {
            Err("expected a command, such as 'ip netns exec'".to_owned())
        }
        Some(words) => Ok(Words(words.into_iter().map(OsString::from).collect())),
    }
}

/// The largest number of ranks of a part, on all hosts. A host has at most as many ranks as share a
/// segment.
const MOST: u32 = 4096;

fn ranks(text: &str) -> Result<u32, String> {
    let ranks = text.parse().ok().filter(|ranks| (1..=MOST).contains(ranks));
    ranks.ok_or_else(|| format!("expected a number of ranks from 1 to {MOST}"))
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a seed: a number from 0 to {}", u64::MAX))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0, such as 10 or 0.5".to_owned())
}

fn patience(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|&seconds| Duration::try_from_secs_f64(seconds).is_ok());
    seconds.ok_or_else(|| "expected a number of seconds, such as 10, or 0 to disable".to_owned())
}

fn usage(kind: ErrorKind, message: String) -> clap::Error {
    let mut command = crate::Arguments::command();
    command.build();
    match command.find_subcommand_mut("run") {
        Some(run) => run.error(kind, message),
        None => command.error(kind, message),
    }
}

//! Composes the orders for each host of a job.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::message::{JournalOrder, Member, Orders, Program};
use super::{Binding, Job, Part, Stacks, Wrap};
use longshore_job::joining::{Order, Wanted};
use longshore_job::{Checking, Hosts, Secret, env};

/// The number of ranks that ranks of a job may have started later.
const ROOM: u32 = 1024;

/// The longest interval at which agents report their ranks' notes.
const NOTES: Duration = Duration::from_millis(500);

/// libfabric's variable for the length of buffers for messages that nobody has asked for, which
/// Longshore doesn't cause, and its least value (docs/tuning.md, "Buffers of libfabric").
const BUFFERS: [&str; 2] = ["FI_TCP_MAX_RX_SIZE", "128"];

/// The orders for `host`: its ranks, their programs and their environment.
pub(super) fn orders(
    job: &Job,
    size: u32,
    hosts: &Hosts,
    host: u32,
    secret: &Secret,
    journal: Option<JournalOrder>,
) -> io::Result<Orders> {
    let is_away = !job.placement.hosts.is_empty();
    let environment = environment(job, is_away.then(|| hosts.to_text(size)));
    // The user's own value takes precedence, here and in a part's environment.
    let buffers = BUFFERS.map(OsString::from);
    let buffers = (is_away && std::env::var_os(&buffers[0]).is_none()).then_some(buffers);
    let buffers = buffers.map(|[name, bytes]| (name, bytes));
    // Ranks that the launcher starts itself inherit its whole environment.
    let inherited: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| is_away && name.as_bytes().starts_with(b"LONGSHORE_"))
        .collect();
    let program = |part: &Part| Program {
        path: part.program.clone(),
        arguments: part.arguments.clone(),
        environment: buffers.iter().chain(&inherited).chain(&part.environment).cloned().collect(),
        folder: None,
    };
    let mut programs: Vec<Program> = job.parts.iter().map(program).collect();
    // The programs of parts that a command starts, by the numbers of the part and of the command.
    let mut wrapped: HashMap<(u32, usize), u32> = HashMap::new();
    let mut members = Vec::new();
    let mut rank = 0;
    for (number, part) in (0..).zip(&job.parts) {
        for index in 0..part.ranks {
            if hosts.of(rank) == host {
                let has_rank = |wrap: &Wrap| wrap.ranks.iter().any(|ranks| ranks.contains(&rank));
                let program = match job.wraps.iter().position(has_rank) {
                    None => number,
                    Some(wrap) => *wrapped.entry((number, wrap)).or_insert_with(|| {
                        programs.push(under(&job.wraps[wrap], &programs[number as usize]));
                        programs.len() as u32 - 1
                    }),
                };
                members.push(Member { rank, part: number, program, arch: arch(part, index) });
            }
            rank += 1;
        }
    }
    let folder = match &job.folder {
        Some(folder) => Some(folder.clone()),
        None if is_away => Some(std::env::current_dir()?.into_os_string()),
        None => None,
    };
    Ok(Orders {
        size,
        first: 0,
        room: room(job),
        programs,
        members,
        environment,
        secret: secret.clone(),
        folder,
        binding: job.placement.binding.clone(),
        notes: job.patience.watchdog.map(|patience| (patience / 4).min(NOTES)),
        stacks: job.patience.stacks != Stacks::Off,
        journal,
    })
}

/// The variables of all ranks. `hosts` are those of the ranks, if they are on several.
fn environment(job: &Job, hosts: Option<String>) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: String| environment.push((name.into(), value.into()));
    set(env::ROUTE, job.settings.routes.to_string());
    set(env::ON_DEATH, job.settings.on_death.to_string());
    if let Some(hosts) = hosts {
        set(env::HOSTS, hosts);
    }
    if let Some(seed) = job.settings.adversary {
        set(env::ADVERSARY, seed.to_string());
    }
    if let Some(progress) = job.settings.progress {
        set(env::PROGRESS, progress.to_string());
    }
    if let Some(check) = job.settings.check {
        set(env::CHECK, check.to_string());
    }
    if job.settings.encrypt {
        set(env::ENCRYPT, "on".to_owned());
    }
    if job.settings.explain {
        set(env::EXPLAIN, "on".to_owned());
    }
    environment
}

/// Whether the ranks check for uses of windows that MPI leaves undefined.
fn checks(job: &Job) -> bool {
    let own = || longshore_job::checking().unwrap_or_default();
    job.settings.check.unwrap_or_else(own) != Checking::Off
}

/// The number of ranks that ranks of a job may have started later. Under `--check` a rank's notes
/// name all ranks for which there is room, so there is none. Ranks on several hosts have none,
/// because a rank of another host can't be linked to later.
fn room(job: &Job) -> u32 {
    if checks(job) || !job.placement.hosts.is_empty() { 0 } else { ROOM }
}

/// The orders for processes that a rank of part `part` asks for. `counts` has the number of
/// processes of each program, and `first` is the number of the first of them.
pub(super) fn more_orders(
    job: &Job,
    order: &Order,
    counts: &[u32],
    (part, first): (usize, u32),
    secret: &Secret,
) -> Orders {
    let mut environment = environment(job, None);
    environment.push((env::PARENT.into(), (&order.port).into()));
    let inherited = job.parts.get(part).map_or(&[][..], |part| &part.environment);
    let program = |wanted: &Wanted| Program {
        path: found(wanted),
        arguments: wanted.arguments.iter().map(OsString::from).collect(),
        environment: inherited.to_vec(),
        folder: wanted.folder.as_ref().map(OsString::from),
    };
    let programs = order.programs.iter().map(program).collect();
    let numbers =
        (0..).zip(counts).flat_map(|(it, count)| std::iter::repeat_n(it, *count as usize));
    let member = |(rank, number): (u32, u32)| {
        let arch = order.programs[number as usize].arch.clone();
        Member { rank, part: number, program: number, arch: arch.filter(|name| name != "native") }
    };
    Orders {
        size: counts.iter().sum(),
        first,
        room: 0,
        programs,
        members: (first..).zip(numbers).map(member).collect(),
        environment,
        secret: secret.clone(),
        folder: job.folder.clone(),
        binding: Some(Binding::None),
        notes: None,
        stacks: job.patience.stacks != Stacks::Off,
        journal: None,
    }
}

/// The program to start: the first of this name in the folders of the order's path, if one has it.
fn found(wanted: &Wanted) -> OsString {
    let folders = wanted.path.iter().flat_map(|path| path.split(':'));
    let folders = folders.filter(|folder| !folder.is_empty() && !wanted.program.contains('/'));
    let mut files = folders.map(|folder| Path::new(folder).join(&wanted.program));
    let file = files.find(|file| file.is_file());
    file.map_or_else(|| (&wanted.program).into(), |file| file.into_os_string())
}

/// A program as a command starts it.
fn under(wrap: &Wrap, program: &Program) -> Program {
    let mut words = wrap.words.iter().chain([&program.path]).chain(&program.arguments).cloned();
    Program {
        path: words.next().unwrap_or_default(),
        arguments: words.collect(),
        environment: program.environment.clone(),
        folder: program.folder.clone(),
    }
}

/// The representation that rank `index` of a part emulates, counted from the part's first rank.
fn arch(part: &Part, index: u32) -> Option<String> {
    let name = part.archs.get(index as usize % part.archs.len().max(1))?;
    (name != "native").then(|| name.clone())
}

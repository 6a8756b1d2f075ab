//! Composes the orders for each host of a job.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use super::message::{JournalOrder, Member, Orders, Program};
use super::{Job, Part, Stacks, Wrap};
use longshore_job::Hosts;
use longshore_job::{Secret, env};

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
    let mut environment: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: String| environment.push((name.into(), value.into()));
    set(env::ROUTE, job.settings.routes.to_string());
    set(env::ON_DEATH, job.settings.on_death.to_string());
    if is_away {
        set(env::HOSTS, hosts.to_text(size));
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

/// A program as a command starts it.
fn under(wrap: &Wrap, program: &Program) -> Program {
    let mut words = wrap.words.iter().chain([&program.path]).chain(&program.arguments).cloned();
    Program {
        path: words.next().unwrap_or_default(),
        arguments: words.collect(),
        environment: program.environment.clone(),
    }
}

/// The representation that rank `index` of a part emulates, counted from the part's first rank.
fn arch(part: &Part, index: u32) -> Option<String> {
    let name = part.archs.get(index as usize % part.archs.len().max(1))?;
    (name != "native").then(|| name.clone())
}

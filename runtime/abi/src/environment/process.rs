//! Dynamic processes (MPI-5.0 chapter 11): processes that a program starts, and ports.
//!
//! Arguments that count at the root only aren't looked at elsewhere.

use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use longshore::{Class, Port, Spawn};

use crate::communicator::{self, Comm, made};
use crate::edge::arg::{Address, Chars, List, Room, descriptor};
use crate::edge::constants::{ERR_SPAWN, MAX_PORT_NAME, SUCCESS};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, find_optional};
use crate::edge::state;
use crate::objects::info::Info;
use crate::objects::object::Card;

/// The key of an info by which a connect says how long it waits for the accept, in seconds.
const TIMEOUT: &str = "timeout";
/// The key of an info that names the representation which new processes emulate.
const ARCHITECTURE: &str = "longshore_arch";

fn wrong(what: String) -> Fault {
    Fault::new(Class::Arg, what)
}

/// The text of a port that doesn't exist, for ranks whose port doesn't count.
const NOWHERE: &str = concat!("longshore/", env!("CARGO_PKG_VERSION"), "/0/0/0/0");

/// The port of a text, which counts at the root only. At the other ranks it is none.
fn port_at(root: c_int, comm: &Comm, text: Address) -> Result<Port> {
    if comm.inner().rank() != root {
        return Ok(NOWHERE.parse()?);
    }
    let text = text.text().ok_or_else(|| wrong("port_name is a null pointer".to_owned()))?;
    Ok(text.parse()?)
}

pub fn open_port(_info: Option<&Info>, room: Chars) -> Result<()> {
    let port = state::state()?.rank().open_port()?;
    room.write(&port.to_string(), MAX_PORT_NAME as usize);
    Ok(())
}

pub fn close_port(name: &str) -> Result<()> {
    Ok(state::state()?.rank().close_port(&name.parse()?)?)
}

pub fn publish_name(service: &str, _info: Option<&Info>, port: &str) -> Result<()> {
    Ok(state::state()?.rank().publish_text(service, port)?)
}

pub fn unpublish_name(service: &str, _info: Option<&Info>, _port: &str) -> Result<()> {
    Ok(state::state()?.rank().unpublish_name(service)?)
}

pub fn lookup_name(service: &str, _info: Option<&Info>, room: Chars) -> Result<()> {
    let port = state::state()?.rank().lookup_text(service)?;
    room.write(&port, MAX_PORT_NAME as usize);
    Ok(())
}

pub fn comm_accept(port: Address, info: Handle, root: c_int, comm: &Comm) -> Result<Handle> {
    let port = port_at(root, comm, port).and_then(|port| {
        info_at(root, comm, info)?;
        Ok(port)
    });
    let port = port.map_err(|fault| comm.refused("accept", fault))?;
    made(comm, Some(comm.inner().accept(&port, root)?), Card::default())
}

pub fn comm_connect(port: Address, info: Handle, root: c_int, comm: &Comm) -> Result<Handle> {
    let given = port_at(root, comm, port).and_then(|port| {
        let info = info_at(root, comm, info)?;
        let limit = info.and_then(|info| info.get(TIMEOUT));
        Ok((port, limit.map(|text| seconds(&text)).transpose()?))
    });
    let met = match given.map_err(|fault| comm.refused("connect", fault))? {
        (port, Some(limit)) => comm.inner().connect_within(&port, root, limit)?,
        (port, None) => comm.inner().connect(&port, root)?,
    };
    made(comm, Some(met), Card::default())
}

/// The info of a call, which counts at the root only.
fn info_at(root: c_int, comm: &Comm, info: Handle) -> Result<Option<Arc<Info>>> {
    match comm.inner().rank() == root {
        true => find_optional::<Info>(info),
        false => Ok(None),
    }
}

/// The time of a value of the key `timeout`.
fn seconds(text: &str) -> Result<Duration> {
    let time = text.trim().parse().ok().and_then(|time| Duration::try_from_secs_f64(time).ok());
    time.ok_or_else(|| {
        let what = format!("{TIMEOUT} is {text:?}: expected seconds, such as 2.5");
        Fault::new(Class::InfoValue, what)
    })
}

pub fn comm_join(fd: c_int) -> Result<Handle> {
    let Some(socket) = descriptor(fd) else {
        return Err(wrong(format!("fd is {fd}, which is no descriptor")));
    };
    let state = state::state()?;
    let both = state.rank().join(socket)?;
    communicator::of_alone(both)
}

pub fn comm_get_parent() -> Result<Handle> {
    Ok(communicator::parent())
}

pub fn comm_spawn(
    command: Address,
    argv: Address,
    maxprocs: c_int,
    info: Handle,
    root: c_int,
    comm: &Comm,
    codes: Room<c_int>,
) -> Result<Handle> {
    let programs = || {
        let command = command.exact_text("command")?;
        let command = command.ok_or_else(|| wrong("command is a null pointer".to_owned()))?;
        let words = argv.words("argv")?;
        let info = find_optional::<Info>(info)?;
        Ok(vec![program(command, words, maxprocs, info.as_deref())?])
    };
    let numbers = if comm.inner().rank() == root { &[maxprocs][..] } else { &[] };
    start(root, comm, codes, numbers, programs)
}

#[allow(clippy::too_many_arguments)] // MPI's.
pub fn comm_spawn_multiple(
    count: c_int,
    commands: Address,
    arguments: Address,
    maxprocs: List<c_int>,
    infos: List<Handle>,
    root: c_int,
    comm: &Comm,
    codes: Room<c_int>,
) -> Result<Handle> {
    let is_root = comm.inner().rank() == root;
    let length = if is_root { usize::try_from(count).unwrap_or(0) } else { 0 };
    // The other ranks wait for the root: its faults are part of the call.
    let (numbers, fault) = match maxprocs.slice(length, "array_of_maxprocs") {
        Ok(numbers) => (numbers, None),
        Err(fault) => (&[][..], Some(fault)),
    };
    let programs = || {
        if let Some(fault) = fault {
            return Err(fault);
        }
        if length == 0 {
            return Err(wrong(format!("count is {count}: start 1 program or more")));
        }
        let infos = infos.slice(length, "array_of_info")?;
        let all = (0..length).map(|at| {
            let command = commands.element(at).map(|it| it.exact_text("a command")).transpose()?;
            let command = command
                .flatten()
                .ok_or_else(|| wrong(format!("array_of_commands[{at}] is a null pointer")))?;
            let words = arguments.element(at).map(|it| it.words("an argument")).transpose()?;
            let words = words.unwrap_or_default();
            let info = find_optional::<Info>(infos[at])?;
            program(command, words, numbers[at], info.as_deref())
        });
        all.collect()
    };
    start(root, comm, codes, numbers, programs)
}

/// A program with the keys of its info (MPI-5.0 section 11.3.4). Other keys are ignored, as MPI
/// asks.
fn program(
    command: String,
    arguments: Vec<String>,
    maxprocs: c_int,
    info: Option<&Info>,
) -> Result<Spawn> {
    let most = u32::try_from(maxprocs).unwrap_or(0);
    let get = |key| info.and_then(|info| info.get(key));
    let counts = match get("soft") {
        Some(soft) => soft_counts(&soft, most)?,
        None => vec![most],
    };
    Ok(Spawn {
        arguments,
        counts,
        host: get("host"),
        folder: get("wdir"),
        path: get("path"),
        architecture: get(ARCHITECTURE),
        ..Spawn::new(command, most)
    })
}

/// More processes than a job has room for.
const ROOM: u32 = 1 << 16;

/// The numbers of processes up to `most` that a value of the key `soft` accepts: a list of `a`,
/// `a:b` and `a:b:c`, as in Fortran (MPI-5.0 section 11.3.4).
fn soft_counts(soft: &str, most: u32) -> Result<Vec<u32>> {
    let bad = || {
        let what = format!("soft is {soft:?}: expected numbers and ranges, such as 1,2:8:2");
        Fault::new(Class::InfoValue, what)
    };
    let mut counts = Vec::new();
    for part in soft.split(',') {
        let numbers: Option<Vec<i64>> =
            part.split(':').map(|number| number.trim().parse().ok()).collect();
        let (first, last, step) = match numbers.ok_or_else(bad)?[..] {
            [only] => (only, only, 1),
            [first, last] => (first, last, 1),
            [first, last, step] if step != 0 => (first, last, step),
            _ => return Err(bad()),
        };
        let is_in = |number: &u32| {
            let number = i64::from(*number);
            let is_between = match step > 0 {
                true => (first..=last).contains(&number),
                false => (last..=first).contains(&number),
            };
            is_between && (i128::from(number) - i128::from(first)) % i128::from(step) == 0
        };
        // No job has room for more, but the most count in the codes.
        counts.extend((1..=most.min(ROOM)).chain([most]).filter(is_in));
    }
    counts.sort_unstable();
    counts.dedup();
    match counts.is_empty() {
        true => Err(wrong(format!("soft is {soft:?}, which accepts no number from 1 to {most}"))),
        false => Ok(counts),
    }
}

/// Starts the root's programs. `numbers` are the processes of each program that the root asks for,
/// each of which has a code; none at other ranks.
fn start(
    root: c_int,
    comm: &Comm,
    codes: Room<c_int>,
    numbers: &[c_int],
    programs: impl FnOnce() -> Result<Vec<Spawn>>,
) -> Result<Handle> {
    let is_root = comm.inner().rank() == root;
    let programs = if is_root { programs() } else { Ok(Vec::new()) };
    let spawned = match programs {
        Ok(programs) => comm.inner().spawn(&programs, root).map_err(Fault::from),
        Err(fault) => Err(comm.refused("spawn", fault)),
    };
    let asked = || numbers.iter().map(|number| u32::try_from(*number).unwrap_or(0)).collect();
    let asked: Vec<u32> = match &spawned {
        // The numbers count at the root only, and each rank gets the codes.
        Ok(spawned) if !is_root => spawned.asked.clone(),
        _ => asked(),
    };
    let started = spawned.as_ref().map_or(&[][..], |spawned| &spawned.counts);
    let mut at = 0;
    for (number, asked) in asked.into_iter().enumerate() {
        let started = started.get(number).copied().unwrap_or(0);
        for process in 0..asked {
            codes.set(at, if process < started { SUCCESS } else { ERR_SPAWN });
            at += 1;
        }
    }
    made(comm, Some(spawned?.communicator), Card::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_numbers_are_lists_of_ranges() {
        let counts = |soft: &str, most| soft_counts(soft, most).ok();
        assert_eq!(counts("2", 4), Some(vec![2]));
        assert_eq!(counts("0:10:2,3", 6), Some(vec![2, 3, 4, 6]));
        assert_eq!(counts("8:2:-3", 8), Some(vec![2, 5, 8]));
        assert_eq!(counts("5:9", 4), None);
        assert_eq!(counts(&format!("{}:9:1", i64::MIN), 2), Some(vec![1, 2]));
        let any = counts("1:2147483647", i32::MAX as u32).unwrap();
        assert_eq!((any.len(), any.last()), (ROOM as usize + 1, Some(&(i32::MAX as u32))));
        assert_eq!((counts("1:2:0", 4), counts("x", 4), counts("", 4)), (None, None, None));
    }
}

//! The start of a job.

use std::ffi::OsString;
use std::fs;
use std::io;

use longshore_transport::segment::Geometry;

use super::hangs::Timers;
use super::stations::Stations;
use super::{Input, Phase, Rank, Supervisor};
use crate::guard::Control;
use crate::mapping::place_ranks;
use crate::message::JournalOrder;
use crate::observe::Gatherer;
use crate::output::{Lines, OutputStream, Queue};
use crate::plan::orders;
use crate::server::Server;
use crate::{Error, Job, Output};
use longshore_job::Secret;

/// The smallest ring size. A number of ranks that doesn't fit with it fits with none.
const RING: u32 = 4 << 10;

impl<'a> Supervisor<'a> {
    /// Starts all ranks, or the agents that start them.
    pub(crate) fn start(job: &'a Job, control: &'a Control) -> Result<Supervisor<'a>, Error> {
        let Job { placement, recording, patience, .. } = job;
        let size = size(job)?;
        let rooms: Vec<u32> = placement.hosts.iter().map(|host| host.ranks).collect();
        let hosts = place_ranks(&rooms, placement.mapping, size)?;
        let parts: Vec<u32> = (0..)
            .zip(&job.parts)
            .flat_map(|(number, part)| std::iter::repeat_n(number, part.ranks as usize))
            .collect();
        let ranks = ranks(&parts, job)?;
        let secret = Secret::generate()?;
        let gatherer = Gatherer::new(size, recording.stats.as_ref(), recording.trace.as_deref());
        let gatherer = gatherer.map_err(|(path, source)| Error::Observe { path, source })?;
        let journal = gatherer.wants().map(|(wants, events)| JournalOrder { wants, events });
        let server = Server::new(parts, &hosts);
        let orders = |host| orders(job, size, &hosts, host, &secret, journal);
        let places = (hosts.clone(), size);
        let started = Stations::start(placement, places, orders, gatherer.traces());
        let (stations, started) = match started {
            Ok(started) => started,
            Err(error) => {
                gatherer.abandon();
                return Err(error);
            }
        };
        gatherer.begin();
        let input = Input { stdin: io::stdin(), under_way: 0 };
        let mut supervisor = Supervisor {
            job,
            control,
            ranks,
            server,
            secret: secret.clone(),
            input: (!placement.hosts.is_empty()).then_some(input),
            stations,
            queue: Queue::default(),
            phase: Phase::Running,
            postponed: Vec::new(),
            status: None,
            timers: Timers::new(patience, size),
            gatherer,
            interrupted: None,
        };
        started.into_iter().for_each(|event| supervisor.handle_event(event));
        Ok(supervisor)
    }
}

/// The number of ranks of a job. A segment has room for them.
fn size(job: &Job) -> Result<u32, Error> {
    let size = job.parts.iter().try_fold(0u32, |size, part| size.checked_add(part.ranks));
    let size = match size {
        Some(0) => return Err(Error::Empty),
        size => size.unwrap_or(u32::MAX), // refused by `Geometry::new`
    };
    Geometry::new(size, RING)?; // refuses a size before any list gets that long
    Ok(size)
}

/// The ranks of these parts, with the files for their output if that goes to files.
fn ranks(parts: &[u32], job: &Job) -> Result<Vec<Rank>, Error> {
    if let Some(path) = &job.output.folder {
        fs::create_dir_all(path).map_err(|source| Error::Output { path: path.clone(), source })?;
    }
    let rank = |(number, &part): (u32, &u32)| {
        let program = job.parts[part as usize].program.clone();
        Rank::new(number, part as usize, program, &job.output)
    };
    (0..).zip(parts).map(rank).collect()
}

impl Rank {
    /// A rank that runs, with the files for its output if that goes to files.
    pub(super) fn new(
        number: u32,
        part: usize,
        program: OsString,
        output: &Output,
    ) -> Result<Rank, Error> {
        let lines = |stream| match &output.folder {
            Some(folder) => Lines::to_file(stream, folder, number),
            None if output.label => Ok(Lines::new(stream, format!("[{number}] "))),
            None => Ok(Lines::new(stream, String::new())),
        };
        Ok(Rank {
            part,
            program,
            runs: true,
            stdout: lines(OutputStream::Stdout)?,
            stderr: lines(OutputStream::Stderr)?,
            absent: false,
            core: None,
            untraced: false,
        })
    }
}

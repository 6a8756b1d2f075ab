//! A flight computer's telemetry: a board puts housekeeping records into the window of a ground
//! station at a steady rate, and a second ground process sends it commands.
//!
//! The *board* is the last rank. It may be a machine of another byte order and word size than the
//! *ground*, which is rank 0, and than the *commander*, which is rank 1. No process converts,
//! serialises or polls a socket:
//!
//! - The board puts each `Frame` into a ring of slots in the ground's window, and the put
//!   notifies the ground. The ground gives slots back by a notification of the board.
//! - A command is a number that the commander swaps into the board's mailbox. The board swaps it
//!   out, and puts a `Reply` into the commander's window.
//! - A put of `Limits` that the board can't hold is refused. The error names field and value.
//!
//! docs/telemetry.md is about this job.

mod archive;
mod board;
mod chart;
mod commander;
mod dashboard;
mod frame;
mod ground;

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use longshore::{Communicator, Info, Rank, Type, Window};

use crate::show::Show;
use frame::{Frame, Limits, Reply};

/// The rank that shows and archives the frames.
const GROUND: i32 = 0;
/// The rank that sends the commands.
const COMMANDER: i32 = 1;

/// The slots of the ring of frames.
const SLOTS: i64 = 16;

/// The notification counters. A rank has its own counters in each window.
mod counter {
    /// Frames that have arrived, at the ground. Batches of frames that the ground has taken out, at
    /// the board.
    pub const FRAMES: i32 = 0;
    /// Replies that have arrived, at the commander. Limits that have arrived, at the board.
    pub const UPLINK: i32 = 0;
}

/// A board, a ground station and a commander: telemetry between unlike machines
#[derive(Debug, Parser)]
#[command(name = "telemetry")]
pub struct Options {
    /// Frames that the board sends, at least
    #[arg(long, value_name = "N", default_value_t = 100)]
    frames: u64,
    /// Frames a second; 0 for as many as possible
    #[arg(long, value_name = "HZ", default_value_t = 100.0)]
    rate: f64,
    /// File of all frames as CSV. If it exists, the job goes on where it ends
    #[arg(long, value_name = "FILE")]
    archive: Option<PathBuf>,
    /// Show the latest frame on the terminal, ten times a second
    #[arg(long)]
    dashboard: bool,
    /// Picture of the run as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The commander also puts into a slot of the ring, which nothing orders: see it with --check
    #[arg(long)]
    race: bool,
    /// The board's power fails after so many frames
    #[arg(long, value_name = "N")]
    fail_after: Option<u64>,
}

/// What all three parts have in common.
struct Station<'a> {
    rank: &'a Rank,
    world: &'a Communicator,
    /// The rank of the board.
    board: i32,
    /// The ground's ring of frames.
    ring: Window,
    /// The board's mailbox and limits, and the commander's last reply: see [`uplink`].
    uplink: Window,
    types: Types,
    options: Options,
}

/// The types of what is put.
struct Types {
    frame: Type,
    limits: Type,
    reply: Type,
}

/// The displacements in the window of the uplink, in units of 8 bytes.
mod uplink {
    /// The board's mailbox: a command's number, or 0.
    pub const MAILBOX: i64 = 0;
    /// The board's limits, and the commander's last reply.
    pub const RECORD: i64 = 1;
}

/// Runs the example on three or more ranks. Ranks between the commander and the board do nothing.
///
/// # Errors
/// Wrong arguments, an error of the communication or of a file, or a frame that arrives changed.
pub fn run(rank: &Rank, arguments: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let name = PathBuf::from("telemetry");
    let options = Options::try_parse_from([&name].into_iter().chain(arguments))?;
    let (world, me) = (rank.world(), rank.world().rank());
    if world.size() < 3 {
        return Err("this example needs at least three ranks: ground, commander and board".into());
    }
    let show = Show::new(rank);
    show.step("Telemetry: a board puts housekeeping records into a ground station's window")?;

    let types = Types {
        frame: rank.type_of::<Frame>()?,
        limits: rank.type_of::<Limits>()?,
        reply: rank.type_of::<Reply>()?,
    };
    show.say(&format!("a frame is {}", types.frame))?;
    let extents = world.allgather(&[types.frame.extent()])?;
    let board = world.size() - 1;
    show.say(&format!(
        "it takes {} bytes on the board and {} on the ground",
        extents[board as usize], extents[GROUND as usize]
    ))?;

    let info = Info { max_num_notify: 1, ..Info::default() };
    let slots = if me == GROUND { SLOTS } else { 0 };
    let unit = types.frame.extent();
    let ring = Window::allocate(world, slots * unit, unit, &info)?;
    let record = types.limits.extent().max(types.reply.extent());
    let uplink = Window::allocate(world, 8 + record, 8, &info)?;
    let station = Station { rank, world, board, ring, uplink, types, options };
    let obeyed = match me {
        GROUND => ground::run(&station, &show)?,
        COMMANDER => commander::run(&station)?,
        _ if me == board => board::run(&station)?,
        _ => station.first_frame(0).map(|_| true)?,
    };
    show.check("all commands were answered, and the board has the limits that fit", obeyed)?;
    let Station { ring, uplink, .. } = station;
    uplink.free()?;
    Ok(ring.free()?)
}

impl Station<'_> {
    /// The number of the first frame, which the ground knows by its archive. Collective.
    fn first_frame(&self, known: u64) -> longshore::Result<u64> {
        let mut first = [known];
        self.world.bcast(&mut first, GROUND)?;
        Ok(first[0])
    }
}

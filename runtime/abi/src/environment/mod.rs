//! The environment: start and end, versions, names, clocks (MPI-5.0 chapters 9 and 11).
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | the functions of the world of MPI_Init |
//! | [`session`] | sessions (section 11.3) |
//! | [`process`] | dynamic processes (chapter 11) |
//! | [`intercommunicator`] | intercommunicators, also from groups of a session (section 7.6) |
//! | [`integer`] | the ABI itself, and handles as integers (chapter 20) |
//! | [`tool`] | tools (chapter 15) |
//! | [`unfreed`] | what `--check` reports at finalize |

pub(crate) mod integer;
pub(crate) mod intercommunicator;
pub(crate) mod process;
pub(crate) mod session;
pub(crate) mod tool;
pub(crate) mod unfreed;

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use longshore::Class;

use crate::communicator::{self, Comm};
use crate::edge::arg::{Address, Chars};
use crate::edge::constants::{
    COMM_SELF, COMM_WORLD, MAX_LIBRARY_VERSION_STRING, MAX_PROCESSOR_NAME, SUBVERSION,
    THREAD_MULTIPLE, THREAD_SINGLE, VERSION,
};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, find, insert};
use crate::edge::state::{self, Phase};
use crate::message::buffered;
use crate::objects::info::Info;
use crate::objects::keyval;

fn start(threads: c_int) -> Result<()> {
    state::start(threads)?;
    communicator::begin(state::state()?.rank());
    Ok(())
}

pub fn init(_argc: Address, _argv: Address) -> Result<()> {
    start(THREAD_SINGLE)
}

pub fn init_thread(_argc: Address, _argv: Address, required: c_int) -> Result<c_int> {
    let provided = required.clamp(THREAD_SINGLE, THREAD_MULTIPLE);
    start(provided)?;
    Ok(provided)
}

pub fn initialized() -> Result<bool> {
    Ok(state::phase() != Phase::Before)
}

pub fn finalized() -> Result<bool> {
    Ok(state::phase() == Phase::After)
}

pub fn finalize() -> Result<()> {
    let state = state::state()?;
    // MPI-5.0 section 11.2.4: the attributes of MPI_COMM_SELF go first, while all calls work.
    for handle in [COMM_SELF, COMM_WORLD] {
        keyval::clear(&*find::<Comm>(handle)?, handle)?;
    }
    let sent = buffered::finish();
    unfreed::report(state);
    let ended = state.rank().leave();
    state::set_phase(Phase::After);
    sent?;
    Ok(ended?)
}

pub fn abort(comm: &Comm, code: c_int) -> Result<()> {
    let rank = comm.inner().rank();
    let name = comm.card().name();
    let of = if name.is_empty() { "a communicator".to_owned() } else { name };
    state::say(&format!("longshore: rank {rank} of {of} called MPI_Abort with {code}\n"));
    // The status of a process has eight bits, and 0 would say that all is well.
    state::end_job(if code & 0xff == 0 { 1 } else { code })
}

pub fn query_thread() -> Result<c_int> {
    Ok(state::state()?.threads())
}

pub fn is_thread_main() -> Result<bool> {
    Ok(state::state()?.main() == std::thread::current().id())
}

pub fn get_version() -> Result<(c_int, c_int)> {
    Ok((VERSION, SUBVERSION))
}

pub fn get_library_version(room: Chars) -> Result<usize> {
    let version = env!("CARGO_PKG_VERSION");
    Ok(room.write(&format!("Longshore {version}"), MAX_LIBRARY_VERSION_STRING as usize))
}

pub fn get_processor_name(room: Chars) -> Result<usize> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.map_err(|error| Fault::new(Class::Other, error.to_string()))?;
    Ok(room.write(name.trim(), MAX_PROCESSOR_NAME as usize))
}

/// The hardware of this process, by which MPI_Comm_split_type can split (MPI-5.0 section 11.2.1).
pub fn get_hw_resource_info() -> Result<Handle> {
    let pairs = [("mpi_hw_resource_type", "longshore:architecture")];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    insert(Arc::new(Info::new(pairs.into())))
}

pub fn pcontrol(_level: c_int) -> Result<()> {
    Ok(())
}

/// The start of this process's clock.
fn epoch() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

pub fn wtime() -> f64 {
    epoch().elapsed().as_secs_f64()
}

pub fn wtick() -> f64 {
    1e-9
}

//! The environment: start and end, versions, names, clocks (MPI-5.0 chapters 9 and 11).

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use longshore::Class;

use crate::arg::{Address, Chars};
use crate::communicator::Comm;
use crate::constants::{
    MAX_LIBRARY_VERSION_STRING, MAX_PROCESSOR_NAME, SUBVERSION, THREAD_FUNNELED, THREAD_MULTIPLE,
    THREAD_SERIALIZED, THREAD_SINGLE, VERSION,
};
use crate::fault::{Fault, Result};
use crate::handle::{Handle, insert};
use crate::info::Info;
use crate::state::{self, Phase};

pub fn init(_argc: Address, _argv: Address) -> Result<()> {
    state::start(THREAD_SINGLE)
}

pub fn init_thread(_argc: Address, _argv: Address, required: c_int) -> Result<c_int> {
    let provided = required.clamp(THREAD_SINGLE, THREAD_MULTIPLE);
    state::start(provided)?;
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
    crate::attribute::clear(&**state.alone(), crate::constants::COMM_SELF)?;
    crate::attribute::clear(&**state.world(), crate::constants::COMM_WORLD)?;
    let ended = state.rank().leave();
    state::set_phase(Phase::After);
    Ok(ended?)
}

pub fn abort(comm: &Comm, code: c_int) -> Result<()> {
    let rank = comm.inner().rank();
    let name = comm.card().name();
    let of = if name.is_empty() { "a communicator".to_owned() } else { name };
    eprintln!("longshore: rank {rank} of {of} called MPI_Abort with {code}");
    // The status of a process has eight bits, and 0 would say that all is well.
    state::end_job(if code & 0xff == 0 { 1 } else { code })
}

pub fn query_thread() -> Result<c_int> {
    Ok(state::state()?.threads())
}

pub fn is_thread_main() -> Result<bool> {
    Ok(state::state()?.main() == std::thread::current().id())
}

/// The name of a level of thread support.
pub fn level_name(level: c_int) -> &'static str {
    match level {
        THREAD_FUNNELED => "MPI_THREAD_FUNNELED",
        THREAD_SERIALIZED => "MPI_THREAD_SERIALIZED",
        THREAD_MULTIPLE => "MPI_THREAD_MULTIPLE",
        _ => "MPI_THREAD_SINGLE",
    }
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
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

pub fn wtime() -> f64 {
    let start = start();
    start.elapsed().as_secs_f64()
}

pub fn wtick() -> f64 {
    1e-9
}

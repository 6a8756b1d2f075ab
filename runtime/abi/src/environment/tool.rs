//! Tools (MPI-5.0 chapter 15). The interface has no variables, categories, events and sources of
//! events, so each call about one of them is wrong.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Mutex;

use crate::edge::constants as c;
use crate::edge::fault::{Fault, Result};
use crate::edge::lock::lock;

/// A handle of a tool: a session, a variable, an enumeration, or what belongs to events.
type ToolHandle = *mut c_void;

/// The state of the interface.
struct Tools {
    /// The number of calls of MPI_T_init_thread that no MPI_T_finalize has matched.
    uses: usize,
    /// The open sessions, by the numbers of which their handles are made.
    sessions: BTreeSet<usize>,
    /// The number of sessions that were ever opened.
    opened: usize,
}

static TOOLS: Mutex<Tools> = Mutex::new(Tools { uses: 0, sessions: BTreeSet::new(), opened: 0 });

/// MPI_T_PVAR_ALL_HANDLES.
const ALL_HANDLES: usize = 1;

/// The handles of sessions are multiples of this, beyond all predefined handles.
const STEP: usize = 4096;

/// The code of a fault, which is one of tools: also where an argument was refused before the call
/// began.
pub fn code_of(fault: &Fault) -> c_int {
    let is_of_tools = (c::T_ERR_CANNOT_INIT..=c::T_ERR_PVAR_NO_ATOMIC).contains(&fault.code());
    match (is_of_tools, lock(&TOOLS).uses) {
        (true, _) => fault.code(),
        (false, 0) => c::T_ERR_NOT_INITIALIZED,
        (false, _) => c::T_ERR_INVALID,
    }
}

fn error(code: c_int) -> Fault {
    Fault::coded(code, None)
}

/// Refuses calls outside of MPI_T_init_thread and MPI_T_finalize.
fn ready() -> Result<()> {
    match lock(&TOOLS).uses {
        0 => Err(error(c::T_ERR_NOT_INITIALIZED)),
        _ => Ok(()),
    }
}

/// The error of every call about something that doesn't exist.
fn none(code: c_int) -> Result<()> {
    ready()?;
    Err(error(code))
}

/// Checks a session.
fn session(session: ToolHandle) -> Result<()> {
    ready()?;
    match lock(&TOOLS).sessions.contains(&session.addr()) {
        true => Ok(()),
        false => Err(error(c::T_ERR_INVALID_SESSION)),
    }
}

pub fn t_init_thread(required: c_int) -> Result<c_int> {
    lock(&TOOLS).uses += 1;
    let levels = [c::THREAD_SINGLE, c::THREAD_FUNNELED, c::THREAD_SERIALIZED];
    // The next higher level is provided for a number between two.
    let provided = levels.into_iter().find(|level| required <= *level);
    Ok(provided.unwrap_or(c::THREAD_MULTIPLE))
}

/// The last one ends all sessions.
pub fn t_finalize() -> Result<()> {
    let mut tools = lock(&TOOLS);
    let Some(uses) = tools.uses.checked_sub(1) else {
        return Err(error(c::T_ERR_NOT_INITIALIZED));
    };
    tools.uses = uses;
    if tools.uses == 0 {
        tools.sessions.clear();
    }
    Ok(())
}

pub fn t_pvar_session_create() -> Result<ToolHandle> {
    ready()?;
    let mut tools = lock(&TOOLS);
    tools.opened += 1;
    let number = tools.opened.wrapping_mul(STEP);
    tools.sessions.insert(number);
    Ok(ptr::without_provenance_mut(number))
}

pub fn t_pvar_session_free(handle: &mut ToolHandle) -> Result<()> {
    ready()?;
    if !lock(&TOOLS).sessions.remove(&handle.addr()) {
        return Err(error(c::T_ERR_INVALID_SESSION));
    }
    *handle = ptr::null_mut();
    Ok(())
}

/// Calls that succeed for all variables of a session, of which there are none.
macro_rules! of_all {
    ($($name:ident)*) => {
        $(
            pub fn $name(of: ToolHandle, handle: ToolHandle) -> Result<()> {
                session(of)?;
                match handle.addr() == ALL_HANDLES {
                    true => Ok(()),
                    false => Err(error(c::T_ERR_INVALID_HANDLE)),
                }
            }
        )*
    };
}

of_all! { t_pvar_start t_pvar_stop t_pvar_reset }

macro_rules! numbers {
    ($($name:ident)*) => {
        $(
            pub fn $name() -> Result<c_int> {
                ready()?;
                Ok(0)
            }
        )*
    };
}

numbers! {
    t_category_changed
    t_category_get_num
    t_cvar_get_num
    t_event_get_num
    t_pvar_get_num
    t_source_get_num
}

macro_rules! nothing {
    ($($name:ident ($($argument:ty),*) $error:ident;)*) => {
        $(
            pub fn $name($(_: $argument),*) -> Result<()> {
                none(c::$error)
            }
        )*
    };
}

nothing! {
    t_category_get_categories (c_int) T_ERR_INVALID_INDEX;
    t_category_get_cvars (c_int) T_ERR_INVALID_INDEX;
    t_category_get_events (c_int) T_ERR_INVALID_INDEX;
    t_category_get_index (&str) T_ERR_INVALID_NAME;
    t_category_get_info (c_int) T_ERR_INVALID_INDEX;
    t_category_get_num_events (c_int) T_ERR_INVALID_INDEX;
    t_category_get_pvars (c_int) T_ERR_INVALID_INDEX;
    t_cvar_get_index (&str) T_ERR_INVALID_NAME;
    t_cvar_get_info (c_int) T_ERR_INVALID_INDEX;
    t_cvar_handle_alloc (c_int) T_ERR_INVALID_INDEX;
    t_cvar_handle_free () T_ERR_INVALID_HANDLE;
    t_cvar_read (ToolHandle) T_ERR_INVALID_HANDLE;
    t_cvar_write (ToolHandle) T_ERR_INVALID_HANDLE;
    t_enum_get_info (ToolHandle) T_ERR_INVALID_HANDLE;
    t_enum_get_item (ToolHandle, c_int) T_ERR_INVALID_HANDLE;
    t_event_callback_get_info (ToolHandle, c_int) T_ERR_INVALID_HANDLE;
    t_event_callback_set_info (ToolHandle, c_int) T_ERR_INVALID_HANDLE;
    t_event_copy (ToolHandle) T_ERR_INVALID_HANDLE;
    t_event_get_index (&str) T_ERR_INVALID_NAME;
    t_event_get_info (c_int) T_ERR_INVALID_INDEX;
    t_event_get_source (ToolHandle) T_ERR_INVALID_HANDLE;
    t_event_get_timestamp (ToolHandle) T_ERR_INVALID_HANDLE;
    t_event_handle_alloc (c_int) T_ERR_INVALID_INDEX;
    t_event_handle_free (ToolHandle) T_ERR_INVALID_HANDLE;
    t_event_handle_get_info (ToolHandle) T_ERR_INVALID_HANDLE;
    t_event_handle_set_info (ToolHandle) T_ERR_INVALID_HANDLE;
    t_event_read (ToolHandle, c_int) T_ERR_INVALID_HANDLE;
    t_event_register_callback (ToolHandle, c_int) T_ERR_INVALID_HANDLE;
    t_event_set_dropped_handler (ToolHandle) T_ERR_INVALID_HANDLE;
    t_pvar_get_index (&str, c_int) T_ERR_INVALID_NAME;
    t_pvar_get_info (c_int) T_ERR_INVALID_INDEX;
    t_source_get_info (c_int) T_ERR_INVALID_INDEX;
    t_source_get_timestamp (c_int) T_ERR_INVALID_INDEX;
}

/// Calls about one variable of a session.
macro_rules! of_session {
    ($($name:ident ($($argument:ty),*) $error:ident;)*) => {
        $(
            pub fn $name(of: ToolHandle $(, _: $argument)*) -> Result<()> {
                session(of)?;
                none(c::$error)
            }
        )*
    };
}

of_session! {
    t_pvar_handle_alloc (c_int) T_ERR_INVALID_INDEX;
    t_pvar_handle_free () T_ERR_INVALID_HANDLE;
    t_pvar_read (ToolHandle) T_ERR_INVALID_HANDLE;
    t_pvar_readreset (ToolHandle) T_ERR_INVALID_HANDLE;
    t_pvar_write (ToolHandle) T_ERR_INVALID_HANDLE;
}

//! The functions that the target calls, made from functions.table, and those with which it begins
//! and cleans up.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use mpi_abi as _;

pub type Handle = *mut c_void;
pub type Aint = isize;
pub type Count = i64;
/// MPI_Status.
pub type Status = [c_int; 8];

/// The way of a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
    Both,
}

pub struct Parameter {
    pub name: &'static str,
    pub way: Way,
    /// Its kind in functions.table.
    pub kind: &'static str,
    pub is_array: bool,
    pub is_handle: bool,
    /// The length of a number, in bytes.
    pub element: usize,
}

/// A function, in one of its versions.
pub struct Call {
    pub name: &'static str,
    pub parameters: &'static [Parameter],
    /// Returns the error code.
    pub function: fn(&[i64]) -> c_int,
}

impl Call {
    pub fn has(&self, kind: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter.kind == kind)
    }
}

/// The call of a number. One in two is about windows or types.
pub fn call_of(number: usize) -> &'static Call {
    let about = |kind: &str| CALLS.iter().filter(|call| call.has(kind)).collect::<Vec<_>>();
    let calls = match number % 4 {
        0 => about("win"),
        1 => about("type"),
        _ => CALLS.iter().collect(),
    };
    calls[number / 4 % calls.len()]
}

include!(concat!(env!("OUT_DIR"), "/calls.rs"));

unsafe extern "C" {
    fn PMPI_Init(argc: *mut c_int, argv: *mut c_void) -> c_int;
    fn PMPI_Recv(
        buf: *mut c_void,
        n: c_int,
        t: Handle,
        from: c_int,
        tag: c_int,
        comm: Handle,
        status: *mut Status,
    ) -> c_int;
    fn PMPI_Win_start(group: Handle, assert: c_int, win: Handle) -> c_int;
    fn PMPI_Win_post(group: Handle, assert: c_int, win: Handle) -> c_int;
    fn PMPI_Win_complete(win: Handle) -> c_int;
    fn PMPI_Win_wait(win: Handle) -> c_int;
}

pub const COMM_SELF: usize = 0x102;
pub const COMM_WORLD: usize = 0x101;
const ERRORS_RETURN: usize = 0x143;

fn handle(number: usize) -> Handle {
    std::ptr::without_provenance_mut(number)
}

/// Begins the job. Errors return from then on.
pub fn begin() {
    // SAFETY: MPI_Init takes null pointers, and both communicators exist after it.
    let codes = unsafe {
        [
            PMPI_Init(null_mut(), null_mut()),
            MPI_Comm_set_errhandler(handle(COMM_WORLD), handle(ERRORS_RETURN)),
            MPI_Comm_set_errhandler(handle(COMM_SELF), handle(ERRORS_RETURN)),
        ]
    };
    assert_eq!(codes, [0; 3], "MPI_Init");
}

/// Whether a code is that of an error class, or MPI_SUCCESS.
pub fn is_known(code: c_int) -> bool {
    let mut class = 0;
    // SAFETY: there is room for the result.
    unsafe { MPI_Error_class(code, &raw mut class) == 0 }
}

/// Lets the errors of a new window return.
pub fn quiet(win: usize) {
    // SAFETY: any handle may be passed.
    unsafe { MPI_Win_set_errhandler(handle(win), handle(ERRORS_RETURN)) };
}

/// How far the data of one element of a type reaches, and its extent; `None` if it is no type.
pub fn reach(datatype: usize) -> Option<i64> {
    let (mut lb, mut extent, mut true_lb, mut true_extent) = (0, 0, 0, 0);
    // SAFETY: any handle may be passed, and there is room for the results.
    let codes = unsafe {
        [
            MPI_Type_get_extent_c(handle(datatype), &raw mut lb, &raw mut extent),
            MPI_Type_get_true_extent_c(handle(datatype), &raw mut true_lb, &raw mut true_extent),
        ]
    };
    let furthest = [lb, extent, true_lb, true_extent].map(i64::unsigned_abs).into_iter().max()?;
    (codes == [0; 2]).then(|| i64::try_from(furthest).unwrap_or(i64::MAX))
}

/// An epoch of post and start with this rank itself, if the window takes it.
pub fn expose(group: usize, win: usize) {
    // SAFETY: any handles may be passed.
    unsafe {
        if PMPI_Win_post(handle(group), 0, handle(win)) != 0 {
            return;
        }
        if PMPI_Win_start(handle(group), 0, handle(win)) == 0 {
            PMPI_Win_complete(handle(win));
            PMPI_Win_wait(handle(win));
        }
    }
}

/// Ends what a request waits for, as far as that can be ended, and frees the handle.
pub fn end_request(request: usize) {
    let (mut request, mut flag) = (handle(request), 0);
    // SAFETY: any handle may be passed, and there is room for the results.
    unsafe {
        MPI_Cancel(&raw mut request);
        MPI_Test(&raw mut request, &raw mut flag, null_mut());
        MPI_Request_free(&raw mut request);
    }
}

/// Receives the messages that nobody received.
pub fn drain(comm: usize, room: *mut u8) {
    let mut status = Status::default();
    loop {
        let mut flag = 0;
        // SAFETY: any handle may be passed, and there is room for the results. The message is
        // there, and its data are shorter than the room, or the receive reports that.
        unsafe {
            let code = MPI_Iprobe(-1, -2, handle(comm), &raw mut flag, &raw mut status);
            if code != 0 || flag == 0 {
                return;
            }
            let byte = handle(0x247);
            PMPI_Recv(room.cast(), 8192, byte, status[0], status[1], handle(comm), &raw mut status);
        }
    }
}

/// Ends the epochs of a window, and frees it.
pub fn end_window(win: usize) {
    let mut win = handle(win);
    // SAFETY: any handle may be passed.
    unsafe {
        MPI_Win_unlock_all(win);
        MPI_Win_unlock(0, win);
        MPI_Win_unlock(-3, win);
        MPI_Win_fence(1 << 14, win);
        MPI_Win_free(&raw mut win);
    }
}

/// Frees memory of MPI_Alloc_mem, unless it is in a window still.
pub fn free_memory(address: usize) {
    // SAFETY: any address may be passed.
    unsafe { MPI_Free_mem(handle(address)) };
}

/// Frees a handle of another kind.
pub fn free(kind: &str, object: usize) {
    let mut object = handle(object);
    // SAFETY: any handle may be passed.
    unsafe {
        match kind {
            "type" => MPI_Type_free(&raw mut object),
            "group" => MPI_Group_free(&raw mut object),
            "info" => MPI_Info_free(&raw mut object),
            "op" => MPI_Op_free(&raw mut object),
            "errh" => MPI_Errhandler_free(&raw mut object),
            "session" => MPI_Session_finalize(&raw mut object),
            "comm" => MPI_Comm_free(&raw mut object),
            _ => 0,
        }
    };
}

/// Functions of the program, by the kind of their parameter.
pub fn function(kind: &str) -> i64 {
    let function: *const () = match kind {
        "cfn:User_function" => operation as *const (),
        "fn:Comm_errhandler_function"
        | "fn:Win_errhandler_function"
        | "fn:File_errhandler_function"
        | "fn:Session_errhandler_function" => handler as *const (),
        _ if kind.ends_with("copy_attr_function") || kind == "fn:Copy_function" => {
            copy as *const ()
        }
        _ if kind.ends_with("delete_attr_function") || kind == "fn:Delete_function" => {
            delete as *const ()
        }
        _ => null(),
    };
    function.addr() as i64
}

extern "C" fn operation(_: *mut c_void, _: *mut c_void, _: *mut c_void, _: *mut Handle) {}

extern "C" fn handler(_: *mut Handle, _: *mut c_int) {}

extern "C" fn copy(
    _: Handle,
    _: c_int,
    _: *mut c_void,
    value: *mut c_void,
    out: *mut *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives room for both.
    unsafe {
        out.write(value);
        flag.write(1);
    }
    0
}

extern "C" fn delete(_: Handle, _: c_int, value: *mut c_void, _: *mut c_void) -> c_int {
    // Some values refuse to be deleted.
    c_int::from(value.addr() == 5) * 16
}

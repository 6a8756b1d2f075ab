//! The line of a script in Python that has made a call.
//!
//! Python's own functions are looked up in the process, so that nothing depends on them. They are
//! those of its stable interface since Python 3.9. A module may have released the interpreter's
//! lock for the call, so the lock is taken again for the look. Lines are looked for where no lock
//! of the engine is held, so that no thread that has the interpreter's lock is waited for.
//!
//! A look that may not wait for the lock reads the frames as `faulthandler` does: they are this
//! thread's own, and it is within a call.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

use longshore::SourceLine;

use crate::edge::source::shortened;

type Thing = NonNull<c_void>;

/// The functions of an interpreter.
#[derive(Clone, Copy)]
struct Python {
    is_initialized: unsafe extern "C" fn() -> c_int,
    own_state: unsafe extern "C" fn() -> Option<Thing>,
    is_locked: unsafe extern "C" fn() -> c_int,
    lock: unsafe extern "C" fn() -> c_int,
    unlock: unsafe extern "C" fn(c_int),
    frame: unsafe extern "C" fn() -> Option<Thing>,
    back: unsafe extern "C" fn(Thing) -> Option<Thing>,
    line: unsafe extern "C" fn(Thing) -> c_int,
    code: unsafe extern "C" fn(Thing) -> Option<Thing>,
    attribute: unsafe extern "C" fn(Thing, *const c_char) -> Option<Thing>,
    text: unsafe extern "C" fn(Thing) -> *const c_char,
    clear: unsafe extern "C" fn(),
    take_exception:
        unsafe extern "C" fn(*mut Option<Thing>, *mut Option<Thing>, *mut Option<Thing>),
    put_exception: unsafe extern "C" fn(Option<Thing>, Option<Thing>, Option<Thing>),
    release: unsafe extern "C" fn(Thing),
    retain: unsafe extern "C" fn(Thing),
    /// Writes the frames of a thread to a descriptor, without the interpreter's lock: the function
    /// of Python's `faulthandler`. It is outside of the stable interface, and may be absent.
    dump: Option<unsafe extern "C" fn(c_int, Thing)>,
}

/// A file and a line.
type Place = (String, u32);

/// The script that has made the current call.
pub enum Script {
    /// There is none: the program's code has.
    None,
    /// Its line can't be looked up, since this thread doesn't hold the interpreter's lock.
    Busy,
    /// Its line.
    Line(&'static SourceLine),
}

/// The line of the script that has made the current call, if a script has. Frames of mpi4py are
/// none of the script's. Waits for the interpreter's lock only if it `may_wait`.
pub fn script(may_wait: bool) -> Script {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    let Some(python) = *PYTHON.get_or_init(find) else { return Script::None };
    // SAFETY: these two functions may be called at any time. A thread that has no state is none of
    // the interpreter's.
    if unsafe { (python.is_initialized)() == 0 || (python.own_state)().is_none() } {
        return Script::None;
    }
    // SAFETY: this function may be called at any time.
    if !may_wait && unsafe { (python.is_locked)() == 0 } {
        return python.dumped().map_or(Script::Busy, |place| Script::Line(line_of(place)));
    }
    // SAFETY: the interpreter is there, and the lock is given back.
    let place = unsafe {
        let lock = (python.lock)();
        // An exception that is under way stays: a destructor may have made the call.
        let (mut kind, mut value, mut trace) = (None, None, None);
        (python.take_exception)(&raw mut kind, &raw mut value, &raw mut trace);
        let place = python.place();
        (python.put_exception)(kind, value, trace);
        (python.unlock)(lock);
        place
    };
    place.map_or(Script::None, |place| Script::Line(line_of(place)))
}

/// The line of a place. A script has few places of calls, so their lines are kept for good.
fn line_of(place: Place) -> &'static SourceLine {
    static LINES: OnceLock<Mutex<HashMap<Place, &'static SourceLine>>> = OnceLock::new();
    let lines = LINES.get_or_init(Mutex::default);
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    let made = || SourceLine { file: shortened(&place.0), line: place.1, column: 0 };
    lines.entry(place.clone()).or_insert_with(|| Box::leak(Box::new(made())))
}

/// The first place in the frames that `faulthandler` writes that isn't mpi4py's.
fn place_in(frames: &str) -> Option<Place> {
    let mut places = frames.lines().filter_map(|line| {
        let (file, rest) = line.strip_prefix("  File \"")?.rsplit_once("\", line ")?;
        let line = rest.split_whitespace().next()?.parse().ok()?;
        Some((file.to_owned(), line))
    });
    places.find(|(file, _)| !file.contains(MPI4PY))
}

/// A part of the name of each file of mpi4py.
const MPI4PY: &str = "/mpi4py/";

impl Python {
    /// The place of this thread's youngest frame that isn't mpi4py's, without the interpreter's
    /// lock. `None` if it can't be found so.
    fn dumped(&self) -> Option<Place> {
        let dump = self.dump?;
        // A file takes all that is written, where a pipe could be full.
        // SAFETY: a system call. The name ends with a null byte.
        let file = unsafe { libc::memfd_create(c"frames".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return None;
        }
        // SAFETY: the system has just created the descriptor, and no other value owns it.
        let mut file = unsafe { File::from_raw_fd(file) };
        // SAFETY: this function may be called at any time.
        let state = unsafe { (self.own_state)() }?;
        // SAFETY: only this thread changes its own frames, and it doesn't run them meanwhile. The
        // frames keep what the function reads. It takes no lock and allocates nothing, since it is
        // made for handlers of signals.
        unsafe { dump(file.as_raw_fd(), state) };
        let mut frames = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut frames).ok()?;
        place_in(&frames)
    }

    /// The place of the youngest frame that isn't mpi4py's.
    ///
    /// # Safety
    /// The thread holds the interpreter's lock.
    unsafe fn place(&self) -> Option<Place> {
        // SAFETY: the lock is held. The frame is borrowed, and each one that follows is this
        // function's own.
        unsafe {
            let mut frame = (self.frame)()?;
            (self.retain)(frame);
            loop {
                let place = self.place_of(frame);
                let back = (self.back)(frame);
                (self.release)(frame);
                match (place, back) {
                    (Some(place), back) if !place.0.contains(MPI4PY) => {
                        back.into_iter().for_each(|back| (self.release)(back));
                        return Some(place);
                    }
                    (_, back) => frame = back?,
                }
            }
        }
    }

    /// The file and the line of a frame.
    ///
    /// # Safety
    /// The thread holds the interpreter's lock, and `frame` is a frame.
    unsafe fn place_of(&self, frame: Thing) -> Option<Place> {
        // SAFETY: the lock is held, and objects are given back. The text lives as long as its
        // object.
        unsafe {
            let line = u32::try_from((self.line)(frame)).unwrap_or(0);
            let code = (self.code)(frame)?;
            let file = (self.attribute)(code, c"co_filename".as_ptr());
            (self.release)(code);
            let text = file.map_or(std::ptr::null(), |file| (self.text)(file));
            let name = (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into());
            if name.is_none() {
                (self.clear)();
            }
            file.into_iter().for_each(|file| (self.release)(file));
            Some((name?, line))
        }
    }
}

/// The interpreter of this process, if there is one that has all these functions.
fn find() -> Option<Python> {
    fn named<F: Copy>(name: &CStr) -> Option<F> {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        // SAFETY: the name ends with a null byte.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        // SAFETY: `F` is a pointer to a function, of the type that Python documents for the name.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
    }
    Some(Python {
        is_initialized: named(c"Py_IsInitialized")?,
        own_state: named(c"PyGILState_GetThisThreadState")?,
        is_locked: named(c"PyGILState_Check")?,
        lock: named(c"PyGILState_Ensure")?,
        unlock: named(c"PyGILState_Release")?,
        frame: named(c"PyEval_GetFrame")?,
        back: named(c"PyFrame_GetBack")?,
        line: named(c"PyFrame_GetLineNumber")?,
        code: named(c"PyFrame_GetCode")?,
        attribute: named(c"PyObject_GetAttrString")?,
        text: named(c"PyUnicode_AsUTF8")?,
        clear: named(c"PyErr_Clear")?,
        take_exception: named(c"PyErr_Fetch")?,
        put_exception: named(c"PyErr_Restore")?,
        release: named(c"Py_DecRef")?,
        retain: named(c"Py_IncRef")?,
        dump: named(c"_Py_DumpTraceback"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_dump_is_that_of_the_script() {
        let frames = "Stack (most recent call first):\n  File \"/lib/mpi4py/run.py\", line 3 in f\n  \
                      File \"a \", line 1.py\", line 27 in <module>\n";
        assert_eq!(place_in(frames), Some(("a \", line 1.py".to_owned(), 27)));
        assert_eq!(place_in("Stack:\n  File ???, line ??? in ???\n  <no Python frame>\n"), None);
    }
}

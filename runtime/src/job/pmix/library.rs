//! libpmix, loaded at run time: the functions that a client needs, behind a safe surface.
//!
//! Types and constants are those of the PMIx standard's ABI, which is the same in all versions from 3 to 6; their layout is checked
//! against pmix_common.h by the assertions below.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::offset_of;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::os::unix::{Library as Loaded, RTLD_GLOBAL, RTLD_NOW, Symbol};
use longshore_transport::signals;

use crate::job::env;

type Status = c_int;
const SUCCESS: Status = 0;
const NOT_FOUND: Status = -46;
const LOST_CONNECTION: Status = -61;
const ACTION_COMPLETE: Status = -334;

const RANK_WILDCARD: u32 = u32::MAX - 1;
const GLOBAL: u8 = 3;
const BOOL: u16 = 1;
const STRING: u16 = 3;
const UINT32: u16 = 14;

/// pmix_proc_t.
#[repr(C)]
struct Proc {
    namespace: [c_char; 256],
    rank: u32,
}

/// pmix_value_t. Of its union only the members in use; [`Unused`] gives the size.
#[repr(C)]
struct Value {
    kind: u16,
    data: Data,
}

#[repr(C)]
union Data {
    flag: bool,
    string: *mut c_char,
    uint32: u32,
    unused: Unused,
}

/// pmix_envar_t, the largest member.
#[repr(C)]
#[derive(Clone, Copy)]
struct Unused {
    name: *mut c_char,
    value: *mut c_char,
    separator: c_char,
}

/// pmix_info_t.
#[repr(C)]
struct Info {
    key: [c_char; 512],
    flags: u32,
    value: Value,
}

const _: () = {
    let word = size_of::<*const c_void>();
    assert!(size_of::<Proc>() == 260 && size_of::<Value>() == 4 * word);
    assert!(offset_of!(Value, data) == word);
    assert!(offset_of!(Info, value) == if word == 8 { 520 } else { 516 });
};

type Completion =
    Option<unsafe extern "C" fn(Status, *mut Info, usize, *mut c_void, *mut c_void, *mut c_void)>;
type Handler = unsafe extern "C" fn(
    usize,
    Status,
    *const Proc,
    *mut Info,
    usize,
    *mut Info,
    usize,
    Completion,
    *mut c_void,
);

/// The library. It stays loaded: its threads run until the process ends.
pub(super) struct Library {
    init: unsafe extern "C" fn(*mut Proc, *mut Info, usize) -> Status,
    finalize: unsafe extern "C" fn(*const Info, usize) -> Status,
    abort: unsafe extern "C" fn(c_int, *const c_char, *mut Proc, usize) -> Status,
    put: unsafe extern "C" fn(u8, *const c_char, *mut Value) -> Status,
    commit: unsafe extern "C" fn() -> Status,
    fence: unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> Status,
    get: unsafe extern "C" fn(
        *const Proc,
        *const c_char,
        *const Info,
        usize,
        *mut *mut Value,
    ) -> Status,
    watch: unsafe extern "C" fn(
        *mut Status,
        usize,
        *mut Info,
        usize,
        Handler,
        *const c_void,
        *mut c_void,
    ) -> Status,
    describe: unsafe extern "C" fn(Status) -> *const c_char,
}

/// Whether the server is gone. A process has one, whatever libraries load it.
static LOST: AtomicBool = AtomicBool::new(false);

/// Called by the library on a thread of its own, with the one event that is asked for.
unsafe extern "C" fn lost(
    _: usize,
    _: Status,
    _: *const Proc,
    _: *mut Info,
    _: usize,
    _: *mut Info,
    _: usize,
    completion: Completion,
    data: *mut c_void,
) {
    LOST.store(true, Ordering::Relaxed);
    if let Some(completed) = completion {
        // SAFETY: the library's own function, called once with the data that came with it, as the standard has it.
        unsafe {
            completed(ACTION_COMPLETE, ptr::null_mut(), 0, ptr::null_mut(), ptr::null_mut(), data);
        }
    }
}

impl Library {
    /// Loads the first of `places` that there is.
    pub(super) fn load(places: &[PathBuf]) -> io::Result<Library> {
        let mut reasons = Vec::new();
        for place in places {
            // SAFETY: its initializers are those of any shared library, trusted as the launcher is whose environment names it. Its
            // components look for its symbols among the global ones.
            match unsafe { Loaded::open(Some(place), RTLD_NOW | RTLD_GLOBAL) } {
                Ok(loaded) => return Library::of(loaded),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "the launcher speaks PMIx, by libpmix, which can't be loaded ({}); install it (Debian: libpmix2), or name it by {}",
                reasons.join("; "),
                env::PMIX_LIBRARY
            ),
        ))
    }

    fn of(loaded: Loaded) -> io::Result<Library> {
        // SAFETY: each has the standard's signature, as the fields' types say, in every libpmix.
        let library = unsafe {
            Library {
                init: *symbol(&loaded, "PMIx_Init")?,
                finalize: *symbol(&loaded, "PMIx_Finalize")?,
                abort: *symbol(&loaded, "PMIx_Abort")?,
                put: *symbol(&loaded, "PMIx_Put")?,
                commit: *symbol(&loaded, "PMIx_Commit")?,
                fence: *symbol(&loaded, "PMIx_Fence")?,
                get: *symbol(&loaded, "PMIx_Get")?,
                watch: *symbol(&loaded, "PMIx_Register_event_handler")?,
                describe: *symbol(&loaded, "PMIx_Error_string")?,
            }
        };
        std::mem::forget(loaded); // never unloaded, so the functions stay
        Ok(library)
    }

    /// Connects to the server; gives back this process's namespace and rank.
    pub(super) fn init(&self) -> io::Result<(CString, u32)> {
        let mut own = Proc { namespace: [0; 256], rank: 0 };
        // The library starts a thread of its own.
        // SAFETY: `own` is written, and no information is passed.
        let status = signals::blocked(|| unsafe { (self.init)(&mut own, ptr::null_mut(), 0) });
        self.check("PMIx_Init", status)?;
        let mut codes = [LOST_CONNECTION];
        // SAFETY: the codes are copied; with neither callback nor data for it the call is synchronous. `lost` is `'static`.
        let watched = unsafe {
            (self.watch)(
                codes.as_mut_ptr(),
                1,
                ptr::null_mut(),
                0,
                lost,
                ptr::null(),
                ptr::null_mut(),
            )
        };
        // Newer versions return the handler's number, which is no error.
        self.check("PMIx_Register_event_handler", watched.min(SUCCESS))?;
        let bytes: Vec<u8> = own.namespace.iter().map(|&c| c as u8).collect();
        let namespace = CStr::from_bytes_until_nul(&bytes).map_err(io::Error::other)?;
        Ok((namespace.to_owned(), own.rank))
    }

    /// The processes of the job.
    pub(super) fn size(&self, namespace: &CStr) -> io::Result<u32> {
        let value = self.value(namespace, RANK_WILDCARD, c"pmix.job.size")?;
        let wrong = || io::Error::other("PMIx_Get: the launcher doesn't say how large the job is");
        value.as_ref().and_then(Owned::number).ok_or_else(wrong)
    }

    pub(super) fn put(&self, key: &CStr, text: &CStr) -> io::Result<()> {
        let mut value = Value { kind: STRING, data: Data { string: text.as_ptr().cast_mut() } };
        // SAFETY: the library copies key and value, and writes neither.
        self.check("PMIx_Put", unsafe { (self.put)(GLOBAL, key.as_ptr(), &mut value) })
    }

    pub(super) fn fence(&self) -> io::Result<()> {
        // SAFETY: it takes nothing.
        self.check("PMIx_Commit", unsafe { (self.commit)() })?;
        let collect = Info {
            key: characters(c"pmix.collect"),
            flags: 0,
            value: Value { kind: BOOL, data: Data { flag: true } },
        };
        // SAFETY: no list of processes, which means all; one information, read before the call returns.
        self.check("PMIx_Fence", unsafe { (self.fence)(ptr::null(), 0, &collect, 1) })
    }

    /// The text that `rank` put under `key`, if it put one.
    pub(super) fn get(
        &self,
        namespace: &CStr,
        rank: u32,
        key: &CStr,
    ) -> io::Result<Option<String>> {
        let value = self.value(namespace, rank, key)?;
        Ok(value.as_ref().and_then(Owned::text))
    }

    fn value(&self, namespace: &CStr, rank: u32, key: &CStr) -> io::Result<Option<Owned>> {
        let process = Proc { namespace: characters(namespace), rank };
        let mut value = ptr::null_mut();
        // SAFETY: process and key are read, no information is passed, and `value` is written.
        let status = unsafe { (self.get)(&process, key.as_ptr(), ptr::null(), 0, &mut value) };
        match status {
            NOT_FOUND => Ok(None),
            status => {
                self.check("PMIx_Get", status)?;
                Ok(ptr::NonNull::new(value).map(Owned))
            }
        }
    }

    pub(super) fn finalize(&self) -> io::Result<()> {
        // SAFETY: no information is passed.
        self.check("PMIx_Finalize", unsafe { (self.finalize)(ptr::null(), 0) })
    }

    pub(super) fn abort(&self, code: c_int) -> io::Result<()> {
        let message = c"a rank of Longshore's aborted the job";
        // SAFETY: the message is read; no list of processes means all.
        self.check("PMIx_Abort", unsafe {
            (self.abort)(code, message.as_ptr(), ptr::null_mut(), 0)
        })
    }

    pub(super) fn lost(&self) -> bool {
        LOST.load(Ordering::Relaxed)
    }

    fn check(&self, call: &str, status: Status) -> io::Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: it takes any number, and returns a string that lives as long as the library.
        let text = unsafe {
            let text = (self.describe)(status);
            (!text.is_null()).then(|| CStr::from_ptr(text))
        };
        let text = text.unwrap_or_default().to_string_lossy();
        Err(io::Error::other(format!("{call}: {text} ({status})")))
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("libpmix")
    }
}

/// A function of the library.
///
/// # Safety
/// It has to have the type `T`.
unsafe fn symbol<T>(loaded: &Loaded, name: &str) -> io::Result<Symbol<T>> {
    // SAFETY: the caller's promise.
    unsafe { loaded.get(name.as_bytes()) }.map_err(io::Error::other)
}

/// A value that the library allocated, and gave away.
struct Owned(ptr::NonNull<Value>);

impl Owned {
    fn number(&self) -> Option<u32> {
        // SAFETY: the library's, valid until dropped; its kind says which member the union has.
        unsafe {
            let value = self.0.as_ref();
            if value.kind == UINT32 { Some(value.data.uint32) } else { None }
        }
    }

    fn text(&self) -> Option<String> {
        // SAFETY: likewise; a string ends with a zero.
        unsafe {
            let value = self.0.as_ref();
            let string = (value.kind == STRING && !value.data.string.is_null())
                .then(|| CStr::from_ptr(value.data.string));
            string.map(|string| string.to_string_lossy().into_owned())
        }
    }
}

impl Drop for Owned {
    /// What PMIX_VALUE_RELEASE does for the kinds in use here. Of another kind a member may leak.
    fn drop(&mut self) {
        // SAFETY: both were allocated by malloc, belong to us alone, and aren't used afterwards.
        unsafe {
            let value = self.0.as_ptr();
            if (*value).kind == STRING {
                libc::free((*value).data.string.cast());
            }
            libc::free(value.cast());
        }
    }
}

/// A text as an array that zeros fill; one that is too long is cut off.
fn characters<const N: usize>(text: &CStr) -> [c_char; N] {
    let mut characters = [0; N];
    for (character, byte) in characters[..N - 1].iter_mut().zip(text.to_bytes()) {
        *character = *byte as c_char;
    }
    characters
}

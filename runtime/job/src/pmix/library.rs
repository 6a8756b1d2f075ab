//! libpmix, loaded at run time: the functions that a client needs, behind a safe interface.
//!
//! Types and constants are those of the PMIx standard's ABI, which is identical in the versions 3
//! to
//! 6. The assertions below check the layouts against pmix_common.h.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::offset_of;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::os::unix::{Library as Loaded, RTLD_GLOBAL, RTLD_NOW, Symbol};
use longshore_transport::signals;
use zeroize::Zeroize;

use crate::env;

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

/// pmix_value_t. The union has only the members in use; [`Envar`] gives it the size.
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
    envar: Envar,
}

/// pmix_envar_t, the largest member of the union. Its contents are not used.
#[repr(C)]
#[derive(Clone, Copy)]
struct Envar {
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

/// The functions of the library. It stays loaded, because its threads run until the process ends.
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

/// Whether the server has ended. Static, because a process has only one connection to a server.
static LOST: AtomicBool = AtomicBool::new(false);

/// The handler of the only event that is registered, LOST_CONNECTION. The library calls it on a
/// thread of its own.
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
        // SAFETY: the library passed this function for exactly this call, and `data` is the object
        // that it passed with it. The PMIx standard requires one call with these arguments.
        unsafe {
            completed(ACTION_COMPLETE, ptr::null_mut(), 0, ptr::null_mut(), ptr::null_mut(), data);
        }
    }
}

impl Library {
    /// Loads the first of `candidates` that can be loaded.
    pub(super) fn load(candidates: &[PathBuf]) -> io::Result<Library> {
        let mut reasons = Vec::new();
        for candidate in candidates {
            // RTLD_GLOBAL: plugins of libpmix look up its symbols among the global ones.
            // SAFETY: loading runs the library's initializers. The library is libpmix, which comes
            // from the launcher, the system or the user, and is trusted as they are.
            match unsafe { Loaded::open(Some(candidate), RTLD_NOW | RTLD_GLOBAL) } {
                Ok(loaded) => return Library::of(loaded),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "the launcher needs PMIx, by libpmix, which can't be loaded ({}); install it (Debian: libpmix2), or set {} to its path",
                reasons.join("; "),
                env::PMIX_LIBRARY
            ),
        ))
    }

    fn of(loaded: Loaded) -> io::Result<Library> {
        // SAFETY: the type of each field of `Library` is the signature of that function in the PMIx
        // standard.
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
        std::mem::forget(loaded); // never unloaded, so that the functions stay valid
        Ok(library)
    }

    /// Connects to the server. Returns this process's namespace and rank.
    pub(super) fn init(&self) -> io::Result<(CString, u32)> {
        let mut own = Proc { namespace: [0; 256], rank: 0 };
        // Signals are blocked, because the library starts a thread, which must not take the
        // program's. SAFETY: the function writes `own`, which is valid, and takes no information
        // (null, 0).
        let status = signals::blocked(|| unsafe { (self.init)(&mut own, ptr::null_mut(), 0) });
        self.check("PMIx_Init", status)?;
        let mut codes = [LOST_CONNECTION];
        // SAFETY: one valid code is passed, which the library copies, and no information (null, 0).
        // Without a callback (null) the call is synchronous. `lost` is valid for the whole program.
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
        // Newer versions return the handler's number, which is positive and no error.
        self.check("PMIx_Register_event_handler", watched.min(SUCCESS))?;
        let bytes: Vec<u8> = own.namespace.iter().map(|&c| c as u8).collect();
        let namespace = CStr::from_bytes_until_nul(&bytes).map_err(io::Error::other)?;
        Ok((namespace.to_owned(), own.rank))
    }

    /// The number of processes of the job.
    pub(super) fn size(&self, namespace: &CStr) -> io::Result<u32> {
        let value = self.value(namespace, RANK_WILDCARD, c"pmix.job.size")?;
        let wrong = || io::Error::other("PMIx_Get: the launcher doesn't provide pmix.job.size");
        value.as_ref().and_then(Owned::number).ok_or_else(wrong)
    }

    pub(super) fn put(&self, key: &CStr, text: &CStr) -> io::Result<()> {
        let mut value = Value { kind: STRING, data: Data { string: text.as_ptr().cast_mut() } };
        // SAFETY: key and value are valid, and the library copies both and writes to neither.
        self.check("PMIx_Put", unsafe { (self.put)(GLOBAL, key.as_ptr(), &mut value) })
    }

    pub(super) fn fence(&self) -> io::Result<()> {
        // SAFETY: the function takes no arguments.
        self.check("PMIx_Commit", unsafe { (self.commit)() })?;
        let collect = Info {
            key: characters(c"pmix.collect"),
            flags: 0,
            value: Value { kind: BOOL, data: Data { flag: true } },
        };
        // SAFETY: the empty list of processes (null, 0) means all. One information is passed, which
        // lives until the call returns.
        self.check("PMIx_Fence", unsafe { (self.fence)(ptr::null(), 0, &collect, 1) })
    }

    /// The text that `rank` put under `key`, if there is one.
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
        // SAFETY: the function reads `process` and `key`, which are valid, takes no information
        // (null, 0), and writes `value`.
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
        // SAFETY: no information is passed (null, 0).
        self.check("PMIx_Finalize", unsafe { (self.finalize)(ptr::null(), 0) })
    }

    pub(super) fn abort(&self, code: c_int) -> io::Result<()> {
        let message = c"a rank of Longshore's aborted the job";
        // SAFETY: the message is static. The empty list of processes (null, 0) means all.
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
        // SAFETY: the function takes any number. It returns null or a string that lives as long as
        // the library, which is never unloaded.
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

/// The function `name` of the library.
///
/// # Safety
/// The function must have the type `T`.
unsafe fn symbol<T>(loaded: &Loaded, name: &str) -> io::Result<Symbol<T>> {
    // SAFETY: the caller promises that `T` is the function's type.
    unsafe { loaded.get(name.as_bytes()) }.map_err(io::Error::other)
}

/// A value that the library allocated and whose ownership it passed to this process.
struct Owned(ptr::NonNull<Value>);

impl Owned {
    fn number(&self) -> Option<u32> {
        // SAFETY: PMIx_Get returned the pointer, and the value is valid until `drop`. The member
        // `uint32` is read only if `kind` says that the union contains it.
        unsafe {
            let value = self.0.as_ref();
            if value.kind == UINT32 { Some(value.data.uint32) } else { None }
        }
    }

    fn text(&self) -> Option<String> {
        // SAFETY: PMIx_Get returned the pointer, and the value is valid until `drop`. The member
        // `string` is read only if `kind` says that the union contains it; it is null or ends with
        // a zero byte.
        unsafe {
            let value = self.0.as_ref();
            let string = (value.kind == STRING && !value.data.string.is_null())
                .then(|| CStr::from_ptr(value.data.string));
            string.map(|string| string.to_string_lossy().into_owned())
        }
    }
}

impl Drop for Owned {
    /// Frees the value as PMIX_VALUE_RELEASE does for the kinds in use here. The members of other
    /// kinds leak. A string is overwritten first, because it may be the job's secret.
    fn drop(&mut self) {
        // SAFETY: the library allocated value and string by malloc and passed their ownership to
        // this object. Neither is used after the drop. The string is null or ends with a zero byte.
        unsafe {
            let value = self.0.as_ptr();
            if (*value).kind == STRING {
                let string = (*value).data.string;
                if !string.is_null() {
                    let length = CStr::from_ptr(string).to_bytes().len();
                    std::slice::from_raw_parts_mut(string, length).zeroize();
                }
                libc::free(string.cast());
            }
            libc::free(value.cast());
        }
    }
}

/// A text as an array, padded with zeros. A text that is too long is truncated.
fn characters<const N: usize>(text: &CStr) -> [c_char; N] {
    let mut characters = [0; N];
    for (character, byte) in characters[..N - 1].iter_mut().zip(text.to_bytes()) {
        *character = *byte as c_char;
    }
    characters
}

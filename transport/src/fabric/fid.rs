//! The objects of libfabric (`fid`s) as owned values, and the errors of the calls that make them.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::error::CallError;
use super::ffi as fi;
use super::library::Library;

/// An object of libfabric, closed when dropped.
pub(super) struct Fid<T>(NonNull<T>);

// SAFETY: the domain is opened FI_THREAD_SAFE, so any thread may use its objects at any time.
unsafe impl<T> Send for Fid<T> {}
// SAFETY: the domain is opened FI_THREAD_SAFE, so any thread may use its objects at any time.
unsafe impl<T> Sync for Fid<T> {}

impl<T> Fid<T> {
    pub(super) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// The object's first member, a `fid`, which all objects have.
    pub(super) fn fid(&self) -> *mut fi::fid {
        self.0.as_ptr().cast()
    }
}

impl<T> Drop for Fid<T> {
    fn drop(&mut self) {
        // SAFETY: the object is open, and owned. Its owners drop dependent objects first, by the
        // order of their fields.
        let status = unsafe { fi::fi_close(self.fid()) };
        debug_assert_eq!(status, 0, "an object that depends on it is still open");
    }
}

/// Makes the errors of one provider.
#[derive(Debug, Clone)]
pub(super) struct Blame {
    pub(super) library: Library,
    pub(super) provider: String,
}

impl Blame {
    pub(super) fn new(library: Library, provider: &str) -> Blame {
        Blame { library, provider: provider.to_owned() }
    }

    pub(super) fn error(&self, call: &'static str, code: i32) -> CallError {
        let why = self.library.strerror(code);
        CallError { provider: self.provider.clone(), call, peer: None, code, why }
    }

    /// The object that a call made, or its error.
    pub(super) fn made<T>(
        &self,
        call: &'static str,
        status: i32,
        object: *mut T,
    ) -> Result<Fid<T>, CallError> {
        self.done(call, status as isize)?;
        NonNull::new(object).map(Fid).ok_or_else(|| self.error(call, libc::EINVAL))
    }

    pub(super) fn done(&self, call: &'static str, status: isize) -> Result<(), CallError> {
        if status < 0 { Err(self.error(call, -status as i32)) } else { Ok(()) }
    }
}

//! The objects of libfabric (`fid`s) as owned values, and the errors of the calls that make them.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr::NonNull;

use libfabric_sys::bindgen as fi;

use super::error::CallError;

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

/// The text of libfabric for an error number.
fn strerror(code: i32) -> String {
    // SAFETY: fi_strerror returns a static string for every number.
    unsafe { CStr::from_ptr(fi::fi_strerror(code)) }.to_string_lossy().into_owned()
}

/// Makes the errors of one provider.
#[derive(Debug, Clone)]
pub(super) struct Blame(pub String);

impl Blame {
    pub(super) fn error(&self, call: &'static str, code: i32) -> CallError {
        CallError { provider: self.0.clone(), call, peer: None, code, why: strerror(code) }
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

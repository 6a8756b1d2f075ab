//! Copies between the memory of a view and bytes of the caller.
#![allow(unsafe_code)]

use super::copy_run;
use crate::memory::{OutOfBounds, View, ViewMut};

impl View<'_> {
    /// Copies memory, from `displacement` on, to `bytes`.
    pub fn read(&self, displacement: i64, bytes: &mut [u8]) -> Result<(), OutOfBounds> {
        self.covers_bytes(displacement, bytes.len())?;
        // SAFETY: the source bytes are covered, hence readable: the view's constructor promised it;
        // `bytes` is exclusively borrowed.
        unsafe { copy_run(self.at(displacement), bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
}

impl ViewMut<'_> {
    /// Copies memory, from `displacement` on, to `bytes`.
    pub fn read(&self, displacement: i64, bytes: &mut [u8]) -> Result<(), OutOfBounds> {
        self.as_view().read(displacement, bytes)
    }

    /// Copies `bytes` to the memory, from `displacement` on.
    pub fn write(&mut self, displacement: i64, bytes: &[u8]) -> Result<(), OutOfBounds> {
        self.covers_bytes(displacement, bytes.len())?;
        // SAFETY: the destination bytes are covered, hence writable: the view's constructor
        // promised it; `bytes` is readable.
        unsafe { copy_run(bytes.as_ptr(), self.at(displacement), bytes.len()) };
        Ok(())
    }
}

//! Copies of elements, for sends that go on after their call.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use longshore::{Class, Destination, Given, Pointed};

use crate::edge::elements::Elements;
use crate::edge::fault::{Fault, Result};
use crate::edge::state;

/// A copy of the elements of a call.
pub struct Copied {
    start: NonNull<u8>,
    layout: Layout,
    /// The place of displacement 0.
    place: *mut u8,
    /// The number of their bytes without gaps.
    bytes: i64,
}

// SAFETY: the memory is its own, and its addresses are used only for what the sends read.
unsafe impl Send for Copied {}

impl Copied {
    /// Copies elements, with the gaps that their type has.
    pub fn of(elements: Elements<&longshore::Type>) -> Result<Copied> {
        let Elements { count, datatype, .. } = elements;
        let alone = state::state()?.rank().alone();
        let mut packed = vec![0; alone.pack_size(count, datatype)? as usize];
        alone.pack(elements.origin()?, &mut packed, &mut 0)?;
        let reach = datatype.reach(count)?;
        let too_long = || {
            let what = format!("there is no memory for a copy of {count} elements");
            Fault::new(Class::NoMem, what)
        };
        // No memory has no address.
        let len = reach.end.checked_sub(reach.start).and_then(|len| usize::try_from(len).ok());
        let len = len.ok_or_else(too_long)?.max(1);
        let layout = Layout::from_size_align(len, 16).map_err(|_| too_long())?;
        // SAFETY: the layout has a size.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(too_long)?;
        let place = memory.as_ptr().wrapping_offset(-(reach.start as isize));
        let copy = Copied { start: memory, layout, place, bytes: packed.len() as i64 };
        // SAFETY: the memory has the bytes of all elements, from the first one on, and nobody else
        // knows it yet.
        let room = unsafe { Destination::raw(place, count, datatype) };
        alone.unpack(&packed, &mut 0, room)?;
        Ok(copy)
    }

    /// The number of bytes of the elements without gaps.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// The elements, for a send that this value outlives.
    pub fn given(&self, count: i64, datatype: &longshore::Type) -> Given<Pointed> {
        // SAFETY: the memory is initialized and stays until this value is dropped, before which
        // its holders drop the send. Nobody writes it.
        unsafe { Given::raw(self.place, count, datatype) }
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

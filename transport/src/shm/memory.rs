//! The memory of a ring, mapped from the segment.
#![allow(unsafe_code)]

use crate::Mapping;
use crate::ring::{Access, BULK_AT, Control, Header, Memory, Position, SLOTS, SLOTS_AT, Slot};

/// A mapped ring.
#[derive(Debug)]
pub(crate) struct RingMapping {
    mapping: Mapping,
    bulk_len: u64,
}

impl RingMapping {
    /// The ring in `mapping`, which has at least [`crate::ring::footprint`] bytes for `bulk_len`.
    pub(crate) fn new(mapping: Mapping, bulk_len: u32) -> Self {
        assert!(mapping.len() as u64 >= crate::ring::footprint(bulk_len));
        Self { mapping, bulk_len: u64::from(bulk_len) }
    }

    #[inline]
    fn slot(&self, index: usize) -> *mut Slot {
        assert!(index < SLOTS as usize);
        // SAFETY: in bounds, by the assertions here and in `new`.
        unsafe { self.mapping.as_ptr().add(SLOTS_AT).cast::<Slot>().add(index) }
    }
}

// SAFETY: the mapping holds all three parts, as `new` checked, and they don't overlap.
unsafe impl Memory for RingMapping {
    #[inline]
    fn control(&self) -> &Control {
        // SAFETY: in bounds; aligned, because mappings start on pages; only atomics. The mapping
        // outlives the borrow.
        unsafe { &*self.mapping.as_ptr().cast() }
    }

    #[inline]
    fn header(&self, slot: usize) -> &Header {
        // SAFETY: in bounds and aligned, as `slot` ensures. The borrow covers only the header, not
        // the bytes beside it, and the mapping outlives the borrow.
        unsafe { &(*self.slot(slot)).header }
    }

    #[inline]
    fn bulk_len(&self) -> u64 {
        self.bulk_len
    }

    #[inline]
    fn bytes(&self, position: Position, _: Access) -> *mut u8 {
        match position {
            // SAFETY: in bounds, as `slot` ensures; no reference is made.
            Position::Slot(index) => unsafe { (&raw mut (*self.slot(index)).inline).cast() },
            Position::Bulk(start) => {
                assert!((start as u64) < self.bulk_len);
                // SAFETY: in bounds, by the assertions here and in `new`.
                unsafe { self.mapping.as_ptr().add(BULK_AT + start) }
            }
        }
    }
}

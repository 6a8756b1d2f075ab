//! Memory of the segment for windows that are created over it.

use std::sync::Arc;

use crate::error::Result;
use crate::memory::Placed;
use crate::process::Process;
use crate::window::create::place;

/// Memory that [`Rank::alloc_mem`](crate::Rank::alloc_mem) allocated, until it is dropped.
pub struct Allocation {
    placed: Arc<Placed>,
    len: usize,
}

impl Allocation {
    pub(crate) fn new(process: &Process, len: usize) -> Result<Allocation> {
        Ok(Allocation { placed: place(process, len as u64)?, len })
    }

    /// The address of the first byte, a multiple of 64. All bytes are zero at first.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let memory = rank.alloc_mem(100)?;
    /// assert!(memory.start().addr() % 64 == 0 && memory.len() == 100 && !memory.is_empty());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn start(&self) -> *mut u8 {
        self.placed.span().start()
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

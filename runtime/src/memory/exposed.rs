//! The memory of windows, of any owner and in any place, and its registration with the network.
#![allow(unsafe_code)]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use longshore_transport::{Mapping, Rdma, Registration};
use nix::sys::mman::{MmapAdvise, madvise};
use nix::unistd::{SysconfVar, sysconf};

use super::held::Memory;
use super::span::Span;
use crate::error::Result;

/// A window's memory, kept alive as long as this value exists.
pub(crate) struct Exposed {
    span: Span,
    owner: Owner,
}

enum Owner {
    Segment {
        mapping: Arc<Mapping>,
    },
    User(Box<dyn Any + Send>),
    /// Memories that follow each other.
    Joined {
        _all: Vec<Arc<Exposed>>,
    },
    /// The user's memory, which is an allocation in the segment, and what keeps that.
    Placed {
        held: Box<dyn Any + Send>,
        _keeper: Arc<dyn Any + Send + Sync>,
    },
    /// The user's memory, while its bytes are in a part of the segment.
    Moved {
        _mapping: Arc<Mapping>,
        held: Box<dyn Any + Send>,
        home: Span,
    },
}

impl Exposed {
    /// `len` bytes of a mapping of the segment, from byte `start` on; fewer if the mapping ends
    /// before.
    pub(crate) fn allocated(mapping: Mapping, start: u64, len: u64) -> Exposed {
        let start = start.min(mapping.len() as u64);
        let len = len.min(mapping.len() as u64 - start);
        // At most one byte past the end of the mapping.
        let first = mapping.as_ptr().wrapping_add(start as usize);
        let span = Span { start: first, len, origin: 0 };
        Exposed { span, owner: Owner::Segment { mapping: Arc::new(mapping) } }
    }

    /// `len` bytes of memory in the segment, from byte `start` on; `None` if the memory ends
    /// before. The result keeps the whole mapping alive.
    pub(crate) fn part(&self, start: u64, len: u64) -> Option<Exposed> {
        let Owner::Segment { mapping } = &self.owner else { return None };
        if start > self.span.len || len > self.span.len - start {
            return None;
        }
        // At most one byte past the end of the mapping.
        let first = self.span.start.wrapping_add(start as usize);
        let owner = Owner::Segment { mapping: mapping.clone() };
        Some(Exposed { span: Span { start: first, len, origin: 0 }, owner })
    }

    /// Memories of which each begins where the one before it ends. `None` if they don't.
    pub(crate) fn joined(all: Vec<Arc<Exposed>>) -> Option<Exposed> {
        let follows = |pair: &[Arc<Exposed>]| {
            let [before, after] = [pair[0].span, pair[1].span];
            before.start.wrapping_add(before.len as usize) == after.start
        };
        let first = all.first()?.span;
        let len = all.iter().try_fold(0u64, |sum, next| sum.checked_add(next.span.len))?;
        let span = Span { len, ..first };
        all.windows(2).all(follows).then_some(Exposed { span, owner: Owner::Joined { _all: all } })
    }

    /// The user's memory.
    ///
    /// # Errors
    /// This machine can't represent the elements.
    pub(crate) fn created<M: Memory>(memory: M) -> Result<Exposed> {
        let mut held = memory.hold()?;
        let span = M::span_of(&mut held).0;
        Ok(Exposed { span, owner: Owner::User(Box::new(held)) })
    }

    /// Memory in the segment that belongs to `keeper`.
    pub(crate) fn kept(span: Span, keeper: Arc<dyn Any + Send + Sync>) -> Exposed {
        Exposed { span, owner: Owner::Placed { held: Box::new(()), _keeper: keeper } }
    }

    /// Keeps the allocation that the user's memory is.
    pub(crate) fn placed_in(self, keeper: Arc<dyn Any + Send + Sync>) -> Exposed {
        let owner = match self.owner {
            Owner::User(held) => Owner::Placed { held, _keeper: keeper },
            owner => owner,
        };
        Exposed { owner, ..self }
    }

    /// Moves the bytes of the user's memory to `room`, a part of the segment of at least its
    /// length, until they are [moved back](Exposed::moved_back). The user's allocation keeps its
    /// addresses, and gives nearly all of its pages back to the system.
    pub(crate) fn moved_to(self, room: Exposed) -> Exposed {
        let (home, len) = (self.span, self.span.len);
        match (self.owner, room.owner) {
            (Owner::User(held), Owner::Segment { mapping }) if len <= room.span.len => {
                let span = Span { len, ..room.span };
                span.copy_run(0, home, 0, len);
                home.discard();
                Exposed { span, owner: Owner::Moved { _mapping: mapping, held, home } }
            }
            (owner, _) => Exposed { owner, ..self },
        }
    }

    /// Moves the bytes back to the user's allocation. Nobody may access the memory through its span
    /// any more.
    pub(crate) fn moved_back(self) -> Exposed {
        match self.owner {
            Owner::Moved { _mapping, held, home } => {
                home.copy_run(0, self.span, 0, home.len);
                Exposed { span: home, owner: Owner::User(held) }
            }
            owner => Exposed { owner, ..self },
        }
    }

    /// Returns the user's memory. `None` if it has another type, or if its bytes are in the
    /// segment.
    pub(crate) fn give_back<M: Memory>(self) -> Option<M> {
        match self.owner {
            Owner::User(held) | Owner::Placed { held, .. } => {
                held.downcast::<M::Held>().ok().map(|held| M::give_back(*held))
            }
            Owner::Segment { .. } | Owner::Moved { .. } | Owner::Joined { .. } => None,
        }
    }

    /// The user's allocation: the addresses that the program knows. It must not be accessed while
    /// its bytes are in the segment.
    pub(crate) fn home(&self) -> Span {
        match self.owner {
            Owner::Moved { home, .. } => home,
            Owner::Segment { .. }
            | Owner::User(_)
            | Owner::Placed { .. }
            | Owner::Joined { .. } => self.span,
        }
    }

    /// The memory's span. Its holder must keep this value too.
    #[inline]
    pub(crate) fn span(&self) -> Span {
        self.span
    }
}

// SAFETY: its fields are `Send`, and a shared reference gives only a copy of the span.
unsafe impl Sync for Exposed {}

/// The bytes from an address to the first whole page after it, and those of the whole pages of a
/// memory of `len` bytes there.
fn whole_pages(start: u64, len: u64) -> (u64, u64) {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(1 << 16) as u64;
    let skip = (page - start % page) % page;
    let rest = len.saturating_sub(skip);
    (skip, rest - rest % page)
}

impl Span {
    /// Returns the whole pages of the span to the system, if it is long enough to be worth a call.
    /// Their contents are lost.
    fn discard(self) {
        const WORTH: u64 = 1 << 20;
        if self.len < WORTH {
            return;
        }
        let (skip, pages) = whole_pages(self.start.addr() as u64, self.len);
        if let Some(start) = NonNull::new(self.start.wrapping_add(skip as usize).cast()) {
            // SAFETY: these are whole pages within the span. Its holder has the only access to it
            // and no longer needs its contents. The pages stay mapped; if the system refuses, they
            // keep their contents.
            let _ = unsafe { madvise(start, pages as usize, MmapAdvise::MADV_DONTNEED) };
        }
    }
}

/// Memory that ranks of other hosts access directly until this is dropped. The fields are dropped
/// in order, so the registration ends before the memory.
pub(crate) struct Registered {
    registration: Box<dyn Registration>,
    _memory: Arc<Exposed>,
}

impl Registered {
    /// Registers all of a window's memory, if it has any.
    ///
    /// # Errors
    /// The network refuses it.
    pub(crate) fn new(memory: &Arc<Exposed>, rdma: &dyn Rdma) -> Result<Option<Registered>> {
        let (span, memory) = (memory.span(), memory.clone());
        let (Some(start), Ok(len @ 1..)) = (NonNull::new(span.start), usize::try_from(span.len))
        else {
            return Ok(None);
        };
        // SAFETY: exposed memory stays in place as long as it is held, and the fields' order makes
        // that longer than the registration. It is accessed only through spans, so there is no
        // reference to it.
        let registration = unsafe { rdma.expose(start, len)? };
        Ok(Some(Registered { registration, _memory: memory }))
    }

    /// The key by which peers name the registered memory.
    pub(crate) fn key(&self) -> u64 {
        self.registration.key()
    }
}

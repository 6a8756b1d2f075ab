//! The memory of windows, whoever owns it and wherever its bytes are, and its registration with the network.
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

/// The memory of a window, held for as long as anything refers to it.
pub(crate) struct Exposed {
    span: Span,
    owner: Owner,
}

enum Owner {
    Segment {
        mapping: Arc<Mapping>,
    },
    User(Box<dyn Any + Send>),
    /// The user's, whose bytes are in a part of the segment for the time being.
    Moved {
        _mapping: Arc<Mapping>,
        held: Box<dyn Any + Send>,
        home: Span,
    },
}

impl Exposed {
    /// `len` bytes of what is mapped of the segment, from byte `start` on; fewer where that hasn't got them.
    pub(crate) fn allocated(mapping: Mapping, start: u64, len: u64) -> Exposed {
        let start = start.min(mapping.len() as u64);
        let len = len.min(mapping.len() as u64 - start);
        // No further than one past the end of what is mapped.
        let first = mapping.as_ptr().wrapping_add(start as usize);
        let span = Span { start: first, len, origin: 0 };
        Exposed { span, owner: Owner::Segment { mapping: Arc::new(mapping) } }
    }

    /// `len` bytes of a part of the segment, from byte `start` on, which keep all of it; `None` where it hasn't got them.
    pub(crate) fn part(&self, start: u64, len: u64) -> Option<Exposed> {
        let Owner::Segment { mapping } = &self.owner else { return None };
        if start > self.span.len || len > self.span.len - start {
            return None;
        }
        // No further than one past the end of what is mapped.
        let first = self.span.start.wrapping_add(start as usize);
        let owner = Owner::Segment { mapping: mapping.clone() };
        Some(Exposed { span: Span { start: first, len, origin: 0 }, owner })
    }

    /// Memory of the user.
    ///
    /// # Errors
    /// Elements that this machine can't represent.
    pub(crate) fn created<M: Memory>(memory: M) -> Result<Exposed> {
        let mut held = memory.hold()?;
        let span = M::place(&mut held).0;
        Ok(Exposed { span, owner: Owner::User(Box::new(held)) })
    }

    /// Memory of the user, its bytes moved to a part of the segment, which is as long at least, until they are
    /// [moved back](Exposed::moved_back). What held them keeps its addresses, and hardly any memory.
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

    /// The same memory where the user had it. Nobody reaches it any more.
    pub(crate) fn moved_back(self) -> Exposed {
        match self.owner {
            Owner::Moved { _mapping, held, home } => {
                home.copy_run(0, self.span, 0, home.len);
                Exposed { span: home, owner: Owner::User(held) }
            }
            owner => Exposed { owner, ..self },
        }
    }

    /// The user's memory back; `None` if it is of another type, or elsewhere.
    pub(crate) fn give_back<M: Memory>(self) -> Option<M> {
        match self.owner {
            Owner::User(held) => held.downcast::<M::Held>().ok().map(|held| M::give_back(*held)),
            Owner::Segment { .. } | Owner::Moved { .. } => None,
        }
    }

    /// Where the user had it: its addresses to the program. Not to be reached while its bytes are elsewhere.
    pub(crate) fn home(&self) -> Span {
        match self.owner {
            Owner::Moved { home, .. } => home,
            Owner::Segment { .. } | Owner::User(_) => self.span,
        }
    }

    /// The memory. Whoever keeps the span keeps this too.
    #[inline]
    pub(crate) fn span(&self) -> Span {
        self.span
    }
}

// SAFETY: what it owns is `Send`, and through a shared reference it gives a span and nothing else.
unsafe impl Sync for Exposed {}

impl Span {
    /// Gives the pages behind it back to the system, as far as it has whole ones: what they hold is lost.
    fn discard(self) {
        const WORTH: u64 = 1 << 20;
        if self.len < WORTH {
            return;
        }
        let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(1 << 16) as usize;
        let skip = self.start.align_offset(page);
        let pages = (self.len as usize).saturating_sub(skip) / page;
        if let Some(start) = NonNull::new(self.start.wrapping_add(skip).cast()) {
            // SAFETY: whole pages within the span, whose holder has the only access to it and is done with what it holds. They
            // stay mapped; where the system refuses, they stay as they are.
            let _ = unsafe { madvise(start, pages * page, MmapAdvise::MADV_DONTNEED) };
        }
    }
}

/// Memory that ranks of other hosts access directly until this is dropped. Fields are dropped in their order.
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
        // SAFETY: what is exposed stays where it is as long as it is held, which is longer than the registration, and is
        // reached by spans alone: nobody has a reference to it.
        let registration = unsafe { rdma.expose(start, len)? };
        Ok(Some(Registered { registration, _memory: memory }))
    }

    /// What peers name it by.
    pub(crate) fn key(&self) -> u64 {
        self.registration.key()
    }
}

//! The completion queue, in which libfabric reports completed operations.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::ptr;

use super::error::CallError;
use super::ffi as fi;
use super::fid::{Blame, Fid};

/// The number of operations under way that fit the queue at once. The provider tcp lets it grow.
const ROOM: usize = 4096;

/// The number of completions to read at a time.
const BATCH: usize = 16;

/// A completion queue.
pub(super) struct Queue {
    queue: Fid<fi::fid_cq>,
    blame: Blame,
}

/// A completed operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawCompletion {
    /// The context that was passed to the operation.
    pub context: usize,
    /// Whether it was a receive.
    pub received: bool,
    /// The number of received bytes.
    pub len: usize,
    /// The error number of libfabric, if the operation failed.
    pub failed: Option<i32>,
}

impl Queue {
    /// Opens a completion queue for the endpoints of a domain. The domain outlives the queue.
    ///
    /// # Errors
    /// The provider refuses it.
    pub(super) fn open(domain: &Fid<fi::fid_domain>, blame: &Blame) -> Result<Queue, CallError> {
        let mut attributes = fi::fi_cq_attr {
            size: ROOM,
            format: fi::FI_CQ_FORMAT_MSG,
            wait_obj: fi::FI_WAIT_FD,
            ..Default::default()
        };
        let mut queue = ptr::null_mut();
        // SAFETY: the domain is open, the attributes outlive the call, and the new queue is owned
        // from its return on.
        let status = unsafe {
            fi::fi_cq_open(domain.as_ptr(), &mut attributes, &mut queue, ptr::null_mut())
        };
        let queue = blame.made("fi_cq_open", status, queue)?;
        Ok(Queue { queue, blame: blame.clone() })
    }

    /// The queue's object, to which endpoints are bound.
    pub(super) fn fid(&self) -> *mut fi::fid {
        self.queue.fid()
    }

    /// Passes some completions to `take`. Returns whether there were any.
    ///
    /// # Errors
    /// The queue itself failed.
    pub(super) fn read(&self, mut take: impl FnMut(RawCompletion)) -> Result<bool, CallError> {
        let mut entries = [fi::fi_cq_msg_entry::default(); BATCH];
        let received = |flags: u64| flags & fi::FI_RECV != 0;
        // SAFETY: the buffer holds BATCH entries of the queue's format.
        let status =
            unsafe { fi::fi_cq_read(self.queue.as_ptr(), entries.as_mut_ptr().cast(), BATCH) };
        match status {
            count @ 0.. => {
                for entry in &entries[..(count as usize).min(BATCH)] {
                    let (context, received) = (entry.op_context as usize, received(entry.flags));
                    take(RawCompletion { context, received, len: entry.len, failed: None });
                }
                Ok(count > 0)
            }
            status if status as i32 == -libc::EAGAIN => Ok(false),
            status if status as i32 == -fi::FI_EAVAIL => {
                let mut entry = fi::fi_cq_err_entry::default();
                // SAFETY: the entry outlives the call; it offers no buffer for provider data.
                let status = unsafe { fi::fi_cq_readerr(self.queue.as_ptr(), &mut entry, 0) };
                if status <= 0 {
                    return Ok(false);
                }
                let (context, received) = (entry.op_context as usize, received(entry.flags));
                take(RawCompletion { context, received, len: 0, failed: Some(entry.err) });
                Ok(true)
            }
            status => Err(self.blame.error("fi_cq_read", -status as i32)),
        }
    }

    /// The descriptor that becomes readable when an operation may have completed.
    ///
    /// # Errors
    /// The provider has none.
    pub(super) fn descriptor(&self) -> Result<RawFd, CallError> {
        descriptor(&self.queue, &self.blame)
    }

    /// Whether a sleep on the descriptors is safe: neither this queue nor `events`, if given, has
    /// an entry already. All are of `fabric`.
    pub(super) fn may_wait(
        &self,
        fabric: &Fid<fi::fid_fabric>,
        events: Option<&Fid<fi::fid_eq>>,
    ) -> bool {
        let mut queues = [self.fid(), events.map_or(ptr::null_mut(), Fid::fid)];
        let count = 1 + i32::from(events.is_some());
        // SAFETY: the first `count` elements of the array are open queues, opened with FI_WAIT_FD.
        unsafe { fi::fi_trywait(fabric.as_ptr(), queues.as_mut_ptr(), count) == 0 }
    }
}

/// The descriptor of a queue that was opened with FI_WAIT_FD.
pub(super) fn descriptor<T>(queue: &Fid<T>, blame: &Blame) -> Result<RawFd, CallError> {
    let mut descriptor: RawFd = -1;
    // SAFETY: the queue is open. For FI_GETWAIT on such a queue the argument is a place for a
    // descriptor; other objects refuse it.
    let status = unsafe {
        let place = ptr::from_mut(&mut descriptor).cast();
        fi::fi_control(queue.fid(), fi::FI_GETWAIT, place)
    };
    blame.done("fi_control", status as isize).map(|()| descriptor)
}

//! The operations that are issued in an epoch, by scope or by pointer.
//!
//! Calls by pointer are unsafe: their memory must stay until they are complete.
#![allow(unsafe_code)]

use longshore::{Epoch, Op, Passive, Raw, Result, TargetType, Type};

use super::data::Data;

/// The target of operations: its window, slots and datatype.
#[derive(Clone, Copy)]
pub struct Target<'t> {
    /// The target's rank.
    pub rank: i32,
    /// The displacement of the first slot, in bytes.
    pub first: i64,
    /// Bytes from one slot to the next.
    pub slot_size: i64,
    /// Elements of one operation.
    pub count: i64,
    /// The type of one element.
    pub datatype: TargetType<'t>,
}

impl Target<'_> {
    #[inline]
    fn at(&self, slot: usize) -> i64 {
        self.first + self.slot_size * slot as i64
    }
}

/// An operation, issued once for each slot. Accumulates have one slot.
pub trait Operation {
    /// Issues the operation in an epoch, whose end completes it.
    fn issue<'scope, 'env: 'scope>(
        &'env mut self,
        epoch: &Epoch<'scope, 'env>,
        slots: usize,
    ) -> Result<()>;

    /// Issues the operation, and waits for its local and remote completion.
    #[inline]
    fn flush(&mut self, epoch: &Passive<'_, '_>, target: i32, slots: usize) -> Result<()> {
        epoch.flush(target, move |epoch| self.issue(epoch, slots))
    }

    /// Issues the operation by pointer, with elements of `own` at the origin, and waits for its
    /// local and remote completion. An epoch to the target is open.
    fn flush_pointer(&mut self, calls: Raw<'_>, own: &Type, slots: usize) -> Result<()>;

    /// Issues the operation once by pointer, with elements of `own` at the origin, and raises a
    /// counter at the target. An epoch to the target is open. Its memory stays until a flush.
    fn notify_pointer(&mut self, calls: Raw<'_>, own: &Type) -> Result<()> {
        self.flush_pointer(calls, own, 1)
    }

    /// Issues the operation by pointer, and waits until the origin has the fetched number. An
    /// operation that fetches none waits for its flush.
    fn fetch_pointer(&mut self, calls: Raw<'_>, own: &Type) -> Result<()> {
        self.flush_pointer(calls, own, 1)
    }

    /// The memory to which the operation fetches. Empty if it fetches nothing to memory.
    fn results(&mut self) -> &mut [u8] {
        &mut []
    }

    /// The number that the operation fetched, if it fetches a single number.
    fn fetched(&self) -> Option<i64> {
        None
    }
}

/// No operation: for benches of synchronisation, and for a rank that is only a target.
pub struct Nothing {
    /// The rank to synchronise with.
    pub target: i32,
}

impl Operation for Nothing {
    #[inline]
    fn issue<'scope, 'env: 'scope>(
        &'env mut self,
        _: &Epoch<'scope, 'env>,
        _: usize,
    ) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn flush_pointer(&mut self, calls: Raw<'_>, _: &Type, _: usize) -> Result<()> {
        calls.flush(self.target)
    }

    #[inline]
    fn fetch_pointer(&mut self, calls: Raw<'_>, _: &Type) -> Result<()> {
        calls.flush_local(self.target)
    }
}

/// A put.
pub struct Put<'t, 'd, D> {
    /// The target of the operation.
    pub target: Target<'t>,
    /// The data at the origin, or the target of a get.
    pub data: &'d mut D,
}

impl<D: Data> Operation for Put<'_, '_, D> {
    #[inline]
    fn issue<'scope, 'env: 'scope>(
        &'env mut self,
        epoch: &Epoch<'scope, 'env>,
        slots: usize,
    ) -> Result<()> {
        let Target { rank, first, count, datatype, .. } = self.target;
        if slots == 1 {
            return epoch.put(self.data.single_origin(), rank, first, count, datatype);
        }
        for slot in 0..slots {
            epoch.put(self.data.origin(slot), rank, self.target.at(slot), count, datatype)?;
        }
        Ok(())
    }

    #[inline]
    fn flush_pointer(&mut self, calls: Raw<'_>, own: &Type, slots: usize) -> Result<()> {
        let Target { rank, count, datatype, .. } = self.target;
        for slot in 0..slots {
            let (from, at) = (self.data.pointer(slot), self.target.at(slot));
            // SAFETY: the slot has the elements, and stays as it is until the flush has returned.
            unsafe { calls.put(from, count, own, rank, at, count, datatype)? };
        }
        calls.flush(rank)
    }

    #[inline]
    fn notify_pointer(&mut self, calls: Raw<'_>, own: &Type) -> Result<()> {
        let Target { rank, first, count, datatype, .. } = self.target;
        let from = self.data.pointer(0);
        // SAFETY: the slot has the elements, and stays as it is until a flush has returned.
        unsafe { calls.put_notify(from, count, own, rank, first, count, datatype, 0) }
    }
}

/// A get.
pub struct Get<'t, 'd, D> {
    /// The data at the origin, or the target of a get.
    pub target: Target<'t>,
    /// The target of the operation.
    pub results: &'d mut D,
}

impl<D: Data> Operation for Get<'_, '_, D> {
    #[inline]
    fn issue<'scope, 'env: 'scope>(
        &'env mut self,
        epoch: &Epoch<'scope, 'env>,
        slots: usize,
    ) -> Result<()> {
        let target = self.target;
        let Target { rank, first, count, datatype, .. } = target;
        if slots == 1 {
            return epoch.get(self.results.single_destination(), rank, first, count, datatype);
        }
        for (slot, destination) in self.results.destinations().take(slots).enumerate() {
            epoch.get(destination, rank, target.at(slot), count, datatype)?;
        }
        Ok(())
    }

    #[inline]
    fn flush_pointer(&mut self, calls: Raw<'_>, own: &Type, slots: usize) -> Result<()> {
        let Target { rank, count, datatype, .. } = self.target;
        for slot in 0..slots {
            let (to, at) = (self.results.pointer(slot), self.target.at(slot));
            // SAFETY: the slot has room for the elements, and nothing else uses it until the flush
            // has returned.
            unsafe { calls.get(to, count, own, rank, at, count, datatype)? };
        }
        calls.flush(rank)
    }

    #[inline]
    fn notify_pointer(&mut self, calls: Raw<'_>, own: &Type) -> Result<()> {
        let Target { rank, first, count, datatype, .. } = self.target;
        let to = self.results.pointer(0);
        // SAFETY: the slot has room for the elements, and nothing else uses it until a flush has
        // returned.
        unsafe { calls.get_notify(to, count, own, rank, first, count, datatype, 0) }
    }

    fn results(&mut self) -> &mut [u8] {
        self.results.bytes_mut()
    }
}

/// An accumulate with `MPI_SUM`.
pub struct Accumulate<'t, 'd, D> {
    /// The target of the operation.
    pub target: Target<'t>,
    /// The operands.
    pub data: &'d mut D,
}

impl<D: Data> Operation for Accumulate<'_, '_, D> {
    #[inline]
    fn issue<'scope, 'env: 'scope>(
        &'env mut self,
        epoch: &Epoch<'scope, 'env>,
        _: usize,
    ) -> Result<()> {
        let Target { rank, first, count, datatype, .. } = self.target;
        epoch.accumulate(self.data.single_origin(), rank, first, count, datatype, Op::Sum)
    }

    #[inline]
    fn flush_pointer(&mut self, calls: Raw<'_>, own: &Type, _: usize) -> Result<()> {
        let Target { rank, first, count, datatype, .. } = self.target;
        let from = self.data.pointer(0);
        // SAFETY: the slot has the elements, and stays as it is until the flush has returned.
        unsafe { calls.accumulate(from, count, own, rank, first, count, datatype, Op::Sum)? };
        calls.flush(rank)
    }

    #[inline]
    fn notify_pointer(&mut self, calls: Raw<'_>, own: &Type) -> Result<()> {
        let Target { rank, first, count, datatype, .. } = self.target;
        let (from, op) = (self.data.pointer(0), Op::Sum);
        // SAFETY: the slot has the elements, and stays as it is until a flush has returned.
        unsafe { calls.accumulate_notify(from, count, own, rank, first, count, datatype, op, 0) }
    }
}

/// A get_accumulate with `MPI_SUM`.
pub struct GetAccumulate<'t, 'd, D> {
    /// The target of the operation.
    pub target: Target<'t>,
    /// The operands.
    pub data: &'d mut D,
    /// The target's data before the operation.
    pub results: &'d mut D,
}

impl<D: Data> Operation for GetAccumulate<'_, '_, D> {
    #[inline]
    fn issue<'scope, 'env: 'scope>(
        &'env mut self,
        epoch: &Epoch<'scope, 'env>,
        _: usize,
    ) -> Result<()> {
        let Target { rank, first, count, datatype, .. } = self.target;
        let (operands, results) = (self.data.single_origin(), self.results.single_destination());
        epoch.get_accumulate(operands, results, rank, first, count, datatype, Op::Sum)
    }

    #[inline]
    fn flush_pointer(&mut self, calls: Raw<'_>, own: &Type, _: usize) -> Result<()> {
        let Target { rank, first, count, datatype, .. } = self.target;
        let from = (self.data.pointer(0).cast_const(), count, own);
        let to = (self.results.pointer(0), count, own);
        // SAFETY: both slots have the elements. The operands stay as they are, and nothing else
        // uses the results, until the flush has returned.
        unsafe { calls.get_accumulate(from, to, rank, first, count, datatype, Op::Sum)? };
        calls.flush(rank)
    }

    #[inline]
    fn notify_pointer(&mut self, calls: Raw<'_>, own: &Type) -> Result<()> {
        let Target { rank, first, count, datatype, .. } = self.target;
        let from = (self.data.pointer(0).cast_const(), count, own);
        let (to, op) = ((self.results.pointer(0), count, own), Op::Sum);
        // SAFETY: both slots have the elements. The operands stay as they are, and nothing else
        // uses the results, until a flush has returned.
        unsafe { calls.get_accumulate_notify(from, to, rank, first, count, datatype, op, 0) }
    }

    fn results(&mut self) -> &mut [u8] {
        self.results.bytes_mut()
    }
}

/// Implements an operation that fetches one number. A macro, because a closure for the call is slow
/// (docs/tuning.md, "Origins passed unconverted in the benches").
macro_rules! fetches {
    (
        $operation:ident: |$self:ident, $epoch:ident| $call:expr,
        |$raw:ident, $own:ident| $pointer:expr
    ) => {
        impl $operation<'_> {
            #[inline]
            fn call(&mut $self, $epoch: &Epoch<'_, '_>) -> Result<()> {
                $self.fetched = $call?.wait()?;
                Ok(())
            }
        }

        impl Operation for $operation<'_> {
            #[inline]
            fn issue<'scope, 'env: 'scope>(
                &'env mut self,
                epoch: &Epoch<'scope, 'env>,
                _: usize,
            ) -> Result<()> {
                self.call(epoch)
            }

            /// The operation is complete when the number has arrived, so there is no flush.
            #[inline]
            fn flush(&mut self, epoch: &Passive<'_, '_>, _: i32, _: usize) -> Result<()> {
                self.call(epoch)
            }

            #[inline]
            fn flush_pointer(&mut $self, $raw: Raw<'_>, $own: &Type, _: usize) -> Result<()> {
                // SAFETY: the numbers stay where they are until the flush has returned.
                unsafe { $pointer? };
                $raw.flush($self.target.rank)
            }

            #[inline]
            fn fetch_pointer(&mut $self, $raw: Raw<'_>, $own: &Type) -> Result<()> {
                // SAFETY: the numbers stay where they are until the flush has returned, and nothing
                // else is in flight.
                unsafe { $pointer? };
                $raw.flush_local($self.target.rank)
            }

            fn fetched(&self) -> Option<i64> {
                Some(self.fetched)
            }
        }
    };
}

/// A fetch_and_op: adds to a number.
pub struct FetchAndOp<'t> {
    /// The target of the operation.
    pub target: Target<'t>,
    /// The number that is added.
    pub operand: i64,
    /// The target's data before the operation.
    pub fetched: i64,
}

fetches!(FetchAndOp: |self, epoch| {
    epoch.fetch_and_op(self.operand, self.target.rank, self.target.first, Op::Sum)
}, |calls, own| {
    let (from, to) = ((&raw const self.operand).cast(), (&raw mut self.fetched).cast());
    calls.fetch_and_op(from, to, own, self.target.rank, self.target.first, Op::Sum)
});

/// A compare_and_swap.
pub struct CompareAndSwap<'t> {
    /// The target of the operation.
    pub target: Target<'t>,
    /// The new number.
    pub new: i64,
    /// The number that the target must have.
    pub compare: i64,
    /// The target's data before the operation.
    pub fetched: i64,
}

fetches!(CompareAndSwap: |self, epoch| {
    epoch.compare_and_swap(self.new, self.compare, self.target.rank, self.target.first)
}, |calls, own| {
    let [new, compare] = [&raw const self.new, &raw const self.compare].map(|at| at.cast());
    let to = (&raw mut self.fetched).cast();
    calls.compare_and_swap(new, compare, to, own, self.target.rank, self.target.first)
});

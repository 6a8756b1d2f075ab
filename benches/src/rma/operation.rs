//! What is issued in an epoch.

use longshore::{Epoch, Op, Passive, Result, TargetType};

use super::data::Data;

/// Where operations go, and as what.
#[derive(Clone, Copy)]
pub struct Target<'t> {
    /// Whose window.
    pub rank: i32,
    /// The displacement of its first slot, in bytes.
    pub first: i64,
    /// Bytes from one of its slots to the next.
    pub slot_size: i64,
    /// Elements of an operation.
    pub count: i64,
    /// The type of one.
    pub datatype: TargetType<'t>,
}

impl Target<'_> {
    #[inline]
    fn at(&self, slot: usize) -> i64 {
        self.first + self.slot_size * slot as i64
    }
}

/// An operation, issued once to each of so many slots; accumulates have one.
pub trait Operation {
    /// Issues it in an epoch, whose end completes it.
    fn issue<'scope, 'env: 'scope>(
        &'env mut self,
        epoch: &Epoch<'scope, 'env>,
        slots: usize,
    ) -> Result<()>;

    /// Issues it, and waits until it is done here and there.
    #[inline]
    fn flush(&mut self, epoch: &Passive<'_, '_>, target: i32, slots: usize) -> Result<()> {
        epoch.flush(target, move |epoch| self.issue(epoch, slots))
    }

    /// The memory to which it fetches; empty if it doesn't.
    fn results(&mut self) -> &mut [u8] {
        &mut []
    }

    /// The number that it fetched, if it is one.
    fn fetched(&self) -> Option<i64> {
        None
    }
}

/// None: the synchronisation alone, or the part of a rank that is only a target.
pub struct Nothing;

impl Operation for Nothing {
    #[inline]
    fn issue<'scope, 'env: 'scope>(
        &'env mut self,
        _: &Epoch<'scope, 'env>,
        _: usize,
    ) -> Result<()> {
        Ok(())
    }
}

/// A put.
pub struct Put<'t, 'd, D> {
    /// To where.
    pub target: Target<'t>,
    /// From where.
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
}

/// A get.
pub struct Get<'t, 'd, D> {
    /// From where.
    pub target: Target<'t>,
    /// To where.
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

    fn results(&mut self) -> &mut [u8] {
        self.results.bytes_mut()
    }
}

/// An accumulate: a sum.
pub struct Accumulate<'t, 'd, D> {
    /// To where.
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
}

/// A get_accumulate: a sum.
pub struct GetAccumulate<'t, 'd, D> {
    /// To where.
    pub target: Target<'t>,
    /// The operands.
    pub data: &'d mut D,
    /// What was there before.
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

    fn results(&mut self) -> &mut [u8] {
        self.results.bytes_mut()
    }
}

/// An operation on one number, which its call fetches. (A closure for the call costs half as much as the operation.)
macro_rules! fetches {
    ($operation:ident: |$self:ident, $epoch:ident| $call:expr) => {
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

            /// It is done when the number has come.
            #[inline]
            fn flush(&mut self, epoch: &Passive<'_, '_>, _: i32, _: usize) -> Result<()> {
                self.call(epoch)
            }

            fn fetched(&self) -> Option<i64> {
                Some(self.fetched)
            }
        }
    };
}

/// A fetch_and_op: adds to a number.
pub struct FetchAndOp<'t> {
    /// Where the number is.
    pub target: Target<'t>,
    /// What is added.
    pub operand: i64,
    /// What was there before.
    pub fetched: i64,
}

fetches!(FetchAndOp: |self, epoch| {
    epoch.fetch_and_op(self.operand, self.target.rank, self.target.first, Op::Sum)
});

/// A compare_and_swap.
pub struct CompareAndSwap<'t> {
    /// Where the number is.
    pub target: Target<'t>,
    /// What is put there,
    pub new: i64,
    /// if this is there.
    pub compare: i64,
    /// What was there before.
    pub fetched: i64,
}

fetches!(CompareAndSwap: |self, epoch| {
    epoch.compare_and_swap(self.new, self.compare, self.target.rank, self.target.first)
});

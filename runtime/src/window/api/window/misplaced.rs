//! Operations called on a window instead of on an epoch of it. They don't compile, and the compiler
//! says where they are.

use crate::error::Result;
use crate::window::Window;

/// What an object that operations are called on has: an open epoch. No window is one.
#[diagnostic::on_unimplemented(
    message = "operations are methods of an epoch, not of a window",
    label = "called outside of an epoch",
    note = "call it within one: `window.fence(|epoch| epoch.put(...))`, or by `lock`, `lock_all` or \
            `start`; flushes are methods of an epoch of `lock` or `lock_all`",
    note = "`window.raw()` has MPI's calls one by one, with pointers; `window.get` and `window.set` \
            access this rank's own memory"
)]
pub trait HasEpoch {
    /// Never called, since nothing implements it.
    fn never(&self) -> Result<()>;
}

/// Declares methods that no window has, with the number of arguments that the epoch's have.
macro_rules! misplaced {
    ($($name:ident($($argument:ident: $kind:ident),*);)*) => {
        impl<M> Window<M> {
            $(
                /// A method of an epoch; on a window it doesn't compile.
                #[doc(hidden)]
                #[allow(clippy::too_many_arguments)]
                pub fn $name<$($kind),*>(&self, $($argument: $kind),*) -> Result<()>
                where
                    Window<M>: HasEpoch,
                {
                    let _ = ($($argument,)*);
                    HasEpoch::never(self)
                }
            )*
        }
    };
}

misplaced! {
    put(origin: O, target: R, target_disp: D, target_count: C, target_type: T);
    rput(origin: O, target: R, target_disp: D, target_count: C, target_type: T);
    rget(destination: O, target: R, target_disp: D, target_count: C, target_type: T);
    accumulate(origin: O, target: R, target_disp: D, target_count: C, target_type: T, op: P);
    get_accumulate(origin: O, result: S, target: R, target_disp: D, target_count: C, target_type: T, op: P);
    raccumulate(origin: O, target: R, target_disp: D, target_count: C, target_type: T, op: P);
    rget_accumulate(origin: O, result: S, target: R, target_disp: D, target_count: C, target_type: T, op: P);
    fetch_and_op(operand: O, target: R, target_disp: D, op: P);
    compare_and_swap(new: O, compare: S, target: R, target_disp: D);
    flush(target: R, body: B);
    flush_all(body: B);
    flush_local(target: R, body: B);
    flush_local_all(body: B);
}

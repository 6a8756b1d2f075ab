//! Puts and gets to a target of which only a part is reached directly. A long one that begins or
//! ends outside of that part is divided, so that only the elements there go by message.

use super::super::peers::Target;
use super::fast::base;
use crate::origin::What;
use crate::types::TargetType;

/// The shortest part, in bytes, that is worth a message more.
const LONG: i64 = 32 << 10;

/// The numbers of elements before the part that is reached directly, in it, and after it. `None`
/// for an operation that isn't divided: it isn't long, or goes one way as a whole, or isn't one run
/// of elements on both sides.
pub(in crate::window) fn divide(
    target: &Target,
    what: &What<'_>,
    displacement: i64,
    count: i64,
    target_type: TargetType<'_>,
) -> Option<[i64; 3]> {
    let TargetType::Own(own) = target_type else { return None };
    let (elements, size) = (u64::try_from(count).ok()?, own.extent());
    let is_typed = matches!(what, What::Typed { .. });
    if !is_typed || size <= 0 || count.checked_mul(size)? < LONG {
        return None;
    }
    let compiled = own.compiled();
    let is_run = compiled.native().contiguous(elements) == Some(0);
    // Each part begins at a displacement of its own.
    let is_whole = size % i64::from(target.measures.unit) == 0;
    if !is_run || !is_whole || !what.is_plain(elements, compiled) {
        return None;
    }
    let begin = base(target, displacement)?;
    let end = begin.checked_add(count.checked_mul(size)?)?;
    if end.unsigned_abs() > target.measures.size {
        return None;
    }
    let (start, end) = target.edges.between(target.measures.size);
    let before = (start as i64 - begin).max(0).checked_add(size - 1)? / size;
    let within = (end as i64 - begin).max(0) / size;
    let (before, within) = (before.min(count), within.min(count));
    let is_worth = within > before && (within - before).checked_mul(size)? >= LONG;
    (is_worth && (before > 0 || within < count)).then_some([
        before,
        within - before,
        count - within,
    ])
}

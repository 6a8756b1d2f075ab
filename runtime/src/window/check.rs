//! The rules of an operation. Each is checked here, once, before the operation touches a byte.

use std::borrow::Cow;
use std::sync::Arc;

use shipable::reduce::{Op, check_swap};
use shipable::{Leaf, Signature, Tag};

use super::access::Permit;
use super::call::{Action, Call};
use super::near::Side;
use super::operation::{Checked, Holders, Operand, Operation};
use super::parts::Parts;
use super::peers::Target;
use crate::engine::{Policy, check_counter, reach};
use crate::error::{Error, ErrorKind, Result, excerpt, locale_target, type_excerpt};
use crate::memory::Keeper;
use crate::origin::Elementwise;
use crate::sequence::{Items, differ};
use crate::types::{Compiled, TargetType};

/// Checks an operation on a target for which the epoch gave its permit. In this order:
///
/// 1. the count isn't negative (rule 27), and the window has the counter to raise (rule 31);
/// 2. the target type is a type of this rank that is right at the target (T1, T2 and T4; T3 is the
///    type system's, since no origin is a foreign type);
/// 3. an operation on one element has a predefined type (rule 21);
/// 4. the elements lie in their memory (rules 18 and 27), have the target's signature (rule 19),
///    and write no byte of the result twice (rule 20);
/// 5. the target's elements lie in its window (rules 14 and 29), which bounds the cost of step 6;
/// 6. no byte of the target is written twice (rule 20);
/// 7. all items of an accumulate are of one predefined type, on which the operation is defined
///    (rule 21).
///
/// The rules about types and counts in steps 4, 6 and 7 aren't checked again where the memo has
/// `settled` them: it holds the type of step 7.
pub(super) fn check<'a>(
    parts: &Parts,
    permit: Permit<'a>,
    target: &'a Target,
    operation: &Operation<'a>,
    holders: Holders,
    settled: Option<Option<Leaf>>,
) -> Result<Checked<'a>> {
    let Call { action, at: displacement, target_type, .. } = operation.call;
    let count =
        u64::try_from(operation.call.count).map_err(|_| ErrorKind::Count(operation.call.count))?;
    let notifications = parts.peers().control().notifications();
    let notify =
        operation.call.notify.map(|index| check_counter(index, notifications)).transpose()?;
    check_target_type(parts, target_type, target)?;
    if action.is_single() {
        check_single(operation)?;
    }
    let (slice, picks_members) = operation.moved().map_or((None, false), |side| {
        let elements = parts.process().elements();
        (side.what.slice(), side.what.picks_members(elements))
    });
    let resolve = |(side, keeper): (Side<'_>, Keeper)| -> Result<Operand> {
        let elements = side.what.resolve(parts.process(), side.span)?;
        if settled.is_none() {
            check_signatures(parts, target, &elements, target_type, count)?;
        }
        Ok(Operand { elements, keeper })
    };
    let room = |side: (Side<'_>, Keeper)| -> Result<Operand> {
        let room = resolve(side)?;
        if settled.is_none() {
            room.elements.check_disjoint()?;
        }
        Ok(room)
    };
    // An atomic get ignores its origin (MPI-5.0 section 12.3.4).
    let origin = operation.sides.origin.filter(|_| !action.is_atomic_get());
    let origin = origin.map(|side| resolve((side, holders.origin))).transpose()?;
    let result = operation.sides.result.map(|side| room((side, holders.result))).transpose()?;
    let bounds = target_type.bounds_on(&target.architecture)?;
    let reach = reach(target.measures, displacement, count, &bounds, &target.architecture)?;
    let leaf = match settled {
        Some(leaf) => leaf,
        None => {
            if action != Action::Get && target_type.overlaps(count)? {
                let datatype = excerpt(&target_type);
                return Err(ErrorKind::Overlap { count: operation.call.count, datatype }.into());
            }
            check_items(action, (count, target_type), origin.as_ref(), result.as_ref())?
        }
    };
    let (base, bytes) = (reach.base, reach.bytes);
    Ok(Checked {
        action,
        target,
        permit,
        displacement,
        count,
        target_type,
        base,
        bytes,
        origin,
        result,
        compare: operation.sides.compare.map(|side| side.span),
        leaf,
        slice,
        picks_members,
        notify,
    })
}

/// Rules T1, T2 and T4.
fn check_target_type(parts: &Parts, target_type: TargetType<'_>, target: &Target) -> Result<()> {
    target_type.check_rank(parts.process().names())?;
    match target_type {
        TargetType::Foreign(foreign) if foreign.builder() != target.peer => {
            Err(ErrorKind::ForeignTarget {
                datatype: excerpt(foreign),
                builder: foreign.builder(),
                target: target.peer,
            }
            .into())
        }
        TargetType::Own(own) if own.tag() == Tag::Locale => {
            let there = &target.architecture;
            let difference = own.compiled().difference(there)?;
            let hint = match (parts.policy(), difference) {
                (Policy::SameLayout, None) => return Ok(()),
                (Policy::SameLayout, Some(difference)) => {
                    let here = own.compiled().committed().architecture().label();
                    let text = difference.text(&here, &there.label());
                    Cow::Owned(format!(
                        "; that the window allows same_layout doesn't help here: {text}"
                    ))
                }
                (Policy::Strict, None) => {
                    ", or create the window with target_types=same_layout, since the target's layout of this type is the same".into()
                }
                (Policy::Strict, Some(_)) => "".into(),
            };
            Err(locale_target(own.datatype(), own.form(), hint).into())
        }
        _ => Ok(()),
    }
}

/// Rule 21 for fetch_and_op and compare_and_swap: the element is of a predefined type.
fn check_single(operation: &Operation<'_>) -> Result<()> {
    let TargetType::Own(own) = operation.call.target_type else { return Ok(()) };
    let compiled = own.compiled();
    let is_predefined = compiled.single_leaf().is_some_and(|leaf| {
        // A predefined type lies at displacement 0; a constructor may have moved its item.
        let moved = compiled.native().contiguous(1).is_some_and(|first| first != 0);
        Signature::of_leaf(leaf) == own.signature() && !moved && compiled.is_portable()
    });
    match is_predefined {
        true => Ok(()),
        false => {
            let datatype = type_excerpt(own.datatype());
            Err(ErrorKind::NotPredefined { call: operation.call.action.call(), datatype }.into())
        }
    }
}

/// Rule 19. In a window that allows the same layout, sequences of equal length in bytes match if
/// all items have the same bytes at both ranks: nothing is converted.
fn check_signatures(
    parts: &Parts,
    target: &Target,
    elements: &Elementwise,
    target_type: TargetType<'_>,
    count: u64,
) -> Result<()> {
    let Elementwise { datatype, count: origin_count, .. } = elements;
    if let TargetType::Own(own) = target_type {
        if Arc::ptr_eq(own.compiled(), datatype) && count == *origin_count {
            return Ok(());
        }
    }
    let here = datatype.signature().repeat(*origin_count);
    let there = target_type.signature().repeat(count);
    if here.is_some() && here == there {
        return Ok(());
    }
    let there = &target.architecture;
    let is_copied = || -> Result<bool> {
        Ok(match target_type {
            _ if target.alike => true,
            TargetType::Own(own) => {
                own.compiled().has_same_items(there) && datatype.has_same_items(there)
            }
            // Its builder's memory has the items of the target type, which this rank may not.
            TargetType::Foreign(foreign) => {
                let here = &parts.process().me().architecture;
                datatype.has_same_items(there) && foreign.form().has_same_items(here, there)?
            }
        })
    };
    if parts.policy() == Policy::SameLayout && is_copied()? {
        let bytes = |size: i64, count: u64| u64::try_from(size).ok()?.checked_mul(count);
        let here = bytes(datatype.bounds().size, *origin_count);
        let there = bytes(target_type.bounds_on(there)?.size, count);
        if here.is_some() && here == there {
            return Ok(());
        }
    }
    let here = Items { count: *origin_count, form: datatype.form(), text: &**datatype };
    let there = Items { count, form: target_type.form(), text: &target_type };
    Err(differ(&here, &there).into())
}

/// Rule 21: the one predefined type of the items of all sides. `None` for puts and gets, and where
/// there are no items.
fn check_items(
    action: Action,
    (count, target_type): (u64, TargetType<'_>),
    origin: Option<&Operand>,
    result: Option<&Operand>,
) -> Result<Option<Leaf>> {
    if action.moves() {
        return Ok(None);
    }
    if action == Action::Accumulate(Op::NoOp) {
        return Err(ErrorKind::NoOp.into());
    }
    // The signatures match, so that the other sides have no items either.
    if count == 0 || target_type.signature().count == 0 {
        return Ok(None);
    }
    let pairs = matches!(action.op(), Some(Op::Maxloc | Op::Minloc));
    let mixed = |datatype: String, role| -> Error {
        ErrorKind::MixedTypes { datatype, role, pairs }.into()
    };
    let leaf = target_type.single_leaf();
    let leaf = leaf.ok_or_else(|| mixed(excerpt(&target_type), "target"))?;
    for (role, side) in [("origin", origin), ("result", result)] {
        let Some(side) = side else { continue };
        let datatype: &Arc<Compiled> = &side.elements.datatype;
        let found = datatype.single_leaf().ok_or_else(|| mixed(excerpt(datatype), role))?;
        if found != leaf {
            let datatype = excerpt(datatype);
            let (found, wanted) = (found.to_string(), leaf.to_string());
            return Err(ErrorKind::OtherType { datatype, found, wanted }.into());
        }
    }
    match action.op() {
        Some(op) => op.check(leaf)?,
        None => check_swap(leaf)?,
    }
    Ok(Some(leaf))
}

//! Operations on one element at a time, in any representation.
//!
//! They serve types for which the machine has no instructions. For all other types, they define the
//! results that the loops must give.

use std::cmp::Ordering;

use super::Op;
use crate::arch::{Scalar, Value};
use crate::convert::{MAX_SIZE, image_of, load, load_float, store, store_float};
use crate::float::arithmetic;

/// The longest packed element: a complex number with two 16-byte parts.
pub(super) const LONGEST: usize = 2 * MAX_SIZE;

/// An operation on elements of one scalar, or of two: the parts of a complex number, or the value
/// and the index of a pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Software {
    pub op: Op,
    pub first: Scalar,
    pub second: Option<Scalar>,
    pub complex: bool,
}

impl Software {
    /// Combines an operand with the value at the target.
    pub(super) fn combine(&self, operand: &[u8], current: &mut [u8]) {
        let Some(second) = self.second else {
            return scalar(self.op, self.first, operand, current);
        };
        let part = usize::from(self.first.size);
        match self.op {
            Op::Maxloc | Op::Minloc => {
                let ((value, index), (held, held_index)) =
                    (operand.split_at(part), current.split_at(part));
                let wanted = if self.op == Op::Maxloc { Ordering::Greater } else { Ordering::Less };
                let better = match compare(self.first, value, held) {
                    Some(Ordering::Equal) => {
                        compare(second, index, held_index) == Some(Ordering::Less)
                    }
                    ordering => ordering == Some(wanted),
                };
                if better {
                    current.copy_from_slice(operand);
                }
            }
            Op::Prod if self.complex => self.product(operand, current),
            _ => {
                let (held, held_second) = current.split_at_mut(part);
                scalar(self.op, self.first, &operand[..part], held);
                scalar(self.op, second, &operand[part..], held_second);
            }
        }
    }

    fn product(&self, operand: &[u8], current: &mut [u8]) {
        let Value::Float(format) = self.first.value else { return };
        let part = usize::from(self.first.size);
        let image = |bytes: &[u8]| load_float(self.first, format, bytes);
        let (a, b) = (image(&current[..part]), image(&current[part..]));
        let (c, d) = (image(&operand[..part]), image(&operand[part..]));
        let times = |x, y| arithmetic::multiply(format, x, y);
        let real = arithmetic::subtract(format, times(a, c), times(b, d));
        let imaginary = arithmetic::add(format, times(a, d), times(b, c));
        store_float(real, self.first, format, &mut current[..part]);
        store_float(imaginary, self.first, format, &mut current[part..]);
    }
}

/// Combines one scalar. An operation that isn't defined on it changes nothing, but [`Op::check`]
/// refuses these.
fn scalar(op: Op, kind: Scalar, operand: &[u8], current: &mut [u8]) {
    let is_true = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0);
    let result = match op {
        Op::Max | Op::Min => {
            let wanted = if op == Op::Max { Ordering::Greater } else { Ordering::Less };
            if compare(kind, current, operand) != Some(wanted) {
                current.copy_from_slice(operand);
            }
            return;
        }
        Op::Land | Op::Lor | Op::Lxor => {
            let (a, b) = (is_true(operand), is_true(current));
            let result = match op {
                Op::Land => a && b,
                Op::Lor => a || b,
                _ => a != b,
            };
            match kind.value {
                _ if !result => 0,
                Value::Logical { truth } => image_of(truth, kind.size),
                _ => 1,
            }
        }
        Op::Band | Op::Bor | Op::Bxor => {
            for (current, operand) in current.iter_mut().zip(operand) {
                *current = match op {
                    Op::Band => *current & operand,
                    Op::Bor => *current | operand,
                    _ => *current ^ operand,
                };
            }
            return;
        }
        Op::Sum | Op::Prod => {
            if let Value::Float(format) = kind.value {
                let (a, b) = (load_float(kind, format, current), load_float(kind, format, operand));
                let result = match op {
                    Op::Sum => arithmetic::add(format, a, b),
                    _ => arithmetic::multiply(format, a, b),
                };
                return store_float(result, kind, format, current);
            }
            // The bits above the scalar's size may be wrong. The store drops them.
            let (a, b) = (load(kind.order, current), load(kind.order, operand));
            if op == Op::Sum { a.wrapping_add(b) } else { a.wrapping_mul(b) }
        }
        Op::Maxloc | Op::Minloc | Op::Replace | Op::NoOp => return,
    };
    store(result, kind.order, current);
}

/// The order of two values. `None` if either is a NaN.
fn compare(kind: Scalar, a: &[u8], b: &[u8]) -> Option<Ordering> {
    match kind.value {
        Value::Float(format) => {
            let image = |bytes| load_float(kind, format, bytes);
            arithmetic::compare(format, image(a), image(b))
        }
        Value::Int { signed: true } => {
            let above = 128 - 8 * u32::from(kind.size);
            let value = |bytes| (load(kind.order, bytes) << above) as i128;
            Some(value(a).cmp(&value(b)))
        }
        _ => Some(load(kind.order, a).cmp(&load(kind.order, b))),
    }
}

/// Whether two values are equal. Logicals are equal if both are true or both are false.
pub(super) fn equal(kind: Scalar, a: &[u8], b: &[u8]) -> bool {
    let is_true = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0);
    match kind.value {
        Value::Logical { .. } => is_true(a) == is_true(b),
        _ => a == b,
    }
}

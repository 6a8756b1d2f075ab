//! Fortran's default kinds, as this machine's compiler has them.

use super::basic;
use super::c::{numbers, truth};
use crate::arch::Architecture;

numbers! {
    /// `INTEGER`.
    Integer(i32) => Integer;
    /// `REAL`.
    Real(f32) => Real;
    /// `DOUBLE PRECISION`.
    DoublePrecision(f64) => DoublePrecision;
    /// `CHARACTER`.
    Character(u8) => Character;
}

/// `LOGICAL`, of which any bits are a value: all but 0 read as true.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Logical(u32);

truth! { Logical: Architecture::NATIVE.fortran().truth as u32 }

/// `COMPLEX`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Complex {
    pub re: f32,
    pub im: f32,
}

/// `DOUBLE COMPLEX`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct DoubleComplex {
    pub re: f64,
    pub im: f64,
}

basic! {
    Logical => Logical;
    Complex => Complex;
    DoubleComplex => DoubleComplex;
}

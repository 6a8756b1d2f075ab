//! The default kinds of this machine's Fortran compiler.

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

/// `LOGICAL`. Any bits are a valid value: 0 reads as false, any other as true.
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

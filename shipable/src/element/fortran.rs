//! The default kinds of this machine's Fortran compiler.

use super::basic;
use super::c::{numbers, pairs, truth};
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

pairs! {
    /// Two elements of `REAL`: MPI_2REAL. The index is a number as well.
    #[derive(Default, PartialEq)]
    TwoReal(f32, f32) => TwoReal;
    /// Two elements of `DOUBLE PRECISION`: MPI_2DOUBLE_PRECISION. The index is a number as well.
    #[derive(Default, PartialEq)]
    TwoDoublePrecision(f64, f64) => TwoDoublePrecision;
    /// Two elements of `INTEGER`: MPI_2INTEGER.
    #[derive(Default, PartialEq)]
    TwoInteger(i32, i32) => TwoInteger;
}

basic! {
    Logical => Logical;
    Complex => Complex;
    DoubleComplex => DoubleComplex;
}

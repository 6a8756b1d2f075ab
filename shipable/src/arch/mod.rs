//! Architectures: how one machine represents each basic type, as a value.

mod scalar;

pub use scalar::{ByteOrder, Component, FloatFormat, LeafLayout, Scalar, Value};

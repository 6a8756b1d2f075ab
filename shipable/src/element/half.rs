//! The crate half's numbers of 16 bits, which MPI doesn't define: feature `half`.
#![allow(unsafe_code)]

use half::{bf16, f16};

use super::basic;

basic! {
    f16 => Float16;
    bf16 => Bfloat16;
}

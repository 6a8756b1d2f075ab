//! The edge between C and Rust: what every function of the interface needs, below all objects.
//!
//! | file | holds |
//! |---|---|
//! | [`raw`], [`handle`] | the value that a program has for an object; the slots behind these values |
//! | [`constants`], [`status`] | the numbers and the structures that `mpi.h` defines |
//! | [`arg`] | arguments as a program passes them: checks and conversions by kind |
//! | [`elements`] | the elements that a call describes by several arguments, as one value |
//! | [`fault`] | the error of a call, before it is raised |
//! | [`state`], [`turn`], [`lock`] | the process's rank; whose turn an object is; locks |
//! | [`line`], [`python`], [`source`] | the program's line of a call, in C and in Python |
//! | [`loads`] | loads and stores of a program that was compiled for `--check` |
//! | [`made`] | the program's line that made each object, under `--check` |
//!
//! A function gets values of these types, and no pointer: `arg` takes over the promises of a
//! program about its memory. Nothing here knows a class of objects; a slot holds any.

pub(crate) mod arg;
pub(crate) mod constants;
pub(crate) mod elements;
pub(crate) mod fault;
pub(crate) mod handle;
pub(crate) mod line;
mod loads;
pub(crate) mod lock;
pub(crate) mod made;
pub(crate) mod python;
pub(crate) mod raw;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod turn;

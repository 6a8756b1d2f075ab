//! `libmpi_abi.so.1`: MPI-5.0's standard ABI on Longshore (MPI-5.0 chapter 20).
//!
//! ```text
//!   program in C ─► exports     made from functions.table: 662 functions, as MPI_ and PMPI_
//!                      │
//!                     arg        checks and conversions of arguments, by their kinds
//!                     call       when a call is allowed, and where its error goes
//!                      │
//!                   modules      a function for each of the table, on objects behind handles
//!                      │
//!                  longshore     all communication
//! ```
//!
//! The functions of a line of the table get their arguments checked and converted: handles as the
//! objects behind them, counts of both versions as i64, pointers as the types of `arg`. They
//! return their results, or a `Fault`.
//!
//! A folder has a chapter of MPI, and the header of its `mod.rs` is a map of it. Each line of this
//! list uses only lines below it:
//!
//! | folder or file | holds |
//! |---|---|
//! | `exports` | the exported functions |
//! | `call` | the frame of a call, and the quick ways around it |
//! | `environment`; `attribute` | start, end and sessions; functions for keyvals and attributes |
//! | `window`; `file`; `collective` | one-sided communication; files; collective calls |
//! | `message` | messages between two processes |
//! | `request` | operations under way |
//! | `operation` | operations of reductions |
//! | `datatype`; `topology` | types of data; grids and graphs |
//! | `communicator` | communicators and groups |
//! | `objects` | what all objects have: names, attributes, error handlers, infos |
//! | `edge` | handles, arguments, constants, the process's state, source lines |

mod call;
mod collective;
mod communicator;
mod datatype;
mod edge;
mod environment;
mod exports;
mod file;
mod message;
mod objects;
mod request;
mod topology;
mod window;

mod attribute;
mod operation;

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

mod arg;
mod arguments;
mod call;
mod constants;
mod exports;
mod fault;
mod handle;
mod keyval;
mod line;
mod lock;
mod object;
mod raw;
mod state;
mod status;
mod turn;

mod attempt;
mod attribute;
mod buffered;
mod cartesian;
mod codes;
mod collective;
mod collectives;
mod communicator;
mod constructor;
mod copied;
mod datatype;
mod described;
mod duplication;
mod envelope;
mod environment;
mod epoch;
mod errhandler;
mod error;
mod extension;
mod file;
mod foreign;
mod freed;
mod general;
mod graph;
mod group;
mod hint;
mod hints;
mod info;
mod integer;
mod intercommunicator;
mod lifetime;
mod neighborhood;
mod nonblocking;
mod operation;
mod p2p;
mod pack;
mod persistent;
mod prepared;
mod probe;
mod process;
mod promise;
mod python;
mod query;
mod quick;
mod request;
mod rma;
mod session;
mod source;
mod tool;
mod topology;
mod window;

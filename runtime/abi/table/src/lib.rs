//! The functions and constants of MPI-5.0's standard ABI, in two tables, and what is made from
//! them.
//!
//! ```text
//!   functions.table ─┬─► exports   the Rust functions of libmpi_abi, which check and convert
//!                    ├─► header    mpi.h, mpix.h, mpix_fint.h
//!   constants.table ─┴─► symbols   the names that the library exports
//! ```
//!
//! The build script of longshore-abi writes the exports. The command `longshore` prints the header
//! and lists the functions.

mod constant;
mod exports;
mod function;
mod group;
mod header;
mod kind;

pub use constant::{Constant, Section, constants};
pub use exports::{exports, numbers};
pub use function::{Function, Parameter, Way, functions};
pub use header::{fint_header, header, own_header};
pub use kind::{Kind, Width};

/// The names that the library exports: each function under its own name and with a `P` before it,
/// and its version with large counts.
///
/// ```
/// let symbols = longshore_abi_table::symbols();
/// assert!(symbols.contains(&"PMPI_Send_c".to_owned()));
/// ```
pub fn symbols() -> Vec<String> {
    let mut symbols = Vec::new();
    for function in functions() {
        for width in function.widths() {
            let name = function.c_name(*width);
            symbols.push(format!("P{name}"));
            symbols.push(name);
        }
    }
    symbols.sort();
    symbols
}

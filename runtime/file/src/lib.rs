//! Files that unlike machines write together: MPI's I/O (MPI-5.0 chapter 14).
//!
//! The ranks of a communicator [open](File::open) a file. Each sets a [`View`]: which bytes it
//! sees, and how values are represented there. Accesses are by explicit offsets, by a pointer of
//! the rank's own, or by a pointer that all share; by one rank or by all together; at once or with
//! a [`Request`]. Values are converted between the memory of the rank, whatever its machine, and
//! the file. [`File`] has a first example.
//!
//! ```text
//!   File                               access, nonblocking, ordered, collective, refusal: the calls
//!    │
//!    ├── access, nonblocking, ordered  transfer    an access that has been checked
//!    ├── collective                    staged      by aggregators, whose memory all reach
//!    │      ├── staged ── exchange     exchange    by aggregators and messages
//!    │      │               │
//!    └── transfer ── individual        individual  between a rank's elements and the bytes
//!                        │             layout      where the bytes of a view lie
//!                layout, storage       storage     the system's file
//! ```
//!
//! The crate uses the public interface of `longshore` only: collective calls to agree and to
//! exchange data, windows for the shared pointer and for the lock of atomic mode.
//!
//! Left out: representations with functions of the program (MPI-5.0 section 14.5.3), which the C
//! interface has, and error handlers of files
//! (section 14.7): every call returns its error.

mod access;
mod agreement;
mod amode;
mod collective;
mod core;
mod datarep;
mod error;
mod exchange;
mod file;
mod hosts;
mod individual;
mod info;
mod lanes;
mod layout;
mod nonblocking;
mod ordered;
mod refusal;
mod runs;
mod shared;
mod staged;
mod status;
mod storage;
mod transfer;
mod view;

pub use access::Whence;
pub use amode::Amode;
pub use datarep::Datarep;
pub use error::{Error, Result};
pub use file::File;
pub use info::Info;
pub use nonblocking::Request;
pub use status::Status;
pub use view::View;

/// Runs the Rust code blocks of the documentation page as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/files.md")]
struct Pages;

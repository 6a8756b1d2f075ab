//! The exported functions, made from functions.table.
//!
//! All of them are unsafe: pointers of a program have to be what MPI asks for. The types of
//! [`arg`](crate::arg) take that promise over.
#![allow(unsafe_code, unused_unsafe, unused_mut, non_snake_case, unused_variables)]
#![allow(clippy::all, clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks, missing_docs)]

use std::ffi::{c_char, c_int, c_void};

use crate::arg::{self, Aint, Count};
use crate::call::{When, enter};
use crate::communicator::Comm;
use crate::datatype::Type;
use crate::errhandler::Errhandler;
use crate::fault::{Fault, Raiser};
use crate::file::File;
use crate::group::Group;
use crate::handle::{Handle, find, find_optional};
use crate::info::Info;
use crate::operation::Op;
use crate::session::Session;
use crate::status::Status;
use crate::window::Win;

include!(concat!(env!("OUT_DIR"), "/exports.rs"));

//! The exported functions, made from functions.table.
//!
//! All of them are unsafe: pointers of a program have to be what MPI asks for. The types of
//! [`arg`](crate::edge::arg) take that promise over.
#![allow(unsafe_code, unused_unsafe, unused_mut, non_snake_case, unused_variables)]
#![allow(clippy::all, clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks, missing_docs)]

use std::ffi::{c_char, c_int, c_void};

use crate::call::{When, enter};
use crate::communicator::Comm;
use crate::communicator::group::Group;
use crate::datatype::Type;
use crate::edge::arg::{self, Aint, Count};
use crate::edge::fault::Raiser;
use crate::edge::handle::{Handle, find, find_optional};
use crate::edge::status::Status;
use crate::environment::session::Session;
use crate::file::File;
use crate::objects::errhandler::Errhandler;
use crate::objects::info::Info;
use crate::operation::Op;
use crate::window::Win;

include!(concat!(env!("OUT_DIR"), "/exports.rs"));

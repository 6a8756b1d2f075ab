//! The constants of the ABI, made from constants.table.
#![allow(missing_docs, dead_code)]

use crate::edge::raw::Handle;

include!(concat!(env!("OUT_DIR"), "/constants.rs"));

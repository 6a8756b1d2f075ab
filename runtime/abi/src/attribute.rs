//! The functions for keyvals and attributes (MPI-5.0 section 7.7).

use std::ffi::c_int;

use crate::communicator::Comm;
use crate::datatype::Type;
use crate::edge::arg::Address;
use crate::edge::fault::Result;
use crate::edge::handle::{Handle, Kind};
use crate::objects::keyval;
use crate::window::Win;

macro_rules! attributes {
    ($object:ident, $kind:ident, $create:ident, $free:ident, $set:ident, $get:ident, $delete:ident) => {
        pub fn $create(copy: Address, delete: Address, extra: Address) -> Result<c_int> {
            Ok(keyval::create(Kind::$kind, copy, delete, extra))
        }

        pub fn $free(number: &mut c_int) -> Result<()> {
            keyval::free(Kind::$kind, number)
        }

        pub fn $set(handle: Handle, number: c_int, value: Address) -> Result<()> {
            keyval::set::<$object>(handle, number, value)
        }

        pub fn $get(object: &$object, number: c_int, room: Address) -> Result<bool> {
            keyval::get(object, number, room)
        }

        pub fn $delete(handle: Handle, number: c_int) -> Result<()> {
            keyval::delete::<$object>(handle, number)
        }
    };
}

attributes!(
    Comm,
    Comm,
    comm_create_keyval,
    comm_free_keyval,
    comm_set_attr,
    comm_get_attr,
    comm_delete_attr
);
attributes!(
    Type,
    Type,
    type_create_keyval,
    type_free_keyval,
    type_set_attr,
    type_get_attr,
    type_delete_attr
);
attributes!(
    Win,
    Win,
    win_create_keyval,
    win_free_keyval,
    win_set_attr,
    win_get_attr,
    win_delete_attr
);
attributes!(Comm, Comm, keyval_create, keyval_free, attr_put, attr_get, attr_delete);

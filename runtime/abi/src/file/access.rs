//! Reading and writing (MPI-5.0 section 14.4).

use longshore::Pointed;
use longshore_file::{File as Inner, Request as Access};

use crate::datatype::Type;
use crate::edge::arg::{Buffer, Room};
use crate::edge::fault::{Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::edge::status::Status;
use crate::file::File;
use crate::request::{self, Operation};

/// Writes the status of an access.
fn put(moved: longshore_file::Status, status: Room<Status>) {
    request::status_of(moved).put(status.get(0));
}

/// Starts an access, and gives it a request.
fn start(handle: Handle, access: impl FnOnce(&Inner) -> Result<Access<Pointed>>) -> Result<Handle> {
    let file = find::<File>(handle)?;
    let access = access(file.inner())?;
    request::made(Operation::File(Box::new(access)), Raiser::File(handle), None)
}

/// Accesses at an offset: of one rank, of all, with requests, and the begins of split calls.
macro_rules! at_offset {
    ($memory:ident: $($name:ident by $call:ident),*; start: $($starting:ident by $begun:ident),*;
        begin: $beginning:ident by $begin:ident) => {
        $(
            pub fn $name(
                file: &File,
                offset: i64,
                buf: Buffer,
                count: i64,
                datatype: &Type,
                status: Room<Status>,
            ) -> Result<()> {
                let data = buf.$memory(count, datatype.committed()?)?;
                put(file.inner().$call(offset, data)?, status);
                Ok(())
            }
        )*
        $(
            pub fn $starting(
                handle: Handle,
                offset: i64,
                buf: Buffer,
                count: i64,
                datatype: &Type,
            ) -> Result<Handle> {
                let data = buf.given(count, datatype.committed()?)?;
                start(handle, |file| Ok(file.$begun(offset, data)?))
            }
        )*
        pub fn $beginning(
            file: &File,
            offset: i64,
            buf: Buffer,
            count: i64,
            datatype: &Type,
        ) -> Result<()> {
            Ok(file.inner().$begin(offset, buf.$memory(count, datatype.committed()?)?)?)
        }
    };
}

at_offset! {
    destination: file_read_at by read_at, file_read_at_all by read_at_all;
    start: file_iread_at by iread_at, file_iread_at_all by iread_at_all;
    begin: file_read_at_all_begin by read_at_all_begin
}

at_offset! {
    origin: file_write_at by write_at, file_write_at_all by write_at_all;
    start: file_iwrite_at by iwrite_at, file_iwrite_at_all by iwrite_at_all;
    begin: file_write_at_all_begin by write_at_all_begin
}

/// Accesses at a pointer.
macro_rules! at_pointer {
    ($memory:ident: $($name:ident by $call:ident),*; start: $($starting:ident by $begun:ident),*;
        begin: $($beginning:ident by $begin:ident),*) => {
        $(
            pub fn $name(
                file: &File,
                buf: Buffer,
                count: i64,
                datatype: &Type,
                status: Room<Status>,
            ) -> Result<()> {
                let data = buf.$memory(count, datatype.committed()?)?;
                put(file.inner().$call(data)?, status);
                Ok(())
            }
        )*
        $(
            pub fn $starting(
                handle: Handle,
                buf: Buffer,
                count: i64,
                datatype: &Type,
            ) -> Result<Handle> {
                let data = buf.given(count, datatype.committed()?)?;
                start(handle, |file| Ok(file.$begun(data)?))
            }
        )*
        $(
            pub fn $beginning(
                file: &File,
                buf: Buffer,
                count: i64,
                datatype: &Type,
            ) -> Result<()> {
                Ok(file.inner().$begin(buf.$memory(count, datatype.committed()?)?)?)
            }
        )*
    };
}

at_pointer! {
    destination: file_read by read, file_read_all by read_all, file_read_shared by read_shared,
    file_read_ordered by read_ordered;
    start: file_iread by iread, file_iread_all by iread_all, file_iread_shared by iread_shared;
    begin: file_read_all_begin by read_all_begin, file_read_ordered_begin by read_ordered_begin
}

at_pointer! {
    origin: file_write by write, file_write_all by write_all, file_write_shared by write_shared,
    file_write_ordered by write_ordered;
    start: file_iwrite by iwrite, file_iwrite_all by iwrite_all,
    file_iwrite_shared by iwrite_shared;
    begin: file_write_all_begin by write_all_begin, file_write_ordered_begin by write_ordered_begin
}

/// The ends of split collective calls.
macro_rules! ends {
    ($($name:ident by $call:ident,)*) => {
        $(
            pub fn $name(file: &File, _buf: Buffer, status: Room<Status>) -> Result<()> {
                put(file.inner().$call()?, status);
                Ok(())
            }
        )*
    };
}

ends! {
    file_read_all_end by read_all_end,
    file_read_at_all_end by read_at_all_end,
    file_read_ordered_end by read_ordered_end,
    file_write_all_end by write_all_end,
    file_write_at_all_end by write_at_all_end,
    file_write_ordered_end by write_ordered_end,
}

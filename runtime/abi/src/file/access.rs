//! Reading and writing (MPI-5.0 section 14.4).

use longshore::{Destination, Given, Origin, Pointed};
use longshore_file::{File as Inner, Request as Access, Status as Moved};

use crate::datatype::Type;
use crate::edge::arg::{Buffer, Room};
use crate::edge::fault::{Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::edge::status::Status;
use crate::file::File;
use crate::request::{self, Operation};

/// Writes the status of an access.
fn put(moved: Moved, status: Room<Status>) {
    request::status_of(moved).put(status.get(0));
}

/// Starts an access, and gives it a request. One whose elements functions of the program convert is
/// carried out `at_once`, since these run on the caller's thread.
fn start(
    handle: Handle,
    (buf, count, datatype): (Buffer, i64, Handle),
    begin: impl FnOnce(&Inner, Given<Pointed>) -> Result<Access<Pointed>>,
    at_once: impl FnOnce(&File) -> Result<Moved>,
) -> Result<Handle> {
    let file = find::<File>(handle)?;
    if file.conversion().is_some() {
        return request::complete(request::status_of(at_once(&file)?));
    }
    let datatype = find::<Type>(datatype)?;
    let access = begin(file.inner(), buf.given(count, datatype.committed()?)?)?;
    request::made(Operation::File(Box::new(access)), Raiser::File(handle), None)
}

impl File {
    /// Carries out a call that writes elements, after a conversion by the program if the view asks
    /// for one.
    fn origin<R>(
        &self,
        buf: Buffer,
        count: i64,
        handle: Handle,
        call: impl FnOnce(Origin<'_>) -> Result<R>,
    ) -> Result<R> {
        let datatype = find::<Type>(handle)?;
        match self.conversion() {
            None => call(buf.origin(count, datatype.committed()?)?),
            Some(conversion) => conversion.origin((buf, count, handle, &datatype), call),
        }
    }

    /// Carries out a call that reads elements, before a conversion by the program if the view asks
    /// for one.
    fn destination(
        &self,
        buf: Buffer,
        count: i64,
        handle: Handle,
        call: impl FnOnce(Destination<'_>) -> Result<Moved>,
    ) -> Result<Moved> {
        let datatype = find::<Type>(handle)?;
        match self.conversion() {
            None => call(buf.destination(count, datatype.committed()?)?),
            Some(conversion) => conversion.destination((buf, count, handle, &datatype), call),
        }
    }
}

/// Accesses at an offset: of one rank, of all, with requests, and the begins of split calls.
macro_rules! at_offset {
    ($memory:ident: $($name:ident by $call:ident),*; start: $($starting:ident by $begun:ident or $at_once:ident),*;
        begin: $beginning:ident by $begin:ident) => {
        $(
            pub fn $name(
                file: &File,
                offset: i64,
                buf: Buffer,
                count: i64,
                datatype: Handle,
                status: Room<Status>,
            ) -> Result<()> {
                let moved = file.$memory(buf, count, datatype, |data| {
                    Ok(file.inner().$call(offset, data)?)
                })?;
                put(moved, status);
                Ok(())
            }
        )*
        $(
            pub fn $starting(
                handle: Handle,
                offset: i64,
                buf: Buffer,
                count: i64,
                datatype: Handle,
            ) -> Result<Handle> {
                start(
                    handle,
                    (buf, count, datatype),
                    |file, data| Ok(file.$begun(offset, data)?),
                    |file| {
                        file.$memory(buf, count, datatype, |data| {
                            Ok(file.inner().$at_once(offset, data)?)
                        })
                    },
                )
            }
        )*
        pub fn $beginning(
            file: &File,
            offset: i64,
            buf: Buffer,
            count: i64,
            datatype: Handle,
        ) -> Result<()> {
            let begun = file.$memory(buf, count, datatype, |data| {
                file.inner().$begin(offset, data)?;
                Ok(file.inner().begun().unwrap_or_default())
            });
            begun.map(drop)
        }
    };
}

at_offset! {
    destination: file_read_at by read_at, file_read_at_all by read_at_all;
    start: file_iread_at by iread_at or read_at, file_iread_at_all by iread_at_all or read_at;
    begin: file_read_at_all_begin by read_at_all_begin
}

at_offset! {
    origin: file_write_at by write_at, file_write_at_all by write_at_all;
    start: file_iwrite_at by iwrite_at or write_at, file_iwrite_at_all by iwrite_at_all or write_at;
    begin: file_write_at_all_begin by write_at_all_begin
}

/// Accesses at a pointer.
macro_rules! at_pointer {
    ($memory:ident: $($name:ident by $call:ident),*; start: $($starting:ident by $begun:ident or $at_once:ident),*;
        begin: $($beginning:ident by $begin:ident),*) => {
        $(
            pub fn $name(
                file: &File,
                buf: Buffer,
                count: i64,
                datatype: Handle,
                status: Room<Status>,
            ) -> Result<()> {
                let moved =
                    file.$memory(buf, count, datatype, |data| Ok(file.inner().$call(data)?))?;
                put(moved, status);
                Ok(())
            }
        )*
        $(
            pub fn $starting(
                handle: Handle,
                buf: Buffer,
                count: i64,
                datatype: Handle,
            ) -> Result<Handle> {
                start(
                    handle,
                    (buf, count, datatype),
                    |file, data| Ok(file.$begun(data)?),
                    |file| {
                        file.$memory(buf, count, datatype, |data| Ok(file.inner().$at_once(data)?))
                    },
                )
            }
        )*
        $(
            pub fn $beginning(
                file: &File,
                buf: Buffer,
                count: i64,
                datatype: Handle,
            ) -> Result<()> {
                let begun = file.$memory(buf, count, datatype, |data| {
                    file.inner().$begin(data)?;
                    Ok(file.inner().begun().unwrap_or_default())
                });
                begun.map(drop)
            }
        )*
    };
}

at_pointer! {
    destination: file_read by read, file_read_all by read_all, file_read_shared by read_shared,
    file_read_ordered by read_ordered;
    start: file_iread by iread or read, file_iread_all by iread_all or read, file_iread_shared by iread_shared or read_shared;
    begin: file_read_all_begin by read_all_begin, file_read_ordered_begin by read_ordered_begin
}

at_pointer! {
    origin: file_write by write, file_write_all by write_all, file_write_shared by write_shared,
    file_write_ordered by write_ordered;
    start: file_iwrite by iwrite or write, file_iwrite_all by iwrite_all or write, file_iwrite_shared by iwrite_shared or write_shared;
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

//! Reading and writing (MPI-5.0 section 14.4).

use longshore::{Class, Destination, Given, Origin, Pointed};
use longshore_file::{Error, File as Inner, Request as Access, Status as Moved};

use crate::datatype::Type;
use crate::edge::arg::{Buffer, Room};
use crate::edge::fault::{Fault, Raiser, Result};
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

/// The error of a fault, for the other ranks of a collective call.
pub fn error_of(fault: &Fault) -> Error {
    let class = u8::try_from(fault.code()).ok().and_then(Class::from_wire);
    let problem = fault.message().unwrap_or("a call of the program has failed").to_owned();
    Error::Argument { class: class.unwrap_or(Class::Other), problem }
}

impl File {
    /// Carries out a call that writes elements, after a conversion by the program if the view asks
    /// for one. `name` is the call of the crate `longshore-file`.
    fn origin(
        &self,
        name: &'static str,
        (buf, count, handle): (Buffer, i64, Handle),
        call: impl FnOnce(Origin<'_>) -> Result<Moved>,
    ) -> Result<Moved> {
        let mut is_called = false;
        let call = |data: Origin<'_>| {
            is_called = true;
            call(data)
        };
        let moved = find::<Type>(handle).and_then(|datatype| match self.conversion() {
            None => call(buf.origin(count, datatype.committed()?)?),
            Some(conversion) => conversion.origin((buf, count, handle, &datatype), call),
        });
        self.ended(name, is_called, moved)
    }

    /// Carries out a call that reads elements, before a conversion by the program if the view asks
    /// for one. `name` is the call of the crate `longshore-file`.
    fn destination(
        &self,
        name: &'static str,
        (buf, count, handle): (Buffer, i64, Handle),
        call: impl FnOnce(Destination<'_>) -> Result<Moved>,
    ) -> Result<Moved> {
        let mut is_called = false;
        let call = |data: Destination<'_>| {
            is_called = true;
            call(data)
        };
        let moved = find::<Type>(handle).and_then(|datatype| match self.conversion() {
            None => call(buf.destination(count, datatype.committed()?)?),
            Some(conversion) => conversion.destination((buf, count, handle, &datatype), call),
        });
        self.ended(name, is_called, moved)
    }

    /// The outcome of a call. If this rank has found a fault before a collective call, it takes
    /// part all the same: the others wait for it.
    fn ended(&self, name: &'static str, is_called: bool, moved: Result<Moved>) -> Result<Moved> {
        match moved {
            Err(fault) if !is_called => match self.inner().refuse(name, error_of(&fault)) {
                // The begin of a split collective call keeps it for the end.
                Ok(()) => Ok(Moved::default()),
                Err(_) => Err(fault),
            },
            moved => moved,
        }
    }

    /// The outcome of the begin of a split collective call, which `has_begun` or not. An error of
    /// the program's conversion is for the end of the call.
    fn begun(&self, has_begun: bool, moved: Result<Moved>) -> Result<()> {
        match moved {
            Err(fault) if has_begun => {
                self.inner().fail_split(error_of(&fault));
                Ok(())
            }
            moved => moved.map(drop),
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
                let name = stringify!($call);
                let moved = file.$memory(name, (buf, count, datatype), |data| {
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
                        let name = stringify!($at_once);
                        file.$memory(name, (buf, count, datatype), |data| {
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
            let (name, mut has_begun) = (stringify!($begin), false);
            let begun = file.$memory(name, (buf, count, datatype), |data| {
                file.inner().$begin(offset, data)?;
                has_begun = true;
                Ok(file.inner().begun().unwrap_or_default())
            });
            file.begun(has_begun, begun)
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
                let name = stringify!($call);
                let moved = file.$memory(name, (buf, count, datatype), |data| {
                    Ok(file.inner().$call(data)?)
                })?;
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
                        let name = stringify!($at_once);
                        file.$memory(name, (buf, count, datatype), |data| {
                            Ok(file.inner().$at_once(data)?)
                        })
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
                let (name, mut has_begun) = (stringify!($begin), false);
                let begun = file.$memory(name, (buf, count, datatype), |data| {
                    file.inner().$begin(data)?;
                    has_begun = true;
                    Ok(file.inner().begun().unwrap_or_default())
                });
                file.begun(has_begun, begun)
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

//! Reading and writing (MPI-5.0 section 14.4).

use longshore::{Destination, Given, Origin, Pointed};
use longshore_file::{Error, File as Inner, Request as Access, Status as Moved};

use crate::datatype::Type;
use crate::edge::arg::{Buffer, Room};
use crate::edge::elements::Elements;
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, find};
use crate::edge::status::Status;
use crate::file::File;
use crate::file::datarep::Registered;
use crate::request::{self, Operation};

/// Writes the status of an access.
fn put(moved: Moved, status: Room<Status>) {
    request::status_of(moved).put(status.get(0));
}

/// The direction of an access.
trait Direction {
    /// The memory of the elements.
    type Data<'a>;

    fn data<'a>(elements: Elements<&'a longshore::Type>) -> Result<Self::Data<'a>>;

    /// Carries out a call on elements that a representation converts.
    fn convert(
        conversion: &Registered,
        elements: Elements,
        datatype: &Type,
        call: impl FnOnce(Self::Data<'_>) -> Result<Moved>,
    ) -> Result<Moved>;
}

/// From memory to the file.
enum Writing {}

/// From the file to memory.
enum Reading {}

impl Direction for Writing {
    type Data<'a> = Origin<'a>;

    fn data<'a>(elements: Elements<&'a longshore::Type>) -> Result<Origin<'a>> {
        elements.origin()
    }

    fn convert(
        conversion: &Registered,
        elements: Elements,
        datatype: &Type,
        call: impl FnOnce(Origin<'_>) -> Result<Moved>,
    ) -> Result<Moved> {
        conversion.write(elements, datatype, call)
    }
}

impl Direction for Reading {
    type Data<'a> = Destination<'a>;

    fn data<'a>(elements: Elements<&'a longshore::Type>) -> Result<Destination<'a>> {
        elements.destination()
    }

    fn convert(
        conversion: &Registered,
        elements: Elements,
        datatype: &Type,
        call: impl FnOnce(Destination<'_>) -> Result<Moved>,
    ) -> Result<Moved> {
        conversion.read(elements, datatype, call)
    }
}

/// Starts an access, and gives it a request. One whose elements functions of the program convert is
/// carried out `at_once`, since these run on the caller's thread.
fn start(
    handle: Handle,
    elements: Elements,
    begin: impl FnOnce(&Inner, Given<Pointed>) -> Result<Access<Pointed>>,
    at_once: impl FnOnce(&File) -> Result<Moved>,
) -> Result<Handle> {
    let file = find::<File>(handle)?;
    if file.conversion().is_some() {
        return request::complete(request::status_of(at_once(&file)?));
    }
    let datatype = find::<Type>(elements.datatype)?;
    let access = begin(file.inner(), elements.of(datatype.committed()?).given()?)?;
    request::made(Operation::File(Box::new(access)), Raiser::File(handle), None)
}

/// The error of a fault, for the other ranks of a collective call.
pub fn error_of(fault: &Fault) -> Error {
    Error::Argument { class: fault.class(), problem: fault.text().to_owned() }
}

impl File {
    /// Carries out a call on elements, which the program converts if the view asks for that. `name`
    /// is the call of the crate `longshore-file`.
    fn run<D: Direction>(
        &self,
        name: &'static str,
        elements: Elements,
        call: impl FnOnce(D::Data<'_>) -> Result<Moved>,
    ) -> Result<Moved> {
        let mut is_called = false;
        let call = |data: D::Data<'_>| {
            is_called = true;
            call(data)
        };
        let moved = find::<Type>(elements.datatype).and_then(|datatype| match self.conversion() {
            None => call(D::data(elements.of(datatype.committed()?))?),
            Some(conversion) => D::convert(&conversion, elements, &datatype, call),
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
    ($direction:ident: $($name:ident by $call:ident),*; start: $($starting:ident by $begun:ident or $at_once:ident),*;
        begin: $beginning:ident by $begin:ident) => {
        $(
            pub fn $name(
                file: &File,
                offset: i64,
                elements: Elements,
                status: Room<Status>,
            ) -> Result<()> {
                let name = stringify!($call);
                let moved = file.run::<$direction>(name, elements, |data| {
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
                elements: Elements,
            ) -> Result<Handle> {
                start(
                    handle,
                    elements,
                    |file, data| Ok(file.$begun(offset, data)?),
                    |file| {
                        let name = stringify!($at_once);
                        file.run::<$direction>(name, elements, |data| {
                            Ok(file.inner().$at_once(offset, data)?)
                        })
                    },
                )
            }
        )*
        pub fn $beginning(
            file: &File,
            offset: i64,
            elements: Elements,
        ) -> Result<()> {
            let (name, mut has_begun) = (stringify!($begin), false);
            let begun = file.run::<$direction>(name, elements, |data| {
                file.inner().$begin(offset, data)?;
                has_begun = true;
                Ok(file.inner().begun().unwrap_or_default())
            });
            file.begun(has_begun, begun)
        }
    };
}

at_offset! {
    Reading: file_read_at by read_at, file_read_at_all by read_at_all;
    start: file_iread_at by iread_at or read_at, file_iread_at_all by iread_at_all or read_at;
    begin: file_read_at_all_begin by read_at_all_begin
}

at_offset! {
    Writing: file_write_at by write_at, file_write_at_all by write_at_all;
    start: file_iwrite_at by iwrite_at or write_at, file_iwrite_at_all by iwrite_at_all or write_at;
    begin: file_write_at_all_begin by write_at_all_begin
}

/// Accesses at a pointer.
macro_rules! at_pointer {
    ($direction:ident: $($name:ident by $call:ident),*; start: $($starting:ident by $begun:ident or $at_once:ident),*;
        begin: $($beginning:ident by $begin:ident),*) => {
        $(
            pub fn $name(
                file: &File,
                elements: Elements,
                status: Room<Status>,
            ) -> Result<()> {
                let name = stringify!($call);
                let moved = file.run::<$direction>(name, elements, |data| {
                    Ok(file.inner().$call(data)?)
                })?;
                put(moved, status);
                Ok(())
            }
        )*
        $(
            pub fn $starting(
                handle: Handle,
                elements: Elements,
            ) -> Result<Handle> {
                start(
                    handle,
                    elements,
                    |file, data| Ok(file.$begun(data)?),
                    |file| {
                        let name = stringify!($at_once);
                        file.run::<$direction>(name, elements, |data| {
                            Ok(file.inner().$at_once(data)?)
                        })
                    },
                )
            }
        )*
        $(
            pub fn $beginning(
                file: &File,
                elements: Elements,
            ) -> Result<()> {
                let (name, mut has_begun) = (stringify!($begin), false);
                let begun = file.run::<$direction>(name, elements, |data| {
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
    Reading: file_read by read, file_read_all by read_all, file_read_shared by read_shared,
    file_read_ordered by read_ordered;
    start: file_iread by iread or read, file_iread_all by iread_all or read, file_iread_shared by iread_shared or read_shared;
    begin: file_read_all_begin by read_all_begin, file_read_ordered_begin by read_ordered_begin
}

at_pointer! {
    Writing: file_write by write, file_write_all by write_all, file_write_shared by write_shared,
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

//! Partitioned messages (MPI-5.0 section 4.2). Their requests are persistent.

use std::ffi::c_int;
use std::ops::RangeInclusive;

use longshore::{Class, Partitioned};

use crate::communicator::Comm;
use crate::datatype::{Type, of_message};
use crate::edge::arg::List;
use crate::edge::constants::{PROC_NULL, REQUEST_NULL};
use crate::edge::elements::{Divided, Elements};
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, find, find_optional};
use crate::edge::status::Status;
use crate::objects::info::Info;
use crate::request::{self, Operation, Request};

fn wrong(class: Class, what: String) -> Fault {
    Fault::new(class, what)
}

/// The partitions that a program names are counted from 0.
fn number(partition: c_int) -> Result<u32> {
    u32::try_from(partition)
        .map_err(|_| wrong(Class::Arg, format!("the partition is {partition}: they count from 0")))
}

impl Divided {
    /// The number of partitions, and the elements of all of them.
    fn all(self) -> Result<(u32, Elements)> {
        let Divided { buffer, partitions, count, datatype } = self;
        let number = u32::try_from(partitions).map_err(|_| {
            wrong(Class::Arg, format!("partitions is {partitions}: give 0 or more"))
        })?;
        if count < 0 {
            return Err(wrong(Class::Count, format!("count is {count}: give 0 or more")));
        }
        let count = count.checked_mul(partitions.into()).ok_or_else(|| {
            let what = format!("{partitions} partitions of {count} elements are too many");
            wrong(Class::Count, what)
        })?;
        Ok((number, Elements { buffer, count, datatype }))
    }
}

macro_rules! inits {
    ($($name:ident $status:expr;)*) => {
        $(
            pub fn $name(
                data: Divided,
                peer: c_int,
                tag: c_int,
                comm: Handle,
                _info: Option<&Info>,
            ) -> Result<Handle> {
                let found = find::<Comm>(comm)?;
                let (partitions, data) = data.all()?;
                let datatype = find_optional::<Type>(data.datatype)?;
                if tag < 0 {
                    return Err(wrong(Class::Tag, format!("the tag is {tag}: tags aren't negative")));
                }
                let given = of_message(data.of(datatype.as_deref()), peer)?.given()?;
                let parts = found.inner().$name(given, partitions, peer, tag)?;
                let status: fn(c_int, c_int, i64) -> Status = $status;
                let status = status(peer, tag, parts.bytes());
                let started = parts.clone();
                let plan = move || {
                    started.start()?;
                    Ok(Operation::Partitioned(Box::new((started.clone(), status))))
                };
                request::partitioned(Box::new(plan), parts, Raiser::Comm(comm), found)
            }
        )*
    };
}

inits! {
    psend_init |_, _, _| Status::EMPTY;
    precv_init |source, tag, bytes| match source {
        PROC_NULL => Status::PROC_NULL,
        _ => Status::new(source, tag, bytes, None),
    };
}

/// Calls `body` for the partitions of a request. The request isn't locked, since another thread may
/// wait for it.
fn with<T>(request: Handle, body: impl FnOnce(&Partitioned) -> longshore::Result<T>) -> Result<T> {
    let request = find::<Request>(request)?;
    match request.partitions() {
        Some(parts) => body(parts).map_err(|error| Fault::from(error).on(request.raiser())),
        None => {
            let what = "the request isn't of a partitioned message: MPI_Psend_init and \
                        MPI_Precv_init make those";
            Err(wrong(Class::Request, what.to_owned()))
        }
    }
}

pub fn pready(partition: c_int, request: Handle) -> Result<()> {
    let partition = number(partition)?;
    with(request, |parts| parts.ready(partition))
}

pub fn pready_range(low: c_int, high: c_int, request: Handle) -> Result<()> {
    let range: RangeInclusive<u32> = number(low)?..=number(high)?;
    with(request, |parts| range.into_iter().try_for_each(|partition| parts.ready(partition)))
}

pub fn pready_list(length: usize, partitions: List<c_int>, request: Handle) -> Result<()> {
    let partitions = partitions.slice(length, "array_of_partitions")?;
    let numbers = partitions.iter().map(|partition| number(*partition));
    let numbers: Vec<u32> = numbers.collect::<Result<_>>()?;
    with(request, |parts| numbers.into_iter().try_for_each(|partition| parts.ready(partition)))
}

/// True also for no request, and for one that isn't started.
pub fn parrived(request: Handle, partition: c_int) -> Result<bool> {
    if request == REQUEST_NULL {
        return Ok(true);
    }
    let partition = number(partition)?;
    with(request, |parts| parts.arrived(partition))
}

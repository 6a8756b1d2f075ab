//! The calls that complete and test requests (MPI-5.0 sections 3.7.3 and 3.7.5).

use std::ffi::c_int;

use crate::edge::arg::{List, Room};
use crate::edge::constants::{REQUEST_NULL, UNDEFINED};
use crate::edge::fault::Result;
use crate::edge::handle::{Handle, find};
use crate::edge::status::Status;
use crate::request::batch::{Batch, Until, end_one, end_several};
use crate::request::{Operation, Request, has_ended, take};

pub fn wait(request: &mut Handle, status: Room<Status>) -> Result<()> {
    let handles = [*request];
    let batch = Batch::of(&handles)?;
    batch.complete_all()?;
    end_one(request, batch.ending(0..1).at(0), status)
}

pub fn test(request: &mut Handle, flag: Room<c_int>, status: Room<Status>) -> Result<()> {
    let handles = [*request];
    let batch = Batch::of(&handles)?;
    let is_complete = batch.is_empty() || !batch.complete(Until::Now)?.is_empty();
    write(flag, c_int::from(is_complete), "flag")?;
    if is_complete { end_one(request, batch.ending(0..1).at(0), status) } else { Ok(()) }
}

pub fn waitall(count: usize, requests: Room<Handle>, statuses: Room<Status>) -> Result<()> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    batch.complete_all()?;
    end_several(handles, batch.ending(0..count), 0..count, statuses)
}

pub fn testall(
    count: usize,
    requests: Room<Handle>,
    flag: Room<c_int>,
    statuses: Room<Status>,
) -> Result<()> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    let are_complete = batch.complete(Until::Now)?.len() == batch.len();
    write(flag, c_int::from(are_complete), "flag")?;
    if !are_complete {
        return Ok(());
    }
    end_several(handles, batch.ending(0..count), 0..count, statuses)
}

/// Writes a result that counts even if the call fails later.
fn write<T: Copy>(room: Room<T>, value: T, name: &'static str) -> Result<()> {
    room.slice(1, name)?[0] = value;
    Ok(())
}

pub fn waitany(
    count: usize,
    requests: Room<Handle>,
    index: Room<c_int>,
    status: Room<Status>,
) -> Result<()> {
    any(count, requests, status, Until::Some, |first| write(index, first.1, "indx"))
}

pub fn testany(
    count: usize,
    requests: Room<Handle>,
    index: Room<c_int>,
    flag: Room<c_int>,
    status: Room<Status>,
) -> Result<()> {
    any(count, requests, status, Until::Now, |(is_there, first)| {
        write(index, first, "indx")?;
        write(flag, c_int::from(is_there), "flag")
    })
}

/// Ends the first complete request of an array, if there is one. Tells first whether there is one,
/// or no request at all, and its index.
fn any(
    count: usize,
    requests: Room<Handle>,
    status: Room<Status>,
    until: Until,
    tell: impl FnOnce((bool, c_int)) -> Result<()>,
) -> Result<()> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.is_empty() {
        Status::NONE.put(status.get(0));
        return tell((true, UNDEFINED));
    }
    match batch.complete(until)?.first() {
        None => tell((false, UNDEFINED)),
        Some(&first) => {
            tell((true, first as c_int))?;
            let mut ending = batch.ending(first..first + 1);
            end_one(&mut handles[first], ending.at(first), status)
        }
    }
}

pub fn waitsome(
    count: usize,
    requests: Room<Handle>,
    outcount: Room<c_int>,
    indices: Room<c_int>,
    statuses: Room<Status>,
) -> Result<()> {
    some(count, requests, (outcount, indices), statuses, Until::Some)
}

pub fn testsome(
    count: usize,
    requests: Room<Handle>,
    outcount: Room<c_int>,
    indices: Room<c_int>,
    statuses: Room<Status>,
) -> Result<()> {
    some(count, requests, (outcount, indices), statuses, Until::Now)
}

/// Ends all complete requests of an array, and tells their number and indices.
fn some(
    count: usize,
    requests: Room<Handle>,
    (outcount, indices): (Room<c_int>, Room<c_int>),
    statuses: Room<Status>,
    until: Until,
) -> Result<()> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.is_empty() {
        return write(outcount, UNDEFINED, "outcount");
    }
    let complete = batch.complete(until)?;
    write_indices(&complete, count, indices)?;
    write(outcount, complete.len() as c_int, "outcount")?;
    let ending = batch.ending(complete.iter().copied());
    end_several(handles, ending, complete.into_iter(), statuses)
}

fn write_indices(complete: &[usize], count: usize, indices: Room<c_int>) -> Result<()> {
    let room = indices.slice(count, "array_of_indices")?;
    complete.iter().zip(room).for_each(|(index, place)| *place = *index as c_int);
    Ok(())
}

/// The status of a complete request, which stays.
fn peek(handle: Handle) -> Result<Status> {
    if handle == REQUEST_NULL {
        return Ok(Status::NONE);
    }
    if has_ended(handle) {
        return Ok(Status::EMPTY);
    }
    let request = find::<Request>(handle)?;
    if request.is_inactive()? {
        return Ok(Status::NONE);
    }
    if let Some(general) = &request.general {
        return general.query();
    }
    let outcome = take(&request)?;
    let status = outcome.status;
    *request.operation()? = Operation::Complete(outcome);
    Ok(status)
}

pub fn request_get_status(request: Handle, status: Room<Status>) -> Result<bool> {
    let handles = [request];
    let batch = Batch::of(&handles)?;
    if !batch.is_empty() && batch.complete(Until::Now)?.is_empty() {
        return Ok(false);
    }
    drop(batch);
    peek(request)?.put(status.get(0));
    Ok(true)
}

pub fn request_get_status_all(
    count: usize,
    requests: List<Handle>,
    statuses: Room<Status>,
) -> Result<bool> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.complete(Until::Now)?.len() < batch.len() {
        return Ok(false);
    }
    drop(batch);
    for (index, handle) in handles.iter().enumerate() {
        peek(*handle)?.put(statuses.get(index));
    }
    Ok(true)
}

pub fn request_get_status_any(
    count: usize,
    requests: List<Handle>,
    status: Room<Status>,
) -> Result<(c_int, bool)> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.is_empty() {
        Status::NONE.put(status.get(0));
        return Ok((UNDEFINED, true));
    }
    let Some(&first) = batch.complete(Until::Now)?.first() else { return Ok((UNDEFINED, false)) };
    drop(batch);
    peek(handles[first])?.put(status.get(0));
    Ok((first as c_int, true))
}

pub fn request_get_status_some(
    count: usize,
    requests: List<Handle>,
    indices: Room<c_int>,
    statuses: Room<Status>,
) -> Result<c_int> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.is_empty() {
        return Ok(UNDEFINED);
    }
    let complete = batch.complete(Until::Now)?;
    drop(batch);
    write_indices(&complete, count, indices)?;
    for (index, place) in complete.iter().enumerate() {
        peek(handles[*place])?.put(statuses.get(index));
    }
    Ok(complete.len() as c_int)
}

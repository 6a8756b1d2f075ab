//! Requests and statuses (MPI-5.0 sections 3.2.5, 3.7 and 13.2).

use std::ffi::c_int;
use std::sync::Arc;

use longshore::Class;

use crate::constants::REQUEST_NULL;
use crate::fault::Result;
use crate::handle::{Handle, Kind, Object};
use crate::status::Status;

/// A request.
pub enum Request {
    /// It is complete.
    Done,
    /// An operation on a window.
    Window(Box<longshore::Request<()>>),
}

impl Object for Request {
    const KIND: Kind = Kind::Request;
    const CLASS: Class = Class::Request;
    const NULL: Handle = REQUEST_NULL;

    fn predefined(_: Handle) -> Option<Arc<Request>> {
        None
    }
}

impl Request {
    /// The request of an operation that is complete already.
    pub fn done() -> Request {
        Request::Done
    }

    /// The request of an operation on a window.
    pub fn of_window(request: longshore::Request<()>) -> Request {
        Request::Window(Box::new(request))
    }
}

pub fn status_get_source(status: &Status) -> Result<c_int> {
    Ok(status.source)
}

pub fn status_get_tag(status: &Status) -> Result<c_int> {
    Ok(status.tag)
}

pub fn status_get_error(status: &Status) -> Result<c_int> {
    Ok(status.error)
}

pub fn status_set_source(status: &mut Status, source: c_int) -> Result<()> {
    status.source = source;
    Ok(())
}

pub fn status_set_tag(status: &mut Status, tag: c_int) -> Result<()> {
    status.tag = tag;
    Ok(())
}

pub fn status_set_error(status: &mut Status, error: c_int) -> Result<()> {
    status.error = error;
    Ok(())
}

pub fn status_set_cancelled(status: &mut Status, cancelled: bool) -> Result<()> {
    status.set_cancelled(cancelled);
    Ok(())
}

pub fn test_cancelled(status: &Status) -> Result<bool> {
    Ok(status.is_cancelled())
}

//! Accesses that have been checked, and their elements.

use std::ops::Range;
use std::sync::Arc;

use longshore::{Architecture, Class, Sink, Source};

use crate::core::Core;
use crate::error::{Error, Result};
use crate::individual::{self, Moved};
use crate::info::Info;
use crate::status::Status;
use crate::view::View;

/// Where an access begins.
#[derive(Clone, Copy)]
pub(crate) enum At {
    /// At an offset in etypes.
    Offset(i64),
    /// At the individual pointer, which moves on.
    Pointer,
    /// At an offset in etypes that the shared pointer gave.
    Shared(i64),
}

/// The elements of an access.
pub(crate) enum Data<'a> {
    Write(Source<'a>),
    Read(Sink<'a>),
}

/// An access that has been checked.
pub(crate) struct Access {
    pub core: Arc<Core>,
    pub view: Arc<View>,
    pub info: Arc<Info>,
    /// The part of the view's stream.
    pub part: Range<u64>,
    /// The bytes of the elements in this rank's memory.
    pub native: u64,
    pub writes: bool,
}

impl Data<'_> {
    pub fn writes(&self) -> bool {
        matches!(self, Data::Write(_))
    }

    /// The bytes of the elements in the file.
    fn length(&self, view: &View) -> Result<u64> {
        Ok(match self {
            Data::Write(source) => source.length(view.layout.architecture())?,
            Data::Read(sink) => sink.length(view.layout.architecture())?,
        })
    }

    /// The bytes of the elements in the memory of this rank.
    pub fn native(&self, own: &Architecture) -> Result<u64> {
        Ok(match self {
            Data::Write(source) => source.length(own)?,
            Data::Read(sink) => sink.length(own)?,
        })
    }

    /// The number of etypes of the elements.
    ///
    /// # Errors
    /// TYPE if that is no whole number.
    pub fn etypes(&self, view: &View) -> Result<i64> {
        let (length, etype) = (self.length(view)?, view.layout.etype_size());
        if length % etype != 0 {
            let problem = format!(
                "the access is of {length} bytes of the file, which are no whole number of etypes \
                 {} of {etype} bytes",
                view.etype
            );
            return Err(Error::argument(Class::Type, problem));
        }
        Ok((length / etype) as i64)
    }
}

impl Access {
    /// Carries out the access by this rank, and returns what moved.
    pub fn carry_out(&self, data: &mut Data<'_>) -> Result<Moved> {
        self.core.access(self.writes, || self.carry_out_now(data))
    }

    fn carry_out_now(&self, data: &mut Data<'_>) -> Result<Moved> {
        if self.part.is_empty() {
            return Ok(Moved { bytes: 0, error: None });
        }
        let (storage, layout, part) = (&self.core.storage, &self.view.layout, self.part.clone());
        match data {
            Data::Write(source) => individual::write(storage, layout, &self.info, source, part),
            Data::Read(sink) => individual::read(storage, layout, &self.info, sink, part),
        }
    }

    /// The status of the access, of whose stream so many bytes were moved.
    pub fn status(&self, data: &Data<'_>, moved: u64) -> Result<Status> {
        let bytes = match data {
            _ if moved == self.part.end - self.part.start => self.native,
            Data::Write(_) => moved,
            Data::Read(sink) => sink.native_before(self.view.layout.architecture(), moved)?,
        };
        Ok(Status { bytes })
    }

    /// The outcome of an access.
    pub fn outcome(&self, data: &Data<'_>, moved: Result<Moved>) -> Result<Status> {
        match moved? {
            Moved { error: Some(error), .. } => Err(error),
            Moved { bytes, error: None } => self.status(data, bytes),
        }
    }
}

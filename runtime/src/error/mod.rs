//! What can go wrong, where it did, and the MPI error class of each.

mod excerpt;
mod kind;

use std::fmt;

use shipable::Class;

pub(crate) use excerpt::{SHOWN, excerpt};
pub use kind::ErrorKind;
pub(crate) use kind::locale_target;

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: what was wrong, and the place: rank, window, target, bytes, epoch.
///
/// Its text says what was wrong, with which values, and what to do instead. [`class`](Error::class) is MPI's class for it.
pub struct Error(Box<Report>);

struct Report {
    kind: ErrorKind,
    place: Option<Place>,
    /// Whether an error handler has dealt with it.
    raised: bool,
}

/// Where an operation failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The call, in MPI's words.
    pub call: &'static str,
    /// The rank that made it: its rank in the job.
    pub rank: u32,
    /// The rank that it was to reach, in its communicator.
    pub target: Option<i32>,
    /// That rank's process: its rank in the job.
    pub process: Option<u32>,
    /// The window's number.
    pub window: Option<u32>,
    /// The bytes of the target's window that it was to touch.
    pub bytes: Option<(i128, i128)>,
    /// The state of the window's epoch.
    pub epoch: Option<String>,
}

impl Error {
    /// The MPI error class.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::{Class, ErrorKind};
    ///
    /// let error = rank.world().send(&[1], 99, 0).unwrap_err();
    /// assert_eq!(error.class(), Class::Rank);
    /// assert!(matches!(error.kind(), ErrorKind::Rank { rank: 99, .. }));
    /// assert_eq!(error.place().unwrap().call, "send");
    /// assert!(error.to_string().contains("no rank 99"));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn class(&self) -> Class {
        self.0.kind.class()
    }

    /// What was wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Where, if the call has a place.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// The same error, met in the window of the rank that is told of it.
    pub(crate) fn at_home(mut self) -> Error {
        if let ErrorKind::Range { own, .. } | ErrorKind::NotAttached { own, .. } = &mut self.0.kind
        {
            *own = true;
        }
        self
    }

    /// The same error, met within an epoch of which only the window knew.
    pub(crate) fn within(mut self, epoch: impl FnOnce() -> String) -> Error {
        if let Some(place) = &mut self.0.place {
            place.epoch.get_or_insert_with(epoch);
        }
        self
    }

    /// Notes that an error handler deals with it; whether it is the first one.
    pub(crate) fn first_raised(&mut self) -> bool {
        !std::mem::replace(&mut self.0.raised, true)
    }

    /// The same error with its place; the first place stays.
    pub(crate) fn at(mut self, place: impl FnOnce() -> Place) -> Error {
        self.0.place.get_or_insert_with(place);
        self
    }
}

/// Rule 28 where a program found it.
pub(crate) fn conversion(error: shipable::Error) -> Error {
    match error {
        shipable::Error::Conversion(value) => ErrorKind::Conversion(value.to_string()).into(),
        error => error.into(),
    }
}

impl<K: Into<ErrorKind>> From<K> for Error {
    fn from(kind: K) -> Error {
        Error(Box::new(Report { kind: kind.into(), place: None, raised: false }))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at rank {}", self.call, self.rank)?;
        if let Some(target) = self.target {
            write!(f, ", target {target}")?;
            if let Some(process) =
                self.process.filter(|process| i64::from(*process) != target.into())
            {
                write!(f, " (rank {process} of the job)")?;
            }
        }
        if let Some(window) = self.window {
            write!(f, ", window {window}")?;
        }
        if let Some((start, end)) = self.bytes {
            write!(f, ", bytes {start}..{end}")?;
        }
        match &self.epoch {
            Some(epoch) => write!(f, ", {epoch}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.place {
            Some(place) => write!(f, "{} ({place})", self.0.kind),
            None => self.0.kind.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.class().mpi_name())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_place_once() {
        let place = |call| Place { call, rank: 2, target: Some(1), ..Place::default() };
        let error = Error::from(ErrorKind::Count(-1)).at(|| place("put")).at(|| place("fence"));
        assert_eq!(error.class(), Class::Count);
        assert_eq!(
            error.to_string(),
            "count -1 is negative: use 0 or more (put at rank 2, target 1)"
        );
        assert!(format!("{error:?}").starts_with("MPI_ERR_COUNT: "));
    }
}

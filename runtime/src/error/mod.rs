//! Errors: the kind of each, the place where it occurred, and its MPI error class.

mod class;
mod excerpt;
mod kind;
mod locale;
mod other;
mod words;

use std::fmt;
use std::panic::Location;

use shipable::Class;

pub(crate) use excerpt::{SHOWN, excerpt, type_excerpt, type_string, type_text};
pub use kind::ErrorKind;
pub(crate) use locale::locale_target;
pub(crate) use words::{call_name, leaf_name, spoken};

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a call of this crate: what was wrong, and the [`Place`] where it was found.
///
/// The text states the fault, the values involved, and the remedy. [`class`](Error::class) is the
/// MPI error class.
pub struct Error(Box<Report>);

struct Report {
    kind: ErrorKind,
    place: Option<Place>,
    /// The number of the failed operation among those on its target, until its line is known.
    operation: Option<u64>,
    /// Whether an error handler has dealt with it.
    raised: bool,
    /// The sender and the tag of the message that a failed receive had matched. The sender is
    /// numbered in the job until the receive ends, and in the communicator from then on.
    message: Option<(i32, i32)>,
    /// The source line of that message's send, under `--check`.
    sent_at: Option<Box<str>>,
}

/// The call, ranks, window and bytes of a failed operation. Its text ends that of the error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the call, such as `put`.
    pub call: &'static str,
    /// The rank that made the call, numbered in the job.
    pub rank: u32,
    /// The rank that the call addressed, numbered in its communicator.
    pub target: Option<i32>,
    /// The addressed rank, numbered in the job.
    pub process: Option<u32>,
    /// The window's number.
    pub window: Option<u32>,
    /// The bytes of the target's window that the operation addressed: start and end.
    pub bytes: Option<(i128, i128)>,
    /// The state of the window's epoch.
    pub epoch: Option<String>,
    /// The window's name, if the program gave it one.
    pub name: Option<String>,
    /// The source line of the operation, if a later call returned its error: a target refuses an
    /// operation by message after the operation's call.
    pub issued: Option<&'static Location<'static>>,
    /// The source line of the call that returned the error.
    pub site: Option<&'static Location<'static>>,
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

    /// The fault, with its values.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The place of the failed call, if one is known.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// The source and the tag of the message, if a receive failed that had matched one: the status
    /// that it would have returned has them (MPI-5.0 section 3.2.5).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let sent = world.isend(vec![1i64, 2, 3], world.rank(), 42)?;
    /// let error = world.recv(&mut [0i64; 2], longshore::ANY_SOURCE, 42).unwrap_err();
    /// assert_eq!(error.message(), Some((world.rank(), 42)));
    /// # sent.wait()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn message(&self) -> Option<(i32, i32)> {
        self.0.message
    }

    /// The same error without the source line of its call, for an interface in another language:
    /// the lines of its calls say nothing to a program.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let error = rank.world().send(&[1u8], 0, -9).unwrap_err();
    /// assert!(error.to_string().contains(file!()));
    /// assert!(!error.without_site().to_string().contains(file!()));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn without_site(mut self) -> Error {
        if let Some(place) = &mut self.0.place {
            (place.site, place.issued) = (None, None);
        }
        self
    }

    /// Turns the error of a remote operation into one about this rank's own window.
    pub(crate) fn at_home(mut self) -> Error {
        if let ErrorKind::Range { own, .. } | ErrorKind::NotAttached { own, .. } = &mut self.0.kind
        {
            *own = true;
        }
        self
    }

    /// Adds the epoch's state to the place, for callers that don't know the epoch themselves.
    pub(crate) fn within(mut self, epoch: impl FnOnce() -> String) -> Error {
        if let Some(place) = &mut self.0.place {
            place.epoch.get_or_insert_with(epoch);
        }
        self
    }

    /// Adds the source line of the call and the window's name to the place, unless they are there.
    pub(crate) fn seen_at(
        mut self,
        site: &'static Location<'static>,
        name: impl FnOnce() -> String,
    ) -> Error {
        if let Some(place) = &mut self.0.place {
            place.site.get_or_insert(site);
            if place.window.is_some() && place.name.is_none() {
                place.name = Some(name()).filter(|name| !name.is_empty());
            }
        }
        self
    }

    /// Numbers the failed operation, whose source line its window knows.
    pub(crate) fn of_operation(mut self, number: u64) -> Error {
        self.0.operation = Some(number);
        self
    }

    /// Adds the source line of the failed operation, which `find` looks up by the target's rank in
    /// the window and the operation's number.
    pub(crate) fn locate(
        &mut self,
        find: impl FnOnce(i32, u64) -> Option<&'static Location<'static>>,
    ) {
        let Report { place, operation, .. } = &mut *self.0;
        if let (Some(Place { target: Some(target), issued, .. }), Some(number)) = (place, operation)
        {
            if issued.is_none() {
                *issued = find(*target, *number);
            }
        }
    }

    /// Marks the error as handled by an error handler. Returns whether it wasn't marked before.
    pub(crate) fn first_raised(&mut self) -> bool {
        !std::mem::replace(&mut self.0.raised, true)
    }

    /// Adds the message that a failed receive had matched, unless it is known.
    pub(crate) fn of_message(mut self, peer: u32, tag: i32) -> Error {
        self.0.message.get_or_insert((peer as i32, tag));
        self
    }

    /// Adds the source line of the send of that message.
    pub(crate) fn sent_from(mut self, line: Option<Box<str>>) -> Error {
        self.0.sent_at = line;
        self
    }

    /// The source line of the send of the message that a failed receive had matched.
    pub(crate) fn sent_at(&self) -> Option<&str> {
        self.0.sent_at.as_deref()
    }

    /// Converts the sender of the message from a rank of the job to one of the communicator.
    pub(crate) fn received_in(mut self, rank_of: impl FnOnce(u32) -> i32) -> Error {
        self.0.message = self.0.message.map(|(peer, tag)| (rank_of(peer as u32), tag));
        self
    }

    /// Adds a place, unless the error has one already.
    pub(crate) fn at(mut self, place: impl FnOnce() -> Place) -> Error {
        self.0.place.get_or_insert_with(place);
        self
    }
}

/// Turns a conversion error of a compiled program into the error of rule 28.
pub(crate) fn conversion(error: shipable::Error) -> Error {
    match error {
        shipable::Error::Conversion(value) => ErrorKind::Conversion(value.to_string()).into(),
        error => error.into(),
    }
}

impl<K: Into<ErrorKind>> From<K> for Error {
    fn from(kind: K) -> Error {
        let (place, operation, message) = (None, None, None);
        let (kind, raised, sent_at) = (kind.into(), false, None);
        Error(Box::new(Report { kind, place, operation, raised, message, sent_at }))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = words::call_name(self.call, self.window.is_some());
        write!(f, "{call} at rank {}", self.rank)?;
        if let Some(target) = self.target {
            write!(f, ", target {}", words::rank_name(target))?;
            if let Some(process) =
                self.process.filter(|process| i64::from(*process) != i64::from(target))
            {
                write!(f, " (rank {process} of the job)")?;
            }
        }
        if let Some(window) = self.window {
            write!(f, ", window {window}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " {:?}", excerpt(name))?;
        }
        if let Some((start, end)) = self.bytes {
            write!(f, ", bytes {start}..{end}")?;
        }
        if let Some(epoch) = &self.epoch {
            write!(f, ", {epoch}")?;
        }
        match (self.issued, self.site) {
            (Some(issued), Some(site)) => write!(f, ", called at {issued}, reported at {site}"),
            (Some(site), None) | (None, Some(site)) => write!(f, ", at {site}"),
            (None, None) => Ok(()),
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
    fn special_ranks_and_tags_have_names() {
        let rank = |rank| ErrorKind::Rank { rank, size: 2, null: false }.to_string();
        assert!(rank(-1).starts_with("no rank ANY_SOURCE in") && rank(-7).contains("rank -7 in"));
        assert!(ErrorKind::Tag(-2).to_string().starts_with("tag ANY_TAG is only for receives: "));
        let place = Place { call: "send", target: Some(-3), ..Place::default() };
        assert_eq!(place.to_string(), "send at rank 0, target PROC_NULL");
        let root = ErrorKind::Root { root: crate::PROC_NULL, size: 2 };
        assert!(root.to_string().starts_with("no root PROC_NULL in a communicator of 2:"));
    }

    #[test]
    fn a_range_error_says_which_displacement_fits() {
        let text = |start, end, displacement| {
            let (size, unit, own) = (64, 8, false);
            ErrorKind::Range { start, end, size, displacement, unit, own }.to_string()
        };
        assert!(text(64, 80, 8).ends_with("by a displacement from 0 to 6"), "{}", text(64, 80, 8));
        // A type whose first byte lies before its displacement.
        assert!(text(-4, 4, 0).ends_with("by a displacement from 1 to 7"), "{}", text(-4, 4, 0));
        assert!(text(0, 72, 0).ends_with("72 bytes fit at no displacement, so use fewer"));
    }

    #[test]
    fn the_first_place_of_an_error_stays() {
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

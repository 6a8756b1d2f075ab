//! [`Fault`]: an error of a call, before it is raised.

use std::fmt::Display;

use longshore::Class;

use crate::edge::raw::Handle;

/// The result of a function behind an export.
pub type Result<T, F = Fault> = std::result::Result<T, F>;

/// The object whose error handler gets an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raiser {
    /// MPI_COMM_SELF, for calls about no other object (MPI-5.0 section 9.3).
    Own,
    /// A communicator.
    Comm(Handle),
    /// A window.
    Win(Handle),
    /// A file.
    File(Handle),
    /// A session.
    Session(Handle),
    /// The object that the call would have made: it has this error handler.
    Handler(Handle),
    /// None: the call only returns its code.
    Nobody,
}

/// An error of a call. One pointer wide, since most calls have none.
#[derive(Debug)]
pub struct Fault(Box<Report>);

#[derive(Debug)]
struct Report {
    code: i32,
    /// Whether the call returns this very code, which a function of the program returned.
    is_returned: bool,
    message: Option<String>,
    raiser: Option<Raiser>,
}

impl Fault {
    /// An error of a class of MPI.
    #[cold]
    pub fn new(class: Class, message: String) -> Fault {
        Fault::coded(i32::from(class.wire()), Some(message))
    }

    /// An error with a code that is known otherwise.
    #[cold]
    pub fn coded(code: i32, message: Option<String>) -> Fault {
        Fault(Box::new(Report { code, is_returned: false, message, raiser: None }))
    }

    /// An error with the code that a function of the program returned. The call returns it as it is
    /// (MPI-5.0 sections 7.7.2 and 13.2).
    #[cold]
    pub fn returned(code: i32, message: String) -> Fault {
        Fault(Box::new(Report { code, is_returned: true, message: Some(message), raiser: None }))
    }

    /// An argument that is wrong in itself.
    #[cold]
    pub fn argument(what: impl Display) -> Fault {
        Fault::new(Class::Arg, what.to_string())
    }

    /// The same error, raised on another object than the call's.
    pub fn on(mut self, raiser: Raiser) -> Fault {
        self.0.raiser = Some(raiser);
        self
    }

    /// The class of the error, or its code if that is known.
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// Its class, for the other ranks of a collective call: OTHER for a code of the program.
    pub fn class(&self) -> Class {
        u8::try_from(self.0.code).ok().and_then(Class::from_wire).unwrap_or(Class::Other)
    }

    /// What was wrong, for the other ranks of a collective call.
    pub fn text(&self) -> &str {
        self.message().unwrap_or("a function of the program has failed")
    }

    /// Whether its code is one that a function of the program returned.
    pub fn is_returned(&self) -> bool {
        self.0.is_returned
    }

    /// What was wrong.
    pub fn message(&self) -> Option<&str> {
        self.0.message.as_deref()
    }

    pub fn raiser(&self) -> Option<Raiser> {
        self.0.raiser
    }
}

impl From<longshore::Error> for Fault {
    #[cold]
    fn from(error: longshore::Error) -> Fault {
        Fault::new(error.class(), error.without_site().to_string())
    }
}

impl From<longshore_file::Error> for Fault {
    #[cold]
    fn from(error: longshore_file::Error) -> Fault {
        match error {
            longshore_file::Error::Runtime(error) => error.into(),
            error => Fault::new(error.class(), error.to_string()),
        }
    }
}

impl From<longshore::shipable::Error> for Fault {
    #[cold]
    fn from(error: longshore::shipable::Error) -> Fault {
        Fault::new(error.class(), error.to_string())
    }
}

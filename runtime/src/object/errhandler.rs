//! Error handlers: what is done about errors besides returning them (MPI-5.0 section 9.3).
//!
//! Every call on a window or communicator that fails has its object's handler deal with the error, once, and then returns it:
//! an error that a scope's body passes on is not a new one. The making of a window is a call on its communicator. Handlers
//! run on the caller's thread with no lock held, when the call has done all that it does.

use std::fmt;
use std::sync::Arc;

use super::Holder;
use crate::error::Error;

type Callback = Arc<dyn Fn(&Holder<'_>, &Error) + Send + Sync>;

/// What is done about errors of calls on a window or communicator, before they are returned.
///
/// Unlike MPI's, the default is [`Return`](ErrorHandler::Return): a `Result` that nobody looks at is a warning of the compiler.
/// What is made of a communicator by dup, split and the like inherits its handler; windows begin with the default.
///
/// ```
/// use longshore::{ErrorHandler, Info, Window};
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use std::sync::Arc;
///
/// let rank = longshore::init()?;
/// let window = Window::allocate(rank.world(), 8, 8, &Info::default())?;
/// let count = Arc::new(AtomicUsize::new(0));
/// let errors = count.clone();
/// window.set_errhandler(ErrorHandler::new(move |window, error| {
///     eprintln!("window {}: {error}", window.name());
///     errors.fetch_add(1, Ordering::Relaxed);
/// }));
/// let error = window.wait().unwrap_err(); // there was no post
/// assert_eq!(count.load(Ordering::Relaxed), 1);
/// window.call_errhandler(&error);
/// assert_eq!(count.load(Ordering::Relaxed), 2);
/// assert!(matches!(rank.world().errhandler(), ErrorHandler::Return));
/// window.free()?;
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ErrorHandler {
    /// Nothing: MPI_ERRORS_RETURN.
    #[default]
    Return,
    /// The object's ranks are ended, and with them the job, of which none would be left whole: MPI_ERRORS_ABORT.
    Abort,
    /// The job is ended, with the error's class as exit status: MPI_ERRORS_ARE_FATAL. Of ranks that share a process
    /// ([`sim`](crate::sim)) the call returns its error, and later ones that wait for others fail.
    Fatal,
    /// A function of the program's own is called with the object and the error.
    Own(Callback),
}

impl ErrorHandler {
    /// A function of the program's own (MPI_Win_create_errhandler and the like).
    pub fn new(handler: impl Fn(&Holder<'_>, &Error) + Send + Sync + 'static) -> ErrorHandler {
        ErrorHandler::Own(Arc::new(handler))
    }
}

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorHandler::Return => "MPI_ERRORS_RETURN",
            ErrorHandler::Abort => "MPI_ERRORS_ABORT",
            ErrorHandler::Fatal => "MPI_ERRORS_ARE_FATAL",
            ErrorHandler::Own(_) => "an own error handler",
        })
    }
}

/// The calls on error handlers, for what has a [`Card`](super::Card) and a process.
macro_rules! error_handling {
    () => {
        /// What is done about errors of calls on it (MPI-5.0 section 9.3).
        pub fn errhandler(&self) -> $crate::ErrorHandler {
            self.card().errhandler()
        }

        /// Has errors of later calls on it dealt with by another handler, at this rank.
        pub fn set_errhandler(&self, handler: $crate::ErrorHandler) {
            self.card().set_errhandler(handler);
        }

        /// Has its handler deal with an error, whatever call it is of (MPI-5.0 section 9.5).
        pub fn call_errhandler(&self, error: &$crate::Error) {
            self.card().handle(self.process(), error);
        }
    };
}

pub(crate) use error_handling;

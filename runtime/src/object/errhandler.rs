//! Error handlers (MPI-5.0 section 9.3).
//!
//! If a call on a window or communicator fails, its object's handler is called with the error, and
//! the call then returns the error. Each error is handled once, even if the body of an epoch passes
//! it on. A call that makes a window counts as a call on its communicator.
//!
//! Handlers run on the calling thread, without a lock held, after the call has done everything
//! else.

use std::fmt;
use std::sync::Arc;

use super::Holder;
use crate::error::Error;

type Callback = Arc<dyn Fn(&Holder<'_>, &Error) + Send + Sync>;

/// The reaction to errors of calls on a window or communicator, before they are returned.
///
/// The default is [`Return`](ErrorHandler::Return), unlike MPI's: the compiler warns about an
/// unused `Result`. A communicator derived from another one inherits its handler. Windows begin
/// with the default.
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
    /// Only returns the error: MPI_ERRORS_RETURN.
    #[default]
    Return,
    /// Aborts the object's ranks and with them the whole job: MPI_ERRORS_ABORT.
    Abort,
    /// Aborts the job, with the error's class as exit status: MPI_ERRORS_ARE_FATAL. If the ranks
    /// share a process ([`sim`](crate::sim)), the call returns its error instead, and later calls
    /// that wait for other ranks fail.
    Fatal,
    /// Calls a function of the program with the object and the error.
    Own(Callback),
}

impl ErrorHandler {
    /// Makes a handler of a function (MPI_Win_create_errhandler and its counterparts).
    #[doc(alias = "MPI_Win_create_errhandler")]
    #[doc(alias = "MPI_Comm_create_errhandler")]
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

/// The public methods on error handlers, for a type with the methods `card` and `process`.
macro_rules! error_handling {
    () => {
        /// The handler of errors of calls on this object (MPI-5.0 section 9.3).
        #[doc(alias = "MPI_Comm_get_errhandler")]
        #[doc(alias = "MPI_Win_get_errhandler")]
        pub fn errhandler(&self) -> $crate::ErrorHandler {
            self.card().errhandler()
        }

        /// Sets the handler of errors of later calls on this object, at this rank.
        #[doc(alias = "MPI_Comm_set_errhandler")]
        #[doc(alias = "MPI_Win_set_errhandler")]
        pub fn set_errhandler(&self, handler: $crate::ErrorHandler) {
            self.card().set_errhandler(handler);
        }

        /// Calls the object's handler with an error of any call (MPI-5.0 section 9.5).
        #[doc(alias = "MPI_Comm_call_errhandler")]
        #[doc(alias = "MPI_Win_call_errhandler")]
        pub fn call_errhandler(&self, error: &$crate::Error) {
            self.card().handle(self.process(), error);
        }
    };
}

pub(crate) use error_handling;

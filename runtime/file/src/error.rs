//! Errors of calls on files, and their MPI error classes.

use std::io;
use std::path::PathBuf;

use longshore::Class;
use longshore::shipable;
use nix::errno::Errno;

/// The result of a call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a call on a file. Its text states the fault, the values involved, and the remedy.
///
/// ```
/// use longshore_file::{Amode, File, Info};
///
/// # let rank = longshore::init()?;
/// let missing = File::open(rank.alone(), "/no/such/file", Amode::RDONLY, &Info::default());
/// let error = missing.err().unwrap();
/// assert_eq!(error.class(), longshore::Class::NoSuchFile);
/// assert!(error.to_string().contains("/no/such/file"));
/// # rank.finalize()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the runtime: of memory, types, communication.
    #[error(transparent)]
    Runtime(#[from] longshore::Error),
    /// A datatype that can't be used, or a value that a representation can't hold.
    #[error(transparent)]
    Datatype(#[from] shipable::Error),
    /// The system refused something.
    #[error("can't {doing} {path:?}: {error}")]
    System {
        /// The action of the call.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Modes of access that contradict each other.
    #[error("the mode of access {amode} {problem}")]
    Amode {
        /// The mode, as MPI names it.
        amode: String,
        /// The fault of the mode, and the remedy.
        problem: &'static str,
    },
    /// A call that the mode of access doesn't allow.
    #[error("{call} isn't allowed: {path:?} is open with {amode}, {remedy}")]
    Forbidden {
        /// MPI's class.
        class: Class,
        /// The call.
        call: &'static str,
        /// The file.
        path: PathBuf,
        /// The mode of access.
        amode: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// An argument that is wrong in itself, or that doesn't fit the state of the file.
    #[error("{problem}")]
    Argument {
        /// MPI's class.
        class: Class,
        /// The fault, with the values.
        problem: String,
    },
    /// Another rank's error of a collective call.
    #[error("rank {rank} of the file has failed: {text}")]
    Elsewhere {
        /// The rank in the file's group.
        rank: i32,
        /// The class of its error.
        class: Class,
        /// The text of its error.
        text: String,
    },
}

impl Error {
    /// An argument that is wrong.
    pub(crate) fn argument(class: Class, problem: impl Into<String>) -> Error {
        Error::Argument { class, problem: problem.into() }
    }

    /// The MPI error class.
    pub fn class(&self) -> Class {
        match self {
            Error::Runtime(error) => error.class(),
            Error::Datatype(error) => error.class(),
            Error::System { error, .. } => of_system(error),
            Error::Amode { .. } => Class::Amode,
            Error::Forbidden { class, .. }
            | Error::Argument { class, .. }
            | Error::Elsewhere { class, .. } => *class,
        }
    }
}

/// The class of an error of the system.
fn of_system(error: &io::Error) -> Class {
    let Some(number) = error.raw_os_error() else { return Class::Io };
    match Errno::from_raw(number) {
        Errno::ENOENT | Errno::ENXIO => Class::NoSuchFile,
        Errno::EEXIST => Class::FileExists,
        Errno::EACCES | Errno::EPERM => Class::Access,
        Errno::EROFS => Class::ReadOnly,
        Errno::ENOSPC => Class::NoSpace,
        Errno::EDQUOT => Class::Quota,
        Errno::EISDIR | Errno::ENOTDIR | Errno::ENAMETOOLONG | Errno::ELOOP => Class::BadFile,
        Errno::EBUSY | Errno::ETXTBSY => Class::FileInUse,
        Errno::ENOMEM => Class::NoMem,
        _ => Class::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_classes_of_mpi() {
        for (errno, class) in [
            (Errno::ENOENT, Class::NoSuchFile),
            (Errno::EEXIST, Class::FileExists),
            (Errno::EACCES, Class::Access),
            (Errno::EROFS, Class::ReadOnly),
            (Errno::ENOSPC, Class::NoSpace),
            (Errno::EDQUOT, Class::Quota),
            (Errno::EISDIR, Class::BadFile),
            (Errno::ENOTDIR, Class::BadFile),
            (Errno::ETXTBSY, Class::FileInUse),
            (Errno::EIO, Class::Io),
        ] {
            assert_eq!(of_system(&errno.into()), class, "{errno}");
        }
    }
}

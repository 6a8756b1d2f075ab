//! Temporary files through which the processes of a bench exchange data.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

/// A file in the folder for temporary files. Dropping it removes the file.
#[derive(Debug)]
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Creates an empty file. Its name contains `purpose`.
    ///
    /// # Errors
    /// A folder that can't be written.
    pub fn new(purpose: &str) -> io::Result<Scratch> {
        named(purpose, |path| fs::File::create_new(path).map(drop)).map(Scratch)
    }
}

/// Makes a temporary file or folder whose name contains `purpose`.
///
/// # Errors
/// The error of `make`, with the path.
pub fn named(purpose: &str, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("longshore-{purpose}-{}-{number}", process::id()));
        match make(&path) {
            Ok(()) => return Ok(path),
            // An earlier process with this process's id left the file. Try the next number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(of(&path, &error)),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Adds the path of the file to an error.
pub(crate) fn of(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_earlier_process_are_skipped() -> io::Result<()> {
        let first = Scratch::new("left")?;
        // The first try uses the name of a file that exists.
        let tried = AtomicU32::new(0);
        let path = named("left", |path| match tried.fetch_add(1, Ordering::Relaxed) {
            0 => fs::File::create_new(&first.0).map(drop),
            _ => fs::File::create_new(path).map(drop),
        })?;
        let second = Scratch(path);
        assert_ne!(first.0, second.0);
        Ok(())
    }

    #[test]
    fn an_error_names_the_file() {
        let make = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        let error = named("refused", make).expect_err("it is refused");
        assert!(error.to_string().contains("longshore-refused-"), "{error}");
    }
}

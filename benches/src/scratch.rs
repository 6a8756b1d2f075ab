//! Files that a bench's processes pass on.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

/// An empty file in the folder for temporary ones, gone when dropped.
#[derive(Debug)]
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// One whose name says what it is for.
    ///
    /// # Errors
    /// A folder that can't be written.
    pub fn new(purpose: &str) -> io::Result<Scratch> {
        named(purpose, |path| fs::File::create_new(path).map(drop)).map(Scratch)
    }
}

/// Makes a file or a folder among the temporary ones by a name that says what it is for. An error names it.
///
/// # Errors
/// What `make` meets.
pub fn named(purpose: &str, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("longshore-{purpose}-{}-{number}", process::id()));
        match make(&path) {
            Ok(()) => return Ok(path),
            // Left by an earlier process of this number.
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

/// An error with the path of the file that it is about.
pub(crate) fn of(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_process_left_is_passed_over() -> io::Result<()> {
        let first = Scratch::new("left")?;
        // As if the numbers began anew.
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

//! Files that a bench's processes pass on.

use std::path::PathBuf;
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
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("longshore-{purpose}-{}-{number}", process::id()));
        fs::File::create_new(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

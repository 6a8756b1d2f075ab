//! A file as the system has it: bytes at offsets.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use longshore::{Class, Local};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

use crate::amode::Amode;
use crate::error::{Error, Result};

/// An open file.
pub(crate) struct Storage {
    file: File,
    /// The path as it was given.
    path: PathBuf,
    /// The path from the root: a program may change its folder.
    place: PathBuf,
}

/// Properties of a file that are equal at all ranks that open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The number of its inode, which all mounts of a network file system share. Numbers of devices
    /// differ between mounts.
    pub inode: u64,
    /// Its length in bytes.
    pub size: u64,
}

/// The error of the system in doing something with a path.
pub(crate) fn system(doing: &'static str, path: &Path, error: impl Into<io::Error>) -> Error {
    Error::System { doing, path: path.to_owned(), error: error.into() }
}

/// Deletes a file.
pub(crate) fn delete(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|error| system("delete", path, error))
}

impl Storage {
    /// Opens a file. Returns whether this call has made it.
    pub fn open(path: &Path, amode: Amode, perm: u32) -> Result<(Storage, bool)> {
        let mut options = OpenOptions::new();
        options.read(amode.may_read()).write(amode.may_write()).mode(perm);
        let failed = |error| system("open", path, error);
        let creates = amode.contains(Amode::CREATE);
        if creates {
            match options.clone().create_new(true).open(path) {
                Ok(file) => return Storage::checked(file, path).map(|storage| (storage, true)),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(error));
                }
                Err(error) if amode.contains(Amode::EXCL) => return Err(failed(error)),
                Err(_) => {}
            }
        }
        let file = match options.open(path) {
            // The path is a link to a file that isn't there yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound && creates => {
                options.create(true).open(path)
            }
            opened => opened,
        };
        Ok((Storage::checked(file.map_err(failed)?, path)?, false))
    }

    /// Refuses directories, which the system opens for reading.
    fn checked(file: File, path: &Path) -> Result<Storage> {
        let failed = |error| system("open", path, error);
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(Errno::ISDIR.into()));
        }
        let place = std::path::absolute(path).map_err(failed)?;
        Ok(Storage { file, path: path.to_owned(), place })
    }

    /// The path from the root, wherever the process is now.
    pub fn place(&self) -> &Path {
        &self.place
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, doing: &'static str, error: io::Error) -> Error {
        system(doing, &self.path, error)
    }

    pub fn identity(&self) -> Result<Identity> {
        let found = self.file.metadata().map_err(|error| self.failed("look at", error))?;
        Ok(Identity { inode: found.ino(), size: found.len() })
    }

    /// The length of the file in bytes.
    pub fn size(&self) -> Result<u64> {
        Ok(self.identity()?.size)
    }

    /// Makes the file shorter or longer.
    pub fn set_size(&self, size: u64) -> Result<()> {
        self.file.set_len(size).map_err(|error| self.failed("change the size of", error))
    }

    /// Gets room for the first `size` bytes. The file becomes as long, unless it is longer.
    pub fn preallocate(&self, size: u64) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        // The system's lengths have 64 bits on all machines.
        match retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), 0, size)) {
            Ok(()) => Ok(()),
            // The file system has no such call: bytes that are written have their room.
            Err(Errno::OPNOTSUPP) => self.rewrite(size),
            Err(error) => Err(self.failed("get room for", error.into())),
        }
    }

    /// Writes the first `size` bytes again, and zeros past the end.
    fn rewrite(&self, size: u64) -> Result<()> {
        let mut bytes = vec![0; size.min(1 << 20) as usize];
        let mut at = 0;
        while at < size {
            let piece = &mut bytes[..(size - at).min(1 << 20) as usize];
            let read = match self.read(at, piece) {
                Err(Error::System { error, .. })
                    if Errno::from_io_error(&error) == Some(Errno::BADF) =>
                {
                    let problem = format!(
                        "the file system of {:?} gets no room by itself, and the file is open with \
                         WRONLY: open it with RDWR",
                        self.path
                    );
                    return Err(Error::argument(Class::UnsupportedOperation, problem));
                }
                read => read?,
            };
            piece[read..].fill(0);
            self.write(at, piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Waits until all that was written is on the device.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|error| self.failed("sync", error))
    }

    /// Closes the file. Some file systems report only now that they couldn't write.
    pub fn close(self) -> Result<()> {
        match nix::unistd::close(self.file) {
            // It is closed all the same.
            Ok(()) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(system("close", &self.path, error)),
        }
    }

    /// Reads bytes at an offset, until `room` is full or the file ends. Returns their number.
    pub fn read(&self, offset: u64, room: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < room.len() {
            match self.file.read_at(&mut room[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("read", error)),
            }
        }
        Ok(done)
    }

    /// Writes bytes of a window's memory at an offset, from where they are.
    pub fn write_from(&self, memory: &Local<'_>, part: Range<u64>, offset: u64) -> Result<()> {
        let mut done = 0;
        while part.start + done < part.end {
            let (start, len) =
                ((part.start + done) as i64, (part.end - part.start - done) as usize);
            match memory.write_to(start, len, &self.file, offset + done)? {
                Ok(0) => return Err(self.failed("write", io::ErrorKind::WriteZero.into())),
                Ok(written) => done += written as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("write", error)),
            }
        }
        Ok(())
    }

    /// Reads bytes at an offset into a window's memory, until the part is full or the file ends.
    /// Returns their number.
    pub fn read_into(&self, memory: &Local<'_>, part: Range<u64>, offset: u64) -> Result<u64> {
        let mut done = 0;
        while part.start + done < part.end {
            let (start, len) =
                ((part.start + done) as i64, (part.end - part.start - done) as usize);
            match memory.read_from(start, len, &self.file, offset + done)? {
                Ok(0) => break,
                Ok(read) => done += read as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("read", error)),
            }
        }
        Ok(done)
    }

    /// Writes bytes at an offset.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|error| self.failed("write", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that nothing has.
    fn path(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("longshore-storage-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn a_link_to_no_file_makes_the_file() {
        let (link, target) = (path("link"), path("target"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let amode = Amode::CREATE | Amode::WRONLY;
        Storage::open(&link, amode, 0o600).unwrap();
        assert!(fs::metadata(&target).unwrap().is_file());
        let error = Storage::open(&link, amode | Amode::EXCL, 0o600).err().unwrap();
        assert_eq!(error.class(), Class::FileExists);
        delete(&link).unwrap();
        delete(&target).unwrap();
    }

    #[test]
    fn bytes_that_are_written_again_stay_and_holes_get_room() {
        let path = path("rewritten");
        let amode = Amode::CREATE | Amode::RDWR;
        let (storage, _) = Storage::open(&path, amode, 0o600).unwrap();
        storage.write((3 << 20) + 5, b"end").unwrap();
        let blocks = |storage: &Storage| storage.file.metadata().unwrap().blocks();
        let before = blocks(&storage);
        storage.rewrite((3 << 20) + 100).unwrap();
        let mut all = vec![1; (3 << 20) + 200];
        assert_eq!(storage.read(0, &mut all).unwrap(), (3 << 20) + 100);
        let data: Vec<usize> = (0..(3 << 20) + 100).filter(|at| all[*at] != 0).collect();
        assert_eq!(data, [(3 << 20) + 5, (3 << 20) + 6, (3 << 20) + 7]);
        storage.sync().unwrap();
        assert!(blocks(&storage) > before);
        let (storage, _) = Storage::open(&path, Amode::WRONLY, 0o600).unwrap();
        assert_eq!(storage.rewrite(9).unwrap_err().class(), Class::UnsupportedOperation);
        delete(&path).unwrap();
    }
}

//! Forwards the output of ranks: whole lines, in the order in which they arrived; or writes it to
//! files.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use super::Error;

/// A line longer than this is forwarded in pieces. Output of other ranks may come between them.
const LINE_LIMIT: usize = 1 << 20;
/// If this many bytes wait to be written, the launcher stops reading the ranks' output.
const QUEUE_LIMIT: usize = 1 << 20;
/// A pipe that polls writable takes this many bytes without blocking (PIPE_BUF of POSIX on Linux).
const PIECE: usize = 4096;

/// One of the two standard streams for output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OutputStream {
    Stdout,
    Stderr,
}

/// Splits the bytes from one pipe of a rank into lines.
pub(super) struct Lines {
    stream: OutputStream,
    label: String,
    /// The file that has them, and its path.
    file: Option<(File, PathBuf)>,
    /// The start of a line whose end hasn't arrived yet.
    partial: Vec<u8>,
}

impl Lines {
    /// Lines that go to `stream`, each prefixed with `label`.
    pub(super) fn new(stream: OutputStream, label: String) -> Lines {
        Lines { stream, label, file: None, partial: Vec::new() }
    }

    /// Lines of a rank that go to a file in a folder.
    ///
    /// # Errors
    /// The file can't be made.
    pub(super) fn to_file(stream: OutputStream, folder: &Path, rank: u32) -> Result<Lines, Error> {
        let ending = match stream {
            OutputStream::Stdout => "out",
            OutputStream::Stderr => "err",
        };
        let path = folder.join(format!("{rank}.{ending}"));
        match File::create(&path) {
            Ok(file) => Ok(Lines { file: Some((file, path)), ..Lines::new(stream, String::new()) }),
            Err(source) => Err(Error::Output { path, source }),
        }
    }

    /// Adds `new` bytes and forwards the lines that are complete.
    pub(super) fn take(&mut self, new: &[u8], queue: &mut Queue) {
        match new.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => {
                let (lines, rest) = new.split_at(last + 1);
                self.partial.extend_from_slice(lines);
                self.pass(queue);
                self.partial.extend_from_slice(rest);
            }
            None => self.partial.extend_from_slice(new),
        }
        if self.partial.len() >= LINE_LIMIT {
            self.pass(queue);
        }
    }

    /// Forwards an unterminated last line. A labelled line gets a line end, so that the next label
    /// starts a new line.
    pub(super) fn flush(&mut self, queue: &mut Queue) {
        if !self.partial.is_empty() && !self.label.is_empty() {
            self.partial.push(b'\n');
        }
        self.pass(queue);
    }

    /// Writes to the file, if there is one that takes it. If the file doesn't, this line and all
    /// later ones go to the launcher's own output, so that they aren't lost.
    fn write(&mut self, queue: &mut Queue) -> bool {
        let Some((file, path)) = &mut self.file else { return false };
        let Err(error) = file.write_all(&self.partial) else { return true };
        let what = format!("longshore: can't write to {}: {error}\n", path.display());
        queue.push(OutputStream::Stderr, what.as_bytes());
        self.file = None;
        false
    }

    fn pass(&mut self, queue: &mut Queue) {
        if self.write(queue) {
            // Its file has it.
        } else if self.label.is_empty() {
            queue.push(self.stream, &self.partial);
        } else {
            for line in self.partial.split_inclusive(|&byte| byte == b'\n') {
                queue.push(self.stream, self.label.as_bytes());
                queue.push(self.stream, line);
            }
        }
        self.partial.clear();
    }
}

/// The output that waits to be written. One queue for both streams preserves their common order.
#[derive(Default)]
pub(super) struct Queue {
    /// Consecutive bytes for the same stream form one run.
    runs: VecDeque<(OutputStream, VecDeque<u8>)>,
    len: usize,
    abandoned: bool,
}

impl Queue {
    pub(super) fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.len += bytes.len();
        match self.runs.back_mut() {
            Some((last, run)) if *last == stream => run.extend(bytes),
            _ if bytes.is_empty() => {}
            _ => self.runs.push_back((stream, bytes.iter().copied().collect())),
        }
    }

    /// The job's end doesn't wait until the rest is written.
    pub(super) fn abandon(&mut self) {
        self.abandoned = true;
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    pub(super) fn is_full(&self) -> bool {
        self.len >= QUEUE_LIMIT
    }

    /// The stream of the next bytes.
    pub(super) fn next(&self) -> Option<OutputStream> {
        self.runs.front().map(|(stream, _)| *stream)
    }

    /// Writes once to the next stream, which polls writable. Returns `Some` if the write failed;
    /// all bytes that wait for that stream are dropped.
    pub(super) fn write(&mut self) -> Option<(OutputStream, io::Error)> {
        let (stream, run) = self.runs.front_mut()?;
        let bytes = run.as_slices().0;
        let written = match stream {
            OutputStream::Stdout => write_piece(io::stdout().as_fd(), bytes),
            OutputStream::Stderr => write_piece(io::stderr().as_fd(), bytes),
        };
        match written {
            Ok(count) => {
                run.drain(..count);
                self.len -= count;
                if run.is_empty() {
                    self.runs.pop_front();
                }
                None
            }
            Err(error) => {
                let closed = *stream;
                self.runs.retain(|(stream, _)| *stream != closed);
                self.len = self.runs.iter().map(|(_, run)| run.len()).sum();
                Some((closed, error))
            }
        }
    }
}

/// Writes the start of `bytes` to a descriptor that polls writable, and returns the number of bytes
/// written. Doesn't block. It bypasses the standard library's buffers, which would block for the
/// rest of a line.
pub(super) fn write_piece(to: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    match nix::unistd::write(to, &bytes[..bytes.len().min(PIECE)]) {
        Ok(count) => Ok(count),
        Err(Errno::EINTR | Errno::EAGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

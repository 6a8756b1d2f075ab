//! Passing on what the ranks print: whole lines, in the order in which they came.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// A line longer than this is forwarded in pieces, between which another rank's may come.
const LINE_LIMIT: usize = 1 << 20;
/// With this much waiting to be written, the ranks are left to wait as well.
const QUEUE_LIMIT: usize = 1 << 20;
/// A pipe that polls writable takes this much without blocking (POSIX's PIPE_BUF, at Linux's value).
const PIECE: usize = 4096;

/// Where a rank's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OutputStream {
    Stdout,
    Stderr,
}

/// What comes by one of a rank's two pipes, gathered into lines.
pub(super) struct Lines {
    stream: OutputStream,
    label: String,
    /// The start of a line whose end hasn't come yet.
    partial: Vec<u8>,
}

impl Lines {
    /// Lines, each after `label`, on their way to `stream`.
    pub(super) fn new(stream: OutputStream, label: String) -> Lines {
        Lines { stream, label, partial: Vec::new() }
    }

    /// Passes on the lines that end in `new`.
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

    /// Passes on an unterminated last line; under a label, terminated, lest another label follow on it.
    pub(super) fn flush(&mut self, queue: &mut Queue) {
        if !self.partial.is_empty() && !self.label.is_empty() {
            self.partial.push(b'\n');
        }
        self.pass(queue);
    }

    fn pass(&mut self, queue: &mut Queue) {
        if self.label.is_empty() {
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

/// What waits to be written. One queue for both sinks keeps their common order.
#[derive(Default)]
pub(super) struct Queue {
    runs: VecDeque<(OutputStream, VecDeque<u8>)>,
    len: usize,
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

    pub(super) fn is_full(&self) -> bool {
        self.len >= QUEUE_LIMIT
    }

    /// Where the next bytes go.
    pub(super) fn next(&self) -> Option<OutputStream> {
        self.runs.front().map(|(stream, _)| *stream)
    }

    /// Writes once to the next stream, which polls writable. `Some` names a stream that takes nothing any more, and why;
    /// what waited for it is dropped.
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

/// Writes the start of `bytes` to a descriptor that polls writable, and says how much of it: without blocking, and past the
/// standard library's buffers, which would block for the rest of a line.
pub(super) fn write_piece(to: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    match nix::unistd::write(to, &bytes[..bytes.len().min(PIECE)]) {
        Ok(count) => Ok(count),
        Err(Errno::EINTR | Errno::EAGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

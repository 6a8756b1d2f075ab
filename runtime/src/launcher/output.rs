//! Forwarding what the ranks print: whole lines, in the order in which they came.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// A line longer than this is forwarded in pieces, between which another rank's may come.
const LINE_LIMIT: usize = 1 << 20;
/// With this much waiting to be written, the ranks are left to wait as well.
const QUEUE_LIMIT: usize = 1 << 20;
/// A pipe that polls writable takes this much without blocking (POSIX's PIPE_BUF, at Linux's value).
const PIECE: usize = 4096;

/// Where a rank's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    Stdout,
    Stderr,
}

/// One of a rank's two pipes, gathered into lines.
pub(super) struct Stream<R> {
    pipe: R,
    sink: Sink,
    label: String,
    /// The start of a line whose end hasn't come yet.
    partial: Vec<u8>,
}

impl<R: Read + AsFd> Stream<R> {
    /// Lines of `pipe`, each after `label`, on their way to `sink`.
    pub(super) fn new(pipe: R, sink: Sink, label: String) -> Stream<R> {
        Stream { pipe, sink, label, partial: Vec::new() }
    }

    /// Reads once from a pipe that polls readable. `false` once it has ended.
    pub(super) fn forward(&mut self, queue: &mut Queue) -> io::Result<bool> {
        let mut bytes = [0; 16 << 10];
        let count = match self.pipe.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        };
        if count == 0 {
            self.flush(queue);
            return Ok(false);
        }
        let new = &bytes[..count];
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
        Ok(true)
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
            queue.push(self.sink, &self.partial);
        } else {
            for line in self.partial.split_inclusive(|&byte| byte == b'\n') {
                queue.push(self.sink, self.label.as_bytes());
                queue.push(self.sink, line);
            }
        }
        self.partial.clear();
    }
}

impl<R: AsFd> AsFd for Stream<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// What waits to be written. One queue for both sinks keeps their common order.
#[derive(Default)]
pub(super) struct Queue {
    runs: VecDeque<(Sink, VecDeque<u8>)>,
    len: usize,
}

impl Queue {
    pub(super) fn push(&mut self, sink: Sink, bytes: &[u8]) {
        self.len += bytes.len();
        match self.runs.back_mut() {
            Some((last, run)) if *last == sink => run.extend(bytes),
            _ if bytes.is_empty() => {}
            _ => self.runs.push_back((sink, bytes.iter().copied().collect())),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len >= QUEUE_LIMIT
    }

    /// Where the next bytes go.
    pub(super) fn next(&self) -> Option<Sink> {
        self.runs.front().map(|(sink, _)| *sink)
    }

    /// Writes once to the next sink, which polls writable. `Some` names a sink that takes nothing any more, and why;
    /// what waited for it is dropped.
    pub(super) fn write(&mut self) -> Option<(Sink, io::Error)> {
        let (sink, run) = self.runs.front_mut()?;
        let piece = run.as_slices().0;
        let piece = &piece[..piece.len().min(PIECE)];
        let written = match sink {
            Sink::Stdout => write_through(io::stdout().as_fd(), piece),
            Sink::Stderr => write_through(io::stderr().as_fd(), piece),
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
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => {
                let closed = *sink;
                self.runs.retain(|(sink, _)| *sink != closed);
                self.len = self.runs.iter().map(|(_, run)| run.len()).sum();
                Some((closed, error))
            }
        }
    }
}

/// Past the standard library's buffer, which would block for the rest of a line.
fn write_through(sink: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    nix::unistd::write(sink, bytes).map_err(io::Error::from)
}

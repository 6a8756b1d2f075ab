//! Byte strings of messages, whose memory is kept for the next strings.
//!
//! An allocator returns the memory of long strings to the system. Each page of the next string then
//! costs a page fault, which takes longer than copying the page. So the process keeps the memory of
//! strings that are dropped, in classes of lengths. Memory that no string has used for a second is
//! freed by the next call that drops a string or sleeps.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};

/// The binary logarithms of the lengths of the first and the last class. Shorter memory is left to
/// the allocator, which keeps it.
const FIRST: u32 = 12;
const LAST: u32 = 26;
const CLASSES: usize = (LAST - FIRST + 1) as usize;

/// Bytes of a class beyond its power of two: a header in front of the data needs no larger class.
const HEAD: usize = 64;

/// The most bytes that are kept.
const MOST: usize = 64 << 20;

/// The time after which unused memory is freed.
const REST: Duration = Duration::from_secs(1);

/// Bytes of the longest string that needs no memory of its own: a message of a collective call on
/// few elements.
const SHORT: usize = 56;

/// A string of bytes.
#[derive(Debug)]
pub(crate) struct Bytes {
    /// A string that needs no memory of its own.
    short: [u8; SHORT],
    /// The memory of other strings. Its length is the part that has ever been written.
    room: Vec<u8>,
    /// The length of the string.
    len: usize,
}

impl Default for Bytes {
    #[inline]
    fn default() -> Bytes {
        Bytes { short: [0; SHORT], room: Vec::new(), len: 0 }
    }
}

impl Bytes {
    /// An empty string with room for `len` bytes.
    ///
    /// # Errors
    /// NO_MEM if there isn't enough memory.
    #[inline]
    pub(crate) fn with_room(len: usize) -> Result<Bytes, Error> {
        if len <= SHORT { Ok(Bytes::default()) } else { Bytes::with_memory(len) }
    }

    /// An empty string with memory for `len` bytes.
    fn with_memory(len: usize) -> Result<Bytes, Error> {
        let room = match Class::of(len) {
            None => exactly(len)?,
            Some(class) => match class.take() {
                Some(room) => room,
                None => exactly(class.capacity())?,
            },
        };
        Ok(Bytes { short: [0; SHORT], room, len: 0 })
    }

    /// Whether the string needs no memory of its own.
    #[inline]
    fn is_short(&self) -> bool {
        self.room.capacity() == 0
    }

    /// The bytes that the string has room for.
    #[inline]
    fn capacity(&self) -> usize {
        if self.is_short() { SHORT } else { self.room.capacity() }
    }

    /// A string of `len` bytes, which the caller overwrites: they are those of earlier strings.
    ///
    /// # Errors
    /// NO_MEM if there isn't enough memory.
    #[inline]
    pub(crate) fn stale(len: usize) -> Result<Bytes, Error> {
        if len <= SHORT {
            return Ok(Bytes { short: [0; SHORT], room: Vec::new(), len });
        }
        let mut bytes = Bytes::with_memory(len)?;
        bytes.extend_stale(len)?;
        Ok(bytes)
    }

    /// A copy of these bytes.
    ///
    /// # Errors
    /// NO_MEM if there isn't enough memory.
    pub(crate) fn copy_of(bytes: &[u8]) -> Result<Bytes, Error> {
        let mut copy = Bytes::with_room(bytes.len())?;
        copy.extend(bytes)?;
        Ok(copy)
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// NO_MEM if there isn't enough memory. The string is unchanged then.
    #[inline]
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.make_room(bytes.len())?;
        self.append(bytes);
        Ok(())
    }

    /// Appends `len` bytes, which the caller overwrites.
    ///
    /// # Errors
    /// NO_MEM if there isn't enough memory. The string is unchanged then.
    #[inline]
    pub(crate) fn extend_stale(&mut self, len: usize) -> Result<&mut [u8], Error> {
        self.make_room(len)?;
        let start = self.len;
        self.len += len;
        if !self.is_short() && self.room.len() < self.len {
            self.room.resize(self.len, 0);
        }
        Ok(&mut self[start..])
    }

    /// Makes room for `more` bytes behind the string.
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<(), Error> {
        let len = self.len.saturating_add(more);
        if self.capacity() < len { self.lengthen(len) } else { Ok(()) }
    }

    /// Moves the string to memory for `len` bytes, which it doesn't have room for.
    fn lengthen(&mut self, len: usize) -> Result<(), Error> {
        // At least twice as much each time, so that many short pieces aren't copied often.
        let len = len.max(2 * self.room.capacity().saturating_sub(HEAD));
        let mut longer = Bytes::with_memory(len)?;
        longer.append(self);
        *self = longer;
        Ok(())
    }

    /// Appends bytes for which there is room.
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        if self.is_short() {
            self.short[self.len..][..bytes.len()].copy_from_slice(bytes);
        } else {
            let (over, new) = bytes.split_at(bytes.len().min(self.room.len() - self.len));
            self.room[self.len..][..over.len()].copy_from_slice(over);
            self.room.extend_from_slice(new);
        }
        self.len += bytes.len();
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let room = if self.is_short() { &self.short[..] } else { &self.room };
        &room[..self.len]
    }
}

impl DerefMut for Bytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let room = if self.is_short() { &mut self.short[..] } else { &mut self.room };
        &mut room[..self.len]
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(room: Vec<u8>) -> Bytes {
        let len = room.len();
        Bytes { short: [0; SHORT], room, len }
    }
}

impl From<Cow<'_, [u8]>> for Bytes {
    fn from(bytes: Cow<'_, [u8]>) -> Bytes {
        bytes.into_owned().into()
    }
}

impl Drop for Bytes {
    #[inline]
    fn drop(&mut self) {
        if !self.is_short() {
            self.keep();
        }
    }
}

impl Bytes {
    /// Keeps the memory for later strings.
    fn keep(&mut self) {
        if let Some(class) = Class::of(self.room.capacity()) {
            if class.capacity() == self.room.capacity() {
                class.give(std::mem::take(&mut self.room));
            }
        }
    }
}

/// Empty memory for exactly `len` bytes.
fn exactly(len: usize) -> Result<Vec<u8>, Error> {
    let mut room = Vec::new();
    match room.try_reserve_exact(len) {
        Ok(()) => Ok(room),
        Err(_) => Err(ErrorKind::NoMemory(len as u64).into()),
    }
}

/// A class of memory of one length.
#[derive(Clone, Copy)]
struct Class(usize);

impl Class {
    /// The class of memory for `len` bytes. `None` if it isn't kept.
    fn of(len: usize) -> Option<Class> {
        if len < 1 << FIRST {
            return None;
        }
        let power = len.saturating_sub(HEAD).checked_next_power_of_two()?.trailing_zeros();
        (power <= LAST).then_some(Class(power.saturating_sub(FIRST) as usize))
    }

    fn capacity(self) -> usize {
        (1 << (FIRST as usize + self.0)) + HEAD
    }

    /// Memory of this class that is kept.
    fn take(self) -> Option<Vec<u8>> {
        with_kept(|kept| {
            let (_, room) = kept.classes[self.0].pop()?;
            kept.count(kept.bytes - room.capacity());
            Some(room)
        })
    }

    /// Keeps memory of this class, unless too much is kept.
    fn give(self, room: Vec<u8>) {
        let now = Instant::now();
        // Freed after the lock is given back.
        let _old = with_kept(|kept| {
            let old = kept.take_unused(now);
            if kept.bytes + room.capacity() <= MOST {
                kept.count(kept.bytes + room.capacity());
                kept.classes[self.0].push((now, room));
            }
            old
        });
    }
}

/// Frees kept memory that no string has used for a while.
#[inline]
pub(crate) fn free_unused() {
    if BYTES.load(Ordering::Relaxed) > 0 {
        let now = Instant::now();
        drop(with_kept(|kept| kept.take_unused(now)));
    }
}

/// The memory that the process keeps.
struct Kept {
    /// That of each class, with the time of its last use. The last one used comes last.
    classes: [Vec<(Instant, Vec<u8>)>; CLASSES],
    bytes: usize,
    /// When unused memory was looked for.
    looked: Option<Instant>,
}

static KEPT: Mutex<Kept> =
    Mutex::new(Kept { classes: [const { Vec::new() }; CLASSES], bytes: 0, looked: None });

/// The bytes that are kept, readable without the lock.
static BYTES: AtomicUsize = AtomicUsize::new(0);

fn with_kept<R>(body: impl FnOnce(&mut Kept) -> R) -> R {
    body(&mut KEPT.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Kept {
    fn count(&mut self, bytes: usize) {
        self.bytes = bytes;
        BYTES.store(bytes, Ordering::Relaxed);
    }

    /// Takes out memory that wasn't used for a while. Looks for it a few times a second.
    fn take_unused(&mut self, now: Instant) -> Vec<(Instant, Vec<u8>)> {
        let mut unused = Vec::new();
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < REST / 4) {
            return unused;
        }
        self.looked = Some(now);
        for class in &mut self.classes {
            let is_old = |(used, _): &(Instant, _)| now.saturating_duration_since(*used) >= REST;
            let old = class.partition_point(is_old);
            unused.extend(class.drain(..old));
        }
        let freed: usize = unused.iter().map(|(_, room)| room.capacity()).sum();
        self.count(self.bytes - freed);
        unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_grow_over_older_bytes_and_keep_their_own() {
        let mut bytes = Bytes::default();
        let mut expected = Vec::new();
        for piece in 0..3000u32 {
            let piece = piece.to_le_bytes().repeat(1 + piece as usize % 7);
            bytes.extend(&piece).unwrap();
            expected.extend(piece);
        }
        assert_eq!(*bytes, expected[..]);
        drop(bytes);
        let bytes = Bytes::copy_of(&expected).unwrap();
        assert_eq!(*bytes, expected[..]);
        assert_eq!(Bytes::stale(expected.len()).unwrap().len(), expected.len());
        assert_eq!(*Bytes::from(vec![1, 2]), [1, 2]);
        assert!(Bytes::with_room(usize::MAX).is_err());
    }

    #[test]
    fn classes_hold_their_lengths_and_a_head() {
        assert!(Class::of((1 << FIRST) - 1).is_none());
        assert!(Class::of((1 << LAST) + HEAD + 1).is_none());
        for power in FIRST..=LAST {
            for len in [1 << power, (1 << power) + 17, (1 << power) + HEAD] {
                let class = Class::of(len).unwrap();
                assert_eq!(class.capacity(), (1 << power) + HEAD, "{len}");
            }
        }
        assert_eq!(Class::of((1 << FIRST) + HEAD + 1).unwrap().0, 1);
    }

    #[test]
    fn kept_memory_is_bounded_and_freed_when_unused() {
        let now = Instant::now();
        let classes = [const { Vec::new() }; CLASSES];
        let mut kept = Kept { classes, bytes: 0, looked: None };
        for age in [3, 2, 0] {
            let room = Vec::with_capacity(Class(0).capacity());
            kept.bytes += room.capacity();
            kept.classes[0].push((now, room));
            kept.classes[0].last_mut().unwrap().0 = now - age * REST / 2;
        }
        assert_eq!(kept.take_unused(now).len(), 2);
        assert_eq!((kept.classes[0].len(), kept.bytes), (1, Class(0).capacity()));
        assert!(kept.take_unused(now + REST / 5).is_empty());
        assert_eq!(kept.take_unused(now + REST).len(), 1);
        assert_eq!(kept.bytes, 0);
    }
}

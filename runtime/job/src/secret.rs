//! The job's secret.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use zeroize::Zeroizing;

/// Thirty-two random bytes that only the ranks of a job and their launcher know. The memory is
/// overwritten when the value is dropped. It is on the heap, since a move of the bytes themselves
/// would leave a copy on the stack.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Secret(Box<Zeroizing<[u8; 32]>>);

/// Byte by byte into place: an array that is read whole would lie on the stack first.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("32 bytes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<Secret, A::Error> {
                let mut secret = Secret(Box::default());
                for (at, byte) in secret.0.iter_mut().enumerate() {
                    let next = bytes.next_element()?;
                    *byte = next.ok_or_else(|| A::Error::invalid_length(at, &self))?;
                }
                Ok(secret)
            }
        }
        deserializer.deserialize_tuple(32, Bytes)
    }
}

impl Secret {
    /// A new secret from the system's random number generator.
    pub fn generate() -> io::Result<Secret> {
        let mut secret = Secret(Box::default());
        File::open("/dev/urandom")?.read_exact(&mut **secret.0)?;
        Ok(secret)
    }

    /// The bytes, with which a rank proves that it belongs to the job.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The secret as 64 hexadecimal digits, for a launcher's messages.
    #[doc(hidden)]
    pub fn to_hex(&self) -> Zeroizing<String> {
        // All digits fit, so that no copy of the text is left behind by its growth.
        let mut text = Zeroizing::new(String::with_capacity(64));
        for digit in self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
            text.extend(char::from_digit(digit.into(), 16));
        }
        text
    }

    /// Parses the text of [`to_hex`](Secret::to_hex); `None` for any other text.
    #[doc(hidden)]
    pub fn from_hex(text: &str) -> Option<Secret> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut secret = Secret(Box::default());
        for (byte, pair) in secret.0.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        Some(secret)
    }
}

/// Doesn't show the bytes, so that no log can contain them.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Copies of a secret in this process's memory, which tests count.
#[cfg(any(test, feature = "copies"))]
pub mod copies {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsRawFd, OwnedFd};

    use nix::fcntl::OFlag;
    use nix::unistd::pipe2;
    use zeroize::Zeroizing;

    /// Bytes that an empty pipe takes.
    const PIECE: usize = 64 << 10;

    /// The place of some bytes in others. The C library's search is fast in unoptimised tests, too.
    #[allow(unsafe_code)]
    fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
        // SAFETY: both are slices, and the call reads them only.
        let found = unsafe {
            let (wanted, len) = (wanted.as_ptr().cast(), wanted.len());
            libc::memmem(bytes.as_ptr().cast(), bytes.len(), wanted, len)
        };
        (!found.is_null()).then(|| found.addr() - bytes.as_ptr().addr())
    }

    /// Copies memory from an address on through a pipe. Returns the number of bytes, which is 0 if
    /// the address isn't mapped. Under qemu-user, /proc/self/mem has other addresses than the
    /// program if that is of 32 bits.
    #[allow(unsafe_code)]
    fn copy(at: u64, to: &mut [u8], pipe: &mut (File, OwnedFd)) -> usize {
        // SAFETY: the system only reads the memory, and checks that it may be read.
        let sent = unsafe { libc::write(pipe.1.as_raw_fd(), at as *const _, to.len()) };
        let sent = usize::try_from(sent).unwrap_or(0);
        pipe.0.read_exact(&mut to[..sent]).unwrap();
        sent
    }

    /// The number of places in this process's own memory that have these bytes, which are given
    /// inverted.
    pub fn count(inverted: &[u8]) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        let mut pipe = (File::from(read), write);
        let mut piece = vec![0u8; PIECE];
        let wanted = Zeroizing::new(Vec::from_iter(inverted.iter().map(|byte| !byte)));
        let own = [&piece, &*wanted].map(|own| own.as_ptr_range());
        let is_own = |place: u64| own.iter().any(|own| own.contains(&(place as *const u8)));
        let mut found = 0;
        for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
            let range = line.split(' ').next().unwrap().split_once('-').unwrap();
            let [mut at, end] = [range.0, range.1].map(|at| u64::from_str_radix(at, 16).unwrap());
            // Nothing of the program's is as large as the tables of a sanitizer.
            while at < end && end - at < 1 << 30 {
                let len = piece.len().min((end - at) as usize);
                let len = copy(at, &mut piece[..len], &mut pipe);
                if len < inverted.len() {
                    break;
                }
                let mut from = 0;
                while let Some(next) = find(&piece[from..len], &wanted) {
                    found += usize::from(!is_own(at + (from + next) as u64));
                    from += next + 1;
                }
                // Pieces overlap, so that none is overlooked at their ends.
                let step = len - if at + len as u64 == end { 0 } else { inverted.len() - 1 };
                at += step as u64;
            }
            piece.fill(0);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::copies::count;
    use super::*;

    #[test]
    #[cfg_attr(sanitized, ignore = "the memory of a sanitizer takes minutes to search")]
    fn no_copy_is_left_in_memory() {
        let secret = Secret::generate().unwrap();
        // The second half: an allocator overwrites the first bytes of memory that it gets back.
        let inverted: Vec<u8> = secret.bytes()[16..].iter().map(|byte| !byte).collect();
        let digits: Vec<u8> = secret.to_hex().bytes().map(|byte| !byte).collect();
        // As by moves between functions.
        let moved = Some(std::hint::black_box(secret));
        let line = crate::pmi::joined(moved.as_ref().unwrap());
        let read = crate::pmi::word(&line, "secret").and_then(Secret::from_hex);
        let encoded = Zeroizing::new(shipable::codec::encode_secret(&moved, 100).unwrap());
        let decoded: Option<Secret> = shipable::codec::decode(&encoded, 100).unwrap();
        assert!(decoded == moved);
        drop((encoded, decoded));
        assert!(moved == read && count(&inverted) >= 2 && count(&digits) >= 1);
        drop((moved, line, read));
        assert_eq!((count(&inverted), count(&digits)), (0, 0));
    }

    #[test]
    fn hexadecimal_digits_round_trip_and_debug_hides_the_bytes() {
        let secret = Secret::generate().unwrap();
        assert_eq!(Secret::from_hex(&secret.to_hex()), Some(secret.clone()));
        assert_ne!(Secret::generate().unwrap(), secret);
        assert_eq!(Secret::from_hex(""), None);
        assert_eq!(Secret::from_hex(&"0g".repeat(32)), None);
        assert_eq!(Secret::from_hex(&"+1".repeat(32)), None);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}

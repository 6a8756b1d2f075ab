//! The encoding of forms and control messages on the wire.
//!
//! The encoding is bincode 2 in its standard configuration: little-endian, integers of variable
//! length, enums by index, lists by length. No other module names bincode, because bincode gets no
//! further versions. Another encoder may replace it in this file; the golden bytes in the tests of
//! forms then show whether the wire format is unchanged.

use bincode::enc::write::SizeWriter;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::error::CodecError;

const CONFIGURATION: bincode::config::Configuration = bincode::config::standard();

/// Encodes a value.
///
/// # Errors
///
/// [`CodecError::TooLong`] if the encoding is longer than `limit` bytes, [`CodecError::Malformed`]
/// if the value has no encoding (a sequence of unknown length).
///
/// ```
/// let bytes = shipable::codec::encode(&(1u32, "halo"), 100)?;
/// assert_eq!(bytes, [1, 4, b'h', b'a', b'l', b'o']);
/// assert_eq!(shipable::codec::decode::<(u32, String)>(&bytes, 100)?, (1, "halo".to_owned()));
/// # Ok::<(), shipable::codec::CodecError>(())
/// ```
pub fn encode<T: Serialize + ?Sized>(value: &T, limit: usize) -> Result<Vec<u8>, CodecError> {
    let bytes = bincode::serde::encode_to_vec(value, CONFIGURATION)
        .map_err(|error| CodecError::Malformed(error.to_string()))?;
    match bytes.len() {
        length if length > limit => Err(CodecError::TooLong { length, limit }),
        _ => Ok(bytes),
    }
}

/// Encodes a value that has a secret. The memory of the encoding doesn't grow, so that no part of
/// the value is left behind in memory that was given up. The value is walked twice, the first time
/// to count the bytes.
///
/// # Errors
///
/// As [`encode`].
///
/// ```
/// let key = (1u8, [7u8; 32]);
/// let bytes = shipable::codec::encode_secret(&key, 100)?;
/// assert_eq!(bytes, shipable::codec::encode(&key, 100)?);
/// # Ok::<(), shipable::codec::CodecError>(())
/// ```
pub fn encode_secret<T: Serialize + ?Sized>(
    value: &T,
    limit: usize,
) -> Result<Vec<u8>, CodecError> {
    let malformed = |error: bincode::error::EncodeError| CodecError::Malformed(error.to_string());
    let mut counted = SizeWriter::default();
    bincode::serde::encode_into_writer(value, &mut counted, CONFIGURATION).map_err(malformed)?;
    let length = counted.bytes_written;
    if length > limit {
        return Err(CodecError::TooLong { length, limit });
    }
    let mut bytes = vec![0; length];
    bincode::serde::encode_into_slice(value, &mut bytes, CONFIGURATION).map_err(malformed)?;
    Ok(bytes)
}

/// Decodes a value that takes up all of `bytes`. The bytes may come from a hostile peer.
///
/// Never panics. The value's memory is bounded by a multiple of the length of `bytes`, whatever
/// lengths the bytes claim.
///
/// # Errors
///
/// [`CodecError::TooLong`] if there are more than `limit` bytes, [`CodecError::Malformed`] or
/// [`CodecError::TrailingBytes`] if they aren't exactly one value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], limit: usize) -> Result<T, CodecError> {
    if bytes.len() > limit {
        return Err(CodecError::TooLong { length: bytes.len(), limit });
    }
    // bincode allocates a string at its claimed length before it reads the string, so the value's
    // size needs a limit. The limit is above the length of `bytes`, since a number of 8 bytes may
    // be encoded in one byte. It is a constant in bincode's interface, hence the steps.
    let decoded = match bytes.len() {
        ..0x800 => bincode::serde::decode_from_slice(bytes, CONFIGURATION.with_limit::<0x8000>()),
        0x800..0x1_0000 => {
            bincode::serde::decode_from_slice(bytes, CONFIGURATION.with_limit::<0x10_0000>())
        }
        0x1_0000..0x20_0000 => {
            bincode::serde::decode_from_slice(bytes, CONFIGURATION.with_limit::<0x200_0000>())
        }
        0x20_0000..0x100_0000 => {
            bincode::serde::decode_from_slice(bytes, CONFIGURATION.with_limit::<0x1000_0000>())
        }
        _ => bincode::serde::decode_from_slice(bytes, CONFIGURATION.with_limit::<0x4000_0000>()),
    };
    let (value, used) = decoded.map_err(|error| CodecError::Malformed(error.to_string()))?;
    match bytes.len() - used {
        0 => Ok(value),
        left => Err(CodecError::TrailingBytes(left)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_lengths_allocate_nothing() {
        // If memory were allocated for the claimed length, this would abort.
        let mut claim = vec![252];
        claim.extend((1u32 << 31).to_le_bytes());
        assert!(matches!(decode::<Vec<u64>>(&claim, 100), Err(CodecError::Malformed(_))));
        assert!(matches!(decode::<String>(&claim, 100), Err(CodecError::Malformed(_))));
        // A long value that claims even more: two megabytes claim half a gigabyte.
        let mut claim = vec![252];
        claim.extend((1u32 << 29).to_le_bytes());
        claim.resize(0x20_0000, b'a');
        let refused = decode::<String>(&claim, claim.len());
        assert_eq!(refused, Err(CodecError::Malformed("LimitExceeded".into())));
    }

    #[test]
    fn the_encoding_of_a_secret_is_allocated_once() {
        let key = (1u8, [7u8; 32]);
        let (bytes, grown) = (encode_secret(&key, 100).unwrap(), encode(&key, 100).unwrap());
        assert_eq!(bytes, grown);
        assert!(bytes.capacity() == bytes.len() && grown.capacity() > grown.len());
    }

    #[test]
    fn encode_and_decode_enforce_their_limits() {
        assert_eq!(encode(&[0u8; 9], 8), Err(CodecError::TooLong { length: 9, limit: 8 }));
        let long = encode_secret(&[0u8; 9], 8);
        assert_eq!(long, Err(CodecError::TooLong { length: 9, limit: 8 }));
        assert_eq!(decode::<u8>(&[0; 9], 8), Err(CodecError::TooLong { length: 9, limit: 8 }));
        assert_eq!(decode::<u8>(&[7, 0, 0], 8), Err(CodecError::TrailingBytes(2)));
    }
}

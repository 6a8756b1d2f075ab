//! Messages of an established connection: one or more frames, each after a header, or a farewell
//! after a header.
//!
//! ```text
//!    0 kind: u32    4 length of the payload: u32     little-endian
//! ```

use std::ops::Range;

use crate::segment::RankState;

/// Bytes of a header.
pub const HEADER: usize = 8;

const DATA: u32 = 1;
const FAREWELL: u32 = 2;

/// Bytes of a farewell.
pub const FAREWELL_LEN: usize = HEADER + 8;

/// A parsed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// [Frames](frames), all of them valid.
    Data,
    /// The sender sends nothing more, and is in this state.
    Farewell(RankState),
}

/// The header of a frame of `len` bytes.
pub fn header(len: usize) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..4].copy_from_slice(&DATA.to_le_bytes());
    bytes[4..].copy_from_slice(&(len as u32).to_le_bytes());
    bytes
}

/// A farewell message, with its header.
pub fn farewell(state: RankState) -> [u8; FAREWELL_LEN] {
    let mut bytes = [0; FAREWELL_LEN];
    bytes[..4].copy_from_slice(&FAREWELL.to_le_bytes());
    bytes[4..8].copy_from_slice(&8u32.to_le_bytes());
    let (number, code) = state.encode();
    bytes[8..12].copy_from_slice(&number.to_le_bytes());
    bytes[12..].copy_from_slice(&code.unwrap_or(0).to_le_bytes());
    bytes
}

/// The kind and the length in the header at the start of `bytes`, and the bytes after the header.
fn split(bytes: &[u8]) -> Option<(u32, usize, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| header[at + i]));
    Some((word(0), word(4) as usize, rest))
}

/// The positions of the frames in a message. Stops at the first part that isn't a valid frame.
pub fn frames(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (kind, len, rest) = split(&bytes[at..])?;
        let start = at + HEADER;
        at = start + len.min(rest.len());
        (kind == DATA && len <= rest.len()).then_some(start..at)
    })
}

/// Parses a whole message.
///
/// # Errors
/// Describes the violation.
pub fn parse(bytes: &[u8]) -> Result<Message, String> {
    let short = |len| format!("a message of {len} bytes, shorter than its header");
    let (kind, len, rest) = split(bytes).ok_or_else(|| short(bytes.len()))?;
    let sound = frames(bytes).last().map_or(0, |frame| frame.end);
    if sound > 0 {
        return match bytes.len() - sound {
            0 => Ok(Message::Data),
            rest => Err(format!("{rest} bytes after the frames, which are no frame")),
        };
    }
    if len != rest.len() {
        return Err(format!("a message that claims {len} bytes and has {}", rest.len()));
    }
    match (kind, rest.first_chunk::<8>()) {
        (FAREWELL, Some(&[a, b, c, d, code @ ..])) if rest.len() == 8 => {
            let number = u32::from_le_bytes([a, b, c, d]);
            let state = RankState::decode(number, || i32::from_le_bytes(code));
            match state.is_gone() {
                true => Ok(Message::Farewell(state)),
                false => Err(format!("a farewell from a rank that is {state}")),
            }
        }
        _ => Err(format!("a message of kind {kind} with {len} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Cause;

    #[test]
    fn encoded_messages_parse_to_the_same_messages() {
        let frame = [&header(3)[..], b"abc"].concat();
        let several = [&frame[..], &header(0), &frame].concat();
        let read = |message: &[u8]| {
            assert_eq!(parse(message), Ok(Message::Data));
            frames(message).map(|at| message[at].to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(read(&frame), [b"abc"]);
        assert_eq!(read(&header(0)), [b""]);
        assert_eq!(read(&several), [&b"abc"[..], b"", b"abc"]);
        for state in [RankState::Finalized, RankState::Dead(Cause::Signal(9))] {
            assert_eq!(parse(&farewell(state)), Ok(Message::Farewell(state)));
        }
    }

    #[test]
    fn invalid_messages_are_rejected() {
        assert!(parse(b"").is_err());
        assert!(parse(&header(1)).is_err());
        assert!(parse(&[&header(3)[..], b"abcd"].concat()).is_err());
        assert!(parse(&farewell(RankState::Alive)).is_err());
        let two = [&header(0)[..], &farewell(RankState::Finalized)].concat();
        assert!(parse(&two).is_err() && parse(&two[..12]).is_err());
        let mut other = farewell(RankState::Finalized);
        other[0] = 3;
        assert!(parse(&other).is_err());
        for len in 0..FAREWELL_LEN {
            assert!(parse(&farewell(RankState::Finalized)[..len]).is_err());
        }
    }
}

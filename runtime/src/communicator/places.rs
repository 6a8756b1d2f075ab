//! Announcements of long blocks, and the places of announced blocks in the memory of their ranks.
//!
//! ```text
//!  0  2                of an announcement
//!  1  signature u128   the hash of the block's signature
//! 17  length u64       bytes of the block
//! 25  address u64      of the block in its rank's memory;
//! 33  withdrawals u32  of that rank when it offered the memory
//! ```
//!
//! The last two words are the place. An announcement without them says that the block goes by
//! message. All words are little-endian.

use longshore_transport::Offer;

use super::shapes::{HEAD, Shape};

/// The first byte of an announcement.
const ANNOUNCED: u8 = 2;

/// Bytes of an announcement without a place.
const ANNOUNCEMENT: usize = HEAD + 8;

/// Bytes of an announcement with a place.
pub(super) const PLACED: usize = ANNOUNCEMENT + 12;

/// The announcement of data of this signature and length.
pub(super) fn announcement(signature: u128, length: u64) -> [u8; ANNOUNCEMENT] {
    let mut bytes = [0; ANNOUNCEMENT];
    bytes[0] = ANNOUNCED;
    bytes[1..HEAD].copy_from_slice(&signature.to_le_bytes());
    bytes[HEAD..].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// The signature hash and the length of an announced block; `None` for other messages.
pub(super) fn announced(bytes: &[u8]) -> Option<(u128, u64)> {
    let (kind, rest) = bytes.split_first()?;
    let (signature, rest) = rest.split_first_chunk()?;
    let (length, place) = rest.split_first_chunk()?;
    let is_whole = *kind == ANNOUNCED && [0, PLACED - ANNOUNCEMENT].contains(&place.len());
    is_whole.then_some((u128::from_le_bytes(*signature), u64::from_le_bytes(*length)))
}

/// The announcement of a block of this shape that lies in the offered memory.
pub(super) fn placed(shape: &Shape, offer: &Offer) -> [u8; PLACED] {
    let mut bytes = [0; PLACED];
    bytes[..ANNOUNCEMENT].copy_from_slice(&announcement(shape.signature(), shape.bytes));
    bytes[ANNOUNCEMENT..][..8].copy_from_slice(&offer.address.to_le_bytes());
    bytes[ANNOUNCEMENT + 8..].copy_from_slice(&offer.withdrawals.to_le_bytes());
    bytes
}

/// The place of an announced block, if it has one.
pub(super) fn place(bytes: &[u8]) -> Option<Offer> {
    announced(bytes)?;
    let (address, withdrawals) = bytes[ANNOUNCEMENT..].split_first_chunk()?;
    let withdrawals = withdrawals.first_chunk()?;
    Some(Offer {
        address: u64::from_le_bytes(*address),
        withdrawals: u32::from_le_bytes(*withdrawals),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_tell_what_they_announce() {
        let shape = Shape::new(7 << 100 | 5, 1 << 40);
        let plain = announcement(shape.signature(), shape.bytes);
        assert_eq!(announced(&plain), Some((7 << 100 | 5, 1 << 40)));
        assert_eq!(place(&plain), None);
        let offer = Offer { address: 0x1234_5678_9abc, withdrawals: 3 };
        let with_place = placed(&shape, &offer);
        assert_eq!(announced(&with_place), announced(&plain));
        assert_eq!(place(&with_place), Some(offer));
        assert_eq!(announced(&with_place[..PLACED - 1]), None);
        assert_eq!(announced(&plain[..ANNOUNCEMENT - 1]), None);
        assert_eq!(announced(&[0; PLACED]), None);
        assert_eq!(announced(&[]), None);
    }
}

//! What ranks say to each other: fixed headers for data, bincode for rare control messages.
//!
//! Every frame starts with its kind. A *stream* is an opening frame, whose header says what the bytes are and how many,
//! followed by as many [`Kind::More`] frames as it takes. A link is ordered and a rank finishes one stream to a peer
//! before it begins the next, so a peer has at most one stream under way and frames need no stream number.
//!
//! All words are little-endian, whatever the machines are. Nothing is a pointer.

mod control;
mod describe;

pub(crate) use control::{CONTROL_LIMIT, Founding, Hello, PROTOCOL, Refusal};
pub use describe::{Description, describe};

/// What a frame is. The discriminants are the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Introduces a rank to a peer: protocol, architecture, limits, proof of membership. Stream of a control message.
    Hello = 1,
    /// Ships a form, to be named by its id afterwards. Stream of the encoded form.
    Define = 2,
    /// The form's type is gone at its owner.
    Retire = 3,
    /// Put into a window. Stream of packed data in the origin's representation.
    Put = 4,
    /// Asks for data out of a window.
    Get = 5,
    /// Answers a get. Stream of packed data in the target's representation.
    Reply = 6,
    /// So many of your operations on this window are done.
    Ack = 7,
    /// This operation was refused, or stopped at a value that doesn't fit. Stream of a control message.
    Refuse = 8,
    /// A short message, sent at once. Stream of packed data.
    Eager = 9,
    /// A long message waits for its receive.
    Announce = 10,
    /// The receive for an announced message is here: send it.
    Clear = 11,
    /// The data of an announced message. Stream of packed data.
    Bulk = 12,
    /// Room for short messages given back to their sender.
    Credit = 13,
    /// Goes on with the stream under way.
    More = 14,
    /// Ends the stream under way before its length: its sender met a value that it can't send.
    Cut = 15,
    /// Asks for a lock on the target's window; granted as an operation that is done. The value is 1 to share it, 2 to have
    /// it alone.
    Lock = 16,
    /// Gives the lock back; it comes behind what was done under it.
    Unlock = 17,
    /// The sender has exposed its window to the receiver.
    Post = 18,
    /// The sender has ended its access to the receiver's window; it comes behind that.
    Complete = 19,
    /// Combine with what a window holds. Stream of packed operands in the origin's representation. The tag is the operation.
    Accumulate = 20,
    /// As [`Accumulate`](Kind::Accumulate), and answer with what was there.
    Fetch = 21,
    /// Compare and swap. Stream of the element to compare with and of the new one, packed in the origin's representation.
    Swap = 22,
    /// The operation of this number on this window is done: its origin waits for it alone.
    Done = 23,
    /// What ranks tell each other besides, under `--check`. Stream of a control message.
    Note = 24,
    /// Answered as an operation that is done, behind all that its receiver sent before.
    Ping = 25,
}

impl Kind {
    /// The kind with this code on the wire.
    pub(crate) fn from_wire(code: u8) -> Option<Kind> {
        use Kind::*;
        const KINDS: [Kind; 25] = [
            Hello, Define, Retire, Put, Get, Reply, Ack, Refuse, Eager, Announce, Clear, Bulk,
            Credit, More, Cut, Lock, Unlock, Post, Complete, Accumulate, Fetch, Swap, Done, Note,
            Ping,
        ];
        KINDS.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// The call of an operation of this kind.
    pub(crate) fn call(self) -> &'static str {
        match self {
            Kind::Put => "put",
            Kind::Accumulate => "accumulate",
            Kind::Fetch => "get_accumulate",
            Kind::Swap => "compare_and_swap",
            Kind::Lock => "lock",
            _ => "get",
        }
    }

    /// Whether frames of this kind carry the long header.
    pub(crate) fn is_long(self) -> bool {
        use Kind::*;
        let short = matches!(self, Retire | Ack | Clear | Credit | More | Cut | Done);
        !short && !matches!(self, Lock | Unlock | Post | Complete | Ping)
    }
}

/// The header of what opens a stream, and of what needs as many words.
///
/// ```text
///  0  kind u8 | 1  tag u8 | 2  0 u16 | 4  context u32        context: window, communicator context, or a form's builder
///                                                           tag: a form's; what is refused; the operation of an accumulate,
///                                                           and 0x80 where a put or accumulate is to be answered by number
///  8  operation u64                                          number of the operation or announced message
/// 16  displacement i64                                       in the target's displacement units; the tag of a message
/// 24  count u64                                              of the target type
/// 32  form u64                                               id of the target type's form
/// 40  length u64                                             bytes in the stream
/// 48  signature u128                                         hash of the stream's type signature
/// 64  data
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub tag: u8,
    pub context: u32,
    pub operation: u64,
    pub displacement: i64,
    pub count: u64,
    pub form: u64,
    pub length: u64,
    pub signature: u128,
}

/// The header of what needs few words.
///
/// ```text
///  0  kind u8 | 1  0 u8 | 2  0 u16 | 4  context u32
///  8  operation u64                                          number of a message, an operation or a lock; id of a form
/// 16  value u64                                              position in a stream; operations done; bytes of room; how to lock
/// 24  0 u64
/// 32  data (More only)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    pub kind: Kind,
    pub context: u32,
    pub operation: u64,
    pub value: u64,
}

impl Header {
    /// Bytes on the wire.
    pub(crate) const SIZE: usize = 64;

    /// A header of this kind with all its words zero.
    pub(crate) fn new(kind: Kind) -> Header {
        Header {
            kind,
            tag: 0,
            context: 0,
            operation: 0,
            displacement: 0,
            count: 0,
            form: 0,
            length: 0,
            signature: 0,
        }
    }

    /// The bytes to send.
    pub(crate) fn encode(&self) -> [u8; Header::SIZE] {
        let mut out = [0; Header::SIZE];
        out[0] = self.kind as u8;
        out[1] = self.tag;
        out[4..8].copy_from_slice(&self.context.to_le_bytes());
        out[8..16].copy_from_slice(&self.operation.to_le_bytes());
        out[16..24].copy_from_slice(&self.displacement.to_le_bytes());
        out[24..32].copy_from_slice(&self.count.to_le_bytes());
        out[32..40].copy_from_slice(&self.form.to_le_bytes());
        out[40..48].copy_from_slice(&self.length.to_le_bytes());
        out[48..64].copy_from_slice(&self.signature.to_le_bytes());
        out
    }
}

impl Brief {
    /// Bytes on the wire.
    pub(crate) const SIZE: usize = 32;

    /// The bytes to send.
    pub(crate) fn encode(&self) -> [u8; Brief::SIZE] {
        let mut out = [0; Brief::SIZE];
        out[0] = self.kind as u8;
        out[4..8].copy_from_slice(&self.context.to_le_bytes());
        out[8..16].copy_from_slice(&self.operation.to_le_bytes());
        out[16..24].copy_from_slice(&self.value.to_le_bytes());
        out
    }
}

const _: () = assert!(Header::SIZE == 48 + size_of::<u128>());
const _: () = assert!(Brief::SIZE == 16 + 2 * size_of::<u64>());

/// A frame taken apart; its bytes stay where the link has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Long(Header, &'a [u8]),
    Short(Brief, &'a [u8]),
}

impl<'a> Frame<'a> {
    /// Takes a frame apart. `None` where it is too short or of an unknown kind.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let kind = Kind::from_wire(*bytes.first()?)?;
        let word32 = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let word64 = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if kind.is_long() {
            let header = Header {
                kind,
                tag: *bytes.get(1)?,
                context: word32(4)?,
                operation: word64(8)?,
                displacement: word64(16)? as i64,
                count: word64(24)?,
                form: word64(32)?,
                length: word64(40)?,
                signature: u128::from_le_bytes(bytes.get(48..64)?.try_into().ok()?),
            };
            Some(Frame::Long(header, &bytes[Header::SIZE..]))
        } else {
            let brief =
                Brief { kind, context: word32(4)?, operation: word64(8)?, value: word64(16)? };
            Some(Frame::Short(brief, bytes.get(Brief::SIZE..)?))
        }
    }
}

#[cfg(test)]
mod tests {
    use shipable::reduce::Op;

    use super::*;

    #[test]
    fn long_header_is_pinned() {
        let header = Header {
            kind: Kind::Put,
            tag: 2,
            context: 0x0403_0201,
            operation: 5,
            displacement: -2,
            count: 7,
            form: 8,
            length: 9,
            signature: 10,
        };
        let bytes = header.encode();
        assert_eq!(bytes[..8], [4, 2, 0, 0, 1, 2, 3, 4]);
        assert_eq!(bytes[16..24], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(Frame::decode(&bytes), Some(Frame::Long(header, &[])));
    }

    #[test]
    fn accumulates_are_pinned() {
        let header = Header {
            tag: Op::Sum.wire() | 0x80,
            context: 1,
            operation: 2,
            displacement: 3,
            count: 4,
            form: 5,
            length: 6,
            signature: 7,
            ..Header::new(Kind::Accumulate)
        };
        assert_eq!(header.encode()[..4], [20, 0x83, 0, 0]);
        let kinds = [(Kind::Accumulate, 20), (Kind::Fetch, 21), (Kind::Swap, 22), (Kind::Done, 23)];
        for (kind, code) in kinds {
            assert_eq!((kind as u8, Kind::from_wire(code)), (code, Some(kind)));
        }
        let description = describe(&header.encode()).unwrap();
        let text =
            "Accumulate window 1 operation 2 displacement 3 count 4 form 5: MPI_SUM (64 + 0 bytes)";
        assert_eq!(description.to_string(), text);
        let done = Brief { kind: Kind::Done, context: 1, operation: 9, value: 0 };
        let text = "Done window 1 operation 9 (32 + 0 bytes)";
        assert_eq!(describe(&done.encode()).unwrap().to_string(), text);
    }

    #[test]
    fn short_header_is_pinned() {
        let brief = Brief { kind: Kind::More, context: 1, operation: 2, value: 0x0102 };
        let mut bytes = brief.encode().to_vec();
        assert_eq!(bytes[..18], [14, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
        bytes.push(77);
        assert_eq!(Frame::decode(&bytes), Some(Frame::Short(brief, &[77])));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        assert_eq!(Frame::decode(&[]), None);
        assert_eq!(Frame::decode(&[0; 64]), None);
        assert_eq!(Frame::decode(&[26; 64]), None);
        for kind in 1..=25u8 {
            let size = if Kind::from_wire(kind).unwrap().is_long() { 64 } else { 32 };
            for length in 1..size {
                assert_eq!(Frame::decode(&vec![kind; length]), None, "{kind} {length}");
            }
            assert!(Frame::decode(&vec![kind; size]).is_some());
        }
    }
}

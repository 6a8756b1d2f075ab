//! What ranks say to each other: fixed headers for data, bincode for rare control messages.
//!
//! Every frame starts with its kind. A *stream* is an opening frame, whose header says what the bytes are and how many,
//! followed by as many [`Kind::More`] frames as it takes. A link is ordered and a rank finishes one stream to a peer
//! before it begins the next, so a peer has at most one stream under way and frames need no stream number.
//!
//! All words are little-endian, whatever the machines are. Nothing is a pointer.

mod control;
mod describe;

pub(crate) use control::{
    CONTROL_LIMIT, Founding, Hello, Introduction, PROTOCOL, Refusal, hello_limit, tag_to_wire,
};
pub use describe::{Description, describe};

/// What a frame is. The discriminants are the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Introduces a rank, and those that it knows, to a peer: protocol, architectures, limits, proof of membership. Stream of a control message.
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
    /// Ends the stream under way before its length, for the reason that its context is, a `Cut`.
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
    /// Its sender is in this meeting of a communicator or window.
    Meet = 26,
}

impl Kind {
    /// The kind with this code on the wire.
    pub(crate) fn from_wire(code: u8) -> Option<Kind> {
        use Kind::*;
        const KINDS: [Kind; 26] = [
            Hello, Define, Retire, Put, Get, Reply, Ack, Refuse, Eager, Announce, Clear, Bulk,
            Credit, More, Cut, Lock, Unlock, Post, Complete, Accumulate, Fetch, Swap, Done, Note,
            Ping, Meet,
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

    /// Whether only a call that waits for it needs to see it.
    pub(crate) fn is_answer(self) -> bool {
        matches!(self, Kind::Ack | Kind::Done | Kind::Reply | Kind::Refuse)
    }

    /// Whether a frame of this kind that has all of its data may carry the small header.
    fn may_be_small(self) -> bool {
        use Kind::*;
        matches!(self, Put | Get | Reply | Accumulate | Fetch | Swap)
    }

    /// Whether frames of this kind carry the long header.
    pub(crate) fn is_long(self) -> bool {
        use Kind::*;
        let short = matches!(self, Retire | Ack | Clear | Credit | More | Cut | Done);
        !short && !matches!(self, Lock | Unlock | Post | Complete | Ping | Meet)
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
///
/// An operation on a window, or its answer, whose data are all in the frame may say the same in fewer bytes, so that 16 bytes of data
/// share their cache line in a ring:
///
/// ```text
///  0  kind u8, 0x80 | 1  tag u8 | 2  count u16 | 4  context u32
///  8  operation u64
/// 16  displacement i64
/// 24  form u64
/// 32  signature u64                                          the hash's low half
/// 40  data
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
    /// Whether it came in the small form: of the signature's hash there is the low half.
    pub small: bool,
}

/// In the byte of the kind: a small header.
const SMALL: u8 = 0x80;

/// The header of what needs few words.
///
/// ```text
///  0  kind u8 | 1  0 u8 | 2  0 u16 | 4  context u32
///  8  operation u64                                          number of a message, an operation or a lock; id of a form; 0 or 1:
///                                                            ranks meet on a communicator or on a window
/// 16  value u64                                              position in a stream; operations done; bytes of room; how to lock;
///                                                            number of a meeting
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

    /// Bytes of the small form.
    pub(crate) const SMALL_SIZE: usize = 40;

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
            small: false,
        }
    }

    /// Bytes of the header in front of data that are all in its frame.
    #[inline]
    pub(crate) fn whole_size(&self) -> usize {
        let small = self.kind.may_be_small() && self.count <= u16::MAX.into();
        if small { Header::SMALL_SIZE } else { Header::SIZE }
    }

    /// Writes the header in front of data that are all in its frame: [`Header::whole_size`] bytes.
    #[inline]
    pub(crate) fn encode_whole(&self, out: &mut [u8]) {
        if out.len() != Header::SMALL_SIZE {
            return out.copy_from_slice(&self.encode());
        }
        out[0] = self.kind as u8 | SMALL;
        out[1] = self.tag;
        out[2..4].copy_from_slice(&(self.count as u16).to_le_bytes());
        out[4..8].copy_from_slice(&self.context.to_le_bytes());
        out[8..16].copy_from_slice(&self.operation.to_le_bytes());
        out[16..24].copy_from_slice(&self.displacement.to_le_bytes());
        out[24..32].copy_from_slice(&self.form.to_le_bytes());
        out[32..40].copy_from_slice(&(self.signature as u64).to_le_bytes());
    }

    /// The small header of the answer to an operation with a small one.
    #[inline]
    pub(crate) fn small_reply(asked: &[u8; Header::SMALL_SIZE]) -> [u8; Header::SMALL_SIZE] {
        let mut out = [0; Header::SMALL_SIZE];
        out[0] = Kind::Reply as u8 | SMALL;
        out[4..16].copy_from_slice(&asked[4..16]);
        out
    }

    /// Whether it names this signature.
    #[inline]
    pub(crate) fn is_signed(&self, hash: u128) -> bool {
        match self.small {
            true => self.signature as u64 == hash as u64,
            false => self.signature == hash,
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

/// Why a stream ends before its length. The discriminants are the wire's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Cut {
    /// Its sender met a value that it can't send.
    Value = 0,
    /// Its sender's call failed before all had gone, and let go of the data.
    GivenUp = 1,
}

impl Cut {
    pub(crate) fn from_wire(reason: u32) -> Option<Cut> {
        [Cut::Value, Cut::GivenUp].into_iter().find(|cut| *cut as u32 == reason)
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
const _: () = assert!(Header::SMALL_SIZE == 32 + size_of::<u64>());
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
        let code = *bytes.first()?;
        let kind = Kind::from_wire(code & !SMALL)?;
        let word32 = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let word64 = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if code & SMALL != 0 {
            let data = bytes.get(Header::SMALL_SIZE..).filter(|_| kind.may_be_small())?;
            let header = Header {
                kind,
                tag: bytes[1],
                context: word32(4)?,
                operation: word64(8)?,
                displacement: word64(16)? as i64,
                count: u16::from_le_bytes([bytes[2], bytes[3]]).into(),
                form: word64(24)?,
                length: data.len() as u64,
                signature: word64(32)?.into(),
                small: true,
            };
            Some(Frame::Long(header, data))
        } else if kind.is_long() {
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
                small: false,
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
            small: false,
        };
        let bytes = header.encode();
        assert_eq!(bytes[..8], [4, 2, 0, 0, 1, 2, 3, 4]);
        assert_eq!(bytes[16..24], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(Frame::decode(&bytes), Some(Frame::Long(header, &[])));
    }

    #[test]
    fn small_header_is_pinned() {
        let hash = 0x1111_2222_3333_4444_5555_6666_7777_8888;
        let header = Header {
            tag: 3,
            context: 0x0403_0201,
            operation: 5,
            displacement: -2,
            count: 0x0607,
            form: 8,
            length: 2,
            signature: hash,
            ..Header::new(Kind::Fetch)
        };
        let mut bytes = vec![0; header.whole_size() + 2];
        header.encode_whole(&mut bytes[..40]);
        assert_eq!(bytes[..9], [0x95, 3, 7, 6, 1, 2, 3, 4, 5]);
        assert_eq!(bytes[16..25], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 8]);
        assert_eq!(bytes[32..], [0x88, 0x88, 0x77, 0x77, 0x66, 0x66, 0x55, 0x55, 0, 0]);
        let Some(Frame::Long(found, [0, 0])) = Frame::decode(&bytes) else { panic!() };
        assert_eq!(found, Header { signature: 0x5555_6666_7777_8888, small: true, ..header });
        assert!(found.is_signed(hash) && !found.is_signed(hash ^ 1) && !header.is_signed(hash ^ 1));
        let reply = Header { context: header.context, operation: 5, ..Header::new(Kind::Reply) };
        let mut answer = [0; 40];
        reply.encode_whole(&mut answer);
        assert_eq!(Header::small_reply(bytes[..40].try_into().unwrap()), answer);
        // What a count of 16 bits can't say, and what belongs in a stream, is long.
        assert_eq!(Header { count: 0x1_0000, ..header }.whole_size(), Header::SIZE);
        assert_eq!(Header::new(Kind::Define).whole_size(), Header::SIZE);
        for kind in 0x80..=u8::MAX {
            let small = Kind::from_wire(kind & 0x7f).is_some_and(Kind::may_be_small);
            let frame = |length| Frame::decode(&[kind; 40][..length]).is_some();
            assert!((1..40).all(|length| !frame(length)), "{kind}");
            assert_eq!(frame(40), small, "{kind}");
        }
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
    fn reasons_of_a_cut_are_pinned() {
        for (reason, cut) in [(0, Some(Cut::Value)), (1, Some(Cut::GivenUp)), (2, None)] {
            assert_eq!(Cut::from_wire(reason), cut);
        }
        let context = Cut::GivenUp as u32;
        let cut = Brief { kind: Kind::Cut, context, operation: 0, value: 0x0102 };
        let bytes = [15, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1];
        assert_eq!(cut.encode()[..18], bytes);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        assert_eq!(Frame::decode(&[]), None);
        assert_eq!(Frame::decode(&[0; 64]), None);
        assert_eq!(Frame::decode(&[27; 64]), None);
        for kind in 1..=26u8 {
            let size = if Kind::from_wire(kind).unwrap().is_long() { 64 } else { 32 };
            for length in 1..size {
                assert_eq!(Frame::decode(&vec![kind; length]), None, "{kind} {length}");
            }
            assert!(Frame::decode(&vec![kind; size]).is_some());
        }
    }
}

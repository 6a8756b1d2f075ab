//! The wire format: frames between ranks, with fixed headers for data and bincode for rare control
//! messages.
//!
//! Every frame starts with its kind. A *stream* is an opening frame, whose header describes the
//! bytes and their number, and the [`Kind::More`] frames that bring the rest. A link is ordered,
//! and a rank finishes one stream to a peer before it begins the next. So a peer has at most one
//! stream under way, and frames need no stream number.
//!
//! All words are little-endian on every machine. No word is a pointer.

mod control;
mod describe;

use std::ops::Range;

pub(crate) use control::{
    CONTROL_LIMIT, Founding, Hello, Introduction, PROTOCOL, Refusal, hello_limit, split_names,
    tag_to_wire,
};
pub use describe::{Description, describe};

/// The kind of a frame. The discriminants are the codes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Introduces a rank, and those that it knows, to a peer: protocol, architectures, limits,
    /// proof of membership. Opens the stream of a control message.
    Hello = 1,
    /// Ships a form, which later frames name by its id. Opens the stream of the encoded form.
    Define = 2,
    /// Retires the id of a form: its type is gone at the sender.
    Retire = 3,
    /// Puts data into a window. Opens the stream of the data, packed in the origin's
    /// representation.
    Put = 4,
    /// Gets data from a window.
    Get = 5,
    /// Answers an operation that fetches. Opens the stream of the data, packed in the target's
    /// representation.
    Reply = 6,
    /// Acknowledges a number of the receiver's operations on a window: they are done.
    Ack = 7,
    /// Refuses an operation, or stops it at a value that the target can't hold. Opens the stream of
    /// a control message.
    Refuse = 8,
    /// Sends a short message at once. Opens the stream of its packed data.
    Eager = 9,
    /// Announces a message, whose data wait for a receive: the request to send (RTS) of a
    /// rendezvous. May offer the sender's memory that has them.
    Announce = 10,
    /// Asks for the data of an announced message, which a receive has matched: the clearance to
    /// send (CTS) of a rendezvous. The value is 1 if the receiver has copied them from the sender's
    /// memory, so that they needn't be sent.
    Clear = 11,
    /// Sends the data of an announced message. Opens the stream of its packed data.
    Bulk = 12,
    /// Returns credit for short messages to their sender.
    Credit = 13,
    /// Continues the stream under way.
    More = 14,
    /// Ends the stream under way before its length. The context is the reason, a `Cut`.
    Cut = 15,
    /// Asks for the lock of a window of the receiver: an operation that is done once the lock is
    /// granted. The value is 1 for a shared lock and 2 for an exclusive one.
    Lock = 16,
    /// Gives the lock back, after the operations of its epoch.
    Unlock = 17,
    /// Posts: the sender has exposed its window to the receiver.
    Post = 18,
    /// Completes: the sender has ended its access to the receiver's window, after the operations of
    /// its epoch.
    Complete = 19,
    /// Combines operands with the items of a window. The tag is the reduction operation. Opens the
    /// stream of the operands, packed in the origin's representation.
    Accumulate = 20,
    /// Combines operands with the items of a window, as [`Accumulate`](Kind::Accumulate) does, and
    /// fetches the items before the operation.
    Fetch = 21,
    /// Compares and swaps. Opens the stream of the element to compare with and of the new one,
    /// packed in the origin's representation.
    Swap = 22,
    /// Acknowledges one operation by its number: its origin waits for it by itself.
    Done = 23,
    /// Carries a note of `--check`. Opens the stream of a control message.
    Note = 24,
    /// Asks for an answer after all earlier frames: an operation that is done then.
    Ping = 25,
    /// Enters a meeting on a communicator or window.
    Meet = 26,
    /// The sender has panicked within an epoch of a window, which no rank can synchronise any more.
    Poison = 27,
    /// A step of an agreement on a communicator. The tag is the kind of step. Opens the stream of a
    /// control message.
    Agree = 28,
    /// Revokes a communicator.
    Revoke = 29,
}

impl Kind {
    /// The kind with this code on the wire.
    pub(crate) fn from_wire(code: u8) -> Option<Kind> {
        use Kind::*;
        const KINDS: [Kind; 29] = [
            Hello, Define, Retire, Put, Get, Reply, Ack, Refuse, Eager, Announce, Clear, Bulk,
            Credit, More, Cut, Lock, Unlock, Post, Complete, Accumulate, Fetch, Swap, Done, Note,
            Ping, Meet, Poison, Agree, Revoke,
        ];
        KINDS.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// The name of the call that issues an operation of this kind.
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

    /// Whether the frame is an answer: only a call that waits for it has to see it.
    pub(crate) fn is_answer(self) -> bool {
        matches!(self, Kind::Ack | Kind::Done | Kind::Reply | Kind::Refuse)
    }

    /// Whether a frame of this kind may have the small header, if all its data are in it.
    fn may_be_small(self) -> bool {
        use Kind::*;
        matches!(self, Put | Get | Reply | Accumulate | Fetch | Swap | Eager)
    }

    /// Whether an operation of this kind may notify its target.
    fn may_notify(self) -> bool {
        matches!(self, Kind::Put | Kind::Get | Kind::Accumulate | Kind::Fetch)
    }

    /// Whether frames of this kind have the long header (or the small one).
    pub(crate) fn is_long(self) -> bool {
        use Kind::*;
        let short = matches!(self, Retire | Ack | Clear | Credit | More | Cut | Done);
        !short && !matches!(self, Lock | Unlock | Post | Complete | Ping | Meet | Poison | Revoke)
    }
}

/// The long header: of frames that open a stream, and of those that need as many words.
///
/// ```text
///  0  kind u8          with 0x40, the operation notifies its target
///  1  tag u8           of a form; or the kind of the operation that is refused; or the
///                      operation of an accumulate. With 0x80, the target answers a put or
///                      accumulate by its number
///  2  counter u16      of an operation that notifies its target; otherwise 0
///  4  context u32      window; or context of a communicator; or builder of a form
///  8  operation u64    number of the operation or announced message
/// 16  displacement i64 in the target's displacement units; or tag of a message
/// 24  count u64        of the target type; or withdrawals, of an announced message's offer
/// 32  form u64         id of the target type's form; or address of an announced message's
///                      offer, or 0
/// 40  length u64       bytes in the stream
/// 48  signature u128   hash of the stream's type signature; of a message with `CONVERTED`, its
///                      items have other bytes at the receiver
/// 64  data
/// ```
///
/// The small header describes an operation on a window, its answer, or a short message, whose data
/// are all in the frame. It has fewer bytes, so that 16 bytes of data share its cache line in a
/// ring:
///
/// ```text
///  0  kind u8, 0x80    with 0x40, the operation notifies its target
///  1  tag u8
///  2  count u16        or count u8, counter u8 of an operation that notifies its target
///  4  context u32
///  8  operation u64
/// 16  displacement i64
/// 24  form u64         of a message the high half of the hash
/// 32  signature u64    low half of the hash
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
    /// The header is a small one: `signature` is only the low half of the hash.
    pub small: bool,
    /// The counter of the window that rises at the target when the operation is done there.
    pub notify: Option<u16>,
}

/// The bit of a message's signature that its sender sets if the items of its data have other bytes
/// at the receiver. Then the message matches no elements of another signature. The hashes of
/// signatures are less than 2^127.
pub(crate) const CONVERTED: u128 = 1 << 127;

/// The bit of the kind's byte that marks a small header.
const SMALL: u8 = 0x80;

/// The bit of the kind's byte that marks an operation which notifies its target.
const NOTIFIES: u8 = 0x40;

/// The short header: of frames that need few words.
///
/// ```text
///  0  kind u8
///  1  0 u8
///  2  0 u16
///  4  context u32
///  8  operation u64    number of a message, an operation or a lock; or id of a form; or the
///                      kind of a meeting's venue
/// 16  value u64        position in a stream; or operations done; or bytes of credit; or how
///                      to lock; or number of a meeting; or 1, if the data of an announced
///                      message needn't be sent
/// 24  0 u64
/// 32  data             (More only)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    pub kind: Kind,
    pub context: u32,
    pub operation: u64,
    pub value: u64,
}

impl Header {
    /// Bytes of the long header.
    pub(crate) const SIZE: usize = 64;

    /// Bytes of the small header.
    pub(crate) const SMALL_SIZE: usize = 40;

    /// A header of this kind, of which all other words are zero.
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
            notify: None,
        }
    }

    /// The bytes of the header that hold the form's id.
    fn form_at(&self) -> Range<usize> {
        if self.small { 24..32 } else { 32..40 }
    }

    /// Bytes of the header in a frame that has all data: of the small one, if it can hold the
    /// words.
    #[inline]
    pub(crate) fn whole_size(&self) -> usize {
        let counts = match self.notify {
            None => self.count <= u16::MAX.into(),
            Some(counter) => self.count <= u8::MAX.into() && counter <= u8::MAX.into(),
        };
        let small = self.kind.may_be_small() && counts;
        if small { Header::SMALL_SIZE } else { Header::SIZE }
    }

    /// Writes the header of a frame that has all data: [`Header::whole_size`] bytes.
    #[inline]
    pub(crate) fn encode_whole(&self, out: &mut [u8]) {
        match out.try_into() {
            Ok(out) => self.encode_small(out),
            Err(_) => out.copy_from_slice(&self.encode()),
        }
    }

    /// Writes the small header.
    #[inline]
    pub(crate) fn encode_small(&self, out: &mut [u8; Header::SMALL_SIZE]) {
        for (out, word) in out.chunks_exact_mut(8).zip(self.small_words()) {
            out.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The words of the small header, in the order of the wire.
    #[inline]
    pub(crate) fn small_words(&self) -> [u64; 5] {
        let code = u64::from(self.kind as u8 | SMALL);
        let (code, count) = match self.notify {
            None => (code, self.count & 0xffff),
            Some(counter) => {
                (code | u64::from(NOTIFIES), self.count & 0xff | u64::from(counter & 0xff) << 8)
            }
        };
        let first = code | u64::from(self.tag) << 8 | count << 16 | u64::from(self.context) << 32;
        [first, self.operation, self.displacement as u64, self.form, self.signature as u64]
    }

    /// The small header of these words, of an operation of `length` bytes that doesn't notify.
    #[inline]
    pub(crate) fn of_small_words(words: [u64; 5], length: u64) -> Option<Header> {
        let [first, operation, displacement, form, signature] = words;
        let code = first as u8;
        let kind = Kind::from_wire(code & !SMALL)?;
        (code & SMALL != 0 && kind.may_be_small()).then_some(Header {
            kind,
            tag: (first >> 8) as u8,
            context: (first >> 32) as u32,
            operation,
            displacement: displacement as i64,
            count: first >> 16 & 0xffff,
            form,
            length,
            signature: signature.into(),
            small: true,
            notify: None,
        })
    }

    /// The header of a frame that is a short message with the small header, and its data.
    #[inline]
    pub(crate) fn of_short_message(bytes: &[u8]) -> Option<(Header, &[u8])> {
        let (header, data) = bytes.split_first_chunk::<{ Header::SMALL_SIZE }>()?;
        if header[0] != Kind::Eager as u8 | SMALL {
            return None;
        }
        let mut words = [0; 5];
        for (word, bytes) in words.iter_mut().zip(header.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        Some((Header::of_small_words(words, data.len() as u64)?, data))
    }

    /// The small header of the answer to an operation that has a small header.
    #[inline]
    pub(crate) fn small_reply(asked: &[u8; Header::SMALL_SIZE]) -> [u8; Header::SMALL_SIZE] {
        let mut out = [0; Header::SMALL_SIZE];
        out[0] = Kind::Reply as u8 | SMALL;
        out[4..16].copy_from_slice(&asked[4..16]);
        out
    }

    /// Whether the header's signature is the one with this hash.
    #[inline]
    pub(crate) fn is_signed(&self, hash: u128) -> bool {
        match self.small {
            true => self.signature as u64 == hash as u64,
            false => self.signature == hash,
        }
    }

    /// The bytes on the wire.
    pub(crate) fn encode(&self) -> [u8; Header::SIZE] {
        let mut out = [0; Header::SIZE];
        out[0] = self.kind as u8;
        out[1] = self.tag;
        if let Some(counter) = self.notify {
            out[0] |= NOTIFIES;
            out[2..4].copy_from_slice(&counter.to_le_bytes());
        }
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

/// Why a stream ends before its length. The discriminants are the codes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Cut {
    /// The sender met a value that it can't send.
    Value = 0,
    /// The sender's call failed before all was sent, and let go of the data.
    GivenUp = 1,
}

impl Cut {
    pub(crate) fn from_wire(reason: u32) -> Option<Cut> {
        [Cut::Value, Cut::GivenUp].into_iter().find(|cut| *cut as u32 == reason)
    }
}

impl Brief {
    /// Bytes of the short header.
    pub(crate) const SIZE: usize = 32;

    /// The bytes on the wire.
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

/// A frame, decoded. The data stay in the link's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Long(Header, &'a [u8]),
    Short(Brief, &'a [u8]),
}

impl<'a> Frame<'a> {
    /// The kind of a frame; `None` if it is empty or of an unknown kind.
    #[inline]
    pub(crate) fn kind(bytes: &[u8]) -> Option<Kind> {
        Kind::from_wire(bytes.first()? & !(SMALL | NOTIFIES))
    }

    /// Decodes a frame; `None` if it is too short or of an unknown kind.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let code = *bytes.first()?;
        let Some(kind) = Kind::from_wire(code & !SMALL) else {
            return Frame::decode_notifying(bytes);
        };
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
                notify: None,
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
                notify: None,
            };
            Some(Frame::Long(header, &bytes[Header::SIZE..]))
        } else {
            let brief =
                Brief { kind, context: word32(4)?, operation: word64(8)?, value: word64(16)? };
            Some(Frame::Short(brief, bytes.get(Brief::SIZE..)?))
        }
    }

    /// Decodes a frame whose kind has the bit of an operation that notifies its target.
    #[inline(never)]
    fn decode_notifying(bytes: &'a [u8]) -> Option<Frame<'a>> {
        let code = *bytes.first()?;
        let plain = code & !NOTIFIES;
        let kind = Kind::from_wire(plain & !SMALL)?;
        if plain == code || !kind.may_notify() {
            return None;
        }
        // The header is that of the same operation without the bit, but for two bytes.
        let mut words = [0; Header::SIZE];
        let size = if plain & SMALL != 0 { Header::SMALL_SIZE } else { Header::SIZE };
        words[..size].copy_from_slice(bytes.get(..size)?);
        words[0] = plain;
        let Some(Frame::Long(header, _)) = Frame::decode(&words[..size]) else { return None };
        let data = &bytes[size..];
        let header = match header.small {
            true => Header {
                count: words[2].into(),
                length: data.len() as u64,
                notify: Some(words[3].into()),
                ..header
            },
            false => Header { notify: Some(u16::from_le_bytes([words[2], words[3]])), ..header },
        };
        Some(Frame::Long(header, data))
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
            notify: None,
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
        assert_eq!(Header::of_small_words(found.small_words(), found.length), Some(found));
        for words in [[0; 5], [0x15, 0, 0, 0, 0], [0xd5, 0, 0, 0, 0], [0x81, 0, 0, 0, 0]] {
            assert_eq!(Header::of_small_words(words, 2), None, "{words:?}");
        }
        assert_eq!(found, Header { signature: 0x5555_6666_7777_8888, small: true, ..header });
        assert!(found.is_signed(hash) && !found.is_signed(hash ^ 1) && !header.is_signed(hash ^ 1));
        let reply = Header { context: header.context, operation: 5, ..Header::new(Kind::Reply) };
        let mut answer = [0; 40];
        reply.encode_whole(&mut answer);
        assert_eq!(Header::small_reply(bytes[..40].try_into().unwrap()), answer);
        // The header is long if the count exceeds 16 bits, or the kind has no small header.
        assert_eq!(Header { count: 0x1_0000, ..header }.whole_size(), Header::SIZE);
        assert_eq!(Header::new(Kind::Define).whole_size(), Header::SIZE);
        for kind in 0x80..=u8::MAX {
            let notifies = kind & NOTIFIES != 0;
            let of = Kind::from_wire(kind & 0x3f);
            let small = of.is_some_and(|of| of.may_be_small() && (of.may_notify() || !notifies));
            let frame = |length| Frame::decode(&[kind; 40][..length]).is_some();
            assert!((1..40).all(|length| !frame(length)), "{kind}");
            assert_eq!(frame(40), small, "{kind}");
        }
    }

    #[test]
    fn operations_that_notify_are_pinned() {
        let small = Header {
            count: 6,
            context: 1,
            displacement: -2,
            length: 2,
            notify: Some(255),
            small: true,
            ..Header::new(Kind::Put)
        };
        let mut bytes = vec![7; small.whole_size() + 2];
        small.encode_whole(&mut bytes[..40]);
        assert_eq!(bytes[..8], [0xc4, 0, 6, 255, 1, 0, 0, 0]);
        assert_eq!(Frame::decode(&bytes), Some(Frame::Long(small, &[7, 7])));
        // The header is long if the count or the counter exceeds 8 bits.
        let long = Header { count: 256, small: false, ..small };
        assert_eq!(long.whole_size(), Header::SIZE);
        let far = Header { notify: Some(0x0102), small: false, ..small };
        let bytes = far.encode();
        assert_eq!((far.whole_size(), &bytes[..4]), (Header::SIZE, &[0x44, 0, 2, 1][..]));
        assert_eq!(Frame::decode(&bytes), Some(Frame::Long(far, &[])));
        let text = "Put window 1 operation 0 displacement -2 count 6 form 0: notifies counter 258 \
                    (64 + 0 bytes)";
        assert_eq!(describe(&bytes).unwrap().to_string(), text);
        for kind in [Kind::Swap, Kind::Reply, Kind::Define, Kind::Ack] {
            assert_eq!(Frame::decode(&[kind as u8 | NOTIFIES; 64]), None, "{kind:?}");
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
    fn bytes_that_are_no_frame_are_not_decoded() {
        assert_eq!(Frame::decode(&[]), None);
        assert_eq!(Frame::decode(&[0; 64]), None);
        assert_eq!(Frame::decode(&[30; 64]), None);
        for kind in 1..=29u8 {
            let size = if Kind::from_wire(kind).unwrap().is_long() { 64 } else { 32 };
            for length in 1..size {
                assert_eq!(Frame::decode(&vec![kind; length]), None, "{kind} {length}");
            }
            assert!(Frame::decode(&vec![kind; size]).is_some());
        }
    }
}

//! The matching of messages and receives: contexts, envelopes and patterns (MPI-5.0 section 3.2.3).

use shipable::{Architecture, Basic, Program, SharedProgram, Signature};

use super::super::context::is_data;
use super::super::peers::ByLength;
use crate::error::Result;
use crate::group::Group;
use crate::sequence::{Items, Sent, differ_from_message};
use crate::types::Compiled;
use crate::wire::CONVERTED;

/// No number: MPI_UNDEFINED.
pub const UNDEFINED: i64 = -32766;

/// The messages that a receive accepts.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub context: u32,
    pub sender: Sender,
    /// `None` for any tag.
    pub tag: Option<i32>,
}

impl Pattern {
    pub(super) fn matches(&self, arrival: &Arrival) -> bool {
        self.context == arrival.context
            && self.sender.may_be(arrival.peer)
            && self.tag.is_none_or(|tag| tag == arrival.tag)
    }
}

/// The ranks of the job from which a receive accepts messages.
#[derive(Clone, Debug)]
pub(crate) enum Sender {
    One(u32),
    Any(Group),
}

impl Sender {
    /// The sender, if there can be only one.
    pub(crate) fn one(&self) -> Option<u32> {
        match self {
            Sender::One(sender) => Some(*sender),
            Sender::Any(_) => None,
        }
    }

    pub(super) fn may_be(&self, peer: u32) -> bool {
        match self {
            Sender::One(sender) => *sender == peer,
            Sender::Any(group) => group.contains(peer),
        }
    }
}

/// A message that has arrived, or its announcement: the envelope, the length and the signature of
/// its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The sender's rank in the job.
    pub peer: u32,
    pub(super) context: u32,
    pub tag: i32,
    /// The hash of the sent elements' type signature, which may be marked as [`CONVERTED`].
    pub(super) signature: u128,
    /// Bytes of the data in the sender's representation.
    pub(super) length: u64,
    /// Whether its data match elements of another signature that are as long.
    pub(super) by_length: ByLength,
    /// Whether its data travel in the representation of all of this rank's memory.
    pub(super) is_native: bool,
}

/// The place of a message's collective call in the order of a communicator's calls.
enum Order {
    Before,
    Same,
    After,
}

/// The sender, tag and signature of a message of a collective call.
pub(crate) type OtherCall = (u32, i32, u128);

impl Arrival {
    /// Whether the message is of a user's data.
    pub(super) fn is_data(&self) -> bool {
        is_data(self.context)
    }

    /// Whether the message belongs to a collective call up to this number.
    pub(super) fn is_left_over(&self, context: u32, number: i32) -> bool {
        self.context == context && !matches!(self.order(number), Order::After)
    }

    /// Whether the message shows that its sender makes other collective calls than this rank, which
    /// is in the call of this number and signature and waits for a message `from` a rank.
    ///
    /// A message of a later call shows it if `from` is its sender: messages of one sender arrive in
    /// order. A message of an earlier call has been left over; this call goes on nevertheless.
    pub(super) fn is_misplaced(
        &self,
        context: u32,
        (number, signature): (i32, u128),
        from: Option<u32>,
    ) -> bool {
        let is = match self.order(number) {
            Order::Before => false,
            Order::Same => signature != self.signature,
            Order::After => from == Some(self.peer),
        };
        is && self.context == context
    }

    pub(super) fn other_call(&self) -> OtherCall {
        (self.peer, self.tag, self.signature)
    }

    /// Numbers begin again after 2^31 calls.
    fn order(&self, number: i32) -> Order {
        match self.tag.wrapping_sub(number) & i32::MAX {
            0 => Order::Same,
            ahead if ahead < 1 << 30 => Order::After,
            _ => Order::Before,
        }
    }
}

/// A message's data as elements of a receive's type.
pub(crate) struct Fit {
    /// The program that takes the message in; `None` for the type's native one.
    pub(super) program: Option<SharedProgram>,
    /// The number of elements; [`UNDEFINED`] if the message ends within one.
    pub count: i64,
    /// The number of basic elements.
    pub elements: i64,
    /// The number of elements, one that is there in part included.
    pub(super) touched: u64,
}

impl Fit {
    /// The program that takes the message in.
    #[inline]
    pub(super) fn program<'a>(&'a self, datatype: &'a Compiled) -> &'a Program {
        match &self.program {
            Some(program) => program,
            None => datatype.native(),
        }
    }
}

impl Arrival {
    /// The length of its data in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Checks the message against a type. Its data travel in the representation `stream`; `packed`
    /// is the representation of buffers of MPI_PACKED, unless that is the type's own.
    ///
    /// # Errors
    /// TYPE for elements of another signature.
    pub(crate) fn fit(
        &self,
        datatype: &Compiled,
        stream: &Architecture,
        packed: Option<&Architecture>,
    ) -> Result<Fit> {
        if let Some(fit) = self.fit_alike(datatype, packed) {
            return Ok(fit);
        }
        let packed = packed.unwrap_or(datatype.committed().architecture());
        let read = |stream| -> Result<_> {
            let prefix = datatype.committed().signature_in(self.length, stream)?;
            Ok((datatype.program(stream)?, prefix))
        };
        let strict = read(stream);
        // Mostly the signatures are equal. MPI_PACKED on both sides reads the same in every
        // representation.
        let same = matches!(&strict, Ok((_, Some(prefix))) if prefix.hash == self.hash());
        let relaxed = !same && self.is_relaxed(datatype, stream, packed);
        // Packed buffers may have another representation than both ranks.
        let by_length = || self.matches_by_length(datatype, stream);
        let same = same || !relaxed && !is_packed(datatype) && by_length();
        let (program, prefix) = if relaxed { read(packed)? } else { strict? };
        let size = program.stream_size();
        // Whole elements only.
        let count = self.length.checked_div(size).unwrap_or(0);
        let Some(Signature { count: elements, .. }) = prefix.filter(|_| same || relaxed) else {
            let sent = Sent { length: self.length, hash: self.hash(), stream };
            let receive = Items { count, form: datatype.form(), text: datatype };
            return Err(differ_from_message(sent, &receive).into());
        };
        let whole = count * size == self.length;
        Ok(Fit {
            program: Some(program),
            count: if whole { count as i64 } else { UNDEFINED },
            elements: elements as i64,
            touched: count + u64::from(!whole),
        })
    }

    /// The hash of the sent elements' type signature.
    #[inline]
    pub(super) fn hash(&self) -> u128 {
        self.signature & !CONVERTED
    }

    /// Whether the data match elements of a type if they are as long.
    fn matches_by_length(&self, datatype: &Compiled, stream: &Architecture) -> bool {
        let is_converted = self.signature & CONVERTED != 0;
        match self.by_length {
            ByLength::Never => false,
            ByLength::Copied => !is_converted && datatype.has_same_items(stream),
            ByLength::Always => true,
        }
    }

    /// Whether the message is from a like rank, and its data match elements that are as long.
    #[inline]
    pub(super) fn is_alike(&self) -> bool {
        self.by_length == ByLength::Always && self.is_native
    }

    /// The fit of whole elements from a like rank that match by length, as most messages between C
    /// programs. Where packed buffers are alike as well, no signature has to be looked at.
    fn fit_alike(&self, datatype: &Compiled, packed: Option<&Architecture>) -> Option<Fit> {
        if !self.is_alike() || packed.is_some() {
            return None;
        }
        let count = self.length.checked_div(datatype.native().stream_size())?;
        let is_whole = count * datatype.native().stream_size() == self.length;
        let elements = datatype.signature().count.checked_mul(count)?;
        is_whole.then(|| Fit {
            program: None,
            count: count as i64,
            elements: elements as i64,
            touched: count,
        })
    }

    /// Whether MPI_PACKED on one side relaxes the type matching (MPI-5.0 section 5.2): packed bytes
    /// may be received as the elements that they hold, and elements as bytes to unpack if they
    /// travel in the representation of packed buffers.
    fn is_relaxed(
        &self,
        datatype: &Compiled,
        stream: &Architecture,
        packed: &Architecture,
    ) -> bool {
        let bytes = packed_bytes(self.length);
        if bytes.is_some_and(|bytes| bytes.hash == self.hash()) {
            return true;
        }
        is_packed(datatype) && stream.same_representation(packed)
    }
}

/// The signature of so many bytes of MPI_PACKED.
fn packed_bytes(count: u64) -> Option<Signature> {
    Signature::of_leaf(Basic::Packed.into()).repeat(count)
}

/// Whether a type consists of MPI_PACKED.
fn is_packed(datatype: &Compiled) -> bool {
    let signature = datatype.signature();
    packed_bytes(signature.count) == Some(signature)
}

//! A target's answers to operations: an acknowledgement, the data that an operation fetched, or a
//! refusal.

use super::operation::BY_NUMBER;
use super::outbox::{InlineBytes, Outbox, Outgoing, Purpose, Source};
use crate::error::Error;
use crate::wire::{CONTROL_LIMIT, Header, Kind, Refusal};

/// Acknowledges a put or accumulate that is done: by its number if its origin waits for it by
/// itself, otherwise by count.
#[inline]
pub(super) fn acknowledge(peer: u32, header: &Header, out: &mut Outbox) {
    match header.tag & BY_NUMBER != 0 {
        true => out.push_done(peer, header.context, header.operation),
        false => out.acknowledge(peer, header.context),
    }
}

/// The answer to an operation that fetches `length` bytes.
pub(super) fn reply(header: &Header, length: u64, source: Source) -> Outgoing {
    let reply = Header {
        context: header.context,
        operation: header.operation,
        length,
        ..Header::new(Kind::Reply)
    };
    Outgoing::new(reply, source, Purpose::None)
}

/// The answer to an operation that fetched these bytes.
pub(super) fn reply_bytes(header: &Header, fetched: Vec<u8>) -> Outgoing {
    let length = fetched.len() as u64;
    let source = match InlineBytes::zeroed(length) {
        Some(mut inline) => {
            inline.bytes_mut().copy_from_slice(&fetched);
            Source::Inline(inline)
        }
        None => Source::Fetched(fetched),
    };
    reply(header, length, source)
}

/// The answer to an operation that is refused, or ended early. `bytes` are those of the window that
/// it would touch.
pub(super) fn refusal(
    rank: u32,
    peer: u32,
    operation: &Header,
    error: &Error,
    bytes: Option<(i64, i64)>,
) -> Outgoing {
    let mut text = error.to_string();
    // An error may print types of any length. The text has to fit a control message.
    let mut end = text.len().min(CONTROL_LIMIT / 2);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    let (window, number) = (operation.context, operation.operation);
    tracing::warn!(rank, peer, window, operation = number, why = text, "refused");
    let refusal = Refusal { class: error.class().wire(), text, bytes };
    let bytes = shipable::codec::encode(&refusal, CONTROL_LIMIT).unwrap_or_default();
    let header = Header {
        tag: operation.kind as u8,
        context: window,
        operation: number,
        length: bytes.len() as u64,
        ..Header::new(Kind::Refuse)
    };
    Outgoing::new(header, Source::Bytes(bytes.into()), Purpose::None)
}

//! Operations that a target refuses, or stops: how its error travels, and what the origin makes of it.

use super::outbox::{Outgoing, Purpose, Source};
use super::{Operation, State};
use crate::error::{Error, ErrorKind, Place};
use crate::wire::{CONTROL_LIMIT, Header, Kind, Refusal};

impl State {
    /// Where an operation of this rank on a peer's window failed.
    pub(super) fn place(
        &self,
        kind: Kind,
        peer: u32,
        window: u32,
        bytes: Option<(i128, i128)>,
    ) -> Place {
        let rank = self.windows.get(&window).and_then(|exposure| exposure.group.rank_of(peer));
        Place {
            call: kind.call(),
            rank: self.me.rank,
            target: rank.map(|rank| rank as i32),
            process: Some(peer),
            window: Some(window),
            bytes,
            epoch: None,
        }
    }

    /// Refuses, or ends early, an operation of a peer.
    pub(super) fn refuse(&mut self, peer: u32, operation: &Header, error: &Error) {
        let mut text = error.to_string();
        // The text fits a control message, whatever types it prints.
        let mut end = text.len().min(CONTROL_LIMIT / 2);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        let bytes = self.reached(peer, operation);
        let (window, number) = (operation.context, operation.operation);
        tracing::warn!(
            rank = self.me.rank,
            peer,
            window,
            operation = number,
            why = text,
            "refused"
        );
        let refusal = Refusal { class: error.class().wire(), text, bytes };
        let bytes = shipable::codec::encode(&refusal, CONTROL_LIMIT).unwrap_or_default();
        let header = Header {
            tag: operation.kind as u8,
            context: operation.context,
            operation: operation.operation,
            length: bytes.len() as u64,
            ..Header::new(Kind::Refuse)
        };
        self.push(peer, Outgoing::new(header, Source::Bytes(bytes.into()), Purpose::None));
    }

    /// An operation of this rank was refused: it is done, and failed.
    pub(super) fn handle_refusal(
        &mut self,
        peer: u32,
        header: Header,
        bytes: &[u8],
    ) -> Result<(), String> {
        let refusal: Refusal =
            shipable::codec::decode(bytes, CONTROL_LIMIT).map_err(|error| error.to_string())?;
        let class = shipable::Class::from_wire(refusal.class).unwrap_or(shipable::Class::Unknown);
        let (window, number) = (header.context, header.operation);
        let operation = Operation { target: peer, window, number };
        drop(self.take_fetch(operation));
        let error = Error::from(ErrorKind::Refused { by: peer, class, text: refusal.text });
        tracing::warn!(rank = self.me.rank, peer, window, operation = number, %error, "was refused");
        let kind = Kind::from_wire(header.tag).unwrap_or(Kind::Put);
        let bytes = refusal.bytes.map(|(start, end)| (start.into(), end.into()));
        let error = error.at(|| self.place(kind, peer, window, bytes));
        self.complete(operation, Some(error))
    }
}

//! The forms of this rank's types that peers know by their ids.

use crate::engine::outbox::{Outbox, Outgoing, Purpose, Source};
use crate::engine::peers::{PeerTable, Peers};
use crate::error::{ErrorKind, Result};
use crate::numbers::NumberSet;
use crate::types::TargetType;
use crate::wire::{Brief, Header, Kind, tag_to_wire};

/// The forms that were shipped, by peer. Each is shipped once, before the first operation that
/// names it.
pub(in crate::engine) struct ShippedForms {
    known: PeerTable<NumberSet<u64>>,
}

impl ShippedForms {
    pub(in crate::engine) fn new(size: u32) -> ShippedForms {
        ShippedForms { known: PeerTable::new(size) }
    }

    /// Whether a peer knows a form.
    #[inline]
    pub(in crate::engine) fn is_known(&self, peer: u32, form: u64) -> bool {
        self.known.get(peer).is_some_and(|known| known.contains(&form))
    }

    /// Ships a type's form to a peer, unless the peer knows it.
    ///
    /// # Errors
    /// The form is longer than the peer accepts.
    pub(in crate::engine) fn define(
        &mut self,
        peer: u32,
        target_type: TargetType<'_>,
        peers: &Peers,
        out: &mut Outbox,
    ) -> Result<()> {
        if self.is_known(peer, target_type.id()) {
            return Ok(());
        }
        let shipment = target_type.shipment(peers.me().rank);
        let limit = peers.form_limit(peer);
        if shipment.bytes.len() as u64 > limit {
            let what = format!("{} bytes, it takes {limit}", shipment.bytes.len());
            return Err(ErrorKind::Form { peer, what }.into());
        }
        self.known.of(peer).insert(shipment.id);
        let header = Header {
            tag: tag_to_wire(shipment.tag),
            context: shipment.builder,
            form: shipment.id,
            count: shipment.names,
            length: shipment.bytes.len() as u64,
            ..Header::new(Kind::Define)
        };
        out.push(peer, Outgoing::new(header, Source::Bytes(shipment.bytes), Purpose::None));
        Ok(())
    }

    /// Informs the peers that know a form that its types are gone.
    pub(in crate::engine) fn retire(&mut self, id: u64, out: &mut Outbox) {
        for (peer, known) in self.known.used() {
            if known.remove(&id) {
                let brief = Brief { kind: Kind::Retire, context: 0, operation: id, value: 0 };
                out.push_brief(peer, brief);
            }
        }
    }
}

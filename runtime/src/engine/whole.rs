//! Operations and answers whose data are all in one frame, as most are: they need no stream.

use shipable::Partial;

use super::folding::fetched_reply;
use super::outbox::Outgoing;
use super::{Fetch, Operation, State};
use crate::error::{Error, Result, conversion};
use crate::wire::{Header, Kind};

impl State {
    /// Takes a frame in that has all of its data. None, and nothing done, for one that goes as a stream does.
    pub(super) fn handle_whole(
        &mut self,
        peer: u32,
        header: &Header,
        data: &[u8],
    ) -> Option<Result<(), String>> {
        let outcome = match header.kind {
            Kind::Put => self.put_whole(peer, header, data).map(|()| None),
            Kind::Accumulate | Kind::Fetch => self.fold_whole(peer, header, data),
            _ => return None,
        };
        match outcome {
            Ok(Some(reply)) => self.push(peer, reply),
            Ok(None) => self.finish_update(peer, header),
            Err(error) => self.refuse(peer, header, &error),
        }
        Some(Ok(()))
    }

    fn put_whole(&self, peer: u32, header: &Header, data: &[u8]) -> Result<()> {
        let (admitted, program) = self.admit_data(peer, header)?;
        let mut partial = Partial::default();
        let put = admitted.span.unpack(program, header.count, 0, data, &mut partial);
        put.map_err(conversion)
    }

    /// An accumulate, and the answer to one that fetches.
    fn fold_whole(&self, peer: u32, header: &Header, data: &[u8]) -> Result<Option<Outgoing>> {
        let admitted = self.admit(peer, header)?;
        let mut folding = self.admit_folding(admitted, peer, header)?;
        folding.take(0, data)?;
        Ok(folding.into_fetched().map(|bytes| fetched_reply(header, bytes)))
    }

    /// The answer to an operation of this rank, all of it. Not in line, where the quick way of operations is.
    #[inline(never)]
    pub(super) fn reply_whole(
        &mut self,
        peer: u32,
        header: &Header,
        data: &[u8],
    ) -> Result<(), String> {
        if self.peers[peer as usize].is_streaming() {
            return Err("a Reply within a stream".to_owned());
        }
        let (window, number) = (header.context, header.operation);
        let operation = Operation { target: peer, window, number };
        let Some(fetch) = self.gets.remove(operation) else {
            // It was given up.
            return self.complete(operation, None);
        };
        let plain = fetch.run.filter(|(_, len)| *len == header.length);
        if plain.is_some_and(|(first, _)| fetch.span.write(first, data)) {
            let completed = self.complete(operation, None);
            fetch.waiter().into_iter().for_each(|ticket| ticket.settle());
            return completed;
        }
        self.unpack_whole(operation, &fetch, data)
    }

    /// An answer that isn't as the memory is.
    #[cold]
    fn unpack_whole(
        &mut self,
        operation: Operation,
        fetch: &Fetch,
        data: &[u8],
    ) -> Result<(), String> {
        let Operation { target: peer, window, .. } = operation;
        if let Some(ticket) = fetch.waiter() {
            self.tickets.insert(operation, ticket.clone());
        }
        let take = || -> Result<()> {
            let program = self.answer_program(peer, fetch, data.len() as u64)?;
            let mut partial = Partial::default();
            let taken = fetch.span.unpack(&program, fetch.count, 0, data, &mut partial);
            taken.map_err(conversion)
        };
        let place = || self.place(Kind::Get, peer, window, Some(fetch.bytes));
        let failure = take().err().map(|error: Error| error.at(place));
        self.complete(operation, failure)
    }
}

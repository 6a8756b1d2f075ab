//! Short messages: those that are sent at once, and receives into one run of memory.
//!
//! A call tries this way first. Where anything is unusual, it has done nothing, and goes the longer
//! way, which also reports what is wrong with it.

use std::panic::Location;

use shipable::Program;

use super::{Awaited, NULL_STATUS, Transfer, in_group};
use crate::check::Caller;
use crate::communicator::{ANY_SOURCE, ANY_TAG, Communicator};
use crate::engine::{Channel, Direct, EAGER, EAGER_FAR, Heading, Status};
use crate::error::{Result, conversion};
use crate::group::PROC_NULL;
use crate::job::Activity;
use crate::memory::{Lease, Span, scope};
use crate::origin::{Checked, Destination, Run, What};
use crate::types::Compiled;

impl Communicator {
    /// Sends a message, if it is short and may go before all others. Otherwise returns false, and
    /// has sent nothing: the [message](Communicator::message) has to be started. That reports what
    /// is wrong with the call as well.
    #[inline]
    pub(super) fn send_at_once(&self, memory: Span, what: &What<'_>, dest: i32, tag: i32) -> bool {
        let process = self.process();
        let Some(&peer) = self.peers().processes().get(dest as usize) else { return false };
        if tag < 0 || !self.is_usual() {
            return false;
        }
        let Some(Run { datatype, count, bytes, .. }) = what.run(process, memory) else {
            return self.pack_at_once(memory, what, peer, tag);
        };
        let Some(bytes) = bytes.bytes_at(0, bytes.len()) else { return false };
        let fill = |out: &mut [u8]| {
            out.copy_from_slice(bytes);
            Ok(())
        };
        self.start_at_once((datatype, count, bytes.len() as u64), peer, tag, fill)
    }

    /// Sends a message of elements that have to be packed, as
    /// [`send_at_once`](Communicator::send_at_once) does.
    #[inline(never)] // The path of other messages stays small.
    fn pack_at_once(&self, memory: Span, what: &What<'_>, peer: u32, tag: i32) -> bool {
        let process = self.process();
        let Ok(Checked { datatype, count, span }) = what.check(process, memory) else {
            return false;
        };
        let emulated;
        let program: &Program = match process.me().emulated {
            // A slice is in the machine's representation.
            true => match datatype.program(&process.me().architecture) {
                Ok(program) => {
                    emulated = program;
                    &emulated
                }
                Err(_) => return false,
            },
            false => datatype.native(),
        };
        let Ok(length) = program.stream_length(count) else { return false };
        let fill = |out: &mut [u8]| span.pack(program, count, 0, out).map(drop).map_err(conversion);
        self.start_at_once((datatype, count, length), peer, tag, fill)
    }

    /// Sends a message of `length` bytes, which `fill` packs, as
    /// [`send_at_once`](Communicator::send_at_once) does.
    #[inline] // It has two callers, one of which is the path of most messages.
    fn start_at_once(
        &self,
        (datatype, count, length): (&Compiled, u64, u64),
        peer: u32,
        tag: i32,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> bool {
        let process = self.process();
        let longest = if process.is_far(peer) { EAGER_FAR } else { EAGER };
        if length > longest {
            return false;
        }
        let mut engine = process.engine();
        if process.must_poll() {
            engine.progress();
        }
        let Ok(signature) = engine.state().signature(peer, datatype, count) else { return false };
        let context = self.context(Channel::Data);
        let heading = Heading { context, tag, length, signature, synchronous: false };
        engine.send_at_once(peer, &heading, fill)
    }

    /// Whether calls may go ahead, and nothing observes them.
    #[inline]
    fn is_usual(&self) -> bool {
        self.is_open() && self.process().observer().is_none()
    }

    /// The direct receive of a call that waits, if the call is a usual one, and its elements are
    /// one run of memory.
    #[inline(always)] // It has two callers, which use what it returns at once.
    pub(super) fn direct(
        &self,
        memory: Span,
        what: &What<'_>,
        source: i32,
        tag: i32,
    ) -> Option<Direct> {
        let process = self.process();
        // Packed buffers of other representations are converted.
        let is_plain = !process.takes_longer_ways() && self.foreign_packed().is_none();
        if !self.is_usual() || !is_plain {
            return None;
        }
        let sender = match source {
            ANY_SOURCE => None,
            _ => Some(*self.peers().processes().get(source as usize)?),
        };
        let tag = match tag {
            ANY_TAG => None,
            _ if tag < 0 => return None,
            _ => Some(tag),
        };
        let run = what.run(process, memory)?;
        let context = self.context(Channel::Data);
        let elements = (&**run.datatype, run.count, run.bytes);
        Direct::new(context, (sender, tag), elements, process.me().by_length).ok()
    }

    /// Receives a message that is here already.
    #[inline]
    pub(super) fn receive_at_once(&self, direct: &Direct) -> Option<Status> {
        let received = self.process().engine().state().receive_directly(direct)?;
        self.process().leave_rest();
        Some(in_group(self.peers(), received))
    }

    #[track_caller]
    #[inline(never)] // The path of messages that are here stays small.
    pub(super) fn recv_as(
        &self,
        call: &'static str,
        direct: Option<Direct>,
        room: Destination<'_>,
        source: i32,
        tag: i32,
    ) -> Result<Status> {
        let transfer = Transfer::of(self, Location::caller());
        self.call(call, Activity::Receive, source, || {
            if source == PROC_NULL {
                return Ok(NULL_STATUS);
            }
            scope(
                |_| transfer.abandon(),
                |scope| {
                    let span = scope.lend_mut(room.loan);
                    if let Some(status) = transfer.receive_directly(direct)? {
                        return Ok(status);
                    }
                    let pattern = self.pattern(source, tag, Channel::Data)?;
                    let landing = self.landing(Lease::lent(span), &room.what)?;
                    transfer.start_receive(pattern, landing);
                    transfer.finish_receive()
                },
            )
        })
    }
}

impl Transfer<'_> {
    /// Waits for the end of a direct receive. `None` if a receive has to be posted: this one isn't
    /// possible, or something else has come.
    fn receive_directly(&self, direct: Option<Direct>) -> Result<Option<Status>> {
        let Some(direct) = direct else { return Ok(None) };
        if !self.process.engine().state().start_direct(&direct) {
            return Ok(None);
        }
        self.is_direct.set(true);
        self.process.note_wait(direct.sender());
        let awaited = direct.awaited(self.caller);
        let ended = awaited.wait(self.process, |state| state.take_direct().map(Ok))?;
        self.is_direct.set(false);
        Ok(ended.map(|status| in_group(self.group, status)))
    }
}

impl Direct {
    fn awaited(&self, caller: Caller) -> Awaited {
        let (tag, context) = (self.tag(), self.context());
        Awaited { tag, unmatched: Some(context), caller }
    }
}

#[cfg(test)]
mod tests {
    use crate::sim::{Options, run};
    use crate::{ANY_SOURCE, ANY_TAG, Class};

    fn options(seed: u64) -> Options {
        Options { seed, ..Options::default() }
    }

    #[test]
    fn a_receive_that_waits_comes_after_those_that_are_posted() {
        for seed in 0..20 {
            let body = |rank: crate::Rank| {
                let world = rank.world();
                if world.rank() == 0 {
                    for (value, tag) in [(10, 3), (20, 4), (30, 3), (40, 3)] {
                        world.send(&[value], 1, tag).unwrap();
                    }
                } else {
                    let posted = [ANY_TAG, 4].map(|tag| world.irecv(vec![0], 0, tag).unwrap());
                    let mut room = [0];
                    let status = world.recv(&mut room, ANY_SOURCE, ANY_TAG).unwrap();
                    assert_eq!((room, status.source, status.tag), ([30], 0, 3));
                    let got = posted.map(|receiving| receiving.wait().unwrap().0[0]);
                    assert_eq!(got, [10, 20]);
                    world.recv(&mut room, 0, 3).unwrap();
                    assert_eq!(room, [40]);
                }
                rank.finalize().unwrap();
            };
            run(2, &options(seed), body).unwrap();
        }
    }

    /// Such messages can't just be copied to where the receive that waits wants them.
    #[test]
    fn messages_of_other_types_and_lengths_reach_a_receive_that_waits() {
        for seed in 0..20 {
            let body = |rank: crate::Rank| {
                let world = rank.world();
                if world.rank() == 0 {
                    world.send(&[1.5f64], 1, 0).unwrap();
                    world.send(&[7i64; 3], 1, 1).unwrap();
                    world.send(&[8i64], 1, 2).unwrap();
                    world.send(&vec![9i64; 100_000], 1, 3).unwrap();
                } else {
                    let (mut room, mut long) = ([0i64; 2], vec![0i64; 100_000]);
                    let class = |tag, room: &mut [i64]| {
                        world.recv(room, 0, tag).map(|status| status.count).map_err(|e| e.class())
                    };
                    let classes = [Class::Type, Class::Truncate];
                    assert_eq!([0, 1].map(|tag| class(tag, &mut room).unwrap_err()), classes);
                    assert_eq!((class(2, &mut room).unwrap(), room), (1, [8, 0]));
                    assert_eq!(class(3, &mut long).unwrap(), 100_000);
                    assert!(long.iter().all(|value| *value == 9));
                }
                rank.finalize().unwrap();
            };
            run(2, &options(seed), body).unwrap();
        }
    }
}

//! Hellos: the introductions of ranks, which come before all other frames. Each rank comes to know
//! all others, and sends only ceil(log2 n) hellos.
//!
//! 1. Before step k a rank knows the `held = 2^k` ranks from itself on.
//! 2. It introduces as many of them as are missing there to the rank `held` before it, and hears
//!    from the one `held` after.
//!
//! So a job of n ranks takes n ceil(log2 n) hellos, over the connections that collective calls use
//! later. Ranks of two worlds, which were started apart, introduce only themselves, and only when
//! their worlds meet.
//!
//! A hello also carries the protocol's version and the job's secret, which prove that its
//! sender belongs to the job.

use std::collections::{HashMap, HashSet};

use zeroize::Zeroizing;

use super::outbox::{Outbox, Outgoing, Purpose, Source};
use super::peers::Peers;
use super::target::LONGEST_FORM;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::{Founding, Header, Hello, Introduction, Kind, PROTOCOL, hello_limit};

/// The introductions that this rank has heard.
pub(super) struct Introductions {
    /// The job's secret.
    secret: Zeroizing<Vec<u8>>,
    /// Known at rank 0 from the start, and at the others once they have heard of rank 0.
    founding: Option<Founding>,
    /// The number of ranks, from this one on, that are known.
    held: u32,
    /// Their introductions, in runs of ranks that are alike.
    ranks: Vec<(u32, Introduction)>,
    /// Hellos that arrived before their step, by sender.
    early: HashMap<u32, Hello>,
    /// The ranks of other worlds to which this rank has introduced itself.
    greeted: HashSet<u32>,
}

impl Introductions {
    pub(super) fn new(secret: Zeroizing<Vec<u8>>, founding: Option<Founding>) -> Introductions {
        let (ranks, early, greeted) = (Vec::new(), HashMap::new(), HashSet::new());
        Introductions { secret, founding, held: 0, ranks, early, greeted }
    }

    /// The job's identity; 0 until it is known.
    pub(super) fn job(&self) -> u128 {
        self.founding.map_or(0, |founding| founding.job)
    }

    /// Introduces this rank to itself, and sends its first hello.
    ///
    /// # Errors
    /// A hello is longer than the wire allows.
    pub(super) fn start(&mut self, peers: &mut Peers, out: &mut Outbox) -> Result<()> {
        let me = *peers.me();
        let mine = Introduction {
            architecture: me.architecture.descriptor(),
            emulated: me.emulated,
            by_length: me.by_length,
            room: me.room,
            form_limit: LONGEST_FORM,
        };
        let introduced = self.introduce(me.rank, &mine, peers);
        let said = introduced.and_then(|()| self.say_hello(peers, out));
        said.map_err(|what| ErrorKind::Protocol { peer: me.rank, what }.into())
    }

    /// Takes a rank's introduction in. Ranks come in ascending order from this one on.
    fn introduce(
        &mut self,
        rank: u32,
        introduction: &Introduction,
        peers: &mut Peers,
    ) -> Result<(), String> {
        match self.ranks.last_mut() {
            Some((run, last)) if last == introduction => {
                peers.introduce_alike(rank);
                *run += 1;
            }
            _ => {
                peers.acquaint(rank, introduction)?;
                self.ranks.push((1, introduction.clone()));
            }
        }
        self.held += 1;
        Ok(())
    }

    /// The introductions of the first `count` ranks, in runs.
    fn first(&self, mut count: u32) -> Vec<(u32, Introduction)> {
        let mut ranks = Vec::new();
        for (run, introduction) in &self.ranks {
            let taken = count.min(*run);
            if taken > 0 {
                ranks.push((taken, introduction.clone()));
            }
            count -= taken;
        }
        ranks
    }

    /// Sends the hello of the next step, unless this rank knows all others.
    fn say_hello(&mut self, peers: &Peers, out: &mut Outbox) -> Result<(), String> {
        let (me, held) = (peers.me(), self.held);
        if held >= me.count {
            return Ok(());
        }
        self.say(me.after(me.count - held), self.first(missing(held, me.count)), peers, out)
    }

    /// Sends a hello that introduces these ranks.
    fn say(
        &self,
        peer: u32,
        ranks: Vec<(u32, Introduction)>,
        peers: &Peers,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let (secret, founding) = (self.secret.clone(), self.founding);
        let hello = Hello { protocol: PROTOCOL, secret, founding, ranks };
        let bytes = shipable::codec::encode_secret(&hello, hello_limit(peers.me().size));
        let bytes = bytes.map_err(|error| error.to_string())?;
        let header = Header { length: bytes.len() as u64, ..Header::new(Kind::Hello) };
        out.push(peer, Outgoing::new(header, Source::Secret(bytes.into()), Purpose::None));
        Ok(())
    }

    /// Introduces this rank to one of another world, which introduces itself in return.
    ///
    /// # Errors
    /// The hello is longer than the wire allows.
    pub(super) fn approach(
        &mut self,
        peer: u32,
        peers: &Peers,
        out: &mut Outbox,
    ) -> Result<(), String> {
        if peers.is_known(peer) || peers.me().world().contains(&peer) || !self.greeted.insert(peer)
        {
            return Ok(());
        }
        self.say(peer, self.first(1), peers, out)
    }

    /// Takes in the hello of a rank of another world.
    fn handle_stranger(
        &mut self,
        peer: u32,
        hello: &Hello,
        peers: &mut Peers,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let [(1, introduction)] = &hello.ranks[..] else {
            return Err("a hello of another world for more than its sender".to_owned());
        };
        if !peers.is_known(peer) {
            self.approach(peer, peers, out)?;
            peers.acquaint(peer, introduction)?;
        }
        Ok(())
    }

    /// Takes in a `Hello`. Before a rank is known, this and `Meet` are the only kinds of frame that
    /// it may send.
    ///
    /// # Errors
    /// The sender isn't of this job or of this version, or the hello isn't one of the steps.
    pub(super) fn handle_hello(
        &mut self,
        peer: u32,
        bytes: &[u8],
        peers: &mut Peers,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let me = *peers.me();
        let hello: Hello = shipable::codec::decode(bytes, hello_limit(me.size))
            .map_err(|error| error.to_string())?;
        if hello.protocol != PROTOCOL {
            return Err(format!(
                "it speaks protocol {}, this rank {PROTOCOL}: build both of one version",
                hello.protocol
            ));
        }
        if hello.secret != self.secret {
            return Err("it can't prove that it belongs to this job".to_owned());
        }
        if !me.world().contains(&peer) {
            return self.handle_stranger(peer, &hello, peers, out);
        }
        let distance = (peer + me.count - me.rank) % me.count;
        if !distance.is_power_of_two() {
            return Err(format!(
                "a hello to rank {}, which is {distance} ranks before it",
                me.rank
            ));
        }
        let introduced: u64 = hello.ranks.iter().map(|(run, _)| u64::from(*run)).sum();
        let missing = missing(distance, me.count);
        if introduced != u64::from(missing) {
            return Err(format!("a hello for {introduced} ranks, not {missing}"));
        }
        if self.early.insert(peer, hello).is_some() || peers.is_known(peer) {
            return Err("it said hello twice".to_owned());
        }
        self.advance(peers, out)
    }

    /// Takes in the hellos that have arrived, in the order of the steps.
    fn advance(&mut self, peers: &mut Peers, out: &mut Outbox) -> Result<(), String> {
        while let Some(peer) = self.awaited(peers) {
            let Some(hello) = self.early.remove(&peer) else { break };
            self.founding = self.founding.or(hello.founding);
            let me = *peers.me();
            for (run, introduction) in &hello.ranks {
                for _ in 0..*run {
                    let next = me.after(self.held);
                    self.introduce(next, introduction, peers)?;
                }
            }
            self.say_hello(peers, out)?;
        }
        Ok(())
    }

    /// The rank whose hello is due next; `None` once all ranks are known.
    pub(super) fn awaited(&self, peers: &Peers) -> Option<u32> {
        let (me, held) = (peers.me(), self.held);
        (held < me.count).then(|| me.after(held))
    }

    /// The job's founding, once all ranks are known.
    ///
    /// # Errors
    /// A rank is gone, so it may never be known; or rank 0 sent no founding.
    pub(super) fn take(&self, peers: &Peers) -> Option<Result<Founding>> {
        if let Some(gone) = peers.me().world().find_map(|rank| peers.gone(rank)) {
            return Some(Err(gone));
        }
        if self.awaited(peers).is_some() {
            return None;
        }
        let missing =
            || ErrorKind::Protocol { peer: 0, what: "it sent no founding of the job".to_owned() };
        Some(self.founding.ok_or_else(|| Error::from(missing())))
    }
}

/// The number of ranks that the rank `held` before this one is missing, if this one knows `held`.
fn missing(held: u32, size: u32) -> u32 {
    held.min(size - held)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longshore_transport::Segment;
    use longshore_transport::shm::ShmLink;
    use shipable::Architecture;

    use super::*;
    use crate::engine::{Engine, Me};
    use longshore_job::copies;

    use crate::job::{ROOM, Secret};
    use crate::object::Names;

    #[test]
    #[cfg_attr(sanitized, ignore = "the memory of a sanitizer takes minutes to search")]
    fn hellos_leave_no_copy_of_the_secret_in_memory() {
        const SIZE: u32 = 3;
        let secret = Secret::generate().unwrap();
        // The second half: an allocator overwrites the first bytes of memory that it gets back.
        let inverted: Vec<u8> = secret.bytes()[16..].iter().map(|byte| !byte).collect();
        let segment = Segment::create(SIZE).unwrap();
        let engine = |rank| {
            let architecture = Architecture::X86_64;
            let survives = false;
            let (emulated, by_length, room) = (false, false, ROOM);
            let (size, first, count) = (SIZE, 0, SIZE);
            let me =
                Me { rank, size, first, count, architecture, emulated, by_length, room, survives };
            let link = Box::new(ShmLink::new(segment.as_rank(rank).unwrap()).unwrap());
            let founding = (rank == 0).then_some(Founding { barrier: (0, 0), job: 1 });
            let proof = secret.bytes().to_vec().into();
            Engine::new(me, link, proof, Arc::new(Names::default()), founding)
        };
        let mut engines: Vec<_> = (0..SIZE).map(engine).collect();
        for engine in &mut engines {
            engine.state().start_hello().unwrap();
        }
        while engines.iter_mut().any(|engine| engine.state().awaited_hello().is_some()) {
            for engine in &mut engines {
                engine.progress();
            }
        }
        // One in each engine, and the one above. Those in the rings lie in shared memory.
        assert_eq!(copies::count(&inverted), SIZE as usize + 1);
        drop((engines, secret));
        assert_eq!(copies::count(&inverted), 0);
    }
}

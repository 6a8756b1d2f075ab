//! The network's limit: writes to registered memory by libfabric, without this library's protocol,
//! until remote completion.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use longshore_transport::fabric::{FabricLink, Listener};
use longshore_transport::rdma::{Access, Rdma, RemoteMemory, Room, Transfer};
use longshore_transport::{Link, Refused, Segment};

use crate::case::{Bench, Case, IN_FLIGHT};
use crate::datatypes::times;
use crate::{Failure, pin};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Bytes over which the writes of a stream are spread, as in the benches of bandwidth.
const SPREAD: usize = 4 << 20;

/// Measures writes from the first core to the second by the provider tcp over the loopback
/// interface, single or many at once. Returns the microseconds of one write, for each round.
pub(crate) fn writes(case: &Case) -> Result<Vec<f64>, Failure> {
    let segment = Segment::create(2)?;
    let [near, far] = links(&segment)?;
    let none = || "the provider gives no access to memory";
    let (rdma, theirs) = (near.rdma().ok_or_else(none)?, far.rdma().ok_or_else(none)?);
    let len = usize::try_from(case.bytes)?;
    let together = match case.bench {
        Bench::FabricBw => (SPREAD / len.max(1)).clamp(1, IN_FLIGHT as usize),
        _ => 1,
    };
    let room = Room::new(&*theirs, (len * together).max(1))?;
    let over = Arc::new(AtomicBool::new(false));
    let serves = thread::spawn({
        let over = over.clone();
        move || {
            pin(1);
            while !over.load(Ordering::Relaxed) && theirs.poll().is_ok() {}
        }
    });
    let mut buffers = vec![vec![1; len]; together];
    // A round has as many writes as a round of the benches that this limit stands beside.
    let case = Case { calls: (case.calls / together as u32).max(1), ..case.clone() };
    let took = times(&case, |_| write_all(&rdma, &room, &mut buffers));
    over.store(true, Ordering::Relaxed);
    serves.join().map_err(|_| "the other core's thread panicked")?;
    Ok(took?.into_iter().map(|each| each / together as f64).collect())
}

/// Starts a write of each buffer to its own slot, and waits for all of them.
fn write_all(rdma: &Arc<dyn Rdma>, room: &Room, buffers: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
    let mut under_way = Vec::with_capacity(buffers.len());
    for (at, buffer) in (0u64..).zip(buffers.drain(..)) {
        let len = buffer.len() as u64;
        let place = RemoteMemory { peer: 1, key: room.key(), stretches: &[(at * len, len)] };
        let mut transfer = Transfer::of_buffer(rdma, buffer);
        loop {
            match transfer.start(Access::Write, &place) {
                Ok(()) => break,
                Err(Refused::WouldBlock) => rdma.poll()?,
                Err(Refused::Failed(error)) => return Err(error.into()),
            }
        }
        under_way.push(transfer);
    }
    for transfer in under_way {
        while !transfer.is_done() {
            rdma.poll()?;
        }
        buffers.extend(transfer.into_buffer());
    }
    Ok(())
}

fn links(segment: &Segment) -> Result<[FabricLink; 2], Failure> {
    let patience = Duration::from_secs(20);
    let mut listeners =
        [Listener::open("tcp", HERE, patience)?, Listener::open("tcp", HERE, patience)?];
    let memories = listeners.each_mut().map(Listener::open_memory);
    let [one, other] = memories;
    let memories = [Some(one?), Some(other?)];
    let addresses = listeners.each_ref().map(|listener| Some(listener.address()));
    let [near, far] = listeners;
    let link = |listener: Listener, rank| -> Result<FabricLink, Failure> {
        Ok(listener.link(segment.as_rank(rank)?, addresses.to_vec(), &memories, b"one process")?)
    };
    Ok([link(near, 0)?, link(far, 1)?])
}

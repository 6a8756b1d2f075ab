//! A rank that receives frames from a hostile peer, for the fuzz targets. It is built only with
//! `--cfg fuzzing`.

use std::sync::Arc;

use longshore_transport::sim::Cluster;
use longshore_transport::{Link, Refused};
use shipable::Architecture;

use crate::control::Control;
use crate::engine::{Engine, Exposure, Ledger, Me, Opened, Policy};
use crate::group::Group;
use crate::job::ROOM;
use crate::memory::Exposed;
use crate::wire::{Header, Hello, Introduction, Kind, PROTOCOL, hello_limit};

/// The secret that proves membership in the job.
pub const SECRET: [u8; 4] = *b"fuzz";

/// Rank 0 of two. It has a window of 4 KiB with displacement unit 8 and the number
/// [`Target::WINDOW`]. The caller plays rank 1.
pub struct Target {
    engine: Engine,
    peer: Box<dyn Link>,
}

impl Target {
    /// The window's number.
    pub const WINDOW: u32 = 1;

    /// A rank that hasn't received its peer's hello frame yet.
    ///
    /// # Panics
    /// If shared memory isn't available.
    pub fn new() -> Target {
        let cluster = Cluster::new(2, 0).expect("shared memory");
        let link = Box::new(cluster.link(0).expect("rank 0's link"));
        let peer = Box::new(cluster.link(1).expect("rank 1's link"));
        let architecture = Architecture::NATIVE;
        let (emulated, by_length, room) = (false, false, ROOM);
        let (size, first, count) = (2, 0, 2);
        let me = Me { rank: 0, size, first, count, architecture, emulated, by_length, room };
        let mut engine = Engine::new(me, link, SECRET.to_vec().into(), Arc::default(), None);
        let (segment, group) = (cluster.segment(0).expect("rank 0's"), Group::of_world(0..2, 0));
        let place = segment.allocate(Control::bytes(2, 2)).expect("shared memory");
        let control = Control::new(&segment, place, &group, 0, 2).expect("shared memory");
        let exposure = Exposure {
            _registered: None,
            window: Target::WINDOW,
            opened: Opened::Whole(Arc::new(
                Exposed::created(vec![0u8; 4096]).expect("bytes have no padding"),
            )),
            unit: 8,
            policy: Policy::SameLayout,
            same_op: false,
            is_shared: false,
            group,
            control: Arc::new(control.expect("as long as it has to be")),
        };
        engine.state().open_window(Arc::new(exposure), Arc::new(Ledger::new(2)));
        engine.state().start_hello().expect("a hello has an encoding");
        Target { engine, peer }
    }

    /// The encoded, correct hello of rank 1, on a machine of `architecture`.
    ///
    /// # Panics
    /// Never: every hello has an encoding.
    pub fn hello(architecture: &Architecture) -> Vec<u8> {
        let introduction = Introduction {
            architecture: architecture.descriptor(),
            emulated: false,
            by_length: false,
            room: 1 << 16,
            form_limit: 1 << 16,
        };
        let hello = Hello {
            protocol: PROTOCOL,
            secret: SECRET.to_vec().into(),
            founding: None,
            ranks: vec![(1, introduction)],
        };
        shipable::codec::encode(&hello, hello_limit(2)).expect("a hello has an encoding")
    }

    /// A frame that carries a whole hello.
    pub fn introduction(hello: &[u8]) -> Vec<u8> {
        let header = Header { length: hello.len() as u64, ..Header::new(Kind::Hello) };
        [&header.encode(), hello].concat()
    }

    /// Sends a frame to the rank, lets it process the frame, and receives its answers. A frame
    /// longer than the link's limit is cut.
    ///
    /// # Panics
    /// If the link refuses the frame, unless the rank has given up its peer.
    pub fn feed(&mut self, frame: &[u8]) {
        let len = frame.len().min(self.peer.frame_limit(0));
        match self.peer.reserve(0, len) {
            Ok(mut room) => {
                room.copy_from_slice(&frame[..len]);
                room.commit();
            }
            Err(Refused::WouldBlock) => panic!("the rank doesn't take frames in"),
            Err(Refused::Failed(_)) => return,
        }
        while self.engine.progress() {
            while let Ok(Some(answer)) = self.peer.receive() {
                std::hint::black_box(crate::wire::describe(&answer));
            }
        }
    }
}

impl Default for Target {
    fn default() -> Target {
        Target::new()
    }
}

//! What a peer leaves in a ring: the receiver finds frames within the ring, or an error; so does the sender with what the
//! receiver gives back.
//!
//! The input is a list of steps, each a byte that says what is done and the words that it takes.
#![no_main]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use longshore_fuzz as _;
use longshore_transport::shm::ring::{
    Access, Control, INLINE, Le64, Memory, Position, Receiver, SLOTS, Sender,
};

const BULK: usize = 4096;
const LIMIT: usize = BULK / 4;

/// A ring's parts, each an allocation of its own, so that the address sanitizer sees what leaves one.
struct Ring {
    control: *mut u8,
    headers: *mut u8,
    inline: *mut u8,
    bulk: *mut u8,
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 128).expect("128 is a power of two")
}

const CONTROL: usize = size_of::<Control>();
const HEADERS: usize = SLOTS as usize * 8;
const INLINES: usize = SLOTS as usize * INLINE;

impl Ring {
    fn new() -> Ring {
        let make = |bytes| {
            // SAFETY: the layout's size isn't zero.
            let start = unsafe { alloc_zeroed(layout(bytes)) };
            if start.is_null() {
                handle_alloc_error(layout(bytes));
            }
            start
        };
        Ring {
            control: make(CONTROL),
            headers: make(HEADERS),
            inline: make(INLINES),
            bulk: make(BULK),
        }
    }

    /// What a peer may do at any time: write any word.
    fn scribble(&self, slot: usize, header: u64) {
        // SAFETY: below SLOTS, so within the headers, and aligned; one thread runs here.
        unsafe { self.headers.cast::<u64>().add(slot % SLOTS as usize).write(header.to_le()) };
    }

    fn give_back(&self, consumed: u32) {
        // SAFETY: the first word of the control block; one thread runs here.
        unsafe { self.control.cast::<u32>().write(consumed.to_le()) };
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let parts = [
            (self.control, CONTROL),
            (self.headers, HEADERS),
            (self.inline, INLINES),
            (self.bulk, BULK),
        ];
        for (start, bytes) in parts {
            // SAFETY: allocated in `new` with this layout, and freed once.
            unsafe { dealloc(start, layout(bytes)) };
        }
    }
}

// SAFETY: the parts are allocations that live as long as the ring, aligned for what they hold, and don't overlap.
unsafe impl Memory for &Ring {
    fn control(&self) -> &Control {
        // SAFETY: zeroed, which is a valid value of its words.
        unsafe { &*self.control.cast() }
    }

    fn header(&self, slot: usize) -> &Le64 {
        assert!(slot < SLOTS as usize);
        // SAFETY: within the headers.
        unsafe { &*self.headers.cast::<Le64>().add(slot) }
    }

    fn bulk_len(&self) -> u64 {
        BULK as u64
    }

    fn bytes(&self, position: Position, _: Access) -> *mut u8 {
        match position {
            // SAFETY: within the allocation, or the sanitizer says so when it is used.
            Position::Slot(slot) => unsafe { self.inline.add(slot * INLINE) },
            // SAFETY: as above.
            Position::Bulk(start) => unsafe { self.bulk.add(start) },
        }
    }
}

/// The input, read from its start.
struct Steps<'a>(&'a [u8]);

impl Steps<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn word(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (incoming, outgoing) = (Ring::new(), Ring::new());
    let mut receiver = Receiver::new(&incoming, LIMIT);
    let mut sender = Sender::new(&outgoing);
    let mut steps = Steps(bytes);
    let _ = play(&mut steps, &incoming, &mut receiver, &outgoing, &mut sender);
});

/// Plays until the input ends, or an end of the ring refuses what its peer wrote.
fn play(
    steps: &mut Steps<'_>,
    incoming: &Ring,
    receiver: &mut Receiver<&Ring>,
    outgoing: &Ring,
    sender: &mut Sender<&Ring>,
) -> Option<()> {
    let mut stamp = 0u32;
    loop {
        match steps.byte()? % 5 {
            // A frame as a sender would publish it, but for its length.
            0 => {
                let length = steps.word()?;
                stamp = stamp.wrapping_add(1);
                let slot = stamp.wrapping_sub(1) as usize;
                incoming.scribble(slot, u64::from(stamp) << 32 | u64::from(length));
            }
            1 => {
                let slot = usize::from(steps.byte()?);
                incoming.scribble(slot, u64::from(steps.word()?) << 32 | u64::from(steps.word()?));
            }
            2 => {
                if let Some(bytes) = receiver.poll().ok()? {
                    // SAFETY: valid until released; nobody writes meanwhile.
                    let bytes = unsafe { bytes.as_ref() };
                    assert!(bytes.len() <= LIMIT);
                    std::hint::black_box(
                        bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)),
                    );
                    receiver.release();
                }
            }
            3 => outgoing.give_back(steps.word()?),
            _ => {
                let length = steps.word()? as usize % (LIMIT + 1);
                if let Some(mut room) = sender.reserve(length).ok()? {
                    // SAFETY: the caller's alone until published.
                    let room = unsafe { room.as_mut() };
                    room.fill(0x5a);
                    sender.publish(room);
                }
            }
        }
    }
}

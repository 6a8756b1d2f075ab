//! A ring whose peer writes arbitrary words. The receiver must find frames inside the ring, or an
//! error. The sender must find a valid number of consumed slots, or an error.
//!
//! The input is a list of steps. Each step is a byte that selects an action, and the action's
//! words.
#![no_main]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use longshore_fuzz as _;
use longshore_transport::ring::{
    Access, Control, Header, INLINE, Memory, Position, Receiver, SLOTS, Sender,
};

const BULK: usize = 4096;
const LIMIT: usize = BULK / 4;

/// The parts of a ring. Each is an allocation of its own, so that the address sanitizer finds
/// accesses outside of it.
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
const HEADERS: usize = SLOTS as usize * size_of::<Header>();
const INLINES: usize = SLOTS as usize * INLINE;

impl Ring {
    fn new() -> Ring {
        let make = |bytes| {
            // SAFETY: the size of the layout isn't zero.
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

    /// Writes any words to a header, as a peer may do at any time.
    fn scribble(&self, slot: usize, stamp: u32, length: u32) {
        let header = [length, stamp].map(u32::to_le);
        // SAFETY: the slot is below SLOTS, so the words lie within the headers and are aligned.
        // There is one thread.
        unsafe { self.headers.cast::<[u32; 2]>().add(slot % SLOTS as usize).write(header) };
    }

    fn give_back(&self, consumed: u32) {
        // SAFETY: this is the first word of the control block, and there is one thread.
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
            // SAFETY: `new` allocated it with this layout, and it is freed only here.
            unsafe { dealloc(start, layout(bytes)) };
        }
    }
}

// SAFETY: the parts are separate allocations, aligned for their contents, that live as long as the
// ring.
unsafe impl Memory for &Ring {
    fn control(&self) -> &Control {
        // SAFETY: the memory is zeroed, and zero is a valid value of its words.
        unsafe { &*self.control.cast() }
    }

    fn header(&self, slot: usize) -> &Header {
        assert!(slot < SLOTS as usize);
        // SAFETY: the slot lies within the headers.
        unsafe { &*self.headers.cast::<Header>().add(slot) }
    }

    fn bulk_len(&self) -> u64 {
        BULK as u64
    }

    fn bytes(&self, position: Position, _: Access) -> *mut u8 {
        match position {
            // SAFETY: the pointer lies within the allocation. Otherwise the sanitizer reports its
            // use.
            Position::Slot(slot) => unsafe { self.inline.add(slot * INLINE) },
            // SAFETY: the pointer lies within the allocation. Otherwise the sanitizer reports its
            // use.
            Position::Bulk(start) => unsafe { self.bulk.add(start) },
        }
    }
}

/// A reader of the input.
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

/// Runs the steps until the input ends, or one end of the ring refuses its peer's words.
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
            // Publishes a frame as a sender would, but with any length.
            0 => {
                let length = steps.word()?;
                stamp = stamp.wrapping_add(1);
                let slot = stamp.wrapping_sub(1) as usize;
                incoming.scribble(slot, stamp, length);
            }
            1 => {
                let slot = usize::from(steps.byte()?);
                incoming.scribble(slot, steps.word()?, steps.word()?);
            }
            2 => {
                if let Some(bytes) = receiver.poll().ok()? {
                    // SAFETY: the frame is valid until it is released, and nothing writes to it
                    // meanwhile.
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
                    // SAFETY: only the caller uses the frame until it is published.
                    let room = unsafe { room.as_mut() };
                    room.fill(0x5a);
                    sender.publish(room);
                }
            }
        }
    }
}

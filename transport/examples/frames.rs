//! Sends frames of 8 bytes through a ring of one process: `ci/steps/frames` counts the instructions
//! of a frame on machines of 32 bits and on x86-64.
//!
//!     frames CALLS

use std::error::Error;
use std::hint::black_box;

use longshore_transport::shm::ShmLink;
use longshore_transport::{Link, Segment};

fn main() -> Result<(), Box<dyn Error>> {
    let calls: u32 = std::env::args().nth(1).ok_or("usage: frames CALLS")?.parse()?;
    let segment = Segment::create(2)?;
    let mut left = ShmLink::new(segment.as_rank(0)?)?;
    let mut right = ShmLink::new(segment.as_rank(1)?)?;
    for _ in 0..calls {
        let mut frame = left.reserve(1, 8)?;
        // One store. A copy of unknown length would measure the C library's `memcpy`.
        *frame.first_chunk_mut().ok_or("a frame of 8 bytes is shorter")? = black_box([1_u8; 8]);
        frame.commit();
        black_box(right.receive()?.ok_or("a frame that was sent isn't there")?[0]);
    }
    Ok(())
}

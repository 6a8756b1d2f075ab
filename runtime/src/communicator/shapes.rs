//! The shapes of data as ranks post them: what comes before them, and their length.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::types::Compiled;

/// Bytes before the packed data: a 0, and the hash of the data's signature.
pub(super) const HEAD: usize = 17;

/// The shape of a block as ranks post it: what comes before its data, and how many bytes they have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub head: [u8; HEAD],
    pub bytes: u64,
}

impl Shape {
    /// The shape of a block of `bytes` bytes of this signature.
    pub(super) fn new(signature: u128, bytes: u64) -> Shape {
        Shape { head: head(signature), bytes }
    }

    /// The hash of the signature.
    pub(super) fn signature(&self) -> u128 {
        let mut hash = [0; HEAD - 1];
        hash.copy_from_slice(&self.head[1..]);
        u128::from_le_bytes(hash)
    }
}

/// The shapes of the data of a communicator's last calls, by type, count and number of blocks.
#[derive(Default)]
pub(super) struct Shapes([Known; 8]);

/// A shape, with the place of the data.
#[derive(Default)]
struct Known {
    /// The number of changes; odd during one. Threads that wrongly make calls at the same time may
    /// change and read it.
    version: AtomicU32,
    /// The id of the type; 0 for no shape.
    datatype: AtomicU64,
    count: AtomicU64,
    blocks: AtomicU64,
    start: AtomicU64,
    bytes: AtomicU64,
    signature: [AtomicU64; 2],
}

impl Shapes {
    /// The displacement of `count` elements, if they lie in one run of memory, and the shape of one
    /// of `blocks` equal blocks of them. `None` also if they don't divide into blocks, or are
    /// empty.
    pub(super) fn shape(
        &self,
        datatype: &Compiled,
        count: u64,
        blocks: u64,
    ) -> Option<(i64, Shape)> {
        let id = datatype.id();
        let known = &self.0[(id.wrapping_add(count).wrapping_add(blocks) % 8) as usize];
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let version = known.version.load(Ordering::Acquire);
        let key = [&known.datatype, &known.count, &known.blocks].map(read);
        if key == [id, count, blocks] {
            let [low, high] = [&known.signature[0], &known.signature[1]].map(read);
            let signature = u128::from(high) << 64 | u128::from(low);
            let shape = Shape::new(signature, read(&known.bytes));
            let start = read(&known.start) as i64;
            fence(Ordering::Acquire);
            if version % 2 == 0 && known.version.load(Ordering::Relaxed) == version {
                return Some((start, shape));
            }
        }
        let native = datatype.native();
        let (start, bytes) = (native.contiguous(count)?, native.stream_length(count).ok()?);
        let block = count / blocks;
        if block == 0 || bytes == 0 || count % blocks != 0 {
            return None;
        }
        let (signature, bytes) = (datatype.repeated(block).ok()?, bytes / blocks);
        let found = Some((start, Shape::new(signature, bytes)));
        let (odd, acquire, relaxed) = (version | 1, Ordering::Acquire, Ordering::Relaxed);
        if version == odd || known.version.compare_exchange(version, odd, acquire, relaxed).is_err()
        {
            // Another thread changes it.
            return found;
        }
        fence(Ordering::Release);
        let write = |word: &AtomicU64, value| word.store(value, Ordering::Relaxed);
        write(&known.datatype, id);
        write(&known.count, count);
        write(&known.blocks, blocks);
        write(&known.start, start as u64);
        write(&known.bytes, bytes);
        write(&known.signature[0], signature as u64);
        write(&known.signature[1], (signature >> 64) as u64);
        known.version.store(odd.wrapping_add(1), Ordering::Release);
        found
    }
}

/// What comes before data of a signature.
fn head(signature: u128) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[1..].copy_from_slice(&signature.to_le_bytes());
    head
}

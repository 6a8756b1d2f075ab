//! Hash tables with numeric keys: of windows, operations, forms, and Rust's type ids.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A hash map by number. All keys of a map are numbered by one rank, so a rank that provokes
/// collisions slows down only its own operations. A hash that resists attacks would take a
/// considerable part of the time of a small operation.
pub(crate) type Numbers<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// A hash set of numbers.
pub(crate) type NumberSet<K> = HashSet<K, BuildHasherDefault<Mixer>>;

/// A hash function that spreads each word over all bits by a multiplication.
#[derive(Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_numbers_spread() {
        let hash = |number: u64| {
            let mut mixer = Mixer::default();
            mixer.write_u64(number);
            mixer.finish()
        };
        // A hash table uses the low bits and the highest seven.
        for (shift, mask) in [(0, 0xff), (57, 0x7f)] {
            let places: HashSet<_> = (0..256).map(|n| hash(n) >> shift & mask).collect();
            assert!(places.len() > mask as usize / 2, "{} of {mask}", places.len());
        }
    }
}

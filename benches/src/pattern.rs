//! Data for validation: a small number for each item of a type, which every representation holds,
//! and in the gaps bytes that no such number has.
//!
//! The positions of the items come from `shipable::oracle`, which expands type maps. So validation
//! is independent of the programs that are measured.

use longshore::Architecture;
use longshore::arch::{ByteOrder, FloatFormat, Scalar, Value};
use shipable::Datatype;
use shipable::oracle::{self, Item};

use crate::Failure;

/// The data of some elements of a type, in the memory or the packed stream of an architecture.
#[derive(Debug)]
pub struct Pattern {
    /// The items of one element, in the order of the type map.
    items: Vec<Item>,
    /// Bytes from one element to the next.
    extent: i64,
    count: u64,
}

impl Pattern {
    /// The pattern of `count` elements of a type. `None` if the type contains long doubles or truth
    /// values, for which there is no data here.
    ///
    /// # Errors
    /// A type that doesn't exist on the architecture.
    pub fn new(
        datatype: &Datatype,
        count: u64,
        architecture: &Architecture,
    ) -> Result<Option<Pattern>, Failure> {
        let items = oracle::expand(datatype, architecture, 1)?;
        let bounds = oracle::bounds(datatype, architecture)?;
        let all = items.iter().all(|item| image(&item.scalar, 1).is_some());
        Ok(all.then_some(Pattern { items, extent: bounds.ub - bounds.lb, count }))
    }

    /// The packed stream. Each item is the sum of its [`number`]s for all seeds, which is below 128
    /// for two seeds.
    pub fn packed(&self, seeds: &[u64]) -> Vec<u8> {
        let mut stream = Vec::new();
        for (at, (_, item)) in (0..).zip(self.all()) {
            let (bytes, size) = image(&item.scalar, number(at, seeds)).unwrap_or_default();
            stream.extend_from_slice(&bytes[..size]);
        }
        stream
    }

    /// Writes the items to memory whose displacement 0 is at offset `zero`. Each item is the sum of
    /// its [`number`]s for all seeds. Gaps stay unchanged.
    ///
    /// # Errors
    /// Memory that is too short.
    pub fn write(&self, memory: &mut [u8], zero: i64, seeds: &[u64]) -> Result<(), Failure> {
        for (at, (offset, item)) in (0..).zip(self.all()) {
            let (bytes, size) = image(&item.scalar, number(at, seeds)).unwrap_or_default();
            let place = usize::try_from(zero + offset)?;
            let place = memory.get_mut(place..).and_then(|rest| rest.get_mut(..size));
            place.ok_or("memory is too short")?.copy_from_slice(&bytes[..size]);
        }
        Ok(())
    }

    /// The items of all elements, with their displacements.
    fn all(&self) -> impl Iterator<Item = (i64, &Item)> {
        (0..self.count as i64).flat_map(move |element| {
            self.items.iter().map(move |item| (element * self.extent + item.offset, item))
        })
    }
}

/// The number of item `at`, summed over all seeds.
pub fn number(at: u64, seeds: &[u64]) -> u64 {
    seeds.iter().map(|seed| 1 + (at + 11 * seed) % 61).sum()
}

/// Fills memory with the bytes that gaps must keep. Each seed has other bytes.
pub fn fill_gaps(memory: &mut [u8], seed: u64) {
    for (at, byte) in (0u64..).zip(memory) {
        *byte = 0x80 + ((7 * at + 13 * seed) % 127) as u8;
    }
}

/// Compares bytes with the expected ones.
///
/// # Errors
/// The first difference: its offset, the byte found, and the byte expected.
pub fn compare(found: &[u8], right: &[u8]) -> Result<(), String> {
    if found.len() != right.len() {
        return Err(format!("{} bytes, not {}", found.len(), right.len()));
    }
    match found.iter().zip(right).position(|(found, right)| found != right) {
        None => Ok(()),
        Some(byte) => Err(format!("byte {byte} is {}, not {}", found[byte], right[byte])),
    }
}

/// The bytes of a small number as an item, and their count.
fn image(item: &Scalar, number: u64) -> Option<([u8; 16], usize)> {
    let size = usize::from(item.size);
    let mut bytes = [0; 16];
    match item.value {
        Value::Bytes | Value::Char | Value::Wide | Value::Int { .. } => {
            bytes[..8].copy_from_slice(&number.to_le_bytes());
        }
        Value::Float(FloatFormat::Binary32) => {
            bytes[..4].copy_from_slice(&(number as f32).to_le_bytes());
        }
        Value::Float(FloatFormat::Binary64) => {
            bytes[..8].copy_from_slice(&(number as f64).to_le_bytes());
        }
        Value::Float(_) | Value::Logical { .. } => return None,
    }
    if item.order == ByteOrder::Big {
        bytes.get_mut(..size)?.reverse();
    }
    Some((bytes, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_equals_the_unpacked_stream_of_the_oracle() -> Result<(), Failure> {
        let column = Datatype::vector(3, 1, 2, &Datatype::int())?;
        let member = Datatype::simple_struct(&[1, 1], &[Datatype::char(), Datatype::double()])?;
        let native = Architecture::NATIVE;
        for datatype in [column, member, Datatype::long()] {
            for architecture in [native, Architecture::S390X, Architecture::I686] {
                let there = Pattern::new(&datatype, 2, &architecture)?.ok_or("no pattern")?;
                let stream = Pattern::new(&datatype, 2, &native)?.ok_or("no pattern")?;
                let [mut memory, mut unpacked] = [[0; 64]; 2];
                fill_gaps(&mut memory, 5);
                fill_gaps(&mut unpacked, 5);
                there.write(&mut memory, 8, &[3])?;
                let packed = stream.packed(&[3]);
                let to = (&architecture, &mut unpacked[..], 8);
                oracle::unpack(&datatype, 2, to, (&native, &packed))?;
                assert_eq!(memory, unpacked, "{datatype} on {architecture}");
                assert_ne!(stream.packed(&[4]), packed);
                assert!(there.write(&mut memory[..12], 8, &[3]).is_err());
            }
        }
        Ok(())
    }

    #[test]
    fn compare_finds_a_byte_written_to_a_gap() -> Result<(), Failure> {
        let member = Datatype::simple_struct(&[1, 1], &[Datatype::char(), Datatype::double()])?;
        let pattern = Pattern::new(&member, 2, &Architecture::X86_64)?.ok_or("no pattern")?;
        let [mut right, mut origin] = [[0; 32]; 2];
        for (memory, seed) in [(&mut right, 1), (&mut origin, 2)] {
            fill_gaps(memory, seed);
            pattern.write(memory, 0, &[9])?;
        }
        assert_eq!(compare(&right, &right), Ok(()));
        // A copy of whole elements would copy these bytes.
        for gap in (1..8).chain(17..24) {
            let mut found = right;
            found[gap] = origin[gap];
            assert!(
                compare(&found, &right).is_err_and(|why| why.starts_with(&format!("byte {gap} ")))
            );
        }
        Ok(())
    }

    #[test]
    fn a_pattern_of_two_seeds_is_the_sum_of_both() -> Result<(), Failure> {
        let pattern = Pattern::new(&Datatype::double(), 4, &Architecture::NATIVE)?;
        let pattern = pattern.ok_or("no pattern")?;
        let values = |stream: &[u8]| -> Vec<f64> {
            stream.chunks_exact(8).map(|one| f64::from_ne_bytes(one.try_into().unwrap())).collect()
        };
        let [one, other] = [1, 2].map(|seed| values(&pattern.packed(&[seed])));
        let sums: Vec<f64> = one.iter().zip(&other).map(|(one, other)| one + other).collect();
        assert_eq!(values(&pattern.packed(&[1, 2])), sums);
        Ok(())
    }

    #[test]
    fn long_doubles_have_no_pattern() -> Result<(), Failure> {
        let native = Architecture::NATIVE;
        assert!(Pattern::new(&Datatype::long_double(), 1, &native)?.is_none());
        Ok(())
    }
}

//! Data that is right or wrong: small numbers that every representation holds, one for each item of a type.

use longshore::Architecture;
use longshore::arch::{ByteOrder, FloatFormat, Scalar, Value};
use shipable::{Committed, Datatype, Partial, View, ViewMut, oracle};

use crate::Failure;

/// Elements of a type in memory, and in a packed stream of some representation.
#[derive(Debug)]
pub struct Pattern {
    committed: Committed,
    stream: Architecture,
    /// The items of one element in the stream.
    items: Vec<Scalar>,
    count: u64,
}

impl Pattern {
    /// For `count` elements of a type in memory of `memory`, and packed as `stream`; none if it has items for which there are
    /// no numbers here: long doubles and truth values.
    ///
    /// # Errors
    /// A type that doesn't exist there.
    pub fn new(
        datatype: &Datatype,
        count: u64,
        memory: &Architecture,
        stream: &Architecture,
    ) -> Result<Option<Pattern>, Failure> {
        let items = oracle::expand(datatype, stream, 1)?;
        let items: Vec<Scalar> = items.iter().map(|item| item.scalar).collect();
        if !items.iter().all(|item| number(item, 1).is_some()) {
            return Ok(None);
        }
        let committed = Committed::new(datatype, memory)?;
        Ok(Some(Pattern { committed, stream: *stream, items, count }))
    }

    /// The packed stream of the numbers that a seed stands for.
    pub fn stream(&self, seed: u64) -> Vec<u8> {
        self.sums(&[seed])
    }

    /// The packed stream of the sums, item by item, of what several seeds stand for. Two sums stay below 128.
    pub fn sums(&self, seeds: &[u64]) -> Vec<u8> {
        let total = self.count * self.items.len() as u64;
        let numbers = (0..total).zip(self.items.iter().cycle());
        numbers
            .flat_map(|(at, item)| {
                let sum = seeds.iter().map(|seed| 1 + (at + 11 * seed) % 61).sum();
                number(item, sum).unwrap_or_default()
            })
            .collect()
    }

    /// Writes a stream's data to memory in which displacement 0 is `zero` bytes behind the start.
    ///
    /// # Errors
    /// Memory that is too short.
    pub fn scatter(&self, memory: &mut [u8], zero: i64, stream: &[u8]) -> Result<(), Failure> {
        let program = self.committed.program(&self.stream)?;
        let view = ViewMut::new(memory).shifted(zero).ok_or("no such place")?;
        Ok(program.unpack(self.count, view, 0, stream, &mut Partial::default())?)
    }

    /// Reads the data that lies in memory.
    ///
    /// # Errors
    /// Memory that is too short.
    pub fn gather(&self, memory: &[u8], zero: i64) -> Result<Vec<u8>, Failure> {
        let program = self.committed.program(&self.stream)?;
        let view = View::new(memory).shifted(zero).ok_or("no such place")?;
        let mut stream = vec![0; program.stream_length(self.count)? as usize];
        program.pack(self.count, view, 0, &mut stream)?;
        Ok(stream)
    }
}

/// A small number's image.
fn number(item: &Scalar, number: u64) -> Option<Vec<u8>> {
    let size = usize::from(item.size);
    let mut bytes: Vec<u8> = match item.value {
        Value::Bytes | Value::Char | Value::Wide | Value::Int { .. } => {
            number.to_le_bytes().into_iter().chain([0; 8]).take(size).collect()
        }
        Value::Float(FloatFormat::Binary32) => (number as f32).to_le_bytes().to_vec(),
        Value::Float(FloatFormat::Binary64) => (number as f64).to_le_bytes().to_vec(),
        Value::Float(_) | Value::Logical { .. } => return None,
    };
    if item.order == ByteOrder::Big {
        bytes.reverse();
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_comes_back_from_any_memory() -> Result<(), Failure> {
        let column = Datatype::vector(3, 1, 2, &Datatype::int())?;
        let member = Datatype::simple_struct(&[1, 1], &[Datatype::char(), Datatype::double()])?;
        for datatype in [column, member, Datatype::long()] {
            for architecture in [Architecture::NATIVE, Architecture::S390X, Architecture::I686] {
                let pattern = Pattern::new(&datatype, 2, &architecture, &Architecture::NATIVE)?
                    .ok_or("no pattern")?;
                let (mut memory, stream) = (vec![0; 64], pattern.stream(3));
                pattern.scatter(&mut memory, 8, &stream)?;
                assert_eq!(pattern.gather(&memory, 8)?, stream);
                assert_ne!(pattern.gather(&memory, 0)?, stream);
                assert_ne!(pattern.stream(4), stream);
            }
        }
        Ok(())
    }

    #[test]
    fn sums_are_those_of_the_items() -> Result<(), Failure> {
        let native = Architecture::NATIVE;
        let pattern = Pattern::new(&Datatype::double(), 4, &Architecture::S390X, &native)?;
        let pattern = pattern.ok_or("no pattern")?;
        let values = |stream: &[u8]| -> Vec<f64> {
            stream.chunks_exact(8).map(|one| f64::from_ne_bytes(one.try_into().unwrap())).collect()
        };
        let [one, other] = [1, 2].map(|seed| values(&pattern.stream(seed)));
        let sums: Vec<f64> = one.iter().zip(&other).map(|(one, other)| one + other).collect();
        assert_eq!(values(&pattern.sums(&[1, 2])), sums);
        Ok(())
    }

    #[test]
    fn types_without_numbers_have_no_pattern() -> Result<(), Failure> {
        let native = Architecture::NATIVE;
        assert!(Pattern::new(&Datatype::long_double(), 1, &native, &native)?.is_none());
        Ok(())
    }
}

//! A test case: a type, the memory that it is packed from, and the questions about it.

use std::error::Error;
use std::fmt;

use shipable::arch::{FloatFormat, Value};
use shipable::oracle::{self, Item, Options, Random};
use shipable::{Architecture, Basic, Datatype, Leaf};

/// The byte that fills memory before unpacking, as in `types.c`.
pub const BLANK: u8 = 0x5a;

/// A question about a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Whether the library can build and commit the type. Always asked.
    Type,
    /// Size, lower bound, extent, true lower bound, true extent.
    Bounds,
    /// Combiner, integers, addresses, counts, number of types.
    Contents,
    /// The notation, rebuilt from the contents of all nodes.
    Text,
    /// The result of `MPI_Pack_size`, the packed size, and the packed bytes.
    Pack,
    /// The packed size, and the memory after unpacking.
    Unpack,
    /// The numbers of elements and of basic elements in the beginnings of a message.
    Elements,
    /// [`Field::Pack`] and [`Field::Unpack`] in external32.
    External,
    Unexternal,
    /// [`Field::Pack`], including the bytes that [`Field::Pack`] doesn't compare.
    Whole,
}

impl Field {
    /// The name in the library's answers.
    pub fn name(self) -> &'static str {
        match self {
            Field::Type => "type",
            Field::Bounds => "bounds",
            Field::Contents => "contents",
            Field::Text => "text",
            Field::Pack | Field::Whole => "pack",
            Field::Unpack => "unpack",
            Field::Elements => "elements",
            Field::External => "external",
            Field::Unexternal => "unexternal",
        }
    }

    fn letter(self) -> &'static str {
        match self {
            Field::Type => "",
            Field::Bounds => "b",
            Field::Contents => "c",
            Field::Text => "t",
            Field::Pack | Field::Whole => "p",
            Field::Unpack => "u",
            Field::Elements => "e",
            Field::External => "x",
            Field::Unexternal => "y",
        }
    }
}

/// The questions to ask about a case.
#[derive(Clone, Debug)]
pub struct Asked {
    pub fields: Vec<Field>,
}

/// A number of elements of a type, in memory with known bytes.
#[derive(Clone, Debug)]
pub struct Case {
    pub datatype: Datatype,
    pub count: u64,
    /// Whether to use MPI's large-count functions.
    pub large: bool,
    /// The displacement of the memory's start, at most 0. Displacement 0 lies in the memory or at
    /// its end.
    pub low: i64,
    pub memory: Vec<u8>,
    /// Lengths of messages to count elements in. Each ends with a basic element.
    pub cuts: Vec<u64>,
    /// The type map of all elements.
    pub items: Vec<Item>,
    /// Whether the type map covers a byte twice, so that the order of unpacking matters.
    pub overlaps: bool,
    /// Whether the library is MPICH, which moves some types as x87 numbers.
    pub x87: bool,
}

impl Case {
    /// A case whose memory and cuts are random, from a seed.
    pub fn new(
        datatype: Datatype,
        count: u64,
        large: bool,
        seed: u64,
    ) -> Result<Case, Box<dyn Error>> {
        let native = &Architecture::NATIVE;
        let items = oracle::expand(&datatype, native, count)?;
        let low = items.iter().map(|item| item.offset).min().unwrap_or(0).min(0);
        let end = |item: &Item| item.offset + i64::from(item.scalar.size);
        let high = items.iter().map(end).max().unwrap_or(0).max(0);
        let mut random = Random::new(seed, Options::default());
        let mut memory = random.bytes(usize::try_from(high - low)?);
        for item in &items {
            let at = usize::try_from(item.offset - low)?;
            let bytes = &mut memory[at..at + usize::from(item.scalar.size)];
            make_valid(item, bytes, &mut random);
        }
        let ends = ends_of_elements(&items);
        let mut cuts = vec![0];
        cuts.extend((0..2.min(ends.len())).map(|_| *random.pick(&ends)));
        cuts.extend(ends.last());
        let overlaps = oracle::overlaps(&datatype, native, count)?;
        Ok(Case { datatype, count, large, low, memory, cuts, items, overlaps, x87: false })
    }

    /// All questions that have a defined answer.
    pub fn asked(&self) -> Asked {
        let mut fields =
            vec![Field::Type, Field::Bounds, Field::Contents, Field::Text, Field::Pack];
        // In overlapping items, the order of unpacking matters, and external32 may not have the
        // values.
        if !self.overlaps {
            use Field::*;
            fields.extend([Unpack, Elements, External, Unexternal]);
        }
        Asked { fields }
    }

    /// The request line for the library.
    pub fn request(&self, asked: &Asked) -> String {
        let letters: String = asked.fields.iter().map(|field| field.letter()).collect();
        let cuts: Vec<_> = self.cuts.iter().map(u64::to_string).collect();
        format!(
            "{} {} {} {} {} {} {}\n",
            if self.large { 'c' } else { 'i' },
            self.count,
            self.low,
            if self.memory.is_empty() { "-".into() } else { hex(&self.memory) },
            cuts.join(","),
            if letters.is_empty() { "-" } else { &letters },
            self.datatype,
        )
    }

    /// The leaves that hold data.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf> {
        self.items.iter().map(|item| item.leaf)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.count, self.datatype)?;
        if self.large { f.write_str(", by large-count functions") } else { Ok(()) }
    }
}

/// Makes a scalar's bytes a value that external32 can hold, where a long has 4 bytes, a wide
/// character 2, and a truth value is 0 or 1.
fn make_valid(item: &Item, bytes: &mut [u8], random: &mut Random) {
    use Basic::*;
    match item.scalar.value {
        Value::Logical { .. } => {
            bytes.fill(0);
            bytes[0] = random.below(2) as u8;
        }
        Value::Float(FloatFormat::X87) => {
            // A normal number: 63 bits of fraction after a one, and an exponent that is neither 0
            // nor the greatest. The padding is 0.
            bytes[7] |= 0x80;
            bytes[8] = bytes[8].clamp(1, 0xfe);
            bytes[10..].fill(0);
        }
        Value::Wide => bytes[2..].fill(0),
        Value::Int { .. } => {
            // Open MPI packs some Fortran kinds as longs, so they are limited too.
            let as_long = match item.leaf {
                Leaf::Basic(basic) => matches!(basic, Long | UnsignedLong | LongInt),
                _ => true,
            };
            if as_long && bytes.len() > 3 {
                bytes[3..].fill(0);
            }
        }
        _ => {}
    }
}

/// The ends of basic elements in the packed stream: two in a pair, one in a complex number.
fn ends_of_elements(items: &[Item]) -> Vec<u64> {
    let mut end = 0;
    let mut ends = Vec::new();
    for (at, item) in items.iter().enumerate() {
        end += u64::from(item.scalar.size);
        let goes_on = items.get(at + 1).is_some_and(|next| next.component > 0);
        if !goes_on || is_pair(item.leaf) {
            ends.push(end);
        }
    }
    ends
}

pub fn is_pair(leaf: Leaf) -> bool {
    matches!(leaf, Leaf::Basic(basic) if basic.is_pair())
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

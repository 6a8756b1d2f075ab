//! One type with the memory that it is packed from, and the questions about it.

use std::error::Error;
use std::fmt;

use shipable::arch::{FloatFormat, Value};
use shipable::oracle::{self, Item, Options, Random};
use shipable::{Architecture, Basic, Datatype, Leaf};

/// What memory is full of before unpacking, as `types.c` has it.
pub const BLANK: u8 = 0x5a;

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Whether the type could be built and committed; always asked.
    Type,
    /// Size, lower bound, extent, true lower bound, true extent.
    Bounds,
    /// Combiner, integers, addresses, counts, number of types.
    Contents,
    /// The type that the contents of all nodes tell.
    Text,
    /// The size foreseen, the size, and the bytes.
    Pack,
    /// The size, and memory after unpacking what was packed.
    Unpack,
    /// Elements and basic elements in the beginnings of a message.
    Elements,
    /// As pack and unpack, in external32.
    External,
    Unexternal,
    /// As pack, with bytes that aren't compared elsewhere.
    Whole,
}

impl Field {
    /// As the answers have it.
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

/// The questions that are asked about a case.
#[derive(Clone, Debug)]
pub struct Asked {
    pub fields: Vec<Field>,
}

/// A type, how many of it, and the memory that they lie in.
#[derive(Clone, Debug)]
pub struct Case {
    pub datatype: Datatype,
    pub count: u64,
    /// Whether MPI's large-count functions make it and take it apart.
    pub large: bool,
    /// From the buffer's address, which lies in the memory or at its ends, to the memory's start; not above 0.
    pub low: i64,
    pub memory: Vec<u8>,
    /// Lengths of messages, each the packed beginning of the elements up to the end of a basic element.
    pub cuts: Vec<u64>,
    /// The type map.
    pub items: Vec<Item>,
    /// Whether a byte lies in it twice, so that the order of unpacking tells.
    pub overlaps: bool,
    /// Whether the library is MPICH, which moves some types as x87 numbers.
    pub x87: bool,
}

impl Case {
    /// A case whose memory and cuts come from a seed.
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

    /// Every question that makes sense for it.
    pub fn asked(&self) -> Asked {
        let mut fields =
            vec![Field::Type, Field::Bounds, Field::Contents, Field::Text, Field::Pack];
        // Where items overlap, the order of unpacking tells, and values may be what external32 can't hold.
        if !self.overlaps {
            use Field::*;
            fields.extend([Unpack, Elements, External, Unexternal]);
        }
        Asked { fields }
    }

    /// The line that asks.
    pub fn request(&self, asked: &Asked) -> String {
        let letters: String = asked.fields.iter().map(|field| field.letter()).collect();
        let cuts: Vec<_> = self.cuts.iter().map(u64::to_string).collect();
        format!(
            "{} {} {} {} {} {letters} {}\n",
            if self.large { 'c' } else { 'i' },
            self.count,
            self.low,
            if self.memory.is_empty() { "-".into() } else { hex(&self.memory) },
            cuts.join(","),
            self.datatype,
        )
    }

    /// The leaves that hold data, for known differences.
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

/// Bytes that external32 can hold: a long has 4 bytes there, a wide character 2, a truth value
/// is one or the other.
fn make_valid(item: &Item, bytes: &mut [u8], random: &mut Random) {
    use Basic::*;
    match item.scalar.value {
        Value::Logical { .. } => {
            bytes.fill(0);
            bytes[0] = random.below(2) as u8;
        }
        Value::Float(FloatFormat::X87) => {
            // A normal number: 63 bits of fraction behind a one, an exponent neither 0 nor greatest; blank padding.
            bytes[7] |= 0x80;
            bytes[8] = bytes[8].clamp(1, 0xfe);
            bytes[10..].fill(0);
        }
        Value::Wide => bytes[2..].fill(0),
        Value::Int { .. } => {
            // And Open MPI packs some kinds of Fortran's as longs.
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

/// Where basic elements end in the packed stream: pairs have two, complex numbers are one.
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

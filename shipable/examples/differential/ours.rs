//! This crate's side: the answers that a library must give.

use std::error::Error;

use shipable::arch::{FloatFormat, Value};
use shipable::contents::{
    Counts, DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DFLT_DARG, DISTRIBUTE_NONE, ORDER_C,
    ORDER_FORTRAN, UNDEFINED,
};
use shipable::datatype::{Combiner, Node};
use shipable::oracle;
use shipable::{Architecture, Basic, Committed, Datatype, Leaf, TypeClass, View, ViewMut};

use crate::case::{BLANK, Case, Field, hex};

use crate::peer::Library;
use crate::quirks;

/// The bytes of an x87 number. The rest of its size is unused.
const X87: usize = 10;

/// The correct answer to a question about a case.
pub fn answer(case: &Case, field: Field) -> Result<String, Box<dyn Error>> {
    let (native, external) = (&Architecture::NATIVE, &Architecture::EXTERNAL32);
    match field {
        Field::Type => Ok("ok".into()),
        Field::Bounds => {
            let bounds = case.datatype.bounds(native)?;
            let (size, low, extent) = (bounds.size, bounds.lb, bounds.extent());
            Ok(format!("{size} {low} {extent} {} {}", bounds.true_lb, bounds.true_extent()))
        }
        Field::Contents => contents(case),
        Field::Text => Ok(case.datatype.to_string()),
        Field::Pack => Ok(blank(case, field, packed(&pack(case, native)?))),
        Field::Whole => Ok(packed(&pack(case, native)?)),
        Field::External => Ok(packed(&pack(case, external)?)),
        Field::Unpack => Ok(blank(case, field, unpacked(case, native)?)),
        Field::Unexternal => Ok(blank(case, field, unpacked(case, external)?)),
        Field::Elements => elements(case),
    }
}

/// A library's answer in the format of [`answer`], with the library's own choices removed.
pub fn comparable(case: &Case, field: Field, theirs: String) -> String {
    match field {
        Field::Unpack | Field::Unexternal => blank(case, field, theirs),
        // Libraries may number types differently; the notation here is canonical.
        Field::Text => theirs.parse::<Datatype>().map_or(theirs, |datatype| datatype.to_string()),
        // `MPI_Pack_size` may return more than the packed size.
        Field::Pack | Field::Whole | Field::External => {
            let enough = theirs.split_once(' ').filter(|(foreseen, rest)| {
                let bytes = rest.split(' ').next().and_then(|bytes| bytes.parse::<u64>().ok());
                foreseen.parse::<u64>().ok() >= bytes
            });
            enough.map_or(theirs.clone(), |(_, rest)| blank(case, field, rest.to_owned()))
        }
        _ => theirs,
    }
}

/// Replaces bytes that aren't compared by dots: the unused bytes of long doubles, and those that
/// MPICH loses.
fn blank(case: &Case, field: Field, text: String) -> String {
    let Some((length, digits)) = text.split_once(' ') else { return text };
    let mut digits = digits.as_bytes().to_vec();
    let mut position = 0;
    for item in &case.items {
        let size = usize::from(item.scalar.size);
        let start = match field {
            Field::External | Field::Whole => return text,
            Field::Pack => position,
            _ => (item.offset - case.low) as usize,
        };
        if item.scalar.value == Value::Float(FloatFormat::X87)
            || case.x87 && quirks::moved_as_x87(item.leaf)
        {
            let unused = 2 * (start + X87)..2 * (start + size);
            if let Some(unused) = digits.get_mut(unused) {
                unused.fill(b'.');
            }
        }
        position += size;
    }
    format!("{length} {}", String::from_utf8_lossy(&digits))
}

/// The position at which packing starts, as in `types.c`.
const START: u64 = 5;

/// The packed bytes of a case.
pub fn pack(case: &Case, stream: &Architecture) -> shipable::Result<Vec<u8>> {
    let committed = Committed::new(&case.datatype, &Architecture::NATIVE)?;
    let mut packed = vec![0; (START + committed.pack_size(case.count, stream)?) as usize];
    let memory = View::new(&case.memory).with_origin(case.low.unsigned_abs());
    let mut position = START;
    committed.pack(memory, case.count, &mut packed, &mut position, stream)?;
    packed.truncate(position as usize);
    Ok(packed.split_off(START as usize))
}

fn packed(bytes: &[u8]) -> String {
    format!("{} {}", bytes.len(), hex(bytes))
}

fn unpacked(case: &Case, stream: &Architecture) -> Result<String, Box<dyn Error>> {
    let bytes = pack(case, stream)?;
    let committed = Committed::new(&case.datatype, &Architecture::NATIVE)?;
    let mut memory = vec![BLANK; case.memory.len()];
    let view = ViewMut::new(&mut memory).with_origin(case.low.unsigned_abs());
    let mut position = 0;
    committed.unpack(&bytes, &mut position, view, case.count, stream)?;
    Ok(format!("{position} {}", hex(&memory)))
}

/// The numbers of elements and of basic elements before each cut.
fn elements(case: &Case) -> Result<String, Box<dyn Error>> {
    let native = &Architecture::NATIVE;
    let committed = Committed::new(&case.datatype, native)?;
    let or_star = |n: Option<u64>| n.map_or("*".to_string(), |n| n.to_string());
    let counts: shipable::Result<Vec<_>> = case
        .cuts
        .iter()
        .map(|&cut| {
            let (whole, basic) =
                (committed.count_in(cut, native)?, committed.elements_in(cut, native)?);
            Ok(format!("{}/{}", or_star(whole), or_star(basic)))
        })
        .collect();
    Ok(counts?.join(","))
}

/// The results of `MPI_Type_get_envelope` and `MPI_Type_get_contents`.
fn contents(case: &Case) -> Result<String, Box<dyn Error>> {
    let counts = if case.large { Counts::Large } else { Counts::Int };
    let envelope = case.datatype.envelope(counts)?;
    let name = envelope.combiner.mpi_name().trim_start_matches("MPI_COMBINER_");
    if envelope.combiner == Combiner::Named {
        return Ok(format!("{name} integers addresses counts types 0"));
    }
    let contents = case.datatype.contents(counts)?;
    if contents.envelope() != envelope {
        return Err(format!("{case}: the envelope isn't that of the contents").into());
    }
    // Libraries have different integers for constants, but at the same places, counted from the
    // end.
    let last = contents.integers.len();
    let dimensions = match case.datatype.node() {
        Node::Darray { gsizes, .. } => gsizes.len(),
        _ => 0,
    };
    let first = last.saturating_sub(1 + 3 * dimensions);
    let integers = contents.integers.iter().enumerate().map(|(at, &n)| {
        let word = match envelope.combiner {
            Combiner::Subarray | Combiner::Darray if at + 1 == last => match n {
                ORDER_C => "C",
                ORDER_FORTRAN => "F",
                _ => "?",
            },
            Combiner::Darray if (first..first + dimensions).contains(&at) => match n {
                DISTRIBUTE_BLOCK => "B",
                DISTRIBUTE_CYCLIC => "C",
                DISTRIBUTE_NONE => "N",
                _ => "?",
            },
            Combiner::Darray if n == DISTRIBUTE_DFLT_DARG => "*",
            Combiner::F90Real | Combiner::F90Complex if n == UNDEFINED => "*",
            _ => return n.to_string(),
        };
        word.to_string()
    });
    let list = |numbers: Vec<String>| match numbers.is_empty() {
        true => String::new(),
        false => format!(" {}", numbers.join(",")),
    };
    Ok(format!(
        "{name} integers{} addresses{} counts{} types {}",
        list(integers.collect()),
        list(contents.addresses.iter().map(i64::to_string).collect()),
        list(contents.large_counts.iter().map(i64::to_string).collect()),
        contents.datatypes.len()
    ))
}

/// Rebuilds a type with other leaves.
pub fn rebuild(
    datatype: &Datatype,
    leaf: &dyn Fn(Leaf) -> shipable::Result<Datatype>,
) -> shipable::Result<Datatype> {
    match datatype.node() {
        Node::Leaf(one) => leaf(*one),
        _ => {
            let mut contents = datatype.contents(Counts::Large)?;
            for child in &mut contents.datatypes {
                *child = rebuild(child, leaf)?;
            }
            contents.rebuild()
        }
    }
}

/// The datatype of a leaf.
pub fn leaf(leaf: Leaf) -> shipable::Result<Datatype> {
    match leaf {
        Leaf::Basic(basic) => Ok(basic.into()),
        Leaf::F90Real { precision, range } => Datatype::f90_real(precision, range),
        Leaf::F90Complex { precision, range } => Datatype::f90_complex(precision, range),
        Leaf::F90Integer { range } => Datatype::f90_integer(range),
    }
}

/// Whether the oracle packs the same bytes.
pub fn agrees_with_the_oracle(case: &Case) -> shipable::Result<bool> {
    let native = &Architecture::NATIVE;
    let memory = (native, &*case.memory, case.low.unsigned_abs() as usize);
    let (bytes, refused) = oracle::pack(&case.datatype, case.count, memory, native)?;
    Ok(refused.is_none() && bytes == pack(case, native)?)
}

/// The differences in a library's description of itself.
pub fn introduction(library: &Library) -> Vec<String> {
    let mut problems = Vec::new();
    let absent = quirks::absent(library);
    for &basic in Basic::ALL.iter().filter(|basic| !basic.is_marker()) {
        let ours = Architecture::NATIVE.basic(basic).size;
        match (library.basics.get(basic.code()), absent.contains(&basic)) {
            (Some(&theirs), false) if theirs == ours => {}
            (None, true) => {}
            (theirs, listed) => problems.push(format!(
                "{basic}: {ours} bytes here, {theirs:?} there; listed as absent: {listed}"
            )),
        }
    }
    for (class, name) in [
        (TypeClass::Real, "REAL"),
        (TypeClass::Integer, "INTEGER"),
        (TypeClass::Complex, "COMPLEX"),
    ] {
        for size in [1, 2, 4, 8, 16, 32] {
            let found = Datatype::match_size(class, size, &Architecture::NATIVE).ok();
            let ours =
                found.and_then(|found| found.as_basic()).filter(|ours| !absent.contains(ours));
            let key = format!("{name}*{size}");
            let theirs = library.matches.get(&key).map_or("", String::as_str);
            let found = Basic::ALL.iter().find(|basic| basic.code() == theirs).copied();
            // INTEGER and INTEGER*4 are indistinguishable to a program.
            let layout =
                |basic: Option<Basic>| basic.map(|basic| Architecture::NATIVE.basic(basic));
            if layout(ours) != layout(found) && !quirks::match_size_differs(library, &key) {
                problems.push(format!("MPI_Type_match_size {key}: {ours:?} here, {theirs} there"));
            }
        }
    }
    problems
}

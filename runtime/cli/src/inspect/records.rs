//! The records of a file: elements of a datatype one after the other, in any data representation.

use std::fmt::Write;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use shipable::arch::{ByteOrder, FloatFormat, Scalar, Value};
use shipable::convert::Conversion;
use shipable::{Architecture, Datatype, Form};

use super::memory::{Item, Memory};
use super::sheet::label;
use super::strided::Effort;

/// The longest record that is read.
const LONGEST: i64 = 64 << 20;

/// The representation of a name: one of MPI's for files, or an architecture's.
///
/// # Errors
/// A name that nothing has.
pub fn representation(name: &str) -> Result<Architecture, String> {
    match name {
        "external32" => Ok(Architecture::EXTERNAL32),
        // What longshore-file defines.
        "internal" => Ok(Architecture::AARCH64),
        _ => longshore_benches::case::architecture(name),
    }
}

/// At most `count` records of a file as lines, after one with the types of their items.
///
/// # Errors
/// The file can't be read, or ends inside of a record. A type that the representation lacks, or one
/// that is too large to be printed.
pub fn lines(
    datatype: &Datatype,
    representation: &Architecture,
    path: &Path,
    count: u64,
) -> Result<String, String> {
    let unsuited = |error: shipable::Error| error.to_string();
    let form = Form::compile(datatype, representation).map_err(unsuited)?;
    let memory = Memory::new(&form, representation, 1).map_err(unsuited)?;
    let (reach, extent) = (memory.reach(), memory.bounds().extent());
    let items = memory.items_in(reach.clone(), &mut Effort::picture());
    let items = items.ok_or("the type has too many items to print them")?;
    let end = i64::try_from(reach.end).unwrap_or(i64::MAX);
    if reach.start < 0 || extent <= 0 || extent.max(end) > LONGEST {
        let (start, end) = (reach.start, reach.end);
        return Err(format!(
            "a record has the extent {extent} and data from {start} to {end}: records in files \
             begin at 0 or later, and have an extent of 1 to {LONGEST}"
        ));
    }

    let named = |error: io::Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(named)?;
    let size = file.metadata().map_err(named)?.len() as i64;
    let types: Vec<&str> = items.iter().map(|item| label(item.leaf)).collect();
    let mut out = format!(
        "{}: records of {extent} bytes in {representation}, {size} bytes\n{:>12}  {}\n",
        path.display(),
        "offset",
        types.join(" ")
    );
    let mut bytes = vec![0; end as usize];
    for index in 0..count {
        let Some(offset) = i64::try_from(index).ok().and_then(|index| index.checked_mul(extent))
        else {
            break;
        };
        if offset >= size {
            break;
        }
        if offset + end > size {
            return Err(format!(
                "{} ends at byte {size}, inside of record {index}, which begins at byte {offset} \
                 and has data up to byte {}",
                path.display(),
                offset + end
            ));
        }
        file.read_exact_at(&mut bytes, offset as u64).map_err(named)?;
        let values: Vec<String> =
            items.iter().map(|item| value(item, representation, &bytes)).collect();
        let _ = writeln!(out, "{offset:>12}  {}", values.join(" "));
    }
    Ok(out)
}

/// The value of an item.
fn value(item: &Item, representation: &Architecture, record: &[u8]) -> String {
    let Ok(layout) = representation.leaf(item.leaf) else { return "?".to_owned() };
    let start = item.at as usize;
    let parts = layout.components.iter().map(|part| {
        let at = start + part.offset as usize;
        scalar(part.scalar, &record[at..at + usize::from(part.scalar.size)])
    });
    let parts: Vec<String> = parts.collect();
    match &parts[..] {
        [one] => one.clone(),
        several => format!("({})", several.join(",")),
    }
}

/// A scalar as text.
fn scalar(scalar: Scalar, bytes: &[u8]) -> String {
    let number = || {
        let fold = |sum: u128, byte: &u8| sum << 8 | u128::from(*byte);
        match scalar.order {
            ByteOrder::Big => bytes.iter().fold(0, fold),
            ByteOrder::Little => bytes.iter().rev().fold(0, fold),
        }
    };
    match scalar.value {
        Value::Bytes => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Char => bytes.iter().map(|byte| format!("'{}'", byte.escape_ascii())).collect(),
        Value::Wide => match u32::try_from(number()).ok().and_then(char::from_u32) {
            Some(letter) => format!("'{}'", letter.escape_default()),
            None => format!("{:#x}", number()),
        },
        Value::Int { signed: false } => number().to_string(),
        Value::Int { signed: true } => {
            // The sign is the first bit of the scalar's own size.
            let unused = 128 - 8 * u32::from(scalar.size);
            ((number() << unused) as i128 >> unused).to_string()
        }
        Value::Logical { .. } => (number() != 0).to_string(),
        Value::Float(_) => {
            let value = Value::Float(FloatFormat::Binary64);
            let double = Scalar { value, size: 8, order: ByteOrder::Little };
            let mut image = [0; 8];
            let converted =
                Conversion::between(scalar, double).map(|it| it.apply(bytes, &mut image));
            match converted {
                Ok(Ok(())) => f64::from_le_bytes(image).to_string(),
                // Only a long double has more values: the error says which this is.
                Ok(Err(error)) => error.value,
                Err(_) => "?".to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_their_value_in_any_representation() {
        let of = |value, order, bytes: &[u8]| {
            scalar(Scalar { value, size: bytes.len() as u8, order }, bytes)
        };
        let signed = Value::Int { signed: true };
        assert_eq!(of(signed, ByteOrder::Big, &[255, 254]), "-2");
        assert_eq!(of(signed, ByteOrder::Little, &[254, 255]), "-2");
        assert_eq!(of(Value::Int { signed: false }, ByteOrder::Big, &[255, 254]), "65534");
        let double = Value::Float(FloatFormat::Binary64);
        assert_eq!(of(double, ByteOrder::Big, &2.5f64.to_be_bytes()), "2.5");
        assert_eq!(of(Value::Char, ByteOrder::Big, b"x"), "'x'");
        assert_eq!(of(Value::Bytes, ByteOrder::Big, &[7]), "07");
        assert_eq!(of(Value::Logical { truth: 1 }, ByteOrder::Big, &[0, 3]), "true");
    }
}

//! The relation between two data representations: of each basic type, and of one datatype.

use std::io::{self, Write};

use longshore_benches::case::{architecture, of_rank};
use shipable::arch::{FloatFormat, Value};
use shipable::{Architecture, Basic, Committed, Datatype, Relation};

/// A representation that a rank can have, by its name.
///
/// # Errors
/// An unknown name, with the list of known ones; a malformed descriptor; a representation for files
/// and buffers only.
pub fn parse(name: &str) -> Result<Architecture, String> {
    of_rank(name)?;
    architecture(name)
}

/// Prints the relation of every basic type, and what follows from it.
pub fn print(out: &mut impl Write, [here, there]: [&Architecture; 2]) -> io::Result<()> {
    writeln!(out, "Basic types on {here} and on {there}")?;
    let mut equal = 0;
    let types = Basic::ALL.iter().filter(|basic| !basic.is_marker());
    for &basic in types.clone() {
        let relation = relation(&basic.into(), here, there);
        equal += usize::from(relation == Relation::Equal);
        let name = basic.mpi_name();
        match relation {
            Relation::Equal => writeln!(out, "  {name:<28} equal")?,
            other => {
                let [here, there] = [here, there].map(|at| described(basic, at));
                writeln!(out, "  {name:<28} {:<9}  {here}; {there}", other.to_string())?;
            }
        }
    }
    writeln!(
        out,
        "\n{equal} of {} are equal: their data are copied. Data of the others are converted, or \
         copied to other offsets.",
        types.count()
    )?;
    let route = match here.order() == there.order() {
        true => {
            "Ranks of one host access each other's memory directly, for data of equal types. Other \
             data go by message."
        }
        false => "The byte orders differ, so all data go by message.",
    };
    writeln!(out, "{route}")
}

/// The size, the alignment and the format of a basic type.
fn described(basic: Basic, at: &Architecture) -> String {
    let layout = at.basic(basic);
    let format = layout.components.first().and_then(|component| match component.scalar.value {
        Value::Float(format) => Some(match format {
            FloatFormat::X87 => " (x87)",
            FloatFormat::M68k => " (m68k)",
            FloatFormat::Binary128 => " (binary128)",
            FloatFormat::DoubleDouble => " (double-double)",
            FloatFormat::Binary64 => " (binary64)",
            _ => "",
        }),
        _ => None,
    });
    format!("{} bytes aligned to {}{}", layout.extent, layout.align, format.unwrap_or_default())
}

fn relation(datatype: &Datatype, here: &Architecture, there: &Architecture) -> Relation {
    Committed::new(datatype, here).map_or(Relation::Converted, |it| it.relation(there))
}

/// The relation of a datatype, and the first difference between the two layouts.
///
/// # Errors
/// One of the two doesn't have the type.
pub fn line(datatype: &Datatype, [here, there]: [&Architecture; 2]) -> shipable::Result<String> {
    let comparison = Committed::new(datatype, here)?.comparison(there)?;
    let relation = comparison.relation();
    let difference = comparison.difference;
    let difference = difference.map(|it| it.text(&here.label(), &there.label()));
    let difference = difference.map_or(String::new(), |text| format!(": {text}"));
    Ok(format!("{relation} on {here} and on {there}{difference}"))
}

//! The names of a struct's fields, as `Element::field_names` prints them, and where each field lies
//! on each architecture.

use std::str::FromStr;

use shipable::bounds::StructLayout;
use shipable::datatype::Node;
use shipable::{Architecture, Datatype, Result};

use super::facts::truncated;

/// The most lines.
const FIELDS: usize = 200;
/// The most letters of a field's type.
const TYPE: usize = 40;
/// The deepest nesting of names.
const DEPTH: u32 = 64;

/// The names of a struct's fields in order, each with those of its own fields: `tag,corner(x,y)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldNames(Vec<(String, FieldNames)>);

impl FromStr for FieldNames {
    type Err = String;

    fn from_str(text: &str) -> Result<FieldNames, String> {
        let (names, rest) = parse(text, DEPTH)?;
        match rest {
            "" => Ok(names),
            _ => Err(format!("`{rest}` follows the names, which are like tag,corner(x,y)")),
        }
    }
}

/// The names at the start of a text, and the rest of it.
fn parse(text: &str, depth: u32) -> Result<(FieldNames, &str), String> {
    let depth = depth.checked_sub(1).ok_or("the names nest too deep")?;
    let (mut names, mut rest) = (Vec::new(), text);
    loop {
        let end = rest.find([',', '(', ')']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name.trim().is_empty() {
            return Err(format!(
                "a name is missing before `{after}`: names are like tag,corner(x,y)"
            ));
        }
        let (inner, after) = match after.strip_prefix('(') {
            Some(inside) => {
                let (inner, after) = parse(inside, depth)?;
                let after = after.strip_prefix(')');
                (
                    inner,
                    after.ok_or(format!(
                        "the names of {name}'s fields have no closing parenthesis"
                    ))?,
                )
            }
            None => (FieldNames::default(), after),
        };
        names.push((name.trim().to_owned(), inner));
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => return Ok((FieldNames(names), after)),
        }
    }
}

/// A line for each field: its name, its type, and its displacement on each architecture.
///
/// # Errors
/// The type isn't a struct with as many members as there are names.
pub fn lines(
    names: &FieldNames,
    datatype: &Datatype,
    architectures: &[Architecture],
) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    collect(names, datatype, "", &vec![0; architectures.len()], architectures, &mut fields)?;
    let widest = |of: fn(&Field) -> usize| fields.iter().map(of).max().unwrap_or(0);
    let (name, what) = (widest(|it| it.path.chars().count()), widest(|it| it.what.chars().count()));
    let line = |field: &Field| {
        let Field { path, what: ty, at } = field;
        let same = at.windows(2).all(|two| two[0] == two[1]);
        let places: Vec<_> = match same {
            true => at.iter().take(1).map(i64::to_string).collect(),
            false => at
                .iter()
                .zip(architectures)
                .map(|(at, on)| format!("{at} ({})", on.name()))
                .collect(),
        };
        format!("{path:name$}  {ty:what$}  at byte {}", places.join(", "))
    };
    let mut lines: Vec<_> = fields.iter().take(FIELDS).map(line).collect();
    if fields.len() > FIELDS {
        lines.push(format!("... and {} more fields", fields.len() - FIELDS));
    }
    Ok(lines)
}

struct Field {
    path: String,
    what: String,
    /// The displacement on each architecture.
    at: Vec<i64>,
}

fn collect(
    names: &FieldNames,
    datatype: &Datatype,
    path: &str,
    base: &[i64],
    architectures: &[Architecture],
    fields: &mut Vec<Field>,
) -> Result<(), String> {
    let whole = if path.is_empty() { "the type" } else { path.trim_end_matches('.') };
    let (lengths, members, displacements) = match datatype.node() {
        Node::Resized { child, .. } | Node::Dup { child } => {
            return collect(names, child, path, base, architectures, fields);
        }
        Node::Struct { blocklengths, children, displacements, .. } => {
            (blocklengths, children, Some(displacements))
        }
        Node::SimpleStruct { blocklengths, children } => (blocklengths, children, None),
        _ => return Err(format!("{whole} isn't a struct, so that it has no fields to name")),
    };
    if members.len() != names.0.len() {
        let (named, all) = (names.0.len(), members.len());
        return Err(format!(
            "{whole} has {all} members, but the number of names is {named}: name each once"
        ));
    }
    let mut layouts = vec![StructLayout::new(); architectures.len()];
    for (at, (name, inner)) in names.0.iter().enumerate() {
        let (length, member) = (lengths[at], &members[at]);
        let places =
            architectures.iter().zip(&mut layouts).zip(base).map(|((on, layout), base)| {
                let offset = match displacements {
                    Some(displacements) => displacements[at],
                    None => layout.push(length, &member.bounds(on)?)?,
                };
                Ok(base + offset)
            });
        let places: Vec<i64> = places.collect::<Result<_>>().map_err(|error| error.to_string())?;
        let copies = if length == 1 { String::new() } else { format!("[{length}]") };
        let path = format!("{path}{name}{copies}");
        let what = match member.as_basic() {
            Some(basic) => basic.mpi_name().to_owned(),
            None => truncated(member, TYPE),
        };
        fields.push(Field { path: path.clone(), what, at: places.clone() });
        if !inner.0.is_empty() {
            collect(inner, member, &format!("{path}."), &places, architectures, fields)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_nest_and_mistakes_are_named() {
        let names: FieldNames = "tag,corner(x,y),last".parse().unwrap();
        let inner = |name: &str| (name.to_owned(), FieldNames::default());
        let corner = FieldNames(vec![inner("x"), inner("y")]);
        assert_eq!(names.0, [inner("tag"), ("corner".to_owned(), corner), inner("last")]);
        for (text, words) in [
            ("", "a name is missing"),
            ("a,,b", "a name is missing before `,b`"),
            ("a(b", "the names of a's fields have no closing"),
            ("a)b", "`)b` follows the names"),
            (&"a(".repeat(100), "nest too deep"),
        ] {
            let error = text.parse::<FieldNames>().unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn each_name_belongs_to_a_member() {
        let datatype: Datatype = "U1(SS:2:c/1,U2(SS:2:d/1,i/2)/3)".parse().unwrap();
        let of = |names: &str| {
            let names = names.parse().unwrap();
            lines(&names, &datatype, &[Architecture::X86_64, Architecture::M68K])
        };
        assert_eq!(
            of("tag,corner(x,y)").unwrap(),
            [
                "tag             MPI_CHAR          at byte 0",
                "corner[3]       U1(SS:2:d/1,i/2)  at byte 8 (x86-64), 2 (m68k)",
                "corner[3].x     MPI_DOUBLE        at byte 8 (x86-64), 2 (m68k)",
                "corner[3].y[2]  MPI_INT           at byte 16 (x86-64), 10 (m68k)",
            ]
        );
        let error = of("tag").unwrap_err();
        assert_eq!(error, "the type has 2 members, but the number of names is 1: name each once");
        assert!(of("tag(x),corner").unwrap_err().starts_with("tag isn't a struct"));
    }
}

//! Sequences of basic types in error texts: by their MPI names, with the remedy where two sequences
//! differ.

mod sent;

use std::fmt::{self, Display, Write};

use shipable::excerpt::Excerpt;
use shipable::form::Node;
use shipable::{Basic, Form, Leaf};

use crate::error::{ErrorKind, SHOWN, excerpt};
use crate::program::{Language, language};

pub(crate) use sent::{Sent, differ_from_message};

/// A number of elements of a type, on one side of an operation.
pub(crate) struct Items<'a> {
    pub count: u64,
    pub form: &'a Form,
    /// The type as its builder prints it.
    pub text: &'a dyn Display,
}

impl Items<'_> {
    /// The common predefined type of all items, if there is one.
    fn basic(&self) -> Option<Basic> {
        match self.form.single_leaf() {
            Some(Leaf::Basic(basic)) => Some(basic),
            _ => None,
        }
    }
}

/// Prints for example `2 MPI_DOUBLE`, or `16 MPI_DOUBLE (2 of U1(V:d:8:1:10))`.
impl Display for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Items { count, form, text } = self;
        let nodes = form.nodes();
        let root = nodes.len() - 1;
        let mut out = Excerpt::new(SHOWN);
        if let Node::Leaf(leaf) = &nodes[root] {
            return write!(f, "{count} {}", name(*leaf));
        }
        let items = form.signature().ok().and_then(|one| one.count.checked_mul(*count));
        match (items, form.single_leaf()) {
            (Some(0), _) => f.write_str("no basic types")?,
            (Some(items), Some(leaf)) if !is_pair(leaf) => write!(f, "{items} {}", name(leaf))?,
            _ => {
                let mut sequence = Sequence { nodes, items: Vec::new() };
                sequence.count();
                // An error means only that the excerpt is full; its text shows that.
                let _ = sequence.times(root as u32, (*count).into(), LEVELS, &mut out);
                f.write_str(&out.into_text())?;
            }
        }
        write!(f, " ({count} of {})", excerpt(text))
    }
}

/// The error of rule 19 for elements whose signatures differ.
pub(crate) fn differ(origin: &Items<'_>, target: &Items<'_>) -> ErrorKind {
    let remedy = match (origin.basic(), target.basic()) {
        (Some(here), Some(there)) if here == there => "use the same count at both".to_owned(),
        (Some(here), Some(there)) if language() == Language::C => {
            let (here, there) = (here.mpi_name(), there.mpi_name());
            format!("use {here} at the target, or {there} at the origin")
        }
        (Some(here), Some(there)) => {
            let is = [here, there].into_iter().find(|side| rust(*side).is_some_and(|(_, own)| own));
            let is = is.and_then(|side| Some(format!("a Rust {} is {side}: ", rust(side)?.0)));
            let at_origin = rust(there).map(|(name, _)| format!(", or {name} at the origin"));
            let (is, at_origin) = (is.unwrap_or_default(), at_origin.unwrap_or_default());
            format!("{is}use Datatype::{}() at the target{at_origin}", constructor(here))
        }
        _ => match first_difference(origin, target) {
            Some(difference) => format!("{difference}; {MATCH}"),
            None => MATCH.to_owned(),
        },
    };
    ErrorKind::Signature { origin: origin.to_string(), target: target.to_string(), remedy }
}

/// The most steps through a form to find the first difference.
const STEPS: u32 = 10_000;

/// Items of one predefined type, and their number.
type Run = (Leaf, u128);

/// The first item that differs, counted from 0. `None` if it isn't found in so many steps.
fn first_difference(origin: &Items<'_>, target: &Items<'_>) -> Option<String> {
    compare(runs_of(origin), runs_of(target))
}

/// The items of elements in order, and whether these are all.
fn runs_of(side: &Items<'_>) -> (Vec<Run>, bool) {
    let mut runs = Runs { nodes: side.form.nodes(), runs: Vec::new(), steps: STEPS };
    let root = side.form.nodes().len() - 1;
    let all = (0..side.count).try_for_each(|_| runs.walk(root as u32, LEVELS));
    (runs.runs, all.is_some())
}

/// The first item that differs between two sequences. Each has its items, and whether they are all.
fn compare(
    (here, all_here): (Vec<Run>, bool),
    (there, all_there): (Vec<Run>, bool),
) -> Option<String> {
    let (mut at, mut sides) = (0u128, [here.into_iter(), there.into_iter()]);
    let mut next = sides.each_mut().map(Iterator::next);
    loop {
        for (run, side) in next.iter_mut().zip(&mut sides) {
            while run.is_some_and(|run| run.1 == 0) {
                *run = side.next();
            }
        }
        let describe = |run: &Option<Run>| run.map_or("none".to_owned(), |it| name(it.0));
        match &mut next {
            [Some(here), Some(there)] if here.0 == there.0 => {
                let both = here.1.min(there.1);
                at += both;
                here.1 -= both;
                there.1 -= both;
            }
            [None, _] if !all_here => return None,
            [_, None] if !all_there => return None,
            [None, None] => return None,
            [here, there] => {
                let (here, there) = (describe(here), describe(there));
                return Some(format!("item {at} is {here} at the origin, {there} at the target"));
            }
        }
    }
}

/// The items of a form in order, as runs of one predefined type. The items of a pair are its two
/// members, as in a signature.
struct Runs<'a> {
    nodes: &'a [Node],
    runs: Vec<Run>,
    /// The steps that are left.
    steps: u32,
}

impl Runs<'_> {
    /// Appends the items of a node. `None` after too many steps or levels.
    fn walk(&mut self, node: u32, levels: usize) -> Option<()> {
        self.steps = self.steps.checked_sub(1)?;
        let levels = levels.checked_sub(1)?;
        let nodes = self.nodes;
        match &nodes[node as usize] {
            Node::Leaf(leaf) => {
                match leaf {
                    Leaf::Basic(basic) if basic.is_marker() => {}
                    Leaf::Basic(basic) if basic.is_pair() => {
                        let (value, index) = basic.pair()?;
                        self.push(value.into(), 1);
                        self.push(index.into(), 1);
                    }
                    leaf => self.push(*leaf, 1),
                }
                Some(())
            }
            Node::Array { child, vectors, .. } => {
                let copies =
                    vectors.iter().map(|it| u128::from(it.length) * u128::from(it.count)).sum();
                self.repeat(*child, copies, levels)
            }
            Node::Simple { members } => {
                members.iter().try_for_each(|it| self.repeat(it.child, it.length.into(), levels))
            }
            Node::Struct { members, .. } => {
                members.iter().try_for_each(|it| self.repeat(it.child, it.length.into(), levels))
            }
        }
    }

    fn repeat(&mut self, child: u32, copies: u128, levels: usize) -> Option<()> {
        match self.nodes[child as usize] {
            Node::Leaf(leaf) if !is_pair(leaf) && !is_marker(leaf) => {
                self.push(leaf, copies);
                Some(())
            }
            _ => (0..copies).try_for_each(|_| self.walk(child, levels)),
        }
    }

    fn push(&mut self, leaf: Leaf, count: u128) {
        match self.runs.last_mut() {
            _ if count == 0 => {}
            Some(last) if last.0 == leaf => last.1 += count,
            _ => self.runs.push((leaf, count)),
        }
    }
}

/// The remedy in the general case.
pub(crate) const MATCH: &str = "describe the same basic types in the same order at both";

/// The Rust type whose slices have this basic type, and whether it is one of Rust's own number
/// types.
fn rust(basic: Basic) -> Option<(&'static str, bool)> {
    let own = match basic {
        Basic::Int8 => "i8",
        Basic::Int16 => "i16",
        Basic::Int32 => "i32",
        Basic::Int64 => "i64",
        Basic::Uint8 => "u8",
        Basic::Uint16 => "u16",
        Basic::Uint32 => "u32",
        Basic::Uint64 => "u64",
        Basic::Float => "f32",
        Basic::Double => "f64",
        _ => return wrapped(basic).map(|name| (name, false)),
    };
    Some((own, true))
}

fn wrapped(basic: Basic) -> Option<&'static str> {
    Some(match basic {
        Basic::Char => "c::Char",
        Basic::SignedChar => "c::SignedChar",
        Basic::UnsignedChar => "c::UnsignedChar",
        Basic::Byte => "c::Byte",
        Basic::Short => "c::Short",
        Basic::UnsignedShort => "c::UnsignedShort",
        Basic::Int => "c::Int",
        Basic::Unsigned => "c::Unsigned",
        Basic::Long => "c::Long",
        Basic::UnsignedLong => "c::UnsignedLong",
        Basic::LongLong => "c::LongLong",
        Basic::UnsignedLongLong => "c::UnsignedLongLong",
        Basic::Aint => "c::Aint",
        Basic::Count => "c::Count",
        Basic::Offset => "c::Offset",
        Basic::Wchar => "c::Wchar",
        Basic::CBool => "c::Bool",
        Basic::LongDouble => "c::LongDouble",
        Basic::CFloatComplex => "c::FloatComplex",
        Basic::CDoubleComplex => "c::DoubleComplex",
        Basic::CLongDoubleComplex => "c::LongDoubleComplex",
        Basic::Integer => "fortran::Integer",
        Basic::Real => "fortran::Real",
        Basic::DoublePrecision => "fortran::DoublePrecision",
        Basic::Character => "fortran::Character",
        Basic::Logical => "fortran::Logical",
        Basic::Complex => "fortran::Complex",
        Basic::DoubleComplex => "fortran::DoubleComplex",
        _ => return None,
    })
}

/// The constructor of `Datatype` that makes this type: its name in snake case.
fn constructor(basic: Basic) -> String {
    let mut name = String::new();
    for letter in format!("{basic:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn name(leaf: Leaf) -> String {
    match leaf {
        Leaf::Basic(basic) => basic.mpi_name().to_owned(),
        leaf => leaf.to_string(),
    }
}

fn is_pair(leaf: Leaf) -> bool {
    matches!(leaf, Leaf::Basic(basic) if basic.is_pair())
}

fn is_marker(leaf: Leaf) -> bool {
    matches!(leaf, Leaf::Basic(basic) if basic.is_marker())
}

/// The greatest depth of a form that is printed.
const LEVELS: usize = 64;

/// Prints the items of a form in order, with a count for each run.
struct Sequence<'a> {
    nodes: &'a [Node],
    /// Whether each node contains any items.
    items: Vec<bool>,
}

impl Sequence<'_> {
    fn count(&mut self) {
        for node in self.nodes {
            let any = match node {
                Node::Leaf(Leaf::Basic(basic)) => !basic.is_marker(),
                Node::Leaf(_) => true,
                Node::Array { child, vectors, .. } => {
                    self.items[*child as usize] && !vectors.is_empty()
                }
                _ => node.children().any(|child| self.items[child as usize]),
            };
            self.items.push(any);
        }
    }

    /// Nodes deeper than `levels` are left out: a peer's form may be nested deeper than a small
    /// stack allows.
    fn write(&self, node: u32, levels: usize, out: &mut Excerpt) -> fmt::Result {
        let Some(levels) = levels.checked_sub(1) else { return out.end() };
        match &self.nodes[node as usize] {
            Node::Leaf(leaf) => out.write_str(&name(*leaf)),
            Node::Array { child, vectors, .. } => {
                let copies =
                    vectors.iter().map(|it| u128::from(it.length) * u128::from(it.count)).sum();
                self.times(*child, copies, levels, out)
            }
            Node::Simple { members } => {
                self.list(members.iter().map(|member| (member.child, member.length)), levels, out)
            }
            Node::Struct { members, .. } => {
                self.list(members.iter().map(|member| (member.child, member.length)), levels, out)
            }
        }
    }

    fn list(
        &self,
        members: impl Iterator<Item = (u32, u64)>,
        levels: usize,
        out: &mut Excerpt,
    ) -> fmt::Result {
        let mut first = true;
        for (child, length) in members.filter(|(child, _)| self.items[*child as usize]) {
            if !std::mem::take(&mut first) {
                out.write_str(", ")?;
            }
            self.times(child, length.into(), levels, out)?;
        }
        Ok(())
    }

    fn times(&self, child: u32, copies: u128, levels: usize, out: &mut Excerpt) -> fmt::Result {
        match &self.nodes[child as usize] {
            Node::Leaf(leaf) => write!(out, "{copies} {}", name(*leaf)),
            _ if copies == 1 => self.write(child, levels, out),
            _ => {
                write!(out, "{copies} x (")?;
                self.write(child, levels, out)?;
                out.write_char(')')
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use shipable::{Architecture, Datatype};

    use super::*;

    fn text(origin: (u64, &str), target: (u64, &str)) -> String {
        let [here, there] = [origin, target].map(|(count, text)| {
            let datatype: Datatype = text.parse().unwrap();
            (count, text, Form::compile(&datatype, &Architecture::X86_64).unwrap())
        });
        let [here, there] =
            [&here, &there].map(|(count, text, form)| Items { count: *count, form, text });
        differ(&here, &there).to_string()
    }

    #[test]
    fn forms_nested_too_deep_are_cut() {
        let deep = |levels| {
            let open: String = (2..levels + 2).map(|n| format!("U{n}(S:2:")).rev().collect();
            let close: String = (2..levels + 2).map(|n| format!("/1/0,d/1/{})", 8 * n)).collect();
            text((1, "i"), (1, &format!("{open}c{close}")))
        };
        assert!(deep(3).contains("1 MPI_CHAR, 1 MPI_DOUBLE, 1 MPI_DOUBLE"), "{}", deep(3));
        assert!(deep(100).contains("at the origin, ... (1 of"), "{}", deep(100));
    }

    #[test]
    fn a_rust_number_differs_from_the_c_type() {
        assert_eq!(
            text((1, "i32"), (1, "i")),
            "the signatures differ: 1 MPI_INT32_T at the origin, 1 MPI_INT at the target: a Rust i32 is MPI_INT32_T: use \
             Datatype::int32() at the target, or c::Int at the origin"
        );
        let other = text((8, "ll"), (1, "U1(V:u64:8:1:10)"));
        assert!(other.contains("8 MPI_UINT64_T (1 of U1(V:u64:8:1:10)) at the target"), "{other}");
        let words = "a Rust u64 is MPI_UINT64_T: use Datatype::long_long() at the target, or u64 at the origin";
        assert!(other.ends_with(words), "{other}");
        assert!(text((1, "d"), (1, "I16")).ends_with("use Datatype::double() at the target"));
        assert!(text((2, "d"), (1, "d")).ends_with("use the same count at both"));
    }

    #[test]
    fn long_sequences_are_cut() {
        let mixed = text((2, "U1(SS:2:i/1,d/3)"), (2, "U1(S:2:c/1/0,di/1/8)"));
        assert!(mixed.contains("2 x (1 MPI_INT, 3 MPI_DOUBLE) (2 of U1(SS:2:i/1,d/3))"), "{mixed}");
        assert!(mixed.contains("2 x (1 MPI_CHAR, 1 MPI_DOUBLE_INT)"), "{mixed}");
        let first = "item 0 is MPI_INT at the origin, MPI_CHAR at the target; ";
        assert!(mixed.ends_with(&format!("{first}{MATCH}")), "{mixed}");
        let members = vec!["i/1,d/1"; 100].join(",");
        let long = format!("U1(SS:200:{members})");
        assert!(text((1, &long), (1, "d")).len() < 500);
        assert!(text((1, "U1(0d)"), (1, "d")).contains("no basic types (1 of U1(0d))"));
    }

    #[test]
    fn the_first_item_that_differs_is_named() {
        let expect = |origin, target, first: &str| {
            let text = text(origin, target);
            assert!(text.ends_with(&format!(": {first}{MATCH}")), "{text}");
        };
        let record = "U1(SS:3:i/1,d/3,c/2)";
        expect(
            (2, record),
            (2, "U1(SS:3:i/1,d/3,s/2)"),
            "item 4 is MPI_CHAR at the origin, MPI_SHORT at the target; ",
        );
        expect((3, record), (2, record), "item 12 is MPI_INT at the origin, none at the target; ");
        // The items of a pair are its members.
        let pairs = "U2(S:2:i/1/0,U1(2ii)/1/8)";
        expect((1, pairs), (6, "i"), "item 5 is none at the origin, MPI_INT at the target; ");
        // Too far behind to be found, and without items.
        let far = |last| format!("U1(SS:2:U2(20000U3(SS:2:i/1,d/1))/1,{last}/1)");
        let (here, there) = (far("c"), far("s"));
        expect((1, &here), (1, &there), "");
        expect((1 << 40, "U1(0d)"), (1, record), "");
    }

    #[test]
    fn constructors_are_named_in_snake_case() {
        let made = [Datatype::c_bool(), Datatype::unsigned_long_long(), Datatype::two_int()];
        let names = made.map(|datatype| constructor(datatype.as_basic().unwrap()));
        assert_eq!(names, ["c_bool", "unsigned_long_long", "two_int"]);
    }
}

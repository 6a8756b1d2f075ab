//! The texts of constructors, without the texts of their children.

use crate::datatype::{Distribution, Node, Order};

/// The text of a constructor, split at its children.
pub(super) fn pieces(node: &Node) -> Vec<String> {
    let one = |before: String, after: String| vec![before, after];
    match node {
        Node::Leaf(leaf) => vec![leaf.to_string()],
        Node::ValueIndex { value, index } => vec![format!("VI:{}:{}", value.code(), index.code())],
        Node::Dup { .. } => one("D:".into(), String::new()),
        Node::Contiguous { count, .. } => one(count.to_string(), String::new()),
        Node::Vector { count, blocklength, stride, .. } => {
            one("V:".into(), format!(":{count}:{blocklength}:{stride}"))
        }
        Node::Hvector { count, blocklength, stride, integer, .. } => {
            one(code("HV", *integer) + ":", format!(":{count}:{blocklength}:{stride}"))
        }
        Node::Indexed { blocklengths, displacements, .. } => one(
            "X:".into(),
            list(blocklengths.iter().zip(displacements), |(b, d)| format!("{b}/{d}")),
        ),
        Node::Hindexed { blocklengths, displacements, integer, .. } => one(
            code("HX", *integer) + ":",
            list(blocklengths.iter().zip(displacements), |(b, d)| format!("{b}/{d}")),
        ),
        Node::IndexedBlock { blocklength, displacements, .. } => {
            one("XB:".into(), equal_blocks(*blocklength, displacements))
        }
        Node::HindexedBlock { blocklength, displacements, .. } => {
            one("HXB:".into(), equal_blocks(*blocklength, displacements))
        }
        Node::Struct { blocklengths, displacements, integer, .. } => {
            let members_of = blocklengths.iter().zip(displacements);
            members(&code("S", *integer), members_of.map(|(b, d)| format!("/{b}/{d}")))
        }
        Node::SimpleStruct { blocklengths, .. } => {
            members("SS", blocklengths.iter().map(|b| format!("/{b}")))
        }
        Node::Subarray { sizes, subsizes, starts, order, .. } => one(
            "SA:".into(),
            format!(":{}", letter(*order))
                + &list(sizes.iter().zip(subsizes).zip(starts), |((size, subsize), start)| {
                    format!("{size}/{subsize}/{start}")
                }),
        ),
        Node::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => one(
            "DA:".into(),
            format!(":{}:{size}:{rank}", letter(*order))
                + &list(
                    gsizes.iter().zip(distribs).zip(dargs).zip(psizes),
                    |(((gsize, distribution), darg), psize)| {
                        let distribution = match distribution {
                            Distribution::Block => 'B',
                            Distribution::Cyclic => 'C',
                            Distribution::None => 'N',
                        };
                        let darg = darg.map_or("*".to_string(), |darg| darg.to_string());
                        format!("{gsize}/{distribution}/{darg}/{psize}")
                    },
                ),
        ),
        Node::Resized { lb, extent, .. } => one("RZ:".into(), format!(":{lb}:{extent}")),
    }
}

/// The code of a constructor, or of its counterpart in MPI-1.
fn code(code: &str, integer: bool) -> String {
    format!("{code}{}", if integer { "I" } else { "" })
}

/// `:n` and, if the list isn't empty, `:item,item`.
fn list<T>(items: impl ExactSizeIterator<Item = T>, text: impl Fn(T) -> String) -> String {
    format!(":{}", items.len()) + &joined(items, text)
}

fn equal_blocks(blocklength: i64, displacements: &[i64]) -> String {
    format!(":{}:{blocklength}", displacements.len()) + &joined(displacements, i64::to_string)
}

/// `:item,item`; empty for an empty list.
fn joined<T>(items: impl IntoIterator<Item = T>, text: impl Fn(T) -> String) -> String {
    // A list may have millions of items, so they aren't collected first.
    let mut joined = String::new();
    for item in items {
        joined.push(if joined.is_empty() { ':' } else { ',' });
        joined += &text(item);
    }
    joined
}

/// `S:n:` type `/1/0,` type `/1/8`, split at the types.
fn members(code: &str, after: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let count = after.len();
    let mut pieces = vec![format!("{code}:{count}{}", if count > 0 { ":" } else { "" })];
    pieces.extend(after.enumerate().map(|(at, after)| match at + 1 < count {
        true => after + ",",
        false => after,
    }));
    pieces
}

fn letter(order: Order) -> char {
    match order {
        Order::C => 'C',
        Order::Fortran => 'F',
    }
}

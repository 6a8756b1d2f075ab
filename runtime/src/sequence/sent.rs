//! The items of a message whose signature isn't the receive's.
//!
//! A message brings the hash of its signature and not its types, so the types are searched for:
//! elements of one predefined type, and the receive's elements with one member changed, left out or
//! added. These are the mistakes that programs make.

use shipable::{Architecture, Basic, Datatype, Form, Leaf, Signature};

use super::{Items, MATCH, Run, compare, differ, runs_of};
use crate::error::ErrorKind;

/// The data of a message: their length in bytes, the hash of their signature, and the
/// representation in which they travel.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a> {
    pub length: u64,
    pub hash: u128,
    pub stream: &'a Architecture,
}

/// The error for a message whose signature isn't that of a receive's elements.
#[cold]
pub(crate) fn differ_from_message(sent: Sent<'_>, receive: &Items<'_>) -> ErrorKind {
    if let Some((basic, count)) = sent.of_one_type() {
        let datatype = Datatype::from(basic);
        if let Ok(form) = Form::compile(&datatype, sent.stream) {
            return differ(&Items { count, form: &form, text: &datatype }, receive);
        }
    }
    let remedy = match sent.first_difference(receive) {
        Some(difference) => format!("{difference}; {MATCH}"),
        None => MATCH.to_owned(),
    };
    let origin = format!("a message of {} bytes", sent.length);
    ErrorKind::Signature { origin, target: receive.to_string(), remedy }
}

/// The most runs of an element that are searched, and the most items of each.
const RUNS: usize = 32;
const ITEMS: u128 = 16;

impl Sent<'_> {
    /// The predefined type of which all elements are, and their number.
    fn of_one_type(self) -> Option<(Basic, u64)> {
        candidates().find_map(|basic| {
            let count = self.count(self.stream.basic(basic).size.into())?;
            let signature = Signature::of_leaf(basic.into()).repeat(count)?;
            (signature.hash == self.hash).then_some((basic, count))
        })
    }

    /// The number of elements of this size.
    fn count(self, size: u64) -> Option<u64> {
        (size > 0 && self.length % size == 0).then(|| self.length / size)
    }

    /// The first item that differs, if the elements are the receive's but for one member.
    fn first_difference(self, receive: &Items<'_>) -> Option<String> {
        let (there, _) = runs_of(&Items { count: 1, ..*receive });
        if there.len() > RUNS {
            return None;
        }
        let sizes: Vec<u64> = there.iter().map(|run| self.size(run)).collect::<Option<Vec<_>>>()?;
        let whole: u64 = sizes.iter().sum();
        for at in 0..=there.len() {
            let (before, rest) = there.split_at(at);
            let before_it = signature(before)?;
            // The changed run: what stands in its place, and what follows.
            let changed = rest.first().zip(sizes.get(at));
            let after = rest.get(1..).unwrap_or_default();
            let try_one = |middle: &[Run], after: &[Run], base: u64| -> Option<String> {
                let added = middle.iter().map(|run| self.size(run)).sum::<Option<u64>>()?;
                let count = self.count(base.checked_add(added)?)?;
                let one = before_it.then(&signature(middle)?)?.then(&signature(after)?)?;
                if one.repeat(count)?.hash != self.hash {
                    return None;
                }
                let here = [before, middle, after].concat();
                // A member at the end is followed by the next element.
                let twice = |one: &[Run], count: u64| one.repeat(count.min(2) as usize);
                let ended = count <= 2;
                let there = there.repeat(2);
                compare((twice(&here, count), ended), (there, false))
            };
            let Some((&run, &size)) = changed else {
                let found =
                    candidates().find_map(|basic| try_one(&[(basic.into(), 1)], &[], whole));
                return found;
            };
            let found = try_one(&[], after, whole - size).or_else(|| {
                candidates().map(Leaf::from).find_map(|leaf| {
                    try_one(&[(leaf, run.1)], after, whole - size)
                        .or_else(|| try_one(&[(leaf, 1)], rest, whole))
                        .or_else(|| {
                            (0..run.1.min(ITEMS)).find_map(|item| {
                                let middle = [(run.0, item), (leaf, 1), (run.0, run.1 - item - 1)];
                                try_one(&middle, after, whole - size)
                            })
                        })
                })
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The bytes of a run.
    fn size(self, run: &Run) -> Option<u64> {
        let size = u64::from(self.stream.leaf(run.0).ok()?.size);
        size.checked_mul(u64::try_from(run.1).ok()?)
    }
}

/// The predefined types that a message may have.
fn candidates() -> impl Iterator<Item = Basic> {
    Basic::ALL.iter().copied().filter(|basic| !basic.is_marker())
}

/// The signature of runs.
fn signature(runs: &[Run]) -> Option<Signature> {
    runs.iter().try_fold(Signature::empty(), |all, run| {
        all.then(&Signature::of_leaf(run.0).repeat(u64::try_from(run.1).ok()?)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a receive of the type `receive` for a message of `count` elements of `sent`.
    fn text(count: u64, sent: &str, receive: &str) -> String {
        let stream = &Architecture::S390X;
        let [sent, receive] = [sent, receive].map(|text| {
            let datatype: Datatype = text.parse().unwrap();
            (Form::compile(&datatype, stream).unwrap(), text)
        });
        let all = Items { count, form: &sent.0, text: &sent.1 };
        let runs = runs_of(&all).0;
        let hash = signature(&runs).unwrap().hash;
        let of = |run| Sent { length: 0, hash, stream }.size(run).unwrap();
        let length = runs.iter().map(of).sum();
        let receive = Items { count: 1, form: &receive.0, text: &receive.1 };
        differ_from_message(Sent { length, hash, stream }, &receive).to_string()
    }

    #[test]
    fn elements_of_one_type_are_named_by_it() {
        let found = text(4, "i32", "d");
        assert!(
            found.contains("4 MPI_INT32_T at the origin, 1 MPI_DOUBLE at the target"),
            "{found}"
        );
        assert!(found.contains("a Rust i32 is MPI_INT32_T"), "{found}");
        let found = text(3, "LD", "U1(SS:2:LD/2,i/1)");
        assert!(
            found.contains("item 2 is MPI_LONG_DOUBLE at the origin, MPI_INT at the target"),
            "{found}"
        );
    }

    #[test]
    fn the_first_member_that_differs_is_named() {
        let record = "U1(SS:3:i/1,d/3,c/2)";
        for (count, sent, first) in [
            (
                1,
                "U1(SS:3:i/1,d/3,s/2)",
                "item 4 is MPI_SHORT at the origin, MPI_CHAR at the target",
            ),
            (
                7,
                "U1(SS:3:i/1,f/3,c/2)",
                "item 1 is MPI_FLOAT at the origin, MPI_DOUBLE at the target",
            ),
            (2, "U1(SS:2:i/1,d/3)", "item 4 is MPI_INT at the origin, MPI_CHAR at the target"),
            (1, "U1(SS:2:i/1,d/3)", "item 4 is none at the origin, MPI_CHAR at the target"),
            (
                5,
                "U1(SS:4:i/1,d/3,c/2,s/1)",
                "item 6 is MPI_SHORT at the origin, MPI_INT at the target",
            ),
            (3, "U1(SS:5:i/1,d/1,f/1,d/1,c/2)", "item 2 is MPI_FLOAT at the origin"),
        ] {
            let found = text(count, sent, record);
            assert!(found.contains(first), "{sent}: {found}");
        }
        let found = text(2, "U1(SS:2:s/5,c/1)", record);
        assert!(found.ends_with(MATCH) && !found.contains("item"), "{found}");
    }
}

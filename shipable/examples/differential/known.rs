//! The known differences of MPI libraries from the standard.
//!
//! An entry names one library in one version, and an example with the library's answer. Every run
//! first verifies the examples: an entry that no longer holds fails the run. An entry also states
//! its effect on random types, as narrowly as possible.

use std::error::Error;

use shipable::{Basic, Datatype, Leaf, Result};

use crate::case::{Asked, Case, Field, is_pair};
use crate::ours;
use crate::peer::Library;
use crate::quirks::{MPICH, OPEN_MPI};

/// A library's answer to an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theirs {
    /// This answer, in the format of `ours::comparable`.
    Answer(&'static str),
    /// Any error.
    Error,
    /// No answer, because the process dies.
    Death,
}

/// The effect of a difference on the comparison of random types.
#[derive(Clone, Copy)]
pub enum Effect {
    /// `random.rs` builds types that avoid it.
    Avoided,
    /// These questions aren't asked about types for which the predicate holds.
    Unasked(&'static [Field], fn(&Case) -> bool),
    /// The affected types can't be predicted. Wrong answers to these questions are accepted for one
    /// type in [`RARE`], if the oracle agrees with this crate's answer.
    Rare(&'static [Field]),
    /// In external32, the library packs such leaves as other leaves. Its answers are compared with
    /// those for the other leaves.
    External(fn(Leaf) -> Option<Result<Datatype>>),
}

/// A known difference.
pub struct Difference {
    library: &'static str,
    /// A short name.
    pub name: &'static str,
    /// The library's behaviour, and how it breaks the standard.
    pub behaviour: &'static str,
    /// The section of MPI-5.0 that it breaks.
    pub section: &'static str,
    /// A type, a question about it, and the library's answer.
    pub example: (&'static str, Field, Theirs),
    pub effect: Effect,
}

impl Difference {
    /// The questions about a case that it affects.
    pub fn affects(&self, case: &Case) -> Vec<Field> {
        let asked = case.asked().fields;
        let affected = |field: &Field| match self.effect {
            Effect::Avoided | Effect::Rare(_) => false,
            Effect::Unasked(fields, applies) => fields.contains(field) && applies(case),
            Effect::External(instead) => {
                matches!(field, Field::External | Field::Unexternal)
                    && case.leaves().any(|leaf| instead(leaf).is_some())
            }
        };
        asked.into_iter().filter(affected).collect()
    }
}

/// The known differences of a library.
pub fn of(library: &Library) -> Vec<Difference> {
    all().into_iter().filter(|difference| difference.library == library.name).collect()
}

/// The questions to ask about a case. If packing isn't asked, unpacking isn't either.
pub fn ask(case: &Case, known: &[Difference]) -> Asked {
    let mut fields = case.asked().fields;
    for difference in known {
        if let Effect::Unasked(..) = difference.effect {
            let unasked = difference.affects(case);
            fields.retain(|field| !unasked.contains(field));
        }
    }
    if !fields.contains(&Field::External) {
        fields.retain(|field| *field != Field::Unexternal);
    }
    Asked { fields }
}

/// The answer that the library must give, known differences included.
pub fn expected(
    case: &Case,
    field: Field,
    known: &[Difference],
) -> std::result::Result<String, Box<dyn Error>> {
    if matches!(field, Field::External | Field::Unexternal) {
        let instead = |leaf: Leaf| {
            known.iter().find_map(|difference| match difference.effect {
                Effect::External(instead) => instead(leaf),
                _ => None,
            })
        };
        if case.leaves().any(|leaf| instead(leaf).is_some()) {
            let leaf = |leaf: Leaf| instead(leaf).unwrap_or_else(|| ours::leaf(leaf));
            let other = Case { datatype: ours::rebuild(&case.datatype, &leaf)?, ..case.clone() };
            return ours::answer(&other, field);
        }
    }
    ours::answer(case, field)
}

/// One type in this many may have wrong answers for an unknown reason.
pub const RARE: u64 = 500;

/// Whether a rare difference explains these wrong answers.
pub fn is_rare(case: &Case, fields: &[Option<Field>], known: &[Difference]) -> Result<bool> {
    let listed = |field: &Option<Field>| {
        known.iter().any(|difference| match difference.effect {
            Effect::Rare(fields) => field.is_some_and(|field| fields.contains(&field)),
            _ => false,
        })
    };
    Ok(fields.iter().all(listed) && ours::agrees_with_the_oracle(case)?)
}

/// Whether all elements have one basic type that isn't a pair.
fn uniform(case: &Case) -> bool {
    let first = case.leaves().next();
    case.leaves().all(|leaf| Some(leaf) == first && !is_pair(leaf))
}

fn f90(leaf: Leaf) -> bool {
    !matches!(leaf, Leaf::Basic(_))
}

/// The leaves that MPICH doesn't support in external32.
fn unknown_to_mpich(leaf: Leaf) -> bool {
    use Basic::*;
    f90(leaf)
        || is_pair(leaf)
        || matches!(
            leaf,
            Leaf::Basic(
                Wchar | Real2 | Complex4 | Logical1 | Logical2 | Logical4 | Logical8 | Logical16
            )
        )
}

fn all() -> Vec<Difference> {
    vec![
        Difference {
            library: MPICH,
            name: "external32 of several types",
            behaviour: "MPI_Pack_external_size dies for a type of several basic types, or of none",
            section: "5.3",
            example: ("U1(S:2:i/1/0,f/1/4)", Field::External, Theirs::Death),
            effect: Effect::Unasked(&[Field::External], |case| {
                !uniform(case) || case.items.is_empty()
            }),
        },
        Difference {
            library: MPICH,
            name: "external32 of wchar_t",
            behaviour: "ends the process: it can't convert MPI_WCHAR, pairs, types of parametrised Fortran kinds, \
                   MPI_REAL2, MPI_COMPLEX4 and logicals of a stated size",
            section: "14.5.2",
            example: ("w", Field::External, Theirs::Death),
            effect: Effect::Unasked(&[Field::External], |case| case.leaves().any(unknown_to_mpich)),
        },
        Difference {
            library: MPICH,
            name: "external32 of C++ long double",
            behaviour: "reverses the bytes of MPI_CXX_LONG_DOUBLE_COMPLEX instead of making binary128",
            section: "14.5.2",
            example: (
                "cldC",
                Field::External,
                Theirs::Answer(
                    "32 00000000000000069a001c8efd5e007c000000000000003480cbf6fcb921003e",
                ),
            ),
            effect: Effect::External(|leaf| {
                (leaf == Basic::CxxLongDoubleComplex.into())
                    .then(|| Datatype::contiguous(2, &Basic::Integer16.into()))
            }),
        },
        Difference {
            library: MPICH,
            name: "elements of several types",
            behaviour: "MPI_Get_elements divides by zero, or miscounts, for a type of several basic types",
            section: "5.1.11",
            example: ("U1(S:2:f/1/0,i/1/4)", Field::Elements, Theirs::Death),
            effect: Effect::Unasked(&[Field::Elements], |case| !uniform(case)),
        },
        Difference {
            library: MPICH,
            name: "sticky bounds",
            behaviour: "bounds set by MPI_Type_create_resized don't act as markers: in a struct, the other members' bounds count too",
            section: "5.1.7",
            example: (
                "U1(S:2:U2(RZ:i:0:4)/1/8,i/1/0)",
                Field::Bounds,
                Theirs::Answer("8 0 12 0 12"),
            ),
            effect: Effect::Avoided,
        },
        Difference {
            library: MPICH,
            name: "structs of one type",
            behaviour: "doesn't pad a struct whose members have one type or one size",
            section: "5.1.7",
            example: ("U1(S:2:i/1/0,i/1/5)", Field::Bounds, Theirs::Answer("8 0 9 0 9")),
            effect: Effect::Avoided,
        },
        Difference {
            library: MPICH,
            name: "blocks at odd bytes",
            behaviour: "pads only structs, not blocks at displacements in bytes",
            section: "5.1.7",
            example: ("U1(HV:i:2:1:5)", Field::Bounds, Theirs::Answer("8 0 9 0 9")),
            effect: Effect::Avoided,
        },
        Difference {
            library: MPICH,
            name: "alignment of COMPLEX*4",
            behaviour: "aligns two REAL*2 to 4 bytes",
            section: "5.1.7",
            example: ("U1(S:2:C4/1/0,i8/1/4)", Field::Bounds, Theirs::Answer("5 0 8 0 5")),
            effect: Effect::Avoided,
        },
        Difference {
            library: MPICH,
            name: "bounds without data",
            behaviour: "a type without data has no bounds, even if MPI_Type_create_resized sets them and blocks move them",
            section: "5.1.7",
            example: (
                "U1(HXB:U2(RZ:U3(S:0):12:64):1:1:100)",
                Field::Bounds,
                Theirs::Answer("0 0 0 0 0"),
            ),
            effect: Effect::Avoided,
        },
        Difference {
            library: MPICH,
            name: "16 bytes moved as 10",
            behaviour: "packs INTEGER*16, REAL*16, LOGICAL*16 and COMPLEX*32 by loads and stores of long double if they aren't \
                   adjacent, which loses 6 bytes of 16",
            section: "5.2",
            example: (
                "U1(RZ:I16:-2:20)",
                Field::Whole,
                Theirs::Answer("16 7c005efd8e1c001a06005a5a5a5a5a5a"),
            ),
            // `ours::comparable` ignores those bytes.
            effect: Effect::Avoided,
        },
        Difference {
            library: MPICH,
            name: "negative extents",
            behaviour: "packs arrays of arrays of a negative extent from higher addresses instead of lower ones",
            section: "5.1.7",
            example: (
                "U1(2U2(2U3(RZ:U4(2d):0:-2)))",
                Field::Pack,
                Theirs::Answer(
                    "64 5efd8e1c001a0600e900000000003e007c005efd8e1c001a0600e900000000005a5a7c005efd8e1c001a0600\
                     e90000005a5a5a5a7c005efd8e1c001a0600e900",
                ),
            ),
            effect: Effect::Avoided,
        },
        Difference {
            library: MPICH,
            name: "real kinds of 2 bytes",
            behaviour: "returns REAL*2 for a precision up to 3, although common Fortran compilers have no such kind",
            section: "19.1.9",
            example: ("U1(FR:2:*)", Field::Bounds, Theirs::Answer("2 0 2 0 2")),
            effect: Effect::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "true bounds without data",
            behaviour: "some types without data have a true lower bound of 2^63 - 1 and a true extent of 1",
            section: "5.1.8",
            example: (
                "U1(HV:U2(0i):1:1:4)",
                Field::Bounds,
                Theirs::Answer("0 0 0 9223372036854775807 1"),
            ),
            effect: Effect::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "lower bound without data",
            behaviour: "a member without data moves a struct's lower bound to its displacement",
            section: "5.1.7",
            example: ("U1(S:2:U2(S:0)/1/4,i/1/8)", Field::Bounds, Theirs::Answer("4 4 8 8 4")),
            effect: Effect::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "arrays without data",
            behaviour: "MPI_Type_create_darray refuses a type of extent 0",
            section: "5.1.4",
            example: ("U1(DA:U2(S:0):C:1:0:1:2/B/*/1)", Field::Type, Theirs::Error),
            effect: Effect::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "padding by and by",
            behaviour: "pads after each member of a struct or block, so that the extent depends on their order if a later one lies \
                   below the earlier ones",
            section: "5.1.7",
            example: ("U1(S:3:d/1/8,c/1/16,c/1/7)", Field::Bounds, Theirs::Answer("10 7 24 7 10")),
            effect: Effect::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "a byte after a byte",
            behaviour: "packs blocks of one byte at a stride of -1 in ascending order",
            section: "5.1.2",
            example: ("U1(V:c:3:1:-1)", Field::Bounds, Theirs::Answer("3 0 3 0 3")),
            effect: Effect::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "blocks put together",
            behaviour: "packs the last of several blocks from a wrong address, in about one of a thousand types",
            section: "5.2",
            example: (
                "U1(S:4:U2(S:4:AI/1/3,P/1/20,AI/1/-12,L2/1/11)/1/0,cdC/1/42,cdC/1/58,U3(RZ:dC:-3:24)/2/84)",
                Field::Pack,
                Theirs::Answer(
                    "83 003e0021b9fcf6cb937c005efd8e1c001a0000fa00fb002f00009700005300000000c4000000004000970cb93f\
                     0000b90070ca9ea94ca87e99681300002ea14af7001b00e4860000c23e0000ca007704b00000",
                ),
            ),
            effect: Effect::Rare(&[Field::Pack, Field::Unpack]),
        },
        Difference {
            library: OPEN_MPI,
            name: "elements of pairs",
            behaviour: "MPI_Get_elements counts a pair as one basic element, although MPI defines it as a struct of two",
            section: "6.9.4",
            example: ("di", Field::Elements, Theirs::Answer("0/0,1/1,1/1,1/1")),
            effect: Effect::Unasked(&[Field::Elements], |case| case.leaves().any(is_pair)),
        },
        Difference {
            library: OPEN_MPI,
            name: "external32 of wchar_t",
            behaviour: "packs MPI_WCHAR in 4 bytes instead of 2",
            section: "14.5.2",
            example: ("w", Field::External, Theirs::Answer("4 0000007c")),
            effect: Effect::External(|leaf| {
                (leaf == Basic::Wchar.into()).then(|| Ok(Basic::Uint32.into()))
            }),
        },
        Difference {
            library: OPEN_MPI,
            name: "external32 of long double",
            behaviour: "reverses the 16 bytes of an x87 number instead of making a binary128; complex ones are right",
            section: "14.5.2",
            example: ("LD", Field::External, Theirs::Answer("16 00000000000000069a001c8efd5e007c")),
            effect: Effect::External(|leaf| {
                use Basic::*;
                let image = || Datatype::basic(Integer16);
                match leaf {
                    Leaf::Basic(LongDouble) => Some(Ok(image())),
                    Leaf::Basic(LongDoubleInt) => {
                        Some(Datatype::struct_(&[1, 1], &[0, 16], &[image(), Int.into()]))
                    }
                    _ => None,
                }
            }),
        },
        Difference {
            library: OPEN_MPI,
            name: "external32 of complex long doubles",
            behaviour: "converts the wrong bytes of complex long doubles that aren't adjacent",
            section: "14.5.2",
            example: (
                "U1(V:ldC:2:1:2)",
                Field::External,
                Theirs::Answer(
                    "64 00063400391dfabc00f80000000000006b000000000000000126000000000000000100018800000000\
                     a60000000000005a5ab4b4b4b4b4b4b4b4000000000000",
                ),
            ),
            effect: Effect::Unasked(&[Field::External], |case| {
                use Basic::*;
                let complex = [CLongDoubleComplex, CxxLongDoubleComplex];
                case.leaves().any(|leaf| complex.iter().any(|&one| leaf == one.into()))
            }),
        },
        Difference {
            library: OPEN_MPI,
            name: "external32 of Fortran kinds",
            behaviour: "packs an integer kind of a range from 10 to 18 as a long of 4 bytes instead of 8",
            section: "14.5.2",
            example: ("U1(FI:12)", Field::External, Theirs::Answer("4 005e007c")),
            effect: Effect::External(|leaf| match leaf {
                Leaf::F90Integer { range: 10..=18 } => Some(Ok(Basic::Long.into())),
                _ => None,
            }),
        },
    ]
}

//! Where an MPI library is known to differ from the standard.
//!
//! Each entry names one library in one version, and has an example with the library's answer, which every run tries first:
//! an entry that isn't true any more fails the run. What it means for random types is said with it, as narrow as can be.

use std::error::Error;

use shipable::{Basic, Datatype, Leaf, Result};

use crate::case::{Asked, Case, Field, is_pair};
use crate::ours;
use crate::peer::Library;

const MPICH: &str = "MPICH Version: 5.0.2";
const OPEN_MPI: &str = "Open MPI v5.0.11";

/// What a library answers to an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theirs {
    /// This, in the words of `ours::comparable`.
    Answer(&'static str),
    /// An error.
    Error,
    /// Nothing: the process dies.
    Death,
}

/// What comes of a difference for random types.
#[derive(Clone, Copy)]
pub enum Random {
    /// They are built so that it doesn't show, in `random.rs`.
    Avoided,
    /// These questions aren't asked of the types for which this holds.
    Unasked(&'static [Field], fn(&Case) -> bool),
    /// Nobody knows of which types: these answers may be wrong for one type in [`SELDOM`], where the oracle agrees with ours.
    Seldom(&'static [Field]),
    /// The library packs such leaves in external32 as if they were others, and is held to that.
    External(fn(Leaf) -> Option<Result<Datatype>>),
}

/// A known difference.
pub struct Difference {
    library: &'static str,
    /// A few words that name it.
    pub name: &'static str,
    /// What the library does, and why that isn't what the standard says.
    pub what: &'static str,
    /// Where the standard says otherwise.
    pub section: &'static str,
    /// A type of which it is so, the question, and the answer.
    pub example: (&'static str, Field, Theirs),
    pub random: Random,
}

impl Difference {
    /// The questions that it touches of a case.
    pub fn touches(&self, case: &Case) -> Vec<Field> {
        let asked = case.asked().fields;
        let touched = |field: &Field| match self.random {
            Random::Avoided | Random::Seldom(_) => false,
            Random::Unasked(fields, applies) => fields.contains(field) && applies(case),
            Random::External(instead) => {
                matches!(field, Field::External | Field::Unexternal)
                    && case.leaves().any(|leaf| instead(leaf).is_some())
            }
        };
        asked.into_iter().filter(touched).collect()
    }
}

/// The differences of a library.
pub fn of(library: &Library) -> Vec<Difference> {
    all().into_iter().filter(|difference| difference.library == library.name).collect()
}

/// The questions that are asked of a case. What was never packed can't be unpacked.
pub fn ask(case: &Case, known: &[Difference]) -> Asked {
    let mut fields = case.asked().fields;
    for difference in known {
        if let Random::Unasked(..) = difference.random {
            let unasked = difference.touches(case);
            fields.retain(|field| !unasked.contains(field));
        }
    }
    if !fields.contains(&Field::External) {
        fields.retain(|field| *field != Field::Unexternal);
    }
    Asked { fields }
}

/// The answer that a library is held to.
pub fn expected(
    case: &Case,
    field: Field,
    known: &[Difference],
) -> std::result::Result<String, Box<dyn Error>> {
    if matches!(field, Field::External | Field::Unexternal) {
        let instead = |leaf: Leaf| {
            known.iter().find_map(|difference| match difference.random {
                Random::External(instead) => instead(leaf),
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

/// One type in so many may be answered wrong for a reason that isn't known.
pub const SELDOM: u64 = 500;

/// Whether answers that aren't as expected may be so for a reason that isn't known.
pub fn seldom(case: &Case, fields: &[Option<Field>], known: &[Difference]) -> Result<bool> {
    let listed = |field: &Option<Field>| {
        known.iter().any(|difference| match difference.random {
            Random::Seldom(fields) => field.is_some_and(|field| fields.contains(&field)),
            _ => false,
        })
    };
    Ok(fields.iter().all(listed) && ours::agrees_with_the_oracle(case)?)
}

/// The predefined types that a library hasn't. They are optional in MPI-5.0 (section 3.2.2), and need a Fortran compiler.
pub fn absent(library: &Library) -> Vec<Basic> {
    use Basic::*;
    match library.name.as_str() {
        OPEN_MPI => vec![Integer16, Real2, Logical16, Complex4, Complex32],
        _ => Vec::new(),
    }
}

/// Open MPI's MPI_COMPLEX32 has a size of 0, and is found all the same where a Fortran type of 32 bytes is asked for.
pub fn matches_otherwise(library: &Library, what: &str) -> bool {
    (library.name.as_str(), what) == (OPEN_MPI, "COMPLEX*32")
}

/// What `random.rs` goes around.
#[derive(Clone, Copy, Default)]
pub struct Quirks {
    /// Bounds that are set don't go before others in a struct.
    pub markers_ignored: bool,
    /// A struct of members alike isn't padded.
    pub one_type_unpadded: bool,
    /// Of types in bytes structs alone are padded.
    pub blocks_unpadded: bool,
    /// Members and blocks are padded one by one.
    pub padded_by_and_by: bool,
    /// Bytes at a stride of -1 are packed upwards.
    pub bytes_upwards: bool,
    /// Elements of a negative extent are packed from elsewhere.
    pub negative_extents: bool,
    /// Of the types that are [`moved_as_x87`], the last 6 bytes aren't compared.
    pub sixteen_bytes_as_x87: bool,
}

/// What `random.rs` goes around in a library.
pub fn quirks(library: &Library) -> Quirks {
    Quirks {
        markers_ignored: library.name == MPICH,
        one_type_unpadded: library.name == MPICH,
        blocks_unpadded: library.name == MPICH,
        padded_by_and_by: library.name == OPEN_MPI,
        bytes_upwards: library.name == OPEN_MPI,
        negative_extents: library.name == MPICH,
        sixteen_bytes_as_x87: library.name == MPICH,
    }
}

/// Types whose storage of 16 bytes MPICH moves as an x87 number of 10, now and then.
pub fn moved_as_x87(leaf: Leaf) -> bool {
    use Basic::*;
    matches!(leaf, Leaf::Basic(Integer16 | Real16 | Logical16 | Complex32))
}

/// Whether all elements are of one basic type, which isn't a pair.
fn uniform(case: &Case) -> bool {
    let first = case.leaves().next();
    case.leaves().all(|leaf| Some(leaf) == first && !is_pair(leaf))
}

fn f90(leaf: Leaf) -> bool {
    !matches!(leaf, Leaf::Basic(_))
}

/// Types that MPICH's external32 doesn't know.
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
            what: "dies in MPI_Pack_external_size where a type holds more than one basic type, or none",
            section: "5.3",
            example: ("U1(S:2:i/1/0,f/1/4)", Field::External, Theirs::Death),
            random: Random::Unasked(&[Field::External], |case| {
                !uniform(case) || case.items.is_empty()
            }),
        },
        Difference {
            library: MPICH,
            name: "external32 of wchar_t",
            what: "ends the process: no conversion of MPI_WCHAR, of pairs, of types of parametrised Fortran kinds, \
                   of MPI_REAL2, MPI_COMPLEX4 and logicals of a stated size",
            section: "14.5.2",
            example: ("w", Field::External, Theirs::Death),
            random: Random::Unasked(&[Field::External], |case| case.leaves().any(unknown_to_mpich)),
        },
        Difference {
            library: MPICH,
            name: "external32 of C++ long double",
            what: "reverses the bytes of MPI_CXX_LONG_DOUBLE_COMPLEX instead of making binary128",
            section: "14.5.2",
            example: (
                "cldC",
                Field::External,
                Theirs::Answer(
                    "32 00000000000000069a001c8efd5e007c000000000000003480cbf6fcb921003e",
                ),
            ),
            random: Random::External(|leaf| {
                (leaf == Basic::CxxLongDoubleComplex.into())
                    .then(|| Datatype::contiguous(2, &Basic::Integer16.into()))
            }),
        },
        Difference {
            library: MPICH,
            name: "elements of several types",
            what: "MPI_Get_elements divides by zero, or counts wrong, where a type holds more than one basic type",
            section: "5.1.11",
            example: ("U1(S:2:f/1/0,i/1/4)", Field::Elements, Theirs::Death),
            random: Random::Unasked(&[Field::Elements], |case| !uniform(case)),
        },
        Difference {
            library: MPICH,
            name: "sticky bounds",
            what: "bounds that MPI_Type_create_resized sets are no markers: in a struct any other member's count beside them",
            section: "5.1.7",
            example: (
                "U1(S:2:U2(RZ:i:0:4)/1/8,i/1/0)",
                Field::Bounds,
                Theirs::Answer("8 0 12 0 12"),
            ),
            random: Random::Avoided,
        },
        Difference {
            library: MPICH,
            name: "structs of one type",
            what: "pads no struct whose members are all one type, or of one size",
            section: "5.1.7",
            example: ("U1(S:2:i/1/0,i/1/5)", Field::Bounds, Theirs::Answer("8 0 9 0 9")),
            random: Random::Avoided,
        },
        Difference {
            library: MPICH,
            name: "blocks at odd bytes",
            what: "pads structs only, and no blocks at displacements in bytes",
            section: "5.1.7",
            example: ("U1(HV:i:2:1:5)", Field::Bounds, Theirs::Answer("8 0 9 0 9")),
            random: Random::Avoided,
        },
        Difference {
            library: MPICH,
            name: "alignment of COMPLEX*4",
            what: "aligns two REAL*2 to 4 bytes",
            section: "5.1.7",
            example: ("U1(S:2:C4/1/0,i8/1/4)", Field::Bounds, Theirs::Answer("5 0 8 0 5")),
            random: Random::Avoided,
        },
        Difference {
            library: MPICH,
            name: "bounds without data",
            what: "a type without data has no bounds, even where MPI_Type_create_resized sets them and blocks move them",
            section: "5.1.7",
            example: (
                "U1(HXB:U2(RZ:U3(S:0):12:64):1:1:100)",
                Field::Bounds,
                Theirs::Answer("0 0 0 0 0"),
            ),
            random: Random::Avoided,
        },
        Difference {
            library: MPICH,
            name: "16 bytes moved as 10",
            what: "packs INTEGER*16, REAL*16, LOGICAL*16 and COMPLEX*32 by loads and stores of long double where they don't \
                   adjoin, which loses 6 bytes of 16",
            section: "5.2",
            example: (
                "U1(RZ:I16:-2:20)",
                Field::Whole,
                Theirs::Answer("16 7c005efd8e1c001a06005a5a5a5a5a5a"),
            ),
            // Those bytes aren't compared: see `ours::comparable`.
            random: Random::Avoided,
        },
        Difference {
            library: MPICH,
            name: "negative extents",
            what: "packs arrays of arrays of a negative extent from addresses above instead of below",
            section: "5.1.7",
            example: (
                "U1(2U2(2U3(RZ:U4(2d):0:-2)))",
                Field::Pack,
                Theirs::Answer(
                    "64 5efd8e1c001a0600e900000000003e007c005efd8e1c001a0600e900000000005a5a7c005efd8e1c001a0600\
                     e90000005a5a5a5a7c005efd8e1c001a0600e900",
                ),
            ),
            random: Random::Avoided,
        },
        Difference {
            library: MPICH,
            name: "real kinds of 2 bytes",
            what: "finds REAL*2 for a precision up to 3; without a Fortran compiler it can't know, and the usual ones have no such \
                   kind",
            section: "19.1.9",
            example: ("U1(FR:2:*)", Field::Bounds, Theirs::Answer("2 0 2 0 2")),
            random: Random::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "true bounds without data",
            what: "some types without data have a true lower bound of 2^63 - 1 and a true extent of 1",
            section: "5.1.8",
            example: (
                "U1(HV:U2(0i):1:1:4)",
                Field::Bounds,
                Theirs::Answer("0 0 0 9223372036854775807 1"),
            ),
            random: Random::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "lower bound without data",
            what: "a member without data moves a struct's lower bound to its displacement",
            section: "5.1.7",
            example: ("U1(S:2:U2(S:0)/1/4,i/1/8)", Field::Bounds, Theirs::Answer("4 4 8 8 4")),
            random: Random::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "arrays without data",
            what: "MPI_Type_create_darray refuses a type of extent 0",
            section: "5.1.4",
            example: ("U1(DA:U2(S:0):C:1:0:1:2/B/*/1)", Field::Type, Theirs::Error),
            random: Random::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "padding by and by",
            what: "pads after each member of a struct or block, so that the extent depends on their order where one lies below \
                   the ones before it",
            section: "5.1.7",
            example: ("U1(S:3:d/1/8,c/1/16,c/1/7)", Field::Bounds, Theirs::Answer("10 7 24 7 10")),
            random: Random::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "a byte after a byte",
            what: "takes blocks of one byte at a stride of -1 for a row of bytes upwards",
            section: "5.1.2",
            example: ("U1(V:c:3:1:-1)", Field::Bounds, Theirs::Answer("3 0 3 0 3")),
            random: Random::Avoided,
        },
        Difference {
            library: OPEN_MPI,
            name: "blocks put together",
            what: "packs the last of several blocks from elsewhere, in one of some thousand types",
            section: "5.2",
            example: (
                "U1(S:4:U2(S:4:AI/1/3,P/1/20,AI/1/-12,L2/1/11)/1/0,cdC/1/42,cdC/1/58,U3(RZ:dC:-3:24)/2/84)",
                Field::Pack,
                Theirs::Answer(
                    "83 003e0021b9fcf6cb937c005efd8e1c001a0000fa00fb002f00009700005300000000c4000000004000970cb93f\
                     0000b90070ca9ea94ca87e99681300002ea14af7001b00e4860000c23e0000ca007704b00000",
                ),
            ),
            random: Random::Seldom(&[Field::Pack, Field::Unpack]),
        },
        Difference {
            library: OPEN_MPI,
            name: "elements of pairs",
            what: "MPI_Get_elements counts a pair as one basic element, though MPI defines it by MPI_Type_create_struct of two",
            section: "6.9.4",
            example: ("di", Field::Elements, Theirs::Answer("0/0,1/1,1/1,1/1")),
            random: Random::Unasked(&[Field::Elements], |case| case.leaves().any(is_pair)),
        },
        Difference {
            library: OPEN_MPI,
            name: "external32 of wchar_t",
            what: "packs MPI_WCHAR in 4 bytes; it has 2",
            section: "14.5.2",
            example: ("w", Field::External, Theirs::Answer("4 0000007c")),
            random: Random::External(|leaf| {
                (leaf == Basic::Wchar.into()).then(|| Ok(Basic::Uint32.into()))
            }),
        },
        Difference {
            library: OPEN_MPI,
            name: "external32 of long double",
            what: "reverses the 16 bytes of an x87 number instead of making a binary128; complex ones are right",
            section: "14.5.2",
            example: ("LD", Field::External, Theirs::Answer("16 00000000000000069a001c8efd5e007c")),
            random: Random::External(|leaf| {
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
            what: "converts the wrong bytes of complex long doubles that don't adjoin",
            section: "14.5.2",
            example: (
                "U1(V:ldC:2:1:2)",
                Field::External,
                Theirs::Answer(
                    "64 00063400391dfabc00f80000000000006b000000000000000126000000000000000100018800000000\
                     a60000000000005a5ab4b4b4b4b4b4b4b4000000000000",
                ),
            ),
            random: Random::Unasked(&[Field::External], |case| {
                use Basic::*;
                let complex = [CLongDoubleComplex, CxxLongDoubleComplex];
                case.leaves().any(|leaf| complex.iter().any(|&one| leaf == one.into()))
            }),
        },
        Difference {
            library: OPEN_MPI,
            name: "external32 of Fortran kinds",
            what: "packs an integer kind of a range from 10 to 18 as a long, in 4 bytes; it has 8",
            section: "14.5.2",
            example: ("U1(FI:12)", Field::External, Theirs::Answer("4 005e007c")),
            random: Random::External(|leaf| match leaf {
                Leaf::F90Integer { range: 10..=18 } => Some(Ok(Basic::Long.into())),
                _ => None,
            }),
        },
    ]
}

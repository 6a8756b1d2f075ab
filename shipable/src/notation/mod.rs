//! The text notation of datatypes: printed canonically, parsed, and described in words.
//!
//! Hart and Henderson proposed to the MPI Forum in 1995 to print MPI's types in a notation, whose definition is lost.
//! Strings that were printed with it survive. What they attest is marked with a star here; the rest is our
//! reconstruction.
//!
//! ```text
//! doc      = typeref
//! typeref  = basic | "U" nat "(" desc ")" | "U" nat        * the last refers back, within the same string only
//! desc     = nat typeref                                   * contiguous
//!          | "V:"   typeref ":" nat ":" nat ":" int        * vector           count:blocklength:stride, in extents
//!          | "HV:"  typeref ":" nat ":" nat ":" int        * hvector          stride in bytes
//!          | "X:"   typeref ":" nat [":" bd {"," bd}]      * indexed          blocklength/displacement, in extents
//!          | "HX:"  typeref ":" nat [":" bd {"," bd}]        hindexed         displacements in bytes
//!          | "S:"   nat [":" tbd {"," tbd}]                * struct           displacements in bytes
//!          | "XB:"  typeref ":" nat ":" nat [":" int {"," int}]
//!                                                            indexed_block    count:blocklength:displacements
//!          | "HXB:" as XB                                    hindexed_block   displacements in bytes
//!          | "SS:"  nat [":" tb {"," tb}]                    simple_struct    no displacements
//!          | "D:"   typeref                                  dup
//!          | "RZ:"  typeref ":" int ":" int                  resized          lb:extent
//!          | "SA:"  typeref ":" order ":" nat ":" dim {"," dim}
//!                                                            subarray         size/subsize/start
//!          | "DA:"  typeref ":" order ":" nat ":" nat ":" nat ":" dd {"," dd}
//!                                                            darray           size:rank:ndims:...
//!          | "FR:"  kind ":" kind | "FC:" kind ":" kind      f90 real, complex    precision:range
//!          | "FI:"  nat                                      f90 integer          range
//!          | "VI:"  typeref ":" typeref                      value_index
//! bd       = nat "/" int                                   *
//! tbd      = typeref "/" nat "/" int                       *
//! tb       = typeref "/" nat
//! order    = "C" | "F"
//! dim      = nat "/" nat "/" nat
//! dd       = nat "/" ("B" | "C" | "N") "/" (nat | "*") "/" nat    gsize/distribution/argument/psize, "*" the default;
//!                                                          after "N" also int, which is ignored
//! kind     = nat | "*"                                     "*" is undefined
//! int      = "0" | ["-"] nonzero {digit}                   nat: the same, unsigned
//! basic    = letter {letter | digit}                       never of the shape U[0-9]+
//! ```
//!
//! No number has a plus sign or a leading zero, and there are no blanks. The codes of the basic types are
//! [`Basic::code`](crate::Basic::code); `i d c f b P LD L R LB UB` are attested.
//!
//! **Printing** (`Display` of [`Datatype`](crate::Datatype)) is canonical: depth first, each derived type is numbered
//! from 1 where it is first used and referred back to by `U` and its number afterwards. Equal types print equal
//! strings, however their subtrees are shared. The notation has one text for MPI-1's constructors and their
//! successors (`MPI_TYPE_HVECTOR` of Fortran INTEGERs and `MPI_TYPE_CREATE_HVECTOR`), as it had in 1995: the
//! arguments and the types are the same, and MPI-3.0 removed the former's combiners. So what was made by
//! `hvector_integer`, `hindexed_integer` or `struct_integer` comes back as `hvector`, `hindexed` or `struct_`.
//!
//! **Parsing** ([`parse`], `FromStr` of [`Datatype`](crate::Datatype)) accepts any numbers. A number is defined once,
//! before it is referred to; a type can't contain itself. Equal types come back as one shared object only where the
//! text refers back. Parsing then printing is the identity on canonical text, and makes any other text canonical;
//! `VI:d:i`, for which MPI has a name, becomes `di`. Every argument is checked as the constructor checks it, every
//! product for overflow. The limits: [`MAX_TEXT`], [`MAX_LIST`], and a nesting of
//! [`Datatype::MAX_DEPTH`](crate::Datatype::MAX_DEPTH).
//!
//! **Describing** ([`Datatype::describe`](crate::Datatype::describe)) is for people: MPI's own words, one line for
//! each part.

mod classes;
mod describe;
mod parse;
mod print;

pub use crate::error::{ParseError, ParseProblem};
pub use crate::limits::{MAX_LIST, MAX_TEXT};
pub use describe::Description;
pub use parse::parse;

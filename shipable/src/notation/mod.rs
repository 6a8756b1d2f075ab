//! The text notation of datatypes: printed canonically, parsed, and described in words.
//!
//! Hart and Henderson proposed such a notation to the MPI Forum in 1995. Its definition is lost,
//! but strings in it survive. A star marks the rules that those strings attest; the other rules are
//! reconstructed.
//!
//! ```text
//! doc     = typeref
//! typeref = basic | "U" nat "(" desc ")"            *
//!         | "U" nat                                 * refers back, within one text only
//! desc    = nat typeref                             * contiguous
//!         | "V:" typeref ":" nat ":" nat ":" int    * vector: count:blocklength:stride
//!                                                     in extents
//!         | "HV:" typeref ":" nat ":" nat ":" int   * hvector: stride in bytes
//!         | "X:" typeref ":" nat [":" bd {"," bd}]  * indexed: displacements in extents
//!         | "HX:" typeref ":" nat [":" bd {"," bd}]   hindexed: displacements in bytes
//!         | "S:" nat [":" tbd {"," tbd}]            * struct: displacements in bytes
//!         | "XB:" typeref ":" nat ":" nat [":" int {"," int}]
//!                                                     indexed_block:
//!                                                     count:blocklength:displacements
//!         | "HXB:" typeref ":" nat ":" nat [":" int {"," int}]
//!                                                     hindexed_block: displacements in bytes
//!         | "SS:" nat [":" tb {"," tb}]               simple_struct: no displacements
//!         | "HVI:" ... | "HXI:" ... | "SI:" ...       as HV, HX and S: MPI-1's constructors, whose
//!                                                     addresses are Fortran INTEGERs
//!         | "D:" typeref                              dup
//!         | "RZ:" typeref ":" int ":" int             resized: lb:extent
//!         | "SA:" typeref ":" order ":" nat ":" dim {"," dim}
//!                                                     subarray: ndims:dimensions
//!         | "DA:" typeref ":" order ":" nat ":" nat ":" nat ":" dd {"," dd}
//!                                                     darray: size:rank:ndims:dimensions
//!         | "FR:" kind ":" kind                       f90_real: precision:range
//!         | "FC:" kind ":" kind                       f90_complex: precision:range
//!         | "FI:" nat                                 f90_integer: range
//!         | "VI:" typeref ":" typeref                 value_index
//! bd      = nat "/" int                             * blocklength/displacement
//! tbd     = typeref "/" nat "/" int                 * type/blocklength/displacement
//! tb      = typeref "/" nat                           type/blocklength
//! order   = "C" | "F"
//! dim     = nat "/" nat "/" nat                       size/subsize/start
//! dd      = nat "/" ("B" | "C" | "N") "/" (nat | "*") "/" nat
//!                                                     gsize/distribution/argument/psize;
//!                                                     "*" is the default argument; after
//!                                                     "N" it may be an int, and is ignored
//! kind    = nat | "*"                                 "*" is undefined
//! int     = "0" | ["-"] nonzero {digit}
//! nat     = "0" | nonzero {digit}
//! basic   = letter {letter | digit}                   never "U" and digits
//! ```
//!
//! No number has a plus sign or a leading zero, and there are no blanks. The codes of the basic
//! types are [`Basic::code`](crate::Basic::code); `i d c f b P LD L R LB UB` are attested.
//!
//! **Printing** (`Display` of [`Datatype`](crate::Datatype)) is canonical. Derived types are
//! numbered from 1, depth first, where they are first used; later uses are `U` and the number.
//! Equal types print equal texts, whether or not they share subtrees, and unequal types print
//! unequal texts.
//!
//! **Parsing** ([`parse`], `FromStr` of [`Datatype`](crate::Datatype)) accepts any type numbers. A
//! number is defined once, before it is referred to, and a type can't contain itself. Parsed types
//! share an object only where the text refers back. Printing a parsed text returns it if it is
//! canonical, and makes it canonical otherwise; `VI:d:i` becomes `di`, MPI's named pair. The
//! constructors check all arguments. The limits are [`MAX_TEXT`], [`MAX_LIST`], and a nesting depth
//! of [`Datatype::MAX_DEPTH`](crate::Datatype::MAX_DEPTH).
//!
//! **Describing** ([`Datatype::describe`](crate::Datatype::describe)) is for people: it uses MPI's
//! names, one line for each part.

mod calls;
mod classes;
mod describe;
mod parse;
mod pieces;
mod print;

pub use crate::error::{ParseError, ParseProblem};
pub use crate::limits::{MAX_LIST, MAX_TEXT};
pub use calls::Calls;
pub use describe::Description;
pub use parse::parse;

//! Flat forms: datatypes and communicators as lines of ASCII, which outlive the job that wrote them.
//!
//! The proposal of 1996 that `MPI_Pack` and `MPI_Unpack` take datatypes and communicators prints neither of the
//! tables that would define them, so both forms are ours:
//!
//! ```text
//! MDT1;TAG;LEN;ARCH;TEXT;CRC
//! MDT1;P;00000030;-;U1(3U2(SS:2:d/1,c/1));02f08a8e
//!
//! MCM1;LEN;JOB;CONTEXT;SIZE;ORDERED;UNORDERED;RUNS;ARCHITECTURES;CRC
//! ```
//!
//! - TAG: `P` for a portable datatype, `L` for one that is right on one architecture only. `F`, for a type that was
//!   itself received and is foreign here, is never written and is refused.
//! - LEN: of the whole, in bytes, as 8 lowercase hexadecimal digits. What comes after it is none of the form's business.
//! - ARCH: `-` for P; for L the descriptor of the architecture ([`Architecture::descriptor`]), which has to be the
//!   reader's own.
//! - TEXT: the [notation].
//! - CRC: CRC-32/ISO-HDLC of all before it, the last `;` included, as 8 lowercase hexadecimal digits.
//!
//! The fields of a communicator are described at [`CommunicatorDescription`].
//!
//! [`pack_size`], [`pack`] and [`unpack`] are for datatypes. Committing what was unpacked, null handles, positions in
//! a buffer and counts are the runtime's.

mod communicator;
mod frame;

pub use communicator::{CommunicatorDescription, Comparison};

use crate::arch::Architecture;
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result};
use crate::form;
use crate::notation;

pub use crate::error::FlatError;

const DATATYPE: &str = "MDT1;";
/// `MDT1;P;`
const LENGTH_AT: usize = 7;

/// The length of a datatype's flat form in bytes (`MPI_Pack_size` of a datatype and a null communicator).
///
/// # Errors
/// As [`pack`].
pub fn pack_size(datatype: &Datatype, here: &Architecture) -> Result<usize> {
    pack(datatype, here).map(|packed| packed.len())
}

/// The flat form of a datatype of this architecture (`MPI_Pack` of a datatype and a null communicator).
///
/// ```
/// use shipable::{Architecture, Datatype, flat};
/// let record = Datatype::simple_struct(&[1, 1], &[Datatype::double(), Datatype::char()])?;
/// let packed = flat::pack(&Datatype::contiguous(3, &record)?, &Architecture::X86_64)?;
/// assert_eq!(packed, "MDT1;P;00000030;-;U1(3U2(SS:2:d/1,c/1));02f08a8e");
///
/// // A portable type can be read anywhere; how many bytes were read says where the next object begins.
/// let (unpacked, length) = flat::unpack(packed.as_bytes(), &Architecture::S390X)?;
/// assert_eq!((unpacked.to_string().as_str(), length), ("U1(3U2(SS:2:d/1,c/1))", 0x30));
/// # Ok::<(), shipable::Error>(())
/// ```
///
/// # Errors
/// VALUE_TOO_LARGE for a type whose text is longer than what [`unpack`] reads ([`notation::MAX_TEXT`]).
pub fn pack(datatype: &Datatype, here: &Architecture) -> Result<String> {
    let text = datatype.to_string();
    if text.len() > notation::MAX_TEXT {
        return Err(Error::Argument {
            call: "pack",
            class: Class::ValueTooLarge,
            problem: format!(
                "the type's notation has {} bytes, at most {} can be unpacked: build it of fewer blocks",
                text.len(),
                notation::MAX_TEXT
            ),
        });
    }
    let (tag, architecture) = match form::culprit(datatype) {
        None => ('P', "-".to_string()),
        Some(_) => ('L', here.descriptor()),
    };
    Ok(frame::close(format!("{DATATYPE}{tag};"), &format!(";{architecture};{text};")))
}

/// Reads the flat form that begins with the first of these bytes, and says how long it is; more may follow it
/// (`MPI_Unpack` to a datatype with a null communicator). The caller commits what comes of it.
///
/// # Errors
/// [`Error::Flat`]: bytes that are none, or were damaged; a type that can't be used here because its tag is F, or
/// because it is L and of another architecture.
pub fn unpack(bytes: &[u8], here: &Architecture) -> Result<(Datatype, usize)> {
    Ok(read(bytes, here)?)
}

fn read(bytes: &[u8], here: &Architecture) -> Result<(Datatype, usize), FlatError> {
    let frame = frame::open(bytes, DATATYPE, LENGTH_AT)?;
    let mut fields = frame.fields();
    let tag = fields.next("tag")?;
    fields.next("length")?;
    let architecture = fields.next("architecture")?;
    let text = fields.next("text")?;
    fields.end()?;
    match tag {
        "P" | "L" => {}
        "F" => return Err(FlatError::Foreign),
        _ => return Err(field("tag", format!("`{tag}`: expected P, L or F"))),
    }
    let portable = tag == "P";
    match (portable, architecture) {
        (true, "-") => {}
        (true, other) => {
            return Err(field("architecture", format!("`{other}`: a portable type has `-`")));
        }
        (false, built) if built == here.descriptor() => {}
        (false, built) => {
            // What is no architecture at all deserves to be called that.
            if let Err(error) = Architecture::from_descriptor(built) {
                return Err(field("architecture", error.to_string()));
            }
            let (built, here) = (built.to_string(), here.descriptor());
            return Err(FlatError::OtherArchitecture { built, here });
        }
    }
    let datatype = notation::parse(text)?;
    match form::culprit(&datatype) {
        Some(culprit) if portable => {
            Err(FlatError::NotPortable { culprit: frame::excerpt(&culprit) })
        }
        _ => Ok((datatype, frame.length)),
    }
}

fn field(field: &'static str, problem: String) -> FlatError {
    FlatError::Field { field, problem }
}

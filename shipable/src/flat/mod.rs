//! Flat forms: datatypes and communicators as lines of ASCII that outlive the job that wrote them.
//!
//! Proposal 1 (docs/proposals.md) packs datatypes and communicators with `MPI_Pack` and
//! `MPI_Unpack`, but the tables that would define their format are lost. Longshore defines both
//! formats:
//!
//! ```text
//! MDT1;TAG;LEN;ARCH;TEXT;CRC
//! MDT1;P;00000030;-;U1(3U2(SS:2:d/1,c/1));02f08a8e
//!
//! MCM1;LEN;JOB;CONTEXT;SIZE;ORDERED;UNORDERED;RUNS;ARCHITECTURES;CRC
//! ```
//!
//! - TAG: `P` for a portable datatype, `L` for a datatype that is valid on one architecture only.
//!   `F`, for a type that was received from another process, is never written, and is refused.
//! - LEN: the length of the whole form in bytes, as 8 lowercase hexadecimal digits. Bytes after the
//!   form are ignored.
//! - ARCH: `-` for P; for L, the [descriptor](Architecture::descriptor) of the architecture, which
//!   must be the reader's.
//! - TEXT: the datatype's [notation].
//! - CRC: the CRC-32/ISO-HDLC of all bytes before it, including the last `;`, as 8 lowercase
//!   hexadecimal digits.
//!
//! [`CommunicatorDescription`] documents the fields of a communicator.
//!
//! [`pack_size`], [`pack`] and [`unpack`] are for datatypes.
//!
//! Left out: committing an unpacked type, null handles, buffer positions and counts, which belong
//! to the runtime.

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
/// The offset of LEN, after `MDT1;P;`.
const LENGTH_AT: usize = 7;

/// The length in bytes of a datatype's flat form (`MPI_Pack_size` of a datatype and a null
/// communicator).
///
/// # Errors
/// The errors of [`pack`].
pub fn pack_size(datatype: &Datatype, here: &Architecture) -> Result<usize> {
    pack(datatype, here).map(|packed| packed.len())
}

/// The flat form of a datatype on the architecture `here` (`MPI_Pack` of a datatype and a null
/// communicator).
///
/// ```
/// use shipable::{Architecture, Datatype, flat};
/// let record = Datatype::simple_struct(&[1, 1], &[Datatype::double(), Datatype::char()])?;
/// let packed = flat::pack(&Datatype::contiguous(3, &record)?, &Architecture::X86_64)?;
/// assert_eq!(packed, "MDT1;P;00000030;-;U1(3U2(SS:2:d/1,c/1));02f08a8e");
///
/// // Any architecture can read a portable type. The length is the offset of the next object.
/// let (unpacked, length) = flat::unpack(packed.as_bytes(), &Architecture::S390X)?;
/// assert_eq!((unpacked.to_string().as_str(), length), ("U1(3U2(SS:2:d/1,c/1))", 0x30));
/// # Ok::<(), shipable::Error>(())
/// ```
///
/// # Errors
/// VALUE_TOO_LARGE for a type whose notation is longer than [`notation::MAX_TEXT`], the longest
/// that [`unpack`] reads.
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

/// Reads the flat form at the start of `bytes`, and returns the datatype and the form's length.
/// More bytes may follow (`MPI_Unpack` to a datatype with a null communicator).
///
/// The datatype isn't committed.
///
/// # Errors
/// [`Error::Flat`] if there is no valid form, if its tag is F, or if its tag is L and its
/// architecture isn't `here`.
pub fn unpack(bytes: &[u8], here: &Architecture) -> Result<(Datatype, usize)> {
    Ok(read(bytes, here)?)
}

fn read(bytes: &[u8], here: &Architecture) -> Result<(Datatype, usize), FlatError> {
    let form = frame::open(bytes, DATATYPE, LENGTH_AT)?;
    let mut fields = form.fields();
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
            // An invalid descriptor gets its own error, before the mismatch.
            let built = Architecture::from_descriptor(built)
                .map_err(|error| field("architecture", error.to_string()))?;
            return Err(FlatError::OtherArchitecture { built: built.label(), here: here.label() });
        }
    }
    let datatype = notation::parse(text)?;
    match form::culprit(&datatype) {
        Some(culprit) if portable => {
            Err(FlatError::NotPortable { culprit: frame::excerpt(&culprit) })
        }
        _ => Ok((datatype, form.length)),
    }
}

fn field(field: &'static str, problem: String) -> FlatError {
    FlatError::Field { field, problem }
}

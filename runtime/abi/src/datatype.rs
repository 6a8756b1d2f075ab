//! Datatypes (MPI-5.0 section 5.1).

use std::sync::{Arc, OnceLock};

use longshore::shipable::Basic;
use longshore::{Class, Datatype};

use crate::constants as c;
use crate::fault::{Fault, Result};
use crate::handle::{Handle, Kind, Object};
use crate::object::Card;
use crate::state;

/// A datatype, and its compiled form once it is committed.
pub struct Type {
    datatype: Datatype,
    committed: OnceLock<longshore::Type>,
    card: Card,
}

/// The predefined types, by the low byte of their handles.
static PREDEFINED: [OnceLock<Arc<Type>>; 256] = [const { OnceLock::new() }; 256];

impl Object for Type {
    const KIND: Kind = Kind::Type;
    const CLASS: Class = Class::Type;
    const NULL: Handle = c::DATATYPE_NULL;

    fn predefined(handle: Handle) -> Option<Arc<Type>> {
        let place = PREDEFINED.get(handle.number().checked_sub(c::DATATYPE_NULL.number())?)?;
        if let Some(known) = place.get() {
            return Some(known.clone());
        }
        let basic = basic(handle)?;
        let made = Type::new(basic.into(), Card::named(basic.mpi_name()));
        Some(place.get_or_init(|| Arc::new(made)).clone())
    }
}

/// The predefined type of a handle.
fn basic(handle: Handle) -> Option<Basic> {
    HANDLES.iter().find(|(known, _)| *known == handle).map(|(_, basic)| *basic)
}

impl Type {
    pub fn new(datatype: Datatype, card: Card) -> Type {
        Type { datatype, committed: OnceLock::new(), card }
    }

    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Its compiled form.
    ///
    /// # Errors
    /// TYPE for a type that isn't committed.
    pub fn committed(&self) -> Result<&longshore::Type> {
        match self.committed.get() {
            Some(committed) => Ok(committed),
            None if self.datatype.as_basic().is_some() => self.commit(),
            None => Err(Fault::new(
                Class::Type,
                format!("{} isn't committed: call MPI_Type_commit first", self.datatype),
            )),
        }
    }

    /// Compiles it, unless it is compiled already.
    pub fn commit(&self) -> Result<&longshore::Type> {
        if let Some(committed) = self.committed.get() {
            return Ok(committed);
        }
        let committed = state::state()?.rank().commit(&self.datatype)?;
        Ok(self.committed.get_or_init(|| committed))
    }
}

pub fn aint_add(base: i64, displacement: i64) -> isize {
    longshore::address::sum(base, displacement) as isize
}

pub fn aint_diff(one: i64, other: i64) -> isize {
    longshore::address::difference(one, other) as isize
}

/// The handles of the predefined types.
const HANDLES: &[(Handle, Basic)] = &[
    (c::CHAR, Basic::Char),
    (c::SIGNED_CHAR, Basic::SignedChar),
    (c::UNSIGNED_CHAR, Basic::UnsignedChar),
    (c::BYTE, Basic::Byte),
    (c::PACKED, Basic::Packed),
    (c::WCHAR, Basic::Wchar),
    (c::SHORT, Basic::Short),
    (c::UNSIGNED_SHORT, Basic::UnsignedShort),
    (c::INT, Basic::Int),
    (c::UNSIGNED, Basic::Unsigned),
    (c::LONG, Basic::Long),
    (c::UNSIGNED_LONG, Basic::UnsignedLong),
    (c::LONG_LONG, Basic::LongLong),
    (c::UNSIGNED_LONG_LONG, Basic::UnsignedLongLong),
    (c::FLOAT, Basic::Float),
    (c::DOUBLE, Basic::Double),
    (c::LONG_DOUBLE, Basic::LongDouble),
    (c::C_BOOL, Basic::CBool),
    (c::INT8_T, Basic::Int8),
    (c::INT16_T, Basic::Int16),
    (c::INT32_T, Basic::Int32),
    (c::INT64_T, Basic::Int64),
    (c::UINT8_T, Basic::Uint8),
    (c::UINT16_T, Basic::Uint16),
    (c::UINT32_T, Basic::Uint32),
    (c::UINT64_T, Basic::Uint64),
    (c::AINT, Basic::Aint),
    (c::COUNT, Basic::Count),
    (c::OFFSET, Basic::Offset),
    (c::C_FLOAT_COMPLEX, Basic::CFloatComplex),
    (c::C_DOUBLE_COMPLEX, Basic::CDoubleComplex),
    (c::C_LONG_DOUBLE_COMPLEX, Basic::CLongDoubleComplex),
    (c::INTEGER, Basic::Integer),
    (c::REAL, Basic::Real),
    (c::DOUBLE_PRECISION, Basic::DoublePrecision),
    (c::COMPLEX, Basic::Complex),
    (c::DOUBLE_COMPLEX, Basic::DoubleComplex),
    (c::LOGICAL, Basic::Logical),
    (c::CHARACTER, Basic::Character),
    (c::INTEGER1, Basic::Integer1),
    (c::INTEGER2, Basic::Integer2),
    (c::INTEGER4, Basic::Integer4),
    (c::INTEGER8, Basic::Integer8),
    (c::INTEGER16, Basic::Integer16),
    (c::REAL2, Basic::Real2),
    (c::REAL4, Basic::Real4),
    (c::REAL8, Basic::Real8),
    (c::REAL16, Basic::Real16),
    (c::LOGICAL1, Basic::Logical1),
    (c::LOGICAL2, Basic::Logical2),
    (c::LOGICAL4, Basic::Logical4),
    (c::LOGICAL8, Basic::Logical8),
    (c::LOGICAL16, Basic::Logical16),
    (c::COMPLEX4, Basic::Complex4),
    (c::COMPLEX8, Basic::Complex8),
    (c::COMPLEX16, Basic::Complex16),
    (c::COMPLEX32, Basic::Complex32),
    (c::FLOAT_INT, Basic::FloatInt),
    (c::DOUBLE_INT, Basic::DoubleInt),
    (c::LONG_INT, Basic::LongInt),
    (c::N2INT, Basic::TwoInt),
    (c::SHORT_INT, Basic::ShortInt),
    (c::LONG_DOUBLE_INT, Basic::LongDoubleInt),
    (c::N2REAL, Basic::TwoReal),
    (c::N2DOUBLE_PRECISION, Basic::TwoDoublePrecision),
    (c::N2INTEGER, Basic::TwoInteger),
    (c::CXX_BOOL, Basic::CxxBool),
    (c::CXX_FLOAT_COMPLEX, Basic::CxxFloatComplex),
    (c::CXX_DOUBLE_COMPLEX, Basic::CxxDoubleComplex),
    (c::CXX_LONG_DOUBLE_COMPLEX, Basic::CxxLongDoubleComplex),
];

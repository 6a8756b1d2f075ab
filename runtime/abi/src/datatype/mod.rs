//! Datatypes: their objects and handles (MPI-5.0 section 5.1).
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | [`Type`], the object behind a handle |
//! | [`constructor`] | the functions that make, commit and free datatypes |
//! | [`query`] | those that ask for what a datatype is, and how much of it was received |
//! | [`pack`] | packing (sections 5.2 and 5.3) |
//! | [`described`] | packed datatypes and communicators (proposal 1, docs/proposals.md) |
//! | [`foreign`], [`extension`], [`freed`] | types of another rank; Longshore's functions; free handlers |

pub(crate) mod constructor;
pub(crate) mod described;
pub(crate) mod extension;
pub(crate) mod foreign;
pub(crate) mod freed;
pub(crate) mod pack;
pub(crate) mod query;

use std::ffi::{c_char, c_int};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use longshore::shipable::contents::Counts;
use longshore::shipable::datatype::Combiner;
use longshore::shipable::{Architecture, Basic};
use longshore::{Bounds, Class, Datatype};

use crate::edge::arg::{Address, Width};
use crate::edge::elements::Elements;
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{self, Handle, Kind, Object, borrow_object, find, insert};
use crate::edge::lock::lock;
use crate::edge::{constants as c, made, state};
use crate::objects::keyval::{Attributes, Holder};
use crate::objects::object::Card;

/// The integer that a char is here.
pub const NUMBER_OF_CHAR: Handle = if c_char::MIN == 0 { c::UNSIGNED_CHAR } else { c::SIGNED_CHAR };

/// A datatype, and its compiled form once it is committed.
pub struct Type {
    datatype: Datatype,
    version: Arc<Version>,
    committed: OnceLock<longshore::Type>,
    card: Card,
    /// Whether it exists as long as the job, as predefined types do.
    is_permanent: bool,
}

/// The version of the constructor that made a type, and those of its children. Envelopes and
/// contents are the arguments of that version (MPI-5.0 section 5.1.13).
pub struct Version {
    pub width: Width,
    pub children: Vec<Arc<Version>>,
}

impl Version {
    /// Of a constructor's result. What has no counts is of either version.
    pub fn new<'a>(width: Width, children: impl IntoIterator<Item = &'a Type>) -> Arc<Version> {
        let children = children.into_iter().map(|child| child.version.clone()).collect();
        Arc::new(Version { width, children })
    }

    /// Of a datatype that no constructor of the program made.
    fn of(datatype: &Datatype) -> Result<Arc<Version>> {
        let width = match datatype.envelope(Counts::Int) {
            Ok(_) => Width::Int,
            Err(_) => Width::Large,
        };
        let parts = datatype.node().children().iter().map(Version::of);
        Ok(Arc::new(Version { width, children: parts.collect::<Result<_>>()? }))
    }
}

/// The predefined types, by the low byte of their handles.
static PREDEFINED: [OnceLock<Arc<Type>>; 256] = [const { OnceLock::new() }; 256];

/// The compiled forms of the predefined types, by the low byte of their handles. The quick way
/// finds one here by one look.
static COMPILED: [OnceLock<&'static longshore::Type>; 256] = [const { OnceLock::new() }; 256];

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
        let card = Card::named(basic.mpi_name());
        let made = Type {
            card,
            is_permanent: true,
            ..Type::new(basic.into(), Version::new(Width::Int, []))
        };
        Some(place.get_or_init(|| Arc::new(made)).clone())
    }
}

/// The predefined type of a handle.
fn basic(handle: Handle) -> Option<Basic> {
    HANDLES.iter().find(|(known, _)| *known == handle).map(|(_, basic)| *basic)
}

impl Holder for Type {
    fn attributes(&self) -> MutexGuard<'_, Attributes> {
        self.card.attributes()
    }

    fn predefined_attribute(&self, _: c_int) -> Option<Address> {
        None
    }
}

/// The compiled form of a handle's type, if it is there already. Takes no reference.
#[inline(always)]
pub fn compiled(handle: Handle) -> Option<&'static longshore::Type> {
    match (known(handle), handle.is_predefined()) {
        (Some(compiled), _) => Some(compiled),
        (None, true) => compiled_first(handle),
        (None, false) => None,
    }
}

/// The compiled form of a handle's type, if it was asked for before. Calls no other function.
#[inline(always)]
pub fn known(handle: Handle) -> Option<&'static longshore::Type> {
    match handle.is_predefined() {
        true => {
            COMPILED.get(handle.number().wrapping_sub(c::DATATYPE_NULL.number()))?.get().copied()
        }
        false => borrow_object::<Type>(handle)?.committed.get(),
    }
}

/// The compiled form of a predefined type, when it is first asked for.
#[cold]
#[inline(never)]
fn compiled_first(handle: Handle) -> Option<&'static longshore::Type> {
    let at = handle.number().wrapping_sub(c::DATATYPE_NULL.number());
    let compiled = PREDEFINED.get(at)?.get()?.committed.get()?;
    Some(COMPILED.get(at)?.get_or_init(|| compiled))
}

/// The bytes of a predefined type's values on this machine. `None` if there is no such type. Asks
/// for no state, so that it may be called before MPI_Init.
pub fn size_here(handle: Handle) -> Option<i64> {
    let bounds = Datatype::from(basic(handle)?).bounds(&Architecture::NATIVE);
    bounds.ok().map(|bounds| bounds.size)
}

/// The elements of a message. The null process exchanges nothing, so with it their type may be
/// null.
///
/// # Errors
/// TYPE for another null type, or one that isn't committed.
pub fn of_message(
    data: Elements<Option<&Type>>,
    peer: c_int,
) -> Result<Elements<&longshore::Type>> {
    let datatype = match data.datatype {
        Some(datatype) => datatype.committed(),
        None if peer == c::PROC_NULL => {
            static NOTHING: OnceLock<Arc<Type>> = OnceLock::new();
            let byte = find::<Type>(c::BYTE)?;
            NOTHING.get_or_init(|| byte).committed()
        }
        None => {
            let what = "the handle is null: only messages of MPI_PROC_NULL need no datatype";
            Err(Fault::new(Class::Type, what.to_owned()))
        }
    };
    Ok(data.of(datatype?))
}

impl Type {
    fn new(datatype: Datatype, version: Arc<Version>) -> Type {
        let (committed, card) = (OnceLock::new(), Card::default());
        Type { datatype, version, committed, card, is_permanent: false }
    }

    /// Whether it is one of the types that exist as long as the job.
    pub fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// The version of its constructor.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The version of its constructor, for a type that is made of it.
    pub fn shared_version(&self) -> &Arc<Version> {
        &self.version
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
            None if self.is_permanent => self.commit(),
            None => Err(Fault::new(
                Class::Type,
                format!("{} isn't committed: call MPI_Type_commit first", self.datatype.calls()),
            )),
        }
    }

    /// Its bounds in this process's memory.
    pub fn bounds(&self) -> Result<Bounds> {
        match self.committed.get() {
            Some(committed) => Ok(committed.bounds()),
            None => Ok(self.datatype.bounds(state::state()?.rank().architecture())?),
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

/// A handle of a new type.
pub fn made(datatype: Datatype, version: Arc<Version>) -> Result<Handle> {
    insert(Arc::new(Type::new(datatype, version)))
}

/// A handle of a type that was unpacked. Its contents have ints, unless a number of it is too large
/// for one.
pub fn unpacked(committed: longshore::Type) -> Result<Handle> {
    let datatype = committed.datatype().clone();
    if datatype.as_basic().is_some() || is_parametrised(&datatype) {
        return permanent(datatype);
    }
    let version = Version::of(&datatype)?;
    let own = Type::new(datatype, version);
    own.committed.get_or_init(|| committed);
    insert(Arc::new(own))
}

/// A handle of the dup of a type, with the card that it is to have.
pub fn dup(old: &Type, card: Card) -> Result<Handle> {
    let mut dup = Type::new(Datatype::dup(&old.datatype)?, Version::new(Width::Int, [old]));
    dup.card = card;
    if old.is_permanent || old.committed.get().is_some() {
        dup.commit()?;
    }
    insert(Arc::new(dup))
}

/// Whether MPI defines a type by parameters.
pub fn is_parametrised(datatype: &Datatype) -> bool {
    matches!(
        datatype.combiner(),
        Combiner::F90Real | Combiner::F90Complex | Combiner::F90Integer | Combiner::ValueIndex
    )
}

/// The handle of a type that MPI defines by parameters. It is one handle for equal types, and can't
/// be freed.
pub fn permanent(datatype: Datatype) -> Result<Handle> {
    if let Some(basic) = datatype.as_basic() {
        return Ok(handle_of(basic));
    }
    static KNOWN: Mutex<Vec<(Datatype, Handle)>> = Mutex::new(Vec::new());
    let mut known = lock(&KNOWN);
    if let Some((_, handle)) = known.iter().find(|(known, _)| *known == datatype) {
        return Ok(*handle);
    }
    let version = Version::new(Width::Int, []);
    let own = Type { is_permanent: true, ..Type::new(datatype.clone(), version) };
    own.commit()?;
    let handle = insert(Arc::new(own))?;
    if let Some(slot) = handle::number_of(handle) {
        made::forget(slot);
    }
    known.push((datatype, handle));
    Ok(handle)
}

/// The handle of a predefined type.
pub fn handle_of(basic: Basic) -> Handle {
    let known = HANDLES.iter().find(|(_, known)| *known == basic);
    known.map_or(c::DATATYPE_NULL, |(handle, _)| *handle)
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

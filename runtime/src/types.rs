//! Types as a rank uses them: committed ones of its own, and foreign ones that another process built.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use shipable::{Architecture, Bounds, Committed, Datatype, Element, Form, Program, Signature, Tag};

use crate::error::{ErrorKind, Result};

/// A committed datatype of a rank (MPI-5.0 section 5.1.9), made by [`Rank::commit`](crate::Rank::commit).
///
/// Cloning shares it. When its last clone goes, peers forget its form.
///
/// ```
/// let rank = longshore::init()?;
/// let column = rank.commit(&longshore::Datatype::vector(8, 1, 10, &longshore::Datatype::double())?)?;
/// assert_eq!(column.to_string(), "U1(V:d:8:1:10)");
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone)]
pub struct Type(Arc<OwnType>);

struct OwnType {
    committed: Committed,
    identity: Identity,
    /// The Rust type that it was made of.
    element: Option<TypeId>,
    /// Bounds elsewhere, as asked for.
    bounds: Mutex<Vec<(Architecture, Bounds)>>,
}

/// A type that another process built and sent with [`type_send`](crate::Communicator::type_send).
///
/// It is locale-specific to its builder: good as the target type of an operation on that process, and for nothing else.
/// Cloning shares it.
#[derive(Clone)]
pub struct ForeignType(Arc<ForeignParts>);

struct ForeignParts {
    form: Form,
    signature: Signature,
    /// What its builder prints it as.
    text: String,
    builder: u32,
    identity: Identity,
    native: OnceLock<shipable::Result<Arc<Program>>>,
}

/// What names a type's form on the wire. Numbers increase and are never used again.
struct Identity {
    id: u64,
    shipped: OnceLock<Arc<[u8]>>,
    names: Arc<Names>,
}

impl Drop for Identity {
    fn drop(&mut self) {
        // Only forms that were shipped are known anywhere.
        if self.shipped.get().is_some() {
            self.names.retired.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
            self.names.retirements.fetch_add(1, Ordering::Release);
        }
    }
}

/// The names that a rank gives to forms, and those that have gone out of use.
#[derive(Default)]
pub(crate) struct Names {
    last: AtomicU64,
    retired: Mutex<Vec<u64>>,
    retirements: AtomicU64,
}

impl Names {
    fn next(self: &Arc<Self>) -> Identity {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        Identity { id, shipped: OnceLock::new(), names: self.clone() }
    }

    /// How many names have gone out of use so far: costs nothing to look at.
    pub(crate) fn retirements(&self) -> u64 {
        self.retirements.load(Ordering::Acquire)
    }

    /// The names that went out of use since the last call.
    pub(crate) fn take_retired(&self) -> Vec<u64> {
        std::mem::take(&mut self.retired.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Type {
    pub(crate) fn new(
        names: &Arc<Names>,
        datatype: &Datatype,
        architecture: &Architecture,
        element: Option<TypeId>,
    ) -> Result<Type> {
        let committed = Committed::new(datatype, architecture)?;
        Ok(Type(Arc::new(OwnType {
            committed,
            identity: names.next(),
            element,
            bounds: Mutex::default(),
        })))
    }

    /// The constructors that it was made with.
    pub fn datatype(&self) -> &Datatype {
        self.0.committed.datatype()
    }

    /// Its shipable form.
    pub fn form(&self) -> &Form {
        self.0.committed.form()
    }

    /// Whether it is portable, hence good as target type anywhere.
    pub fn tag(&self) -> Tag {
        self.0.committed.tag()
    }

    /// Lower and upper bound, true ones too, and size, in this rank's memory.
    pub fn bounds(&self) -> Bounds {
        *self.0.committed.bounds()
    }

    /// The distance in bytes from one to the next in this rank's memory.
    pub fn extent(&self) -> i64 {
        self.0.committed.bounds().extent()
    }

    /// Its type signature.
    pub fn signature(&self) -> Signature {
        self.0.committed.signature()
    }

    #[inline]
    pub(crate) fn committed(&self) -> &Committed {
        &self.0.committed
    }

    #[inline]
    pub(crate) fn native(&self) -> &Program {
        self.0.committed.native()
    }

    pub(crate) fn program(&self, stream: &Architecture) -> Result<Arc<Program>> {
        Ok(self.0.committed.program(stream)?)
    }

    #[inline]
    pub(crate) fn is_portable(&self) -> bool {
        matches!(self.0.committed.tag(), Tag::Portable)
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.0.identity.id
    }

    #[inline]
    pub(crate) fn element(&self) -> Option<TypeId> {
        self.0.element
    }

    fn bounds_on(&self, architecture: &Architecture) -> Result<Bounds> {
        let mut known = self.0.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bounds)) = known.iter().find(|(at, _)| at == architecture) {
            return Ok(*bounds);
        }
        let bounds = self.form().bounds(architecture)?;
        known.push((*architecture, bounds));
        Ok(bounds)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.datatype().fmt(f)
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Type({self})")
    }
}

impl ForeignType {
    pub(crate) fn new(names: &Arc<Names>, form: Form, text: String, builder: u32) -> Result<Self> {
        let signature = form.signature()?;
        Ok(ForeignType(Arc::new(ForeignParts {
            form,
            signature,
            text,
            builder,
            identity: names.next(),
            native: OnceLock::new(),
        })))
    }

    /// The process that built it: its rank in the job.
    pub fn builder(&self) -> u32 {
        self.0.builder
    }

    /// Its form, in the builder's bytes.
    pub fn form(&self) -> &Form {
        &self.0.form
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.0.identity.id
    }

    fn native(&self, architecture: &Architecture) -> Result<Arc<Program>> {
        let lowered = self
            .0
            .native
            .get_or_init(|| self.0.form.lower(architecture, architecture).map(Arc::new));
        Ok(lowered.clone()?)
    }
}

/// As its builder prints it.
impl fmt::Display for ForeignType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for ForeignType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignType({self} of process {})", self.builder())
    }
}

/// What may describe data in the target's window: a type of the rank's own, or a foreign one.
#[derive(Clone, Copy, Debug)]
pub enum TargetType<'a> {
    /// Committed here. It has to be portable, but see [`TargetTypes`](crate::TargetTypes).
    Own(&'a Type),
    /// Built at the target.
    Foreign(&'a ForeignType),
}

impl<'a> From<&'a Type> for TargetType<'a> {
    #[inline]
    fn from(own: &'a Type) -> TargetType<'a> {
        TargetType::Own(own)
    }
}

impl<'a> From<&'a ForeignType> for TargetType<'a> {
    #[inline]
    fn from(foreign: &'a ForeignType) -> TargetType<'a> {
        TargetType::Foreign(foreign)
    }
}

/// A form that is about to be named to a peer.
pub(crate) struct Shipment {
    pub id: u64,
    pub tag: Tag,
    /// The process for which a locale-specific form is right.
    pub builder: u32,
    pub bytes: Arc<[u8]>,
}

impl TargetType<'_> {
    pub(crate) fn id(&self) -> u64 {
        match self {
            TargetType::Own(own) => own.id(),
            TargetType::Foreign(foreign) => foreign.id(),
        }
    }

    pub(crate) fn signature(&self) -> Signature {
        match self {
            TargetType::Own(own) => own.signature(),
            TargetType::Foreign(foreign) => foreign.0.signature,
        }
    }

    /// Bounds in the memory of a target.
    pub(crate) fn bounds_on(&self, architecture: &Architecture) -> Result<Bounds> {
        match self {
            TargetType::Own(own) => own.bounds_on(architecture),
            TargetType::Foreign(foreign) => Ok(foreign.0.form.bounds(architecture)?),
        }
    }

    /// Does something with its program in the memory of a target whose representation is this rank's, `architecture`.
    pub(crate) fn with_native<R>(
        &self,
        architecture: &Architecture,
        run: impl FnOnce(&Program) -> Result<R>,
    ) -> Result<R> {
        match self {
            TargetType::Own(own) => run(own.native()),
            TargetType::Foreign(foreign) => run(&*foreign.native(architecture)?),
        }
    }

    /// Whether `count` of them touch a byte twice.
    pub(crate) fn overlaps(&self, count: u64) -> Result<bool> {
        match self {
            TargetType::Own(own) => Ok(own.native().overlaps(count)),
            TargetType::Foreign(foreign) => {
                let built = foreign.0.form.builder_architecture();
                let architecture = built.copied().unwrap_or(Architecture::NATIVE);
                Ok(foreign.native(&architecture)?.overlaps(count))
            }
        }
    }

    /// What a peer has to be told before it hears this type's id.
    pub(crate) fn shipment(&self, rank: u32) -> Shipment {
        let (identity, form, builder) = match self {
            TargetType::Own(own) => (&own.0.identity, own.form(), rank),
            TargetType::Foreign(foreign) => {
                (&foreign.0.identity, foreign.form(), foreign.builder())
            }
        };
        let bytes = identity.shipped.get_or_init(|| form.encode().into()).clone();
        Shipment { id: identity.id, tag: form.tag(), builder, bytes }
    }
}

impl fmt::Display for TargetType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetType::Own(own) => own.fmt(f),
            TargetType::Foreign(foreign) => foreign.fmt(f),
        }
    }
}

/// The types of Rust's elements, committed on first use.
pub(crate) struct Elements {
    names: Arc<Names>,
    architecture: Architecture,
    known: Mutex<HashMap<TypeId, (Type, Type)>>,
}

impl Elements {
    pub(crate) fn new(names: Arc<Names>, architecture: Architecture) -> Elements {
        Elements { names, architecture, known: Mutex::default() }
    }

    /// `T` in the memory of Rust's slices: the machine's own representation.
    pub(crate) fn in_slices<T: Element>(&self) -> Result<Type> {
        self.find::<T>().map(|(slices, _)| slices)
    }

    /// `T` in the rank's representation.
    pub(crate) fn in_memory<T: Element>(&self) -> Result<Type> {
        self.find::<T>().map(|(_, memory)| memory)
    }

    fn find<T: Element>(&self) -> Result<(Type, Type)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(both) = known.get(&TypeId::of::<T>()) {
            return Ok(both.clone());
        }
        // A struct's offsets are those of this machine; where its members follow C's rules they can be found on others.
        let portable = T::simple();
        let element = Some(TypeId::of::<T>());
        let slices = Type::new(&self.names, &T::datatype(), &Architecture::NATIVE, element)?;
        let native = self.architecture.same_representation(&Architecture::NATIVE);
        let memory = match portable {
            Some(portable) => Type::new(&self.names, &portable, &self.architecture, element)?,
            None if native => slices.clone(),
            None => {
                return Err(ErrorKind::LocaleTarget {
                    datatype: slices.to_string(),
                    culprit: slices.form().culprit().map(Datatype::to_string).unwrap_or_default(),
                    hint: "; only structs that follow C's layout rules have a place in an emulated representation",
                }
                .into());
            }
        };
        known.insert(TypeId::of::<T>(), (slices.clone(), memory.clone()));
        Ok((slices, memory))
    }
}

//! Datatypes as a rank uses them: its own committed types, and foreign types that another process
//! built.

mod elements;

use std::any::TypeId;
use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use shipable::{
    Architecture, Bounds, Committed, Datatype, Element, Form, Leaf, Program, Relation,
    SharedProgram, Signature, Tag,
};

use shipable::reduce::{Op, Reduction};
use shipable::relation::Difference;

use crate::dropped::Dropped;
use crate::error::{Error, ErrorKind, Result, excerpt, type_text};
use crate::object::{Cacheable, Card, Names, attributes, sealed};

pub use elements::ElementType;
pub(crate) use elements::Elements;

/// A committed datatype of a rank (MPI-5.0 section 5.1.9), made by
/// [`Rank::commit`](crate::Rank::commit).
///
/// A clone is the same type: it shares name and attributes. A [`dup`](Type::dup) has a name and
/// attributes of its own, and shares only the compiled programs.
///
/// When the last clone is dropped, the attributes are deleted. When the last dup is dropped too,
/// the peers drop the type's form.
///
/// ```
/// let rank = longshore::init()?;
/// let column = longshore::Datatype::vector(8, 1, 10, &longshore::Datatype::double())?;
/// let column = rank.commit(&column)?;
/// assert_eq!(column.to_string(), "U1(V:d:8:1:10)");
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// ```
/// # let rank = longshore::init()?;
/// use longshore::{Datatype, Tag};
///
/// let pair = rank.commit(&Datatype::contiguous(2, &Datatype::double())?)?;
/// assert_eq!((pair.extent(), pair.bounds().size, pair.signature().count), (16, 16, 2));
/// assert_eq!((pair.tag(), pair.form().tag()), (Tag::Portable, Tag::Portable));
/// let other = pair.dup()?;
/// assert_eq!(other.datatype().to_string(), "U1(D:U2(2d))");
/// other.free()?;
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone)]
pub struct Type {
    compiled: Arc<Compiled>,
    card: Arc<Card>,
}

/// A Rust type that a datatype describes.
#[derive(Clone, Copy)]
pub(crate) struct RustType {
    id: TypeId,
    /// Its [`Element::item_names`], which errors take the names of fields from.
    items: fn() -> String,
}

impl RustType {
    pub(crate) fn of<T: Element>() -> RustType {
        RustType { id: TypeId::of::<T>(), items: T::item_names }
    }
}

/// The result of a commit, shared by all dups of a type.
pub(crate) struct Compiled {
    committed: Committed,
    identity: Identity,
    /// The Rust type of its elements, if it describes a Rust type or a predefined one; otherwise
    /// [`NoElement`].
    element: TypeId,
    elsewhere: Elsewhere,
    /// The common predefined type of all items, if there is one; determined at its first use.
    leaf: OnceLock<Option<Leaf>>,
    /// How predefined operations combine its items in this rank's memory, in the order of the
    /// operations; determined at their first use.
    reductions: OnceLock<Box<[OnceLock<Reduction>; Op::ALL.len()]>>,
}

/// Bounds in other representations, computed at their first use.
#[derive(Default)]
struct Elsewhere(Mutex<Vec<(Architecture, Bounds)>>);

/// A type that another process built and sent with [`type_send`](crate::Communicator::type_send).
///
/// It is locale-specific to its builder: it can only be the target type of an operation on that
/// process. A clone is the same type: it shares name and attributes.
#[derive(Clone)]
pub struct ForeignType {
    parts: Arc<ForeignParts>,
    card: Arc<Card>,
}

struct ForeignParts {
    form: Form,
    signature: Signature,
    /// The type as its builder's language has it.
    text: String,
    builder: u32,
    identity: Identity,
    native: OnceLock<shipable::Result<SharedProgram>>,
    elsewhere: Elsewhere,
}

/// The id of a type's form on the wire. Ids increase and are never reused.
struct Identity {
    id: u64,
    shipped: OnceLock<Shipped>,
    names: Arc<Names>,
}

/// A form as it is shipped, with the names of its items.
#[derive(Clone)]
struct Shipped {
    bytes: Arc<[u8]>,
    /// The bytes of the names, at the end.
    names: u64,
}

impl Identity {
    fn new(names: &Arc<Names>) -> Identity {
        Identity { id: names.next(), shipped: OnceLock::new(), names: names.clone() }
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        // Peers know only forms that were shipped.
        if self.shipped.get().is_some() {
            self.names.dropped().push(Dropped::Form(self.id));
        }
    }
}

impl Compiled {
    pub(crate) fn new(
        names: &Arc<Names>,
        datatype: &Datatype,
        architecture: &Architecture,
        element: Option<RustType>,
    ) -> Result<Arc<Compiled>> {
        let committed = match element {
            Some(rust) => Committed::of_fields(datatype, architecture, rust.items),
            None => Committed::new(datatype, architecture),
        };
        Ok(Arc::new(Compiled {
            committed: committed?,
            identity: Identity::new(names),
            element: element.map_or_else(|| element_of(datatype), |rust| rust.id),
            elsewhere: Elsewhere::default(),
            leaf: OnceLock::new(),
            reductions: OnceLock::new(),
        }))
    }

    /// The common predefined type of all items, if there is one.
    pub(crate) fn single_leaf(&self) -> Option<Leaf> {
        *self.leaf.get_or_init(|| self.form().single_leaf())
    }

    /// How an operation combines items in this rank's memory, which are all of one predefined type.
    ///
    /// # Errors
    /// OP for an operation that isn't defined on the type.
    pub(crate) fn reduction(&self, op: Op, leaf: Leaf) -> Result<Reduction> {
        let all =
            self.reductions.get_or_init(|| Box::new([const { OnceLock::new() }; Op::ALL.len()]));
        let known = &all[usize::from(op.wire()) - 1];
        if let Some(reduction) = known.get() {
            return Ok(*reduction);
        }
        let reduction = Reduction::new(op, leaf, self.committed.architecture())?;
        Ok(*known.get_or_init(|| reduction))
    }

    pub(crate) fn datatype(&self) -> &Datatype {
        self.committed.datatype()
    }

    pub(crate) fn committed(&self) -> &Committed {
        &self.committed
    }

    pub(crate) fn form(&self) -> &Form {
        self.committed.form()
    }

    pub(crate) fn tag(&self) -> Tag {
        self.committed.tag()
    }

    #[inline]
    pub(crate) fn bounds(&self) -> Bounds {
        *self.committed.bounds()
    }

    /// The bounds in the memory of an architecture, for which the displacements in bytes are right.
    fn bounds_on(&self, architecture: &Architecture) -> Result<Bounds> {
        if self.committed.architecture().same_representation(architecture) {
            return Ok(self.bounds());
        }
        self.elsewhere.bounds(architecture, || self.datatype().bounds(architecture))
    }

    /// Whether elements have the same bytes at the same offsets in the memory of an architecture.
    pub(crate) fn is_equal_on(&self, there: &Architecture) -> bool {
        self.committed.relation(there) == Relation::Equal
    }

    /// Whether all items have the same bytes in the memory of an architecture, wherever they lie.
    pub(crate) fn has_same_items(&self, there: &Architecture) -> bool {
        self.committed.relation(there) != Relation::Converted
    }

    /// The first difference between the layouts in its memory and in the memory of an architecture.
    pub(crate) fn difference(&self, there: &Architecture) -> Result<Option<Difference>> {
        Ok(self.committed.comparison(there)?.difference)
    }

    pub(crate) fn signature(&self) -> Signature {
        self.committed.signature()
    }

    /// The number of basic elements of an element.
    #[inline]
    pub(crate) fn items(&self) -> u64 {
        self.committed.signature().count
    }

    /// The hash of the signature of `count` elements.
    pub(crate) fn repeated(&self, count: u64) -> Result<u128> {
        let too_large = || ErrorKind::TooLarge { count, datatype: excerpt(self) };
        Ok(self.signature().repeat(count).ok_or_else(too_large)?.hash)
    }

    #[inline]
    pub(crate) fn native(&self) -> &Program {
        self.committed.native()
    }

    /// The native program, shared with this type.
    #[inline]
    pub(crate) fn shared_native(&self) -> SharedProgram {
        self.committed.shared_native()
    }

    pub(crate) fn program(&self, stream: &Architecture) -> Result<SharedProgram> {
        Ok(self.committed.program(stream)?)
    }

    #[inline]
    pub(crate) fn is_portable(&self) -> bool {
        matches!(self.committed.tag(), Tag::Portable)
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.identity.id
    }

    #[inline]
    pub(crate) fn is_of_element(&self, element: TypeId) -> bool {
        self.element == element
    }
}

/// Stands for the Rust type of a datatype that no slice has.
struct NoElement;

/// The Rust type whose slices have this predefined type, or [`NoElement`]. Operations take a faster
/// path for it.
fn element_of(datatype: &Datatype) -> TypeId {
    fn is<T: Element>(datatype: &Datatype) -> Option<TypeId> {
        datatype.is(&T::datatype()).then(TypeId::of::<T>)
    }
    let candidates = [
        is::<i8>, is::<i16>, is::<i32>, is::<i64>, is::<u8>, is::<u16>, is::<u32>, is::<u64>,
        is::<f32>, is::<f64>,
    ];
    let element = datatype.as_basic().and_then(|_| candidates.iter().find_map(|is| is(datatype)));
    element.unwrap_or(TypeId::of::<NoElement>())
}

/// The methods that [`Type`] and [`ForeignType`] have as objects of MPI. `$shared` is the field
/// with the type's identity.
macro_rules! object {
    ($shared:ident) => {
        /// Frees this reference to the type (MPI-5.0 section 5.1.9). Operations in progress and
        /// clones remain valid. If this is the last clone, its attributes are deleted. Then free
        /// handlers are called, except for a predefined type.
        ///
        /// Dropping the last clone does so too, but ignores errors.
        ///
        /// # Errors
        /// The error of a delete callback. The type is freed all the same, with the remaining
        /// attributes.
        #[doc(alias = "MPI_Type_free")]
        pub fn free(self) -> Result<()> {
            let last = Arc::strong_count(&self.card) == 1;
            let cleared = if last { self.card.close() } else { Ok(()) };
            self.card.tell_freed(last);
            cleared
        }

        attributes!(Type);

        fn card(&self) -> &Card {
            &self.card
        }

        /// Types have no error handler, so the error is returned as it is.
        fn raised(
            &self,
            error: Error,
            _call: &'static str,
            _caller: &'static Location<'static>,
        ) -> Error {
            error
        }

        /// Whether the type belongs to the rank with these names.
        #[inline]
        pub(crate) fn is_of(&self, names: &Arc<Names>) -> bool {
            Arc::ptr_eq(&self.$shared.identity.names, names)
        }
    };
}

impl sealed::Cacheable for Type {}
impl Cacheable for Type {}

impl Type {
    /// A type with the name and attributes of a card.
    pub(crate) fn with_card(compiled: Arc<Compiled>, card: Arc<Card>) -> Type {
        Type { compiled, card }
    }

    /// The datatype from which the type was made.
    pub fn datatype(&self) -> &Datatype {
        // A dup has a datatype of its own, and shares the one that was compiled.
        self.card.datatype().unwrap_or_else(|| self.compiled.datatype())
    }

    /// The type's shipable form.
    pub fn form(&self) -> &Form {
        self.compiled.form()
    }

    /// Whether the type is portable, so that it can be a target type at any process.
    pub fn tag(&self) -> Tag {
        self.compiled.tag()
    }

    /// Lower and upper bound, true bounds, and size in this rank's memory.
    #[doc(alias = "MPI_Type_size")]
    #[doc(alias = "MPI_Type_get_extent")]
    #[doc(alias = "MPI_Type_get_true_extent")]
    #[inline]
    pub fn bounds(&self) -> Bounds {
        self.compiled.bounds()
    }

    /// The extent in this rank's memory: the distance in bytes between consecutive elements.
    #[doc(alias = "MPI_Type_get_extent")]
    pub fn extent(&self) -> i64 {
        self.compiled.bounds().extent()
    }

    /// The displacements from the first byte of `count` elements to past the last one, in bytes of
    /// this rank's memory. Empty if there are no bytes.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Datatype;
    ///
    /// let backwards = rank.commit(&Datatype::hvector(2, 1, -8, &Datatype::int())?)?;
    /// assert_eq!(backwards.reach(2)?, -8..16);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// COUNT for a negative count, and one for displacements beyond an `i64`.
    pub fn reach(&self, count: i64) -> Result<Range<i64>> {
        let count = u64::try_from(count).map_err(|_| ErrorKind::Count(count))?;
        Ok(self.compiled.native().range(count)?)
    }

    /// The type signature: the sequence of basic types, as a count and a hash.
    pub fn signature(&self) -> Signature {
        self.compiled.signature()
    }

    /// Duplicates the type (MPI-5.0 section 5.1.10). The copy callbacks decide which attributes the
    /// new type gets; its name is empty. It shares the compiled programs, so it costs little. A
    /// peer that knows the form of one dup knows that of all.
    ///
    /// # Errors
    /// The error of a copy callback. No type is made then.
    #[doc(alias = "MPI_Type_dup")]
    pub fn dup(&self) -> Result<Type> {
        let datatype = Datatype::dup(self.datatype())?;
        let card = Arc::new(Card::of(&self.compiled.identity.names, &datatype));
        self.card.copy_to(&card)?;
        Ok(Type { compiled: self.compiled.clone(), card })
    }

    object!(compiled);

    /// The number of elements of this type in `bytes` bytes of packed data (MPI_Get_count); `None`
    /// if they are no whole number, or too many.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::{Architecture, Datatype};
    ///
    /// let pair = rank.commit(&Datatype::contiguous(2, &Datatype::int())?)?;
    /// assert_eq!(pair.count_in(16, &Architecture::NATIVE)?, Some(2));
    /// assert_eq!(pair.count_in(12, &Architecture::NATIVE)?, None);
    /// assert_eq!(pair.elements_in(12, &Architecture::NATIVE)?, Some(3));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE if the representation lacks one of the basic types.
    pub fn count_in(&self, bytes: u64, representation: &Architecture) -> Result<Option<u64>> {
        Ok(self.compiled().committed().count_in(bytes, representation)?)
    }

    /// The number of basic elements in `bytes` bytes of packed data (MPI_Get_elements); `None` if
    /// they are no whole number. [`count_in`](Type::count_in) has an example.
    ///
    /// # Errors
    /// TYPE if the representation lacks one of the basic types.
    pub fn elements_in(&self, bytes: u64, representation: &Architecture) -> Result<Option<u64>> {
        Ok(self.compiled().committed().elements_in(bytes, representation)?)
    }

    #[inline]
    pub(crate) fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    pub(crate) fn program(&self, stream: &Architecture) -> Result<SharedProgram> {
        self.compiled.program(stream)
    }
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        type_text(self.datatype(), f)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        type_text(self.datatype(), f)
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Type({self})")
    }
}

impl Elsewhere {
    fn bounds(
        &self,
        architecture: &Architecture,
        compute: impl FnOnce() -> shipable::Result<Bounds>,
    ) -> Result<Bounds> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bounds)) = known.iter().find(|(at, _)| at == architecture) {
            return Ok(*bounds);
        }
        let bounds = compute()?;
        known.push((*architecture, bounds));
        Ok(bounds)
    }
}

impl ForeignType {
    pub(crate) fn new(names: &Arc<Names>, form: Form, text: String, builder: u32) -> Result<Self> {
        let parts = ForeignParts {
            signature: form.signature()?,
            form,
            text,
            builder,
            identity: Identity::new(names),
            native: OnceLock::new(),
            elsewhere: Elsewhere::default(),
        };
        Ok(ForeignType { parts: Arc::new(parts), card: Arc::new(Card::of_foreign(names)) })
    }

    /// The process that built the type, by its rank in the job.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// world.type_send(&rank.type_of::<f64>()?, world.rank(), 0)?;
    /// let foreign = world.type_recv(world.rank(), 0)?;
    /// let (me, locale) = (world.rank() as u32, longshore::Tag::Locale);
    /// assert_eq!((foreign.builder(), foreign.form().tag()), (me, locale));
    /// foreign.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn builder(&self) -> u32 {
        self.parts.builder
    }

    /// The type's form, in the builder's representation.
    pub fn form(&self) -> &Form {
        &self.parts.form
    }

    object!(parts);

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.parts.identity.id
    }

    fn native(&self, architecture: &Architecture) -> Result<SharedProgram> {
        let lowered = self.parts.native.get_or_init(|| {
            self.parts.form.lower(architecture, architecture).map(SharedProgram::from)
        });
        Ok(lowered.clone()?)
    }
}

/// Prints the type as its builder's language has it: in Rust the notation, in C the calls that make
/// it.
impl fmt::Display for ForeignType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.text)
    }
}

impl fmt::Debug for ForeignType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignType({self} of process {})", self.builder())
    }
}

/// A type that can describe data in the target's window.
#[derive(Clone, Copy, Debug)]
pub enum TargetType<'a> {
    /// A type committed here. It must be portable, except under
    /// [`SameLayout`](crate::TargetTypes::SameLayout).
    Own(&'a Type),
    /// A type built at the target.
    Foreign(&'a ForeignType),
}

/// A type that a call takes as its target type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no target type",
    label = "not a committed or foreign type",
    note = "pass `&rank.type_of::<f64>()?` for elements of a Rust type, `&rank.commit(&datatype)?` \
            for a datatype, or a type that the target sent with `type_send`"
)]
pub trait IntoTargetType<'a> {
    /// The target type.
    fn into_target_type(self) -> TargetType<'a>;
}

impl<'a> IntoTargetType<'a> for TargetType<'a> {
    #[inline]
    fn into_target_type(self) -> TargetType<'a> {
        self
    }
}

impl<'a> IntoTargetType<'a> for &'a Type {
    #[inline]
    fn into_target_type(self) -> TargetType<'a> {
        TargetType::Own(self)
    }
}

impl<'a> IntoTargetType<'a> for &'a ForeignType {
    #[inline]
    fn into_target_type(self) -> TargetType<'a> {
        TargetType::Foreign(self)
    }
}

/// The form of a type, ready to be sent to a peer.
pub(crate) struct Shipment {
    pub id: u64,
    pub tag: Tag,
    /// The process at which a locale-specific form is right.
    pub builder: u32,
    /// The form, and after it the names of the fields of a Rust type.
    pub bytes: Arc<[u8]>,
    /// The bytes of the names.
    pub names: u64,
}

impl TargetType<'_> {
    /// Refuses a type of another rank.
    pub(crate) fn check_rank(&self, names: &Arc<Names>) -> Result<()> {
        let own = match self {
            TargetType::Own(own) => own.is_of(names),
            TargetType::Foreign(foreign) => foreign.is_of(names),
        };
        if own { Ok(()) } else { Err(OTHER_RANK.into()) }
    }

    pub(crate) fn id(&self) -> u64 {
        match self {
            TargetType::Own(own) => own.compiled.id(),
            TargetType::Foreign(foreign) => foreign.id(),
        }
    }

    pub(crate) fn signature(&self) -> Signature {
        match self {
            TargetType::Own(own) => own.signature(),
            TargetType::Foreign(foreign) => foreign.parts.signature,
        }
    }

    /// The bounds in the memory of a target.
    pub(crate) fn bounds_on(&self, architecture: &Architecture) -> Result<Bounds> {
        match self {
            TargetType::Own(own) => own.compiled.bounds_on(architecture),
            TargetType::Foreign(foreign) => {
                let compute = || foreign.form().bounds(architecture);
                foreign.parts.elsewhere.bounds(architecture, compute)
            }
        }
    }

    /// The common predefined type of all items, if there is one.
    pub(crate) fn single_leaf(&self) -> Option<Leaf> {
        match self {
            TargetType::Own(own) => own.compiled.single_leaf(),
            TargetType::Foreign(foreign) => foreign.form().single_leaf(),
        }
    }

    /// Calls `run` with the type's program for a target of `architecture`, in whose memory elements
    /// have the same bytes as in this rank's. For its own type of this rank the two programs are
    /// equal.
    pub(crate) fn with_native<R>(
        &self,
        architecture: &Architecture,
        run: impl FnOnce(&Program) -> Result<R>,
    ) -> Result<R> {
        match self {
            TargetType::Own(own) => run(own.compiled.native()),
            TargetType::Foreign(foreign) => run(&*foreign.native(architecture)?),
        }
    }

    /// Whether `count` elements touch a byte twice.
    pub(crate) fn overlaps(&self, count: u64) -> Result<bool> {
        match self {
            TargetType::Own(own) => Ok(own.compiled.native().overlaps(count)),
            TargetType::Foreign(foreign) => {
                let built = foreign.form().builder_architecture();
                let architecture = built.copied().unwrap_or(Architecture::NATIVE);
                Ok(foreign.native(&architecture)?.overlaps(count))
            }
        }
    }

    /// The type's form, as it is shipped.
    pub(crate) fn form(&self) -> &Form {
        match self {
            TargetType::Own(own) => own.form(),
            TargetType::Foreign(foreign) => foreign.form(),
        }
    }

    /// The form as a peer needs it before an operation can refer to it by id.
    pub(crate) fn shipment(&self, rank: u32) -> Shipment {
        let (identity, form, builder) = match self {
            TargetType::Own(own) => (&own.compiled.identity, own.form(), rank),
            TargetType::Foreign(foreign) => {
                (&foreign.parts.identity, foreign.form(), foreign.builder())
            }
        };
        let names = || match self {
            TargetType::Own(own) => own.compiled.native().field_text(),
            TargetType::Foreign(_) => None,
        };
        let shipped = identity.shipped.get_or_init(|| {
            let (mut bytes, names) = (form.encode(), names());
            let names = names.as_deref().unwrap_or_default();
            bytes.extend_from_slice(names.as_bytes());
            Shipped { bytes: bytes.into(), names: names.len() as u64 }
        });
        let Shipped { bytes, names } = shipped.clone();
        Shipment { id: identity.id, tag: form.tag(), builder, bytes, names }
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

/// The error of a type that another rank committed or received.
pub(crate) const OTHER_RANK: ErrorKind =
    ErrorKind::TypeHandle("of another rank: commit the type at this one");

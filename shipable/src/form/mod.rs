//! Shipable forms: a datatype compiled, at commit, into a small host-independent description.
//!
//! The idea is Dick Treumann's, from the MPI-2 Forum's discussions of one-sided communication in
//! 1996: see proposal 4 (docs/proposals.md). A form lists basic items and their displacements. A
//! form that is transmitted carries its tag, one of two:
//!
//! - [`Tag::Portable`]: displacements are multiples of basic types' sizes, never bytes. The form
//!   keeps its nesting, and each displacement counts extents of its child. The receiver computes
//!   these extents for its own memory.
//! - [`Tag::Locale`]: displacements are bytes, valid in the builder's representation. The form
//!   carries that representation.
//!
//! [`compile`](Form::compile) makes a form from a datatype. [`encode`](Form::encode) and
//! [`decode`](Form::decode) ship it. [`lower`](Form::lower) turns it into the [program] of a
//! memory and a stream. A portable form never contains an address, a pointer's width or a byte
//! order, so its bytes don't depend on the machine that compiled it.
//!
//! [program]: crate::program::Program
//!
//! Words of ours: the *builder* is the process, and the representation, that compiled a
//! locale-specific form. The *culprit* is the part of a datatype that makes its form
//! locale-specific.

mod compile;
pub(crate) mod layout;
mod node;
pub(crate) mod regular;
mod relation;
mod text;
pub(crate) mod vectors;
mod wire;

pub(crate) use compile::culprit;
pub use node::{Field, Node, Placed, Span};
pub(crate) use regular::{Regular, Run};
pub use relation::Difference;
pub use vectors::{Vector, Vectors};
pub use wire::Limits;

use smallvec::SmallVec;

use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::bounds::Bounds;
use crate::datatype::Datatype;
use crate::error::{Error, Result};

pub use crate::error::DecodeError;
use crate::signature::Signature;

/// The bounds of a form's nodes.
pub(crate) type Layouts = SmallVec<[Bounds; 8]>;

/// The nodes of a form. Most types are an array of a leaf, or a struct of a few.
pub(crate) type Nodes = SmallVec<[Node; 5]>;

/// The two kinds of forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// Valid in every representation.
    Portable,
    /// Valid in the representation of its builder.
    Locale,
}

/// A shipable form.
///
/// Two forms are equal if their encodings are, whatever they were compiled from.
///
/// ```
/// use shipable::{Architecture, Datatype, Form, Tag, form::Limits};
///
/// // A column of a matrix of 8 rows of 10 doubles, as the origin of a put describes it.
/// let column = Datatype::vector(8, 1, 10, &Datatype::double())?;
/// let form = Form::compile(&column, &Architecture::X86_64)?;
/// assert_eq!(form.tag(), Tag::Portable);
///
/// // The target has only the bytes. It computes the extents for its own doubles.
/// let arrived = Form::decode(&form.encode(), &Limits::default())?;
/// assert_eq!(arrived.bounds(&Architecture::S390X)?.true_ub, 7 * 80 + 8);
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Form {
    origin: Origin,
    /// Children before parents, the root last.
    nodes: Nodes,
}

/// Where a form comes from. It decides the tag.
#[derive(Clone, Debug)]
enum Origin {
    /// It was compiled from a datatype in the memory of an architecture.
    Compiled { datatype: Datatype, architecture: Architecture },
    /// It was decoded, or made of another form. A locale-specific one has its builder's
    /// representation.
    Other { builder: Option<Architecture> },
}

impl Form {
    /// Compiles a datatype in the memory of `architecture`.
    ///
    /// The form is portable if the datatype is. Predefined types are portable, and so are the
    /// results of CONTIGUOUS, VECTOR, INDEXED, INDEXED_BLOCK, SUBARRAY, DARRAY, DUP and
    /// SIMPLE_STRUCT on portable types. The form of any other datatype is locale-specific to
    /// `architecture`.
    ///
    /// # Errors
    ///
    /// - [`Error::Overflow`] if a bound exceeds an `i64`.
    /// - [`Error::NoSuchKind`] if `architecture` lacks a Fortran kind.
    /// - [`Error::TooDeep`] if the datatype nests deeper than [`Limits::DEPTH`].
    pub fn compile(datatype: &Datatype, architecture: &Architecture) -> Result<Form> {
        let mut form = Form::uncompiled(datatype, architecture);
        if form.compile_regular(&mut Bounds::EMPTY.clone(), &mut Regular::empty()).is_none() {
            form.compile_any(&mut Layouts::new())?;
        }
        Ok(form)
    }

    /// A form without nodes, to be compiled.
    #[inline]
    pub(crate) fn uncompiled(datatype: &Datatype, architecture: &Architecture) -> Form {
        let (datatype, architecture) = (datatype.clone(), *architecture);
        Form { origin: Origin::Compiled { datatype, architecture }, nodes: Nodes::new() }
    }

    /// Compiles the datatype if it is regular. Sets its bounds, and fills `made`. `None` if it
    /// isn't: [`compile_any`](Form::compile_any) compiles it.
    ///
    /// The form is written where it stays: returning it would copy it (docs/tuning.md, "Building a
    /// committed datatype").
    #[inline]
    pub(crate) fn compile_regular(
        &mut self,
        bounds: &mut Bounds,
        made: &mut Regular,
    ) -> Option<()> {
        match &self.origin {
            Origin::Compiled { datatype, architecture } => {
                regular::compile(datatype, architecture, &mut self.nodes, bounds, made)
            }
            Origin::Other { .. } => None,
        }
    }

    /// Compiles any datatype. Appends the bounds of the nodes to `layouts`. A form that wasn't made
    /// of a datatype has its nodes, and stays as it is.
    pub(crate) fn compile_any(&mut self, layouts: &mut Layouts) -> Result<()> {
        let Origin::Compiled { datatype, architecture } = &self.origin else { return Ok(()) };
        self.nodes.clear();
        compile::compile(datatype, architecture, layouts, &mut self.nodes)
    }

    fn new(builder: Option<Architecture>, nodes: Vec<Node>) -> Form {
        let mut nodes = Nodes::from_vec(nodes);
        nodes.shrink_to_fit();
        Form { origin: Origin::Other { builder }, nodes }
    }

    /// The datatype and the architecture that it was compiled from. `None` if it was decoded, or
    /// made of another form.
    #[inline]
    pub(crate) fn source(&self) -> Option<(&Datatype, &Architecture)> {
        match &self.origin {
            Origin::Compiled { datatype, architecture } => Some((datatype, architecture)),
            Origin::Other { .. } => None,
        }
    }

    /// Whether the form is portable or locale-specific.
    pub fn tag(&self) -> Tag {
        match self.builder_architecture() {
            None => Tag::Portable,
            Some(_) => Tag::Locale,
        }
    }

    /// The builder's representation, if the form is locale-specific.
    pub fn builder_architecture(&self) -> Option<&Architecture> {
        match &self.origin {
            Origin::Compiled { datatype, architecture } => {
                (!datatype.is_portable()).then_some(architecture)
            }
            Origin::Other { builder } => builder.as_ref(),
        }
    }

    /// The part of the datatype whose constructor made the form locale-specific. Only the builder
    /// knows it: it isn't shipped.
    pub fn culprit(&self) -> Option<&Datatype> {
        culprit(self.source()?.0)
    }

    /// The predefined or parametrised type of all items. `None` if there are no items, or items of
    /// several types.
    ///
    /// ```
    /// use shipable::{Architecture, Basic, Datatype, Form};
    /// let pairs = Datatype::vector(4, 1, 3, &Datatype::basic(Basic::DoubleInt))?;
    /// let form = Form::compile(&pairs, &Architecture::X86_64)?;
    /// assert_eq!(form.single_leaf(), Some(Basic::DoubleInt.into()));
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn single_leaf(&self) -> Option<Leaf> {
        layout::single_leaf(&self.nodes)
    }

    /// The nodes: children before parents, the root last.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The bytes that ship: the tag, then the nodes.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Decodes the bytes of a form, which may come from a hostile peer.
    ///
    /// The result is a sound form: its nodes are in order, and its depth and size are within
    /// `limits`. Its items and bounds fit 64 bits in the builder's representation, or in this
    /// machine's if it is portable. The memory that it takes is linear in the length of `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] with the reason why the bytes are no form.
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Form> {
        Ok(wire::decode(bytes, limits)?)
    }

    /// The signature: the sequence of basic types, without displacements (MPI-5.0 section 5.1).
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if there are more items than a `u64` counts.
    pub fn signature(&self) -> Result<Signature> {
        layout::signature(&self.nodes)
    }

    /// The bounds, extents and size in bytes in the memory of `architecture`: those that the
    /// datatype would have there.
    ///
    /// # Errors
    ///
    /// - [`Error::Overflow`] if a bound exceeds an `i64`.
    /// - [`Error::NoSuchKind`] if `architecture` lacks a Fortran kind.
    /// - [`Error::OtherRepresentation`] if the form is specific to another representation.
    pub fn bounds(&self, architecture: &Architecture) -> Result<Bounds> {
        self.check_representation(architecture)?;
        layout::bounds(&self.nodes, self.tag() == Tag::Portable, architecture)
    }

    /// The [bounds](Form::bounds) of every node, in the order of [`Form::nodes`].
    ///
    /// # Errors
    ///
    /// Those of [`Form::bounds`].
    pub fn node_bounds(&self, architecture: &Architecture) -> Result<Vec<Bounds>> {
        self.check_representation(architecture)?;
        let layouts = layout::layouts(&self.nodes, self.tag() == Tag::Portable, architecture)?;
        Ok(layouts.into_vec())
    }

    /// The equivalent locale-specific form for `architecture`, which `Type_send` transmits. Its
    /// displacements are bytes, and it has no simple structs.
    ///
    /// # Errors
    ///
    /// Those of [`Form::bounds`].
    pub fn to_locale(&self, architecture: &Architecture) -> Result<Form> {
        self.check_representation(architecture)?;
        match self.tag() {
            Tag::Locale => Ok(self.clone()),
            Tag::Portable => {
                let nodes = layout::to_bytes(&self.nodes, architecture)?;
                Ok(Form::new(Some(*architecture), nodes))
            }
        }
    }

    /// The form with its displacements in bytes taken for those of `architecture`. They are right
    /// there if a [comparison](crate::Committed::comparison) has found no difference. A portable
    /// form stays as it is.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype};
    /// let record = Datatype::struct_(&[1, 1], &[0, 8], &[Datatype::int(), Datatype::double()])?;
    /// let record = Committed::new(&record, &Architecture::X86_64)?;
    /// assert!(record.form().bounds(&Architecture::AARCH64).is_err());
    /// assert_eq!(record.comparison(&Architecture::AARCH64)?.difference, None);
    /// let there = record.form().clone().at_home(&Architecture::AARCH64);
    /// assert_eq!(there.bounds(&Architecture::AARCH64)?.extent(), 16);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn at_home(self, architecture: &Architecture) -> Form {
        match self.tag() {
            Tag::Portable => self,
            Tag::Locale => {
                Form { origin: Origin::Other { builder: Some(*architecture) }, nodes: self.nodes }
            }
        }
    }

    /// Checks that a form's displacements are valid in the memory of an architecture.
    pub(crate) fn check_representation(&self, asked: &Architecture) -> Result<()> {
        match self.builder_architecture() {
            Some(built) if !built.same_representation(asked) => {
                Err(Error::OtherRepresentation { built: built.label(), asked: asked.label() })
            }
            _ => Ok(()),
        }
    }
}

impl Datatype {
    /// The bounds, size and alignment of one element on an architecture.
    ///
    /// # Errors
    /// Those of [`Form::compile`]: a type that can't be committed has no bounds.
    #[doc(alias = "MPI_Type_size")]
    #[doc(alias = "MPI_Type_get_extent")]
    #[doc(alias = "MPI_Type_get_true_extent")]
    pub fn bounds(&self, architecture: &Architecture) -> Result<Bounds> {
        // The bounds are a by-product of the compilation.
        let (mut nodes, mut bounds) = (Nodes::new(), Bounds::EMPTY);
        let made = &mut Regular::empty();
        if regular::compile(self, architecture, &mut nodes, &mut bounds, made).is_some() {
            return Ok(bounds);
        }
        let mut layouts = Layouts::new();
        compile::compile(self, architecture, &mut layouts, &mut Nodes::new())?;
        Ok(layouts.last().copied().unwrap_or(Bounds::EMPTY))
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        self.builder_architecture() == other.builder_architecture() && self.nodes == other.nodes
    }
}

impl Eq for Form {}

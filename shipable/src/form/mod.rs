//! Shipable forms: a datatype compiled, at commit, into a small host-independent program.
//!
//! The idea is Dick Treumann's, of the MPI-2 Forum's one-sided discussions of 1996. A form says which basic items lie
//! where, in one of two ways, and every form that is transmitted carries its tag:
//!
//! - [`Tag::Portable`]: displacements are multiples of basic types' sizes, never bytes. The form keeps its nesting, each
//!   displacement counts the extent of its child, and whoever receives it computes that extent for its own memory.
//! - [`Tag::Locale`]: displacements in bytes, right in the representation of the one who built it, which it carries.
//!
//! [`compile`](Form::compile) makes one from a datatype, [`encode`](Form::encode) and [`decode`](Form::decode) ship it,
//! [`lower`](Form::lower) turns it into the [`Program`] of a memory and a stream. A form never names an address, a
//! pointer's width or a byte order, so its bytes are the same wherever it was compiled.

mod compile;
pub(crate) mod layout;
mod node;
mod text;
mod wire;

pub(crate) use compile::culprit;
pub use node::{Field, Node, Placed, Run, Span};
pub use wire::Limits;

use smallvec::SmallVec;

use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::bounds::Bounds;
use crate::datatype::Datatype;
use crate::error::{Error, Result};

pub use crate::error::DecodeError;
use crate::program::Program;
use crate::signature::Signature;

/// The bounds of nodes.
pub(crate) type Layouts = SmallVec<[Bounds; 4]>;

/// Which of the two kinds a form is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// Right in every representation.
    Portable,
    /// Right in the representation of its builder.
    Locale,
}

/// A shipable form.
///
/// Forms are equal when their bytes are: what they were compiled from, and where, doesn't count.
///
/// ```
/// use shipable::{Architecture, Datatype, Form, Tag, form::Limits};
///
/// // A column of a matrix of 8 rows of 10 doubles, as the origin of a put names it.
/// let column = Datatype::vector(8, 1, 10, &Datatype::double())?;
/// let form = Form::compile(&column, &Architecture::X86_64)?;
/// assert_eq!(form.tag(), Tag::Portable);
///
/// // The target knows nothing but its bytes, and finds the extents of its own doubles.
/// let arrived = Form::decode(&form.encode(), &Limits::default())?;
/// assert_eq!(arrived.bounds(&Architecture::S390X)?.true_ub, 7 * 80 + 8);
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Form {
    /// The representation of a locale-specific form.
    builder: Option<Architecture>,
    /// Children before parents, the root last.
    nodes: Box<[Node]>,
    culprit: Option<Datatype>,
}

impl Form {
    /// Compiles a datatype in the memory of `architecture`.
    ///
    /// The form is portable where the datatype is: predefined types, and what CONTIGUOUS, VECTOR, INDEXED,
    /// INDEXED_BLOCK, SUBARRAY, DARRAY, DUP and SIMPLE_STRUCT make of portable types. Anything else becomes
    /// locale-specific to `architecture`.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] when a bound leaves the range of an `i64`, [`Error::NoSuchKind`] when `architecture` lacks a
    /// Fortran kind, [`Error::TooDeep`] when the datatype nests deeper than [`Limits::DEPTH`].
    pub fn compile(datatype: &Datatype, architecture: &Architecture) -> Result<Form> {
        compile::compile(datatype, architecture, &mut Layouts::new())
    }

    /// The datatype's bounds, as they are found when it is compiled.
    pub(crate) fn bounds_of(datatype: &Datatype, architecture: &Architecture) -> Result<Bounds> {
        let mut layouts = Layouts::new();
        compile::compile(datatype, architecture, &mut layouts)?;
        Ok(layouts.last().copied().unwrap_or(Bounds::EMPTY))
    }

    /// As [`Form::compile`], with the program for a packed stream in the memory's representation, and the datatype's bounds.
    pub(crate) fn compile_and_lower(
        datatype: &Datatype,
        architecture: &Architecture,
    ) -> Result<(Form, Program, Bounds)> {
        let mut layouts = Layouts::new();
        let form = compile::compile(datatype, architecture, &mut layouts)?;
        let bounds = layouts.last().copied().unwrap_or(Bounds::EMPTY);
        let [memory, stream] = [architecture; 2];
        let program =
            crate::program::lower(&form, &layouts, memory, stream, &mut u64::MAX.clone())?;
        Ok((form, program, bounds))
    }

    fn new(builder: Option<Architecture>, nodes: Box<[Node]>, culprit: Option<Datatype>) -> Form {
        Form { builder, nodes, culprit }
    }

    /// Whether the form is portable or locale-specific.
    pub fn tag(&self) -> Tag {
        match self.builder {
            None => Tag::Portable,
            Some(_) => Tag::Locale,
        }
    }

    /// The representation that a locale-specific form was built in.
    pub fn builder_architecture(&self) -> Option<&Architecture> {
        self.builder.as_ref()
    }

    /// The type whose constructor made a form locale-specific when it was compiled; not shipped.
    pub fn culprit(&self) -> Option<&Datatype> {
        self.culprit.as_ref()
    }

    /// The predefined or parametrised type that all items are of; `None` where there are no items, or several types.
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

    /// The nodes, children before parents, the root last.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The bytes that ship: the tag, then the nodes.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Reads the bytes of a form, which may come from a hostile peer.
    ///
    /// A form that this returns is sound: its nodes are in order, its depth and size are within `limits`, and its items
    /// and bounds fit 64 bits in its own representation, or, if it is portable, in this machine's. It takes memory in
    /// proportion to `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] with what is wrong.
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Form> {
        Ok(wire::decode(bytes, limits)?)
    }

    /// The signature: the basic types in order, without displacements (MPI-5.0 section 5.1).
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] when there are more items than a `u64` counts.
    pub fn signature(&self) -> Result<Signature> {
        layout::signature(&self.nodes)
    }

    /// Bounds, extents and size in the memory of `architecture`, in bytes: what the datatype's would be there.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] when a bound leaves the range of an `i64`, [`Error::NoSuchKind`] when `architecture` lacks a
    /// Fortran kind, [`Error::OtherRepresentation`] when the form is specific to another one.
    pub fn bounds(&self, architecture: &Architecture) -> Result<Bounds> {
        self.check_representation(architecture)?;
        layout::bounds(&self.nodes, self.tag() == Tag::Portable, architecture)
    }

    /// The same of every node, in the order of [`Form::nodes`].
    ///
    /// # Errors
    ///
    /// As [`Form::bounds`].
    pub fn node_bounds(&self, architecture: &Architecture) -> Result<Vec<Bounds>> {
        self.check_representation(architecture)?;
        let layouts = layout::layouts(&self.nodes, self.tag() == Tag::Portable, architecture)?;
        Ok(layouts.into_vec())
    }

    /// The same items in bytes, right for `architecture` alone: what Type_send transmits. It has no simple structs.
    ///
    /// # Errors
    ///
    /// As [`Form::bounds`].
    pub fn to_locale(&self, architecture: &Architecture) -> Result<Form> {
        self.check_representation(architecture)?;
        match self.tag() {
            Tag::Locale => Ok(self.clone()),
            Tag::Portable => {
                let nodes = layout::to_bytes(&self.nodes, architecture)?;
                Ok(Form::new(Some(*architecture), nodes, None))
            }
        }
    }

    /// The program that moves items between memory in one representation and a packed stream in another.
    ///
    /// # Errors
    ///
    /// As [`Form::bounds`], for `memory`.
    pub fn lower(&self, memory: &Architecture, stream: &Architecture) -> Result<Program> {
        self.lower_within(memory, stream, &mut u64::MAX.clone())
    }

    /// The same of a form that may be a hostile peer's, within `room`, of which it leaves what the program doesn't take, in bytes.
    /// What is held on the way is about twice of what is taken.
    ///
    /// ```
    /// use shipable::{Architecture, Datatype, Error, Form};
    /// let native = Architecture::NATIVE;
    /// let scattered: Vec<i64> = (0..1000).map(|at| at * at).collect();
    /// let form = Form::compile(&Datatype::indexed_block(1, &scattered, &Datatype::int())?, &native)?;
    /// let mut room = 1 << 20;
    /// form.lower_within(&native, &native, &mut room)?;
    /// assert!(room < (1 << 20) - 8000);
    /// let refused = form.lower_within(&native, &native, &mut 8000);
    /// assert!(matches!(refused, Err(Error::TooLarge { most: 8000 })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Form::lower`]; [`Error::TooLarge`] where the room doesn't suffice. None of it is taken then.
    pub fn lower_within(
        &self,
        memory: &Architecture,
        stream: &Architecture,
        room: &mut u64,
    ) -> Result<Program> {
        self.check_representation(memory)?;
        let layouts = layout::layouts(&self.nodes, self.tag() == Tag::Portable, memory)?;
        crate::program::lower(self, &layouts, memory, stream, room)
    }

    fn check_representation(&self, asked: &Architecture) -> Result<()> {
        match &self.builder {
            Some(built) if !built.same_representation(asked) => Err(Error::OtherRepresentation {
                built: built.descriptor(),
                asked: asked.descriptor(),
            }),
            _ => Ok(()),
        }
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
        self.builder == other.builder && self.nodes == other.nodes
    }
}

impl Eq for Form {}

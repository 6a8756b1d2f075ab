//! Committed datatypes: a datatype with its bounds, its form and its programs.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::arch::Architecture;
use crate::bounds::Bounds;
use crate::datatype::Datatype;
use crate::error::Result;
use crate::fields::Fields;
use crate::form::{Form, Layouts, Regular, Tag};
use crate::program::{self, Program};
use crate::relation::{Comparison, Relation};
use crate::shared::{Counted, place};
use crate::signature::Signature;
use crate::xdr::Units;

/// A datatype committed for the memory of an architecture (MPI-5.0 section 5.1.9). Clones share it.
///
/// Commit compiles the shipable form, and lowers it to the program for packed streams in the
/// memory's own representation. The programs for other representations are lowered on first use and
/// kept.
///
/// ```
/// use shipable::{Architecture, Committed, Datatype, Tag};
/// let record = Datatype::struct_(&[1, 1], &[0, 8], &[Datatype::char(), Datatype::double()])?;
/// let record = Committed::new(&record, &Architecture::X86_64)?;
/// assert_eq!(record.tag(), Tag::Locale);
/// assert_eq!(record.native().stream_size(), 9);
/// assert_eq!(record.form().culprit().unwrap().to_string(), "U1(S:2:c/1/0,d/1/8)");
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone)]
pub struct Committed(Counted<Inner>);

// In this order, no constant lies beside the unused room of the form's nodes. Otherwise a commit
// copies that room together with the constant (docs/tuning.md, "Building a committed datatype").
#[repr(C)]
struct Inner {
    /// The program for a packed stream in the memory's own representation.
    native: Program,
    bounds: Bounds,
    /// Most types never use it, so it is behind a pointer.
    foreign: OnceLock<Box<Foreign>>,
    /// The form has the datatype and the architecture.
    form: Form,
}

/// What other representations need, made on first use.
#[derive(Default)]
struct Foreign {
    /// The programs for packed streams in other representations.
    programs: Mutex<Vec<(Architecture, Arc<Program>)>>,
    /// The layout of a packed buffer in XDR.
    units: OnceLock<Units>,
    /// The comparisons with the datatype in other memories.
    comparisons: Mutex<Vec<(Architecture, Comparison)>>,
}

impl Inner {
    /// Makes the form, the native program and the bounds, where they stay (docs/tuning.md,
    /// "Building a committed datatype").
    #[inline]
    fn compile(&mut self, architecture: &Architecture) -> Result<()> {
        let mut regular = Regular::empty();
        let Inner { bounds, form, native, .. } = self;
        match form.compile_regular(bounds, &mut regular) {
            Some(()) => {
                native.fill(&regular, bounds);
                Ok(())
            }
            None => self.compile_any(architecture),
        }
    }

    /// Like [`compile`](Inner::compile), for a type that isn't regular.
    #[inline(never)]
    fn compile_any(&mut self, architecture: &Architecture) -> Result<()> {
        let Inner { bounds, form, native, .. } = self;
        let mut layouts = Layouts::new();
        form.compile_any(&mut layouts)?;
        let [memory, stream] = [architecture; 2];
        program::lower(form, &layouts, memory, stream, &mut u64::MAX.clone(), native)?;
        *bounds = layouts.last().copied().unwrap_or(Bounds::EMPTY);
        Ok(())
    }
}

impl Committed {
    /// Commits a datatype whose buffers lie in the memory of `architecture`.
    ///
    /// # Errors
    ///
    /// The errors of [`Form::compile`].
    #[inline]
    pub fn new(datatype: &Datatype, architecture: &Architecture) -> Result<Committed> {
        Committed::with(datatype, architecture, Fields::Unknown)
    }

    /// Commits the datatype of a Rust type, so that the errors of its programs name fields.
    /// `fields` is the type's [`Element::item_names`](crate::Element::item_names), which is called
    /// only for an error. [`Program::with_fields`] has an example.
    ///
    /// # Errors
    ///
    /// The errors of [`Form::compile`].
    pub fn of_fields(
        datatype: &Datatype,
        architecture: &Architecture,
        fields: fn() -> String,
    ) -> Result<Committed> {
        Committed::with(datatype, architecture, Fields::Of(fields))
    }

    #[inline(never)]
    fn with(datatype: &Datatype, architecture: &Architecture, fields: Fields) -> Result<Committed> {
        let mut made = place(|| Inner {
            form: Form::uncompiled(datatype, architecture),
            bounds: Bounds::EMPTY,
            native: Program::empty(fields),
            foreign: OnceLock::new(),
        });
        made.compile(architecture)?;
        Ok(Committed(made.into()))
    }

    /// The datatype, and the architecture of the memory.
    #[inline]
    fn source(&self) -> (&Datatype, &Architecture) {
        self.0.form.source().expect("the form of a committed datatype was compiled")
    }

    /// The datatype.
    #[inline]
    pub fn datatype(&self) -> &Datatype {
        self.source().0
    }

    /// The architecture of the memory that its buffers lie in.
    #[inline]
    pub fn architecture(&self) -> &Architecture {
        self.source().1
    }

    /// The shipable form.
    #[inline]
    pub fn form(&self) -> &Form {
        &self.0.form
    }

    /// The tag of the form.
    #[inline]
    pub fn tag(&self) -> Tag {
        self.form().tag()
    }

    /// The type signature of one element.
    #[inline]
    pub fn signature(&self) -> Signature {
        self.datatype().signature()
    }

    /// The bounds, extents and size of one element.
    #[inline]
    pub fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    /// The program for a packed stream in the memory's own representation.
    #[inline]
    pub fn native(&self) -> &Program {
        &self.0.native
    }

    /// [`native`](Committed::native), shared with this datatype.
    #[inline]
    pub fn shared_native(&self) -> SharedProgram {
        SharedProgram(Shared::Native(self.clone()))
    }

    /// The program for a packed stream in the representation `stream`. Those for representations
    /// other than the memory's are lowered on first use.
    ///
    /// # Errors
    ///
    /// The errors of [`Form::lower`].
    pub fn program(&self, stream: &Architecture) -> Result<SharedProgram> {
        let memory = self.architecture();
        if memory.same_representation(stream) {
            return Ok(self.shared_native());
        }
        // The list is valid even if a thread panicked with the lock: the push comes last.
        let mut programs = self.foreign().programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = programs.iter().find(|(known, _)| known == stream) {
            return Ok(Arc::clone(program).into());
        }
        let mut program = self.form().lower(memory, stream)?;
        program.set_fields(self.native().fields().clone());
        let program = Arc::new(program);
        programs.push((*stream, Arc::clone(&program)));
        Ok(program.into())
    }

    /// The comparison of the datatype in its memory with the datatype in the memory of `there`. It
    /// is made on first use.
    ///
    /// # Errors
    ///
    /// - [`Error::NoSuchKind`](crate::Error::NoSuchKind) if `there` lacks a Fortran kind.
    /// - [`Error::Overflow`](crate::Error::Overflow) if a bound exceeds an `i64` there.
    pub fn comparison(&self, there: &Architecture) -> Result<Comparison> {
        let here = self.architecture();
        if here.same_representation(there) {
            return Ok(Comparison { same_items: true, difference: None });
        }
        // The list is valid even if a thread panicked with the lock: the push comes last.
        let known = &self.foreign().comparisons;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, comparison)) = known.iter().find(|(of, _)| of == there) {
            return Ok(*comparison);
        }
        let comparison = Comparison::of(self.datatype(), self.form(), here, there)?;
        known.push((*there, comparison));
        Ok(comparison)
    }

    /// The relation between elements in its memory and elements in the memory of `there`. Where the
    /// datatype can't be there, it counts as converted: the conversion reports why.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype, Relation};
    /// let record = Datatype::struct_(&[1, 1], &[0, 8], &[Datatype::int(), Datatype::double()])?;
    /// let record = Committed::new(&record, &Architecture::X86_64)?;
    /// assert_eq!(record.relation(&Architecture::AARCH64), Relation::Equal);
    /// assert_eq!(record.relation(&Architecture::I686), Relation::Moved);
    /// assert_eq!(record.relation(&Architecture::S390X), Relation::Converted);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn relation(&self, there: &Architecture) -> Relation {
        self.comparison(there).map_or(Relation::Converted, |comparison| comparison.relation())
    }

    /// The layout of a packed buffer of `representation`; `None` if it has no padding.
    pub(crate) fn units(&self, representation: &Architecture) -> Result<Option<&Units>> {
        if !representation.same_representation(&Architecture::XDR) {
            return Ok(None);
        }
        let known = &self.foreign().units;
        let units = match known.get() {
            Some(units) => units,
            None => {
                let units = Units::new(self.form())?;
                known.get_or_init(|| units)
            }
        };
        Ok(Some(units))
    }

    fn foreign(&self) -> &Foreign {
        self.0.foreign.get_or_init(Box::default)
    }
}

/// A program that is shared: with its committed datatype, or by itself. It dereferences to the
/// program.
#[derive(Clone)]
pub struct SharedProgram(Shared);

#[derive(Clone)]
enum Shared {
    /// The program for the memory's own representation.
    Native(Committed),
    Other(Arc<Program>),
}

impl Deref for SharedProgram {
    type Target = Program;

    #[inline]
    fn deref(&self) -> &Program {
        match &self.0 {
            Shared::Native(committed) => committed.native(),
            Shared::Other(program) => program,
        }
    }
}

impl fmt::Debug for SharedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl From<Arc<Program>> for SharedProgram {
    fn from(program: Arc<Program>) -> SharedProgram {
        SharedProgram(Shared::Other(program))
    }
}

impl From<Program> for SharedProgram {
    fn from(program: Program) -> SharedProgram {
        Arc::new(program).into()
    }
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Committed({} on {})", self.datatype(), self.architecture())
    }
}

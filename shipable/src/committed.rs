//! Committed datatypes: a datatype with its bounds, its form and its programs.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::arch::Architecture;
use crate::bounds::Bounds;
use crate::datatype::Datatype;
use crate::error::Result;
use crate::form::{Form, Tag};
use crate::packed::Units;
use crate::program::Program;
use crate::signature::Signature;
use crate::survey::Survey;

/// A datatype committed for the memory of an architecture (MPI-5.0 section 5.1.9). Clones share it.
///
/// Commit checks that the datatype can be compiled, and computes its bounds. The shipable form and
/// the programs are computed on first use and kept.
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
pub struct Committed(Arc<Inner>);

/// Parts that most types never use are behind pointers, to keep the struct small.
struct Inner {
    datatype: Datatype,
    architecture: Architecture,
    portable: bool,
    bounds: Bounds,
    form: OnceLock<Box<Form>>,
    /// The program for a packed stream in the memory's own representation.
    native: OnceLock<Arc<Program>>,
    others: OnceLock<Box<Others>>,
    /// The layout of a packed buffer in XDR, computed on first use.
    units: OnceLock<Box<Units>>,
}

/// The programs for packed streams in other representations.
type Others = Mutex<Vec<(Architecture, Arc<Program>)>>;

impl Committed {
    /// Commits a datatype whose buffers lie in the memory of `architecture`.
    ///
    /// # Errors
    ///
    /// The errors of [`Form::compile`].
    pub fn new(datatype: &Datatype, architecture: &Architecture) -> Result<Committed> {
        if let Some(survey) = Survey::of_scalars(datatype, architecture) {
            return Ok(Committed::of(datatype, architecture, survey, None));
        }
        match Survey::of(datatype, architecture) {
            Ok(survey) if survey.safe => Ok(Committed::of(datatype, architecture, survey, None)),
            _ => Committed::compiled(datatype, architecture),
        }
    }

    /// Commits a type that the survey didn't find safe: compiling it shows whether it is valid.
    #[cold]
    fn compiled(datatype: &Datatype, architecture: &Architecture) -> Result<Committed> {
        let (form, native, bounds) = Form::compile_and_lower(datatype, architecture)?;
        let native = Arc::new(native);
        let survey = Survey { bounds, portable: form.tag() == Tag::Portable, safe: false };
        Ok(Committed::of(datatype, architecture, survey, Some((form, native))))
    }

    /// Makes a committed datatype from a survey, and from a form and a program if they exist.
    ///
    /// Inlined: a call would copy the survey, and reading back bytes that were just written stalls
    /// (docs/tuning.md, "Building a committed datatype").
    #[inline(always)]
    fn of(
        datatype: &Datatype,
        architecture: &Architecture,
        Survey { bounds, portable, .. }: Survey,
        made: Option<(Form, Arc<Program>)>,
    ) -> Committed {
        let (form, native) = match made {
            Some((form, native)) => (Box::new(form).into(), native.into()),
            None => (OnceLock::new(), OnceLock::new()),
        };
        Committed(Arc::new(Inner {
            datatype: datatype.clone(),
            architecture: *architecture,
            portable,
            bounds,
            form,
            native,
            others: OnceLock::new(),
            units: OnceLock::new(),
        }))
    }

    /// The datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.0.datatype
    }

    /// The architecture of the memory that its buffers lie in.
    pub fn architecture(&self) -> &Architecture {
        &self.0.architecture
    }

    /// The shipable form, compiled on first use.
    pub fn form(&self) -> &Form {
        let Inner { datatype, architecture, form, .. } = &*self.0;
        form.get_or_init(|| surveyed(Form::compile(datatype, architecture), datatype).into())
    }

    /// The tag of the form.
    pub fn tag(&self) -> Tag {
        if self.0.portable { Tag::Portable } else { Tag::Locale }
    }

    /// The type signature of one element.
    pub fn signature(&self) -> Signature {
        self.0.datatype.signature()
    }

    /// The bounds, extents and size of one element.
    pub fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    /// The program for a packed stream in the memory's own representation, lowered on first use.
    #[inline]
    pub fn native(&self) -> &Program {
        self.shared_native()
    }

    #[inline]
    fn shared_native(&self) -> &Arc<Program> {
        match self.0.native.get() {
            Some(native) => native,
            None => self.lower_native(),
        }
    }

    #[cold]
    fn lower_native(&self) -> &Arc<Program> {
        let Inner { datatype, architecture, form, native, .. } = &*self.0;
        let mut lowered = None;
        let form = form.get_or_init(|| {
            let both = Form::compile_and_lower(datatype, architecture);
            let (form, program, _) = surveyed(both, datatype);
            lowered = Some(program);
            form.into()
        });
        native.get_or_init(|| {
            let lower = || surveyed(form.lower(architecture, architecture), datatype);
            Arc::new(lowered.unwrap_or_else(lower))
        })
    }

    /// The program for a packed stream in the representation `stream`, lowered on first use.
    ///
    /// # Errors
    ///
    /// The errors of [`Form::lower`].
    pub fn program(&self, stream: &Architecture) -> Result<Arc<Program>> {
        let inner = &*self.0;
        if inner.architecture.same_representation(stream) {
            return Ok(Arc::clone(self.shared_native()));
        }
        // The list is valid even if a thread panicked with the lock: the push comes last.
        let mut others =
            inner.others.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = others.iter().find(|(known, _)| known == stream) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(self.form().lower(&inner.architecture, stream)?);
        others.push((*stream, Arc::clone(&program)));
        Ok(program)
    }

    /// The layout of a packed buffer of `representation`; `None` if it has no padding.
    pub(crate) fn units(&self, representation: &Architecture) -> Result<Option<&Units>> {
        if !representation.same_representation(&Architecture::XDR) {
            return Ok(None);
        }
        let units = match self.0.units.get() {
            Some(units) => units,
            None => {
                let units = Box::new(Units::new(self.form())?);
                self.0.units.get_or_init(|| units)
            }
        };
        Ok(Some(units))
    }
}

/// Unwraps a result for a type that commit found safe to compile.
fn surveyed<T>(made: Result<T>, datatype: &Datatype) -> T {
    made.unwrap_or_else(|error| unreachable!("commit found {datatype} safe to compile: {error}"))
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Committed({} on {})", self.datatype(), self.architecture())
    }
}

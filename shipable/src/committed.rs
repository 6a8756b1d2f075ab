//! Committed datatypes: a datatype with everything that communication needs to know about it.

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

/// A datatype committed in the memory of an architecture (MPI-5.0 section 5.1.9). Cloning shares it.
///
/// Commit compiles the shipable form and the program for the architecture's own packed stream; programs for other streams
/// are made on first use and kept.
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

struct Inner {
    datatype: Datatype,
    architecture: Architecture,
    form: Form,
    signature: Signature,
    bounds: Bounds,
    native: Arc<Program>,
    others: Mutex<Vec<(Architecture, Arc<Program>)>>,
    /// How items lie in XDR, once that was asked for.
    units: OnceLock<Units>,
}

impl Committed {
    /// Commits a datatype whose buffers lie in memory of `architecture`.
    ///
    /// # Errors
    ///
    /// As [`Form::compile`].
    pub fn new(datatype: &Datatype, architecture: &Architecture) -> Result<Committed> {
        let (form, bounds) = Form::compile_with_bounds(datatype, architecture)?;
        Ok(Committed(Arc::new(Inner {
            datatype: datatype.clone(),
            architecture: *architecture,
            signature: datatype.signature(),
            bounds,
            native: Arc::new(form.lower(architecture, architecture)?),
            others: Mutex::new(Vec::new()),
            units: OnceLock::new(),
            form,
        })))
    }

    /// The datatype.
    pub fn datatype(&self) -> &Datatype {
        &self.0.datatype
    }

    /// The architecture of the memory that it describes.
    pub fn architecture(&self) -> &Architecture {
        &self.0.architecture
    }

    /// The shipable form.
    pub fn form(&self) -> &Form {
        &self.0.form
    }

    /// The form's tag.
    pub fn tag(&self) -> Tag {
        self.0.form.tag()
    }

    /// The signature.
    pub fn signature(&self) -> Signature {
        self.0.signature
    }

    /// Bounds, extents and size.
    pub fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    /// The program for a packed stream in the memory's own representation.
    #[inline]
    pub fn native(&self) -> &Program {
        &self.0.native
    }

    /// The program for a packed stream of `stream`, made now or before.
    ///
    /// # Errors
    ///
    /// As [`Form::lower`].
    pub fn program(&self, stream: &Architecture) -> Result<Arc<Program>> {
        let inner = &*self.0;
        if inner.architecture.same_representation(stream) {
            return Ok(Arc::clone(&inner.native));
        }
        // A panic elsewhere leaves the list as it was.
        let mut others = inner.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = others.iter().find(|(known, _)| known == stream) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(inner.form.lower(&inner.architecture, stream)?);
        others.push((*stream, Arc::clone(&program)));
        Ok(program)
    }

    /// Where items lie in a packed buffer of `representation`, unless they follow each other without padding.
    pub(crate) fn units(&self, representation: &Architecture) -> Result<Option<&Units>> {
        if !representation.same_representation(&Architecture::XDR) {
            return Ok(None);
        }
        let units = match self.0.units.get() {
            Some(units) => units,
            None => {
                let units = Units::new(self.form())?;
                self.0.units.get_or_init(|| units)
            }
        };
        Ok(Some(units))
    }
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Committed({} on {})", self.datatype(), self.architecture())
    }
}

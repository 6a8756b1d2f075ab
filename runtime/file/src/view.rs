//! Views: what a rank sees of a file (MPI-5.0 section 14.3).

use longshore::{Architecture, Type};

use crate::datarep::Datarep;
use crate::error::Result;
use crate::layout::Layout;

/// What a rank sees of a file: from the displacement on, the data of the filetype, again and again,
/// counted in etypes.
///
/// [`File::set_view`](crate::File::set_view) has an example.
pub struct View {
    /// The start of the view, in bytes from the start of the file.
    pub disp: i64,
    /// The unit of offsets and accesses.
    pub etype: Type,
    /// The visible data of a tile.
    pub filetype: Type,
    /// The representation of values in the file.
    pub datarep: Datarep,
    pub(crate) layout: Layout,
}

impl View {
    pub(crate) fn new(
        disp: i64,
        etype: &Type,
        filetype: &Type,
        datarep: Datarep,
        own: &Architecture,
    ) -> Result<View> {
        let architecture = datarep.architecture(own);
        let layout = Layout::new(
            disp,
            (etype.datatype(), etype),
            (filetype.datatype(), filetype),
            &architecture,
        )?;
        Ok(View { disp, etype: etype.clone(), filetype: filetype.clone(), datarep, layout })
    }
}

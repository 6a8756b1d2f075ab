//! The error for a target type that isn't portable.

use shipable::datatype::Combiner;
use shipable::{Datatype, Form};

use super::excerpt::excerpt;
use super::kind::ErrorKind;

/// The error of rules T1 and T2 for a target type that isn't portable. It names the component that
/// made the type locale-specific, and the portable constructor to use instead.
pub(crate) fn locale_target(datatype: &Datatype, form: &Form, hint: &'static str) -> ErrorKind {
    let culprit = form.culprit();
    let remedy = match culprit.map(Datatype::combiner) {
        Some(Combiner::Struct | Combiner::StructInteger) => {
            "build it with simple_struct, or derive it from a #[repr(C)] struct and pass rank.type_of::<T>()"
        }
        Some(Combiner::Hvector | Combiner::HvectorInteger) => {
            "build it with vector, which strides in extents"
        }
        Some(Combiner::Hindexed | Combiner::HindexedInteger) => {
            "build it with indexed, which counts extents"
        }
        Some(Combiner::HindexedBlock) => "build it with indexed_block, which counts extents",
        Some(Combiner::Resized) => {
            "build it with a stride of vector, or as a larger simple_struct, in place of resized"
        }
        Some(Combiner::ValueIndex) => "use one of MPI's named pair types, such as c::DoubleInt",
        _ => "build it of portable constructors",
    };
    let combiner = culprit.map_or("", |culprit| culprit.combiner().mpi_name());
    let constructor = combiner.trim_start_matches("MPI_COMBINER_").to_lowercase();
    let culprit = culprit.map_or("byte displacements".to_owned(), |culprit| excerpt(culprit));
    ErrorKind::LocaleTarget { datatype: excerpt(datatype), culprit, constructor, remedy, hint }
}

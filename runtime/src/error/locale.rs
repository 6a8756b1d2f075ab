//! The error for a target type that isn't portable.

use std::borrow::Cow;

use shipable::datatype::Combiner;
use shipable::{Datatype, Form};

use super::excerpt::type_excerpt;
use super::kind::ErrorKind;
use super::words::words;

/// The error of rules T1 and T2 for a target type that isn't portable. It names the component that
/// made the type locale-specific, and the portable constructor to use instead.
pub(crate) fn locale_target(
    datatype: &Datatype,
    form: &Form,
    hint: impl Into<Cow<'static, str>>,
) -> ErrorKind {
    let hint = hint.into();
    let culprit = form.culprit();
    let remedy = match culprit.map(Datatype::combiner) {
        Some(Combiner::Struct | Combiner::StructInteger) => words().simple_struct,
        Some(Combiner::Hvector | Combiner::HvectorInteger) => words().vector,
        Some(Combiner::Hindexed | Combiner::HindexedInteger) => words().indexed,
        Some(Combiner::HindexedBlock) => words().indexed_block,
        Some(Combiner::Resized) => words().resized,
        Some(Combiner::ValueIndex) => words().named_pair,
        _ => "build it of portable constructors",
    };
    let combiner = culprit.map_or("", |culprit| culprit.combiner().mpi_name());
    let constructor = combiner.trim_start_matches("MPI_COMBINER_").to_lowercase();
    let culprit = culprit.map_or("byte displacements".to_owned(), type_excerpt);
    ErrorKind::LocaleTarget { datatype: type_excerpt(datatype), culprit, constructor, remedy, hint }
}

//! What all classes of objects have in common, and the objects that belong to no other chapter.
//!
//! | file | holds |
//! |---|---|
//! | [`object`] | the card of an object: name, attributes, error handler, hints |
//! | [`keyval`] | keyvals, and the attributes under them (MPI-5.0 section 7.7) |
//! | [`errhandler`], [`codes`] | error handlers; codes, classes and strings of errors (chapter 9) |
//! | [`info`], [`hint`] | infos; the keys that MPI and Longshore know (chapter 10) |
//!
//! A function is named as in MPI, without `MPI_` and in lower case. Objects are counted references,
//! so an object that is freed lives on while a call uses it.

pub(crate) mod codes;
pub(crate) mod errhandler;
pub(crate) mod hint;
pub(crate) mod info;
pub(crate) mod keyval;
pub(crate) mod object;

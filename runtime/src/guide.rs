//! [win]: crate::Window
//! [chain]: crate::Window::fences
//! [datatypes]: crate::Datatype
//! [fields]: crate::Element
//! [rules]: crate::ErrorKind
//! [hosts]: crate::job
//! [architectures]: crate::Architecture
#![doc = include_str!("../docs/guide.md")]
// The definitions above come first, so links lead to the items here and to other pages in the
// repository.

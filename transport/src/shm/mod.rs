//! Frames through rings in the segment.

pub(crate) mod ring;

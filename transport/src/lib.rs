//! How bytes move.

//! `#[derive(Shipable)]`.

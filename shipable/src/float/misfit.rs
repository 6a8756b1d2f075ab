//! The reasons for which a value has no representation in a format.

/// The reason why a value can't be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Misfit {
    /// An integer or character outside the target's range.
    #[error("doesn't fit")]
    Range,
    /// A finite number that rounds beyond the target's greatest.
    #[error("overflows")]
    Overflow,
    /// An x87 image with a nonzero exponent and no integer bit.
    #[error("is an x87 unnormal, which is no number")]
    Unnormal,
    /// An x87 infinity without its integer bit.
    #[error("is an x87 pseudo-infinity, which is no number")]
    PseudoInfinity,
    /// An x87 NaN without its integer bit.
    #[error("is an x87 pseudo-NaN, which is no number")]
    PseudoNan,
}

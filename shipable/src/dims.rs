//! Strided dimensions: the repetitions of a run in memory.

/// One strided dimension: `count` repetitions, `stride` bytes of memory apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dim {
    pub count: u64,
    pub stride: i64,
}

impl Dim {
    pub(crate) const ONE: Dim = Dim { count: 1, stride: 0 };

    /// Whether repeating this dimension at `stride` continues it at an unchanged stride, so that
    /// the two dimensions are one.
    pub(crate) fn continues(self, stride: i64) -> bool {
        i128::from(self.stride) * i128::from(self.count) == i128::from(stride)
    }
}

/// The dimensions of a run, from the outermost to the innermost. Unused ones come first and have
/// count 1.
pub(crate) type Dims = [Dim; 3];

/// The number of runs in all dimensions.
#[inline]
pub(crate) fn runs(dims: &Dims) -> u64 {
    dims.iter().map(|dim| dim.count).product()
}

/// The result of repeating a run.
pub(crate) enum Repeated {
    /// The dimensions hold the repetition.
    InDims,
    /// The copies adjoin, so the run itself is longer by this factor. The dimensions are unchanged.
    InRun(u64),
    /// All dimensions are in use, and are unchanged.
    No,
}

/// Repeats a run of `bytes` bytes, with its dimensions, `count` times, `stride` bytes apart.
#[inline(always)]
pub(crate) fn repeat(dims: &mut Dims, bytes: u64, count: u64, stride: i64) -> Repeated {
    match dims.iter().position(|dim| dim.count > 1) {
        None if u64::try_from(stride) == Ok(bytes) => return Repeated::InRun(count),
        Some(outer) if dims[outer].continues(stride) => dims[outer].count *= count,
        Some(0) => return Repeated::No,
        used => dims[used.unwrap_or(3) - 1] = Dim { count, stride },
    }
    Repeated::InDims
}

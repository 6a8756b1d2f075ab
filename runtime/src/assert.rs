//! Asserts of synchronisation calls (MPI-5.0 section 12.5.5).

use std::ops::BitOr;

use crate::error::{Error, ErrorKind, Result};

/// Promises of the program to a synchronisation call, which then needs to do less.
/// [`NONE`](Assert::NONE) is always correct.
///
/// ```
/// use longshore::Assert;
/// let asserts = Assert::NOSTORE | Assert::NOPUT;
/// assert!(asserts.contains(Assert::NOPUT) && !asserts.contains(Assert::NOSUCCEED));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Assert(u32);

impl Assert {
    /// No promise.
    pub const NONE: Assert = Assert(0);
    /// The matching calls are complete, or no lock conflicts. For start, post, lock and lock_all.
    pub const NOCHECK: Assert = Assert(1024);
    /// This rank has issued no operation in the epoch that the fence closes.
    pub const NOPRECEDE: Assert = Assert(2048);
    /// No rank puts into or accumulates to this rank's window in the epoch that the call opens.
    /// For fence and post.
    pub const NOPUT: Assert = Assert(4096);
    /// This rank hasn't stored to its window since the last synchronisation. For fence and post.
    pub const NOSTORE: Assert = Assert(8192);
    /// The fence opens no epoch.
    pub const NOSUCCEED: Assert = Assert(16384);

    /// The asserts with these bits. They are those of the MPI ABI.
    ///
    /// ```
    /// use longshore::{Assert, Class};
    ///
    /// assert_eq!(Assert::from_bits(4096)?, Assert::NOPUT);
    /// assert_eq!(Assert::NOPUT.bits(), 4096);
    /// assert_eq!(Assert::from_bits(1).unwrap_err().class(), Class::Assert);
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// ASSERT for unknown bits (rule 10).
    #[inline]
    pub fn from_bits(bits: u32) -> Result<Assert> {
        let known = Assert::NOCHECK
            | Assert::NOPRECEDE
            | Assert::NOPUT
            | Assert::NOSTORE
            | Assert::NOSUCCEED;
        Assert(bits).allowed("a synchronisation call", known)?;
        Ok(Assert(bits))
    }

    /// The bits of the asserts, as in the MPI ABI.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether all asserts of `other` are set.
    #[inline]
    pub fn contains(self, other: Assert) -> bool {
        self.0 & other.0 == other.0
    }

    /// Checks the asserts of a fence (rule 10).
    #[inline]
    pub(crate) fn allowed_to_fence(self) -> Result<()> {
        let known = Assert::NOSTORE | Assert::NOPUT | Assert::NOPRECEDE | Assert::NOSUCCEED;
        self.allowed("fence", known)
    }

    /// Refuses asserts that `call` doesn't take (rule 10).
    #[inline]
    pub(crate) fn allowed(self, call: &'static str, known: Assert) -> Result<()> {
        match self.0 & !known.0 {
            0 => Ok(()),
            unknown => Err(refused(call, unknown)),
        }
    }
}

#[cold]
fn refused(call: &'static str, unknown: u32) -> Error {
    ErrorKind::Assert { call, unknown }.into()
}

impl BitOr for Assert {
    type Output = Assert;

    fn bitor(self, other: Assert) -> Assert {
        Assert(self.0 | other.0)
    }
}

//! What a program promises about its use of a window, so that calls may do less (MPI-5.0 section 12.5.5).

use std::ops::BitOr;

use crate::error::{Error, ErrorKind, Result};

/// Promises to a synchronisation call. None is always right.
///
/// ```
/// use longshore::Assert;
/// let asserts = Assert::NOSTORE | Assert::NOPUT;
/// assert!(asserts.contains(Assert::NOPUT) && !asserts.contains(Assert::NOSUCCEED));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Assert(u32);

impl Assert {
    /// None.
    pub const NONE: Assert = Assert(0);
    /// The calls that this one would wait for were made already, or no lock conflicts: to start, post, lock and lock_all.
    pub const NOCHECK: Assert = Assert(1024);
    /// No operation of this rank was issued in the epoch that the fence ends.
    pub const NOPRECEDE: Assert = Assert(2048);
    /// Nobody puts into or accumulates to this rank's window until the epoch after this call ends: to fence and post.
    pub const NOPUT: Assert = Assert(4096);
    /// This rank has not stored to its window since the last synchronisation: to fence and post.
    pub const NOSTORE: Assert = Assert(8192);
    /// The fence opens no epoch.
    pub const NOSUCCEED: Assert = Assert(16384);

    /// Those with these bits, which are the MPI ABI's.
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
    /// ASSERT for bits that mean nothing (rule 10).
    pub fn from_bits(bits: u32) -> Result<Assert> {
        let known = Assert::NOCHECK
            | Assert::NOPRECEDE
            | Assert::NOPUT
            | Assert::NOSTORE
            | Assert::NOSUCCEED;
        Assert(bits).allowed("a synchronisation call", known)?;
        Ok(Assert(bits))
    }

    /// Its bits.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `other` are among these.
    #[inline]
    pub fn contains(self, other: Assert) -> bool {
        self.0 & other.0 == other.0
    }

    /// Rule 10 for a fence.
    pub(crate) fn allowed_to_fence(self) -> Result<()> {
        let known = Assert::NOSTORE | Assert::NOPUT | Assert::NOPRECEDE | Assert::NOSUCCEED;
        self.allowed("fence", known)
    }

    /// Rule 10: a call takes these only.
    pub(crate) fn allowed(self, call: &'static str, known: Assert) -> Result<()> {
        match self.0 & !known.0 {
            0 => Ok(()),
            unknown => Err(Error::from(ErrorKind::Assert { call, unknown })),
        }
    }
}

impl BitOr for Assert {
    type Output = Assert;

    fn bitor(self, other: Assert) -> Assert {
        Assert(self.0 | other.0)
    }
}

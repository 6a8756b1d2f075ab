//! Errors of the program and of other libraries, so that `?` works on them in a closure that
//! returns this crate's [`Result`](super::Result).

use super::{Error, ErrorKind};

impl Error {
    /// An error of the program's own, of class OTHER: for `?` in the closure of an epoch, on an
    /// error that this crate doesn't know. The usual errors of the standard library convert without
    /// it.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// use longshore::{Class, Error};
    ///
    /// # let mut window = Window::allocate(rank.world(), 64, 8, &Info::default())?;
    /// let me = rank.world().rank();
    /// let long = rank.type_of::<i64>()?;
    /// let mut value = [0i64];
    /// let parsed = window.fence(|epoch| {
    ///     let at: i64 = "seven".parse()?;
    ///     epoch.get(&mut value, me, at, 1, &long)
    /// });
    /// assert_eq!(parsed.unwrap_err().class(), Class::Other);
    /// let refused = window.fence(|_| {
    ///     let late: Result<(), &str> = Err("the sensor is silent");
    ///     late.map_err(Error::other)
    /// });
    /// assert_eq!(refused.unwrap_err().to_string(), "the sensor is silent");
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        ErrorKind::Other(error.into()).into()
    }
}

macro_rules! foreign {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for ErrorKind {
            fn from(error: $error) -> ErrorKind {
                ErrorKind::Other(Box::new(error))
            }
        })*
    };
}

foreign! {
    std::io::Error,
    std::num::ParseFloatError,
    std::num::ParseIntError,
    std::num::TryFromIntError,
    std::str::ParseBoolError,
    std::str::Utf8Error,
    std::string::FromUtf8Error,
}

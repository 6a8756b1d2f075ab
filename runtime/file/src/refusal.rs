//! Collective calls that one rank refuses: it has no valid arguments, and the others wait for it.

use longshore::Communicator;

use crate::agreement::{agree, same};
use crate::error::{Error, Result};
use crate::file::{File, MODES, NODES};
use crate::status::Status;
use crate::transfer::At;

impl File {
    /// Takes part in an [`open`](File::open) for a rank that has an error in place of arguments.
    /// The open then fails at all ranks.
    ///
    /// ```
    /// use longshore_file::{Error, File};
    ///
    /// let rank = longshore::init()?;
    /// let class = longshore::Class::Arg;
    /// let error = Error::Argument { class, problem: "the path is null".to_owned() };
    /// // The other ranks call `File::open` or `File::refuse_open`.
    /// assert_eq!(File::refuse_open(rank.world(), error).class(), class);
    /// rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns the error, or that of the runtime if this rank can't take part.
    pub fn refuse_open(comm: &Communicator, error: Error) -> Error {
        let own = match comm.dup() {
            Ok(own) => own,
            Err(error) => return error.into(),
        };
        let refused = same(&own, MODES, Err(error));
        let freed = own.free().map_err(Error::from);
        refused.and(freed).err().unwrap_or(Error::Elsewhere {
            rank: comm.rank(),
            class: longshore::Class::Intern,
            text: "an open that was refused has succeeded".to_owned(),
        })
    }

    /// Takes part in a collective call for a rank that has an error in place of arguments, such as
    /// a conversion of its own that failed. The call then fails at all ranks. An interface in
    /// another language uses it for the errors that it finds before the call.
    ///
    /// `call` is the name of the method. A call that isn't collective only returns the error.
    ///
    /// ```
    /// # use longshore_file::{Amode, Error, File, Info};
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-refuse", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.world(), path.to_str().unwrap(), amode, &Info::default())?;
    /// let class = longshore::Class::Buffer;
    /// let error = Error::Argument { class, problem: "the buffer is null".to_owned() };
    /// // The other ranks call `file.write_all` or `file.refuse`.
    /// assert_eq!(file.refuse("write_all", error).unwrap_err().class(), class);
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The error. The begin of a split collective call keeps it for the end, and returns IO if
    /// another one has begun.
    pub fn refuse(&self, call: &'static str, error: Error) -> Result<()> {
        match call.strip_suffix("_begin") {
            Some(call) => self.begin(call, || self.refuse_access(call, error)),
            None => self.refuse_access(call, error).map(drop),
        }
    }

    fn refuse_access(&self, call: &'static str, error: Error) -> Result<Status> {
        match call {
            "read_all" | "write_all" | "read_at_all" | "write_at_all" => {
                self.collective(call, At::Pointer, Err(error))
            }
            "read_ordered" | "write_ordered" => self.in_order(call, Err(error)),
            "set_info" => same(&self.comm, NODES, Err(error)).map(|()| Status::default()),
            // These agree first on the arguments of each rank.
            "set_view" | "seek_shared" => agree(&self.comm, Err(error)),
            _ => Err(error),
        }
    }

    /// Lets the end of the split collective call that has begun return an error: that of a
    /// conversion by an interface after the access.
    pub fn fail_split(&self, error: Error) {
        if let Some(split) = &mut self.core.state().split {
            split.outcome = Err(error);
        }
    }
}

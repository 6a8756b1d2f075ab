//! Accesses by explicit offsets and by the individual pointer (MPI-5.0 sections 14.4.2 and 14.4.3).

use longshore::{Class, Destination, Origin};

use crate::error::{Error, Result};
use crate::file::File;
use crate::status::Status;
use crate::transfer::{Access, At, Data};

/// The reference of an offset (MPI-5.0 section 14.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The start of the view.
    Set,
    /// The pointer.
    Cur,
    /// The end of the file.
    End,
}

impl File {
    /// Checks an access, and moves the individual pointer on if it is used.
    pub(crate) fn prepare(&self, call: &'static str, at: At, data: &Data<'_>) -> Result<Access> {
        let writes = data.writes();
        self.may(call, writes, matches!(at, At::Shared(_)))?;
        let native = data.native(&self.comm.representation(self.comm.rank())?)?;
        let mut state = self.core.state();
        let (view, info) = (state.view.clone(), state.info.clone());
        let etypes = data.etypes(&view)?;
        let offset = match at {
            At::Offset(offset) | At::Shared(offset) => offset,
            At::Pointer => state.pointer,
        };
        let start = view.layout.position(offset)?;
        let end = offset.checked_add(etypes).ok_or_else(|| {
            let problem = format!("{etypes} etypes from offset {offset} on are too many");
            Error::argument(Class::Arg, problem)
        })?;
        let part = start..view.layout.position(end)?;
        if writes && view.layout.overlaps_in(&part)? {
            let problem = format!(
                "tiles of the view's filetype overlap each other, and {etypes} etypes from offset \
                 {offset} on lie in several: a write of them would write bytes twice"
            );
            return Err(Error::argument(Class::Io, problem));
        }
        if matches!(at, At::Pointer) {
            state.pointer = end;
        }
        drop(state);
        Ok(Access { core: self.core.clone(), view, info, part, native, writes })
    }

    /// An access of this rank that ends before the call does.
    pub(crate) fn individual(
        &self,
        call: &'static str,
        at: At,
        mut data: Data<'_>,
    ) -> Result<Status> {
        let access = self.prepare(call, at, &data)?;
        let moved = access.carry_out(&mut data);
        access.outcome(&data, moved)
    }

    pub(crate) fn source<'a>(&self, data: Origin<'a>) -> Result<Data<'a>> {
        Ok(Data::Write(data.source(&self.comm)?))
    }

    pub(crate) fn sink<'a>(&self, room: Destination<'a>) -> Result<Data<'a>> {
        Ok(Data::Read(room.sink(&self.comm)?))
    }

    /// Reads elements at an offset of the view, in etypes (MPI-5.0 section 14.4.2). The status says
    /// how much was read: less than the room has if the file ends.
    ///
    /// ```
    /// # use longshore_file::{Amode, File, Info};
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-at", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.alone(), path.to_str().unwrap(), amode, &Info::default())?;
    /// file.write_at(4, &[1u8, 2, 3])?;
    /// let mut room = [9u8; 5];
    /// let status = file.read_at(3, &mut room)?;
    /// assert_eq!((room, status.bytes), ([0, 1, 2, 3, 9], 4));
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// ARG for a negative offset, or one that is too large. TYPE if the elements are no whole
    /// number of etypes. ACCESS for a file that is only written. UNSUPPORTED_OPERATION for one in
    /// sequential mode. CONVERSION for a value that this rank's type can't hold; the elements
    /// before it are read. IO if the system fails. Those of the runtime for the room.
    #[doc(alias = "MPI_File_read_at")]
    pub fn read_at<'a>(&self, offset: i64, room: impl Into<Destination<'a>>) -> Result<Status> {
        self.individual("read_at", At::Offset(offset), self.sink(room.into())?)
    }

    /// Writes elements at an offset of the view, in etypes (MPI-5.0 section 14.4.2). See
    /// [`read_at`](File::read_at).
    ///
    /// # Errors
    /// READ_ONLY for a file that is only read. NO_SPACE or QUOTA if there is no room. CONVERSION
    /// for a value that the file's representation can't hold; the elements before it are written.
    /// Otherwise those of [`read_at`](File::read_at).
    #[doc(alias = "MPI_File_write_at")]
    pub fn write_at<'a>(&self, offset: i64, data: impl Into<Origin<'a>>) -> Result<Status> {
        self.individual("write_at", At::Offset(offset), self.source(data.into())?)
    }

    /// Reads elements at the individual pointer, which moves on by the room's elements (MPI-5.0
    /// section 14.4.3).
    ///
    /// # Errors
    /// Those of [`read_at`](File::read_at).
    #[doc(alias = "MPI_File_read")]
    pub fn read<'a>(&self, room: impl Into<Destination<'a>>) -> Result<Status> {
        self.individual("read", At::Pointer, self.sink(room.into())?)
    }

    /// Writes elements at the individual pointer, which moves on (MPI-5.0 section 14.4.3).
    ///
    /// # Errors
    /// Those of [`write_at`](File::write_at).
    #[doc(alias = "MPI_File_write")]
    pub fn write<'a>(&self, data: impl Into<Origin<'a>>) -> Result<Status> {
        self.individual("write", At::Pointer, self.source(data.into())?)
    }

    /// Moves the individual pointer to an offset in etypes, from the start of the view, from the
    /// pointer, or from the end of the file (MPI-5.0 section 14.4.3).
    ///
    /// ```
    /// # use longshore_file::{Amode, File, Info, Whence};
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-seek", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.alone(), path.to_str().unwrap(), amode, &Info::default())?;
    /// file.write(&[1u8, 2, 3])?;
    /// file.seek(-2, Whence::End)?;
    /// let mut room = [0u8];
    /// file.read(&mut room)?;
    /// assert_eq!((room, file.position()?), ([2], 2));
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// ARG for a position before the start of the view. UNSUPPORTED_OPERATION in sequential mode.
    #[doc(alias = "MPI_File_seek")]
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<()> {
        self.may_seek("seek")?;
        let current = self.core.state().pointer;
        let to = self.sought(offset, whence, || Ok(current))?;
        self.core.state().pointer = to;
        Ok(())
    }

    pub(crate) fn may_seek(&self, call: &'static str) -> Result<()> {
        let writes = self.core.amode.may_write();
        self.may(call, writes, false)
    }

    /// The offset that a seek leads to.
    pub(crate) fn sought(
        &self,
        offset: i64,
        whence: Whence,
        current: impl FnOnce() -> Result<i64>,
    ) -> Result<i64> {
        let from = match whence {
            Whence::Set => 0,
            Whence::Cur => current()?,
            Whence::End => self.view().layout.etypes_before(self.core.storage.size()?)?,
        };
        from.checked_add(offset).filter(|to| *to >= 0).ok_or_else(|| {
            let problem = format!(
                "the offset {offset} from {from} leads to a position before the start of the view, \
                 or too far"
            );
            Error::argument(Class::Arg, problem)
        })
    }

    /// The individual pointer, in etypes from the start of the view (MPI-5.0 section 14.4.3).
    ///
    /// # Errors
    /// UNSUPPORTED_OPERATION in sequential mode.
    #[doc(alias = "MPI_File_get_position")]
    pub fn position(&self) -> Result<i64> {
        self.may_seek("position")?;
        Ok(self.core.state().pointer)
    }
}

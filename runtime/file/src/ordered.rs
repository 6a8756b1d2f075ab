//! Accesses by the shared pointer (MPI-5.0 section 14.4.4).

use longshore::{Destination, Origin};

use crate::access::Whence;
use crate::agreement::{agree, same};
use crate::error::Result;
use crate::file::File;
use crate::status::Status;
use crate::transfer::{At, Data};

impl File {
    /// Moves the shared pointer on by the etypes of an access, and returns where that begins.
    pub(crate) fn draw(&self, call: &'static str, data: &Data<'_>) -> Result<i64> {
        self.may(call, data.writes(), true)?;
        self.pointer.advance(data.etypes(&self.view())?)
    }

    /// Reads elements at the shared pointer, which moves on (MPI-5.0 section 14.4.4).
    ///
    /// ```
    /// # use longshore_file::{Amode, File, Info, Whence};
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-shared", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.world(), path.to_str().unwrap(), amode, &Info::default())?;
    /// // Each rank appends a record, in any order.
    /// file.write_shared(&[7u8; 4])?;
    /// rank.world().barrier()?;
    /// assert_eq!(file.size()?, 4 * i64::from(rank.world().size()));
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`read_at`](File::read_at), which is allowed in sequential mode here.
    #[doc(alias = "MPI_File_read_shared")]
    pub fn read_shared<'a>(&self, room: impl Into<Destination<'a>>) -> Result<Status> {
        let data = self.sink(room.into())?;
        let offset = self.draw("read_shared", &data)?;
        self.individual("read_shared", At::Shared(offset), data)
    }

    /// Writes elements at the shared pointer, which moves on (MPI-5.0 section 14.4.4). See
    /// [`read_shared`](File::read_shared).
    ///
    /// # Errors
    /// Those of [`write_at`](File::write_at), which is allowed in sequential mode here.
    #[doc(alias = "MPI_File_write_shared")]
    pub fn write_shared<'a>(&self, data: impl Into<Origin<'a>>) -> Result<Status> {
        let data = self.source(data.into())?;
        let offset = self.draw("write_shared", &data)?;
        self.individual("write_shared", At::Shared(offset), data)
    }

    /// Reads the ranks' elements in the order of ranks from the shared pointer on, which moves past
    /// all of them (MPI-5.0 section 14.4.4). Collective.
    ///
    /// # Errors
    /// Those of [`read_shared`](File::read_shared), at all ranks if one has an error.
    #[doc(alias = "MPI_File_read_ordered")]
    pub fn read_ordered<'a>(&self, room: impl Into<Destination<'a>>) -> Result<Status> {
        self.in_order("read_ordered", self.sink(room.into()))
    }

    /// Writes the ranks' elements in the order of ranks from the shared pointer on, which moves
    /// past all of them (MPI-5.0 section 14.4.4). Collective.
    ///
    /// ```
    /// # use longshore_file::{Amode, File, Info, Whence};
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-order", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.world(), path.to_str().unwrap(), amode, &Info::default())?;
    /// file.write_ordered(&[rank.world().rank() as u8])?;
    /// let mut all = vec![0; rank.world().size() as usize];
    /// file.read_at_all(0, &mut all[..])?;
    /// assert_eq!(all, Vec::from_iter(0..rank.world().size() as u8));
    /// assert_eq!(file.position_shared()?, i64::from(rank.world().size()));
    /// file.seek_shared(-1, Whence::End)?;
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write_shared`](File::write_shared), at all ranks if one has an error.
    #[doc(alias = "MPI_File_write_ordered")]
    pub fn write_ordered<'a>(&self, data: impl Into<Origin<'a>>) -> Result<Status> {
        self.in_order("write_ordered", self.source(data.into()))
    }

    pub(crate) fn in_order(&self, call: &'static str, data: Result<Data<'_>>) -> Result<Status> {
        let checked = data.and_then(|data| {
            self.may(call, data.writes(), true)?;
            let etypes = data.etypes(&self.view())?;
            Ok((data, etypes))
        });
        let (data, etypes) = agree(&self.comm, checked)?;
        let all = self.comm.allgather(&[etypes])?;
        let mut first = [0];
        let drawn = match self.comm.rank() {
            0 => self.pointer.advance(all.iter().sum()).map(|at| first = [at]),
            _ => Ok(()),
        };
        agree(&self.comm, drawn)?;
        self.comm.bcast(&mut first, 0)?;
        let before: i64 = all[..self.comm.rank() as usize].iter().sum();
        self.collective(call, At::Shared(first[0] + before), Ok(data))
    }

    /// Moves the shared pointer; see [`seek`](File::seek). Collective. All ranks give the same
    /// offset.
    ///
    /// # Errors
    /// NOT_SAME if the ranks differ. Those of [`seek`](File::seek), except that sequential mode
    /// allows no seek either.
    #[doc(alias = "MPI_File_seek_shared")]
    pub fn seek_shared(&self, offset: i64, whence: Whence) -> Result<()> {
        agree(&self.comm, self.may_seek("seek_shared"))?;
        same(&self.comm, "offsets", Ok(offset))?;
        same(&self.comm, "references of the offset", Ok(whence as i64))?;
        let sought = match self.comm.rank() {
            0 => self
                .sought(offset, whence, || self.pointer.get())
                .and_then(|to| self.pointer.set(to)),
            _ => Ok(()),
        };
        agree(&self.comm, sought)?;
        Ok(self.comm.barrier()?)
    }

    /// The shared pointer, in etypes from the start of the view (MPI-5.0 section 14.4.4).
    ///
    /// # Errors
    /// Those of the runtime.
    #[doc(alias = "MPI_File_get_position_shared")]
    pub fn position_shared(&self) -> Result<i64> {
        self.pointer.get()
    }
}

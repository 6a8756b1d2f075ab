//! Accesses with requests (MPI-5.0 section 14.4). They make progress without the caller.

use std::sync::{Arc, Mutex, PoisonError};

use longshore::{Class, General, Given, Holding, Memory};

use crate::error::{Error, Result};
use crate::file::File;
use crate::status::Status;
use crate::transfer::{At, Data};

/// The longest access that a call carries out itself: handing it to another thread takes as long.
const AT_ONCE: u64 = 16 << 10;

/// An access that is under way. It owns its memory, which [`wait`](Request::wait) returns.
///
/// ```
/// # use longshore_file::{Amode, File, Info};
/// # let rank = longshore::init()?;
/// # let path = std::env::temp_dir().join(format!("longshore-{}-ireq", std::process::id()));
/// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
/// let file = File::open(rank.alone(), path.to_str().unwrap(), amode, &Info::default())?;
/// let writing = file.iwrite_at(0, vec![7u8; 100_000])?;
/// // Requests of files are waited for together with others.
/// longshore::wait_all(&[writing.waitable()])?;
/// let (data, status) = writing.wait()?;
/// assert_eq!((data.len(), status.bytes), (100_000, 100_000));
/// # file.close()?;
/// # rank.finalize()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "`wait` returns the memory and the outcome"]
pub struct Request<M> {
    general: General,
    outcome: Arc<Mutex<Option<Result<Status>>>>,
    memory: Holding<M>,
}

impl<M: Memory> Request<M> {
    /// What calls of the runtime wait for.
    pub fn waitable(&self) -> &General {
        &self.general
    }

    /// Whether the access has ended, so that [`wait`](Request::wait) returns at once.
    ///
    /// # Errors
    /// PROC_ABORTED if the job is being aborted.
    pub fn test(&self) -> Result<bool> {
        Ok(self.general.test()?)
    }

    /// Waits for the end of the access, and returns the memory.
    ///
    /// # Errors
    /// Those of the access. The memory is dropped then.
    pub fn wait(self) -> Result<(M, Status)> {
        self.general.wait()?;
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lost = |what: &str| Error::argument(Class::Intern, what);
        let status = outcome.ok_or_else(|| lost("the thread of the access has panicked"))??;
        let memory = self.memory.give_back();
        Ok((memory.ok_or_else(|| lost("the memory of the access is still in use"))?, status))
    }
}

impl File {
    /// Starts an access.
    pub(crate) fn start<M: Memory>(
        &self,
        call: &'static str,
        at: At,
        (mut data, memory): (Data<'static>, Holding<M>),
    ) -> Result<Request<M>> {
        let access = self.prepare(call, at, &data)?;
        let (completer, general) = self.comm.general();
        let outcome = Arc::new(Mutex::new(None));
        let place = outcome.clone();
        let is_short = access.part.end - access.part.start <= AT_ONCE;
        let at_once = is_short && access.core.atomicity().is_none();
        let open = self.lanes.begin();
        let job = move || {
            let moved = access.carry_out(&mut data);
            let came_to = access.outcome(&data, moved);
            // The memory is free when the request is complete.
            drop(data);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(came_to);
            // The file may be closed as soon as the request is complete.
            drop((access, open));
            completer.complete();
        };
        if at_once {
            job()
        } else {
            self.lanes.run(job)
        }
        Ok(Request { general, outcome, memory })
    }

    pub(crate) fn given_source<M: Memory>(
        &self,
        data: impl Into<Given<M>>,
    ) -> Result<(Data<'static>, Holding<M>)> {
        let (source, memory) = data.into().source(&self.comm)?;
        Ok((Data::Write(source), memory))
    }

    pub(crate) fn given_sink<M: Memory>(
        &self,
        room: impl Into<Given<M>>,
    ) -> Result<(Data<'static>, Holding<M>)> {
        let (sink, memory) = room.into().sink(&self.comm)?;
        Ok((Data::Read(sink), memory))
    }

    /// Starts to read elements at an offset of the view; see [`read_at`](File::read_at).
    ///
    /// # Errors
    /// Those of [`read_at`](File::read_at): those of the arguments at once, the others by the
    /// request.
    #[doc(alias = "MPI_File_iread_at")]
    pub fn iread_at<M: Memory>(
        &self,
        offset: i64,
        room: impl Into<Given<M>>,
    ) -> Result<Request<M>> {
        self.start("iread_at", At::Offset(offset), self.given_sink(room)?)
    }

    /// Starts to write elements at an offset of the view; see [`write_at`](File::write_at).
    ///
    /// # Errors
    /// Those of [`write_at`](File::write_at): those of the arguments at once, the others by the
    /// request.
    #[doc(alias = "MPI_File_iwrite_at")]
    pub fn iwrite_at<M: Memory>(
        &self,
        offset: i64,
        data: impl Into<Given<M>>,
    ) -> Result<Request<M>> {
        self.start("iwrite_at", At::Offset(offset), self.given_source(data)?)
    }

    /// Starts to read elements at the individual pointer, which moves on at once; see
    /// [`read`](File::read).
    ///
    /// # Errors
    /// Those of [`iread_at`](File::iread_at).
    #[doc(alias = "MPI_File_iread")]
    pub fn iread<M: Memory>(&self, room: impl Into<Given<M>>) -> Result<Request<M>> {
        self.start("iread", At::Pointer, self.given_sink(room)?)
    }

    /// Starts to write elements at the individual pointer, which moves on at once; see
    /// [`write`](File::write).
    ///
    /// # Errors
    /// Those of [`iwrite_at`](File::iwrite_at).
    #[doc(alias = "MPI_File_iwrite")]
    pub fn iwrite<M: Memory>(&self, data: impl Into<Given<M>>) -> Result<Request<M>> {
        self.start("iwrite", At::Pointer, self.given_source(data)?)
    }

    /// Starts to read elements at an offset of the view, at all ranks (MPI-5.0 section 14.4.2).
    /// Collective. No rank waits for another one: a rank's request is complete when its own
    /// elements are read.
    ///
    /// # Errors
    /// Those of [`iread_at`](File::iread_at), of this rank only.
    #[doc(alias = "MPI_File_iread_at_all")]
    pub fn iread_at_all<M: Memory>(
        &self,
        offset: i64,
        room: impl Into<Given<M>>,
    ) -> Result<Request<M>> {
        self.start("iread_at_all", At::Offset(offset), self.given_sink(room)?)
    }

    /// Starts to write elements at an offset of the view, at all ranks (MPI-5.0 section 14.4.2).
    /// Collective. No rank waits for another one: a rank's request is complete when its own
    /// elements are written.
    ///
    /// # Errors
    /// Those of [`iwrite_at`](File::iwrite_at), of this rank only.
    #[doc(alias = "MPI_File_iwrite_at_all")]
    pub fn iwrite_at_all<M: Memory>(
        &self,
        offset: i64,
        data: impl Into<Given<M>>,
    ) -> Result<Request<M>> {
        self.start("iwrite_at_all", At::Offset(offset), self.given_source(data)?)
    }

    /// Starts to read elements at the individual pointer, at all ranks; see
    /// [`iread_at_all`](File::iread_at_all).
    ///
    /// # Errors
    /// Those of [`iread_at_all`](File::iread_at_all).
    #[doc(alias = "MPI_File_iread_all")]
    pub fn iread_all<M: Memory>(&self, room: impl Into<Given<M>>) -> Result<Request<M>> {
        self.start("iread_all", At::Pointer, self.given_sink(room)?)
    }

    /// Starts to write elements at the individual pointer, at all ranks; see
    /// [`iwrite_at_all`](File::iwrite_at_all).
    ///
    /// # Errors
    /// Those of [`iwrite_at_all`](File::iwrite_at_all).
    #[doc(alias = "MPI_File_iwrite_all")]
    pub fn iwrite_all<M: Memory>(&self, data: impl Into<Given<M>>) -> Result<Request<M>> {
        self.start("iwrite_all", At::Pointer, self.given_source(data)?)
    }

    /// Starts to read elements at the shared pointer, which moves on at once; see
    /// [`read_shared`](File::read_shared).
    ///
    /// # Errors
    /// Those of [`iread_at`](File::iread_at).
    #[doc(alias = "MPI_File_iread_shared")]
    pub fn iread_shared<M: Memory>(&self, room: impl Into<Given<M>>) -> Result<Request<M>> {
        let (data, memory) = self.given_sink(room)?;
        let offset = self.draw("iread_shared", &data)?;
        self.start("iread_shared", At::Shared(offset), (data, memory))
    }

    /// Starts to write elements at the shared pointer, which moves on at once; see
    /// [`write_shared`](File::write_shared).
    ///
    /// # Errors
    /// Those of [`iwrite_at`](File::iwrite_at).
    #[doc(alias = "MPI_File_iwrite_shared")]
    pub fn iwrite_shared<M: Memory>(&self, data: impl Into<Given<M>>) -> Result<Request<M>> {
        let (data, memory) = self.given_source(data)?;
        let offset = self.draw("iwrite_shared", &data)?;
        self.start("iwrite_shared", At::Shared(offset), (data, memory))
    }
}

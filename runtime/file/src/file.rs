//! [`File`]: opening and closing, sizes, hints, views, and queries (MPI-5.0 sections 14.2 and
//! 14.6).

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use longshore::{Class, Communicator, Datatype, Group, Type};

use crate::agreement::{agree, same};
use crate::amode::Amode;
use crate::core::Core;
use crate::datarep::Datarep;
use crate::error::{Error, Result};
use crate::hosts::Hosts;
use crate::info::Info;
use crate::lanes::Lanes;
use crate::shared::Pointer;
use crate::staged::Stage;
use crate::storage::{self, Storage};
use crate::view::View;

/// The numbers that the ranks compare first when they open a file, and when they change its hints.
pub(crate) const MODES: &str = "modes of access";
pub(crate) const NODES: &str = "values of cb_nodes";

/// A file that the ranks of a communicator have opened together.
///
/// ```
/// use longshore_file::{Amode, File, Info};
///
/// let rank = longshore::init()?;
/// let world = rank.world();
/// let path = std::env::temp_dir().join(format!("longshore-{}", std::process::id()));
/// let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
/// let file = File::open(world, path.to_str().unwrap(), amode, &Info::default())?;
/// let double = rank.type_of::<f64>()?;
/// file.set_view(0, &double, &double, "external32", &Info::default())?;
/// // Each rank writes two numbers of its own. On every machine the file has the same bytes.
/// let (mine, first) = ([1.5, 2.5], 2 * i64::from(world.rank()));
/// file.write_at_all(first, &mine)?;
/// let mut read = [0.0; 2];
/// file.read_at_all(first, &mut read)?;
/// assert_eq!(read, mine);
/// file.close()?;
/// rank.finalize()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct File {
    pub(crate) comm: Communicator,
    pub(crate) core: Arc<Core>,
    pub(crate) pointer: Pointer,
    pub(crate) lanes: Lanes,
    pub(crate) hosts: Hosts,
    /// The buffers of collective accesses; made by the first one that needs them.
    pub(crate) stage: Mutex<Option<Stage>>,
    group: Group,
}

impl File {
    /// Opens a file by all ranks of a communicator (MPI-5.0 section 14.2.1). Collective. All ranks
    /// give the same mode, and paths of the same file.
    ///
    /// At first the view is one of bytes from the start of the file, in the representation
    /// `native`.
    ///
    /// # Errors
    /// At all ranks, the first rank's error of these: AMODE for modes that contradict each other.
    /// NOT_SAME if the modes differ, or if the path isn't the same file everywhere. NO_SUCH_FILE,
    /// FILE_EXISTS, ACCESS, READ_ONLY, NO_SPACE, QUOTA, BAD_FILE (for a directory, too) or IO if
    /// the system refuses it. Those of the runtime for the communicator.
    #[doc(alias = "MPI_File_open")]
    pub fn open(
        comm: &Communicator,
        path: impl AsRef<Path>,
        amode: Amode,
        info: &Info,
    ) -> Result<File> {
        if comm.remote_group().is_some() {
            let problem = "files aren't opened by intercommunicators: merge its groups first";
            return Err(Error::argument(Class::Comm, problem));
        }
        let own = comm.dup()?;
        match File::open_on(&own, path.as_ref(), amode, info) {
            Ok((core, pointer)) => {
                let (core, lanes) = (Arc::new(core), Lanes::new());
                let (hosts, group) = (Hosts::default(), comm.group().clone());
                let stage = Mutex::default();
                Ok(File { comm: own, core, pointer, lanes, hosts, stage, group })
            }
            Err(error) => {
                own.free()?;
                Err(error)
            }
        }
    }

    fn open_on(
        comm: &Communicator,
        path: &Path,
        amode: Amode,
        info: &Info,
    ) -> Result<(Core, Pointer)> {
        same(comm, MODES, Ok(amode.bits().into()))?;
        amode.check()?;
        // The first rank makes the file, if it has to be made. The others find it.
        let is_first = comm.rank() == 0;
        let first =
            if is_first { Storage::open(path, amode, info.file_perm).map(Some) } else { Ok(None) };
        let first = agree(comm, first)?;
        let made = first.as_ref().is_some_and(|(_, made)| *made);
        let storage = match first {
            Some((storage, _)) => Ok(storage),
            None => {
                let ways = [Amode::RDONLY, Amode::WRONLY, Amode::RDWR];
                let way = ways.into_iter().find(|way| amode.contains(*way)).unwrap_or(amode);
                Storage::open(path, way, info.file_perm).map(|(storage, _)| storage)
            }
        };
        let opened = agree(comm, storage).and_then(|storage| {
            File::check_identity(comm, &storage)?;
            let core = Core::new(comm, storage, amode, info)?;
            Ok((core, Pointer::new(comm)?))
        });
        if opened.is_err() && made {
            // The file of an open that failed goes again. The error says what failed before.
            let _ = storage::delete(path);
        }
        let (core, pointer) = opened?;
        if amode.contains(Amode::APPEND) {
            let end = core.storage.size()? as i64;
            core.state().pointer = end;
            if is_first {
                pointer.set(end)?;
            }
            comm.barrier()?;
        }
        Ok((core, pointer))
    }

    /// Checks that all ranks have opened the file that the first rank has.
    fn check_identity(comm: &Communicator, storage: &Storage) -> Result<()> {
        if comm.size() == 1 {
            return Ok(());
        }
        let mine = agree(comm, storage.identity())?;
        let mut first = [mine.inode];
        comm.bcast(&mut first, 0)?;
        let checked = if first[0] == mine.inode {
            Ok(())
        } else {
            let problem = format!(
                "{:?} is another file at rank {} than at rank 0 (inodes {} and {}): give a path of \
                 a file system that all hosts share",
                storage.path(),
                comm.rank(),
                mine.inode,
                first[0]
            );
            Err(Error::argument(Class::NotSame, problem))
        };
        agree(comm, checked)
    }

    /// Deletes a file (MPI-5.0 section 14.2.3). One rank calls it.
    ///
    /// ```
    /// use longshore_file::File;
    ///
    /// let error = File::delete("/no/such/file").unwrap_err();
    /// assert_eq!(error.class(), longshore::Class::NoSuchFile);
    /// ```
    ///
    /// # Errors
    /// NO_SUCH_FILE, ACCESS, READ_ONLY, BAD_FILE or IO if the system refuses it.
    #[doc(alias = "MPI_File_delete")]
    pub fn delete(path: impl AsRef<Path>) -> Result<()> {
        storage::delete(path.as_ref())
    }

    /// Refuses a close that would leave an access of any rank under way (MPI-5.0 section 14.2.2).
    /// Collective. An interface whose files outlive a refused close calls it first.
    ///
    /// # Errors
    /// At all ranks, the first rank's error of these: REQUEST for accesses with requests that
    /// aren't complete. IO for a split collective call that hasn't ended.
    pub fn may_close(&self) -> Result<()> {
        agree(&self.comm, self.check_idle())
    }

    /// Refuses a call as long as an access of this rank is under way.
    fn check_idle(&self) -> Result<()> {
        if let Some(split) = &self.core.state().split {
            let problem = format!(
                "the split collective call {0}_begin has no end yet: call {0}_end first",
                split.call
            );
            return Err(Error::argument(Class::Io, problem));
        }
        match self.lanes.open() {
            0 => Ok(()),
            open => {
                let problem = format!(
                    "{open} requests of the file are under way: wait for them before it is closed"
                );
                Err(Error::argument(Class::Request, problem))
            }
        }
    }

    /// Closes the file (MPI-5.0 section 14.2.2). Collective. What was written is in the file: other
    /// processes read it. Only [`sync`](File::sync) waits until it is on the device. A file opened
    /// with [`Amode::DELETE_ON_CLOSE`] is deleted.
    ///
    /// # Errors
    /// At all ranks: those of [`may_close`](File::may_close), after which the file is closed all
    /// the same. NO_SPACE, QUOTA or IO if the system reports it only now. Those of
    /// [`delete`](File::delete).
    #[doc(alias = "MPI_File_close")]
    pub fn close(self) -> Result<()> {
        let checked = self.check_idle();
        let File { comm, core, pointer, lanes, stage, .. } = self;
        // The threads end with their last access.
        drop(lanes);
        core.free()?;
        if let Some(stage) = stage.into_inner().unwrap_or_else(PoisonError::into_inner) {
            stage.free()?;
        }
        // No rank frees it before all have come here, so no access is left either.
        let freed = pointer.free();
        let (amode, place) = (core.amode, core.storage.place().to_owned());
        let closed = Arc::into_inner(core).map_or(Ok(()), |core| core.storage.close());
        let closed = agree(&comm, checked.and(freed).and(closed));
        let deleted = match amode.contains(Amode::DELETE_ON_CLOSE) {
            true => {
                // All have closed it.
                let deleted = if comm.rank() == 0 { storage::delete(&place) } else { Ok(()) };
                agree(&comm, deleted)
            }
            false => Ok(()),
        };
        comm.free()?;
        closed.and(deleted)
    }

    /// Sets the length of the file in bytes (MPI-5.0 section 14.2.4). Collective.
    ///
    /// ```
    /// # use longshore_file::{Amode, File, Info};
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-size", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.world(), path.to_str().unwrap(), amode, &Info::default())?;
    /// file.set_size(100)?;
    /// assert_eq!(file.size()?, 100);
    /// file.preallocate(50)?;
    /// assert_eq!(file.size()?, 100);
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// ARG for a negative size. NOT_SAME if the sizes differ. READ_ONLY for a file that is only
    /// read. UNSUPPORTED_OPERATION with [`Amode::SEQUENTIAL`]. NO_SPACE, QUOTA or IO if the system
    /// refuses it.
    #[doc(alias = "MPI_File_set_size")]
    pub fn set_size(&self, size: i64) -> Result<()> {
        self.resize("set_size", size, Storage::set_size)
    }

    /// Gets room for the first `size` bytes of the file (MPI-5.0 section 14.2.5). Collective. The
    /// file becomes as long, unless it is longer. See [`set_size`](File::set_size).
    ///
    /// # Errors
    /// Those of [`set_size`](File::set_size).
    #[doc(alias = "MPI_File_preallocate")]
    pub fn preallocate(&self, size: i64) -> Result<()> {
        self.resize("preallocate", size, Storage::preallocate)
    }

    fn resize(
        &self,
        call: &'static str,
        size: i64,
        change: impl FnOnce(&Storage, u64) -> Result<()>,
    ) -> Result<()> {
        same(&self.comm, "sizes", Ok(size))?;
        self.may(call, true, false)?;
        let Ok(size) = u64::try_from(size) else {
            return Err(Error::argument(Class::Arg, format!("the size {size} is negative")));
        };
        let changed = if self.comm.rank() == 0 { change(&self.core.storage, size) } else { Ok(()) };
        agree(&self.comm, changed)
    }

    /// The length of the file in bytes (MPI-5.0 section 14.2.6).
    ///
    /// # Errors
    /// IO if the system refuses it.
    #[doc(alias = "MPI_File_get_size")]
    pub fn size(&self) -> Result<i64> {
        Ok(self.core.storage.size()? as i64)
    }

    /// Waits until all that this rank has written is on the device, and lets other ranks' data be
    /// seen (MPI-5.0 section 14.6.1). Collective.
    ///
    /// # Errors
    /// At all ranks: those of [`may_close`](File::may_close). IO, NO_SPACE or QUOTA if the system
    /// reports it.
    #[doc(alias = "MPI_File_sync")]
    pub fn sync(&self) -> Result<()> {
        let synced = self.check_idle().and_then(|()| match self.core.amode.may_write() {
            true => self.core.storage.sync(),
            false => Ok(()),
        });
        agree(&self.comm, synced)
    }

    /// The ranks that have opened the file (MPI-5.0 section 14.2.7).
    #[doc(alias = "MPI_File_get_group")]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The mode with which the file was opened (MPI-5.0 section 14.2.7).
    #[doc(alias = "MPI_File_get_amode")]
    pub fn amode(&self) -> Amode {
        self.core.amode
    }

    /// The path with which this rank has opened the file.
    pub fn path(&self) -> &Path {
        self.core.storage.path()
    }

    /// The hints in use (MPI-5.0 section 14.2.8).
    #[doc(alias = "MPI_File_get_info")]
    pub fn info(&self) -> Info {
        Info::clone(&self.core.state().info).of_file(self.core.storage.path())
    }

    /// Changes the hints (MPI-5.0 section 14.2.8). Collective.
    ///
    /// # Errors
    /// NOT_SAME if `cb_nodes` or `cb_buffer_size` differ between ranks.
    #[doc(alias = "MPI_File_set_info")]
    pub fn set_info(&self, info: &Info) -> Result<()> {
        same(&self.comm, NODES, Ok(info.cb_nodes.into()))?;
        same(&self.comm, "values of cb_buffer_size", Ok(info.cb_buffer_size as i64))?;
        self.core.state().info = Arc::new(info.clone());
        Ok(())
    }

    /// Sets the view of this rank (MPI-5.0 section 14.3). Collective. All pointers are at its start
    /// then. Etypes have the same extent at all ranks, and the representation has the same name.
    ///
    /// `None` as the displacement is the current position of the shared pointer, for files opened
    /// with [`Amode::SEQUENTIAL`] (MPI_DISPLACEMENT_CURRENT).
    ///
    /// ```
    /// # use longshore_file::{Amode, File, Info};
    /// use longshore::Datatype;
    ///
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-view", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.alone(), path.to_str().unwrap(), amode, &Info::default())?;
    /// // Every other double, from byte 16 on.
    /// let double = rank.type_of::<f64>()?;
    /// let every_other = rank.commit(&Datatype::resized(0, 16, &Datatype::double())?)?;
    /// file.set_view(16, &double, &every_other, "native", &Info::default())?;
    /// file.write_at(0, &[1.5, 2.5])?;
    /// assert_eq!((file.size()?, file.byte_offset(1)?), (40, 32));
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// ARG for a negative displacement. TYPE for a filetype that isn't a sequence of etypes. IO for
    /// one whose displacements are negative or decrease, or that overlaps itself in a file that is
    /// written. UNSUPPORTED_DATAREP for an unknown representation. NOT_SAME if extents or
    /// representations differ. At all ranks, if one has an error.
    #[doc(alias = "MPI_File_set_view")]
    pub fn set_view(
        &self,
        disp: impl Into<Option<i64>>,
        etype: &Type,
        filetype: &Type,
        datarep: &str,
        info: &Info,
    ) -> Result<()> {
        self.set_view_named(disp, (etype, filetype), (datarep, datarep), info)
    }

    /// Sets the view of this rank as [`set_view`](File::set_view) does, for an interface that
    /// converts values itself. The representations are that of the values that the interface
    /// passes, and the name that the program knows: all ranks give the same name.
    ///
    /// ```
    /// # use longshore_file::{Amode, File, Info};
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-named", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.world(), path.to_str().unwrap(), amode, &Info::default())?;
    /// let int = rank.type_of::<i32>()?;
    /// file.set_view_named(0, (&int, &int), ("native", "inverted"), &Info::default())?;
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`set_view`](File::set_view).
    pub fn set_view_named(
        &self,
        disp: impl Into<Option<i64>>,
        (etype, filetype): (&Type, &Type),
        (datarep, name): (&str, &str),
        info: &Info,
    ) -> Result<()> {
        let view = self.view_of(disp.into(), etype, filetype, datarep).and_then(|view| {
            let extent = etype.datatype().bounds(view.layout.architecture())?.extent();
            Ok((view, extent))
        });
        let (view, extent) = agree(&self.comm, view)?;
        same(&self.comm, "extents of etypes in the file", Ok(extent))?;
        same(&self.comm, "representations", Ok(hash(name))).map_err(|error| match error.class() {
            Class::NotSame => {
                let problem = format!(
                    "the ranks give different representations, this rank {name:?}: give the same \
                     at all of them"
                );
                Error::argument(Class::NotSame, problem)
            }
            _ => error,
        })?;
        {
            let mut state = self.core.state();
            (state.view, state.info, state.pointer) = (Arc::new(view), Arc::new(info.clone()), 0);
        }
        if self.comm.rank() == 0 {
            self.pointer.set(0)?;
        }
        Ok(self.comm.barrier()?)
    }

    fn view_of(
        &self,
        disp: Option<i64>,
        etype: &Type,
        filetype: &Type,
        datarep: &str,
    ) -> Result<View> {
        self.check_idle()?;
        let is_sequential = self.core.amode.contains(Amode::SEQUENTIAL);
        let disp = match disp {
            Some(disp) if !is_sequential => disp,
            None if is_sequential => self.current_displacement()?,
            Some(disp) => {
                let problem = format!(
                    "the displacement is {disp}, but the file is open with SEQUENTIAL: use \
                     MPI_DISPLACEMENT_CURRENT"
                );
                return Err(Error::argument(Class::Arg, problem));
            }
            None => {
                let problem = "MPI_DISPLACEMENT_CURRENT is for files opened with SEQUENTIAL";
                return Err(Error::argument(Class::Arg, problem));
            }
        };
        let own = self.comm.representation(self.comm.rank())?;
        let view = View::new(disp, etype, filetype, Datarep::named(datarep)?, &own)?;
        if self.core.amode.may_write() && view.layout.overlaps() {
            let problem = format!(
                "the filetype {filetype} has bytes twice, and the file may be written: its data \
                 must not overlap"
            );
            return Err(Error::argument(Class::Io, problem));
        }
        Ok(view)
    }

    /// The byte of the file that the shared pointer is at.
    fn current_displacement(&self) -> Result<i64> {
        let (offset, view) = (self.pointer.get()?, self.core.state().view.clone());
        Ok(view.layout.offset(view.layout.position(offset)?)? as i64)
    }

    /// The view of this rank (MPI-5.0 section 14.3).
    #[doc(alias = "MPI_File_get_view")]
    pub fn view(&self) -> Arc<View> {
        self.core.state().view.clone()
    }

    /// The byte of the file at an offset of the view, in etypes (MPI-5.0 section 14.4.3).
    ///
    /// # Errors
    /// ARG for a negative offset, or one that is too large.
    #[doc(alias = "MPI_File_get_byte_offset")]
    pub fn byte_offset(&self, offset: i64) -> Result<i64> {
        let view = self.view();
        Ok(view.layout.offset(view.layout.position(offset)?)? as i64)
    }

    /// The extent of a datatype in the file, in the view's representation (MPI-5.0 section 14.5.1).
    ///
    /// ```
    /// # use longshore_file::{Amode, File, Info};
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-extent", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.alone(), path.to_str().unwrap(), amode, &Info::default())?;
    /// let long = rank.type_of::<longshore::c::Long>()?;
    /// file.set_view(0, &long, &long, "external32", &Info::default())?;
    /// assert_eq!(file.type_extent(long.datatype())?, 4);
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// TYPE if the representation lacks one of the basic types.
    #[doc(alias = "MPI_File_get_type_extent")]
    pub fn type_extent(&self, datatype: &Datatype) -> Result<i64> {
        let view = self.view();
        Ok(datatype.bounds(view.layout.architecture())?.extent())
    }

    /// Turns atomic mode on or off (MPI-5.0 section 14.6.1). Collective. In atomic mode, accesses
    /// that overlap take place one after the other.
    ///
    /// # Errors
    /// NOT_SAME if the ranks differ.
    #[doc(alias = "MPI_File_set_atomicity")]
    pub fn set_atomicity(&self, atomic: bool) -> Result<()> {
        same(&self.comm, "values of the flag", Ok(atomic.into()))?;
        self.core.set_atomic(&self.comm, atomic)?;
        Ok(self.comm.barrier()?)
    }

    /// Whether the file is in atomic mode (MPI-5.0 section 14.6.1).
    #[doc(alias = "MPI_File_get_atomicity")]
    pub fn atomicity(&self) -> bool {
        self.core.is_atomic()
    }

    /// Refuses an access that the mode doesn't allow. `by_shared`: the access is by the shared
    /// pointer.
    pub(crate) fn may(&self, call: &'static str, writes: bool, by_shared: bool) -> Result<()> {
        let amode = self.core.amode;
        let (class, remedy) = match writes {
            true if !amode.may_write() => {
                (Class::ReadOnly, "so it is only read: open it with WRONLY or RDWR")
            }
            false if !amode.may_read() => {
                (Class::Access, "so it is only written: open it with RDONLY or RDWR")
            }
            _ if !by_shared && amode.contains(Amode::SEQUENTIAL) => (
                Class::UnsupportedOperation,
                "so it is accessed in its order: use the shared pointer's calls",
            ),
            _ => return Ok(()),
        };
        let path = self.core.storage.path().to_owned();
        Err(Error::Forbidden { class, call, path, amode: amode.to_string(), remedy })
    }
}

/// A number for a name (64-bit FNV-1a), which differs for different names.
fn hash(name: &str) -> i64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, add) as i64
}

//! Window memory that a rank loads from and stores to, through accessors that copy: other ranks may
//! write it at any time.

use std::any::TypeId;
use std::fs::File;
use std::io;
use std::panic::Location;
use std::sync::Arc;

use shipable::{Architecture, Element};

use crate::buffer::Codec;
use crate::check::Caller;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Exposed, Loan, LoanMut, Scope, Span, zeroed};
use crate::types::Type;
use crate::window::core::Core;
use crate::window::peers::Target;

/// Window memory that this rank accesses by load and store: its own, or another rank's part of a
/// shared window.
///
/// Displacements count the displacement unit of the memory's owner, as in a put. In a dynamic
/// window they are addresses of attached memory.
///
/// Elements are read and written in the representation of the memory's owner. If the owner emulates
/// another architecture, `set` of an `i32` stores the bytes of that architecture, on every rank.
///
/// ```
/// # use longshore::{Info, Window};
/// # let rank = longshore::init()?;
/// let world = rank.world();
/// let window = Window::allocate_shared(world, 64, 8, &Info::default())?;
/// // This rank's own memory ...
/// let mine = window.local();
/// mine.set(0, 1.5f64)?;
/// mine.write(1, &[2.5f64, 3.5])?;
/// let mut values = [0.0f64; 3];
/// mine.read(0, &mut values)?;
/// assert_eq!((values, mine.get::<f64>(2)?), ([1.5, 2.5, 3.5], 3.5));
/// mine.write_bytes(24, &[0xff; 8])?;
/// assert_eq!(mine.bytes(24, 2)?, [0xff; 2]);
/// // ... and a neighbour's.
/// let next = window.shared_query((world.rank() + 1) % world.size())?;
/// assert_eq!(next.rank(), (world.rank() + 1) % world.size());
/// assert_eq!((next.size(), next.disp_unit()), (64, 8));
/// assert!(!next.base().is_null());
/// assert!(next.architecture().same_representation(rank.architecture()));
/// window.free()?;
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Local<'w> {
    core: &'w Core,
    owner: &'w Target,
    span: Span,
    /// Whether its elements have the representation of Rust's slices.
    native: bool,
}

impl<'w> Local<'w> {
    /// This rank's own memory.
    pub(in crate::window) fn new(core: &'w Core) -> Local<'w> {
        let parts = core.parts();
        let (owner, span) = (parts.peers().own(), parts.memory().span());
        Local { core, owner, span, native: !parts.process().me().emulated }
    }

    /// The memory of a rank, as far as this rank can load from it. With PROC_NULL, that of the
    /// first rank whose memory isn't empty.
    #[track_caller]
    pub(in crate::window) fn shared(core: &'w Core, rank: i32) -> Result<Local<'w>> {
        // The window keeps the memory mapped while this borrows the window.
        let (owner, span) = core.shared_query(rank)?;
        let native = owner.architecture.same_representation(&Architecture::NATIVE);
        Ok(Local { core, owner, span, native })
    }

    /// The rank that owns the memory, in the window's group.
    pub fn rank(&self) -> i32 {
        self.owner.rank as i32
    }

    /// Its size in bytes; 0 in a dynamic window, and where this rank can't load from the memory.
    pub fn size(&self) -> i64 {
        match self.core.parts().memory().attachments() {
            Some(_) => 0,
            None => self.span.len() as i64,
        }
    }

    /// The owner's displacement unit in bytes.
    pub fn disp_unit(&self) -> i64 {
        self.owner.measures.unit.into()
    }

    /// The address of the first byte in this process; null in a dynamic window.
    ///
    /// The bytes are in the representation of [`architecture`](Local::architecture). Other ranks
    /// may write them at any time. They must not be accessed after the window is freed.
    pub fn base(&self) -> *mut u8 {
        if self.core.parts().memory().attachments().is_some() {
            return std::ptr::null_mut();
        }
        // The lock is refused only when the job is ending, which the call that closes the epoch
        // reports.
        let _ = self.core.note_pointer();
        self.span.start()
    }

    /// The representation of the elements: the owner's.
    pub fn architecture(&self) -> &'w Architecture {
        &self.owner.architecture
    }

    /// Notes a store to this rank's own memory: its later asserts may deny one.
    fn note_store(&self) {
        if self.is_own() {
            self.core.parts().epochs().note_store();
        }
    }

    /// Records an access to this rank's own memory, if uses of windows are checked.
    #[inline]
    fn note(&self, displacement: i64, len: i64, stores: bool, caller: Caller) {
        self.note_bytes(displacement.saturating_mul(self.disp_unit()), len, stores, caller);
    }

    #[inline]
    fn note_bytes(&self, start: i64, len: i64, stores: bool, caller: Caller) {
        let parts = self.core.parts();
        if parts.process().checks() && self.is_own() {
            parts.checking().touched(start..start.saturating_add(len), stores, caller);
        }
    }

    /// The element at a displacement.
    ///
    /// # Errors
    /// DISP or RMA_RANGE outside of the window, CONVERSION for a value that `T` can't hold.
    #[track_caller]
    pub fn get<T: Element>(&self, displacement: i64) -> Result<T> {
        let mut value = [zeroed::<T>()];
        self.read(displacement, &mut value)?;
        Ok(value[0])
    }

    /// Replaces the element at a displacement.
    ///
    /// # Errors
    /// DISP or RMA_RANGE outside of the window, CONVERSION for a value that the owner's
    /// representation can't hold.
    #[track_caller]
    pub fn set<T: Element>(&self, displacement: i64, value: T) -> Result<()> {
        self.write(displacement, &[value])
    }

    /// Reads consecutive elements into all of `values`.
    ///
    /// # Errors
    /// Those of [`get`](Local::get).
    #[track_caller]
    pub fn read<T: Element>(&self, displacement: i64, values: &mut [T]) -> Result<()> {
        let caller = Location::caller();
        self.raising(caller, || {
            let copy = self.element_copy::<T>()?;
            let extent = copy.extent::<T>();
            let (_memory, span, at) = self.reach(displacement, values.len(), extent)?;
            copy.read(span, at, values)?;
            self.note(displacement, values.len() as i64 * extent, false, caller);
            Ok(())
        })
    }

    /// Writes consecutive elements.
    ///
    /// # Errors
    /// Those of [`set`](Local::set).
    #[track_caller]
    pub fn write<T: Element>(&self, displacement: i64, values: &[T]) -> Result<()> {
        let caller = Location::caller();
        self.raising(caller, || {
            let copy = self.element_copy::<T>()?;
            let extent = copy.extent::<T>();
            let (_memory, span, at) = self.reach(displacement, values.len(), extent)?;
            self.note_store();
            self.note(displacement, values.len() as i64 * extent, true, caller);
            copy.write(span, at, values)
        })
    }

    /// A copy of `len` bytes from byte `start` on, without conversion.
    ///
    /// # Errors
    /// RMA_RANGE outside of the window, DISP for a negative start.
    #[track_caller]
    pub fn bytes(&self, start: i64, len: usize) -> Result<Vec<u8>> {
        self.at_bytes(start, len, false, |span, at| {
            let mut bytes = vec![0; len];
            span.read(at, &mut bytes);
            bytes
        })
    }

    /// Replaces the bytes from byte `start` on, without conversion.
    ///
    /// # Errors
    /// RMA_RANGE outside of the window, DISP for a negative start.
    #[track_caller]
    pub fn write_bytes(&self, start: i64, bytes: &[u8]) -> Result<()> {
        self.at_bytes(start, bytes.len(), true, |span, at| _ = span.write(at, bytes))
    }

    /// Writes bytes from byte `start` on to a file of the system, from byte `offset` of it on,
    /// without a copy in between. Returns how many the system has written, or its error.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// let mut window = Window::allocate(rank.alone(), 8, 1, &Info::default())?;
    /// window.write(0, &[1u8, 2, 3])?;
    /// let path = std::env::temp_dir().join(format!("longshore-local-{}", std::process::id()));
    /// let file = std::fs::File::options().read(true).write(true).create(true).open(&path).unwrap();
    /// assert_eq!(window.local().write_to(1, 2, &file, 0)?.unwrap(), 2);
    /// assert_eq!(window.local().read_from(4, 4, &file, 1)?.unwrap(), 1);
    /// assert_eq!(window.get::<u8>(4)?, 3);
    /// std::fs::remove_file(&path).unwrap();
    /// # window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RMA_RANGE outside of the window, DISP for a negative start.
    #[track_caller]
    pub fn write_to(
        &self,
        start: i64,
        len: usize,
        file: &File,
        offset: u64,
    ) -> Result<io::Result<usize>> {
        self.at_bytes(start, len, false, |span, at| span.write_to(at, len as u64, file, offset))
    }

    /// Reads bytes of a file of the system, from byte `offset` of it on, to byte `start` of the
    /// memory, without a copy in between. Returns how many the system has read, or its error. See
    /// [`write_to`](Local::write_to).
    ///
    /// # Errors
    /// RMA_RANGE outside of the window, DISP for a negative start.
    #[track_caller]
    pub fn read_from(
        &self,
        start: i64,
        len: usize,
        file: &File,
        offset: u64,
    ) -> Result<io::Result<usize>> {
        self.at_bytes(start, len, true, |span, at| span.read_from(at, len as u64, file, offset))
    }

    /// Records an access to bytes from byte `start` on, and makes it by their memory and its
    /// position there.
    ///
    /// # Errors
    /// RMA_RANGE outside of the window, DISP for a negative start.
    #[track_caller]
    fn at_bytes<R>(
        &self,
        start: i64,
        len: usize,
        stores: bool,
        access: impl FnOnce(Span, i64) -> R,
    ) -> Result<R> {
        let caller = Location::caller();
        self.raising(caller, || {
            if start < 0 {
                return Err(ErrorKind::Displacement(start).into());
            }
            let end = i128::from(start) + len as i128;
            let (_memory, span, at) = self.locate((start.into(), end), start, 1)?;
            if stores {
                self.note_store();
            }
            self.note_bytes(start, len as i64, stores, caller);
            Ok(access(span, at))
        })
    }

    /// Whether elements have the layout of a slice here, so that they are copied without
    /// conversion.
    #[inline]
    fn is_plain<T: Element>(&self) -> bool {
        self.native
            && self.core.parts().memory().is_plain(TypeId::of::<T>(), || self.find_plain::<T>())
    }

    #[cold]
    fn find_plain<T: Element>(&self) -> bool {
        let elements = self.core.parts().process().elements();
        elements.on::<T>(&Architecture::NATIVE).is_ok_and(|datatype| {
            is_element::<T>(&datatype) && datatype.extent() == size_of::<T>() as i64
        })
    }

    /// Whether it is this rank's own memory.
    #[inline]
    fn is_own(&self) -> bool {
        self.core.parts().peers().is_own(self.owner)
    }

    /// The way in which elements are copied between this memory and a slice.
    #[inline]
    fn element_copy<T: Element>(&self) -> Result<ElementCopy> {
        match self.is_plain::<T>() {
            true => Ok(ElementCopy::Plain),
            false => {
                Codec::new::<T>(self.core.parts().process().elements(), &self.owner.architecture)
                    .map(ElementCopy::Converted)
            }
        }
    }

    /// The memory of `count` elements, and the attachment that keeps it alive.
    fn reach(
        &self,
        displacement: i64,
        count: usize,
        extent: i64,
    ) -> Result<(Option<Arc<Exposed>>, Span, i64)> {
        if displacement < 0 {
            return Err(ErrorKind::Displacement(displacement).into());
        }
        let unit = self.owner.measures.unit;
        let start = i128::from(displacement) * i128::from(unit);
        let end = start + count as i128 * i128::from(extent);
        self.locate((start, end), displacement, unit)
    }

    /// The memory of a range of bytes: the window's, or an attachment's.
    fn locate(
        &self,
        (start, end): (i128, i128),
        displacement: i64,
        unit: u32,
    ) -> Result<(Option<Arc<Exposed>>, Span, i64)> {
        let locked = self.core.lock_own();
        locked.map_err(|error| self.placed(error, Some((start, end))))?;
        if let Some(attachments) = self.core.parts().memory().attachments() {
            let found = attachments.find((start, end));
            let (memory, base) = found.map_err(|error| self.placed(error, Some((start, end))))?;
            let (span, at) = (memory.span(), (start - i128::from(base)) as i64);
            return Ok((Some(memory), span, at));
        }
        let size = self.size() as u64;
        match i64::try_from(start) {
            Ok(at) if end <= i128::from(size) => Ok((None, self.span, at)),
            _ => {
                let outside = ErrorKind::Range { start, end, size, displacement, unit, own: false };
                Err(self.placed(outside.into(), Some((start, end))))
            }
        }
    }

    /// Runs an access, and passes its error to the window's error handler.
    #[inline]
    fn raising<R>(&self, caller: Caller, access: impl FnOnce() -> Result<R>) -> Result<R> {
        access().map_err(|error| self.raised(error, caller))
    }

    #[cold]
    fn raised(&self, error: Error, caller: Caller) -> Error {
        self.core.raise(self.placed(error, None), caller)
    }

    fn placed(&self, error: Error, bytes: Option<(i128, i128)>) -> Error {
        let is_own = self.is_own();
        let error = if is_own { error.at_home() } else { error };
        error.at(|| match is_own {
            true => self.core.place("access to its own window", None, bytes),
            false => self.core.place("load or store", Some(self.rank()), bytes),
        })
    }
}

/// The way in which elements are copied between a window's memory and a slice.
enum ElementCopy {
    /// Without conversion.
    Plain,
    Converted(Codec),
}

impl ElementCopy {
    /// The bytes from one element in memory to the next.
    #[inline]
    fn extent<T: Element>(&self) -> i64 {
        match self {
            ElementCopy::Plain => size_of::<T>() as i64,
            ElementCopy::Converted(codec) => codec.extent(),
        }
    }

    /// Reads elements from displacement `at` of `memory` on. The memory must cover them.
    #[inline]
    fn read<T: Element>(&self, memory: Span, at: i64, values: &mut [T]) -> Result<()> {
        if let ElementCopy::Converted(codec) = self {
            return codec.read(memory, at, values);
        }
        let len = size_of_val(values) as u64;
        Scope::with(|scope| scope.lend_mut(LoanMut::new(values)).copy_run(0, memory, at, len));
        Ok(())
    }

    /// Writes elements from displacement `at` of `memory` on. The memory must cover them.
    #[inline]
    fn write<T: Element>(&self, memory: Span, at: i64, values: &[T]) -> Result<()> {
        if let ElementCopy::Converted(codec) = self {
            return codec.write(memory, at, values);
        }
        let len = size_of_val(values) as u64;
        Scope::with(|scope| memory.copy_run(at, scope.lend(Loan::new(values)), 0, len));
        Ok(())
    }
}

/// Whether a type is a single item with the layout of a slice's element, without padding.
fn is_element<T: Element>(datatype: &Type) -> bool {
    let own = datatype.compiled();
    let is_one = |leaf| shipable::Signature::of_leaf(leaf) == own.signature();
    let len = size_of::<T>() as u64;
    own.is_portable()
        && own.single_leaf().is_some_and(is_one)
        && own.native().contiguous(1) == Some(0)
        && own.native().stream_length(1) == Ok(len)
}

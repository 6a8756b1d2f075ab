//! Arguments as a program in C passes them: checks and conversions by kind.
//!
//! A pointer becomes a value of a type here: [`List`], [`Numbers`], [`Room`], [`Chars`], [`Buffer`]
//! or [`Address`]. An export makes it from what the program passed, and the program promises that
//! memory is there as MPI says. So the modules behind need no unsafe code to use it.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use longshore::{Class, Destination, Given, Origin, Pointed, Promised};

use crate::edge::constants::UNDEFINED;
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::Handle;

/// MPI_Aint.
pub type Aint = isize;
/// MPI_Count and MPI_Offset.
pub type Count = i64;

/// The version of a function: with counts that are ints, or with large counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `MPI_Type_get_envelope`.
    Int,
    /// `MPI_Type_get_envelope_c`.
    Large,
}

/// A number of one of the types that counts and displacements have.
pub trait Number: Copy {
    /// Its value.
    fn wide(self) -> i64;

    /// The number for a value; MPI_UNDEFINED for one that is too large.
    fn narrow(value: i64) -> Self;
}

impl Number for c_int {
    fn wide(self) -> i64 {
        i64::from(self)
    }

    fn narrow(value: i64) -> c_int {
        c_int::try_from(value).unwrap_or(UNDEFINED)
    }
}

impl Number for Aint {
    fn wide(self) -> i64 {
        self as i64
    }

    fn narrow(value: i64) -> Aint {
        Aint::try_from(value).unwrap_or(UNDEFINED as Aint)
    }
}

impl Number for Count {
    fn wide(self) -> i64 {
        self
    }

    fn narrow(value: i64) -> Count {
        value
    }
}

/// Any number.
#[inline]
pub fn number<N: Number>(value: N) -> i64 {
    value.wide()
}

/// A count, which isn't negative.
#[inline]
pub fn count<N: Number>(value: N, name: &'static str) -> Result<i64> {
    match value.wide() {
        count @ 0.. => Ok(count),
        negative => Err(Fault::new(Class::Count, format!("{name} is {negative}"))),
    }
}

/// The length of an array.
pub fn length(value: c_int, name: &'static str) -> Result<usize> {
    usize::try_from(value).map_err(|_| Fault::argument(format_args!("{name} is {value}")))
}

fn null(name: &'static str) -> Fault {
    Fault::argument(format_args!("{name} is a null pointer"))
}

/// A descriptor of the program; `None` for a negative number.
pub fn descriptor(number: c_int) -> Option<BorrowedFd<'static>> {
    // SAFETY: the number isn't -1, and MPI asks the program for a descriptor that stays open during
    // the call, which is as long as this value is used.
    (number >= 0).then(|| unsafe { BorrowedFd::borrow_raw(number) })
}

/// Checks that there is room for a result.
pub fn room<T>(place: *mut T, name: &'static str) -> Result<()> {
    if place.is_null() { Err(null(name)) } else { Ok(()) }
}

/// A value in C, of what a function returns.
pub trait Returned<T> {
    /// The value that is written.
    fn returned(self) -> T;
}

impl<N: Number> Returned<N> for i64 {
    fn returned(self) -> N {
        N::narrow(self)
    }
}

impl Returned<c_int> for i32 {
    fn returned(self) -> c_int {
        self
    }
}

impl Returned<c_int> for bool {
    fn returned(self) -> c_int {
        c_int::from(self)
    }
}

impl Returned<c_int> for usize {
    fn returned(self) -> c_int {
        c_int::narrow(self as i64)
    }
}

/// A handle of a tool.
impl Returned<*mut c_void> for *mut c_void {
    fn returned(self) -> *mut c_void {
        self
    }
}

impl Returned<Handle> for Handle {
    fn returned(self) -> Handle {
        self
    }
}

impl Returned<*mut c_void> for Address {
    fn returned(self) -> *mut c_void {
        self.0
    }
}

/// Writes a result.
///
/// # Safety
/// There is memory for it.
pub unsafe fn put<T>(place: *mut T, value: impl Returned<T>) {
    // SAFETY: the caller's promise.
    unsafe { place.write_unaligned(value.returned()) };
}

/// Reads a number that the call changes.
///
/// # Safety
/// It is null, or there is a number.
pub unsafe fn read<N: Number>(place: *mut N, name: &'static str) -> Result<i64> {
    room(place, name)?;
    // SAFETY: the caller's promise.
    Ok(unsafe { place.read_unaligned() }.wide())
}

/// A value that the call changes.
///
/// # Safety
/// It is null, or there is a value that nobody else uses during the call.
pub unsafe fn borrow<'a, T>(place: *mut T, name: &'static str) -> Result<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { place.as_mut() }.ok_or_else(|| null(name))
}

/// A handle that the call changes, to raise errors on its object; null if there is none.
///
/// # Safety
/// It is null, or there is a handle.
pub unsafe fn peek(place: *mut Handle) -> Handle {
    // SAFETY: the caller's promise.
    unsafe { place.as_ref() }.map_or(Handle::predefined(0), |handle| *handle)
}

/// Text of the program.
///
/// # Safety
/// It is null, or a string that ends with a zero.
pub unsafe fn text<'a>(text: *const c_char, name: &'static str) -> Result<Cow<'a, str>> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// The name of a file, which is any bytes.
///
/// # Safety
/// It is null, or a string that ends with a zero.
pub unsafe fn path<'a>(text: *const c_char, name: &'static str) -> Result<&'a Path> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// The text of a name that has to be the same at its receiver.
fn exact(text: &CStr, name: &str) -> Result<String> {
    let wrong = |_| Fault::argument(format_args!("{name} is {text:?}, which isn't UTF-8"));
    text.to_str().map(str::to_owned).map_err(wrong)
}

/// An address that MPI passes on: extra states, attribute values, functions of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Address(*mut c_void);

// SAFETY: it is a number for this library. Only the program's functions use what is there.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    /// An address of the program.
    pub fn new(address: *mut c_void) -> Address {
        Address(address)
    }

    /// The address of a value that lives as long as the process.
    pub fn of<T>(value: &'static T) -> Address {
        Address(std::ptr::from_ref(value).cast_mut().cast())
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    pub fn number(self) -> usize {
        self.0.addr()
    }

    pub fn pointer(self) -> *mut c_void {
        self.0
    }

    /// The text at the address, which ends with a zero. There is none at a null address.
    pub fn text(self) -> Option<String> {
        let text = self.0.cast_const().cast::<c_char>();
        // SAFETY: MPI asks the program for such a text.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// The text at the address, as [`text`](Address::text), unless it isn't UTF-8.
    pub fn exact_text(self, name: &str) -> Result<Option<String>> {
        let text = self.0.cast_const().cast::<c_char>();
        if text.is_null() {
            return Ok(None);
        }
        // SAFETY: MPI asks the program for such a text.
        exact(unsafe { CStr::from_ptr(text) }, name).map(Some)
    }

    /// The words of an array of texts that a null pointer ends. There are none at a null address.
    ///
    /// # Errors
    /// ARG if a word isn't UTF-8.
    pub fn words(self, name: &str) -> Result<Vec<String>> {
        let (mut words, mut place) = (Vec::new(), self.0.cast_const().cast::<*const c_char>());
        if place.is_null() {
            return Ok(words);
        }
        loop {
            // SAFETY: MPI asks the program for such an array, and its end isn't passed.
            let word = unsafe { place.read_unaligned() };
            if word.is_null() {
                return Ok(words);
            }
            // SAFETY: each element before the end is the address of a text.
            words.push(exact(unsafe { CStr::from_ptr(word) }, name)?);
            place = place.wrapping_add(1);
        }
    }

    /// The address at an index of an array of addresses. `None` for a null pointer, of the array or
    /// in it.
    pub fn element(self, at: usize) -> Option<Address> {
        let array = self.0.cast_const().cast::<*mut c_void>();
        if array.is_null() {
            return None;
        }
        // SAFETY: MPI asks the program for such an array, and the index is within the count that it
        // gives with it.
        let element = unsafe { array.wrapping_add(at).read_unaligned() };
        (!element.is_null()).then_some(Address(element))
    }

    /// Room for a value at the address.
    pub fn room<T>(self) -> Room<T> {
        Room(self.0.cast())
    }
}

/// The bytes of a page: no memory is so near to address 0.
const PAGE: isize = 4096;

/// The memory of a program's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer(*mut u8);

// SAFETY: it is an address. MPI says when a program may use what is there.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// # Safety
    /// Until the call's operation is complete, the memory that its count and type describe may be
    /// used as the operation does.
    pub unsafe fn new(address: *const c_void) -> Buffer {
        Buffer(address.cast_mut().cast())
    }

    pub fn address(self) -> *mut u8 {
        self.0
    }

    /// Whether it is MPI_IN_PLACE.
    pub fn is_in_place(self) -> bool {
        self.0.addr() == 1
    }

    /// The memory `bytes` bytes after its start.
    pub fn after(self, bytes: i64) -> Buffer {
        Buffer(self.0.wrapping_offset(bytes as isize))
    }

    /// Checks that there may be memory for `count` elements. A null address is MPI_BOTTOM, where
    /// only types with absolute addresses have data: no memory is within a page of address 0.
    /// MPI_IN_PLACE is none either. Calls that take it look for it first.
    #[inline]
    pub fn check(self, count: i64, datatype: &longshore::Type) -> Result<()> {
        let first = self.0.addr().wrapping_add(datatype.bounds().true_lb as usize) as isize;
        match self.0.addr() > 1 && !(-PAGE..PAGE).contains(&first) {
            true => Ok(()),
            false => self.check_unusual(count, datatype),
        }
    }

    /// [`check`](Buffer::check) of an address that needs a closer look.
    #[cold]
    fn check_unusual(self, count: i64, datatype: &longshore::Type) -> Result<()> {
        let bounds = datatype.bounds();
        if count <= 0 || bounds.size == 0 {
            return Ok(());
        }
        if self.is_in_place() {
            let what = "MPI_IN_PLACE has no meaning as this buffer (MPI-5.0 section 6.2)";
            return Err(Fault::new(Class::Buffer, what.to_owned()));
        }
        // An address before address 0 is a large one, which a cast to the pointer's width shows.
        let first = self.0.addr().wrapping_add(bounds.true_lb as usize) as isize;
        if (-PAGE..PAGE).contains(&first) {
            let what = match self.0.is_null() {
                true => format!("the address of {count} elements is null"),
                false => format!("{count} elements begin at address {first:#x}, without memory"),
            };
            return Err(Fault::new(Class::Buffer, what));
        }
        Ok(())
    }

    /// `count` elements that a call reads.
    #[inline]
    pub fn origin<'a>(self, count: i64, datatype: &'a longshore::Type) -> Result<Origin<'a>> {
        self.check(count, datatype)?;
        // SAFETY: the promise of `new`.
        Ok(unsafe { Origin::raw(self.0, count, datatype) })
    }

    /// Room for `count` elements that a call writes.
    #[inline]
    pub fn destination<'a>(
        self,
        count: i64,
        datatype: &'a longshore::Type,
    ) -> Result<Destination<'a>> {
        self.check(count, datatype)?;
        // SAFETY: the promise of `new`.
        Ok(unsafe { Destination::raw(self.0, count, datatype) })
    }

    /// `count` elements that an operation with a request reads or writes.
    #[inline]
    pub fn given(self, count: i64, datatype: &longshore::Type) -> Result<Given<Pointed>> {
        self.check(count, datatype)?;
        // SAFETY: the promise of `new`.
        Ok(unsafe { Given::raw(self.0, count, datatype) })
    }

    /// Room for `count` elements that an operation with a request writes.
    #[inline]
    pub fn promised<'a>(self, count: i64, datatype: &'a longshore::Type) -> Result<Promised<'a>> {
        self.check(count, datatype)?;
        // SAFETY: the promise of `new`.
        Ok(unsafe { Promised::raw(self.0, count, datatype) })
    }

    /// `len` bytes that a call reads.
    pub fn bytes<'a>(self, len: usize) -> Result<&'a [u8]> {
        if len == 0 {
            return Ok(&[]);
        }
        self.check_bytes(len)?;
        // SAFETY: the promise of `new`.
        Ok(unsafe { std::slice::from_raw_parts(self.0, len) })
    }

    /// `len` bytes that a call writes.
    pub fn bytes_mut<'a>(self, len: usize) -> Result<&'a mut [u8]> {
        if len == 0 {
            return Ok(&mut []);
        }
        self.check_bytes(len)?;
        // SAFETY: the promise of `new`.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0, len) })
    }

    /// Checks that the address of bytes is one.
    fn check_bytes(self, len: usize) -> Result<()> {
        if self.0.is_null() || self.is_in_place() {
            let what = format!("the address of {len} bytes is {:#x}", self.0.addr());
            return Err(Fault::new(Class::Buffer, what));
        }
        Ok(())
    }
}

/// No memory, of data that are in place or that a call ignores.
pub fn nowhere() -> Given<Pointed> {
    // SAFETY: there are no bytes.
    Given::in_place(unsafe { Pointed::new(std::ptr::dangling_mut(), 0) })
}

/// An array that a call reads.
#[derive(Clone, Copy, Debug)]
pub struct List<T>(*const T);

impl<T> List<T> {
    /// # Safety
    /// It is null, or an array as long as the call's other arguments say.
    pub unsafe fn new(start: *const T) -> List<T> {
        List(start)
    }

    /// Its address, of which some numbers have a meaning of their own.
    pub fn number(self) -> usize {
        self.0.addr()
    }

    /// Its elements.
    ///
    /// # Errors
    /// ARG for a null pointer to elements.
    pub fn slice<'a>(self, len: usize, name: &'static str) -> Result<&'a [T]> {
        match (self.0.is_null(), len) {
            (_, 0) => Ok(&[]),
            (true, _) => Err(null(name)),
            // SAFETY: the promise of `new`.
            _ => Ok(unsafe { std::slice::from_raw_parts(self.0, len) }),
        }
    }
}

/// An array of counts or displacements, of either version.
#[derive(Clone, Copy, Debug)]
pub enum Numbers {
    Int(List<c_int>),
    Aint(List<Aint>),
    Count(List<Count>),
}

/// The element of an array of numbers.
pub trait Element: Number {
    fn list(start: *const Self) -> Numbers;
}

impl Element for c_int {
    fn list(start: *const c_int) -> Numbers {
        Numbers::Int(List(start))
    }
}

impl Element for Aint {
    fn list(start: *const Aint) -> Numbers {
        Numbers::Aint(List(start))
    }
}

impl Element for Count {
    fn list(start: *const Count) -> Numbers {
        Numbers::Count(List(start))
    }
}

impl Numbers {
    /// # Safety
    /// It is null, or an array as long as the call's other arguments say.
    pub unsafe fn new<E: Element>(start: *const E) -> Numbers {
        E::list(start)
    }

    /// Its elements.
    ///
    /// # Errors
    /// ARG for a null pointer to elements.
    pub fn to_vec(self, len: usize, name: &'static str) -> Result<Vec<i64>> {
        Ok(match self {
            Numbers::Int(list) => list.slice(len, name)?.iter().map(|n| n.wide()).collect(),
            Numbers::Aint(list) => list.slice(len, name)?.iter().map(|n| n.wide()).collect(),
            Numbers::Count(list) => list.slice(len, name)?.to_vec(),
        })
    }
}

/// An array or a value that a call writes, or that it changes.
#[derive(Clone, Copy, Debug)]
pub struct Room<T>(*mut T);

impl<T> Room<T> {
    /// The same place as the buffer of an operation with a request.
    pub fn buffer(self) -> Buffer {
        Buffer(self.0.cast())
    }
}

impl<T: Copy> Room<T> {
    /// # Safety
    /// It is null, or has room for what the call writes.
    pub unsafe fn new(start: *mut T) -> Room<T> {
        Room(start)
    }

    /// Whether its address is a number, of which some have a meaning of their own.
    pub fn is_at(self, number: usize) -> bool {
        self.0.addr() == number
    }

    /// Its elements.
    ///
    /// # Errors
    /// ARG for a null pointer to elements.
    pub fn slice<'a>(self, len: usize, name: &'static str) -> Result<&'a mut [T]> {
        match (self.0.is_null(), len) {
            (_, 0) => Ok(&mut []),
            (true, _) => Err(null(name)),
            // SAFETY: the promise of `new`.
            _ => Ok(unsafe { std::slice::from_raw_parts_mut(self.0, len) }),
        }
    }

    /// Writes the element at an index, unless it is a null pointer, by which programs say that
    /// they don't want it.
    pub fn set(self, at: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: the promise of `new`.
            unsafe { self.0.add(at).write_unaligned(value) };
        }
    }

    /// The element at an index. `None` for a null pointer, by which programs say that they have
    /// none or don't want it.
    pub fn get<'a>(self, at: usize) -> Option<&'a mut T> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the promise of `new`.
        unsafe { self.0.add(at).as_mut() }
    }
}

/// Room for text.
#[derive(Clone, Copy, Debug)]
pub struct Chars(*mut c_char);

impl Chars {
    /// # Safety
    /// There is room for as many characters as MPI asks for.
    pub unsafe fn new(start: *mut c_char) -> Chars {
        Chars(start)
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes text that fits into `size` bytes with its zero, and returns its length.
    pub fn write(self, text: &str, size: usize) -> usize {
        let mut end = text.len().min(size.saturating_sub(1));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if size > 0 && !self.0.is_null() {
            // SAFETY: the promise of `new`: there are `size` bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(text.as_ptr(), self.0.cast(), end);
                self.0.cast::<u8>().add(end).write(0);
            }
        }
        end
    }
}

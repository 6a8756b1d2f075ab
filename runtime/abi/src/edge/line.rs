//! The program's source lines, found by return addresses.
//!
//! An observed call walks up its stack to the first frame outside of this library. The address of
//! that frame stands in the program's code, or in an interpreter's module: then the line of the
//! script is asked for. The debug information of a file is read once, and the line of an address
//! is looked up once.
//!
//! Left out: compressed debug information, and that in files apart from the program's. Such
//! addresses are shown as FILE+0xOFFSET, which the command addr2line takes.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use addr2line::gimli::{Dwarf, EndianSlice, RunTimeEndian};
use longshore::SourceLine;
use object::{Object, ObjectSection, ReadCache};

use crate::edge::python::{self, Script};
use crate::edge::source::shortened;

/// The unwinder's state at one frame.
#[repr(C)]
struct Frame {
    _opaque: [u8; 0],
}

// The unwinder of the compiler's runtime, which the standard library links.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut Frame, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    #[cfg(not(target_arch = "arm"))]
    fn _Unwind_GetIP(frame: *mut Frame) -> usize;
    #[cfg(target_arch = "arm")]
    fn _Unwind_VRS_Get(
        frame: *mut Frame,
        class: c_int,
        register: u32,
        representation: c_int,
        value: *mut c_void,
    ) -> c_int;
}

/// The address in a frame to which its call returns.
///
/// # Safety
/// The frame is that of a backtrace that goes on.
#[cfg(not(target_arch = "arm"))]
unsafe fn return_address(frame: *mut Frame) -> usize {
    // SAFETY: the caller's promise.
    unsafe { _Unwind_GetIP(frame) }
}

/// The address in a frame to which its call returns: Arm's unwinder has no function for it, but
/// one for registers.
///
/// # Safety
/// The frame is that of a backtrace that goes on.
#[cfg(target_arch = "arm")]
unsafe fn return_address(frame: *mut Frame) -> usize {
    const CORE: c_int = 0;
    const PROGRAM_COUNTER: u32 = 15;
    const UINT32: c_int = 0;
    let mut address = 0_usize;
    // SAFETY: the caller's promise. The register has the size of an address.
    unsafe {
        _Unwind_VRS_Get(frame, CORE, PROGRAM_COUNTER, UINT32, (&raw mut address).cast());
    }
    // The lowest bit says that the code is Thumb's.
    address & !1
}

/// What lets the unwinder go on, and what ends it.
const GO_ON: c_int = 0;
const END: c_int = 4;

/// A file whose code is in this process.
struct Loaded {
    path: PathBuf,
    /// What is added to the file's addresses.
    bias: usize,
    code: Vec<Range<usize>>,
}

/// The lines of one file, whose debug information is kept for good.
type Lines = addr2line::Context<EndianSlice<'static, RunTimeEndian>>;

#[derive(Default)]
struct Known {
    lines: HashMap<usize, &'static SourceLine>,
    files: HashMap<PathBuf, Option<Lines>>,
}

/// The program's line that has made the current call of this thread. Where an interpreter would
/// have to be waited for, `may_wait` decides whether it is, or the line isn't found.
pub fn of_call(may_wait: bool) -> Option<&'static SourceLine> {
    let address = address()?;
    match python::script(may_wait) {
        Script::Line(line) => return Some(line),
        Script::Busy => return None,
        Script::None => {}
    }
    Some(of_address(address))
}

/// The line of an address in the program's code.
pub fn of_address(address: usize) -> &'static SourceLine {
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let Known { lines, files } = &mut *known;
    // A program has few places of calls, so their lines are kept for good.
    lines.entry(address).or_insert_with(|| Box::leak(Box::new(look_up(address, files))))
}

/// The address of the program's call: that of its last byte, since the return address may be of the
/// next line.
fn address() -> Option<usize> {
    struct Walk {
        own: &'static [Range<usize>],
        found: Option<usize>,
    }
    extern "C" fn each(frame: *mut Frame, walk: *mut c_void) -> c_int {
        // SAFETY: `walk` is the argument of the backtrace below, which nothing else uses until its
        // end. The unwinder calls this function with a frame of its own.
        let (walk, address) = unsafe { (&mut *walk.cast::<Walk>(), return_address(frame)) };
        if address == 0 || walk.own.iter().any(|own| own.contains(&address)) {
            return GO_ON;
        }
        walk.found = Some(address - 1);
        END
    }
    let mut walk = Walk { own: own(), found: None };
    // SAFETY: `each` doesn't unwind, and `walk` lives as long as the call.
    unsafe { _Unwind_Backtrace(each, (&raw mut walk).cast()) };
    walk.found
}

/// The code of this library.
fn own() -> &'static [Range<usize>] {
    static OWN: OnceLock<Vec<Range<usize>>> = OnceLock::new();
    OWN.get_or_init(|| loaded(of_call as *const () as usize).map_or(Vec::new(), |own| own.code))
}

/// The file whose code has an address.
fn loaded(address: usize) -> Option<Loaded> {
    struct Search {
        address: usize,
        found: Option<Loaded>,
    }
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: `search` is the argument of the iteration below, which nothing else uses until
        // its end. The dynamic linker describes a file that stays loaded for the call, with a name
        // and headers of its own.
        let (search, bias, name, headers) = unsafe {
            let info = &*info;
            let headers = match info.dlpi_phdr.is_null() {
                true => &[][..],
                false => std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
            };
            let name = (!info.dlpi_name.is_null()).then(|| CStr::from_ptr(info.dlpi_name));
            (&mut *search.cast::<Search>(), info.dlpi_addr as usize, name, headers)
        };
        let mut code = Vec::new();
        // The types of the fields depend on the machine.
        for header in headers {
            if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0 {
                let start = bias.wrapping_add(header.p_vaddr as usize);
                code.push(start..start.wrapping_add(header.p_memsz as usize));
            }
        }
        if !code.iter().any(|code| code.contains(&search.address)) {
            return 0;
        }
        // The program itself has no name.
        let name = name.map_or("", |name| name.to_str().unwrap_or(""));
        let path = match name {
            "" => std::env::current_exe().unwrap_or_default(),
            name => PathBuf::from(name),
        };
        search.found = Some(Loaded { path, bias, code });
        1
    }
    let mut search = Search { address, found: None };
    // SAFETY: `each` keeps nothing of what it is given, and `search` lives as long as the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut search).cast()) };
    search.found
}

/// The line of an address, or its place in its file.
fn look_up(address: usize, files: &mut HashMap<PathBuf, Option<Lines>>) -> SourceLine {
    let nowhere = |file: String| SourceLine { file, line: 0, column: 0 };
    let Some(Loaded { path, bias, .. }) = loaded(address) else {
        return nowhere(format!("{address:#x}"));
    };
    let offset = address.wrapping_sub(bias) as u64;
    let lines = files.entry(path.clone()).or_insert_with(|| read(&path));
    let found = lines.as_ref().and_then(|lines| lines.find_location(offset).ok()?);
    match found.as_ref().and_then(|found| found.file.zip(found.line)) {
        Some((file, line)) => {
            let column = found.as_ref().and_then(|found| found.column).unwrap_or(0);
            SourceLine { file: shortened(file), line, column }
        }
        None => {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            nowhere(format!("{name}+{offset:#x}"))
        }
    }
}

/// The debug information of a file, if it has any.
fn read(path: &Path) -> Option<Lines> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let dwarf = Dwarf::load(|section| {
        let data = file.section_by_name(section.name()).and_then(|it| it.data().ok());
        let data: &'static [u8] = data.unwrap_or(&[]).to_vec().leak();
        Ok::<_, addr2line::gimli::Error>(EndianSlice::new(data, endian))
    });
    Lines::from_dwarf(dwarf.ok()?).ok()
}

//! libfabric itself, which a process finds at run time when it first needs the network.
//!
//! A program therefore starts where there is no libfabric, and runs on one host. The library stays
//! loaded until the process ends, because its objects and threads may live as long.
//!
//! With the cargo feature `linked-libfabric`, the library is part of the program instead: a program
//! that is linked statically can't load any.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsString, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::ffi::Exports;

/// The environment variable that names libfabric's file. If absent: `libfabric.so.1` from the
/// system's search path, or, if that isn't there or is too old, one that was installed beside
/// Longshore.
pub const LIBRARY: &str = "LONGSHORE_LIBFABRIC";

/// The oldest version that works, and the version of the interface that this crate asks for.
const OLDEST: Version = Version { major: 1, minor: 20 };

/// A version of libfabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl Version {
    /// The number by which libfabric knows a version.
    const fn number(self) -> u32 {
        self.major << 16 | self.minor
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The version of the interface that this crate asks for.
pub(super) const INTERFACE: u32 = OLDEST.number();

/// Why this process has no libfabric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// The library isn't found, or it can't be loaded.
    #[error(
        "libfabric, which carries data between hosts, can't be loaded{}: {why}. {}",
        place(.file, .why),
        remedy(*.named)
    )]
    Missing {
        /// The library's file, or its name.
        file: PathBuf,
        /// The loader's words, which name this file, or another that it needs.
        why: String,
        /// Whether [`LIBRARY`] names the file.
        named: bool,
    },
    /// The library is too old.
    #[error(
        "libfabric is too old: {} is version {version}. Longshore needs {OLDEST} or newer ({PACKAGES}). \
         Install one, and name its file in {LIBRARY} if the system doesn't find it",
        .file.display()
    )]
    TooOld {
        /// The library's file.
        file: PathBuf,
        /// The library's version.
        version: Version,
    },
}

/// The file that can't be loaded, unless the loader names it.
fn place(file: &Path, why: &str) -> String {
    let file = file.display().to_string();
    if why.contains(&file) { String::new() } else { format!(" from {file}") }
}

/// What a person can do without a library, who may have `named` a file.
fn remedy(named: bool) -> String {
    if cfg!(target_feature = "crt-static") {
        return "This program is linked statically, so it can load no library: link it dynamically"
            .to_owned();
    }
    let first = match named {
        true => format!("Name another file in {LIBRARY}, or unset it and install libfabric"),
        false => "Install it on this host".to_owned(),
    };
    let last = if named { "" } else { ", or name its file in LONGSHORE_LIBFABRIC" };
    format!("{first}, {OLDEST} or newer ({PACKAGES}){last}")
}

/// The commands that install libfabric, with releases that have one which serves. Older releases
/// may have one that is refused: Debian 12's and Ubuntu 24.04's is version 1.17.
const PACKAGES: &str = "Debian 13, Ubuntu 26.04 or newer: apt-get install libfabric1; Fedora, RHEL 10: \
                        dnf install libfabric; SUSE 16: zypper install libfabric1; Arch: pacman -S \
                        libfabric; any other: conda install -c conda-forge libfabric, or \
                        https://github.com/ofiwg/libfabric/releases";

/// The libfabric of this process.
#[derive(Clone, Copy)]
pub(super) struct Library(&'static Exports);

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Library").field(&self.version()).finish()
    }
}

impl std::ops::Deref for Library {
    type Target = Exports;

    fn deref(&self) -> &Exports {
        self.0
    }
}

impl Library {
    /// The library, which the first call loads.
    ///
    /// # Errors
    /// There is none, or it is too old. Later calls return the same error.
    pub(super) fn get() -> Result<Library, LibraryError> {
        static LOADED: OnceLock<Result<Exports, LibraryError>> = OnceLock::new();
        let file = || std::env::var_os(LIBRARY).filter(|file| !file.is_empty());
        match LOADED.get_or_init(|| find(file())) {
            Ok(exports) => Ok(Library(exports)),
            Err(error) => Err(error.clone()),
        }
    }

    /// The library's version.
    pub(super) fn version(self) -> Version {
        version(&self)
    }

    /// The library's file, as the loader names it.
    pub(super) fn file(self) -> PathBuf {
        file(&self)
    }

    /// The library's text for an error number.
    pub(super) fn strerror(self, code: i32) -> String {
        // SAFETY: fi_strerror returns a static string for every number.
        let text = unsafe { CStr::from_ptr((self.fi_strerror)(code)) };
        text.to_string_lossy().into_owned()
    }
}

/// The name by which the system knows libfabric.
const NAME: &str = "libfabric.so.1";

/// Finds the library, by the name of its file if one is given.
fn find(named: Option<OsString>) -> Result<Exports, LibraryError> {
    if let Some(named) = named {
        return load(named.as_ref(), true);
    }
    // The system's own first: it knows the networks of the host.
    load(NAME.as_ref(), false).or_else(|error| {
        let mut beside = beside().into_iter().filter(|file| file.exists());
        beside.find_map(|file| load(&file, false).ok()).ok_or(error)
    })
}

/// The files that a package with its own libfabric may have: beside the library that this code is
/// part of or in the folder above, and in the folder of libraries of the program's installation.
fn beside() -> Vec<PathBuf> {
    let library = containing(beside as *const c_void);
    let program = std::env::current_exe().ok();
    // An installation has the library in `lib` and once more in a folder there.
    let folders = library.as_deref().map(Path::ancestors).into_iter().flatten().skip(1).take(2);
    let library: Vec<PathBuf> = folders.map(|folder| folder.join(NAME)).collect();
    let folder = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    let program = folder.map(|folder| folder.join("lib").join(NAME));
    library.into_iter().chain(program).filter(|file| file.is_absolute()).collect()
}

/// Loads the library from a file or by its name, and checks its version.
fn load(name: &Path, named: bool) -> Result<Exports, LibraryError> {
    let (exports, loaded) = open(name, named)?;
    let version = version(&exports);
    if version < OLDEST {
        return Err(LibraryError::TooOld { file: file(&exports), version });
    }
    tracing::debug!(file = %file(&exports).display(), %version, "uses libfabric");
    // It stays loaded.
    let _ = ManuallyDrop::new(loaded);
    Ok(exports)
}

fn version(exports: &Exports) -> Version {
    // SAFETY: it takes no arguments.
    let number = unsafe { (exports.fi_version)() };
    Version { major: number >> 16, minor: number & 0xffff }
}

/// The file that the loader took the functions from.
fn file(exports: &Exports) -> PathBuf {
    containing(exports.fi_version as *const c_void).unwrap_or_else(|| "?".into())
}

/// The file of the program or library that has this address, as the loader names it.
fn containing(address: *const c_void) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;

    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: `found` outlives the call, which accepts any address. A name that it returns is the
    // loader's, and lives as long as the library, which stays loaded.
    let name = unsafe {
        let status = libc::dladdr(address, &mut found);
        (status != 0 && !found.dli_fname.is_null()).then(|| CStr::from_ptr(found.dli_fname))
    };
    Some(PathBuf::from(OsString::from_vec(name?.to_bytes().to_vec())))
}

#[cfg(not(feature = "linked-libfabric"))]
type Loaded = libloading::os::unix::Library;

/// The library that is part of the program needs no handle.
#[cfg(feature = "linked-libfabric")]
type Loaded = ();

/// Opens the library. It is closed again when the handle is dropped.
#[cfg(not(feature = "linked-libfabric"))]
fn open(name: &Path, named: bool) -> Result<(Exports, Loaded), LibraryError> {
    use libloading::os::unix::{RTLD_LOCAL, RTLD_NOW};

    let missing = |why: libloading::Error| LibraryError::Missing {
        file: name.to_owned(),
        why: why.to_string(),
        named,
    };
    // SAFETY: libfabric and its dependencies have no constructors with requirements of their own.
    // A user who names another file answers for it.
    let library = unsafe { Loaded::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(missing)?;
    /// Takes functions from the library by their names.
    macro_rules! exports {
        ($($name:ident)*) => {
            Exports { $($name: {
                // SAFETY: the types of the members are those of libfabric's headers.
                let found = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) };
                *found.map_err(missing)?
            },)* }
        };
    }
    let exports = exports!(fi_getinfo fi_freeinfo fi_dupinfo fi_fabric fi_strerror fi_version);
    Ok((exports, library))
}

/// The library that is part of the program.
#[cfg(feature = "linked-libfabric")]
fn open(_: &Path, _: bool) -> Result<(Exports, Loaded), LibraryError> {
    use std::ffi::{c_char, c_int};

    use super::ffi::{fi_fabric_attr, fi_info, fid_fabric};

    // SAFETY: the declarations are those of libfabric's headers.
    unsafe extern "C" {
        fn fi_getinfo(
            version: u32,
            node: *const c_char,
            service: *const c_char,
            flags: u64,
            hints: *const fi_info,
            found: *mut *mut fi_info,
        ) -> c_int;
        fn fi_freeinfo(info: *mut fi_info);
        fn fi_dupinfo(info: *const fi_info) -> *mut fi_info;
        fn fi_fabric(
            attributes: *mut fi_fabric_attr,
            made: *mut *mut fid_fabric,
            context: *mut c_void,
        ) -> c_int;
        fn fi_strerror(code: c_int) -> *const c_char;
        fn fi_version() -> u32;
    }
    Ok((Exports { fi_getinfo, fi_freeinfo, fi_dupinfo, fi_fabric, fi_strerror, fi_version }, ()))
}

#[cfg(all(test, not(feature = "linked-libfabric")))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_with_what_to_do() {
        let error = find(Some("/nowhere/libfabric.so.1".into())).err().unwrap();
        let text = error.to_string();
        assert!(matches!(error, LibraryError::Missing { named: true, .. }), "{text}");
        for part in ["/nowhere/libfabric.so.1", "LONGSHORE_LIBFABRIC", "libfabric1", "1.20"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let (file, why) = ("libfabric.so.1".into(), "libfabric.so.1: cannot open".to_owned());
        let text = LibraryError::Missing { file, why, named: false }.to_string();
        for part in [
            "loaded: libfabric.so.1: cannot open. Install it on this host",
            "dnf install",
            "pacman",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_file_that_is_no_libfabric_is_refused() {
        let text = std::env::temp_dir().join(format!("longshore-text-{}", std::process::id()));
        fs::write(&text, "no library").unwrap();
        let error = find(Some(text.clone().into())).err().unwrap().to_string();
        fs::remove_file(&text).unwrap();
        assert!(error.contains(text.to_str().unwrap()), "{error}");
        // A library without its functions.
        let error = find(Some("libc.so.6".into())).err().unwrap().to_string();
        assert!(error.contains("libc.so.6") && error.contains("fi_getinfo"), "{error}");
    }

    #[test]
    fn files_beside_this_program_may_be_a_packages() {
        let program = std::env::current_exe().unwrap();
        let folder = program.parent().unwrap();
        let files = beside();
        assert!(files.iter().all(|file| file.is_absolute() && file.ends_with(NAME)), "{files:?}");
        assert!(files.contains(&folder.parent().unwrap().join("lib").join(NAME)), "{files:?}");
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let version = |major, minor| Version { major, minor };
        assert!(version(1, 17) < OLDEST && version(1, 20) == OLDEST && version(2, 0) > OLDEST);
        let file = "/usr/lib/libfabric.so.1".into();
        let text = LibraryError::TooOld { file, version: version(1, 17) }.to_string();
        assert!(text.contains("/usr/lib/libfabric.so.1 is version 1.17"), "{text}");
        assert!(text.contains("1.20 or newer"), "{text}");
        // A release whose library would be refused again isn't named.
        for remedy in [LIBRARY, "Debian 13", "Ubuntu 26.04", "conda install"] {
            assert!(text.contains(remedy), "{text}");
        }
    }
}

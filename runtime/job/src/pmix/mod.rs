//! A client of PMIx, with which Open MPI's mpirun, prterun and `srun --mpi=pmix` serve the
//! processes of a job.
//!
//! PMIx is defined by a library interface. The library, libpmix, comes with the launcher, and the
//! client loads it only if such a launcher has started the process. Not supported: events other
//! than the loss of the launcher, spawning, and publishing across jobs.

mod library;

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::path::PathBuf;

use zeroize::Zeroizing;

use self::library::Library;
use super::env;

/// A connection to the launcher's server on this host.
#[derive(Debug)]
pub(super) struct Client {
    library: Library,
    namespace: CString,
    rank: u32,
    size: u32,
}

impl Client {
    /// Connects to the launcher that started this process. The environment must name its job.
    pub(super) fn open() -> io::Result<Client> {
        let parent = format!("/proc/{}/maps", nix::unistd::getppid());
        let parent = std::fs::read_to_string(parent).unwrap_or_default();
        let library = Library::load(&candidates(|name| std::env::var_os(name), &parent))?;
        let (namespace, rank) = library.init()?;
        let size = library.size(&namespace)?;
        Ok(Client { library, namespace, rank, size })
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// The number of ranks of the job.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Publishes this process's `value` under `key`.
    pub(super) fn put(&mut self, key: &str, value: &str) -> io::Result<()> {
        // The value may be the job's secret, of which no copy is left behind.
        let mut text = Zeroizing::new(Vec::with_capacity(value.len() + 1));
        text.extend_from_slice(value.as_bytes());
        text.push(0);
        let text = CStr::from_bytes_with_nul(&text).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.library.put(&c_string(key)?, text)
    }

    /// The value that `rank` put under `key` before the last barrier, if there is one.
    pub(super) fn find(&mut self, rank: u32, key: &str) -> io::Result<Option<String>> {
        self.library.get(&self.namespace, rank, &c_string(key)?)
    }

    /// Waits until all processes of the job have called it, and collects their values.
    pub(super) fn barrier(&mut self) -> io::Result<()> {
        self.library.fence()
    }

    pub(super) fn finalize(&mut self) -> io::Result<()> {
        self.library.finalize()
    }

    pub(super) fn abort(&mut self, code: i32) -> io::Result<()> {
        self.library.abort(code)
    }

    /// Whether the server, and with it the launcher, has ended. Doesn't block.
    pub(super) fn hung_up(&self) -> bool {
        self.library.lost()
    }
}

/// The paths of the library to try, in this order.
///
/// If the user set [`env::PMIX_LIBRARY`], only that path. Otherwise first the launcher's library,
/// because it fits the launcher's server best: it is in `parent`, the memory map of this process's
/// parent, or under PMIX_PREFIX. Last comes the system's search path.
fn candidates(variable: impl Fn(&str) -> Option<OsString>, parent: &str) -> Vec<PathBuf> {
    const NAME: &str = "libpmix.so.2";
    if let Some(path) = variable(env::PMIX_LIBRARY) {
        return vec![path.into()];
    }
    let mapped = parent.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let mapped = mapped.filter(|path| path.contains("/libpmix.so.2")).map(PathBuf::from).take(1);
    let beside = variable("PMIX_PREFIX")
        .map(PathBuf::from)
        .into_iter()
        .flat_map(|prefix| ["lib", "lib64", "lib/openmpi"].map(|lib| prefix.join(lib).join(NAME)));
    let mut candidates: Vec<_> = mapped.chain(beside).filter(|path| path.exists()).collect();
    candidates.push(NAME.into());
    candidates
}

fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_library_precedes_the_launchers_and_the_systems() {
        let here = |name: &str| (name == env::PMIX_LIBRARY).then(|| "/a/libpmix.so".into());
        assert_eq!(candidates(here, ""), [PathBuf::from("/a/libpmix.so")]);
        let folder = std::env::temp_dir().join(format!("longshore-pmix-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("lib/openmpi")).unwrap();
        let beside = folder.join("lib/openmpi/libpmix.so.2");
        std::fs::write(&beside, "").unwrap();
        let prefix = |name: &str| (name == "PMIX_PREFIX").then(|| folder.clone().into());
        let system = PathBuf::from("libpmix.so.2");
        assert_eq!(candidates(prefix, ""), [beside.clone(), system.clone()]);
        let maps =
            format!("7f00-7f01 r--p 0 fe:0 3  {0}\n7f01-7f02 r-xp 0 fe:0 3  {0}", beside.display());
        assert_eq!(candidates(|_| None, &maps), [beside, system.clone()]);
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(candidates(|_| None, &maps), [system], "the file doesn't exist any more");
    }

    #[test]
    fn a_missing_library_is_reported_with_every_path() {
        let nowhere = ["/nowhere/libpmix.so.2", "libpmix-nowhere.so.2"].map(PathBuf::from);
        let error = Library::load(&nowhere).unwrap_err().to_string();
        for word in [nowhere[0].to_str().unwrap(), "libpmix-nowhere.so.2", env::PMIX_LIBRARY] {
            assert!(error.contains(word), "{error}");
        }
        // Another library lacks the functions. A statically linked program can't load any library.
        let error = Library::load(&["libc.so.6".into()]).unwrap_err().to_string();
        assert!(error.contains("PMIx_") || cfg!(target_feature = "crt-static"), "{error}");
    }
}

//! A client of PMIx, by which Open MPI's mpirun, prterun and `srun --mpi=pmix` introduce a process to its job.
//!
//! PMIx is spoken by a library, libpmix, that comes with the launcher and is loaded when such a launcher has started the process.
//! Left out: events but for the loss of the launcher, spawning, publishing across jobs.

mod library;

use std::ffi::{CString, OsString};
use std::io;
use std::path::PathBuf;

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
    /// The launcher that started this process, which said so in the environment.
    pub(super) fn open() -> io::Result<Client> {
        let parent = format!("/proc/{}/maps", nix::unistd::getppid());
        let parent = std::fs::read_to_string(parent).unwrap_or_default();
        let library = Library::load(&places(|name| std::env::var_os(name), &parent))?;
        let (namespace, rank) = library.init()?;
        let size = library.size(&namespace)?;
        Ok(Client { library, namespace, rank, size })
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// The ranks of the job.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Publishes `value` as this process's under `key`.
    pub(super) fn put(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.library.put(&c_string(key)?, &c_string(value)?)
    }

    /// What `rank` put under `key` before the last barrier, or nothing where it put none.
    pub(super) fn find(&mut self, rank: u32, key: &str) -> io::Result<Option<String>> {
        self.library.get(&self.namespace, rank, &c_string(key)?)
    }

    /// Waits until all processes of the job are here, and brings what they put.
    pub(super) fn barrier(&mut self) -> io::Result<()> {
        self.library.fence()
    }

    pub(super) fn finalize(&mut self) -> io::Result<()> {
        self.library.finalize()
    }

    pub(super) fn abort(&mut self, code: i32) -> io::Result<()> {
        self.library.abort(code)
    }

    /// Whether the server is gone, and with it the launcher. Doesn't block.
    pub(super) fn hung_up(&self) -> bool {
        self.library.lost()
    }
}

/// Where the library may lie, in the order in which to try: where the user says; where `parent`, the maps of the process that
/// started this one, has it, or beside the launcher, whose server it fits best; where the system looks.
fn places(variable: impl Fn(&str) -> Option<OsString>, parent: &str) -> Vec<PathBuf> {
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
    let mut places: Vec<_> = mapped.chain(beside).filter(|path| path.exists()).collect();
    places.push(NAME.into());
    places
}

fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_says_where_it_lies_or_else_the_launcher() {
        let here = |name: &str| (name == env::PMIX_LIBRARY).then(|| "/a/libpmix.so".into());
        assert_eq!(places(here, ""), [PathBuf::from("/a/libpmix.so")]);
        let folder = std::env::temp_dir().join(format!("longshore-pmix-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("lib/openmpi")).unwrap();
        let beside = folder.join("lib/openmpi/libpmix.so.2");
        std::fs::write(&beside, "").unwrap();
        let prefix = |name: &str| (name == "PMIX_PREFIX").then(|| folder.clone().into());
        let system = PathBuf::from("libpmix.so.2");
        assert_eq!(places(prefix, ""), [beside.clone(), system.clone()]);
        let maps =
            format!("7f00-7f01 r--p 0 fe:0 3  {0}\n7f01-7f02 r-xp 0 fe:0 3  {0}", beside.display());
        assert_eq!(places(|_| None, &maps), [beside, system.clone()]);
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(places(|_| None, &maps), [system], "gone meanwhile");
    }

    #[test]
    fn a_missing_library_is_named_with_all_places() {
        let nowhere = ["/nowhere/libpmix.so.2", "libpmix-nowhere.so.2"].map(PathBuf::from);
        let error = Library::load(&nowhere).unwrap_err().to_string();
        for word in [nowhere[0].to_str().unwrap(), "libpmix-nowhere.so.2", env::PMIX_LIBRARY] {
            assert!(error.contains(word), "{error}");
        }
        // One that is a library, but another; a program that is linked statically loads none.
        let error = Library::load(&["libc.so.6".into()]).unwrap_err().to_string();
        assert!(error.contains("PMIx_") || cfg!(target_feature = "crt-static"), "{error}");
    }
}

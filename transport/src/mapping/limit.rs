//! The limits on the memory that a process can map.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::sync::OnceLock;

use rustix::process::Resource;

/// The limit by which a process gets no more memory, for the text of an error.
///
/// ```
/// use longshore_transport::MemoryLimit;
///
/// println!("4096 bytes can't be allocated: {}", MemoryLimit::find());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// The length of its address space, in bytes.
    AddressSpace(u64),
    /// The number of its mappings.
    Mappings(u64),
    /// No limit of the process: the system has too little memory.
    System,
}

/// The mappings that are left to the program and its allocator.
const RESERVED: u64 = 4096;

/// The number of mappings of a process where the system doesn't say it: Linux's default.
const USUAL: u64 = 65_530;

impl MemoryLimit {
    /// The limit that this process has reached, after an allocation has failed.
    ///
    /// It allocates no memory.
    pub fn find() -> MemoryLimit {
        let most = most_mappings();
        if lines("/proc/self/maps").is_some_and(|mappings| mappings + RESERVED / 2 > most) {
            return MemoryLimit::Mappings(most);
        }
        match rustix::process::getrlimit(Resource::As).current {
            Some(bytes) => MemoryLimit::AddressSpace(bytes),
            None => MemoryLimit::System,
        }
    }

    /// The number of mappings of the segment that a process may have. Some are left to the program:
    /// without any, its allocator fails too.
    pub(super) fn mappings() -> u64 {
        static MOST: OnceLock<u64> = OnceLock::new();
        *MOST.get_or_init(|| most_mappings().saturating_sub(RESERVED))
    }

    /// The error of a process that has [so many](MemoryLimit::mappings).
    pub(super) fn of_mappings() -> MemoryLimit {
        MemoryLimit::Mappings(most_mappings())
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryLimit::AddressSpace(bytes) => write!(
                f,
                "the limit on this process's address space is {bytes} bytes: raise it (ulimit -v)"
            ),
            MemoryLimit::Mappings(most) => write!(
                f,
                "the limit on this process's mappings is {most}, of which {RESERVED} are left to \
                 the program: free memory or windows, or raise it (sysctl vm.max_map_count)"
            ),
            MemoryLimit::System => f.write_str(
                "this process has no limit of its own: the system has too little memory",
            ),
        }
    }
}

fn most_mappings() -> u64 {
    let mut text = [0; 32];
    let read = File::open("/proc/sys/vm/max_map_count").and_then(|mut file| file.read(&mut text));
    let read = read.ok().and_then(|len| std::str::from_utf8(&text[..len]).ok());
    read.and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL)
}

/// The lines of a file.
fn lines(path: &str) -> Option<u64> {
    let (mut file, mut buffer, mut lines) = (File::open(path).ok()?, [0; 4096], 0);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Some(lines),
            Ok(len) => lines += buffer[..len].iter().filter(|&&byte| byte == b'\n').count() as u64,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_named_with_its_value() {
        let text = MemoryLimit::AddressSpace(61_440_000).to_string();
        assert!(text.contains("61440000 bytes") && text.contains("ulimit -v"), "{text}");
        let text = MemoryLimit::Mappings(65_530).to_string();
        assert!(text.contains("65530") && text.contains("vm.max_map_count"), "{text}");
        assert!(most_mappings() > RESERVED && lines("/proc/self/maps").is_some_and(|n| n > 5));
    }
}

//! Where the kernel has put the core file of a killed rank.

use std::fs;
use std::path::{Path, PathBuf};

/// Describes where the core file of process `pid` is, killed by a signal in `folder`.
///
/// The kernel tells only its pattern (core(5)). Words of the pattern for anything but the process
/// and the signal become `*`.
pub(super) fn describe(pid: u32, signal: i32, folder: &Path) -> String {
    let read = |name| fs::read_to_string(Path::new("/proc/sys/kernel").join(name));
    let pattern = read("core_pattern").unwrap_or_default();
    let appends = read("core_uses_pid").is_ok_and(|word| word.trim() != "0");
    match pattern.trim_end().strip_prefix('|') {
        Some(program) => {
            let program = program.split_whitespace().next().unwrap_or_default();
            let hint = match program.contains("systemd-coredump") {
                true => format!(": `coredumpctl info {pid}` shows it"),
                false => String::new(),
            };
            format!("its core went to {program}{hint}")
        }
        None => {
            let known = |word| match word {
                'p' | 'P' | 'i' | 'I' => Some(pid.to_string()),
                's' => Some(signal.to_string()),
                '%' => Some("%".to_owned()),
                _ => None,
            };
            let path = folder.join(expand(pattern.trim_end(), appends, pid, known));
            format!("its core file is {}", path.display())
        }
    }
}

/// A pattern with its words replaced. `appends`: the kernel appends the number of the process where
/// the pattern doesn't have it.
fn expand(
    pattern: &str,
    appends: bool,
    pid: u32,
    known: impl Fn(char) -> Option<String>,
) -> PathBuf {
    let mut name = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // A '%' at the end is dropped by the kernel too.
            '%' => name.extend(letters.next().map(|word| known(word).unwrap_or("*".to_owned()))),
            letter => name.push(letter),
        }
    }
    if appends && !pattern.contains("%p") {
        name += &format!(".{pid}");
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::expand;

    #[test]
    fn the_words_of_a_pattern_are_replaced() {
        let expand = |pattern, appends| {
            let known = |word| (word == 'p' || word == '%').then(|| format!("<{word}>"));
            expand(pattern, appends, 7, known)
        };
        assert_eq!(expand("core", false), PathBuf::from("core"));
        assert_eq!(expand("core", true), PathBuf::from("core.7"));
        assert_eq!(expand("/tmp/core.%p.%e-%%", true), PathBuf::from("/tmp/core.<p>.*-<%>"));
        assert_eq!(expand("core%", false), PathBuf::from("core"));
    }
}

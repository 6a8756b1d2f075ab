//! The limits of this process's control group (cgroups(7), versions 1 and 2) on processors and
//! memory. The ranks of a host are in the launcher's group, or the agent's.
//!
//! A group's limit holds for the groups below it too, so the lowest one up to the root counts. In a
//! container the group's path may be unknown; then the root that the container sees counts.

use std::fs;
use std::path::{Path, PathBuf};

/// The limits of this process's control group. `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The processors whose time all processes of the group may use together.
    pub processors: Option<f64>,
    /// The bytes of memory that all processes of the group may use together, without swap.
    pub memory: Option<u64>,
}

/// The folders of a process's control groups.
struct Groups {
    /// The mount point of version 2, and the group's path below it.
    unified: Option<(PathBuf, PathBuf)>,
    /// The mount points and paths of the controllers `cpu` and `memory` of version 1.
    cpu: Option<(PathBuf, PathBuf)>,
    memory: Option<(PathBuf, PathBuf)>,
}

impl Limits {
    /// Reads the limits. A file that can't be read is no limit.
    ///
    /// ```
    /// let limits = longshore_launcher::Limits::read();
    /// assert!(limits.processors.is_none_or(|processors| processors > 0.0));
    /// ```
    pub fn read() -> Limits {
        Groups::of_this_process().limits()
    }
}

/// How many processes of this process's control group the kernel has killed for its memory limit.
pub(super) fn kills() -> u64 {
    Groups::of_this_process().kills()
}

/// The room for the events of each of `ranks` ranks of this host, of which `asked` bytes would do.
/// A trace takes at most an eighth of the memory that the control group grants.
pub(super) fn room_for_events(asked: u32, ranks: usize) -> u32 {
    room(asked, ranks, Limits::read().memory)
}

fn room(asked: u32, ranks: usize, memory: Option<u64>) -> u32 {
    let share = memory.map_or(u64::MAX, |memory| memory / 8 / (ranks.max(1) as u64));
    u32::try_from(share).unwrap_or(u32::MAX).min(asked)
}

/// A text for the death of a rank by SIGKILL, if the group's memory limit may be the reason. It is
/// if the kernel has killed more than `kills_before` processes.
pub(super) fn explain(kills_before: u64) -> Option<String> {
    let groups = Groups::of_this_process();
    (groups.kills() > kills_before).then(|| {
        let limit = groups.limits().memory;
        let limit = limit
            .map_or("its memory".to_owned(), |bytes| format!("its memory to {} MiB", bytes >> 20));
        format!(
            "the kernel killed a process of the control group, which limits {limit}: \
             use fewer ranks of this host or smaller windows, or raise the limit"
        )
    })
}

impl Groups {
    fn of_this_process() -> Groups {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Groups::parse(&groups, Path::new("/sys/fs/cgroup"))
    }

    /// The groups in the text of /proc/PID/cgroup, which has a line for each hierarchy:
    /// `ID:CONTROLLERS:PATH`. Those of version 2 have no controllers.
    fn parse(text: &str, mount: &Path) -> Groups {
        let mut groups = Groups { unified: None, cpu: None, memory: None };
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let path = PathBuf::from(path.trim_start_matches('/'));
            if controllers.is_empty() {
                groups.unified = Some((mount.to_owned(), path));
                continue;
            }
            for controller in controllers.split(',') {
                let group = Some((mount.join(controller), path.clone()));
                match controller {
                    "cpu" => groups.cpu = group,
                    "memory" => groups.memory = group,
                    _ => {}
                }
            }
        }
        groups
    }

    fn limits(&self) -> Limits {
        let unified = folders(&self.unified);
        let processors = unified.iter().filter_map(|folder| {
            let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
            let (quota, period) = text.trim().split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
        });
        let old_processors = folders(&self.cpu).into_iter().filter_map(|folder| {
            let quota = number(&folder.join("cpu.cfs_quota_us"))?; // -1: no limit
            Some(quota as f64 / number(&folder.join("cpu.cfs_period_us"))? as f64)
        });
        let memory = unified.iter().filter_map(|folder| number(&folder.join("memory.max")));
        let old_memory = folders(&self.memory);
        let old_memory =
            old_memory.iter().filter_map(|folder| number(&folder.join("memory.limit_in_bytes")));
        Limits {
            processors: processors
                .chain(old_processors)
                .filter(|processors| *processors > 0.0)
                .min_by(f64::total_cmp),
            // Version 1 has the largest number of whole pages where there is no limit.
            memory: memory.chain(old_memory).filter(|bytes| *bytes < 1 << 62).min(),
        }
    }

    fn kills(&self) -> u64 {
        let places = [(&self.unified, "memory.events"), (&self.memory, "memory.oom_control")];
        let counts = places.into_iter().filter_map(|(group, name)| {
            let text = fs::read_to_string(folders(group).first()?.join(name)).ok()?;
            let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
            count.trim().parse::<u64>().ok()
        });
        counts.sum()
    }
}

/// The folders of a group and of those above it that exist, up to the mount point.
fn folders(group: &Option<(PathBuf, PathBuf)>) -> Vec<PathBuf> {
    let Some((mount, path)) = group else { return Vec::new() };
    let all = path.ancestors().map(|path| mount.join(path));
    all.filter(|folder| folder.is_dir()).collect()
}

/// The number in a file; `None` for `max` and for negative numbers.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed when the test ends.
    struct Mount(PathBuf);

    impl Mount {
        fn new(name: &str, files: &[(&str, &str)]) -> Mount {
            let folder = format!("longshore-limits-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            for (file, text) in files {
                let file = folder.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Mount(folder)
        }
    }

    impl Drop for Mount {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_lowest_limit_up_to_the_root_counts() {
        let files = [
            ("a/cpu.max", "250000 100000\n"),
            ("a/memory.max", "1073741824\n"),
            ("a/b/cpu.max", "max 100000\n"),
            ("a/b/memory.max", "2147483648\n"),
            ("a/b/memory.events", "low 0\noom 3\noom_kill 2\n"),
        ];
        let mount = Mount::new("unified", &files);
        let groups = Groups::parse("0::/a/b\n", &mount.0);
        assert_eq!(groups.limits(), Limits { processors: Some(2.5), memory: Some(1 << 30) });
        assert_eq!(groups.kills(), 2);
    }

    #[test]
    fn version_1_has_a_folder_for_each_controller() {
        let files = [
            ("cpu/a/cpu.cfs_quota_us", "150000\n"),
            ("cpu/a/cpu.cfs_period_us", "100000\n"),
            ("memory/b/memory.limit_in_bytes", "536870912\n"),
            ("memory/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"),
        ];
        let mount = Mount::new("old", &files);
        let groups = Groups::parse("4:memory:/b\n2:cpuacct,cpu:/a\n0::/\n", &mount.0);
        assert_eq!(groups.limits(), Limits { processors: Some(1.5), memory: Some(512 << 20) });
        assert_eq!(groups.kills(), 5);
    }

    #[test]
    fn traces_take_an_eighth_of_the_memory() {
        assert_eq!(room(64 << 20, 4, None), 64 << 20);
        assert_eq!(room(64 << 20, 4, Some(1 << 30)), 32 << 20);
        assert_eq!(room(64 << 20, 4, Some(8 << 30)), 64 << 20);
        assert_eq!(room(64 << 20, 0, Some(4096)), 512);
    }

    #[test]
    fn groups_without_limits_have_none() {
        let files = [
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let mount = Mount::new("none", &files);
        let groups = Groups::parse("4:memory:/not/seen/here\n1:cpu:/\n", &mount.0);
        assert_eq!(groups.limits(), Limits::default());
        assert_eq!(Groups::parse("", &mount.0).limits(), Limits::default());
    }
}

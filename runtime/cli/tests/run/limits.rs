//! Jobs under the limits of a control group, which needs root and a group that may have others
//! below it. Elsewhere the tests say why they are skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::role;
use super::support::{Finished, adopt};

/// A control group below this process's own, which is removed when the test ends.
struct Group(PathBuf);

impl Group {
    /// A group of a controller of version 1, or of version 2, with one of these limits. Prints the
    /// reason if there can be none.
    fn new(name: &str, controller: &str, limits: &[(&str, &str)]) -> Option<Group> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
            match controllers {
                "" if !controllers_of_version_1(&groups).contains(&controller) => {
                    Some(Path::new("/sys/fs/cgroup").join(path))
                }
                _ if controllers.split(',').any(|each| each == controller) => {
                    Some(Path::new("/sys/fs/cgroup").join(controller).join(path))
                }
                _ => None,
            }
        });
        let skip = |why: String| {
            eprintln!("skipped: no control group can be made here: {why}");
            None
        };
        let Some(own) = own else { return skip(format!("no controller {controller}")) };
        let folder = own.join(format!("longshore-{name}-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&folder) {
            return skip(format!("{}: {error}", folder.display()));
        }
        let group = Group(folder);
        for (file, limit) in limits {
            if fs::write(group.0.join(file), limit).is_ok() {
                return Some(group);
            }
        }
        skip(format!("{} takes none of {limits:?}", group.0.display()))
    }

    /// Runs `longshore` in the group.
    fn run(&self, words: &[String]) -> Finished {
        let script = "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).arg(&self.0).arg(env!("CARGO_BIN_EXE_longshore")).args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        adopt(&mut command).finish()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0); // its processes have ended
    }
}

fn controllers_of_version_1(groups: &str) -> Vec<&str> {
    let controllers = groups.lines().filter_map(|line| line.split(':').nth(1));
    controllers.flat_map(|controllers| controllers.split(',')).collect()
}

fn own(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

#[test]
fn a_death_by_the_memory_limit_names_the_limit() {
    let limits = [("memory.limit_in_bytes", "100663296"), ("memory.max", "100663296")];
    let Some(group) = Group::new("greedy", "memory", &limits) else { return };
    let finished = group.run(&[own(&["run", "-n", "2"]), role("greedy")].concat());
    assert_eq!(finished.status, 137, "{}", finished.stderr);
    let messages = finished.messages().join("\n");
    assert!(messages.contains("was killed by SIGKILL, during "), "{messages}");
    let why = "; the kernel killed a process of the control group, which limits its memory to 96 MiB: \
               use fewer ranks of this host or smaller windows, or raise the limit; ending the other rank";
    assert!(messages.contains(why), "{messages}");
}

#[test]
fn a_trace_takes_a_part_of_the_memory_only() {
    let limits = [("memory.limit_in_bytes", "100663296"), ("memory.max", "100663296")];
    let Some(group) = Group::new("trace", "memory", &limits) else { return };
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("limited.trace");
    let options = ["run", "-n", "2", "--trace", trace.to_str().unwrap(), "--route", "message"];
    let finished = group.run(&[own(&options), role("talkative")].concat());
    assert_eq!(finished.status, 0, "{}", finished.stderr);
    assert!(finished.stderr.contains("had no room"), "{}", finished.stderr);
}

#[test]
fn ranks_have_the_processors_of_the_control_group() {
    let limits = [("cpu.cfs_quota_us", "100000"), ("cpu.max", "100000 100000")];
    let Some(group) = Group::new("processors", "cpu", &limits) else { return };
    let words = own(&["run", "-n", "2", "sh", "-c", "echo $LONGSHORE_PROCESSORS"]);
    assert_eq!(group.run(&words).lines(), ["1", "1"]);
    let info = group.run(&own(&["info"]));
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("control group"), "{info}");
}

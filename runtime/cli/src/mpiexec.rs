//! `mpiexec` and `mpirun`: `longshore run` with the options that the MPI standard and other
//! implementations have (MPI-5.0 section 11.5).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::CommandFactory;

use crate::hosts;

/// Under its usage: the options that it has beside those of `longshore run`.
const HELP: &str = "\
Options that MPI names, and those of other launchers:
  -n N, -np N                    ranks of the part
  -host NAME,..., -hosts, -H     hosts; -f FILE, -hostfile, -machinefile a file of them
  -ppn N, -perhost, -npernode    ranks of each host
  -map-by node|slot, -rr, -bynode, -byslot    the order in which hosts get ranks
  -bind-to core|numa|none|user:LIST    processors of each rank
  -env NAME VALUE, -genv NAME VALUE    a variable for the part, for all parts
  -wdir DIR, -l                  working directory; ranks before the lines of output
  --oversubscribe, --allow-run-as-root    nothing, since nothing forbids it

Without hosts, HYDRA_HOST_FILE, I_MPI_HYDRA_HOST_FILE or OMPI_MCA_orte_default_hostfile names a file
of them. The library of this installation is found by programs that don't say where theirs is.

Examples:
  mpiexec -n 4 ./ring
  mpiexec -np 2 ./a : -np 2 ./b
  mpiexec -host a,b -ppn 2 ./ring";

/// The command under one of its names, for its help, its manual page and its completions.
pub fn named(name: &'static str) -> clap::Command {
    let mut command = crate::Arguments::command();
    command.build();
    let run = command.find_subcommand("run").cloned().unwrap_or_default();
    run.name(name)
        .display_name(name)
        .bin_name(name)
        .version(env!("CARGO_PKG_VERSION"))
        .about("Runs programs as the ranks of one job, with the options that MPI names")
        .override_usage(format!(
            "{name} [OPTIONS] [-n N] PROG [ARGS]... [: [-n N] PROG [ARGS]...]..."
        ))
        .after_help(HELP)
}

/// Whether the first word asks for help.
pub fn asks_for_help(mut words: impl Iterator<Item = OsString>) -> bool {
    words.nth(1).is_some_and(|word| ["-h", "-help", "--help"].iter().any(|asked| word == *asked))
}

/// Variables that name a file of hosts for a command line without hosts: those of MPICH, Intel MPI
/// and Open MPI. Operators of container clusters set one of them, and call mpiexec without hosts.
const HOST_FILES: [&str; 3] =
    ["HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile"];

/// The file that the first set variable of [`HOST_FILES`] names. An empty value names none.
pub fn host_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<OsString> {
    HOST_FILES.iter().find_map(|name| variable(name).filter(|file| !file.is_empty()))
}

/// Makes the command line of `longshore run` of one of `mpiexec`. Options that only `longshore run`
/// has stay as they are. If the line names no hosts, they are those of `host_file`.
pub fn translate(words: Vec<OsString>, host_file: Option<OsString>) -> Vec<OsString> {
    if let Some("--version" | "-version" | "-V") = words.first().and_then(|word| word.to_str()) {
        return vec!["longshore".into(), "--version".into()];
    }
    let mut parts: Vec<Part> = words.split(|word| word == ":").map(Part::parse).collect();
    if let (Some(file), Some(first)) = (host_file, parts.first_mut()) {
        first.take_hosts_of(file);
    }
    parts.iter_mut().for_each(Part::give_room);
    let everywhere: Vec<OsString> =
        parts.iter().flat_map(|part| part.everywhere.iter().cloned()).collect();
    let mut line: Vec<OsString> = vec!["longshore".into(), "run".into()];
    for (number, part) in parts.into_iter().enumerate() {
        if number > 0 {
            line.push(":".into());
        }
        line.extend(part.options);
        for assignment in &everywhere {
            line.extend(["-x".into(), assignment.clone()]);
        }
        line.extend(part.program);
    }
    line
}

/// A part of a job, between two ':'.
#[derive(Default)]
struct Part {
    /// The options of the part, in the words of `longshore run`.
    options: Vec<OsString>,
    /// Variables for all parts.
    everywhere: Vec<OsString>,
    /// The option that gives each host room for a number of ranks, and this number.
    per_host: Option<(OsString, OsString)>,
    /// The program and its arguments.
    program: Vec<OsString>,
}

impl Part {
    fn parse(words: &[OsString]) -> Part {
        let mut part = Part::default();
        let mut words = words.iter().cloned();
        while let Some(word) = words.next() {
            if !word.as_bytes().starts_with(b"-") {
                part.program.push(word);
                part.program.extend(words);
                break;
            }
            match word.to_str() {
                Some("-n" | "-np" | "--np" | "--n") => part.take("-n", words.next()),
                Some("-host" | "-hosts" | "--hosts" | "-H") => part.take("--host", words.next()),
                Some("-f" | "-hostfile" | "-machinefile") => {
                    part.take("--hostfile", words.next());
                }
                Some("-bind-to" | "--bind-to") => {
                    let cores = words.next().map(|cores| {
                        let list = cores.to_str().and_then(|cores| cores.strip_prefix("user:"));
                        list.map_or(cores.clone(), OsString::from)
                    });
                    part.take("--bind", cores);
                }
                Some("-map-by" | "--map-by") => part.map_by(words.next()),
                Some("-rr" | "-bynode" | "--bynode") => part.map_by(Some("node".into())),
                Some("-byslot" | "--byslot") => part.map_by(Some("slot".into())),
                Some("-ppn" | "-perhost" | "-npernode" | "--npernode") => {
                    part.per_host = words.next().map(|count| (word, count));
                }
                // Permissions that nobody needs here.
                Some("--oversubscribe" | "--allow-run-as-root") => {}
                Some("-wdir" | "-wd" | "--wd") => part.take("--wdir", words.next()),
                Some("-env") => {
                    let assignment = assignment(words.next(), words.next());
                    part.take("-x", assignment);
                }
                Some("-genv") => {
                    let assignment = assignment(words.next(), words.next());
                    part.everywhere.extend(assignment);
                }
                Some("-l" | "-prepend-rank" | "--tag-output") => {
                    part.options.push("--label".into());
                }
                _ => {
                    let values = values_of(&word);
                    part.options.push(word);
                    part.options.extend(words.by_ref().take(values));
                }
            }
        }
        part
    }

    /// Takes the order in which another launcher assigns ranks. An order that `longshore run`
    /// doesn't have stays as it is, and is refused there.
    fn map_by(&mut self, order: Option<OsString>) {
        let translated = match order.as_ref().and_then(|order| order.to_str()) {
            Some("node") => Some("host".into()),
            Some("slot" | "hwthread") => Some("core".into()),
            _ => order,
        };
        self.take("--map-by", translated);
    }

    /// Takes the hosts of a file, unless the part names hosts. Hosts are those of all parts, and
    /// only the first part can name them.
    fn take_hosts_of(&mut self, file: OsString) {
        let names_hosts = |word: &OsString| {
            let name = word.as_bytes().split(|&byte| byte == b'=').next();
            name == Some(b"--host") || name == Some(b"--hostfile")
        };
        if !self.options.iter().any(names_hosts) {
            self.options.splice(0..0, ["--hostfile".into(), file]);
        }
    }

    /// Gives each host of the job room for as many ranks as the part says. Without hosts all ranks
    /// are on this one. An option beside a file of hosts stays as it is, and is refused by
    /// `longshore run`.
    fn give_room(&mut self) {
        let Some((option, count)) = self.per_host.take() else { return };
        if self.options.iter().any(|word| word == "--hostfile") {
            return self.options.extend([option, count]);
        }
        let Some(at) = self.options.iter().position(|word| word == "--host") else { return };
        let Some(hosts) = self.options.get_mut(at + 1) else { return };
        let with_room = |host: &str| {
            let name = hosts::host(host).map(|host| host.name.to_string_lossy().into_owned());
            // A wrong name stays as it is, and is refused by `longshore run`.
            let name = name.unwrap_or_else(|_| host.to_owned());
            let (user, address) = name.split_at(name.rfind('@').map_or(0, |at| at + 1));
            match address.contains(':') {
                true => format!("{user}[{address}]:{}", count.to_string_lossy()),
                false => format!("{user}{address}:{}", count.to_string_lossy()),
            }
        };
        let names = hosts.to_string_lossy();
        *hosts = names.split(',').map(with_room).collect::<Vec<_>>().join(",").into();
    }

    fn take(&mut self, option: &str, value: Option<OsString>) {
        self.options.push(option.into());
        self.options.extend(value);
    }
}

/// `NAME=VALUE` of the two words of -env.
fn assignment(name: Option<OsString>, value: Option<OsString>) -> Option<OsString> {
    let (name, value) = (name?, value?);
    Some(OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat()))
}

/// The number of words after this option of `longshore run` that are its values.
fn values_of(option: &OsStr) -> usize {
    let mut command = crate::Arguments::command();
    command.build();
    let Some(run) = command.find_subcommand("run") else { return 0 };
    let named = |argument: &&clap::Arg| {
        let long = argument.get_long().map(|name| format!("--{name}"));
        let short = argument.get_short().map(|name| format!("-{name}"));
        [long, short].iter().flatten().any(|name| OsStr::new(name) == option)
    };
    let Some(argument) = run.get_arguments().find(named) else { return 0 };
    match argument.get_action().takes_values() && !argument.is_require_equals_set() {
        true => argument.get_num_args().map_or(1, |values| values.min_values()),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(given: &str) -> String {
        translated_with(None, given)
    }

    fn translated_with(host_file: Option<OsString>, given: &str) -> String {
        let line = translate(given.split_whitespace().map(OsString::from).collect(), host_file);
        let line: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
        line.join(" ")
    }

    #[test]
    fn options_of_other_launchers_are_translated() {
        for (given, made) in [
            ("-n 4 ./a -n 2", "-n 4 ./a -n 2"),
            ("-np 2 ./a : -np 3 ./b x", "-n 2 ./a : -n 3 ./b x"),
            ("-genv A 1 -n 1 ./a : -env B 2 ./b", "-n 1 -x A=1 ./a : -x B=2 -x A=1 ./b"),
            ("-host x,y -wdir /tmp -l ./a", "--host x,y --wdir /tmp --label ./a"),
            ("--timeout 5 --check -np 2 ./a", "--timeout 5 --check -n 2 ./a"),
            ("--wdir /tmp -x A=1 ./a", "--wdir /tmp -x A=1 ./a"),
            ("-f hosts -n 2 ./a", "--hostfile hosts -n 2 ./a"),
            ("--hostfile hosts --wrap 0 gdb ./a", "--hostfile hosts --wrap 0 gdb ./a"),
            ("-bind-to user:0,1 -n 2 ./a", "--bind 0,1 -n 2 ./a"),
            (
                "--allow-run-as-root --bind-to none --oversubscribe -np 2 ./a",
                "--bind none -n 2 ./a",
            ),
            ("-host x,y --map-by node -n 4 ./a", "--host x,y --map-by host -n 4 ./a"),
            ("-rr -hosts x,y -n 2 ./a", "--map-by host --host x,y -n 2 ./a"),
            ("--map-by slot ./a", "--map-by core ./a"),
            ("-ppn 2 -hosts x,me@::1,z:4 ./a", "--host x:2,me@[::1]:2,z:2 ./a"),
            ("-ppn 2 -n 4 ./a", "-n 4 ./a"),
            ("-perhost 2 -f hosts ./a", "--hostfile hosts -perhost 2 ./a"),
            ("-np", "-n"),
        ] {
            assert_eq!(translated(given), format!("longshore run {made}"), "{given}");
        }
        for asked in ["--version", "-version", "-V"] {
            assert_eq!(translated(asked), "longshore --version");
        }
        assert_eq!(translated("-n 1 ./a --version"), "longshore run -n 1 ./a --version");
    }

    #[test]
    fn hosts_of_a_variable_are_those_of_a_line_without_hosts() {
        for (given, made) in [
            ("-n 4 ./a", "--hostfile h -n 4 ./a"),
            ("./a", "--hostfile h ./a"),
            ("-n 1 ./a --host x : -n 2 ./b", "--hostfile h -n 1 ./a --host x : -n 2 ./b"),
            ("-host x,y -n 2 ./a", "--host x,y -n 2 ./a"),
            ("-f mine -n 2 ./a", "--hostfile mine -n 2 ./a"),
            ("--hostfile mine ./a", "--hostfile mine ./a"),
            ("--host=x,y ./a", "--host=x,y ./a"),
            ("--hostfile=mine ./a", "--hostfile=mine ./a"),
            ("-ppn 2 -n 4 ./a", "--hostfile h -n 4 -ppn 2 ./a"),
            ("-ppn 2 -hosts x,y ./a", "--host x:2,y:2 ./a"),
        ] {
            let line = translated_with(Some("h".into()), given);
            assert_eq!(line, format!("longshore run {made}"), "{given}");
        }
        assert_eq!(translated_with(Some("h".into()), "--version"), "longshore --version");
    }

    #[test]
    fn the_first_variable_that_names_a_file_counts() {
        let of = |set: &'static [(&str, &str)]| {
            host_file(move |name| {
                set.iter().find(|(other, _)| *other == name).map(|(_, file)| file.into())
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("HYDRA_HOST_FILE", "")]), None);
        assert_eq!(of(&[("OMPI_MCA_orte_default_hostfile", "o")]), Some("o".into()));
        assert_eq!(of(&[("I_MPI_HYDRA_HOST_FILE", "i")]), Some("i".into()));
        let both = &[("OMPI_MCA_orte_default_hostfile", "o"), ("HYDRA_HOST_FILE", "h")];
        assert_eq!(of(both), Some("h".into()));
    }
}

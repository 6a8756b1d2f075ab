//! The machine, software and time of a run, without which its figures can't be interpreted.

use std::fmt;
use std::fs::read_to_string;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The circumstances of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// When the run began, in UTC: `2026-11-21 19:35`.
    pub date: String,
    /// This library's version, and the commit that it was built from, if git knows it.
    pub version: String,
    /// The compiler that built it.
    pub compiler: String,
    /// The processor: its name, family and model.
    pub cpu: String,
    /// Cores of the machine.
    pub cores: usize,
    /// Whether the machine is virtual. Then the distance of the cores may change during a run.
    pub virtual_machine: bool,
    /// The frequency governor, if the system reports it.
    pub governor: Option<String>,
    /// The kernel.
    pub kernel: String,
    /// The C library, if `getconf` reports it.
    pub c_library: Option<String>,
    /// The load average of the last minute, before and after the run. The bench itself causes 2.
    pub load: [f64; 2],
}

impl Environment {
    /// Reads the circumstances of this machine at this time.
    ///
    /// ```
    /// use longshore_benches::environment::Environment;
    ///
    /// let environment = Environment::read();
    /// assert!(environment.cores > 0);
    /// println!("{environment}");
    /// ```
    pub fn read() -> Environment {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let commit = option_env!("LONGSHORE_COMMIT");
        let version = env!("CARGO_PKG_VERSION");
        Environment {
            date: date(SystemTime::now()),
            version: commit.map_or(version.to_owned(), |commit| format!("{version} ({commit})")),
            compiler: env!("LONGSHORE_COMPILER").to_owned(),
            cpu: processor(&cpuinfo),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            virtual_machine: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            governor: trimmed("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            kernel: trimmed("/proc/sys/kernel/osrelease").unwrap_or_default(),
            c_library: of_command("getconf", &["GNU_LIBC_VERSION"]),
            load: [load(); 2],
        }
    }

    /// Records the load at the end of a run.
    pub fn ended(&mut self) {
        self.load[1] = load();
    }
}

/// Writes several lines for people.
impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Environment { date, version, compiler, cpu, cores, kernel, load, .. } = self;
        let kind = if self.virtual_machine { "virtual cores" } else { "cores" };
        writeln!(f, "date       {date} UTC")?;
        writeln!(f, "Longshore  {version}, {compiler}")?;
        write!(f, "machine    {cpu}, {cores} {kind}")?;
        if let Some(governor) = &self.governor {
            write!(f, ", governor {governor}")?;
        }
        write!(f, "\nsystem     Linux {kernel}")?;
        if let Some(library) = &self.c_library {
            write!(f, ", {library}")?;
        }
        write!(f, "\nload       {:.1} before, {:.1} after", load[0], load[1])
    }
}

/// The value of a key's first line in /proc/cpuinfo.
fn field<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find_map(|(name, value)| (name.trim() == key).then(|| value.trim()))
}

/// Describes the processor. Virtual machines may give it any name, so its numbers are added.
fn processor(cpuinfo: &str) -> String {
    let name = field(cpuinfo, "model name").unwrap_or(std::env::consts::ARCH);
    match (field(cpuinfo, "cpu family"), field(cpuinfo, "model")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name.to_owned(),
    }
}

fn load() -> f64 {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

fn trimmed(file: &str) -> Option<String> {
    read_to_string(file).ok().map(|text| text.trim().to_owned())
}

/// The output of a command. `None` if it can't be started or fails.
fn of_command(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Date and time in UTC, to the minute.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    // Years begin in March here, so that leap days come last. 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (400 * era + year, month + 3),
        _ => (400 * era + year + 1, month - 9),
    };
    format!("{year}-{month:02}-{day:02} {:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00");
        assert_eq!(at(951_868_799), "2000-02-29 23:59");
        assert_eq!(at(951_868_800), "2000-03-01 00:00");
        assert_eq!(at(1_798_761_599), "2026-12-31 23:59");
    }

    #[test]
    fn a_processor_is_described_by_name_and_numbers() {
        let text = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n";
        assert_eq!(processor(text), "AMD EPYC (family 26, model 2)");
        assert_eq!(processor(""), std::env::consts::ARCH);
    }
}

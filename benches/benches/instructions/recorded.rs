//! The recorded counts, by compiler and by the kernels of the machine.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

/// A count that exceeds the recorded one by more than this share is a regression. Smaller changes
/// come from another C library, whose malloc and memcpy are counted, or from another order of
/// inlining (docs/tuning.md, "Counts of instructions").
const TOLERANCE: f64 = 0.03;

/// The tolerance if no counts are recorded for the compiler, and those of another compiler are
/// used.
const TOLERANCE_OF_OTHERS: f64 = 0.3;

pub const WHAT_TO_DO: &str = "\
Where that is meant, record the new counts and say in the commit why they grew:
    CARGO_INCREMENTAL=0 cargo bench -p longshore-benches --bench instructions -- --record";

const HEADER: &str = "\
# Instructions a call executes, by compiler and kernels, as `cargo bench -p longshore-benches
# --bench instructions -- --record` writes them.
";

/// The counts by compiler, then by path.
pub struct Recorded {
    counts: BTreeMap<String, BTreeMap<String, f64>>,
    /// The compiler of this program and the kernels of this machine.
    here: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not more than recorded, within the tolerance.
    Good,
    /// More than recorded.
    More,
}

impl Recorded {
    /// Reads the file beside this one.
    pub fn read() -> Result<Recorded, Box<dyn Error>> {
        let text = std::fs::read_to_string(file())?;
        let mut counts = BTreeMap::<_, BTreeMap<_, _>>::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let [compiler, path, count] = line.split('\t').collect::<Vec<_>>()[..] else {
                return Err(format!("{}: not three columns: {line}", file().display()).into());
            };
            counts.entry(compiler.to_owned()).or_default().insert(path.to_owned(), count.parse()?);
        }
        Ok(Recorded { counts, here: here() })
    }

    /// Records these counts for this compiler.
    pub fn write(mut self, counts: &[(&str, f64)]) -> Result<(), Box<dyn Error>> {
        let counts = counts.iter().map(|&(path, count)| (path.to_owned(), count));
        self.counts.insert(self.here.clone(), counts.collect());
        let mut text = HEADER.to_owned();
        for (compiler, counts) in &self.counts {
            for (path, count) in counts {
                text += &format!("{compiler}\t{path}\t{count:.0}\n");
            }
        }
        println!("recorded for {} in {}", self.here, file().display());
        Ok(std::fs::write(file(), text)?)
    }

    /// A line that explains the comparison.
    pub fn explain(&self) -> String {
        let (other, tolerance) = self.standard();
        let percent = 100.0 * tolerance;
        match other {
            Some(other) if other == self.here => {
                format!("instructions a call; {other}: at most {percent:.0} % more than recorded")
            }
            Some(other) => format!(
                "instructions a call; nothing is recorded for {}: at most {percent:.0} % more than {other} has. To record:\n    \
                 CARGO_INCREMENTAL=0 cargo bench -p longshore-benches --bench instructions -- --record",
                self.here
            ),
            None => {
                format!("instructions a call; nothing is recorded, for {} or others", self.here)
            }
        }
    }

    /// The compiler to compare with, and the tolerance.
    fn standard(&self) -> (Option<&str>, f64) {
        match self.counts.contains_key(&self.here) {
            true => (Some(&self.here), TOLERANCE),
            false => (self.counts.keys().next_back().map(String::as_str), TOLERANCE_OF_OTHERS),
        }
    }

    /// A line of the table, and whether the count is good. A path that isn't recorded is not.
    pub fn judge(&self, path: &str, count: f64) -> (String, Verdict) {
        let (other, tolerance) = self.standard();
        let recorded = other.and_then(|other| self.counts[other].get(path));
        let by_others = || self.counts.values().rev().find_map(|counts| counts.get(path));
        let recorded = recorded.map(|count| (count, tolerance));
        let recorded = recorded.or_else(|| Some((by_others()?, TOLERANCE_OF_OTHERS)));
        let Some((recorded, tolerance)) = recorded else {
            return (format!("{path:40} {count:>9.0}   not recorded"), Verdict::More);
        };
        let change = count / recorded - 1.0;
        let (word, verdict) = match () {
            () if change > tolerance => ("   MORE", Verdict::More),
            () if change < -tolerance => ("   fewer: worth recording", Verdict::Good),
            () => ("", Verdict::Good),
        };
        let percent = 100.0 * change;
        (format!("{path:40} {count:>9.0} {recorded:>9.0} {percent:>+7.1} %{word}"), verdict)
    }
}

/// The version of the compiler, and the widest kernels that valgrind runs on this machine.
fn here() -> String {
    let compiler = env!("LONGSHORE_COMPILER");
    let version = compiler.split(' ').nth(1).unwrap_or(compiler);
    #[cfg(target_arch = "x86_64")]
    let kernels = if is_x86_feature_detected!("avx2") { "avx2" } else { "baseline" };
    #[cfg(not(target_arch = "x86_64"))]
    let kernels = std::env::consts::ARCH;
    format!("rustc {version}, {kernels}")
}

fn file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "benches", "instructions", "counts.tsv"].iter().collect()
}

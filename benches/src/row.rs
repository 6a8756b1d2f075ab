//! Results: the time that a contender took for a case, or the reason why it has none.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::case::Case;

/// The result of one contender for one case in one turn of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// The contender: `Longshore`, an MPI library's name, `loop` or `limit`.
    pub contender: String,
    /// The turn. Rows of one turn are close in time.
    pub turn: u32,
    /// The times.
    pub sample: Sample,
}

/// The times of a case's rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Microseconds of a call in the fastest round, without the fastest twentieth of the rounds.
    pub low: f64,
    /// Microseconds of a call in the median round.
    pub median: f64,
    /// Microseconds of a call in the slowest round, without the slowest twentieth of the rounds.
    pub high: f64,
    /// Nanoseconds that a cache line took from core to core, before and after the rounds. 0 if the
    /// case uses one core.
    pub line: [f64; 2],
    /// Whether the data was checked and is right. Wrong data gives no sample.
    pub validated: bool,
}

/// The distance of the two cores, by the time of a cache line between them (docs/tuning.md, "Near
/// and far cores").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// The case uses one core.
    Alone,
    /// A cache line takes less than 110 ns.
    Near,
    /// A cache line takes more than 110 ns.
    Far,
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Distance::Alone => "-",
            Distance::Near => "near",
            Distance::Far => "far",
        })
    }
}

impl Sample {
    /// The sample of some rounds, each given in microseconds of a call. `None` without rounds.
    pub fn of(mut rounds: Vec<f64>, line: [f64; 2], validated: bool) -> Option<Sample> {
        rounds.sort_unstable_by(f64::total_cmp);
        let last = rounds.len().checked_sub(1)?;
        let most = rounds.len() / 20;
        Some(Sample {
            low: rounds[most],
            median: rounds[rounds.len() / 2],
            high: rounds[last - most],
            line,
            validated,
        })
    }

    /// The distance of the cores. `None` if it changed during the rounds.
    pub fn distance(&self) -> Option<Distance> {
        // Nanoseconds between near and far (docs/tuning.md, "Near and far cores").
        const BETWEEN: f64 = 110.0;
        match self.line {
            [0.0, 0.0] => Some(Distance::Alone),
            [before, after] => match [before > BETWEEN, after > BETWEEN] {
                [false, false] => Some(Distance::Near),
                [true, true] => Some(Distance::Far),
                _ => None,
            },
        }
    }
}

/// The reason why a contender has no sample of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "why", rename_all = "snake_case")]
pub enum Refusal {
    /// The contender can't do the case.
    Unsupported(String),
    /// The contender moved wrong data.
    Invalid(String),
    /// The contender hung or died before it finished the case.
    Lost(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unsupported(why) => write!(f, "unsupported: {why}"),
            Refusal::Invalid(why) => write!(f, "wrong data: {why}"),
            Refusal::Lost(why) => write!(f, "not measured: {why}"),
        }
    }
}

/// A sample, or the reason why there is none.
pub type Outcome = Result<Sample, Refusal>;

/// A case of which a contender has no sample in a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// The case.
    pub case: Case,
    /// The contender.
    pub contender: String,
    /// The turn.
    pub turn: u32,
    /// The reason.
    pub why: Refusal,
}

/// The answer of a contender's program to one case: a line of fields with tabs in between.
///
/// `INDEX low median high line-before line-after yes|no`, or `INDEX unsupported|invalid|lost WHY`.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The index of the case in the plan, from 0.
    pub index: usize,
    /// The sample, or the reason why there is none.
    pub outcome: Outcome,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.index;
        match &self.outcome {
            Ok(Sample { low, median, high, line: [before, after], validated }) => {
                let validated = if *validated { "yes" } else { "no" };
                write!(f, "{index}\t{low}\t{median}\t{high}\t{before}\t{after}\t{validated}")
            }
            Err(refusal) => {
                let (word, why) = match refusal {
                    Refusal::Unsupported(why) => ("unsupported", why),
                    Refusal::Invalid(why) => ("invalid", why),
                    Refusal::Lost(why) => ("lost", why),
                };
                write!(f, "{index}\t{word}\t{}", why.replace(['\t', '\n'], " "))
            }
        }
    }
}

/// A line that isn't an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an answer to a case")]
pub struct AnswerError(String);

impl FromStr for Answer {
    type Err = AnswerError;

    fn from_str(line: &str) -> Result<Answer, AnswerError> {
        read(line).ok_or_else(|| AnswerError(line.to_owned()))
    }
}

fn read(line: &str) -> Option<Answer> {
    let fields: Vec<&str> = line.split('\t').collect();
    let index = fields[0].parse().ok()?;
    let outcome = match fields[1..] {
        ["unsupported", why] => Err(Refusal::Unsupported(why.to_owned())),
        ["invalid", why] => Err(Refusal::Invalid(why.to_owned())),
        ["lost", why] => Err(Refusal::Lost(why.to_owned())),
        [low, median, high, before, after, validated] => {
            let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
            Ok(Sample {
                low: number(low)?,
                median: number(median)?,
                high: number(high)?,
                line: [number(before)?, number(after)?],
                validated: match validated {
                    "yes" => true,
                    "no" => false,
                    _ => return None,
                },
            })
        }
        _ => return None,
    };
    Some(Answer { index, outcome })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_back() -> Result<(), AnswerError> {
        let sample =
            Sample { low: 0.1, median: 1.0 / 3.0, high: 2e5, line: [44.5, 251.0], validated: true };
        let outcomes = [
            Ok(sample),
            Ok(Sample { validated: false, ..sample }),
            Err(Refusal::Unsupported("no such type".to_owned())),
            Err(Refusal::Invalid("byte 3".to_owned())),
            Err(Refusal::Lost("killed".to_owned())),
        ];
        for (index, outcome) in outcomes.into_iter().enumerate() {
            let answer = Answer { index, outcome };
            assert_eq!(answer.to_string().parse::<Answer>()?, answer);
        }
        Ok(())
    }

    #[test]
    fn invalid_lines_are_refused() {
        let lines =
            ["", "1", "x\tunsupported\tno", "1\t1\t1\t1\t1\t1\tmaybe", "1\t1\tNaN\t1\t1\t1\tyes"];
        for line in lines {
            assert!(line.parse::<Answer>().is_err(), "{line}");
        }
    }

    #[test]
    fn low_and_high_leave_out_a_twentieth_of_the_rounds() {
        let of = |count: u32| {
            Sample::of((0..count).rev().map(f64::from).collect(), [0.0; 2], false)
                .map(|sample| [sample.low, sample.median, sample.high])
        };
        assert_eq!(of(41), Some([2.0, 20.0, 38.0]));
        assert_eq!(of(1), Some([0.0; 3]));
        assert_eq!(of(0), None);
    }

    #[test]
    fn a_distance_needs_equal_lines_before_and_after() {
        let of =
            |line| Sample { low: 1.0, median: 1.0, high: 1.0, line, validated: false }.distance();
        assert_eq!(of([0.0, 0.0]), Some(Distance::Alone));
        assert_eq!(of([40.0, 60.0]), Some(Distance::Near));
        assert_eq!(of([240.0, 300.0]), Some(Distance::Far));
        assert_eq!(of([40.0, 300.0]), None);
    }
}

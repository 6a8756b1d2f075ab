//! What was measured: how long a contender took for a case.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::case::Case;

/// What one contender did with one case in one turn of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was measured.
    pub case: Case,
    /// Who did it: `Longshore`, an MPI library's name, or `limit`.
    pub contender: String,
    /// In which turn; rows of one turn lie close together in time.
    pub turn: u32,
    /// How long it took.
    pub sample: Sample,
}

/// The times of a case's rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Microseconds of a call in the fastest round but the fastest in twenty.
    pub low: f64,
    /// Microseconds of a call in the median round.
    pub median: f64,
    /// Microseconds of a call in the slowest round but the slowest in twenty.
    pub high: f64,
    /// Nanoseconds that a cache line took from core to core before and after; 0 where no other core took part.
    pub line: [f64; 2],
    /// Whether the data was checked, and right. Data that is wrong makes no sample.
    pub validated: bool,
}

/// How far apart the cores were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// No other core took part.
    Alone,
    /// A line takes some 25 ns.
    Near,
    /// It takes some 200.
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
    /// The sample of so many rounds, in microseconds a call each. Of no round there is none.
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

    /// How far apart the cores were; none if that changed meanwhile.
    pub fn distance(&self) -> Option<Distance> {
        // Near was seen up to 80 by any contender's probe, and far down to 155.
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

/// Why a contender has no sample of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "why", rename_all = "snake_case")]
pub enum Refusal {
    /// It can't do that.
    Unsupported(String),
    /// The data that it moved is wrong.
    Invalid(String),
    /// It hung or died before it came to the case.
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

/// A sample, or why there is none.
pub type Outcome = Result<Sample, Refusal>;

/// A case of which a contender has no sample in a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// What should have been measured.
    pub case: Case,
    /// Who was to do it.
    pub contender: String,
    /// In which turn.
    pub turn: u32,
    /// Why it didn't.
    pub why: Refusal,
}

/// What a contender's program prints of one case: a line of fields with tabs in between.
///
/// `INDEX low median high line-before line-after yes|no`, or `INDEX unsupported|invalid|lost WHY`.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The case's place in the plan, from 0.
    pub index: usize,
    /// The sample, or why there is none.
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
#[error("`{0}` is no answer to a case")]
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
    fn other_lines_are_no_answers() {
        let lines =
            ["", "1", "x\tunsupported\tno", "1\t1\t1\t1\t1\t1\tmaybe", "1\t1\tNaN\t1\t1\t1\tyes"];
        for line in lines {
            assert!(line.parse::<Answer>().is_err(), "{line}");
        }
    }

    #[test]
    fn a_twentieth_of_the_rounds_is_left_out_on_either_side() {
        let of = |count: u32| {
            Sample::of((0..count).rev().map(f64::from).collect(), [0.0; 2], false)
                .map(|sample| [sample.low, sample.median, sample.high])
        };
        assert_eq!(of(41), Some([2.0, 20.0, 38.0]));
        assert_eq!(of(1), Some([0.0; 3]));
        assert_eq!(of(0), None);
    }

    #[test]
    fn distances_are_those_before_and_after() {
        let of =
            |line| Sample { low: 1.0, median: 1.0, high: 1.0, line, validated: false }.distance();
        assert_eq!(of([0.0, 0.0]), Some(Distance::Alone));
        assert_eq!(of([40.0, 60.0]), Some(Distance::Near));
        assert_eq!(of([240.0, 300.0]), Some(Distance::Far));
        assert_eq!(of([40.0, 300.0]), None);
    }
}

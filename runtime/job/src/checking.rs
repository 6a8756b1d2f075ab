//! The value of `--check`: whether ranks report misuse, of which kinds, and whether a report fails
//! the job.

use std::fmt;
use std::str::FromStr;

use super::UnknownWord;

/// Whether ranks check for uses of MPI that it leaves undefined, and report them on standard error.
///
/// All ranks must have the same value. With checking, all operations travel as messages. The check
/// sees the loads and stores of a rank to its own window memory through accessors, but not those
/// through pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checking {
    /// No check.
    #[default]
    Off,
    /// Report undefined uses of these kinds and continue.
    Report(Topics),
    /// Report undefined uses of these kinds and continue, but `finalize` fails at all ranks after
    /// any report.
    Fail(Topics),
}

impl Checking {
    /// What may be reported; nothing if checking is off.
    ///
    /// ```
    /// use longshore_job::{Checking, Topic};
    ///
    /// let checking: Checking = "fail,messages".parse()?;
    /// assert!(checking.topics().include(Topic::Messages));
    /// assert!(!checking.topics().include(Topic::Races));
    /// # Ok::<(), longshore_job::UnknownWord>(())
    /// ```
    pub fn topics(self) -> Topics {
        match self {
            Checking::Off => Topics(0),
            Checking::Report(topics) | Checking::Fail(topics) => topics,
        }
    }
}

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// One-sided accesses to the same bytes that nothing orders (rules 22 and 23).
    Races,
    /// Buffers that two operations of one rank use at a time.
    Buffers,
    /// Requests that were never completed or freed, or were started twice.
    Requests,
    /// Messages whose types or lengths differ from those of their receives, or that no receive has
    /// matched.
    Messages,
    /// Collective calls that differ between ranks (rule 8).
    Collectives,
    /// Windows: their synchronisation, asserts, promises and ends (rules 7, 9, 14 and 30).
    Windows,
    /// What MPI allows and a program hardly means.
    Notes,
}

const WORDS: [(&str, Topic); 7] = [
    ("races", Topic::Races),
    ("buffers", Topic::Buffers),
    ("requests", Topic::Requests),
    ("messages", Topic::Messages),
    ("collectives", Topic::Collectives),
    ("windows", Topic::Windows),
    ("notes", Topic::Notes),
];

/// The topics on which ranks report. By default all but [notes](Topic::Notes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topics(u8);

impl Default for Topics {
    fn default() -> Topics {
        Topics((1 << Topic::Notes as u8) - 1)
    }
}

impl Topics {
    /// These topics and one more.
    ///
    /// ```
    /// use longshore_job::{Topic, Topics};
    ///
    /// assert!(!Topics::default().include(Topic::Notes));
    /// assert!(Topics::default().with(Topic::Notes).include(Topic::Notes));
    /// ```
    #[must_use]
    pub fn with(self, topic: Topic) -> Topics {
        Topics(self.0 | 1 << topic as u8)
    }

    /// Whether a topic is one of these.
    ///
    /// ```
    /// use longshore_job::{Topic, Topics};
    ///
    /// assert!(Topics::default().include(Topic::Races));
    /// ```
    #[must_use]
    pub fn include(self, topic: Topic) -> bool {
        self.0 & 1 << topic as u8 != 0
    }
}

/// The words of [`Checking`], for errors.
pub(crate) const EXPECTED: &str = "off, report or fail, or kinds of reports: any of races, \
                                   buffers, requests, messages, collectives, windows and notes, \
                                   with commas between them and after report or fail";

/// `off`, `report` or `fail`, and after the latter two the kinds of reports, with commas between
/// them. `report` may be left out where kinds follow, and 0 and 1 are `off` and `report`.
impl FromStr for Checking {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Checking, UnknownWord> {
        let (first, rest) = text.split_once(',').unwrap_or((text, ""));
        let (kind, rest): (fn(Topics) -> Checking, _) = match first {
            "off" | "0" if first == text => return Ok(Checking::Off),
            "report" | "1" => (Checking::Report, rest),
            "fail" => (Checking::Fail, rest),
            _ => (Checking::Report, text),
        };
        // A comma has something after it.
        if rest.is_empty() {
            return if first == text && !text.is_empty() {
                Ok(kind(Topics::default()))
            } else {
                Err(UnknownWord(EXPECTED))
            };
        }
        let mut topics = Topics(0);
        for word in rest.split(',') {
            let known = WORDS.iter().find(|(known, _)| *known == word);
            topics = topics.with(known.ok_or(UnknownWord(EXPECTED))?.1);
        }
        Ok(kind(topics))
    }
}

impl fmt::Display for Checking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, topics) = match self {
            Checking::Off => return f.write_str("off"),
            Checking::Report(topics) => ("report", topics),
            Checking::Fail(topics) => ("fail", topics),
        };
        f.write_str(word)?;
        if *topics == Topics::default() {
            return Ok(());
        }
        WORDS.iter().filter(|(_, topic)| topics.include(*topic)).try_for_each(|(word, _)| {
            f.write_str(",")?;
            f.write_str(word)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_what_is_reported() {
        let parse = |text: &str| text.parse::<Checking>();
        let all = Topics::default();
        assert_eq!(parse("off"), Ok(Checking::Off));
        assert_eq!(parse("report"), Ok(Checking::Report(all)));
        assert_eq!(parse("1"), Ok(Checking::Report(all)));
        assert_eq!(parse("fail"), Ok(Checking::Fail(all)));
        let two = Topics(0).with(Topic::Races).with(Topic::Notes);
        for text in ["races,notes", "notes,races", "report,races,notes,races"] {
            assert_eq!(parse(text), Ok(Checking::Report(two)), "{text}");
        }
        assert_eq!(parse("fail,notes"), Ok(Checking::Fail(Topics(0).with(Topic::Notes))));
        for text in ["", ",", "race", "off,races", "fail,report", "races,", "fail,", "races,fail"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains("messages, collectives, windows and notes"), "{text}: {error}");
        }
    }

    #[test]
    fn the_text_of_a_value_is_that_value() {
        for text in ["off", "report", "fail", "fail,notes", "report,races,messages"] {
            assert_eq!(text.parse::<Checking>().unwrap().to_string(), text);
        }
    }
}

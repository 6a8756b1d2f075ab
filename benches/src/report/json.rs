//! A report as JSON, which can be parsed back, and its rows as CSV for spreadsheets.
//!
//! A case is an object with the words of its line. Times are in microseconds, except for those of a
//! cache line, which are in nanoseconds.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Report;
use crate::case::{By, Case};
use crate::environment::Environment;
use crate::row::{Gap, Refusal, Row, Sample};

/// The version of the format. It is raised when a field changes its meaning.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    environment: Environment,
    rows: Vec<OfRow>,
    gaps: Vec<OfGap>,
}

#[derive(Serialize, Deserialize)]
struct OfRow {
    case: Map<String, Value>,
    contender: String,
    turn: u32,
    low: f64,
    median: f64,
    high: f64,
    /// Before and after the rounds.
    cache_line: [f64; 2],
    validated: bool,
}

#[derive(Serialize, Deserialize)]
struct OfGap {
    case: Map<String, Value>,
    contender: String,
    turn: u32,
    #[serde(flatten)]
    why: Refusal,
}

/// The error of a text that isn't a report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a report of the bench: {0}")]
pub struct Unreadable(String);

impl Report {
    /// The whole report as JSON.
    pub fn json(&self) -> String {
        let row = |Row { case, contender, turn, sample }: &Row| {
            let Sample { low, median, high, line, validated } = *sample;
            let (case, contender) = (words(case), contender.clone());
            OfRow { case, contender, turn: *turn, low, median, high, cache_line: line, validated }
        };
        let gap = |Gap { case, contender, turn, why }: &Gap| {
            let (case, contender, why) = (words(case), contender.clone(), why.clone());
            OfGap { case, contender, turn: *turn, why }
        };
        let document = Document {
            format: FORMAT,
            environment: self.environment.clone(),
            rows: self.rows.iter().map(row).collect(),
            gaps: self.gaps.iter().map(gap).collect(),
        };
        // NaN and infinities become null.
        serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
    }

    /// Parses the output of [`json`](Report::json).
    ///
    /// # Errors
    /// A text that isn't a report, or has another version of the format.
    pub fn from_json(text: &str) -> Result<Report, Unreadable> {
        let unreadable = |error: &dyn fmt::Display| Unreadable(error.to_string());
        let document: Document = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        if document.format != FORMAT {
            return Err(Unreadable(format!("format {}, expected {FORMAT}", document.format)));
        }
        let case = |words: &Map<String, Value>| -> Result<Case, Unreadable> {
            let words = words.iter().map(|(key, value)| match value {
                Value::String(word) => format!("{key}={word}"),
                value => format!("{key}={value}"),
            });
            words.collect::<Vec<_>>().join(" ").parse().map_err(|error| unreadable(&error))
        };
        let row = |row: OfRow| {
            let OfRow { contender, turn, low, median, high, cache_line: line, validated, .. } = row;
            let sample = Sample { low, median, high, line, validated };
            Ok(Row { case: case(&row.case)?, contender, turn, sample })
        };
        let gap = |gap: OfGap| {
            let OfGap { case: words, contender, turn, why } = gap;
            Ok(Gap { case: case(&words)?, contender, turn, why })
        };
        Ok(Report {
            environment: document.environment,
            rows: document.rows.into_iter().map(row).collect::<Result<_, _>>()?,
            gaps: document.gaps.into_iter().map(gap).collect::<Result<_, _>>()?,
        })
    }

    /// The rows as CSV, each with the words of its case, after a line of column names.
    pub fn csv(&self) -> String {
        // The keys of a case with all words.
        let (name, by) = (Some("-".to_owned()), By::Pointer);
        let full = Case { name, by, hosts: 2, offset: 8, threads: 2, ..Case::default() };
        let line = full.to_string();
        let keys: Vec<&str> = pairs(&line).map(|(key, _)| key).collect();
        let measured = [
            "contender",
            "turn",
            "low",
            "median",
            "high",
            "line_before",
            "line_after",
            "validated",
        ];
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = |fields: Vec<&str>| writer.write_record(fields);
        let written = write(keys.iter().copied().chain(measured).collect()).and_then(|()| {
            self.rows.iter().try_for_each(|Row { case, contender, turn, sample }| {
                let (line, turn) = (case.to_string(), turn.to_string());
                let Sample { low, median, high, line: [before, after], validated } = sample;
                let numbers = [low, median, high, before, after].map(f64::to_string);
                let word = |key| pairs(&line).find_map(|(of, word)| (of == key).then_some(word));
                let default = |key| match key {
                    "by" => "scope",
                    "hosts" | "threads" => "1",
                    "offset" => "0",
                    _ => "",
                };
                let mut fields: Vec<&str> =
                    keys.iter().map(|&key| word(key).unwrap_or_else(|| default(key))).collect();
                fields.extend([contender.as_str(), &turn]);
                fields.extend(numbers.iter().map(String::as_str));
                fields.push(if *validated { "yes" } else { "no" });
                write(fields)
            })
        });
        written.expect("records of one length can be written to memory");
        let bytes = writer.into_inner().expect("memory can be flushed");
        String::from_utf8(bytes).expect("CSV of strings is UTF-8")
    }
}

/// The keys and values of a case's line.
fn pairs(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split(' ').filter_map(|word| word.split_once('='))
}

fn words(case: &Case) -> Map<String, Value> {
    let line = case.to_string();
    let value = |word: &str| match word.parse::<u64>() {
        Ok(number) if number.to_string() == word => Value::from(number),
        _ => Value::from(word),
    };
    pairs(&line).map(|(key, word)| (key.to_owned(), value(word))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    #[test]
    fn a_report_is_parsed_back_unchanged() -> Result<(), Unreadable> {
        let mut report = report();
        // A number that imprecise parsers read back with another last bit.
        report.rows[0].sample.low = 51.248_178_375_505_404;
        assert_eq!(Report::from_json(&report.json())?, report);
        Ok(())
    }

    #[test]
    fn a_gap_has_a_kind_and_a_reason() {
        let text = report().json();
        let words = "\"turn\": 0,\n      \"kind\": \"lost\",\n      \"why\": \"40 s without an answer\"\n    }";
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn texts_that_are_not_reports_are_refused() {
        for (text, part) in [
            ("", "EOF"),
            ("{}", "missing field"),
            (&report().json().replace("\"format\": 1", "\"format\": 9"), "format 9"),
            (&report().json().replace("put_latency", "shove"), "shove"),
        ] {
            let error = Report::from_json(text).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn csv_has_a_line_for_each_row() {
        let mut report = report();
        report.rows[1].case.hosts = 2;
        let text = report.csv();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), report.rows.len() + 1);
        assert!(lines[0].starts_with("bench,window,sync,bytes,type,name,count,"), "{}", lines[0]);
        assert!(
            lines[0].ends_with(",contender,turn,low,median,high,line_before,line_after,validated")
        );
        assert!(lines[1].starts_with(
            "put_latency,allocate,flush,8,d,,1,portable,scope,best,\"native,native\",1,0,1,2,"
        ));
        assert!(lines[0].contains(",arch,hosts,offset,threads,ranks,"), "{}", lines[0]);
        assert!(lines[2].contains(",\"native,native\",2,0,1,2,"), "{}", lines[2]);
        assert!(lines[1].contains(",Longshore,0,0.01,0.02,0.04,45,46,yes"), "{}", lines[1]);
    }
}

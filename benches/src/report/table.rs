//! A report as tables: text for a terminal, and Markdown for a page.

use std::fmt::Write;

use super::{LIMIT, LOOP, Line, OURS, Report, Section, Unit, contenders, label, middle};
use crate::row::Distance;

/// A table with a heading. The first row names the columns.
struct Table {
    heading: String,
    rows: Vec<Vec<String>>,
}

const LEGEND: &str = "\
A time is the lowest of all turns. The time of a turn is its fastest round, without the fastest
twentieth. A rate is computed from this time. The ratio after each other contender is Longshore's
time divided by that contender's, as the median of the turns (least to most): below 1 Longshore is
faster. `behind` marks ratios above 1 in three turns of four. `near` and `far` are the distance of
the cores, which some machines change during a run.";

impl Report {
    /// The whole report as text for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n{LEGEND}\n", self.environment);
        for table in self.tables() {
            let _ = write!(text, "\n{}\n{}", table.heading, table.aligned("  ", "  "));
        }
        text + &self.rest("\n")
    }

    /// The whole report as Markdown.
    pub fn markdown(&self) -> String {
        let environment = self.environment.to_string();
        let mut text =
            format!("# What longshore bench measured\n\n```\n{environment}\n```\n\n{LEGEND}\n");
        for mut table in self.tables() {
            let rule = table.rows[0].iter().enumerate();
            let rule = rule.map(|(at, _)| if at == 0 { "---" } else { "--:" }.to_owned()).collect();
            table.rows.insert(1, rule);
            let _ = write!(text, "\n**{}**\n\n{}", table.heading, table.aligned("| ", " |"));
        }
        // Reasons are quoted: they are the words of libraries, and as long as they like.
        match self.rest("\n").as_str() {
            "\n" => text,
            rest => format!("{text}\n```{rest}```\n"),
        }
    }

    fn tables(&self) -> Vec<Table> {
        let sections = self.sections();
        let mut tables: Vec<Table> = sections.iter().map(Section::table).collect();
        tables.extend(summary(&sections));
        tables
    }

    /// The cases that weren't measured, by reason, and the number of rows left out.
    fn rest(&self, bullet: &str) -> String {
        let mut text = String::new();
        for (reason, cases) in self.reasons() {
            // Some reasons contain a whole type.
            let cut =
                reason.char_indices().nth(240).map(|(at, _)| format!("{} ...", &reason[..at]));
            let _ = write!(text, "{bullet}{} ({cases} times)", cut.unwrap_or(reason));
        }
        if self.moved() > 0 {
            let moved = self.moved();
            let _ = write!(
                text,
                "{bullet}{moved} rows are left out, because the distance of the cores changed"
            );
        }
        text + "\n"
    }
}

impl Section<'_> {
    fn table(&self) -> Table {
        let (names, unit) = (contenders(&self.lines), Unit::of(self.lines[0].case.bench));
        let alone = self.lines.iter().all(|line| line.distance == Distance::Alone);
        let mut columns = vec![unit.word().to_owned()];
        if !alone {
            columns.push("cores".to_owned());
        }
        for name in &names {
            columns.push((*name).to_owned());
            if *name != OURS && names[0] == OURS {
                columns.push("ratio".to_owned());
            }
        }
        let row = |line: &Line<'_>| {
            let mut cells = vec![label(line.case)];
            if !alone {
                cells.push(line.distance.to_string());
            }
            for name in &names {
                let figures = line.of(name);
                let shown = figures.map(|figures| number(unit.convert(line.case, figures.low())));
                cells.push(shown.unwrap_or_else(|| "-".to_owned()));
                if *name != OURS && names[0] == OURS {
                    cells.push(ratio(line, name));
                }
            }
            cells
        };
        let rows = std::iter::once(columns).chain(self.lines.iter().map(row)).collect();
        Table { heading: self.heading.clone(), rows }
    }
}

/// The cell of a ratio: its median, its spread, and a mark if this library is behind.
fn ratio(line: &Line<'_>, other: &str) -> String {
    let Some(ratio) = line.ratio(other) else { return "-".to_owned() };
    let behind = if ratio.behind && ![LIMIT, LOOP].contains(&other) { " behind" } else { "" };
    let round = |ratio: f64| match ratio {
        ..10.0 => format!("{ratio:.2}"),
        _ => format!("{ratio:.0}"),
    };
    let (least, median, most) = (round(ratio.least), round(ratio.median), round(ratio.most));
    match least == most {
        true => format!("{median}{behind}"),
        false => format!("{median} ({least} to {most}){behind}"),
    }
}

/// A table with a row for each section and other contender: the number of lines, the median and the
/// worst ratio, and the number of lines in which this library is behind.
fn summary(sections: &[Section<'_>]) -> Option<Table> {
    let columns = ["", "beside", "lines", "median ratio", "worst", "behind"];
    let mut rows = vec![columns.map(str::to_owned).to_vec()];
    for section in sections {
        let others = contenders(&section.lines).into_iter();
        for other in others.filter(|name| *name != OURS) {
            let ratios = section.lines.iter().filter_map(|line| line.ratio(other));
            let mut ratios: Vec<_> = ratios.collect();
            ratios.sort_unstable_by(|a, b| a.median.total_cmp(&b.median));
            let Some(worst) = ratios.last() else { continue };
            let medians: Vec<f64> = ratios.iter().map(|ratio| ratio.median).collect();
            let behind = match other {
                LOOP | LIMIT => "-".to_owned(),
                _ => ratios.iter().filter(|ratio| ratio.behind).count().to_string(),
            };
            let [middle, worst] =
                [middle(medians), worst.median].map(|ratio| format!("{ratio:.2}"));
            let lines = ratios.len().to_string();
            rows.push(vec![
                section.heading.clone(),
                other.to_owned(),
                lines,
                middle,
                worst,
                behind,
            ]);
        }
    }
    (rows.len() > 1).then(|| Table { heading: "In short".to_owned(), rows })
}

impl Table {
    /// A line for each row, with `before` in front of each cell and `after` at the end. All columns
    /// but the first are right-aligned.
    fn aligned(&self, before: &str, after: &str) -> String {
        let letters = |cell: &String| cell.chars().count();
        let width = |at: usize| self.rows.iter().map(|row| letters(&row[at])).max();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let width = width(at).unwrap_or(0);
                let gap = if at > 0 && before.starts_with('|') { " " } else { "" };
                let _ = match at {
                    0 => write!(line, "{gap}{before}{cell:<width$}"),
                    _ => write!(line, "{gap}{before}{cell:>width$}"),
                };
            }
            let _ = writeln!(text, "{}", (line + after).trim_end());
        }
        text
    }
}

/// A number with four significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        10.0.. => format!("{value:.2}"),
        1.0.. => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;

    #[test]
    fn tables_are_aligned_in_columns() {
        let text = report().text();
        let expected = "
put_latency, allocate, flush
  us      cores  Longshore   MPICH                ratio  Open MPI        ratio   limit  ratio
  8 B      near     0.0100  0.0100  0.75 (0.50 to 1.00)    0.0050  2.00 behind  0.0040   2.50
  8 B       far     0.0400       -                    -         -            -  0.0040     10
";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("\nMPICH: unsupported: no such type (2 times)\n"), "{text}");
        let expected = "
**pack**

| GB/s        | Longshore |
| ---         |       --: |
| column 32 B |     3.200 |
";
        let text = report().markdown();
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("| put_latency, allocate, flush | Open MPI |     5 |         2.00 |  2.00 |      5 |"), "{text}");
    }
}

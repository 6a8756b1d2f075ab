//! Renders a sheet as text: coloured cells on a terminal, plain letters elsewhere.

use std::fmt::Write as _;
use std::io::IsTerminal;

use anstyle::{Ansi256Color, AnsiColor, Style};
use shipable::Leaf;

use super::picture::{Cell, Contents, FoldReason, Line, Picture, Row};
use super::sheet::{Group, Layouts, Sheet, label, name};
use super::strided::Address;

/// The properties of the text output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The number of letters in a line.
    pub width: usize,
    /// Whether the output shows colours.
    pub colour: bool,
}

const TITLE: Style = AnsiColor::Cyan.on_default().bold();
const QUIET: Style = AnsiColor::BrightBlack.on_default();
const WARN: Style = AnsiColor::Red.on_default().bold();

/// Light backgrounds for black letters, from the standard palette of 256 colours.
const PALETTE: [u8; 10] = [117, 156, 222, 183, 217, 159, 180, 111, 149, 252];

/// The least number of blanks to the left of a row.
const MARGIN: usize = 2;
/// The most letters for a unit.
const WIDEST: usize = 6;

impl Screen {
    /// The properties of standard output.
    pub fn standard() -> Screen {
        let out = std::io::stdout();
        let width = match out.is_terminal() {
            true => terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0)),
            false => 80,
        };
        Screen { width: width.clamp(40, 400), colour: crate::has_colours(&out) }
    }

    /// A text in a style; unchanged if there are no colours.
    pub fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// A text in the style of titles.
    pub fn title(&self, text: &str) -> String {
        self.paint(TITLE, text)
    }

    /// A text in the style of warnings.
    pub fn warning(&self, text: &str) -> String {
        self.paint(WARN, text)
    }
}

/// Draws one picture of at most `lines` lines for each distinct layout.
pub fn draw(layouts: &Layouts, count: u64, lines: usize, screen: Screen) -> String {
    let address = |at: Address| at.to_string().len();
    let spans = layouts.found.iter().flat_map(|layout| {
        let (span, reach) = (layout.memory.span(), layout.memory.reach());
        [span.start, span.end, reach.start, reach.end]
    });
    let gutter = MARGIN + spans.map(address).max().unwrap_or(1) + 2;
    let room = screen.width.saturating_sub(gutter).max(16);
    let sheet = Sheet::new(layouts, lines, |letters| (room / letters) as i64);
    let widest = match sheet.groups.iter().any(|group| group.picture.reordered) {
        true => WIDEST,
        false => WIDEST / 2,
    };
    let letters = (room / sheet.units.max(1) as usize).clamp(1, widest);
    let pen = Pen { sheet: &sheet, screen, gutter, letters };
    let mut text = String::new();
    for (at, group) in sheet.groups.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        pen.group(group, count, &mut text);
    }
    pen.legend(&mut text);
    text
}

struct Pen<'a> {
    sheet: &'a Sheet,
    screen: Screen,
    gutter: usize,
    /// The number of letters for a unit.
    letters: usize,
}

impl Pen<'_> {
    fn group(&self, group: &Group, count: u64, text: &mut String) {
        for line in wrapped(&group.names.join(", "), self.screen.width, 0) {
            *text += &self.screen.title(&line);
            text.push('\n');
        }
        for line in wrapped(&group.figures(count), self.screen.width, MARGIN) {
            *text += &line;
            text.push('\n');
        }
        let picture = &group.picture;
        if picture.lines.is_empty() {
            let _ = writeln!(text, "{:MARGIN$}nothing to draw", "");
            return;
        }
        self.ruler(picture, text);
        // Marks between the rows of a larger picture would hide its structure.
        let marks = if picture.lines.len() == 1 { group.marks() } else { Vec::new() };
        for line in &picture.lines {
            match line {
                Line::Row(row) => {
                    self.row(picture, row, text);
                    // With two marks, the bounds equal the true bounds and need no marks.
                    if marks.len() > 2 {
                        self.marks(row, picture, &marks, text);
                    }
                }
                Line::Fold { start, rows, reason } => {
                    let end = start + *rows as i128 * i128::from(picture.pitch);
                    let words =
                        format!("{:>1$}{2}", "", self.gutter, fold_text(*rows, *reason, end));
                    for line in wrapped(words.trim_start(), self.screen.width, self.gutter) {
                        *text += &self.screen.paint(QUIET, &line);
                        text.push('\n');
                    }
                }
            }
        }
        if picture.reordered {
            let words = "The numbers are the places in the type map, whose order isn't memory's.";
            let _ = writeln!(text, "{:MARGIN$}{words}", "");
        }
        if picture.overlaps {
            let _ = writeln!(text, "{:MARGIN$}Bytes marked # belong to several items.", "");
        }
    }

    /// Writes the scale above the cells: addresses for a single row, otherwise offsets in a row.
    fn ruler(&self, picture: &Picture, text: &mut String) {
        let many = picture.lines.len() > 1;
        let from = match picture.lines.first() {
            Some(line) if !many => line.start(),
            _ => 0,
        };
        let offset = |unit: i64| {
            let at = from + i128::from(unit * picture.unit);
            if many { format!("+{at}") } else { at.to_string() }
        };
        let longest = offset(picture.units()).len().max(offset(0).len()) + 1;
        let steps = match picture.unit {
            1 => [1, 2, 4, 8, 16, 32, 64],
            _ => [1, 2, 5, 10, 20, 50, 100],
        };
        let step =
            steps.into_iter().find(|step| step * self.letters >= longest).unwrap_or(128) as i64;
        let mut line = " ".repeat(self.gutter);
        for unit in (0..=picture.units()).step_by(step as usize) {
            let at = self.gutter + unit as usize * self.letters;
            let label = offset(unit);
            if at + label.len() > self.screen.width {
                break;
            }
            line += &" ".repeat(at - line.len());
            line += &label;
        }
        *text += &self.screen.paint(QUIET, &line);
        text.push('\n');
    }

    fn row(&self, picture: &Picture, row: &Row, text: &mut String) {
        let label = match picture.lines.len() {
            1 => String::new(),
            _ => row.start.to_string(),
        };
        let width = self.gutter - 2;
        *text += &self.screen.paint(QUIET, &format!("{label:>width$}"));
        *text += "  ";
        let mut line = String::new();
        for cell in &row.cells {
            line += &self.cell(cell, picture);
        }
        *text += line.trim_end_matches(' ');
        text.push('\n');
    }

    fn cell(&self, cell: &Cell, picture: &Picture) -> String {
        let width = (cell.length / picture.unit) as usize * self.letters;
        match cell.holds {
            Contents::Outside => " ".repeat(width),
            Contents::Gap => match self.screen.colour {
                true => self.screen.paint(QUIET, &"░".repeat(width)),
                false => ".".repeat(width),
            },
            Contents::Shared => self.screen.paint(WARN, &"#".repeat(width)),
            Contents::Item { leaf, index, whole: (head, tail) } => {
                let mut words = match (head, picture.reordered) {
                    (true, true) => format!("{}{index}", label(leaf)),
                    (true, false) => label(leaf).to_owned(),
                    (false, _) => String::new(),
                };
                words.truncate(width);
                match self.screen.colour {
                    // The last letter has no colour, so that adjacent items of one type are
                    // distinguishable.
                    true if tail && width > 1 && words.len() < width => {
                        let width = width - 1;
                        format!("{} ", self.coloured(leaf, &format!("{words:<width$}")))
                    }
                    true => self.coloured(leaf, &format!("{words:<width$}")),
                    false => format!("{words:-<width$}"),
                }
            }
        }
    }

    fn coloured(&self, leaf: Leaf, text: &str) -> String {
        let background = Ansi256Color(PALETTE[self.sheet.colour(leaf) % PALETTE.len()]);
        let style =
            Style::new().fg_color(Some(AnsiColor::Black.into())).bg_color(Some(background.into()));
        self.screen.paint(style, text)
    }

    /// Writes the marks of the bounds in a row, on as many lines as they need.
    fn marks(
        &self,
        row: &Row,
        picture: &Picture,
        marks: &[(Address, String, bool)],
        text: &mut String,
    ) {
        let mut lines: Vec<String> = Vec::new();
        for (at, name, upper) in marks {
            if !picture.bounds(row, *at, *upper) {
                continue;
            }
            let units = ((at - row.start) / i128::from(picture.unit)) as usize;
            let column = self.gutter + units * self.letters;
            // The mark of an upper bound is below the last letter before the bound.
            let (from, mark) = match upper {
                true if column > name.len() + 1 => (column - name.len() - 1, format!("{name}^")),
                true => (column - 1, format!("^{name}")),
                false => (column, format!("^{name}")),
            };
            // The lines are ASCII, so columns are byte indices. Marks are separated by a blank.
            let about = from.saturating_sub(1)..from + mark.len() + 1;
            let is_free = |line: &String| {
                line.bytes().enumerate().all(|(at, letter)| letter == b' ' || !about.contains(&at))
            };
            let index = lines.iter().position(is_free).unwrap_or(lines.len());
            if index == lines.len() {
                lines.push(String::new());
            }
            let line = &mut lines[index];
            if line.len() < from + mark.len() {
                *line = format!("{line:<0$}", from + mark.len());
            }
            line.replace_range(from..from + mark.len(), &mark);
        }
        for line in lines {
            *text += &self.screen.paint(QUIET, &line);
            text.push('\n');
        }
    }

    fn legend(&self, text: &mut String) {
        let mut entries: Vec<(String, usize)> = Vec::new();
        let mut entry = |key: String, letters: usize, words: &str| {
            entries.push((format!("{key} {words}"), letters + 1 + words.len()));
        };
        for &leaf in &self.sheet.legend {
            let key = label(leaf);
            let shown = match self.screen.colour {
                true => self.coloured(leaf, &format!(" {key} ")),
                false => key.to_owned(),
            };
            entry(shown, key.len() + if self.screen.colour { 2 } else { 0 }, &name(leaf));
        }
        if self.sheet.gaps {
            let gap =
                if self.screen.colour { self.screen.paint(QUIET, "░░") } else { ".".into() };
            entry(gap, 2, "gap");
        }
        if entries.is_empty() {
            return;
        }
        text.push('\n');
        let (mut line, mut used) = (String::new(), 0);
        for (entry, letters) in entries {
            if used > 0 && used + 3 + letters > self.screen.width {
                *text += &line;
                text.push('\n');
                (line, used) = (String::new(), 0);
            }
            let before = if used == 0 { MARGIN } else { 3 };
            line += &" ".repeat(before);
            line += &entry;
            used += before + letters;
        }
        *text += &line;
        text.push('\n');
    }
}

/// The text of a fold that ends at address `end`.
pub fn fold_text(rows: u128, reason: FoldReason, end: Address) -> String {
    let plural = |n: u128| if n == 1 { "" } else { "s" };
    match reason {
        FoldReason::Repeats { lines: 1, times } => {
            format!(": the row above {times} time{} more, to {end}", plural(times))
        }
        FoldReason::Repeats { lines, times } => {
            format!(": the {lines} lines above {times} time{} more, to {end}", plural(times))
        }
        FoldReason::Empty => format!(": {rows} row{} without data, to {end}", plural(rows)),
        FoldReason::TooMany => {
            format!(": {rows} row{} not drawn, to {end} (--lines draws more)", plural(rows))
        }
        FoldReason::Tangled => format!(
            ": {rows} row{} not drawn, to {end}: the items interleave in too many ways to find them",
            plural(rows)
        ),
    }
}

/// Breaks a text at blanks into lines of at most `width` letters, each indented by `indent`.
pub fn wrapped(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{:indent$}{word}", "")),
        }
    }
    lines
}

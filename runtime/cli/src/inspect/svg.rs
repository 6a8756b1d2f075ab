//! Renders a sheet as SVG: one file without references, on a background of its own, so that it is
//! legible on any page.

use longshore_benches::report::page;
use shipable::{Datatype, Leaf};
use svg::node::element::{Definitions, Description, Group as Many, Line as Stroke, Path, Pattern};
use svg::node::element::{Rectangle, Text};

use super::facts::truncated;
use super::picture::{Cell, Contents, FoldReason, Line, Picture, Row};
use super::sheet::{Group, Layouts, Sheet, label, name};
use super::strided::Address;
use super::terminal::{fold_text, wrapped};

/// The width of the picture. All sizes in this module are in pixels.
const WIDTH: i64 = 920;
/// The free space at the edges.
const MARGIN: i64 = 16;
/// The height of a row.
const ROW: i64 = 28;
/// The distance between lines of text.
const TEXT: i64 = 17;
/// The width of a letter of the monospaced text in sizes up to 12.
const LETTER: f64 = 7.25;
/// The least width of a unit.
const NARROW: i64 = 12;
/// The greatest width of a unit of several bytes.
const WIDE: i64 = 44;
/// The greatest width of a unit of one byte.
const BYTE: i64 = 34;

const STYLE: &str = "\
text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1b1f24}
.title{font-size:13px;font-weight:bold}.small{font-size:11px;fill:#57606a}.fold{fill:#57606a;font-style:italic}
.cell{text-anchor:middle}.count{font-size:9px}
.item{stroke:#24292f;stroke-width:1}.gap{stroke:#afb8c1;stroke-width:1;fill:url(#gap)}.shared{stroke:#cf222e;fill:url(#shared)}
.tick{stroke:#8c959f;stroke-width:1}.bound{stroke:#cf222e;stroke-width:3}.true{stroke:#0550ae;stroke-width:3}
.i0{fill:#87d7ff}.i1{fill:#aff287}.i2{fill:#ffd787}.i3{fill:#d7afff}.i4{fill:#ffafaf}
.i5{fill:#affff0}.i6{fill:#d7af87}.i7{fill:#87a9ff}.i8{fill:#afd75f}.i9{fill:#d0d0d0}";

/// The number of item colours in [`STYLE`].
const COLOURS: usize = 10;

/// Draws one picture of at most `lines` lines for each distinct layout.
pub fn draw(datatype: &Datatype, layouts: &Layouts, count: u64, lines: usize) -> String {
    let longest = layouts.found.iter().flat_map(|layout| {
        let (span, reach) = (layout.memory.span(), layout.memory.reach());
        [span.start, span.end, reach.start, reach.end].map(|at| at.to_string().len())
    });
    let gutter = MARGIN + across(longest.max().unwrap_or(1)) + 10;
    let room = WIDTH - gutter - MARGIN;
    let sheet = Sheet::new(layouts, lines, |letters| room / NARROW.max(across(letters) + 4));
    let unit = sheet.groups.first().map_or(1, |group| group.picture.unit);
    let widest = if unit == 1 { BYTE } else { WIDE };
    let step = (room / sheet.units.max(1)).clamp(1, widest);
    let mut pen = Pen { sheet: &sheet, gutter, step, y: MARGIN, drawn: Many::new() };
    let title = truncated(datatype, 400);
    for line in pen.wrapped(&title) {
        pen.y += TEXT;
        pen.text(MARGIN, pen.y, "title", &line);
    }
    pen.y += 6;
    for group in &sheet.groups {
        pen.group(group, count);
    }
    for failure in layouts.failures() {
        for line in pen.wrapped(&failure) {
            pen.y += TEXT;
            pen.text(MARGIN, pen.y, "fold", &line);
        }
    }
    pen.legend();
    let height = pen.y + MARGIN;
    let names: Vec<&str> =
        sheet.groups.iter().flat_map(|group| group.names.iter().copied()).collect();
    let definitions = Definitions::new()
        .add(hatch("gap", "#f6f8fa", "#c8d1da", "M0 6L6 0"))
        .add(hatch("shared", "#ffebe9", "#cf222e", "M0 6L6 0M0 0L6 6"));
    let description = svg::node::Text::new(format!("On {}", names.join(", ")));
    let document = page(&format!("The memory of {title}"), STYLE, [WIDTH as f64, height as f64])
        .add(Description::new().add(description))
        .add(definitions)
        .add(pen.drawn);
    format!("{document}\n")
}

fn hatch(id: &str, paper: &str, ink: &str, strokes: &str) -> Pattern {
    Pattern::new()
        .set("id", id)
        .set("width", 6)
        .set("height", 6)
        .set("patternUnits", "userSpaceOnUse")
        .add(Rectangle::new().set("width", 6).set("height", 6).set("fill", paper))
        .add(Path::new().set("d", strokes).set("stroke", ink).set("stroke-width", 1))
}

/// The width of `letters` letters.
fn across(letters: usize) -> i64 {
    (letters as f64 * LETTER).ceil() as i64
}

struct Pen<'a> {
    sheet: &'a Sheet,
    /// The position of the first cell.
    gutter: i64,
    /// The width of a unit.
    step: i64,
    /// The current vertical position.
    y: i64,
    drawn: Many,
}

impl Pen<'_> {
    fn add(&mut self, node: impl Into<Box<dyn svg::Node>>) {
        self.drawn = std::mem::take(&mut self.drawn).add(node);
    }

    fn text(&mut self, x: i64, y: i64, class: &str, words: &str) {
        self.add(Text::new(words).set("x", x).set("y", y).set("class", class));
    }

    fn wrapped(&self, words: &str) -> Vec<String> {
        let letters = ((WIDTH - 2 * MARGIN) as f64 / (LETTER * 13.0 / 12.0)) as usize;
        let mut lines = Vec::new();
        for line in wrapped(words, letters, 0) {
            let all: Vec<char> = line.chars().collect();
            lines.extend(all.chunks(letters).map(|part| part.iter().collect::<String>()));
        }
        lines
    }

    fn group(&mut self, group: &Group, count: u64) {
        self.y += 10;
        for line in self.wrapped(&group.names.join(", ")) {
            self.y += TEXT;
            self.text(MARGIN, self.y, "title", &line);
        }
        for line in self.wrapped(&group.figures(count)) {
            self.y += TEXT;
            self.text(MARGIN, self.y, "small", &line);
        }
        self.y += 8;
        let picture = &group.picture;
        if picture.lines.is_empty() {
            self.y += TEXT;
            return self.text(MARGIN, self.y, "fold", "nothing to draw");
        }
        self.ruler(picture);
        for line in &picture.lines {
            match line {
                Line::Row(row) => {
                    self.row(picture, row);
                    self.bars(picture, row, group);
                }
                Line::Fold { start, rows, reason } => self.fold(picture, *start, *rows, *reason),
            }
        }
        for (applies, words) in [
            (
                picture.reordered,
                "The numbers are the places in the type map, whose order isn't memory's.",
            ),
            (picture.overlaps, "Bytes hatched in red belong to several items."),
        ] {
            if applies {
                self.y += TEXT;
                self.text(self.gutter, self.y, "small", words);
            }
        }
        self.y += 6;
    }

    fn x(&self, bytes: i64, picture: &Picture) -> i64 {
        self.gutter + bytes / picture.unit * self.step
    }

    /// Draws the scale above the cells: addresses for a single row, otherwise offsets in a row.
    fn ruler(&mut self, picture: &Picture) {
        let many = picture.lines.len() > 1;
        let from = match picture.lines.first() {
            Some(line) if !many => line.start(),
            _ => 0,
        };
        let words = |unit: i64| {
            let at = from + i128::from(unit * picture.unit);
            if many { format!("+{at}") } else { at.to_string() }
        };
        let longest = across(words(picture.units()).len().max(words(0).len())) + 6;
        let nice: &[i64] = match picture.unit {
            1 => &[1, 2, 4, 8, 16, 32, 64],
            _ => &[1, 2, 5, 10, 20, 50, 100],
        };
        let every = nice.iter().copied().find(|n| n * self.step >= longest).unwrap_or(128);
        self.y += TEXT;
        for unit in 0..=picture.units() {
            let x = self.gutter + unit * self.step;
            let labelled = unit % every == 0;
            let tick = if labelled { 5 } else { 2 };
            self.bar("tick", x, self.y, self.y + tick);
            if labelled {
                let text = Text::new(words(unit)).set("class", "small cell").set("x", x);
                self.add(text.set("y", self.y - 4));
            }
        }
        self.y += 7;
    }

    fn row(&mut self, picture: &Picture, row: &Row) {
        if picture.lines.len() > 1 {
            let text = Text::new(row.start.to_string()).set("class", "small");
            let text = text.set("text-anchor", "end").set("x", self.gutter - 8);
            self.add(text.set("y", self.y + ROW / 2 + 4));
        }
        // Items come after gaps, so that the frames of items cover those of gaps.
        let is_gap = |cell: &&Cell| cell.holds == Contents::Gap;
        for cell in row.cells.iter().filter(is_gap) {
            self.cell(picture, cell);
        }
        for cell in row.cells.iter().filter(|cell| !is_gap(cell)) {
            self.cell(picture, cell);
        }
        self.y += ROW;
    }

    fn cell(&mut self, picture: &Picture, cell: &Cell) {
        let (x, width) = (self.x(cell.at, picture), cell.length / picture.unit * self.step);
        let frame = |class: String| {
            let box_ = Rectangle::new().set("class", class).set("x", x).set("width", width);
            box_.set("y", self.y).set("height", ROW)
        };
        let (leaf, index, head) = match cell.holds {
            Contents::Outside => return,
            Contents::Gap => return self.add(frame("gap".into())),
            Contents::Shared => return self.add(frame("shared".into())),
            Contents::Item { leaf, index, whole: (head, _) } => (leaf, index, head),
        };
        self.add(frame(self.class(leaf)));
        if !head {
            return;
        }
        let words = label(leaf);
        let middle = x + width / 2;
        let numbered = picture.reordered && across(index.to_string().len()) <= width;
        let y = self.y + ROW / 2 + if numbered { -1 } else { 4 };
        if across(words.len()) <= width {
            self.add(Text::new(words).set("class", "cell").set("x", middle).set("y", y));
        }
        if numbered {
            let text = Text::new(index.to_string()).set("class", "cell count").set("x", middle);
            self.add(text.set("y", y + 10));
        }
    }

    fn class(&self, leaf: Leaf) -> String {
        format!("item i{}", self.sheet.colour(leaf) % COLOURS)
    }

    fn fold(&mut self, picture: &Picture, start: Address, rows: u128, reason: FoldReason) {
        let end = start + rows as i128 * i128::from(picture.pitch);
        let words = fold_text(rows, reason, end);
        self.y += TEXT + 2;
        let x = self.gutter;
        for (at, line) in self.wrapped(words.trim_start_matches(": ")).iter().enumerate() {
            self.y += if at == 0 { 0 } else { TEXT };
            let line = if at == 0 { format!("\u{22ee} {line}") } else { line.clone() };
            self.text(x, self.y, "fold", &line);
        }
        self.y += 8;
    }

    /// Draws a bar at each bound in the row above. The bars of lb and ub are longer than the row is
    /// high, those of the true bounds are not.
    fn bars(&mut self, picture: &Picture, row: &Row, group: &Group) {
        const OVER: i64 = 6;
        let (span, reach) = (&group.span, &group.reach);
        let mut bounds = vec![(span.start, false, "bound"), (span.end, true, "bound")];
        if group.bounds.size > 0 {
            bounds.extend([(reach.start, false, "true"), (reach.end, true, "true")]);
        }
        for (at, upper, class) in bounds {
            if picture.bounds(row, at, upper) {
                let x = self.x((at - row.start) as i64, picture);
                let over = if class == "bound" { OVER } else { 0 };
                self.bar(class, x, self.y - ROW - over, self.y + over);
            }
        }
    }

    fn bar(&mut self, class: &str, x: i64, top: i64, bottom: i64) {
        let stroke = Stroke::new().set("class", class).set("x1", x).set("x2", x);
        self.add(stroke.set("y1", top).set("y2", bottom));
    }

    fn legend(&mut self) {
        let mut entries: Vec<(String, String, String)> = Vec::new();
        for &leaf in &self.sheet.legend {
            entries.push((self.class(leaf), label(leaf).to_owned(), name(leaf)));
        }
        if self.sheet.gaps {
            entries.push(("gap".to_owned(), String::new(), "gap".to_owned()));
        }
        self.y += 18;
        let mut x = MARGIN;
        for (class, key, words) in entries {
            let swatch = across(key.len()).max(14) + 8;
            let length = swatch + 6 + across(words.len()) + 18;
            if x > MARGIN && x + length > WIDTH - MARGIN {
                (x, self.y) = (MARGIN, self.y + 26);
            }
            let frame = Rectangle::new().set("class", class).set("x", x).set("y", self.y);
            self.add(frame.set("width", swatch).set("height", 20));
            let text = Text::new(key).set("class", "cell").set("x", x + swatch / 2);
            self.add(text.set("y", self.y + 14));
            self.text(x + swatch + 6, self.y + 14, "small", &words);
            x += length;
        }
        let bounds = [("bound", "lb and ub"), ("true", "true lb and true ub")];
        for (class, words) in bounds {
            let length = 14 + across(words.len()) + 18;
            if x + length > WIDTH - MARGIN {
                (x, self.y) = (MARGIN, self.y + 26);
            }
            self.bar(class, x + 4, self.y, self.y + 20);
            self.text(x + 14, self.y + 14, "small", words);
            x += length;
        }
        self.y += 20;
    }
}

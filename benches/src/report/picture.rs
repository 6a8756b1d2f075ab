//! A report as pictures: curves of each contender by size, and one picture of all ratios.

use std::collections::{BTreeSet, HashMap};

use super::svg::{Axis, BLUE, GREEN, GREY, Marker, ORANGE, PURPLE, Pen, Sheet, VERMILION};
use super::{LIMIT, LOOP, Line, OURS, Report, Section, Unit, contenders, heading, is_typed, size};
use crate::case::Case;
use crate::environment::Environment;
use crate::row::Distance;

/// A picture, as SVG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The name of its file. It depends only on the bench, not on the results.
    pub name: String,
    /// The title.
    pub title: String,
    /// The picture.
    pub svg: String,
}

/// The sizes that curves need at least.
const SIZES: usize = 5;

/// Whether a report of these cases has a picture: a section with enough sizes, or the ratios to a
/// contender that they are `compared` with.
pub fn has_picture(cases: &[Case], compared: bool) -> bool {
    let mut sizes: HashMap<String, BTreeSet<u64>> = HashMap::new();
    for case in cases.iter().filter(|case| is_plain(case)) {
        sizes.entry(heading(case)).or_default().insert(case.bytes);
    }
    compared || sizes.values().any(|sizes| sizes.len() >= SIZES)
}

/// Whether a case is a point of a curve.
fn is_plain(case: &Case) -> bool {
    case.bytes > 0 && !is_typed(case)
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 480.0;
/// The frame of the curves: left and right edge, then bottom and top edge.
const ACROSS: [f64; 2] = [70.0, 660.0];
const DOWN: [f64; 2] = [416.0, 64.0];

impl Report {
    /// A picture of all ratios, and one of each section with at least five sizes.
    pub fn pictures(&self) -> Vec<Picture> {
        let sections = self.sections();
        let mut pictures: Vec<Picture> = self.ratios(&sections).into_iter().collect();
        pictures.extend(sections.iter().filter_map(|section| self.curves(section)));
        pictures
    }

    fn curves(&self, section: &Section<'_>) -> Option<Picture> {
        let lines: Vec<&Line<'_>> =
            section.lines.iter().filter(|line| is_plain(line.case)).collect();
        let mut sizes: Vec<u64> = lines.iter().map(|line| line.case.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let (&first, &last) = (sizes.first()?, sizes.last()?);
        if sizes.len() < SIZES {
            return None;
        }
        let unit = Unit::of(lines.first()?.case.bench);
        let mut curves: Vec<(&str, Distance, Vec<[f64; 2]>)> = Vec::new();
        for name in contenders(&section.lines) {
            for distance in [Distance::Alone, Distance::Near, Distance::Far] {
                let points = lines.iter().filter(|line| line.distance == distance);
                let points = points.filter_map(|line| {
                    let low = line.of(name)?.low();
                    Some([line.case.bytes as f64, unit.convert(line.case, low)])
                });
                let mut points: Vec<[f64; 2]> = points.collect();
                points.sort_unstable_by(|a, b| a[0].total_cmp(&b[0]));
                // A copy's limit doesn't depend on the distance of the cores: it is drawn once.
                let again = name == LIMIT && curves.iter().any(|(other, ..)| *other == LIMIT);
                if !points.is_empty() && !again {
                    curves.push((name, distance, points));
                }
            }
        }
        let curves = curves.iter().map(|(name, distance, points)| {
            let label = match distance {
                _ if *name == LIMIT => "machine's limit".to_owned(),
                Distance::Alone => (*name).to_owned(),
                _ => format!("{name}, {distance}"),
            };
            Curve { label, pen: pen(name, *distance), points: points.clone() }
        });
        let ticks: Vec<_> = sizes.iter().map(|&bytes| (bytes as f64, size(bytes))).collect();
        let chart = Chart {
            title: section.heading.clone(),
            meaning: meaning(unit).to_owned(),
            across: [first as f64, last as f64],
            ticks,
            curves: curves.collect(),
        };
        Some(chart.picture(&self.environment))
    }

    /// Draws a row for each section, with a dot for each line's ratio to each other library.
    fn ratios(&self, sections: &[Section<'_>]) -> Option<Picture> {
        const ROW: f64 = 18.0;
        const TOP: f64 = 112.0;
        /// The position where the headings end and the dots begin.
        const HEADINGS: f64 = 440.0;
        let mut libraries: Vec<&str> = Vec::new();
        let mut rows = Vec::new();
        for section in sections {
            let mut dots = Vec::new();
            let names = contenders(&section.lines).into_iter();
            for name in names.filter(|name| ![OURS, LIMIT, LOOP].contains(name)) {
                let ratios = section.lines.iter().filter_map(|line| {
                    line.ratio(name).map(|ratio| (name, line.distance, ratio.median))
                });
                dots.extend(ratios);
                if !libraries.contains(&name) {
                    libraries.push(name);
                }
            }
            if !dots.is_empty() {
                rows.push((&section.heading, dots));
            }
        }
        if rows.is_empty() {
            return None;
        }
        let bottom = TOP + ROW * rows.len() as f64;
        let values = rows.iter().flat_map(|(_, dots)| dots.iter().map(|(.., ratio)| *ratio));
        let x = Axis::decades(values.chain([1.0]), [HEADINGS + 8.0, WIDTH - 24.0]);
        let y = Axis::new([1.0, 10.0], [bottom, TOP]);
        let mut sheet = Sheet::new(WIDTH, bottom + 54.0);
        let title = "Longshore's time, as a multiple of another library's";
        sheet.text([20.0, 28.0], "title", "start", title);
        let meaning = "One dot for each size, type and distance of the cores: the median of the \
                       turns. Left of 1 Longshore is faster.";
        sheet.text([20.0, 48.0], "small", "start", meaning);
        let mut right = 26.0;
        for name in &libraries {
            for (distance, label) in [(Distance::Near, ""), (Distance::Far, ", cores far apart")] {
                let label = format!("{name}{label}");
                sheet.dot(pen(name, distance), [right, 68.0]);
                sheet.text([right + 10.0, 72.0], "small", "start", &label);
                right += 30.0 + 6.0 * label.len() as f64;
            }
        }
        for power in x.powers() {
            let at = x.place(power);
            sheet.line([at, TOP], [at, bottom], if power == 1.0 { "one" } else { "grid" });
            for down in [TOP - 6.0, bottom + 18.0] {
                sheet.text([at, down], "tick", "middle", &format!("{power}"));
            }
        }
        sheet.frame(x, y);
        for (at, (heading, dots)) in rows.iter().enumerate() {
            let middle = TOP + ROW * (at as f64 + 0.5);
            if at > 0 {
                sheet.line([20.0, middle - ROW / 2.0], [WIDTH - 24.0, middle - ROW / 2.0], "fine");
            }
            sheet.text([20.0, middle + 4.0], "tick", "start", heading);
            for (name, distance, ratio) in dots {
                // Each library has its own height, so that no dot hides another.
                let place = libraries.iter().position(|library| library == name).unwrap_or(0);
                let down = 7.0 * (place as f64 - (libraries.len() - 1) as f64 / 2.0);
                sheet.dot(pen(name, *distance), [x.place(*ratio), middle + down]);
            }
        }
        sheet.text([20.0, bottom + 40.0], "small", "start", &footnote(&self.environment));
        Some(Picture {
            name: "ratios".to_owned(),
            title: title.to_owned(),
            svg: sheet.finish(title),
        })
    }
}

/// Curves over one quantity, in a frame with logarithmic axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title, of which the name of the file is made.
    pub title: String,
    /// What the curves show, and in which unit.
    pub meaning: String,
    /// The first and last value of the horizontal axis.
    pub across: [f64; 2],
    /// The marks of the horizontal axis, with their labels.
    pub ticks: Vec<(f64, String)>,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// A curve of a [`Chart`].
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name in the legend.
    pub label: String,
    /// Its colour and markers.
    pub pen: Pen,
    /// The points, in ascending order.
    pub points: Vec<[f64; 2]>,
}

impl Chart {
    /// Draws the chart. The environment is named in its footnote.
    pub fn picture(&self, environment: &Environment) -> Picture {
        let values = self.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point[1]));
        let (x, y) = (Axis::new(self.across, ACROSS), Axis::decades(values, DOWN));
        let mut sheet = Sheet::new(WIDTH, HEIGHT);
        sheet.text([20.0, 28.0], "title", "start", &self.title);
        sheet.text([20.0, 48.0], "small", "start", &self.meaning);
        grid(&mut sheet, x, y, &self.ticks);
        for (at, Curve { label, pen, points }) in self.curves.iter().enumerate() {
            let places: Vec<_> =
                points.iter().map(|[at, value]| [x.place(*at), y.place(*value)]).collect();
            sheet.curve(*pen, &places);
            let down = DOWN[1] + 14.0 + 22.0 * at as f64;
            let [left, right] = [ACROSS[1] + 20.0, ACROSS[1] + 54.0];
            sheet.curve(Pen { marker: Marker::None, ..*pen }, &[[left, down], [right, down]]);
            sheet.dot(*pen, [(left + right) / 2.0, down]);
            sheet.text([right + 8.0, down + 4.5], "", "start", label);
        }
        sheet.text([20.0, HEIGHT - 14.0], "small", "start", &footnote(environment));
        let svg = sheet.finish(&self.title);
        Picture { name: file_name(&self.title), title: self.title.clone(), svg }
    }
}

/// The pen of a contender at a distance of the cores. Far is dashed and hollow.
fn pen(contender: &str, distance: Distance) -> Pen {
    let (colour, marker) = match contender {
        OURS => (BLUE, Marker::Circle),
        LIMIT => {
            return Pen { colour: GREY, marker: Marker::None, dashes: Some("2 4"), filled: true };
        }
        LOOP => (ORANGE, Marker::Diamond),
        name if name.starts_with("Open MPI") => (VERMILION, Marker::Square),
        name if name.starts_with("MPICH") => (GREEN, Marker::Triangle),
        _ => (PURPLE, Marker::Diamond),
    };
    let far = distance == Distance::Far;
    Pen { colour, marker, dashes: far.then_some("7 4"), filled: !far }
}

/// Draws the grid, with marks at the bottom and powers of ten at the left.
fn grid(sheet: &mut Sheet, x: Axis, y: Axis, ticks: &[(f64, String)]) {
    for power in y.powers() {
        let down = y.place(power);
        sheet.line([ACROSS[0], down], [ACROSS[1], down], "grid");
        sheet.text([ACROSS[0] - 8.0, down + 4.0], "tick", "end", &format!("{power}"));
    }
    let mut free = 0.0;
    for (value, label) in ticks {
        let at = x.place(*value);
        sheet.line([at, DOWN[0]], [at, DOWN[1]], "fine");
        // A label that would touch the previous one is left out.
        if at >= free {
            sheet.text([at, DOWN[0] + 20.0], "tick", "middle", label);
            free = at + 50.0;
        }
    }
    sheet.frame(x, y);
}

fn meaning(unit: Unit) -> &'static str {
    match unit {
        Unit::Microseconds => "Microseconds a call, the lowest of all turns: lower is better",
        Unit::Milliseconds => "Milliseconds, the lowest of all turns: lower is better",
        Unit::Gigabytes => "GB/s, in the fastest of all turns: higher is better",
        Unit::Operations => {
            "Million operations a second, in the fastest of all turns: higher is better"
        }
        Unit::Megabytes => "MiB, the lowest of all turns: lower is better",
    }
}

fn footnote(environment: &Environment) -> String {
    let Environment { date, cpu, cores, kernel, .. } = environment;
    format!("{date} UTC, {cpu}, {cores} cores, Linux {kernel}")
}

/// The words of a heading, joined by dashes.
fn file_name(heading: &str) -> String {
    heading.split([',', ' ']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;

    #[test]
    fn each_section_with_five_sizes_has_a_picture() {
        let pictures = report().pictures();
        let names: Vec<&str> = pictures.iter().map(|picture| &*picture.name).collect();
        assert_eq!(
            names,
            [
                "ratios",
                "put_latency-allocate-flush",
                "put_latency-allocate-fence",
                "memcpy",
                "put_bw-allocate-flush-route-message-i686-to-s390x"
            ]
        );
        for picture in &pictures {
            assert!(roxmltree::Document::parse(&picture.svg).is_ok(), "{}", picture.name);
        }
        for part in
            ["Longshore, near", "Longshore, far", "MPICH, near", "machine's limit", "1 MiB", "0.01"]
        {
            assert!(pictures[1].svg.contains(part), "{part}");
        }
        assert!(!pictures[1].svg.contains("MPICH, far"), "its cores were moved");
    }
}

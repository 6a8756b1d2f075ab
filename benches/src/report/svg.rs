//! Drawing of SVG: logarithmic axes, curves and dots, on a white background, so that a picture is
//! legible on any page.

use svg::Document;
use svg::node::element::{Group, Line, Polyline, Rectangle, Style, Text, Title};

/// The darker ones of Okabe's and Ito's colours, which people with colour blindness can tell apart.
pub const BLUE: &str = "#0072b2";
pub const VERMILION: &str = "#d55e00";
pub const GREEN: &str = "#009e73";
pub const PURPLE: &str = "#cc79a7";
pub const ORANGE: &str = "#e69f00";
pub const GREY: &str = "#57606a";

const STYLE: &str = "\
text{font:13px system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#1b1f24}\
.title{font-size:16px;font-weight:bold}.small{font-size:11px;fill:#57606a}.tick{font-size:12px}\
.grid{stroke:#d8dee4;stroke-width:1}.fine{stroke:#eef1f4;stroke-width:1}.frame{stroke:#8c959f;fill:none}\
.one{stroke:#1b1f24;stroke-width:1.5}";

/// A document of this size in pixels on a background of its own, so that the picture is legible on
/// any page. Screen readers read the title.
pub fn page(title: &str, style: &str, [width, height]: [f64; 2]) -> Document {
    let paper = Rectangle::new()
        .set("width", width)
        .set("height", height)
        .set("rx", 6)
        .set("fill", "#ffffff")
        .set("stroke", "#d0d7de");
    Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("role", "img")
        .add(Title::new(title))
        .add(Style::new(style))
        .add(paper)
}

/// The style of a contender's curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pen {
    /// The colour.
    pub colour: &'static str,
    /// The marker at each point.
    pub marker: Marker,
    /// The dashes of the curve, as in SVG's `stroke-dasharray`. `None` for a solid line.
    pub dashes: Option<&'static str>,
    /// Whether the markers are filled.
    pub filled: bool,
}

/// The marker at a point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A circle.
    Circle,
    /// A square.
    Square,
    /// A triangle.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// No marker.
    None,
}

/// Pens that can be told apart, for curves that are no contenders.
pub const PENS: [Pen; 6] = {
    const fn pen(colour: &'static str, marker: Marker) -> Pen {
        Pen { colour, marker, dashes: None, filled: true }
    }
    [
        pen(BLUE, Marker::Circle),
        pen(VERMILION, Marker::Square),
        pen(GREEN, Marker::Triangle),
        pen(PURPLE, Marker::Diamond),
        pen(ORANGE, Marker::Circle),
        pen(GREY, Marker::Square),
    ]
};

/// A logarithmic axis: the values at its ends, and the positions of the ends.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    values: [f64; 2],
    places: [f64; 2],
}

impl Axis {
    /// An axis between two values at two positions. The values must be positive and must differ.
    pub fn new(values: [f64; 2], places: [f64; 2]) -> Axis {
        Axis { values, places }
    }

    /// An axis whose ends are the powers of ten around these values.
    pub fn decades(values: impl Iterator<Item = f64>, places: [f64; 2]) -> Axis {
        let [mut least, mut most] = [f64::INFINITY, f64::NEG_INFINITY];
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (least, most) = (least.min(value), most.max(value));
        }
        let (least, most) = if least > most { (0.1, 10.0) } else { (least, most) };
        let (first, last) = (least.log10().floor(), most.log10().ceil());
        let last = if last > first { last } else { first + 1.0 };
        Axis { values: [10f64.powf(first), 10f64.powf(last)], places }
    }

    pub fn place(&self, value: f64) -> f64 {
        let [first, last] = self.values.map(f64::ln);
        let share = (value.ln() - first) / (last - first);
        self.places[0] + share * (self.places[1] - self.places[0])
    }

    /// The powers of ten in the axis's range.
    pub fn powers(&self) -> impl Iterator<Item = f64> {
        let [first, last] = self.values.map(|value| value.log10().round() as i32);
        (first..=last).map(|power| 10f64.powi(power))
    }
}

/// A picture while it is drawn.
pub struct Sheet {
    width: f64,
    height: f64,
    drawn: Group,
}

impl Sheet {
    pub fn new(width: f64, height: f64) -> Sheet {
        Sheet { width, height, drawn: Group::new() }
    }

    /// The finished SVG. Screen readers read the title.
    pub fn finish(self, title: &str) -> String {
        let Sheet { width, height, drawn } = self;
        let document = page(title, STYLE, [width, height]).add(drawn);
        format!("{document}\n")
    }

    fn add(&mut self, node: impl Into<Box<dyn svg::Node>>) {
        self.drawn = std::mem::take(&mut self.drawn).add(node);
    }

    /// Draws text. The position is that of its base line's `anchor` (start, middle or end).
    pub fn text(&mut self, [x, y]: [f64; 2], class: &str, anchor: &str, text: &str) {
        let text = Text::new(text).set("x", round(x)).set("y", round(y)).set("text-anchor", anchor);
        self.add(if class.is_empty() { text } else { text.set("class", class) });
    }

    pub fn line(&mut self, from: [f64; 2], to: [f64; 2], class: &str) {
        let line = Line::new()
            .set("x1", round(from[0]))
            .set("y1", round(from[1]))
            .set("x2", round(to[0]))
            .set("y2", round(to[1]));
        self.add(line.set("class", class));
    }

    pub fn frame(&mut self, x: Axis, y: Axis) {
        let ([left, right], [bottom, top]) = (x.places, y.places);
        let frame = Rectangle::new().set("x", left).set("y", top);
        let frame = frame.set("width", right - left).set("height", bottom - top);
        self.add(frame.set("class", "frame"));
    }

    /// Draws a curve through these positions, with a marker at each.
    pub fn curve(&mut self, pen: Pen, places: &[[f64; 2]]) {
        let points: Vec<String> =
            places.iter().map(|[x, y]| format!("{},{}", round(*x), round(*y))).collect();
        let curve = Polyline::new()
            .set("points", points.join(" "))
            .set("fill", "none")
            .set("stroke", pen.colour)
            .set("stroke-width", 2);
        self.add(match pen.dashes {
            Some(dashes) => curve.set("stroke-dasharray", dashes),
            None => curve,
        });
        places.iter().for_each(|&place| self.dot(pen, place));
    }

    pub fn dot(&mut self, pen: Pen, [x, y]: [f64; 2]) {
        let corners: &[[f64; 2]] = match pen.marker {
            Marker::None => return,
            Marker::Circle => {
                let circle = svg::node::element::Circle::new();
                let circle = circle.set("cx", round(x)).set("cy", round(y)).set("r", 3.5);
                return self.ink(circle, pen);
            }
            Marker::Square => &[[-3.0, -3.0], [3.0, -3.0], [3.0, 3.0], [-3.0, 3.0]],
            Marker::Triangle => &[[0.0, -4.2], [4.0, 3.0], [-4.0, 3.0]],
            Marker::Diamond => &[[0.0, -4.5], [4.5, 0.0], [0.0, 4.5], [-4.5, 0.0]],
        };
        let corners: Vec<String> = corners
            .iter()
            .map(|[right, down]| format!("{},{}", round(x + right), round(y + down)))
            .collect();
        self.ink(svg::node::element::Polygon::new().set("points", corners.join(" ")), pen);
    }

    fn ink(&mut self, mut marker: impl svg::Node, pen: Pen) {
        marker.assign("fill", if pen.filled { pen.colour } else { "#ffffff" });
        marker.assign("stroke", pen.colour);
        marker.assign("stroke-width", 1.5);
        self.add(Box::new(marker) as Box<dyn svg::Node>);
    }
}

/// Rounds to a tenth of a pixel, which is precise enough.
fn round(place: f64) -> f64 {
    (place * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_logarithmic() {
        let axis = Axis::new([1.0, 100.0], [0.0, 10.0]);
        assert_eq!([1.0, 10.0, 100.0].map(|value| round(axis.place(value))), [0.0, 5.0, 10.0]);
        let axis = Axis::decades([0.03, 0.4].into_iter(), [0.0, 2.0]);
        assert_eq!(axis.powers().collect::<Vec<_>>(), [0.01, 0.1, 1.0]);
        assert_eq!(Axis::decades([1.0].into_iter(), [0.0, 1.0]).powers().count(), 2);
        assert_eq!(Axis::decades([0.0, f64::NAN].into_iter(), [0.0, 1.0]).powers().count(), 3);
    }
}

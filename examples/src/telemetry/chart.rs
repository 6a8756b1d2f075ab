//! The picture of a run: the voltages by uptime, and the time between frames at the ground.

use std::path::Path;
use std::time::Instant;

use svg::Document;
use svg::node::element::{Polyline, Rectangle, Text};

use super::frame::Frame;

const WIDTH: f64 = 720.0;
const PANEL: f64 = 150.0;
const COLOURS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];

/// What the picture shows.
#[derive(Default)]
pub struct Chart {
    frames: Vec<(Frame, Instant)>,
}

impl Chart {
    pub fn add(&mut self, frame: &Frame) {
        self.frames.push((*frame, Instant::now()));
    }

    /// Writes the picture.
    pub fn write(&self, file: &Path) -> Result<(), String> {
        let mut page = Document::new()
            .set("viewBox", (0, 0, WIDTH as i64, 2 * PANEL as i64))
            .set("font-family", "sans-serif")
            .set("font-size", 12)
            .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"));
        for (rail, colour) in COLOURS.iter().enumerate() {
            // Each rail by its distance from its mean, so that all fit one panel.
            let volts: Vec<f64> =
                self.frames.iter().map(|(frame, _)| f64::from(frame.rails[rail].volts)).collect();
            let mean = volts.iter().sum::<f64>() / volts.len().max(1) as f64;
            let apart: Vec<f64> = volts.iter().map(|volts| volts - mean).collect();
            page = page.add(line(&apart, 0.0, colour));
            if let Some((frame, _)) = self.frames.first() {
                let label = format!("{} around {mean:.2} V", frame.rails[rail].label());
                page = page.add(text(&label, 12.0 + 200.0 * rail as f64, 16.0, colour));
            }
        }
        let arrivals = self.frames.windows(2);
        let apart: Vec<f64> =
            arrivals.map(|pair| (pair[1].1 - pair[0].1).as_secs_f64() * 1e3).collect();
        let longest = apart.iter().fold(0.0f64, |longest, &apart| longest.max(apart));
        page = page.add(line(&apart, PANEL, "#333333")).add(text(
            &format!("milliseconds between frames, at most {longest:.1}"),
            12.0,
            PANEL + 16.0,
            "#333333",
        ));
        svg::save(file, &page).map_err(|error| format!("{}: {error}", file.display()))
    }
}

/// Values from left to right, in a panel that begins at `top`.
fn line(values: &[f64], top: f64, colour: &str) -> Polyline {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let height = (greatest - least).max(f64::MIN_POSITIVE);
    let points: Vec<String> = (values.iter().enumerate())
        .map(|(index, value)| {
            let x = 10.0 + (WIDTH - 20.0) * index as f64 / (values.len().max(2) - 1) as f64;
            let y = top + PANEL - 10.0 - (PANEL - 40.0) * (value - least) / height;
            format!("{x:.1},{y:.1}")
        })
        .collect();
    Polyline::new()
        .set("points", points.join(" "))
        .set("fill", "none")
        .set("stroke", colour)
        .set("stroke-width", 1.5)
}

fn text(words: &str, x: f64, y: f64, colour: &str) -> Text {
    Text::new(words).set("x", x).set("y", y).set("fill", colour)
}

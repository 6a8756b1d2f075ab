//! Draws a time line of a traced job: a row for each rank, in which own work and waits differ.
//!
//! A trace may have millions of calls, so each pixel of a row has the state in which its rank spent
//! most of the pixel's time. The picture's size depends on the number of ranks only.

use longshore_benches::report::page;
use longshore_launcher::timeline::{RankLine, Timeline};
use svg::node::element::{Definitions, Group, Line, Marker, Path, Rectangle, Text, Title};

use super::{Wait, duration, in_calls};

/// The width of the picture. All sizes in this module are in pixels.
const WIDTH: usize = 920;
const LEFT: usize = 132;
const RIGHT: usize = 16;
const TOP: usize = 64;
/// The height of a row, and of the bar in it.
const ROW: usize = 26;
const BAR: usize = 16;
/// The pixels of a bar.
const PIXELS: usize = WIDTH - LEFT - RIGHT;
/// The distance between marks on the axis, at least.
const MARK: f64 = 90.0;

const STYLE: &str = "\
text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1b1f24}
.title{font-size:13px;font-weight:bold}.small{font-size:11px;fill:#57606a}
.right{text-anchor:end}.middle{text-anchor:middle}
.work{fill:#aed581}.wait{fill:#ef6c4d}.call{fill:#b9c1c9}
.axis{stroke:#d0d7de;stroke-width:1}.for{stroke:#1b1f24;stroke-width:1.2;fill:none}";

/// What a rank did most of the time of a pixel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Work,
    /// In a call, and for no other rank that is known.
    Call,
    Wait,
}

/// Draws the ranks that waited longest, at most `most` of them, and arrows of the longest waits.
pub fn draw(timeline: &Timeline, waits: &[Wait<'_>], most: usize) -> String {
    let (begin, end) = timeline.times();
    let mut lines: Vec<&RankLine> = timeline.ranks.iter().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(in_calls(line)));
    lines.truncate(most);
    lines.sort_by_key(|line| line.rank);
    let scale = Scale { begin, nanos: (end - begin).max(1) };
    let mut drawn = Group::new();
    let title = format!("{} ranks, {}", timeline.ranks.len(), duration(end - begin));
    drawn = drawn.add(text(16, 24, "title", &title));
    drawn = legend(drawn);
    let bottom = TOP + lines.len() * ROW;
    drawn = axis(drawn, &scale, bottom);
    for (row, line) in lines.iter().enumerate() {
        let y = TOP + row * ROW;
        let name = text(LEFT - 8, y + 13, "right", &short(&line.name));
        drawn = bars(drawn.add(name), &scale, line, y);
    }
    let row_of = |rank: u32| lines.iter().position(|line| line.rank == rank);
    for (number, wait) in (1..).zip(waits) {
        let Some(row) = row_of(wait.rank) else { continue };
        let awaited = wait.span.awaited.and_then(row_of).filter(|other| *other != row);
        drawn = arrow(drawn, &scale, wait, (number, row, awaited));
    }
    let head = Path::new().set("d", "M0 0L6 3L0 6z");
    let marker = Marker::new().set("id", "head").set("markerWidth", 6).set("markerHeight", 6);
    let marker = marker.set("refX", 6).set("refY", 3).set("orient", "auto").add(head);
    let drawn = Group::new().add(Definitions::new().add(marker)).add(drawn);
    let size = [WIDTH as f64, (bottom + 36) as f64];
    page("Time line of a job", STYLE, size).add(drawn).to_string() + "\n"
}

/// Places of times on the axis.
struct Scale {
    begin: u64,
    nanos: u64,
}

impl Scale {
    fn x(&self, time: u64) -> f64 {
        let share = time.saturating_sub(self.begin) as f64 / self.nanos as f64;
        LEFT as f64 + share * PIXELS as f64
    }

    /// The time in which a pixel lies, as a fraction of pixels.
    fn pixel(&self, time: u64) -> f64 {
        self.x(time) - LEFT as f64
    }
}

/// A name that fits left of its row.
fn short(name: &str) -> String {
    name.chars().take(16).collect()
}

fn text(x: usize, y: usize, class: &str, words: &str) -> Text {
    Text::new(words).set("x", x).set("y", y).set("class", class)
}

fn legend(drawn: Group) -> Group {
    let mut x = LEFT;
    let words = [("work", "own work"), ("wait", "waits for a rank"), ("call", "other calls")];
    words.into_iter().fold(drawn, |drawn, (class, words)| {
        let place = Rectangle::new().set("x", x).set("y", 34).set("width", 12).set("height", 12);
        let label = text(x + 18, 44, "small", words);
        x += 40 + 7 * words.len();
        drawn.add(place.set("class", class)).add(label)
    })
}

/// Marks at round times.
fn axis(mut drawn: Group, scale: &Scale, bottom: usize) -> Group {
    let least = MARK / PIXELS as f64 * scale.nanos as f64;
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= least).unwrap_or(10.0 * power);
    for mark in 0..=(scale.nanos as f64 / step) as u64 {
        let time = (mark as f64 * step) as u64;
        let x = scale.x(scale.begin + time);
        let stroke = Line::new().set("x1", x).set("x2", x).set("y1", TOP - 6).set("y2", bottom);
        let words = if mark == 0 { "0".to_owned() } else { duration(time) };
        drawn = drawn.add(stroke.set("class", "axis")).add(text(
            x as usize,
            bottom + 18,
            "small middle",
            &words,
        ));
    }
    drawn
}

/// The bars of a rank.
fn bars(mut drawn: Group, scale: &Scale, line: &RankLine, y: usize) -> Group {
    let states = states(scale, line);
    let mut start = 0;
    for run in states.chunk_by(|a, b| a == b) {
        let class = match run[0] {
            State::Absent => None,
            State::Work => Some("work"),
            State::Call => Some("call"),
            State::Wait => Some("wait"),
        };
        if let Some(class) = class {
            let bar = Rectangle::new().set("x", LEFT + start).set("y", y).set("height", BAR);
            drawn = drawn.add(bar.set("width", run.len()).set("class", class));
        }
        start += run.len();
    }
    drawn
}

/// The state of a rank in each pixel.
fn states(scale: &Scale, line: &RankLine) -> Vec<State> {
    let mut shares = vec![[0.0f64; 2]; PIXELS];
    for span in &line.calls {
        let (from, to) = (scale.pixel(span.begin), scale.pixel(span.end));
        let kind = usize::from(span.awaited.is_some_and(|rank| rank != line.rank));
        let last = (to.ceil() as usize).min(PIXELS);
        for (pixel, shares) in (0..last).zip(&mut shares).skip(from as usize) {
            let covered = to.min(pixel as f64 + 1.0) - from.max(pixel as f64);
            shares[kind] += covered.max(0.0);
        }
    }
    let (begin, end) = line.times.unwrap_or_default();
    let lives = (scale.pixel(begin).floor() as usize)..(scale.pixel(end).ceil() as usize);
    let state = |(pixel, [call, wait]): (usize, &[f64; 2])| match call + wait {
        _ if !lives.contains(&pixel) => State::Absent,
        ..0.5 => State::Work,
        _ if wait >= call => State::Wait,
        _ => State::Call,
    };
    shares.iter().enumerate().map(state).collect()
}

/// The number of a wait, and an arrow from the rank that was waited for, which ended it.
fn arrow(
    mut drawn: Group,
    scale: &Scale,
    Wait { rank, span }: &Wait<'_>,
    (number, row, awaited): (usize, usize, Option<usize>),
) -> Group {
    let (x, y) = (scale.x(span.end), TOP + row * ROW);
    let middle = f64::midpoint(scale.x(span.begin), x);
    let told = format!("{number}. rank {rank}: {} for {}", span.name, duration(span.nanos()));
    let told = format!("{told}, at {}", span.source);
    let label = text(middle as usize, y + 12, "small middle", &number.to_string());
    drawn = drawn.add(label.add(Title::new(told)));
    if let Some(other) = awaited {
        let from = TOP + other * ROW + BAR / 2;
        let to = if other > row { y + BAR } else { y };
        let line = Line::new().set("x1", x).set("x2", x).set("y1", from).set("y2", to);
        drawn = drawn.add(line.set("class", "for").set("marker-end", "url(#head)"));
    }
    drawn
}

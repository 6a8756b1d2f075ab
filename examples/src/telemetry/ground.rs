//! The ground station: takes frames out of the ring, shows and archives them, and sets limits.

use std::error::Error;

use longshore::shipable::Basic;
use longshore::{Class, Passive, c};

use super::archive::Archive;
use super::chart::Chart;
use super::dashboard::Dashboard;
use super::frame::{Frame, Limits, Mode, Pass, State};
use super::{SLOTS, Station, counter, uplink};
use crate::show::Show;

/// The frames after which the ground gives their slots back.
pub const BATCH: u64 = 4;

/// What the ground knows at the end.
#[derive(Default)]
struct Tally {
    /// Frames that came in order, with the readings that they should have.
    right: u64,
    wrong: u64,
    last: Option<Frame>,
}

/// Runs the ground station until the board's last frame. Returns whether every frame was right.
pub fn run(station: &Station<'_>, show: &Show<'_>) -> Result<bool, Box<dyn Error>> {
    let mut archive = Archive::open(station.options.archive.as_deref())?;
    let first = station.first_frame(archive.next())?;
    if first > 0 {
        show.say(&format!("the archive has frames 0 to {}: the job goes on there", first - 1))?;
    }
    let (mut tally, mut dashboard) = (Tally::default(), Dashboard::new(station.options.dashboard));
    let mut chart = Chart::default();
    let received = station.ring.lock_all(|ring| {
        for taken in 0.. {
            station.ring.wait_notify(counter::FRAMES, taken + 1)?;
            let frame: Frame = ring.local().get(taken as i64 % SLOTS)?;
            tally.count(first + taken, &frame);
            archive.add(&frame).map_err(longshore::Error::other)?;
            chart.add(&frame);
            dashboard.show(&frame).map_err(longshore::Error::other)?;
            if (taken + 1) % BATCH == 0 {
                give_back(station, ring)?;
            }
            if frame.is_last.into() {
                break;
            }
        }
        Ok(())
    });
    if let Some(file) = &station.options.svg {
        chart.write(file)?;
    }
    received.map_err(|error| -> Box<dyn Error> {
        match error.class() {
            Class::ProcAborted | Class::ProcFailed => format!(
                "the board is gone after {} frames of this job; the archive has all that came: \
                 {error}",
                tally.right
            )
            .into(),
            _ => error.into(),
        }
    })?;
    let right = tally.check(station, show)?;
    set_limits(station, show)?;
    Ok(right)
}

/// Tells the board that a batch of slots is free: a put of nothing notifies as well.
fn give_back(station: &Station<'_>, ring: &Passive<'_, '_>) -> longshore::Result<()> {
    let nothing: [Frame; 0] = [];
    let kind = &station.types.frame;
    ring.flush(station.board, |ring| {
        ring.put_notify(&nothing, station.board, 0, 0, kind, counter::FRAMES)
    })
}

impl Tally {
    fn count(&mut self, number: u64, frame: &Frame) {
        let state = State {
            mode: frame.mode.get().unwrap_or_default(),
            heats: frame.heaters[0].into(),
            stops: frame.is_last.into(),
        };
        match *frame == Frame::of(number, state) {
            true => self.right += 1,
            false => self.wrong += 1,
        }
        self.last = Some(*frame);
    }

    /// Whether all frames are right. It doesn't print how many there are, which depends on when the
    /// commands came.
    fn check(&self, station: &Station<'_>, show: &Show<'_>) -> Result<bool, Box<dyn Error>> {
        if station.options.race {
            show.say("the race is on, so that the first frames may be wrong")?;
            return Ok(true);
        }
        if self.wrong > 0 || self.right <= station.options.frames {
            show.say(&format!("{} frames came right and {} wrong", self.right, self.wrong))?;
            return Ok(false);
        }
        show.say("every frame came, in order, with the readings that it should have")?;
        let last = self.last.unwrap_or_default();
        let (mode, heats) = (last.mode.get()?, last.heaters[0].into());
        show.say(&format!("the last one is of mode {mode:?}, and its heaters are on: {heats}"))?;
        Ok(mode == Mode::Science && heats)
    }
}

/// The limits, with the bytes that the board may send in the second pass.
pub fn limits(downlink: c::Long) -> Result<Limits, Box<dyn Error>> {
    let passes = [(480, c::Long(1_000_000)), (510, downlink)];
    let passes = passes.map(|(seconds, downlink)| Pass { seconds, downlink });
    Ok(Limits { rail: c::Char::array("28V")?, volts: [27.5, 28.5], passes })
}

/// Sets limits that a board of 32 bits can't hold, and then limits that it can.
#[allow(clippy::useless_conversion)] // not where a `long` has 32 bits
fn set_limits(station: &Station<'_>, show: &Show<'_>) -> Result<(), Box<dyn Error>> {
    let Station { uplink: window, types, board, .. } = station;
    // What a `long` of 32 bits doesn't hold, and what it does.
    let (large, small) = (3_000_000_000_i64, 2_000_000_000);
    match large.try_into() {
        Ok(large) if station.rank.architecture().basic(Basic::Long).size > 4 => {
            let record = [limits(c::Long(large))?];
            let put = window
                .lock_all(|window| window.put(&record, *board, uplink::RECORD, 1, &types.limits));
            match put {
                Ok(()) => show.say("the board holds a downlink of 3000000000 bytes")?,
                Err(refused) => show.say(&format!("refused, as it must be: {refused}"))?,
            }
        }
        _ => show.say("a `long` of the ground has 32 bits, as the board's may have")?,
    }
    let record = [limits(c::Long(small))?];
    window.lock_all(|window| {
        let kind = &types.limits;
        window.put_notify(&record, *board, uplink::RECORD, 1, kind, counter::UPLINK)
    })?;
    Ok(())
}

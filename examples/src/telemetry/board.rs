//! The board: sends frames, carries out commands, and obeys limits.

use std::error::Error;
use std::time::{Duration, Instant};

use longshore::{Passive, c};

use super::frame::{Frame, Limits, Mode, Reply, State, command};
use super::ground::{BATCH, limits};
use super::{COMMANDER, GROUND, SLOTS, Station, counter, uplink};

/// Runs the board until it is told to stop. Returns whether it has the limits that fit.
pub fn run(station: &Station<'_>) -> Result<bool, Box<dyn Error>> {
    let first = station.first_frame(0)?;
    let mut clock = Clock::new(station.options.rate);
    station.ring.lock_all(|ring| {
        station.uplink.lock_all(|uplink| {
            let mut state = State::default();
            for number in first.. {
                let sent = number - first;
                if station.options.fail_after.is_some_and(|frames| sent >= frames) {
                    // Nothing is released and nobody is told, as if the power had failed.
                    std::process::abort();
                }
                obey(station, uplink, &mut state, number)?;
                let last = State { stops: state.stops && sent >= station.options.frames, ..state };
                await_room(station, sent)?;
                send(station, ring, sent, &Frame::of(number, last))?;
                if last.stops {
                    break;
                }
                clock.tick();
            }
            Ok(())
        })
    })?;
    receive_limits(station)
}

/// Waits until the ground has taken a frame out of the slot of the next one.
fn await_room(station: &Station<'_>, sent: u64) -> longshore::Result<()> {
    let needed = (sent + 1).saturating_sub(SLOTS as u64).div_ceil(BATCH);
    station.ring.wait_notify(counter::FRAMES, needed).map(drop)
}

/// Puts a frame into its slot, and notifies the ground.
fn send(
    station: &Station<'_>,
    ring: &Passive<'_, '_>,
    sent: u64,
    frame: &Frame,
) -> longshore::Result<()> {
    let slot = sent as i64 % SLOTS;
    let frame = std::slice::from_ref(frame);
    ring.flush(GROUND, |ring| {
        ring.put_notify(frame, GROUND, slot, 1, &station.types.frame, counter::FRAMES)
    })
}

/// Takes a command out of the mailbox, if there is one, and answers it.
fn obey(
    station: &Station<'_>,
    uplink: &Passive<'_, '_>,
    state: &mut State,
    number: u64,
) -> longshore::Result<()> {
    let given = uplink.local().get::<i32>(uplink::MAILBOX)?;
    match given {
        0 => return Ok(()),
        command::HEAT => state.heats = true,
        command::SCIENCE => state.mode = Mode::Science,
        command::STOP => state.stops = true,
        // Of a newer commander.
        _ => {}
    }
    let reply = [Reply { command: given, mode: state.mode.into(), before: number }];
    uplink.flush(COMMANDER, |uplink| {
        let kind = &station.types.reply;
        uplink.put_notify(&reply, COMMANDER, uplink::RECORD, 1, kind, counter::UPLINK)
    })?;
    // The commander swaps again only if it finds 0.
    uplink.compare_and_swap(0, given, station.board, uplink::MAILBOX)?.wait().map(drop)
}

/// Waits for the limits that fit. Returns whether they are right.
fn receive_limits(station: &Station<'_>) -> Result<bool, Box<dyn Error>> {
    station.uplink.wait_notify(counter::UPLINK, 1)?;
    let found: Limits = station.uplink.get(uplink::RECORD)?;
    Ok(found == limits(c::Long(2_000_000_000))?)
}

/// A steady rate.
struct Clock {
    period: Option<Duration>,
    next: Instant,
}

impl Clock {
    fn new(rate: f64) -> Clock {
        // No period for a rate of 0.
        let period = Duration::try_from_secs_f64(1.0 / rate).ok();
        Clock { period, next: Instant::now() }
    }

    /// Waits for the next beat. Beats that were missed aren't made up for.
    fn tick(&mut self) {
        let Some(period) = self.period else { return };
        self.next = (self.next + period).max(Instant::now());
        std::thread::sleep(self.next.saturating_duration_since(Instant::now()));
    }
}

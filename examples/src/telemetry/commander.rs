//! The commander: sends commands through the board's mailbox, and waits for the replies.

use std::error::Error;

use longshore::Passive;

use super::frame::{Frame, Reply, State, command};
use super::{GROUND, Station, counter, uplink};

/// Sends the commands, one after the other. Returns whether each was answered.
pub fn run(station: &Station<'_>) -> Result<bool, Box<dyn Error>> {
    station.first_frame(0)?;
    if station.options.race {
        race(station)?;
    }
    let commands = [command::HEAT, command::SCIENCE, command::STOP];
    let mut answered = true;
    station.uplink.lock_all(|uplink| {
        for (number, given) in (1..).zip(commands) {
            post(station, uplink, given)?;
            station.uplink.wait_notify(counter::UPLINK, number)?;
            answered &= uplink.local().get::<Reply>(uplink::RECORD)?.command == given;
        }
        Ok(())
    })?;
    Ok(answered)
}

/// Swaps a command into the mailbox as soon as that is free.
fn post(station: &Station<'_>, uplink: &Passive<'_, '_>, given: i32) -> longshore::Result<()> {
    while uplink.compare_and_swap(given, 0, station.board, uplink::MAILBOX)?.wait()? != 0 {
        std::thread::yield_now();
    }
    Ok(())
}

/// Puts into the slot of the board's first frame. Nothing orders the two puts.
fn race(station: &Station<'_>) -> longshore::Result<()> {
    let frame = [Frame::of(0, State::default())];
    station.ring.lock_all(|ring| ring.put(&frame, GROUND, 0, 1, &station.types.frame))
}

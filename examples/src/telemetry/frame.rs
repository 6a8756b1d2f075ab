//! The records that travel. Each process lays them out as its own C compiler would.

use longshore::{Enum, Shipable, c};

/// What the board does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(u8)]
pub enum Mode {
    /// It waits for commands.
    #[default]
    Safe = 1,
    /// Its instruments are on.
    Science = 2,
}

/// A voltage rail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(C)]
pub struct Rail {
    pub name: [c::Char; 6],
    pub volts: f32,
    /// How often its fuse has tripped; -1 if that isn't known.
    pub trips: c::Short,
}

/// One record of housekeeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(C)]
pub struct Frame {
    pub number: u64,
    /// Seconds since the board was switched on first.
    pub uptime: f64,
    pub mode: Enum<Mode>,
    pub heaters: [c::Bool; 4],
    pub rails: [Rail; 3],
    /// Where the board points to, as a quaternion.
    pub attitude: [f32; 4],
    /// Whether the board sends no frame after this one.
    pub is_last: c::Bool,
}

impl Rail {
    /// Its name as text.
    pub fn label(&self) -> String {
        c::Char::text(&self.name).unwrap_or_default()
    }
}

/// A pass over the ground station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(C)]
pub struct Pass {
    pub seconds: u16,
    /// Bytes that the board may send. A `long` of the board may have 32 bits.
    pub downlink: c::Long,
}

/// The limits that the ground sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(C)]
pub struct Limits {
    pub rail: [c::Char; 6],
    pub volts: [f32; 2],
    pub passes: [Pass; 2],
}

/// The board's answer to a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(C)]
pub struct Reply {
    pub command: i32,
    pub mode: Enum<Mode>,
    /// The frame before which the command was carried out.
    pub before: u64,
}

/// The commands, by their numbers in the mailbox. 0 is none.
pub mod command {
    pub const HEAT: i32 = 1;
    pub const SCIENCE: i32 = 2;
    pub const STOP: i32 = 3;
}

/// What commands change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    pub mode: Mode,
    pub heats: bool,
    pub stops: bool,
}

impl Frame {
    /// The frame of this number: its readings follow from the number and the board's state, so the
    /// ground can tell a wrong one.
    pub fn of(number: u64, state: State) -> Frame {
        let phase = (number % 360) as f32;
        let rail = |number: i16, name: &str, volts: f32| Rail {
            name: c::Char::array(name).unwrap_or_default(),
            volts: volts + (phase - 180.0) / 4096.0,
            trips: c::Short(number),
        };
        Frame {
            number,
            uptime: number as f64 / 100.0,
            mode: state.mode.into(),
            heaters: [state.heats, false, state.heats, false].map(Into::into),
            rails: [rail(0, "3V3", 3.3), rail(2, "5V", 5.0), rail(-1, "28V", 28.0)],
            attitude: [1.0, phase / 512.0, -phase / 1024.0, 0.25],
            is_last: state.stops.into(),
        }
    }
}

//! The archive: all frames as CSV, which outlives the job.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use super::frame::Frame;

/// The file, and the number of the job's first frame.
pub struct Archive {
    writer: Option<csv::Writer<File>>,
    next: u64,
}

impl Archive {
    /// Opens the file, or makes it. Without a file nothing is kept.
    pub fn open(file: Option<&Path>) -> Result<Archive, String> {
        let Some(path) = file else { return Ok(Archive { writer: None, next: 0 }) };
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let next = match path.exists() {
            true => next_number(path).map_err(|error| told(&error))?,
            false => 0,
        };
        let opened = OpenOptions::new().create(true).append(true).open(path);
        let mut writer = csv::Writer::from_writer(opened.map_err(|error| told(&error))?);
        if next == 0 {
            let names = ["frame", "uptime", "mode", "heaters", "3V3", "5V", "28V"];
            writer.write_record(names).map_err(|error| told(&error))?;
        }
        Ok(Archive { writer: Some(writer), next })
    }

    /// The number of the frame that followed the archive's last one when it was opened.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Adds a frame.
    pub fn add(&mut self, frame: &Frame) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let on = frame.heaters.iter().filter(|heater| bool::from(**heater)).count();
        let fixed = [
            frame.number.to_string(),
            frame.uptime.to_string(),
            format!("{:?}", frame.mode.get().unwrap_or_default()),
            on.to_string(),
        ];
        let volts = frame.rails.iter().map(|rail| format!("{:.3}", rail.volts));
        writer.write_record(fixed.into_iter().chain(volts))?;
        // A frame that has come is kept, whatever happens to the job.
        writer.flush()
    }
}

/// One more than the number of the last frame in a file. The frames of a file have no gap.
fn next_number(path: &Path) -> Result<u64, Box<dyn std::error::Error>> {
    let mut next = 0;
    for row in csv::Reader::from_path(path)?.records() {
        let number: u64 = row?.get(0).unwrap_or_default().parse()?;
        if number != next {
            return Err(format!("frame {number} follows frame {}", next.saturating_sub(1)).into());
        }
        next = number + 1;
    }
    Ok(next)
}

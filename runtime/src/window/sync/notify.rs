//! The owner's side of notified operations: reading a notification counter, and waiting for it.

use crate::engine::check_counter;
use crate::error::Result;
use crate::job::Activity;
use crate::notification::Notification;
use crate::window::access::check_usable;
use crate::window::parts::Parts;
use crate::window::readings::Reading;
use crate::window::waiting::remark;

/// A counter of this rank, with what was read of it.
struct Counter<'a> {
    parts: &'a Parts,
    index: u16,
    notification: Notification<'a>,
    reading: &'a Reading,
}

impl<'a> Counter<'a> {
    /// The counter with an index (rule 31).
    #[inline]
    fn new(parts: &'a Parts, index: i32) -> Result<Counter<'a>> {
        check_usable(parts.epochs().state())?;
        let control = parts.peers().control();
        let index = check_counter(index, control.notifications())?;
        let notification = control.notification(control.rank(), index);
        let reading = parts.readings().of(index);
        Ok(Counter { parts, index, notification, reading })
    }

    /// Its value.
    #[inline]
    fn value(&self) -> u64 {
        let count = self.notification.read(self.reading.last.get());
        self.reading.last.set(count);
        count - self.reading.reset.get()
    }

    /// The value that was read last, on which this rank's next accesses may depend.
    #[inline]
    fn observe(&self) -> u64 {
        match self.parts.process().checks() {
            true => self.observe_checked(),
            false => self.reading.last.get() - self.reading.reset.get(),
        }
    }

    #[cold]
    fn observe_checked(&self) -> u64 {
        // The engine raises the counter, and notes by which operation, under its lock.
        let mut engine = self.parts.process().engine();
        engine.state().note_notified(self.parts.id(), self.index);
        self.value()
    }

    /// Waits a short time for a value, which the last reading hadn't. Returns whether it is there.
    ///
    /// Inlined, and with one load a turn: the notified rank may be the next one to notify, so the
    /// instructions after the load that sees the value delay its peer (docs/tuning.md,
    /// "Notifications to and fro").
    #[inline]
    fn spin(&self, value: u64) -> bool {
        // Only ranks that reach this one directly raise the counter without its engine.
        if !self.parts.peers().is_shared() {
            return false;
        }
        let (last, mut risen) = (self.reading.last.get(), 0);
        let due = value.saturating_add(self.reading.reset.get()) - last;
        let is_there = self.parts.process().spin(|| {
            risen = self.notification.risen(last).into();
            risen >= due
        });
        if is_there {
            self.reading.last.set(last + risen);
        }
        is_there
    }

    /// Waits for a value.
    #[inline(never)]
    fn wait(&self, value: u64) -> Result<()> {
        let (parts, process) = (self.parts, self.parts.process());
        let mut armed = false;
        let waited = process.during(Activity::WaitNotify, parts.id(), parts.at(), || {
            process.wait(|state, arming| {
                if arming {
                    armed = true;
                    self.notification.arm();
                    process.note_wait(None);
                    remark(parts);
                }
                if self.value() >= value {
                    return Some(Ok(()));
                }
                // Any rank may be the one that was to notify this one. What the dead sent was taken
                // in before they were given up.
                let lost = state.lost_among(parts.peers().control().group(), Some(parts.id()))?;
                Some(if self.value() >= value { Ok(()) } else { Err(lost) })
            })
        });
        if armed {
            self.notification.disarm();
        }
        waited
    }
}

/// The value of a notification counter of this rank.
#[inline]
pub(in crate::window) fn value(parts: &Parts, index: i32) -> Result<u64> {
    let counter = Counter::new(parts, index)?;
    parts.process().oblige()?;
    counter.value();
    Ok(counter.observe())
}

/// Waits until a notification counter of this rank has a value, or a higher one. Returns its value.
#[inline]
pub(in crate::window) fn wait(parts: &Parts, index: i32, value: u64) -> Result<u64> {
    let counter = Counter::new(parts, index)?;
    if counter.value() >= value || counter.spin(value) {
        parts.process().oblige()?;
    } else {
        counter.wait(value)?;
    }
    Ok(counter.observe())
}

/// Whether a notification counter of this rank has a value, or a higher one.
#[inline]
pub(in crate::window) fn test(parts: &Parts, index: i32, value: u64) -> Result<bool> {
    let (counter, process) = (Counter::new(parts, index)?, parts.process());
    if counter.value() >= value {
        process.oblige()?;
        counter.observe();
        return Ok(true);
    }
    process.poll()?;
    let is_there = counter.value() >= value;
    if is_there {
        counter.observe();
        return Ok(true);
    }
    let mut engine = process.engine();
    let lost = engine.state().lost_among(parts.peers().control().group(), Some(parts.id()));
    lost.or_else(|| engine.state().broken()).map_or(Ok(false), Err)
}

/// Sets a notification counter of this rank to 0. Returns the value before.
pub(in crate::window) fn reset(parts: &Parts, index: i32) -> Result<u64> {
    let counter = Counter::new(parts, index)?;
    counter.value();
    let before = counter.observe();
    counter.reading.reset.set(counter.reading.last.get());
    Ok(before)
}

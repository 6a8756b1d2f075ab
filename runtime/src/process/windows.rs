//! The windows that a rank has made and not freed: their names, for reports of waiting calls, and
//! what `finalize` reports under `--check` (rule 30).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::error::excerpt;
use crate::object::Card;
use crate::program::Line;

/// The windows of a rank, by their numbers.
#[derive(Default)]
pub(crate) struct Windows(Mutex<BTreeMap<u32, Unfreed>>);

/// A window that isn't freed.
struct Unfreed {
    /// The window's name belongs to it. A window that is gone has left its name in `dropped`.
    card: Weak<Card>,
    made: Line,
    /// The name of a window that was dropped.
    dropped: Option<String>,
    /// The open epoch, and the source line of the call that opened it. Known only of the calls of
    /// [`Raw`](crate::Raw) and posts, and only under `--check`.
    epoch: Option<(String, Line)>,
}

impl Unfreed {
    fn name(&self) -> String {
        let dropped = || self.dropped.clone().unwrap_or_default();
        self.card.upgrade().map_or_else(dropped, |card| card.name())
    }
}

impl Windows {
    /// This rank has made a window.
    pub(crate) fn made(&self, window: u32, card: &Arc<Card>, made: Line) {
        let unfreed = Unfreed { card: Arc::downgrade(card), made, dropped: None, epoch: None };
        self.all().insert(window, unfreed);
    }

    /// The window is freed.
    pub(crate) fn freed(&self, window: u32) {
        self.all().remove(&window);
    }

    /// The window, which has this name, is dropped without being freed.
    pub(crate) fn dropped(&self, window: u32, name: String) {
        if let Some(unfreed) = self.all().get_mut(&window) {
            unfreed.dropped = Some(name);
        }
    }

    /// The epoch of a window after a call.
    pub(crate) fn set_epoch(&self, window: u32, epoch: Option<String>, caller: Line) {
        if let Some(unfreed) = self.all().get_mut(&window) {
            let since = unfreed.epoch.take().map_or(caller, |(_, since)| since);
            unfreed.epoch = epoch.map(|epoch| (epoch, since));
        }
    }

    /// A window's number, and its name if it has one.
    pub(crate) fn text(&self, window: u32) -> String {
        titled(window, &self.name(window).unwrap_or_default())
    }

    /// A window's name, shortened, if it has one.
    pub(crate) fn name(&self, window: u32) -> Option<String> {
        let name = self.all().get(&window).map(Unfreed::name).filter(|name| !name.is_empty());
        name.map(|name| excerpt(&name))
    }

    /// The report of each window that isn't freed, with its kind.
    pub(crate) fn reports(&self, me: u32) -> Vec<(String, String)> {
        let report = |(window, unfreed): (&u32, &Unfreed)| {
            let (made, window) = (unfreed.made, titled(*window, &unfreed.name()));
            let mut text = format!("check: rule 30, {window} of rank {me}: not freed\n");
            text += &format!("check:   made at {made}");
            text += if unfreed.dropped.is_some() { ", and dropped without free\n" } else { "\n" };
            if let Some((epoch, since)) = &unfreed.epoch {
                text += &format!(
                    "check:   an epoch is open, since the call at {since}: {epoch}; end it by unlock, unlock_all, \
                     complete or wait\n"
                );
            }
            text += "check:   call free on every window before finalize: it waits for the other ranks' operations, and \
                     returns the last errors\n";
            (format!("30 {made}"), text)
        };
        self.all().iter().map(report).collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Unfreed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn titled(window: u32, name: &str) -> String {
    match name {
        "" => format!("window {window}"),
        name => format!("window {window} {:?}", excerpt(&name)),
    }
}

//! What the ranks of a job have recorded about themselves, for `longshore run --stats` and
//! `--trace`.
//!
//! The launcher gathers the contents of the ranks' journals as they end
//! ([`longshore_job::journal`] has the formats). Counters become a summary or a report, and events
//! become packets of Perfetto's trace format, which [`timeline`] reads again.

mod counted;
mod gather;
mod perfetto;
mod record;
mod report;
mod summary;
pub mod timeline;
mod writer;

pub(crate) use gather::Gatherer;
pub use gather::Stats;
pub(crate) use longshore_job::journal::now;
pub(crate) use record::Record;
pub use report::Report;
pub(crate) use writer::{Clock, Clocks};

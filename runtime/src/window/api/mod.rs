//! The public interface of windows: scoped epochs, calls by pointer, accessors, and the values and
//! requests that operations return.

mod accumulate;
mod allocation;
mod attach;
mod epoch;
mod fetched;
mod local;
mod notify;
mod raw;
mod request;
mod window;

pub use allocation::Allocation;
pub use attach::Attached;
pub use epoch::{Chain, Epoch, Passive};
pub use fetched::Fetched;
pub use local::Local;
pub use raw::Raw;
pub use request::{Buffers, Request};
pub use window::{Allocated, Window};

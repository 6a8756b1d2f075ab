//! The job of a process: its rank, the job's size, the shared segment, the secret and the options.
//!
//! [`Environment::from_env`] reads the environment that a launcher set up. `longshore run` provides
//! all of it. Other launchers provide rank and size by PMI-1 or PMIx, and the ranks agree on the
//! rest through the launcher's key-value store. Ranks on several hosts exchange their network
//! addresses through that store too.

pub(crate) use longshore_job::joining::{Order, Started, Wanted};
#[doc(inline)]
pub use longshore_job::{
    Activity, Checking, Environment, Error, OnDeath, Progress, Routes, Secret, Topic, Topics,
    UnknownWord, env, pmi,
};
pub(crate) use longshore_job::{
    Hosts, Ladder, Network, ROOM, adversary, architecture, checking, ladder, log_level, room,
    routes, threads,
};

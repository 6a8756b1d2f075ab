//! The settings of a rank, and where their values come from.

use longshore::job::env;
use longshore::job::{Checking, OnDeath, Progress, Routes};
use serde::Serialize;

/// A setting of a rank.
#[derive(Serialize)]
pub struct Setting {
    pub variable: &'static str,
    /// The option of `longshore run` that sets it.
    pub option: Option<&'static str>,
    /// The value that a program has which is started here without a launcher.
    pub value: String,
    pub source: Source,
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Environment,
    Default,
}

/// All settings, in the order of docs/hosts.md.
pub fn all() -> Vec<Setting> {
    let here = "the processors of the rank";
    let share = "the processors of the rank, divided by the ranks that share them";
    [
        (env::ROUTE, Some("--route"), Routes::default().to_string()),
        (env::PROCESSORS, None, here.to_owned()),
        (env::THREADS, None, share.to_owned()),
        (env::PROGRESS, Some("--progress"), Progress::default().to_string()),
        (env::CHECK, Some("--check"), Checking::default().to_string()),
        (env::EXPLAIN, Some("--explain"), "off".to_owned()),
        (env::FAST, None, "on".to_owned()),
        (env::ROOM, None, "64M".to_owned()),
        (env::ON_DEATH, Some("--on-death"), OnDeath::default().to_string()),
        (env::ADVERSARY, Some("--adversary"), "none".to_owned()),
        (env::ARCH, Some("--arch"), "native".to_owned()),
        (env::INTERFACE, None, "the first that isn't the loopback or a bridge".to_owned()),
        (env::PORTS, None, "any".to_owned()),
        (env::PMIX_LIBRARY, None, "the launcher's, or the system's".to_owned()),
        (env::ENCRYPT, Some("--encrypt"), "off".to_owned()),
        (env::FABRIC, Some("--fabric"), "tcp".to_owned()),
        (env::LIBFABRIC, None, "libfabric.so.1, of the system".to_owned()),
        (env::LOG, None, "off".to_owned()),
        (env::SILENCE, None, "20".to_owned()),
    ]
    .into_iter()
    .map(|(variable, option, default)| {
        let set = std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned());
        let source = if set.is_some() { Source::Environment } else { Source::Default };
        Setting { variable, option, value: set.unwrap_or(default), source }
    })
    .collect()
}

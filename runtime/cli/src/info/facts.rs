//! What `longshore info` finds out about this build on this machine.

use std::path::PathBuf;
use std::thread;

use longshore::endpoint;
use longshore_launcher::Limits;
use longshore_transport::{Segment, fabric, segment};
use serde::Serialize;
use shipable::arch::ByteOrder;
use shipable::{Architecture, Basic};

use super::settings::{self, Setting};

/// What `longshore info` tells, as text or as JSON.
#[derive(Serialize)]
pub struct Facts {
    pub version: &'static str,
    pub machine: Machine,
    /// The data representations. A rank can emulate those that aren't for buffers only.
    pub representations: Vec<Representation>,
    pub transports: Transports,
    pub settings: Vec<Setting>,
}

#[derive(Serialize)]
pub struct Machine {
    /// Its name among the representations.
    pub representation: &'static str,
    pub descriptor: String,
    /// The processors that this process may use.
    pub processors: usize,
    /// The processors whose time the control group grants; `None`: no limit.
    pub processor_limit: Option<f64>,
    /// The bytes of memory that the control group grants; `None`: no limit.
    pub memory_limit: Option<u64>,
}

/// A data representation, with sizes in bytes.
#[derive(Serialize)]
pub struct Representation {
    pub name: &'static str,
    pub descriptor: String,
    pub order: &'static str,
    pub long: u32,
    pub pointer: u32,
    pub wchar: u32,
    pub long_double: String,
    pub long_double_size: u32,
    /// Whether it is for files and buffers, so that no rank can have it.
    pub is_for_buffers: bool,
}

#[derive(Serialize)]
pub struct Transports {
    pub shm: Shm,
    pub fabric: Fabric,
}

#[derive(Serialize)]
pub struct Shm {
    /// Why there is none.
    pub error: Option<String>,
    /// The most ranks of a host.
    pub most_ranks: u32,
    pub range_bytes: u64,
}

#[derive(Serialize)]
pub struct Fabric {
    /// Why there is none, and what to do.
    pub error: Option<String>,
    /// libfabric's file.
    pub library: Option<PathBuf>,
    /// libfabric's version.
    pub version: Option<String>,
    /// The providers that Longshore can use here.
    pub providers: Vec<String>,
    /// By which endpoints hosts are reached, a line for each kind of host.
    pub endpoints: Vec<Reach>,
}

/// How a host of another representation is reached.
#[derive(Serialize)]
pub struct Reach {
    pub like: &'static str,
    pub endpoint: String,
    pub why: &'static str,
}

impl Facts {
    pub fn find() -> Facts {
        let native = Architecture::NATIVE;
        let limits = Limits::read();
        Facts {
            version: env!("CARGO_PKG_VERSION"),
            machine: Machine {
                representation: native.name(),
                descriptor: native.descriptor(),
                processors: thread::available_parallelism()
                    .map_or(1, |processors| processors.get()),
                processor_limit: limits.processors,
                memory_limit: limits.memory,
            },
            representations: Architecture::all().iter().map(Representation::of).collect(),
            transports: Transports {
                shm: Shm {
                    error: Segment::create(2).err().map(|error| error.to_string()),
                    most_ranks: segment::MAX_RANKS,
                    range_bytes: segment::GRANULE,
                },
                fabric: Fabric::find(),
            },
            settings: settings::all(),
        }
    }
}

impl Representation {
    fn of(architecture: &Architecture) -> Representation {
        let size = |basic: Basic| architecture.leaf(basic.into()).map_or(0, |layout| layout.size);
        let (width, format) = architecture.long_double();
        Representation {
            name: architecture.name(),
            descriptor: architecture.descriptor(),
            order: match architecture.order() {
                ByteOrder::Little => "little",
                ByteOrder::Big => "big",
            },
            long: size(Basic::Long),
            pointer: architecture.pointer().size.into(),
            wchar: size(Basic::Wchar),
            long_double: format!("{format:?}"),
            long_double_size: width.size.into(),
            is_for_buffers: matches!(architecture.name(), "external32" | "xdr"),
        }
    }
}

impl Fabric {
    fn find() -> Fabric {
        let found = match fabric::find() {
            Ok(found) => found,
            Err(error) => {
                let (providers, endpoints) = (Vec::new(), Vec::new());
                let error = Some(error.to_string());
                return Fabric { error, library: None, version: None, providers, endpoints };
            }
        };
        let mut endpoints: Vec<Reach> = Vec::new();
        for there in Architecture::all() {
            let (endpoint, why) = endpoint::choose("tcp", &Architecture::NATIVE, there);
            let endpoint = endpoint.to_string();
            // Representations with equal byte order and word sizes share one line.
            if !endpoints.iter().any(|shown| shown.endpoint == endpoint && shown.why == why) {
                endpoints.push(Reach { like: there.name(), endpoint, why });
            }
        }
        Fabric {
            error: None,
            library: Some(found.file),
            version: Some(found.version.to_string()),
            providers: found.providers,
            endpoints,
        }
    }
}

//! The messages of Perfetto's trace format that a trace has, with their numbers there. The format
//! is described at <https://perfetto.dev/docs/reference/trace-packet-proto>.

use prost::Message;

/// A packet. A file is a sequence of them, each as the field 1 of the message Trace.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Packet {
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    pub sequence: u32,
    #[prost(message, optional, tag = "11")]
    pub event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub interned: Option<Interned>,
    #[prost(uint32, tag = "13")]
    pub flags: u32,
    #[prost(message, optional, tag = "60")]
    pub track: Option<Track>,
}

/// The flag of a sequence's first packet: no interned name is known yet.
pub(super) const CLEARED: u32 = 1;
/// The flag of packets that use interned names.
pub(super) const INTERNED: u32 = 2;

/// A track: of a process, of a thread, or a row below one of them.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Track {
    #[prost(uint64, tag = "1")]
    pub uuid: u64,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub process: Option<Process>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<Thread>,
    #[prost(uint64, optional, tag = "5")]
    pub parent: Option<u64>,
    #[prost(string, optional, tag = "14")]
    pub description: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Process {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(string, tag = "6")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Thread {
    #[prost(int32, tag = "1")]
    pub pid: i32,
    #[prost(int64, tag = "2")]
    pub tid: i64,
    #[prost(string, tag = "5")]
    pub name: String,
}

/// An event on a track.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub annotations: Vec<Annotation>,
    #[prost(int32, tag = "9")]
    pub kind: i32,
    #[prost(uint64, tag = "11")]
    pub track: u64,
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flows: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub ending_flows: Vec<u64>,
}

/// The kinds of [`TrackEvent`].
pub(super) const BEGIN: i32 = 1;
pub(super) const END: i32 = 2;
pub(super) const INSTANT: i32 = 3;

/// A name and a value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Annotation {
    #[prost(uint64, tag = "1")]
    pub name: u64,
    #[prost(uint64, optional, tag = "3")]
    pub number: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub text: Option<String>,
    #[prost(uint64, optional, tag = "17")]
    pub interned_text: Option<u64>,
}

/// Names that later packets of the sequence give by their numbers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Interned {
    #[prost(message, repeated, tag = "3")]
    pub names: Vec<Name>,
    #[prost(message, repeated, tag = "29")]
    pub texts: Vec<Text>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Name {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(string, tag = "2")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Text {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub text: Vec<u8>,
}

/// A file of packets.
#[derive(Clone, PartialEq, Message)]
pub(super) struct File {
    #[prost(message, repeated, tag = "1")]
    pub packets: Vec<Packet>,
}

/// The names of annotations. Their numbers are their positions, from 1.
pub(super) const NAMES: [&str; 11] = [
    "window",
    "source",
    "waits for rank",
    "rank",
    "bytes",
    "route",
    "type",
    "operations",
    "number",
    "events",
    "clock",
];

/// The number of an annotation's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Named {
    Window = 1,
    Source = 2,
    Awaited = 3,
    Rank = 4,
    Bytes = 5,
    Route = 6,
    Datatype = 7,
    Operations = 8,
    Number = 9,
    Events = 10,
    Clock = 11,
}

impl Annotation {
    pub(super) fn of_number(name: Named, number: u64) -> Annotation {
        Annotation { name: name as u64, number: Some(number), ..Annotation::default() }
    }

    pub(super) fn of_text(name: Named, text: String) -> Annotation {
        Annotation { name: name as u64, text: Some(text), ..Annotation::default() }
    }

    pub(super) fn of_interned(name: Named, id: u32) -> Annotation {
        Annotation { name: name as u64, interned_text: Some(id.into()), ..Annotation::default() }
    }
}

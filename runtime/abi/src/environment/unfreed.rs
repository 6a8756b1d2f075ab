//! What exists at finalize and shouldn't: the reports of `--check`, worst first.

use std::collections::BTreeMap;

use longshore::job::Topic;

use crate::edge::handle::{self, Kind, Object, find};
use crate::edge::state::State;
use crate::request::Request;
use crate::request::unfinished::site;

/// A fault and its remedy. Those that are alike, at one line, are reported together.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    /// Its place in the list.
    rank: u8,
    what: &'static str,
    remedy: &'static str,
    site: String,
}

/// Reports all requests, messages and other objects that the program has left, under `--check`.
pub fn report(state: &State) {
    if !state.rank().is_checked() {
        return;
    }
    let mut all: BTreeMap<Found, usize> = BTreeMap::new();
    for (handle, kind, line) in handle::left() {
        let (rank, what, remedy) = match kind {
            Request::KIND => {
                let Ok(request) = find::<Request>(handle) else { continue };
                let (what, remedy) = request.unfinished();
                (if remedy.starts_with("wait") { 0 } else { 2 }, what, remedy)
            }
            Kind::Message => {
                let remedy = "receive by MPI_Mrecv or MPI_Imrecv what MPI_Mprobe has taken";
                (1, "a message was matched by a probe and never received", remedy)
            }
            // Rule 30 is about windows.
            Kind::Win | Kind::Draft | Kind::Described => continue,
            other => (3, unfreed(other), remedy(other)),
        };
        *all.entry(Found { rank, what, remedy, site: site(line) }).or_default() += 1;
    }
    let me = state.rank().world().rank();
    for (Found { rank, what, remedy, site }, count) in all {
        let (topic, word) = match rank {
            0 | 2 => (Topic::Requests, "requests"),
            1 => (Topic::Messages, "messages"),
            _ => (Topic::Notes, "note"),
        };
        let more = if count > 1 { format!(" ({count} of them)") } else { String::new() };
        let place = if rank == 1 { "matched" } else { "made" };
        state.rank().report(topic, &format!("{what} {site}"), || {
            Some(format!(
                "check: {word}: {what}, at rank {me}{more}\n\
                 check:   {place} at {site}\ncheck:   {remedy}\n"
            ))
        });
    }
}

fn unfreed(kind: Kind) -> &'static str {
    match kind {
        Kind::Comm => "a communicator was never freed",
        Kind::Type | Kind::ForeignType => "a datatype was never freed",
        Kind::Group => "a group was never freed",
        Kind::Info => "an info object was never freed",
        Kind::Op => "an operation was never freed",
        Kind::Errhandler => "an error handler was never freed",
        Kind::Session => "a session was never finalized",
        Kind::File => "a file was never closed",
        _ => "an object was never freed",
    }
}

fn remedy(kind: Kind) -> &'static str {
    match kind {
        Kind::Comm => "call MPI_Comm_free or MPI_Comm_disconnect",
        Kind::Type => "call MPI_Type_free",
        Kind::Group => "call MPI_Group_free",
        Kind::Info => "call MPI_Info_free",
        Kind::Op => "call MPI_Op_free",
        Kind::Errhandler => "call MPI_Errhandler_free",
        Kind::Session => "call MPI_Session_finalize",
        Kind::File => "call MPI_File_close",
        _ => "free it",
    }
}

//! The PMI-1 server of the launcher: a pure state machine that takes lines and returns replies.
//!
//! It also keeps the names of ports, and takes orders for processes, in lines that
//! [`joining`](longshore_job::joining) describes. It refuses those of PMI-1 for both.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use longshore_job::Hosts;
use longshore_job::joining::{NAME_LIMIT, ORDER_LIMIT, Order, bytes, digits, text};
use longshore_job::pmi::{ALREADY, STORE, word};

/// The longest line that a rank may send.
pub(super) const LINE_LIMIT: usize = 4096;
const KEY_LIMIT: usize = 64;
const VALUE_LIMIT: usize = 1024;

/// The bytes that a rank sent, from which its lines are taken.
#[derive(Default)]
pub(super) struct Lines(Vec<u8>);

impl Lines {
    /// Appends received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next complete line. An overlong line becomes an empty one, which PMI-1 doesn't have, so
    /// that the server refuses it.
    pub(super) fn next(&mut self) -> Option<String> {
        let Some(end) = self.0.iter().position(|&byte| byte == b'\n') else {
            if self.0.len() <= LINE_LIMIT {
                return None;
            }
            self.0.clear();
            return Some(String::new());
        };
        let line = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0.drain(..=end);
        Some(line)
    }
}

/// The stage of a rank's life in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The rank has not called init. Its program may not use a job at all.
    Outside,
    /// The rank has called init, and must call finalize before it ends.
    Joined,
    /// The rank has called finalize.
    Finalized,
    /// The rank's process has ended.
    Dead,
}

/// The launcher's reaction to a line, or to the death of a rank.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Send this line back.
    Reply(String),
    /// Send nothing yet: the barrier is incomplete.
    Wait,
    /// The barrier is complete: send this line to each of these ranks.
    Release(Vec<u32>, String),
    /// Start these processes.
    Start(Order),
    /// End the job with this code.
    Abort(i32),
    /// The line isn't PMI-1.
    Malformed,
}

/// The state of the PMI-1 server of one job.
pub(super) struct Server {
    standings: Vec<Standing>,
    /// The number of each rank's part on the command line: PMI's appnum.
    parts: Vec<u32>,
    /// The key-value store.
    store: HashMap<String, String>,
    /// The ranks that wait at the barrier.
    waiting: Vec<u32>,
    /// The orders of ranks whose last piece hasn't arrived.
    orders: HashMap<u32, Vec<u8>>,
    /// The published ports by their names, each with the rank that published it.
    names: BTreeMap<String, (String, u32)>,
}

impl Server {
    /// A server for ranks of the parts `parts`, which run on `hosts`.
    pub(super) fn new(parts: Vec<u32>, hosts: &Hosts) -> Server {
        // Ranks that find no mapping compare the names of their hosts.
        let mapping = Some(mapping(&hosts.runs(parts.len() as u32)));
        let mapping = mapping.filter(|mapping| mapping.len() <= VALUE_LIMIT);
        Server {
            standings: vec![Standing::Outside; parts.len()],
            parts,
            store: mapping
                .map(|mapping| ("PMI_process_mapping".to_owned(), mapping))
                .into_iter()
                .collect(),
            waiting: Vec::new(),
            orders: HashMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// Adds ranks of these programs, which a rank had started.
    pub(super) fn add(&mut self, programs: impl IntoIterator<Item = u32>) {
        self.parts.extend(programs);
        self.standings.resize(self.parts.len(), Standing::Outside);
    }

    pub(super) fn standing(&self, rank: u32) -> Standing {
        self.standings[rank as usize]
    }

    /// The lowest rank with this standing.
    pub(super) fn find(&self, standing: Standing) -> Option<u32> {
        self.standings.iter().position(|&each| each == standing).map(|rank| rank as u32)
    }

    /// Records the death of a rank. If a barrier waited only for this rank, it completes without
    /// it.
    pub(super) fn handle_death(&mut self, rank: u32) -> Answer {
        self.standings[rank as usize] = Standing::Dead;
        self.orders.remove(&rank);
        self.names.retain(|_, (_, by)| *by != rank);
        self.waiting.retain(|&waiting| waiting != rank);
        self.release()
    }

    /// Handles a line from `rank`, without its line end.
    pub(super) fn handle_line(&mut self, rank: u32, line: &str) -> Answer {
        let size = self.standings.len();
        let standing = &mut self.standings[rank as usize];
        let reply = match word(line, "cmd") {
            Some("init") if word(line, "pmi_version") != Some("1") => {
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1 msg=version".to_owned()
            }
            Some("init") if *standing != Standing::Outside => {
                format!("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1 msg={ALREADY}")
            }
            Some("init") => {
                *standing = Standing::Joined;
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned()
            }
            Some("get_maxes") => format!(
                "cmd=maxes rc=0 kvsname_max=256 keylen_max={KEY_LIMIT} vallen_max={VALUE_LIMIT}"
            ),
            Some("get_appnum") => format!("cmd=appnum rc=0 appnum={}", self.parts[rank as usize]),
            Some("get_universe_size") => format!("cmd=universe_size rc=0 size={size}"),
            Some("get_my_kvsname") => format!("cmd=my_kvsname rc=0 kvsname={STORE}"),
            Some("put") => self.put(line),
            Some("get") => self.get(line),
            Some("barrier_in") => {
                if !self.waiting.contains(&rank) {
                    self.waiting.push(rank);
                }
                return self.release();
            }
            Some("finalize") => {
                *standing = Standing::Finalized;
                "cmd=finalize_ack rc=0".to_owned()
            }
            Some("longshore_publish") => self.publish(rank, line),
            Some("longshore_unpublish") => self.unpublish(line),
            Some("longshore_lookup") => self.look_up(line),
            Some("longshore_start") => return self.take_order(rank, line),
            Some("abort") => {
                let code = word(line, "exitcode").and_then(|code| code.parse().ok());
                return Answer::Abort(code.unwrap_or(1));
            }
            _ => return Answer::Malformed,
        };
        Answer::Reply(reply)
    }

    /// Takes a piece of an order.
    fn take_order(&mut self, rank: u32, line: &str) -> Answer {
        let Some(piece) = word(line, "order").and_then(bytes) else { return Answer::Malformed };
        let order = self.orders.entry(rank).or_default();
        if order.len() + piece.len() > ORDER_LIMIT {
            return Answer::Malformed;
        }
        order.extend(piece);
        if word(line, "more") == Some("1") {
            return Answer::Wait;
        }
        let order = self.orders.remove(&rank).unwrap_or_default();
        let order = shipable::codec::decode(&order, ORDER_LIMIT);
        order.map_or(Answer::Malformed, Answer::Start)
    }

    fn publish(&mut self, rank: u32, line: &str) -> String {
        let value = |key| word(line, key).and_then(text).filter(|text| text.len() <= NAME_LIMIT);
        let (Some(name), Some(port)) = (value("name"), value("port")) else {
            return "cmd=longshore_published rc=-1".to_owned();
        };
        if self.names.contains_key(&name) {
            return "cmd=longshore_published rc=1".to_owned();
        }
        self.names.insert(name, (port, rank));
        "cmd=longshore_published rc=0".to_owned()
    }

    fn unpublish(&mut self, line: &str) -> String {
        let name = word(line, "name").and_then(text);
        let known = name.is_some_and(|name| self.names.remove(&name).is_some());
        format!("cmd=longshore_unpublished rc={}", u8::from(!known))
    }

    fn look_up(&self, line: &str) -> String {
        let name = word(line, "name").and_then(text);
        match name.and_then(|name| self.names.get(&name)) {
            Some((port, _)) => format!("cmd=longshore_found rc=0 port={}", digits(port.as_bytes())),
            None => "cmd=longshore_found rc=1".to_owned(),
        }
    }

    fn put(&mut self, line: &str) -> String {
        let (Some(key), Some(value)) = (word(line, "key"), word(line, "value")) else {
            return "cmd=put_result rc=-1 msg=key_and_value_wanted".to_owned();
        };
        if key.len() > KEY_LIMIT || value.len() > VALUE_LIMIT {
            return "cmd=put_result rc=-1 msg=too_long".to_owned();
        }
        self.store.insert(key.to_owned(), value.to_owned());
        "cmd=put_result rc=0 msg=success".to_owned()
    }

    fn get(&self, line: &str) -> String {
        let mut reply = "cmd=get_result ".to_owned();
        let written = match word(line, "key").and_then(|key| self.store.get(key)) {
            Some(value) => write!(reply, "rc=0 msg=success value={value}"),
            None => write!(reply, "rc=-1 msg=key_not_found value=unknown"),
        };
        written.map_or_else(|_| unreachable!("a String takes everything"), |()| reply)
    }

    fn release(&mut self) -> Answer {
        let living = self.standings.iter().filter(|&&standing| standing != Standing::Dead).count();
        if self.waiting.is_empty() || self.waiting.len() < living {
            return Answer::Wait;
        }
        let released = std::mem::take(&mut self.waiting);
        Answer::Release(released, "cmd=barrier_out rc=0".to_owned())
    }
}

/// The value of `PMI_process_mapping`, from which MPICH's ranks learn which ranks share a host.
/// Each run of consecutive ranks has a node and their number.
///
/// Each `(a,b,c)` stands for `b` consecutive nodes of `c` ranks each, starting with node `a`.
fn mapping(runs: &[(u32, u32)]) -> String {
    let mut mapping = "(vector".to_owned();
    for alike in runs.chunk_by(|a, b| a.1 == b.1 && a.0 + 1 == b.0) {
        let (node, ranks) = alike[0];
        // A String takes everything.
        let _ = write!(mapping, ",({node},{},{ranks})", alike.len());
    }
    mapping + ")"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(server: &mut Server, rank: u32, line: &str) -> String {
        match server.handle_line(rank, line) {
            Answer::Reply(reply) => reply,
            answer => panic!("{line}: {answer:?}"),
        }
    }

    #[test]
    fn a_rank_joins_once_and_finalizes() {
        let mut server = Server::new(vec![0, 1], &Hosts::one());
        assert_eq!(server.standing(1), Standing::Outside);
        assert!(reply(&mut server, 1, "cmd=init pmi_version=1 pmi_subversion=1").ends_with("rc=0"));
        assert_eq!(server.standing(1), Standing::Joined);
        assert_eq!(server.find(Standing::Outside), Some(0));
        assert!(reply(&mut server, 1, "cmd=init pmi_version=1 pmi_subversion=1").contains("rc=-1"));
        assert!(reply(&mut server, 1, "cmd=get_appnum").ends_with("appnum=1"));
        assert!(reply(&mut server, 1, "cmd=get_universe_size").ends_with("size=2"));
        reply(&mut server, 1, "cmd=finalize");
        assert_eq!(server.standing(1), Standing::Finalized);
        assert!(reply(&mut server, 0, "cmd=init pmi_version=2").contains("rc=-1"));
    }

    #[test]
    fn a_value_put_by_one_rank_is_found_by_another() {
        let mut server = Server::new(vec![0; 2], &Hosts::one());
        assert!(reply(&mut server, 0, "cmd=get kvsname=longshore key=a").contains("rc=-1"));
        assert!(
            reply(&mut server, 0, "cmd=put kvsname=longshore key=a value=b=c").contains("rc=0")
        );
        assert!(reply(&mut server, 1, "cmd=get kvsname=longshore key=a").ends_with("value=b=c"));
        assert!(reply(&mut server, 0, "cmd=put key=a").contains("rc=-1"));
        let long = format!("cmd=put key={} value=1", "k".repeat(65));
        assert!(reply(&mut server, 0, &long).contains("rc=-1"));
    }

    #[test]
    fn the_process_mapping_lists_the_ranks_of_each_host() {
        let value = |of: Vec<u32>| {
            let mut server = Server::new(vec![0; of.len()], &Hosts::new(of));
            reply(&mut server, 0, "cmd=get kvsname=longshore key=PMI_process_mapping")
        };
        for (of, expected) in [
            (vec![0, 0, 0], "(vector,(0,1,3))"),
            (vec![0, 0, 1, 1, 2, 3, 3], "(vector,(0,2,2),(2,1,1),(3,1,2))"),
            (vec![0, 1, 2, 0, 1, 0], "(vector,(0,3,1),(0,2,1),(0,1,1))"),
        ] {
            let reply = value(of);
            assert!(reply.ends_with(&format!("value={expected}")), "{reply}");
        }
        // PMI-1 has no room for this one.
        let reply = value((0..1000).map(|rank| rank % 2).collect());
        assert!(reply.contains("rc=-1"), "{reply}");
    }

    #[test]
    fn a_barrier_waits_for_every_living_rank() {
        let mut server = Server::new(vec![0; 3], &Hosts::one());
        assert_eq!(server.handle_line(0, "cmd=barrier_in"), Answer::Wait);
        assert_eq!(server.handle_line(0, "cmd=barrier_in"), Answer::Wait);
        assert_eq!(server.handle_line(1, "cmd=barrier_in"), Answer::Wait);
        let release =
            |ranks: &[u32]| Answer::Release(ranks.to_vec(), "cmd=barrier_out rc=0".into());
        assert_eq!(server.handle_death(2), release(&[0, 1]));
        assert_eq!(server.handle_line(1, "cmd=barrier_in"), Answer::Wait);
        assert_eq!(server.handle_death(1), Answer::Wait);
        assert_eq!(server.handle_line(0, "cmd=barrier_in"), release(&[0]));
    }

    #[test]
    fn an_abort_has_a_code_and_unknown_lines_are_malformed() {
        let mut server = Server::new(vec![0], &Hosts::one());
        assert_eq!(server.handle_line(0, "cmd=abort exitcode=7"), Answer::Abort(7));
        assert_eq!(server.handle_line(0, "cmd=abort"), Answer::Abort(1));
        assert_eq!(server.handle_line(0, "mcmd=spawn"), Answer::Malformed);
        assert_eq!(server.handle_line(0, ""), Answer::Malformed);
    }
}

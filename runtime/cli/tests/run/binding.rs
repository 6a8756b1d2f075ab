//! The processors on which ranks may run.

use std::fs;

use super::support::sh;

/// A rank's number and the processors on which it may run.
const SHOW: &str = "while read -r name value; do \
    [ $name != Cpus_allowed_list: ] || echo $PMI_RANK $value; done </proc/self/status";

/// The processors on which this test, and so a launcher, may run.
fn processors() -> Vec<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let numbers = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    };
    let numbers = list.trim().split(',').flat_map(numbers);
    numbers.map(|number| number.to_string()).collect()
}

fn shown(options: &[&str]) -> Vec<String> {
    let mut lines = sh(options, SHOW).lines();
    lines.sort();
    lines
}

/// What is shown of processors that one rank may use.
fn all() -> String {
    shown(&["--bind", "none"]).remove(0).split_off(2)
}

#[test]
fn one_rank_has_all_processors() {
    assert_eq!(shown(&[]), shown(&["--bind", "none"]));
    assert_eq!(shown(&["--bind", "core"]), shown(&["--bind", "none"]));
}

#[test]
fn ranks_share_the_processors_if_they_fit() {
    let ranks = processors().len();
    // Processors of one core stay together.
    let siblings = fs::read_to_string("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    if ranks < 2 || siblings.is_ok_and(|list| list.contains([',', '-'])) {
        return;
    }
    let each: Vec<String> =
        (0..).zip(processors()).map(|(rank, number)| format!("{rank} {number}")).collect();
    let count = ranks.to_string();
    assert_eq!(shown(&["-n", &count]), each);
    let more = (ranks + 1).to_string();
    let all = all();
    assert!(shown(&["-n", &more]).iter().all(|line| line.ends_with(&format!(" {all}"))));
    sh(&["--bind", "core", "-n", &more], "true").expect(
        1,
        &[&format!(
            "longshore: {more} ranks can't be bound to {ranks} cores: use --bind none, or fewer ranks"
        )],
    );
}

#[test]
fn listed_processors_are_assigned_in_turn() {
    let (first, last) = (&processors()[0], processors().pop().unwrap());
    let list = format!("{first},{last}");
    let expected =
        [format!("0 {first}"), format!("1 {last}"), format!("2 {first}"), format!("3 {last}")];
    assert_eq!(shown(&["--bind", &list, "-n", "4"]), expected);
    sh(&["--bind", "1000"], "true").expect(
        1,
        &[&format!(
            "longshore: --bind names processor 1000, and the processors of this job are {}",
            all()
        )],
    );
}

#[test]
fn a_verbose_launcher_tells_where_ranks_run() {
    let first = &processors()[0];
    let told = sh(&["-v", "--bind", first, "-n", "2"], "true");
    told.expect(
        0,
        &[
            &format!("longshore: rank 0 runs on processors {first}"),
            &format!("longshore: rank 1 runs on processors {first}"),
        ],
    );
    // Through an agent.
    let hosts = ["--host", "1:1,2:1", "--start", "env -i nice -n"];
    let told = sh(&[&hosts[..], &["-v", "--bind", first]].concat(), SHOW);
    assert_eq!(told.status, 0, "{}", told.stderr);
    for (rank, host) in [(0, 1), (1, 2)] {
        let line = format!("longshore: rank {rank} on host {host} runs on processors {first}\n");
        assert!(told.stderr.contains(&line), "{}", told.stderr);
        assert!(told.lines().contains(&format!("{rank} {first}")));
    }
}

#[test]
fn ranks_know_how_many_processors_all_of_them_have() {
    let told = sh(&["--bind", &processors()[0], "-n", "2"], "echo $LONGSHORE_PROCESSORS").lines();
    let all = std::thread::available_parallelism().unwrap().to_string();
    assert_eq!(told, [&*all, &*all]);
}

//! Counters and traces of jobs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use longshore::job::env;
use longshore::{Info, LockType, Op, Pointed, Window, c};
use longshore_launcher::timeline::{RankLine, Timeline};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use super::role;
use super::support::{Finished, run, start};

/// The time for which rank 1 is late.
const LATE: Duration = Duration::from_millis(300);

/// Puts of rank 0 to rank 1.
const PUTS: u64 = 500;

/// Rank 0 puts, accumulates and gets, and all ranks wait for rank 1 in a fence and a barrier.
pub fn late() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), Info::default());
    let mut window = Window::allocate(world, 8 << 10, 8, &info).unwrap();
    window.set_name("field");
    let double = rank.type_of::<f64>().unwrap();
    if world.rank() == 0 {
        let put = window.lock(1, LockType::Exclusive, |epoch| {
            (0..PUTS as i64).try_for_each(|at| epoch.put(&[1.5], 1, at, 1, &double))?;
            epoch.accumulate(&[1.0, 2.0], 1, 0, 2, &double, Op::Sum)?;
            epoch.fetch_and_op(1.0, 1, 0, Op::Sum)?.wait().map(drop)
        });
        put.unwrap();
        let mut all = vec![0.0; 1000];
        window.lock(1, LockType::Shared, |epoch| epoch.get(&mut all, 1, 0, 1000, &double)).unwrap();
    }
    world.barrier().unwrap();
    if world.rank() == 1 {
        thread::sleep(LATE);
    }
    window.fence(|_| Ok(())).unwrap();
    if world.rank() == 1 && std::env::var_os("DIES").is_some() {
        // It dies within its own work, after what it has recorded.
        nix::sys::signal::raise(Signal::SIGKILL).unwrap();
    }
    world.barrier().unwrap();
    window.free().unwrap();
    rank.finalize().unwrap();
}

/// Rank 0 puts and flushes, from two lines in turn and then many times from the second.
pub fn flushes() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), Info::default());
    let window = Window::allocate(world, 8, 1, &info).unwrap();
    let byte = rank.type_of::<u8>().unwrap();
    if world.rank() == 0 {
        let flushes = window.lock_all(|epoch| {
            for turn in 0..PUTS {
                if turn < PUTS / 10 {
                    epoch.flush(1, |epoch| epoch.put(&[1u8], 1, 0, 1, &byte))?; // first
                }
                epoch.flush(1, |epoch| epoch.put(&[2u8], 1, 1, 1, &byte))?; // second
            }
            Ok(())
        });
        flushes.unwrap();
    }
    window.free().unwrap();
    rank.finalize().unwrap();
}

/// Two ranks combine ints. Rank 0 puts ints, and rank 1 sends some. If WIDE is set, they combine
/// long doubles, and rank 0 puts one.
pub fn kinds() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), Info::default());
    let window = Window::allocate(world, 8 << 10, 1, &info).unwrap();
    let (int, wide) = (rank.type_of::<i32>().unwrap(), rank.type_of::<c::LongDouble>().unwrap());
    let is_wide = std::env::var_os("WIDE").is_some();
    let (mut sums, half) = ([0; 1000], [c::LongDouble::from(0.5)]);
    world.allreduce(&[world.rank(); 1000], &mut sums, Op::Sum).unwrap();
    assert_eq!(sums, [1; 1000]);
    if world.rank() == 0 {
        let put = window.lock(1, LockType::Exclusive, |epoch| {
            epoch.put(&[7i32; 500], 1, 0, 500, &int)?;
            match is_wide {
                true => epoch.put(&half, 1, 4096, 1, &wide),
                false => Ok(()),
            }
        });
        put.unwrap();
        let mut numbers = [0; 100];
        world.recv(&mut numbers, 1, 0).unwrap();
        assert_eq!(numbers, [9; 100]);
    } else {
        world.send(&[9; 100], 0, 0).unwrap();
    }
    if is_wide {
        let mine = [c::LongDouble::from(f64::from(world.rank())); 10];
        let mut sums = [c::LongDouble::from(0.0); 10];
        world.allreduce(&mine, &mut sums, Op::Sum).unwrap();
        assert_eq!(sums[9].to_f64().unwrap(), 1.0);
    }
    window.free().unwrap();
    rank.finalize().unwrap();
}

/// Rank 0 puts into a variable of rank 1, which waits meanwhile, and adds to it.
#[allow(unsafe_code)] // Only memory by pointer stays on a page with other data.
pub fn variable() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), Info::default());
    let mut variable = Box::new([0.0f64; 2]);
    // SAFETY: the variable outlives the window, and nothing accesses it by another path meanwhile.
    let memory = unsafe { Pointed::new(variable.as_mut_ptr().cast(), 16) };
    let window = Window::create(world, memory, 8, &info).unwrap();
    window.set_name("field");
    let double = rank.type_of::<f64>().unwrap();
    if world.rank() == 0 {
        let values: Vec<_> = (0..PUTS).map(|turn| turn as f64).collect();
        let operate = window.lock(1, LockType::Shared, |epoch| {
            for value in values.chunks(1) {
                epoch.flush(1, |epoch| epoch.put(value, 1, 1, 1, &double))?;
                assert_eq!(epoch.fetch_and_op(1.0, 1, 0, Op::Sum)?.wait()?, value[0]);
            }
            Ok(())
        });
        operate.unwrap();
    }
    world.barrier().unwrap();
    window.free().unwrap();
    if world.rank() == 1 {
        assert_eq!(*variable, [PUTS as f64, (PUTS - 1) as f64]);
    }
    rank.finalize().unwrap();
}

/// Rank 1 never comes to the fence that the others make after a put. If there is a file GATE, it
/// dies.
pub fn hangs() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), Info::default());
    let mut window = Window::allocate(world, 8, 1, &info).unwrap();
    let byte = rank.type_of::<u8>().unwrap();
    if world.rank() == 1 {
        let gate = std::env::var_os("GATE").unwrap();
        while !PathBuf::from(&gate).exists() {
            thread::sleep(Duration::from_millis(10));
        }
        nix::sys::signal::raise(Signal::SIGKILL).unwrap();
    }
    let shared = LockType::Shared;
    window.lock(2, shared, |epoch| epoch.put(&[1u8], 2, 0, 1, &byte)).unwrap();
    window.fence(|_| Ok(())).unwrap(); // hangs
    panic!("a rank is missing");
}

/// A file of this process.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

fn run_late(options: &[&str]) -> Finished {
    let options = options.iter().map(|&word| word.to_owned());
    run(&options.chain(role("late")).collect::<Vec<_>>())
}

fn json(path: &PathBuf) -> Value {
    let report = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    fs::remove_file(path).unwrap();
    report
}

/// The line of this file that has a text.
fn line_of(text: &str) -> u64 {
    let lines: Vec<&str> = include_str!("observed.rs").lines().collect();
    lines.iter().position(|line| line.contains(text)).unwrap() as u64 + 1
}

/// The calls of a name in the report on a rank.
fn calls<'a>(rank: &'a Value, name: &str) -> Vec<&'a Value> {
    rank["calls"].as_array().unwrap().iter().filter(|call| call["call"] == name).collect()
}

/// The operations of rank 0 on rank 1, each as kind, route, the size class, count and bytes.
fn operations(report: &Value) -> Vec<(String, String, Option<u64>, u64, u64)> {
    let windows = report["ranks"][0]["windows"].as_array().unwrap();
    assert_eq!((windows.len(), &windows[0]["name"]), (1, &Value::from("field")), "{report:#}");
    let targets = windows[0]["targets"].as_array().unwrap();
    assert_eq!((targets.len(), &targets[0]["rank"]), (1, &Value::from(1)));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = targets[0]["operations"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let (count, bytes) = (row["count"].as_u64().unwrap(), row["bytes"].as_u64().unwrap());
        (text(&row["kind"]), text(&row["route"]), row["at_most_bytes"].as_u64(), count, bytes)
    };
    rows.map(row).collect()
}

#[test]
fn every_operation_is_counted_by_kind_route_and_size() {
    // An adversary sends all operations by message.
    let best = if std::env::var_os(env::ADVERSARY).is_none() { "direct" } else { "message" };
    for (options, route) in [(&[][..], best), (&["--route", "message"], "message")] {
        let path = file("counted.json");
        let stats = format!("--stats={}", path.display());
        let finished = run_late(&[&["-n", "2", &stats], options].concat());
        finished.expect(0, &[]);
        let report = json(&path);
        let row = |kind: &str, most, count, bytes| {
            (kind.to_owned(), route.to_owned(), Some(most), count, bytes)
        };
        let expected = [
            row("put", 8, PUTS, 8 * PUTS),
            row("get", 64 << 10, 1, 8000),
            row("accumulate", 64, 1, 16),
            row("fetch_and_op", 8, 1, 8),
        ];
        assert_eq!(operations(&report), expected);
        let get = &report["ranks"][0]["windows"][0]["targets"][0]["operations"][1];
        assert!(get["time_ns"].as_u64() > Some(0), "{get}");
        let sent = report["ranks"][0]["peers"][0]["sent_frames"].as_u64().unwrap();
        assert_eq!(sent > PUTS, route == "message", "{sent} frames");
        assert!(report["ranks"].as_array().unwrap().iter().all(|rank| rank["complete"] == true));
    }
}

#[test]
fn flushes_are_counted_by_source_line_however_short_they_are() {
    let path = file("flushes.json");
    let stats = format!("--stats={}", path.display());
    let words = ["-n", "2", "--route", "message", &stats].map(str::to_owned);
    run(&words.into_iter().chain(role("flushes")).collect::<Vec<_>>()).expect(0, &[]);
    let report = json(&path);
    let flushes = calls(&report["ranks"][0], "flush");
    let line = |call: &Value| call["line"].as_u64().unwrap();
    let mut counts: Vec<_> = flushes.iter().map(|call| (line(call), &call["count"])).collect();
    counts.sort_by_key(|(line, _)| *line);
    let counts: Vec<_> = counts.into_iter().map(|(_, count)| count.as_u64().unwrap()).collect();
    assert_eq!(counts, [PUTS / 10, PUTS], "{report:#}");
}

#[test]
fn operations_by_mailbox_are_counted_and_send_no_frames() {
    for (route, by_mailbox) in [("message", false), ("best", true)] {
        let path = file("variable.json");
        let stats = format!("--stats={}", path.display());
        let words = ["-n", "2", "--route", route, &stats].map(str::to_owned);
        run(&words.into_iter().chain(role("variable")).collect::<Vec<_>>()).expect(0, &[]);
        let report = json(&path);
        let row = |kind: &str| (kind.to_owned(), "message".to_owned(), Some(8), PUTS, 8 * PUTS);
        assert_eq!(operations(&report), [row("put"), row("fetch_and_op")]);
        // Ranks that share a processor, and an adversary's, use no mailbox.
        let can = thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
            && std::env::var_os(env::ADVERSARY).is_none();
        let sent = report["ranks"][0]["peers"][0]["sent_frames"].as_u64().unwrap();
        assert_eq!(sent < 2 * PUTS, by_mailbox && can, "{sent} frames");
    }
}

/// The kinds of data's ranks, and the bytes that were copied and converted, of all ranks.
type Between = (String, Option<String>, u64, u64);

fn between(report: &Value) -> Vec<Between> {
    let ranks = report["ranks"].as_array().unwrap();
    let all = ranks.iter().flat_map(|rank| rank["kinds"].as_array().unwrap());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let row = |row: &Value| {
        let bytes = |name: &str| row[name].as_u64().unwrap();
        let from = text(&row["from"]).unwrap();
        (from, text(&row["to"]), bytes("copied_bytes"), bytes("converted_bytes"))
    };
    let mut rows: Vec<_> = all.map(row).collect();
    rows.sort();
    rows
}

#[test]
fn data_between_kinds_are_counted_as_copied_or_converted() {
    let row = |from: &str, to: Option<&str>, copied, converted| {
        (from.to_owned(), to.map(str::to_owned), copied, converted)
    };
    let (one, other) = ("x86-64", "aarch64");
    let arch = format!("{one},{other}");
    for wide in [false, true] {
        let path = file("kinds.json");
        let stats = format!("--stats={}", path.display());
        let words = ["-n", "2", "--arch", &arch, &stats].map(str::to_owned);
        let mut words: Vec<_> = words.into_iter().chain(role("kinds")).collect();
        if wide {
            words.splice(0..0, ["--env", "WIDE=1"].map(str::to_owned));
        }
        run(&words).expect(0, &[]);
        let report = json(&path);
        let [put, combined] = if wide { [16, 320] } else { [0, 0] };
        let due = [
            row(other, None, 8000, combined),
            row(other, Some(one), 400, 0),
            row(one, None, 8000, combined),
            row(one, Some(other), 2000, put),
        ];
        assert_eq!(between(&report), due, "{report:#}");
    }
    // Of ranks of one kind, nothing is told apart.
    let path = file("kinds.json");
    let stats = format!("--stats={}", path.display());
    let arch = format!("{other},{other}");
    let words = ["-n", "2", "--arch", &arch, &stats].map(str::to_owned);
    run(&words.into_iter().chain(role("kinds")).collect::<Vec<_>>()).expect(0, &[]);
    assert_eq!(between(&json(&path)), []);
}

#[test]
fn the_summary_has_the_data_between_kinds() {
    let words = ["-n", "2", "--arch", "x86-64,aarch64", "--env", "WIDE=1", "--stats"];
    let words: Vec<_> = words.map(str::to_owned).into_iter().chain(role("kinds")).collect();
    let finished = run(&words);
    assert_eq!(finished.status, 0, "{}", finished.stderr);
    for line in [
        "data between kinds                         copied converted",
        "  aarch64, collective calls              7.81 KiB     320 B",
        "  x86-64 -> aarch64                      1.95 KiB      16 B",
    ] {
        assert!(finished.stderr.lines().any(|it| it == line), "{}", finished.stderr);
    }
}

#[test]
fn frames_of_an_unlike_rank_are_conversions() {
    let path = file("unlike.json");
    let stats = format!("--stats={}", path.display());
    run_late(&["-n", "2", "--arch", "native,s390x", &stats]).expect(0, &[]);
    let report = json(&path);
    let converted = |rank: usize| report["ranks"][rank]["peers"][0]["converted_frames"].as_u64();
    // Rank 1 gets the puts; rank 0 gets answers.
    assert!(converted(1) >= Some(PUTS) && converted(0) > Some(0), "{report:#}");
    assert!(report["ranks"][0]["forms_shipped"].as_u64() > Some(0));
}

#[test]
fn the_longest_wait_has_its_source_line_and_the_late_rank() {
    let path = file("late.json");
    let stats = format!("--stats={}", path.display());
    run_late(&["-n", "3", &stats]).expect(0, &[]);
    let report = json(&path);
    for rank in [0, 2] {
        let fences = calls(&report["ranks"][rank], "fence");
        let [fence] = fences[..] else { panic!("{report:#}") };
        assert!(fence["file"].as_str().unwrap().ends_with("observed.rs"), "{fence}");
        assert_eq!(fence["line"].as_u64(), Some(line_of("window.fence(|_| Ok(())).unwrap();")));
        assert!(fence["longest_ns"].as_u64() >= Some(LATE.as_nanos() as u64 / 2), "{fence}");
        assert_eq!(fence["waited_for"][0]["rank"], 1, "{fence}");
    }
}

#[test]
fn the_summary_is_short_and_begins_with_the_longest_wait() {
    let finished = run_late(&["-n", "3", "--stats"]);
    assert_eq!(finished.status, 0, "{}", finished.stderr);
    let lines: Vec<&str> = finished.stderr.lines().collect();
    assert!(lines[0].starts_with("longshore: 3 of 3 ranks, "), "{lines:?}");
    assert!(lines[2].contains("fence, window 1") && lines[2].contains("rank 1: "), "{lines:?}");
    assert!(lines[3].contains("observed.rs:"), "{lines:?}");
    assert!(lines.len() <= 24 && lines.iter().all(|line| line.len() <= 120), "{lines:?}");
}

/// The trace of a job.
fn trace(name: &str, options: &[&str], status: i32) -> Timeline {
    let path = file(name);
    let finished = run_late(&[options, &["--trace", path.to_str().unwrap()]].concat());
    assert_eq!(finished.status, status, "{}", finished.stderr);
    let timeline = Timeline::read(&path).unwrap();
    fs::remove_file(path).unwrap();
    timeline
}

/// Whether a rank's longest call is the fence in which it waited for rank 1.
fn waited_for_rank_1(line: &RankLine) -> bool {
    let longest = line.calls.iter().max_by_key(|call| call.nanos()).unwrap();
    longest.name == "fence" && longest.awaited == Some(1) && longest.source.contains("observed.rs:")
}

#[test]
fn a_trace_has_calls_epochs_and_operations_of_every_rank() {
    let timeline = trace("job.trace", &["-n", "3"], 0);
    assert_eq!(timeline.ranks.iter().map(|line| line.rank).collect::<Vec<_>>(), [0, 1, 2]);
    assert!([0, 2].iter().all(|&rank| waited_for_rank_1(&timeline.ranks[rank])), "{timeline:#?}");
    let first = &timeline.ranks[0];
    assert_eq!((first.operations, first.dropped, first.cut), (PUTS + 3, 0, false));
    let epochs: Vec<&str> = first.epochs.iter().map(|epoch| epoch.name.as_str()).collect();
    assert_eq!(epochs, ["lock epoch", "lock epoch", "fence epoch"]);
    let (begin, end) = timeline.times();
    assert!(end - begin >= LATE.as_nanos() as u64);
}

#[test]
fn the_trace_of_a_killed_rank_has_what_it_did() {
    let timeline = trace("killed.trace", &["-n", "3", "-x", "DIES=1"], 137);
    let killed = &timeline.ranks[1];
    assert!(killed.cut && !killed.calls.is_empty(), "{killed:?}");
    let last = killed.calls.iter().max_by_key(|call| call.end).unwrap();
    assert_eq!(last.name, "fence");
    assert!(waited_for_rank_1(&timeline.ranks[0]), "{:?}", timeline.ranks[0]);
}

/// What ends a job that hangs.
#[derive(Clone, Copy)]
enum End {
    Timeout,
    Kill,
    Crash,
}

/// Runs a job until the watchdog prints a line with these words, and then to its end. Returns its
/// counters and its trace.
fn hang(name: &str, options: &[&str], reported: &[&str], end: End) -> (Value, Timeline) {
    let [report, trace, gate] = ["json", "trace", "gate"].map(|end| file(&format!("{name}.{end}")));
    let stats = format!("--stats={}", report.display());
    let watched = format!("GATE={}", gate.display());
    let common = ["--watchdog", "0.3", "--stacks=off", "-x", &watched, &stats, "--trace"];
    let words = [&common[..], &[trace.to_str().unwrap()], options].concat();
    let words = words.into_iter().map(str::to_owned).chain(role(name));
    let mut run = start(&words.collect::<Vec<_>>());
    let mut lines = BufReader::new(run.child.stderr.take().unwrap()).lines();
    let is_report = |line: String| reported.iter().all(|word| line.contains(word));
    assert!(lines.any(|line| is_report(line.unwrap())), "no report of {reported:?}");
    let status = match end {
        End::Timeout => 124,
        End::Kill => {
            kill(run.pid(), Signal::SIGTERM).unwrap();
            143
        }
        End::Crash => {
            fs::write(&gate, "").unwrap();
            137
        }
    };
    // The launcher may have more to say.
    let rest = thread::spawn(move || lines.for_each(drop));
    assert_eq!(run.finish().status, status);
    rest.join().unwrap();
    let timeline = Timeline::read(&trace).unwrap();
    fs::remove_file(trace).unwrap();
    _ = fs::remove_file(gate);
    (json(&report), timeline)
}

#[test]
fn the_call_in_which_a_job_hangs_is_reported_as_not_returned() {
    let hosts = ["--host", "1:3", "--start", "env -i nice -n"];
    let on_a_host = [&hosts[..], &["-n", "3", "--timeout", "9"]].concat();
    let cases: [(&[&str], End); 4] = [
        (&["-n", "3", "--timeout", "6"], End::Timeout),
        (&on_a_host, End::Timeout),
        (&["-n", "3"], End::Kill),
        (&["-n", "3"], End::Crash),
    ];
    let fences = ["ranks 0, 2 wait for rank 1, ", ": the longest in a fence of window 1 for "];
    for (options, end) in cases {
        let (report, timeline) = hang("hangs", options, &fences, end);
        for rank in [0, 2] {
            let counted = &report["ranks"][rank];
            let unfinished = counted["unfinished"].as_array().unwrap();
            let [fence] = &unfinished[..] else { panic!("{report:#}") };
            let expected = (&Value::from("fence"), &Value::from(1), &Value::from(1));
            assert_eq!((&fence["call"], &fence["window"], &fence["waited_for"]), expected);
            assert!(fence["file"].as_str().unwrap().ends_with("observed.rs"), "{fence}");
            assert_eq!(fence["line"].as_u64(), Some(line_of("// hangs")));
            assert!(fence["time_ns"].as_u64() > Some(0), "{fence}");
            // It counted while it waited.
            assert!(calls(counted, "fence").is_empty(), "{report:#}");
            let windows = counted["windows"].as_array().unwrap();
            assert_eq!(windows[0]["targets"][0]["operations"][0]["count"], 1, "{report:#}");

            let line = &timeline.ranks[rank];
            let open: Vec<_> = line.calls.iter().filter(|call| call.unfinished).collect();
            let [fence] = open[..] else { panic!("{line:?}") };
            assert_eq!((fence.name.as_str(), fence.window), ("fence", Some(1)));
            assert!(fence.source.ends_with(&format!("observed.rs:{}", line_of("// hangs"))));
            assert!(waited_for_rank_1(line) && line.cut && fence.nanos() > 0, "{line:?}");
        }
        assert_eq!(report["ranks"][1]["unfinished"], Value::Array(Vec::new()), "{report:#}");
    }
}

#[test]
fn a_put_that_waits_for_room_is_reported_as_not_returned() {
    let options = ["-n", "2", "--route", "message", "--progress", "off"];
    let (report, _) =
        hang("full", &options, &["rank 0 waits for rank 1, ", ": in a put "], End::Kill);
    let unfinished = &report["ranks"][0]["unfinished"];
    let line = unfinished[0]["file"].as_str().unwrap();
    assert!(line.ends_with("roles.rs"), "{unfinished}");
    assert_eq!((&unfinished[0]["call"], &unfinished[0]["waited_for"]), (&"put".into(), &1.into()));
}

#[test]
fn the_summary_begins_with_calls_that_have_not_returned() {
    let options = ["-n", "2", "--timeout", "3", "--stacks=off", "--stats"].map(str::to_owned);
    let finished = run(&[options.to_vec(), role("barrier")].concat());
    assert_eq!(finished.status, 124);
    let lines: Vec<&str> = finished.stderr.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("not returned ")).unwrap();
    assert!(lines[at + 1].starts_with("  barrier ") && lines[at + 1].ends_with("  rank 0"));
    assert!(lines[at + 2].ends_with(", by rank 1"), "{lines:?}");
    assert!(lines[at + 2].contains("roles.rs:"), "{lines:?}");
}

#[test]
fn a_trace_of_another_host_says_how_well_its_clock_is_known() {
    let hosts = ["--host", "1:3", "--start", "env -i nice -n"];
    let timeline = trace("host.trace", &[&hosts[..], &["-n", "3"]].concat(), 0);
    let first = &timeline.ranks[0];
    assert_eq!(first.name, "rank 0 on 1");
    assert!(first.clock.starts_with("the clock of host 1, right within "), "{}", first.clock);
    assert!(waited_for_rank_1(first), "{first:?}");
}

#[test]
fn a_file_that_cant_be_made_ends_the_job_before_it_starts() {
    for option in ["--stats=/nowhere/a.json", "--trace=/nowhere/a.trace"] {
        let finished = run_late(&["-n", "2", option]);
        let path = option.split_once('=').unwrap().1;
        let why = "No such file or directory (os error 2); name another file";
        finished.expect(1, &[&format!("longshore: can't write {path}: {why}")]);
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    for text in ["", "no trace", "\n\u{5}abcde"] {
        let path = file("none.trace");
        fs::write(&path, text).unwrap();
        let error = Timeline::read(&path).unwrap_err().to_string();
        assert!(error.contains("`longshore run --trace FILE` writes one"), "{text:?}: {error}");
        fs::remove_file(path).unwrap();
    }
}

//! Output and input of the ranks.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::support::{run, sh, start};

#[test]
fn output_is_forwarded_by_whole_lines() {
    let script =
        "for i in 1 2 3 4 5 6 7 8 9; do printf \"$PMI_RANK a\"; printf 'b '; printf 'c\\n'; done";
    let labelled = sh(&["--label", "-n", "4"], script).lines();
    assert_eq!(labelled.len(), 36);
    for line in &labelled {
        let (label, rank) = (&line[..4], &line[4..5]);
        assert_eq!((label, &line[4..]), (&*format!("[{rank}] "), &*format!("{rank} ab c")));
    }
    assert!(sh(&["-n", "4"], script).lines().iter().all(|line| line.ends_with(" ab c")));
}

#[test]
fn output_is_forwarded_byte_by_byte() {
    let script = r"printf '\001\377\r\000x\n\nend'; printf 'error' >&2";
    let plain = sh(&[], script);
    assert_eq!(plain.stdout, b"\x01\xff\r\0x\n\nend");
    assert_eq!(plain.stderr, "error");
    let labelled = sh(&["--label"], script);
    assert_eq!(labelled.stdout, b"[0] \x01\xff\r\0x\n[0] \n[0] end\n");
    assert_eq!(labelled.stderr, "[0] error\n");
}

#[test]
fn the_output_of_each_rank_goes_to_files() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("output of ranks");
    let options = ["--output", folder.to_str().unwrap(), "-n", "3"];
    let finished = sh(&options, "echo out $PMI_RANK; printf err$PMI_RANK >&2");
    assert_eq!((finished.status, &*finished.stderr, &*finished.stdout), (0, "", &b""[..]));
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    for rank in 0..3 {
        assert_eq!(read(&format!("{rank}.out")), format!("out {rank}\n"));
        assert_eq!(read(&format!("{rank}.err")), format!("err{rank}"));
    }
    // The launcher's own words stay where they were.
    let failed = sh(&options, "exit $PMI_RANK");
    assert!(failed.stderr.starts_with("longshore: "), "{}", failed.stderr);
    let refused = sh(&["--output", "/proc/none"], "true");
    refused.expect(
        1,
        &["longshore: can't write the output of ranks to /proc/none: No such file or directory \
           (os error 2); --output names another folder"],
    );
}

#[test]
fn a_command_starts_the_programs_of_some_ranks() {
    let options = ["--wrap", "1,3-4", "env 'WRAPPED=a b'", "--wrap", "all", "env WRAPPED=all"];
    let script = "echo $PMI_RANK $WRAPPED";
    let mut lines = sh(&[&options[..], &["-n", "5"]].concat(), script).lines();
    lines.sort();
    assert_eq!(lines, ["0 all", "1 a b", "2 all", "3 a b", "4 a b"]);
    let missing = sh(&["--wrap", "0", "no-such-debugger"], "true");
    assert_eq!(missing.status, 127);
    assert!(
        missing.stderr.starts_with("longshore: part 1: can't start no-such-debugger: no folder")
    );
}

#[test]
fn large_output_waits_for_a_slow_reader() {
    let mut run = start(&["-n", "3", "sh", "-c", "yes | head -c 2000000"]);
    thread::sleep(Duration::from_millis(200));
    assert!(run.child.try_wait().unwrap().is_none(), "it should wait for its reader");
    assert_eq!(run.finish().stdout.len(), 6_000_000);
}

#[test]
fn a_closed_reader_ends_the_writers_by_sigpipe() {
    let mut run = start(&["-n", "2", "yes"]);
    drop(run.child.stdout.take());
    assert_eq!(run.finish().status, 128 + 13);
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let script = "exec \"$@\" > /dev/full";
    let finished =
        run(&["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_longshore"), "run", "echo", "lost"]);
    assert_eq!(finished.status, 1);
    assert!(finished.stderr.contains("writing to standard output: No space left on device"));
}

#[test]
fn input_goes_to_rank_0() {
    let mut run = start(&["--label", "-n", "3", "cat"]);
    run.child.stdin.take().unwrap().write_all(b"one\ntwo").unwrap();
    assert_eq!(run.finish().stdout, b"[0] one\n[0] two\n");
}

//! Tests of `--validate`, in simulated jobs.

use longshore::sim::{self, Options};
use longshore::{Architecture, Epoch, Raw, Type};

use super::data::Typed;
use super::*;
use crate::case;

/// A struct of a char and a double, with a gap in between.
const GAP: &str = "type=U1(SS:2:c/1,d/1) count=2 calls=1 rounds=1";

/// Runs `work` on two simulated ranks. Returns the outcome of rank 0.
fn outcome(
    architectures: [Architecture; 2],
    work: impl Fn(&Pair) -> Result<Outcome, Failure> + std::marker::Sync,
) -> Outcome {
    let options = Options { architectures: architectures.to_vec(), ..Options::default() };
    let outcomes = sim::run(2, &options, |rank| {
        let world = rank.world();
        let pair =
            Pair { rank: &rank, world, me: world.rank(), other: 1 - world.rank(), line: None };
        let outcome = work(&pair).unwrap();
        rank.finalize().unwrap();
        outcome
    });
    outcomes.unwrap().remove(0)
}

#[test]
fn every_operation_passes_validation() {
    let (native, foreign) = (Architecture::NATIVE, Architecture::S390X);
    let of = |bench, what| format!("bench={bench} {what}").parse::<Case>().unwrap();
    let mut cases = vec![
        of("fop_latency", "type=i64 calls=1 rounds=1"),
        of("cas_latency", "type=i64 calls=1 rounds=1"),
        // Slots of three elements are longer than three elements.
        of("put_bw", "type=d count=3 calls=4 rounds=1"),
        of("get_bibw", "type=i8 count=3 calls=4 rounds=1"),
        of("get_acc_latency", "type=d count=3 calls=1 rounds=1"),
    ];
    cases.extend(["put_latency", "get_latency", "put_bibw"].map(|bench| of(bench, GAP)));
    for case in &cases {
        for architectures in [[native, native], [native, foreign], [foreign, native]] {
            let outcome = outcome(architectures, |pair| pair.operation(case, true));
            assert!(outcome.as_ref().is_ok_and(|sample| sample.validated), "{case}: {outcome:?}");
        }
    }
}

/// An operation that also puts a byte elsewhere.
struct Spilling<'t, O> {
    operation: O,
    byte: [i8; 1],
    to: (i32, i64, &'t Type),
}

impl<O: Operation> Operation for Spilling<'_, O> {
    fn issue<'scope, 'env: 'scope>(
        &'env mut self,
        epoch: &Epoch<'scope, 'env>,
        slots: usize,
    ) -> longshore::Result<()> {
        let Spilling { operation, byte, to } = self;
        operation.issue(epoch, slots)?;
        epoch.put(&byte[..], to.0, to.1, 1, to.2)
    }

    fn flush_pointer(&mut self, calls: Raw<'_>, own: &Type, slots: usize) -> longshore::Result<()> {
        self.operation.flush_pointer(calls, own, slots)
    }

    fn results(&mut self) -> &mut [u8] {
        self.operation.results()
    }
}

#[test]
fn validation_finds_a_byte_in_a_gap() {
    let case: Case = format!("bench=put_latency {GAP}").parse().unwrap();
    let spilt = |at: i64| {
        outcome([Architecture::NATIVE; 2], |pair| {
            let layout = Layout::new(pair.rank, &case)?;
            let work = Work {
                case: &case,
                group: pair.world.group().incl(&[pair.other])?,
                active: pair.me == 0,
                exposed: pair.me == 1,
                validate: true,
                layout,
            };
            let Layout { own, slot_size, count, .. } = &work.layout;
            let target = Target {
                rank: pair.other,
                first: 0,
                slot_size: *slot_size as i64,
                count: *count,
                datatype: TargetType::Own(own),
            };
            let byte = pair.rank.type_of::<i8>()?;
            let mut data = Typed::new(&work.layout).filled(&work.layout, ORIGIN)?;
            let mut spilling = Spilling {
                operation: Put { target, data: &mut data },
                byte: [-1],
                to: (pair.other, at, &byte),
            };
            let size = work.layout.len() as i64;
            let mut window = Window::allocate(pair.world, size, 1, &Info::default())?;
            let outcome = match pair.me {
                0 => pair.timed(&mut window, 0, &work, &mut spilling)?,
                _ => pair.timed(&mut window, 0, &work, &mut Nothing { target: 1 })?,
            };
            window.free()?;
            Ok(outcome)
        })
    };
    for at in [1, 7, 17, 23] {
        let outcome = spilt(at);
        let wrong = format!("the window of rank 1: byte {at} is 255");
        assert!(
            matches!(&outcome, Err(Refusal::Invalid(why)) if why.starts_with(&wrong)),
            "{outcome:?}"
        );
    }
}

#[test]
fn every_message_and_collective_call_passes_validation() {
    let native = Architecture::NATIVE;
    for bench in case::MESSAGES.into_iter().chain(case::COLLECTIVES) {
        for datatype in ["type=d count=3", "type=i8 count=1", "type=d count=5000"] {
            let case = format!("bench={bench} {datatype} calls=2 rounds=1");
            let case = case.parse::<Case>().unwrap();
            let outcome = outcome([native, native], |pair| pair.message(&case, true));
            assert!(outcome.as_ref().is_ok_and(|sample| sample.validated), "{case}: {outcome:?}");
        }
    }
}

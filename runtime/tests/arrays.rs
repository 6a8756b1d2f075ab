//! Views of the crate ndarray as origins, as destinations and as layouts of targets.
#![cfg(feature = "ndarray")]

mod support;

use std::time::Duration;

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{Architecture, Class, Datatype, Info, Op, Rank, Shipable, Window, arrays::layout};
use longshore_launcher::{self as launcher, Control, Job, Part, Patience};
use ndarray::{Array1, Array2, Array3, ArrayD, Axis, IxDyn, s};

/// Runs a test between like and unlike ranks, simulated and in shared memory, on each route.
fn everywhere(test: impl Fn(Rank) + Sync) {
    let unlike = vec![Architecture::S390X, Architecture::NATIVE, Architecture::I686];
    let unlike = Options { architectures: unlike, ..Options::default() };
    let message = Options { routes: Routes::Message, ..Options::default() };
    let ranks = support::crowd(3);
    run(ranks, &unlike, &test).unwrap();
    run_shared(ranks, &unlike, &test).unwrap();
    run_shared(ranks, &message, &test).unwrap();
    run_shared(ranks, &Options::default(), &test).unwrap();
}

/// A number for each element of a cube, which no other rank has.
fn cube(rank: i32) -> Array3<f64> {
    let number = |(x, y, z)| f64::from(rank) * 1000.0 + (x * 100 + y * 10 + z) as f64;
    Array3::from_shape_fn((3, 4, 5), number)
}

/// Each rank sends views of an array to the next rank.
fn exchange(rank: Rank) {
    let world = rank.world();
    let (me, size) = (world.rank(), world.size());
    let (right, left) = ((me + 1) % size, (me + size - 1) % size);
    let (mine, theirs) = (cube(me), cube(left));
    let mut room = Array3::<f64>::zeros((3, 4, 5));
    macro_rules! exchange {
        ($slice:expr) => {
            let from = rank.view(mine.slice($slice)).unwrap();
            room.fill(-1.0);
            let mut to = rank.view_mut(room.slice_mut($slice)).unwrap();
            world.sendrecv((&from, right, 0), (&mut to, left, 0)).unwrap();
            assert_eq!(room.slice($slice), theirs.slice($slice));
            let expected = theirs.slice($slice).len();
            assert_eq!(room.iter().filter(|value| **value != -1.0).count(), expected);
        };
    }
    exchange!(s![.., .., ..]);
    exchange!(s![1, .., ..]);
    exchange!(s![.., 2, ..]);
    exchange!(s![.., .., 4]);
    exchange!(s![..;2, 1..3, ..;-2]);
    exchange!(s![..;-1, ..;-1, ..;-1]);
    exchange!(s![1..1, .., ..]);
    exchange!(s![2, 3, 4]);
    rank.finalize().unwrap();
}

#[test]
fn views_of_any_strides_are_sent_and_received() {
    everywhere(exchange);
}

/// The variable that makes this program a rank of a job.
const RANK: &str = "ARRAYS_RANK";

/// A rank in a process of its own. Without its variable it does nothing.
#[test]
fn rank_of_a_job() {
    if std::env::var_os(RANK).is_some() {
        exchange(longshore::init().unwrap());
    }
}

#[test]
fn views_are_sent_between_processes() {
    let words = ["--exact", "rank_of_a_job", "--nocapture", "-q"];
    for archs in [vec![], vec!["native".to_owned(), "s390x".to_owned(), "i686".to_owned()]] {
        let part = Part {
            ranks: 3,
            arguments: words.map(Into::into).to_vec(),
            environment: vec![(RANK.into(), "1".into())],
            archs,
            ..Part::new(std::env::current_exe().unwrap())
        };
        let timeout = Some(Duration::from_secs(60));
        let patience = Patience { timeout, ..Patience::default() };
        let job = Job { parts: vec![part], patience, ..Job::default() };
        assert_eq!(launcher::run(&job, &Control::none()).unwrap(), 0);
    }
}

#[test]
fn a_transposed_view_sends_its_elements_in_its_own_order() {
    everywhere(|rank| {
        let (world, me) = (rank.world(), rank.world().rank());
        let matrix = Array2::from_shape_fn((3, 4), |(row, column)| (10 * row + column) as i32);
        let columns = rank.view(matrix.t()).unwrap();
        let mut got = Array2::<i32>::zeros((4, 3));
        let mut room = rank.view_mut(got.view_mut()).unwrap();
        world.sendrecv((&columns, me, 0), (&mut room, me, 0)).unwrap();
        assert_eq!(got, matrix.t());
        // A broadcast view repeats its elements.
        let one = Array1::from_vec(vec![7i32, 8]);
        let repeated = rank.view(one.broadcast((3, 2)).unwrap()).unwrap();
        let mut six = [0; 6];
        world.sendrecv((&repeated, me, 0), (&mut six, me, 0)).unwrap();
        assert_eq!(six, [7, 8, 7, 8, 7, 8]);
        rank.finalize().unwrap();
    });
}

#[test]
fn views_are_put_got_and_accumulated_at_layouts_of_the_target() {
    everywhere(|rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let (right, left) = ((me + 1) % size, (me + size - 1) % size);
        let mut window = Window::allocate(world, 12 * 8, 8, &Info::default()).unwrap();
        let mine = Array2::from_shape_fn((3, 4), |(row, column)| {
            f64::from(100 * me) + (10 * row + column) as f64
        });
        let column = rank.commit(&layout(&mine.slice(s![.., 1])).unwrap()).unwrap();
        let whole = rank.commit(&layout(&mine.t()).unwrap()).unwrap();
        let all = rank.view(mine.t()).unwrap();
        window.fence(|epoch| epoch.put(&all, right, 0, 1, &whole)).unwrap();
        let theirs = &mine + f64::from(100 * (left - me));
        let held = |window: &Window| {
            let mut held = vec![0.0; 12];
            window.read(0, &mut held).unwrap();
            Array2::from_shape_vec((3, 4), held).unwrap()
        };
        assert_eq!(held(&window), theirs);

        let from = rank.view(mine.slice(s![..;-1, 3])).unwrap();
        window.fence(|epoch| epoch.accumulate(&from, right, 1, 1, &column, Op::Sum)).unwrap();
        let mut expected = theirs.clone();
        let mut added = expected.slice_mut(s![.., 1]);
        added += &theirs.slice(s![..;-1, 3]);
        assert_eq!(held(&window), expected);

        // The second column of the right neighbour becomes a row of a larger array.
        let mut got = ArrayD::<f64>::zeros(IxDyn(&[2, 2, 3]));
        let mut room = rank.view_mut(got.slice_mut(s![1, 0, ..])).unwrap();
        window.fence(|epoch| epoch.get(&mut room, right, 1, 1, &column)).unwrap();
        // The right neighbour holds what this rank put and added there.
        let expected = &mine.slice(s![.., 1]) + &mine.slice(s![..;-1, 3]);
        assert_eq!(got.sum(), expected.sum());
        assert_eq!(got.index_axis(Axis(0), 1).index_axis(Axis(0), 0), expected.into_dyn());
        window.free().unwrap();
        rank.finalize().unwrap();
    });
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Cell {
    kind: u8,
    mass: f64,
}

/// On an emulated rank the structs have the machine's layout in the array.
#[test]
fn views_of_structs_with_padding_are_converted() {
    everywhere(|rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let (right, left) = ((me + 1) % size, (me + size - 1) % size);
        let cells = |rank: i32| {
            Array2::from_shape_fn((2, 3), |(row, column)| Cell {
                kind: (rank + row as i32) as u8,
                mass: f64::from(rank) + column as f64 / 4.0,
            })
        };
        let (mine, theirs) = (cells(me), cells(left));
        let from = rank.view(mine.t()).unwrap();
        let mut got = cells(-1);
        let mut room = rank.view_mut(got.view_mut().reversed_axes()).unwrap();
        world.sendrecv((&from, right, 0), (&mut room, left, 0)).unwrap();
        assert_eq!(got, theirs);
        rank.finalize().unwrap();
    });
}

#[test]
fn a_layout_of_another_size_is_refused() {
    everywhere(|rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 64, 8, &Info::default()).unwrap();
        let matrix = Array2::<f64>::zeros((2, 4));
        let from = rank.view(matrix.slice(s![.., ..;2])).unwrap();
        let three = rank.commit(&Datatype::vector(3, 1, 2, &Datatype::double()).unwrap()).unwrap();
        let refused = window.fence(|epoch| epoch.put(&from, 0, 0, 1, &three)).unwrap_err();
        assert_eq!(refused.class(), Class::Type);
        window.free().unwrap();
        rank.finalize().unwrap();
    });
}

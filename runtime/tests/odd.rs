//! Legal but unusual programs: records with padding, nested epochs of two windows, and types that
//! transpose a matrix.

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Class, Datatype, Destination, Element, Info, Rank, Shipable, Window,
};

/// Runs a program between like and unlike ranks, directly and by message, simulated and on threads.
fn everywhere(ranks: u32, body: impl Fn(&Rank) + Sync) {
    let whole = |rank: Rank| {
        body(&rank);
        rank.finalize().unwrap();
    };
    let unlike = vec![Architecture::S390X, Architecture::NATIVE, Architecture::I686];
    let like = Options::default();
    let told = Options { routes: Routes::Message, ..Options::default() };
    let unlike = Options { architectures: unlike, ..Options::default() };
    for options in [like, told, unlike] {
        for seed in 0..3 {
            run(ranks, &Options { seed, ..options.clone() }, whole).unwrap();
        }
        run_shared(ranks, &options, whole).unwrap();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Short {
    a: u32,
    b: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Long {
    a: u64,
    b: u32,
}

/// Puts a record whose last bytes are padding, twice. The second time the target's memory is mapped
/// already.
fn put_one<T: Element>(rank: &Rank, value: T) {
    let world = rank.world();
    let mut window = Window::allocate(world, 16, 1, &Info::default()).unwrap();
    window.local().write_bytes(0, &[0xee; 16]).unwrap();
    let record = rank.type_of::<T>().unwrap();
    let data = record.bounds().true_ub;
    let values = [value];
    for _ in 0..2 {
        window.fence(|epoch| epoch.put(&values, world.rank(), 0, 1, &record)).unwrap();
        let tail = window.local().bytes(data, 16 - data as usize).unwrap();
        assert!(tail.iter().all(|byte| *byte == 0xee), "{tail:x?}");
    }
    window.free().unwrap();
}

/// Operations can name bytes between members, so the window includes them.
#[test]
fn a_window_over_padded_structs_has_all_its_bytes() {
    everywhere(1, |rank| {
        if rank.is_emulated() {
            return; // its memory is that of another machine
        }
        let memory = vec![Short { a: 1, b: 2 }, Short { a: 3, b: 4 }];
        let mut window = Window::create(rank.world(), memory, 1, &Info::default()).unwrap();
        let (byte, mut got) = (rank.type_of::<u8>().unwrap(), [9u8; 16]);
        window.fence(|epoch| epoch.get(&mut got, 0, 0, 16, &byte)).unwrap();
        assert_eq!((&got[4..8], &got[12..16]), (&[2, 0, 0, 0][..], &[4, 0, 0, 0][..]));
        assert_eq!(window.local().bytes(0, 16).unwrap(), got);
        assert_eq!(window.free().unwrap()[1], Short { a: 3, b: 4 });
    });
}

#[test]
fn a_type_that_selects_padding_of_a_slice_is_refused() {
    everywhere(1, |rank| {
        if rank.is_emulated() {
            return;
        }
        let mut window = Window::allocate(rank.world(), 16, 1, &Info::default()).unwrap();
        let values = [Short { a: 1, b: 2 }, Short { a: 3, b: 4 }];
        let byte = rank.type_of::<u8>().unwrap();
        let put = |window: &mut Window, count, datatype: &longshore::Type, at| {
            let origin = longshore::Origin::typed(&values[..], count, datatype).at(at);
            let bytes = count * datatype.bounds().size;
            window.fence(|epoch| epoch.put(origin, 0, 0, bytes, &byte))
        };
        put(&mut window, 5, &byte, 0).unwrap();
        put(&mut window, 5, &byte, 8).unwrap();
        let error = put(&mut window, 6, &byte, 8).unwrap_err();
        assert_eq!(error.class(), Class::Buffer);
        assert!(error.to_string().contains("byte 13 of a slice"), "{error}");
        window.free().unwrap();
    });
}

#[test]
fn padding_is_not_transferred() {
    everywhere(1, |rank| {
        put_one(rank, Short { a: 1, b: 2 });
        put_one(rank, Long { a: 1, b: 2 });
    });
}

#[test]
fn epochs_of_two_windows_nest() {
    everywhere(3, |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        let long = rank.type_of::<i64>().unwrap();
        let mut outer = Window::allocate(world, 800, 8, &Info::default()).unwrap();
        let memory = rank.buffer::<i64>(100).unwrap();
        let mut inner = Window::create(world, memory, 1, &Info::default()).unwrap();
        for round in 0..5 {
            outer.write(0, &[i64::from(me) * 100 + round; 50]).unwrap();
            let mine = [round + i64::from(me); 50];
            let (mut far, mut farther) = ([0i64; 50], [0i64; 3]);
            outer
                .fence(|outer| {
                    outer.put(&mine, next, 50, 50, &long)?;
                    inner.fence(|inner| {
                        inner.put(&mine[..7], next, 24, 7, &long)?;
                        outer.get(&mut far, next, 0, 50, &long)
                    })
                })
                .unwrap();
            inner.fence(|epoch| epoch.get(&mut farther, next, 24, 3, &long)).unwrap();
            assert_eq!(far, [i64::from(next) * 100 + round; 50]);
            assert_eq!(farther, mine[..3]);
            assert_eq!(outer.get::<i64>(99).unwrap(), round + i64::from(before));
        }
        outer.free().unwrap();
        let memory = inner.free().unwrap();
        assert_eq!(memory.get(9).unwrap(), 4 + i64::from(before));
    });
}

/// All ranks put columns into every matrix, which is then read by rows.
#[test]
fn a_matrix_written_by_columns_is_read_by_rows() {
    const ROWS: usize = 60;
    everywhere(3, |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size() as usize);
        let bytes = (8 * ROWS * size * size) as i64;
        let mut window = Window::allocate(world, bytes, 8, &Info::default()).unwrap();
        let column = Datatype::vector(ROWS as i64, 1, size as i64, &Datatype::double()).unwrap();
        let columns = Datatype::resized(0, 8, &column).unwrap();
        let (column, columns) = (rank.commit(&column).unwrap(), rank.commit(&columns).unwrap());
        let double = rank.type_of::<f64>().unwrap();
        let values: Vec<f64> = (0..ROWS * size).map(|at| at as f64).collect();
        let matrix = i64::from(me) * (ROWS * size) as i64;
        window
            .fence(|epoch| {
                for to in 0..size {
                    for (at, values) in values.chunks(ROWS).enumerate() {
                        epoch.put(values, to as i32, matrix + at as i64, 1, &column)?;
                    }
                }
                Ok(())
            })
            .unwrap();
        let mut back = rank.buffer::<f64>(ROWS * size).unwrap();
        let len = (ROWS * size) as i64;
        let next = (me + 1) % size as i32;
        window
            .fence(|epoch| {
                let room = Destination::typed(&mut back, size as i64, &columns);
                epoch.get(room, next, matrix, len, &double)
            })
            .unwrap();
        // Element k of the matrix, row by row, is element (k % size, k / size) of the data put.
        let back = back.to_vec().unwrap();
        for (place, found) in back.iter().enumerate() {
            let k = place % size * ROWS + place / size;
            assert_eq!(*found, values[k % size * ROWS + k / size]);
        }
        window.free().unwrap();
    });
}

/// A message with a value that can't be converted releases its buffer space.
// The long of the sender must have 64 bits.
#[cfg(target_pointer_width = "64")]
#[test]
fn refused_messages_release_their_buffer_space() {
    let options = Options { architectures: vec![Architecture::WIN64; 2], ..Options::default() };
    run(2, &options, |rank| {
        let world = rank.world();
        if world.rank() == 0 {
            // A long has 4 bytes in the ranks' representation, and 8 in this machine's slices.
            let large = [longshore::c::Long(1 << 40); 500];
            for _ in 0..100 {
                let refused = world.send(&large, 1, 0).unwrap_err();
                assert_eq!(refused.class(), Class::Conversion);
            }
            // If the buffer space were lost, this send would wait for its receive.
            world.send(&[1i32; 500], 1, 1).unwrap();
            world.send(&[0u8], 1, 2).unwrap();
        } else {
            world.recv(&mut [9u8], 0, 2).unwrap();
            world.recv(&mut [0i32; 500], 0, 1).unwrap();
        }
        rank.finalize().unwrap();
    })
    .unwrap();
}

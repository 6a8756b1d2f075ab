//! Calls without scopes, from pointers.

use longshore::{
    Assert, Class, Datatype, Destination, Info, LockType, Op, Origin, Pointed, Window,
};

use super::support::crowd;
use super::{class, everywhere};

/// Every call without a scope, from pointers, by every route, and their refusals.
#[test]
#[allow(unsafe_code)]
fn calls_without_scopes_behave_like_scopes() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        let window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let (long, calls) = (rank.type_of::<i64>().unwrap(), window.raw());
        // Pointers to the second and third of four elements in the rank's own representation.
        let mut four = rank.buffer::<i64>(4).unwrap();
        four.write(0, &[-1, 10 + i64::from(me), 20, -1]).unwrap();
        let later = Datatype::indexed(&[2], &[1], long.datatype()).unwrap();
        let later = rank.commit(&later).unwrap();
        let from = four.bytes().as_ptr();

        // SAFETY: all memory in this test outlives the calls that complete its operations.
        let refused = unsafe { calls.put(from, 1, &later, next, 0, 2, &long) };
        assert_eq!(class(refused), Some(Class::RmaSync));
        assert_eq!(class(calls.complete()), Some(Class::RmaSync));
        assert_eq!(class(calls.unlock(next)), Some(Class::RmaSync));
        assert_eq!(class(calls.unlock_all()), Some(Class::RmaSync));
        assert_eq!(class(calls.flush(next)), Some(Class::RmaSync));

        // Fences.
        calls.fence(Assert::NOPRECEDE).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let put = |disp| unsafe { calls.put(from, 1, &later, next, disp, 2, &long) };
        put(0).unwrap();
        put(2).unwrap();
        assert_eq!(class(put(9)), Some(Class::RmaRange));
        // SAFETY: the memory outlives the call that completes the operation.
        let negative = unsafe { calls.put(from, -1, &later, next, 0, 2, &long) };
        // Rule T2, and rule 19.
        let locale = Datatype::hvector(2, 1, 8, long.datatype()).unwrap();
        let locale = rank.commit(&locale).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let (refused, unequal) = unsafe {
            let refused = calls.put(from, 1, &later, next, 0, 1, &locale);
            (refused, calls.put(from, 1, &later, next, 0, 3, &long))
        };
        assert_eq!((class(refused), class(unequal)), (Some(Class::Type), Some(Class::Type)));
        assert_eq!(class(negative), Some(Class::Count));
        // SAFETY: the memory outlives the call that completes the operation.
        let request = unsafe { calls.rput(from, 1, &later, next, 0, 2, &long) };
        assert_eq!(class(request.map(drop)), Some(Class::RmaSync));
        calls.fence(Assert::NOSUCCEED).unwrap();
        let mut got = [0i64; 4];
        window.read(0, &mut got).unwrap();
        assert_eq!(got, [10 + i64::from(before), 20, 10 + i64::from(before), 20]);

        // Start and complete.
        let [to, of] = [next, before].map(|rank| world.group().incl(&[rank]).unwrap());
        window.post(&of, Assert::NONE).unwrap();
        calls.start(&to, Assert::NONE).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        unsafe { calls.accumulate(from, 1, &later, next, 0, 2, &long, Op::Sum).unwrap() };
        calls.complete().unwrap();
        window.wait().unwrap();
        assert_eq!(window.get::<i64>(1).unwrap(), 40);

        world.barrier().unwrap();
        // Locks, fetches and requests. The results go to the rank's own memory.
        let mut room = rank.buffer::<i64>(8).unwrap();
        let place = room.bytes_mut().as_mut_ptr();
        let room_at = |element: usize| place.wrapping_add(8 * element);
        let at = |element: usize| from.wrapping_add(8 * element);
        calls.lock(next, LockType::Exclusive, Assert::NONE).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        unsafe {
            calls.get(room_at(0), 1, &later, next, 0, 2, &long).unwrap();
            calls.flush(next).unwrap();
            calls.fetch_and_op(at(2), room_at(0), &long, next, 1, Op::Sum).unwrap();
            calls.fetch_and_op(std::ptr::null(), room_at(3), &long, next, 1, Op::NoOp).unwrap();
            calls.compare_and_swap(at(0), room_at(2), room_at(4), &long, next, 4).unwrap();
            let (origin, result) = ((at(1), 1, &long), (room_at(5), 1, &long));
            calls.get_accumulate(origin, result, next, 4, 1, &long, Op::Replace).unwrap();
            calls.rput(at(2), 1, &long, next, 5, 1, &long).unwrap().wait().unwrap();
            calls.raccumulate(at(2), 1, &long, next, 5, 1, &long, Op::Sum).unwrap().wait().unwrap();
            calls.rget(room_at(6), 1, &long, next, 5, 1, &long).unwrap().wait().unwrap();
            let (origin, result) = ((std::ptr::null(), 0, &long), (room_at(7), 1, &long));
            let fetched = calls.rget_accumulate(origin, result, next, 5, 1, &long, Op::NoOp);
            fetched.unwrap().wait().unwrap();
        }
        calls.unlock(next).unwrap();
        // Before: 20 + me, and 40. After: 60, then 0 (not equal to 40, so not swapped), then 20
        // twice.
        let mine = 2 * (10 + i64::from(me));
        let found = room.to_vec().unwrap();
        assert_eq!(found, [40, mine, 40, 60, 0, 0, 40, 40]);

        // A pair type, whose memory has padding.
        let pair = rank.commit(&Datatype::short_int()).unwrap();
        let extent = pair.extent() as usize;
        let mut pairs = vec![0u8; 2 * extent];
        let start = pairs.as_mut_ptr();
        calls.lock_all(Assert::NONE).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let fetch = |op| unsafe {
            calls.fetch_and_op(start, start.wrapping_add(extent), &pair, next, 8, op).unwrap();
        };
        fetch(Op::Minloc);
        calls.flush_local_all().unwrap();
        calls.sync().unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let swap = unsafe { calls.compare_and_swap(from, from, place, &pair, next, 8) };
        assert_eq!(class(swap), Some(Class::Type));
        // One long in a type that isn't predefined: refused by message and directly.
        let shifted = Datatype::indexed_block(1, &[3], &Datatype::long_long()).unwrap();
        let shifted = rank.commit(&shifted).unwrap();
        // SAFETY: the memory outlives the call that completes the operation.
        let swap = unsafe { calls.compare_and_swap(from, from, place, &shifted, next, 0) };
        assert_eq!(class(swap), Some(Class::Type));
        calls.unlock_all().unwrap();
        world.barrier().unwrap();
        window.free().unwrap();
    });
}

/// The first call is checked. The later ones are known, and combine and refuse as the first does.
#[test]
#[allow(unsafe_code)]
fn repeated_accumulates_by_pointer_are_like_the_first() {
    everywhere(crowd(2), |rank| {
        let world = rank.world();
        let next = (world.rank() + 1) % world.size();
        let window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let (long, calls) = (rank.type_of::<i64>().unwrap(), window.raw());
        let three = rank.commit(&Datatype::contiguous(3, long.datatype()).unwrap()).unwrap();
        let mut operands = rank.buffer::<i64>(3).unwrap();
        operands.write(0, &[6, -3, 5]).unwrap();
        let from = operands.bytes().as_ptr();
        let mut room = rank.buffer::<i64>(4).unwrap();
        let to = room.bytes_mut().as_mut_ptr();
        let fold = |op, a: i64, b: i64| match op {
            Op::Sum => a + b,
            Op::Max => a.max(b),
            Op::Bxor => a ^ b,
            Op::Replace => a,
            _ => b,
        };
        let ops = [Op::Sum, Op::Max, Op::Bxor, Op::Replace, Op::NoOp];
        let mut there = [0i64; 3];
        calls.lock_all(Assert::NONE).unwrap();
        // Each operation three times, on one element, on several, and by two types.
        for (op, count) in ops.into_iter().flat_map(|op| [(op, 1), (op, 3), (op, 1)]) {
            for _ in 0..3 {
                let n = count as i64;
                // SAFETY: the memory outlives the flush.
                unsafe {
                    let result = (to, n, &long);
                    let got = calls.get_accumulate((from, n, &long), result, next, 1, n, &long, op);
                    got.unwrap();
                    if op != Op::NoOp {
                        calls.accumulate(from, n, &long, next, 1, n, &long, op).unwrap();
                        calls.accumulate(from, 1, &three, next, 1, 3, &long, op).unwrap();
                    }
                    let last = to.wrapping_add(24);
                    calls.fetch_and_op(from, last, &long, next, 1, op).unwrap();
                }
                calls.flush(next).unwrap();
                let found = room.to_vec().unwrap();
                assert_eq!(found[..count], there[..count], "{op:?} {count}");
                let (few, times) = ([6, -3, 5], if op == Op::NoOp { 0 } else { 1 });
                for (value, operand) in there.iter_mut().zip(few).take(count) {
                    (0..2 * times).for_each(|_| *value = fold(op, operand, *value));
                }
                for (value, operand) in there.iter_mut().zip(few) {
                    (0..times).for_each(|_| *value = fold(op, operand, *value));
                }
                assert_eq!(found[3], there[0], "{op:?} {count}");
                there[0] = fold(op, 6, there[0]);
                // SAFETY: the memory outlives the flush.
                let refused = [-1, 8].map(|at| unsafe {
                    calls.get_accumulate((from, 3, &long), (to, 3, &long), next, at, 3, &long, op)
                });
                let refused = refused.map(class);
                assert!(refused.iter().all(Option::is_some), "{op:?} {refused:?}");
            }
        }
        for _ in 0..3 {
            // SAFETY: the memory outlives the flush.
            let swap = |new: usize, compare: usize, at| unsafe {
                let [new, compare] = [new, compare].map(|element| from.wrapping_add(8 * element));
                let swapped = calls.compare_and_swap(new, compare, to, &long, next, at);
                (calls.flush(next).unwrap(), class(swapped)).1
            };
            assert_eq!(swap(0, 1, 5), None);
            assert!(swap(0, 0, -1).is_some() && swap(0, 0, 10).is_some());
        }
        assert_eq!(room.to_vec().unwrap()[0], 0);
        calls.unlock_all().unwrap();
        world.barrier().unwrap();
        window.free().unwrap();
    });
}

/// A window over memory behind a pointer, and a collective call with pointers.
#[test]
#[allow(unsafe_code)]
fn a_window_over_a_pointer_leaves_the_memory_in_place() {
    everywhere(crowd(3), |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let next = (me + 1) % size;
        let long = rank.type_of::<i64>().unwrap();
        let mut own = rank.buffer::<i64>(3).unwrap();
        let start = own.bytes_mut().as_mut_ptr();
        // SAFETY: the buffer outlives the window, and nothing accesses it by another path
        // meanwhile.
        let memory = unsafe { Pointed::new(start, 24) };
        let mut window = Window::create(world, memory, 8, &Info::default()).unwrap();
        let value = [i64::from(me)];
        window.fence(|epoch| epoch.put(&value, next, 1, 1, &long)).unwrap();
        assert_eq!(window.base(), start);
        let memory = window.free().unwrap();
        assert_eq!((memory.start(), memory.len()), (start, 24));
        // SAFETY: the buffer has three elements, and the two parts of it don't overlap.
        let (from, to) = unsafe {
            (Origin::raw(start, 2, &long), Destination::raw(start.wrapping_add(16), 1, &long))
        };
        // Two elements don't fit into one.
        assert_eq!(class(world.allreduce(from, to, Op::Sum)), Some(Class::Type));
        // SAFETY: the buffer has three elements, and the two parts of it don't overlap.
        let (from, to) = unsafe {
            let from = start.wrapping_add(8);
            (Origin::raw(from, 1, &long), Destination::raw(start.wrapping_add(16), 1, &long))
        };
        world.allreduce(from, to, Op::Sum).unwrap();
        let (before, sum) = ((me + size - 1) % size, size * (size - 1) / 2);
        assert_eq!(own.to_vec().unwrap(), [0, i64::from(before), i64::from(sum)]);
    });
}

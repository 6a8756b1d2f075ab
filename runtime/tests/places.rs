//! The place that an error names: the call's source line, and the window by its name.

use std::panic::Location;
use std::sync::{Arc, Mutex};

use longshore::job::{Checking, Routes, Topics};
use longshore::sim::{Options, run};
use longshore::{
    Assert, Class, Error, ErrorHandler, ErrorKind, Info, LockType, Op, Place, Rank, Result, Window,
};

/// The line of its caller.
#[track_caller]
fn line() -> u32 {
    Location::caller().line()
}

/// The error names this file and the line, in its place and its text.
#[track_caller]
fn expect<T>((line, outcome): (u32, Result<T>)) -> Error {
    let Err(error) = outcome else { panic!("no error") };
    let site = error.place().and_then(|place| place.site).expect("a site");
    assert_eq!((site.line(), site.file()), (line, file!()), "{error}");
    assert!(error.to_string().contains(&format!("at {}:{line}:", file!())), "{error}");
    error
}

fn everywhere(body: impl Fn(Rank) + Sync) {
    for (routes, check) in [
        (Routes::Best, Checking::Off),
        (Routes::Message, Checking::Off),
        (Routes::Message, Checking::Report(Topics::default())),
    ] {
        run(2, &Options { routes, check, ..Options::default() }, &body).unwrap();
    }
}

#[test]
fn errors_of_windows_name_the_line_of_their_call() {
    everywhere(|rank| {
        let world = rank.world();
        let me = world.rank();
        let mut window = Window::allocate(world, 64, 8, &Info::default()).unwrap();
        window.set_name("temperatures");
        let long = rank.type_of::<i64>().unwrap();
        let value = [1i64];
        let error = expect((line(), window.lock(9, LockType::Shared, |_| Ok(()))));
        assert!(error.to_string().contains("window 1 \"temperatures\""), "{error}");
        assert_eq!(error.place().unwrap().name.as_deref(), Some("temperatures"));
        expect((line(), window.lock_all_with(Assert::NOPUT, |_| Ok(()))));
        expect((line(), window.start(world.group(), Assert::NOPUT, |_| Ok(()))));
        expect((line(), window.wait()));
        expect((line(), window.test()));
        expect((line(), window.route(9)));
        expect((line(), window.shared_query(9)));
        expect((line(), window.attach(vec![0u8; 8])));
        expect((line(), window.get::<i64>(8)));
        expect((line(), window.set(8, 1i64)));
        expect((line(), window.read(8, &mut [0i64])));
        expect((line(), window.local().bytes(64, 1)));
        expect((line(), window.raw().unlock(0)));
        expect((line(), window.raw().flush_all()));
        let failed = window.fence(|epoch| {
            expect((line(), epoch.get(&mut [0i64; 0], 9, 0, 0, &long)));
            expect((line(), epoch.put(&value, me, 8, 1, &long)));
            expect((line(), epoch.accumulate(&value, me, 8, 1, &long, Op::Sum)));
            expect((line(), epoch.fetch_and_op(1i64, me, 8, Op::Sum)));
            expect((line(), epoch.compare_and_swap(1i64, 0, me, 8)));
            Ok(())
        });
        failed.unwrap();
        let _ = window.lock_all(|epoch| {
            expect((line(), epoch.rput(vec![1i64], me, 8, 1, &long)));
            expect((line(), epoch.flush(9, |_| Ok(()))));
            Ok(())
        });
        window.free().unwrap();
        rank.finalize().unwrap();
    });
}

#[test]
fn errors_of_communicators_name_the_line_of_their_call() {
    everywhere(|rank| {
        let world = rank.world();
        expect((line(), world.send(&[1], 9, 0)));
        expect((line(), world.recv(&mut [1], 9, 0)));
        expect((line(), world.sendrecv((&[1], 9, 0), (&mut [1], 0, 0))));
        expect((line(), world.type_send(&rank.type_of::<i64>().unwrap(), 9, 0)));
        expect((line(), world.type_recv(9, 0)));
        expect((line(), world.isend(vec![1], 9, 0)));
        expect((line(), world.irecv(vec![1], 9, 0)));
        expect((line(), world.iprobe(9, 0)));
        expect((line(), world.probe(9, 0)));
        expect((line(), world.bcast(&mut [1], 9)));
        expect((line(), world.split(Some(-1), 0)));
        expect((line(), world.create_group(world.group(), -1)));
        expect((line(), world.pack(&[1i64], &mut [0], &mut 0)));
        expect((line(), Window::allocate(world, -1, 8, &Info::default())));
        rank.finalize().unwrap();
    });
}

#[test]
fn an_error_handler_sees_the_line_and_the_name() {
    everywhere(|rank| {
        let seen = Arc::new(Mutex::new(String::new()));
        let heard = seen.clone();
        let handler = move |_: &longshore::Holder<'_>, error: &Error| {
            assert_eq!(error.class(), Class::Rank);
            *heard.lock().unwrap() = error.to_string();
        };
        let window = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
        window.set_name("pressures");
        window.set_errhandler(ErrorHandler::Own(Arc::new(handler)));
        let (line, _) = (line(), window.lock(7, LockType::Shared, |_| Ok(())));
        let text = seen.lock().unwrap().clone();
        assert!(text.contains("\"pressures\"") && text.contains(&format!(":{line}:")), "{text}");
        window.free().unwrap();
        rank.finalize().unwrap();
    });
}

#[test]
fn late_refusals_name_the_line_of_their_operation() {
    everywhere(|rank| {
        let world = rank.world();
        let long = rank.type_of::<i64>().unwrap();
        let window = Window::create_dynamic(world, &Info::default()).unwrap();
        let memory = window.attach(vec![0i64; 8]).unwrap();
        let mut address = [memory.address()];
        world.bcast(&mut address, 1).unwrap();
        let at = address[0];
        if world.rank() == 0 {
            // The target refuses the second put. Many later operations don't hide its line.
            // Answers come in order, except by an adversary, which may hold one until its line is
            // forgotten.
            let more = if std::env::var_os("LONGSHORE_ADVERSARY").is_some() { 10 } else { 400 };
            let mut bad = 0;
            let failed = window.lock_all(|epoch| {
                epoch.put(&[1i64], 1, at, 1, &long)?;
                let (called, put) = (line(), epoch.put(&[1i64], 1, 16, 1, &long));
                bad = called;
                put?;
                for _ in 0..more {
                    epoch.accumulate(&[1i64], 1, at + 8, 1, &long, Op::Sum)?;
                    epoch.accumulate(&[1i64], 1, at + 8, 1, &long, Op::Sum)?;
                }
                Ok(())
            });
            let error = failed.unwrap_err();
            assert!(error.to_string().contains(&format!("at {}:{bad}:", file!())), "{error}");
            let Place { issued, site, .. } = error.place().unwrap();
            assert!(matches!(error.kind(), ErrorKind::Refused { .. }), "{error}");
            assert_eq!(issued.map(|issued| issued.line()), Some(bad), "{error}");
            assert!(site.is_some_and(|site| site.line() < bad), "{error}");
        }
        world.barrier().unwrap();
        window.detach(memory).unwrap();
        window.free().unwrap();
        rank.finalize().unwrap();
    });
}

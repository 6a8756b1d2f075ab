//! Error handlers of windows and of other objects.

use std::sync::{Arc, Mutex};

use longshore::sim::{Options, run};
use longshore::{
    Assert, Callbacks, Class, Communicator, ErrorHandler, Given, Info, Keyval, LockType, Op, Window,
};

use super::everywhere;

/// An error handler that logs the object's name and the call.
fn listen(heard: &Arc<Mutex<Vec<String>>>) -> ErrorHandler {
    let heard = heard.clone();
    ErrorHandler::new(move |holder, error| {
        let call = error.place().map_or("", |place| place.call);
        let told = format!("{} {call} {}", holder.name(), error.class().mpi_name());
        heard.lock().unwrap().push(told);
    })
}

#[test]
fn each_error_reaches_one_handler_once() {
    everywhere(3, |rank, world| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = || std::mem::take(&mut *heard.lock().unwrap());
        let long = rank.type_of::<i64>().unwrap();
        let mut window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        assert_eq!(format!("{:?}", window.errhandler()), "MPI_ERRORS_RETURN");
        window.set_name("mine");
        window.set_errhandler(listen(&heard));
        let outcome = window.fence(|epoch| epoch.put(&[1i64], 1, 7, 1, &long));
        let error = outcome.unwrap_err();
        assert_eq!(told(), ["mine put MPI_ERR_RMA_RANGE"]);
        assert!(window.wait().is_err() && window.route(9).is_err());
        assert_eq!(told(), ["mine wait MPI_ERR_RMA_SYNC", "mine route MPI_ERR_RANK"]);
        assert!(window.get::<i64>(1).is_err() && window.set(-1, 1i64).is_err());
        let access = "mine access to its own window";
        assert_eq!(told(), ["RMA_RANGE", "DISP"].map(|class| format!("{access} MPI_ERR_{class}")));
        window.call_errhandler(&error);
        window.call_errhandler(&error);
        assert_eq!(told(), ["mine put MPI_ERR_RMA_RANGE"; 2]);
        // An error that only the target finds is returned by the call that completes the operation.
        let mut dynamic = Window::create_dynamic(world, &Info::default()).unwrap();
        dynamic.set_errhandler(listen(&heard));
        let put = |epoch: &longshore::Passive<'_, '_>| epoch.put(&[1i64], 1, 800, 1, &long);
        dynamic.lock(1, LockType::Shared, put).unwrap_err();
        assert_eq!(told(), [" put MPI_ERR_RMA_RANGE"]);
        let fetch = dynamic.lock(1, LockType::Shared, |epoch| {
            let fetched = epoch.fetch_and_op(1i64, 1, 800, Op::Sum)?;
            Ok(fetched.wait().is_err())
        });
        assert!(fetch.unwrap());
        assert_eq!(told().len(), 1);
        // The closing fence has two errors.
        let put = |epoch: &longshore::Epoch<'_, '_>| epoch.put(&[1i64], 1, 800, 1, &long);
        dynamic.fence_with(Assert::NONE, Assert::NOPRECEDE, put).unwrap_err();
        assert_eq!(told().len(), 1);
        dynamic.free().unwrap();
        window.free().unwrap();

        let mine = world.dup().unwrap();
        mine.set_name("parent");
        mine.set_errhandler(listen(&heard));
        assert!(Window::allocate(&mine, -1, 1, &Info::default()).is_err());
        assert_eq!(told(), ["parent allocate MPI_ERR_SIZE"]);
        let child = mine.split(Some(0), 0).unwrap().unwrap();
        assert!(child.send(&[0u8], 7, 0).is_err());
        assert_eq!(told(), [" send MPI_ERR_RANK"]);
        child.set_errhandler(ErrorHandler::Return);
        assert!(child.send(&[0u8], 7, 0).is_err());
        assert_eq!(told().len(), 0);
        child.free().unwrap();
        mine.free().unwrap();
    });
}

#[test]
fn error_handlers_get_errors_of_memory_attributes_and_flat_forms() {
    everywhere(3, |rank, world| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = || std::mem::take(&mut *heard.lock().unwrap());
        let mine = world.dup().unwrap();
        mine.set_name("mine");
        mine.set_errhandler(listen(&heard));
        let window = Window::allocate(&mine, 8, 8, &Info::default()).unwrap();
        window.set_errhandler(listen(&heard));
        if rank.is_emulated() {
            let long = rank.type_of::<i64>().unwrap();
            let typed = || Given::typed(vec![1i64], 1, &long, 0);
            let body = |epoch: &longshore::Passive<'_, '_>| {
                assert!(epoch.rput(typed(), 1, 0, 1, &long).is_err());
                assert!(epoch.rget(typed(), 1, 0, 1, &long).is_err());
                assert!(epoch.raccumulate(typed(), 1, 0, 1, &long, Op::Sum).is_err());
                assert!(epoch.rget_accumulate(typed(), typed(), 1, 0, 1, &long, Op::Sum).is_err());
                Ok(())
            };
            window.lock_all(body).unwrap();
            let calls = ["rput", "rget", "raccumulate", "rget_accumulate"];
            assert_eq!(told(), calls.map(|call| format!(" {call} MPI_ERR_BUFFER")));
        }
        let key: Keyval<Window, i32> = rank.create_keyval(Callbacks::default()).unwrap();
        key.clone().free();
        assert!(window.attr(&key).is_err() && window.set_attr(&key, 1).is_err());
        let error = window.delete_attr(&key).unwrap_err();
        assert_eq!(error.place().unwrap().window, Some(window.number()));
        let calls = ["get_attr", "set_attr", "delete_attr"];
        assert_eq!(told(), calls.map(|call| format!(" {call} MPI_ERR_KEYVAL")));
        let key: Keyval<Communicator, i32> = rank.create_keyval(Callbacks::default()).unwrap();
        key.clone().free();
        assert!(mine.attr(&key).is_err());
        assert_eq!(told(), ["mine get_attr MPI_ERR_KEYVAL"]);
        window.free().unwrap();
    });
    run(1, &Options::default(), |rank| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let mine = rank.world().dup().unwrap();
        mine.set_errhandler(listen(&heard));
        let described = rank.unpack_communicator(mine.flat().unwrap().as_bytes(), &mut 0).unwrap();
        rank.finalize().unwrap();
        assert!(mine.flat().is_err() && mine.compare_unpacked(&described).is_err());
        let words = ["flat", "compare_unpacked"].map(|call| format!(" {call} MPI_ERR_OTHER"));
        assert_eq!(*heard.lock().unwrap(), words);
    })
    .unwrap();
}

/// Ranks that share a process get a fatal error from later calls. Ranks in separate processes are
/// ended by their launcher.
#[test]
fn a_fatal_error_ends_the_job() {
    for handler in [ErrorHandler::Fatal, ErrorHandler::Abort] {
        run(2, &Options::default(), |rank| {
            let world = rank.world();
            world.barrier().unwrap();
            let error = match world.rank() {
                0 => {
                    world.set_errhandler(handler.clone());
                    assert_eq!(world.send(&[0u8], 5, 0).unwrap_err().class(), Class::Rank);
                    world.set_errhandler(ErrorHandler::Return);
                    world.recv(&mut [0u8], 1, 0).unwrap_err()
                }
                _ => world.barrier().unwrap_err(),
            };
            assert_eq!(error.class(), Class::ProcAborted, "{error}");
        })
        .unwrap();
    }
}

//! Puts and gets through epochs, by every route.

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{Architecture, Datatype, Info, Origin, Rank, Route, Window};

/// Everyone puts a column into the next rank's matrix, and gets it back.
fn exchange(rank: Rank) -> Route {
    let world = rank.world();
    let (me, size) = (world.rank(), world.size());
    let next = (me + 1) % size;
    let mut window = Window::allocate(world, 80 * 8, 8, &Info::default()).unwrap();
    let column = Datatype::vector(8, 1, 10, &Datatype::double()).unwrap();
    let column = rank.commit(&column).unwrap();
    let values: [f64; 8] = std::array::from_fn(|row| f64::from(me) + row as f64 / 8.0);
    window.fence(|epoch| epoch.put(&values, next, 3, 1, &column)).unwrap();
    let before = (me + size - 1) % size;
    for row in 0..8 {
        let found: f64 = window.get(row * 10 + 3).unwrap();
        assert_eq!(found, f64::from(before) + row as f64 / 8.0);
        assert_eq!(window.get::<f64>(row * 10 + 2).unwrap(), 0.0);
    }
    let mut back = [0.0f64; 8];
    window.fence(|epoch| epoch.get(&mut back, next, 3, 1, &column)).unwrap();
    assert_eq!(back, values);
    let mut buffer = rank.buffer::<f64>(8).unwrap();
    window.fence(|epoch| epoch.get(&mut buffer, next, 3, 1, &column)).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), values);
    window.fence(|epoch| epoch.put(Origin::from(&buffer), me, 4, 1, &column)).unwrap();
    assert_eq!(window.get::<f64>(14).unwrap(), values[1]);
    let route = window.route(next).unwrap();
    window.free().unwrap();
    rank.finalize().unwrap();
    route
}

#[test]
fn like_ranks_go_direct() {
    assert_eq!(run(3, &Options::default(), exchange).unwrap(), [Route::Direct; 3]);
    assert_eq!(run_shared(2, &Options::default(), exchange).unwrap(), [Route::Direct; 2]);
    assert_eq!(run_shared(5, &Options::default(), exchange).unwrap(), [Route::Direct; 5]);
}

#[test]
fn like_ranks_go_by_message_when_told() {
    let options = Options { routes: Routes::Message, ..Options::default() };
    assert_eq!(run(3, &options, exchange).unwrap(), [Route::Message; 3]);
    assert_eq!(run_shared(4, &options, exchange).unwrap(), [Route::Message; 4]);
    assert_eq!(run(1, &options, exchange).unwrap(), [Route::Message]);
}

#[test]
fn unlike_ranks_understand_each_other() {
    let architectures =
        vec![Architecture::S390X, Architecture::I686, Architecture::WIN64, Architecture::M68K];
    let options = Options { architectures, ..Options::default() };
    assert_eq!(run(4, &options, exchange).unwrap(), [Route::Message; 4]);
    assert_eq!(run_shared(4, &options, exchange).unwrap(), [Route::Message; 4]);
}

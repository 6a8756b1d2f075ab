use longshore::{Info, Window};
use std::time::Instant;
fn main() -> Result<(), longshore::Error> {
    let rank = longshore::init()?;
    let world = rank.world();
    let mut window = Window::allocate(world, 64, 8, &Info::default())?;
    let double = rank.type_of::<f64>()?;
    let n: usize = std::env::args().nth(1).map_or(2_000_000, |n| n.parse().unwrap());
    let value = [1.5f64];
    for _ in 0..7 {
        world.barrier()?;
        if world.rank() == 0 {
            let start = Instant::now();
            window.lock_all(|epoch| {
                for chunk in 0..n / 1000 {
                    let _ = chunk;
                    epoch.flush(1, |epoch| {
                        for _ in 0..1000 {
                            epoch.put(&value, 1, 0, 1, &double)?;
                        }
                        Ok(())
                    })?;
                }
                Ok(())
            })?;
            let stream = start.elapsed().as_nanos() as f64 / n as f64;
            let m = n / 100;
            let start = Instant::now();
            window.lock_all(|epoch| {
                for _ in 0..m {
                    epoch.flush(1, |epoch| epoch.put(&value, 1, 0, 1, &double))?;
                }
                Ok(())
            })?;
            let flushed = start.elapsed().as_nanos() as f64 / m as f64;
            println!("put {stream:.1} ns; put+flush {flushed:.1} ns");
        }
        world.barrier()?;
    }
    let _ = &mut window;
    window.free()?;
    rank.finalize()
}

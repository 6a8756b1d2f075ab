//! The README's first program.

use longshore::{Datatype, Info, Window};

pub fn main() -> longshore::Result<()> {
    let rank = longshore::init()?;
    let world = rank.world();

    // The third column of a 4 x 5 matrix of doubles. It counts doubles, not bytes: portable.
    let column = rank.commit(&Datatype::vector(4, 1, 5, &Datatype::double())?)?;
    let mut window = Window::allocate(world, 4 * 5 * 8, 8, &Info::default())?;

    let next = (world.rank() + 1) % world.size();
    let values = [1.0, 2.0, 3.0, 4.0].map(|x| x * f64::from(world.rank() + 1));
    window.fence(|epoch| epoch.put(&values, next, 2, 1, &column))?;

    println!("rank {} got {} in row 2", world.rank(), window.get::<f64>(2 * 5 + 2)?);
    window.free()?;
    rank.finalize()
}

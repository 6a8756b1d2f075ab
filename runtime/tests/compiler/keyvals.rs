//! A keyval is for one kind of object.

use longshore::{Communicator, Keyval, Type, Window};

fn of_a_type(key: &Keyval<Type, u32>, world: &Communicator, window: &Window) {
    let _ = world.attr(key);
    let _ = window.set_attr(key, 1u32);
}

fn of_a_communicator(key: &Keyval<Communicator, u32>, own: &Type, window: &Window) {
    let _ = own.set_attr(key, 1u32);
    let _ = window.delete_attr(key);
}

fn of_a_window(key: &Keyval<Window, u32>, own: &Type, world: &Communicator) {
    let _ = own.attr(key);
    let _ = world.delete_attr(key);
}

fn main() {}

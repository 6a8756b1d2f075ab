use shipable::Shipable;

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
#[shipable(path = shipable)]
struct Elsewhere {
    value: u8,
}

fn main() {}

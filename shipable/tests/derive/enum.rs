use shipable::Shipable;

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
enum Choice {
    A,
    B,
}

fn main() {}

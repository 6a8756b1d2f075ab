use shipable::Shipable;

#[derive(Clone, Copy, Shipable)]
struct Unordered {
    a: u8,
    b: u64,
}

fn main() {}

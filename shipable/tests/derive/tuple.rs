use shipable::Shipable;

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
struct Long {
    values: (u8, u8, u8, u8, u8, u8, u8, u8, u8),
}

fn main() {}

use shipable::Shipable;

#[derive(Clone, Copy, Shipable)]
enum Unsized {
    A,
    B,
}

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
enum Width {
    A,
    B,
}

#[derive(Clone, Copy, Shipable)]
#[repr(usize)]
enum Pointer {
    A,
    B,
}

#[derive(Clone, Copy, Shipable)]
#[repr(u8)]
enum Shape {
    Circle { radius: f32 },
    Point,
}

#[derive(Clone, Copy, Shipable)]
enum Never {}

fn main() {}

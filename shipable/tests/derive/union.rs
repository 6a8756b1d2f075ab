use shipable::Shipable;

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
union Either {
    integer: u32,
    float: f32,
}

fn main() {}

use shipable::Shipable;

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
struct Borrowed<'a> {
    value: u8,
    from: std::marker::PhantomData<&'a u8>,
}

fn main() {}

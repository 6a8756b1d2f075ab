use shipable::Shipable;

#[derive(Clone, Shipable)]
#[repr(C)]
struct Owning {
    name: String,
    values: std::vec::Vec<f64>,
    next: Option<Box<Owning>>,
}

fn main() {}

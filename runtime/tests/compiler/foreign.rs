//! A foreign type is only a target type (rule T3): it is no origin or result, it is neither sent,
//! received nor packed, it is neither measured nor duplicated, and nothing is built of it.

use longshore::{Communicator, Destination, ForeignType, Origin};

fn is_no_origin(foreign: &ForeignType, values: &[f64]) {
    let _ = Origin::typed(values, 1, foreign);
}

fn is_no_result(foreign: &ForeignType, values: &mut [f64]) {
    let _ = Destination::typed(values, 1, foreign);
}

fn is_not_sent_on(foreign: &ForeignType, world: &Communicator) {
    let _ = world.type_send(foreign, 0, 0);
}

fn is_not_packed(foreign: &ForeignType, world: &Communicator) {
    let _ = world.pack_size(1, foreign);
}

fn has_no_extent_here(foreign: &ForeignType) {
    let _ = foreign.extent();
}

fn has_no_bounds_here(foreign: &ForeignType) {
    let _ = foreign.bounds();
}

fn has_no_dup(foreign: &ForeignType) {
    let _ = foreign.dup();
}

fn has_no_datatype_to_build_with(foreign: &ForeignType) {
    let _ = foreign.datatype();
}

fn main() {}

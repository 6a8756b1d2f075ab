//! The limit on a process's mappings. It is a program of its own, since other tests need mappings
//! too.

use longshore_transport::Segment;

/// The limit itself is the system's, so the test takes memory until it is reached.
#[test]
fn processes_are_told_the_limit_on_mappings_and_keep_some_for_their_allocator() {
    let rank = Segment::create(1).unwrap().as_rank(0).unwrap();
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    let most: usize = most.trim().parse().unwrap();
    if most > 65_536 {
        return;
    }
    let mut held = Vec::new();
    let refused = loop {
        let range = rank.allocate(1).unwrap();
        match rank.map(range) {
            Ok(mapping) => held.push(mapping),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.to_string().matches("vm.max_map_count").count(), 1, "{refused}");
    assert!(refused.to_string().contains(&most.to_string()), "{refused}");
    assert!(held.len() > most / 2 && held.len() < most - 2000, "{}", held.len());
    // The allocator takes this much by a mapping of its own.
    assert_eq!(vec![1u8; 64 << 20].len(), 64 << 20);
}

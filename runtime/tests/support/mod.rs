//! What several tests of this crate share.

/// So many ranks, or as many as LONGSHORE_TEST_RANKS says where that is more: for tests that any number can play.
pub fn crowd(ranks: u32) -> u32 {
    let wanted = std::env::var("LONGSHORE_TEST_RANKS").ok().and_then(|ranks| ranks.parse().ok());
    wanted.unwrap_or(0).max(ranks)
}

//! What the launcher hears of ranks and of agents, and what an agent hears of its launcher.
//!
//! The input is a list of steps: a byte for the speaker, a length in two bytes, and the bytes that
//! it sends. A speaker may send a message in several steps, but none after it was hung up on.
#![no_main]

use longshore_fuzz as _;
use longshore_launcher::Launcher;

/// Half of the ranks.
const RANKS: u8 = 2;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut launcher = Launcher::new(RANKS.into());
    let mut rest = bytes;
    let (mut listens_to_agent, mut agent_listens) = (true, true);
    while let Some((&[speaker, low, high], steps)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(steps.len());
        let (said, others) = steps.split_at(length);
        rest = others;
        let rank = u32::from(speaker / 4 % RANKS);
        match speaker % 4 {
            0 if listens_to_agent => listens_to_agent = launcher.hear_agent(said),
            1 if agent_listens => agent_listens = launcher.hear_launcher(said),
            // A rank of the launcher's own host.
            2 if !launcher.hear_rank(rank, said) => return,
            3 => launcher.lose_rank(rank),
            _ => {}
        }
    }
});

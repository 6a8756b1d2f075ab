//! A rank's process forks.

use longshore::sim::{Options, run_shared};

/// The end of a child isn't the end of its parent's rank.
#[test]
#[allow(unsafe_code)]
fn a_forked_child_that_drops_its_copy_of_the_rank_leaves_the_job_alone() {
    let options = Options { progress: false, ..Options::default() };
    run_shared(2, &options, |rank| {
        if rank.world().rank() == 0 {
            // SAFETY: the child only drops its copy of the rank, and ends without destructors or
            // handlers.
            match unsafe { libc::fork() } {
                0 => {
                    drop(rank);
                    // SAFETY: it ends the child at once.
                    unsafe { libc::_exit(0) }
                }
                child => {
                    let mut status = -1;
                    // SAFETY: the status is a local variable.
                    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                    assert_eq!(status, 0);
                }
            }
        }
        rank.world().barrier().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}

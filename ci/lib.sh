# Sourced by the scripts here: where things lie, and how they say what they do.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

# What a run makes goes to the target folder; toolchains that outlive a clone go to the cache.
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
CACHE=${LONGSHORE_CACHE:-${XDG_CACHE_HOME:-${HOME:-$TARGET}/.cache}/longshore}
MSRV=1.85
DEBIAN_RUST=$CACHE/rust-$MSRV

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# A step that can't run here says why, and leaves with a status of its own.
SKIPPED=77
skip() { say "skipped: $*"; exit "$SKIPPED"; }

# The examples that are jobs: all programs but the one that makes another's file.
examples() { basename -s .rs examples/src/bin/*.rs | grep -vx make-shipments; }

# Words that have `cargo test --workspace` run the integration tests of these folders' crates alone. Steps select what they run, not
# what is built: for a part of the workspace cargo takes other features of the crates below, and compiles nearly all of it again.
tests_of() {
    local test
    for test in $(printf '%s/tests/*.rs\n' "$@") $(printf '%s/tests/*/main.rs\n' "$@"); do
        [ -e "$test" ] || continue
        test=${test%/main.rs}
        printf '%s\n' --test "$(basename -s .rs "$test")"
    done
}

# Installs Debian's packages, which needs root and the network; who can't go on without them is skipped.
apt_install() {
    have apt-get && [ "$(id -u)" = 0 ] || skip "missing here, install by hand: $*"
    say "installing $*"
    # A source that doesn't answer is no reason to stop: the install says whether anything is really missing.
    apt-get -q update >&2 || say "some package lists couldn't be refreshed"
    # --no-remove: gcc-multilib, for one, can't stand beside the cross compilers; that is for a person to decide.
    DEBIAN_FRONTEND=noninteractive apt-get -qy --no-install-recommends --no-remove install "$@" >&2 ||
        skip "apt can't install: $*"
}

# What ci/cross takes for an architecture. Steps that use it where a failure would go unseen ask first.
cross_tools() {
    local architecture
    [ -e "$DEBIAN_RUST/complete" ] || ci/setup rust || skip "no Rust $MSRV in $DEBIAN_RUST"
    for architecture in "$@"; do
        [ "$architecture" != host ] || continue
        have "$architecture-linux-gnu-gcc" || skip "no $architecture-linux-gnu-gcc"
        [ -e "/usr/$architecture-linux-gnu/lib/libc.a" ] || skip "no C library for $architecture"
        [ "$architecture" != s390x ] || have qemu-s390x-static || skip "no qemu-s390x-static"
    done
}

# Runs a check of the source that the crate in ci/checks makes. It is built as a member of the
# workspace, with the features that the other steps build its dependencies with.
checks() {
    cargo build --quiet --locked --workspace --bin longshore-checks
    "$TARGET/debug/longshore-checks" "$@"
}

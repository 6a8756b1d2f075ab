# Sourced by all scripts of this folder: paths, and functions for messages and installation.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

# Results of a run go to the target folder. Toolchains, which outlive a clone, go to the cache.
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
CACHE=${LONGSHORE_CACHE:-${XDG_CACHE_HOME:-${HOME:-$TARGET}/.cache}/longshore}
MSRV=1.85
DEBIAN_RUST=$CACHE/rust-$MSRV

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# Prints a code block of a page, by its language and its number among the blocks of that language.
block() {
    awk -v mark="\`\`\`$2" -v number="${3:-1}" '$0 == mark { seen++; inside = seen == number; next } /^```/ { inside = 0 } inside' "$1"
}

# Whether a file has what the ring of docs/c.md prints with four ranks.
is_ring() { [ "$(sort "$1" | tr '\n' ' ')" = "rank 0 got 3 rank 1 got 0 rank 2 got 1 rank 3 got 2 " ]; }

# The version of this tree's packages.
version_here() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml"; }

# Ends a step that can't run on this machine: prints the reason, and exits with a status of its own.
SKIPPED=77
skip() { say "skipped: $*"; exit "$SKIPPED"; }

# The architectures that ci/cross builds for: name, Rust's target, the prefix of GNU's tools, the
# emulator, the package of the C library, and the architecture of Debian's package of Rust's
# standard library. "-" is no emulator, since this machine runs i686, and no such package, so that
# ci/setup builds the library.
CROSS=(
    "s390x s390x-unknown-linux-gnu s390x-linux-gnu qemu-s390x-static libc6-dev-s390x-cross s390x"
    "i686 i686-unknown-linux-gnu i686-linux-gnu - libc6-dev-i386-cross i386"
    "aarch64 aarch64-unknown-linux-gnu aarch64-linux-gnu qemu-aarch64-static libc6-dev-arm64-cross arm64"
    "powerpc powerpc-unknown-linux-gnu powerpc-linux-gnu qemu-ppc-static libc6-dev-powerpc-cross -"
    "armhf armv7-unknown-linux-gnueabihf arm-linux-gnueabihf qemu-arm-static libc6-dev-armhf-cross armhf"
    "ppc64le powerpc64le-unknown-linux-gnu powerpc64le-linux-gnu qemu-ppc64le-static libc6-dev-ppc64el-cross ppc64el"
    "riscv64 riscv64gc-unknown-linux-gnu riscv64-linux-gnu qemu-riscv64-static libc6-dev-riscv64-cross -"
)

# The names of these architectures.
crosses() { printf '%s\n' "${CROSS[@]%% *}"; }

# Sets cross_target, cross_gnu, cross_qemu, cross_libc and cross_std to the row of an architecture,
# and cross_mark to the file that exists once its standard library is there. Fails if there is no
# such row.
cross_row() {
    local row
    for row in "${CROSS[@]}"; do
        [ "${row%% *}" = "$1" ] || continue
        read -r _ cross_target cross_gnu cross_qemu cross_libc cross_std <<<"$row"
        cross_mark=$DEBIAN_RUST/std/$1
        # Libraries that were built without bitcode are built again.
        [ "$cross_std" != - ] || cross_mark+=-bitcode
        return 0
    done
    return 1
}

# The examples that run as jobs. Their program must be built.
examples() { "$TARGET/debug/example" --list | cut -d' ' -f1; }

# Sets WORKSPACE: the arguments with which every step builds and tests the workspace. They include
# views of ndarray. All steps have the same features, since cargo compiles nearly everything again
# for others. Sets CROSSED: the arguments for the other architectures that are named, whose programs
# are linked statically, with libfabric if it is there. Sets LIBFABRIC to whether it is there for
# all, and exports where programs of this machine find it. Tests that need it are skipped otherwise.
workspace() {
    local architecture settings found=${FOUND:-}
    WORKSPACE=(--workspace --locked --features longshore/ndarray)
    CROSSED=("${WORKSPACE[@]}")
    LIBFABRIC=
    for architecture in host "$@"; do
        settings=$(ci/libfabric $found "$architecture") || { say "no libfabric"; return 0; }
        eval "$settings"
    done
    CROSSED+=(--features longshore/linked-libfabric)
    LIBFABRIC=yes
}

# Builds the command and the C interface in release mode. With an argument, installs them in that
# folder. All steps have the same features, so that they build once.
release_build() {
    workspace
    cargo build --release --locked -p longshore-cli -p longshore-abi
    [ $# = 0 ] || "$TARGET/release/longshore" install "$1" >&2
}

# As `workspace`, for the steps of the core, which install and build nothing but the workspace.
workspace_as_found() { FOUND=--found workspace; }

# Builds the libraries and programs of WORKSPACE, with its tests. Without these, cargo would choose
# fewer features of the dependencies, and compile nearly everything again.
build_workspace() { cargo build "${WORKSPACE[@]}" --lib --bins --tests "$@"; }

# As `workspace`, for steps that need libfabric.
workspace_with_fabric() {
    workspace "$@"
    [ -n "$LIBFABRIC" ] || skip "no libfabric"
}

# Arguments with which `cargo test "${WORKSPACE[@]}"` runs only the integration tests of these
# folders' crates. Steps select tests, not packages: for a part of the workspace, cargo would choose
# other features of the dependencies, and compile nearly everything again.
tests_of() {
    local test
    for test in $(printf '%s/tests/*.rs\n' "$@") $(printf '%s/tests/*/main.rs\n' "$@"); do
        [ -e "$test" ] || continue
        test=${test%/main.rs}
        printf '%s\n' --test "$(basename -s .rs "$test")"
    done
}

# Sets WORKSPACE: the arguments with which steps build and test shipable, transport, runtime and the
# examples for an architecture. All steps have the same, so that cargo compiles each crate once for
# it. The architectures of jobs on several hosts are built with libfabric, if it is there.
cross_workspace() {
    local crate
    case $1 in
        s390x | i686)
            workspace "$1"
            WORKSPACE=("${CROSSED[@]}")
            ;;
        *) WORKSPACE=(--workspace --locked --features longshore/ndarray) ;;
    esac
    # Not the crates that run only on this machine, and tables and types of the C interface. The
    # features of the other crates don't depend on these.
    for crate in benches checks abi abi-table; do WORKSPACE+=(--exclude "longshore-$crate"); done
}

# Tests of what the compiler refuses, by words in their names. They compile the crates once more,
# and their outcome is the same however the tests were built.
OF_COMPILER=(--skip compile_errors --skip trait_checks --skip foreign_types_and_keyvals)

# Tests that no emulated program runs, by words in their names: those; tests of several processes
# (processes), which start this machine's launcher; and the link over libfabric (fabric), which
# needs options of sockets that the emulator lacks.
NOT_EMULATED=("${OF_COMPILER[@]}" --skip processes --skip fabric)

# The test programs of shipable, transport and runtime whose outcome can't depend on how a machine
# represents data, or that a slow machine only makes slow. As programs of x86-64 and i686, CI runs
# them all. As programs of other machines, only ci/steps/suites does.
#     constructors contents notation flat roundtrip lowering bounds
#         values of datatypes, texts and sums, for architectures that the test names
#     footprint parallel forks traces compiler loom
#         the allocator, threads, fork, the log, the compiler, and models of threads
#     ranges damage
#         words of the segment, whose width i686 changes, and bytes that are wrong everywhere
#     rules types attributes panics places checks
#         which calls are errors or reports, with their texts and lines
#     communicators intercommunicators nonblocking races transfers windows
#         groups, the order of calls, and memory that is short, shared, attached or moved
REPRESENTATION_FREE=(
    constructors contents notation flat roundtrip lowering bounds
    footprint parallel forks traces compiler loom
    ranges damage
    rules types attributes panics places checks
    communicators intercommunicators nonblocking races transfers windows
)

# The folders of the workspace's crates.
members() { sed -n '/^members = \[/,/^\]/s/^ *"\(.*\)",$/\1/p' Cargo.toml; }

# As `tests_of` for shipable, transport and runtime, without these. A new program is in.
representation_tests() {
    tests_of shipable transport runtime |
        paste - - | grep -vxFf <(printf -- '--test\t%s\n' "${REPRESENTATION_FREE[@]}")
}

# Installs Debian packages, which needs root and the network. Skips the step if that fails.
apt_install() {
    have apt-get && [ "$(id -u)" = 0 ] || skip "missing here, install by hand: $*"
    say "installing $*"
    # An unreachable source is no error here: the install fails if a package is really missing.
    apt-get -q update >&2 || say "some package lists couldn't be refreshed"
    # --no-remove: some packages, such as gcc-multilib, conflict with the cross compilers. Removing
    # them is the user's decision.
    DEBIAN_FRONTEND=noninteractive apt-get -qy --no-install-recommends --no-remove install "$@" >&2 ||
        skip "apt can't install: $*"
}

# Checks that the tools that ci/cross needs for an architecture exist, otherwise skips the step.
# Steps that call ci/cross where a failure would be hidden call this first.
cross_tools() {
    local architecture cross_target cross_gnu cross_qemu cross_libc cross_std cross_mark
    [ -e "$DEBIAN_RUST/complete" ] || ci/setup rust || skip "no Rust $MSRV in $DEBIAN_RUST"
    for architecture in "$@"; do
        [ "$architecture" != host ] || continue
        cross_row "$architecture" || die "no such architecture: $architecture"
        [ -e "$cross_mark" ] || ci/setup "$architecture" ||
            skip "no standard library of Rust $MSRV for $architecture in $DEBIAN_RUST"
        have "$cross_gnu-gcc" || skip "no $cross_gnu-gcc"
        [ -e "/usr/$cross_gnu/lib/libc.a" ] || skip "no C library for $architecture"
        [ "$cross_qemu" = - ] || have "$cross_qemu" || skip "no $cross_qemu"
    done
}

# Runs a check of the source that the crate in ci/checks makes. It is built as a member of the
# workspace, with the features that the other steps build its dependencies with.
checks() {
    cargo build --quiet --locked --workspace --bin longshore-checks
    "$TARGET/debug/longshore-checks" "$@"
}

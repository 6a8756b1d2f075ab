# Sourced by scripts that unpack Debian packages of any architecture, without installing them.

# apt with a separate state, so that foreign packages can be fetched without changing the machine's.
private_apt() {
    apt-get -q -o Dir::State="$1/state" -o Dir::State::status="$1/status" -o Dir::Cache="$1/cache" \
        -o APT::Architectures::=amd64 -o "APT::Architectures::=$2" -o APT::Sandbox::User=root "${@:3}"
}

# Downloads packages of Debian, for amd64 or the architecture that is named, and unpacks them into
# a folder.
unpack_packages() {
    local into=$1 architecture=$2 apt=$1/apt package
    shift 2
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    private_apt "$apt" "$architecture" update >&2 || say "some package lists couldn't be refreshed"
    (cd "$apt" && private_apt "$apt" "$architecture" download "$@" >&2) || skip "apt can't download $*"
    for package in "$apt"/*.deb; do dpkg -x "$package" "$into"; done
    rm -rf "$apt"
}

# Sourced by steps that run jobs on several hosts, which are network namespaces connected by virtual
# Ethernet. Needs root, otherwise the step is skipped.

HOSTS=()
remove_hosts() {
    local host
    for host in "${HOSTS[@]}"; do ip netns delete "$host" || true; done
}

# add_host NAME: adds a namespace, which is deleted when the script ends.
add_host() {
    trap remove_hosts EXIT
    [ "$(id -u)" = 0 ] && have ip && ip netns add "$1" 2>/dev/null || skip "network namespaces need root and iproute2"
    HOSTS+=("$1")
}

# wire A B [bridge]: adds two hosts, 10.77.0.1 and 10.77.0.2, connected by an interface pair named
# wire. With "bridge" each has a bridge before it, with the same address, as hosts of containers do.
wire() {
    local host
    add_host "$1"
    add_host "$2"
    for host in ${3:+"$1" "$2"}; do
        ip -n "$host" link add bridge type bridge
        ip -n "$host" address add 172.17.0.1/16 dev bridge
        ip -n "$host" link set bridge up
    done
    ip link add wire netns "$1" type veth peer name wire netns "$2"
    ip -n "$1" address add 10.77.0.1/24 dev wire
    ip -n "$2" address add 10.77.0.2/24 dev wire
    ip -n "$1" link set wire up
    ip -n "$2" link set wire up
}

# apart A B NEAR FAR: adds two hosts, 10.77.0.1 and 10.77.0.2, that aren't connected. Each is wired
# to a namespace that has the other's address, NEAR to A and FAR to B. ci/proxy stands between them.
apart() {
    local host number=0 middle
    for host in "$1" "$2"; do
        middle=${*:3+number:1}
        number=$((number + 1))
        add_host "$host"
        add_host "$middle"
        ip link add wire netns "$host" type veth peer name wire netns "$middle"
        ip -n "$host" address add "10.77.0.$number/24" dev wire
        ip -n "$middle" address add "10.77.0.$((3 - number))/24" dev wire
        ip -n "$host" link set wire up
        ip -n "$middle" link set wire up
    done
}

# switch NAME HOST...: adds hosts at one switch, with addresses from 10.77.1.1.
switch() {
    local switch=$1 host number=0
    add_host "$switch"
    ip -n "$switch" link add name switch type bridge
    ip -n "$switch" link set switch up
    for host in "${@:2}"; do
        number=$((number + 1))
        add_host "$host"
        ip link add wire netns "$host" type veth peer name "port$number" netns "$switch"
        ip -n "$switch" link set "port$number" master switch up
        ip -n "$host" address add "10.77.1.$number/24" dev wire
        ip -n "$host" link set wire up
    done
}

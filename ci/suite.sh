# Sourced by the steps that run the public conformance suite of MPI: the tests in C that Debian
# distributes with the source of MPICH, in the lists and with the numbers of ranks of the suite
# itself. Nothing of it is part of this project.

# fetch_suite FOLDER: fetches the suite, and sets `suite` to its folder.
fetch_suite() {
    suite=$1/source/test/mpi
    ci/debian-source mpich "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$1/source" --wildcards '*/test/mpi'
    # The suite has not given up two functions that MPI-3 removed.
    cat >"$1/removed.c" <<'SOURCE'
#include <mpi.h>
int MPI_Type_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype *type) {
  return MPI_Type_create_hvector(count, length, stride, old, type);
}
int MPI_Type_hindexed(int count, int *lengths, MPI_Aint *places, MPI_Datatype old, MPI_Datatype *type) {
  return MPI_Type_create_hindexed(count, lengths, places, old, type);
}
SOURCE
}

# build_suite FOLDER PREFIX "LIST..." [OPTION OF CONFIGURE...]: builds these lists in a folder, by
# the mpicc of an installation.
build_suite() {
    local build=$1 prefix=$2 lists=$3 folder list
    shift 3
    mkdir -p "$build"
    (cd "$build" && PATH=$prefix/bin:$PATH "$suite/configure" "--with-mpi=$prefix" --disable-fortran --disable-cxx \
        --enable-strictmpi CC=mpicc "$@") >"$build.configure.log" 2>&1 || { tail "$build.configure.log"; die "the suite's configure"; }
    "$prefix/bin/mpicc" -c "$suite/../../../removed.c" -o "$build/removed.o"
    for folder in util dtpools; do PATH=$prefix/bin:$PATH make -C "$build/$folder" -j2; done >"$build.make.log" 2>&1
    for list in $lists; do
        # Programs that don't compile count as tests that fail.
        PATH=$prefix/bin:$PATH make -C "$build/$list" -k -j2 "LIBS=$build/removed.o -lm" >>"$build.make.log" 2>&1 || true
    done
}

# Whether a program, with so many ranks, does what the suite expects. The further words are those of
# its line in the list. `launch RANKS PROGRAM ARGUMENT...` runs it, and is the step's.
passes() {
    local program=$1 ranks=$2 log=$3 word fails='' environment=() arguments=() status=0
    shift 3
    for word in "$@"; do
        case $word in
            env=*) environment+=("${word#env=}") ;;
            arg=*) arguments+=("${word#arg=}") ;;
            resultTest=*) fails=1 ;;
        esac
    done
    [ -x "$program" ] || { echo "not built" >"$log"; return 1; }
    (
        [ ${#environment[@]} -eq 0 ] || export "${environment[@]}"
        launch "$ranks" "$program" "${arguments[@]}"
    ) >"$log" 2>&1 </dev/null || status=$?
    if [ -n "$fails" ]; then [ $status != 0 ]; else [ $status = 0 ] && grep -qi '^ *no errors' "$log"; fi
}

# run_suite BUILD LOGS MARK LIST...: runs lists of a build, and prints the result. Tests that
# ci/conformance-exceptions names can't pass, and one that does must not be named. With a mark, as
# "unlike:", lines that begin with it are of this run only.
run_suite() {
    local build=$1 logs=$2 mark=$3 list lines number program ranks words log listed passed=0 failed=()
    shift 3
    for list in "$@"; do
        lines=$build/$list/testlist
        [ -e "$lines" ] || lines=$suite/$list/testlist
        mkdir -p "$logs/$list"
        number=0
        while read -r -u 3 program ranks words; do
            # Left out are comments, tests of what MPI doesn't promise, and those that the suite
            # itself expects to fail.
            case "$program $words" in '#'* | ' '* | *strict=[Ff]* | *xfail=*) continue ;; esac
            number=$((number + 1))
            log=$logs/$list/$program.$number
            listed=$(awk -v test="$list/$program" -v mark="$mark" '$1 == test || $1 == mark test' ci/conformance-exceptions)
            # shellcheck disable=SC2086 # words of a line
            if (cd "$build/$list" && passes "$program" "$ranks" "$log" $words); then
                [ -z "$listed" ] || failed+=("$list/$program passes: take it from ci/conformance-exceptions")
                passed=$((passed + 1))
            elif [ -z "$listed" ]; then
                failed+=("$list/$program with $ranks ranks: $log")
            fi
        done 3<"$lines"
        say "$list: $passed passed and ${#failed[@]} failed so far"
    done
    echo "test result: $([ ${#failed[@]} = 0 ] && echo ok || echo FAILED). $passed passed; ${#failed[@]} failed"
    [ ${#failed[@]} = 0 ] || { printf '%s\n' "${failed[@]}"; return 1; }
}

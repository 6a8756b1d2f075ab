"""The calls of windows and datatypes by mpi4py, among Pythons of unlike machines.

`ci/steps/unlike-python` runs it as jobs of x86-64, s390x, i686 and aarch64 interpreters.
"""

import array
import platform
import struct
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
me, size = comm.rank, comm.size
checks = 0
MACHINES = comm.allgather((sys.byteorder, struct.calcsize("l"), struct.calcsize("iq")))


def has_layout(rank):
    """Whether an int before an integer of 8 bytes has the same offset and gap there as here."""
    return MACHINES[rank][2] == MACHINES[me][2]


def check(right, what):
    global checks
    checks += 1
    if not right:
        print(f"rank {me}, {platform.machine()}: {what}", flush=True)
        comm.Abort(1)


def equal(found, expected, what):
    found, expected = list(found), list(expected)
    check(found == expected, f"{what}: {found}, expected {expected}")


def refused(error_class, words, call, what):
    try:
        call()
    except MPI.Exception as error:
        text = str(error)
        check(error.Get_error_class() == error_class and words in text, f"{what}: {text}")
    else:
        check(False, f"{what}: not refused")


def values(win, code):
    found = array.array(code)
    found.frombytes(bytes(win.tomemory()))
    return found


def fences():
    """Puts and gets between fences: each rank's numbers at each rank."""
    win = MPI.Win.Allocate(8 * size, 8, comm=comm)
    mine = array.array("d", [me + 0.5])
    win.Fence()
    for target in range(size):
        win.Put([mine, MPI.DOUBLE], target, target=(me, 1, MPI.DOUBLE))
    win.Fence()
    equal(values(win, "d"), [rank + 0.5 for rank in range(size)], "put")
    got = array.array("d", [0.0] * size)
    win.Get([got, MPI.DOUBLE], (me + 1) % size)
    win.Fence()
    equal(got, [rank + 0.5 for rank in range(size)], "get")
    win.Free()


def locks():
    """Longs are 4 or 8 bytes. Accumulates of all ranks on rank 0's."""
    unit = struct.calcsize("l")
    win = MPI.Win.Allocate(4 * unit, unit, comm=comm)
    win.Lock(me)
    memory = memoryview(win.tomemory()).cast("l")
    for at in range(4):
        memory[at] = 10 * at
    win.Unlock(me)
    comm.Barrier()
    mine = array.array("l", [me + 1, -(me + 1)])
    win.Lock(0, MPI.LOCK_SHARED)
    win.Accumulate([mine, MPI.LONG], 0, target=(0, 2, MPI.LONG), op=MPI.SUM)
    old = array.array("l", [0])
    one = array.array("l", [1])
    win.Fetch_and_op([one, MPI.LONG], [old, MPI.LONG], 0, 2, MPI.SUM)
    win.Unlock(0)
    check(20 <= old[0] < 20 + size, f"fetch_and_op: {old[0]}")
    comm.Barrier()
    got = array.array("l", [0] * 4)
    win.Lock_all()
    win.Get([got, MPI.LONG], 0)
    win.Flush(0)
    total = size * (size + 1) // 2
    equal(got, [total, 10 - total, 20 + size, 30], "accumulate")
    comm.Barrier()
    # One rank swaps, and the others find another value.
    swap, compare, found = (array.array("l", [value]) for value in (100 + me, 30, 0))
    win.Compare_and_swap([swap, MPI.LONG], [compare, MPI.LONG], [found, MPI.LONG], 0, 3)
    win.Flush(0)
    winners = comm.allgather(found[0] == 30)
    check(sum(winners) == 1, f"compare_and_swap: {winners}")
    win.Unlock_all()
    for target in range(size):
        if MACHINES[target][1] < unit:
            large = array.array("l", [7, 2**40])

            def put():
                win.Lock(target)
                try:
                    win.Put([large, MPI.LONG], target, target=(0, 2, MPI.LONG))
                    win.Flush(target)
                finally:
                    win.Unlock(target)

            refused(MPI.ERR_CONVERSION, str(2**40), put, "a long that doesn't fit")
    win.Free()


def scopes():
    """Post, start, complete and wait around a ring."""
    win = MPI.Win.Allocate(8, 8, comm=comm)
    group = comm.Get_group()
    after, before = (me + 1) % size, (me - 1) % size
    win.Post(group.Incl([before]))
    win.Start(group.Incl([after]))
    mine = array.array("q", [-me])
    win.Put([mine, MPI.INT64_T], after)
    win.Complete()
    win.Wait()
    equal(values(win, "q"), [-before], "post and start")
    group.Free()
    win.Free()


def datatypes():
    """Layouts that count elements are right at any rank, and those that count bytes are refused."""
    win = MPI.Win.Allocate(12 * 2, 2, comm=comm)
    vector = MPI.INT16_T.Create_vector(3, 1, 4).Commit()
    block = MPI.INT16_T.Create_subarray([3, 4], [2, 2], [1, 1]).Commit()
    integers, _, counts, _ = vector.Get_contents()
    equal([*integers, *counts], [3, 1, 4], "contents of a vector")
    check(block.combiner == MPI.COMBINER_SUBARRAY, "the combiner of a subarray")
    after, before = (me + 1) % size, (me - 1) % size
    win.Fence()
    three = array.array("h", [me, me + 1, me + 2])
    win.Put([three, MPI.INT16_T], after, target=(0, 1, vector))
    four = array.array("h", [-1, -2, -3, -me])
    win.Put([four, MPI.INT16_T], after, target=(0, 1, block))
    win.Fence()
    column = [before, before + 1, before + 2]
    expected = [column[0], 0, 0, 0, column[1], -1, -2, 0, column[2], -3, -before, 0]
    equal(values(win, "h"), expected, "vector and subarray")
    comm.Barrier()
    # Displacements in bytes that C's rule gives nowhere, of members with the same size and alignment
    # everywhere.
    spread = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT16_T, MPI.INT16_T]).Commit()
    two = array.array("h", [me, -me - 1])
    win.Fence()
    win.Put([two, MPI.INT16_T], after, target=(1, 1, spread))
    win.Fence()
    equal(values(win, "h")[1:6:4], [before, -before - 1], "a struct of equal members")
    # Displacements that C's rule gives here, and to some machines others.
    record = MPI.Datatype.Create_struct([1, 1], [0, struct.calcsize("iq") - 8], [MPI.INT32_T, MPI.INT64_T]).Commit()
    wide = MPI.Win.Allocate(16, 1, comm=comm)
    mine = bytearray(struct.pack("iq", me, -me - 2**40))

    def put():
        wide.Lock(after)
        try:
            wide.Put([mine, 1, record], after, target=(0, 1, record))
        finally:
            wide.Unlock(after)

    if has_layout(after):
        put()
    else:
        refused(MPI.ERR_TYPE, "MPIX_Type_send", put, "a struct with another layout")
    comm.Barrier()
    wide.Lock(me)
    if has_layout(before):
        found = struct.unpack("iq", bytes(wide.tomemory()[: struct.calcsize("iq")]))
        equal(found, [before, -before - 2**40], "a struct of unequal members")
    wide.Unlock(me)
    wide.Free()
    # Packed in external32, the same bytes everywhere.
    packed = bytearray(8)
    end = MPI.INT16_T.Pack_external("external32", four[:3], packed, 0)
    equal(packed[:end], b"\xff\xff\xff\xfe\xff\xfd", "external32")
    back = array.array("h", [0] * 3)
    MPI.INT16_T.Unpack_external("external32", packed[:end], 0, back)
    equal(back, four[:3], "from external32")
    for datatype in (vector, block, spread, record):
        datatype.Free()
    win.Free()


def messages():
    """Objects and arrays."""
    after, before = (me + 1) % size, (me - 1) % size
    found = comm.sendrecv({"from": me, "list": [0.5, "text"]}, dest=after, source=before)
    check(found == {"from": before, "list": [0.5, "text"]}, f"an object: {found}")
    total = array.array("d", [0.0])
    comm.Allreduce([array.array("d", [me + 0.25]), MPI.DOUBLE], [total, MPI.DOUBLE])
    equal(total, [size * (size - 1) / 2 + size / 4], "allreduce")


for part in (fences, locks, scopes, datatypes, messages):
    part()
comm.Barrier()
print(f"rank {me}, {platform.machine()}, {sys.byteorder}-endian, long of {MACHINES[me][1]}: {checks} checks: ok")

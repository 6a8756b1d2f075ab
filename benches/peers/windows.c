/* Benches of one-sided operations. Rank 0 is the origin and rank 1 the target. In benches of both
 * directions, each rank is both. A target takes part in fences, posts and waits. Otherwise it waits
 * in a barrier. */
#include "peer.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    IN_FLIGHT = 64,   /* operations to each synchronisation in benches of bandwidth or rate */
    SPREAD = 4 << 20, /* the most bytes over which they are spread */
    CHECKS = 3,
};

typedef enum { FLUSH, FLUSH_LOCAL, LOCK, LOCK_SHARED, LOCK_ALL, FENCE, PSCW, NOTIFY, SYNCS } sync_t;
static const char *const syncs[SYNCS] = {"flush", "flush_local", "lock", "lock_shared", "lock_all", "fence", "pscw", "notify"};

/* A bench. The operations of one synchronisation use contiguous slots, one for each. */
typedef struct {
    const case_t *c;
    sync_t sync;
    int rank, other, both, batch;
    elements_t of;
    MPI_Aint apart, bytes;        /* bytes of a slot, and of all slots */
    char *origin, *result, *zero; /* data put or got, data fetched, and data compared with */
    char *mine;                   /* this rank's memory of the window */
    MPI_Aint there;               /* displacement of the first slot at the other rank */
    MPI_Group group;
    MPI_Win window;
    int attached;
} bench_t;

typedef int work_t(const bench_t *b, int calls);

/* Makes `calls` calls, with a batch for each synchronisation. The macros keep branches out of the
 * loops. */
#define TRY(call) \
    do { \
        int code_ = call; \
        if (code_) code = code_; \
    } while (0)
#define BATCHES(BEFORE, CALL, AFTER) \
    for (int i = 0; i < calls; i += batch) { \
        BEFORE; \
        for (MPI_Aint j = 0, at = 0; j < batch; j++, at += apart) { \
            (void)at; \
            TRY(CALL); \
        } \
        AFTER; \
    }
#define WORK(name, CALL) \
    static int name(const bench_t *b, int calls) { \
        const int batch = b->batch, count = b->c->count, other = b->other; \
        const MPI_Aint apart = b->apart, there = b->there - b->of.low; \
        char *const origin = b->origin - b->of.low, *const result = b->result - b->of.low, *const zero = b->zero; \
        const MPI_Datatype type = b->of.type; \
        const MPI_Win window = b->window; \
        const MPI_Group group = b->group; \
        int code = MPI_SUCCESS; \
        (void)count, (void)there, (void)origin, (void)result, (void)zero, (void)type; \
        switch (b->sync) { \
        case FLUSH: BATCHES(, CALL, TRY(MPI_Win_flush(other, window))) break; \
        case FLUSH_LOCAL: BATCHES(, CALL, TRY(MPI_Win_flush_local(other, window))) break; \
        case LOCK: \
            BATCHES(TRY(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, window)), CALL, TRY(MPI_Win_unlock(other, window))) \
            break; \
        case LOCK_SHARED: \
            BATCHES(TRY(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, window)), CALL, TRY(MPI_Win_unlock(other, window))) \
            break; \
        case LOCK_ALL: BATCHES(TRY(MPI_Win_lock_all(0, window)), CALL, TRY(MPI_Win_unlock_all(window))) break; \
        case FENCE: BATCHES(, CALL, TRY(MPI_Win_fence(0, window))) break; \
        case PSCW: \
            if (b->both) \
                BATCHES(TRY(MPI_Win_post(group, 0, window)); TRY(MPI_Win_start(group, 0, window)), CALL, \
                        TRY(MPI_Win_complete(window)); TRY(MPI_Win_wait(window))) \
            else BATCHES(TRY(MPI_Win_start(group, 0, window)), CALL, TRY(MPI_Win_complete(window))) \
            break; \
        case NOTIFY: BATCHES(, CALL, TRY(MPI_Win_flush(other, window))) break; \
        case SYNCS: break; \
        } \
        return code; \
    }
WORK(put, MPI_Put(origin + at, count, type, other, there + at, count, type, window))
WORK(get, MPI_Get(origin + at, count, type, other, there + at, count, type, window))
WORK(accumulate, MPI_Accumulate(origin + at, count, type, other, there + at, count, type, MPI_SUM, window))
WORK(get_accumulate, MPI_Get_accumulate(origin + at, count, type, result + at, count, type, other, there + at, count, type,
                                        MPI_SUM, window))
WORK(fetch_and_op, MPI_Fetch_and_op(origin + at, result + at, type, other, there + at, MPI_SUM, window))
WORK(compare_and_swap, MPI_Compare_and_swap(origin + at, zero, result + at, type, other, there + at, window))
WORK(nothing, MPI_SUCCESS)

/* A put of which the target learns, and one back. MPI has no notification, so an empty message
 * after the flush takes its place. */
static int pingpong(const bench_t *b, int calls) {
    int code = MPI_SUCCESS;
    for (int i = 0; i < calls; i++)
        for (int turn = 0; turn < 2; turn++) {
            if (turn == b->rank) {
                TRY(put(b, 1));
                TRY(MPI_Send(NULL, 0, MPI_CHAR, b->other, 0, MPI_COMM_WORLD));
            } else {
                TRY(MPI_Recv(NULL, 0, MPI_CHAR, b->other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            }
        }
    return code;
}

static const struct {
    const char *bench;
    work_t *work;
    int both, many;
} works[] = {
    {"put_latency", put, 0, 0},
    {"get_latency", get, 0, 0},
    {"acc_latency", accumulate, 0, 0},
    {"get_acc_latency", get_accumulate, 0, 0},
    {"fop_latency", fetch_and_op, 0, 0},
    {"cas_latency", compare_and_swap, 0, 0},
    {"put_bw", put, 0, 1},
    {"get_bw", get, 0, 1},
    {"put_bibw", put, 1, 1},
    {"get_bibw", get, 1, 1},
    {"put_mr", put, 0, 1},
    {"get_mr", get, 0, 1},
    {"put_pingpong", pingpong, 1, 0},
    {"sync", nothing, 0, 0},
    {"computing", put, 0, 0},
};

/* The target's part of the synchronisation. */
static int serve(const bench_t *b, int calls) {
    int code = MPI_SUCCESS;
    for (int i = 0; i < calls; i += b->batch) {
        if (b->sync == FENCE) TRY(MPI_Win_fence(0, b->window));
        if (b->sync == PSCW) {
            TRY(MPI_Win_post(b->group, 0, b->window));
            TRY(MPI_Win_wait(b->window));
        }
    }
    return code;
}

static int in_lock_all(const bench_t *b) { return b->sync <= FLUSH_LOCAL || b->sync == NOTIFY; }

/* Opens the epoch that contains all rounds. */
static int open_epoch(const bench_t *b) {
    if (b->sync == FENCE) return MPI_Win_fence(0, b->window);
    return in_lock_all(b) ? MPI_Win_lock_all(0, b->window) : MPI_SUCCESS;
}

static int close_epoch(const bench_t *b) {
    if (b->sync == FENCE) return MPI_Win_fence(MPI_MODE_NOSUCCEED, b->window);
    return in_lock_all(b) ? MPI_Win_unlock_all(b->window) : MPI_SUCCESS;
}

/* This rank's part of a round of `calls` calls. */
static int one_round(const bench_t *b, work_t *work, int calls) {
    return b->rank == 0 || b->both ? work(b, calls) : serve(b, calls);
}

/* Allocates zeroed memory at the start of a page. */
static char *zeros(MPI_Aint bytes) {
    enum { PAGE = 4096 };
    bytes = (bytes / PAGE + 1) * PAGE;
    char *memory = aligned_alloc(PAGE, bytes);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

static int make_window(bench_t *b) {
    const char *how = b->c->window;
    MPI_Aint first = 0, bytes = b->bytes;
    int code;
    b->attached = 0;
    if (!strcmp(how, "allocate")) {
        // With other sizes, MPICH 4.0.2 loses data that are put to an allocated window.
        code = MPI_Win_allocate((bytes + 63) / 64 * 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b->mine, &b->window);
    } else if (!strcmp(how, "shared")) {
        code = MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b->mine, &b->window);
    } else {
        if (!(b->mine = zeros(bytes))) return unable("no memory for a window of %ld bytes", (long)bytes);
        if (!strcmp(how, "create")) {
            code = MPI_Win_create(b->mine, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b->window);
        } else if (!strcmp(how, "dynamic")) {
            code = MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &b->window);
            if (!code) code = MPI_Win_attach(b->window, b->mine, bytes);
            b->attached = !code;
            MPI_Get_address(b->mine, &first);
        } else {
            return unable("MPI has no window of kind %s", how);
        }
    }
    if (wrong(code, "the window")) return 1;
    MPI_Win_set_errhandler(b->window, MPI_ERRORS_RETURN);
    MPI_Sendrecv(&first, 1, MPI_AINT, b->other, 0, &b->there, 1, MPI_AINT, b->other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}

static void free_window(bench_t *b) {
    if (b->attached) MPI_Win_detach(b->window, b->mine);
    if (b->window != MPI_WIN_NULL) MPI_Win_free(&b->window);
    if (strcmp(b->c->window, "allocate") && strcmp(b->c->window, "shared")) free(b->mine);
}

/* Fills memory with the data of a check, or with zeros if `check` is negative. */
static void fill(const bench_t *b, char *memory, int check) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b->rank, 0, b->window);
    for (MPI_Aint i = 0; i < b->bytes; i++) memory[i] = check < 0 ? 0 : (char)pattern(i, check);
    MPI_Win_unlock(b->rank, b->window);
}

/* Checks that memory has the data sent at the places of the type, and 0 elsewhere. */
static int compare(const bench_t *b, const char *memory, int sent) {
    char *from = malloc(b->bytes), *to = calloc(b->bytes, 1);
    int bad = from && to ? 0 : unable("no memory");
    for (MPI_Aint i = 0; i < b->bytes && !bad; i++) from[i] = (char)pattern(i, sent);
    for (MPI_Aint place = 0; place < b->batch && !bad; place++) {
        MPI_Aint at = place * b->apart - b->of.low;
        bad = wrong(MPI_Sendrecv(from + at, b->c->count, b->of.type, 0, 0, to + at, b->c->count, b->of.type, 0, 0,
                                 MPI_COMM_SELF, MPI_STATUS_IGNORE), "MPI_Sendrecv");
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b->rank, 0, b->window);
    for (MPI_Aint i = 0; i < b->bytes && !bad; i++)
        if (memory[i] != to[i]) bad = invalid("byte %ld is %d instead of %d", (long)i, memory[i], to[i]);
    MPI_Win_unlock(b->rank, b->window);
    free(from);
    free(to);
    return bad;
}

/* Runs a batch and checks its data. The target has zeros before, so a sum equals the operand, a
 * swap succeeds, and a fetch returns 0. */
static int check(const bench_t *b, work_t *work, int number) {
    is_checked = 1;
    int gets = work == get, receives = b->both || (b->rank == 0) == gets, bad;
    fill(b, gets ? b->mine : b->origin, 2 * number + b->rank);
    fill(b, gets ? b->origin : b->mine, -1);
    memset(b->result, 0x55, b->apart);
    MPI_Barrier(MPI_COMM_WORLD);
    bad = wrong(open_epoch(b), b->c->sync);
    bad |= wrong(one_round(b, work, b->batch), b->c->bench);
    bad |= wrong(close_epoch(b), b->c->sync);
    MPI_Barrier(MPI_COMM_WORLD);
    if (receives && !bad) bad = compare(b, gets ? b->origin : b->mine, 2 * number + b->other);
    int fetches = work == get_accumulate || work == fetch_and_op || work == compare_and_swap;
    for (MPI_Aint i = 0; fetches && b->rank == 0 && i < b->of.span; i++)
        if (b->result[i] != 0 && b->result[i] != 0x55) bad = invalid("%d was fetched instead of 0", b->result[i]);
    return anywhere(bad);
}

/* Measures a put and flush to a rank that computes for 200 ms. If the data isn't there at the end,
 * it took 200 ms. */
static int measure_computing(const bench_t *b, double *took) {
    const double computes = 200e3;
    if (b->of.span != b->of.size) return unable("the type has gaps");
    for (; rounds_done < b->c->rounds; rounds_done++) {
        int bad = 0, there, round = rounds_done;
        fill(b, b->origin, round);
        fill(b, b->mine, -1);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = microseconds();
        if (b->rank == 0) {
            usleep(10000);
            bad = wrong(MPI_Win_lock_all(0, b->window), "MPI_Win_lock_all") || wrong(MPI_Win_flush(1, b->window), "MPI_Win_flush");
            start = microseconds();
            bad = bad || wrong(put(b, 1), "MPI_Put");
            took[round] = microseconds() - start;
            bad = bad || wrong(MPI_Win_unlock_all(b->window), "MPI_Win_unlock_all");
        } else {
            while (microseconds() - start < computes) {}
        }
        there = 1;
        for (MPI_Aint i = 0; i < b->of.span && b->rank == 1; i++) there &= ((volatile char *)b->mine)[i] == (char)pattern(i, round);
        MPI_Bcast(&there, 1, MPI_INT, 1, MPI_COMM_WORLD);
        if (!there) took[round] = computes;
        if (anywhere(bad)) return 1;
    }
    return 0;
}

static int measure_rounds(const bench_t *b, work_t *work, double *took) {
    int bad = wrong(open_epoch(b), b->c->sync);
    /* A first batch shows whether the library can do the operation, and touches the memory. */
    bad |= wrong(one_round(b, work, b->batch), b->c->bench);
    int able = !anywhere(bad);
    for (double began = microseconds(); able; rounds_done++) {
        int another = another_round(b->c, began);
        MPI_Bcast(&another, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!another) break;
        MPI_Barrier(MPI_COMM_WORLD);
        double start = microseconds();
        bad |= wrong(one_round(b, work, b->c->calls), b->c->bench);
        if (b->both && work != pingpong) MPI_Barrier(MPI_COMM_WORLD);
        took[rounds_done] = (microseconds() - start) / b->c->calls;
        if (work == pingpong) took[rounds_done] /= 2;
    }
    return anywhere(bad | wrong(close_epoch(b), b->c->sync));
}

/* The bytes of a slot: the next power of two up to 16, or the next multiple of 16. */
static MPI_Aint rounded(MPI_Aint bytes) {
    MPI_Aint power = 1;
    while (power < bytes && power < 16) power *= 2;
    return bytes > 16 ? (bytes + 15) / 16 * 16 : power;
}

int measure_rma(const case_t *c, double *took) {
    bench_t b = {.c = c, .window = MPI_WIN_NULL};
    size_t at = 0;
    while (at < sizeof works / sizeof *works && strcmp(works[at].bench, c->bench)) at++;
    while (b.sync < SYNCS && strcmp(syncs[b.sync], c->sync)) b.sync++;
    if (at == sizeof works / sizeof *works || b.sync == SYNCS) return unable("MPI has no %s with synchronisation %s", c->bench, c->sync);
    if (strcmp(c->arch[0], "native") || strcmp(c->arch[1], "native")) return unable("no operations between %s and %s", c->arch[0], c->arch[1]);
    if (!strcmp(c->route, "message") && (!strcmp(c->window, "allocate") || !strcmp(c->window, "shared")))
        return unable("these windows always use shared memory: compare with --window create");
    if (b.sync == NOTIFY && works[at].work != pingpong) return unable("MPI-5.0 has no operations that notify");
    if (make_elements(c, &b.of)) return 1;

    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    b.other = 1 - b.rank;
    b.both = works[at].both;
    b.apart = rounded(b.of.span);
    b.batch = 1;
    while (works[at].many && b.batch < IN_FLIGHT && 2 * b.batch <= c->calls && 2 * b.batch * b.apart <= SPREAD) b.batch *= 2;
    b.bytes = b.apart * b.batch;
    /* The offset in a page is that of benches/src/rma/data.rs. */
    char *pages[] = {zeros(b.bytes + c->offset), zeros(b.bytes + c->offset), zeros(b.apart)};
    int bad = pages[0] && pages[1] && pages[2] ? 0 : unable("no memory");
    if (!bad) {
        b.origin = pages[0] + c->offset;
        b.result = pages[1] + c->offset;
        b.zero = pages[2];
        bad = make_window(&b);
    }
    if (anywhere(bad)) {
        /* Freeing a window is collective: if only one rank has it, it is leaked. */
        free_elements(&b.of);
        return 1;
    }

    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &b.other, &b.group);
    fill(&b, b.mine, -1);
    fill(&b, b.origin, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    work_t *work = works[at].work;
    if (!strcmp(c->bench, "computing")) bad = b.sync == FLUSH ? measure_computing(&b, took) : unable("computing needs sync=flush");
    else bad = measure_rounds(&b, work, took);
    if (c->validate && !bad && work != nothing)
        for (int number = 0; number < CHECKS && !bad; number++) bad = check(&b, work, number);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Group_free(&b.group);
    MPI_Group_free(&all);
    free_window(&b);
    for (int i = 0; i < 3; i++) free(pages[i]);
    free_elements(&b.of);
    return bad;
}

/* Benches of messages between the two ranks, and of their collective calls, as in
 * benches/src/rma/messages.rs. A rooted call has each rank as its root in turn. */
#include "peer.h"
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 64 }; /* messages at a time in message_mr */

typedef struct {
    const case_t *c;
    int rank, other;
    elements_t of;
    MPI_Aint bytes;    /* of a block */
    MPI_Aint blocks;   /* of the data, and of the room */
    char *data, *room; /* two blocks each, or one for each message of message_mr */
} work_t;

typedef int call_t(const work_t *w, int root);

#define W MPI_COMM_WORLD
#define COUNT w->c->count, w->of.type
#define TRY(call) \
    do { \
        int code_ = call; \
        if (code_) return code_; \
    } while (0)

static int send_one(const work_t *w) { return MPI_Send(w->data, COUNT, w->other, 0, W); }
static int receive_one(const work_t *w) { return MPI_Recv(w->room, COUNT, w->other, 0, W, MPI_STATUS_IGNORE); }

static int latency(const work_t *w, int root) {
    (void)root;
    if (w->rank == 0) TRY(send_one(w));
    TRY(receive_one(w));
    return w->rank == 0 ? MPI_SUCCESS : send_one(w);
}

static int probe_latency(const work_t *w, int root) {
    (void)root;
    MPI_Status status;
    if (w->rank == 0) TRY(send_one(w));
    TRY(MPI_Probe(w->other, 0, W, &status));
    TRY(receive_one(w));
    return w->rank == 0 ? MPI_SUCCESS : send_one(w);
}

static int isend_latency(const work_t *w, int root) {
    MPI_Request requests[2];
    (void)root;
    TRY(MPI_Irecv(w->room, COUNT, w->other, 0, W, &requests[0]));
    if (w->rank == 1) TRY(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    TRY(MPI_Isend(w->data, COUNT, w->other, 0, W, &requests[1]));
    return MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Messages from rank 0 to rank 1 under way at the same time, and an answer to all. */
static int message_mr(const work_t *w, int root) {
    MPI_Request requests[IN_FLIGHT];
    char answer = 0;
    (void)root;
    for (int i = 0; i < IN_FLIGHT; i++) {
        if (w->rank == 0) TRY(MPI_Isend(w->data + i * w->bytes, COUNT, 1, 0, W, &requests[i]));
        else TRY(MPI_Irecv(w->room + i * w->bytes, COUNT, 0, 0, W, &requests[i]));
    }
    TRY(MPI_Waitall(IN_FLIGHT, requests, MPI_STATUSES_IGNORE));
    if (w->rank == 0) return MPI_Recv(&answer, 1, MPI_CHAR, 1, 1, W, MPI_STATUS_IGNORE);
    return MPI_Send(&answer, 1, MPI_CHAR, 0, 1, W);
}

static int sendrecv(const work_t *w, int root) {
    (void)root;
    return MPI_Sendrecv(w->data, COUNT, w->other, 0, w->room, COUNT, w->other, 0, W, MPI_STATUS_IGNORE);
}

#define CALL(name, call) \
    static int name(const work_t *w, int root) { \
        (void)w, (void)root; \
        return call; \
    }
CALL(barrier, MPI_Barrier(W))
CALL(bcast, MPI_Bcast(w->room, COUNT, root, W))
CALL(reduce, MPI_Reduce(w->data, w->room, COUNT, MPI_SUM, root, W))
CALL(allreduce, MPI_Allreduce(w->data, w->room, COUNT, MPI_SUM, W))
CALL(allgather, MPI_Allgather(w->data, COUNT, w->room, COUNT, W))
CALL(alltoall, MPI_Alltoall(w->data, COUNT, w->room, COUNT, W))
CALL(gather, MPI_Gather(w->data, COUNT, w->room, COUNT, root, W))
CALL(scatter, MPI_Scatter(w->data, COUNT, w->room, COUNT, root, W))
CALL(reduce_scatter, MPI_Reduce_scatter_block(w->data, w->room, COUNT, MPI_SUM, W))
CALL(scan, MPI_Scan(w->data, w->room, COUNT, MPI_SUM, W))

/* What lies in the room after a call with root 0: a block of rank 0's data, a block of the other
 * rank's, or more. Before a sum, rank 1 has zeros. */
typedef enum { NOTHING, FIRST, OTHERS, SUM, SUM_AT_ROOT, OWN_SUM, OWN_OF_ROOT, BOTH, BOTH_AT_ROOT, OWN_OF_BOTH } due_t;

static const struct {
    const char *bench;
    call_t *call;
    int messages; /* that are one call each, or one after the other */
    due_t due;
} works[] = {
    {"latency", latency, 2, OTHERS},
    {"probe_latency", probe_latency, 2, OTHERS},
    {"isend_latency", isend_latency, 2, OTHERS},
    {"message_mr", message_mr, 1, FIRST},
    {"sendrecv", sendrecv, 1, OTHERS},
    {"barrier", barrier, 1, NOTHING},
    {"bcast", bcast, 1, FIRST},
    {"reduce", reduce, 1, SUM_AT_ROOT},
    {"allreduce", allreduce, 1, SUM},
    {"allgather", allgather, 1, BOTH},
    {"alltoall", alltoall, 1, OWN_OF_BOTH},
    {"gather", gather, 1, BOTH_AT_ROOT},
    {"scatter", scatter, 1, OWN_OF_ROOT},
    {"reduce_scatter", reduce_scatter, 1, OWN_SUM},
    {"scan", scan, 1, SUM},
};

int is_message(const char *bench) {
    for (size_t at = 0; at < sizeof works / sizeof *works; at++)
        if (!strcmp(works[at].bench, bench)) return 1;
    return 0;
}

/* Fills the data, and overwrites the room. */
static void fill(const work_t *w, due_t due) {
    int sums = due == SUM || due == SUM_AT_ROOT || due == OWN_SUM;
    for (MPI_Aint at = 0; at < w->blocks * w->bytes; at++) {
        w->data[at] = sums && w->rank == 1 ? 0 : (char)pattern(at, w->rank);
        w->room[at] = 0;
    }
    if (!strcmp(w->c->bench, "bcast") && w->rank == 0) memcpy(w->room, w->data, w->bytes);
}

static int compare(const work_t *w, due_t due) {
    int all = due == BOTH || due == BOTH_AT_ROOT || due == OWN_OF_BOTH;
    MPI_Aint checked = all || w->blocks > 2 ? w->blocks * w->bytes : w->bytes, mine = w->rank * w->bytes;
    if (due == NOTHING || (w->rank != 0 && (due == SUM_AT_ROOT || due == BOTH_AT_ROOT))) return 0;
    if (!strcmp(w->c->bench, "message_mr") && w->rank == 0) return 0;
    for (MPI_Aint at = 0; at < checked; at++) {
        int from = 0;
        MPI_Aint place = at;
        if (due == OTHERS) from = w->other;
        if (due == OWN_SUM || due == OWN_OF_ROOT) place = mine + at;
        if (all) from = (int)(at / w->bytes), place = at % w->bytes;
        if (due == OWN_OF_BOTH) place += mine;
        char right = (char)pattern(place, from);
        if (w->room[at] != right) return invalid("byte %ld is %d instead of %d", (long)at, w->room[at], right);
    }
    return 0;
}

/* The calls of a round: message_mr makes a batch of messages by one. */
static int one_round(const work_t *w, call_t *call, int calls) {
    int step = call == message_mr ? IN_FLIGHT : 1;
    for (int i = 0; i < calls; i += step) TRY(call(w, i % 2));
    return MPI_SUCCESS;
}

int measure_messages(const case_t *c, double *took) {
    work_t w = {.c = c};
    size_t at = 0;
    while (strcmp(works[at].bench, c->bench)) at++;
    if (strcmp(c->arch[0], "native") || strcmp(c->arch[1], "native")) return unable("no messages between %s and %s", c->arch[0], c->arch[1]);
    if (make_elements(c, &w.of)) return 1;
    MPI_Comm_rank(W, &w.rank);
    w.other = 1 - w.rank;
    w.bytes = w.of.size;
    call_t *call = works[at].call;
    w.blocks = call == message_mr ? IN_FLIGHT : 2;
    w.data = malloc(w.blocks * w.bytes + 1), w.room = malloc(w.blocks * w.bytes + 1);
    int bad = w.data && w.room ? 0 : unable("no memory");
    if (!bad && w.of.span != w.of.size) bad = unable("the type has gaps");
    if (anywhere(bad)) goto end;
    int is_pingpong = works[at].messages == 2;
    fill(&w, works[at].due);
    /* The first calls show whether the library can make them, and touch the memory. */
    bad = anywhere(wrong(one_round(&w, call, 2), c->bench));
    for (double began = microseconds(); !bad; rounds_done++) {
        int another = another_round(c, began);
        MPI_Bcast(&another, 1, MPI_INT, 0, W);
        if (!another) break;
        MPI_Barrier(W);
        double start = microseconds();
        bad |= wrong(one_round(&w, call, c->calls), c->bench);
        /* A rank that never waits measures nothing of the other one. */
        if (!is_pingpong) MPI_Barrier(W);
        took[rounds_done] = (microseconds() - start) / c->calls / works[at].messages;
        bad = anywhere(bad);
    }
    if (c->validate && !bad) {
        is_checked = 1;
        fill(&w, works[at].due);
        MPI_Barrier(W);
        bad = wrong(one_round(&w, call, 1), c->bench) || compare(&w, works[at].due);
        bad = anywhere(bad);
    }
end:
    free(w.data);
    free(w.room);
    free_elements(&w.of);
    return bad;
}

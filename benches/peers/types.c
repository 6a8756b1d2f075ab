/* Benches of packing and of making types. Only rank 0 works. */
#include "peer.h"
#include "notation.h"

void free_elements(elements_t *made) {
    if (!setjmp(failed)) free_types();
    forget_types();
    made->type = MPI_DATATYPE_NULL;
}

int make_elements(const case_t *c, elements_t *made) {
    static node_t *node; /* static, so that it keeps its value after a longjmp */
    made->type = MPI_DATATYPE_NULL;
    if (setjmp(failed)) {
        free_elements(made);
        return unable("%s", problem);
    }
    node = read_type(c->type);
    build_types();
    made->type = node->type;
    CALL(MPI_Type_commit, &made->type);
    MPI_Aint lower, extent, low, length;
    MPI_Count size;
    CALL(MPI_Type_get_extent, made->type, &lower, &extent);
    CALL(MPI_Type_get_true_extent, made->type, &low, &length);
    CALL(MPI_Type_size_x, made->type, &size);
    MPI_Aint others = (c->count - 1) * extent, high = low + length + (others > 0 ? others : 0);
    low += others < 0 ? others : 0;
    made->low = low < 0 ? low : 0;
    made->span = high - made->low;
    made->size = size * c->count;
    return 0;
}

/* Memory and packed stream. Both begin at another offset in their pages in each round, as in
 * benches/src/datatypes.rs. */
typedef struct {
    const case_t *c;
    elements_t of;
    int external;
    MPI_Aint bytes; /* of the stream, at most */
    char *memory_pages, *stream_pages;
    char *memory, *stream;
} work_t;

enum { PAGE = 4096 };

static char *pages(MPI_Aint bytes) {
    char *memory = aligned_alloc(PAGE, (bytes / PAGE + 3) * PAGE);
    if (memory) memset(memory, 1, (bytes / PAGE + 3) * PAGE);
    return memory;
}

static void begin_at(work_t *w, int round) {
    w->memory = w->memory_pages + 64 * (7 * round % 64) - w->of.low;
    w->stream = w->stream_pages + 64 * (13 * round % 64);
}

static int pack(work_t *w) {
    MPI_Aint position = 0;
    int at = 0;
    if (w->external)
        return MPI_Pack_external("external32", w->memory, w->c->count, w->of.type, w->stream, w->bytes, &position);
    return MPI_Pack(w->memory, w->c->count, w->of.type, w->stream, (int)w->bytes, &at, MPI_COMM_SELF);
}

static int unpack(work_t *w) {
    MPI_Aint position = 0;
    int at = 0;
    if (w->external)
        return MPI_Unpack_external("external32", w->stream, w->bytes, &position, w->memory, w->c->count, w->of.type);
    return MPI_Unpack(w->stream, (int)w->bytes, &at, w->memory, w->c->count, w->of.type, MPI_COMM_SELF);
}

/* MPI has no call for a copy. A message to the same rank is one. */
static int copy(work_t *w) {
    return MPI_Sendrecv(w->memory, w->c->count, w->of.type, 0, 0, w->stream - w->of.low, w->c->count, w->of.type, 0, 0,
                        MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

/* Checks that a pack and an unpack, or a copy, write the data to their places and nothing else. */
static int check(work_t *w, int copies) {
    is_checked = 1;
    char *sent = malloc(w->of.span + 1); /* at least 1 byte: malloc(0) may return NULL */
    if (!sent) return unable("no memory");
    begin_at(w, 0);
    char *memory = w->memory + w->of.low, *back = copies ? w->stream : memory;
    for (MPI_Aint i = 0; i < w->of.span; i++) memory[i] = sent[i] = (char)pattern(i, 0);
    if (copies) memset(w->stream, 0, w->of.span);
    int code = copies ? copy(w) : pack(w), bad = wrong(code, copies ? "MPI_Sendrecv" : "MPI_Pack");
    if (!copies && !bad) {
        memset(memory, 0, w->of.span);
        bad = wrong(unpack(w), "MPI_Unpack");
    }
    MPI_Aint right = 0;
    for (MPI_Aint i = 0; i < w->of.span && !bad; i++) {
        if (back[i] == sent[i]) right++;
        else if (back[i]) bad = invalid("byte %ld came back as %d", (long)i, back[i]);
    }
    if (!bad && right != w->of.size) bad = invalid("%ld of %ld bytes", (long)right, (long)w->of.size);
    free(sent);
    return bad;
}

static int measure_transfer(const case_t *c, double *took) {
    work_t w = {.c = c, .external = !strcmp(c->arch[1], "external32")};
    int copies = !strcmp(c->bench, "copy"), size = 0;
    if (make_elements(c, &w.of)) return 1;
    int bad = w.external ? wrong(MPI_Pack_external_size("external32", c->count, w.of.type, &w.bytes), "MPI_Pack_external_size")
                         : wrong(MPI_Pack_size(c->count, w.of.type, MPI_COMM_SELF, &size), "MPI_Pack_size");
    if (!w.external) w.bytes = size;
    w.memory_pages = pages(w.of.span);
    w.stream_pages = pages(copies ? w.of.span : w.bytes);
    if (!w.memory_pages || !w.stream_pages) bad = unable("no memory");
    int (*work)(work_t *) = copies ? copy : !strcmp(c->bench, "pack") ? pack : unpack;
    if (!bad && c->validate) bad = check(&w, copies);
    begin_at(&w, 0);
    /* An unpack needs a packed stream. */
    if (!bad) bad = wrong(work == unpack ? pack(&w) : work(&w), copies ? "MPI_Sendrecv" : "MPI_Pack");
    for (double began = microseconds(); !bad && another_round(c, began); rounds_done++) {
        char *packed = w.stream;
        begin_at(&w, rounds_done);
        if (work == unpack) memmove(w.stream, packed, w.bytes);
        int code = 0;
        double start = microseconds();
        for (int call = 0; call < c->calls; call++) code |= work(&w);
        took[rounds_done] = (microseconds() - start) / c->calls;
        bad = wrong(code, c->bench);
    }
    free(w.memory_pages);
    free(w.stream_pages);
    free_elements(&w.of);
    return bad;
}

/* Measures constructors, commit (if the bench has it) and free of a type that is parsed before. */
static int measure_making(const case_t *c, double *took) {
    if (setjmp(failed)) {
        forget_types();
        return unable("%s", problem);
    }
    node_t *node = read_type(c->type);
    if (node->kind == PREDEFINED) refuse("a predefined type has no constructor");
    int commits = !strcmp(c->bench, "commit");
    for (double began = microseconds(); another_round(c, began); rounds_done++) {
        double start = microseconds();
        for (int call = 0; call < c->calls; call++) {
            build_types();
            if (commits) CALL(MPI_Type_commit, &node->type);
            free_types();
        }
        took[rounds_done] = (microseconds() - start) / c->calls;
    }
    forget_types();
    return 0;
}

int measure_datatype(const case_t *c, double *took) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0) return 0;
    int external = !strcmp(c->arch[1], "external32") && strcmp(c->bench, "copy");
    if (strcmp(c->arch[0], "native") || (strcmp(c->arch[1], "native") && !external))
        return unable("no conversion between %s and %s", c->arch[0], c->arch[1]);
    if (!strcmp(c->bench, "define") || !strcmp(c->bench, "commit")) return measure_making(c, took);
    return measure_transfer(c, took);
}

/* The work of `longshore bench` with the MPI library that this program is compiled with. Reads a
 * plan, which has a case in each line (benches/src/case.rs), and answers each with a line that
 * benches/src/row.rs parses.
 *     mpiexec -n RANKS peer PLAN [--validate]
 * Without a plan it only calls init, barrier and finalize, so that a launch can be timed. */
#define _GNU_SOURCE
#include "peer.h"
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SECONDS = 60, /* that a case may take; a case that takes longer hangs, and is ended */
};

static int rank, ranks, cores;
/* The distance of the two ranks' cores, by the round trip of a cache line. */

static struct {
    _Alignas(64) atomic_long number;
} *shared_line;

/* Maps the cache line from a file beside the plan. MPI itself shares no memory between ranks that
 * act as if they were on different hosts. */
static void map_line(const char *plan) {
    char name[4096];
    snprintf(name, sizeof name, "%.4000s-line", plan);
    int file = open(name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 64)) {
        perror(name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    shared_line = mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared_line == MAP_FAILED) {
        perror(name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0) atomic_store(&shared_line->number, 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Pauses between two loads. Without pauses, the reader takes the line away from the writer. */
static void pause_briefly(void) {
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#endif
}

/* The nanoseconds of a cache line from core to core, measured as in benches/src/rma/line.rs. */
static double distance(void) {
    enum { BLOCKS = 10, TRIPS = 30 };
    static long number = 0;
    double lowest = 1e9;
    /* On one core, ranks that wait for each other measure the scheduler's time slices. */
    if (cores < 2) return 0;
    for (int block = 0; block < BLOCKS; block++) {
        double start = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        for (int trip = -1; trip < TRIPS; trip++, number += 2) {
            /* After the first trip, both ranks have left the barrier. */
            if (trip == 0) start = microseconds();
            if (rank == 0) atomic_store_explicit(&shared_line->number, number + 1, memory_order_release);
            while (atomic_load_explicit(&shared_line->number, memory_order_acquire) != number + 1 + (rank == 0)) pause_briefly();
            if (rank == 1) atomic_store_explicit(&shared_line->number, number + 2, memory_order_release);
        }
        double took = (microseconds() - start) / TRIPS / 2 * 1e3;
        if (took < lowest) lowest = took;
    }
    return lowest;
}

/* Cases. */

static int read_case(char *line, case_t *c) {
    *c = (case_t){.bench = "put_latency", .window = "allocate", .sync = "flush", .route = "best", .type = "d", .count = 1,
                  .calls = 2000, .rounds = 41, .arch = {"native", "native"}};
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        const char *value = strchr(word, '=');
        if (!value) return unable("%.80s: expected key=value", word);
        value++;
        if (starts_with(word, "bench=")) snprintf(c->bench, sizeof c->bench, "%s", value);
        if (starts_with(word, "window=")) snprintf(c->window, sizeof c->window, "%s", value);
        if (starts_with(word, "sync=")) snprintf(c->sync, sizeof c->sync, "%s", value);
        if (starts_with(word, "route=")) snprintf(c->route, sizeof c->route, "%s", value);
        if (starts_with(word, "type=")) c->type = (char *)value;
        if (starts_with(word, "arch=")) sscanf(value, "%23[^,],%23s", c->arch[0], c->arch[1]);
        if (starts_with(word, "count=")) c->count = atoi(value);
        if (starts_with(word, "offset=")) c->offset = atoi(value);
        if (starts_with(word, "calls=")) c->calls = atoi(value);
        if (starts_with(word, "rounds=")) c->rounds = atoi(value);
    }
    if (c->count < 1 || c->calls < 1 || c->rounds < 1) return unable("expected count, calls and rounds above 0");
    return 0;
}

/* The memory (Pss) of the largest rank in kB. Pss has the process's share of shared pages. */
static int measure_memory(double *kilobytes) {
    char line[200];
    double mine = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    MPI_Barrier(MPI_COMM_WORLD);
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Pss: %lf", &mine);
    if (file) fclose(file);
    MPI_Allreduce(&mine, kilobytes, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return *kilobytes > 0 ? 0 : unable("/proc/self/smaps_rollup has no Pss");
}

static int measure(const case_t *c, double *took) {
    static const char *local[] = {"pack", "unpack", "copy", "commit", "define"};
    static const char *remote[] = {"put_latency", "get_latency", "acc_latency", "get_acc_latency", "fop_latency",
                                   "cas_latency", "put_bw", "get_bw", "put_bibw", "get_bibw", "put_mr", "get_mr",
                                   "put_pingpong", "sync", "computing"};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (!strcmp(c->bench, local[i])) return measure_datatype(c, took);
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        if (!strcmp(c->bench, remote[i])) return ranks == 2 ? measure_rma(c, took) : unable("needs two ranks");
    if (is_message(c->bench)) return ranks == 2 ? measure_messages(c, took) : unable("needs two ranks");
    if (!strcmp(c->bench, "memory")) {
        for (; rounds_done < c->rounds; rounds_done++)
            if (measure_memory(&took[rounds_done])) return 1;
        return 0;
    }
    return unable("MPI has no equivalent of %s", c->bench);
}

/* Whether a case depends on the distance of the cores. */
static int uses_line(const case_t *c) { return ranks == 2 && strcmp(c->bench, "memory"); }

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void answer(int index, char *line, int validate) {
    static double last;
    static int is_known;
    case_t c;
    double *took = NULL;
    *why = is_invalid = is_checked = rounds_done = 0;
    if (!read_case(line, &c)) {
        c.validate = validate;
        took = calloc(c.rounds, sizeof *took);
        if (uses_line(&c) && !is_known++) last = distance();
        measure(&c, took);
    }
    /* The lowest rank with a reason broadcasts it. */
    int own = *why ? rank : ranks, first;
    MPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first < ranks) {
        MPI_Bcast(why, sizeof why, MPI_CHAR, first, MPI_COMM_WORLD);
        MPI_Bcast(&is_invalid, 1, MPI_INT, first, MPI_COMM_WORLD);
        for (char *at = why; *at; at++)
            if (*at == '\t' || *at == '\n') *at = ' ';
        if (rank == 0) printf("%d\t%s\t%s\n", index, is_invalid ? "invalid" : "unsupported", why);
    } else {
        double before = last;
        if (uses_line(&c)) last = distance();
        qsort(took, rounds_done, sizeof *took, by_value);
        int most = rounds_done / 20;
        if (rank == 0)
            printf("%d\t%.6f\t%.6f\t%.6f\t%.1f\t%.1f\t%s\n", index, took[most], took[rounds_done / 2],
                   took[rounds_done - 1 - most], before, last, is_checked ? "yes" : "no");
    }
    free(took);
    fflush(stdout);
}

/* Pins this process to the core with the index of its rank, out of those that it may use, as
 * benches/src/lib.rs does. */
static void pin(void) {
    cpu_set_t all, own;
    CPU_ZERO(&own);
    cores = sched_getaffinity(0, sizeof all, &all) ? 0 : CPU_COUNT(&all);
    /* All ranks need the same number, because `distance` is collective. */
    MPI_Allreduce(MPI_IN_PLACE, &cores, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (ranks > cores) return;
    for (int core = 0, place = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all) && place++ == rank) {
            CPU_SET(core, &own);
            sched_setaffinity(0, sizeof own, &own);
            return;
        }
}

int main(int argc, char **argv) {
    alarm(SECONDS);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Finalize();
        return 0;
    }
    pin();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    FILE *plan = fopen(argv[1], "r");
    if (!plan) {
        perror(argv[1]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (ranks > 1) map_line(argv[1]);
    char *line = NULL;
    size_t room = 0;
    for (int index = 0; getline(&line, &room, plan) > 0; index++) {
        alarm(SECONDS);
        answer(index, line, argc > 2);
    }
    free(line);
    fclose(plan);
    MPI_Finalize();
    return 0;
}

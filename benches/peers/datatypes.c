/* The rows of benches/src/datatypes.rs, on whatever MPI it is compiled with. One process, which the bench asks in turns
 * with the other contenders: each request is a line, and so is each answer.
 *     hash ROW                  hashes of the packed bytes, and of memory after they are unpacked into zeros
 *     pack ROW PASSES TURN      nanoseconds of so many passes; the turn says where in a page memory and stream begin
 *     unpack ROW PASSES TURN
 *     commit ROW PASSES TURN    of constructor, commit and free
 * Rows are named by a letter: a to g are types, x and y are packed in external32, m has a million blocks. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, BLOCKS = 1024, MANY = 1 << 20 };

static int lengths[MANY], places[MANY];

/* The high bits of a linear congruential generator, as in the Rust source. */
static uint64_t state;
static int below_8(void) {
    state = state * 0x5851f42d4c957f2d + 1;
    return state >> 61;
}

static void random_blocks(int count, int shuffled) {
    state = 3;
    for (int i = 0; i < count; i++) lengths[i] = 1 + below_8();
    for (int i = 0; i < count; i++) places[i] = 16 * i + below_8();
    for (int i = count - 1; shuffled && i >= 1; i--) {
        int index = 0;
        for (int digit = 0; digit < 4; digit++) index = 8 * index + below_8();
        index %= i + 1;
        int place = places[i];
        places[i] = places[index];
        places[index] = place;
    }
}

static MPI_Datatype make(char row, int *count) {
    MPI_Datatype type = MPI_DOUBLE;
    *count = 1;
    switch (row) {
    case 'a': MPI_Type_vector(1 << 17, 1, 2, MPI_DOUBLE, &type); break;
    case 'b': MPI_Type_vector(1 << 14, 8, 16, MPI_DOUBLE, &type); break;
    case 'c': MPI_Type_indexed(BLOCKS, lengths, places, MPI_INT, &type); break;
    case 'm': MPI_Type_indexed(MANY, lengths, places, MPI_INT, &type); break;
    case 'd':
    case 'y': {
        int each[] = {1, 1, 1, 3};
        MPI_Aint at[] = {0, 8, 16, 20};
        MPI_Datatype of[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT};
        MPI_Type_create_struct(4, each, at, of, &type);
        *count = 10000;
        break;
    }
    case 'e': {
        int whole[] = {1024, 1024}, part[] = {512, 512}, start[] = {0, 0};
        MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
        break;
    }
    case 'f': {
        int whole[] = {128, 128, 128}, part[] = {128, 128, 1}, start[] = {0, 0, 0};
        MPI_Type_create_subarray(3, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
        break;
    }
    case 'g': *count = 1 << 17; break;
    case 'x': *count = 1 << 20; break;
    }
    if (type != MPI_DOUBLE) MPI_Type_commit(&type);
    return type;
}

/* What is being measured. */
static struct {
    char row;
    MPI_Datatype type;
    int count;
    MPI_Aint bytes, span;
    char *memory, *packed; /* with a page more than they need */
} now;

static int external(void) { return now.row == 'x' || now.row == 'y'; }

static void choose(char row) {
    if (now.row == row) return;
    if (now.row && now.type != MPI_DOUBLE) MPI_Type_free(&now.type);
    free(now.memory);
    free(now.packed);
    now.row = row;
    if (row == 'c') random_blocks(BLOCKS, 1);
    if (row == 'm') random_blocks(MANY, 0);
    now.type = make(row, &now.count);
    MPI_Aint low, extent, true_low, true_extent;
    MPI_Type_get_extent(now.type, &low, &extent);
    MPI_Type_get_true_extent(now.type, &true_low, &true_extent);
    int bytes;
    if (external()) {
        MPI_Pack_external_size("external32", now.count, now.type, &now.bytes);
    } else {
        MPI_Pack_size(now.count, now.type, MPI_COMM_SELF, &bytes);
        now.bytes = bytes;
    }
    now.span = (now.count - 1) * extent + true_low + true_extent;
    now.memory = aligned_alloc(PAGE, (now.span / PAGE + 2) * PAGE);
    now.packed = aligned_alloc(PAGE, (now.bytes / PAGE + 2) * PAGE);
    memset(now.packed, 0, now.bytes + PAGE);
}

static MPI_Aint pack(const char *memory, char *packed) {
    MPI_Aint position = 0;
    int at = 0;
    if (external()) MPI_Pack_external("external32", memory, now.count, now.type, packed, now.bytes, &position);
    else MPI_Pack(memory, now.count, now.type, packed, (int)now.bytes, &at, MPI_COMM_SELF);
    return position + at;
}

static void unpack(const char *packed, char *memory) {
    MPI_Aint position = 0;
    int at = 0;
    if (external()) MPI_Unpack_external("external32", packed, now.bytes, &position, memory, now.count, now.type);
    else MPI_Unpack(packed, (int)now.bytes, &at, memory, now.count, now.type, MPI_COMM_SELF);
}

static uint64_t hash(const char *bytes, MPI_Aint length) {
    uint64_t hash = 0xcbf29ce484222325;
    for (MPI_Aint i = 0; i < length; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3;
    return hash;
}

static double nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    char line[80], work[16], row;
    while (fgets(line, sizeof line, stdin)) {
        int passes = 0, turn = 0;
        if (sscanf(line, "%15s %c %d %d", work, &row, &passes, &turn) < 2) break;
        choose(row);
        char *memory = now.memory + 64 * (7 * turn % 64), *packed = now.packed + 64 * (13 * turn % 64);
        if (!strcmp(work, "hash")) {
            for (MPI_Aint i = 0; i < now.span; i++) memory[i] = (char)(i * 7 + i / 251);
            MPI_Aint length = pack(memory, packed);
            memset(memory, 0, now.span);
            unpack(packed, memory);
            printf("%016llx %016llx\n", (unsigned long long)hash(packed, length),
                   (unsigned long long)hash(memory, now.span));
        } else {
            double start = nanoseconds();
            for (int pass = 0; pass < passes; pass++) {
                if (*work == 'p') pack(memory, packed);
                else if (*work == 'u') unpack(packed, memory);
                else {
                    int count;
                    MPI_Datatype type = make(row, &count);
                    MPI_Type_free(&type);
                }
            }
            printf("%.0f\n", nanoseconds() - start);
        }
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}

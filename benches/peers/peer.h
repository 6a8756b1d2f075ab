/* What the files of the peers' program share. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

/* A line of the plan: see benches/src/case.rs. Words that mean nothing here are left out. */
typedef struct {
    char bench[24], window[16], sync[16], route[16];
    char *type;       /* in the notation */
    char arch[2][24]; /* of the two ranks, or of memory and stream */
    int count;        /* elements of the type in a call */
    int offset;       /* bytes from a page's start to the origin's memory */
    int calls, rounds;
    int validate;
} case_t;

static inline int starts_with(const char *word, const char *key) { return !strncmp(word, key, strlen(key)); }

/* Why a case can't be measured; of the rank that found out. */
extern char why[1000];
/* Whether that is wrong data; and whether data was checked. */
extern int is_invalid, is_checked;
/* Rounds that were measured: fewer than wanted where they take long. */
extern int rounds_done;

/* 1, and what is wrong in `why`. */
int unable(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define invalid(...) (is_invalid = 1, unable(__VA_ARGS__))
/* Whether an MPI call failed. The first that did is noted in `why`. */
int wrong(int code, const char *call);

double microseconds(void);
/* Whether to measure another round of a case that began then. */
int another_round(const case_t *c, double began);

/* A type in the notation, built with the library. One at a time. */
typedef struct {
    MPI_Datatype type;
    MPI_Aint low, span; /* what lies before address 0, or 0, and the bytes from there to the end of the last element */
    MPI_Aint size;      /* of their data */
} elements_t;

int make_elements(const case_t *c, elements_t *made);
void free_elements(elements_t *made);

/* Byte number `at` of what is transmitted in so manieth a check. Never above 62: every number is a normal one. */
static inline unsigned char pattern(MPI_Aint at, int check) { return (unsigned char)(1 + (at * 7 + at / 61 + check * 13) % 62); }

/* All ranks call them. They give back 1 where the case can't be measured, and else in `took` microseconds of a call, by rounds. */
int measure_rma(const case_t *c, double *took);
int measure_datatype(const case_t *c, double *took);

/* Declarations that the files of the peers' program share. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

/* A case, which is a line of the plan (benches/src/case.rs). Words without use here are left out.
 * */
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

/* The reason why a case can't be measured, on the rank that found it. */
extern char why[1000];
/* Whether the reason is wrong data, and whether data was checked. */
extern int is_invalid, is_checked;
/* Rounds measured so far. A case with long rounds ends before all of them. */
extern int rounds_done;

/* Sets the reason in `why`, unless it is set, and returns 1. */
int unable(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define invalid(...) (is_invalid = 1, unable(__VA_ARGS__))
/* Whether an MPI call failed. The first failure sets `why`. */
int wrong(int code, const char *call);
/* Whether any rank failed. Collective. */
int anywhere(int bad);

/* Whether a bench is one of messages or collective calls. */
int is_message(const char *bench);

double microseconds(void);
/* Whether to measure another round of a case that began at the time `began`. */
int another_round(const case_t *c, double began);

/* The elements of a case, with their type built by the library. Only one exists at a time. */
typedef struct {
    MPI_Datatype type;
    MPI_Aint low, span; /* lowest displacement, at most 0; bytes from there to the end */
    MPI_Aint size;      /* bytes of data */
} elements_t;

int make_elements(const case_t *c, elements_t *made);
void free_elements(elements_t *made);

/* Byte `at` of the data in check number `check`. It is at most 62, so all numbers are finite. */
static inline unsigned char pattern(MPI_Aint at, int check) { return (unsigned char)(1 + (at * 7 + at / 61 + check * 13) % 62); }

/* Measure a case. Collective. Return 1 if the case can't be measured. Otherwise `took` has the
 * microseconds of a call, for each round. */
int measure_rma(const case_t *c, double *took);
int measure_messages(const case_t *c, double *took);
int measure_datatype(const case_t *c, double *took);

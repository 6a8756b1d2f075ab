/* The outcome of the case that is being measured, and the clock. */
#include "peer.h"
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { LONG = 4 }; /* seconds after which no further round begins */

char why[1000];
int is_invalid, is_checked, rounds_done;

int unable(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    if (!*why) vsnprintf(why, sizeof why, format, rest);
    va_end(rest);
    return 1;
}

int wrong(int code, const char *call) {
    if (code == MPI_SUCCESS) return 0;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length;
    MPI_Error_string(code, text, &length);
    return unable("%s: %.900s", call, text);
}

/* Whether any rank failed. Collective. */
int anywhere(int bad) {
    int all;
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

double microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

int another_round(const case_t *c, double began) {
    return rounds_done < c->rounds && (rounds_done == 0 || microseconds() - began < LONG * 1e6);
}

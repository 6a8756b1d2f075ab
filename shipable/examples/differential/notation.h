/* A parser of the notation, which builds types with the MPI library that it is compiled with. A
 * program includes this file in one source file. Parsing and building are separate, so that
 * building can be timed. An error puts its text into `problem` and jumps to `failed`. */
#include "basics.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HANDLES = 1 << 16, /* types of one text */
    LONGEST = 1 << 24, /* items of a list */
};

static jmp_buf failed;
static char problem[MPI_MAX_ERROR_STRING + 100];

static void refuse(const char *why) {
    snprintf(problem, sizeof problem, "request: %s", why);
    longjmp(failed, 1);
}

static void fail(const char *call, int code) {
    int length;
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int class = MPI_ERR_UNKNOWN;
    MPI_Error_class(code, &class);
    MPI_Error_string(class, text, &length);
    text[strcspn(text, "\n\t")] = 0;
    snprintf(problem, sizeof problem, "%s: %s", call, text);
    longjmp(failed, 1);
}

#define CALL(function, ...) \
    do { \
        int code_ = function(__VA_ARGS__); \
        if (code_ != MPI_SUCCESS) fail(#function, code_); \
    } while (0)

static void *room(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(2);
    }
    return memory;
}

static int size_of_basic(int at) {
    int size = 0;
    if (basics[at].type == MPI_DATATYPE_NULL || MPI_Type_size(basics[at].type, &size)) return 0;
    return size;
}

/* A list of numbers, as MPI's large-count functions take it, and as the other functions do. */
typedef struct {
    MPI_Count *counts;
    MPI_Aint *addresses;
    int *ints;
} list_t;

/* A constructor with its arguments. */
typedef struct node {
    enum {
        PREDEFINED, CONTIGUOUS, VECTOR, HVECTOR, INDEXED, HINDEXED, INDEXED_BLOCK, HINDEXED_BLOCK, STRUCT, SIMPLE_STRUCT, DUP, RESIZED,
        SUBARRAY, DARRAY, F90_REAL, F90_COMPLEX, F90_INTEGER, VALUE_INDEX
    } kind;
    unsigned long name;  /* its number in the text */
    MPI_Datatype type;   /* the built type, or null */
    struct node **child; /* the members, or one child; a value and an index */
    int length;          /* of the lists: blocks, members or dimensions */
    int order;
    int placed;          /* whether a simple struct has displacements */
    MPI_Count number[3]; /* the other numbers, in the notation's order */
    list_t list[4];      /* one list for each number of an item, in the notation's order */
} node_t;

/* Predefined types, and the types of the text. Children come before their parents. */
static node_t predefined_nodes[BASICS], nodes[HANDLES];
static int definitions;
/* Whether to call MPI's large-count functions. */
static int large_counts;
/* The rest of the text. */
static const char *at;

/* The memory of the nodes, as a list of allocations. */
typedef union piece {
    union piece *next;
    MPI_Count aligned;
} piece_t;
static piece_t *pieces;

static void *keep(size_t bytes) {
    piece_t *piece = room(sizeof *piece + bytes);
    piece->next = pieces;
    pieces = piece;
    return piece + 1;
}

static int next_is(const char *word) {
    size_t length = strlen(word);
    if (strncmp(at, word, length)) return 0;
    at += length;
    return 1;
}

static void expect(char c) {
    if (*at++ != c) refuse("the notation is broken");
}

static MPI_Count number(void) {
    char *end;
    MPI_Count value = strtoll(at, &end, 10);
    if (end == at) refuse("a number is missing");
    at = end;
    return value;
}

static MPI_Count number_behind(char c) {
    expect(c);
    return number();
}

static MPI_Count parameter(void) { return next_is("*") ? MPI_UNDEFINED : number(); }

static node_t *typeref(void);

static node_t **children(int count) {
    node_t **child = keep(count * sizeof *child);
    for (int i = 0; i < count; i++) child[i] = NULL;
    return child;
}

static void one_child(node_t *node) {
    node->child = children(1);
    node->child[0] = typeref();
}

/* Reads the length of a list, and allocates room for its numbers. */
static void lists(node_t *node, int how_many) {
    MPI_Count length = number();
    if (length < 0 || length > LONGEST) refuse("a list is too long");
    node->length = (int)length;
    for (int i = 0; i < how_many; i++) {
        node->list[i].counts = keep(length * sizeof(MPI_Count));
        node->list[i].addresses = keep(length * sizeof(MPI_Aint));
        node->list[i].ints = keep(length * sizeof(int));
    }
}

static void set(node_t *node, int list, int index, MPI_Count value) {
    node->list[list].counts[index] = value;
    node->list[list].addresses[index] = (MPI_Aint)value;
    node->list[list].ints[index] = (int)value;
}

static int order(void) { return *at++ == 'C' ? MPI_ORDER_C : MPI_ORDER_FORTRAN; }

static void read_members(node_t *node) {
    int simple = node->kind == SIMPLE_STRUCT;
    lists(node, 2);
    node->child = children(node->length);
    for (int i = 0; i < node->length; i++) {
        expect(i ? ',' : ':');
        node->child[i] = typeref();
        set(node, 0, i, number_behind('/'));
        if (!simple) set(node, 1, i, number_behind('/'));
    }
}

static void read_vector(node_t *node) {
    one_child(node);
    for (int i = 0; i < 3; i++) node->number[i] = number_behind(':');
}

static void read_blocks(node_t *node) {
    one_child(node);
    expect(':');
    lists(node, 2);
    for (int i = 0; i < node->length; i++) {
        set(node, 0, i, number_behind(i ? ',' : ':'));
        set(node, 1, i, number_behind('/'));
    }
}

static void read_equal_blocks(node_t *node) {
    one_child(node);
    expect(':');
    lists(node, 1);
    node->number[0] = number_behind(':');
    for (int i = 0; i < node->length; i++) set(node, 0, i, number_behind(i ? ',' : ':'));
}

static void read_subarray(node_t *node) {
    one_child(node);
    expect(':');
    node->order = order();
    expect(':');
    lists(node, 3);
    for (int i = 0; i < node->length; i++) {
        set(node, 0, i, number_behind(i ? ',' : ':'));
        set(node, 1, i, number_behind('/'));
        set(node, 2, i, number_behind('/'));
    }
}

static void read_darray(node_t *node) {
    one_child(node);
    expect(':');
    node->order = order();
    node->number[0] = number_behind(':');
    node->number[1] = number_behind(':');
    expect(':');
    lists(node, 4);
    for (int i = 0; i < node->length; i++) {
        set(node, 0, i, number_behind(i ? ',' : ':'));
        expect('/');
        char letter = *at++;
        set(node, 1, i, letter == 'B' ? MPI_DISTRIBUTE_BLOCK : letter == 'C' ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_NONE);
        expect('/');
        set(node, 2, i, next_is("*") ? MPI_DISTRIBUTE_DFLT_DARG : number());
        set(node, 3, i, number_behind('/'));
    }
}

static void read_constructor(node_t *node) {
    if (*at >= '0' && *at <= '9') {
        node->kind = CONTIGUOUS;
        node->number[0] = number();
        one_child(node);
    } else if (next_is("V:")) {
        node->kind = VECTOR;
        read_vector(node);
    } else if (next_is("HV:")) {
        node->kind = HVECTOR;
        read_vector(node);
    } else if (next_is("X:")) {
        node->kind = INDEXED;
        read_blocks(node);
    } else if (next_is("HX:")) {
        node->kind = HINDEXED;
        read_blocks(node);
    } else if (next_is("XB:")) {
        node->kind = INDEXED_BLOCK;
        read_equal_blocks(node);
    } else if (next_is("HXB:")) {
        node->kind = HINDEXED_BLOCK;
        read_equal_blocks(node);
    } else if (next_is("S:")) {
        node->kind = STRUCT;
        read_members(node);
    } else if (next_is("SS:")) {
        node->kind = SIMPLE_STRUCT;
        read_members(node);
    } else if (next_is("D:")) {
        node->kind = DUP;
        one_child(node);
    } else if (next_is("RZ:")) {
        node->kind = RESIZED;
        one_child(node);
        node->number[0] = number_behind(':');
        node->number[1] = number_behind(':');
    } else if (next_is("SA:")) {
        node->kind = SUBARRAY;
        read_subarray(node);
    } else if (next_is("DA:")) {
        node->kind = DARRAY;
        read_darray(node);
    } else if (next_is("FR:") || next_is("FC:")) {
        node->kind = at[-2] == 'R' ? F90_REAL : F90_COMPLEX;
        node->number[0] = parameter();
        expect(':');
        node->number[1] = parameter();
    } else if (next_is("FI:")) {
        node->kind = F90_INTEGER;
        node->number[0] = parameter();
    } else if (next_is("VI:")) {
        node->kind = VALUE_INDEX;
        node->child = children(2);
        node->child[0] = typeref();
        expect(':');
        node->child[1] = typeref();
    } else {
        refuse("this constructor isn't known here");
    }
}

static node_t *read_derived(void) {
    node_t node = {0};
    node.name = (unsigned long)number();
    node.type = MPI_DATATYPE_NULL;
    if (*at != '(') {
        for (int i = 0; i < definitions; i++)
            if (nodes[i].name == node.name) return &nodes[i];
        refuse("a reference to a type that wasn't defined");
    }
    expect('(');
    read_constructor(&node);
    expect(')');
    if (definitions == HANDLES) refuse("too many types");
    nodes[definitions] = node;
    return &nodes[definitions++];
}

static node_t *typeref(void) {
    if (at[0] == 'U' && at[1] >= '0' && at[1] <= '9') {
        at++;
        return read_derived();
    }
    size_t length = 0;
    while ((at[length] | 32) >= 'a' && (at[length] | 32) <= 'z') length++;
    while ((at[length] >= '0' && at[length] <= '9') || ((at[length] | 32) >= 'a' && (at[length] | 32) <= 'z')) length++;
    for (int i = 0; i < BASICS; i++) {
        if (strlen(basics[i].code) == length && !strncmp(basics[i].code, at, length) && size_of_basic(i)) {
            at += length;
            predefined_nodes[i].type = basics[i].type;
            return &predefined_nodes[i];
        }
    }
    refuse("this predefined type isn't known here");
    return NULL;
}

/* Parses a type. It lives until forget_types. */
static node_t *read_type(const char *text) {
    at = text;
    node_t *node = typeref();
    if (*at) refuse("something follows the type");
    return node;
}

#if MPI_VERSION >= 4
#define EITHER(function, with_counts, with_ints) \
    do { \
        if (large_counts) CALL(function##_c, with_counts); \
        else CALL(function, with_ints); \
    } while (0)
#else
#define EITHER(function, with_counts, with_ints) \
    do { \
        (void)large_counts; \
        CALL(function, with_ints); \
    } while (0)
#endif
#define ARGS(...) __VA_ARGS__

/* The greatest alignment of a type's predefined types. It is measured by the padding of a struct of
 * each type and a byte. */
static MPI_Aint alignment(const node_t *node) {
    if (!node->child) {
        int size, ones[] = {1, 1};
        CALL(MPI_Type_size, node->type, &size);
        MPI_Aint low, extent, places[] = {0, size};
        MPI_Datatype padded, types[] = {node->type, size == 1 ? MPI_BYTE : MPI_CHAR};
        CALL(MPI_Type_create_struct, 2, ones, places, types, &padded);
        CALL(MPI_Type_get_extent, padded, &low, &extent);
        CALL(MPI_Type_free, &padded);
        return extent - size;
    }
    MPI_Aint most = 1;
    for (int i = 0; i < (node->kind == SIMPLE_STRUCT || node->kind == STRUCT ? node->length : 1); i++) {
        MPI_Aint of_child = alignment(node->child[i]);
        if (of_child > most) most = of_child;
    }
    return most;
}

/* Computes the displacements of a simple struct's members by C's rules, since MPI has none. */
static void place_members(node_t *node) {
    MPI_Aint next = 0;
    for (int i = 0; i < node->length && !node->placed; i++) {
        MPI_Aint low, extent, aligned = alignment(node->child[i]);
        CALL(MPI_Type_get_extent, node->child[i]->type, &low, &extent);
        next = (next + aligned - 1) / aligned * aligned;
        set(node, 1, i, next);
        next += node->list[0].addresses[i] * extent;
    }
    node->placed = 1;
}

static void build_struct(node_t *node, MPI_Datatype *made) {
    MPI_Datatype few[16] = {0}, *types = node->length <= 16 ? few : room(node->length * sizeof *types);
    for (int i = 0; i < node->length; i++) types[i] = node->child[i]->type;
    EITHER(MPI_Type_create_struct, ARGS(node->length, node->list[0].counts, node->list[1].counts, types, made),
           ARGS(node->length, node->list[0].ints, node->list[1].addresses, types, made));
    if (types != few) free(types);
}

static void build_type(node_t *node) {
    MPI_Datatype made = MPI_DATATYPE_NULL, child = node->child && node->child[0] ? node->child[0]->type : MPI_DATATYPE_NULL;
    const MPI_Count *n = node->number;
    const list_t *a = &node->list[0], *b = &node->list[1], *c = &node->list[2], *d = &node->list[3];
    int length = node->length;
    switch (node->kind) {
    case PREDEFINED: return;
    case CONTIGUOUS: EITHER(MPI_Type_contiguous, ARGS(n[0], child, &made), ARGS((int)n[0], child, &made)); break;
    case VECTOR:
        EITHER(MPI_Type_vector, ARGS(n[0], n[1], n[2], child, &made), ARGS((int)n[0], (int)n[1], (int)n[2], child, &made));
        break;
    case HVECTOR:
        EITHER(MPI_Type_create_hvector, ARGS(n[0], n[1], n[2], child, &made),
               ARGS((int)n[0], (int)n[1], (MPI_Aint)n[2], child, &made));
        break;
    case INDEXED:
        EITHER(MPI_Type_indexed, ARGS(length, a->counts, b->counts, child, &made),
               ARGS(length, a->ints, b->ints, child, &made));
        break;
    case HINDEXED:
        EITHER(MPI_Type_create_hindexed, ARGS(length, a->counts, b->counts, child, &made),
               ARGS(length, a->ints, b->addresses, child, &made));
        break;
    case INDEXED_BLOCK:
        EITHER(MPI_Type_create_indexed_block, ARGS(length, n[0], a->counts, child, &made),
               ARGS(length, (int)n[0], a->ints, child, &made));
        break;
    case HINDEXED_BLOCK:
        EITHER(MPI_Type_create_hindexed_block, ARGS(length, n[0], a->counts, child, &made),
               ARGS(length, (int)n[0], a->addresses, child, &made));
        break;
    case SIMPLE_STRUCT: place_members(node); /* fall through */
    case STRUCT: build_struct(node, &made); break;
    case DUP: CALL(MPI_Type_dup, child, &made); break;
    case RESIZED:
        EITHER(MPI_Type_create_resized, ARGS(child, n[0], n[1], &made),
               ARGS(child, (MPI_Aint)n[0], (MPI_Aint)n[1], &made));
        break;
    case SUBARRAY:
        EITHER(MPI_Type_create_subarray, ARGS(length, a->counts, b->counts, c->counts, node->order, child, &made),
               ARGS(length, a->ints, b->ints, c->ints, node->order, child, &made));
        break;
    case DARRAY:
        EITHER(MPI_Type_create_darray,
               ARGS((int)n[0], (int)n[1], length, a->counts, b->ints, c->ints, d->ints, node->order, child, &made),
               ARGS((int)n[0], (int)n[1], length, a->ints, b->ints, c->ints, d->ints, node->order, child, &made));
        break;
    case F90_REAL: CALL(MPI_Type_create_f90_real, (int)n[0], (int)n[1], &made); break;
    case F90_COMPLEX: CALL(MPI_Type_create_f90_complex, (int)n[0], (int)n[1], &made); break;
    case F90_INTEGER: CALL(MPI_Type_create_f90_integer, (int)n[0], &made); break;
    case VALUE_INDEX:
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
        CALL(MPI_Type_get_value_index, child, node->child[1]->type, &made);
        if (made == MPI_DATATYPE_NULL) refuse("no such pair");
        break;
#else
        refuse("this constructor isn't known here");
#endif
    }
    node->type = made;
}

static void build_types(void) {
    for (int i = 0; i < definitions; i++) build_type(&nodes[i]);
}

/* Frees the types in the order in which they were built: MPI allows freeing a type before types
 * that use it. Predefined types, Fortran kinds and unnamed pairs aren't freed. */
static void free_types(void) {
    for (int i = 0; i < definitions; i++) {
        if (nodes[i].type == MPI_DATATYPE_NULL) continue;
        if (nodes[i].kind < F90_REAL) CALL(MPI_Type_free, &nodes[i].type);
        nodes[i].type = MPI_DATATYPE_NULL;
    }
}

/* Frees the nodes, before another text is parsed. */
static void forget_types(void) {
    definitions = 0;
    while (pieces) {
        piece_t *next = pieces->next;
        free(pieces);
        pieces = next;
    }
}

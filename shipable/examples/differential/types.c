/* Answers questions about datatypes with an MPI library. `ci/differential` compiles this file with
 * each library, and compares the answers with shipable's. It has its own parser of the notation
 * (notation.h), so that a defect of shipable's parser can't hide.
 *
 * A request is a line of fields, separated by blanks:
 *     form    c for MPI's large-count functions, i for those with int counts
 *     count   the number of elements to pack
 *     low     the displacement of their first byte from the buffer's address
 *     memory  the bytes from there on, in hexadecimal; or -
 *     cuts    lengths of messages to receive as the type, separated by commas; or -
 *     asked   a letter for each question: b c t p u e x y, as below; or -
 *     type    in the notation
 *
 * The answer has a line for each question, a name and a tab before the text, and then a line with a
 * dot. If a call fails, its error class replaces the text. No output is buffered across
 * requests: if the library dies, the first request without an answer is the cause. */
#include "notation.h"
#include <inttypes.h>
#include <unistd.h>

enum {
    GUARD = 4096, /* bytes around memory that must not change */
    START = 5,    /* the position at which packing starts, not 0 */
    BLANK = 0x5a, /* the byte that fills memory before unpacking */
    SECONDS = 10, /* the time limit of a request */
};

/* Answers one question. After an error, the next question follows. */
#define ASK(name, question) \
    do { \
        printf(name "\t"); \
        if (setjmp(failed)) printf("error %s\n", problem); \
        else question; \
    } while (0)

/* Contents. Each derived type is printed with its own number; the reader finds equal ones. */

typedef struct {
    int combiner;
    MPI_Count integers, addresses, counts, types;
    int *integer;
    MPI_Aint *address;
    MPI_Count *large;
    MPI_Datatype *type;
} contents_t;

static int named(MPI_Datatype type) {
    for (int i = 0; i < BASICS; i++)
        if (basics[i].type == type) return i;
    return -1;
}

static contents_t contents_of(MPI_Datatype type) {
    contents_t c = {0};
#if MPI_VERSION >= 4
    if (large_counts) {
        CALL(MPI_Type_get_envelope_c, type, &c.integers, &c.addresses, &c.counts, &c.types, &c.combiner);
    } else
#endif
    {
        int integers, addresses, types;
        CALL(MPI_Type_get_envelope, type, &integers, &addresses, &types, &c.combiner);
        c.integers = integers, c.addresses = addresses, c.types = types;
    }
    if (c.combiner == MPI_COMBINER_NAMED) return c;
    c.integer = room(c.integers * sizeof(int));
    c.address = room(c.addresses * sizeof(MPI_Aint));
    c.large = room(c.counts * sizeof(MPI_Count));
    c.type = room(c.types * sizeof(MPI_Datatype));
#if MPI_VERSION >= 4
    if (large_counts)
        CALL(MPI_Type_get_contents_c, type, c.integers, c.addresses, c.counts, c.types, c.integer, c.address, c.large, c.type);
    else
#endif
        CALL(MPI_Type_get_contents, type, (int)c.integers, (int)c.addresses, (int)c.types, c.integer, c.address, c.type);
    return c;
}

/* Types that must not be freed: predefined types, Fortran kinds and unnamed pairs. */
static int predefined(int combiner) {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL
        || combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER
#ifdef MPI_COMBINER_VALUE_INDEX
        || combiner == MPI_COMBINER_VALUE_INDEX
#elif MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
        || combiner == MPI_COMBINER_VALUE_INDEX
#endif
        ;
}

static void release(contents_t *c) {
    for (MPI_Count i = 0; i < c->types; i++) {
        int integers, addresses, types, combiner;
        if (named(c->type[i]) >= 0) continue;
#if MPI_VERSION >= 4
        if (large_counts) {
            MPI_Count many[4];
            CALL(MPI_Type_get_envelope_c, c->type[i], &many[0], &many[1], &many[2], &many[3], &combiner);
        } else
#endif
            CALL(MPI_Type_get_envelope, c->type[i], &integers, &addresses, &types, &combiner);
        if (!predefined(combiner)) CALL(MPI_Type_free, &c->type[i]);
    }
    free(c->integer);
    free(c->address);
    free(c->large);
    free(c->type);
}

static const char *combiner_name(int combiner) {
    switch (combiner) {
    case MPI_COMBINER_NAMED: return "NAMED";
    case MPI_COMBINER_DUP: return "DUP";
    case MPI_COMBINER_CONTIGUOUS: return "CONTIGUOUS";
    case MPI_COMBINER_VECTOR: return "VECTOR";
    case MPI_COMBINER_HVECTOR: return "HVECTOR";
    case MPI_COMBINER_INDEXED: return "INDEXED";
    case MPI_COMBINER_HINDEXED: return "HINDEXED";
    case MPI_COMBINER_INDEXED_BLOCK: return "INDEXED_BLOCK";
    case MPI_COMBINER_HINDEXED_BLOCK: return "HINDEXED_BLOCK";
    case MPI_COMBINER_STRUCT: return "STRUCT";
    case MPI_COMBINER_SUBARRAY: return "SUBARRAY";
    case MPI_COMBINER_DARRAY: return "DARRAY";
    case MPI_COMBINER_F90_REAL: return "F90_REAL";
    case MPI_COMBINER_F90_COMPLEX: return "F90_COMPLEX";
    case MPI_COMBINER_F90_INTEGER: return "F90_INTEGER";
    case MPI_COMBINER_RESIZED: return "RESIZED";
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    case MPI_COMBINER_VALUE_INDEX: return "VALUE_INDEX";
#endif
    default: return "UNKNOWN";
    }
}

/* MPI's constants have other values in each library, so they are printed as words. */
static void print_integer(int combiner, MPI_Count index, MPI_Count length, const int *integer) {
    int value = integer[index];
    if (combiner == MPI_COMBINER_SUBARRAY || combiner == MPI_COMBINER_DARRAY) {
        if (index == length - 1) {
            printf("%s", value == MPI_ORDER_C ? "C" : value == MPI_ORDER_FORTRAN ? "F" : "?");
            return;
        }
    }
    if (combiner == MPI_COMBINER_DARRAY) {
        /* size, rank, ndims; gsizes (unless they are large); distribs; dargs; psizes; order */
        MPI_Count dimensions = integer[2], first = length - 1 - 3 * dimensions;
        if (index >= first && index < first + dimensions) {
            printf("%s", value == MPI_DISTRIBUTE_BLOCK ? "B" : value == MPI_DISTRIBUTE_CYCLIC ? "C" : value == MPI_DISTRIBUTE_NONE ? "N" : "?");
            return;
        }
        if (index >= first + dimensions && index < first + 2 * dimensions && value == MPI_DISTRIBUTE_DFLT_DARG) {
            printf("*");
            return;
        }
    }
    if ((combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX) && value == MPI_UNDEFINED) {
        printf("*");
        return;
    }
    printf("%d", value);
}

static void print_contents(MPI_Datatype type) {
    contents_t c = contents_of(type);
    printf("%s integers", combiner_name(c.combiner));
    for (MPI_Count i = 0; i < c.integers; i++) {
        printf(i ? "," : " ");
        print_integer(c.combiner, i, c.integers, c.integer);
    }
    printf(" addresses");
    for (MPI_Count i = 0; i < c.addresses; i++) printf("%s%" PRIdMAX, i ? "," : " ", (intmax_t)c.address[i]);
    printf(" counts");
    for (MPI_Count i = 0; i < c.counts; i++) printf("%s%" PRIdMAX, i ? "," : " ", (intmax_t)c.large[i]);
    printf(" types %" PRIdMAX "\n", (intmax_t)c.types);
    release(&c);
}

static unsigned long printed;

static void print_type(MPI_Datatype type) {
    int basic = named(type);
    if (basic >= 0) {
        printf("%s", basics[basic].code);
        return;
    }
    contents_t c = contents_of(type);
    if (c.combiner == MPI_COMBINER_NAMED) refuse("a predefined type that the list hasn't");
    /* All numbers in the order of the arguments. Large-count functions return them as counts. */
    intmax_t *n = room((c.integers + c.counts + c.addresses + 1) * sizeof *n), *place;
    MPI_Count i = 0, k;
    int few = c.counts > 0;
    if (c.combiner == MPI_COMBINER_SUBARRAY && few) n[i++] = c.integer[0];
    if (c.combiner == MPI_COMBINER_DARRAY && few)
        for (k = 0; k < 3; k++) n[i++] = c.integer[k];
    if (few)
        for (k = 0; k < c.counts; k++) n[i++] = c.large[k];
    for (k = few && c.combiner == MPI_COMBINER_SUBARRAY ? 1 : few && c.combiner == MPI_COMBINER_DARRAY ? 3 : 0;
         k < c.integers; k++)
        n[i++] = c.integer[k];
    for (k = 0; k < c.addresses; k++) n[i++] = c.address[k];
    intmax_t count = i ? n[0] : 0;

    printf("U%lu(", ++printed);
    switch (c.combiner) {
    case MPI_COMBINER_DUP:
        printf("D:");
        print_type(c.type[0]);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        printf("%" PRIdMAX, count);
        print_type(c.type[0]);
        break;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        printf(c.combiner == MPI_COMBINER_VECTOR ? "V:" : "HV:");
        print_type(c.type[0]);
        printf(":%" PRIdMAX ":%" PRIdMAX ":%" PRIdMAX, n[0], n[1], n[2]);
        break;
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
        printf(c.combiner == MPI_COMBINER_INDEXED ? "X:" : "HX:");
        print_type(c.type[0]);
        printf(":%" PRIdMAX, count);
        place = n + 1 + count;
        for (k = 0; k < count; k++) printf("%s%" PRIdMAX "/%" PRIdMAX, k ? "," : ":", n[1 + k], place[k]);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        printf(c.combiner == MPI_COMBINER_INDEXED_BLOCK ? "XB:" : "HXB:");
        print_type(c.type[0]);
        printf(":%" PRIdMAX ":%" PRIdMAX, count, n[1]);
        for (k = 0; k < count; k++) printf("%s%" PRIdMAX, k ? "," : ":", n[2 + k]);
        break;
    case MPI_COMBINER_STRUCT:
        printf("S:%" PRIdMAX, count);
        place = n + 1 + count;
        for (k = 0; k < count; k++) {
            printf(k ? "," : ":");
            print_type(c.type[k]);
            printf("/%" PRIdMAX "/%" PRIdMAX, n[1 + k], place[k]);
        }
        break;
    case MPI_COMBINER_SUBARRAY:
        printf("SA:");
        print_type(c.type[0]);
        printf(":%s:%" PRIdMAX, n[1 + 3 * count] == MPI_ORDER_C ? "C" : "F", count);
        for (k = 0; k < count; k++)
            printf("%s%" PRIdMAX "/%" PRIdMAX "/%" PRIdMAX, k ? "," : ":", n[1 + k], n[1 + count + k], n[1 + 2 * count + k]);
        break;
    case MPI_COMBINER_DARRAY:
        printf("DA:");
        print_type(c.type[0]);
        count = n[2];
        printf(":%s:%" PRIdMAX ":%" PRIdMAX ":%" PRIdMAX, n[3 + 4 * count] == MPI_ORDER_C ? "C" : "F", n[0], n[1], count);
        for (k = 0; k < count; k++) {
            intmax_t how = n[3 + count + k], argument = n[3 + 2 * count + k];
            printf("%s%" PRIdMAX "/%s/", k ? "," : ":", n[3 + k],
                   how == MPI_DISTRIBUTE_BLOCK ? "B" : how == MPI_DISTRIBUTE_CYCLIC ? "C" : "N");
            if (argument == MPI_DISTRIBUTE_DFLT_DARG) printf("*");
            else printf("%" PRIdMAX, argument);
            printf("/%" PRIdMAX, n[3 + 3 * count + k]);
        }
        break;
    case MPI_COMBINER_RESIZED:
        printf("RZ:");
        print_type(c.type[0]);
        printf(":%" PRIdMAX ":%" PRIdMAX, n[0], n[1]);
        break;
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
        printf(c.combiner == MPI_COMBINER_F90_REAL ? "FR:" : "FC:");
        print_integer(c.combiner, 0, 2, c.integer);
        printf(":");
        print_integer(c.combiner, 1, 2, c.integer);
        break;
    case MPI_COMBINER_F90_INTEGER: printf("FI:%" PRIdMAX, count); break;
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    case MPI_COMBINER_VALUE_INDEX:
        printf("VI:");
        print_type(c.type[0]);
        printf(":");
        print_type(c.type[1]);
        break;
#endif
    default: refuse("a combiner that isn't known here");
    }
    printf(")");
    free(n);
    release(&c);
}

/* Packing. */

static void print_bytes(const unsigned char *bytes, MPI_Aint length) {
    static const char digits[] = "0123456789abcdef";
    for (MPI_Aint i = 0; i < length; i++) {
        putchar(digits[bytes[i] >> 4]);
        putchar(digits[bytes[i] & 15]);
    }
}

typedef struct {
    MPI_Datatype type;
    int count;
    MPI_Aint low, length;
    unsigned char *memory; /* with a guard before and after */
    unsigned char *packed; /* the last stream packed */
    MPI_Aint bytes;        /* its length */
} request_t;

/* The address of displacement 0, which may be outside of the memory. */
static void *origin(const request_t *r, unsigned char *memory) {
    return (void *)((uintptr_t)memory + GUARD - (uintptr_t)r->low);
}

/* Prints the result of MPI_Pack_size, the packed size, and the packed bytes. */
static void print_packed(request_t *r, int external) {
    MPI_Aint size, position = START;
    int int_size, int_position = START;
    if (external) {
        CALL(MPI_Pack_external_size, "external32", r->count, r->type, &size);
    } else {
        CALL(MPI_Pack_size, r->count, r->type, MPI_COMM_SELF, &int_size);
        size = int_size;
    }
    free(r->packed);
    r->bytes = 0;
    r->packed = room(size + START + GUARD);
    memset(r->packed, BLANK, size + START + GUARD);
    void *from = origin(r, r->memory);
    if (external) {
        CALL(MPI_Pack_external, "external32", from, r->count, r->type, r->packed, size + START, &position);
    } else {
        CALL(MPI_Pack, from, r->count, r->type, r->packed, (int)size + START, &int_position, MPI_COMM_SELF);
        position = int_position;
    }
    r->bytes = position - START;
    printf("%" PRIdMAX " %" PRIdMAX " ", (intmax_t)size, (intmax_t)r->bytes);
    for (int i = 0; i < GUARD; i++)
        if (r->packed[i < START ? i : size + i] != BLANK) refuse("bytes outside of the stream were written");
    print_bytes(r->packed + START, r->bytes);
    printf("\n");
}

static void print_unpacked(request_t *r, int external) {
    MPI_Aint all = r->length + 2 * GUARD, position = START;
    int int_position = START;
    unsigned char *memory = room(all);
    memset(memory, BLANK, all);
    void *to = origin(r, memory);
    if (external) {
        CALL(MPI_Unpack_external, "external32", r->packed, r->bytes + START, &position, to, r->count, r->type);
    } else {
        CALL(MPI_Unpack, r->packed, (int)r->bytes + START, &int_position, to, r->count, r->type, MPI_COMM_SELF);
        position = int_position;
    }
    printf("%" PRIdMAX " ", (intmax_t)(position - START));
    for (int i = 0; i < GUARD; i++)
        if (memory[i] != BLANK || memory[all - 1 - i] != BLANK) refuse("bytes outside of the type were written");
    print_bytes(memory + GUARD, r->length);
    printf("\n");
    free(memory);
}

/* Receives beginnings of a packed message, and prints their numbers of elements and basic
 * elements. */
static void print_elements(request_t *r, const char *cuts) {
    unsigned char *memory = room(r->length + 2 * GUARD);
    for (int first = 1; *cuts && *cuts != '-'; first = 0) {
        char *end;
        MPI_Status status;
        int bytes = (int)strtol(cuts, &end, 10), count, elements;
        cuts = *end == ',' ? end + 1 : end;
        if (bytes > r->bytes) refuse("a cut after the end");
        CALL(MPI_Sendrecv, r->packed + START, bytes, MPI_PACKED, 0, 0, origin(r, memory), r->count, r->type, 0, 0,
             MPI_COMM_SELF, &status);
        CALL(MPI_Get_count, &status, r->type, &count);
        CALL(MPI_Get_elements, &status, r->type, &elements);
        printf(first ? "" : ",");
        if (count == MPI_UNDEFINED) printf("*");
        else printf("%d", count);
        if (elements == MPI_UNDEFINED) printf("/*");
        else printf("/%d", elements);
    }
    printf("\n");
    free(memory);
}

static void print_bounds(MPI_Datatype type) {
    MPI_Count size, low, extent, true_low, true_extent;
    CALL(MPI_Type_size_x, type, &size);
    CALL(MPI_Type_get_extent_x, type, &low, &extent);
    CALL(MPI_Type_get_true_extent_x, type, &true_low, &true_extent);
    printf("%" PRIdMAX " %" PRIdMAX " %" PRIdMAX " %" PRIdMAX " %" PRIdMAX "\n", (intmax_t)size, (intmax_t)low,
           (intmax_t)extent, (intmax_t)true_low, (intmax_t)true_extent);
}

static int nibble(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

static void answer(char *line) {
    static request_t r;
    static const char *field[7];
    int fields = 0;
    for (char *word = strtok(line, " \n"); word && fields < 7; word = strtok(NULL, " \n")) field[fields++] = word;
    if (fields != 7) {
        printf("type\terror request: seven fields\n.\n");
        return;
    }
    large_counts = field[0][0] == 'c';
    r.count = atoi(field[1]);
    r.low = (MPI_Aint)strtoll(field[2], NULL, 10);
    r.length = field[3][0] == '-' ? 0 : (MPI_Aint)strlen(field[3]) / 2;
    r.memory = room(r.length + 2 * GUARD);
    memset(r.memory, BLANK, r.length + 2 * GUARD);
    for (MPI_Aint i = 0; i < r.length; i++)
        r.memory[GUARD + i] = (unsigned char)(nibble(field[3][2 * i]) << 4 | nibble(field[3][2 * i + 1]));

    r.type = MPI_DATATYPE_NULL;
    printed = 0;
    ASK("type", {
        node_t *node = read_type(field[6]);
        build_types();
        r.type = node->type;
        CALL(MPI_Type_commit, &r.type);
        printf("ok\n");
    });
    if (r.type != MPI_DATATYPE_NULL) {
        static const char *asked; /* static, because longjmp returns here */
        for (asked = field[5]; *asked; asked++) {
            switch (*asked) {
            case 'b': ASK("bounds", print_bounds(r.type)); break;
            case 'c': ASK("contents", print_contents(r.type)); break;
            case 't': ASK("text", { print_type(r.type); printf("\n"); }); break;
            case 'p': ASK("pack", print_packed(&r, 0)); break;
            case 'u': ASK("unpack", print_unpacked(&r, 0)); break;
            case 'e': ASK("elements", print_elements(&r, field[4])); break;
            case 'x': ASK("external", print_packed(&r, 1)); break;
            case 'y': ASK("unexternal", print_unpacked(&r, 1)); break;
            }
        }
    }
    ASK("free", { free_types(); printf("ok\n"); });
    forget_types();
    printf(".\n");
    free(r.memory);
    free(r.packed);
    r.packed = NULL;
}

/* Prints the library's name, the sizes of predefined types, and the types that MPI_Type_match_size
 * returns. */
static void introduce(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, major, minor;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n,")] = 0;
    MPI_Get_version(&major, &minor);
    printf("library\t%s\nstandard\t%d.%d\nbasics\t", version, major, minor);
    for (int i = 0; i < BASICS; i++)
        if (size_of_basic(i)) printf("%s:%d ", basics[i].code, size_of_basic(i));
    printf("\nmatches\t");
    static const struct {
        const char *name;
        int class;
    } classes[] = {{"REAL", MPI_TYPECLASS_REAL}, {"INTEGER", MPI_TYPECLASS_INTEGER}, {"COMPLEX", MPI_TYPECLASS_COMPLEX}};
    for (int class = 0; class < 3; class++) {
        for (int size = 1; size <= 32; size *= 2) {
            MPI_Datatype type;
            int found = MPI_Type_match_size(classes[class].class, size, &type) == MPI_SUCCESS;
            printf("%s*%d:%s ", classes[class].name, size,
                   !found ? "-" : named(type) < 0 ? "?" : basics[named(type)].code);
        }
    }
    printf("\n.\n");
    fflush(stdout);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    introduce();
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        alarm(SECONDS);
        answer(line);
        alarm(0);
        fflush(stdout);
    }
    free(line);
    MPI_Finalize();
    return 0;
}

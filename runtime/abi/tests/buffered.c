/* Buffered sends, and the buffers for them (MPI-5.0 section 3.6). */
#include "check.h"

enum { LONG = 100000 };

/* Each rank sends to all, itself included, before anybody receives. */
static void before_any_receive(void)
{
    int length, packed, *out = malloc(LONG * sizeof(int)), *in = malloc(LONG * sizeof(int));
    OK(MPI_Pack_size(LONG, MPI_INT, MPI_COMM_WORLD, &packed));
    length = size * (packed + MPI_BSEND_OVERHEAD);
    void *room = malloc(length), *back;
    OK(MPI_Buffer_attach(room, length));
    for (int i = 0; i < LONG; i++)
        out[i] = me + i;
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Bsend(out, LONG, MPI_INT, peer, 3, MPI_COMM_WORLD));
    memset(out, -1, LONG * sizeof(int)); /* its own memory is free again */
    for (int peer = 0; peer < size; peer++) {
        OK(MPI_Recv(in, LONG, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(in[0] == peer && in[LONG - 1] == peer + LONG - 1);
    }
    OK(MPI_Buffer_flush());
    OK(MPI_Buffer_detach(&back, &packed));
    CHECK(back == room && packed == length);
    free(room);
    free(out);
    free(in);
}

static void derived_and_immediate(void)
{
    char room[4096];
    MPI_Count detached;
    MPI_Request request;
    MPI_Datatype column;
    void *back;
    int data[6] = {1, -1, 2, -1, 3, -1}, in[3] = {0};
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Buffer_attach_c(room, sizeof room));
    OK(MPI_Ibsend(data, 1, column, 0, 0, MPI_COMM_SELF, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&column));
    memset(data, 0, sizeof data);
    OK(MPI_Recv(in, 3, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(in[0] == 1 && in[1] == 2 && in[2] == 3);
    /* Of data that lie before their address. */
    OK(MPI_Type_create_hvector(3, 1, -(MPI_Aint)sizeof(int), MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    OK(MPI_Bsend(in + 2, 1, column, 0, 0, MPI_COMM_SELF));
    OK(MPI_Recv(data, 3, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(data[0] == 3 && data[1] == 2 && data[2] == 1);
    OK(MPI_Type_free(&column));
    OK(MPI_Bsend(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Bsend(in, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF));
    OK(MPI_Buffer_iflush(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach_c(&back, &detached));
    CHECK(back == room && detached == sizeof room);
}

/* The buffer of a communicator comes before that of the process. */
static void of_a_communicator(void)
{
    char room[2048];
    int value = 7, in, length;
    void *back;
    MPI_Comm dup;
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    OK(MPI_Comm_detach_buffer(dup, &back, &length));
    CHECK(!back && !length);
    OK(MPI_Comm_attach_buffer(dup, room, sizeof room));
    OK(MPI_Bsend(&value, 1, MPI_INT, 0, 0, dup));
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Comm_iflush_buffer(dup, &request));
    OK(MPI_Recv(&in, 1, MPI_INT, 0, 0, dup, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_flush_buffer(dup));
    CHECK(in == 7);
    OK(MPI_Comm_free(&dup)); /* detaches its buffer */
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Bsend(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Recv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&back, &length));
    CHECK(back == MPI_BUFFER_AUTOMATIC);
}

static void errors(void)
{
    char room[MPI_BSEND_OVERHEAD + 8];
    int values[3] = {0}, length;
    void *back;
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(values, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_BUFFER, MPI_Buffer_attach(NULL, 8));
    OK(MPI_Buffer_attach(room, sizeof room));
    FAILS(MPI_ERR_BUFFER, MPI_Buffer_attach(room, sizeof room));
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(values, 3, MPI_INT, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_COUNT, MPI_Bsend(values, -1, MPI_INT, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_RANK, MPI_Bsend(values, 1, MPI_INT, 1, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_TYPE, MPI_Bsend(values, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_ARG, MPI_Buffer_detach(NULL, &length));
    OK(MPI_Bsend(values, 2, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Recv(values, 2, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&back, &length));
}

/* MPI_Finalize sends what is in a buffer. */
static void last(void)
{
    static char room[1 << 16];
    int value = me, in;
    OK(MPI_Buffer_attach(room, sizeof room));
    OK(MPI_Bsend(&value, 1, MPI_INT, (me + 1) % size, 9, MPI_COMM_WORLD));
    OK(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == (me + size - 1) % size);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    before_any_receive();
    derived_and_immediate();
    of_a_communicator();
    errors();
    last();
    return end();
}
